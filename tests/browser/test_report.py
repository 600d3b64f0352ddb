"""The HTML report in a real browser: sort, filter, open an image, no console error, no network."""

import csv
import io
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from bsdsbench.plotting.style import curve_lines
from bsdsbench.report import write_report
from tests.browser.conftest import DESKTOP, IDS, PHONE
from tests.report.test_overlays import sized_runs

pytest.importorskip("jinja2", reason="jinja2 is not installed")

pytestmark = [pytest.mark.browser, pytest.mark.slow]
NASTY = "<img src=x onerror=alert(1)> & \"b\" 'c'"


@pytest.fixture(scope="module")
def demo_report(sample_runs, tmp_path_factory):
    page = tmp_path_factory.mktemp("demo") / "report.html"
    runs = [sample_runs[title] for title in ("structure tensor", "Canny", "Sobel")]
    write_report(runs[:2], page, n_boot=100)
    write_report(runs, page.with_name("three.html"), n_boot=100, pictures=False)
    return page


@pytest.fixture(scope="module")
def three_methods(demo_report):
    return demo_report.with_name("three.html")


def column(page, index):
    return page.locator(f"#table tbody tr td:nth-child({index})").all_inner_texts()


def test_sort_and_filter(open_page, demo_report):
    page = open_page(demo_report)
    header = page.locator("#table th[aria-sort]")
    assert header.nth(0).get_attribute("aria-sort") == "ascending"
    header.nth(1).locator("button").click()
    up = [float(v) for v in column(page, 3)]
    assert up == sorted(up)
    assert header.nth(1).get_attribute("aria-sort") == "ascending"
    assert header.nth(0).get_attribute("aria-sort") == "none"
    header.nth(1).locator("button").click()
    assert [float(v) for v in column(page, 3)] == up[::-1]
    header.nth(0).locator("button").click()
    names = column(page, 2)
    assert names == sorted(names)
    page.locator("#filter").fill("REEF")
    assert column(page, 2) == ["reef1", "reef2"]
    assert page.locator("#count").inner_text() == f"2 of {len(IDS)} images"
    page.locator("#filter").fill("")
    page.locator("#limit").fill("0.7")
    assert len(column(page, 3)) == sum(v <= 0.7 for v in up)


def test_open_an_image_by_mouse_and_by_keyboard(open_page, demo_report):
    page = open_page(demo_report)
    page.locator("#filter").fill("reef")
    page.locator("#table .name").first.click()
    viewer = page.locator("#viewer")
    assert page.locator("#viewer-title").inner_text() == "reef1"
    page.wait_for_selector("#figures canvas")
    # picture and ground truth; per run the prediction and an overlay over the picture
    assert page.locator("#figures figure").count() == 2 + 2 * 2
    assert page.locator("#figures img.pale").count() == 2
    shown = page.locator("#figures img").evaluate_all("all => all.map(i => i.naturalWidth)")
    assert len(shown) == 6
    assert min(shown) > 100
    page.keyboard.press("ArrowRight")
    assert page.locator("#viewer-title").inner_text() == "reef2"
    page.locator("#under").uncheck()
    assert not page.locator("#figures img.pale").first.is_visible()
    page.keyboard.press("Escape")
    assert not viewer.is_visible()


def test_worst_and_best_images(open_page, demo_report):
    page = open_page(demo_report)
    by_score = [float(v) for v in column(page, 3)]
    worst = page.locator("#worst .card").all_inner_texts()
    best = page.locator("#best .card").all_inner_texts()
    assert len(worst) == len(best) == len(IDS) // 2
    assert float(worst[0].split()[-1]) == min(by_score)
    assert float(best[0].split()[-1]) == max(by_score)
    page.locator("#by").select_option(label="best F difference")
    changed = page.locator("#worst .card").all_inner_texts()
    page.locator("#worst .card").first.click()
    assert page.locator("#viewer-title").inner_text() == changed[0].split()[0]


