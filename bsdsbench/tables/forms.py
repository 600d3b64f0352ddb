r"""Write tables as text, Markdown, LaTeX, CSV, JSON or HTML.

The suffix of a file selects the format. Markdown is GitHub's. LaTeX needs
\usepackage{booktabs,graphicx}. The templates of Markdown, LaTeX and HTML escape all text.
"""

from __future__ import annotations

import csv
import io
import math
import re
from collections.abc import Callable, Sequence
from html import escape
from pathlib import Path
from typing import Any

from bsdsbench.errors import DataError
from bsdsbench.io import as_json, write_atomic
from bsdsbench.tables.table import Table, lines_below_tables, to_text
from bsdsbench.tables.templating import load_template
from bsdsbench.text import escape_unprintable

_SCHEMA = "bsdsbench.tables/2"
# Limits of LaTeX
_MAX_ROW_CHARACTERS = 52  # a wider table does not fit one column of a two-column page
_MAX_NOTES = 4  # the number of short notes printed below a table
_MAX_NOTE_CHARACTERS = 115  # the maximum length of a short note
_N_MAIN_SCORES = 3  # the first scores, printed even if they are undefined in some rows
_FORMULA_START = r"\s*[=+@-]"  # of text that a spreadsheet interprets as a formula
_INFINITE = (math.inf, -math.inf)  # numbers that JSON cannot hold


def to_markdown(tables: Sequence[Table]) -> str:
    """Convert tables to Markdown. Best values are bold, and marks are printed as superscripts."""
    return "\n".join(load_template("markdown").render(table=table.for_people) for table in tables)


def to_html(tables: Sequence[Table]) -> str:
    """Convert tables to HTML, one <figure> each. Cells have the CSS classes "number" and "best"."""
    return "\n".join(html_figures(tables))


def html_figures(tables: Sequence[Table]) -> list[str]:
    """Return an HTML <figure> for each table, with the lines below the table in its caption."""
    shown_tables = [table.for_people for table in tables]
    pairs = zip(shown_tables, lines_below_tables(shown_tables), strict=True)
    return [load_template("html").render(table=table, under=lines) for table, lines in pairs]


def _html_page(tables: Sequence[Table]) -> str:
    """Return an HTML page with the tables. Its title is that of the first table."""
    start = '<!doctype html>\n<html lang="en">\n<meta charset="utf-8">\n'
    start += f"<title>{escape(tables[0].title)}</title>\n"
    return f"{start}{to_html(tables)}\n</html>\n"


def _to_latex(tables: Sequence[Table]) -> str:
    """Convert tables to LaTeX, one float per table, with only the columns marked `paper`.

    A wide table spans both columns of a two-column page. The first _MAX_NOTES short notes (up to
    _MAX_NOTE_CHARACTERS), and all notes marked `needed`, are printed below the table. All other
    lines below the table become LaTeX comments.
    """
    texts = []
    for table in [table.for_people for table in tables]:
        columns = []  # the indices of those to print
        n_scores = 0  # a column is a score if it is ranked
        for k, field in enumerate(table.columns):
            is_score = field.paper and field.higher_is_better is not None
            n_scores += is_score
            # After the first scores, one that is undefined in any row is left out, to save width
            is_undefined = any(row[k].numbers.value is None for row in table.printed_cells)
            if field.paper and not (is_score and n_scores > _N_MAIN_SCORES and is_undefined):
                columns.append(k)
        paper_table = table.only(columns)
        headings = [paper_table.heading(k, short=True) for k in range(len(paper_table.columns))]
        row_widths: list[float] = [sum(map(len, headings))]  # in characters
        for row in paper_table.printed_cells:
            # A number is followed by its mark, such as a letter or a star. Its interval (`span`) is
            # printed below, at 0.8 of the font size
            row_widths.append(
                sum(max(len(c.text + c.numbers.mark), 0.8 * len(c.span)) for c in row)
            )
        gaps = 2 * len(headings)  # 2 characters between columns
        is_wide = max(row_widths) + gaps > _MAX_ROW_CHARACTERS
        short_notes, needed_notes = [], []
        # The line of a note is its text, after the headings of its columns if it names them
        for note, line in zip(paper_table.all_notes, paper_table.note_lines, strict=True):
            if len(line) <= _MAX_NOTE_CHARACTERS:
                short_notes.append(line)
            if note.needed:
                needed_notes.append(line)
        template = load_template("latex")
        text = template.render(
            whole=table,  # for the comments
            table=paper_table,
            heads=headings,
            star="*" if is_wide else "",  # table* spans both columns
            notes=list(dict.fromkeys([*short_notes[:_MAX_NOTES], *needed_notes])),
            visible=escape_unprintable,  # for the comments
        )
        texts.append(str(text))
    return "\n".join(texts)


