"""The commands for scoring: demo, evaluate, run, merge, nms."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from bsdsbench.cli import options as opt
from bsdsbench.cli.shared import (
    NMS_WITHOUT_RECIPE,
    RunInputs,
    command,
    compile_first,
    log,
    option_values,
    print_json,
    print_run,
    progress,
    protocol_from,
    refuse_given,
    report_left_out,
    resolve_inputs,
    show_tables,
)
from bsdsbench.text import show

if TYPE_CHECKING:
    from bsdsbench.detectors.detector_runs import DetectorRun
    from bsdsbench.results.evaluation import Evaluation
    from bsdsbench.tables.table import Table

_DRAWING_PROGRAM = "from bsdsbench.plotting.beside import draw_from_stdin; draw_from_stdin()"
# Detectors run by `demo` -> their names in tables
_DEMO_DETECTORS = {"canny": "Canny", "sobel": "Sobel", "structure-tensor": "structure tensor"}


class _DemoArguments(opt.Options):
    out: str = opt.path(
        "Folder for the results and plots.", "-o", "--out", default="bsdsbench-demo"
    )
    workers: int | None = opt.run_option("workers")


@command  # its arguments and options are those that _DemoArguments declares
def demo_command(args: _DemoArguments) -> None:
    """Run the whole benchmark on the sample of this package.

    Three detectors are run, evaluated and compared, and their curves are drawn. The sample has 16
    synthetic images with three to five simulated annotators each. The detectors are built in
    (`bsdsbench run NAME`). Nothing is downloaded.
    """
    import bsdsbench as bb
    from bsdsbench.loaders.sample import sample_ground_truth, sample_images
    from bsdsbench.plotting import plot_runs
    from bsdsbench.results.score_tables import score_tables

    compile_first()
    images, gt = sample_images(), sample_ground_truth()
    evaluations = []
    for detector, name in _DEMO_DETECTORS.items():
        options: Any = {"name": name, "out": Path(args.out, detector), "workers": args.workers}
        with progress(detector) as report:
            run = bb.run(detector, images, gt=gt, progress=report, **options)
        if run.evaluation:
            evaluations.append(run.evaluation)
    evaluations.sort(key=lambda evaluation: evaluation.boundary_score().ods.f, reverse=True)
    show_tables(score_tables(evaluations))
    comparison = bb.compare(evaluations).only(["ods", "ap"])
    print()
    show_tables([table for table in comparison.tables() if table.key == "differences"])
    with progress("human") as report:
        human = bb.evaluate_humans(gt, workers=args.workers, progress=report)
    pr_plot = Path(args.out, "pr.png")
    f_plot = Path(args.out, "f_threshold.png")
    plot_runs(evaluations, human=human, path=pr_plot)
    plot_runs(evaluations, kind="f", path=f_plot)
    print(f"\nplots    {pr_plot}  {f_plot}")
    _print_next_commands(args.out, images, gt)


def _print_next_commands(out: str, images: Path, gt: Path) -> None:
    """Print the folders of the demo's results, and commands to try next on the sample."""
    folders = " ".join(str(Path(out, detector)) for detector in _DEMO_DETECTORS)
    raw = Path(out, "raw")
    print(f"""results  {folders}
next
  # maps several pixels wide, as networks give them
  bsdsbench run structure-tensor-raw {images} -o {raw}
  # they lose points without NMS; doctor finds that
  bsdsbench doctor {raw / "maps"} --gt {gt}
  # one page with every table and plot
  bsdsbench report {folders} -o {Path(out, "report.html")}
  # BSDS500, with its licence
  bsdsbench data get bsds500
  # your own method on it
  bsdsbench evaluate MY_MAPS --task bsds500-test/boundary -o my-method""")


