"""The viewer in a real browser: every threshold, two runs under one slider, keys, filters."""

import numpy as np
import pytest

import bsdsbench as bb
from bsdsbench.comparison.lost_scores import with_errors
from bsdsbench.plotting.style import ERROR_COLORS, OTHER_COLOR, PIXEL_COLORS
from bsdsbench.report import write_report
from bsdsbench.report.overlays import pixel_steps
from bsdsbench.report.server import ViewServer
from bsdsbench.runs.sources import find_sources
from tests.browser.conftest import FEW_ROWS, PHONE
from tests.helpers.runs import write_maps
from tests.helpers.serving import serving

pytest.importorskip("jinja2", reason="jinja2 is not installed")

pytestmark = [pytest.mark.browser, pytest.mark.slow]

COUNT = """canvases => canvases.map((canvas) => {
  const { data } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
  const pixels = new Map(), counts = {};
  for (const abgr of new Uint32Array(data.buffer)) pixels.set(abgr, (pixels.get(abgr) || 0) + 1);
  for (const [abgr, n] of pixels) {
    if (!(abgr >>> 24)) continue;
    const bytes = [0, 8, 16].map((k) => ((abgr >>> k) & 255).toString(16).padStart(2, "0"));
    const hex = "#" + bytes.join("").toUpperCase();
    counts[hex] = (counts[hex] || 0) + n;
  }
  return counts;
})"""


@pytest.fixture(scope="module")
def runs(sample_runs):
    return [sample_runs["Canny"], sample_runs["Sobel"]]


@pytest.fixture(scope="module")
def report(runs, tmp_path_factory):
    path = tmp_path_factory.mktemp("page") / "r.html"
    write_report(runs, path, n_boot=100)
    return path


@pytest.fixture(scope="module")
def with_classes(runs, tmp_path_factory):
    path = tmp_path_factory.mktemp("classes") / "r.html"
    counted = [with_errors(run, workers=1) for run in runs]
    write_report(counted, path, n_boot=100)
    return path, counted


def opened(open_page, path, **how):
    page = open_page(path, **how)
    page.locator("#table .name").first.click()
    page.wait_for_selector("#figures canvas")
    return page


def move(page, k):
    page.locator("#level").evaluate(
        "(level, k) => { level.value = k; level.dispatchEvent(new Event('input')); }", k
    )


def test_pixels_of_the_canvas_are_the_counts_of_the_run(open_page, report, runs):
    page = opened(open_page, report)
    records = [run.records[0] for run in runs]
    files = [find_sources(run).load(run.image_ids[0], run.protocol) for run in runs]
    drawn_steps = [pixel_steps(*pair, run) for pair, run in zip(files, runs, strict=True)]
    for k in (0, 9, 24, 60, 98):
        move(page, k)
        drawn = page.locator("#figures canvas").evaluate_all(COUNT)
        captions = page.locator("#figures .side figcaption").all_inner_texts()
        for run, record, steps, counts, caption in zip(
            runs, records, drawn_steps, drawn, captions, strict=True
        ):
            of_run = record.counts["boundary"]
            matched, total = of_run.matched_pred[k], of_run.total_pred[k]
            assert counts.get(PIXEL_COLORS["matched"], 0) == matched
            assert counts.get(PIXEL_COLORS["false"], 0) == total - matched
            assert counts.get(PIXEL_COLORS["missed"], 0) == (steps.at(k) == 3).sum()
            recall, precision, f = (of_all[k] for of_all in steps.scores)
            missed = of_run.total_gt[k] - of_run.matched_gt[k]
            assert caption == (
                f"{run.name}: F {f:.3f}, P {precision:.3f}, R {recall:.3f}, "
                f"threshold {of_run.thresholds[k]:.3f}\n{matched} true, {total - matched} false, "
                f"{missed} missed"
            )


def test_classes_of_errors_have_their_colours_and_can_be_put_aside(open_page, with_classes):
    path, counted = with_classes
    page = opened(open_page, path)
    for k in (3, 30, 70):
        move(page, k)
        page.locator("#classes").check()
        drawn = page.locator("#figures canvas").evaluate_all(COUNT)
        for run, counts in zip(counted, drawn, strict=True):
            of_run = run.records[0].counts["boundary"]
            for number, name in enumerate(("duplicate", "near_false", "background")):
                assert counts.get(ERROR_COLORS[name], 0) == of_run["false"][k][number]
        page.locator("#classes").uncheck()
        plain = page.locator("#figures canvas").evaluate_all(COUNT)
        for run, counts in zip(counted, plain, strict=True):
            of_run = run.records[0].counts["boundary"]
            assert set(counts) <= {*PIXEL_COLORS.values()}
            assert counts.get(PIXEL_COLORS["false"], 0) == of_run["false"][k].sum()
    key = page.locator("#viewer .key").inner_text()
    assert all(name.replace("_", " ") in key for name in ERROR_COLORS)


