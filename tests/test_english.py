"""Pages, shown comments and docstrings are free of mistakes that a pattern can find."""

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
MADE = ("generated", "_build", "auto_examples")  # when the site is built
PAGES = [
    *(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md")),
    *sorted((ROOT / "datasets").glob("*.md")),
    *(p for p in sorted((ROOT / "docs").rglob("*.md")) if not {*MADE} & {*p.parts}),
]
GALLERY = sorted((ROOT / "docs" / "examples").glob("*.py"))
PRESETS = sorted((ROOT / "bsdsbench" / "protocol" / "presets").glob("*.toml"))
MODULES = sorted((ROOT / "bsdsbench").rglob("*.py"))
WRONG = "|".join(
    (
        r" of one's own| an own | apart[,.]| anew\b|leader board|\b1 cores|^#+ .* mean\??$",
        r"is there twice|(?:have|has) no part in|no word of it|unasked|halves upwards",
        r"an image counts once|of no account|of no consequence|stands? beside (?:no|none)",
        r"neither falling|in that hour|\bpunish|is said to be|for the next engineer",
    )
)


def page_text(text: str) -> str:
    """A page's prose: no code, tables or lists of contents; every item is a paragraph."""
    text = re.sub(r"^```.*?^```$|^ {4,}\S.*$|^\|.*$|<!--.*?-->", "", text, flags=re.M | re.S)
    text = re.sub(r"`[^`]*`|\]\([^)]*\)", "x", text)
    return re.sub(r"^ *(?:[-*]|\d\.) ", "\n", text, flags=re.M)


def comments(text: str) -> str:
    """The comment lines of a TOML file or of a gallery page, as prose."""
    kept = [line[1:].strip() for line in text.splitlines() if re.match("#(?! %%| noqa)", line)]
    return "\n".join(line if line else "" for line in kept)


def docstrings(path: Path) -> list[str]:
    """The summaries of a module and all in it, to the first section or list of names."""
    kinds = (ast.Module, ast.ClassDef, ast.FunctionDef)
    found = [
        ast.get_docstring(node)
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
        if isinstance(node, kinds)
    ]
    starts = r"^\w+(?: \w+)*\n-{3,}$|^ *[\w, ]+ +: |^\||^ *- |^>>> "
    return [re.split(starts, doc, maxsplit=1, flags=re.M)[0] for doc in found if doc]


def sentences(text: str) -> list[str]:
    return [s for part in re.split(r"\n\s*\n", text) for s in re.split(r"(?<=[.:?!])\s", part)]


def chains(prose: str) -> list[str]:
    """Sentences with more than one semicolon."""
    paragraphs = re.split(r"\n\s*\n", prose)
    return [s for p in paragraphs for s in re.split(r"[.?!]\s", p) if s.count(";") > 1]


def named(path: Path) -> str:
    return str(path.relative_to(ROOT))


@pytest.mark.parametrize("path", PAGES, ids=named)
def test_a_page_has_no_known_mistake(path):
    text = path.read_text("utf-8")
    assert re.findall(WRONG, text, re.M) == []
    prose = page_text(text)
    assert chains(prose) == []
    if path.name != "CHANGELOG.md":
        assert [s for s in sentences(prose) if len(s.split()) > 30] == []


@pytest.mark.parametrize("path", [*GALLERY, *PRESETS], ids=named)
def test_comments_that_are_shown_have_no_known_mistake(path):
    text = path.read_text("utf-8")
    title = ast.get_docstring(ast.parse(text)) if path.suffix == ".py" else ""
    prose = f"{title}\n\n{comments(text)}"
    assert re.findall(WRONG, prose, re.M) == []
    assert chains(prose) == []
    assert [s for s in sentences(prose) if len(s.split()) > 34] == []


@pytest.mark.parametrize("path", MODULES, ids=named)
def test_docstrings_have_no_known_mistake(path):
    found = docstrings(path)
    assert [m for doc in found for m in re.findall(WRONG, doc, re.M)] == []
    assert [s for doc in found for s in chains(doc)] == []
