"""Tables as LaTeX for \\usepackage{booktabs}: floats with a caption, a label and arrows."""

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


def to_latex(tables: Sequence[Table]) -> str:
    """One float per table; the best of a column is bold, marks are raised.

    Intervals have a column of their own beside the number.
    """
    return "\n".join(_table(table) for table in tables)


def escape_latex(text: str) -> str:
    """`text` as plain text inside LaTeX."""
    text = "".join(_ESCAPES.get(c, c) for c in visible(text))
    return re.sub("-(?=-)", "-{}", text)  # two hyphens would become a dash


def _table(table: Table) -> str:
    span = [2 if table.has_intervals(c) else 1 for c in range(len(table.columns))]
    spec = "".join(_spec(c, n) for c, n in zip(table.columns, span, strict=True))
    heads = [_head(c, n) for c, n in zip(table.columns, span, strict=True)]
    title = table.title.rstrip(".")
    caption = " ".join(f"{t.rstrip('.')}." for t in (title, table.caption, *table.notes) if t)
    rows = [
        " & ".join(_cell(table, r, c, n) for c, n in enumerate(span)) + r" \\"
        for r in range(len(table.rows))
    ]
    parts = [r"\begin{table}", r"\centering", rf"\caption{{{escape_latex(caption)}}}"]
    parts += [
        rf"\label{{tab:{table.key}}}",
        r"\smallskip",
        rf"\begin{{tabular}}{{{spec}}}",
        r"\toprule",
    ]
    parts += [" & ".join(heads) + r" \\", r"\midrule", *rows]
    parts += [r"\bottomrule", r"\end{tabular}", r"\end{table}"]
    return "\n".join(parts) + "\n"


def _spec(column: Column, span: int) -> str:
    if span == 2:
        return r"r@{\enspace}l"
    return "r" if column.is_number else "l"


def _head(column: Column, span: int) -> str:
    text = escape_latex(column.heading) + _ARROWS[column.higher_is_better]
    return rf"\multicolumn{{2}}{{c}}{{{text}}}" if span == 2 else text


def _cell(table: Table, row: int, column: int, span: int) -> str:
    cell, of = table.rows[row][column], table.columns[column]
    if isinstance(cell, str):
        return escape_latex(cell)
    text = escape_latex(of.text(number(cell)))
    if text.startswith("-") and number(cell) is not None:
        text = f"${text}$"  # a minus, not a hyphen
    text = rf"\textbf{{{text}}}" if table.is_best(row, column) else text
    if raised := mark(cell):
        text += rf"\textsuperscript{{{escape_latex(raised)}}}"
    if span == 1:
        return text
    ends = interval(cell)
    if ends is None:
        return f"{text} &"
    return f"{text} & {{[}}${of.text(ends[0])}$, ${of.text(ends[1])}${{]}}"