def test_the_bar_of_error_classes_is_as_wide_as_what_ods_gains(open_page, with_classes):
    page = open_page(with_classes[0])
    bars = page.locator(".losses")
    assert bars.count() == 2
    widths = bars.evaluate_all(
        "all => all.map(bar => [bar.clientWidth, ...[...bar.children].map("
        "part => [part.title, part.getBoundingClientRect().width, "
        "getComputedStyle(part).backgroundColor])])"
    )
    rows = page.locator("table:has(caption:text('Where ODS is lost')) tbody tr").all_inner_texts()
    gains = [float(row.split("\t")[-1]) for row in rows if "agreement" not in row]
    largest = max(sum(gains[:6]), sum(gains[6:]))
    for k, (whole, *parts) in enumerate(widths):
        assert len(parts) == 6
        for (title, width, colour), gain in zip(parts, gains[6 * k :], strict=False):
            assert width == pytest.approx(whole * gain / largest, abs=2)
            red, green, blue = bytes.fromhex(ERROR_COLORS[title.replace(" ", "_")][1:])
            assert colour == f"rgb({red}, {green}, {blue})"


def test_keys_of_the_viewer(open_page, report, runs):
    page = opened(open_page, report)
    said, title = page.locator("#level-value"), page.locator("#viewer-title")
    thresholds = runs[0].records[0].counts["boundary"].thresholds
    best = runs[0].image_scores("boundary")[runs[0].image_ids[0]]["ods.threshold"]
    best = thresholds[np.abs(thresholds - best).argmin()]
    assert float(said.inner_text()) == pytest.approx(best)
    page.keyboard.press("]")
    assert float(said.inner_text()) == pytest.approx(best + 0.01)
    page.keyboard.press("[")
    page.keyboard.press("[")
    assert float(said.inner_text()) == pytest.approx(best - 0.01)
    page.keyboard.press("o")
    ods = runs[0].boundary_score().ods.threshold
    assert float(said.inner_text()) == thresholds[np.abs(thresholds - ods).argmin()].round(3)
    page.locator("#level").focus()
    page.keyboard.press("ArrowRight")  # of the slider, not to the next image
    assert title.inner_text() == runs[0].image_ids[0]
    held = said.inner_text()
    page.locator("#close").focus()
    page.keyboard.press("ArrowRight")
    page.wait_for_function(
        "id => document.title && document.querySelector('#figures canvas') && "
        "document.getElementById('viewer-title').textContent === id",
        arg=runs[0].image_ids[1],
    )
    assert said.inner_text() == held  # a threshold that was chosen stays
    page.keyboard.press("b")
    page.keyboard.press("Home")
    best = runs[0].image_scores("boundary")[runs[0].image_ids[1]]["ods.threshold"]
    page.wait_for_function(
        "t => Math.abs(document.getElementById('level-value').textContent - t) < .006", arg=best
    )


def test_two_runs_lie_side_by_side_and_below_each_other_on_a_phone(open_page, report):
    page = opened(open_page, report)
    a, b = page.locator("#figures canvas").evaluate_all(
        "all => all.map(c => c.getBoundingClientRect().toJSON())"
    )
    assert a["top"] == b["top"]
    assert a["right"] <= b["left"]
    for scheme in ("light", "dark"):
        page = opened(open_page, report, viewport={**PHONE, "width": 420}, color_scheme=scheme)
        a, b = page.locator("#figures canvas").evaluate_all(
            "all => all.map(c => c.getBoundingClientRect().toJSON())"
        )
        assert a["left"] == b["left"]
        assert a["bottom"] <= b["top"]
        assert page.evaluate("() => document.documentElement.scrollWidth") == 420
        assert page.locator("#viewer").evaluate("d => d.scrollWidth - d.clientWidth") == 0


