"""Fingerprints by the written rule, and what a folder of ground truth is called."""

import hashlib
import json
import shutil

import imageio.v3 as iio
import numpy as np
import pytest
from click.testing import CliRunner

from bsdsbench.cli.verb_data import command
from bsdsbench.files.errors import DataError, FileFormatError
from bsdsbench.loaders import load_ground_truth
from bsdsbench.loaders.identity import (
    Identity,
    KnownSet,
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


def test_every_order_and_pixel_counts():
    a, b = np.eye(3, 4, dtype=bool), np.ones((3, 4), bool)
    other = [(b, a), (a,), (a, a), (a.T, b.T)]
    mark = image_fingerprint(GroundTruth("a", (a, b)))
    assert mark not in [image_fingerprint(GroundTruth("a", maps)) for maps in other]


def test_shipped_sets_are_those_of_bsds500_and_uded():
    sizes = {known.name: (len(known.images), known.fingerprint) for known in shipped_sets()}
    uded = {name: sizes.pop(name) for name in list(sizes) if name.startswith("uded")}
    assert uded["uded-2023"] == (30, "b976c208cf9d5ad7")
    assert uded["uded-2025"] == (30, "c4912faafdd5b449")
    assert sizes == {
        "bsds500-train": (200, "b0a18bccead08686"),
        "bsds500-val": (100, "e516f60d01dc93b9"),
        "bsds500-test": (200, "fa866d159ac180a9"),
    }
    for known in shipped_sets():
        assert set_fingerprint(known.images) == known.fingerprint
        found = identify(known.images)
        assert (found.whole, found.name) == (True, known.name)


@pytest.mark.slow
def test_the_val_split_is_named(bsds500):
    result = check(bsds500 / "groundTruth" / "val", "--quiet")
    assert result.stdout.splitlines()[0].endswith("val: bsds500-val, 100 of 100 images")
    images = folder_fingerprints(bsds500 / "groundTruth" / "val", BSDS500)
    assert identify(images).whole


@pytest.mark.slow
def test_missing_altered_and_extra_images_are_found(bsds500, tmp_path):
    """One image of each kind among the whole val split, two of them in another file format."""
    folder = tmp_path / "val"
    shutil.copytree(bsds500 / "groundTruth" / "val", folder)
    (folder / "101085.mat").unlink()
    maps = np.stack(load_ground_truth(folder / "101087.mat").boundaries)
    maps[1, 200, 30] ^= True
    (folder / "101087.mat").unlink()
    np.save(folder / "101087.npy", maps)
    shutil.copy(folder / "103070.mat", folder / "mine.mat")
    same = np.stack(load_ground_truth(folder / "102061.mat").boundaries)
    (folder / "102061.mat").unlink()
    np.save(folder / "102061.npy", same)
    found = identify(folder_fingerprints(folder, BSDS500))
    assert (found.missing, found.altered, found.extra) == (("101085",), ("101087",), ("mine",))
    assert found.name is None
    lines = check(folder, "--quiet").stdout.splitlines()
    assert lines[0].endswith(
        "a set without a name, 100 images, most like bsds500-val: 98 of 100 the same, "
        "1 altered, 1 missing, 1 extra"
    )
    assert lines[2:] == [
        "missing 101085 (1 in all)",
        "altered 101087 (1 in all)",
        "extra mine (is 103070 of bsds500-val) (1 in all)",
    ]
    told = json.loads(check(folder, "--quiet", "--format", "json").stdout)
    assert (told["set"], told["like"], told["whole"]) == (None, "bsds500-val", False)


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
    assert not identify({}).clean


def test_a_set_with_other_annotations_has_neither_name_nor_size():
    known = KnownSet("mine", "f", {"a": "1", "b": "2"})
    kept = Identity("g", 1, known, missing=("b",)).to_mapping()
    assert kept == {"set": "mine", "n_images": 1, "of": 2, "fingerprint": "g"}
    altered = Identity("g", 2, known, altered=("a",)).to_mapping()
    assert altered == {"set": None, "n_images": 2, "of": None, "fingerprint": "g"}


def test_the_format_of_a_set_s_file_is_checked(tmp_path):
    file = tmp_path / "set.json"
    write_set(file, "mine", {"a": "0" * 16})
    assert load_sets(file)[0].images == {"a": "0" * 16}
    file.write_text(file.read_text("utf-8").replace('"a"', '"b"'), "utf-8")
    with pytest.raises(FileFormatError, match=r"set\.json: set mine has fingerprint"):
        load_sets(file)
    for text in ("[]", '{"sets": {}}', '{"sets": {"x": 1}}', "{"):
        file.write_text(text, "utf-8")
        with pytest.raises(FileFormatError, match=r"set\.json: (no 'sets'|set x has no|not JSON)"):
            load_sets(file)


def test_all_bad_files_come_together(tmp_path):
    for name in "ab":
        iio.imwrite(tmp_path / f"{name}.png", np.zeros((4, 5), np.uint8))
    with pytest.raises(DataError) as caught:
        folder_fingerprints(tmp_path, BSDS500)
    assert len(caught.value.problems) == 2


def test_editions_of_uded_are_told_apart():
    """The sets of 2023 and 2025 differ in one picture, that between them has none in its place."""
    editions = {s.name: s.images for s in shipped_sets() if s.name.startswith("uded")}
    first, middle, last = (editions[f"uded-{year}"] for year in (2023, 2024, 2025))
    assert (len(first), len(middle), len(last)) == (30, 29, 30)
    assert (set(first) - set(middle), set(last) - set(middle)) == ({"10-lena"}, {"10-196062"})
    for name, images in editions.items():
        found = identify(images)
        assert (found.name, found.whole) == (name, True)
