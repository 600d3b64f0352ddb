"""Identification of a ground-truth set by a fingerprint, independent of the file format.

The fingerprint of a set is the first 16 hex digits of the sha256 of the lines "ID FINGERPRINT\\n",
one per image, sorted by id as strings, with version 1 of the image's fingerprint
(`GroundTruth.fingerprints`). Known sets are the splits of BSDS500 and the editions of UDED.
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
from bsdsbench.loaders.reading import Kind, ReadOptions
from bsdsbench.protocol.protocol import Protocol


@frozen
class Identity:
    """The identity of a ground-truth set: its fingerprint, and the most similar known set."""

    fingerprint: str
    n_images: int
    like: str = ""  # the known set with the most images in common; "" if none has any
    total: int = 0  # the number of images in the known set
    missing: Sequence[str] = ()  # ids in the known set that are not in this set
    altered: Sequence[str] = ()  # ids in both sets, but with different annotations
    extra: Sequence[str] = ()  # ids in this set that are not in the known set

    @property
    def name(self) -> str | None:
        """The name of the known set that contains all these images unaltered, or None."""
        return None if self.altered or self.extra else self.like or None

    @property
    def whole(self) -> bool:
        """True if this is a complete known set, with all images unaltered."""
        return self.name is not None and not self.missing

    def describe(self) -> str:
        """Return a description such as "a part of bsds500-val, 50 of 100 images".

        Other images than those of a known set are described by the set that is most like them: "an
        unknown set, 60 images, most like bsds500-val: 50 of 100 the same".
        """
        if self.name:
            extent = "" if self.whole else "a part of "
            return f"{extent}{self.name}, {self.n_images} of {self.total} images"
        n_same = self.total - len(self.missing) - len(self.altered)
        like = f", most like {self.like}: {n_same} of {self.total} the same" if self.like else ""
        images = "1 image" if self.n_images == 1 else f"{self.n_images} images"
        return f"an unknown set, {images}{like}"

    def to_mapping(self) -> dict[str, object]:
        """Return the identity of this image set as a JSON-serialisable dict.

        "set" is the known set that contains all these images, and "of" its number of images. Both
        are None if no known set contains them all.
        """
        return {
            "set": self.name,
            "n_images": self.n_images,
            "of": self.total if self.name else None,
            "fingerprint": self.fingerprint,
        }


def set_fingerprint(images: Mapping[str, str]) -> str:
    """Return the fingerprint of a set (16 hex digits), given the fingerprint of each image id."""
    lines = "".join(map("%s %s\n".__mod__, sorted(images.items())))
    return hashlib.sha256(lines.encode()).hexdigest()[:16]


def folder_fingerprints(
    gt_dir: PathLike,
    protocol: Protocol,
    split_file: PathLike | None = None,
    progress: Progress | None = None,
) -> dict[str, str]:
    """Return {image id: fingerprint} of a ground-truth folder, or of the images in `split_file`.

    These are hashes of the annotations, as in the lists of known sets. `protocol` says how to read
    the files. `progress` is called after each image with (images done, all images, image id).
    Raises one DataError that lists every unreadable file.
    """
    fingerprints = {}
    faults = []
    pairs = ground_truths(gt_dir, split_file)
    options = ReadOptions(
        Kind.REGIONS if protocol.gt_kind == "labels" else Kind.BOUNDARIES,
        cut=protocol.gt_threshold,
        inverted=protocol.gt_invert,
        allow_empty=protocol.empty_gt != "error",
    )
    for done, image in enumerate(pairs, 1):
        try:
            gt = read_truth(image, "annotators", options)
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
    """Return the known sets, as a dict from names such as "bsds500-val" to {id: fingerprint}."""
    text = resources.files("bsdsbench.loaders.sets").joinpath("known_sets.json").read_bytes()
    return {name: entry["images"] for name, entry in json.loads(text)["sets"].items()}


def identify(images: Mapping[str, str]) -> Identity:
    """Return the identity of images (id -> fingerprint), with the known set that is most like them.

    That is the known set with the most images in common (of the same id and fingerprint), in a tie
    the smallest one. If no image is common, the identity names no known set.
    """
    fingerprint = set_fingerprint(images)
    like, n_shared = "", 0  # of the most similar set so far: its name, and the images in common
    known: Mapping[str, str] = {}  # its images
    for name, set_images in shipped_sets().items():
        n_same = len(images.items() & set_images.items())
        if n_same > n_shared or (n_same == n_shared > 0 and len(set_images) < len(known)):
            like, n_shared, known = name, n_same, set_images
    if not n_shared:
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
