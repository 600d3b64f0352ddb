"""The documentation site in a real browser, and its links. BSDSBENCH_SITE names the built site."""

from __future__ import annotations

import os
import shutil
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

sync_api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")

CHROMIUM = next(
    (p for n in ("chromium", "chromium-browser", "google-chrome") if (p := shutil.which(n))), None
)
SITE = os.environ.get("BSDSBENCH_SITE")
pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(not SITE, reason="BSDSBENCH_SITE is not set: build the site first"),
]
PHONE = {"width": 390, "height": 844}
WALK = ("index", "start", "scores", "generated/cli", "generated/api", "auto_examples/index")


class Page(HTMLParser):
    """Links, anchors and pictures of a page."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.links, self.anchors, self.bare = [], set(), []
        self.feed(path.read_text("utf-8"))

    def handle_starttag(self, tag, attributes):
        found = dict(attributes)
        self.anchors.update(found[k] for k in ("id", "name") if found.get(k))
        self.links += [found[k] for k in ("href", "src") if found.get(k)]
        thumb = "_thumb" in (found.get("src") or "")  # its link has the text
        if tag == "img" and not thumb and not (found.get("alt") or "").strip():
            self.bare.append(found.get("src"))


@pytest.fixture(scope="module")
def site() -> Path:
    root = Path(SITE or "").resolve()
    assert (root / "index.html").is_file(), f"{root}: no site"
    return root


@pytest.fixture(scope="module")
def pages(site):
    return {path: Page(path) for path in site.rglob("*.html") if "_static" not in path.parts}


def test_no_internal_link_is_broken(pages, site):
    broken = []
    for path, page in pages.items():
        for link in page.links:
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                continue
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            if not target.exists():
                broken.append(f"{path.relative_to(site)}: {link}")
            elif parts.fragment and target in pages:
                anchors = pages[target].anchors
                if unquote(parts.fragment) not in anchors:
                    broken.append(f"{path.relative_to(site)}: {link}")
    assert broken == []
    assert len(pages) > 60


def test_every_figure_has_a_text(pages, site):
    bare = {str(path.relative_to(site)): page.bare for path, page in pages.items() if page.bare}
    assert bare == {}


def test_nothing_is_loaded_from_elsewhere(pages):
    for path in pages:
        text = path.read_text("utf-8")
        assert 'src="http' not in text, path
        assert 'rel="stylesheet" href="http' not in text, path


@pytest.fixture(scope="module")
def browser():
    if CHROMIUM is None:
        pytest.skip("no chromium on the path")
    with sync_api.sync_playwright() as play:
        opened = play.chromium.launch(
            executable_path=CHROMIUM,
            args=["--no-sandbox", "--disable-gpu", "--allow-file-access-from-files"],
        )
        yield opened
        opened.close()


@pytest.fixture
def open_page(site, browser):
    """open_page(name, ...) -> page; on leaving, nothing was logged and nothing fetched outside."""
    problems, contexts = [], []

    def go(name, **options):
        contexts.append(browser.new_context(**options))
        page = contexts[-1].new_page()
        page.set_default_timeout(20_000)
        page.on("console", lambda m: m.type == "error" and problems.append(m.text))
        page.on("pageerror", lambda error: problems.append(f"error: {error}"))
        page.on(
            "request",
            lambda r: r.url.startswith(("file:", "data:")) or problems.append(r.url),
        )
        page.goto((site / f"{name}.html").as_uri())
        return page

    yield go
    for context in contexts:
        context.close()
    assert problems == []


def test_search_finds_a_function(open_page):
    page = open_page("search")
    page.goto(f"{page.url}?q=match_boundaries")
    hit = page.locator("#search-results a").first
    hit.wait_for()
    assert "match_boundaries" in page.locator("#search-results").inner_text()


def test_dark_mode(open_page):
    shades = {}
    for scheme in ("light", "dark"):
        page = open_page("index", color_scheme=scheme)
        assert page.evaluate("document.documentElement.dataset.theme") == scheme
        colour = page.evaluate("getComputedStyle(document.body).backgroundColor")
        shades[scheme] = sum(int(part) for part in colour.strip("rgba()").split(",")[:3])
    assert shades["dark"] < 200
    assert shades["light"] > 600


@pytest.mark.parametrize("name", WALK)
def test_a_phone_needs_no_sideways_scrolling(open_page, name):
    page = open_page(name, viewport=PHONE)
    width = page.evaluate("document.documentElement.scrollWidth")
    assert width <= PHONE["width"]
    assert page.locator("h1").first.is_visible()
