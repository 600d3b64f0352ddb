"""The commands that score: demo, evaluate, run, merge, nms."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import click
from click import argument

from bsdsbench.cli.output import print_json, print_run, progress, report_left_out, say, show_tables
from bsdsbench.cli.shared import (
    PROTOCOL,
    Arguments,
    add_option,
    columns_option,
    combine_options,
    command,
    compile_first,
    evaluation_options,
    flag,
    format_option,
    path,
    protocol_from,
    refuse,
    resolve_run_options,
    run_option,
    slice_cluster_option,
    slicing_option,
    summary_option,
    with_arguments,
)
from bsdsbench.plotting.beside import plots_beside

if TYPE_CHECKING:
    from bsdsbench.detectors.detector_runs import DetectorRun
    from bsdsbench.results.evaluation import Evaluation
    from bsdsbench.tables.table import Table

_TITLES = {"canny": "Canny", "sobel": "Sobel", "structure-tensor": "structure tensor"}


@command
@path("-o", "--out", "Folder for the results and plots.", default="bsdsbench-demo")
@run_option("workers")
def demo_command(out: str, workers: int | None) -> None:
    """Run the whole benchmark on the sample of this package.

    Three detectors are run, evaluated and compared, and their curves are drawn. The sample has 16
    synthetic images with three to five simulated annotators each. The detectors are built in
    (`bsdsbench run NAME`). Nothing is downloaded.
    """
    import bsdsbench as bb
    from bsdsbench.loaders.sample import sample_ground_truth
    from bsdsbench.plotting import plot_runs
    from bsdsbench.results.score_tables import score_tables

    compile_first()
    evaluations = _evaluate_detectors(out, workers)
    show_tables(score_tables(evaluations))
    comparison = bb.compare(evaluations).only(["ods", "ap"])
    print()
    show_tables([table for table in comparison.tables() if table.key == "differences"])
    with progress("human") as report:
        human = bb.evaluate_humans(sample_ground_truth(), workers=workers, progress=report)
    pr_plot = Path(out, "pr.png")
    f_plot = Path(out, "f_threshold.png")
    plot_runs(evaluations, human=human, path=pr_plot)
    plot_runs(evaluations, kind="f", path=f_plot)
    print(f"\nplots    {pr_plot}  {f_plot}")
    _print_next_commands(out)


def _evaluate_detectors(out: str, workers: int | None) -> list[Evaluation]:
    """Run and evaluate the detectors in _TITLES on the sample. Returns the best ODS first."""
    import bsdsbench as bb
    from bsdsbench.loaders.sample import sample_ground_truth, sample_images

    evaluations = []
    for method, name in _TITLES.items():
        with progress(method) as report:
            run = bb.run(
                method,
                sample_images(),
                gt=sample_ground_truth(),
                name=name,
                out=Path(out, method),
                workers=workers,
                progress=report,
            )
        if run.evaluation:
            evaluations.append(run.evaluation)
    return sorted(evaluations, key=lambda evaluation: -evaluation.boundary_score().ods.f)


def _print_next_commands(out: str) -> None:
    """Print the folders of the demo's results, and commands to go on with."""
    from bsdsbench.loaders.sample import sample_ground_truth, sample_images

    folders = " ".join(str(Path(out, method)) for method in _TITLES)
    raw = Path(out, "raw")
    print(f"""results  {folders}
next
  # maps several pixels wide, as networks give them
  bsdsbench run structure-tensor-raw {sample_images()} -o {raw}
  # they lose points without NMS; doctor finds that
  bsdsbench doctor {raw / "maps"} --gt {sample_ground_truth()}
  # one page with every table and plot
  bsdsbench report {folders} -o {Path(out, "report.html")}
  # BSDS500, with its licence
  bsdsbench data get bsds500
  # your own method on it
  bsdsbench evaluate MY_MAPS --task bsds500-test/boundary -o my-method""")


