"""bsdsbench run: any function on every picture, its time, its scores."""

import json
import re
import sys

import imageio.v3 as iio
import numpy as np
import pytest
from skimage import feature
from skimage.color import rgb2gray

import bsdsbench as bb
from bsdsbench.detectors.baselines import BASELINES, baseline
from bsdsbench.detectors.detector_runs import _load_function
from bsdsbench.detectors.map_files import encode_map
from bsdsbench.errors import InputWarning
from bsdsbench.loaders.sample import sample_images
from tests.helpers.runs import call, command, refused

IDS = ("fruit1", "herd1", "leaves1")


@pytest.fixture
def three(tmp_path):
    """Three of the sample's pictures, cut to 60 x 90 and as PNG; and their ground truth."""
    images, gt = tmp_path / "images", tmp_path / "gt"
    images.mkdir()
    gt.mkdir()
    rng = np.random.default_rng(5)
    for image_id in IDS:
        picture = iio.imread(sample_images() / f"{image_id}.jpg")[:60, :90]
        iio.imwrite(images / f"{image_id}.png", picture)
        iio.imwrite(gt / f"{image_id}.png", (rng.random((60, 90)) < 0.1).astype(np.uint8) * 255)
    return images, gt


def brightness(image):
    return image.mean(axis=2) / 255


@pytest.mark.slow
def test_maps_keep_16_bits_and_give_the_scores_of_evaluate(three, tmp_path):
    images, gt = three
    found = bb.run(brightness, images, gt=gt, out=tmp_path / "out", workers=1)
    assert sorted(found.milliseconds) == sorted(IDS)
    assert found.ms_per_image > 0
    for image_id in IDS:
        kept = iio.imread(found.maps / f"{image_id}.png")
        assert kept.dtype == np.uint16
        wanted = np.rint(brightness(iio.imread(images / f"{image_id}.png")) * 65535)
        assert np.array_equal(kept, wanted)
    alone = bb.evaluate(found.maps, gt, workers=1)
    assert found.evaluation.equals(alone)
    assert re.fullmatch(r"<DetectorRun 'brightness', 3 pictures, .* boundary .*>", repr(found))
    assert "ms per image" in found.summary()
    stored = json.loads((tmp_path / "out/result.json").read_text("utf-8"))
    timing = stored["provenance"]["detector"]
    assert timing["ms_per_image"] == pytest.approx(found.ms_per_image, abs=1e-3)
    assert "cores" in timing["machine"]


@pytest.mark.slow
def test_warm_up_is_called_and_not_counted(three, tmp_path):
    called = []

    def detector(image):
        called.append(image.shape)
        image[:] = 0  # writing into the argument harms nobody
        return np.zeros(image.shape[:2])

    found = bb.run(detector, three[0], out=tmp_path / "out")
    assert called == [(60, 90, 3)] * 4
    assert len(found.milliseconds) == 3
    assert found.evaluation is None


@pytest.mark.slow
def test_pictures_it_fails_on_are_listed(three, tmp_path):
    images, gt = three
    iio.imwrite(images / "herd1.png", np.full((60, 90, 3), 7, np.uint8))

    def detector(image):
        if image.max() == 7:
            raise ValueError("cannot\nsee")
        return brightness(image)

    how = {"gt": gt, "workers": 1, "out": tmp_path / "out"}
    found = bb.run(detector, images, **how)
    assert found.failed == {"herd1": "ValueError: cannot\\nsee"}
    assert [r.image_id for r in found.evaluation.records] == ["fruit1", "leaves1"]
    assert found.evaluation.failed["herd1"].startswith("ValueError")
    refused("herd1: ", bb.run, detector, images, **how, fresh=True, on_error="fail")
    every = r"fruit1: .*\nherd1: .*\nleaves1: .*shape \(60, 90"
    refused(every, bb.run, lambda image: image, images, out=tmp_path / "none")


@pytest.mark.slow
def test_some_pictures_and_arguments_that_are_wrong(three, tmp_path):
    images, gt = three
    ids, called = tmp_path / "ids.txt", []
    ids.write_text("\n".join(IDS[:2]), "utf-8")
    how = {"gt": gt, "workers": 1, "out": tmp_path / "out"}
    run = bb.run("structure-tensor", images, split_file=ids, **how).evaluation
    assert (run.name, list(run.image_ids)) == ("structure-tensor", sorted(IDS[:2]))
    ids.write_text("nowhere", "utf-8")
    (gt / "fruit1.png").unlink()
    for words, wrong in (("no picture for: nowhere", {"split_file": ids}), ("fruit1", {})):
        refused(words, bb.run, called.append, images, **{**how, "out": tmp_path / "no"}, **wrong)
    refused("nowhere: does not exist", bb.run, called.append, tmp_path / "nowhere", **how)
    assert called == []  # the detector


