"""The available metrics, and their options in a protocol.

Metrics are built in or registered by other packages in the entry point group `bsdsbench.metrics`.
Importing this module does not import numpy, so that the command line can list metrics quickly.
"""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from functools import cache
from importlib import import_module
from itertools import product
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, NamedTuple

from attrs import evolve

from bsdsbench.errors import DataError, ProtocolError, Setting, describe_unexpected
from bsdsbench.text import did_you_mean, join_names

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

    from bsdsbench.loaders.reading import Readings
    from bsdsbench.metrics.base import FilesRead, Metric
    from bsdsbench.protocol.protocol import Protocol

GROUP = "bsdsbench.metrics"
DEFAULT_METRICS = ("boundary",)

# name -> module and class, in the order of tables
BUILT_IN = {
    "boundary": "bsdsbench.metrics.boundary:BoundaryMetric",
    "region": "bsdsbench.metrics.region.metric:RegionMetric",
    "pixel": "bsdsbench.metrics.pixel:PixelMetric",
    "superpixel": "bsdsbench.metrics.superpixel:SuperpixelMetric",
    "semantic": "bsdsbench.metrics.semantic:SemanticMetric",
    "saliency": "bsdsbench.metrics.saliency:SaliencyMetric",
    "crispness": "bsdsbench.metrics.crispness:CrispnessMetric",
    "contour": "bsdsbench.metrics.contour.contour_metric:ContourMetric",
    "segmentation": "bsdsbench.metrics.segmentation:SegmentationMetric",
    "aiu": "bsdsbench.metrics.pixel:AverageIoUMetric",
    "wireframe": "bsdsbench.metrics.wireframe:WireframeMetric",
    "depth": "bsdsbench.metrics.depth:DepthMetric",
    "occlusion": "bsdsbench.metrics.occlusion:OcclusionMetric",
    "topology": "bsdsbench.metrics.structures:TopologyMetric",
    "ccq": "bsdsbench.metrics.structures:CcqMetric",
    "instances": "bsdsbench.metrics.instances_metric:InstancesMetric",
    "calibration": "bsdsbench.metrics.calibration:CalibrationMetric",
}


def names() -> tuple[str, ...]:
    """Return the names of all metrics in the order of tables; those of other packages come last."""
    return (*BUILT_IN, *sorted(_entry_points()))


def sort_names(wanted: Iterable[str]) -> tuple[str, ...]:
    """Return the given names of metrics without duplicates, in the order of `names`."""
    given = set(wanted)
    return (*filter(given.__contains__, BUILT_IN), *sorted(given - BUILT_IN.keys()))


@cache
def get(name: str) -> Metric:
    """Return the metric with this name, always the same instance.

    Raises DataError if there is none, or if the metric of another package cannot be loaded or is
    invalid: no `Metric`, under another name, or without a title or columns.
    """
    if name in BUILT_IN:
        module, kind = BUILT_IN[name].split(":")
        built_in: Metric = getattr(import_module(module), kind)()
        return built_in
    from bsdsbench.metrics.base import Metric

    entry = _entry_points().get(name)
    if entry is None:
        raise DataError(f"metric {name!r}: expected one of {', '.join(names())}")
    try:
        metric = entry.load()()
    except Exception as error:  # importing another package can raise anything
        fault = describe_unexpected(error, {entry.module.partition(".")[0]})
        raise DataError(f"metric {name!r}: {entry.value} cannot be loaded: {fault}") from None
    if not isinstance(metric, Metric) or getattr(metric, "name", None) != name:
        raise DataError(f"metric {name!r}: {entry.value} is no Metric of that name")
    for attribute in ("title", "columns"):
        if not getattr(metric, attribute, None):
            raise DataError(f"metric {name!r}: {entry.value} has no {attribute}, expected some")
    return metric


def other_packages() -> set[str]:
    """Return the names of other packages that register metrics."""
    return {entry.module.partition(".")[0] for entry in _entry_points().values()}


@cache
def metric_hash(name: str) -> str:
    """Return a hash of the source code of a metric defined in another package.

    It covers the metric's module and all modules of the same package that this module imports,
    directly or indirectly.
    """
    home = type(get(name)).__module__
    package = home.partition(".")[0]
    modules, pending = set[str](), [home]
    while pending:
        module = pending.pop()
        modules.add(module)
        for value in vars(sys.modules[module]).values():
            attribute = "__name__" if isinstance(value, ModuleType) else "__module__"
            imported = str(getattr(value, attribute, ""))
            is_of_package = imported.partition(".")[0] == package
            if is_of_package and imported in sys.modules.keys() - modules:
                pending.append(imported)
    digest = hashlib.blake2b(digest_size=8)
    for module in sorted(modules):
        with suppress(OSError, AttributeError):  # an interactive session has no file
            digest.update(Path(sys.modules[module].__file__ or "").read_bytes())
    return digest.hexdigest()


def source_hashes(metrics: Iterable[str]) -> dict[str, str]:
    """Return the `metric_hash` of each metric that is defined in another package, by name."""
    hashes = {}
    for name in metrics:
        if name not in BUILT_IN:
            hashes[name] = metric_hash(name)
    return hashes


