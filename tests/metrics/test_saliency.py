"""Every saliency measure against stored values of PySODMetrics 1.6.2, and sums by hand."""

import base64
import json
from pathlib import Path

import imageio.v3 as iio
import numpy as np
import pytest
from scipy import ndimage as ndi
from sklearn import metrics

import bsdsbench as bb
from bsdsbench.errors import DataError
from bsdsbench.metrics import saliency as measures
from bsdsbench.metrics.saliency import SaliencyOptions
from bsdsbench.plotting import plot_runs
from bsdsbench.protocol.protocol import Protocol
from bsdsbench.scores.ratios import f_beta
from tests.helpers.counting import counts_of, score_of

STORED = json.loads((Path(__file__).parent / "pysodmetrics.json").read_text("utf-8"))


def counted(soft, mask, stretch=True):
    """The counts of arrays, and the protocol with that rule."""
    protocol = Protocol(options={"saliency": SaliencyOptions(stretch=stretch)})
    pair = bb.Prediction("a", soft=soft), bb.GroundTruth("a", mask=mask)
    return counts_of("saliency", *pair, protocol), protocol


def unpacked(case, key):
    return np.frombuffer(base64.b64decode(case[key]), np.uint8).reshape(case["shape"])


def ours(pred, gt, stretch):
    """The same names, from the counts of one image and from its score."""
    counts, protocol = counted(pred, gt > 128, stretch)
    score = score_of("saliency", counts, protocol=protocol)
    positives, pixels = counts.positives, counts.pixels
    one = {name: np.atleast_1d(value)[None] for name, value in counts.items()}
    one |= {name: one[name][0] for name in ("half_tp", "half_fp", "positives", "pixels")}
    measured = measures._measures_at_thresholds(one, 0.3)
    curves = {name: measured[name][0, :256] for name in ("f", "iou", "dice", "ber")}
    half = measured["f"][0, -1]
    curves["e"] = measures.e_measure(counts.tp[:256], counts.fp[:256], positives, pixels)
    out = {name: getattr(score, f"{name}_mean") for name in ("s_measure", "weighted_f", "mae")}
    for name, curve in curves.items():
        down = curve[::-1]
        out[f"{name}_curve"] = down[::8]
        best = getattr(score, f"{'min' if name == 'ber' else 'max'}_{name}_mean")
        ends = (down.max(), best) if name == "ber" else (best, down.min())
        out[f"{name}_curve_summary"] = [getattr(score, f"mean_{name}_mean"), *ends]
        out[f"adaptive_{name}"] = getattr(score, f"adaptive_{name}_mean")
        if name in ("iou", "dice", "ber"):
            out[f"{name}_at_half"] = getattr(score, f"{name}_mean")
    out["f_at_half"] = half
    return out


def agree(found, expected):
    assert found.keys() == expected.keys()
    for name, value in expected.items():
        np.testing.assert_allclose(found[name], value, rtol=0, atol=1e-9, err_msg=name)


@pytest.mark.parametrize("case", STORED["cases"], ids=lambda c: c["name"])
@pytest.mark.parametrize("stretch", [True, False])
def test_stored_values(case, stretch):
    expected = case["stretched" if stretch else "as_is"]
    agree(ours(unpacked(case, "map"), unpacked(case, "mask"), stretch), expected)


def test_what_differs_from_the_peer_is_defined():
    """An empty quarter, for which it has NaN, has no weight; one pixel is divided by 1."""
    soft = np.random.default_rng(0).random((9, 12))
    corner = np.zeros((9, 12), bool)
    corner[-1, -1] = True
    assert np.isfinite(measures.s_measure(soft, corner))
    assert measures.s_measure(corner.astype(float), corner) == pytest.approx(1.0)
    assert measures.e_measure(1, 0, 1, 1) == 1.0


@pytest.mark.parametrize("dtype", [bool, np.uint8, np.uint16, np.float32, np.float64])
def test_strengths_of_every_type_are_from_0_to_1(dtype):
    mask = np.array([[1, 1, 0], [0, 0, 0]], bool)
    top = np.iinfo(dtype).max if np.dtype(dtype).kind == "u" else 1
    for stretch in (True, False):
        assert measures.strengths((mask * top).astype(dtype), stretch).tolist() == mask.tolist()


def test_float_maps_of_bytes_have_the_levels_of_the_bytes():
    levels = np.arange(256, dtype=np.uint8).reshape(8, 32)
    for value in (levels, levels / 255, (levels / 255).astype(np.float32)):
        assert np.array_equal(np.floor(measures.strengths(value, False) * 255), levels)


def test_a_divisor_has_the_spacing_of_floats_at_1_added():
    """A right map of one pixel in each of two quarters of 51 x 51 and 49 x 49, as in the programs:
    4 ab cov is that small there."""
    mask = np.zeros((100, 100), bool)
    mask[0, 0] = mask[99, 99] = True  # the centroid 49.5 is rounded to 50
    by_region = 2 * 51 * 49
    for n in (51 * 51, 49 * 49):
        top = 4 * (1 / n) ** 2 * (1 / n)  # the variance of one in n, by n - 1, is 1 / n
        by_region += n * top / (top + 2.0**-52)
    found = 2 * measures.s_measure(mask, mask) - 1  # the object's half is right
    assert found == pytest.approx(by_region / 10000, abs=1e-10)
    assert found < 1 - 1e-7


