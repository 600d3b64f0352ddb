# ruff: noqa: RUF009
"""The keywords of a run, each defined once with its type, default, check, help text and flag.

`RunKeywords` checks the values; `make_plan` combines them with protocol and metrics into a `Plan`.
The TypedDicts list the keywords that each entry point accepts. Command-line flags and documentation
pages are generated from the fields of `RunKeywords`.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Executor
from functools import partial
from numbers import Integral
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Required, TypedDict, get_args

import attrs

from bsdsbench.errors import DataError, InputWarning, Problem, Setting, warn
from bsdsbench.io import Progress
from bsdsbench.kernels import KERNEL_VERSION
from bsdsbench.metrics import registry
from bsdsbench.text import did_you_mean, is_path, is_text, show

if TYPE_CHECKING:
    from distributed import Client
    from distributed.deploy.cluster import Cluster

    from bsdsbench.metrics.registry import MetricGroup
    from bsdsbench.protocol.protocol import Protocol
    from bsdsbench.protocol.tasks import Task
    from bsdsbench.transforms.multi_scale import MultiScale

    AnyExecutor = str | Executor | Client | Cluster

StrPath = str | os.PathLike[str]
Missing = Literal["error", "zero", "skip"]
OnError = Literal["fail", "skip"]
MAX_WORKERS = 4096
# A larger max_dist is probably a percentage, and takes long; the largest of a preset is 0.02
_WIDE = 0.1
_EXECUTORS = re.compile(r"thread|process|auto|(dask|tcp|tls)://[^/\s]+:[0-9]{1,5}/?")


class _Check(NamedTuple):
    """The rule for the values of a keyword."""

    accepts: Callable[[Any], bool]  # returns True for an accepted value
    expected: str  # description of the accepted values, for error messages


def _is_count(value: object, most: int) -> bool:
    """Return True if the value is a Python or numpy integer from 1 to `most`, and not a bool."""
    return isinstance(value, Integral) and not isinstance(value, bool) and 1 <= int(value) <= most


TEXT_CHECK = _Check(
    lambda value: isinstance(value, str) and value != "" and is_text(value), "text in UTF-8"
)
PATH_CHECK = _Check(
    # Printable text needs no call
    lambda value: (isinstance(value, str) and value > "" and value.isprintable()) or is_path(value),
    "a path",
)
NAMES_CHECK = _Check(  # a mapping or a set has no order by which labels get their names
    lambda value: (
        isinstance(value, Iterable) and not isinstance(value, str | Mapping | set | frozenset)
    ),
    "names in a list, in the order of their labels",
)
_SHARD = _Check(
    lambda value: (
        isinstance(value, tuple)
        and len(value) == 2
        and _is_count(value[1], 10**7)
        and _is_count(*value)
    ),
    "(I, N) with 1 <= I <= N",
)
_EXECUTOR = _Check(
    lambda value: (
        isinstance(value, Executor)
        or hasattr(value, "get_executor")
        or hasattr(value, "scheduler_address")
        or (isinstance(value, str) and _EXECUTORS.fullmatch(value) is not None)
    ),
    "thread, process, auto, dask://HOST:PORT, an Executor, or a Dask Client or cluster",
)
_IS_BOOL = _Check(lambda value: isinstance(value, bool), "True or False")


def keyword(
    help: str,
    default: object = None,
    check: _Check | None = None,
    choices: tuple[str, ...] | None = None,
    **flag: object,
) -> Any:
    """Build the attrs field of a keyword of a run, which is also an option of the command line.

    help: the text for help pages and the documentation.
    default: the default value, which is not checked.
    check: the rule for other values. If it is None and `choices` is given, the value must be one of
        them; if neither is given, every value is accepted.
    flag: settings of the command-line option, such as its `names` and `metavar`. If they have
        is_flag=True, the option takes no value there, and in Python the value must be a bool,
        whatever `check` is.
    """
    if flag.get("is_flag"):
        check = _IS_BOOL
    if choices:
        flag["choices"] = choices  # for the command line, which checks them too
        if check is None:
            expected = f"one of {', '.join(choices)}"
            check = _Check(lambda value: isinstance(value, str) and value in choices, expected)
    return attrs.field(default=default, metadata={"help": help, "check": check, "flag": flag})


@attrs.frozen(kw_only=True, eq=False, slots=False)
class RunKeywords:
    """The keywords of a run as the caller gave them. Values are checked, but not yet resolved."""

    task: Task | StrPath | None = keyword(
        "A data set, a protocol and a metric under one name, or in a .toml file. The task fixes "
        "protocol and metric, and the ground truth must be its set.",
        metavar="NAME|FILE",
    )
    classes: Sequence[str] | None = keyword(
        "Names of the classes in the order of their labels from 0, for metrics of label maps; "
        "default: those of the protocol.",
        check=NAMES_CHECK,
    )
    name: str | None = keyword(
        "Name in tables; default: the name of the predictions' folder (or of its parent, if it is "
        "named after a split), or of the detector.",
        check=TEXT_CHECK,
    )
    split_file: StrPath | None = keyword(
        "Text file with the ids of the images to evaluate, one per line; default: all images.",
        check=PATH_CHECK,
        path=True,
    )
    missing: Missing = keyword(
        "If a prediction is missing: stop with an error, count it as an empty map (zero), or leave "
        "the image out (skip).",
        "error",
        choices=get_args(Missing),
    )
    pred_kind: str | None = keyword(
        "What image files and arrays of predictions hold: boundary strengths (soft), region labels "
        "(labels) or classes; default: what the first metric expects.",
        check=_Check(lambda value: isinstance(value, str), "a word"),
        choices=("soft", "labels"),
    )
    images_dir: StrPath | None = keyword(
        "Folder of the original images, for metrics that use them; default: the folder beside the "
        "ground truth, in the layout of BSDS.",
        check=PATH_CHECK,
        names=("--images",),
        path=True,
    )
    valid_dir: StrPath | None = keyword(
        "Folder of masks, one per image: the field of view. Pixels with 0 count neither in "
        "predictions nor in ground truth, as do pixels that a metric's `ignore` leaves out.",
        check=PATH_CHECK,
        names=("--valid",),
        path=True,
    )
    shard: tuple[int, int] = keyword(
        "Evaluate part I of N of the images; merge joins the parts.",
        (1, 1),
        _SHARD,
        metavar="I/N",
    )
    errors: bool = keyword(
        "Also count missed and false pixels by class, to see where the score is lost.",
        False,
        is_flag=True,
    )
    on_error: OnError = keyword(
        "If images cannot be counted: fail after all images, or list and leave them out (skip).",
        "fail",
        choices=get_args(OnError),
    )
    workers: int | None = keyword(
        "Number of images processed in parallel; default: all cores.",
        check=_Check(partial(_is_count, most=MAX_WORKERS), f"a number from 1 to {MAX_WORKERS}"),
        number=True,
        metavar="N",
    )
    executor: AnyExecutor | None = keyword(
        "Where images are counted: thread, process, auto (processes if there are 8 workers or "
        "2,000 images of folders, else threads), dask://HOST:PORT or tcp://HOST:PORT (Dask); in "
        "Python also a concurrent.futures.Executor, a Dask Client or a LocalCluster. "
        'Default in Python: thread. A script with processes needs `if __name__ == "__main__":`.',
        check=_EXECUTOR,
        metavar="E",
    )
    out: StrPath | None = keyword(
        "Folder for the results. Finished images are kept there, and a later call continues.",
        check=PATH_CHECK,
        names=("-o", "--out"),
        path=True,
    )
    fresh: bool = keyword("Ignore the results of an earlier run in OUT.", False, is_flag=True)
    resume: bool = keyword(
        "Keep the maps that are in OUT, and compute the missing maps.", False, is_flag=True
    )
    groups: Any = keyword(
        "CSV table with a row per image: its id, and columns of text or numbers (scene, patient, "
        "size) that group the images; in Python also a mapping or a data frame.",
        metavar="FILE.csv",
        path=True,
    )
    group_by: str | None = keyword(
        "Group images by their ids: a regular expression with named groups, such as "
        "(?P<scene>.+)_[0-9]+.",
        check=TEXT_CHECK,
        metavar="REGEX",
    )
    tag: str | None = keyword(
        "A text that identifies this version of the detector, such as a checkpoint; kept in "
        "maps/run.json.",
        check=TEXT_CHECK,
        metavar="TEXT",
    )
    scales: str | float | Sequence[float] | None = keyword(
        "Call the detector on each image at these scales (0.5,1,1.5) and average the maps; also "
        "rcf, pidinet, uaed or edter: the scales of their test programs.",
        metavar="S,S|NAME",
    )
    flip: bool = keyword(
        "Also call the detector on the mirrored image, and average the maps.", False, is_flag=True
    )
    resize: str = keyword(
        "How images and maps are resized for --scales.", "bilinear", choices=("bilinear", "cubic")
    )
    progress: Progress | None = keyword(
        "A function to call with (done, total, image_id) after each image; total is equal to done "
        "if the number of images is not known.",
        check=_Check(callable, "a function"),
    )

    def __attrs_post_init__(self) -> None:
        """Check the values of all keywords; raise one DataError that lists all invalid ones."""
        from bsdsbench.arguments import kind_of_value  # imports numpy, which help does without

        faults: list[str | Problem] = []
        for field in attrs.fields(RunKeywords):
            check = field.metadata["check"]
            value = getattr(self, field.name)
            if check and value is not field.default and not check.accepts(value):
                faults.append(f"{field.name} {kind_of_value(value)}: expected {check.expected}")
        if faults:
            raise DataError(problems=faults)


class _Counting(TypedDict, total=False):
    """The keywords that all runs accept."""

    workers: int | None
    executor: AnyExecutor | None
    fresh: bool
    on_error: OnError
    groups: Any
    group_by: str | None
    progress: Progress | None


class EveryRunOptions(_Counting, total=False):
    """The keywords that all runs accept, except runs of a detector."""

    out: StrPath | None


class HumanOptions(EveryRunOptions, total=False):
    """The keywords of `evaluate_humans`."""

    split_file: StrPath | None


class ItemOptions(EveryRunOptions, total=False):
    """The keywords of `evaluate_items`."""

    classes: Sequence[str] | None
    errors: bool
    name: str | None
    pred_kind: str | None


class StreamingOptions(TypedDict, total=False):
    """The keywords of `StreamingEvaluator`."""

    classes: Sequence[str] | None
    name: str
    pred_kind: str | None
    errors: bool
    groups: Any
    group_by: str | None
    on_error: OnError


class RunOptions(EveryRunOptions, total=False):
    """The keywords of `evaluate`."""

    task: Task | StrPath | None
    name: str | None
    split_file: StrPath | None
    missing: Missing
    pred_kind: str | None
    images_dir: StrPath | None
    valid_dir: StrPath | None
    shard: tuple[int, int]
    errors: bool


class DetectorOptions(_Counting, total=False):
    """The keywords of a run of a detector."""

    out: Required[StrPath]
    name: str | None
    split_file: StrPath | None
    valid_dir: StrPath | None
    shard: tuple[int, int]
    resume: bool
    tag: str | None
    scales: str | float | Sequence[float] | None
    flip: bool
    resize: str


@attrs.frozen(kw_only=True, eq=False, slots=False)
class Plan(RunKeywords):
    """A complete description of a run: its resolved keywords, protocol and metrics."""

    protocol: Protocol
    metrics: tuple[str, ...]
    pred_kind: str
    task: Task | None
    out: Path | None
    multi_scale: MultiScale | None
    # Groups of metrics that read the files in the same way. Each image is read once per group.
    metric_groups: tuple[MetricGroup, ...] = attrs.field(init=False)
    settings_hash: str = attrs.field(init=False)  # hash of all settings on which counts depend
    # Metric of another package -> hash of its source files
    sources: Mapping[str, str] = attrs.field(init=False)
    # Fields of the protocol, and metrics with options in it, on which no score depends
    unused: frozenset[str] = attrs.field(init=False)
    # True if `executor` is the address of a Dask cluster, a Client or a cluster
    on_dask: bool = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        """Check that the metrics can share a run with these keywords, and set the other fields.

        The metrics must read this kind of predictions and the same kind of ground truth. They must
        be able to ignore void pixels (`Metric.void`) if there is a field of view, and one must
        match boundary pixels, whose errors have classes, if `errors` is set. Raises one DataError
        that lists all problems.
        """
        reader = registry.readers(self.metrics)[0]  # the metric that decides how files are read
        faults: list[str | Problem] = []
        for metric in map(registry.get, self.metrics):
            if self.pred_kind not in metric.pred_kinds:
                has = f"metric {metric.name}: predictions cannot be of kind {self.pred_kind!r}"
                fixes = tuple(Setting("pred_kind", kind) for kind in metric.pred_kinds)
                faults.append(Problem(has=has, fix=fixes))
            # A run of masks may have metrics of other ground truth that can also evaluate masks
            accepts_masks = reader.reads == "mask" and metric.takes_masks
            if metric.gt_kind != reader.gt_kind and not accepts_masks:
                both = f"{reader.name}, {metric.name}: read {reader.gt_kind} and {metric.gt_kind}"
                faults.append(f"metrics {both} as ground truth, expected a run for each")
            if self.valid_dir is not None and not metric.void:
                fault = f"metric {metric.name}: counts every pixel"
                faults.append(f"{fault}, expected no field of view (valid_dir)")
        if self.errors and not any(registry.get(name).has_errors for name in self.metrics):
            faults.append(f"errors: {', '.join(self.metrics)} matches no pixels, expected boundary")
        if faults:
            raise DataError(problems=faults)
        settings = self.metrics, self.protocol, self.pred_kind
        # The fields described above. `=` fails, because the class is frozen
        object.__setattr__(self, "metric_groups", registry.group_by_reading(*settings))
        object.__setattr__(self, "settings_hash", hash_settings(*settings, self.errors))
        object.__setattr__(self, "sources", registry.source_hashes(self.metrics))
        unused = registry.unused_settings(self.metrics, self.protocol)
        object.__setattr__(self, "unused", unused)
        is_local = self.executor in (None, "thread", "process", "auto")
        object.__setattr__(self, "on_dask", not (is_local or isinstance(self.executor, Executor)))

    def __getstate__(self) -> dict[str, Any]:
        """Pickle the plan without what processes do not need or what cannot be pickled."""
        return {**self.__dict__, **dict.fromkeys(("progress", "executor", "out", "task", "groups"))}

    def refuse_out_in(self, **folders: StrPath) -> None:
        """Raise DataError if `out` lies in an input folder, where it would be read as images.

        folders: parameter name -> folder. A value that is not a path raises DataError too.
        """
        from bsdsbench.arguments import kind_of_value

        faults: list[str | Problem] = []
        for side, folder in folders.items():
            if not PATH_CHECK.accepts(folder):
                faults.append(f"{side} {kind_of_value(folder)}: expected {PATH_CHECK.expected}")
            elif self.out and self.out.resolve().is_relative_to(Path(folder).resolve()):
                where = f"{show(self.out)}: is inside {side} ({show(folder)})"
                faults.append(f"{where}, expected a folder for the results outside it")
        if faults:
            raise DataError(problems=faults)


def hash_settings(
    metrics: Sequence[str], protocol: Protocol, pred_kind: str, errors: bool = False
) -> str:
    """Return a hash of all settings and versions that an image's counts depend on.

    A record with another hash is counted again. `errors` is True if missed and false pixels are
    also counted by class.
    """
    versions = []
    for name in metrics:
        versions.append((name, registry.get(name).version))
    settings = [KERNEL_VERSION, protocol.to_mapping(), versions, pred_kind]
    if errors:
        settings.append("errors")
    if sources := registry.source_hashes(metrics):  # of the Python files of plug-in metrics
        settings.append(sources)
    text = json.dumps(settings, sort_keys=True)
    return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()


def make_plan(
    keywords: RunKeywords,
    protocol: Protocol | str | None = None,
    metrics: str | Sequence[str] = registry.DEFAULT_METRICS,
) -> Plan:
    """Complete the keywords, the protocol and the metrics of a run to a `Plan` without gaps.

    - A task (a data set, a protocol and a metric under one name) sets the protocol and the metric.
    - The default protocol and the default `pred_kind` are those of the first metric.
    - `classes` becomes an option of every metric in the protocol, beside their other options.

    Raises DataError if a metric is unknown, if the metrics cannot share a run, or if the task
    forbids a keyword, or if a max_dist seems to be a percentage, or pixels. Raises ProtocolError if
    the protocol is unknown or invalid. Warns if a max_dist_px seems to be a fraction.
    """
    from bsdsbench.protocol.protocol import Protocol

    names = registry.check_names(metrics)
    fields = attrs.asdict(keywords, recurse=False)  # of the Plan: some are replaced below
    fields["task"] = fields["multi_scale"] = None
    if keywords.task is not None:
        from bsdsbench.protocol.tasks import Task

        task = Task.load(keywords.task)  # type: ignore[arg-type]  # os.PathLike is a path too
        fields["task"] = task
        protocol = _protocol_of(task, keywords, protocol, names)  # raises if one contradicts it
        names = (task.metric,)
    first_metric = registry.get(names[0])
    resolved = Protocol.load(first_metric.default_protocol if protocol is None else protocol)
    if metrics is registry.DEFAULT_METRICS and keywords.task is None:
        registry.refuse_preset_of_others(resolved.name)
    if keywords.classes is not None:
        class_option = {"classes": tuple(keywords.classes)}
        resolved = resolved.replace(options=dict.fromkeys(names, class_option))
    if keywords.scales is not None or keywords.flip:  # several calls of the detector per image
        from bsdsbench.transforms.multi_scale import MultiScale

        fields["multi_scale"] = MultiScale.given(keywords.scales, keywords.flip, keywords.resize)
    resolved = registry.complete_options(resolved)  # adds the defaults of options not given
    registry.check_options(names, resolved)
    fields["protocol"] = resolved
    fields["metrics"] = names
    fields["out"] = None if keywords.out is None else Path(keywords.out)
    fields["pred_kind"] = keywords.pred_kind or first_metric.pred_kinds[0]
    plan = Plan(**fields)
    largest = max(resolved.tolerances)  # fractions of the image diagonal, unless in pixels
    is_used = "max_dist" not in plan.unused  # a metric of the run depends on it
    if resolved.max_dist_px is None and largest > _WIDE and is_used:
        has = f"max_dist {largest:g}: {largest:.0%} of the diagonal, expected at most {_WIDE:g}"
        share = Setting("max_dist", float(f"{largest / 100:.6g}"), f"for {largest:g} %")
        raise DataError(has, fix=(share, Setting("max_dist_px", ..., "for a distance in pixels")))
    if resolved.max_dist_px is not None and 0 < largest < 1 and is_used:
        has = f"max_dist_px {largest:g}: below one pixel, so that only equal pixels match"
        warn(InputWarning(has, fix="max_dist is a fraction of the diagonal"))
    return plan


def plan_call(
    function: str,
    accepted: type[Any],
    options: Mapping[str, Any],
    protocol: Protocol | str | None = None,
    metrics: str | Sequence[str] = registry.DEFAULT_METRICS,
    **defaults: object,
) -> Plan:
    """Check the keywords that a user passes to a function such as `evaluate`, and plan the run.

    function: the name of the function, for error messages.
    accepted: a TypedDict with the keywords that the function accepts beside protocol and metrics.
    options: the keywords that the user passed.
    defaults: the function's defaults that differ from those of RunKeywords.

    Raises TypeError if a keyword is unknown, or one DataError that lists all invalid values.
    """
    keywords = sorted(accepted.__annotations__)
    for name in options.keys() - set(keywords):
        hint = did_you_mean(name, ("protocol", "metrics", *keywords))
        from bsdsbench.protocol.protocol import Protocol

        if name in Protocol.names():  # a field of the protocol instead of a keyword
            hint = f"; set it in the protocol: Protocol.preset('bsds500').replace({name}=...)"
        raise TypeError(f"{function}() got an unexpected keyword argument {name!r}{hint}")
    faults: list[str | Problem] = []
    try:
        if metrics is not registry.DEFAULT_METRICS:  # `make_plan` asks whether they were given
            metrics = registry.check_names(metrics)  # once, because it may be an iterator
    except DataError as error:
        faults += error.problems
    try:
        run_keywords = RunKeywords(**{**defaults, **options})
    except DataError as error:
        faults += error.problems
    if faults:
        raise DataError(problems=faults)
    return make_plan(run_keywords, protocol, metrics)


def _protocol_of(
    task: Task, keywords: RunKeywords, protocol: Protocol | str | None, metrics: tuple[str, ...]
) -> Protocol:
    """Return the protocol for a run of a task, which is that of the task if `protocol` is None.

    A task exists so that its scores can be compared, so little may differ. Raises DataError if

    - the protocol differs from the task's in a field that is not in MAPS; the fields in MAPS, such
      as "invert", prepare the soft maps
    - `metrics` is neither the default nor the task's metric
    - the keywords allow images to be skipped
    """
    from bsdsbench.protocol.protocol import MAPS, Protocol

    preset = Protocol.preset(task.protocol)
    faults: list[str | Problem] = []
    chosen = preset if protocol is None else Protocol.load(protocol)
    if chosen.replace(**{name: getattr(preset, name) for name in MAPS}) != preset:  # other fields
        faults.append(f"task {task.name}: its protocol is {task.protocol}, expected no other")
    if metrics not in (registry.DEFAULT_METRICS, (task.metric,)):
        faults.append(f"task {task.name}: its metric is {task.metric}, expected no other")
    if "skip" in (keywords.missing, keywords.on_error):
        faults.append(f"task {task.name}: needs every image, expected none to be skipped")
    if faults:
        raise DataError(problems=faults)
    return chosen