def test_rows_are_sorted_and_limited_by_false_and_missed(open_page, report, runs):
    page = open_page(report)
    k = int(np.abs(np.linspace(0.01, 0.99, 99) - runs[0].boundary_score().ods.threshold).argmin())
    counts = {r.image_id: r.counts["boundary"] for r in runs[0].records}
    false = {i: int(c.total_pred[k] - c.matched_pred[k]) for i, c in counts.items()}
    missed = {i: int(c.total_gt[k] - c.matched_gt[k]) for i, c in counts.items()}
    for heading, wanted in (("false", false), ("missed", missed)):
        button = page.locator("#table th button", has_text=heading).first
        button.click()
        rows = page.locator("#table tbody tr .name").all_inner_texts()
        assert [wanted[name] for name in rows] == sorted(wanted.values())
    page.locator("#limit-column").select_option(label=f"{runs[0].name}: missed")
    page.locator("#limit-side").select_option("least")
    middle = sorted(missed.values())[4]
    page.locator("#limit").fill(str(middle))
    names = page.locator("#table tbody tr .name").all_inner_texts()
    assert {*names} == {name for name, value in missed.items() if value >= middle}
    page.locator("#limit-column").select_option(label="best F difference")
    page.locator("#limit").fill("0")
    first, second = (run.image_scores("boundary") for run in runs)
    names = page.locator("#table tbody tr .name").all_inner_texts()
    better = {i for i in first if round(first[i]["ods"] - second[i]["ods"], 5) >= 0}
    assert {*names} == better


def test_a_slice_shows_its_images(open_page, runs, tmp_path):
    groups = {i: {"kind": i.rstrip("0123456789")} for i in runs[0].image_ids}
    sliced = [run.with_groups(groups) for run in runs]
    write_report(sliced, tmp_path / "r.html", n_boot=50, pictures=False)
    page = open_page(tmp_path / "r.html")
    page.locator("#slice").select_option(label="kind: reef")
    assert page.locator("#table tbody tr .name").all_inner_texts() == ["reef1", "reef2"]


def test_the_verdict_comes_first_and_is_what_compare_says(open_page, report, runs):
    page = open_page(report)
    first, second = page.locator(".verdict p").all_inner_texts()
    compared = bb.compare(runs, n_boot=100)
    best = max(runs, key=lambda run: run.boundary_score().ods.f)
    other = next(run.name for run in runs if run is not best)
    d = compared.difference_of(best.name, other, "ods")
    assert first.startswith(f"{best.name} is best: ODS {best.boundary_score().ods.f:.3f} (95 %")
    assert second.startswith(f"{abs(d.value):.3f} better than {other} (95 % interval ")
    assert second.endswith("this is real." if d.significant(0.95) else "this may be due to chance.")
    assert page.locator("h2").first.inner_text() == "Worst and best images"
    assert page.locator("caption:text('intervals')").count() == 0
    assert "[" in page.locator("figure.bsdsbench tbody tr").first.inner_text()


def test_names_stay_when_a_table_scrolls(open_page, report):
    page = open_page(report, viewport=PHONE)
    table = page.locator(".wide:has(figure.bsdsbench)").first
    table.evaluate("box => { box.scrollLeft = 80; }")
    assert table.evaluate("box => box.scrollLeft") == 80
    left = table.evaluate(
        "box => box.querySelector('tbody tr > *').getBoundingClientRect().left"
        " - box.getBoundingClientRect().left"
    )
    assert left == pytest.approx(0, abs=1)


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("viewer", [False, True])
def test_axe_finds_nothing_serious(open_page, with_classes, scheme, viewer):
    axe = pytest.importorskip("axe_playwright_python.sync_playwright").Axe()
    how = {"viewport": {**PHONE, "width": 420}, "color_scheme": scheme}
    page = (opened if viewer else lambda go, *a, **k: go(*a, **k))(
        open_page, with_classes[0], **how
    )
    page.evaluate(FEW_ROWS)
    options = {"preload": False, "resultTypes": ["violations"]}
    serious = [
        f"{fault['id']}: {fault['nodes'][0]['html'][:200]} ({len(fault['nodes'])})"
        for fault in axe.run(page, options=options).response["violations"]
        if fault["impact"] in ("serious", "critical")
    ]
    assert serious == []


def test_the_served_page_shows_every_image_in_full_size(browser, runs, monkeypatch):
    monkeypatch.setattr("bsdsbench.report.server.N_SAMPLES", 100)
    with serving(ViewServer(runs)) as server:
        context = browser.new_context()
        try:
            page, problems = context.new_page(), []
            page.on("console", lambda m: problems.append(m.text))
            page.on("pageerror", lambda error: problems.append(str(error)))
            page.goto(server.address)
            page.locator("#table .name").nth(3).click()
            page.wait_for_selector("#figures canvas")
            k = 20
            move(page, k)
            drawn = page.locator("#figures canvas").evaluate_all(COUNT)
            for run, counts in zip(runs, drawn, strict=True):
                of_run = run.records[3].counts["boundary"]
                assert counts[PIXEL_COLORS["matched"]] == of_run.matched_pred[k]
            widths = page.locator("#figures img").evaluate_all(
                "all => all.map(i => i.naturalWidth)"
            )
            assert set(widths) == {run.records[3].size[1] for run in runs}
            assert problems == []
        finally:
            context.close()


