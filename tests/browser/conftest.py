"""A headless Chromium, and pages that must log nothing and fetch nothing."""

import shutil

import imageio.v3 as iio
import numpy as np
import pytest

import bsdsbench as bb
from bsdsbench.cli.score import _DEMO_DETECTORS
from bsdsbench.loaders.sample import sample_images, sample_results
from tests.helpers.crops import annotations

CHROMIUM = shutil.which("chromium") or shutil.which("google-chrome")

PHONE = {"width": 390, "height": 844}
DESKTOP = {"width": 1280, "height": 720}
# Rows of a table are alike, and axe is slow at many of them.
FEW_ROWS = """document.querySelectorAll('tbody').forEach(
    rows => [...rows.children].slice(6).forEach(row => row.remove()))"""

PIECE = np.s_[40:200, 100:340]
IDS = ("fruit1", "herd1", "lake1", "leaves1", "reef1", "reef2", "town1", "town2")


@pytest.fixture(scope="package")
def sample_runs(tmp_path_factory):
    """Title -> the run of a shipped method on pieces of eight images of the sample."""
    out, runs = tmp_path_factory.mktemp("sample"), {}
    truth, photos = (out / folder / "test" for folder in ("groundTruth", "images"))
    truth.mkdir(parents=True), photos.mkdir(parents=True)
    for name in IDS:
        np.save(truth / f"{name}.npy", np.stack([a[PIECE] for a in annotations(name)]))
        iio.imwrite(photos / f"{name}.png", iio.imread(sample_images() / f"{name}.jpg")[PIECE])
    for method in ("structure-tensor", "canny", "sobel"):
        (out / method).mkdir()
        for name in IDS:
            soft = iio.imread(sample_results(method) / f"{name}.png")[PIECE]
            iio.imwrite(out / method / f"{name}.png", soft)
        title = _DEMO_DETECTORS[method]
        options = {"out": out / f"run-{method}", "workers": 1, "name": title}
        runs[title] = bb.evaluate(out / method, truth, **options)
    return runs


@pytest.fixture(scope="package")
def browser():
    sync_api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    if CHROMIUM is None:
        pytest.skip("no chromium on the path")
    with sync_api.sync_playwright() as play:
        args = ["--no-sandbox", "--disable-gpu", "--allow-file-access-from-files"]
        found = play.chromium.launch(executable_path=CHROMIUM, args=args)
        yield found
        found.close()


@pytest.fixture(scope="package")
def tab(browser):
    """One page for the tests of a folder, as another costs more than what they look at.

    A page with the list of what it logged or fetched."""
    context = browser.new_context()
    page, problems = context.new_page(), []
    page.set_default_timeout(60_000)
    page.on("console", lambda m: problems.append(f"{m.type}: {m.text}"))
    page.on("pageerror", lambda error: problems.append(f"error: {error}"))
    page.on("dialog", lambda d: (problems.append(f"dialog: {d.message}"), d.dismiss()))
    page.on("request", lambda r: problems.append(f"request: {r.url}"))
    yield page, problems
    context.close()


@pytest.fixture
def open_page(tab):
    """open_page(path, ...) -> page; on leaving, nothing was logged and nothing was fetched."""
    page, problems = tab
    own = ["data:", "blob:", "about:"]

    def go(path, anchor="", viewport=DESKTOP, color_scheme="light"):
        own.append(path.as_uri())
        page.goto("about:blank")  # else an anchor alone would load nothing
        page.mouse.move(0, 0)
        page.set_viewport_size(viewport)
        page.emulate_media(media="null", color_scheme=color_scheme)
        page.goto(path.as_uri() + anchor)
        return page

    yield go
    found = [p for p in problems if not p.startswith(tuple(f"request: {start}" for start in own))]
    problems.clear()
    assert found == []