@command
@argument("pred_dir", required=False, type=click.Path())
@run_option("out")
@evaluation_options(on_error="fail")
@run_option("pred_kind")
@run_option("missing")
@run_option("images_dir")
@run_option("valid_dir")
@run_option("errors")
@add_option(
    "--per-image",
    "Also write every score of every image (and class) to this file: .csv, .md, .json ...",
    metavar="FILE",
)
@add_option(
    "--per",
    "With --per-image, write a row per group of this column, such as patient, with the scores of "
    "all its images together and the mean of their own scores.",
    metavar="COLUMN",
)
@slicing_option
@slice_cluster_option
@path(
    "--threshold-from",
    "Also show precision, recall and F at the best threshold of another run, such as that of a "
    "validation set.",
    metavar="OUT",
)
@columns_option
@summary_option
@flag("--humans", "Score each annotator against the others; without PRED_DIR.")
@with_arguments
def evaluate_command(args: Arguments) -> int:
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
        raise click.UsageError("--per: expected --per-image FILE, where its rows go")
    _check_slicing(args, args.per)
    with plots_beside(args.out) as begin_plots:  # its imports, beside those that follow
        import bsdsbench as bb
        from bsdsbench.tables.forms import form_of, write_tables

        # Wrong options are refused before the run starts
        threshold_run = bb.Evaluation.load(args.threshold_from) if args.threshold_from else None
        per_image_format = form_of(args.per_image, None) if args.per_image else ""
        source = _choose_source(args)
        with progress("evaluate") as report:
            run = source.evaluate(*source.inputs, progress=report, **source.options)
        begin_plots()
        if run.kept:
            say(
                f"{run.kept} of {len(run.records)} images were counted before; their records in "
                f"{args.out} were kept (--fresh counts them again)"
            )
        if args.per_image:
            write_tables(_per_image_tables(run, args.per), args.per_image, per_image_format)
        _print_evaluation(run, threshold_run, args)
    return report_left_out(run.failed, run)


def _print_evaluation(run: Evaluation, threshold_run: Evaluation | None, args: Arguments) -> None:
    """Print a run as tables or JSON, with the tables of --summary, --threshold-from and --by.

    `threshold_run` is the run of --threshold-from, or None.
    """
    from bsdsbench.results.score_tables import at_threshold_of

    extra_tables: dict[str, list[Table]] = {  # in the order of the JSON
        "threshold_from": at_threshold_of(run, threshold_run) if threshold_run else [],
        "slices": _slice_tables(run, args, args.columns),
        "summary": _summary_tables(run, args.summary, args.columns),
    }
    if args.form == "json":
        print_json(run.to_mapping() | _as_json(extra_tables))
        return
    print_run(run, args.out, args.columns)
    tables = []
    for key in ("summary", "threshold_from", "slices"):
        tables += extra_tables[key]
    if tables:
        print()
        show_tables(tables)


def _per_image_tables(run: Evaluation, per: str | None) -> list[Table]:
    """Return a table per metric, with a row per image, or per group of the column `per`."""
    if per is None:
        return [run.per_image(metric) for metric in run.metrics]
    from bsdsbench.comparison.slices import group_table

    return [group_table(run, metric, per) for metric in run.metrics]


def _slice_tables(
    run: Evaluation, args: Arguments, columns: Sequence[str] | None = None
) -> list[Table]:
    """Return the tables of the slices that --by asks for. `columns` are the scores to show."""
    if not args.by:
        return []
    from bsdsbench.comparison.slices import slice_tables  # takes long to import

    return slice_tables([run], args.by, columns, args.cluster)


def _summary_tables(
    run: Evaluation, summary: str | None, columns: Sequence[str] | None
) -> list[Table]:
    """Return the tables of --summary. `columns` are the scores to show."""
    if not summary:
        return []
    from bsdsbench.results.summaries import Summary, summary_tables

    return summary_tables([run], Summary(summary), columns)


def _as_json(tables_by_key: Mapping[str, Sequence[Table]]) -> dict[str, Any]:
    """Convert tables for JSON: key -> key of a table -> its plain values.

    Keys without tables are left out.
    """
    return {
        key: {table.key: table.plain() for table in tables}
        for key, tables in tables_by_key.items()
        if tables
    }


