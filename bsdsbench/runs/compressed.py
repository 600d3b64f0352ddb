"""Records as the bytes of counts.npz, and many records in little memory.

Neighbouring counts are alike, so a block of records takes a tenth of their size when compressed.
A run keeps what it has in such blocks, and everything after it reads them one at a time.
"""

from __future__ import annotations

import heapq
import zipfile
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from io import BytesIO
from itertools import accumulate, chain
from operator import attrgetter
from pathlib import Path
from typing import Any, overload

import numpy as np
from numpy.typing import NDArray

from bsdsbench.files.bounded import MAX_DECODED_BYTES, read_bytes, reading
from bsdsbench.loaders.arrays import unpack_npz
from bsdsbench.metrics import registry
from bsdsbench.runs.soundness import check_columns
from bsdsbench.scores.counts import ImageRecord

BLOCK = 256
_by_id = attrgetter("image_id")
Columns = dict[str, NDArray[Any]]


class Records(Sequence[ImageRecord]):
    """Records in the order of their image ids, unpacked when they are asked for.

    Made by `gathered`. Like a tuple to read; going through it in order is fast, picking is not.
    """

    __slots__ = ("_blocks", "_ends")
    in_id_order = True

    def __init__(self, blocks: Sequence[_Block]) -> None:
        self._blocks = tuple(blocks)
        self._ends = list(accumulate(len(block.ids) for block in self._blocks))

    def __len__(self) -> int:
        return self._ends[-1] if self._ends else 0

    @overload
    def __getitem__(self, at: int) -> ImageRecord: ...
    @overload
    def __getitem__(self, at: slice) -> tuple[ImageRecord, ...]: ...
    def __getitem__(self, at: int | slice) -> ImageRecord | tuple[ImageRecord, ...]:
        if isinstance(at, slice):
            return tuple(self[i] for i in range(*at.indices(len(self))))
        i = range(len(self))[at]
        k = bisect_right(self._ends, i)
        return self._blocks[k].record(i - self._ends[k] + len(self._blocks[k].ids))

    def __iter__(self) -> Iterator[ImageRecord]:
        return chain.from_iterable(block.records() for block in self._blocks)

    def ids(self) -> list[str]:
        """The image ids, in order."""
        return [image_id for block in self._blocks for image_id in block.ids]

    def columns(self) -> list[str]:
        """The names of the arrays of `columns`."""
        return list(self._blocks[0].columns())

    def column(self, name: str) -> Iterator[NDArray[Any]]:
        """One of the arrays of `columns`, block after block."""
        return (block.columns()[name] for block in self._blocks)


@dataclass(frozen=True, slots=True)
class _Block:
    """Some records: compressed, or as they are if their arrays differ in shape."""

    ids: tuple[str, ...]
    seconds: tuple[float, ...]
    packed: bytes | tuple[ImageRecord, ...]

    @classmethod
    def of(cls, records: Sequence[ImageRecord]) -> _Block:
        try:
            packed: bytes | tuple[ImageRecord, ...] = pack_records(records)
        except ValueError:  # nothing to stack: segmentations in different numbers
            packed = tuple(records)
        return cls(tuple(r.image_id for r in records), tuple(r.seconds for r in records), packed)

    def records(self) -> tuple[ImageRecord, ...]:
        if isinstance(self.packed, tuple):
            return self.packed
        rows = _rows(dict(self.columns()))
        return tuple(replace(r, seconds=s) for r, s in zip(rows, self.seconds, strict=True))

    def record(self, i: int) -> ImageRecord:
        if isinstance(self.packed, tuple):
            return self.packed[i]
        return replace(_row(dict(self.columns()), i), seconds=self.seconds[i])

    def columns(self) -> Mapping[str, NDArray[Any]]:
        """What `columns` gives, each array unpacked when it is looked up."""
        if isinstance(self.packed, tuple):
            return columns(self.packed)
        found: Mapping[str, NDArray[Any]] = np.load(BytesIO(self.packed), allow_pickle=False)
        return found


class RecordCollector:
    """Takes records as they come, nearly in order, and gives them sorted."""

    def __init__(self) -> None:
        self._blocks: list[_Block] = []
        self._open: list[ImageRecord] = []
        self._late: list[ImageRecord] = []

    def add(self, record: ImageRecord) -> None:
        """Take one more record."""
        if self._blocks and record.image_id <= self._blocks[-1].ids[-1]:
            self._late.append(record)
            return
        self._open.append(record)
        if len(self._open) == 2 * BLOCK:
            self._open.sort(key=_by_id)
            self._blocks.append(_Block.of(self._open[:BLOCK]))
            del self._open[:BLOCK]

    def __len__(self) -> int:
        return sum(len(b.ids) for b in self._blocks) + len(self._open) + len(self._late)

    def done(self) -> Sequence[ImageRecord]:
        """All records by id: a tuple if they are few, else `Records`."""
        rest = sorted(self._open, key=_by_id)
        if not self._blocks:
            return tuple(rest)
        if self._late:
            late = sorted(self._late, key=_by_id)
            return gathered(heapq.merge(Records(self._blocks), rest, late, key=_by_id))
        return Records([*self._blocks, *([_Block.of(rest)] if rest else [])])