def test_mean_and_sum_forms_differ_and_are_both_right():
    mask, big = np.zeros((2, 3), bool), np.zeros((4, 5), bool)
    mask[0, :2] = big[:3] = True
    images = [counted(np.zeros((4, 5)), big)[0], counted(mask.astype(float), mask)[0]]
    score = score_of("saliency", *images)  # empty: 0 of 15; perfect: 2 of 6
    assert score.mae_mean == pytest.approx((0 + 15 / 20) / 2)
    assert score.mae_sum == pytest.approx(15 / 26)
    # at one half the second has tp 2, the first fn 15
    assert (score.iou_sum, score.dice_sum) == pytest.approx((2 / 17, 4 / 19))
    assert (score.iou_mean, score.dice_mean) == (0.5, 0.5)
    # mean: at level 0 the F of everything on is P = 2/6 and 15/20, R = 1; at 255 it is 1 and 0
    all_on = (f_beta(2 / 6, 1) + f_beta(15 / 20, 1)) / 2
    assert score.max_f_mean == pytest.approx(float(max(all_on, 0.5)))
    assert score.max_f_sum == pytest.approx(float(max(f_beta(17 / 26, 1), f_beta(1, 2 / 17))))
    p, r = (2 / 6 + 15 / 20) / 2, 1.0
    assert score.max_f_pr == pytest.approx(max(1.3 * p * r / (0.3 * p + r), 1.3 * 0.25 / 0.65))


def _blurred(seed, shape=(24, 30)):
    rng = np.random.default_rng(seed)
    truth = ndi.gaussian_filter(rng.normal(size=shape), 3) > 0
    soft = np.clip(ndi.gaussian_filter(truth.astype(float), 2) + rng.normal(0, 0.1, shape), 0, 1)
    return np.rint(255 * soft).astype(np.uint8), truth


@pytest.mark.slow
def test_the_curve_is_the_mean_of_the_images_and_has_its_best_point():
    """Precision and recall of each image at each level, by scikit-learn's counts; F with .3."""
    images = [_blurred(seed) for seed in range(2)]
    rows = []
    for soft, truth in images:
        level = measures.strengths(soft, True) * 255
        cuts = [level >= k - 1e-9 for k in range(256)]
        scores = [
            metrics.precision_recall_fscore_support(
                truth.ravel(), cut.ravel(), average="binary", zero_division=0
            )[:2]
            for cut in cuts
        ]
        rows.append(scores)
    precision, recall = np.mean(rows, axis=0).T
    items = [(str(k), soft, truth) for k, (soft, truth) in enumerate(images)]
    score = bb.evaluate_items(items, metrics="saliency", workers=1).score("saliency")
    assert score.curve.precision == pytest.approx(precision)
    assert score.curve.recall == pytest.approx(recall)
    f = 1.3 * precision * recall / (0.3 * precision + recall)
    assert score.ods.f == pytest.approx(f.max()) == pytest.approx(score.max_f_pr)
    assert score.ods.threshold == pytest.approx(f.argmax() / 255)


PIXELS = ("pixel", "aiu", "calibration")


@pytest.mark.parametrize("other", ["saliency", "topology", "ccq"])
@pytest.mark.parametrize("metric", PIXELS)
def test_metrics_of_masks_and_of_pixels_go_together(metric, other, tmp_path):
    """The scores are those of a run for each: of files, and of arrays."""
    for folder in ("maps", "gt"):
        (tmp_path / folder).mkdir()
    for k in range(2):
        soft, truth = _blurred(k)
        iio.imwrite(tmp_path / "maps" / f"{k}.png", soft)
        iio.imwrite(tmp_path / "gt" / f"{k}.png", truth.astype(np.uint8) * 255)
    items = [(str(k), *_blurred(k)) for k in range(2)]
    for both in ([metric, other], [other, metric]):
        folders = tmp_path / "maps", tmp_path / "gt"
        for run in (
            bb.evaluate(*folders, "bsds500", metrics=both, workers=1),
            bb.evaluate_items(items, "bsds500", metrics=both, workers=1),
        ):
            for name in both:
                alone = bb.evaluate(*folders, "bsds500", metrics=name, workers=1)
                np.testing.assert_equal(
                    run.score(name).to_mapping(), alone.score(name).to_mapping()
                )


def test_boundaries_and_masks_are_a_run_for_each():
    items = [("a", *_blurred(0))]
    with pytest.raises(DataError, match="saliency, boundary: read mask and annotators"):
        bb.evaluate_items(items, metrics=["boundary", "saliency"], workers=1)


@pytest.mark.parametrize("kind", ["pr", "f"])
def test_saliency_is_drawn_with_its_own_f(kind):
    run = bb.evaluate_items([("a", *_blurred(0))], metrics=["saliency", "pixel"], workers=1)
    figure = plot_runs([run], metric="saliency", kind=kind, human=False)
    score = run.score("saliency")
    (curve, *_), dot = figure.axes[0].lines, figure.axes[0].lines[-1]
    expected = (
        (score.ods.recall, score.ods.precision)
        if kind == "pr"
        else (score.ods.threshold, score.ods.f)
    )
    assert np.ravel(dot.get_data()) == pytest.approx(expected)
    if kind == "f":
        assert max(curve.get_ydata()) == pytest.approx(score.ods.f)
    else:  # the lines of equal F are those of beta^2 = .3: at recall 1, F .9 is precision .874
        text = {t.get_text(): t.xy[1] for t in figure.axes[0].texts}
        assert text["F=0.9"] == pytest.approx(1 / (1.3 / 0.9 - 0.3))
