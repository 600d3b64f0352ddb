"""Tables to files: the suffix selects the format; every file is written atomically."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from bsdsbench.files.errors import DataError
from bsdsbench.files.writing import write_atomic
from bsdsbench.tables.as_text import to_text
from bsdsbench.tables.forms import to_csv, to_html_page, to_json, to_latex, to_markdown
from bsdsbench.tables.table import Table

FORMS: dict[str, Callable[[Sequence[Table]], str] | None] = {
    "table": to_text,
    "markdown": to_markdown,
    "latex": to_latex,
    "csv": None,  # a table each
    "json": to_json,
    "html": to_html_page,
}
_SUFFIXES = dict(zip((".txt", ".md", ".tex", ".csv", ".json", ".html"), FORMS, strict=True))
_SUFFIXES[".htm"] = "html"


def form_of(out: str | Path | None, form: str | None, forms: Sequence[str] = tuple(FORMS)) -> str:
    """The form in which to write to `out` (None: standard output): by its suffix, or `form` where
    that is silent; a folder is for CSV. The first of `forms` is the default. Raises DataError."""
    if out is None:
        return form or forms[0]
    suffix = Path(out).suffix.lower()
    if form and not suffix and not is_folder(out):
        return form
    found = "csv" if is_folder(out) else _SUFFIXES.get(suffix)
    if found is None or found not in forms:
        known = ", ".join(s for s, kind in _SUFFIXES.items() if kind in forms)
        raise DataError(f"{out}: suffix {suffix!r}, expected one of {known}")
    if form not in (None, found):
        raise DataError(f"{out}: by its name {found}, but --format says {form}")
    return found


def render(tables: Sequence[Table], form: str) -> str:
    """The tables as one text. Raises DataError for several tables as CSV."""
    draw = FORMS[form]
    if draw is not None:
        return draw(tables)
    if len(tables) != 1:
        names = ", ".join(table.key for table in tables)
        raise DataError(
            f"CSV of {len(tables)} tables ({names}): expected -o FILE.csv or -o FOLDER/, "
            "for one file per table"
        )
    return to_csv(tables[0])


def write_tables(tables: Sequence[Table], out: str | Path, form: str) -> list[Path]:
    """Write one file, and return it; several tables as CSV are files STEM-KEY.csv beside `out`, or
    KEY.csv in a folder."""
    path = Path(out)
    if form != "csv":
        texts = {path: render(tables, form)}
    elif is_folder(out):
        texts = {path / f"{table.key}.csv": to_csv(table) for table in tables}
    elif len(tables) == 1:
        texts = {path: to_csv(tables[0])}
    else:
        texts = {path.with_name(f"{path.stem}-{t.key}.csv"): to_csv(t) for t in tables}
    for file, text in texts.items():
        write_atomic(file, text)
    return list(texts)


def is_folder(out: str | Path) -> bool:
    """Whether `out` means a folder: there is one, or the name ends in a slash."""
    return str(out).endswith(("/", "\\")) or Path(out).is_dir()
