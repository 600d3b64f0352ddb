"""A run in one small file, to be published beside a paper and compared by others.

The file is an .npz: the arrays of counts.npz, whole numbers as steps from one threshold to the
next, and `about`, a text in JSON. Its last bytes are the hash of all before, so that a file with a
changed byte is refused. It holds numbers and text alone, and nothing in it is executed.

A run is loaded from the file or from its address, https://... The first time an address is read
its sha256 may follow after a #. The file and its hash are kept in the user's cache, and from then
on the address stands for this file.
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any
from urllib.parse import urldefrag, urlsplit

import attrs
import numpy as np
from numpy.typing import NDArray

from bsdsbench.errors import DataError, FileFormatError
from bsdsbench.io import (
    FaultError,
    digest,
    entries,
    entry,
    parse_json,
    read_bytes,
    reading,
    write_atomic,
)
from bsdsbench.loaders.formats.pictures import unpack_npz
from bsdsbench.loaders.sets.public_sets import cache_folder
from bsdsbench.metrics import registry
from bsdsbench.results.references import RunArguments
from bsdsbench.results.storage import Provenance, npz_bytes, records_of
from bsdsbench.text import show

_SCHEMA = "bsdsbench.shared/1"
ADDRESSES = ("https://", "http://")
_MAX_BYTES = 1 << 27  # of the arrays as they are stored; in memory eight times that
_MARK = b"bsdsbench:"  # before the hash, in the comment at the end of the archive
_LOCAL = ("pred", "gt", "photos", "valid", "split")  # folders of the author


def _packed_steps(values: NDArray[np.int64]) -> NDArray[np.uint8]:
    """Return whole numbers as the bytes of their steps, (bytes, N, T, ...).

    Steps are between the rows of an image's table, (N, T) or (N, ..., T, 4), and between tables.
    """
    steps = values
    for axis in range(1, max(2, values.ndim - 1)):
        steps = np.diff(steps, axis=axis, prepend=0)
    folded = np.where(steps < 0, -2 * steps - 1, 2 * steps)
    size = -(-int(folded.max(initial=1)).bit_length() // 8)
    return np.stack([folded >> 8 * k & 255 for k in range(size)]).astype(np.uint8)


def _unpacked_steps(planes: NDArray[np.uint8]) -> NDArray[np.int64]:
    """Return the whole numbers that `_packed_steps` made bytes of."""
    if planes.dtype != np.uint8 or planes.ndim < 3 or not 0 < len(planes) <= 8:
        raise FaultError(f"counts of {planes.dtype} {planes.shape}, expected steps in bytes")
    folded = sum(plane.astype(np.int64) << 8 * k for k, plane in enumerate(planes))
    steps: NDArray[np.int64] = np.where(folded & 1, -(folded + 1) // 2, folded // 2)
    for axis in range(1, max(2, steps.ndim - 1)):
        steps = steps.cumsum(axis=axis)
    return steps


def _without_folders(reason: str, content: dict[str, Any]) -> str:
    """Return a reason that names files without the author's folders."""
    for folder in filter(None, map(content["provenance"].get, _LOCAL)):
        reason = reason.replace(f"{folder}/", "")
    return reason


def shared_bytes(
    content: dict[str, Any], arrays: dict[str, NDArray[Any]], licence: str, citation: str
) -> bytes:
    """Return a run's file: `content` as in result.json, `arrays` as in counts.npz."""
    provenance = {k: v for k, v in content["provenance"].items() if k not in _LOCAL}
    provenance |= {k: v for k, v in (("licence", licence), ("citation", citation)) if v}
    kept = ("bsdsbench", "name", "signature", "set", "read_as", "protocol", "n_images", "failed")
    steps = [name for name, a in arrays.items() if a.dtype == np.int64 and a.ndim > 1 and a.size]
    text = {
        "schema": _SCHEMA,
        **{key: content[key] for key in kept},
        "failed": {name: _without_folders(why, content) for name, why in content["failed"].items()},
        "provenance": provenance,
        "steps": steps,
    }
    coded = json.dumps(text, ensure_ascii=False, allow_nan=False).encode()
    stored = {"about": np.frombuffer(coded, np.uint8), **arrays}
    stored |= {name: _packed_steps(arrays[name]) for name in steps}
    comment = _MARK + b"0" * 32
    data = npz_bytes(stored, level=9, comment=comment)[: -len(comment)]
    return data + _MARK + digest(data).encode()


