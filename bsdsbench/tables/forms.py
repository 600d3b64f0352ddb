r"""Tables in every form, and to files: the suffix selects the form; text is escaped in each.

Markdown is GitHub's. LaTeX needs \usepackage{booktabs,graphicx}. The three forms for people are
templates, which escape what is put in.
"""

from __future__ import annotations

import csv
import io
import json
import math
import re
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from html import escape
from importlib import resources
from pathlib import Path
from typing import Any

from bsdsbench.files.bounded import write_atomic
from bsdsbench.files.errors import DataError, visible
from bsdsbench.tables.table import Drawn, Estimate, Table, to_text, words_under

SCHEMA = "bsdsbench.tables/1"
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
_ONE_COLUMN, _NOTES, _NOTE = 52, 4, 115


def _latex_text(text: str) -> str:
    text = "".join(_LATEX.get(c, c) for c in text)
    text = re.sub("-(?=-)", "-{}", text)  # two hyphens would become a dash
    return re.sub(r"(?<![\w.-])[+-][0-9.]+", r"$\g<0>$", text)  # a minus, not a hyphen


_ESCAPES: dict[str, Callable[[str], str]] = {
    "html": escape,
    "markdown": lambda text: "".join(_MARKDOWN.get(c, c) for c in text),
    "latex": _latex_text,
}


@cache
def _template(form: str) -> Any:
    import jinja2
    from markupsafe import Markup

    def shown(value: Any) -> Any:
        return value if isinstance(value, Markup) else _ESCAPES[form](visible(str(value)))

    marks: Any = ("<%", "%>", "<<", ">>")  # LaTeX has braces and percent signs of its own
    text = resources.files("bsdsbench.tables").joinpath(f"templates/{form}").read_text("utf-8")
    how: Any = {"finalize": shown, "keep_trailing_newline": True}
    return jinja2.Environment(*marks, **how).from_string(text)


def to_markdown(tables: Sequence[Table]) -> str:
    """One table after the other; the best of a column is bold, marks are raised."""
    return "\n".join(_template("markdown").render(table=table) for table in tables)


def to_html(tables: Sequence[Table]) -> str:
    """One <figure> per table; classes `number` and `best` are for a style sheet."""
    return "\n".join(html_of_each(tables))


def html_of_each(tables: Sequence[Table]) -> list[str]:
    """The figures of `to_html`."""
    pairs = zip(tables, words_under(tables), strict=True)
    return [_template("html").render(table=table, under=under) for table, under in pairs]


def to_html_page(tables: Sequence[Table]) -> str:
    """A page of its own with the tables."""
    start, title = '<!doctype html>\n<html lang="en">\n<meta charset="utf-8">\n', tables[0].title
    return f"{start}<title>{escape(title)}</title>\n{to_html(tables)}\n</html>\n"


def to_latex(tables: Sequence[Table]) -> str:
    """One float per table, as a paper has it; the rest of what is known is a comment in it.

    Of more than three scores it has those that all rows have. Intervals stand under their numbers.
    A float too wide for a column stands across the page, scaled where that is too narrow.
    """
    return "\n".join(map(_latex, tables))


def _latex(whole: Table) -> str:
    scores = [c for c in whole.columns if c.higher_is_better is not None and c.paper]
    kept = [
        k
        for k, c in enumerate(whole.columns)
        if c.paper and (c not in scores[3:] or all(row[k].value is not None for row in whole.drawn))
    ]
    table = whole.only(kept)
    heads = [table.heading(c, short=True) for c in range(len(kept))]
    rows = table.drawn
    wide = max(
        sum(map(len, heads)),
        *(sum(max(len(of.text + of.mark), 0.8 * len(of.span)) for of in row) for row in rows),
    )
    notes = [note for note in table.notes if len(note) <= _NOTE][:_NOTES]
    rest = (whole.caption, *(n for n in whole.notes if n not in notes), *whole.signatures)
    spans = [any(row[c].span for row in rows) for c in range(len(kept))]
    kinds = zip(table.columns, spans, strict=True)
    return str(
        _template("latex").render(
            table=table,
            heads=list(zip(heads, table.columns, strict=True)),
            rows=rows,
            arrows=_ARROWS,
            star="*" if wide + 2 * len(heads) > _ONE_COLUMN else "",
            kinds="".join("c" if span else "r" if c.format else "l" for c, span in kinds),
            sentence=(table.sentence or table.title).rstrip("."),
            notes=" ".join(f"{note.rstrip('.')}." for note in notes),
            rest=map(visible, filter(None, rest)),
        )
    )