def test_the_plot_answers_to_pointer_and_keys(open_page, demo_report):
    page = open_page(demo_report)
    plot = page.locator("#plot svg")
    plot.hover()
    assert "threshold" in page.locator("#readout").inner_text()
    plot.focus()
    said = []
    for key in ("ArrowLeft", "ArrowLeft", "ArrowDown"):
        page.keyboard.press(key)
        said.append(page.locator("#readout").inner_text())
    assert said[0] != said[1]
    assert said[1].split(":")[0] != said[2].split(":")[0]
    line = page.locator("#plot svg polyline[stroke-width='2']").first
    toggle = page.locator("#legend button").first
    toggle.click()
    assert toggle.get_attribute("aria-pressed") == "false"
    assert not line.is_visible()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_phone_shows_it_without_sideways_scrolling(open_page, demo_report, scheme):
    page = open_page(demo_report, viewport=PHONE, color_scheme=scheme)
    wide = "() => document.documentElement.scrollWidth - document.documentElement.clientWidth"
    assert page.evaluate(wide) == 0
    page.locator("#table .name").first.click()
    box = page.locator("#viewer").bounding_box()
    assert box["width"] <= PHONE["width"]
    colour = page.evaluate("() => getComputedStyle(document.body).backgroundColor")
    assert (colour == "rgb(255, 255, 255)") == (scheme == "light")


def test_names_with_html_in_them_stay_text(open_page, tmp_path):
    (run,) = sized_runs(tmp_path, 1, ("maps",), NASTY)
    path = tmp_path / "report.html"
    run = replace(run, name="</script><script>alert(2)</script>")
    assert write_report([run], path, n_boot=100) == []
    page = open_page(path)
    assert page.locator("h1").inner_text() == run.name
    page.locator("#table .name", has_text="onerror").click()
    assert page.locator("#viewer-title").inner_text() == f"{NASTY}0"
    assert page.locator("img[src='x']").count() == 0


def test_lines_of_equal_f_are_smooth_and_right(open_page, demo_report):
    page = open_page(demo_report)
    lines = page.locator("#plot .iso").evaluate_all("all => all.map(l => l.getAttribute('points'))")
    assert len(lines) == 9
    for k, points in enumerate(lines, 1):
        at = np.array([p.split(",") for p in points.split()], float)
        r, p = (at[:, 0] - 44) / 400, 1 - (at[:, 1] - 12) / 400
        np.testing.assert_allclose(2 * r * p / (r + p), k / 10, atol=2e-4)


def test_a_dot_of_the_scatter_opens_its_image(open_page, three_methods):
    page = open_page(three_methods)
    assert page.locator("#scatter .dot").count() == len(IDS)
    page.locator("#scatter-y").select_option(label="Sobel: best F")
    page.locator("#scatter svg").focus()
    page.keyboard.press("ArrowRight")
    said = page.locator("#scatter-readout").inner_text()
    widest = max(
        page.evaluate(
            "() => JSON.parse(document.getElementById('data').textContent)"
            ".images.map(i => [Math.abs(i.values[0] - i.values[14]), i.id])"
        )
    )
    assert said.startswith(f"{widest[1]}: ")
    page.keyboard.press("Enter")
    assert page.locator("#viewer-title").inner_text() == widest[1]


def test_a_bar_of_the_histogram_shows_its_images(open_page, demo_report):
    page = open_page(demo_report)
    bar = page.locator("#bars .bar").first
    low, _, high, count, _ = bar.get_attribute("aria-label").replace(":", "").split()
    bar.click()
    left = [float(v) for v in column(page, 3)]
    assert len(left) == int(count) < len(IDS)
    assert all(float(low) <= v < float(high) for v in left)
    page.locator("#bin").click()
    assert page.locator("#count").inner_text() == f"{len(IDS)} of {len(IDS)} images"


def test_thumbnails_and_names_are_links_that_open_the_image_again(open_page, demo_report):
    page = open_page(demo_report)
    thumb = page.locator("#table a.picture").nth(2)
    thumb.scroll_into_view_if_needed()
    page.wait_for_function(
        "() => document.querySelectorAll('#table a.picture img')[2].naturalWidth === 120"
    )
    anchor = thumb.get_attribute("href")
    thumb.click()
    name = page.locator("#viewer-title").inner_text()
    assert page.url.endswith(anchor)
    again = open_page(demo_report, anchor)
    assert again.locator("#viewer").is_visible()
    assert again.locator("#viewer-title").inner_text() == name


