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
    Given,
    add_option,
    columns_option,
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
    together,
    verb,
)
from bsdsbench.plotting.beside import plots_beside

if TYPE_CHECKING:
    from bsdsbench.detectors.detector_runs import DetectorRun
    from bsdsbench.results.evaluation import Evaluation
    from bsdsbench.tables.table import Table

_TITLES = {"canny": "Canny", "sobel": "Sobel", "structure-tensor": "structure tensor"}


@verb
@path("-o", "--out", "Folder for results and plots.", default="bsdsbench-demo")
@run_option("workers")
def demo_verb(given: Given) -> None:
    """Run the whole benchmark on the shipped sample.

    Three detectors are run, evaluated and compared, and their curves drawn. The sample is 16
    synthetic images with three to five simulated annotators each; the detectors are built in
    (`bsdsbench run NAME`). Nothing is downloaded.
    """
    import bsdsbench as bb
    from bsdsbench.loaders.sample import sample_ground_truth, sample_images
    from bsdsbench.plotting import plot_runs
    from bsdsbench.results.score_tables import score_tables

    compile_first()
    out, workers = given.out, given.workers
    images = sample_images()
    gt = sample_ground_truth()
    evaluations: list[Evaluation] = []
    for method, name in _TITLES.items():
        folder = Path(out, method)
        with progress(method) as report:
            run = bb.run(
                method, images, gt=gt, name=name, out=folder, workers=workers, progress=report
            )
        if run.evaluation:
            evaluations.append(run.evaluation)
    evaluations.sort(key=lambda evaluation: -evaluation.boundary_score().ods.f)
    show_tables(score_tables(evaluations))
    comparison = bb.compare(evaluations).only(["ods", "ap"])
    print()
    show_tables([table for table in comparison.tables() if table.key == "differences"])
    with progress("human") as report:
        human = bb.evaluate_humans(gt, workers=workers, progress=report)
    pr_plot = Path(out, "pr.png")
    f_plot = Path(out, "f_threshold.png")
    plot_runs(evaluations, human=human, path=pr_plot)
    plot_runs(evaluations, kind="f", path=f_plot)
    folders = " ".join(str(Path(out, method)) for method in _TITLES)
    raw = Path(out, "raw")
    print(f"\nplots    {pr_plot}  {f_plot}")
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


@verb
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
    "Write every score of every image (and class), as .csv, .md, .json ...",
    metavar="FILE",
)
@add_option(
    "--per",
    "With --per-image: a row for each group of this column, such as a patient, with the scores of "
    "its images together and their mean.",
    metavar="COLUMN",
)
@slicing_option
@slice_cluster_option
@path(
    "--threshold-from",
    "Show precision, recall and F also at the threshold that was best in this run, such as one of "
    "a validation set.",
    metavar="OUT",
)
@columns_option
@summary_option
@flag("--humans", "Score each annotator against the others; without PRED_DIR.")
def evaluate_verb(given: Given) -> int:
    """Score a folder of predictions, by any metric.

    PRED_DIR holds maps, segmentations or masks. The options of a metric are set by --set
    METRIC.FIELD=VALUE; an unknown option lists them. Most metrics have a protocol of their own;
    others need a protocol that names classes.

    PRED_DIR and --gt may be two COCO JSON files (instances, results or panoptic), for --metrics
    contour or segmentation.

    Ground-truth images that are gray need --set gt_threshold=0.5, and those of region labels --set
    gt_kind=labels. For region measures of soft maps, pass --set regions_from_soft=true.
    """
    out, per_image = given.out, given.per_image
    if given.per and not per_image:
        raise click.UsageError("--per: expected --per-image FILE, where its rows go")
    _check_slicing(given, given.per)
    with plots_beside(out) as begin_plots:  # its imports, beside those that follow
        import bsdsbench as bb
        from bsdsbench.results.score_tables import at_threshold_of
        from bsdsbench.tables.forms import form_of, write_tables

        # Wrong options are refused before the run starts
        other = given.threshold_from
        threshold_run = bb.Evaluation.load(other) if other else None
        per_image_format = form_of(per_image, None) if per_image else ""
        source = _choose_source(given)
        with progress("evaluate") as report:
            run = source.evaluate(*source.inputs, progress=report, **source.options)
        begin_plots()
        if run.kept:
            say(
                f"{run.kept} of {len(run.records)} images were counted before; their records in "
                f"{out} were kept (--fresh counts them again)"
            )
        if per_image:
            write_tables(_per_image_tables(run, given.per), per_image, per_image_format)
        extra_tables = {
            "threshold_from": at_threshold_of(run, threshold_run) if threshold_run else [],
            "slices": _slices(run, given, given.columns),
            "summary": _summaries(run, given.summary, given.columns),
        }
        if given.form == "json":
            print_json(run.to_mapping() | _as_json(extra_tables))
        else:
            print_run(run, out, given.columns)
            tables = [
                table
                for key in ("summary", "threshold_from", "slices")
                for table in extra_tables[key]
            ]
            if tables:
                print()
                show_tables(tables)
    return report_left_out(run.failed, run)


