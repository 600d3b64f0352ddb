"""bsdsbench curves: PR, ROC or DET curves for any list of labels and scores."""

from __future__ import annotations

import math
import sys
import warnings
from pathlib import Path
from typing import Any

import click

from bsdsbench.cli.options import choice, format_option, verb

PICTURES = (".png", ".svg", ".pdf")
NUMBERS = {
    "pr": ("ap", "auc", "ap_11", "chance"),
    "roc": ("auc", "eer", "eer_threshold"),
    "det": ("eer", "eer_threshold"),
}
# Options valid for each kind; an option that would do nothing is an error.
ONLY = {"interpolate": ("pr",), "normalize_prior": ("pr",), "plot": ("roc",), "scale": ("det",)}


@verb("curves", short_help="Draw PR, ROC or DET curves of labels and scores.")
@click.argument("files", nargs=-1, required=True, type=click.Path(), metavar="SCORES.csv...")
@choice("--kind", of=("pr", "roc", "det"), help="Kind of curve.")
@click.option(
    "-o",
    "--out",
    multiple=True,
    type=click.Path(),
    metavar="FILE",
    help="A picture (.png, .svg, .pdf) or the points of the curve (.csv); may be repeated.",
)
@click.option("--areas", is_flag=True, help="Print every AP and AUC variant by name.")
@choice(
    "--labels",
    "reading",
    of=("auto", "binary", "sign"),
    help="binary: 0 negative, else positive; sign: < 0 negative, 0 left out. "
    "auto: labels of 0 and 1, of -1 and 1, or of -1, 0 and 1 (0 left out).",
)
@choice(
    "--ties",
    of=("merge", "sample"),
    help="How to treat equal scores: one point, or (VLFeat) one per row of the file.",
)
@click.option(
    "--include-inf",
    is_flag=True,
    help="Rank scores of -inf last; by default they are not retrieved.",
)
@click.option(
    "--num-positives", type=click.IntRange(0), help="Use this number instead of those in the file."
)
@click.option(
    "--num-negatives", type=click.IntRange(0), help="Use this number instead of those in the file."
)
@click.option(
    "--interpolate", is_flag=True, default=None, help="pr: use the envelope of the precision."
)
@click.option(
    "--prior",
    "normalize_prior",
    type=click.FloatRange(0, 1),
    help="pr: assume this share of positives.",
)
@click.option(
    "--plot",
    type=click.Choice(["fptp", "tntp", "tptn", "fpfn"]),
    help="roc: the axes, x then y.  [default: fptp]",
)
@click.option(
    "--scale", type=click.Choice(["normal", "log"]), help="det: the axes.  [default: normal]"
)
@format_option("table", "json")
def command(
    files: tuple[str, ...],
    kind: str,
    out: tuple[str, ...],
    areas: bool,
    form: str,
    **options: Any,
) -> int:
    """Print the summary numbers of curves: SCORES.csv has a label and a score per row ("-": stdin).

    Several files go into one picture.
    """
    from bsdsbench import curves
    from bsdsbench.cli.evaluating import print_json
    from bsdsbench.files.errors import DataError
    from bsdsbench.loaders.scores import read_scores

    _check(kind, out, options, len(files))
    scale = options.pop("scale", None) or "normal"
    chosen = {name: value for name, value in options.items() if value is not None}
    found, rows = [], []
    for path in files:
        name = Path(path).stem if path != "-" else "stdin"
        labels, scores = read_scores(path)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            try:
                curve = getattr(curves, kind)(labels, scores, **chosen)
                table = areas and curves.area_table(labels, scores, reading=options["reading"])
            except DataError as error:
                raise DataError(f"{path}: {error}") from None
        for line in dict.fromkeys(str(warning.message) for warning in caught):
            print(f"bsdsbench: {path}: {line}", file=sys.stderr)
        found.append((name, curve))
        row = {"name": name, "positives": curve.positives, "negatives": curve.negatives}
        row["points"] = curve.thresholds.size
        row |= {n: _finite(getattr(curve, n)) for n in NUMBERS[kind]}
        if table:
            row["areas"] = [{**r._asdict(), "value": _finite(r.value)} for r in table]
        rows.append(row)
    for target in out:
        _write(target, kind, found, scale)
    if form == "json":
        print_json({"kind": kind, "ties": options["ties"], "curves": rows})
    else:
        _print_rows(rows)
    return 0


def _check(kind: str, out: tuple[str, ...], options: dict[str, Any], n_files: int) -> None:
    from bsdsbench.files.errors import DataError

    faults = [
        f"--{'prior' if name == 'normalize_prior' else name}: not for --kind {kind}, "
        f"expected with {' or '.join(kinds)}"
        for name, kinds in ONLY.items()
        if kind not in kinds and options.pop(name) is not None
    ]
    for target in out:
        suffix = Path(target).suffix.lower()
        if suffix not in (*PICTURES, ".csv"):
            faults.append(f"{target}: suffix {suffix!r}, expected {', '.join(PICTURES)} or .csv")
        elif suffix == ".csv" and n_files > 1:
            faults.append(f"{target}: points of {n_files} files, expected one file for a .csv")
    if faults:
        raise DataError("\n".join(faults), faults)


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None


def _write(target: str, kind: str, found: list[tuple[str, Any]], scale: str) -> None:
    if Path(target).suffix.lower() == ".csv":
        from bsdsbench.files.writing import write_atomic

        rates = {"pr": ("recall", "precision"), "roc": ("fpr", "tpr"), "det": ("fpr", "fnr")}[kind]
        lines = [",".join(("threshold", *rates, "tp", "fp"))]
        names = ("thresholds", *rates, "tp", "fp")
        arrays = [getattr(found[0][1], name).tolist() for name in names]
        lines += [",".join(map(repr, row)) for row in zip(*arrays, strict=True)]
        write_atomic(Path(target), "\n".join(lines) + "\n")
        return
    from bsdsbench.plotting import DETCurveDisplay, PRCurveDisplay, ROCCurveDisplay, plot_curves

    if kind == "det":
        plot_curves([DETCurveDisplay.from_curve(c, n, scale) for n, c in found], target)
    else:
        display = PRCurveDisplay if kind == "pr" else ROCCurveDisplay
        plot_curves([display.from_curve(c, n) for n, c in found], target)


def _print_rows(rows: list[dict[str, Any]]) -> None:
    """The numbers of every file; then every area of every file, and what it is."""
    from bsdsbench.tables.table import Field, Table, print_tables

    forms = {"name": "", "positives": "d", "negatives": "d", "points": "d"}
    keys = [key for key in rows[0] if key != "areas"]
    columns = [Field(key, key.replace("_", " "), "", forms.get(key, ".6g")) for key in keys]
    tables = [Table("curves", "", columns, [[row[key] for key in keys] for row in rows])]
    if "areas" in rows[0]:
        words = ("points", "ties", "rule")
        headings = [row["name"] for row in rows] if len(rows) > 1 else ["value"]
        columns = [
            Field("number", "number"),
            *(Field(f"value_{k}", name, "", ".6g") for k, name in enumerate(headings, 1)),
            *(Field(word, word) for word in words),
        ]
        cells = [
            [same[0]["name"], *(r["value"] for r in same), *(same[0][word] for word in words)]
            for same in zip(*(row["areas"] for row in rows), strict=True)
        ]
        tables.append(Table("areas", "", columns, cells))
    print_tables(tables, sys.stdout)
