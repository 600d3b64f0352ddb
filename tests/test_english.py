"""The documentation and module docstrings are free of the mistakes that a pattern can find."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
MADE = ("generated", "_build")  # when the site is built
WRITTEN = [p for p in sorted((ROOT / "docs").rglob("*.md")) if not {*MADE} & {*p.parts}]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *WRITTEN]
MODULES = sorted((ROOT / "bsdsbench").rglob("*.py"))
WRONG = r" of one's own| an own | apart[,.]| anew\b|leader board|\b1 cores|^#+ .* mean\??$"


def page_text(text: str) -> str:
    """A page's prose: no code, tables or lists of contents; every item is a paragraph."""
    text = re.sub(r"^```.*?^```$|^ {4,}\S.*$|^\|.*$|<!--.*?-->", "", text, flags=re.M | re.S)
    text = re.sub(r"`[^`]*`|\]\([^)]*\)", "x", text)
    return re.sub(r"^ *(?:[-*]|\d\.) ", "\n", text, flags=re.M)


def sentences(text: str) -> list[str]:
    return [s for part in re.split(r"\n\s*\n", text) for s in re.split(r"(?<=[.:?!])\s", part)]


@pytest.mark.parametrize("path", [*PAGES, *MODULES], ids=lambda p: str(p.relative_to(ROOT)))
def test_no_known_mistake(path):
    text = path.read_text("utf-8")
    if path.suffix == ".py":
        text = ast.get_docstring(ast.parse(text)) or ""
    assert re.findall(WRONG, text, re.M) == []
    if path.suffix == ".md":
        text = page_text(text)
        assert [s for s in sentences(text) if len(s.split()) > 30] == []
    prose = re.split(r"\n\s*\n", re.sub(r"^ *[|=\w`][^\n]* {2,}.*$|^\|.*$", "", text, flags=re.M))
    assert [s for p in prose for s in re.split(r"[.?!]\s", p) if s.count(";") > 1] == []