def _per_image_tables(run: Evaluation, per: str | None) -> list[Table]:
    """Return a table per metric with one row per image, or per group of the column `per`."""
    if per is None:
        return [run.per_image(metric) for metric in run.metrics]
    from bsdsbench.comparison.slices import group_table

    return [group_table(run, metric, per) for metric in run.metrics]


def _slices(run: Evaluation, given: Given, columns: Sequence[str] | None) -> list[Table]:
    """Return the tables of a run's slices, none without --by."""
    if not given.by:
        return []
    from bsdsbench.comparison.slices import slice_tables  # takes long to import

    return slice_tables([run], given.by, columns, given.cluster)


def _summaries(run: Evaluation, summary: str | None, columns: Sequence[str] | None) -> list[Table]:
    """Return the tables of --summary, none without this option."""
    if not summary:
        return []
    from bsdsbench.results.summaries import Summary, summary_tables

    return summary_tables([run], Summary(summary), columns)


def _as_json(tables_by_key: Mapping[str, Sequence[Table]]) -> dict[str, Any]:
    """Convert the tables of every key to plain values. Keys without tables are dropped."""
    return {
        key: {table.key: table.plain() for table in tables}
        for key, tables in tables_by_key.items()
        if tables
    }


class _Source(NamedTuple):
    """The function that evaluates, its positional arguments and its keywords."""

    evaluate: Callable[..., Evaluation]
    inputs: tuple[Any, ...]
    options: dict[str, Any]


def _choose_source(given: Given) -> _Source:
    """Choose what to evaluate: two folders, two COCO files, or one folder's annotators (--humans).

    Raises UsageError for an option that this kind of input does not take.
    """
    import bsdsbench as bb
    from bsdsbench.runs.keywords import HumanOptions, ItemOptions, RunOptions

    pred_dir, humans = given.pred_dir, given.humans
    if humans == (pred_dir is not None):
        raise click.UsageError("give PRED_DIR, or --humans without one")
    evaluate: Callable[..., Evaluation] = bb.evaluate
    accepted: type[Any] = RunOptions
    is_coco = str(pred_dir).endswith(".json") and str(given.gt).endswith(".json")
    if humans:
        evaluate, accepted = bb.evaluate_humans, HumanOptions
    elif is_coco:
        evaluate, accepted = bb.evaluate_items, ItemOptions
    unsupported = RunOptions.__annotations__.keys() - accepted.__annotations__.keys()
    if humans:
        refuse(unsupported | {"nms", "invert"}, "--humans")
    elif is_coco:
        refuse(unsupported, "COCO's JSON")
    resolve_run_options(given)
    inputs: tuple[Any, ...] = (given.gt,) if humans else (pred_dir, given.gt)
    compile_first(given.metrics, *inputs)
    if is_coco:
        from bsdsbench.loaders.formats.coco import CocoItems

        items = CocoItems(str(pred_dir), given.gt)
        inputs = (items,)
        given.protocol = items.protocol(given.metrics, given.protocol)
        given.name = given.name or Path(str(pred_dir)).stem
    options = given.options_of(accepted) | given.only("protocol", "metrics")
    return _Source(evaluate, inputs, options)


