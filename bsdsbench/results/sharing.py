"""Save a run as one small file, to be published with a paper and compared by others.

The file is an .npz with the arrays of counts.npz and `about`, a JSON text. Counts are stored as
differences between adjacent thresholds. The file ends with the hash of all preceding bytes. A file
loaded from a URL is kept in the user's cache, and later calls with this URL use the cached file.
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urldefrag, urlsplit

import attrs
import numpy as np
from numpy.typing import NDArray

from bsdsbench.arguments import check_path
from bsdsbench.errors import DataError, FileFormatError
from bsdsbench.io import FaultError, digest, file_errors, parse_json, read_bytes, write_atomic
from bsdsbench.loaders.formats.pictures import unpack_npz
from bsdsbench.results.storage import (
    RunArguments,
    arrays_of_run,
    check_schema,
    npz_bytes,
    records_of_arrays,
    run_arguments,
)
from bsdsbench.text import show

if TYPE_CHECKING:
    from bsdsbench.results.evaluation import Evaluation

_SCHEMA = "bsdsbench.shared/1"
URL_PREFIXES = ("https://", "http://")
_MAX_BYTES = 1 << 27  # limit for the stored arrays, which take up to eight times that in memory
_MARK = b"bsdsbench:"  # precedes the hash in the comment at the end of the archive
_PRIVATE_PATHS = ("pred", "gt", "photos", "valid", "split")  # these are not published


def _difference_axes(n_axes: int) -> range:
    """Return the axes along which counts are stored as differences.

    They are the thresholds, axis 1 of (N, T), or the tolerances and thresholds, all axes except the
    first and the last of (N, ..., T, 4).
    """
    return range(1, max(2, n_axes - 1))


def _pack_counts(counts: NDArray[np.int64]) -> NDArray[np.uint8]:
    """Encode counts of N images as B byte planes (B, N, ...), which compress well.

    Counts are (N, T), one for each of T thresholds, or (N, ..., T, 4), where the last axis has the
    four counts of `MatchCounts.matches`. Differences of values that are adjacent on the axis of
    thresholds, and on those of tolerances before it, are zigzag-coded to make them non-negative:
    0, -1, 1, -2, ... become 0, 1, 2, 3, ... Plane k holds byte k of every value, least significant
    byte first.
    """
    differences = counts
    for axis in _difference_axes(counts.ndim):
        differences = np.diff(differences, axis=axis, prepend=0)
    zigzag = np.where(differences < 0, -2 * differences - 1, 2 * differences)
    n_bits = int(zigzag.max(initial=1)).bit_length()
    n_bytes = (n_bits + 7) // 8  # rounded up
    planes = [(zigzag >> 8 * k) & 255 for k in range(n_bytes)]  # byte k of every value
    return np.stack(planes).astype(np.uint8)


def unpack_counts(planes: NDArray[np.uint8]) -> NDArray[np.int64]:
    """Decode the byte planes of `_pack_counts`, (B, N, ...), to the counts (N, ...) of N images.

    Plane k holds byte k of every zigzag-coded difference. The differences are summed along the axes
    of the thresholds and of the tolerances, if any. Raises FaultError for another format.
    """
    if planes.dtype != np.uint8 or planes.ndim < 3 or not 0 < len(planes) <= 8:
        raise FaultError(f"counts of {planes.dtype} {planes.shape}, expected steps in bytes")
    zigzag = sum(plane.astype(np.int64) << 8 * k for k, plane in enumerate(planes))
    # The codes 0, 1, 2, 3, ... stand for the differences 0, -1, 1, -2, ...
    is_negative = zigzag & 1
    differences = np.where(is_negative, -(zigzag + 1) // 2, zigzag // 2)
    counts: NDArray[np.int64] = differences
    for axis in _difference_axes(counts.ndim):
        counts = counts.cumsum(axis=axis)
    return counts


def share_run(run: Evaluation, path: str | Path, licence: str, citation: str) -> Path:
    """Save a run as one .npz file to be published, and return its path.

    The file has the counts of all images, a JSON text without scores and private paths (the entry
    "about"), and at its end the hash of what precedes.

    licence, citation : the terms of use and the text to cite, or "" for none
    """
    run.require_records()
    target = check_path(path, "path")
    if target.suffix != ".npz":
        raise DataError(f"{show(target)}: expected a name that ends in .npz")
    arrays = arrays_of_run(run)
    # Integer counts compress better as differences between adjacent thresholds
    packed = [name for name, a in arrays.items() if a.dtype == np.int64 and a.ndim > 1 and a.size]
    # The description of the run, without scores and the paths of the user's folders
    content: dict[str, Any] = run.to_mapping()
    origin = content["provenance"]
    provenance = {key: value for key, value in origin.items() if key not in _PRIVATE_PATHS}
    if licence:
        provenance["licence"] = licence
    if citation:
        provenance["citation"] = citation
    private_folders = [origin[key] for key in _PRIVATE_PATHS if origin.get(key)]
    failed = {}  # id of an image that was left out -> reason
    for image_id, reason in content["failed"].items():
        for folder in private_folders:  # a reason may name a file
            reason = reason.replace(f"{folder}/", "")
        failed[image_id] = reason
    copied = ("bsdsbench", "name", "signature", "set", "read_as", "protocol", "n_images")
    description = {
        "schema": _SCHEMA,
        **{key: content[key] for key in copied},
        "failed": failed,
        "provenance": provenance,
        "steps": packed,  # the arrays that `read_shared_run` must decode
    }
    text = json.dumps(description, ensure_ascii=False, allow_nan=False).encode()
    stored = {"about": np.frombuffer(text, np.uint8), **arrays}
    stored |= {name: _pack_counts(arrays[name]) for name in packed}
    # The archive ends with a comment: a mark, and the hash of all bytes before it. They include the
    # length of the comment, hence the placeholder of equal length
    placeholder = _MARK + b"0" * 32
    data = npz_bytes(stored, level=9, comment=placeholder)[: -len(placeholder)]
    write_atomic(target, data + _MARK + digest(data).encode())
    return target


def read_shared_run(path: Path) -> RunArguments:
    """Read a file written by `share_run`; raise FileFormatError if it is not one or is damaged."""
    data = read_bytes(path)
    with file_errors(path, "a run shared by bsdsbench"):
        body, mark, stored_hash = data.rpartition(_MARK)  # the mark "bsdsbench:" precedes the hash
        if not mark:
            raise FaultError("no shared run, expected a file of `bsdsbench share`, or a folder")
        if stored_hash != digest(body).encode():
            raise FaultError("is altered or cut short: its content does not match the hash in it")
        arrays = unpack_npz(data, limit=_MAX_BYTES)
        content = parse_json(arrays.pop("about", np.zeros(0, np.uint8)).tobytes())
        check_schema(content, _SCHEMA)
        for name in content.get("steps", ()):  # arrays stored as differences (`_pack_counts`)
            if name not in arrays:
                raise FaultError(f"no counts {show(name)}, expected them")
            arrays[name] = unpack_counts(arrays[name])
        # The arrays are now those of `arrays_of_run`, from which the records are rebuilt
        arguments = run_arguments(content, records_of_arrays(arrays))
        provenance = arguments["provenance"]
        arguments["provenance"] = attrs.evolve(provenance, source=provenance.source or path.name)
        return arguments


def is_address(run: object) -> bool:
    """Return True if `run` is a string that starts with https:// or http://."""
    return isinstance(run, str) and run.startswith(URL_PREFIXES)


def download_shared_run(address: str) -> Path:
    """Download a shared run to the user's cache unless it is there, and return its path.

    The SHA-256 of the first file from a URL is stored beside it. If the file is downloaded again,
    it must have this hash.

    address : an https URL, optionally followed by #SHA256, the expected hash

    Raises DataError if the file has another hash, cannot be downloaded, or is not a shared run.
    """
    import pooch

    from bsdsbench.loaders.sets.public_sets import cache_folder

    url, fragment = urldefrag(address)
    name = Path(urlsplit(url).path).name
    if not url.startswith("https://") or not name:
        raise DataError(f"{show(address)}: expected the address of a file, https://...")
    # Each URL has a folder of its own, with the file and its hash
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
        # Arguments: address, expected SHA-256 (None: any), name of the file, and its folder
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
