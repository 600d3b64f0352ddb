"""The documentation site in a real browser, and its links. BSDSBENCH_SITE names the built site."""

import json
import os
import re
import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

from tests.browser.conftest import DESKTOP, FEW_ROWS, PHONE

SITE = os.environ.get("BSDSBENCH_SITE")
pytestmark = [
    pytest.mark.browser,
    pytest.mark.slow,
    pytest.mark.skipif(not SITE, reason="BSDSBENCH_SITE is not set: build the site first"),
]
DOCS = Path(__file__).parents[2] / "docs"
sys.path.insert(0, str(DOCS))
# One page of each kind.
WALK = [
    "index",
    "tutorials/index",
    "auto_examples/plot_1_evaluate_a_detector",
    "howto/maps",
    "howto/coming_from",
    "howto/gate",
    "walks/paper",
    "understand/ods_ois",
    "understand/sliders",
    "metrics/region",
    "reference/signature",
    "generated/verbs/compare",
    "reference/api/protocol",
    "reference/protocols",
    "reference/published",
    "generated/data/index",
    "metrics/index",
    "generated/notebook",
    "evidence/agreement",
    "contribute",
]


class Page(HTMLParser):
    """Links and anchors of a page, and pictures without a text."""

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


def test_links_work_pictures_have_texts_and_nothing_is_loaded_from_elsewhere(site):
    pages = {path: Page(path) for path in site.rglob("*.html") if "_static" not in path.parts}
    broken = []
    for path, page in pages.items():
        broken += [f"{path}: {picture} has no text" for picture in page.bare]
        text = path.read_text("utf-8")
        if 'src="http' in text or 'rel="stylesheet" href="http' in text:
            broken.append(f"{path} loads from elsewhere")
        for link in page.links:
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                continue
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            there = pages[target].anchors if target in pages else {unquote(parts.fragment)}
            if not target.exists() or (parts.fragment and unquote(parts.fragment) not in there):
                broken.append(f"{path}: {link}")
    assert broken == []
    assert len(pages) > 60


def test_letters_of_pictures_can_be_read_on_a_phone(site):
    """At 420 pixels, or at the width at which two plots side by side scroll."""
    low = {}
    for path in (site / "_images").glob("*.svg"):
        text = path.read_text("utf-8")
        points = float(re.search(r'width="([\d.]+)pt"', text)[1])
        sizes = [100 * float(size) for size in re.findall(r"scale\(([\d.]+) -[\d.]+\)", text)]
        shown = 42 * 16 if points > 7.5 * 72 else 420
        if (smallest := min(size for size in sizes if size < 50) * shown / points) < 6.9:
            low[path.name] = round(smallest, 1)
    assert low == {}


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
        page.on("request", lambda r: r.url.startswith(("file:", "data:")) or problems.append(r.url))
        page.goto((site / f"{name}.html").as_uri())
        return page

    yield go
    for context in contexts:
        context.close()
    assert problems == []


def test_search_finds_the_page_of_a_word_first_or_second(open_page):
    page = open_page("search")
    page.wait_for_function("Search._index !== null")
    asked = "q => Search._performSearch(...Search._parseQuery(q)).reverse().map(r => r[0])"
    lost = []
    for name, words in json.loads((DOCS / "search_words.json").read_text("utf-8")).items():
        for word in words:
            found = list(dict.fromkeys(page.evaluate(asked, word)))
            if name not in found[:2]:
                lost.append((word, name, found[:3]))
    assert lost == []


def test_published_results_are_sorted_and_searched(open_page):
    page = open_page("reference/published")
    rows = page.locator(".sortable tbody tr:visible")
    every = rows.count()
    page.get_by_role("searchbox", name="Search the rows of this table").fill("hed bsds500-test")
    assert 3 <= rows.count() < every / 5
    page.get_by_role("button", name="ODS").click()
    ods = page.locator(".sortable tr:visible td:nth-child(5)").all_inner_texts()
    assert ods == sorted(ods)


def test_sliders_show_the_counts_that_python_gives(open_page):
    from making.sliders import START, steps

    page, data = open_page("understand/sliders"), steps()
    counts = page.locator(".sliders .counts")
    for threshold, tolerance in ((START["threshold"], START["tolerance"]), (3, 0), (3, 5), (15, 5)):
        if (threshold, tolerance) != (START["threshold"], START["tolerance"]):
            page.get_by_label("Threshold").fill(str(threshold))
            page.get_by_label("Tolerance").fill(str(tolerance))
        step = data["steps"][threshold]
        tp, found = step["p"][tolerance].count("1"), step["g"][tolerance].count("1")
        fp, fn = len(step["pred"]) - tp, len(data["gt"]) - found
        shown = f"TP {tp}, FP {fp}, FN {fn}: precision {tp / (tp + fp):.3f}, "
        assert counts.inner_text().startswith(shown)


@pytest.mark.parametrize("name", WALK)
@pytest.mark.parametrize(
    ("size", "scheme"), [(DESKTOP, "light"), (PHONE, "dark")], ids=["desktop", "phone"]
)
def test_a_page_fits_and_has_no_serious_fault(open_page, name, size, scheme):
    """No sideways scrolling; axe-core finds nothing serious or critical."""
    axe = pytest.importorskip("axe_playwright_python.sync_playwright").Axe()
    options = {"preload": False, "resultTypes": ["violations"]}  # the others take as long again
    page = open_page(name, viewport=size, color_scheme=scheme)
    assert page.evaluate("document.documentElement.scrollWidth") <= size["width"]
    assert page.evaluate("document.documentElement.dataset.theme") == scheme
    assert page.locator("h1").first.is_visible()
    if size == DESKTOP:  # no code is cut at the right
        cut = "boxes => boxes.filter(e => e.scrollWidth > e.clientWidth + 1).map(e => e.innerText)"
        assert page.locator("pre").evaluate_all(cut) == []
    page.evaluate(FEW_ROWS)
    serious = [
        f"{found['id']}: {found['nodes'][0]['html'][:200]} ({len(found['nodes'])})"
        for found in axe.run(page, options=options).response["violations"]
        if found["impact"] in ("serious", "critical")
    ]
    assert serious == []