def _check_slicing(given: Given, per: str | None = None) -> None:
    """Raise UsageError if --by or --per lacks groups, or if --cluster lacks --by."""
    if (given.by or per) and not (given.groups or given.group_by):
        raise click.UsageError("--by, --per: expected --groups or --group-by, which give columns")
    if given.cluster and not given.by:
        raise click.UsageError("--cluster: expected --by, whose intervals it is for")


@verb
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
def run_verb(given: Given) -> int:
    """Run, time and score a detector: yours or a built-in one.

    The detector is called on every image in IMAGES. Without --gt nothing is scored. --task takes
    the images and the ground truth of its data set.

    MODULE:FUNCTION takes an (H, W, 3) uint8 array and returns a soft map (H, W), floats in [0, 1]
    or uint8 or uint16, or labels (int32 or int64), or a list of label maps. NAME is one of
    scikit-image: canny, sobel, scharr, structure-tensor, structure-tensor-raw (without non-maximum
    suppression), or a segmenter, coarse to fine: felzenszwalb, slic, watershed.

    The maps are written to OUT/maps, with a run.json that names their detector. If OUT/maps already
    holds maps, the command stops unless --resume (keep them) or --fresh (replace them) is given.
    If the detector fails on images, they are listed and the exit status is 2.
    """
    import bsdsbench as bb
    from bsdsbench.runs.keywords import DetectorOptions
    from bsdsbench.runs.sources import check_truth

    _check_slicing(given)
    if given.by and not (given.gt or given.task):
        raise click.UsageError("--by: expected --gt, without which nothing is scored")
    resolve_run_options(given)
    function, images, task = given.function, given.images, given.task
    if images is None or (task and task.ids):
        raise click.UsageError("give IMAGES, or a --task that is a whole set")
    if task:
        check_truth(task, given.gt, given.protocol)
    if given.gt:
        compile_first(given.metrics, images, given.gt)
    options = given.options_of(DetectorOptions) | given.only("protocol", "metrics", "gt")
    with progress(given.name or function.rpartition(":")[2]) as report:
        detected = bb.run(function, images, progress=report, **options)
    evaluation = detected.evaluation
    slices = _slices(evaluation, given, None) if evaluation else []
    if given.form == "json":
        print_json(detected.to_mapping() | _as_json({"slices": slices}))
    else:
        _print_detected(detected, slices, given.out)
    if detected.kept:
        n_maps = len(detected.milliseconds) or detected.kept
        say(f"{detected.kept} of {n_maps} maps are of an earlier call")
    return report_left_out(detected.failed, evaluation)


def _print_detected(detected: DetectorRun, slices: Sequence[Table], out: str) -> None:
    """Print the scores of a detector if it was scored, its time per image and its maps."""
    if detected.evaluation:
        print_run(detected.evaluation, out)
    if slices:
        print()
        show_tables(slices)
    speed = f"{detected.ms_per_image:.1f} ms per image (median of {len(detected.milliseconds)}"
    print(f"time     {speed}, one at a time, warm-up left out; {detected.machine})")
    print(f"maps     {detected.maps}")


