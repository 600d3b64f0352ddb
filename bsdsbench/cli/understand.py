"""Verbs to understand scores: doctor, compare, worst, explain, plot, curves."""

from __future__ import annotations

import json
import math
import warnings
from dataclasses import asdict
from itertools import combinations
from pathlib import Path
from statistics import NormalDist
from typing import TYPE_CHECKING, Any

import click
from click import Choice, FloatRange, IntRange, argument, option

from bsdsbench.cli.shared import (
    PROTOCOL,
    bootstrap,
    choice,
    names,
    path,
    print_json,
    printed,
    progress,
    protocol,
    protocol_from,
    published,
    quiet,
    refuse,
    run_option,
    runs,
    say,
    settle,
    show_tables,
    tables,
    truth,
    verb,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from bsdsbench.protocol.signature import Signature
    from bsdsbench.tables.table import Table

LINES = 10  # that explain prints
# Of each kind of curve: the axes, the numbers with their headings
RATES = {"pr": ("recall", "precision"), "roc": ("fpr", "tpr"), "det": ("fpr", "fnr")}
NUMBERS = {
    "pr": {"ap": "ap", "auc": "auc (trapezoids)", "ap_11": "ap 11", "chance": "chance"},
    "roc": {"auc": "auc", "eer": "eer", "eer_threshold": "eer threshold"},
    "det": {"eer": "eer", "eer_threshold": "eer threshold"},
}
ONLY = {"interpolate": "pr", "normalize_prior": "pr", "plot": "roc", "scale": "det"}


@verb(short_help="Find errors in the inputs before a run.")
@argument("pred_dir", type=click.Path())
@truth
@run_option("task")
@path("--split-file", help="Ids to check, one per line.")
@run_option("pred_kind")
@option("--metric", help="What the inputs are for; default: boundary.")
@protocol()
@printed("text", "json")
@quiet
def doctor(pred_dir: str, form: str, metric: str | None, **options: Any) -> int:
    """Find errors in PRED_DIR before a run: names, sizes, values, polarity, NMS.

    Give --split-file, --pred-kind and the options of the protocol as for `evaluate`.
    Exit status 2 if there are errors, 0 if there are only warnings.
    """
    import bsdsbench as bb

    options["metrics"] = metric
    settle(options)
    del options["task"]
    (options["metric"],) = options.pop("metrics")
    with progress("doctor", "steps") as report:
        found = bb.doctor(pred_dir, options.pop("gt"), progress=report, **options)
    if form == "json":
        print_json([asdict(finding) for finding in found])
    else:
        print(*(finding.line() for finding in found), found.summary(), sep="\n")
        print(f"protocol {options['protocol'].describe()}")
    return 2 if any(finding.level == "error" for finding in found) else 0


@verb(short_help="Test whether the differences between runs are real.")
@runs
@names
@bootstrap
@option("--level", type=float, default=0.95, help="Confidence level of the intervals.")
@choice(
    "--test",
    of=("bootstrap", "permutation"),
    help="Test for the p-values; intervals come from the bootstrap.",
)
@option("--common", is_flag=True, help="Compare on the images that all runs have.")
@option("--force", is_flag=True, help="Compare even if protocols or ground truth differ.")
@tables
@quiet
def compare(
    runs: tuple[str, ...],
    names: list[str] | None,
    out: str | None,
    form: str,
    columns: list[str] | None,
    **options: Any,
) -> None:
    """Compare runs image by image (paired): differences, bootstrap intervals, p-values.

    OUT is the folder of a run, or a folder with official ID_ev1.txt files by any program; ref:NAME
    is a reference run on BSDS500 test: ref:cob, ref:hed, ref:mcg, ref:se ...
    """
    import bsdsbench as bb
    from bsdsbench.runs.evaluation import as_runs

    loaded = as_runs(runs, names)
    with progress("compare", "samples") as report:
        found = bb.compare(loaded, progress=report, **options)
    found = found if columns is None else found.only(columns)
    if form == "json" and out is None:
        print_json(found.to_mapping())
    else:
        show_tables(found.tables(), out, form)
    if form != "table" or out:
        for note in found.notes:
            say(note)


@verb(short_help="List the worst images of a run, or where two differ most.")
@argument("runs", nargs=-1, required=True, type=click.Path(), metavar="OUT [OUT]")
@option("-n", "--number", type=IntRange(1), default=10, help="Number of images to list.")
@option("--metric", help="Metric to show; default: the first that the runs have.")
@option("--overlays", is_flag=True, help="Draw overlays of these images into OUT/overlays.")
@tables
@quiet
def worst(
    runs: tuple[str, ...],
    number: int,
    metric: str | None,
    overlays: bool,
    columns: list[str] | None,
    **shown: Any,
) -> None:
    """List the images with the lowest scores, with the paths of their overlays.

    For two runs, list the images on which they differ most. Overlays are drawn by `evaluate
    --overlays` for every image, or by --overlays here for the listed ones. Of --columns the first
    one sorts.
    """
    from bsdsbench.report.worst import worst_table
    from bsdsbench.runs.evaluation import as_runs

    with progress("overlays") as report:
        found, folders = as_runs(runs), list(map(Path, runs))
        table = worst_table(found, folders, number, metric, overlays, report, columns)
    show_tables([table], **shown)


@verb(short_help="Find which setting gives the published score.")
@argument("run", metavar="[OUT|PRED_DIR]", required=False, type=click.Path())
@option(
    "--between",
    nargs=2,
    metavar="SIG SIG",
    help="Compare two signatures or run folders: what differs and what it costs.",
)
@path("--gt", help="Ground-truth folder; default: that of OUT.")
@option(
    "--target",
    multiple=True,
    metavar="MEASURE=VALUE",
    help="The published value: ods=0.788, ois=.808, ap=.840; METRIC.SCORE of another metric.",
)
@protocol()
@path("--split-file", help="Ids to count, one per line.")
@run_option("pred_kind")
@option("--seconds", type=FloatRange(1), default=60.0, help="Approximate time limit.")
@run_option("workers")
@printed("table", "json")
@quiet
def explain(
    run: str | None,
    between: tuple[str, str] | None,
    gt: str | None,
    target: tuple[str, ...],
    seconds: float,
    workers: int | None,
    form: str,
    **options: Any,
) -> int:
    """Find the setting that explains the difference from a published score.

    OUT is the folder of an earlier run: its protocol and inputs are taken. Otherwise PRED_DIR and
    --gt say what to count. Other AP and ODS rules and images of a split are read off the counts;
    tolerance, NMS, thinning, matching, annotators and thresholds are counted again, on a few images
    first. For another metric (--target depth.si_f1=.42) its own options and columns say what is in
    use. A target is reached where a score agrees with it to the digits given. The last line is a
    sentence to paste. Exit status 0 if a reading reaches the target, else 1.

    With --between nothing is counted: the words of two signatures are compared.
    """
    from bsdsbench.diagnosis.explain import explain, metric_of, parse_targets, run_of
    from bsdsbench.metrics.registry import describe
    from bsdsbench.runs.folder import is_run

    if between:
        first, second = map(_signature, between)
        differences = first.differences(second)
        for difference in differences:
            print(difference.line())
        if not differences:
            print("no known difference: the scores are comparable")
        return 1 if differences else 0
    if run is None:
        raise click.UsageError("give OUT or PRED_DIR, or --between SIG SIG")
    if is_run(Path(run)):
        refuse((*PROTOCOL, "split_file", "pred_kind"), "OUT, whose own protocol and files count")
    wanted = parse_targets(target)
    metric, plain = metric_of(wanted)
    used = protocol_from(options, [metric])
    with progress("explain: count") as report:
        found, sources = run_of(
            run, gt, used, metric=metric, workers=workers, progress=report, **options
        )
    with progress("explain") as report:
        told = explain(
            found, wanted, sources=sources, seconds=seconds, workers=workers, progress=report
        )
    own = next(trial for trial in told.trials if trial.label == "as it is")
    shown = told.trials[:LINES]
    shown = shown if own in shown else (*shown[:-1], own)
    sentence, numbers = told.sentence(), {measure: float(v) for measure, v in plain.items()}
    if form == "json":
        answer = {"sentence": sentence, "seconds": told.seconds, "complete": told.complete}
        print_json({"targets": numbers, "trials": [asdict(trial) for trial in shown], **answer})
    else:
        print("target        " + "  ".join(f"{m.upper()} {v}" for m, v in plain.items()))
        for trial in shown:
            scores = "  ".join(f"{m.upper()} {trial.scores[m]:.4f}" for m in plain)
            some = "" if trial.exact else f" (estimated on {trial.n_images} images)"
            sign = "=" if trial.reached else " "
            print(f"{sign} off {trial.gap:.4f}  {scores}  {trial.label}{some}")
        print(f"protocol {describe([metric], found.protocol)}")
        print(sentence)
    return 0 if told.answer else 1


def _signature(text: str) -> Signature:
    """A signature from its line, or that of the run in a folder."""
    import bsdsbench as bb
    from bsdsbench.protocol.signature import Signature

    if "|" in text or not Path(text).is_dir():
        return Signature.parse(text)
    return bb.Evaluation.load(text).signature


@verb(short_help="Draw the curves of runs in one picture.")
@argument("runs", nargs=-1, type=click.Path(), metavar="[OUT|ref:NAME]...")
@path("-o", "--out", required=True, help="Output file: .pdf, .svg or .png.")
@names
@published
@option(
    "--human/--no-human",
    default=None,
    help="Mark human agreement on BSDS500; default: if the runs are of its test images.",
)
@option(
    "--ap", is_flag=True, help="Show AP in the legend, published ones where the rule is the same."
)
@choice(
    "--kind",
    of=("pr", "f", "scatter", "reliability"),
    help="PR curves, F over threshold, two runs image by image, or bins of calibration.",
)
@option("--metric", metavar="M", help="Metric to plot; default: the first of the run with a curve.")
@choice(
    "--style",
    "look",
    of=("screen", "column", "page"),
    help="Size: for a screen, one column of a paper (3.3 in), or its full width (6.9 in).",
)
@option(
    "--force", is_flag=True, help="Draw even if protocols differ or published results do not fit."
)
@quiet
def plot(runs: tuple[str, ...], out: str, names: list[str] | None, **options: Any) -> None:
    """Draw runs as PR curves with lines of equal F (or another --kind) into one file.

    OUT is the folder of a run, or a folder with official files (eval_bdry_thr.txt or ID_ev1.txt)
    by any program. ref:NAME is a reference run. --published alone draws published curves.
    """
    from bsdsbench.plotting import plot_runs
    from bsdsbench.plotting.figures import published_curves_of
    from bsdsbench.runs.evaluation import as_runs

    if options["kind"] != "pr":
        refuse(("published", "human", "ap"), f"--kind {options['kind']}")
    loaded, published = as_runs(runs, names), options.pop("published") or ()
    plot_runs(loaded, published=published, path=out, **options)
    for result in published_curves_of(published):
        if result.curve:
            say(f"{result.label}: {result.curve.describe()}")
    print(out)


@verb(short_help="Draw PR, ROC or DET curves of labels and scores.")
@argument("files", nargs=-1, required=True, type=click.Path(), metavar="SCORES.csv...")
@choice("--kind", of=("pr", "roc", "det"), help="Kind of curve.")
@path(
    "-o",
    "--out",
    multiple=True,
    metavar="FILE",
    help="A picture (.png, .svg, .pdf) or the points of the curve (.csv); may be repeated.",
)
@option("--areas", is_flag=True, help="Print every AP and AUC variant by name.")
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
@option(
    "--include-inf",
    is_flag=True,
    help="Rank scores of -inf last; by default they are not retrieved.",
)
@option("--num-positives", type=IntRange(0), help="Use this number instead of those in the file.")
@option("--num-negatives", type=IntRange(0), help="Use this number instead of those in the file.")
@option("--interpolate", is_flag=True, help="pr: use the envelope of the precision.")
@option(
    "--prior", "normalize_prior", type=FloatRange(0, 1), help="pr: assume this share of positives."
)
@option(
    "--plot",
    type=Choice(["fptp", "tntp", "tptn", "fpfn"]),
    help="roc: the axes, x then y.  [default: fptp]",
)
@option("--scale", type=Choice(["normal", "log"]), help="det: the axes.  [default: normal]")
@printed("table", "csv", "json")
@quiet
def curves(
    files: tuple[str, ...], kind: str, out: tuple[str, ...], areas: bool, form: str, **options: Any
) -> None:
    """Print the summary numbers of curves: SCORES.csv has a label and a score per row ("-": stdin).

    Labels are 0 and 1, -1 and 1, or true and false. Several files go into one picture. Of several
    files with the same labels in the same order, and with --kind roc, the areas under the ROC
    curves are printed with 95 % intervals and DeLong's test of each pair.
    """
    from bsdsbench import curves, plotting
    from bsdsbench.files.bounded import write_atomic
    from bsdsbench.files.errors import DataError
    from bsdsbench.loaders.scores import read_scores
    from bsdsbench.tables.forms import render
    from bsdsbench.tables.table import Field, Table

    refuse([name for name, its in ONLY.items() if its != kind], f"--kind {kind}")
    if len(files) > 1 and any(target.endswith(".csv") for target in out):
        raise click.UsageError(f"-o FILE.csv: points of {len(files)} files, expected one file")
    chosen = {name: v for name, v in options.items() if v is not None and v is not False}
    scale = chosen.pop("scale", "normal")
    names = [Path(file).stem if file != "-" else "stdin" for file in files]
    names = names if len({*names}) == len(names) else list(files)
    samples, found, ways = [*map(read_scores, files)], [], []
    for file, sample in zip(files, samples, strict=True):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            try:
                found.append(getattr(curves, kind)(*sample, **chosen))
                ways.append(curves.area_table(*sample, reading=chosen["reading"]) if areas else ())
            except DataError as error:
                raise DataError(f"{file}: {error}") from None
        for line in dict.fromkeys(str(warning.message) for warning in caught):
            say(f"{file}: {line}")
    for target in out:
        if target.endswith(".csv"):
            (curve,) = found
            columns = (
                curve.thresholds,
                *(getattr(curve, k) for k in RATES[kind]),
                curve.tp,
                curve.fp,
            )
            points = zip(*(column.tolist() for column in columns), strict=True)
            lines = [",".join(("threshold", *RATES[kind], "tp", "fp"))]
            lines += [",".join(map(repr, point)) for point in points]
            write_atomic(Path(target), "\n".join(lines) + "\n")
        else:
            display = getattr(plotting, f"{kind.upper()}CurveDisplay")
            more = {"scale": scale} if kind == "det" else {}
            named = zip(found, names, strict=True)
            drawn = [display.from_curve(curve, name, **more) for curve, name in named]
            plotting.plot_curves(drawn, target)
        say(f"wrote {target}", progress=True)
    fields = [Field("name", "name")]
    fields += [Field(key, key, "", "d") for key in ("positives", "negatives", "points")]
    fields += [Field(key, head, "", ".6g") for key, head in NUMBERS[kind].items()]
    rows = [
        [name, c.positives, c.negatives, c.thresholds.size, *(getattr(c, k) for k in NUMBERS[kind])]
        for name, c in zip(names, found, strict=True)
    ]
    shown = [Table("curves", "", fields, rows)]
    if areas:
        heads = names if len(names) > 1 else ["value"]
        fields = [Field("number", "number")]
        fields += [Field(f"value_{k}", head, "", ".6g") for k, head in enumerate(heads)]
        fields += [Field(key, key) for key in ("points", "ties", "rule")]
        alike = zip(*ways, strict=True)
        rows = [[a.name, *(w.value for w in (a, *b)), a.points, a.ties, a.rule] for a, *b in alike]
        shown.append(Table("areas", "", fields, rows))
    if kind == "roc" or len(files) > 1:
        shown += _roc_tables(list(zip(names, samples, strict=True)), chosen["reading"])
    if form == "json":
        tables = json.loads(render(shown, form))["tables"]
        by_key = {table["key"]: table["rows"] for table in tables}
        print_json({"kind": kind, "ties": options["ties"], **by_key})
        return
    show_tables(shown[:1] if form == "csv" else shown, None, form)


def _roc_tables(samples: Sequence[tuple[str, Any]], reading: Any) -> list[Table]:
    """Areas under ROC curves with 95 % intervals, and DeLong's test of pairs of equal labels."""
    from bsdsbench.comparison.significance import holm
    from bsdsbench.curves import delong
    from bsdsbench.files.errors import DataError
    from bsdsbench.tables.table import Estimate, Field, Table

    areas: list[list[Any]] = []
    pairs: list[list[Any]] = []
    try:
        for name, (labels, scores) in samples:
            alone = delong(labels, scores, scores, reading=reading)
            width = NormalDist().inv_cdf(0.975) * math.sqrt(alone.covariance[0, 0])
            low, high = max(alone.auc - width, 0.0), min(alone.auc + width, 1.0)
            areas.append([name, Estimate(alone.auc, low, high)])
        for (a, (labels, scores)), (b, (others, other)) in combinations(samples, 2):
            if labels.tolist() != others.tolist():
                say(f"{a}, {b}: other labels, or in another order, so their areas are not compared")
                continue
            d = delong(labels, scores, other, reading=reading)
            pairs.append([a, b, Estimate(d.difference, d.low, d.high), d.p])
    except DataError as error:
        say(f"no intervals of areas under ROC curves: {error}")
        return []
    for row, p in zip(pairs, holm([row[-1] for row in pairs]), strict=True):
        row.append(p)
    fields = [Field("name", "name"), Field("auc", "auc [95 % interval]", "", ".4f")]
    tables = [Table("roc_areas", "Areas under the ROC curves", fields, areas)]
    if pairs:
        fields = [
            Field("a", "a"),
            Field("b", "b"),
            Field("difference", "a - b [95 % interval]", "", "+.4f"),
            Field("p", "p", "", "p"),
            Field("p_holm", "p (Holm)", "", "p"),
        ]
        title = "Differences of these areas (DeLong's test)"
        tables.append(Table("differences", title, fields, pairs, n_labels=2))
    return tables
