"""`data get`: a download from a server in the test, whole, broken off, wrong and hostile."""

from __future__ import annotations

import io
import stat
import tarfile
import zipfile
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from bsdsbench.errors import DataError
from bsdsbench.loaders.sample import sample_ground_truth, sample_images
from bsdsbench.loaders.sets import identity, public_sets
from bsdsbench.loaders.sets.public_sets import PublicSet, download, set_folder
from bsdsbench.protocol.protocol import Protocol
from tests.helpers.serving import serving

TRUTH = "mirror-HEAD/data/groundTruth/test/"
FILES = {
    **{TRUTH + p.name: p.read_bytes() for p in sorted(sample_ground_truth().glob("*.mat"))},
    **{
        f"m/images/test/{p.name}": p.read_bytes() for p in sorted(sample_images().glob("*.jpg"))[:2]
    },
    "mirror-HEAD/bench/boundaryBench.m": b"not kept",
}


SHIPPED, KNOWN = public_sets.public_sets(), identity.shipped_sets()


def zipped(files, link=""):
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as packed:
        for name, content in files.items():
            info = zipfile.ZipInfo(name)
            if name == link:
                info.external_attr = (stat.S_IFLNK | 0o777) << 16
            packed.writestr(info, content, zipfile.ZIP_DEFLATED)
    return out.getvalue()


def tarred(files, link=""):
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w:gz") as packed:
        for name, content in files.items():
            info = tarfile.TarInfo(name)
            info.size = len(content)
            if name == link:
                info.type, info.linkname, info.size = tarfile.SYMTYPE, "/etc/passwd", 0
            packed.addfile(info, io.BytesIO(content))
    return out.getvalue()


class Server(ThreadingHTTPServer):
    """Serves `content`; breaks the first `breaks` answers off in the middle."""

    content, breaks, ranges = b"", 0, True

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Handler)
        self.asked = []

    def url(self, name):
        return f"http://127.0.0.1:{self.server_address[1]}/{name}"


