"""Pages and pictures of the site that are made from the package when the site is built."""

from __future__ import annotations

import hashlib
from pathlib import Path

from drawing.draw import draw_all

from making import metrics, notebook, published, reference, sliders, verbs

ROOT = Path(__file__).resolve().parents[2]


def write_all(out: Path) -> None:
    """Write every generated page below `out`; files that stay the same are not touched."""
    pages = {
        "protocols.txt": reference.protocols(),
        "tasks.txt": reference.task_table(),
        "signature.txt": reference.signature_tables(),
        "verbs.txt": verbs.table(),
        "published.txt": published.table(),
        **{f"data/{name}.md": text for name, text in reference.data_pages().items()},
        **{f"metrics/{name}": text for name, text in metrics.pages().items()},
    }
    _write(out, pages)
    made_by, stamp = _sources(), out / "made_by.txt"
    if not stamp.is_file() or stamp.read_text() != made_by:  # a minute or two
        draw_all(out / "figures")
        _write(out, {f"verbs/{n}.md": text for n, text in verbs.pages(verbs.outputs()).items()})
        of_curves = notebook.page(out, notebook.CURVES)
        _write(out, {"notebook.md": notebook.page(out), "notebook_curves.md": of_curves})
        _write(out, {"sliders.html": sliders.html()})
        stamp.write_text(made_by)


def _write(out: Path, pages: dict[str, str]) -> None:
    for name, text in pages.items():
        path = out / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if not path.exists() or path.read_text("utf-8") != text:
            path.write_text(text, "utf-8")


def _sources() -> str:
    """A hash of everything that runs for a picture or a printed result."""
    whole = hashlib.sha256()
    for folder in ("bsdsbench", "docs/making", "docs/drawing", "docs/tutorials"):
        for path in sorted((ROOT / folder).rglob("*")):
            if path.suffix in (".py", ".toml", ".json", ".ipynb"):
                whole.update(path.read_bytes())
    return whole.hexdigest()