class _EvaluateArguments(opt.Options):
    pred_dir: str | None = opt.add_argument(required=False, type=click.Path())
    out: str | None = opt.run_option("out")
    on_error: str = opt.run_option("on_error")
    evaluation: opt.EvaluationOptions = opt.add_options(opt.EvaluationOptions)
    pred_kind: str | None = opt.run_option("pred_kind")
    missing: str = opt.run_option("missing")
    images_dir: str | None = opt.run_option("images_dir")
    valid_dir: str | None = opt.run_option("valid_dir")
    errors: bool = opt.run_option("errors")
    per_image: str | None = opt.add_option(
        "Also write every score of every image (and class) to this file: .csv, .md, .json ...",
        metavar="FILE",
    )
    per: str | None = opt.add_option(
        "With --per-image, write a row per group of this column, such as patient, with the scores "
        "of all its images together and the mean of their own scores.",
        metavar="COLUMN",
    )
    slicing: opt.SliceOptions = opt.add_options(opt.SliceOptions)
    threshold_from: str | None = opt.path(
        "Also show precision, recall and F at the best threshold of another run, such as that of a "
        "validation set.",
        metavar="OUT",
    )
    columns: list[str] | None = opt.columns_option
    summary: str | None = opt.summary_option
    humans: bool = opt.flag("Score each annotator against the others; without PRED_DIR.")


@command  # its arguments and options are those that _EvaluateArguments declares
def evaluate_command(args: _EvaluateArguments) -> int:
    """Score a folder of predictions by any metric.

    PRED_DIR holds maps, segmentations or masks. Options of a metric are set by --set
    METRIC.FIELD=VALUE; an unknown option lists them. Most metrics have a default protocol; the
    others need a protocol that names the classes.

    PRED_DIR and --gt may be two COCO JSON files (instances, results or panoptic), for --metrics
    contour or segmentation.

    Ground-truth images with gray values need --set gt_threshold=0.5, and ground-truth images of
    region labels need --set gt_kind=labels. For region measures of soft maps, pass --set
    regions_from_soft=true.
    """
    if args.per and not args.per_image:
        raise click.UsageError("--per needs --per-image FILE")
    # --by and --per need groups of images (--groups or --group-by), and --cluster needs --by
    _check_slicing(args.slicing, args.evaluation.grouping, args.per)
    # A child process imports matplotlib while this one imports the package (so the imports are in
    # the block) and scores. At its end, the block waits for the plots. If args.out, the folder of
    # the run, is None, there is no child, and `begin_plots` does nothing
    with plots_beside(args.out) as begin_plots:
        import bsdsbench as bb
        from bsdsbench.tables.forms import format_of, write_tables

        # Wrong options are refused before the run starts
        threshold_run = bb.Evaluation.load(args.threshold_from) if args.threshold_from else None
        per_image_format = format_of(args.per_image, None) if args.per_image else ""
        run = _evaluate(args)
        begin_plots()  # the child reads the run that `_evaluate` has saved
        if run.kept:  # the number of images whose counts an earlier call left in OUT
            log(
                f"{run.kept} of {len(run.records)} images were counted before; their records in "
                f"{args.out} were kept (--fresh counts them again)"
            )
        if args.per_image:
            if args.per:  # a row per group of images, otherwise a row per image
                from bsdsbench.comparison.slices import group_table  # takes long to import

                tables = [group_table(run, metric, args.per) for metric in run.metrics]
            else:
                tables = [run.per_image(metric) for metric in run.metrics]
            write_tables(tables, args.per_image, per_image_format)
        _print_evaluation(run, threshold_run, args)
    return report_left_out(run.failed, run)  # lists failed images, and returns the exit status


