"""Remake the examples of the documents behind the curves, and put their numbers beside ours.

    python scripts/reproduce_note.py [-o reproduced]

Writes index.html and the pictures (SVG and PNG) into a folder. The documents: the 2013 note "ROC
and PR" (sections 2 to 6.4), the slides of Davis and Goadrich (2006), the VLFeat tutorial on PR and
ROC. Printed numbers that the computation does not bear out are marked, with the reason. The page
ends with all known misprints (note/misprints.json).
"""

import argparse
import json
from html import escape
from pathlib import Path

from note.examples import examples
from note.experiments import experiments
from note.parts import Row, Section
from note.tutorial import tutorial_sections

from bsdsbench.files.writing import write_atomic
from bsdsbench.plotting.style import save

STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; max-width: 62rem; margin: 2rem auto; padding: 0 1rem;
       color: #222; }
h2 { margin-top: 2.5rem; border-bottom: 1px solid #ccc; }
table { border-collapse: collapse; margin: .8rem 0; }
caption { text-align: left; font-weight: 600; padding: .2rem 0; }
th, td { border: 1px solid #ddd; padding: .25rem .6rem; text-align: left; vertical-align: top; }
th { background: #f5f5f5; }
.small { display: inline-table; margin-right: 1.2rem; }
.small td { text-align: right; min-width: 1.6rem; }
tr.misprint td { background: #fdf1e3; }
.verdict { white-space: nowrap; font-weight: 600; }
tr.misprint .verdict { color: #a34700; }
tr.agrees .verdict { color: #00664a; }
img { max-width: 100%; }
figure { margin: 1rem 0; }
figcaption { color: #555; font-size: 90%; }
"""


def row(r: Row) -> str:
    """One number: printed, computed, verdict and reason."""
    verdict = "misprint" if r.reason else "agrees"
    cells = "".join(f"<td>{escape(c)}</td>" for c in (r.what, r.printed, r.computed))
    return (
        f'<tr class="{verdict}">{cells}<td><span class="verdict">{verdict}</span> '
        f"{escape(r.reason)}</td></tr>"
    )


def table(caption: str, head: list[str], body: list[list[str]], kind: str = "") -> str:
    """A plain table; without a head if all its words are empty."""
    lines = [f'<table class="{kind}"><caption>{escape(caption)}</caption>']
    if any(head):
        lines.append("<tr>" + "".join(f"<th>{escape(h)}</th>" for h in head) + "</tr>")
    for cells in body:
        lines.append("<tr>" + "".join(f"<td>{escape(c)}</td>" for c in cells) + "</tr>")
    return "\n".join([*lines, "</table>"])


def section(s: Section) -> str:
    """One example as HTML."""
    lines = [f"<h2>{escape(s.title)}</h2>", f"<p>{escape(s.text)}</p>"]
    lines += [table(*t, kind="small") for t in s.tables]
    if s.rows:
        head = "".join(f"<th>{h}</th>" for h in ("number", "printed", "computed", "verdict"))
        lines.append(f"<table><tr>{head}</tr>" + "\n".join(map(row, s.rows)) + "</table>")
    for name, caption, _ in s.figures:
        lines.append(
            f'<figure><img src="{name}.svg" alt="{escape(caption)}">'
            f"<figcaption>{escape(caption)}</figcaption></figure>"
        )
    return "\n".join(lines)


def page(found: list[Section], misprints: list[dict[str, str]]) -> str:
    """The whole page."""
    rows = [r for s in found for r in s.rows]
    wrong = sum(bool(r.reason) for r in rows)
    known = [[m["document"], m["where"], m["printed"], m["correct"], m["why"]] for m in misprints]
    return "\n".join(
        [
            '<!doctype html><html lang="en"><meta charset="utf-8">',
            "<title>ROC and PR: printed and computed</title>",
            f"<style>{STYLE}</style>",
            "<h1>ROC and PR: printed and computed</h1>",
            f"<p>{len(rows)} numbers and statements: {len(rows) - wrong} agree, {wrong} are "
            f"misprints. All {len(known)} known misprints are listed at the end.</p>",
            *(section(s) for s in found),
            "<h2>All known misprints</h2>",
            table("", ["document", "where", "printed", "correct", "why"], known),
            "</html>\n",
        ]
    )


def main() -> None:
    """Write the page and its pictures."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("-o", "--out", type=Path, default=Path("reproduced"))
    out = parser.parse_args().out
    out.mkdir(parents=True, exist_ok=True)
    found = [*examples(), *experiments(), *tutorial_sections()]
    for s in found:
        for name, _, figure in s.figures:
            for suffix in ("svg", "png"):
                save(figure, out / f"{name}.{suffix}")
    misprints = json.loads((Path(__file__).parent / "note" / "misprints.json").read_text("utf-8"))
    write_atomic(out / "index.html", page(found, misprints))
    print(out / "index.html")


if __name__ == "__main__":
    main()
