r"""Tables as Markdown, LaTeX, HTML, JSON, CSV and data frames; text is escaped in each.

Markdown is GitHub's. LaTeX needs \usepackage{booktabs,graphicx}.
"""

from __future__ import annotations

import csv
import io
import json
import math
import re
from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

from bsdsbench.files.errors import DataError, visible
from bsdsbench.tables.table import Cell, Drawn, Estimate, Field, Table, number, words_under

SCHEMA = "bsdsbench.tables/1"
# A spreadsheet takes text that begins so for a formula.
_FORMULA = ("=", "+", "-", "@")
_MARKDOWN = {c: "\\" + c for c in "\\`*_[]|#~$"} | {"<": "&lt;", ">": "&gt;", "&": "&amp;"}
_LATEX = {
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar\allowbreak{}",  # a signature is one long word
    '"': "''",
    **{c: "\\" + c for c in "&%$#_{}"},
    # A bracket or star may not follow a line end bare: it would be read as an argument.
    **{c: "{" + c + "}" for c in "[]*`'"},
}
_ARROWS = {True: r" $\uparrow$", False: r" $\downarrow$", None: ""}
# Of a paper's table: characters of a row in one of two columns, and what stands under it.
_ONE_COLUMN, _NOTES, _NOTE = 52, 4, 110


def to_markdown(tables: Sequence[Table]) -> str:
    """One table after the other; the best of a column is bold, marks are raised."""
    return "\n".join(_markdown(table) for table in tables)


def _markdown(table: Table) -> str:
    def text(words: str) -> str:
        return "".join(_MARKDOWN.get(c, c) for c in visible(words))

    def cell(of: Drawn) -> str:
        words = text(f"{of.text} {of.span}".strip())
        raised = f"<sup>{text(of.mark)}</sup>" if of.mark else ""
        return (f"**{words}**" if of.best else words) + raised

    lines = [
        [f"{text(c.heading)} {c.arrow}".strip() for c in table.columns],
        ["---:" if c.is_number else "---" for c in table.columns],
        *([cell(of) for of in row] for row in table.drawn),
    ]
    parts = [f"### {text(table.title)}", ""] if table.title else []
    parts += [f"| {' | '.join(line)} |" for line in lines]
    for words in table.words:
        parts += ["", text(words)]
    return "\n".join(parts) + "\n"


def to_latex(tables: Sequence[Table]) -> str:
    """One float per table, as a paper has it; the rest of what is known is a comment in it.

    Intervals stand under their numbers. A float too wide for a column stands across the page,
    scaled where that is too narrow.
    """
    return "\n".join(_latex(_for_paper(table), table) for table in tables)


def _for_paper(table: Table) -> Table:
    """The table of the columns for a paper: of more than three scores those that all rows have."""
    scores = [c for c in table.columns if c.higher_is_better is not None and c.paper]
    kept = [
        k
        for k, c in enumerate(table.columns)
        if c.paper
        and (c not in scores[3:] or all(number(row[k]).value is not None for row in table.rows))
    ]
    return table.only(kept)


def _latex(table: Table, whole: Table) -> str:
    every = range(len(table.columns))
    heads = [table.heading(c, short=True) for c in every]
    rows, wide = [], float(sum(map(len, heads)))
    for cells in table.drawn:
        # What is said of every number of a row is said once, after its name.
        said = {of.mark for of in cells[1:] if any(c.isdigit() for c in of.text)}
        if len(said) == 1 and (about := said.pop()).startswith("["):
            cells = [of._replace(mark="") for of in cells]
            cells[0] = Drawn(f"{cells[0].text} {about}")
        rows.append(" & ".join(map(_latex_cell, table.columns, cells)) + r" \\")
        if any(of.span for of in cells):
            under = (
                _signed(rf"\scriptsize {_escape_latex(of.span)}") if of.span else "" for of in cells
            )
            rows.append(" & ".join(under) + r" \\[2pt]")
        wide = max(wide, sum(max(len(of.text + of.mark), 0.8 * len(of.span)) for of in cells))
    star = "*" if wide + 2 * len(heads) > _ONE_COLUMN else ""
    spans = [any(row[c].span for row in table.drawn) for c in every]
    kinds = zip(table.columns, spans, strict=True)
    spec = "".join("c" if span else "r" if c.is_number else "l" for c, span in kinds)
    notes = [note for note in table.notes if len(note) <= _NOTE][:_NOTES]
    rest = (whole.caption, *(n for n in whole.notes if n not in notes), *whole.signatures)
    arrows = [_ARROWS[c.higher_is_better] for c in table.columns]
    below = " ".join(f"{_escape_latex(note.rstrip('.'))}." for note in notes)
    return "\n".join(
        [
            *(f"% {line}" for line in rest if line),
            rf"\begin{{table{star}}}",
            r"\centering",
            rf"\caption{{{_escape_latex(table.sentence.rstrip('.'))}.}}",
            rf"\label{{tab:{table.key}}}",
            r"\smallskip\small",
            r"\resizebox{\ifdim\width>\linewidth\linewidth\else\width\fi}{!}{%",
            rf"\begin{{tabular}}{{@{{}}{spec}@{{}}}}",
            r"\toprule",
            " & ".join(map("".join, zip(map(_escape_latex, heads), arrows, strict=True))) + r" \\",
            r"\midrule",
            *rows,
            r"\bottomrule",
            r"\end{tabular}}",
            *([rf"\par\smallskip{{\footnotesize {below}\par}}"] if below else []),
            rf"\end{{table{star}}}",
            "",
        ]
    )


