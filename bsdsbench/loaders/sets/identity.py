"""Identity of a ground-truth set: a fingerprint of its content, independent of the file format.

It is the first 16 hex digits of sha256 over the lines "ID FINGERPRINT\\n", sorted by id as strings,
with version 1 of each image's fingerprint (`GroundTruth.fingerprints`). The package lists the
splits of BSDS500 and the editions of UDED.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from functools import cache
from importlib import resources

from attrs import frozen

from bsdsbench.errors import DataError
from bsdsbench.io import PathLike, Progress
from bsdsbench.loaders.pairing import ground_truths
from bsdsbench.loaders.readers import read_truth
from bsdsbench.protocol.protocol import Protocol


@frozen
class Identity:
    """The identity of a set of ground truths: its fingerprint, and the known set most like it."""

    fingerprint: str
    n_images: int
    like: str = ""  # the known set with which it shares most images, "" if it shares none
    total: int = 0  # the number of images of the known set
    missing: Sequence[str] = ()  # ids of the known set that are absent here
    altered: Sequence[str] = ()  # ids of the known set that have other annotations here
    extra: Sequence[str] = ()  # ids that the known set does not have

    @property
    def name(self) -> str | None:
        """The name of the known set that has all images with the same annotations, or None.

        Images of the known set may be missing.
        """
        return None if self.altered or self.extra else self.like or None

    @property
    def whole(self) -> bool:
        """True if this is a known set with all of its images, unaltered."""
        return self.name is not None and not self.missing

    def describe(self) -> str:
        """Describe the set in words.

        - the whole or a part of a known set: "a part of bsds500-val, 50 of 100 images"
        - any other set: "a set without a name, 50 images", and the known set most like it
        """
        if self.name:
            part = "" if self.whole else "a part of "
            return f"{part}{self.name}, {self.n_images} of {self.total} images"
        n_same = self.total - len(self.missing) - len(self.altered)
        like = f", most like {self.like}: {n_same} of {self.total} the same" if self.like else ""
        return f"a set without a name, {self.n_images} images{like}"

    def to_mapping(self) -> dict[str, object]:
        """Return values for JSON. "of" is the number of images in the known set, or None."""
        return {
            "set": self.name,
            "n_images": self.n_images,
            "of": self.name and self.total,
            "fingerprint": self.fingerprint,
        }


def set_fingerprint(images: Mapping[str, str]) -> str:
    """Return the fingerprint of a set, 16 hex digits, from {image id: fingerprint} in any order."""
    lines = "".join(map("%s %s\n".__mod__, sorted(images.items())))
    return hashlib.sha256(lines.encode()).hexdigest()[:16]


def folder_fingerprints(
    gt_dir: PathLike,
    protocol: Protocol,
    split_file: PathLike | None = None,
    progress: Progress | None = None,
) -> dict[str, str]:
    """Return {image id: fingerprint}, version 1, of all ground truths in a folder, sorted by id.

    `protocol` has the options by which files are read, and `split_file` the ids of the images, None
    for all. `progress` is called with (images done, all images, image id). Raises DataError that
    lists all files that cannot be read.
    """
    fingerprints = {}
    faults = []
    pairs = ground_truths(gt_dir, split_file)
    for done, image in enumerate(pairs, 1):
        try:
            gt = read_truth(image, "annotators", protocol)
            fingerprints[image.image_id] = gt.fingerprints(whole=False).listed
        except DataError as error:
            faults.append(error)
        if progress:
            progress(done, len(pairs), image.image_id)
    if faults:
        raise DataError.collect(faults)
    return fingerprints


@cache
def shipped_sets() -> Mapping[str, Mapping[str, str]]:
    """Return the known sets: name, such as "bsds500-val" -> {image id: fingerprint}."""
    text = resources.files("bsdsbench.loaders.sets").joinpath("known_sets.json").read_bytes()
    return {name: entry["images"] for name, entry in json.loads(text)["sets"].items()}


def identify(images: Mapping[str, str]) -> Identity:
    """Find the known set that shares most images, equal {id: fingerprint}, with a set of images.

    Of equals the one with fewer images is taken. If no set shares an image, the identity has no
    `like`.
    """
    sets = shipped_sets()
    here = images.items()
    like = max(sets, key=lambda name: (len(here & sets[name].items()), -len(sets[name])))
    known = sets[like]
    fingerprint = set_fingerprint(images)
    if not here & known.items():
        return Identity(fingerprint, len(images))
    return Identity(
        fingerprint,
        n_images=len(images),
        like=like,
        total=len(known),
        missing=sorted(known.keys() - images.keys()),
        altered=sorted(i for i in known.keys() & images.keys() if known[i] != images[i]),
        extra=sorted(images.keys() - known.keys()),
    )
