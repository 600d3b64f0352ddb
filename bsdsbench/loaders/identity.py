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
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any

import numpy as np

from bsdsbench.files.bounded import (
    FaultError,
    PathLike,
    entries,
    entry,
    parse_json,
    read_bytes,
    reading,
    write_atomic,
)
from bsdsbench.files.errors import DataError
from bsdsbench.loaders.inputs import GroundTruth
from bsdsbench.loaders.pairing import Pair, ground_truths
from bsdsbench.loaders.readers import load_ground_truth
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
    name        : its name where this is that set or a part of it, unaltered
    missing     : ids of the known set that are not here
    altered     : ids of the known set whose annotations differ
    extra       : ids that the known set does not have
    """

    fingerprint: str
    n_images: int
    known: KnownSet | None = None
    name: str | None = None
    missing: tuple[str, ...] = ()
    altered: tuple[str, ...] = ()
    extra: tuple[str, ...] = ()

    @property
    def whole(self) -> bool:
        """True if this is the known set, no image more, less or other."""
        return self.name is not None and not self.missing

    def describe(self) -> str:
        """One line: "bsds500-val, 100 of 100 images", "a part of ..", or "a set without a name"."""
        total = len(self.known.images) if self.known else 0
        if self.name:
            part = "" if self.whole else "a part of "
            return f"{part}{self.name}, {self.n_images} of {total} images"
        text = f"a set without a name, {self.n_images} images"
        if not self.known:
            return text
        faults = {"altered": self.altered, "missing": self.missing, "extra": self.extra}
        words = ", ".join(f"{len(ids)} {word}" for word, ids in faults.items() if ids)
        same = total - len(self.missing) - len(self.altered)
        return f"{text}, most like {self.known.name}: {same} of {total} the same, {words}"

    def to_mapping(self) -> dict[str, Any]:
        """Plain values for JSON."""
        of = len(self.known.images) if self.known and self.name else None
        found = {"set": self.name, "n_images": self.n_images, "of": of}
        return {**found, "fingerprint": self.fingerprint}


def image_fingerprint(gt: GroundTruth) -> str:
    """The fingerprint of one image's annotations, 16 hex digits.

    >>> import numpy as np
    >>> image_fingerprint(GroundTruth("a", (np.eye(3, 4, dtype=bool),)))
    'f55623f951edd08d'
    """
    rows, cols = gt.shape
    digest = hashlib.sha256(b"%dx%dx%d\n" % (rows, cols, len(gt.boundaries)))
    for drawn in gt.boundaries:
        # comparing takes ten times as long as packing
        digest.update(np.packbits(drawn if drawn.dtype == np.bool_ else drawn > 0).tobytes())
    names = "labels", "instances", "class_boundaries", "mask", "depth", "valid"
    others = [*map(gt.parts.get, names), *gt.parts.get("angles", ())]
    others += [gt.lines.ends, gt.lines.junctions] if "lines" in gt.parts else []
    others += [] if gt.boundaries else gt.parts.get("segmentations", ())
    for number, array in enumerate(others):
        if array is not None:
            digest.update(f"{number} {array.shape}\n".encode())
            digest.update(array.astype("<f8" if array.dtype.kind == "f" else "<i4").tobytes())
    return digest.hexdigest()[:DIGITS]


def set_fingerprint(images: Mapping[str, str]) -> str:
    """The fingerprint of a set from those of its images (id -> fingerprint), in any order."""
    lines = "".join(map("%s %s\n".__mod__, sorted(images.items())))
    return hashlib.sha256(lines.encode()).hexdigest()[:DIGITS]


def folder_fingerprints(
    gt_dir: PathLike,
    protocol: Protocol,
    split_file: PathLike | None = None,
    progress: Callable[[int, int, str], None] | None = None,
) -> dict[str, str]:
    """Image id -> fingerprint for every ground truth of a folder, sorted by id.

    All files that cannot be read are listed in one error.
    """
    pairs = ground_truths(gt_dir, split_file)

    def mark(each: Pair) -> str | DataError:
        try:
            return image_fingerprint(load_ground_truth(each, **protocol.gt_options()))
        except DataError as error:
            return error

    found: dict[str, Any] = {}
    with ThreadPoolExecutor() as pool:
        for done, (each, known) in enumerate(zip(pairs, pool.map(mark, pairs), strict=True), 1):
            found[each.image_id] = known
            if progress:
                progress(done, len(pairs), each.image_id)
    if faults := [known for known in found.values() if isinstance(known, DataError)]:
        raise DataError.collect(faults)
    return found


@cache
def shipped_sets() -> tuple[KnownSet, ...]:
    """The sets that ship with the package: BSDS500 train, val and test, and UDED's editions."""
    return _sets(resources.files("bsdsbench.loaders").joinpath("known_sets.json").read_bytes())


def load_sets(path: PathLike) -> tuple[KnownSet, ...]:
    """The sets registered in a file that `write_set` wrote; fingerprints follow from the images."""
    with reading(path, "a set's file"):
        return _sets(read_bytes(path))


def _sets(data: bytes) -> tuple[KnownSet, ...]:
    sets = entry(parse_json(data), "sets", dict)
    found = {name: entries(entry(sets, name, dict), "images", str) for name in sets}
    if not found or not all(found.values()):
        raise FaultError("a set without images, expected ID: FINGERPRINT")
    return tuple(KnownSet(name, set_fingerprint(of), of) for name, of in found.items())


def write_set(path: PathLike, name: str, images: Mapping[str, str]) -> KnownSet:
    """Register a set: write its name and its images' fingerprints to a JSON file."""
    known = KnownSet(name, set_fingerprint(images), dict(sorted(images.items())))
    content = {"sets": {name: {"fingerprint": known.fingerprint, "images": known.images}}}
    write_atomic(Path(path), json.dumps(content, indent=0, ensure_ascii=False) + "\n")
    return known


def identify(images: Mapping[str, str], sets: Sequence[KnownSet] = ()) -> Identity:
    """What the images (id -> fingerprint) are, among the shipped sets and `sets`.

    The set that shares most images is taken, of equals the one that leaves fewer missing.
    """
    own = set_fingerprint(images), len(images)
    best = max(
        (*sets, *shipped_sets()),
        key=lambda known: (len(images.items() & known.images.items()), -len(known.images)),
    )
    there = best.images
    if not images.items() & there.items():
        return Identity(*own)
    missing, extra = (tuple(sorted({*a} - {*b})) for a, b in ((there, images), (images, there)))
    altered = tuple(sorted(k for k in there if images.get(k, there[k]) != there[k]))
    return Identity(*own, best, None if altered or extra else best.name, missing, altered, extra)
