"""Fingerprints by the written rule, and what a folder of ground truth is called."""

import hashlib
import json
import shutil

import imageio.v3 as iio
import numpy as np
import pytest
from click.testing import CliRunner

from bsdsbench.cli.check import data as command
from bsdsbench.files.errors import DataError
from bsdsbench.loaders.identity import (
    folder_fingerprints,
    identify,
    image_fingerprint,
    load_sets,
    set_fingerprint,
    shipped_sets,
    write_set,
)
from bsdsbench.loaders.inputs import GroundTruth
from bsdsbench.protocol.protocol import Protocol
from tests.helpers.making import make_set
from tests.helpers.runs import refused

BSDS500 = Protocol.preset("bsds500")


def check(*arguments):
    return CliRunner().invoke(command, ["check", *map(str, arguments)], catch_exceptions=False)


def test_the_rule_by_hand():
    """3 x 4 pixels, two annotators: the diagonal, and the second pixel; 12 bits each."""
    second = np.zeros((3, 4), np.uint8)
    second[0, 1] = 1
    gt = GroundTruth("a", (np.eye(3, 4, dtype=bool), second))
    text = b"3x4x2\n" + bytes([0b10000100, 0b00100000]) + bytes([0b01000000, 0])
    assert image_fingerprint(gt) == hashlib.sha256(text).hexdigest()[:16]
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


def test_the_self_test_is_a_part_of_test(bsds500_bench):
    found = identify(folder_fingerprints(bsds500_bench / "groundTruth", BSDS500))
    assert found.describe() == "a part of bsds500-test, 5 of 200 images"
    assert (found.name, found.whole, len(found.missing)) == ("bsds500-test", False, 195)


def test_a_set_of_one_s_own_is_registered_and_known_again(tmp_path):
    _, gt = make_set(tmp_path / "mine")
    assert check(gt, "--quiet").stdout.splitlines()[0].endswith("a set without a name, 6 images")
    file = tmp_path / "set.json"
    assert "registered in" in check(gt, "--quiet", "--register", "mine", "-o", file).stdout
    shutil.rmtree(gt / "im003")
    first = check(gt, "--sets", file, "--quiet").stdout.splitlines()[0]
    assert first.endswith("a part of mine, 5 of 6 images")
    told = json.loads(check(gt, "--sets", file, "--quiet", "--format", "json").stdout)
    assert (told["set"], told["like"], told["whole"]) == ("mine", "mine", False)
    assert told["missing"] == ["im003"]
    assert not identify({}).whole


def test_pixels_and_their_order_count_and_no_type_does():
    """0.5 and -1 are and are not on: what is above 0 counts, whatever the type."""
    drawn, full = np.eye(3, 4, dtype=bool), np.ones((3, 4), bool)
    mark = image_fingerprint(GroundTruth("a", (drawn,)))
    for values in (drawn * np.uint8(255), drawn * 0.5, np.where(drawn, 3, -1)):
        assert image_fingerprint(GroundTruth("a", (values,))) == mark
    others = [(drawn | drawn[::-1],), (drawn.T,), (drawn, drawn), (drawn, full), (full, drawn)]
    marks = {image_fingerprint(GroundTruth("a", maps)) for maps in others}
    assert len(marks - {mark}) == len(others)


MINE = {"a": "0" * 16, "b": "1" * 16, "c": "2" * 16, "d": "3" * 16}


@pytest.fixture
def sets(tmp_path):
    """Two sets of a file: MINE, and one that has its a alone."""
    write_set(tmp_path / "small.json", "small", {"a": MINE["a"]})
    write_set(tmp_path / "mine.json", "mine", MINE)
    return load_sets(tmp_path / "small.json") | load_sets(tmp_path / "mine.json")


@pytest.mark.parametrize(
    ("images", "name", "flags", "lists", "words"),
    [
        (MINE, "mine", (True, True), ("", "", ""), "mine, 4 of 4 images"),
        ({"b": "1" * 16}, "mine", (True, False), ("acd", "", ""), "a part of mine, 1 of 4 images"),
        ({"a": "0" * 16}, "small", (True, True), ("", "", ""), "small, 1 of 1 images"),
        (MINE | {"x": "9" * 16}, "mine", (False, False), ("", "", "x"),
         "a set without a name, 5 images, most like mine: 4 of 4 the same, 1 extra"),
        (MINE | {"d": "9" * 16, "c": "8" * 16}, "mine", (False, False), ("", "cd", ""),
         "a set without a name, 4 images, most like mine: 2 of 4 the same, 2 altered"),
        ({"a": "9" * 16, "b": "1" * 16, "y": "0" * 16, "x": "1" * 16}, "mine", (False, False),
         ("cd", "a", "xy"), "a set without a name, 4 images, most like mine: 1 of 4 the same, "
         "1 altered, 2 missing, 2 extra"),
        ({"x": "0" * 16}, None, (False, False), ("", "", ""), "a set without a name, 1 images"),
        ({}, None, (False, False), ("", "", ""), "a set without a name, 0 images"),
    ],
)  # fmt: skip
def test_what_images_are_beside_known_sets(sets, images, name, flags, lists, words):
    found = identify(images, sets)
    assert (found.like or None) == name
    assert (found.name is not None, found.whole) == flags
    assert tuple("".join(each) for each in (found.missing, found.altered, found.extra)) == lists
    assert found.describe() == words
    assert (found.n_images, found.fingerprint) == (len(images), set_fingerprint(images))
    named = name if flags[0] else None
    assert found.name == named
    assert found.to_mapping() == {
        "set": named,
        "n_images": len(images),
        "of": found.total if named else None,
        "fingerprint": found.fingerprint,
    }


def test_progress_counts_files_that_cannot_be_read(tmp_path):
    for name in "abcd":
        iio.imwrite(tmp_path / f"{name}.png", np.full((4, 5), 255 * (name in "ac"), np.uint8))
    told = []
    with pytest.raises(DataError, match=r"b\.png: no boundary pixel") as caught:
        folder_fingerprints(tmp_path, BSDS500, progress=lambda *now: told.append(now))
    assert len(caught.value.problems) == 2
    assert told == [(1, 4, "a"), (2, 4, "b"), (3, 4, "c"), (4, 4, "d")]
    (tmp_path / "b.png").unlink()
    (tmp_path / "d.png").unlink()
    found = folder_fingerprints(tmp_path, BSDS500)
    expected = image_fingerprint(GroundTruth("a", (np.ones((4, 5), bool),)))
    assert found == {"a": expected, "c": expected}


def test_a_set_s_file_as_it_is_written(tmp_path):
    """One line per value, sorted, in UTF-8 that people can read."""
    images = {"b": "1", "a": "2"}
    write_set(tmp_path / "set.json", "\u00fc", images)
    assert (tmp_path / "set.json").read_text("utf-8").splitlines() == [
        "{",
        '"sets": {',
        '"\u00fc": {',
        f'"fingerprint": "{set_fingerprint(images)}",',
        '"images": {',
        '"a": "2",',
        '"b": "1"',
        "}",
        "}",
        "}",
        "}",
    ]
    assert load_sets(tmp_path / "set.json") == {"\u00fc": images}


@pytest.mark.parametrize(
    "content",
    [[], {"sets": {"x": 1}}, {"sets": [1]}, {"sets": {}}, {"sets": {"x": {"images": {}}}}]
    + [{"sets": {"x": {"images": images}}} for images in ([1], {"a": 1}, {"a": None})],
)
def test_sets_that_are_none(tmp_path, content):
    (tmp_path / "set.json").write_text(json.dumps(content))
    refused("set.json: ", load_sets, tmp_path / "set.json")