class _Source(NamedTuple):
    """The input of an evaluation: the function to call, its positional arguments and keywords."""

    evaluate: Callable[..., Evaluation]
    inputs: tuple[Any, ...]
    options: dict[str, Any]


def _choose_source(args: Arguments) -> _Source:
    """Choose what `evaluate` evaluates.

    - with --humans: the annotators of the ground truth
    - if PRED_DIR and --gt are .json files: the images of two COCO files
    - otherwise: the images of two folders

    Resolves the options in `args` in place (`resolve_run_options`), and compiles the kernels if
    need be. Raises UsageError for an option that this kind of input does not take.
    """
    import bsdsbench as bb
    from bsdsbench.runs.keywords import HumanOptions, ItemOptions, RunOptions

    if args.humans == (args.pred_dir is not None):
        raise click.UsageError("give PRED_DIR, or --humans without one")
    is_coco = str(args.pred_dir).endswith(".json") and str(args.gt).endswith(".json")
    evaluate: Callable[..., Evaluation] = bb.evaluate
    accepted: type[Any] = RunOptions
    folder_options = RunOptions.__annotations__.keys()
    if args.humans:
        evaluate = bb.evaluate_humans
        accepted = HumanOptions
        refuse(folder_options - accepted.__annotations__.keys() | {"nms", "invert"}, "--humans")
    elif is_coco:
        evaluate = bb.evaluate_items
        accepted = ItemOptions
        refuse(folder_options - accepted.__annotations__.keys(), "COCO's JSON")
    resolve_run_options(args)
    inputs: tuple[Any, ...] = (args.gt,) if args.humans else (args.pred_dir, args.gt)
    compile_first(args.metrics, *inputs)
    if is_coco:
        from bsdsbench.loaders.formats.coco import CocoItems

        items = CocoItems(str(args.pred_dir), args.gt)
        inputs = (items,)
        args.protocol = items.protocol(args.metrics, args.protocol)
        args.name = args.name or Path(str(args.pred_dir)).stem
    options = args.options_of(accepted) | args.only("protocol", "metrics")
    return _Source(evaluate, inputs, options)


def _check_slicing(args: Arguments, per: str | None = None) -> None:
    """Raise UsageError if --by or `per` (--per) lacks groups, or if --cluster lacks --by."""
    if (args.by or per) and not (args.groups or args.group_by):
        raise click.UsageError("--by, --per: expected --groups or --group-by, which give columns")
    if args.cluster and not args.by:
        raise click.UsageError("--cluster: expected --by, whose intervals it is for")


@command
@argument("function", metavar="MODULE:FUNCTION|NAME")
@argument("images", required=False, type=click.Path())
@run_option("out", required=True)
@run_option("tag")
@run_option("scales")
@run_option("flip")
@run_option("resize")
@run_option("resume")
@run_option("valid_dir")
@evaluation_options(on_error="skip")
@slicing_option
@slice_cluster_option
@with_arguments
def run_command(args: Arguments) -> int:
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
    from bsdsbench.runs.sources import check_truth

    _check_slicing(args)
    if args.by and not (args.gt or args.task):
        raise click.UsageError("--by: expected --gt, without which nothing is scored")
    resolve_run_options(args)
    if args.images is None or (args.task and args.task.ids):
        raise click.UsageError("give IMAGES, or a --task that is a whole set")
    if args.task:
        check_truth(args.task, args.gt, args.protocol)
    if args.gt:
        compile_first(args.metrics, args.images, args.gt)
    options = args.options_of(DetectorOptions) | args.only("protocol", "metrics", "gt")
    with progress(args.name or args.function.rpartition(":")[2]) as report:
        detected = bb.run(args.function, args.images, progress=report, **options)
    evaluation = detected.evaluation
    slices = _slice_tables(evaluation, args) if evaluation else []
    if args.form == "json":
        print_json(detected.to_mapping() | _as_json({"slices": slices}))
    else:
        _print_detected(detected, slices, args.out)
    if detected.kept:
        n_maps = len(detected.milliseconds) or detected.kept
        say(f"{detected.kept} of {n_maps} maps are of an earlier call")
    return report_left_out(detected.failed, evaluation)


