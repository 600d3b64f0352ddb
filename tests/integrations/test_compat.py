"""Each compat function against the published tables of its original, on the official self-test."""

import math

import imageio.v3 as iio
import numpy as np
import pytest
from click.testing import CliRunner
from scipy.io import savemat

import bsdsbench as bb
from bsdsbench.integrations import compat
from tests.helpers.runs import refused

NAMES = ("2018", "3063", "5096", "6046", "8068")
ONE = {"workers": 1}
REGION_TABLES = (
    *("eval_cover.txt", "eval_cover_th.txt", "eval_cover_img.txt"),
    *("eval_RI_VOI.txt", "eval_RI_VOI_thr.txt"),
)


def table(folder, name):
    return np.loadtxt(folder / name, ndmin=2)


def close(ours, official, atol=0.001):
    """The official solver is random: scores within 0.001, one image's within 0.0015."""
    np.testing.assert_allclose(ours, official, atol=atol, rtol=0)


def close_tables(ours, official):
    for name in ("eval_bdry.txt", "eval_bdry_thr.txt", "eval_bdry_img.txt"):
        atol = 0.0015 if name == "eval_bdry_img.txt" else 0.001
        close(table(ours, name), table(official, name), atol)


@pytest.fixture(scope="module")
def maps(bsds500_bench):
    """Soft maps and annotators of the five images."""
    soft = {n: iio.imread(bsds500_bench / "png" / f"{n}.png") / 255 for n in NAMES}
    read = {n: bb.load_ground_truth(bsds500_bench / "groundTruth" / f"{n}.mat") for n in NAMES}
    return soft, {n: list(gt.boundaries) for n, gt in read.items()}


@pytest.mark.parametrize(
    ("test", "kind"), [("test_1", "ucm2"), ("test_2", "png"), ("test_3", "segs")]
)
def test_boundary_bench(test, kind, bsds500_bench, tmp_path):
    folders = (bsds500_bench / name for name in ("images", "groundTruth", kind))
    compat.boundaryBench(*folders, tmp_path / "out", 5, **ONE)
    close_tables(tmp_path / "out", bsds500_bench / test)
    written = sorted(path.name for path in (tmp_path / "out").glob("*_ev1.txt"))
    assert written == [f"{n}_ev1.txt" for n in NAMES]


@pytest.mark.parametrize(("test", "kind"), [("test_1", "ucm2"), ("test_5", "segs")])
def test_region_bench(test, kind, bsds500_bench, tmp_path):
    folders = (bsds500_bench / name for name in ("images", "groundTruth", kind))
    compat.regionBench(*folders, tmp_path, 5, **ONE)
    for name in REGION_TABLES:
        ours, official = table(tmp_path, name), table(bsds500_bench / test, name)
        np.testing.assert_allclose(ours, official, rtol=1e-5, atol=0)
    assert not (tmp_path / "eval_bdry.txt").exists()


@pytest.mark.parametrize("test", ["test_1", "test_4", "test_5"])
def test_strict_region_tables_agree_in_every_printed_digit(test, bsds500_bench, tmp_path):
    kind = "ucm2" if test == "test_1" else "segs"
    folders = (bsds500_bench / name for name in ("images", "groundTruth", kind))
    compat.regionBench(*folders, tmp_path, 5, strict=True, **ONE)
    for name in REGION_TABLES:
        assert (tmp_path / name).read_text().split() == (
            bsds500_bench / test / name
        ).read_text().split()


def test_all_bench_writes_both(bsds500_bench, tmp_path):
    folders = (bsds500_bench / name for name in ("images", "groundTruth", "segs"))
    compat.allBench(*folders, outDir=tmp_path, strict=True, **ONE)
    close(table(tmp_path, "eval_bdry.txt"), table(bsds500_bench / "test_4", "eval_bdry.txt"))
    official = table(bsds500_bench / "test_4", "eval_RI_VOI.txt")
    np.testing.assert_allclose(table(tmp_path, "eval_RI_VOI.txt"), official, rtol=1e-5)


def test_only_images_with_a_picture_are_evaluated(bsds500_bench, tmp_path):
    (tmp_path / "images").mkdir()
    (tmp_path / "images" / "3063.jpg").write_bytes(b"")
    folders = (bsds500_bench / "groundTruth", bsds500_bench / "png", tmp_path / "out")
    run = compat.boundaryBench(tmp_path / "images", *folders, 5, **ONE)
    assert [r.image_id for r in run.records] == ["3063"]
    refused("no pictures", compat.boundaryBench, tmp_path / "out", *folders, 5, **ONE)


