"""Tables drawn in every form: looked at as text, and read back by others' readers."""

import io
import json
import math
import re
import shutil
import subprocess
from functools import partial

import pytest

import bsdsbench as bb
from bsdsbench.results.score_tables import score_tables
from bsdsbench.tables.forms import (
    format_of,
    render,
    to_csv,
    to_html,
    to_markdown,
    write_tables,
)
from bsdsbench.tables.table import Estimate, Field, Note, Table, print_tables, to_text
from tests.helpers.runs import refused
from tests.helpers.simulated import simulated_run
from tests.helpers.snapshots import same_as_stored

NASTY = "=cmd|'a'!x & <b> $x_1$ ~50% \\ [c] -- \x1b[31m\u202e"


@pytest.fixture
def scores():
    columns = [
        Field("method", "Method"),
        Field("ods", "Boundary ODS", "ODS", ".3f", True),
        Field("voi", "VOI OIS", "VOI", ".2f", False),
        Field("images", "Images", "", "d"),
    ]
    rows = [
        ["HED", Estimate(0.788, 0.78, 0.797, "a"), 1.5, 200],
        [NASTY, Estimate(0.7, 0.69, 0.71, "b"), 1.25, 200],
        ["none", None, math.nan, 0],
    ]
    notes = ["Runs that share a letter do not differ."]
    return Table("scores", "Scores", columns, rows, caption="Protocol bsds500", notes=notes)


@pytest.fixture
def wide():
    columns = [Field("method", "Method")]
    columns += [Field(f"s{i}", f"Quite long heading {i}", f"S{i}", ".3f", True) for i in range(9)]
    rows = [[name, *(i / 7 for i in range(9))] for name in ("first", "second")]
    return Table("wide", "Wide", columns, rows, caption="Protocol of some length " * 4)


@pytest.mark.parametrize("width", [20, 40, 60, 80, 120])
def test_text_fits_the_width_and_keeps_every_number(wide, width):
    wide.rows[1][0] += 90 * "d"  # a long name is folded
    lines = to_text([wide], width).splitlines()
    assert max(map(len, lines)) <= width
    assert "".join(lines).count("d") >= 90
    assert " ".join(lines).count("Protocol of some length") == 4
    found = re.findall(r"\d\.\d{3}", "\n".join(lines))
    assert sorted(found) == sorted(2 * [f"{i / 7:.3f}" for i in range(9)])


def test_text_takes_short_headings_first_and_then_blocks(wide):
    needed = max(map(len, to_text([wide], 999).splitlines()[:4]))
    assert "Quite long heading 8" in to_text([wide], needed)
    narrower = to_text([wide], needed - 1)
    assert "Quite" not in narrower
    assert narrower.count("first") == 1
    blocks = to_text([wide], 40)
    assert blocks.count("first") == blocks.count("second") == 3


def test_a_terminal_gets_bold_and_its_own_width(wide, monkeypatch):
    class Terminal(io.StringIO):
        def isatty(self):
            return True

    monkeypatch.setenv("COLUMNS", "44")
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.delenv("NO_COLOR", raising=False)
    out = Terminal()
    print_tables([wide], out)
    assert "\x1b[1m" in out.getvalue()
    bare = re.sub("\x1b\\[[0-9;]*m", "", out.getvalue())
    assert max(map(len, bare.splitlines())) <= 44
    assert bare == to_text([wide], 44)
    assert to_text([wide]) == to_text([wide], 120)  # in a pipe or file


def test_every_form_as_it_was_looked_at(scores, wide):
    forms = {
        "markdown": to_markdown,
        "latex": partial(render, text_format="latex"),
        "html": to_html,
    }
    parts = {name: form([scores]).rstrip("\n") + "\n" for name, form in forms.items()}
    parts |= {"text": to_text([scores], 60), "csv": to_csv(scores)}
    same_as_stored("forms", parts)


TWO_COLUMNS = r"""\documentclass[10pt,twocolumn,letterpaper]{article}
\usepackage[textwidth=6.875in,textheight=8.875in,columnsep=0.3125in]{geometry}
\usepackage{booktabs,graphicx}
\begin{document}
"""


