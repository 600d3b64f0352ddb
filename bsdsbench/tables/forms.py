r"""Tables in every form, and to files: the suffix selects the form; text is escaped in each.

Markdown is GitHub's. LaTeX needs \usepackage{booktabs,graphicx}. The three forms for people are
templates, which escape what is put in.
"""

from __future__ import annotations

import csv
import io
import math
import re
from collections.abc import Callable, Sequence
from functools import cache
from html import escape
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bsdsbench.errors import DataError
from bsdsbench.io import as_json, write_atomic
from bsdsbench.tables.table import Note, Table, to_text, words_under
from bsdsbench.text import visible

if TYPE_CHECKING:
    import jinja2

_SCHEMA = "bsdsbench.tables/2"
_MARKDOWN = str.maketrans(
    {c: "\\" + c for c in "\\`*_[]|#~$"} | {"<": "&lt;", ">": "&gt;", "&": "&amp;"}
)
_LATEX = str.maketrans(
    {
        "\\": r"\textbackslash{}",
        "~": r"\textasciitilde{}",
        "^": r"\textasciicircum{}",
        "<": r"\textless{}",
        ">": r"\textgreater{}",
        "|": r"\textbar\allowbreak{}",  # a signature is one long word
        '"': "''",
        "±": r"$\pm$",
        "↑": r"$\uparrow$",
        "↓": r"$\downarrow$",
        **{c: "\\" + c for c in "&%$#_{}"},
        # A bracket or star may not follow a line end bare: it would be read as an argument.
        **{c: "{" + c + "}" for c in "[]*`'"},
    }
)
# Of a paper's table: characters of a row in one of two columns, and what stands under it.
_ONE_COLUMN, _NOTES, _NOTE = 52, 4, 115


def _latex_text(text: str) -> str:
    text = text.translate(_LATEX)
    text = re.sub("-(?=-)", "-{}", text)  # two hyphens would become a dash
    return re.sub(r"(?<![\w.-])[+-][0-9.]+", r"$\g<0>$", text)  # a minus, not a hyphen


_ESCAPES: dict[str, Callable[[str], str]] = {
    "html": escape,
    "markdown": lambda text: text.translate(_MARKDOWN),
    "latex": _latex_text,
}


@cache
def _template(form: str) -> jinja2.Template:
    import jinja2
    from markupsafe import Markup

    def shown(value: object) -> object:
        return value if isinstance(value, Markup) else _ESCAPES[form](visible(str(value)))

    marks: Any = ("<%", "%>", "<<", ">>")  # LaTeX has braces and percent signs of its own
    text = resources.files("bsdsbench.tables").joinpath(f"templates/{form}").read_text("utf-8")
    settings: Any = {"finalize": shown, "keep_trailing_newline": True}
    return jinja2.Environment(*marks, **settings).from_string(text)


def to_markdown(tables: Sequence[Table]) -> str:
    """One table after the other; the best of a column is bold, marks are raised."""
    return "\n".join(_template("markdown").render(table=table.for_people) for table in tables)


def to_html(tables: Sequence[Table]) -> str:
    """One <figure> per table; classes `number` and `best` are for a style sheet."""
    return "\n".join(html_of_each(tables))


def html_of_each(tables: Sequence[Table]) -> list[str]:
    """The figures of `to_html`."""
    tables = [table.for_people for table in tables]
    pairs = zip(tables, words_under(tables), strict=True)
    return [_template("html").render(table=table, under=under) for table, under in pairs]


def html_page(tables: Sequence[Table], picture: str = "") -> str:
    """Return an HTML page with the tables and, above them, a picture as SVG."""
    start = '<!doctype html>\n<html lang="en">\n<meta charset="utf-8">\n'
    start += f"<title>{escape(tables[0].title)}</title>\n{picture}"
    return f"{start}{to_html(tables)}\n</html>\n"


def to_latex(tables: Sequence[Table]) -> str:
    """Return one LaTeX float per table, followed by the remaining facts as a comment.

    Of more than three scores it has those that all rows have. Intervals stand under their numbers.
    A float too wide for a column stands across the page, scaled where that is too narrow.
    """
    return "\n".join(_latex(table.for_people) for table in tables)