@pytest.fixture
def results(bsds500_bench, tmp_path):
    """The folder of results beside which RESDIR-eval may be written."""
    folder = tmp_path / "png"
    folder.mkdir()
    for path in (bsds500_bench / "png").iterdir():
        (folder / path.name).write_bytes(path.read_bytes())
    return folder


def test_edges_eval_dir(results, bsds500_bench):
    found = compat.edgesEvalDir(results, bsds500_bench / "groundTruth", thrs=5, **ONE)
    official = table(bsds500_bench / "test_2", "eval_bdry.txt")[0]
    close(found[:8], official[[3, 2, 1, 0, 6, 5, 4, 7]])
    out = results.with_name("png-eval")
    close_tables(out, bsds500_bench / "test_2")
    curve = table(out, "eval_bdry_thr.txt")
    assert found[8] == pytest.approx(np.interp(0.5, curve[:, 2], curve[:, 1]), abs=1e-5)


def test_edges_eval_dir_strict(results, bsds500_bench):
    folders = (results, bsds500_bench / "groundTruth")
    first = compat.edgesEvalDir(*folders, thrs=[0.2, 0.5, 0.999, 1.0], strict=True, **ONE)
    out = results.with_name("png-eval")
    recall = table(out, "eval_bdry_thr.txt")[:, 1]
    assert (np.diff(recall) < 0).all()
    assert recall.size < 4  # the two highest thresholds have no pixel: one recall of 0 is left
    again = compat.edgesEvalDir(*folders, strict=True, **ONE)  # stored results, also for 99
    assert again == pytest.approx(first, abs=1e-5)
    anew = compat.edgesEvalDir(*folders, thrs=5, cleanup=True, **ONE)
    assert anew[0] != first[0]
    assert not list(out.glob("*_ev1.txt"))
    assert len(list(results.iterdir())) == 5


def test_r50_is_nan_only_where_strict(tmp_path):
    (tmp_path / "res").mkdir()
    (tmp_path / "gt").mkdir()
    soft = np.zeros((40, 60), np.uint8)
    soft[::10] = 200  # four lines, one of them true
    truth = np.zeros((40, 60), np.uint8)
    truth[10] = 255
    iio.imwrite(tmp_path / "res" / "a.png", soft)
    iio.imwrite(tmp_path / "gt" / "a.png", truth)
    folders = (tmp_path / "res", tmp_path / "gt")
    assert compat.edgesEvalDir(*folders, thrs=3, **ONE)[8] == 0
    for path in (tmp_path / "res-eval").iterdir():
        path.unlink()
    assert math.isnan(compat.edgesEvalDir(*folders, thrs=3, strict=True, **ONE)[8])


def test_edges_eval_img(maps, bsds500_bench, tmp_path):
    soft, gts = maps
    total = 0
    for n in NAMES:
        thrs, *counts, picture = compat.edgesEvalImg(soft[n], gts[n], thrs=5)
        total = total + np.array(counts)
        assert picture is None
    official = table(bsds500_bench / "test_2", "eval_bdry_thr.txt")
    close(thrs, official[:, 0])
    close(total[0] / total[1], official[:, 1])
    close(total[2] / total[3], official[:, 2])
    files = (bsds500_bench / "png/2018.png", bsds500_bench / "groundTruth/2018.mat")
    again = compat.edgesEvalImg(*files, out=tmp_path / "2018_ev1.txt", thrs=5)
    assert np.loadtxt(tmp_path / "2018_ev1.txt")[:, 1:].T.tolist() == [
        c.tolist() for c in again[1:5]
    ]


def test_edges_eval_img_draws_matches():
    pred, truth = np.zeros((9, 30)), np.zeros((9, 30))
    pred[1], pred[7] = 1, 1
    truth[1], truth[4] = 1, 1
    *_, picture = compat.edgesEvalImg(pred, [truth], thrs=0.5, maxDist=0.01)
    assert (picture[1] == (0, 1, 0)).all()  # matched
    assert (picture[7] == (0, 0, 1)).all()  # false
    assert (picture[4] == (1, 0, 0)).all()  # missed
    assert (picture[0] == 1).all()


