"""The page on troubleshooting: each number of its table is computed, each message is provoked."""

import shutil
from pathlib import Path

import imageio.v3 as iio
import numpy as np
import pytest
from skimage.transform import resize

import bsdsbench as bb
from bsdsbench.loaders.sample import sample_ground_truth, sample_images, sample_results
from tests.helpers.runs import command

PAGE = Path(__file__).parents[1] / "docs/howto/troubleshooting.md"
pytestmark = pytest.mark.usefixtures("counted_once")
TEXT = PAGE.read_text("utf-8")
ROWS = [
    tuple(cell.strip() for cell in line.strip("|").split("|"))
    for line in TEXT.partition("| doctor |\n")[2].partition("\n\n")[0].splitlines()[1:]
]
BSDS = bb.Protocol.preset("bsds500")
THIN, RAW = (sample_results(name) for name in ("structure-tensor", "structure-tensor-raw"))


def moved(soft, pixels):
    return np.roll(soft, (pixels, pixels), (0, 1))


def resized(soft, shape):
    small = resize(soft / 255, shape)
    return np.rint(255 * resize(small, soft.shape)).astype(np.uint8)


def confident(soft):
    return np.rint(255 * np.clip((soft / 255 - 0.3) * 8 + 0.5, 0, 1)).astype(np.uint8)


# What a row does: the maps it starts from, what becomes of each, and the changed fields
CASES = {
    "nothing: thin soft maps": (THIN, None, {}),
    "raw: ridges several pixels wide, no NMS": (RAW, None, {}),
    "raw, evaluated with `--nms`": (RAW, None, {"nms": True}),
    "raw, evaluated with `--no-thin`": (RAW, None, {"thin": False}),
    "inverted: edges dark on white": (THIN, lambda soft: 255 - soft, {}),
    "mirrored left to right": (THIN, lambda soft: soft[:, ::-1], {}),
    "moved by 1 pixel to the right and down": (
        THIN,
        lambda soft: np.roll(soft, (1, 1), (0, 1)),
        {},
    ),
    "moved by 3 pixels": (THIN, lambda soft: np.roll(soft, (3, 3), (0, 1)), {}),
    "moved by 6 pixels": (THIN, lambda soft: np.roll(soft, (6, 6), (0, 1)), {}),
    "resized to multiples of 16 and back after NMS": (
        THIN,
        lambda soft: resized(soft, [16 * (side // 16) for side in soft.shape]),
        {},
    ),
    "computed at half the size and enlarged after NMS": (
        THIN,
        lambda soft: resized(soft, [side // 2 for side in soft.shape]),
        {},
    ),
    "cut at 0.4 and saved with two values": (
        THIN,
        lambda soft: np.where(soft >= 0.4 * 255, 255, 0).astype(np.uint8),
        {},
    ),
    "too dark: values divided by 5": (THIN, lambda soft: soft // 5, {}),
    "overconfident: nearly all values 0 or 1": (THIN, confident, {}),
    "only the strongest edges kept (0.7 and more)": (
        THIN,
        lambda soft: np.where(soft >= 0.7 * 255, soft, 0).astype(np.uint8),
        {},
    ),
}


def text(value):
    return "-" if np.isnan(value) else f"{value:.3f}"


def test_every_row_has_a_case():
    assert [row[0] for row in ROWS] == list(CASES)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::bsdsbench.errors.InputWarning")
@pytest.mark.parametrize("row", ROWS, ids=lambda row: row[0][:20])
def test_a_mistake_costs_what_the_page_says(row, tmp_path):
    maps, change, fields = CASES[row[0]]
    if change:
        for path in maps.iterdir():
            iio.imwrite(tmp_path / path.name, change(iio.imread(path)), compress_level=1)
        maps = tmp_path
    protocol = BSDS.replace(**fields)
    score = bb.evaluate(maps, sample_ground_truth(), protocol, workers=1).boundary_score()
    largest = [np.nanmax(values) for values in (score.curve.precision, score.curve.recall)]
    assert row[1:6] == tuple(map(text, (score.ods.f, score.ap, score.r50, *largest)))
    codes = {finding.code for finding in bb.doctor(maps, sample_ground_truth(), protocol)}
    assert codes == {row[6]} - {"-"}


def test_a_map_of_another_image_is_far_below_the_others(tmp_path):
    maps = shutil.copytree(THIN, tmp_path / "maps")
    shutil.copy(maps / "fruit1.png", maps / "lake1.png")
    run = bb.evaluate(maps, sample_ground_truth(), workers=1)
    f = {name: values["ods"] for name, values in run.image_scores("boundary").items()}
    assert f.pop("lake1") < 0.5 * min(f.values())


def renamed(folder):
    for path in list(folder.iterdir()):
        path.rename(folder / f"{path.stem}_pred.png")


def without(folder):
    (folder / "herd1.png").unlink()


def cut(folder):
    for path in folder.iterdir():
        iio.imwrite(path, iio.imread(path)[:-1, :-1])


def damaged(folder):
    (folder / "town1.png").write_bytes((folder / "town1.png").read_bytes()[:300])


def unchanged(folder):
    """Leave the maps as they are: the call is wrong."""


@pytest.mark.slow
@pytest.mark.process
@pytest.mark.parametrize(
    ("parts", "change", "options"),
    [
        (("no prediction for: fruit1, fruit2", "no ground truth for: fruit1_pred"), renamed, ()),
        (("no prediction for: herd1",), without, ()),
        (("shape (320, 480), expected (321, 481)",), cut, ()),
        (("ends too early",), damaged, ()),
        (
            ("is an unknown set, 16 images, expected bsds500-test",),
            unchanged,
            ("--task", "bsds500-test/boundary"),
        ),
        (("is a colour picture",), unchanged, ("--gt", str(sample_images()))),
    ],
    ids=lambda value: getattr(value, "__name__", None),
)
def test_a_message_is_what_the_page_shows(parts, change, options, tmp_path):
    maps = shutil.copytree(THIN, tmp_path / "maps")
    change(maps)
    gt = () if "--gt" in options else ("--gt", str(sample_ground_truth()))
    done = command("evaluate", str(maps), *gt, *options)
    assert done.returncode == 2
    for part in parts:
        assert part in done.stderr
        assert f"`{part}`" in TEXT


@pytest.mark.slow
@pytest.mark.process
def test_other_rules_are_refused_as_the_page_says(tmp_path):
    for name, tolerance in (("a", 0.0075), ("b", 0.01)):
        protocol = BSDS.replace(max_dist=tolerance)
        bb.evaluate(THIN, sample_ground_truth(), protocol, out=tmp_path / name, workers=1)
    done = command("compare", str(tmp_path / "a"), str(tmp_path / "b"))
    assert done.returncode == 2
    assert "protocols differ in max_dist" in done.stderr
    assert "`protocols differ in max_dist`" in TEXT
