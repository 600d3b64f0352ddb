"""bsdsbench evaluate: a folder of predictions and a folder of ground truth to scores."""

from __future__ import annotations

import re
import sys
import threading
from importlib import import_module
from pathlib import Path
from typing import Any

import click

from bsdsbench.cli.options import (
    ProtocolCommand,
    format_option,
    pred_kind_option,
    protocol_from,
    protocol_options,
    quiet_option,
    workers_option,
)

PROTOCOL_FIELDS = ("protocol", "thresholds", "max_dist", "no_thin", "nms", "invert", "overrides")
ONLY_PREDICTIONS = ("name", "missing", "pred_kind", "shard")


@click.command("evaluate", cls=ProtocolCommand, short_help="Score a folder of predictions.")
@click.argument("pred_dir", required=False, type=click.Path())
@click.option("--gt", "gt_dir", required=True, type=click.Path(), help="Ground-truth folder.")
@click.option("-o", "--out", type=click.Path(), help="Folder for results; a later run resumes it.")
@protocol_options
@click.option(
    "--metrics",
    default="boundary",
    show_default=True,
    metavar="M,M",
    help="Any of boundary, region, pixel.",
)
@click.option("--split-file", type=click.Path(), help="Ids to evaluate, one on a line.")
@click.option("--name", help="The method's name in tables; default: the folder's name.")
@pred_kind_option
@click.option(
    "--missing",
    type=click.Choice(["error", "zero", "skip"]),
    default="error",
    show_default=True,
    help="What an image without a prediction is.",
)
@click.option(
    "--on-error",
    type=click.Choice(["fail", "skip"]),
    default="fail",
    show_default=True,
    help="Whether a bad image ends in no scores, or is left out and named.",
)
@workers_option
@click.option(
    "--executor",
    default="process",
    show_default=True,
    metavar="E",
    help="process, thread or dask://host:port.",
)
@click.option("--shard", default="1/1", metavar="I/N", help="Evaluate the I-th of N parts.")
@click.option("--fresh", is_flag=True, help="Do not use records of an earlier run in OUT.")
@click.option("--humans", is_flag=True, help="Each annotator against the others; no PRED_DIR.")
@click.option("--overlays", is_flag=True, help="Matched, false, missed pixels: OUT/overlays.")
@format_option("table", "json")
@quiet_option
def command(pred_dir: str | None, form: str, quiet: bool, **options: Any) -> int:
    """Evaluate PRED_DIR (soft boundary maps or segmentations) against human annotations.

    --max-dist A:B:N evaluates at N tolerances from A to B.

    Ground-truth pictures that are gray need --set gt_threshold=0.5, those of region labels --set
    gt_kind=labels. With --metrics region, --set regions_from_soft=true closes soft maps to regions.
    """
    import bsdsbench as bb
    from bsdsbench.cli.progress import progress
    from bsdsbench.cli.show import print_json, print_scores

    humans = options.pop("humans")
    if humans == (pred_dir is not None):
        raise click.UsageError("give PRED_DIR, or --humans without one")
    overlays = options.pop("overlays")
    if overlays and (humans or not options["out"] or "boundary" not in options["metrics"]):
        raise click.UsageError("--overlays needs PRED_DIR, -o OUT and boundary among --metrics")
    fields = {name: options.pop(name) for name in PROTOCOL_FIELDS}
    tolerances = fields["max_dist"] if ":" in (fields["max_dist"] or "") else None
    if tolerances and humans:
        raise click.UsageError("--max-dist A:B:N does not go with --humans")
    protocol = protocol_from(**{**fields, "max_dist": None} if tolerances else fields)
    options["metrics"] = [m.strip() for m in options["metrics"].split(",") if m.strip()]
    options["shard"] = _shard(options["shard"])
    if bb.kernels.never_compiled() and not quiet:
        print("first run: compiling the kernels, some 20 seconds", file=sys.stderr)
    if options["out"]:
        load_plotting()
    with progress("evaluate", quiet) as report:
        if tolerances:
            from bsdsbench.cli.tolerances import sweep

            return sweep(str(pred_dir), protocol, tolerances, form, report, options)
        if humans:
            options = {k: v for k, v in options.items() if k not in ONLY_PREDICTIONS}
            run = bb.evaluate_humans(protocol=protocol, progress=report, **options)
        else:
            run = bb.evaluate(pred_dir, protocol=protocol, progress=report, **options)
    if options["out"]:
        write_plots(run, options["out"])
    if overlays:
        from bsdsbench.report.overlays import write_overlays

        with progress("overlays", quiet) as report:
            folder = Path(options["out"]) / "overlays"
            write_overlays(run, folder, pred_kind=options["pred_kind"], progress=report)
    if form == "json":
        print_json(run.to_mapping())
    else:
        print_scores([run])
        print(f"protocol {protocol.describe()}")
        if options["out"]:
            print(f"results  {options['out']}")
    for image_id, reason in run.failed.items():
        print(f"bsdsbench: left out {image_id!r}: {reason}", file=sys.stderr)
    return 2 if run.failed else 0


def _shard(text: str) -> tuple[int, int]:
    from bsdsbench.core.errors import DataError

    found = re.fullmatch("([0-9]{1,7})/([0-9]{1,7})", text)
    if not found:
        raise DataError(f"--shard {text!r}: expected I/N, such as 1/4")
    return int(found[1]), int(found[2])


def write_plots(run: Any, out: str) -> None:
    """pr.png and pr.svg into OUT, if there are boundary scores."""
    if "boundary" in run.metrics:
        from bsdsbench.plotting import plot_runs
        from bsdsbench.plotting.style import save

        save(plot_runs([run], path=Path(out) / "pr.png"), Path(out) / "pr.svg")


def load_plotting() -> None:
    """Import the plotting room beside the run, whose worker processes leave this one idle."""
    threading.Thread(target=import_module, args=("bsdsbench.plotting.run_figures",)).start()