def to_mappings(tables: Sequence[Table]) -> list[dict[str, Any]]:
    """Convert each table to a dict for JSON.

    The keys are "key", "title", "caption", "reading" (how the files were interpreted, if known),
    "notes" (followed by the signatures), "columns" and "rows". Each row is a dict with the keys of
    `Table.plain`; undefined and infinite numbers become None.
    """
    mappings = []
    for table in tables:
        columns = table.plain()
        rows = []
        for row in zip(*columns.values(), strict=True):
            finite = [None if value in _INFINITE else value for value in row]
            rows.append(dict(zip(columns, finite, strict=True)))
        mapping: dict[str, Any] = {"key": table.key, "title": table.title, "caption": table.caption}
        if table.reading:
            mapping["reading"] = table.reading
        mapping["notes"] = [*table.note_lines, *table.signatures]
        mapping["columns"] = [
            {"key": c.key, "heading": c.heading, "higher_is_better": c.higher_is_better}
            for c in table.columns
        ]
        mapping["rows"] = rows
        mappings.append(mapping)
    return mappings


def to_csv(table: Table) -> str:
    """Convert one table to CSV: a header with the keys of `Table.plain`, then a line per row.

    Undefined numbers become empty cells. Text that a spreadsheet would interpret as a formula is
    prefixed with an apostrophe.
    """
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    columns = table.plain()
    writer.writerow(columns)
    for row in zip(*columns.values(), strict=True):
        cells = []
        for value in row:
            if isinstance(value, str):
                value = escape_unprintable(value)
                if re.match(_FORMULA_START, value):
                    value = "'" + value
            cells.append(value)
        writer.writerow(cells)
    return out.getvalue()


TABLE_FORMATS: dict[str, Callable[[Sequence[Table]], str] | None] = {
    "table": to_text,
    "markdown": to_markdown,
    "latex": _to_latex,
    "csv": None,  # holds one table only, see `render`
    "json": lambda tables: as_json({"schema": _SCHEMA, "tables": to_mappings(tables)}),
    "html": _html_page,
}
_FORMAT_OF_SUFFIX = {
    ".txt": "table",
    ".md": "markdown",
    ".tex": "latex",
    ".csv": "csv",
    ".json": "json",
    ".html": "html",
}


def format_of(out: str | Path | None, text_format: str | None) -> str:
    """Return the format in which to write tables, a key of TABLE_FORMATS.

    For a file, the suffix determines the format; without a suffix, it is `text_format`. For
    standard output (`out` is None), it is `text_format`, by default "table". Raises DataError if
    the suffix is unknown or contradicts `text_format`, or if both are missing.
    """
    if out is None:
        return text_format or "table"
    suffix = Path(out).suffix.lower()
    if not suffix and text_format:
        return text_format
    if suffix not in _FORMAT_OF_SUFFIX:
        raise DataError(f"{out}: suffix {suffix!r}, expected one of {', '.join(_FORMAT_OF_SUFFIX)}")
    format_by_name = _FORMAT_OF_SUFFIX[suffix]
    if text_format not in (None, format_by_name):
        raise DataError(f"{out}: by its name {format_by_name}, but --format says {text_format}")
    return format_by_name


def render(tables: Sequence[Table], text_format: str) -> str:
    """Convert tables to text in a format of TABLE_FORMATS. Raises DataError for several in CSV."""
    convert = TABLE_FORMATS[text_format]
    if convert is not None:  # None: CSV, which has one table per file
        return convert(tables)
    if len(tables) > 1:
        names = ", ".join(table.key for table in tables)
        raise DataError(f"CSV of {len(tables)} tables ({names}): expected -o FILE.csv")
    return to_csv(tables[0])


def write_tables(tables: Sequence[Table], out: str | Path, text_format: str) -> list[Path]:
    """Write tables to a file in a format of TABLE_FORMATS, and return the paths of the files.

    As a CSV file has only one table, several tables are written to NAME-KEY.csv if `out` is
    NAME.csv, where KEY is the key of the table.
    """
    path = Path(out)
    if text_format != "csv" or len(tables) <= 1:
        write_atomic(path, render(tables, text_format))
        return [path]
    paths = [path.with_name(f"{path.stem}-{table.key}.csv") for table in tables]
    for file, table in zip(paths, tables, strict=True):
        write_atomic(file, to_csv(table))
    return paths
