"""A run in one small file, to be published beside a paper and compared by others.

The file is an .npz of the arrays of counts.npz, with counts stored as differences between
neighbouring thresholds, and of `about`, a text in JSON. It ends in the hash of all bytes before. A
file that was loaded from a URL is kept in the user's cache, and the URL then stands for this file.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urldefrag, urlsplit

import attrs
import numpy as np
from numpy.typing import NDArray

from bsdsbench.arguments import given_path
from bsdsbench.errors import DataError, FileFormatError
from bsdsbench.io import (
    FaultError,
    digest,
    entries,
    entry,
    errors_naming,
    parse_json,
    read_bytes,
    write_atomic,
)
from bsdsbench.loaders.formats.pictures import unpack_npz
from bsdsbench.loaders.sets.public_sets import cache_folder
from bsdsbench.metrics import registry
from bsdsbench.results.storage import (
    Provenance,
    RunArguments,
    arrays_of_records,
    npz_bytes,
    records_of_arrays,
)
from bsdsbench.text import show

if TYPE_CHECKING:
    from bsdsbench.results.evaluation import Evaluation

_SCHEMA = "bsdsbench.shared/1"
ADDRESSES = ("https://", "http://")
_MAX_BYTES = 1 << 27  # of the arrays as they are stored; in memory eight times that
_MARK = b"bsdsbench:"  # before the hash, in the comment at the end of the archive
_LOCAL = ("pred", "gt", "photos", "valid", "split")  # folders of the author


def _difference_axes(n_axes: int) -> range:
    """Return the axes along which counts, (N, T) or (N, ..., T, 4), are stored as differences.

    These are all but that of the N images and that of the four columns.
    """
    return range(1, max(2, n_axes - 1))


def _pack_counts(counts: NDArray[np.int64]) -> NDArray[np.uint8]:
    """Encode counts, (N, T) or (N, ..., T, 4), as byte planes (B, N, ...), which compress well.

    The differences of neighbours are small. They are made non-negative (0, -1, 1, -2, ... become 0,
    1, 2, 3, ...), and plane k gets byte k of every value, the least significant byte first.
    """
    differences = counts
    for axis in _difference_axes(counts.ndim):
        differences = np.diff(differences, axis=axis, prepend=0)
    zigzag = np.where(differences < 0, -2 * differences - 1, 2 * differences)
    n_bytes = -(-int(zigzag.max(initial=1)).bit_length() // 8)  # rounded up, at least one
    # Plane k: shift byte k of each value to the lowest place, and cut off the bytes above it
    return np.stack([zigzag >> 8 * k & 255 for k in range(n_bytes)]).astype(np.uint8)


def unpack_counts(planes: NDArray[np.uint8]) -> NDArray[np.int64]:
    """Decode the byte planes (B, N, ...) of `_pack_counts`; raise FaultError if they are none."""
    if planes.dtype != np.uint8 or planes.ndim < 3 or not 0 < len(planes) <= 8:
        raise FaultError(f"counts of {planes.dtype} {planes.shape}, expected steps in bytes")
    zigzag = sum(plane.astype(np.int64) << 8 * k for k, plane in enumerate(planes))
    # Odd values stand for negative differences, and even values for the others
    counts: NDArray[np.int64] = np.where(zigzag & 1, -(zigzag + 1) // 2, zigzag // 2)
    for axis in _difference_axes(counts.ndim):
        counts = counts.cumsum(axis=axis)
    return counts


def share_run(run: Evaluation, path: str | Path, licence: str, citation: str) -> Path:
    """Save a run as a file of the form that the module describes, and return its path.

    licence, citation : the terms of use and the text to cite, or "" for none

    Raises DataError if the run has no counts per image, or if the path does not end in .npz.
    """
    run.require_records()
    target = given_path(path, "path")
    if target.suffix != ".npz":
        raise DataError(f"{show(target)}: expected a name that ends in .npz")
    arrays = arrays_of_records(run.records, {metric: run.stack(metric) for metric in run.metrics})
    packed = [name for name, a in arrays.items() if a.dtype == np.int64 and a.ndim > 1 and a.size]
    description = _public_description(run, packed, licence, citation)
    text = json.dumps(description, ensure_ascii=False, allow_nan=False).encode()
    stored = {"about": np.frombuffer(text, np.uint8), **arrays}
    stored |= {name: _pack_counts(arrays[name]) for name in packed}
    placeholder = _MARK + b"0" * 32  # as long as the marker and the hash, which replace it
    data = npz_bytes(stored, level=9, comment=placeholder)[: -len(placeholder)]
    write_atomic(target, data + _MARK + digest(data).encode())
    return target


def _public_description(
    run: Evaluation, packed: Sequence[str], licence: str, citation: str
) -> dict[str, Any]:
    """Return the published description of a run, without scores and the author's folders.

    Its entry "steps" lists the `packed` arrays, which `unpack_counts` must decode.
    """
    content: dict[str, Any] = run.to_mapping()
    origin = content["provenance"]
    provenance = {key: value for key, value in origin.items() if key not in _LOCAL}
    if licence:
        provenance["licence"] = licence
    if citation:
        provenance["citation"] = citation
    failed = {}
    for image_id, reason in content["failed"].items():
        for folder in filter(None, map(origin.get, _LOCAL)):
            reason = reason.replace(f"{folder}/", "")
        failed[image_id] = reason
    copied = ("bsdsbench", "name", "signature", "set", "read_as", "protocol", "n_images")
    return {
        "schema": _SCHEMA,
        **{key: content[key] for key in copied},
        "failed": failed,
        "provenance": provenance,
        "steps": list(packed),
    }


def read_shared_run(path: Path) -> RunArguments:
    """Read a file of `share_run`, or raise FileFormatError if it is none, or is damaged."""
    data = read_bytes(path)
    with errors_naming(path, "a run shared by bsdsbench"):
        body, mark, stored_hash = data.rpartition(_MARK)
        if not mark:
            raise FaultError("no shared run, expected a file of `bsdsbench share`, or a folder")
        if stored_hash != digest(body).encode():
            raise FaultError("is altered or cut short: its hash is another than the one in it")
        arrays = unpack_npz(data, text=True, limit=_MAX_BYTES)
        content = parse_json(arrays.pop("about", np.zeros(0, np.uint8)).tobytes())
        schema = content.get("schema") if isinstance(content, dict) else None
        if schema != _SCHEMA:
            raise FaultError(f"schema {schema!r}, expected {_SCHEMA!r}")
        for name in content.get("steps", ()):
            if name not in arrays:
                raise FaultError(f"no counts {show(name)}, expected them")
            arrays[name] = unpack_counts(arrays[name])
        records = records_of_arrays(arrays)
        if entry(content, "n_images", int) != len(records):
            raise FaultError(f"n_images is not the {len(records)} of the counts")
        provenance = Provenance.from_mapping(entry(content, "provenance", dict))
        return {
            "protocol": registry.read_protocol(entry(content, "protocol", dict)),
            "name": entry(content, "name", str),
            "records": records,
            "provenance": attrs.evolve(provenance, source=provenance.source or path.name),
            "failed": entries(content, "failed", str),
        }


def is_address(run: object) -> bool:
    """Return True if `run` is a URL, False if it is a path or anything else."""
    return isinstance(run, str) and run.startswith(ADDRESSES)


def download_shared_run(address: str) -> Path:
    """Return the path of a shared run in the cache, to which it is downloaded if it is not there.

    Its sha256 is stored beside it, and later calls with the same URL must get the same file.

    address : an https URL, which may end in #SHA256, the expected hash

    Raises DataError if the file has another hash, cannot be downloaded, or is not a shared run.
    """
    import pooch

    url, fragment = urldefrag(address)
    name = Path(urlsplit(url).path).name
    if not url.startswith("https://") or not name:
        raise DataError(f"{show(address)}: expected the address of a file, https://...")
    folder = cache_folder().parent / "shared" / hashlib.sha256(url.encode()).hexdigest()[:16]
    hash_file = folder / "sha256"
    stored_hash = None
    if hash_file.is_file():
        stored_hash = read_bytes(hash_file).decode("ascii", "replace").strip()
    given_hash = fragment.lower().removeprefix("sha256:").removeprefix("sha256=")
    if given_hash and stored_hash not in (None, given_hash):
        raise DataError(
            f"{show(url)}: sha256 {given_hash}, expected {stored_hash}, which is that of the file "
            f"that was read there before: delete {show(folder)} if the author has replaced it"
        )
    pooch.get_logger().setLevel("WARNING")
    try:
        path = Path(pooch.retrieve(url, stored_hash or given_hash or None, name, folder))
    except ValueError as error:  # another hash
        raise DataError(f"{show(url)}: {' '.join(str(error).split())}") from None
    except OSError as error:  # requests' errors are of this kind
        status = getattr(getattr(error, "response", None), "status_code", type(error).__name__)
        raise DataError(f"{show(url)}: cannot be read ({status}), expected a shared run") from None
    try:
        read_shared_run(path)
    except FileFormatError as error:
        path.unlink()
        raise DataError(f"{show(url)}: {str(error).partition(': ')[2]}") from None
    if stored_hash is None:
        write_atomic(hash_file, hashlib.sha256(path.read_bytes()).hexdigest())
    return path
