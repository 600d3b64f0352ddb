"""Fingerprints by the written rule, and what a folder of ground truth is called."""

import hashlib
import json
import shutil

import imageio.v3 as iio
import numpy as np
import pytest
from click.testing import CliRunner

from bsdsbench.cli.check import data_command as command
from bsdsbench.errors import DataError
from bsdsbench.images import GroundTruth
from bsdsbench.loaders.sets.identity import (
    folder_fingerprints,
    identify,
    set_fingerprint,
    shipped_sets,
)
from bsdsbench.protocol.protocol import Protocol

BSDS500 = Protocol.preset("bsds500")


def test_the_rule_by_hand():
    """3 x 4 pixels, two annotators: the diagonal, and the second pixel; 12 bits each."""
    second = np.zeros((3, 4), np.uint8)
    second[0, 1] = 1
    gt = GroundTruth("a", (np.eye(3, 4, dtype=bool), second))
    text = b"3x4x2\n" + bytes([0b10000100, 0b00100000]) + bytes([0b01000000, 0])
    assert gt.fingerprint == hashlib.sha256(text).hexdigest()[:16]
    lines = b"10 cc\n2 aa\n9 bb\n"
    expected = hashlib.sha256(lines).hexdigest()[:16]
    assert set_fingerprint({"9": "bb", "2": "aa", "10": "cc"}) == expected


def test_shipped_sets_are_those_of_bsds500_and_uded():
    """UDED's of 2023 and 2025 differ in one picture, that between them has none in its place."""
    known = shipped_sets()
    assert {name: (len(images), set_fingerprint(images)) for name, images in known.items()} == {
        "bsds500-train": (200, "b0a18bccead08686"),
        "bsds500-val": (100, "e516f60d01dc93b9"),
        "bsds500-test": (200, "fa866d159ac180a9"),
        "uded-2023": (30, "b976c208cf9d5ad7"),
        "uded-2024": (29, set_fingerprint(known["uded-2024"])),
        "uded-2025": (30, "c4912faafdd5b449"),
    }
    first, middle, last = (set(known[f"uded-{year}"]) for year in (2023, 2024, 2025))
    assert (first - middle, last - middle) == ({"10-lena"}, {"10-196062"})
    for name, one in known.items():
        found = identify(one)
        assert (found.whole, found.name) == (True, name)


def test_a_part_of_a_known_set_by_the_command(bsds500_bench, tmp_path):
    shutil.copytree(bsds500_bench / "groundTruth", tmp_path / "gt")
    next((tmp_path / "gt").glob("*.mat")).unlink()
    words = ["check", str(tmp_path / "gt"), "--quiet", "--format", "json"]
    told = json.loads(CliRunner().invoke(command, words, catch_exceptions=False).stdout)
    assert (told["set"], told["whole"]) == ("bsds500-test", False)
    assert (len(told["missing"]), told["of"], told["n_images"]) == (196, 200, 4)


def test_pixels_and_their_order_count_and_no_type_does():
    """A boundary is 1 or white in any type; other values have no meaning."""
    drawn, full = np.eye(3, 4, dtype=bool), np.ones((3, 4), bool)
    mark = GroundTruth("a", (drawn,)).fingerprint
    for values in (drawn * np.uint8(255), drawn * 1.0, drawn * np.int64(1)):
        assert GroundTruth("a", (values,)).fingerprint == mark
    for values in (drawn * 0.5, np.where(drawn, 3, -1)):
        with pytest.raises(DataError, match="values other than 0 and 1"):
            GroundTruth("a", (values,))
    others = [(drawn | drawn[::-1],), (drawn.T,), (drawn, drawn), (drawn, full), (full, drawn)]
    marks = {GroundTruth("a", maps).fingerprint for maps in others}
    assert len(marks - {mark}) == len(others)


MINE = {"a": "0" * 16, "b": "1" * 16, "c": "2" * 16, "d": "3" * 16}


@pytest.mark.parametrize(
    ("images", "name", "lists", "words"),
    [
        (MINE, "mine", ("", "", ""), "mine, 4 of 4 images"),
        ({"b": "1" * 16}, "mine", ("acd", "", ""), "a part of mine, 1 of 4 images"),
        (MINE | {"x": "9" * 16}, "mine", ("", "", "x"),
         "an unknown set, 5 images, most like mine: 4 of 4 the same"),
        ({"a": "9" * 16, "b": "1" * 16, "y": "0" * 16, "x": "1" * 16}, "mine", ("cd", "a", "xy"),
         "an unknown set, 4 images, most like mine: 1 of 4 the same"),
        ({"x": "0" * 16}, "", ("", "", ""), "an unknown set, 1 image"),
    ],
)  # fmt: skip
def test_what_images_are_beside_known_sets(monkeypatch, images, name, lists, words):
    sets = {"small": {"a": MINE["a"]}, "mine": MINE}
    monkeypatch.setattr("bsdsbench.loaders.sets.identity.shipped_sets", lambda: sets)
    found = identify(images)
    assert tuple("".join(each) for each in (found.missing, found.altered, found.extra)) == lists
    assert (found.like, found.describe()) == (name, words)
    named = name if name and not (lists[1] or lists[2]) else None
    assert (found.name, found.whole) == (named, bool(named) and not lists[0])
    assert found.to_mapping() == {
        "set": named,
        "n_images": len(images),
        "of": found.total if named else None,
        "fingerprint": set_fingerprint(images),
    }


def test_progress_counts_files_that_cannot_be_read(tmp_path):
    for name in "abcd":
        iio.imwrite(tmp_path / f"{name}.png", np.full((4, 5), 255 * (name in "ac"), np.uint8))
    told = []
    with pytest.raises(DataError, match=r"b\.png: no boundary pixel") as caught:
        folder_fingerprints(tmp_path, BSDS500, progress=lambda *now: told.append(now))
    assert len(caught.value.problems) == 2
    assert told == [(1, 4, "a"), (2, 4, "b"), (3, 4, "c"), (4, 4, "d")]