def shared_run(path: Path) -> RunArguments:
    """Return the run in a file as the arguments of an Evaluation. Raises FileFormatError."""
    data = read_bytes(path)
    with reading(path, "a run shared by bsdsbench"):
        body, mark, stated = data.rpartition(_MARK)
        if not mark:
            raise FaultError("no shared run, expected a file of `bsdsbench share`, or a folder")
        if stated != digest(body).encode():
            raise FaultError("is altered or cut short: its hash is another than the one in it")
        arrays = unpack_npz(data, text=True, limit=_MAX_BYTES)
        content = parse_json(arrays.pop("about", np.zeros(0, np.uint8)).tobytes())
        if not isinstance(content, dict) or content.get("schema") != _SCHEMA:
            raise FaultError(f"expected schema {_SCHEMA!r}")
        for name in content.get("steps", ()):
            if name not in arrays:
                raise FaultError(f"no counts {show(name)}, expected them")
            arrays[name] = _unpacked_steps(arrays[name])
        records = records_of(arrays)
        if entry(content, "n_images", int) != len(records):
            raise FaultError(f"n_images is not the {len(records)} of the counts")
        provenance = Provenance.from_mapping(entry(content, "provenance", dict))
        return {
            "protocol": registry.stored(entry(content, "protocol", dict)),
            "name": entry(content, "name", str),
            "records": records,
            "provenance": attrs.evolve(provenance, source=provenance.source or path.name),
            "failed": entries(content, "failed", str),
        }


def is_address(run: object) -> bool:
    """Return whether a run is named by an address, not by a folder or a file."""
    return isinstance(run, str) and run.startswith(ADDRESSES)


def fetched(address: str) -> Path:
    """Return the file of an address in the user's cache, downloaded the first time.

    Raises DataError if it cannot be had, or is another file than that whose hash is known.
    """
    import pooch

    url, stated = urldefrag(address)
    name = Path(urlsplit(url).path).name
    if not url.startswith("https://") or not name:
        raise DataError(f"{show(address)}: expected the address of a file, https://...")
    folder = cache_folder().parent / "shared" / hashlib.sha256(url.encode()).hexdigest()[:16]
    kept = folder / "sha256"
    known = read_bytes(kept).decode("ascii", "replace").strip() if kept.is_file() else None
    stated = stated.lower().removeprefix("sha256:").removeprefix("sha256=")
    if stated and known not in (None, stated):
        raise DataError(
            f"{show(url)}: sha256 {stated}, expected {known}, which is that of the file that was "
            f"read there before: delete {show(folder)} if the author has replaced it"
        )
    pooch.get_logger().setLevel("WARNING")
    try:
        path = Path(pooch.retrieve(url, known or stated or None, name, folder))
    except ValueError as error:  # another hash
        raise DataError(f"{show(url)}: {' '.join(str(error).split())}") from None
    except OSError as error:  # requests' errors are of this kind
        status = getattr(getattr(error, "response", None), "status_code", type(error).__name__)
        raise DataError(f"{show(url)}: cannot be read ({status}), expected a shared run") from None
    try:
        shared_run(path)
    except FileFormatError as error:
        path.unlink()
        raise DataError(f"{show(url)}: {str(error).partition(': ')[2]}") from None
    if known is None:
        write_atomic(kept, hashlib.sha256(path.read_bytes()).hexdigest())
    return path