def check_names(wanted: str | Iterable[str]) -> tuple[str, ...]:
    """Check one or more names of metrics, and return them in the order of tables, without repeats.

    Raises DataError if no name is given, or if one is unknown.
    """
    from bsdsbench.arguments import check_word

    is_single = isinstance(wanted, str) or not isinstance(wanted, Iterable)
    asked: list[Any] = [wanted] if is_single else list(wanted)
    if not asked:
        raise DataError("metrics: none given, expected at least one")
    for name in asked:
        # Built-in names need no look at `names`, which reads the metadata of installed packages
        if not isinstance(name, str) or name not in BUILT_IN:
            check_word(name, "metrics", names())  # raises DataError if it is not one of them
    return sort_names(asked)


def refuse_preset_of_others(name: str) -> None:
    """Raise DataError if a preset is for other metrics than those that are counted by default.

    A preset is for the metrics whose options it has, and for those that it is the default of,
    unless they match boundaries. The names of other protocols are accepted.
    """
    from bsdsbench.protocol.protocol import Protocol, preset_names

    preset = name.removesuffix("*")  # of a changed one
    if preset == "bsds500" or preset not in preset_names():
        return
    meant = list(Protocol.preset(preset).options)
    for metric in map(get, BUILT_IN):
        if metric.default_protocol == preset and "max_dist" not in metric.uses:
            meant.append(metric.name)
    if meant:
        has = f"metrics: none given, and protocol {preset} is for {join_names(meant)}"
        raise DataError(has, fix=Setting("metrics", meant[0]))


def readers(metrics: Sequence[str]) -> list[Metric]:
    """Return the metrics that determine how the files of a run are read.

    If at least one metric requires masks (such as "saliency"), these are the metrics that require
    them, because the others can also evaluate masks. If none does, these are all metrics.
    """
    asked = list(map(get, metrics))
    of_masks = [metric for metric in asked if metric.reads == "mask"]
    return of_masks or asked


def with_curve(metrics: Sequence[str], protocol: Protocol) -> tuple[str, ...]:
    """Return the names of the metrics that have a precision-recall curve under this protocol."""
    with_curves: tuple[str, ...] = ()
    for metric in map(get, metrics):
        # A metric whose options switch matching off has no curve, and `used` returns ()
        if metric.curved and metric.used(metric.options_of(protocol)):
            with_curves += (metric.name,)
    return with_curves


@cache  # reading the metadata of every installed package is slow
def _entry_points() -> dict[str, EntryPoint]:
    """Return the entry points of the metrics that other packages register, by metric name."""
    from importlib.metadata import entry_points

    return {e.name: e for e in entry_points(group=GROUP) if e.name not in BUILT_IN}


def complete_options(protocol: Protocol) -> Protocol:
    """Validate the metric options of a protocol, and fill in their defaults.

    Two protocols then compare equal even if one of them sets a default that the other leaves out.
    Metrics that the protocol has no options for are not added. Raises ProtocolError for an unknown
    metric, an unknown option or an invalid value.
    """
    for name in protocol.options:
        if name not in names():
            raise ProtocolError(
                f"options {name!r}: expected the name of a metric, one of {', '.join(names())}"
                f"{did_you_mean(name, names())}"
            )
    if not protocol.options:
        return protocol
    options = {name: get(name).options_of(protocol) for name in sort_names(protocol.options)}
    return evolve(protocol, options=options)


def read_protocol(values: Mapping[str, Any]) -> Protocol:
    """Rebuild the protocol of a saved run from a mapping of its fields, name -> value.

    Raises ProtocolError if a field or an option is unknown or has an invalid value.
    """
    from bsdsbench.protocol.protocol import Protocol

    return complete_options(Protocol.from_mapping(values))


def describe(metrics: Sequence[str], protocol: Protocol) -> str:
    """Describe in one line the protocol fields and options that affect the metrics' scores."""
    conventions, used_fields = list[str](), set[str]()
    for metric in map(get, metrics):
        opt = metric.options_of(protocol)
        conventions.append(metric.describe(protocol, opt))  # such as "15 bins"; may be ""
        used_fields.update(metric.used(opt))  # such as "thresholds" and "max_dist"
    return protocol.describe(used_fields, filter(None, conventions))


