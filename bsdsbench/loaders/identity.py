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
from collections.abc import Callable, Mapping
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


Sets = Mapping[str, Mapping[str, str]]  # name, such as "bsds500-val" -> image id -> fingerprint


@dataclass(frozen=True, slots=True)
class Identity:
    """What a collection of ground truths is, beside the known set most like it.

    fingerprint : of the collection itself
    n_images    : images in it
    like        : the known set with which it shares most images, "" if it shares none
    total       : images in that set
    missing     : ids of that set that are not here
    altered     : ids of that set whose annotations differ
    extra       : ids that that set does not have
    """

    fingerprint: str
    n_images: int
    like: str = ""
    total: int = 0
    missing: tuple[str, ...] = ()
    altered: tuple[str, ...] = ()
    extra: tuple[str, ...] = ()

    @property
    def name(self) -> str | None:
        """The name of the set that this is, or a part of, unaltered."""
        return None if self.altered or self.extra else self.like or None

    @property
    def whole(self) -> bool:
        """True if this is the known set, no image more, less or other."""
        return self.name is not None and not self.missing

    def describe(self) -> str:
        """One line: "bsds500-val, 100 of 100 images", "a part of ..", or "a set without a name"."""
        if self.name:
            part = "" if self.whole else "a part of "
            return f"{part}{self.name}, {self.n_images} of {self.total} images"
        text = f"a set without a name, {self.n_images} images"
        faults = {"altered": self.altered, "missing": self.missing, "extra": self.extra}
        words = ", ".join(f"{len(ids)} {word}" for word, ids in faults.items() if ids)
        same = self.total - len(self.missing) - len(self.altered)
        more = f", most like {self.like}: {same} of {self.total} the same, {words}"
        return text + (more if self.like else "")

    def to_mapping(self) -> dict[str, Any]:
        """Plain values for JSON."""
        found = {"set": self.name, "n_images": self.n_images}
        return {**found, "of": self.total if self.name else None, "fingerprint": self.fingerprint}


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
    pairs, found, faults = ground_truths(gt_dir, split_file), dict[str, str](), []

    def mark(each: Pair) -> str:
        return image_fingerprint(load_ground_truth(each, **protocol.gt_options()))

    with ThreadPoolExecutor() as pool:
        marks = [pool.submit(mark, each) for each in pairs]
        for done, (each, known) in enumerate(zip(pairs, marks, strict=True), 1):
            try:
                found[each.image_id] = known.result()
            except DataError as error:
                faults.append(error)
            if progress:
                progress(done, len(pairs), each.image_id)
    if faults:
        raise DataError.collect(faults)
    return found


@cache
def shipped_sets() -> Sets:
    """The sets that ship with the package: BSDS500 train, val and test, and UDED's editions."""
    return _sets(resources.files("bsdsbench.loaders").joinpath("known_sets.json").read_bytes())


def load_sets(path: PathLike) -> Sets:
    """The sets registered in a file that `write_set` wrote."""
    with reading(path, "a set's file"):
        return _sets(read_bytes(path))


def _sets(data: bytes) -> Sets:
    sets = entry(parse_json(data), "sets", dict)
    found = {name: entries(entry(sets, name, dict), "images", str) for name in sets}
    if not found or not all(found.values()):
        raise FaultError("a set without images, expected ID: FINGERPRINT")
    return found


def write_set(path: PathLike, name: str, images: Mapping[str, str]) -> None:
    """Register a set: write its name and its images' fingerprints to a JSON file."""
    about = {"fingerprint": set_fingerprint(images), "images": dict(sorted(images.items()))}
    text = json.dumps({"sets": {name: about}}, indent=0, ensure_ascii=False)
    write_atomic(Path(path), text + "\n")


def identify(images: Mapping[str, str], sets: Sets | None = None) -> Identity:
    """What the images (id -> fingerprint) are, among the shipped sets and `sets`.

    The set that shares most images is taken, of equals the one that leaves fewer missing.
    """
    known, here = {**(sets or {}), **shipped_sets()}, images.items()
    like = max(known, key=lambda name: (len(here & known[name].items()), -len(known[name])))
    there, own = known[like], (set_fingerprint(images), len(images))
    if not here & there.items():
        return Identity(*own)
    missing, extra = (tuple(sorted(a)) for a in (there.keys() - images, images.keys() - there))
    altered = tuple(sorted(k for k in there if images.get(k, there[k]) != there[k]))
    return Identity(*own, like, len(there), missing, altered, extra)