@contextmanager
def plots_beside(out: str | None) -> Iterator[Callable[[], None]]:
    """Start a child process that will draw the plots of the run to be saved in `out`.

    The child imports matplotlib, which is slow, while the `with` block evaluates the run. The block
    must call the yielded function once the run is saved; the child then draws pr.png and pr.svg
    into `out`. The `with` statement waits for them. If the child fails, this process draws them.

    If `out` is None, no process is started and the yielded function does nothing. If the block
    raises before it has called the function, the child is killed.
    """
    if not out:
        yield lambda: None
        return
    # It runs `draw_from_stdin`, and finds the same modules, but (-P) none of the current folder
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    command = [sys.executable, "-P", "-c", _DRAWING_PROGRAM]
    quiet = subprocess.DEVNULL
    with subprocess.Popen(
        command, env=env, stdin=subprocess.PIPE, stdout=quiet, stderr=quiet
    ) as child:
        child_stdin: Any = child.stdin

        def start_drawing() -> None:
            """Send the run's folder to the child, which is waiting for it on standard input."""
            with suppress(BrokenPipeError), child_stdin:
                child_stdin.write(os.fsencode(out))

        try:
            yield start_drawing
        except BaseException:
            if not child_stdin.closed:  # it has no folder yet; otherwise it finishes its drawing
                child.kill()
            raise
    if child.returncode:  # Popen's `with` block has waited for the child to end
        from bsdsbench.plotting.beside import draw

        draw(out)


def _evaluate(args: _EvaluateArguments) -> Evaluation:
    """Score predictions against the ground truth or, with --humans, annotators against each other.

    Predictions and ground truth are two folders, or two COCO files (.json).
    """
    import bsdsbench as bb
    from bsdsbench.runs.keywords import HumanOptions, ItemOptions, RunOptions

    if args.humans == (args.pred_dir is not None):
        raise click.UsageError("give either PRED_DIR or --humans")
    pred = str(args.pred_dir)
    is_coco = pred.endswith(".json") and str(args.evaluation.gt).endswith(".json")
    # The keywords of `evaluate` are options of this command. The two other functions have fewer of
    # them, and the rest is refused, such as --split-file with COCO's JSON
    accepted = keywords_of_evaluate = {*RunOptions.__annotations__}
    if args.humans:
        accepted = {*HumanOptions.__annotations__}  # the keywords of `evaluate_humans`
        refuse_given((keywords_of_evaluate | {"nms", "invert"}) - accepted, "--humans")
    elif is_coco:
        accepted = {*ItemOptions.__annotations__}  # the keywords of `evaluate_items`
        refuse_given(keywords_of_evaluate - accepted, "COCO's JSON")
    keywords = option_values(args, accepted)
    inputs = resolve_inputs(args.evaluation, args.valid_dir)
    gt, metrics, protocol = str(inputs.gt), inputs.metrics, inputs.protocol
    if is_coco:
        _refuse_for_coco(gt, metrics)  # metrics that cannot score masks of objects
    compile_first(metrics, args.pred_dir, gt)  # the kernels, on the first run of all
    with progress("evaluate") as report:
        keywords["progress"] = report
        if args.humans:
            return bb.evaluate_humans(gt, protocol, metrics, **keywords)
        if is_coco:
            from bsdsbench.loaders.formats.coco import CocoItems

            items = CocoItems(pred, gt)
            keywords["name"] = keywords["name"] or Path(pred).stem
            # The categories of the files become the classes of the metrics in the protocol
            with_classes = items.protocol(metrics, protocol)
            return bb.evaluate_items(items, with_classes, metrics, **keywords)
        keywords["task"] = inputs.task  # loaded; the option is its name
        return bb.evaluate(pred, gt, protocol, metrics, **keywords)


def _refuse_for_coco(gt: str, metrics: Sequence[str]) -> None:
    """Raise UsageError if a metric cannot score the masks of objects in a COCO file.

    gt: the path of the ground-truth file, which begins the message.
    metrics: the names of the metrics to check.
    """
    from bsdsbench.metrics import registry
    from bsdsbench.metrics.label_maps import LabelOptions

    fitting = []  # the metrics of label maps, whose class of options is a child of LabelOptions
    for name in registry.names():
        options_class = registry.get(name).options  # None if the metric has no options
        if options_class and issubclass(options_class, LabelOptions):
            fitting.append(name)
    if unfit := [name for name in metrics if name not in fitting]:
        has = f"holds masks of objects (COCO), which {', '.join(unfit)} does not read"
        expected = f"expected --metrics {' or '.join(fitting)}"
        raise click.UsageError(f"{show(gt)}: {has}, {expected}")


