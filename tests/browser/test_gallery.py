"""Pages of the gallery hold the pictures that their source announces. BSDSBENCH_SITE: the site."""

import hashlib
import os
import re
from pathlib import Path

import pytest

SITE = os.environ.get("BSDSBENCH_SITE")
SOURCES = sorted((Path(__file__).parents[2] / "docs" / "examples").glob("plot_*.py"))
NAMES = [path.stem for path in SOURCES]
built = pytest.mark.skipif(not SITE, reason="BSDSBENCH_SITE is not set: build the site first")


def shows(path: Path) -> int:
    return len(re.findall(r"^plt\.show\(\)", path.read_text("utf-8"), re.M))


@pytest.mark.parametrize("source", SOURCES, ids=NAMES)
def test_every_example_shows_a_picture(source):
    assert shows(source)


@built
@pytest.mark.browser
@pytest.mark.parametrize("source", SOURCES, ids=NAMES)
def test_a_page_holds_its_pictures(source):
    page = (Path(SITE) / "auto_examples" / f"{source.stem}.html").read_text("utf-8")
    pictures = set(re.findall(rf'src="([^"]*sphx_glr_{source.stem}_\d+\.png)"', page))
    assert len(pictures) == shows(source)
    for picture in pictures:
        assert (Path(SITE) / "auto_examples" / picture).stat().st_size > 3000


@built
@pytest.mark.browser
def test_every_page_has_a_thumbnail_of_its_own():
    folder = Path(SITE) / "_images"
    found = {n: (folder / f"sphx_glr_{n}_thumb.png").read_bytes() for n in NAMES}
    assert len({hashlib.sha256(data).digest() for data in found.values()}) == len(NAMES) > 9
    sphinx_gallery = pytest.importorskip("sphinx_gallery")
    none = Path(sphinx_gallery.__file__).parent / "_static" / "no_image.png"
    assert none.is_file()
    assert none.read_bytes() not in found.values()