def _latex(whole: Table) -> str:
    kept, n_scores = [], 0
    for k, c in enumerate(whole.columns):
        if c.paper and c.higher_is_better is not None:
            n_scores += 1
            if n_scores > 3 and None in [row[k].value for row in whole.drawn]:
                continue
        if c.paper:
            kept.append(k)
    table = whole.only(kept)
    heads = [table.heading(c, short=True) for c in range(len(kept))]
    rows = [
        [max(len(cell.text + cell.mark), 0.8 * len(cell.span)) for cell in row]
        for row in table.drawn
    ]
    wide = max(map(sum, [map(len, heads), *rows]))
    star = "*" if wide + 2 * len(heads) > _ONE_COLUMN else ""
    needed = [note for note in table.all_notes if isinstance(note, Note) and note.needed]
    notes = [line for line in table.note_lines if len(line) <= _NOTE][:_NOTES]
    notes = list(dict.fromkeys([*notes, *map(table.line_of, needed)]))
    shown = {"whole": whole, "table": table, "heads": heads, "star": star, "notes": notes}
    return str(_template("latex").render(**shown, visible=visible))


def _to_json(tables: Sequence[Table]) -> str:
    """Return {"schema": ..., "tables": [...]} as JSON, see `to_mappings`."""
    return as_json({"schema": _SCHEMA, "tables": to_mappings(tables)})


def to_mappings(tables: Sequence[Table]) -> list[dict[str, Any]]:
    """Return each table's columns and rows, a mapping per row with the keys of `Table.plain`.

    Undefined numbers are None.
    """
    mappings = []
    for table in tables:
        columns = table.plain()
        rows = [
            {
                k: None if x in (math.inf, -math.inf) else x
                for k, x in zip(columns, row, strict=True)
            }
            for row in zip(*columns.values(), strict=True)
        ]
        fields = [
            {"key": c.key, "heading": c.heading, "higher_is_better": c.higher_is_better}
            for c in table.columns
        ]
        words = {"key": table.key, "title": table.title, "caption": table.caption}
        words |= {"reading": table.reading} if table.reading else {}
        notes = [*table.note_lines, *table.signatures]
        mappings.append({**words, "notes": notes, "columns": fields, "rows": rows})
    return mappings


def to_csv(table: Table) -> str:
    """One table, tidy: a line of keys, a line per row; columns and undefined numbers as of
    `Table.plain`."""
    out, columns = io.StringIO(), table.plain()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(columns)
    for row in zip(*columns.values(), strict=True):
        # A spreadsheet takes text that begins with one of these for a formula.
        safe = [
            re.sub(r"^(?=\s*[=+@-])", "'", visible(x)) if isinstance(x, str) else x for x in row
        ]
        writer.writerow(safe)
    return out.getvalue()


# ---- to files -----------------------------------------------------------------------------------

FORMS: dict[str, Callable[[Sequence[Table]], str] | None] = {
    "table": to_text,
    "markdown": to_markdown,
    "latex": to_latex,
    "csv": None,  # a table each
    "json": _to_json,
    "html": html_page,
}
_SUFFIXES = dict(zip((".txt", ".md", ".tex", ".csv", ".json", ".html"), FORMS, strict=True))


def form_of(out: str | Path | None, form: str | None) -> str:
    """The form in which to write to `out` (None: standard output): by its suffix, or `form` where
    that is silent. Raises DataError."""
    suffix = Path(out or "").suffix.lower()
    if not suffix and (out is None or form):
        return form or "table"
    if suffix not in _SUFFIXES:
        raise DataError(f"{out}: suffix {suffix!r}, expected one of {', '.join(_SUFFIXES)}")
    if form not in (None, _SUFFIXES[suffix]):
        raise DataError(f"{out}: by its name {_SUFFIXES[suffix]}, but --format says {form}")
    return _SUFFIXES[suffix]


def render(tables: Sequence[Table], form: str) -> str:
    """The tables as one text. Raises DataError for several tables as CSV."""
    if draw := FORMS[form]:
        return draw(tables)
    if len(tables) > 1:
        names = ", ".join(table.key for table in tables)
        raise DataError(f"CSV of {len(tables)} tables ({names}): expected -o FILE.csv")
    return to_csv(tables[0])


def write_tables(tables: Sequence[Table], out: str | Path, form: str) -> list[Path]:
    """Write one file, and return it; several tables as CSV are files STEM-KEY.csv beside `out`."""
    path = Path(out)
    texts = {path: tables}
    if form == "csv" and len(tables) > 1:
        texts = {path.with_name(f"{path.stem}-{t.key}.csv"): [t] for t in tables}
    for file, shown in texts.items():
        write_atomic(file, render(shown, form))
    return list(texts)