def _print_evaluation(
    run: Evaluation, threshold_run: Evaluation | None, args: _EvaluateArguments
) -> None:
    """Print the scores of a run as tables or JSON, with those of --summary and --by.

    threshold_run: the run of --threshold-from, or None. Its best threshold is applied to `run`, and
        the scores at this threshold are printed too.
    """
    from bsdsbench.results.at_threshold import at_threshold_of

    at_threshold = at_threshold_of(run, threshold_run) if threshold_run else []
    slices: list[Table] = []
    if args.slicing.by:
        from bsdsbench.comparison.slices import slice_tables  # takes long to import

        slices = slice_tables([run], args.slicing.by, args.columns, args.slicing.cluster)
    summary: list[Table] = []
    if args.summary:
        from bsdsbench.results.image_tables import Summary, summary_tables

        summary = summary_tables([run], Summary(args.summary), args.columns)
    if args.evaluation.output_format == "json":
        extra_tables = {"threshold_from": at_threshold, "slices": slices, "summary": summary}
        print_json(run.to_mapping() | _as_json(extra_tables))
        return
    print_run(run, args.out, args.columns)  # its last line names args.out, the folder of the run
    if tables := [*summary, *at_threshold, *slices]:
        print()
        show_tables(tables)


def _as_json(tables_by_key: Mapping[str, Sequence[Table]]) -> dict[str, Any]:
    """Convert {key in the JSON file, such as "slices": tables} to plain dicts for JSON.

    Each list becomes a dict from the key of a table to its content. Empty lists are left out.
    """
    return {
        key: {table.key: table.plain() for table in tables}
        for key, tables in tables_by_key.items()
        if tables
    }


def _check_slicing(
    slicing: opt.SliceOptions, grouping: opt.GroupingOptions, per: str | None = None
) -> None:
    """Raise UsageError if an option is given without the option that it depends on.

    --by and --per need --groups or --group-by. --cluster needs --by.
    """
    if (slicing.by or per) and not (grouping.groups or grouping.group_by):
        raise click.UsageError("--by and --per need --groups FILE.csv or --group-by REGEX")
    if slicing.cluster and not slicing.by:
        raise click.UsageError("--cluster needs --by COLUMN")


class _RunArguments(opt.Options):
    function: str = opt.add_argument("MODULE:FUNCTION|NAME")
    images: str | None = opt.add_argument(required=False, type=click.Path())
    out: str = opt.run_option("out", required=True)
    tag: str | None = opt.run_option("tag")
    scales: str | None = opt.run_option("scales")
    flip: bool = opt.run_option("flip")
    resize: str = opt.run_option("resize")
    resume: bool = opt.run_option("resume")
    valid_dir: str | None = opt.run_option("valid_dir")
    on_error: str = opt.run_option("on_error", default="skip")
    evaluation: opt.EvaluationOptions = opt.add_options(opt.EvaluationOptions)
    slicing: opt.SliceOptions = opt.add_options(opt.SliceOptions)


@command  # its arguments and options are those that _RunArguments declares
def run_command(args: _RunArguments) -> int:
    """Run, time and score a detector: yours, or a built-in one.

    The detector is called on every image in IMAGES. Without --gt nothing is scored. --task takes
    the images and the ground truth of its data set.

    MODULE:FUNCTION takes an (H, W, 3) uint8 array and returns a soft map (H, W), floats in [0, 1]
    or uint8 or uint16, or labels (int32 or int64), or a list of label maps. NAME is a detector of
    scikit-image: canny, sobel, scharr, structure-tensor, structure-tensor-raw (without non-maximum
    suppression), or a segmenter, from coarse to fine: felzenszwalb, slic, watershed.

    The maps are written to OUT/maps, with a run.json that names their detector. If OUT/maps already
    holds maps, the command stops unless --resume (keep them) or --fresh (replace them) is given.
    Images on which the detector fails are listed, and the exit status is then 2.
    """
    import bsdsbench as bb
    from bsdsbench.runs.keywords import DetectorOptions

    inputs = _detector_inputs(args)
    # The options that are keywords of `bb.run`, which DetectorOptions (a TypedDict) lists
    options = option_values(args, DetectorOptions.__annotations__)
    function_name = args.function.rpartition(":")[2]  # of MODULE:FUNCTION
    with progress(args.evaluation.name or function_name) as report:
        options |= {"gt": inputs.gt, "progress": report}
        run = bb.run(args.function, str(inputs.images), inputs.protocol, inputs.metrics, **options)
    _print_detector_run(run, args)
    return report_left_out(run.failed, run.evaluation)  # lists failed images, returns the status


