"""Soft maps against masks in the viewer: what its canvas shows is what the run counted."""

import numpy as np
import pytest

import bsdsbench as bb
from bsdsbench.loaders.sample import sample_ground_truth, sample_results
from bsdsbench.plotting.style import PIXEL_COLORS
from bsdsbench.report import write_report
from tests.browser.test_viewer import COUNT, move, opened
from tests.helpers.runs import counted
from tests.report.test_soft_pixels import numbers, soft_set

pytest.importorskip("jinja2", reason="jinja2 is not installed")

pytestmark = [pytest.mark.browser, pytest.mark.slow]


@pytest.mark.parametrize("metric", ["pixel", "aiu", "saliency"])
@pytest.mark.parametrize("void", [False, True])
def test_pixels_of_the_canvas_are_the_counts_of_the_run(open_page, tmp_path, metric, void):
    maps, truth, views = soft_set(tmp_path)
    run = counted(maps, truth, metrics=metric, **({"valid_dir": views} if void else {}))
    write_report([run], tmp_path / "r.html", n_boot=10)
    page = opened(open_page, tmp_path / "r.html")
    assert page.locator("#level-name").inner_text() == "threshold"
    assert page.locator("#level-ods").is_visible() == (metric in ("pixel", "saliency"))
    tp, fp, fn = numbers(run, metric)
    beta2 = 0.3 if metric == "saliency" else 1.0
    for k in np.linspace(0, len(tp) - 1, 5).astype(int).tolist():
        move(page, k)
        (drawn,) = page.locator("#figures canvas").evaluate_all(COUNT)
        on = [drawn.get(color, 0) for color in PIXEL_COLORS.values()]
        assert on == [tp[k], fp[k], fn[k]]
        text = page.locator("#figures figcaption").first.inner_text()
        assert f"{tp[k]} true, {fp[k]} false, {fn[k]} missed" in text
        p, r = (tp[k] / max(tp[k] + other[k], 1) for other in (fp, fn))
        f = (1 + beta2) * p * r / (beta2 * p + r) if tp[k] else 0.0
        assert f"F {f:.3f}, P {p:.3f}, R {r:.3f}" in text
    assert page.locator("#figures .side img").count() == void
    assert page.locator("#viewer .key .void").is_visible() == void


def test_sums_over_annotators_are_said(open_page, tmp_path):
    (tmp_path / "ids").write_text("fruit1")
    given = sample_results("canny"), sample_ground_truth()
    few = bb.Protocol("bsds500").replace(thresholds=5)
    run = counted(*given, few, "pixel", split_file=tmp_path / "ids")
    write_report([run], tmp_path / "r.html", n_boot=10)
    page = opened(open_page, tmp_path / "r.html")
    tp, fp, fn = numbers(run, "pixel")
    n = len(run.score("pixel").curve.thresholds)
    for k in range(n):
        move(page, k)
        text = page.locator("#figures figcaption").first.inner_text()
        assert f"{tp[k]} true, {fp[k]} false, {fn[k]} missed, summed over " in text
