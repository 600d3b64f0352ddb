"""Verbs that score: demo, evaluate, run, merge, nms."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import click
from click import argument

from bsdsbench.cli.shared import (
    PROTOCOL,
    add_option,
    columns_option,
    compile_first,
    flag,
    left_out,
    of_runs,
    path,
    print_json,
    print_run,
    printed,
    progress,
    protocol_from,
    refuse,
    run_option,
    say,
    settle,
    show_tables,
    slice_clusters,
    slicing,
    summary_option,
    together,
    verb,
)
from bsdsbench.plotting.beside import plots_beside

if TYPE_CHECKING:
    from bsdsbench.results.evaluation import Evaluation

_TITLES = {"canny": "Canny", "sobel": "Sobel", "structure-tensor": "structure tensor"}


@verb
@path("-o", "--out", "Folder for results and plots.", default="bsdsbench-demo")
@run_option("workers")
def demo_verb(out: str, workers: int | None) -> None:
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
    images, gt = sample_images(), sample_ground_truth()
    evaluations: list[Evaluation] = []
    for method, name in _TITLES.items():
        folder = Path(out, method)
        with progress(method) as report:
            run = bb.run(
                method, images, gt=gt, name=name, out=folder, workers=workers, progress=report
            )
        evaluations += [run.evaluation] if run.evaluation else []
    evaluations.sort(key=lambda evaluation: -evaluation.boundary_score().ods.f)
    show_tables(score_tables(evaluations))
    comparison = bb.compare(evaluations).only(["ods", "ap"])
    print()
    show_tables([table for table in comparison.tables() if table.key == "differences"])
    with progress("human") as report:
        human = bb.evaluate_humans(gt, workers=workers, progress=report)
    pr, f = Path(out, "pr.png"), Path(out, "f_threshold.png")
    plot_runs(evaluations, human=human, path=pr)
    plot_runs(evaluations, kind="f", path=f)
    folders = " ".join(str(Path(out, method)) for method in _TITLES)
    raw = Path(out, "raw")
    print(f"\nplots    {pr}  {f}")
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
@of_runs(on_error="fail")
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
@slicing
@slice_clusters
@path(
    "--threshold-from",
    "Show precision, recall and F also at the threshold that was best in this run, such as one of "
    "a validation set.",
    metavar="OUT",
)
@columns_option
@summary_option
@flag("--humans", "Score each annotator against the others; without PRED_DIR.")
def evaluate_verb(
    pred_dir: str | None,
    form: str,
    per_image: str | None,
    per: str | None,
    by: tuple[str, ...],
    cluster: str | None,
    threshold_from: str | None,
    columns: list[str] | None,
    summary: str | None,
    humans: bool,
    **options: Any,
) -> int:
    """Score a folder of predictions, by any metric.

    PRED_DIR holds maps, segmentations or masks. The options of a metric are set by --set
    METRIC.FIELD=VALUE; an unknown one lists them. Most metrics have a protocol of their own, others
    need one that names classes.

    PRED_DIR and --gt may be two JSON files of COCO (instances, results or panoptic), for --metrics
    contour or segmentation.

    Ground-truth pictures that are gray need --set gt_threshold=0.5, those of region labels --set
    gt_kind=labels. For region measures of soft maps, pass --set regions_from_soft=true.
    """
    import bsdsbench as bb
    from bsdsbench.results.score_tables import at_threshold_of
    from bsdsbench.tables.forms import form_of, write_tables

    other = threshold_from and bb.Evaluation.load(threshold_from)
    written: Any = per_image and form_of(per_image, None)
    if per and not per_image:
        raise click.UsageError("--per: expected --per-image FILE, where its rows go")
    _check_slicing((per or "", *by), cluster, by, options)
    source, out = _source_of(pred_dir, humans, options), options["out"]
    with plots_beside(out) as begin_plots:
        with progress("evaluate") as report:
            run = source.evaluate(*source.inputs, progress=report, **options)
        begin_plots()
        if run.kept:
            say(
                f"{run.kept} of {len(run.records)} images were counted before; their records in "
                f"{out} were kept (--fresh counts them again)"
            )
        if per or by:  # what compares takes long to import
            from bsdsbench.comparison.slices import group_table, slice_tables
        if per_image:
            rows = [group_table(run, m, per) if per else run.per_image(m) for m in run.metrics]
            write_tables(rows, per_image, written)
        at_threshold = at_threshold_of(run, other) if other else []
        slices = slice_tables([run], by, columns, cluster) if by else []
        summaries = []
        if summary:
            from bsdsbench.results.summaries import Summary, summary_tables

            summaries = summary_tables([run], Summary(summary), columns)
        if form == "json":
            beside = {"threshold_from": at_threshold, "slices": slices, "summary": summaries}
            plain = {k: {t.key: t.plain() for t in shown} for k, shown in beside.items() if shown}
            print_json(run.to_mapping() | plain)
        else:
            print_run(run, out, columns)
            if more := [*summaries, *at_threshold, *slices]:
                print()
                show_tables(more)
    return left_out(run.failed, run)


class _Source(NamedTuple):
    """What is evaluated, and the function that does."""

    evaluate: Callable[..., Evaluation]
    inputs: tuple[Any, ...]


def _source_of(pred_dir: str | None, humans: bool, options: dict[str, Any]) -> _Source:
    """Return what the arguments mean: two folders, the annotators of one, or two files of COCO.

    `options` become those of the run. Raises UsageError for some that it does not take.
    """
    import bsdsbench as bb
    from bsdsbench.runs.keywords import HumanOptions, ItemOptions, RunOptions

    if humans == (pred_dir is not None):
        raise click.UsageError("give PRED_DIR, or --humans without one")
    evaluate: Callable[..., Evaluation] = bb.evaluate
    known: type[Any] = RunOptions
    coco = str(pred_dir).endswith(".json") and str(options["gt"]).endswith(".json")
    if humans:
        evaluate, known = bb.evaluate_humans, HumanOptions
    elif coco:
        evaluate, known = bb.evaluate_items, ItemOptions
    others = options.keys() - known.__annotations__.keys() - {*PROTOCOL, "gt", "metrics"}
    if humans:
        refuse(others | {"nms", "invert"}, "--humans")
    elif coco:
        refuse(others, "COCO's JSON")
    settle(options)
    gt = options.pop("gt")
    inputs: tuple[Any, ...] = (gt,) if humans else (pred_dir, gt)
    if coco:
        from bsdsbench.loaders.formats.coco import CocoItems

        items = CocoItems(str(pred_dir), gt)
        inputs = (items,)
        options["protocol"] = items.protocol(options["metrics"], options["protocol"])
        options["name"] = options["name"] or Path(str(pred_dir)).stem
    compile_first(options["metrics"], *inputs)
    for name in others:
        del options[name]
    return _Source(evaluate, inputs)


def _check_slicing(
    columns: Sequence[str], cluster: str | None, by: Sequence[str], options: Mapping[str, Any]
) -> None:
    """Raise UsageError for columns of groups without groups, and clusters without slices."""
    if any(columns) and not (options["groups"] or options["group_by"]):
        raise click.UsageError("--by, --per: expected --groups or --group-by, which give columns")
    if cluster and not by:
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
@of_runs(on_error="skip")
@slicing
@slice_clusters
def run_verb(
    function: str, form: str, by: tuple[str, ...], cluster: str | None, **options: Any
) -> int:
    """Run, time and score a detector: yours or a built-in one.

    The detector is called on every picture in IMAGES. Without --gt nothing is scored. With --task
    the pictures and the ground truth of its set are used.

    MODULE:FUNCTION takes an (H, W, 3) uint8 array and returns a soft map (H, W), floats in [0, 1]
    or uint8 or uint16, or labels (int32 or int64), or a list of label maps. NAME is one of
    scikit-image: canny, sobel, scharr, structure-tensor, structure-tensor-raw (without non-maximum
    suppression), or a segmenter, coarse to fine: felzenszwalb, slic, watershed.

    The maps are written to OUT/maps, with a run.json that names their detector. A folder that holds
    maps is refused: --resume keeps them, --fresh replaces them. Pictures on which the detector
    fails are listed, and the exit status is 2.
    """
    import bsdsbench as bb
    from bsdsbench.runs.sources import check_truth

    _check_slicing(by, cluster, by, options)
    if by and not (options["gt"] or options["task"]):
        raise click.UsageError("--by: expected --gt, as nothing is scored without")
    settle(options)
    task = options.pop("task")
    if options["images"] is None or (task and task.ids):
        raise click.UsageError("give IMAGES, or a --task that is a whole set")
    if task:
        check_truth(task, options["gt"], options["protocol"])
    if options["gt"]:
        compile_first(options["metrics"], options["images"], options["gt"])
    with progress(options["name"] or function.rpartition(":")[2]) as report:
        detected = bb.run(function, progress=report, **options)
    scored, timed = detected.evaluation, len(detected.milliseconds)
    slices = []
    if scored and by:
        from bsdsbench.comparison.slices import slice_tables

        slices = slice_tables([scored], by, None, cluster)
    if form == "json":
        plain = {table.key: table.plain() for table in slices}
        print_json(detected.to_mapping() | ({"slices": plain} if slices else {}))
    else:
        if scored:
            print_run(scored, options["out"])
        if slices:
            print()
            show_tables(slices)
        speed = f"{detected.ms_per_image:.1f} ms per image (median of {timed}"
        print(f"time     {speed}, one at a time, warm-up left out; {detected.machine})")
        print(f"maps     {detected.maps}")
    if detected.kept:
        say(f"{detected.kept} of {timed or detected.kept} maps are of an earlier call")
    return left_out(detected.failed, scored)


@verb
@argument("outs", nargs=-1, required=True, type=click.Path(), metavar="OUT...")
@path("-o", "--out", "Folder for the result.", required=True)
@flag("--best-of", "Take the best of several runs at each image and threshold.")
@flag("--splits", "Runs of several splits: the mean of their scores, and the pooled score.")
@add_option("--name", "The method's name in tables; default: the first run's.")
@printed("table", "json")
def merge_verb(
    outs: tuple[str, ...], out: str, best_of: bool, splits: bool, name: str | None, form: str
) -> int:
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
    from bsdsbench.comparison.splits import splits as over_splits_of
    from bsdsbench.plotting.figures import plot_result
    from bsdsbench.results.given_runs import as_runs
    from bsdsbench.runs import merge as merging

    if Path(out).resolve() in [Path(shard).resolve() for shard in outs]:
        raise click.UsageError(f"-o {out}: is one of the runs, expected another folder")
    if best_of and splits:
        raise click.UsageError("--best-of and --splits: expected one of them")
    over_splits = over_splits_of(as_runs(outs), name or "") if splits else None
    if over_splits:
        merged = over_splits.pooled
    elif best_of:
        merged = merging.best_of(as_runs(outs), name)
    else:
        merged = bb.merge([bb.Evaluation.load(shard) for shard in outs])
        merged = replace(merged, name=name or merged.name)
    with progress("merge", "files") as report:
        merged.save(out, report)
    plot_result(merged, Path(out))
    if over_splits:
        show_tables([over_splits.table], None, form)
    elif form == "json":
        print_json(merged.to_mapping())
    else:
        print_run(merged, out)
    return left_out(merged.failed, merged)


@verb
@argument("folders", nargs=-1, required=True, metavar="MAPS OUT", type=click.Path())
@flag(
    "--average",
    "Take the mean of the maps of several folders, such as those of several scales: MAPS MAPS OUT.",
)
@path("-o", "--out", "The folder for the result, in place of the last argument.")
@together(*map(PROTOCOL.__getitem__, ("protocol", "nms", "invert", "set")))
def nms_verb(folders: tuple[str, ...], average: bool, out: str | None, **options: object) -> None:
    """Apply non-maximum suppression to soft maps.

    MAPS is a folder of them; PNG are written into the folder OUT. The constants are the protocol's
    nms_params (`--protocol biped`, `--set nms_params.radius=2`, `--set nms_params.bits=16` for PNG
    of 16 bits) or those of a recipe (`--nms rcf`). The result is what `evaluate --nms` scores.

    With --average the maps of one image in all folders, which have one size, are averaged before
    NMS, as in multi-scale testing.

    Exactly horizontal, straight ridges can stay thick: their orientation is undefined. All programs
    that implement this NMS do this.
    The fade at the border covers at most half of the shorter side.
    """
    from bsdsbench.cli.shared import USUAL
    from bsdsbench.detectors.nms_folder import nms_files, refuse_maps_in

    sources, target = (folders, out) if out else (folders[:-1], folders[-1])
    if not sources or (len(sources) > 1) != average:
        several = "two or more folders of maps" if average else "one folder of maps"
        raise click.UsageError(f"expected {several}, and OUT")
    if average and not out:
        refuse_maps_in(target)
    options["nms"] = options["nms"] or USUAL
    used = protocol_from(options)
    with progress("nms") as report:
        count = nms_files(sources, target, used, progress=report)
    print(f"{count} maps written to {target}")
    print(f"NMS      {used.nms_params.describe()}")