def test_ids_of_a_split_that_look_like_two_columns(three, tmp_path):
    images, _ = three
    (images / "fruit1.png").rename(images / "a a.png")
    (tmp_path / "ids.txt").write_text("a a")
    bb.run(brightness, images, split_file=tmp_path / "ids.txt", out=tmp_path / "out")
    assert [path.stem for path in (tmp_path / "out").rglob("a*.png")] == ["a a"]


@pytest.mark.parametrize("place", [(), ("deep", "out")])
def test_results_in_the_folder_of_pictures_are_refused(three, place):
    """There, the next run would take the maps for pictures."""
    images, gt = three
    before = sorted(images.rglob("*"))
    for truth in (None, gt):
        words = r"is inside images \(.*, expected a folder for the results outside it"
        refused(words, bb.run, "sobel", images, gt=truth, out=images.joinpath(*place))
    assert sorted(images.rglob("*")) == before


@pytest.mark.parametrize(
    ("result", "fault"),
    [
        (np.zeros((3, 4)), "shape"),
        (np.full((4, 5), 1.5), r"values from 1.5 to 1.5, expected floats in \[0, 1\]"),
        (np.full((4, 5), np.nan), "20 values are NaN"),
        (np.zeros((4, 5), complex), "dtype"),
        ([], "empty list"),
        ([np.zeros((4, 5))], "integer labels"),
        (None, r"returned None, expected an array \(4, 5\) of numbers"),
        ({"edges": np.zeros((4, 5))}, "returned of type dict, expected an array"),
        (np.full((4, 5), None), "returned an array of object and shape"),
    ],
)
def test_wrong_results_are_named(result, fault):
    refused(fault, encode_map, result, (4, 5))


def test_integers_that_change_at_most_pixels_are_neither_surely_soft_nor_labels():
    lines = np.zeros((30, 40), np.int64)
    lines[10:12] = 1
    slope = np.add.outer(np.arange(30), np.arange(40))
    regions = slope // 20
    for doubtful in (lines, 255 * lines, slope, slope.astype(np.int32)):
        words = r"changes at most pixels, expected a soft map .* or labels \(return \[labels\]"
        refused(words, encode_map, doubtful, (30, 40))
        assert encode_map([doubtful], (30, 40)).suffix == ".mat"
        assert encode_map(doubtful.astype(np.uint8), (30, 40)).kind == "soft"
    rows, columns = np.indices((30, 40))
    superpixels = rows // 5 * 100 + columns // 5
    for labels in (regions, regions > 1, lines * 0, superpixels):
        assert encode_map(labels.astype(int), (30, 40)).kind == "labels"


def test_half_precision_is_stored_as_its_values_in_float64():
    """65535 is beyond float16: computed in it, every strong edge would become 0."""
    half = np.linspace(0, 1, 20, dtype=np.float16).reshape(4, 5)
    assert encode_map(half, (4, 5)) == encode_map(half.astype(np.float64), (4, 5))
    for as_network in (half[None], half[..., None], half[None, None] * (1 + 1e-9)):
        assert encode_map(as_network, (4, 5)) == encode_map(half, (4, 5))
    one_row = half.reshape(1, 20)
    assert encode_map(one_row[None], (1, 20)) == encode_map(one_row, (1, 20))
    stored = iio.imread(encode_map(half, (4, 5)).content)
    assert np.array_equal(stored, np.rint(half.astype(np.float64) * 65535))


