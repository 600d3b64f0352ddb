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
    "coding",
    of=("auto", "binary", "sign"),
    help="binary: 0 negative, else positive; sign: < 0 negative, 0 ignored. "
    "auto: binary if all labels are 0 or 1.",
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
@click.option("--interpolate", is_flag=True, help="pr: use the envelope of the precision.")
@click.option("--prior", "normalize_prior", type=float, help="pr: assume this share of positives.")
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
    coding: str,
    form: str,
    **options: Any,
) -> int:
    """Print the summary numbers of curves: SCORES.csv has a label and a score per row ("-": stdin).

    Several files go into one picture.
    """
    from bsdsbench.cli.evaluating import print_json
    from bsdsbench.loaders.scores import read_scores

    _check(kind, out, options, len(files))
    scale = options.pop("scale") or "normal"
    chosen = {k: v for k, v in options.items() if v not in (None, False)}
    found = []
    for path in files:
        labels, scores = read_scores(path)
        signs = _signs(path, labels, coding)
        curve = _curve(kind, signs, scores, chosen)
        found.append((Path(path).stem if path != "-" else "stdin", curve, signs, scores))
    for target in out:
        _write(target, kind, [(name, curve) for name, curve, *_ in found], scale)
    rows = [_row(name, kind, curve, signs, scores, areas) for name, curve, signs, scores in found]
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
        if kind not in kinds and options[name] not in (None, False)
    ]
    for name in [k for k in ("interpolate", "normalize_prior", "plot") if kind not in ONLY[k]]:
        del options[name]
    for target in out:
        suffix = Path(target).suffix.lower()
        if suffix not in (*PICTURES, ".csv"):
            faults.append(f"{target}: suffix {suffix!r}, expected {', '.join(PICTURES)} or .csv")
        elif suffix == ".csv" and n_files > 1:
            faults.append(f"{target}: points of {n_files} files, expected one file for a .csv")
    if faults:
        raise DataError("\n".join(faults), faults)


def _signs(path: str, labels: Any, coding: str) -> Any:
    """-1, 0, 1 from the labels of a file; says on standard error what a user may not expect."""
    import numpy as np

    if coding == "auto":
        coding = "binary" if np.isin(labels, (0, 1)).all() else "sign"
    signs = np.where(labels != 0, 1, -1) if coding == "binary" else np.sign(labels).astype(int)
    for sign, word in ((1, "positives"), (-1, "negatives")):
        if not (signs == sign).any():
            print(f"bsdsbench: {path}: no {word} (labels taken as {coding})", file=sys.stderr)
    return signs


def _curve(kind: str, signs: Any, scores: Any, options: dict[str, Any]) -> Any:

    from bsdsbench import curves

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        warnings.filterwarnings("ignore", "labels: zeros")  # said in the words of --labels
        curve = getattr(curves, kind)(signs, scores, **options)
    for warning in caught:
        print(f"bsdsbench: {warning.message}", file=sys.stderr)
    return curve


def _row(name: str, kind: str, curve: Any, signs: Any, scores: Any, areas: bool) -> dict[str, Any]:
    """What is reported of one file; numbers that do not exist are None."""
    from bsdsbench import curves

    numbers = {
        "pr": ("ap", "auc", "ap_11", "chance"),
        "roc": ("auc", "eer", "eer_threshold"),
        "det": ("eer", "eer_threshold"),
    }[kind]
    row = {"name": name, "positives": curve.positives, "negatives": curve.negatives}
    row["points"] = curve.thresholds.size
    row.update({n: _finite(getattr(curve, n)) for n in numbers})
    if areas:
        table = curves.area_table(signs, scores)
        row["areas"] = [{**r.to_mapping(), "value": _finite(r.value)} for r in table]
    return row


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None


def _write(target: str, kind: str, found: list[tuple[str, Any]], scale: str) -> None:
    if Path(target).suffix.lower() == ".csv":
        _write_points(target, kind, found[0][1])
        return
    from bsdsbench.plotting import DETCurveDisplay, PRCurveDisplay, ROCCurveDisplay, plot_curves

    if kind == "det":
        plot_curves([DETCurveDisplay.from_curve(c, n, scale) for n, c in found], target)
    else:
        display = PRCurveDisplay if kind == "pr" else ROCCurveDisplay
        plot_curves([display.from_curve(c, n) for n, c in found], target)


def _write_points(target: str, kind: str, curve: Any) -> None:
    from bsdsbench.files.writing import write_atomic

    names = {"pr": ("recall", "precision"), "roc": ("fpr", "tpr"), "det": ("fpr", "fnr")}[kind]
    columns = ("threshold", *names, "tp", "fp")
    arrays = [curve.thresholds, *(getattr(curve, n) for n in names), curve.tp, curve.fp]
    rows = zip(*(a.tolist() for a in arrays), strict=True)
    lines = [",".join(columns), *(",".join(map(repr, row)) for row in rows)]
    write_atomic(Path(target), "\n".join(lines) + "\n")


def _print_rows(rows: list[dict[str, Any]]) -> None:
    from bsdsbench.cli.evaluating import print_tables
    from bsdsbench.tables.table import Column, Table

    columns = [
        Column(key, key.replace("_", " "), "", _format(key)) for key in rows[0] if key != "areas"
    ]
    tables = [Table("curves", "", columns, [[row[c.key] for c in columns] for row in rows])]
    if "areas" in rows[0]:
        tables.append(_areas(rows))
    print_tables(tables)


def _format(key: str) -> str:
    if key == "name":
        return ""
    return "d" if key in ("positives", "negatives", "points") else ".6g"


def _areas(rows: list[dict[str, Any]]) -> Any:
    """Every area of every file: the values, then what the number is."""
    from bsdsbench.tables.table import Column, Table

    words = ("points", "ties", "rule")
    columns = [Column("number", "number")]
    for k, row in enumerate(rows):
        heading = row["name"] if len(rows) > 1 else "value"
        columns.append(Column(f"value_{k + 1}", heading, "", ".6g"))
    columns += [Column(word, word) for word in words]
    cells = []
    for variants in zip(*(row["areas"] for row in rows), strict=True):
        first = variants[0]
        values = [r["value"] for r in variants]
        cells.append([first["name"], *values, *(str(first[k]) for k in words)])
    return Table("areas", "", columns, cells)