def _detector_inputs(args: _RunArguments) -> RunInputs:
    """Check the options of `run`, and determine its folders, metrics and protocol from them.

    If maps will be scored, kernels that were never compiled are compiled now. Raises UsageError if
    options do not belong together, and DataError if the ground truth does not belong to the task.
    """
    from bsdsbench.runs.sources import check_truth

    options = args.evaluation
    # --by shows scores of groups of images, and needs --groups or --group-by, which name the groups
    _check_slicing(args.slicing, options.grouping)
    if args.slicing.by and not (options.gt or options.task):
        raise click.UsageError("--by needs --gt FOLDER: without it nothing is scored")
    # `takes_images`: the folder of images may be that of the task, and ground truth is optional
    inputs = resolve_inputs(options, args.valid_dir, args.images, takes_images=True)
    # A task that lists image ids scores only a part of its data set, but this command runs the
    # detector on all images of a folder
    if inputs.images is None or (inputs.task and inputs.task.ids):
        raise click.UsageError("give IMAGES, or a --task of a whole set")
    if inputs.task and inputs.gt:  # refuse a --gt of another data set before the detector runs
        check_truth(inputs.task, inputs.gt, inputs.protocol)
    if inputs.gt:  # the maps will be scored: compile the kernels before, too
        compile_first(inputs.metrics, inputs.images, inputs.gt)
    return inputs


def _print_detector_run(run: DetectorRun, args: _RunArguments) -> None:
    """Print the scores of a detector run (if it was scored), the tables of --by, and its speed.

    With --format json, all of this is printed as JSON. If --resume kept maps that an earlier run of
    the detector wrote, their number is printed last, on standard error.
    """
    slices: list[Table] = []
    if run.evaluation and args.slicing.by:
        from bsdsbench.comparison.slices import slice_tables  # takes long to import

        slices = slice_tables([run.evaluation], args.slicing.by, None, args.slicing.cluster)
    if args.evaluation.output_format == "json":
        print_json(run.to_mapping() | _as_json({"slices": slices}))
    else:
        if run.evaluation:
            print_run(run.evaluation, args.out)
        if slices:
            print()
            show_tables(slices)
        speed = f"{run.ms_per_image:.1f} ms per image (median of {len(run.milliseconds)}"
        print(f"time     {speed}, one at a time, warm-up left out; {run.machine})")
        print(f"maps     {run.maps}")
    if run.kept:  # the number of maps that an earlier call wrote
        # Each map has a time, as those of kept maps were stored. There are none if no detector ran
        n_maps = len(run.milliseconds) or run.kept
        log(f"{run.kept} of {n_maps} maps were kept from an earlier call")


class _MergeArguments(opt.Options):
    outs: tuple[str, ...] = opt.add_argument("OUT...", nargs=-1, required=True, type=click.Path())
    out: str = opt.path("Folder for the result.", "-o", "--out", required=True)
    best_of: bool = opt.flag("Take, at each image and threshold, the best of several runs.")
    splits: bool = opt.flag("Average the scores of runs of several splits, and pool their images.")
    name: str | None = opt.add_option(
        "Name of the method in tables; default: that of the first run."
    )
    output_format: str = opt.format_option("table", "json")