def test_all_pictures_zoom_and_move_together(open_page, demo_report):
    page = open_page(demo_report)
    page.locator("#table .name").first.click()
    page.wait_for_selector("#figures canvas")
    pictures = page.locator("#figures .stack img, #figures .stack canvas")

    def places():
        """Left and top of each picture in its frame, and its width, in widths of the frame."""
        return pictures.evaluate_all(
            """all => all.map(i => {
              const a = i.getBoundingClientRect(), b = i.parentElement.getBoundingClientRect();
              return [(a.left - b.left) / b.width, (a.top - b.top) / b.height, a.width / b.width];
            })"""
        )

    frame = page.locator("#figures .stack").first
    box = frame.bounding_box()
    frame.dblclick(position={"x": 0.25 * box["width"], "y": 0.5 * box["height"]})
    assert page.locator("#zoom-level").inner_text() == "3\u00d7"
    # the point under the pointer stays where it is: 0.25 - 3 * 0.25, 0.5 - 3 * 0.5
    np.testing.assert_allclose(places(), np.tile([-0.5, -1, 3], (8, 1)), atol=0.01)
    for right, left in ((0.2 * box["width"], -0.3), (2000, 0)):  # never beyond an edge
        page.mouse.move(box["x"] + 60, box["y"] + 60)
        page.mouse.down()
        page.mouse.move(box["x"] + 60 + right, box["y"] + 60, steps=3)
        page.mouse.up()
        np.testing.assert_allclose(places(), np.tile([left, -1, 3], (8, 1)), atol=0.02)


def test_every_table_can_be_downloaded(open_page, demo_report):
    page = open_page(demo_report)
    page.locator("details").evaluate_all("all => all.forEach(table => { table.open = true; })")
    buttons = page.locator(".download")
    assert buttons.count() == 5
    found = {}
    for k in range(5):
        with page.expect_download() as waiting:
            buttons.nth(k).click()
        text = Path(waiting.value.path()).read_text("utf-8")
        found[waiting.value.suggested_filename] = list(csv.DictReader(io.StringIO(text)))
    assert [len(rows) for rows in found.values()] == [2, 8, 4, 1, len(IDS)]
    rows = found["images-shown.csv"]
    shown = column(page, 3)
    assert [f"{float(row['structure tensor: best F']):.3f}" for row in rows] == shown


def test_layout_on_a_desktop_and_on_paper(open_page, three_methods):
    page = open_page(three_methods, color_scheme="dark")
    curves = page.locator("#plot .curve")
    drawn = curves.evaluate_all("all => all.map(l => l.getAttribute('stroke'))")
    assert drawn == [color for color, _ in curve_lines(3)]
    box = page.locator("#worst .card").first.bounding_box()
    assert box["y"] + box["height"] < DESKTOP["height"]  # seen without scrolling
    table = page.locator(".tall")
    assert table.evaluate("b => b.scrollWidth - b.clientWidth") == 0
    shown = page.locator("#table thead th:visible")
    assert shown.count() == 1 + 3
    page.locator("#every").check()
    assert shown.count() == 1 + 3 * 7
    page.emulate_media(media="print")
    assert not page.locator(".tools").first.is_visible()
    assert table.evaluate("b => b.scrollHeight - b.clientHeight") == 0


def test_an_image_without_pictures_says_where_they_are(open_page, tmp_path, monkeypatch):
    monkeypatch.setattr("bsdsbench.report.html.BUDGET", 60_000)
    path = tmp_path / "r.html"
    write_report(sized_runs(tmp_path, 12, ("m", "n")), path, n_boot=10)
    page = open_page(path)
    assert page.locator("#worst .card").count() == page.locator("#best .card").count() == 6
    with_pictures = page.locator("#table tbody tr:has(img)").count()
    told = page.locator("#images .quiet").first.inner_text()
    assert told.startswith(f"{with_pictures} of 12 images have pictures here")
    page.locator("#table tbody tr:not(:has(img)) .name").first.click()
    text = page.locator("#figures").inner_text()
    assert "--full-pictures shows every image" in text
    assert "F " in text  # its values all the same
