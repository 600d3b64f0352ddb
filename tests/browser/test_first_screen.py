"""What a reader sees first, of a report and a leaderboard: curves; on a phone short lines."""

import re

import pytest

import bsdsbench as bb
from bsdsbench.plotting.palette import PIXELS, lines_of
from bsdsbench.report import write_report
from bsdsbench.report.leaderboard import write_leaderboard
from tests.browser.conftest import DESKTOP, PHONE
from tests.helpers.simulated import simulated_run
from tests.report.test_overlays import sized_runs

pytest.importorskip("jinja2", reason="jinja2 is not installed")
pytestmark = pytest.mark.browser
SIZES = pytest.mark.parametrize("size", [DESKTOP, PHONE], ids=["desktop", "phone"])
LONG = "a-method-with-a-name-that-has-no-place-to-break-and-goes-on"


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    root = tmp_path_factory.mktemp("board")
    names = ("first", "second", LONG)
    for k, name in enumerate(names):
        simulated_run(name, 8, quality=0.3 - 0.2 * k, seed=k).save(root / name)
    write_leaderboard([root / name for name in names], root / "site", n_boot=50)
    return root / "site" / "index.html"


@SIZES
def test_the_first_curve_of_a_report_is_there_without_scrolling(open_page, tmp_path, size):
    notes = [simulated_run(name, 8, seed=k) for k, name in enumerate(("one", "two", "three"))]
    path = tmp_path / "r.html"
    write_report(notes, path, n_boot=20)
    page = open_page(path, viewport=size)
    box = page.locator("#plot .curve").first.bounding_box()
    assert box["y"] + box["height"] < size["height"]
    frame = page.locator("#plot svg").bounding_box()
    assert frame["y"] + frame["height"] <= size["height"]


def test_an_image_without_pictures_says_where_they_are(open_page, tmp_path, monkeypatch):
    monkeypatch.setattr("bsdsbench.report.html.BUDGET", 60_000)
    runs = sized_runs(tmp_path, 12, ("m", "n"))
    path = tmp_path / "r.html"
    write_report(runs, path, n_boot=10)
    page = open_page(path)
    with_pictures = page.locator("#table tbody tr:has(img)").count()
    told = page.locator("#images .quiet").first.inner_text()
    assert told.startswith(f"{with_pictures} of 12 images have pictures here")
    page.locator("#table tbody tr:not(:has(img)) .name").first.click()
    text = page.locator("#figures").inner_text()
    assert "--full-pictures shows every image" in text
    assert "F " in text  # its values all the same
    page.keyboard.press("Escape")
    page.locator("#table tbody tr:has(img) .name").first.click()
    assert "--full-pictures" not in page.locator("#figures").inner_text()


def test_the_key_stands_at_every_overlay_in_the_colours_of_the_pixels(open_page, tmp_path):
    path = tmp_path / "r.html"
    write_report(sized_runs(tmp_path, 3, ("m",)), path, n_boot=10)
    page = open_page(path)
    assert page.locator("#extremes .key").is_visible()
    page.locator("#table .name").first.click()
    for where in ("#extremes", "#viewer"):
        for word, color in PIXELS.items():
            found = page.locator(f"{where} .swatch.{word}").evaluate(
                "node => getComputedStyle(node).backgroundColor"
            )
            rgb = tuple(int(v) for v in re.findall(r"\d+", found))
            assert rgb == tuple(bytes.fromhex(color[1:]))


@SIZES
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_leaderboard_shows_curves_and_needs_no_sideways_scrolling(open_page, site, size, scheme):
    page = open_page(site, viewport=size, color_scheme=scheme)
    assert page.evaluate("document.documentElement.scrollWidth") <= size["width"]
    for node in page.locator("tr, td, th, .plot").all():
        box = node.bounding_box()
        assert box is None or box["x"] + box["width"] <= size["width"] + 1
    curve = page.locator(".plot .curve").first.bounding_box()
    assert curve["y"] + curve["height"] < size["height"]
    strokes = page.locator(".plot .curve").evaluate_all(
        "all => all.map(l => l.getAttribute('stroke'))"
    )
    assert sorted(strokes) == sorted(color for color, _ in lines_of(["first", "second", LONG]))
    rows = page.locator("tbody tr")
    for k in range(3):
        name = rows.nth(k).locator("th").inner_text().splitlines()[0].strip()
        swatch = rows.nth(k).locator(".swatch line").get_attribute("stroke")
        title = page.locator(f".plot .curve[stroke='{swatch}'] title").text_content()
        assert title == name


def test_lines_on_a_phone_are_short_and_the_signature_unfolds(open_page, site):
    page = open_page(site, viewport=PHONE)
    row = page.locator("tbody tr").first
    assert row.bounding_box()["height"] < 150
    assert not row.locator("code").is_visible()
    row.locator("summary").click()
    assert row.locator("code").inner_text().startswith("bsdsbench ")
    labels = row.locator("td").evaluate_all("all => all.map(c => c.dataset.label)")
    assert labels == ["ODS", "OIS", "AP", "Group"]
    assert page.evaluate("document.documentElement.scrollWidth") <= PHONE["width"]


def test_points_of_the_plot_are_those_of_the_curve(site):
    run = bb.Evaluation.load(site.parents[1] / "first")
    score = run.boundary_score()
    text = site.read_text("utf-8")
    x, y = 400 * score.ods.recall, 400 * (1 - score.ods.precision)
    assert f'cx="{x:.1f}" cy="{y:.1f}"' in text
    drawn = (score.curve.precision > 0) | (score.curve.recall > 0)
    recall, precision = score.curve.recall[drawn], score.curve.precision[drawn]
    points = [f"{400 * r:.1f},{400 * (1 - p):.1f}" for r, p in zip(recall, precision, strict=True)]
    assert f'd="M{"L".join(points)}h0"' in text
