"""Every page of the site is in its table of contents: seen here before the site is built."""

from pathlib import Path

import pytest

DOCS = Path(__file__).parents[1] / "docs"


@pytest.mark.parametrize("folder", [DOCS, DOCS / "doors"], ids=["docs", "doors"])
def test_every_page_is_listed(folder):
    listed = (folder / "index.md").read_text("utf-8").partition("{toctree}")[2].split()
    pages = {path.stem for path in folder.glob("*.md")} - {"index"}
    assert pages
    assert pages - set(listed) == set()
