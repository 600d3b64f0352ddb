"""Tables as LaTeX for \\usepackage{booktabs}: floats that fit a two-column page.

A table stands in one column, in smaller type, or across the page (`table*`), as its width asks;
one wider than a page is scaled (\\usepackage{graphicx}). Its caption is one sentence. Notes that
explain marks stand under it; protocol and signatures are comments in the source.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from bsdsbench.files.errors import visible
from bsdsbench.tables.table import Column, Table, interval, mark, number

# A bracket or star may not follow a line end bare: it would be read as an argument.
_ESCAPES = {
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar\allowbreak{}",  # a signature is one long word
    '"': "''",
    **{c: "\\" + c for c in "&%$#_{}"},
    **{c: "{" + c + "}" for c in "[]*`'"},
}
_ARROWS = {True: r" $\uparrow$", False: r" $\downarrow$", None: ""}


# Widths in points: of one column and of a page of common two-column classes, the narrowest of
# them; of characters of ten-point Computer Modern, the widest of each kind.
COLUMN, PAGE = 234.0, 490.0
_FITS = (
    ("table", "", 6.0, COLUMN, False),
    ("table", r"\small", 3.0, COLUMN, True),
    ("table*", "", 6.0, PAGE, False),
    ("table*", r"\footnotesize", 3.0, PAGE, True),
)
_SIZES = {"": 1.0, r"\small": 0.92, r"\footnotesize": 0.85}
_SCRIPT = 0.8


def to_latex(tables: Sequence[Table]) -> str:
    """One float per table; the best of a column is bold, marks are raised.

    Intervals stand under their numbers, in small type.
    """
    return "\n".join(_table(table) for table in tables)


def escape_latex(text: str) -> str:
    """`text` as plain text inside LaTeX."""
    text = "".join(_ESCAPES.get(c, c) for c in visible(text))
    return re.sub("-(?=-)", "-{}", text)  # two hyphens would become a dash


def _table(table: Table) -> str:
    every = range(len(table.columns))
    spans = [table.has_intervals(c) for c in every]
    spec = "".join(_spec(c, span) for c, span in zip(table.columns, spans, strict=True))
    float_, size, sep, short, scaled = _fit(table)
    parts = [f"% {line}" for line in (table.caption, *table.signatures) if line]
    parts += [rf"\begin{{{float_}}}", r"\centering"]
    parts += [rf"\caption{{{escape_latex(table.sentence.rstrip('.'))}.}}"]
    parts += [rf"\label{{tab:{table.key}}}", r"\smallskip"]
    parts += [f"{size}\\setlength{{\\tabcolsep}}{{{sep:g}pt}}"]
    parts += [r"\resizebox{\textwidth}{!}{%"] if scaled else []
    parts += [rf"\begin{{tabular}}{{@{{}}{spec}@{{}}}}", r"\toprule"]
    parts += [" & ".join(_head(c, short) for c in table.columns) + r" \\", r"\midrule"]
    for r in range(len(table.rows)):
        parts += [" & ".join(_cell(table, r, c) for c in every) + r" \\"]
        if any(under := [_under(table, r, c) for c in every]):
            parts += [" & ".join(under) + r" \\[2pt]"]
    parts += [r"\bottomrule", r"\end{tabular}" + ("}" if scaled else "")]
    if table.notes:
        notes = " ".join(f"{escape_latex(note.rstrip('.'))}." for note in table.notes)
        parts += [rf"\par\smallskip{{\footnotesize {notes}\par}}"]
    return "\n".join([*parts, rf"\end{{{float_}}}"]) + "\n"


def _fit(table: Table) -> tuple[str, str, float, bool, bool]:
    """Float, size of type, half the gap between columns, short headings, and whether to scale."""
    gaps = 2 * (len(table.columns) - 1)
    for float_, size, sep, room, short in _FITS:
        wide = sum(_widest(table, c, short) for c in range(len(table.columns)))
        if _SIZES[size] * wide + sep * gaps <= room:
            return float_, size, sep, short, False
    return float_, size, sep, short, True


def _widest(table: Table, column: int, short: bool) -> float:
    """Points that a column needs in type of ten points."""
    of = table.columns[column]
    texts = [_width(_heading(of, short) + ("xx" if of.higher_is_better is not None else ""))]
    for row in table.rows:
        cell = row[column]
        if isinstance(cell, str):
            texts.append(_width(visible(cell)))
            continue
        texts.append(_width(of.text(number(cell))) + _SCRIPT * _width(mark(cell)))
        if ends := interval(cell):
            texts.append(_SCRIPT * _width(f"[{of.text(ends[0])}, {of.text(ends[1])}]"))
    return max(texts)


def _heading(column: Column, short: bool) -> str:
    return (short and column.short) or column.heading


def _width(text: str) -> float:
    return sum(
        3.0 if c in " .,:;|'()[]il" else 7.8 if c.isupper() or c in "mw+-%" else 5.8 for c in text
    )


def _spec(column: Column, span: bool) -> str:
    if span:
        return "c"
    return "r" if column.is_number else "l"


def _head(column: Column, short: bool) -> str:
    return escape_latex(_heading(column, short)) + _ARROWS[column.higher_is_better]


def _cell(table: Table, row: int, column: int) -> str:
    cell, of = table.rows[row][column], table.columns[column]
    if isinstance(cell, str):
        return escape_latex(cell)
    text = escape_latex(of.text(number(cell)))
    if text.startswith(("-", "+")) and number(cell) is not None:
        text = f"${text}$"  # a minus, not a hyphen
    text = rf"\textbf{{{text}}}" if table.is_best(row, column) else text
    if raised := mark(cell):
        text += rf"\textsuperscript{{{escape_latex(raised)}}}"
    return text


def _under(table: Table, row: int, column: int) -> str:
    """The interval under a number."""
    of, ends = table.columns[column], interval(table.rows[row][column])
    return rf"\scriptsize {{[}}${of.text(ends[0])}$, ${of.text(ends[1])}${{]}}" if ends else ""