@verb
@argument("outs", nargs=-1, required=True, type=click.Path(), metavar="OUT...")
@path("-o", "--out", "Folder for the result.", required=True)
@flag("--best-of", "Take the best of several runs at each image and threshold.")
@flag("--splits", "Runs of several splits: the mean of their scores, and the pooled score.")
@add_option("--name", "The method's name in tables; default: the first run's.")
@format_option("table", "json")
def merge_verb(given: Given) -> int:
    """Join the shards of one run, or take the best of several.

    The result of runs made with --shard 1/N .. N/N is identical to a single run's.

    With --best-of, OUT are runs of one method on the same images, or folders of official
    ID_ev1.txt files: for each image and threshold the counts of the run with the best F are taken,
    as methods with a granularity setting report them. The name of the result says that it chose by
    the ground truth: it is not comparable with other scores.

    With --splits, OUT are runs of several splits or folds, each with its own images: the mean of
    their scores with its standard deviation, and the score of all images together.
    """
    import bsdsbench as bb
    from bsdsbench.comparison.splits import splits as score_splits
    from bsdsbench.plotting.figures import plot_result
    from bsdsbench.results.given_runs import as_runs
    from bsdsbench.runs import merge as merging

    outs, out, name = given.outs, given.out, given.name
    if Path(out).resolve() in [Path(shard).resolve() for shard in outs]:
        raise click.UsageError(f"-o {out}: is one of the runs, expected another folder")
    if given.best_of and given.splits:
        raise click.UsageError("--best-of and --splits: expected one of them")
    split_scores = score_splits(as_runs(outs), name or "") if given.splits else None
    if split_scores:
        merged = split_scores.pooled
    elif given.best_of:
        merged = merging.best_of(as_runs(outs), name)
    else:
        merged = bb.merge([bb.Evaluation.load(shard) for shard in outs])
        merged = replace(merged, name=name or merged.name)
    with progress("merge", "files") as report:
        merged.save(out, report)
    plot_result(merged, Path(out))
    if split_scores:
        show_tables([split_scores.table], None, given.form)
    elif given.form == "json":
        print_json(merged.to_mapping())
    else:
        print_run(merged, out)
    return report_left_out(merged.failed, merged)


@verb
@argument("folders", nargs=-1, required=True, metavar="MAPS OUT", type=click.Path())
@flag(
    "--average",
    "Take the mean of the maps of several folders, such as those of several scales: MAPS MAPS OUT.",
)
@path("-o", "--out", "The folder for the result, in place of the last argument.")
@together(*map(PROTOCOL.__getitem__, ("protocol", "nms", "invert", "set")))
def nms_verb(given: Given) -> None:
    """Apply non-maximum suppression to soft maps.

    MAPS is a folder of soft maps; the results are written as PNG files into the folder OUT. The
    constants are the protocol's nms_params (`--protocol biped`, `--set nms_params.radius=2`, `--set
    nms_params.bits=16` for 16-bit PNG) or those of a recipe (`--nms rcf`). The results are the maps
    that `evaluate --nms` scores.

    With --average the maps of an image in all folders are averaged before NMS, as in multi-scale
    testing. They must have the same size.

    Exactly horizontal, straight ridges can stay thick: their orientation is undefined, as in every
    implementation of this NMS. Responses are faded out towards the image border, over at most half
    of the shorter side.
    """
    from bsdsbench.cli.shared import USUAL
    from bsdsbench.detectors.nms_folder import nms_files, refuse_maps_in

    sources = given.folders if given.out else given.folders[:-1]
    target = given.out or given.folders[-1]
    if not sources or (len(sources) > 1) != given.average:
        expected = "two or more folders of maps" if given.average else "one folder of maps"
        raise click.UsageError(f"expected {expected}, and OUT")
    if (
        given.average and not given.out
    ):  # if OUT was forgotten, the last argument is a folder of inputs
        refuse_maps_in(target)
    given.nms = given.nms or USUAL
    protocol = protocol_from(given)
    with progress("nms") as report:
        n_maps = nms_files(sources, target, protocol, progress=report)
    print(f"{n_maps} maps written to {target}")
    print(f"NMS      {protocol.nms_params.describe()}")