@command  # its arguments and options are those that _MergeArguments declares
def merge_command(args: _MergeArguments) -> int:
    """Join the shards of a run, or take the best of several runs.

    Runs made with --shard 1/N to N/N are joined to a run that is identical to an undivided one.

    With --best-of, OUT are runs of one method on the same images, or folders of official
    ID_ev1.txt files. For each image and threshold the counts of the run with the best F are taken,
    as is usual for methods with a granularity setting. The name of the new run says that it was
    chosen by the ground truth, so it is not comparable with other scores.

    With --splits, OUT are runs of several splits or folds, each with its own images. The mean of
    their scores is shown with its standard deviation, and the score of all images together.
    """
    from bsdsbench.comparison.method_tables import splits
    from bsdsbench.plotting.figures import plot_result
    from bsdsbench.results.evaluation import Evaluation
    from bsdsbench.results.given_runs import as_runs
    from bsdsbench.runs.merge import best_of, merge

    if Path(args.out).resolve() in [Path(shard).resolve() for shard in args.outs]:
        raise click.UsageError(f"-o {args.out}: is one of the runs; give another folder")
    if args.best_of and args.splits:
        raise click.UsageError("give --best-of or --splits, not both")
    split_scores = None
    if args.splits:
        split_scores = splits(as_runs(args.outs), args.name or "")
        merged = split_scores.pooled  # one run with the images of all splits
    elif args.best_of:
        merged = best_of(as_runs(args.outs), args.name)
    else:  # shards: each has a part of the images of one run
        merged = merge([Evaluation.load(shard) for shard in args.outs])
        merged = replace(merged, name=args.name or merged.name)
    with progress("merge", "files") as report:
        merged.save(args.out, report)
    plot_result(merged, Path(args.out))  # pr.png and pr.svg, if there is a precision-recall curve
    if split_scores:
        show_tables([split_scores.table], None, args.output_format)
    elif args.output_format == "json":
        print_json(merged.to_mapping())
    else:
        print_run(merged, args.out)
    return report_left_out(merged.failed, merged)  # lists failed images, and returns the status


class _NmsArguments(opt.Options):
    folders: tuple[str, ...] = opt.add_argument(
        "MAPS OUT", nargs=-1, required=True, type=click.Path()
    )
    average: bool = opt.flag(
        "Average the maps of several folders, such as those of several scales: MAPS MAPS OUT."
    )
    protocol: str | None = opt.preset_option
    nms: str | None = opt.nms_option
    invert: str | None = opt.invert_option
    set: tuple[str, ...] = opt.set_option


@command  # its arguments and options are those that _NmsArguments declares
def nms_command(args: _NmsArguments) -> None:
    """Apply non-maximum suppression to soft maps.

    MAPS is a folder of soft maps. The new maps are written as PNG files into the folder OUT. They
    are the maps that `evaluate --nms` scores. The constants are the protocol's nms_params
    (`--protocol biped`, `--set nms_params.radius=2`, `--set nms_params.bits=16` for 16-bit PNG) or
    those of a recipe (`--nms rcf`).

    With --average the maps of an image in all folders are averaged before NMS, as in multi-scale
    testing. They must have the same size.

    Exactly horizontal, straight ridges can stay thick: their orientation is undefined, as in every
    implementation of this NMS. Responses are faded out towards the image border, over at most half
    of the shorter side.
    """
    from bsdsbench.detectors.nms_folder import nms_files, refuse_maps_in

    *sources, target = args.folders
    is_wrong_number = len(sources) < 2 if args.average else len(sources) != 1
    if is_wrong_number:
        expected = "two or more folders of maps" if args.average else "one folder of maps"
        raise click.UsageError(f"give {expected}, and OUT")
    if args.average:
        refuse_maps_in(target)  # the last argument is a folder of inputs if OUT was forgotten
    recipe = args.nms or NMS_WITHOUT_RECIPE  # the latter: with the constants of the protocol
    protocol = protocol_from(opt.ProtocolOptions(**{**vars(args), "nms": recipe}))
    with progress("nms") as report:
        n_maps = nms_files(sources, target, protocol, progress=report)
    print(f"{n_maps} maps written to {target}")
    print(f"NMS      {protocol.nms_params.describe()}")  # the radius and other constants
