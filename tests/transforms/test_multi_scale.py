"""Multi-scale testing: RCF's rule by hand, and what says it."""

import json
import math

import imageio.v3 as iio
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import bsdsbench as bb
from bsdsbench.errors import DataError
from bsdsbench.protocol.signature import Signature
from bsdsbench.transforms.multi_scale import SCALES, MultiScale
from bsdsbench.transforms.resize import resample
from tests.helpers.runs import call, refused, write_maps


def gray(image):
    return image.mean(axis=2) / 255


def by_hand(values, shape, kernel="bilinear", scale=None):
    """Each new point by its definition: OpenCV's coordinates, weights and repeated border."""
    height, width = values.shape

    def weights(n, m):
        factor = scale or m / n
        for j in range(m):
            x = (j + 0.5) / factor - 0.5
            taps = {}
            for k in range(math.floor(x) - 1, math.floor(x) + 3):
                d, a = abs(x - k), -0.75
                if kernel == "bilinear":
                    w = max(0.0, 1 - d)
                elif d <= 1:
                    w = (a + 2) * d**3 - (a + 3) * d**2 + 1
                else:
                    w = a * d**3 - 5 * a * d**2 + 8 * a * d - 4 * a if d < 2 else 0.0
                at = min(max(k, 0), n - 1)
                taps[at] = taps.get(at, 0.0) + w
            yield taps

    rows, columns = list(weights(height, shape[0])), list(weights(width, shape[1]))
    return np.array(
        [
            [sum(u * v * values[i, j] for i, u in r.items() for j, v in c.items()) for c in columns]
            for r in rows
        ]
    )


@settings(max_examples=40, deadline=None)
@given(
    st.integers(1, 9),
    st.integers(1, 9),
    st.integers(1, 9),
    st.integers(1, 9),
    st.sampled_from(["bilinear", "cubic"]),
    st.sampled_from([None, 0.5, 1.5]),
)
def test_resampling_follows_its_definition(height, width, rows, columns, kernel, scale):
    values = np.random.default_rng(height * 10 + width).random((height, width))
    expected = by_hand(values, (rows, columns), kernel, scale)
    np.testing.assert_allclose(
        resample(values, (rows, columns), kernel, scale), expected, atol=1e-12
    )


@pytest.mark.parametrize("kernel", ["bilinear", "cubic"])
def test_rcf_by_hand(kernel):
    """Resize, call, resize back, mean: of each scale, and of the mirrored picture."""
    picture = np.random.default_rng(1).integers(0, 256, (11, 15, 3), np.uint8)

    def detector(image):
        return np.abs(np.diff(image[..., 0].astype(float), axis=1, prepend=0)) / 255

    found = MultiScale((0.5, 1.0, 1.5), resize=kernel).of(detector)(picture)
    maps = []
    for scale, shape in ((0.5, (6, 8)), (1.0, (11, 15)), (1.5, (16, 22))):
        small = picture.astype(float)
        if scale != 1:
            planes = [by_hand(small[..., c], shape, kernel, scale) for c in range(3)]
            small = np.clip(np.rint(np.stack(planes, axis=2)), 0, 255)
        soft = detector(small)
        maps.append(soft if scale == 1 else by_hand(soft, (11, 15), kernel))
    np.testing.assert_allclose(found, np.clip(np.mean(maps, axis=0), 0, 1), atol=1e-12)

    both = MultiScale((1.0,), flip=True).of(detector)(picture)
    mirrored = detector(picture[:, ::-1])[:, ::-1]
    np.testing.assert_allclose(both, (detector(picture) + mirrored) / 2, atol=1e-15)


def test_sides_are_rounded_as_opencv_does():
    sizes = []

    def detector(image):
        sizes.append(image.shape)
        return np.zeros(image.shape[:2])

    MultiScale((0.5, 1.0, 1.5)).of(detector)(np.zeros((321, 481, 3), np.uint8))
    assert sizes == [(160, 240, 3), (321, 481, 3), (482, 722, 3)]


@pytest.fixture
def pictures(tmp_path):
    images, gt = tmp_path / "images", tmp_path / "gt"
    rng = np.random.default_rng(2)
    write_maps(gt, {k: rng.random((30, 40)) < 0.1 for k in "ab"})
    images.mkdir()
    for name in "ab":
        iio.imwrite(images / f"{name}.png", rng.integers(0, 256, (30, 40, 3), np.uint8))
    return images, gt


@pytest.mark.parametrize("more", [{"scales": 1}, {"scales": "1"}, {"flip": True}])
def test_an_identity_gives_equal_maps(pictures, tmp_path, more):
    """At its own size, and mirrored; a constant picture at every scale."""
    images, gt = pictures
    plain = bb.run(gray, images, gt=gt, out=tmp_path / "plain", workers=1)
    other = bb.run(gray, images, gt=gt, out=tmp_path / "other", workers=1, **more)
    for name in "ab":
        one, two = (iio.imread(run.maps / f"{name}.png") for run in (plain, other))
        np.testing.assert_array_equal(one, two)
    flat = np.full((21, 33, 3), 77, np.uint8)
    for resize in ("bilinear", "cubic"):
        found = MultiScale(SCALES["edter"], True, resize).of(gray)(flat)
        np.testing.assert_allclose(found, 77 / 255, atol=1e-15)


