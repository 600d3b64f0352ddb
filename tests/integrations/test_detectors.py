"""bsdsbench run: any function on every picture, its time, its scores."""

import json
import re

import imageio.v3 as iio
import numpy as np
import pytest

import bsdsbench as bb
from bsdsbench.integrations.baselines import BASELINES, baseline
from bsdsbench.integrations.detectors import encoded, load_function
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
    for text in (found.summary(), found._repr_html_()):
        assert "Pictures" in text
        assert f"{found.evaluation.boundary_score().ods.f:.3f}" in text
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
def test_a_picture_it_fails_on_is_listed_and_the_rest_goes_on(three, tmp_path):
    images, gt = three
    iio.imwrite(images / "herd1.png", np.full((60, 90, 3), 7, np.uint8))

    def detector(image):
        if image.max() == 7:
            raise ValueError("cannot\nsee")
        return brightness(image)

    found = bb.run(detector, images, gt=gt, out=tmp_path / "out", workers=1)
    assert found.failed == {"herd1": "ValueError: cannot\\nsee"}
    assert [r.image_id for r in found.evaluation.records] == ["fruit1", "leaves1"]
    assert found.evaluation.failed["herd1"].startswith("ValueError")


@pytest.mark.slow
def test_if_all_fail_every_reason_is_listed(three, tmp_path):
    with pytest.raises(bb.DataError, match=r"fruit1: .*\nherd1: .*\nleaves1: .*shape \(60, 90"):
        bb.run(lambda image: image, three[0], out=tmp_path / "out")


@pytest.mark.parametrize(
    ("result", "fault"),
    [
        (np.zeros((3, 4)), "shape"),
        (np.full((4, 5), 1.5), "outside"),
        (np.full((4, 5), np.nan), "outside"),
        (np.zeros((4, 5), complex), "dtype"),
        ([], "empty list"),
        ([np.zeros((4, 5))], "integer labels"),
        (None, "shape"),
    ],
)
def test_wrong_results_are_named(result, fault):
    refused(fault, encoded, result, (4, 5))


def test_labels_and_sweeps_are_read_back_as_they_were(tmp_path):
    labels = np.arange(20).reshape(4, 5) // 7 - 1
    kind, suffix, data = encoded(labels, (4, 5))
    (tmp_path / "a.png").write_bytes(data)
    assert (kind, suffix) == ("labels", ".png")
    read = bb.load_prediction(tmp_path / "a.png", kind="labels")
    assert np.array_equal(read.segs[0], labels + 2)
    kind, suffix, data = encoded([labels, labels * 0], (4, 5))
    (tmp_path / "b.mat").write_bytes(data)
    assert (kind, suffix) == ("segs", ".mat")
    first, second = bb.load_prediction(tmp_path / "b.mat").segs
    assert np.array_equal(first, labels + 2)
    assert (second == 1).all()


@pytest.mark.parametrize(
    ("spec", "fault"),
    [
        ("nothing", "MODULE:FUNCTION"),
        ("no_such_module_xyz:f", "cannot be imported"),
        ("json:nothing", "has no function"),
        ("json:__name__", "has no function"),
    ],
)
def test_a_wrong_function_is_one_line(spec, fault):
    refused(fault, load_function, spec)


@pytest.mark.parametrize("name", BASELINES)
def test_every_baseline_finds_the_edge_of_a_square(name):
    image = np.full((60, 90, 3), 60, np.uint8)
    image[20:40, 30:60] = (200, 180, 40)
    result = baseline(name)(image)
    if isinstance(result, list):
        assert all(r.shape == (60, 90) for r in result)
        edge = bb.seg2bdry(np.asarray(result[-1]))
    else:
        assert result.min() >= 0
        assert result.max() <= 1
        edge = result > 0.5 * result.max()
    near = np.zeros((60, 90), bool)
    near[17:43, 27:63] = True
    near[23:37, 33:57] = False
    assert edge[near].sum() > 60
    if name in ("canny", "sobel", "scharr", "structure-tensor"):  # the others also divide the rest
        assert not edge[~near].any()