def gathered(records: Iterable[ImageRecord]) -> Sequence[ImageRecord]:
    """Any records sorted by id: a tuple if they are few, else `Records`."""
    collector = RecordCollector()
    for record in records:
        collector.add(record)
    return collector.done()


def image_ids(records: Sequence[ImageRecord]) -> list[str]:
    """The image ids, in order."""
    return records.ids() if isinstance(records, Records) else [r.image_id for r in records]


def record_of(records: Sequence[ImageRecord], image_id: str) -> ImageRecord | None:
    """The record of an image among records in id order, or None."""
    ids = image_ids(records)
    at = bisect_left(ids, image_id)
    return records[at] if at < len(ids) and ids[at] == image_id else None


def columns(rows: Sequence[ImageRecord]) -> Columns:
    """`ids`, `sizes`, `fingerprints`, `truths`, `forms`, and METRIC.FIELD stacked, image first.

    Raises ValueError if the images have arrays of different shapes.
    """
    arrays: Columns = {
        "ids": np.array([r.image_id for r in rows], np.str_),
        "sizes": np.array([r.size for r in rows], np.int64).reshape(-1, 2),
        "fingerprints": np.array([r.fingerprint for r in rows], np.str_),
        "truths": np.array([r.truth for r in rows], np.str_),
        "forms": np.array([r.form for r in rows], np.str_),
    }
    for metric in dict.fromkeys(m for r in rows for m in r.counts):
        counts = [r.counts[metric] for r in rows if metric in r.counts]
        for name in counts[0].arrays():
            arrays[f"{metric}.{name}"] = np.stack([c.arrays()[name] for c in counts])
    return arrays


def pack_records(records: Iterable[ImageRecord]) -> bytes:
    """Records as the bytes of an .npz with the arrays of `columns`. Same records, same bytes.

    Raises ValueError if the images have arrays of different shapes.
    """
    buffer = BytesIO()
    if not isinstance(records, Records):
        np.savez_compressed(buffer, **columns(list(records)))  # type: ignore[arg-type]
        return buffer.getvalue()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name in records.columns():
            _write_column(archive, name, records)
    return buffer.getvalue()


def _write_column(archive: zipfile.ZipFile, name: str, records: Records) -> None:
    """One array of the .npz as numpy writes it, a block at a time."""
    kinds = {(part.dtype, part.shape[1:]) for part in records.column(name)}
    shapes = {shape for _, shape in kinds}
    if len(shapes) > 1:
        raise ValueError(f"{name}: images differ in shape")
    dtype = np.result_type(*(kind for kind, _ in kinds))
    header = {
        "descr": np.lib.format.dtype_to_descr(dtype),
        "fortran_order": False,
        "shape": (len(records), *shapes.pop()),
    }
    with archive.open(f"{name}.npy", "w", force_zip64=True) as file:
        np.lib.format.write_array_header_1_0(file, header)
        for part in records.column(name):
            file.write(part.astype(dtype).tobytes())


def unpack_records(path: Path, data: bytes | None = None) -> Sequence[ImageRecord]:
    """Read what `pack_records` wrote into `path`, or `data` found there. Raises FileFormatError."""
    data = read_bytes(path) if data is None else data
    with reading(path, "a bsdsbench counts file"):
        arrays = unpack_npz(data, text=True, limit=MAX_DECODED_BYTES)
        check_columns(arrays)
        return gathered(_rows(arrays))


def _rows(arrays: Columns) -> Iterator[ImageRecord]:
    return (_row(arrays, i) for i in range(len(arrays["ids"])))


def _row(arrays: Columns, i: int) -> ImageRecord:
    counts: dict[str, Any] = {}
    for key, array in arrays.items():
        metric, dot, name = key.partition(".")
        if dot:
            counts.setdefault(metric, {})[name] = array[i]
    rows, cols = arrays["sizes"][i]
    return ImageRecord(
        str(arrays["ids"][i]),
        (int(rows), int(cols)),
        {m: registry.get(m).counts_type(**values) for m, values in counts.items()},
        str(arrays["fingerprints"][i]),
        truth=str(arrays["truths"][i]) if "truths" in arrays else "",
        form=str(arrays["forms"][i]) if "forms" in arrays else "",
    )
