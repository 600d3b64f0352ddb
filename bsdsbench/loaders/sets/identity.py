"""Identity of a ground-truth set: a fingerprint of its content, independent of the file format.

It is the first 16 hex digits of sha256 over the lines "ID FINGERPRINT\\n", sorted by id as strings,
with version 1 of each image's fingerprint (`bsdsbench.fingerprints`). The package lists the
splits of BSDS500 and the editions of UDED.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from importlib import resources

from attrs import frozen

from bsdsbench.errors import DataError
from bsdsbench.io import PathLike
from bsdsbench.loaders.pairing import ground_truths
from bsdsbench.loaders.readers import read_truth
from bsdsbench.protocol.protocol import Protocol


@frozen
class Identity:
    """The identity of a set of ground truths: its fingerprint, and the known set most like it.

    Parameters
    ----------
    fingerprint : str
        The fingerprint of this set.
    n_images : int
        The number of its images.
    like : str
        The known set with which it shares most images, or "" if it shares none.
    total : int
        The number of images in the known set.
    missing, altered : sequence of str
        Ids of the known set that are absent, or have other annotations.
    extra : sequence of str
        Ids that the known set does not have.
    """

    fingerprint: str
    n_images: int
    like: str = ""
    total: int = 0
    missing: Sequence[str] = ()
    altered: Sequence[str] = ()
    extra: Sequence[str] = ()

    @property
    def name(self) -> str | None:
        """The name of the known set of which this is an unaltered part or the whole, or None."""
        return None if self.altered or self.extra else self.like or None

    @property
    def whole(self) -> bool:
        """True if this is a known set with all of its images, unaltered."""
        return self.name is not None and not self.missing

    def describe(self) -> str:
        """Describe the set in words, such as "bsds500-val, 100 of 100 images"."""
        if self.name:
            part = "" if self.whole else "a part of "
            return f"{part}{self.name}, {self.n_images} of {self.total} images"
        n_same = self.total - len(self.missing) - len(self.altered)
        like = f", most like {self.like}: {n_same} of {self.total} the same" if self.like else ""
        return f"a set without a name, {self.n_images} images{like}"

    def to_mapping(self) -> dict[str, object]:
        """Return plain values for JSON."""
        return {
            "set": self.name,
            "n_images": self.n_images,
            "of": self.name and self.total,
            "fingerprint": self.fingerprint,
        }


def set_fingerprint(images: Mapping[str, str]) -> str:
    """Return the fingerprint of a set from the fingerprints of its images by id, in any order."""
    lines = "".join(map("%s %s\n".__mod__, sorted(images.items())))
    return hashlib.sha256(lines.encode()).hexdigest()[:16]


def folder_fingerprints(
    gt_dir: PathLike,
    protocol: Protocol,
    split_file: PathLike | None = None,
    progress: Callable[[int, int, str], None] | None = None,
) -> dict[str, str]:
    """Return the fingerprint of every ground truth in a folder by image id, sorted.

    Raises one DataError that lists all unreadable files.
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
    """Return the fingerprints of the known sets ("bsds500-val" ...) by image id."""
    text = resources.files("bsdsbench.loaders.sets").joinpath("known_sets.json").read_bytes()
    return {name: entry["images"] for name, entry in json.loads(text)["sets"].items()}


def identify(images: Mapping[str, str]) -> Identity:
    """Identify the set of images (id -> fingerprint) among the shipped sets.

    The known set that shares most images is used; of equals the set with fewer missing images.
    """
    sets = shipped_sets()
    images_here = images.items()
    like = max(sets, key=lambda name: (len(images_here & sets[name].items()), -len(sets[name])))
    listed_images = sets[like]
    mark = set_fingerprint(images)
    if not images_here & listed_images.items():
        return Identity(mark, len(images))
    missing, extra = sorted(listed_images.keys() - images), sorted(images.keys() - listed_images)
    altered = sorted(dict(listed_images.items() - images_here).keys() & images)
    return Identity(mark, len(images), like, len(listed_images), missing, altered, extra)