def _latex_cell(column: Field, of: Drawn) -> str:
    text = _escape_latex(of.text)
    text = _signed(text) if column.is_number else text
    text = rf"\textbf{{{text}}}" if of.best else text
    return text + (rf"\textsuperscript{{{_escape_latex(of.mark)}}}" if of.mark else "")


def _signed(text: str) -> str:
    """With a minus, not a hyphen, before a number."""
    return re.sub(r"[+-][0-9.]+", r"$\g<0>$", text)


def _escape_latex(text: str) -> str:
    text = "".join(_LATEX.get(c, c) for c in visible(text))
    return re.sub("-(?=-)", "-{}", text)  # two hyphens would become a dash


def to_html(tables: Sequence[Table]) -> str:
    """One <figure> per table; classes `number` and `best` are for a style sheet."""
    return "\n".join(html_of_each(tables))


def html_of_each(tables: Sequence[Table]) -> list[str]:
    """The figures of `to_html`."""
    return list(map(_html, tables, words_under(tables)))


def to_html_page(tables: Sequence[Table]) -> str:
    """A page of its own with the tables."""
    return (
        '<!doctype html>\n<html lang="en">\n<meta charset="utf-8">\n'
        f"<title>{escape(', '.join(t.title for t in tables))}</title>\n{to_html(tables)}\n</html>\n"
    )


def _html(table: Table, under: Sequence[str]) -> str:
    def cell(c: int, of: Drawn) -> str:
        text = escape(f"{of.text} {of.span}".strip())
        text = f"<b>{text}</b>" if of.best else text
        text += f"<sup>{escape(of.mark)}</sup>" if of.mark else ""
        if table.columns[c].is_number:
            kind = "number best" if of.best else "number"
            return f'<td class="{kind}" style="text-align: right">{text}</td>'
        start, end = ('th scope="row"', "th") if c < table.n_labels else ("td", "td")
        return f'<{start} style="text-align: left">{text}</{end}>'

    heads = "".join(
        f'<th scope="col" style="text-align: {"right" if c.is_number else "left"}">'
        f"{escape(f'{visible(c.heading)} {c.arrow}'.strip())}</th>"
        for c in table.columns
    )
    rows = "".join(f"<tr>{''.join(map(cell, range(len(r)), r))}</tr>\n" for r in table.drawn)
    words = "".join(f"<small>{escape(text)}</small><br>" for text in under)
    return (
        f'<figure class="bsdsbench"><table data-key="{escape(table.key)}">'
        f"<caption>{escape(table.title)}</caption>\n"
        f"<thead><tr>{heads}</tr></thead>\n<tbody>\n{rows}</tbody></table>\n"
        f"<figcaption>{words}</figcaption></figure>"
    )


def to_json(tables: Sequence[Table]) -> str:
    """{"schema": ..., "tables": [...]}: columns, a mapping per row; undefined numbers are null."""

    def plain(cell: Cell) -> Any:
        if isinstance(cell, str):
            return cell
        of = number(cell)
        value, low, high = (
            v if v is None or math.isfinite(v) else None for v in (of.value, of.low, of.high)
        )
        if not isinstance(cell, Estimate):
            return value
        span = {} if of.low is None else {"low": low, "high": high}
        return {"value": value, **span, **({"mark": of.mark} if of.mark else {})}

    found = [
        {
            "key": table.key,
            "title": table.title,
            "caption": table.caption,
            "notes": [*table.notes, *table.signatures],
            "columns": [
                {"key": c.key, "heading": c.heading, "higher_is_better": c.higher_is_better}
                for c in table.columns
            ],
            "rows": [
                {c.key: plain(cell) for c, cell in zip(table.columns, row, strict=True)}
                for row in table.rows
            ],
        }
        for table in tables
    ]
    content = {"schema": SCHEMA, "tables": found}
    return json.dumps(content, indent=1, ensure_ascii=False, allow_nan=False) + "\n"


def to_csv(table: Table) -> str:
    """One table, tidy: a line of keys, a line per row; columns and undefined numbers as of
    `Table.plain`."""

    def safe(value: Any) -> Any:
        if not isinstance(value, str):
            return value
        text = visible(value)
        return f"'{text}" if text.lstrip().startswith(_FORMULA) else text

    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    columns = table.plain()
    writer.writerow(columns)
    writer.writerows(map(safe, row) for row in zip(*columns.values(), strict=True))
    return out.getvalue()


def to_frame(columns: Mapping[str, Any]) -> Any:
    """Columns by name as a DataFrame, undefined as NaN. Raises DataError without pandas."""
    try:
        import pandas as pd
    except ImportError:
        raise DataError("data frames need pandas: install the extra bsdsbench[pandas]") from None
    return pd.DataFrame(
        {k: [math.nan if x is None else x for x in v] for k, v in columns.items()},
        columns=list(columns),
    )
