"""Identity of a ground-truth set: a fingerprint of its content, independent of the file format.

An image's fingerprint is the first 16 hex digits of sha256 over "ROWSxCOLSxANNOTATORS\\n" in ASCII,
then over each annotator's boundaries in file order, one bit per pixel (row-major, big bit order),
then over what else is annotated, each as "NUMBER SHAPE\\n" and its values, integers in four bytes
and others in eight, little-endian. Boundaries stand for the segmentations that they were made of. A
set's is the same over the lines "ID FINGERPRINT\\n", sorted by id as strings. The splits of BSDS500
and the editions of UDED ship with the package; other sets are registered by a file of the same form
(`write_set`).
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import lru_cache
from importlib import resources
from pathlib import Path
from typing import Any

import numpy as np

from bsdsbench.files.bounded import FaultError, parse_json, read_bytes, reading, show
from bsdsbench.files.errors import DataError
from bsdsbench.files.writing import write_atomic
from bsdsbench.loaders.groundtruth import load_ground_truth
from bsdsbench.loaders.inputs import GroundTruth
from bsdsbench.loaders.pairing import Pair, ground_truths
from bsdsbench.protocol.protocol import Protocol

DIGITS = 16


@dataclass(frozen=True, slots=True)
class KnownSet:
    """A ground-truth set with a name.

    name        : such as "bsds500-val"
    fingerprint : of the whole set, 16 hex digits
    images      : image id -> fingerprint
    """

    name: str
    fingerprint: str
    images: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Identity:
    """What a collection of ground truths is, beside the known set most like it.

    fingerprint : of the collection itself
    n_images    : images in it
    known       : the known set with which it shares most images, or None if it shares none
    missing     : ids of the known set that are not here
    altered     : ids of the known set whose annotations differ
    extra       : ids that the known set does not have
    """

    fingerprint: str
    n_images: int
    known: KnownSet | None = None
    missing: tuple[str, ...] = ()
    altered: tuple[str, ...] = ()
    extra: tuple[str, ...] = ()

    @property
    def clean(self) -> bool:
        """True if every image is one of the known set, unaltered: the set itself or a part."""
        return self.known is not None and not self.altered and not self.extra

    @property
    def whole(self) -> bool:
        """True if this is the known set, no image more, less or other."""
        return self.clean and not self.missing

    @property
    def name(self) -> str | None:
        """The known set's name where this is that set or a part of it, else None."""
        return self.known.name if self.known and self.clean else None

    def describe(self) -> str:
        """One line: "bsds500-val, 100 of 100 images", "a part of ..", or "a set without a name"."""
        if self.known is None:
            return f"a set without a name, {self.n_images} images"
        total = len(self.known.images)
        if self.clean:
            part = "" if self.whole else "a part of "
            return f"{part}{self.known.name}, {self.n_images} of {total} images"
        same = total - len(self.missing) - len(self.altered)
        faults = [f"{len(getattr(self, word))} {word}" for word in ("altered", "missing", "extra")]
        return (
            f"a set without a name, {self.n_images} images, most like {self.known.name}: "
            f"{same} of {total} the same, {', '.join(f for f in faults if f[:2] != '0 ')}"
        )

    def to_mapping(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return {
            "set": self.name,
            "n_images": self.n_images,
            "of": len(self.known.images) if self.known and self.clean else None,
            "fingerprint": self.fingerprint,
        }


def image_fingerprint(gt: GroundTruth) -> str:
    """The fingerprint of one image's annotations, 16 hex digits.

    >>> import numpy as np
    >>> image_fingerprint(GroundTruth("a", (np.eye(3, 4, dtype=bool),)))
    'f55623f951edd08d'
    """
    rows, cols = gt.shape
    digest = hashlib.sha256(f"{rows}x{cols}x{len(gt.boundaries)}\n".encode("ascii"))
    for drawn in gt.boundaries:
        # comparing takes ten times as long as packing
        digest.update(np.packbits(drawn if drawn.dtype == np.bool_ else drawn > 0).tobytes())
    others = [gt.labels, gt.instances, gt.class_boundaries, gt.mask, gt.depth, gt.valid, *gt.angles]
    others += [gt.lines.ends, gt.lines.junctions] if gt.lines else []
    others += [] if gt.boundaries else gt.segmentations
    for number, array in enumerate(others):
        if array is not None:
            digest.update(f"{number} {array.shape}\n".encode("ascii"))
            digest.update(array.astype("<f8" if array.dtype.kind == "f" else "<i4").tobytes())
    return digest.hexdigest()[:DIGITS]


def set_fingerprint(images: Mapping[str, str]) -> str:
    """The fingerprint of a set from those of its images (id -> fingerprint), in any order."""
    lines = "".join(f"{key} {images[key]}\n" for key in sorted(images))
    return hashlib.sha256(lines.encode()).hexdigest()[:DIGITS]


def folder_fingerprints(
    gt_dir: str | os.PathLike[str],
    protocol: Protocol,
    split_file: str | os.PathLike[str] | None = None,
    progress: Callable[[int, int, str], None] | None = None,
) -> dict[str, str]:
    """Image id -> fingerprint for every ground truth of a folder, sorted by id.

    All files that cannot be read are listed in one error.
    """
    pairs = ground_truths(gt_dir, split_file)

    def one(each: Pair) -> str:
        return image_fingerprint(load_ground_truth(each, **protocol.gt_options()))

    found: dict[str, str] = {}
    faults: list[DataError] = []
    with ThreadPoolExecutor() as pool:
        marks = [pool.submit(one, each) for each in pairs]
        for done, (each, mark) in enumerate(zip(pairs, marks, strict=True), 1):
            try:
                found[each.image_id] = mark.result()
            except DataError as error:
                faults.append(error)
            if progress:
                progress(done, len(pairs), each.image_id)
    if faults:
        raise DataError.collect(faults)
    return found


@lru_cache(maxsize=1)
def shipped_sets() -> tuple[KnownSet, ...]:
    """The sets that ship with the package: BSDS500 train, val and test, and UDED's editions."""
    source = resources.files("bsdsbench.loaders").joinpath("known_sets.json")
    return _sets(json.loads(source.read_text("utf-8")))


def load_sets(path: str | os.PathLike[str]) -> tuple[KnownSet, ...]:
    """The sets registered in a file that `write_set` wrote; fingerprints follow from the images."""
    with reading(path, "a set's file"):
        return _sets(parse_json(read_bytes(path)))


def write_set(path: str | os.PathLike[str], name: str, images: Mapping[str, str]) -> KnownSet:
    """Register a set: write its name and its images' fingerprints to a JSON file."""
    known = KnownSet(name, set_fingerprint(images), dict(sorted(images.items())))
    content = {"sets": {name: {"fingerprint": known.fingerprint, "images": known.images}}}
    write_atomic(Path(path), json.dumps(content, indent=0, ensure_ascii=False) + "\n")
    return known


def identify(images: Mapping[str, str], sets: Sequence[KnownSet] = ()) -> Identity:
    """What the images (id -> fingerprint) are, among the shipped sets and `sets`.

    The set that shares most images is taken, of equals the one that leaves fewer missing.
    """
    own = set_fingerprint(images)

    def likeness(known: KnownSet) -> tuple[int, int]:
        return len(images.items() & known.images.items()), -len(known.images)

    best = max((*sets, *shipped_sets()), key=likeness)
    if not likeness(best)[0]:
        return Identity(own, len(images))
    there = best.images
    return Identity(
        own,
        len(images),
        best,
        missing=tuple(sorted(set(there) - set(images))),
        altered=tuple(sorted(k for k in images if k in there and images[k] != there[k])),
        extra=tuple(sorted(set(images) - set(there))),
    )


def homes(images: Mapping[str, str], sets: Iterable[KnownSet] = ()) -> dict[str, str]:
    """For images whose annotations are those of a known set: "ID of SET", by their own id."""
    by_content = {
        mark: f"{key} of {known.name}"
        for known in (*shipped_sets(), *sets)
        for key, mark in known.images.items()
    }
    return {key: by_content[mark] for key, mark in images.items() if mark in by_content}


def _sets(content: Any) -> tuple[KnownSet, ...]:
    found = content.get("sets") if isinstance(content, dict) else None
    if not isinstance(found, dict) or not found:
        raise FaultError("no 'sets', expected a file that registers a set")
    sets = []
    for name, entry in found.items():
        images = entry.get("images") if isinstance(entry, dict) else None
        if not isinstance(images, dict) or not images:
            raise FaultError(f"set {show(name)} has no images, expected ID: FINGERPRINT")
        own = set_fingerprint({k: str(v) for k, v in images.items()})
        if entry.get("fingerprint", own) != own:
            raise FaultError(
                f"set {show(name)} has fingerprint {show(entry['fingerprint'])}, expected {own} as "
                "its images have"
            )
        sets.append(KnownSet(name, own, images))
    return tuple(sets)
