"""Texts as somebody looked at them once: files of tests/snapshots, in parts with a heading each."""

import os
import re
from pathlib import Path

FOLDER = Path(__file__).parents[1] / "snapshots"


def same_as_stored(name, parts):
    """Check {heading: text} against a file. BSDSBENCH_RENEW=1 writes it anew: then look at it."""
    path = FOLDER / f"{name}.txt"
    if os.environ.get("BSDSBENCH_RENEW"):
        path.write_text("".join(f"=== {k}\n{v}" for k, v in parts.items()), "utf-8", newline="\n")
    _, *stored = re.split(r"^=== (.*)\n", path.read_text("utf-8"), flags=re.M)
    known = dict(zip(stored[::2], stored[1::2], strict=True))
    assert parts == known, f"if that is wanted, BSDSBENCH_RENEW=1 pytest TEST writes {path.name}"
