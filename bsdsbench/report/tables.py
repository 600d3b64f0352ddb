"""Tables as text: Markdown, LaTeX (booktabs), CSV. What is in them comes from `rows` elsewhere."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from dataclasses import dataclass, field

_LATEX = {
    "\\": r"\textbackslash{}",
    "&": r"\&",
    "%": r"\%",
    "$": r"\$",
    "#": r"\#",
    "_": r"\_",
    "{": r"\{",
    "}": r"\}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
}
_MARKDOWN = {c: "\\" + c for c in "\\`*_[]|#"} | {"<": "&lt;", ">": "&gt;", "&": "&amp;"}


@dataclass(frozen=True, slots=True)
class Cell:
    """One cell: its text, its number at full precision where it is one, best in its column."""

    text: str
    value: float | None = None
    best: bool = False
    letters: str = ""


@dataclass(frozen=True, slots=True)
class Table:
    """A title, column names, rows of cells, and notes to print under them."""

    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[Cell]]
    notes: Sequence[str] = field(default=())


def to_markdown(tables: Sequence[Table]) -> str:
    """GitHub's tables, one after the other; the best of a column is bold, letters raised."""
    return "\n".join(_markdown(table) for table in tables)


def to_latex(tables: Sequence[Table]) -> str:
    """booktabs tables for \\usepackage{booktabs}; the best of a column is bold, letters raised."""
    return "\n".join(_latex(table) for table in tables)


def to_csv(tables: Sequence[Table]) -> str:
    """Comma-separated values at full precision, with a table column in front; letters apart."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    for i, table in enumerate(tables):
        if i:
            out.write("\n")
        lettered = [any(row[c].letters for row in table.rows) for c in range(len(table.columns))]
        header = ["table"]
        for name, has in zip(table.columns, lettered, strict=True):
            header += [name, f"{name} letters"] if has else [name]
        writer.writerow(header)
        for row in table.rows:
            line = [table.title]
            for cell, has in zip(row, lettered, strict=True):
                shown = cell.text if cell.value is None else repr(cell.value)
                line += [shown, cell.letters] if has else [shown]
            writer.writerow(line)
    return out.getvalue()


def _markdown(table: Table) -> str:
    def line(cells: Sequence[str]) -> str:
        return "| " + " | ".join(cells) + " |"

    def cell(c: Cell) -> str:
        text = escape_markdown(c.text)
        text = f"**{text}**" if c.best else text
        return f"{text} <sup>{c.letters}</sup>" if c.letters else text

    numeric = numeric_columns(table)
    rule = ["---:" if n else "---" for n in numeric]
    parts = [f"### {escape_markdown(table.title)}", ""] if table.title else []
    parts += [line([escape_markdown(c) for c in table.columns]), line(rule)]
    parts += [line([cell(c) for c in row]) for row in table.rows]
    parts += [line for note in table.notes for line in ("", escape_markdown(note))]
    return "\n".join(parts) + "\n"


def _latex(table: Table) -> str:
    def cell(c: Cell) -> str:
        text = escape_latex(c.text)
        text = rf"\textbf{{{text}}}" if c.best else text
        return rf"{text}\textsuperscript{{{c.letters}}}" if c.letters else text

    columns = "".join("r" if n else "l" for n in numeric_columns(table))
    parts = [rf"% {' '.join(table.title.split())}", rf"\begin{{tabular}}{{{columns}}}", r"\toprule"]
    parts += [" & ".join(escape_latex(c) for c in table.columns) + r" \\", r"\midrule"]
    parts += [" & ".join(cell(c) for c in row) + r" \\" for row in table.rows]
    parts += [r"\bottomrule", r"\end{tabular}"]
    parts += [f"% {' '.join(note.split())}" for note in table.notes]
    return "\n".join(parts) + "\n"


def numeric_columns(table: Table) -> list[bool]:
    """Which columns hold numbers, to be set to the right."""
    return [any(row[i].value is not None for row in table.rows) for i in range(len(table.columns))]


def escape_latex(text: str) -> str:
    """`text` as plain text inside LaTeX."""
    return "".join(_LATEX.get(c, c) for c in " ".join(text.split()))


def escape_markdown(text: str) -> str:
    """`text` as plain text inside a Markdown table cell."""
    return "".join(_MARKDOWN.get(c, c) for c in " ".join(text.split()))
