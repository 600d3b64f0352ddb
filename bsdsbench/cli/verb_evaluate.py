"""bsdsbench evaluate: score a folder of predictions against a folder of ground truth."""

from __future__ import annotations

import inspect
import sys
from pathlib import Path
from typing import Any

import click

from bsdsbench.cli.evaluating import (
    announce_compiling,
    check_overlays,
    import_drawing,
    show_run,
    write_overlays,
    write_plots,
)
from bsdsbench.cli.options import (
    PROTOCOL_FIELDS,
    metrics_or_default,
    protocol_from,
    refuse,
    run_option,
    shared_by_runs,
    verb,
)


@verb("evaluate", short_help="Score a folder of predictions, by any metric.")
@click.argument("pred_dir", required=False, type=click.Path())
@click.option("--gt", "gt_dir", required=True, type=click.Path(), help="Ground-truth folder.")
@run_option("out")
@run_option("task")
@shared_by_runs(on_error="fail")
@run_option("pred_kind")
@run_option("missing")
@run_option("images_dir")
@click.option(
    "--per-image",
    metavar="FILE",
    help="Write every score of every image (and class), as .csv, .md, .json ...",
)
@click.option(
    "--humans", is_flag=True, help="Score each annotator against the others; without PRED_DIR."
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
        from bsdsbench.tables.forms import form_of, write_tables

        written = form_of(cases, None)
    fields = {name: options.pop(name) for name in PROTOCOL_FIELDS}
    gt_dir, out = options.pop("gt_dir"), options["out"]
    if humans == (pred_dir is not None):
        raise click.UsageError("give PRED_DIR, or --humans without one")
    call: Any = bb.evaluate
    given: tuple[Any, ...] = pred_dir, gt_dir
    if humans:
        call, given = bb.evaluate_humans, (gt_dir,)
        refuse_others(call, options, ("nms", "invert", "overlays"), "--humans")
    coco = str(pred_dir).endswith(".json") and str(gt_dir).endswith(".json")
    if coco:
        call = bb.evaluate_items
        refuse_others(call, options, ("overlays",), "COCO's JSON")
    if options["task"]:
        from bsdsbench.protocol.protocol import Protocol
        from bsdsbench.protocol.tasks import Task

        refuse((*PROTOCOL_FIELDS, "metrics", "humans"), "--task, which fixes them")
        options["task"] = Task.load(options["task"])
        options["metrics"] = [options["task"].metric]
        protocol = Protocol.preset(options["task"].protocol)
    metrics = options["metrics"] = metrics_or_default(options["metrics"])
    if not options["task"]:
        protocol = protocol_from(**fields, metrics=metrics)
    if overlays:
        check_overlays(metrics, protocol, out)
    if coco:
        from bsdsbench.loaders.coco import CocoItems

        items = CocoItems(str(pred_dir), gt_dir, "instance")
        given, protocol = (items,), items.protocol(metrics, protocol)
        options["name"] = options["name"] or Path(str(pred_dir)).stem
    announce_compiling(quiet)
    if out:
        import_drawing()
    keywords = inspect.signature(call).parameters
    taken = {name: options[name] for name in options if name in keywords}
    with progress("evaluate", quiet) as report:
        run = call(*given, protocol=protocol, progress=report, **taken)
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


def refuse_others(call: Any, options: Any, more: tuple[str, ...], beside: str) -> None:
    """Raise UsageError for options that a call does not have."""
    refuse((*(set(options) - set(inspect.signature(call).parameters)), *more), beside)