def check_options(metrics: Sequence[str], protocol: Protocol) -> None:
    """Raise DataError if the options of the metrics conflict or have no effect.

    The errors are:

    - several tolerances for a metric that supports only one
    - a class or other part whose name would make the key of a score ambiguous
    - metrics that treat different values of the same files as void
    - a setting of how values are read (READ) that differs from the preset, and that no metric uses
    """
    from bsdsbench.protocol.protocol import READ, Protocol, preset_names

    void_values = dict[str, tuple[float, ...]]()  # metric -> values of void pixels
    for metric in map(get, metrics):
        opt = metric.options_of(protocol)
        # `tolerance_scores` are the scores that a metric can compute at several tolerances
        has_several = len(protocol.tolerances) > 1 and "max_dist" in metric.used(opt)
        if has_several and not metric.tolerance_scores:
            tolerances = ", ".join(protocol.tolerance_names)
            raise DataError(f"metric {metric.name}: counts at one tolerance, not at {tolerances}")
        paths = metric.parts(protocol, opt)  # such as "road" -> ("per_class", "road")
        if paths:
            _check_part_names(metric, paths)
        # Files other than label maps are read once for all metrics, and so with a single void
        if metric.reads != "classes":
            void_values[metric.name] = metric.files_read(opt).void
    if len(set(map(frozenset, void_values.values()))) > 1:  # the order of values is no conflict
        words = ", ".join(f"{name}.ignore {list(values)}" for name, values in void_values.items())
        raise DataError(f"{words}: expected one void for all metrics of a run")
    # A preset may have a READ setting for all its metrics, but a changed one should have an effect
    unused = unused_settings(metrics, protocol)
    preset = protocol.name.removesuffix("*")  # "*" marks a preset with changed settings
    original = Protocol.preset(preset) if preset in preset_names() else Protocol()
    for name in READ:  # such as "gt_threshold", of masks
        value, expected = getattr(protocol, name), getattr(original, name)
        if name in unused and value != expected:
            setting = f"{name} = {value}: has no effect on {', '.join(metrics)}"
            raise DataError(f"{setting} with these options, expected {expected}")


def _check_part_names(metric: Metric, paths: Mapping[str, tuple[str, ...]]) -> None:
    """Raise DataError if the name of a part, such as a class, makes the key of a score ambiguous.

    Parts are items with scores of their own. Some columns belong to a group, such as "pooled.iou"
    beside "iou". A class called "pooled" would have the same key, "pooled.iou", for its own IoU.
    So no part may have the name of a group or end with it after a dot ("x.pooled"). A part may be
    the group itself: the curve "seval" has its score "ods" in the column "seval.ods".

    paths: part -> its path in the scores, such as "road" -> ("per_class", "road").
    """
    keys = {column.key for column in (*metric.columns, *metric.part_columns)}
    groups = set()  # "pooled" is one if the keys include "iou" and "pooled.iou"
    for end in keys:
        groups |= {key.removesuffix(f".{end}") for key in keys if key.endswith(f".{end}")}
    for part, group in product(paths, groups):
        is_group = paths[part] == (part,)  # its scores are the columns of the group
        if not is_group and f".{part}".endswith(f".{group}"):
            taken = f"{part!r}: {group!r} is the name of a group of scores"
            raise DataError(f"{metric.name}.classes {taken}, expected another name")


class MetricGroup(NamedTuple):
    """Metrics that read the files in the same way, and how they read them."""

    metrics: tuple[Metric, ...]
    files: FilesRead  # the content of the files
    readings: Readings  # how values in the files are interpreted
    void: tuple[float, ...]  # the values of void pixels, also in label maps, which keep them


def group_by_reading(
    metrics: Sequence[str], protocol: Protocol, pred_kind: str
) -> tuple[MetricGroup, ...]:
    """Group the metrics that read the files in the same way, so that each group reads them once.

    Metrics of a group have the same kind of ground truth, content of label maps (such as classes or
    instances) and void values. If some metrics require masks, only these are grouped so. The
    others, which read annotators' maps otherwise, can evaluate any mask: they join the first group.

    metrics: the names of at least one metric. pred_kind: the predictions' kind, such as "soft".

    Returns the groups in the order of their first metrics. A group reads the files as its first
    metric does.
    """
    deciding = readers(metrics)  # the metrics that require masks, or all if none does
    groups: dict[object, list[Metric]] = {}
    for metric in deciding:
        files = metric.files_read(metric.options_of(protocol))
        content = metric.gt_kind, files.labels, files.void
        groups.setdefault(content, []).append(metric)
    first_group = next(iter(groups.values()))
    for metric in map(get, metrics):
        if metric not in deciding:
            first_group.append(metric)
    metric_groups = []
    for group in groups.values():
        files = group[0].files_read(group[0].options_of(protocol))
        readings = group[0].readings(protocol, pred_kind)
        void = void_labels(group, protocol)
        metric_groups.append(MetricGroup(tuple(group), files, readings, void))
    return tuple(metric_groups)


def unused_settings(metrics: Sequence[str], protocol: Protocol) -> frozenset[str]:
    """Return the names in a protocol that affect no score of the metrics.

    They are names of fields, such as "thin", and names of other metrics for which the protocol has
    options. If there are no metrics, the result is empty.
    """
    unused = {*protocol.names(), *protocol.options} if metrics else set()
    for metric in map(get, metrics):
        unused -= {metric.name, *metric.used(metric.options_of(protocol))}
    return frozenset(unused)


def void_labels(metrics: Iterable[Metric[Any]], protocol: Protocol) -> tuple[float, ...]:
    """Return the values of void pixels of the ground truth, which its label maps keep."""
    from bsdsbench.protocol.fields import listed_values

    values = list[float]()
    for metric in metrics:
        if metric.void_option:
            void = getattr(metric.options_of(protocol), metric.void_option)  # one value, or several
            values += void if isinstance(void, tuple) else listed_values(void)
    return tuple(values)
