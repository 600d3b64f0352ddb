"""The pages of the site, read before it is built: their lists, code, numbers and pictures."""

import doctest
import re
import sys
from pathlib import Path

import pytest
from PIL import Image

DOCS = Path(__file__).parents[1] / "docs"
sys.path.insert(0, str(DOCS))

from drawing.common import PICTURES  # noqa: E402
from drawing.draw import what_it_shows  # noqa: E402
from making import metrics, reference, verbs  # noqa: E402

from bsdsbench.cli import VERBS  # noqa: E402
from bsdsbench.metrics import registry  # noqa: E402
from bsdsbench.protocol.tasks import tasks  # noqa: E402

WRITTEN = [
    path
    for path in sorted(DOCS.rglob("*.md"))
    if not {"_build", "generated", "auto_examples"} & {*path.relative_to(DOCS).parts}
]
LESSONS = [p for p in WRITTEN if p.parent.name == "understand" and p.stem != "index"]
METRICS = [p for p in WRITTEN if p.parent.name == "metrics"]
WITH_CODE = [
    pytest.param(p, marks=pytest.mark.slow) for p in WRITTEN if "```pycon" in p.read_text("utf-8")
]


def name_of(path):
    return str(path.relative_to(DOCS))


@pytest.mark.parametrize("index", [p for p in WRITTEN if p.stem == "index"], ids=name_of)
def test_every_page_is_listed(index):
    listed = index.read_text("utf-8").partition("{toctree}")[2].split()
    folder = index.parent
    pages = {path.stem for path in folder.glob("*.md")} | {
        f"{path.parent.name}/index" for path in folder.glob("*/index.md")
    }
    assert pages - {*listed, "index", "generated/index", "auto_examples/index"} == set()


def blocks(path):
    return re.findall(r"^```pycon\n(.*?)^```", path.read_text("utf-8"), re.M | re.S)


@pytest.mark.parametrize("path", WITH_CODE, ids=name_of)
def test_the_code_of_a_page_prints_what_the_page_says(path, detectors_once):
    test = doctest.DocTestParser().get_doctest("\n".join(blocks(path)), {}, path.stem, str(path), 0)
    said = []
    doctest.DocTestRunner(verbose=False).run(test, out=said.append)
    assert "".join(said) == ""
    assert test.examples


def prose(path):
    """A page without code, links and what is published or tested elsewhere."""
    text = path.read_text("utf-8")
    text = re.sub(r"^```.*?^```$|\]\([^)]*\)|`[^`]*`", "", text, flags=re.M | re.S)
    text = re.sub(r"^## [^\n]*\n\n<!-- numbers: tests.*?(?=^## )", "", text, flags=re.M | re.S)
    text = re.sub(r"^## The paper.*", "", text, flags=re.M | re.S)
    return re.sub(r"Published: [^|]*?(?=\||\.(?=\s)|\Z)", "", text, flags=re.S)


@pytest.mark.parametrize("path", LESSONS, ids=name_of)
def test_the_numbers_of_a_lesson_come_from_its_code(path):
    """A decimal number of the prose is one of the code's, to the digits that are printed."""
    known = [float(x) for block in blocks(path) for x in re.findall(r"\d*\.?\d+", block)]
    wrong = [
        text
        for text in re.findall(r"(?<![\w.])\d*\.\d+", prose(path))
        if not any(
            abs(float(text) - k) <= 0.5000001 * 10 ** -len(text.partition(".")[2]) for k in known
        )
    ]
    assert wrong == []


@pytest.mark.parametrize("path", LESSONS, ids=name_of)
def test_a_lesson_has_its_parts(path):
    text = path.read_text("utf-8")
    assert re.search(r"^\*\*[^*]+\?\*\*$", text, re.M)  # the question
    (picture,) = re.findall(r"^!\[.+\]\(\.\./generated/figures/(\w+)\.svg\)$", text, re.M)
    assert picture in PICTURES
    assert [
        h for h in ("By hand", "In code", "The trap", "The paper") if f"## {h}\n" not in text
    ] == []


def test_there_are_twelve_lessons():
    assert len(LESSONS) == 12


@pytest.mark.parametrize("path", METRICS, ids=name_of)
def test_a_metric_page_has_its_parts(path):
    text = path.read_text("utf-8")
    assert path.stem in registry.names()
    parts = ("Who computes it, and how they differ", "When it misleads", "Scores and options")
    assert [h for h in parts if f"## {h}\n" not in text] == []
    (picture,) = re.findall(r"\(\.\./generated/figures/(\w+)\.svg\)", text)
    assert picture in PICTURES
    assert "```pycon" in text
    assert "```sh\nbsdsbench " in text
    assert f"```{{include}} ../generated/metrics/{path.stem}.txt\n" in text


def test_every_metric_has_a_page_and_is_in_the_index():
    assert {path.stem for path in METRICS} == set(registry.BUILT_IN)
    made = metrics.pages()
    for name in registry.BUILT_IN:
        assert f"| [{name}](../../metrics/{name}.md) |" in made["index.md"]
        assert all(c.heading in made[f"{name}.txt"] for c in registry.get(name).columns if c.score)


def test_every_task_is_listed_with_what_it_needs_and_on_the_page_of_its_data():
    rows = reference.task_page().splitlines()
    data = reference.data_pages()
    for name, task in tasks().items():
        (row,) = [row for row in rows if row.startswith(f"| `{name}` |")]
        where = f"(protocols/{task.protocol}.md)", f"/{task.metric}.md)", f"(data/{task.page}.md)"
        assert [part for part in (*where, task.needs) if part not in row.replace("<wbr>", "")] == []
        assert f"`{name}`" in data[task.page]


def test_every_verb_has_a_call_that_the_site_runs():
    assert set(verbs.CALLS) == set(VERBS)
    for verb, lines in verbs.CALLS.items():
        assert lines[-1].split()[:2] == ["bsdsbench", verb]
    made = verbs.pages({})
    assert set(made) == {"index", *VERBS}


@pytest.mark.slow
def test_the_first_picture_shows_todays_numbers(detectors_once):
    """Renew it by `python docs/drawing docs --png first_picture`."""
    with Image.open(DOCS / "first_picture.png") as stored:
        assert stored.info["Description"] == what_it_shows()