class Handler(BaseHTTPRequestHandler):
    def do_GET(self):
        if "gone" in self.path:
            return self.send_error(404)
        wanted = self.headers.get("Range")
        self.server.asked.append(wanted)
        start = int(wanted[6:-1]) if wanted and self.server.ranges else 0
        if start >= len(self.server.content):
            return self.send_error(416)
        rest = self.server.content[start:]
        self.send_response(206 if start else 200)
        self.send_header("Content-Length", str(len(rest)))
        self.end_headers()
        if self.server.breaks:
            self.server.breaks -= 1
            rest = rest[: len(rest) // 2]
        self.wfile.write(rest)

    def log_message(self, *_):
        pass


@pytest.fixture
def server():
    with serving(Server()) as made:
        yield made


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    """A cache of its own, and the sample as a set that is known by its fingerprint."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    images = identity.folder_fingerprints(sample_ground_truth(), Protocol.preset("bsds500"))
    known = {"made-test": images}
    monkeypatch.setattr(identity, "shipped_sets", lambda: known)
    made = PublicSet(
        "made",
        "a set",
        "any use",
        "http://127.0.0.1/",
        url="http://127.0.0.1:1/none",
        keep=public_sets.public_sets()["bsds500"].keep,
        splits={"made-test": "groundTruth/test", "made-val": "groundTruth/val"},
        images={"made-test": "images/test"},
    )
    other = PublicSet("other", "a set", "ask", "http://127.0.0.1/home", how="Register at")
    monkeypatch.setattr(public_sets, "public_sets", lambda: {"made": made, "other": other})
    return tmp_path / "cache" / "bsdsbench" / "data"


def left(folder):
    """What a call left in a folder, but for an empty lock."""
    return sorted(p.name for p in folder.glob("*") if not p.name.endswith(".lock"))


@pytest.mark.parametrize("pack", [zipped, tarred])
def test_whole(server, cache, pack):
    server.content = pack(FILES)
    told = []
    assert (
        download("made", url=server.url("a"), progress=lambda *a: told.append(a)) == cache / "made"
    )
    kept = {p.relative_to(cache / "made").as_posix() for p in (cache / "made").rglob("*.*")}
    assert kept == {n.split("/", 2 if "data" in n else 1)[-1] for n in FILES if ".m/" not in n} - {
        "bench/boundaryBench.m"
    }
    assert set_folder("made-test") == cache / "made" / "groundTruth" / "test"
    assert set_folder("made-test", "images").is_dir()
    assert told[-1][:2] == (16, 16)
    assert left(cache) == ["made"]


def test_local_archive_and_folder(tmp_path, cache):
    archive = tmp_path / "a.tar.gz"
    archive.write_bytes(tarred(FILES))
    assert download("made", tmp_path / "here", str(archive)) == tmp_path / "here"
    assert archive.exists()
    with pytest.raises(DataError, match="here: is there already"):
        download("made", tmp_path / "here", str(archive))


@pytest.mark.parametrize("ranges", [True, False])
def test_broken_off_and_resumed(server, cache, ranges):
    server.content, server.breaks, server.ranges = tarred(FILES), 2, ranges
    for _ in range(2):
        with pytest.raises(DataError, match="bytes are kept"):
            download("made", url=server.url("a"))
        assert [name[-5:] for name in left(cache)] == [".part"]
    download("made", url=server.url("a"))
    assert left(cache) == ["made"]
    assert server.asked[0] is None
    assert 0 < int(server.asked[1][6:-1]) <= len(server.content) // 2


def test_a_part_that_is_whole_is_taken(server, cache):
    """As if the process had been killed between the last byte and the renaming of the part."""
    server.content, server.breaks = tarred(FILES), 1
    with pytest.raises(DataError, match="bytes are kept"):
        download("made", url=server.url("a"))
    (cache / left(cache)[0]).write_bytes(server.content)
    download("made", url=server.url("a"))
    assert left(cache) == ["made"]
    assert server.asked[-1] == f"bytes={len(server.content)}-"


def changed(files):
    name = next(iter(files))
    other = list(files.values())[1]
    return {**files, name: other}


@pytest.mark.parametrize(
    ("content", "names"),
    [
        (zipped(changed(FILES)), "expected made-test"),
        (zipped({k: v for k, v in FILES.items() if "Truth" not in k}), "no ground truth"),
        (zipped({**FILES, TRUTH + "x.mat": b"no .mat"}), "x.mat"),
        (b"no archive", "expected .zip or .tar.gz"),
        (tarred({**FILES, "/tmp/x.mat": b"1"}), "leads out"),
        (tarred(FILES, link=next(iter(FILES))), "plain"),
        (zipped(FILES, link=next(iter(FILES))), "plain"),
        (zipped({**FILES, "b/" + TRUTH + next(iter(FILES)).rpartition("/")[2]: b"1"}), "twice"),
        (zipped({TRUTH + "bomb.mat": bytes((64 << 20) + 1)}), "bomb.mat"),
    ],
)
def test_wrong_or_hostile_content_is_refused(server, cache, content, names):
    server.content = content
    with pytest.raises(DataError, match=names) as caught:
        download("made", url=server.url("a"))
    assert len(caught.value.problems) == 1
    assert left(cache) == []


def test_no_network_and_no_address(server, cache):
    with pytest.raises(DataError, match="none: ConnectionError"):
        download("made")
    with pytest.raises(DataError, match="gone: status 404"):
        download("made", url=server.url("gone"))
    with pytest.raises(DataError, match="Register at http"):
        download("other")
    with pytest.raises(DataError, match="expected one of made, other"):
        download("mode")
    with pytest.raises(DataError, match="data get made"):
        set_folder("made-test")
    with pytest.raises(DataError, match="--gt"):
        set_folder("unknown-test")
    assert left(cache) == []


def test_the_sets_that_ship():
    for one in SHIPPED.values():
        assert all((one.title, one.licence, one.home.startswith("http"))), one.name
        assert one.how or one.url, one.name
        assert set(one.splits) <= set(KNOWN) | set(one.counts), one.name
        assert set(one.images) == set(one.splits), one.name
        Protocol.preset(one.protocol)
