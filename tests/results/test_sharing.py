"""A run in one small file: bit for bit, refused where a byte differs, found by its address."""

import hashlib
import http.server
import json
import shutil
import ssl
import subprocess
import zipfile
from dataclasses import replace
from functools import partial

import numpy as np
import pooch
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

import bsdsbench as bb
from bsdsbench.errors import FileFormatError
from bsdsbench.results.sharing import _pack_counts, unpack_counts
from bsdsbench.results.storage import npz_bytes
from tests.helpers.making import make_set
from tests.helpers.runs import call, counted, refused
from tests.helpers.serving import serving

FIVE = bb.Protocol.preset("bsds500").replace(thresholds=5)


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    root = tmp_path_factory.mktemp("shared")
    counted(*make_set(root), FIVE, metrics=("boundary", "pixel"), out=root / "out", errors=True)
    return root / "out"


@pytest.fixture
def file(saved, tmp_path):
    return bb.Evaluation.load(saved).share(tmp_path / "mine.bsds.npz", "CC-BY-4.0", "Doe, 2026")


@pytest.fixture
def web(file, tmp_path, monkeypatch):
    """The address of the file, the folder of the cache, and a list of what was downloaded."""
    asked, server = [], tmp_path / "server.npz"
    shutil.copy(file, server)

    class Downloader:
        def __init__(self, **options):
            pass

        def __call__(self, url, target, pup):
            asked.append(url)
            shutil.copy(server, target)

    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(pooch.core, "choose_downloader", lambda url, **options: Downloader())
    return "https://example.org/a/mine.bsds.npz", server, asked


@settings(max_examples=60, deadline=None)
@given(
    arrays.arrays(
        np.int64, arrays.array_shapes(min_dims=2, max_dims=4), elements=st.integers(0, 2**53)
    )
)
def test_steps_give_the_numbers_back(values):
    planes = _pack_counts(values)
    assert planes.dtype == np.uint8
    np.testing.assert_array_equal(unpack_counts(planes), values)


def test_the_round_trip_is_bit_identical(saved, file):
    run, shared = bb.Evaluation.load(saved), bb.Evaluation.load(file)
    assert shared.equals(run)
    assert shared.signature_line == run.signature_line
    assert (shared.name, shared.read_as) == (run.name, run.read_as)
    assert shared.identity.fingerprint == run.identity.fingerprint
    assert json.dumps(shared.scores()) == json.dumps(run.scores())
    for metric in run.metrics:
        for name, values in run.stack(metric).items():
            again = shared.stack(metric)[name]
            assert (again.dtype, again.tobytes()) == (values.dtype, values.tobytes())
    assert shared.provenance.licence == "CC-BY-4.0"
    again = shared.share(file.with_name("again.npz"), "CC-BY-4.0", "Doe, 2026")
    assert bb.Evaluation.load(again).equals(run)


def test_it_names_no_folder_of_the_author(saved, file):
    with zipfile.ZipFile(file) as packed:
        about = json.loads(np.load(packed.open("about.npy")).tobytes())
    assert str(saved.parent) not in json.dumps(about)
    assert not {"pred", "gt"} & about["provenance"].keys()
    run = bb.Evaluation.load(saved)
    assert about["signature"] == run.signature_line
    assert about["set"]["fingerprint"] == run.identity.fingerprint
    assert about["read_as"] == run.read_as
    assert about["provenance"]["citation"] == "Doe, 2026"


def test_every_changed_byte_is_refused(file):
    data = file.read_bytes()
    places = [*range(0, len(data), 61), *range(len(data) - 60, len(data))]
    for place in places:
        file.write_bytes(data[:place] + bytes([data[place] ^ 1]) + data[place + 1 :])
        refused("mine.bsds.npz: ", bb.Evaluation.load, file, error=FileFormatError)
    for cut in (data[:-1], data[:100], data + b"0", data[1:]):
        file.write_bytes(cut)
        refused("mine.bsds.npz: ", bb.Evaluation.load, file, error=FileFormatError)
    file.write_bytes(data)
    bb.Evaluation.load(file)