def test_run_json_signature_and_tables_say_it(pictures, tmp_path):
    images, gt = pictures
    out = tmp_path / "out"
    run = bb.run(gray, images, gt=gt, out=out, workers=1, scales=[0.5, 1, 1.5]).evaluation
    assert json.loads((out / "maps/run.json").read_text("utf-8"))["scales"] == ".5,1,1.5"
    assert "|ms:.5,1,1.5|" in run.signature_line
    assert Signature.parse(run.signature_line).ms == ".5,1,1.5"
    words = dict(run.signature.decode())
    assert "at these scales of the picture: .5,1,1.5" in words["ms:.5,1,1.5"]
    notes = [str(note) for table in run.tables() for note in table.notes]
    assert any("mean over the scales .5,1,1.5" in note for note in notes)
    again = bb.Evaluation.load(out)
    assert again.signature_line == run.signature_line
    plain = bb.run(gray, images, gt=gt, out=tmp_path / "plain", workers=1).evaluation
    assert "|ms:" not in plain.signature_line
    assert not {"scales"} & json.loads((tmp_path / "plain/maps/run.json").read_text()).keys()
    (difference,) = bb.comparability(run, plain)
    assert (difference.field, difference.severity.value) == ("ms", "said")
    words = "expected maps of the same scales to resume"
    refused(words, bb.run, gray, images, out=out, resume=True, scales="uaed")
    kept = bb.run(gray, images, out=out, resume=True, scales="rcf")
    assert kept.kept == 2


@pytest.mark.parametrize("name", sorted(SCALES))
def test_the_command_line_knows_the_scales_of_methods(pictures, tmp_path, name):
    images, gt = pictures
    how = ("--workers", "1", "--executor", "thread", "--quiet", "--thresholds", "5")
    call(
        "run", "sobel", images, "--gt", gt, "-o", tmp_path / "o", "--scales", name, "--flip",
        "--resize", "cubic", *how,
    )  # fmt: skip
    run = bb.Evaluation.load(tmp_path / "o")
    numbers = {"rcf": ".5,1,1.5", "pidinet": ".5,1,1.5", "uaed": ".6,1,1.6"}
    numbers["edter"] = ".5,.75,1,1.25,1.5,1.75"
    assert run.signature.ms == f"{numbers[name]},flip,cubic"


def test_faults_name_what_is_wrong(pictures, tmp_path):
    images, _ = pictures
    for scales in ("hed", "1,1", "0,1", "-1", [], ["x"], "9"):
        refused("scales .*such as 0.5,1,1.5, or one of rcf", bb.run, gray, images,
                out=tmp_path / "x", scales=scales)  # fmt: skip
    refused("resize", bb.run, gray, images, out=tmp_path / "x", scales="rcf", resize="area")
    for dtype in (np.int64, np.uint32):
        labels = MultiScale((0.5, 1.0)).of(
            lambda image, dtype=dtype: np.zeros(image.shape[:2], dtype)
        )
        with pytest.raises(DataError, match="returned labels, expected soft maps"):
            labels(np.zeros((9, 9, 3), np.uint8))
    short = MultiScale((0.5, 1.0)).of(lambda image: np.zeros((3, 3)))
    with pytest.raises(DataError, match=r"returned shape \(3, 3\) for a picture of \(4, 4\)"):
        short(np.zeros((9, 9, 3), np.uint8))


def test_maps_on_disk_are_averaged_before_nms(tmp_path):
    rng = np.random.default_rng(4)
    maps = rng.integers(0, 256, (3, 20, 26), np.uint8)
    folders = [write_maps(tmp_path / f"s{k}", {"a": soft}) for k, soft in enumerate(maps)]
    call("nms", "--average", *folders, tmp_path / "out", "--quiet")
    thin = bb.nms((maps / 255).mean(axis=0))
    expected = np.floor(thin.astype(float) * 255 + 0.5).astype(np.uint8)
    np.testing.assert_array_equal(iio.imread(tmp_path / "out" / "a.png"), expected)
    refused("s2: holds maps, expected a new folder", call, "nms", "--average", *folders)
    write_maps(tmp_path / "other", {"b": maps[0]})
    words = r"other: no map of a"
    refused(words, call, "nms", "--average", folders[0], tmp_path / "other", tmp_path / "x")
    write_maps(tmp_path / "small", {"a": maps[0][:9]})
    words = "expected maps of one size to average"
    refused(words, call, "nms", "--average", folders[0], tmp_path / "small", tmp_path / "x")
    with pytest.raises(Exception, match="give two or more folders of maps, and OUT"):
        call("nms", "--average", folders[0], tmp_path / "x")
    with pytest.raises(Exception, match="give one folder of maps, and OUT"):
        call("nms", *folders)