@pytest.mark.process
def test_latex_compiles_and_fits_a_two_column_page(scores, wide, tmp_path):
    program = shutil.which("pdflatex") or shutil.which("tectonic")
    if program is None:
        pytest.skip("neither pdflatex nor tectonic is installed: the LaTeX is not compiled")
    runs = [simulated_run(f"a method's name {k}", 8, quality=0.1 * k) for k in range(3)]
    found = bb.compare(runs, n_boot=50)
    tables = [scores, wide, *score_tables(runs), *found.tables(), *found.only(["ods"]).tables()]
    (tmp_path / "t.tex").write_text(
        TWO_COLUMNS + render(tables, "latex") + "\\end{document}\n", "utf-8"
    )
    own = "pdflatex" in program
    options = ["-interaction=nonstopmode", "-halt-on-error"] if own else ["--keep-logs"]
    done = subprocess.run(
        [program, *options, "t.tex"], cwd=tmp_path, capture_output=True, timeout=300
    )
    assert done.returncode == 0, done.stdout.decode(errors="replace")[-2000:]
    assert (tmp_path / "t.pdf").exists()
    log = (tmp_path / "t.log").read_text("utf-8", "replace")
    assert re.findall(r"Overfull.*", log) == []


@pytest.fixture
def paper():
    """A table of two runs and a published row of another set, as `report` makes it."""
    columns = [Field("method", "Method")]
    columns += [Field(k, k.upper(), "", ".3f", True) for k in ("ods", "ois", "ap", "r50")]
    columns += [Field("ms", "ms per image", "ms", ".1f", paper=False)]
    other = [Estimate(v, comparable=False) for v in (0.788, 0.808)]
    rows = [
        ["mine", 0.7, 0.72, 0.69, 0.8, 12.5],
        ["HED [bsds500-test]", *other, None, None, None],
        ["edter", 0.8, 0.81, Estimate(0.9, mark="[edter]", comparable=False), None, None],
    ]
    notes = [
        Note("why.", ("r50",), names_columns=True),
        Note("ms per image: a processor.", ("ms",)),
    ]
    notes.append(Note("AP, R50: " + "x" * 200, ("ap", "r50")))
    notes += [f"note {k}" for k in range(5)]
    how = {"caption": "protocol", "notes": notes, "signatures": ["Signature of mine: |x"]}
    return Table("boundary", "Boundaries", columns, rows, sentence="3 methods", **how)


def test_a_table_for_a_paper_has_the_scores_that_all_have_and_four_notes(paper):
    lines = render([paper], "latex").splitlines()
    head = next(line for line in lines if line.startswith("Method"))
    assert re.findall(r"[A-Z]\w+", head) == ["Method", "ODS", "OIS", "AP"]
    assert r"HED {[}bsds500-test{]} & 0.788 & 0.808 & - \\" in lines
    assert (
        r"edter & \textbf{0.800} & \textbf{0.810} & 0.900\textsuperscript{{[}edter{]}} \\" in lines
    )
    below = lines[lines.index("\\end{tabular}}") + 1]
    assert below.endswith("{\\footnotesize note 0. note 1. note 2. note 3.\\par}")
    rest = [line[2:] for line in lines if line.startswith("% ")]
    assert rest == ["protocol", *paper.note_lines[:3], "note 4", "Signature of mine: |x"]
    assert "\\caption{3 methods.}" in lines


def test_json(scores):
    found = json.loads(render([scores], "json"))["tables"][0]
    estimate = {"ods": 0.788, "ods_low": 0.78, "ods_high": 0.797, "ods_mark": "a"}
    assert found["rows"][0] == {"method": "HED", **estimate, "voi": 1.5, "images": 200}
    assert found["rows"][2]["voi"] is None
    assert found["columns"][2]["higher_is_better"] is False


@pytest.mark.parametrize(
    ("out", "form", "found"),  # or what is wrong
    [
        (None, None, "table"),
        (None, "latex", "latex"),
        ("a.csv", None, "csv"),
        ("a.TEX", "latex", "latex"),
        ("name", "markdown", "markdown"),
        ("x.doc", "html", r"x\.doc: suffix '\.doc', expected one of \.txt, \.md, \.tex"),
        ("name", None, "name: suffix ''"),
        ("x.csv", "latex", r"x\.csv: by its name csv"),
    ],
)
def test_the_suffix_chooses_the_form(out, form, found):
    if ":" in found:
        refused(found, format_of, out, form)
    else:
        assert format_of(out, form) == found


def test_several_tables_are_several_csv_files(scores, wide, tmp_path):
    both = [scores, wide]
    refused(r"CSV of 2 tables \(scores, wide\): expected -o FILE.csv", render, both, "csv")
    found = write_tables(both, tmp_path / "cmp.csv", "csv")
    assert [p.name for p in found] == ["cmp-scores.csv", "cmp-wide.csv"]
    (one,) = write_tables([wide], tmp_path / "one.csv", "csv")
    assert one.read_text("utf-8") == found[1].read_text("utf-8") == to_csv(wide)
    (tex,) = write_tables(both, tmp_path / "cmp.tex", "latex")
    assert tex.read_text("utf-8") == render(both, "latex")