class Planted:
    def __reduce__(self):
        return exec, ("raise SystemExit('executed')",)


@pytest.mark.parametrize("what", ["objects", "steps", "no about", "another schema"])
def test_nothing_in_it_is_executed_and_its_form_is_checked(file, what):
    """With a hash that fits, as anyone may write it."""
    from bsdsbench.io import digest

    stored = dict(np.load(file))
    about = json.loads(stored["about"].tobytes())
    if what == "objects":
        stored["boundary.planted"] = np.array([Planted()], object)
    elif what == "steps":
        stored[about["steps"][0]] = stored[about["steps"][0]].astype(np.int64)
    elif what == "no about":
        del stored["about"]
    else:
        text = json.dumps({**about, "schema": "other"}).encode()
        stored["about"] = np.frombuffer(text, np.uint8)
    if what == "objects":
        np.savez(file, **stored, allow_pickle=True)
        data = file.read_bytes()
        end = data[:-2] + len(b"bsdsbench:" + b"0" * 32).to_bytes(2, "little")
    else:
        mark = b"bsdsbench:" + b"0" * 32
        end = npz_bytes(stored, comment=mark)[: -len(mark)]
    file.write_bytes(end + b"bsdsbench:" + digest(end).encode())
    if what == "objects":  # left out, as they are never loaded
        assert all("planted" not in r.counts["boundary"] for r in bb.Evaluation.load(file).records)
        return
    words = {
        "steps": "expected steps in bytes",
        "no about": "not JSON",
        "another schema": "schema '.*, expected 'bsdsbench",
    }
    refused(words[what], bb.Evaluation.load, file, error=FileFormatError)


def test_two_hundred_images_are_below_200_kb(tmp_path):
    """Real counts: those of the reference runs, at 100 thresholds."""
    for name in ("sauge-l", "hed"):
        run = bb.Evaluation.load(f"ref:{name}")
        records = [replace(r, fingerprint=r.truth * 2) for r in run.records]
        path = replace(run, records=records).share(tmp_path / f"{name}.bsds.npz")
        assert len(run.records) == 200
        assert path.stat().st_size < 200_000
        assert bb.Evaluation.load(path).boundary_score().ods == run.boundary_score().ods


@pytest.fixture
def few_samples(monkeypatch):
    """Intervals of error classes from 20 samples, for which the verb has no option."""
    few = partial(bb.compare, n_boot=20)
    monkeypatch.setattr("bsdsbench.comparison.lost_scores.compare", lambda runs, **_: few(runs))


@pytest.mark.usefixtures("few_samples")
@pytest.mark.parametrize("verb", ["compare", "report", "plot", "worst", "check", "explain"])
def test_verbs_take_the_file_in_place_of_a_folder(saved, file, tmp_path, verb):
    rest = {
        "compare": [saved, "--n-boot", "20"],
        "plot": ["-o", tmp_path / "pr.png"],
        "check": ["--baseline", tmp_path / "baseline.json", "--update"],
        "explain": ["--target", f"ods={bb.Evaluation.load(saved).boundary_score().ods.f:.3f}"],
    }
    call(verb, file, *rest.get(verb, []), "--quiet")
    if verb == "check":
        assert json.loads((tmp_path / "baseline.json").read_text("utf-8"))["scores"]


@pytest.mark.usefixtures("few_samples")
def test_the_verb_says_what_it_wrote(saved, tmp_path):
    out, bib = tmp_path / "a.bsds.npz", tmp_path / "mine.bib"
    bib.write_text("@article{mine,\n year = 2026}\n", "utf-8")
    text = call("share", saved, "-o", out, "--licence", "CC0-1.0", "--citation", bib)
    data = out.read_bytes()
    assert f"6 images, {len(data)} bytes" in text
    assert hashlib.sha256(data).hexdigest() in text
    provenance = bb.Evaluation.load(out).provenance
    assert (provenance.licence, provenance.citation) == ("CC0-1.0", bib.read_text("utf-8"))
    shown = " ".join(call("report", out).split())
    assert "shared counts, licence CC0-1.0; cite: @article{mine, year = 2026}" in shown
    refused("ends in .npz", call, "share", saved, "-o", tmp_path / "a.zip")