@pytest.mark.parametrize("function", [None, 5, np])
def test_what_is_no_function_is_refused_before_a_picture_is_read(tmp_path, function):
    words = "function: .*, expected a function, MODULE:FUNCTION or the name of a detector"
    refused(words, bb.run, function, sample_images(), out=tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_labels_and_sweeps_are_read_back_as_they_were(tmp_path):
    labels = (np.arange(20).reshape(4, 5) // 7 - 1).repeat(6, 0).repeat(6, 1)
    for result, expected in (
        (labels, ("labels", ".png")),
        ([labels, labels * 0], ("soft", ".mat")),
    ):
        *about, data = encode_map(result, (24, 30))
        assert tuple(about) == expected
        path = tmp_path / f"a{about[1]}"
        path.write_bytes(data)
        segs = bb.load_prediction(path, kind=about[0]).segs
        assert np.array_equal(segs[0], labels + 2)
        assert all((more == 1).all() for more in segs[1:])


@pytest.mark.slow
def test_canny_is_the_mean_of_scikit_images_detector_at_its_thresholds():
    """On two pictures of the sample, noise, a plain image and one without an inside."""
    rng = np.random.default_rng(0)
    photos = [iio.imread(path) for path in sorted(sample_images().iterdir())[:2]]
    noise = [rng.integers(0, 256, (*shape, 3), np.uint8) for shape in ((31, 40), (1, 7))]
    for image in (*photos, *noise, np.full((9, 8, 3), 7, np.uint8)):
        gray, highs = rgb2gray(image), np.geomspace(0.03, 0.6, 24)
        maps = [feature.canny(gray, 2.0, 0.4 * high, high, mode="constant") for high in highs]
        assert np.array_equal(baseline("canny")(image), np.mean(maps, axis=0))


@pytest.mark.parametrize("name", BASELINES)
def test_every_baseline_finds_the_edge_of_a_square(name):
    image = np.full((60, 90, 3), 60, np.uint8)
    image[20:40, 30:60] = (200, 180, 40)
    result = baseline(name)(image)
    segments = isinstance(result, list)
    edge = bb.seg2bdry(np.asarray(result[-1])) if segments else result > 0.5 * result.max()
    near = np.zeros((60, 90), bool)
    near[17:43, 27:63] = True
    near[23:37, 33:57] = False
    assert edge[near].sum() > 60
    if not (segments or name.endswith("raw")):  # which also divide the rest
        assert not edge[~near].any()


@pytest.mark.parametrize(
    ("spec", "fault"),
    [
        ("cany", r"'cany': expected one of canny, .* or MODULE:FUNCTION .*mean 'canny'\?"),
        ("no_such_module_xyz:f", "cannot be imported"),
        ("json:__name__", "has no function"),
    ],
)
def test_a_wrong_function_is_one_line(spec, fault):
    refused(fault, _load_function, spec)


def test_shards_of_a_detector_join_to_the_undivided_run(three, tmp_path):
    images, gt = three
    words = ["run", "sobel", images, "--gt", gt, "--quiet", "--workers", 1]
    whole = tmp_path / "whole"
    call(*words, "-o", whole)
    for k in (1, 2):
        call(*words, "-o", tmp_path / f"part{k}", "--shard", f"{k}/2")
        assert len(list((tmp_path / f"part{k}" / "maps").glob("*.png"))) == 3 - k
    parts = [bb.Evaluation.load(tmp_path / f"part{k}") for k in (1, 2)]
    joined, alone = bb.merge(parts), bb.Evaluation.load(whole)
    assert joined.equals(alone)
    assert joined.provenance.detector == {"taken_over": 0}
    refused("shards 1/2, expected 1/2, 2/2", bb.merge, parts[:1])
    call("run", "canny", *words[2:], "-o", tmp_path / "other", "--shard", "2/2", "--name", "sobel")
    other = bb.Evaluation.load(tmp_path / "other")
    refused("its detector differs", bb.merge, [parts[0], other])


# ---- whose maps are in the folder ----------------------------------------------------------------


def dim(image):
    return image.mean(axis=2) / 510


def maps_of(folder):
    return {path.name: path.read_bytes() for path in sorted(folder.glob("*.png"))}


def test_a_folder_that_holds_maps_is_refused(three, tmp_path):
    """Nothing is taken over or overwritten without the user's word."""
    maps = bb.run(brightness, three[0], out=tmp_path, tag="v1").maps
    before = maps_of(maps)
    for detect in (brightness, dim):
        words = r"3 maps of brightness \(.*v1; 2\d\d\d-.*resume"
        refused(words, bb.run, detect, three[0], out=tmp_path)
    (maps / "run.json").unlink()
    for word in ({}, {"resume": True}, {"fresh": True}):
        refused("3 maps that bsdsbench did not", bb.run, brightness, three[0], out=tmp_path, **word)
    assert maps_of(maps) == before


def test_resume_keeps_maps_and_fresh_makes_them_again(three, tmp_path):
    images, gt = three
    called = []

    def detect(image):
        called.append(1)
        return brightness(image)

    how = {"gt": gt, "workers": 1, "out": tmp_path / "out"}
    first = bb.run(detect, images, **how)
    (first.maps / f"{IDS[1]}.png").unlink()
    called.clear()
    again = bb.run(detect, images, **how, resume=True)
    assert (again.kept, len(called)) == (2, 2)  # one picture, and the warm-up
    assert again.evaluation.scores() == first.evaluation.scores()
    assert "maps:2 taken over" in str(again.evaluation.signature)
    bb.run(detect, images, **how, fresh=True)
    assert len(called) == 6
    refused("one of them", bb.run, detect, images, **how, fresh=True, resume=True)
    refused("same function to resume", bb.run, dim, images, **how, resume=True)
    refused("same tag to resume", bb.run, detect, images, **how, resume=True, tag="v2")


def test_an_interrupted_run_says_what_is_kept_and_goes_on(three, tmp_path):
    seen = []

    def detect(image):
        seen.append(1)
        if len(seen) == 4:
            raise KeyboardInterrupt
        return brightness(image)

    with pytest.raises(KeyboardInterrupt, match=r"2 maps are kept in .*resume=True goes on"):
        bb.run(detect, three[0], out=tmp_path)
    assert bb.run(detect, three[0], out=tmp_path, resume=True).kept == 2


def test_maps_of_two_kinds_are_refused(three, tmp_path):
    kinds = iter([0.5, 0.5, 3, 3])

    def detect(image):
        return np.full(image.shape[:2], next(kinds))

    refused("soft maps and labels", bb.run, detect, three[0], out=tmp_path)


def test_a_detector_that_changes_folder_and_prints_does_no_harm(three, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "loud_detector.py").write_text(
        "import os\nprint('loaded')\n"
        "def detect(image):\n    os.chdir('/')\n    print('called')\n"
        "    return image[..., 0] / 255\n"
    )
    words = ("run", "loud_detector:detect", "images", "--gt", "gt", "-o", "out", "--quiet")
    found = command(*words, "--workers", 1, "--format", "json")
    assert json.loads(found.stdout)["n_images"] == 3, found.stderr
    assert (tmp_path / "out" / "result.json").is_file()


def write_detector(folder, value, helper="value"):
    folder.mkdir(exist_ok=True)
    (folder / f"{helper}.py").write_text(f"VALUE = {value}\n")
    lines = ["import numpy as np", "def f(image):", f"    from {helper} import VALUE"]
    lines += ["    return np.full(image.shape[:2], VALUE)"]
    (folder / "my_detector.py").write_text("\n".join(lines))


def strongest(run):
    return round(float(iio.imread(next(run.maps.glob("*.png"))).max()) / 65535, 2)


@pytest.mark.parametrize("package", [False, True])
def test_a_detector_is_that_of_the_folder_and_of_the_file_as_it_is(
    package, three, tmp_path, monkeypatch
):
    images, _ = three
    path, modules = list(sys.path), set(sys.modules)
    values, files = [], []
    for name, value in (("a", 1.0), ("b", 0.2), ("b", 0.4), ("a", 0.6)):
        folder = tmp_path / name
        folder.mkdir(exist_ok=True)
        monkeypatch.chdir(folder)
        write_detector(folder / "pack" if package else folder, value, "value")
        spec = "my_detector:f"
        if package:
            spec, module = f"pack.{spec}", folder / "pack/my_detector.py"
            module.write_text(module.read_text().replace("from value", "from pack.value"))
        values.append(strongest(bb.run(spec, images, out="out", fresh=True)))
        files.append(json.loads((folder / "out/maps/run.json").read_text())["file"])
    assert values == [1.0, 0.2, 0.4, 0.6]
    assert {file["name"] for file in files} == {"my_detector.py"}
    # The first run of a process also loads modules of installed packages
    own = {"my_detector", "value", "pack", "pack.my_detector", "pack.value"}
    assert (sys.path, (set(sys.modules) - modules) & own) == (path, set())


def test_resume_tells_of_an_edited_file(three, tmp_path, monkeypatch):
    images, _ = three
    monkeypatch.chdir(tmp_path)
    write_detector(tmp_path, 1.0)
    bb.run("my_detector:f", images, out="out")
    (tmp_path / "my_detector.py").write_text("def f(image): return image[..., 0] > 9\n")
    with pytest.warns(InputWarning, match="my_detector.py has changed .*fresh=True") as caught:
        assert bb.run("my_detector:f", images, out="out", resume=True).kept == 3
    assert caught[0].filename == __file__
