"""Pictures into a folder: `python docs/drawing OUT [--png] [NAME ...]`, all if none is named.

`python docs/drawing docs --png first_picture` renews the README's picture.
"""

from __future__ import annotations

import sys
from pathlib import Path

DOCS = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(DOCS), str(DOCS.parent)]

from drawing.draw import draw_all  # noqa: E402

if __name__ == "__main__":
    out, *rest = sys.argv[1:]
    names = [name for name in rest if name != "--png"]
    draw_all(Path(out), names, "png" if "--png" in rest else "svg")
