"""The documentation site in a real browser, and its links. BSDSBENCH_SITE names the built site."""

import json
import os
import re
import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

from tests.browser.conftest import PHONE

SITE = os.environ.get("BSDSBENCH_SITE")
pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(not SITE, reason="BSDSBENCH_SITE is not set: build the site first"),
]
DOCS = Path(__file__).parents[2] / "docs"
WORDS = DOCS / "search_words.json"
sys.path.insert(0, str(DOCS))
DESKTOP = {"width": 1280, "height": 900}
# One page of each kind.
WALK = (
    *("index", "tutorials/index", "auto_examples/plot_1_evaluate_a_detector", "howto/maps"),
    *(
        "howto/coming_from",
        "understand/ods_ois",
        "understand/sliders",
        "metrics/region",
        "reference/signature",
    ),
    *("generated/verbs/compare", "reference/api/protocol", "reference/api/measures"),
    *("reference/protocols", "reference/published", "generated/data/index", "metrics/index"),
    *("generated/notebook", "evidence/agreement", "contribute"),
)
# A reader's question, the first words of the page that answers it, and words that it must have.
QUESTIONS = {
    "How do I get my ODS?": ("howto/maps", "bsdsbench evaluate maps --gt"),
    "What does this number mean?": ("understand/ods_ois", "optimal data set scale"),
    "How do I gate my CI?": ("howto/gate", "bsdsbench check out/mine --baseline"),
    "How do I add a metric?": ("contribute", "bsdsbench/metrics/registry.py"),
}
HAND_WRITTEN = ("howto", "understand", "metrics", "reference", "evidence", "tutorials")


class Page(HTMLParser):
    """Links, anchors, pictures and description of a page; `own` are the links of its text."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.links, self.own, self.anchors, self.bare = [], [], set(), []
        self.description, self.inside = "", 0
        self.feed(path.read_text("utf-8"))

    def handle_starttag(self, tag, attributes):
        found = dict(attributes)
        if tag == "article":
            self.inside += 1
        if tag == "meta" and found.get("name") == "description":
            self.description = found["content"]
        headline = "headerlink" in (found.get("class") or "")
        if tag == "a" and self.inside and found.get("href") and not headline:
            self.own.append(found["href"])
        self.anchors.update(found[k] for k in ("id", "name") if found.get(k))
        self.links += [found[k] for k in ("href", "src") if found.get(k)]
        thumb = "_thumb" in (found.get("src") or "")  # its link has the text
        if tag == "img" and not thumb and not (found.get("alt") or "").strip():
            self.bare.append(found.get("src"))

    def handle_endtag(self, tag):
        self.inside -= tag == "article"


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


def linked(path, page):
    """The pages of the site that a page's own text links to."""
    for link in page.own:
        parts = urlsplit(link)
        if not parts.scheme and not parts.netloc and parts.path:
            yield (path.parent / unquote(parts.path)).resolve()


@pytest.mark.parametrize("question", QUESTIONS)
def test_a_question_is_answered_within_two_clicks_from_home(pages, site, question):
    name, words = QUESTIONS[question]
    target = site / f"{name}.html"
    home = site / "index.html"
    first = {p for p in linked(home, pages[home]) if p in pages}
    second = {p for each in first for p in linked(each, pages[each])}
    assert target in first | second
    assert words in re.sub(r"<[^>]*>", "", target.read_text("utf-8"))


def test_every_written_page_leads_to_three_others(pages, site):
    few = {}
    for path, page in pages.items():
        name = path.relative_to(site)
        api = name.parts[:2] == ("reference", "api")
        if name.parts[0] in (*HAND_WRITTEN, "generated") and not api:
            others = {*linked(path, page)} - {path}
            if len(others) < 3 and name.stem != "changelog":
                few[str(name)] = len(others)
    assert few == {}


def test_every_page_has_a_description_of_its_own(pages, site):
    found = {str(path.relative_to(site)): page.description for path, page in pages.items()}
    made = ("genindex.html", "search.html", "py-modindex.html")
    short = [name for name, text in found.items() if len(text) < 20 and name not in made]
    assert short == []
    guides = [found[name] for name in found if name.split("/")[0] in HAND_WRITTEN]
    assert len({*guides}) == len(guides)


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