def _print_detected(detected: DetectorRun, slices: Sequence[Table], out: str) -> None:
    """Print the run of a detector: its scores and slices if it was scored, its time, its maps."""
    if detected.evaluation:
        print_run(detected.evaluation, out)
    if slices:
        print()
        show_tables(slices)
    speed = f"{detected.ms_per_image:.1f} ms per image (median of {len(detected.milliseconds)}"
    print(f"time     {speed}, one at a time, warm-up left out; {detected.machine})")
    print(f"maps     {detected.maps}")


@command
@argument("outs", nargs=-1, required=True, type=click.Path(), metavar="OUT...")
@path("-o", "--out", "Folder for the result.", required=True)
@flag("--best-of", "Take, at each image and threshold, the best of several runs.")
@flag("--splits", "Average the scores of runs of several splits, and pool their images.")
@add_option("--name", "Name of the method in tables; default: that of the first run.")
@format_option("table", "json")
def merge_command(
    outs: tuple[str, ...], out: str, best_of: bool, splits: bool, name: str | None, form: str
) -> int:
    """Join the shards of a run, or take the best of several runs.

    Runs made with --shard 1/N to N/N are joined to a run that is identical to an undivided one.

    With --best-of, OUT are runs of one method on the same images, or folders of official
    ID_ev1.txt files. For each image and threshold the counts of the run with the best F are taken,
    as is usual for methods with a granularity setting. The name of the new run says that it was
    chosen by the ground truth, so it is not comparable with other scores.

    With --splits, OUT are runs of several splits or folds, each with its own images. The mean of
    their scores is shown with its standard deviation, and the score of all images together.
    """
    import bsdsbench as bb
    from bsdsbench.comparison.splits import splits as score_splits
    from bsdsbench.plotting.figures import plot_result
    from bsdsbench.results.given_runs import as_runs
    from bsdsbench.runs import merge as merging

    if Path(out).resolve() in [Path(shard).resolve() for shard in outs]:
        raise click.UsageError(f"-o {out}: is one of the runs, expected another folder")
    if best_of and splits:
        raise click.UsageError("--best-of and --splits: expected one of them")
    split_scores = score_splits(as_runs(outs), name or "") if splits else None
    if split_scores:
        merged = split_scores.pooled
    elif best_of:
        merged = merging.best_of(as_runs(outs), name)
    else:
        merged = bb.merge([bb.Evaluation.load(shard) for shard in outs])
        merged = replace(merged, name=name or merged.name)
    with progress("merge", "files") as report:
        merged.save(out, report)
    plot_result(merged, Path(out))
    if split_scores:
        show_tables([split_scores.table], None, form)
    elif form == "json":
        print_json(merged.to_mapping())
    else:
        print_run(merged, out)
    return report_left_out(merged.failed, merged)


@command
@argument("folders", nargs=-1, required=True, metavar="MAPS OUT", type=click.Path())
@flag(
    "--average",
    "Average the maps of several folders, such as those of several scales: MAPS MAPS OUT.",
)
@path("-o", "--out", "Folder for the new maps, in place of the last argument.")
@combine_options(*map(PROTOCOL.__getitem__, ("protocol", "nms", "invert", "set")))
@with_arguments
def nms_command(args: Arguments) -> None:
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
    from bsdsbench.cli.shared import USUAL
    from bsdsbench.detectors.nms_folder import nms_files, refuse_maps_in

    sources = args.folders if args.out else args.folders[:-1]
    target = args.out or args.folders[-1]
    if not sources or (len(sources) > 1) != args.average:
        expected = "two or more folders of maps" if args.average else "one folder of maps"
        raise click.UsageError(f"expected {expected}, and OUT")
    if args.average and not args.out:
        refuse_maps_in(target)  # the last argument is a folder of inputs if OUT was forgotten
    args.nms = args.nms or USUAL
    protocol = protocol_from(args)
    with progress("nms") as report:
        n_maps = nms_files(sources, target, protocol, progress=report)
    print(f"{n_maps} maps written to {target}")
    print(f"NMS      {protocol.nms_params.describe()}")
