"""The pages of the site, read before it is built: their lists, code, numbers and pictures."""

import ast
import doctest
import re
import sys
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[1] / "docs"
README, CONTRIBUTING = (DOCS.parent / f"{name}.md" for name in ("README", "CONTRIBUTING"))
sys.path.insert(0, str(DOCS))

from making import metrics, reference, verbs  # noqa: E402

import bsdsbench as bb  # noqa: E402
from bsdsbench.cli import COMMANDS  # noqa: E402
from bsdsbench.metrics import registry  # noqa: E402
from bsdsbench.protocol.tasks import tasks  # noqa: E402

WRITTEN = [
    path
    for path in sorted(DOCS.rglob("*.md"))
    if not {"_build", "generated", "auto_examples"} & {*path.relative_to(DOCS).parts}
]
METRICS = [p for p in WRITTEN if p.parent.name == "metrics" and p.stem != "index"]
WITH_CODE = [
    pytest.param(p, marks=pytest.mark.slow) for p in WRITTEN if "```pycon" in p.read_text("utf-8")
]


def name_of(path):
    return str(path.relative_to(DOCS))


def blocks(path):
    return re.findall(r"^```pycon\n(.*?)^```", path.read_text("utf-8"), re.M | re.S)


@pytest.mark.parametrize("path", WITH_CODE, ids=name_of)
def test_the_code_of_a_page_prints_what_the_page_says(path, detectors_once):
    test = doctest.DocTestParser().get_doctest("\n".join(blocks(path)), {}, path.stem, str(path), 0)
    said = []
    doctest.DocTestRunner(verbose=False).run(test, out=said.append)
    assert "".join(said) == ""
    assert test.examples


def test_every_metric_has_a_page_and_is_in_the_index():
    assert {path.stem for path in METRICS} == set(registry.BUILT_IN)
    made = metrics.pages()
    for name in registry.BUILT_IN:
        assert f"| [{name}]({name}.md) |" in made["index.txt"]
        assert all(c.heading in made[f"{name}.txt"] for c in registry.get(name).columns if c.score)


def test_every_task_is_listed_with_what_it_needs_and_on_the_page_of_its_data():
    rows = reference.task_table().splitlines()
    data = reference.data_pages()
    for name, task in tasks().items():
        (row,) = [row for row in rows if row.startswith(f"| `{name}` |")]
        where = f"#{task.protocol})", f"/{task.metric}.md)", f"data/{task.page}.md)"
        assert [part for part in (*where, task.needs) if part not in row.replace("<wbr>", "")] == []
        assert f"`{name}`" in data[task.page]


def test_every_verb_has_a_call_that_the_site_runs():
    assert set(verbs.CALLS) == set(COMMANDS)
    for verb, lines in verbs.CALLS.items():
        assert lines[-1].split()[:2] == ["bsdsbench", verb]


def test_every_public_name_is_in_the_api():
    listed = [
        line.split(":: ")[1]
        for path in (DOCS / "reference/api").glob("*.rst")
        for line in path.read_text("utf-8").splitlines()
        if re.match(r"\.\. auto(function|class)::", line)
    ]
    public = {*bb.__all__, *bb.curves.__all__, *bb.contour.__all__}
    constants = {"__version__", "curves", "CONVENTIONS"}
    assert public - constants - set(listed) == set()


