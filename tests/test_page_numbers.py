"""Every measured number in a sentence is tied to what computes it or to a row that holds it.

A number with decimals, a share, a time, a size, a ratio or a count of images is tied if it stands
in a block of code, a table or a calculation of its page (other tests run these) or of a page that
its paragraph links to, among the published results if it links to these, or among the constants of
the package. A paragraph that names a test or a script has its numbers from there.
"""

import re
from pathlib import Path

import pytest

from bsdsbench import io
from bsdsbench.loaders.sample import sample_images
from bsdsbench.report.html import BUDGET
from bsdsbench.results.storage import MAX_BYTES, MAX_IMAGES
from tests.test_page_tables import CALCULATION, PAGES, ROOT, SCRIPTS

EXAMPLES = sorted((ROOT / "docs/examples").glob("*.py"))
PUBLISHED = ROOT / "bsdsbench/comparison/published.json"
UNIT = r"(?:%|seconds?|minutes?|min|hours?|ms|s|[kKMG]i?B|images|pictures|times)(?!\w)"
NUMBER = re.compile(
    r"(?<![\w.,/-])(?:\d[\d,]*\.\d+|\.\d+|\d+(?:,\d{3})*"
    rf"(?=(?: million)?(?: and \d+| to \d+)? ?{UNIT}))(?!\.?\d|-\d)"
)
WORDS = {"three": 3, "four": 4, "five": 5, "six": 6, "eight": 8, "ten": 10, "twenty": 20}
RATIO = re.compile(rf"\b({'|'.join(WORDS)})(?= (?:times (?:as|more|less|\w+er)|seconds|minutes)\b)")
VERSION = re.compile(
    r"(?:Python|numpy|numba|torchmetrics|MONAI|arXiv|[Vv]ersion) [\d.]+(?: to [\d.]+)?"
)
NUMERAL = re.compile(r"(?<![\w.])(?:\d[\d,]*)?\.?\d+")
FENCE = re.compile(r"^ *```.*?^ *```$", re.M | re.S)
ROW = re.compile(r"^ *\|.*$", re.M)
LINK = re.compile(r"\]\(([^)#\s]+\.(?:md|py))")
CODE = re.compile(r"`[^`]*`|\]\([^)]*\)|<[^>]*>|\$[^$]*\$|^#.*", re.M)
MARK = re.compile(r"<!-- numbers: .+ -->\n(?!\|)")


def values(text):
    return {float(number.replace(",", "")) for number in NUMERAL.findall(text)}


# Levels of significance, sizes of sets, downloads and limits, and the fields of all protocols.
CONSTANTS = {0.05, 200, 100, len(list(sample_images().iterdir())), MAX_IMAGES, MAX_BYTES >> 30}
CONSTANTS |= {io.MAX_FILE_BYTES >> 20, 3 * io.MAX_DECODED_BYTES / 2**30, io.MAX_JSON_BYTES >> 20}
CONSTANTS |= {io.MAX_PIXELS // 10**6, BUDGET // 10**6 + 1}
SETS = (ROOT / "bsdsbench/loaders/sets/public_sets.toml").read_text("utf-8")
CONSTANTS |= values(" ".join(re.findall("^title = .*", SETS, re.M)))
for preset in (ROOT / "bsdsbench/protocol/presets").glob("*.toml"):
    CONSTANTS |= values(preset.read_text("utf-8"))


def halves(path):
    """Return the sentences of a page, and what holds its numbers: code, tables, calculations."""
    text = path.read_text("utf-8")
    if path.suffix == ".py":
        _, head, body = text.split('"""', 2)
        return head + re.sub(r"^(?!#).*$|^# ?", "", body, flags=re.M), re.sub("#.*", "", body)
    sentences = ROW.sub("", FENCE.sub("", text))
    calculated = [" ".join(pair) for pair in CALCULATION.findall(sentences)]
    named = [part for part in re.split(r"\n\s*\n", sentences) if MARK.search(part)]
    return sentences, "\n".join([*FENCE.findall(text), *ROW.findall(text), *calculated, *named])


def names_its_source(paragraph, path):
    names = [name for name in SCRIPTS.findall(paragraph) if (ROOT / name).is_file()]
    computed = [name for name in names if name.startswith("tests/")]
    return bool(names) and all(path.stem in (ROOT / name).read_text("utf-8") for name in computed)


def untied(sentences, blocks, path):
    """Return the numbers in `sentences` of the page at `path` that nothing holds."""
    loose, here = [], CONSTANTS | values(blocks)
    for paragraph in re.split(r"\n\s*\n", sentences):
        if names_its_source(paragraph, path):
            continue
        known = here
        linked = [(path.parent / link).resolve() for link in LINK.findall(paragraph)]
        for page in filter(Path.is_file, linked):
            known = known | values(halves(page)[1])
        if any(page.stem == "published" for page in (path, *linked)):
            known = known | values(PUBLISHED.read_text("utf-8"))
        plain = VERSION.sub("", CODE.sub("", paragraph))
        for number in NUMBER.findall(plain):
            value, digits = float(number.replace(",", "")), len(number.partition(".")[2])
            shares = {value, value / 100} if f"{number} %" in plain else {value}
            if not shares & known and not (
                digits > 1 and any(round(other, digits) == value for other in known)
            ):
                loose.append(number)
        loose += [word for word in RATIO.findall(plain) if WORDS[word] not in known - CONSTANTS]
    return loose


@pytest.mark.slow
def test_numbers_in_sentences_are_tied():
    for path in (*PAGES, *EXAMPLES):
        assert untied(*halves(path), path) == [], path


@pytest.mark.parametrize(
    ("sentence", "loose"),
    [
        ("Its ODS is 0.123, not .987.", ["0.123", ".987"]),
        (
            "It takes 7.31 s, on 4,321 images 43 min, or ten seconds.",
            ["7.31", "4,321", "43", "ten"],
        ),
        ("Raw maps take twenty times as long, and 37 MB.", ["37", "twenty"]),
        ("83 % of [all](docs/metrics/pixel.md) are right, `0.321` of them in code.", ["83"]),
        ("HED has 0.788 and 0.7883 ([published](docs/reference/published.md)).", ["0.7883"]),
        ("With Python 3.11 to 3.14, 200 images and 4.34 pixels.", ["4.34"]),
    ],
)
def test_a_number_from_nowhere_is_listed(sentence, loose):
    assert untied(sentence, "", ROOT / "README.md") == loose