def test_search_finds_a_function(open_page):
    page = open_page("search")
    page.goto(f"{page.url}?q=match_boundaries")
    hit = page.locator("#search-results a").first
    hit.wait_for()
    assert "match_boundaries" in page.locator("#search-results").inner_text()


def test_search_finds_the_page_of_a_word_first_or_second(open_page):
    page = open_page("search")
    page.wait_for_function("Search._index !== null")
    asked = "q => Search._performSearch(...Search._parseQuery(q)).reverse().map(r => r[0])"
    lost = []
    for name, words in json.loads(WORDS.read_text("utf-8")).items():
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
    ods = [
        float(text)
        for text in page.locator(".sortable tr:visible td:nth-child(4)").all_inner_texts()
    ]
    assert ods == sorted(ods)


def test_sliders_show_the_counts_that_python_gives(open_page):
    from making.sliders import START, steps

    page, data = open_page("understand/sliders"), steps()

    def shown(threshold, tolerance):
        step = data["steps"][threshold]
        tp, found = step["p"][tolerance].count("1"), step["g"][tolerance].count("1")
        fp, fn = len(step["pred"]) - tp, len(data["gt"]) - found
        return f"TP {tp}, FP {fp}, FN {fn}: precision {tp / (tp + fp):.3f}, "

    counts, marks = page.locator(".sliders .counts"), set()
    assert counts.inner_text().startswith(shown(START["threshold"], START["tolerance"]))
    for threshold, tolerance in ((3, 0), (3, 5), (15, 5)):
        page.get_by_label("Threshold").fill(str(threshold))
        page.get_by_label("Tolerance").fill(str(tolerance))
        assert counts.inner_text().startswith(shown(threshold, tolerance))
        marks.add(page.locator(".sliders circle").last.get_attribute("cx"))
    assert len(marks) == 3
    page.get_by_label("Behind").select_option("none")
    orange = page.evaluate(
        """() => { const c = document.querySelector('.sliders canvas');
        const d = c.getContext('2d').getImageData(0, 0, c.width, c.height).data; let n = 0;
        for (let k = 0; k < d.length; k += 4) n += d[k] === 0xD5 && d[k + 1] === 0x5E; return n }"""
    )
    assert orange == 9 * data["steps"][15]["p"][5].count("0")


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
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("size", [DESKTOP, PHONE], ids=["desktop", "phone"])
def test_a_page_fits_and_has_no_serious_fault(open_page, name, size, scheme):
    """No sideways scrolling; axe-core finds nothing serious or critical."""
    axe = pytest.importorskip("axe_playwright_python.sync_playwright").Axe()
    page = open_page(name, viewport=size, color_scheme=scheme)
    assert page.evaluate("document.documentElement.scrollWidth") <= size["width"]
    assert page.locator("h1").first.is_visible()
    serious = [
        f"{found['id']}: {found['nodes'][0]['html'][:200]} ({len(found['nodes'])})"
        for found in axe.run(page, options={"preload": False}).response["violations"]
        if found["impact"] in ("serious", "critical")
    ]
    assert serious == []


def test_code_has_a_button_that_copies_it_without_prompts(open_page):
    page = open_page("understand/ods_ois")
    block = page.locator("div.highlight").first
    assert block.locator("button.copybtn").count() == 1
    assert ">>>" in block.inner_text()
    copied = page.evaluate(
        "() => { const b = document.querySelector('button.copybtn');"
        " return document.querySelector(b.dataset.clipboardTarget).innerText }"
    )
    assert copied.startswith(">>> import numpy")
    assert "copybuttonPromptText" not in page.content()


def test_a_precision_recall_curve_stands_on_the_first_page(open_page):
    page = open_page("index")
    picture = page.locator("article img").first
    assert "precision-recall curve" in picture.get_attribute("alt")
    assert picture.evaluate("i => i.complete && i.naturalWidth > 600")