def to_json(tables: Sequence[Table]) -> str:
    """{"schema": ..., "tables": [...]}: columns, a mapping per row; undefined numbers are null."""
    content = {"schema": SCHEMA, "tables": to_mappings(tables)}
    return json.dumps(content, indent=1, ensure_ascii=False, allow_nan=False) + "\n"


def to_mappings(tables: Sequence[Table]) -> list[dict[str, Any]]:
    """What JSON has of each table."""

    def plain(cell: Any, of: Drawn) -> Any:
        if isinstance(cell, str):
            return cell
        numbers = {"value": of.value, "low": of.low, "high": of.high}
        known = {k: v if v is None or math.isfinite(v) else None for k, v in numbers.items()}
        if not isinstance(cell, Estimate):
            return known["value"]
        if of.low is None:
            del known["low"], known["high"]
        return {**known, **({"mark": of.mark} if of.mark else {})}

    return [
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
                {c.key: plain(x, of) for c, x, of in zip(table.columns, row, drawn, strict=True)}
                for row, drawn in zip(table.rows, table.drawn, strict=True)
            ],
        }
        for table in tables
    ]


def to_csv(table: Table) -> str:
    """One table, tidy: a line of keys, a line per row; columns and undefined numbers as of
    `Table.plain`."""

    out, columns = io.StringIO(), table.plain()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(columns)
    for row in zip(*columns.values(), strict=True):
        # A spreadsheet takes text that begins with one of these for a formula.
        safe = (
            re.sub(r"^(?=\s*[=+@-])", "'", visible(x)) if isinstance(x, str) else x for x in row
        )
        writer.writerow(safe)
    return out.getvalue()


def to_frame(columns: Mapping[str, Any]) -> Any:
    """Columns by name as a DataFrame, undefined as NaN. Raises DataError without pandas."""
    try:
        import pandas as pd
    except ImportError:
        raise DataError("data frames need pandas: install the extra bsdsbench[pandas]") from None
    return pd.DataFrame({k: [math.nan if x is None else x for x in v] for k, v in columns.items()})


# ---- to files -----------------------------------------------------------------------------------

FORMS: dict[str, tuple[tuple[str, ...], Callable[[Sequence[Table]], str] | None]] = {
    "table": ((".txt",), to_text),
    "markdown": ((".md",), to_markdown),
    "latex": ((".tex",), to_latex),
    "csv": ((".csv",), None),  # a table each
    "json": ((".json",), to_json),
    "html": ((".html", ".htm"), to_html_page),
}


def form_of(out: str | Path | None, form: str | None) -> str:
    """The form in which to write to `out` (None: standard output): by its suffix, or `form` where
    that is silent; a folder is for CSV. Raises DataError."""
    suffix, folder = Path(out or "").suffix.lower(), out is not None and _is_folder(out)
    if out is None or (form and not suffix and not folder):
        return form or "table"
    names = (name for name, (suffixes, _) in FORMS.items() if suffix in suffixes)
    found = "csv" if folder else next(names, None)
    if found is None:
        known = ", ".join(suffixes[0] for suffixes, _ in FORMS.values())
        raise DataError(f"{out}: suffix {suffix!r}, expected one of {known}")
    if form not in (None, found):
        raise DataError(f"{out}: by its name {found}, but --format says {form}")
    return found


def render(tables: Sequence[Table], form: str) -> str:
    """The tables as one text. Raises DataError for several tables as CSV."""
    draw = FORMS[form][1]
    if draw is None and len(tables) != 1:
        names = ", ".join(table.key for table in tables)
        raise DataError(
            f"CSV of {len(tables)} tables ({names}): expected -o FILE.csv or -o FOLDER/, "
            "for one file per table"
        )
    return draw(tables) if draw else to_csv(tables[0])


def write_tables(tables: Sequence[Table], out: str | Path, form: str) -> list[Path]:
    """Write one file, and return it; several tables as CSV are files STEM-KEY.csv beside `out`, or
    KEY.csv in a folder."""
    path = Path(out)
    texts = {path: tables}
    if form == "csv" and _is_folder(out):
        texts = {path / f"{table.key}.csv": [table] for table in tables}
    elif form == "csv" and len(tables) > 1:
        texts = {path.with_name(f"{path.stem}-{t.key}.csv"): [t] for t in tables}
    for file, found in texts.items():
        write_atomic(file, render(found, form))
    return list(texts)


def _is_folder(out: str | Path) -> bool:
    return str(out).endswith(("/", "\\")) or Path(out).is_dir()