def test_an_address_is_read_once_and_kept_with_its_hash(file, web, saved):
    url, server, asked = web
    run = bb.Evaluation.load(saved)
    assert bb.Evaluation.load(url).equals(run)
    server.write_bytes(b"another file")  # what is there now does not matter any more
    assert bb.Evaluation.load(url).equals(run)
    assert asked == [url]
    right = hashlib.sha256(file.read_bytes()).hexdigest()
    assert bb.Evaluation.load(f"{url}#{right}").equals(run)
    refused("expected " + right, bb.Evaluation.load, f"{url}#{'0' * 64}")
    assert "mine" in call("compare", url, saved, "--names", "mine,x", "--n-boot", "20", "--quiet")


def test_a_hash_behind_the_address_is_checked_at_once(file, web):
    url, _, asked = web
    refused("does not match the known hash", bb.Evaluation.load, f"{url}#{'0' * 64}")
    right = hashlib.sha256(file.read_bytes()).hexdigest()
    assert bb.Evaluation.load(f"{url}#sha256:{right}").name == bb.Evaluation.load(file).name
    assert asked == [url, url]


@pytest.fixture
def secure_server(file, tmp_path, monkeypatch):
    """A server of one file on the loopback, with TLS and a certificate that requests is given."""
    if not shutil.which("openssl"):
        pytest.skip("no openssl, which makes the certificate")
    key, certificate, folder = tmp_path / "key.pem", tmp_path / "cert.pem", tmp_path / "served"
    words = "req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=localhost"
    alone = ["-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1"]
    made = ["openssl", *words.split(), *alone, "-keyout", str(key), "-out", str(certificate)]
    subprocess.run(made, check=True, capture_output=True)
    folder.mkdir()
    shutil.copy(file, folder / "mine.bsds.npz")

    class Quiet(http.server.SimpleHTTPRequestHandler):
        def log_message(self, *words):
            pass

    served = partial(Quiet, directory=folder)
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), served)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    server.socket = context.wrap_socket(server.socket, server_side=True)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("REQUESTS_CA_BUNDLE", str(certificate))
    monkeypatch.setenv("NO_PROXY", "localhost,127.0.0.1")
    with serving(server):
        yield f"https://localhost:{server.server_port}", folder


@pytest.mark.slow
def test_a_shared_run_is_read_over_a_secure_connection(file, secure_server, monkeypatch):
    site, folder = secure_server
    url = f"{site}/mine.bsds.npz"
    assert bb.Evaluation.load(url).to_mapping() == bb.Evaluation.load(file).to_mapping()
    refused(r"nothing.npz.*\(404\)", bb.Evaluation.load, f"{site}/nothing.npz")
    altered = folder / "altered.npz"
    altered.write_bytes(file.read_bytes()[:-1] + b"?")
    refused("altered", bb.Evaluation.load, f"{site}/altered.npz")
    shutil.rmtree(folder)  # what was read once needs no connection
    assert bb.Evaluation.load(url).name == bb.Evaluation.load(file).name
    monkeypatch.delenv("REQUESTS_CA_BUNDLE")
    refused(r"other.npz.*\(SSLError\)", bb.Evaluation.load, f"{site}/other.npz")


def test_what_is_no_shared_run_is_not_kept(file, web):
    url, server, _ = web
    data = file.read_bytes()
    server.write_bytes(data[:500] + b"x" + data[501:])
    refused("https://example.org.*altered", bb.Evaluation.load, url)
    server.write_bytes(data)
    assert bb.Evaluation.load(url).name
    refused("expected the address of a file", bb.Evaluation.load, "http://example.org/a.npz")
    refused("expected the address of a file", bb.Evaluation.load, "https://example.org/")
    refused("does not exist, expected the folder", bb.Evaluation.load, "none.bsds.npz")
