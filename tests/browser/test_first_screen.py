"""What a reader sees first of a report: curves."""

import re

import pytest

from bsdsbench.plotting.style import PIXELS
from bsdsbench.report import write_report
from tests.browser.conftest import DESKTOP, PHONE
from tests.helpers.simulated import simulated_run
from tests.report.test_overlays import sized_runs

pytest.importorskip("jinja2", reason="jinja2 is not installed")
pytestmark = pytest.mark.browser
SIZES = pytest.mark.parametrize("size", [DESKTOP, PHONE], ids=["desktop", "phone"])


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