def test_pr_evaluation(maps, bsds500_bench):
    soft, gts = maps
    loaders = (gts.__getitem__, soft.__getitem__)
    samples, curve, overall = compat.pr_evaluation(5, NAMES, *loaders, progress=iter)
    folder = bsds500_bench / "test_2"
    close([overall], table(folder, "eval_bdry.txt"))
    close(curve, table(folder, "eval_bdry_thr.txt"))
    np.testing.assert_allclose(
        [s[4] for s in samples], table(folder, "eval_bdry_img.txt")[:, 4], atol=0.0015
    )
    assert [s.sample_name for s in samples] == list(NAMES)
    refused("none given", compat.pr_evaluation, 5, [], *loaders)


def test_evaluate_boundaries_and_its_ratios(maps, bsds500_bench):
    soft, gts = maps
    found = [compat.evaluate_boundaries_fast(soft[n], gts[n], thresholds=5) for n in NAMES]
    total = [sum(each[k] for each in found) for k in range(4)]
    rec, prec, f1 = compat.compute_rec_prec_f1(*total)
    official = table(bsds500_bench / "test_2", "eval_bdry_thr.txt")
    close(np.c_[found[0][4], rec, prec, f1], official)
    at = found[0][4][2]
    binary = compat.evaluate_boundaries_bin(soft["2018"] >= at, gts["2018"])
    assert list(binary) == [int(c[2]) for c in found[0][:4]]


def test_py_edge_eval(bsds500_bench, tmp_path):
    official = table(bsds500_bench / "test_2", "eval_bdry.txt")[0]
    keys = (
        *("ODS_threshold", "ODS_recall", "ODS_precision", "ODS_f1"),
        *("OIS_recall", "OIS_precision", "OIS_f1", "AUC"),
    )
    found = {}
    for strict in (False, True):
        evaluator = compat.BSDS500Evaluator(bsds500_bench, bsds500_bench / "png", strict=strict)
        evaluator.set_sample_names(NAMES)
        found[strict] = evaluator.evaluate(thresholds=5, nproc=1, save_dir=tmp_path)
        close([found[strict][key] for key in keys], official)
    assert found[True]["ODS_f1"] == pytest.approx(found[False]["ODS_f1"], abs=2e-5)
    assert (tmp_path / "eval_bdry.txt").is_file()


def test_py_edge_eval_quirks_by_hand():
    from bsdsbench.integrations.compat.py_edge_eval import _area_of_100, _best_of_101
    from bsdsbench.scores.curve import PRCurve

    flat = PRCurve(np.array([0.25, 0.75]), np.array([1.0, 1.0]), np.array([1.0, 0.0]))
    assert _area_of_100(flat) == pytest.approx(1.0)  # 100 levels; the official area is 1.01
    rising = PRCurve(np.array([0.2, 0.8]), np.array([0.0, 1.0]), np.array([1.0, 0.0]))
    t, r, p, f = _best_of_101(rising)
    assert (t, r, p, f) == pytest.approx((0.5, 0.5, 0.5, 0.5))


def test_the_command_line_of_edge_eval_python(bsds500_bench, tmp_path):
    """Raw maps get NMS first: the same as `evaluate --nms`."""
    from bsdsbench.integrations.compat.__main__ import main

    (tmp_path / "raw" / "mine").mkdir(parents=True)
    (tmp_path / "gt").mkdir()
    soft = iio.imread(bsds500_bench / "png" / "3063.png") / 255
    savemat(tmp_path / "raw" / "mine" / "3063.mat", {"result": soft})
    truth = (bsds500_bench / "groundTruth" / "3063.mat").read_bytes()
    (tmp_path / "gt" / "3063.mat").write_bytes(truth)
    folders = ("--result_dir", tmp_path / "raw", "--save_dir", tmp_path / "out")
    arguments = [*folders, "--gt_dir", tmp_path / "gt", "--model_name_list", "mine"]
    ran = CliRunner().invoke(main, [*map(str, arguments), "--workers", "1"])
    assert ran.exception is None
    proto = bb.Protocol.preset("bsds500").replace(nms=True)
    wanted = bb.boundary_score(
        bb.evaluate(tmp_path / "raw", tmp_path / "gt", proto, workers=1).records
    )
    assert f"HED mine: ODS {wanted.ods.f:.4f}" in ran.output
    assert table(tmp_path / "out" / "mine", "eval_bdry.txt")[0, 3] == pytest.approx(
        wanted.ods.f, abs=1e-6
    )


@pytest.mark.parametrize(
    ("call", "fault"),
    [
        (lambda: compat.BSDS500Evaluator("a", "b", split="train"), "expected val or test"),
        (lambda: compat.BSDS500Evaluator("a", "b").set_eval_params(scale=0.5), "expected 1"),
    ],
)
def test_wrong_arguments_are_one_line(call, fault):
    refused(fault, call)
