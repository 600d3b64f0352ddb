"""Numbers of pages: where a table has them from; calculations in sentences are right.

A table with decimals in most rows stands under `<!-- numbers: WHERE -->`: a test that computes its
cells, a script that measures them, `the code below` of the same page, `the calculations` in its
cells, or `constants`.
"""

import ast
import operator
import re
from pathlib import Path

import pytest

import bsdsbench as bb
from bsdsbench.loaders.sample import sample_ground_truth, sample_results
from tests.helpers.runs import counted

pytestmark = pytest.mark.usefixtures("counted_once")
ROOT = Path(__file__).parents[1]
DATASETS = sorted((ROOT / "datasets").glob("*.md"))
PAGES = [
    path
    for path in (ROOT / "README.md", *DATASETS, *sorted(ROOT.glob("docs/**/*.md")))
    if not {"generated", "auto_examples", "_build"} & {*path.parts}
]
TABLE = re.compile(r"(?:<!-- numbers: (?P<where>.+) -->\n)?(?P<rows>(?:^ *\|.*\n)+)", re.M)
DECIMAL = re.compile(r"(?<![\w./])-?\d*\.\d+(?![\w.])")
SCRIPTS = re.compile(r"(?:tests|scripts|\.ci)/[\w./]+")


def name_of(path):
    return path.relative_to(ROOT).as_posix()


def prose(path):
    """A page without its blocks of code."""
    return re.sub(r"^ *```.*?^ *```$", "", path.read_text("utf-8"), flags=re.M | re.S)


def decimals(row):
    """The numbers of a row that stand neither in code, nor in links, nor in formulas."""
    return DECIMAL.findall(re.sub(r"`[^`]*`|\]\([^)]*\)|\$[^$]*\$", "", row))


def tables(path):
    """(where its numbers are from, or None; its rows) of each table."""
    for table in TABLE.finditer(prose(path)):
        yield table["where"], table["rows"].splitlines()[2:]


def test_a_table_of_numbers_says_where_they_are_from():
    for path in PAGES:
        for where, rows in tables(path):
            check_source(path, where, rows)


def check_source(path, where, rows):
    """Check that the numbers of a table are from where it says."""
    with_numbers = [row for row in rows if decimals(row)]
    if any(row.startswith("| protocol |") for row in rows):
        return  # test_a_page_of_a_set_has_the_numbers_of_its_presets
    if where is None:
        assert len(with_numbers) <= len(rows) / 2, rows[0]
    elif where == "the code below":
        code = "".join(re.findall(r"```pycon\n(.*?)```", path.read_text("utf-8"), re.S))
        worked = "".join(text for text, _ in CALCULATION.findall(prose(path)))
        printed = set(map(float, re.findall(r"\d*\.?\d+", code + worked)))
        assert {float(n) for row in rows for n in decimals(row)} - printed == set()
    elif where == "the calculations":
        results = {printed for row in rows for _, printed in CALCULATION.findall(row)}
        assert {number for row in rows for number in decimals(row)} - results == set()
    elif where != "constants":
        names = SCRIPTS.findall(where)
        assert names
        assert [name for name in names if not (ROOT / name).exists()] == []
        for name in names:
            if name.startswith("tests/") and name != "tests/test_page_tables.py":
                assert path.stem in (ROOT / name).read_text("utf-8"), name


NUMBER = r"(?:\d+(?:,\d{3})*(?:\.\d+)?|\.\d+)"
CALCULATION = re.compile(
    rf"(?<![\w.,`=^_{{\\-])(\(*{NUMBER}[\d\s.,()+*/x-]*?) ?= ?({NUMBER})"
    r"(?![\w/]|\.\d| ?[x+*/(]| - \d)"
)
OPERATORS = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
}


def value(node):
    if isinstance(node, ast.Constant):
        return node.value
    return OPERATORS[type(node.op)](value(node.left), value(node.right))


def test_calculations_in_sentences_are_right():
    """Such as (3/4 + 0) / 2 = 0.375, to the digits that are printed."""
    printed_beside = [line for path in PAGES for line in CALCULATION.findall(prose(path))]
    assert len(printed_beside) > 40
    for text, printed in printed_beside:
        if re.search("[-+*/x]", text):
            tree = ast.parse(" ".join(text.replace(",", "").replace("x", "*").split()), mode="eval")
            digits = len(printed.partition(".")[2])
            assert abs(value(tree.body) - float(printed)) <= 0.5 * 10**-digits + 1e-12, text


@pytest.mark.parametrize("path", DATASETS[1:], ids=name_of)
def test_a_page_of_a_set_has_the_numbers_of_its_presets(path):
    text = prose(path)
    (row,) = re.findall(r"^\| protocol \| (.*) \|$", text, re.M)
    named = re.findall(r"`([\w-]+)`[^`]*?(?:max_dist \**|: )(0\.\d+)", row)
    for name, max_dist in named:
        assert bb.Protocol.preset(name).max_dist == float(max_dist), name
    recipe = re.search(
        r"^\| edge NMS of raw maps \| radius (\d), border (\d), multiplier \**([\d.]+)(.*)",
        text,
        re.M,
    )
    if recipe:
        name = re.search(r"`([\w-]+)`", row)[1]
        params = bb.Protocol.preset(name).replace(nms=True).nms_params
        assert (params.radius, params.border, params.multiplier) == tuple(
            map(float, recipe.groups()[:3])
        )
        assert ("not smoothed" in recipe[4]) == (not params.smooth)
    assert named or recipe


SCORES = re.findall(
    r"^\| ([a-z-]+)(, `--nms`)? \| ([\d.]+) \| ([\d.]+) \| ([\d.]+) \|$",
    DATASETS[0].read_text("utf-8"),
    re.M,
)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::bsdsbench.errors.InputWarning")
@pytest.mark.parametrize(("name", "nms", "ods", "ois", "ap"), SCORES)
def test_the_sample_has_the_scores_of_its_page(name, nms, ods, ois, ap):
    protocol = bb.Protocol.preset("bsds500").replace(nms=bool(nms))
    score = counted(sample_results(name), sample_ground_truth(), protocol).boundary_score()
    assert [f"{number:.3f}" for number in (score.ods.f, score.ois.f, score.ap)] == [ods, ois, ap]


@pytest.mark.slow
def test_the_sample_has_the_regions_and_human_scores_of_its_page():
    text, gt = DATASETS[0].read_text("utf-8"), sample_ground_truth()
    (human,) = re.findall(r"`--humans` \| ([\d.]+) \|", text)
    assert f"{bb.evaluate_humans(gt, workers=1).boundary_score().ods.f:.3f}" == human
    score = counted(sample_results("watershed-ucm"), gt, metrics="region").score("region")
    covering = score.covering
    shown = re.findall(
        r"covering ([\d.]+) .*, ([\d.]+) .*, ([\d.]+) .*, PRI ([\d.]+), VOI (.*)\.", text
    )
    values = covering.ods, covering.ois, covering.best, score.pri.ods
    assert shown == [(*(f"{number:.3f}" for number in values), f"{score.voi.ods:.2f}")]
