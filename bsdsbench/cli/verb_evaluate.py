"""bsdsbench evaluate: score a folder of predictions against a folder of ground truth."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Any

import click

from bsdsbench.cli.evaluating import (
    announce_compiling,
    check_overlays,
    run_options,
    show_run,
    start_workers,
    write_overlays,
    write_plots,
)
from bsdsbench.cli.options import (
    PROTOCOL_FIELDS,
    choice,
    metrics_or_default,
    pred_kind_option,
    protocol_from,
    refuse,
    split_protocol,
    verb,
)

if TYPE_CHECKING:
    from bsdsbench.protocol.protocol import Protocol
    from bsdsbench.runs.evaluation import Evaluation

ONLY_PREDICTIONS = ("task", "name", "missing", "pred_kind", "images_dir", "shard")
ONLY_FOLDERS = ("task", "split_file", "missing", "pred_kind", "images_dir", "shard", "overlays")
ONLY_SOFT = ("nms", "invert")


@verb("evaluate", short_help="Score a folder of predictions, by any metric.")
@click.argument("pred_dir", required=False, type=click.Path())
@click.option("--gt", "gt_dir", required=True, type=click.Path(), help="Ground-truth folder.")
@click.option("-o", "--out", type=click.Path(), help="Folder for results; a later run resumes it.")
@click.option(
    "--task",
    metavar="NAME|FILE",
    help="A set, protocol and metric by one name (see `bsdsbench protocols`); checks the set.",
)
@run_options(on_error="fail")
@pred_kind_option
@choice("--missing", of=("error", "zero", "skip"), help="How to treat missing predictions.")
@click.option(
    "--images",
    "images_dir",
    type=click.Path(),
    help="Folder of the images, for metrics that use them; default: beside the ground truth.",
)
@click.option(
    "--per-image",
    metavar="FILE",
    help="Write every score of every image (and class), as .csv, .md, .json ...",
)
@click.option(
    "--humans", is_flag=True, help="Score each annotator against the others; without PRED_DIR."
)
@click.option(
    "--executor",
    default="process",
    show_default=True,
    metavar="E",
    help="Where to run: process, thread or dask://host:port.",
)
def command(pred_dir: str | None, form: str, quiet: bool, **options: Any) -> int:
    """Evaluate PRED_DIR (maps, segmentations, masks) against ground truth.

    The options of a metric are set by --set METRIC.FIELD=VALUE; an unknown one lists them. Most
    metrics have a protocol of their own, others need one that names classes.

    PRED_DIR and --gt may be two JSON files of COCO (instances, results or panoptic), for --metrics
    contour or segmentation.

    Ground-truth pictures that are gray need --set gt_threshold=0.5, those of region labels --set
    gt_kind=labels. For region measures of soft maps, pass --set regions_from_soft=true.
    """
    import bsdsbench as bb
    from bsdsbench.cli.evaluating import progress

    humans, overlays = options.pop("humans"), options.pop("overlays")
    if cases := options.pop("per_image"):
        from bsdsbench.tables.output import form_of, write_tables

        written = form_of(cases, None)
    if options["task"]:
        refuse((*PROTOCOL_FIELDS, "metrics", "humans"), "--task, which fixes them")
    fields, options = split_protocol(options)
    if humans == (pred_dir is not None):
        raise click.UsageError("give PRED_DIR, or --humans without one")
    if humans:
        beside = (*ONLY_PREDICTIONS, *ONLY_SOFT, "overlays")
        refuse(beside, "--humans, which reads no predictions")
    if options["task"]:
        from bsdsbench.protocol.tasks import Task

        options["task"] = Task.load(options["task"])
        options["metrics"] = [options["task"].metric]
    out = options["out"]
    if os.path.isdir(options["gt_dir"]):  # before numpy is imported here
        start_workers(
            options["metrics"], options["executor"], options["workers"], drawing=bool(out)
        )
    metrics = options["metrics"] = metrics_or_default(options["metrics"])
    coco = str(pred_dir).endswith(".json") and str(options["gt_dir"]).endswith(".json")
    if coco:
        refuse(ONLY_FOLDERS, "COCO's JSON")
    given = options["task"]
    protocol = given.resolved() if given else protocol_from(**fields, metrics=metrics)
    if overlays:
        check_overlays(metrics, protocol, out)
    announce_compiling(quiet)
    with progress("evaluate", quiet) as report:
        if coco:
            run = _coco(str(pred_dir), protocol, report, options)
        elif humans:
            options = {k: v for k, v in options.items() if k not in ONLY_PREDICTIONS}
            run = bb.evaluate_humans(protocol=protocol, progress=report, **options)
        else:
            run = bb.evaluate(pred_dir, protocol=protocol, progress=report, **options)
    if out:
        if run.kept and not quiet:
            print(
                f"evaluate: {run.kept} of {len(run.records)} images were counted before; their "
                f"records in {out} were kept (--fresh counts them again)",
                file=sys.stderr,
            )
        write_plots(run, out)
    if overlays:
        write_overlays(run, out, quiet)
    if cases:
        write_tables([run.per_image(metric) for metric in run.metrics], cases, written)
    return show_run(run, form, out)


def _coco(pred: str, protocol: Protocol, progress: Any, options: dict[str, Any]) -> Evaluation:
    """The run of two JSON files; its classes are the categories of the ground truth."""
    from pathlib import Path

    import bsdsbench as bb
    from bsdsbench.loaders.coco import CocoItems

    items = CocoItems.of(pred, options["gt_dir"], "instance")
    kept = ("metrics", "workers", "executor", "out", "fresh", "on_error")
    return bb.evaluate_items(
        items,
        items.protocol(options["metrics"], protocol),
        name=options["name"] or Path(pred).stem,
        progress=progress,
        **{key: options[key] for key in kept},
    )
