"""The files of a run's folder belong together: a manifest names each with its hash.

It is replaced by a mark before the first file is written and written whole after the last one, so
whoever dies in between leaves a folder that no reader takes for a result. A reader asks for the
files through `verified` and gets what the manifest says, or one line.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
from collections.abc import Iterable
from pathlib import Path

from bsdsbench.files import json_fields as fields
from bsdsbench.files.bounded import FaultError, read_bytes, read_json, reading, show
from bsdsbench.files.errors import FileFormatError
from bsdsbench.files.writing import write_atomic

MANIFEST = "manifest.json"
SCHEMA = "bsdsbench.manifest/1"
UNFINISHED = "being written"
READ_BACK = ("result.json", "counts.npz")  # the rest is for other programs
MAX_RESULT_BYTES = 1 << 33
# drawn from the results after them, and wrong beside other ones
DRAWN = ("pr.png", "pr.svg")
AGAIN = "run evaluate again with -o on this folder (stored records are used), or make it anew"


def write_results(folder: Path, files: Iterable[tuple[str, bytes | str]]) -> None:
    """Write a run's files, each whole or not at all, and last the manifest. Raises OSError.

    Files of an earlier result that this one does not have are deleted.
    """
    stale = {*_names(folder), *DRAWN}
    write_atomic(folder / MANIFEST, _text({}, UNFINISHED))
    hashes: dict[str, str] = {}
    for name, content in files:
        data = content.encode("utf-8") if isinstance(content, str) else content
        write_atomic(folder / name, data, durable=name in READ_BACK)
        hashes[name] = digest(data)
    for name in stale - set(hashes):
        (folder / name).unlink(missing_ok=True)
    write_atomic(folder / MANIFEST, _text(hashes, "finished"))


def verified(folder: Path, *names: str) -> list[bytes]:
    """The content of files of a finished run, each as its manifest says.

    Raises FileFormatError, one line that says what to do, for a folder without a manifest, a run
    that was not finished, and files that are missing or altered.
    """
    if not folder.is_dir():
        raise FileFormatError(f"{show(folder)}: not a folder, expected that of a finished run")
    if not (folder / MANIFEST).exists():
        raise FileFormatError(
            f"{show(folder)}: no {MANIFEST}, expected the folder of a finished run: {AGAIN}"
        )
    hashes = _hashes(folder)
    found = []
    for name in names:
        data = read_bytes(folder / name, MAX_RESULT_BYTES)
        if hashes.get(name) != digest(data):
            raise FileFormatError(
                f"{show(folder / name)}: is not what {MANIFEST} names (altered, or of another "
                f"run), expected the file as it was written: {AGAIN}"
            )
        found.append(data)
    return found


def is_run(folder: Path) -> bool:
    """True for a folder that a run of ours wrote, or began to write, its results into."""
    return (folder / MANIFEST).exists() or (folder / "result.json").exists()


def digest(data: bytes) -> str:
    """The hash by which files are compared."""
    return hashlib.blake2b(data, digest_size=16).hexdigest()


def _hashes(folder: Path) -> dict[str, str]:
    source = folder / MANIFEST
    found = read_json(source, "the manifest of a run")
    with reading(source, "the manifest of a run"):
        if found.get("schema") != SCHEMA:
            raise FaultError(f"expected schema {SCHEMA!r}")
        if fields.text(found, "state") != "finished":
            raise FaultError(f"the run was not finished, expected a whole result: {AGAIN}")
        return fields.texts(found, "files")


def _names(folder: Path) -> list[str]:
    """What an earlier result consists of; never a path out of the folder."""
    with contextlib.suppress(FileFormatError):
        found = _hashes(folder) if (folder / MANIFEST).exists() else {}
        root = folder.resolve()
        return [n for n in found if (root / n).resolve().is_relative_to(root)]
    return []


def _text(hashes: dict[str, str], state: str) -> str:
    content = {"schema": SCHEMA, "state": state, "files": hashes}
    return json.dumps(content, indent=1, ensure_ascii=False) + "\n"