@pytest.fixture(scope="module")
def masks(tmp_path_factory):
    """Two classes of one image, and the page of the run."""
    root = tmp_path_factory.mktemp("masks")
    gt, pred = np.zeros((2, 40, 60), np.uint8)
    gt[5:25, 5:25], gt[10:30, 40:50] = 1, 2
    pred[5:25, 8:25], pred[12:30, 40:52] = 1, 2
    where = [write_maps(root / name, {"a": m}) for name, m in (("pred", pred), ("gt", gt))]
    options = {"contour": {"classes": ["lake", "wood"], "first": 1}}
    protocol = bb.Protocol.preset("masks").replace(options=options)
    run = bb.evaluate(*where, protocol, metrics="contour", workers=1)
    write_report([run], root / "r.html", n_boot=20)
    return root / "r.html", pred, gt


def test_the_slider_goes_through_the_classes_of_masks(open_page, masks):
    path, pred, gt = masks
    page = opened(open_page, path)
    assert page.locator("#level-name").inner_text() == "class"
    assert not page.locator("#level-best").is_visible()
    assert not page.locator("#level-ods").is_visible()
    for k, name in enumerate(("all classes", "lake", "wood")):
        move(page, k)
        assert page.locator("#level-value").inner_text() == name
        on, true = ((m == k) if k else (m > 0) for m in (pred, gt))
        right = np.count_nonzero(on & true & (pred == gt))
        words = f"{right} true, {on.sum() - right} false, {true.sum() - right} missed"
        text = page.locator("#figures figcaption").first.inner_text()
        assert words in text
        assert f"Dice {2 * right / (on.sum() + true.sum()):.3f}" in text
        assert "largest distance 3.0" in text or k == 2
        (drawn,) = page.locator("#figures canvas").evaluate_all(COUNT)
        assert drawn[PIXEL_COLORS["matched"]] <= right  # less what the ring hides
    assert "ground truth, outlines" in page.locator("#figures").inner_text()


def test_pixels_of_another_class_have_a_colour_and_a_number_of_their_own(open_page, tmp_path):
    """Counted by hand: a wood of 10 x 8 pixels of which 10 x 3 were called lake."""
    gt, pred = np.zeros((2, 40, 60), np.uint8)
    gt[5:15, 5:13] = 2
    pred[5:15, 5:13], pred[5:15, 5:8] = 2, 1
    gt[25:31, 40:48] = pred[25:31, 40:48] = 1
    where = [write_maps(tmp_path / name, {"a": m}) for name, m in (("pred", pred), ("gt", gt))]
    options = {"segmentation": {"classes": ["lake", "wood"], "first": 1}}
    protocol = bb.Protocol.preset("masks").replace(options=options)
    run = bb.evaluate(*where, protocol, metrics="segmentation", workers=1)
    write_report([run], tmp_path / "r.html", n_boot=20)
    page = opened(open_page, tmp_path / "r.html")
    matched, false, missed = (PIXEL_COLORS[key] for key in ("matched", "false", "missed"))
    by_class = {matched: 98, OTHER_COLOR: 30}, {matched: 48, false: 30}, {matched: 50, missed: 30}
    for k, expected in enumerate(by_class):  # all classes, lake, wood
        move(page, k)
        (drawn,) = page.locator("#figures canvas").evaluate_all(COUNT)
        assert drawn == expected
        words = page.locator("#figures figcaption").first.inner_text()
        assert ("30 of another class" in words) == (k == 0)


def test_masks_alone_have_no_slider(open_page, tmp_path):
    mask = np.zeros((40, 60), np.uint8)
    mask[5:25, 5:25] = 1
    where = [write_maps(tmp_path / name, {"a": mask}) for name in ("pred", "gt")]
    run = bb.evaluate(*where, "masks", metrics="contour", workers=1)
    write_report([run], tmp_path / "r.html", n_boot=20)
    page = opened(open_page, tmp_path / "r.html")
    assert not page.locator("#level").is_visible()
    assert not page.locator("#level-value").is_visible()
    assert page.locator("#under").is_visible()
    assert "Dice 1.000" in page.locator("#figures figcaption").first.inner_text()


def test_the_button_of_the_best_threshold_works(open_page, report):
    page = opened(open_page, report)
    at_best = page.locator("#level-value").inner_text()
    move(page, 0)
    assert page.locator("#level-value").inner_text() != at_best
    page.locator("#level-best").click()
    assert page.locator("#level-value").inner_text() == at_best
