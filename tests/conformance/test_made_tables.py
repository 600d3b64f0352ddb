"""The rules of the official tables on a made set of the official layout, so that they are tested
where BSDS500 is not.

The tables in made/ are those of the slow definition (tests/reference/official.py), digit by digit;
BSDSBENCH_RENEW=1 writes them anew: then look at them.
"""

import os
from pathlib import Path

import numpy as np
import pytest
from skimage.measure import label

import bsdsbench as bb
from bsdsbench.loaders.formats.official_txt import read_run_folder
from tests.helpers.official_set import THRESHOLDS, make_official_set
from tests.helpers.runs import counted
from tests.reference import official

MADE = Path(__file__).with_name("made")
FIVE = bb.Protocol.preset("bsds500").replace(thresholds=5)
BOTH = ("boundary", "region")
# As in the self-test: the maps, their metrics, and the thresholds' names in tables.
TESTS = {
    "test_1": ("ucm2", BOTH, THRESHOLDS),
    "test_2": ("png", BOTH[:1], THRESHOLDS),
    "test_4": ("segs", BOTH, tuple(range(1, 6))),
}


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    root = tmp_path_factory.mktemp("made")
    return root, make_official_set(root)


def text(rows):
    """As the programs print them: %10g each, one space between."""
    return "".join(" ".join(f"{v:10g}" for v in row) + "\n" for row in rows)


def slow_tables(made, kind, metrics, names):
    counts, segmented = [], []
    for ucm2, drawn in made.values():
        soft = ucm2[2::2, 2::2]
        soft = np.floor(255 * soft + 0.5) / 255 if kind == "png" else soft
        segs = [label(ucm2 <= t, connectivity=2)[1::2, 1::2] for t in THRESHOLDS]
        bmaps = [soft >= t for t in THRESHOLDS]
        if kind == "segs":
            bmaps = [bb.seg2bdry(s) for s in segs]
        counts.append(official.boundary_counts(bmaps, [bb.seg2bdry(g) for g in drawn]))
        segmented.append((segs, drawn))
    found = official.boundary_tables(names, counts)
    return found | (official.region_tables(names, segmented) if "region" in metrics else {})


@pytest.mark.parametrize("test", TESTS)
def test_stored_tables_are_those_of_the_slow_definition(made, test):
    for name, rows in slow_tables(made[1], *TESTS[test]).items():
        path = MADE / test / name
        if os.environ.get("BSDSBENCH_RENEW"):
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text(rows), "utf-8", newline="\n")
        assert path.read_text("utf-8") == text(rows), name


@pytest.mark.parametrize("test", TESTS)
def test_the_tables_of_a_run_are_the_stored_ones(made, test, tmp_path):
    kind, metrics, _ = TESTS[test]
    counted(made[0] / kind, made[0] / "groundTruth", FIVE, metrics, out=tmp_path / "out")
    stored = sorted((MADE / test).iterdir())
    assert len(stored) == (8 if "region" in metrics else 3)
    for path in stored:
        found = (tmp_path / "out" / path.name).read_text("utf-8")
        assert found == path.read_text("utf-8"), path.name


def test_the_stored_tables_are_read():
    found = read_run_folder(MADE / "test_1")
    assert found["eval_bdry.txt"].shape == (1, 8)
    assert found["eval_bdry_img.txt"].shape == (4, 5)
