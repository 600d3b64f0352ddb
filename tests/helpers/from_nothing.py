"""The README's way from nothing to scores, walked with a local server in place of the host.

python from_nothing.py README.md FOLDER, by the Python of an environment that has bsdsbench: its
commands but the installation are run in FOLDER, with a cache there. The server has four images of
the sample under the name of BSDS500's test split; what it is known by is given to each command.
"""

import io
import os
import re
import shlex
import shutil
import subprocess
import sys
import tarfile
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

IDS = ("fruit1", "herd1", "leaves1", "town1")
PROLOGUE = """
import attrs
from bsdsbench.loaders.sets import identity, public_sets
from bsdsbench.protocol.protocol import Protocol
from bsdsbench.protocol.tasks import tasks

images = identity.folder_fingerprints("TRUTH", Protocol.preset("bsds500"))
known = {"bsds500-test": images}
identity.shipped_sets = lambda: known
sets, task = public_sets.public_sets(), "bsds500-test/boundary"
sets["bsds500"] = attrs.evolve(sets["bsds500"], url="URL")
mark = identity.set_fingerprint(images)
tasks()[task] = attrs.evolve(tasks()[task], fingerprint=mark, images=len(images))
from bsdsbench.cli import main
main()
"""


def commands(readme):
    """The three commands, as words."""
    text = Path(readme).read_text("utf-8")
    (block,) = re.findall(r"<!-- from-nothing -->\n```sh\n(.*?)```", text, re.DOTALL)
    return [shlex.split(line, comments=True) for line in block.splitlines()]


def walk(readme, folder):
    """Run them; what each says on standard output."""
    import bsdsbench as bb
    from bsdsbench.loaders.sample import sample_root

    folder = Path(folder).resolve()

    for name in IDS:
        for path in sample_root().glob(f"*/test/{name}.*"):
            copy = folder / "sample" / path.relative_to(sample_root())
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(path, copy)
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz") as archive:
        for part in ("groundTruth", "images"):
            archive.add(folder / "sample" / part, f"BSDS500-HEAD/BSDS500/data/{part}")

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            self.send_response(200)
            self.end_headers()
            self.wfile.write(packed.getvalue())

        def log_message(self, *_):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, args=(0.005,), daemon=True).start()
    prologue = PROLOGUE.replace("URL", f"http://127.0.0.1:{server.server_port}/bsds500.tar.gz")
    prologue = prologue.replace("TRUTH", str(folder / "sample" / "groundTruth" / "test"))
    env = {**os.environ, "XDG_CACHE_HOME": str(folder / "cache"), "COLUMNS": "120"}

    def called(*words):
        run = [sys.executable, "-c", prologue, *map(str, words)]
        return subprocess.run(run, cwd=folder, env=env, check=True, text=True, stdout=-1).stdout

    bb.run("sobel", folder / "sample" / "images" / "test", out=folder)
    said = [called(*words) for program, *words in commands(readme) if program == "bsdsbench"]
    server.shutdown()
    server.server_close()
    return said


if __name__ == "__main__":
    found = walk(*sys.argv[1:])
    assert "bsds500-test/boundary" in found[-1], found