@pytest.mark.slow
def test_no_docstring_of_the_api_has_a_substitution_that_sphinx_looks_for():
    """Such as |a - b|, which is to be abs(a - b)."""
    for path in sorted((DOCS.parent / "bsdsbench").rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
                plain = re.sub("`[^`]*`", "", ast.get_docstring(node) or "")
                assert not re.search(r"(?<!\w)\|\w[^|\n]*\w\|(?!\w)", plain), f"{path}: {node.name}"


LINK = re.compile(r"\]\((?!https?:|#|mailto:|/)([^)#\s]+)")


def test_links_of_pages_work_in_a_clone():
    """Those of a code block are of the page that it would make."""
    for path in (*WRITTEN, README, CONTRIBUTING):
        text = re.sub(r"^```.*?^```", "", path.read_text("utf-8"), flags=re.M | re.S)
        gone = [
            link
            for link in LINK.findall(text)
            if not (path.parent / link).exists() and "generated/figures" not in link
        ]
        assert gone == [], path


def test_whatever_pages_import_is_in_the_api():
    """A module counts as listed where one of its functions is."""
    listed, module = set(), ""
    for path in sorted((DOCS / "reference/api").glob("*.rst")):
        for line in path.read_text("utf-8").splitlines():
            if line.startswith(".. currentmodule:: "):
                module = line.split(":: ")[1]
            elif re.match(r"\.\. auto(function|class|data)::", line):
                listed.add(f"{module}.{line.split(':: ')[1]}")
    pages = [*WRITTEN, *sorted((DOCS / "examples").glob("*.py"))]
    imported = {
        (source, name.strip())
        for page in pages
        for source, names in re.findall(
            r"from (bsdsbench\.[\w.]+) import ([\w, ]+)", page.read_text("utf-8")
        )
        for name in names.split(",")
    }
    assert len(imported) > 15
    unlisted = [
        f"{source}.{name}"
        for source, name in sorted(imported)
        if f"{source}.{name}" not in listed
        and not any(entry.startswith(f"{source}.{name}.") for entry in listed)
        and not any(entry.endswith(f".{name}") for entry in listed)
    ]
    assert unlisted == []


GLANCE = ("prediction", "ground truth", "who uses it", "a good value", "in Python")


@pytest.mark.parametrize("path", METRICS, ids=name_of)
def test_a_metric_page_has_every_part(path):
    page = path.read_text("utf-8")
    assert [row for row in GLANCE if f"\n| {row} | " not in page] == []
    assert re.search(r"\n\| in Python \| .*\]\(\.\./reference/api/\w+\.rst\)", page)
    parts = ("## Formula", "## When it misleads", "## Scores and options", "bsdsbench evaluate")
    assert [part for part in parts if part not in page] == []
    assert "```pycon" in page


# What people asked in public threads: the page that answers, and words of the answer.
ANSWERS = {
    "how is the human 0.803 computed": ("understand/annotators.md", "--humans"),
    "why 0.0075 and 0.011, which for my data": (
        "howto/tolerance.md",
        "Measure how well people agree",
    ),
    "ODS and OIS are fine, AP is low": ("howto/troubleshooting.md", "ODS and OIS good, AP low"),
    "AP differs, ODS does not": ("understand/ap.md", "with and without\nthe row of threshold 0"),
    "must I thin": ("understand/score.md", "Two ways to make lines thin"),
    "why not the product of the maps": ("understand/score.md", "(pred & annotated).sum()"),
    "resize before or after NMS": ("howto/maps.md", "Resize **before** NMS"),
    "Boundary IoU equals IoU": ("howto/tolerance.md", "Boundary IoU equals the IoU"),
    "Boundary IoU of two arrays": ("metrics/contour.md", "measure('biou', pred, gt"),
    "which tolerance of NSD": ("howto/tolerance.md", "Normalized surface distance"),
    "HD95 of empty masks": ("reference/contour_measures.md", "## Empty masks"),
    "several predictions for an image": ("howto/maps.md", "### Several outputs"),
    "how is multi-scale made": ("howto/maps.md", "--scales"),
    "Dice by case or of all pixels": ("metrics/contour.md", "Dice by case"),
    "3-D": ("understand/what_it_is_not.md", "volumes (3-D)"),
    "which checkpoint": ("howto/torchmetrics.md", "## Which checkpoint?"),
    "mean and deviation over seeds": ("howto/seeds.md", "standard deviation"),
    "how to cite": ("reference/cite.md", "CITATION.bib"),
}


@pytest.mark.parametrize("question", ANSWERS)
def test_a_question_is_answered_two_clicks_from_the_first_page(question):
    page, words = ANSWERS[question]
    assert words in (DOCS / page).read_text("utf-8")
    reached = {DOCS / "index.md"}
    for _ in range(2):
        pages = [path for path in reached if path.suffix == ".md" and path.is_file()]
        links = [(p.parent / link).resolve() for p in pages for link in LINK.findall(p.read_text())]
        reached |= set(links)
    assert DOCS / page in reached