def test_a_detector_that_is_not_built_in_is_one_line(tmp_path):
    expected = r"detector 'cany': expected one of canny, .* or MODULE:FUNCTION .*mean 'canny'\?"
    refused(expected, bb.run, "cany", tmp_path, out=tmp_path / "out")
    with pytest.raises(bb.DataError, match="on_error 'stop': expected one of fail, skip"):
        bb.run("canny", tmp_path, out=tmp_path / "out", on_error="stop")


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
    assert joined.provenance["images"] == alone.provenance["images"]
    assert joined.provenance["detector"] == {"taken_over": 0}
    refused("shards 2/2 are not there", bb.merge, parts[:1])


def test_some_pictures_with_overlays_and_a_stop_at_failures(three, tmp_path):
    images, gt = three
    ids = tmp_path / "ids.txt"
    ids.write_text("\n".join(IDS[:2]), "utf-8")
    out = tmp_path / "out"
    how = ["--split-file", ids, "--overlays", "--quiet", "--workers", "1", "-o", out]
    call("run", "structure-tensor", images, "--gt", gt, *how)
    run = bb.Evaluation.load(out)
    assert (run.name, [r.image_id for r in run.records]) == ("structure-tensor", sorted(IDS[:2]))
    drawn = {p.stem.partition("_")[0] for p in (out / "overlays").glob("*.png")}
    assert drawn == set(IDS[:2])
    ids.write_text("nowhere", "utf-8")
    with pytest.raises(bb.DataError, match="no picture for: nowhere"):
        bb.run("canny", images, out=tmp_path / "none", split_file=ids)
    (images / f"{IDS[0]}.png").write_bytes(b"no picture")
    refused(IDS[0], bb.run, "canny", images, gt=gt, out=tmp_path / "stopped", on_error="fail")
    assert not (tmp_path / "stopped" / "result.json").exists()


# ---- whose maps are in the folder ----------------------------------------------------------------


def dim(image):
    return image.mean(axis=2) / 510


def maps_of(folder):
    return {path.name: path.read_bytes() for path in sorted(folder.glob("*.png"))}


@pytest.mark.parametrize("of", ["the same", "another", "nobody"])
def test_a_folder_that_holds_maps_is_refused(three, tmp_path, of):
    """Nothing is taken over or overwritten without the user's word."""
    maps = bb.run(brightness, three[0], out=tmp_path, tag="v1").maps
    if of == "nobody":
        (maps / "run.json").unlink()
    before = maps_of(maps)
    words = "holds 3 maps" if of == "nobody" else r"3 maps of brightness \(.*v1; 2\d\d\d-.*resume"
    refused(words, bb.run, dim if of == "another" else brightness, three[0], out=tmp_path)
    for word in ("resume", "fresh"):
        if of == "nobody":
            refused("did not write", bb.run, brightness, three[0], out=tmp_path, **{word: True})
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
    told = json.loads((again.maps / "run.json").read_text("utf-8"))
    assert (sorted(told["milliseconds"]), told["name"]) == (sorted(IDS), "detect")
    bb.run(detect, images, **how, fresh=True)
    assert len(called) == 6
    refused("one of them", bb.run, detect, images, **how, fresh=True, resume=True)
    refused("this function", bb.run, dim, images, **how, resume=True)
    refused("this tag", bb.run, detect, images, **how, resume=True, tag="v2")
    assert bb.run(dim, images, **how, fresh=True).evaluation.name == "dim"


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


@pytest.mark.parametrize(
    "wrong",
    [
        {"metrics": "edges"},
        {"gt": "images"},
        {"metrics": "saliency", "protocol": "bsds500", "pred_kind": "labels"},
    ],
)
def test_arguments_are_checked_before_the_detector_is_called(three, tmp_path, wrong):
    def detect(image):
        raise AssertionError("called")

    if wrong.get("gt") == "images":
        wrong = {"gt": tmp_path / "other"}
        (tmp_path / "other").mkdir()
        iio.imwrite(tmp_path / "other" / "x.png", np.zeros((3, 3), np.uint8))
    with pytest.raises((bb.DataError, TypeError)):
        bb.run(detect, three[0], **{"gt": three[1], "out": tmp_path / "out", **wrong})
    assert not (tmp_path / "out" / "maps").exists()


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


def test_shards_of_two_detectors_do_not_join(three, tmp_path):
    how = {"gt": three[1], "workers": 1, "name": "one"}
    first = bb.run(brightness, three[0], out=tmp_path / "1", shard=(1, 2), tag="a", **how)
    second = bb.run(brightness, three[0], out=tmp_path / "2", shard=(2, 2), tag="b", **how)
    refused("another detector", bb.merge, [first.evaluation, second.evaluation])
