"""The server of the viewer: what it gives, and that it gives nothing else."""

import http.client
import json
import re
import socket

import pytest

import bsdsbench as bb
from bsdsbench.report import server as viewer
from tests.helpers.crops import crops
from tests.helpers.processes import start_python
from tests.helpers.serving import serving

pytest.importorskip("jinja2", reason="jinja2 is not installed")


@pytest.fixture(scope="module")
def out(tmp_path_factory):
    out = tmp_path_factory.mktemp("view")
    for name in ("canny", "sobel"):
        (out / f"maps of {name}").mkdir()
        where = crops(out / f"maps of {name}", name)
        bb.evaluate(*where, bb.Protocol(thresholds=9), name=name, out=out / name, workers=1)
    (out / "secret.txt").write_text("secret")
    return out


@pytest.fixture(scope="module")
def server(out):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(viewer, "N_SAMPLES", 100)
        with serving(viewer.ViewServer([out / "canny", out / "sobel"])) as server:
            yield server


def ask(server, path, method="GET", **headers):
    """Status, headers and body of a request whose path is sent as it is."""
    connection = http.client.HTTPConnection(*server.server_address[:2], timeout=120)
    connection.putrequest(method, path, skip_host="Host" in headers)
    for name, text in headers.items():
        connection.putheader(name, text)
    connection.endheaders()
    answer = connection.getresponse()
    body = answer.read()
    connection.close()
    return answer.status, dict(answer.getheaders()), body


def test_the_page_and_the_pictures_of_every_image(server):
    path = "/" + server.token + "/"
    status, headers, body = ask(server, path)
    assert status == 200
    assert b"connect-src 'self'" in body
    assert headers["Cache-Control"] == "no-store"
    assert "bsdsbench" in headers["Server"]
    assert "Python" not in headers["Server"]
    for number, _ in enumerate(server.ids):
        status, headers, body = ask(server, f"{path}pictures/{number}")
        drawn = json.loads(body)
        assert status == 200
        assert headers["Content-Type"] == "application/json"
        assert set(drawn["runs"]) == {"0", "1"}
        assert drawn["runs"]["0"]["size"] == drawn["size"]
    assert server.address == f"http://127.0.0.1:{server.server_address[1]}{path}"
    assert len(server.token) >= 32


HOSTILE = [
    "/",
    "/pictures/0",
    "/{token}",
    "/{token}/../../../etc/passwd",
    "/{token}/pictures/../../secret.txt",
    "/{token}/pictures/..%2f..%2fsecret.txt",
    "/{token}/%2e%2e/%2e%2e/etc/passwd",
    "/{token}//etc/passwd",
    "/{token}/pictures//etc/passwd",
    "/{token}/pictures/0/../../secret.txt",
    "/{token}/pictures/-1",
    "/{token}/pictures/99999999",
    "/{token}/pictures/99999999999999999999999999",
    "/{token}/pictures/0x0",
    "/{token}/pictures/\u0661",
    "/{token}/pictures/0%00.png",
    "/{token}/pictures/0?file=/etc/passwd",
    "/{token}/result.json",
    "/{token}/counts.npz",
    "/{token}/secret.txt",
    "/{token}/..\\..\\secret.txt",
    "/{half}/",
    "/{token}x/",
    "file:///etc/passwd",
    "http://127.0.0.1/{token}/",
]


@pytest.mark.parametrize("path", HOSTILE)
def test_hostile_paths_are_refused(server, path):
    path = path.format(token=server.token, half=server.token[:20])
    with socket.create_connection(server.server_address[:2], timeout=120) as link:
        host = f"127.0.0.1:{server.server_address[1]}"
        request = f"GET {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n"
        link.sendall(request.encode())
        answer = b"".join(iter(lambda: link.recv(65536), b""))
    assert re.match(rb"HTTP/1.[01] 40[0-9] ", answer)
    assert b"secret" not in answer
    assert b"root:" not in answer
    assert len(answer) < 600


@pytest.mark.parametrize("host", ["evil.example", "127.0.0.1", "localhost:1", "0.0.0.0"])
def test_pages_of_others_do_not_reach_it(server, host):
    assert ask(server, f"/{server.token}/", Host=host)[0] == 403


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "OPTIONS", "PATCH", "TRACE"])
def test_it_takes_nothing(server, method):
    assert ask(server, f"/{server.token}/", method)[0] == 501


def test_it_listens_on_the_loopback_and_writes_nothing(server, out):
    assert server.server_address[0] == "127.0.0.1"
    before = {path: path.stat().st_mtime_ns for path in out.rglob("*")}
    ask(server, f"/{server.token}/pictures/1")
    assert {path: path.stat().st_mtime_ns for path in out.rglob("*")} == before


def test_files_that_are_gone_are_said(server, monkeypatch):
    def gone(sources, run, record, metric):
        raise bb.DataError(f"{record.image_id}: gone")

    monkeypatch.setattr("bsdsbench.runs.sources.Sources.load_of_run", gone)
    drawn = json.loads(ask(server, f"/{server.token}/pictures/0")[2])
    words = (f"no pictures of {name}: {server.ids[0]}: gone" for name in ("canny", "sobel"))
    assert drawn["fault"] == "; ".join(words)


@pytest.mark.parametrize(("error", "is_said"), [(ConnectionResetError, False), (OSError, True)])
def test_a_closed_connection_prints_nothing(server, capsys, error, is_said):
    try:
        raise error
    except OSError:
        server.handle_error(None, ("127.0.0.1", 1))
    assert ("Traceback" in capsys.readouterr().err) == is_said


@pytest.mark.slow
@pytest.mark.process
def test_the_verb_prints_its_address_and_ends_by_control_c(out):
    """A busy machine may take a minute for what an idle one does in a second."""
    with start_python("-m", "bsdsbench", "view", out / "canny") as verb:
        address = verb.stdout.readline().strip()
        assert re.fullmatch(r"http://127\.0\.0\.1:[0-9]+/[\w-]{43}/", address)
        host, _, path = address.removeprefix("http://").partition("/")
        connection = http.client.HTTPConnection(host, timeout=120)
        connection.request("GET", f"/{path}")
        assert connection.getresponse().status == 200
        connection.close()
        verb.send_signal(2)
        _, said = verb.communicate(timeout=120)
        assert verb.returncode == 0
        assert "Traceback" not in said
