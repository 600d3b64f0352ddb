"""Serve a report with all images at full size, on the loopback address only.

A request names the page or the index of an image, so no requested path is opened on disk. The URL
contains a secret token, because other users of the machine can reach the loopback address too. The
Host header must name this server, which prevents DNS rebinding by other web pages.
"""

from __future__ import annotations

import json
import re
import secrets
import sys
from collections.abc import Sequence
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from socket import socket

from bsdsbench.comparison.bootstrap import SEED
from bsdsbench.comparison.compare import compare
from bsdsbench.io import PathLike
from bsdsbench.report.html import Page
from bsdsbench.report.pictures import ImagePictures
from bsdsbench.results.evaluation import Evaluation
from bsdsbench.results.given_runs import as_runs

LOOPBACK = "127.0.0.1"
N_SAMPLES = 2000  # bootstrap samples, which take about a second
_HEADERS = {
    "Cache-Control": "no-store",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
}
_NOT_THERE = "not there"


class ViewServer(ThreadingHTTPServer):
    """A server for the report of runs, and for full-size pictures of their images.

    Predictions and ground truth are read from the folders recorded in the runs. Attributes:

    address : the URL to open
    ids : the image ids. A URL refers to an image by its index in this list
    page : the HTML page, encoded in UTF-8
    """

    daemon_threads = True

    def __init__(self, runs: Sequence[Evaluation | PathLike], port: int = 0) -> None:
        """Build the page and bind the port. Requests are not answered before `serve_forever`.

        runs : runs, or their folders
        port : the port number, or 0 for any free port
        """
        evaluations = as_runs(runs)
        page = Page(evaluations)
        page.find_files([None] * len(evaluations))  # None: predictions are where the run says
        self.ids = page.ids
        # A callable that makes the pictures of an image when the browser requests them
        self.maker = ImagePictures(evaluations, page.sources, full=True)
        compare_runs = partial(compare, evaluations, n_boot=N_SAMPLES, seed=SEED)
        # The page calls `compare_runs`; the numbers are for its intervals of error classes
        self.page = page.render(compare_runs, N_SAMPLES, SEED, served=True).encode()
        self.notes = page.notes  # what is missing from the page
        self.token = secrets.token_urlsafe(32)  # other users of this machine cannot guess the URL
        super().__init__((LOOPBACK, port), _Handler)  # each request makes a `_Handler`
        port = self.server_address[1]
        self.hosts = {f"{LOOPBACK}:{port}", f"localhost:{port}"}  # Host headers to accept
        self.address = f"http://{LOOPBACK}:{port}/{self.token}/"

    def handle_error(self, request: socket | tuple[bytes, socket], client_address: object) -> None:
        """Print the error of a request, unless the browser has closed the connection."""
        if not isinstance(sys.exception(), ConnectionError):
            super().handle_error(request, client_address)

    def pictures(self, number: int) -> bytes:
        """Return the pictures of image `ids[number]` as JSON bytes."""
        pictures = self.maker(self.ids[number]).pictures
        return json.dumps(pictures, separators=(",", ":")).encode()


class _Handler(BaseHTTPRequestHandler):
    """Handler of GET requests for /TOKEN/ and /TOKEN/pictures/NUMBER."""

    server: ViewServer
    timeout = 20
    protocol_version = "HTTP/1.1"
    server_version, sys_version = "bsdsbench", ""
    error_message_format, error_content_type = "%(code)d\n", "text/plain"

    def do_GET(self) -> None:
        """Send the page for /TOKEN/, or the pictures of an image for /TOKEN/pictures/NUMBER.

        The status is 403 unless there is exactly one Host header and it names this server. It is
        404 if the path is not one of these two, the token is wrong, or NUMBER is out of range.
        """
        hosts = self.headers.get_all("Host", [])
        if len(hosts) != 1 or hosts[0] not in self.server.hosts:
            return self.send_error(403, _NOT_THERE)
        path = re.fullmatch(r"/([\w-]{1,64})/(?:pictures/([0-9]{1,9}))?", self.path, re.ASCII)
        if path is None:
            return self.send_error(404, _NOT_THERE)
        token, number = path.groups()  # number is None for the page
        # compare_digest runs in constant time, so timing reveals nothing about the token
        if not secrets.compare_digest(token, self.server.token):
            return self.send_error(404, _NOT_THERE)
        if number is None:
            return self._send("text/html; charset=utf-8", self.server.page)
        if int(number) >= len(self.server.ids):
            return self.send_error(404, _NOT_THERE)
        return self._send("application/json", self.server.pictures(int(number)))

    def _send(self, kind: str, body: bytes) -> None:
        """Send a response with status 200 and media type `kind`."""
        self.send_response(200)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        for name, text in _HEADERS.items():
            self.send_header(name, text)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        """Log nothing, because the path of a request contains the token."""
