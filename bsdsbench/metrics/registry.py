"""The available metrics: built-in ones, and those in the entry point group `bsdsbench.metrics`.
Their options in a protocol.

The names are known without importing numpy, so the command line's help can list them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Any

from attrs import evolve

from bsdsbench.files.errors import DataError, ProtocolError, did_you_mean

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

    from bsdsbench.metrics.base import Metric
    from bsdsbench.protocol.protocol import Protocol

GROUP = "bsdsbench.metrics"
DEFAULT = ("boundary",)

# In the order of tables: the name, and where its class is.
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
    "aiu": "bsdsbench.metrics.aiu:AverageIoUMetric",
    "wireframe": "bsdsbench.metrics.wireframe:WireframeMetric",
    "depth": "bsdsbench.metrics.depth:DepthMetric",
    "occlusion": "bsdsbench.metrics.occlusion:OcclusionMetric",
    "topology": "bsdsbench.metrics.topology:TopologyMetric",
    "ccq": "bsdsbench.metrics.ccq:CcqMetric",
    "instances": "bsdsbench.metrics.instances_metric:InstancesMetric",
    "calibration": "bsdsbench.metrics.calibration:CalibrationMetric",
}


def names() -> tuple[str, ...]:
    """All metrics, ours first, in the order of tables."""
    return (*BUILT_IN, *sorted(_others()))


def in_order(wanted: Iterable[str]) -> tuple[str, ...]:
    """Names of metrics, each once, in the order of tables."""
    given = set(wanted)
    return (*filter(given.__contains__, BUILT_IN), *sorted(given - BUILT_IN.keys()))


@cache
def get(name: str) -> Metric:
    """The metric of that name. Raises DataError, which lists those there are."""
    from bsdsbench.metrics.base import Metric

    if name in BUILT_IN:
        module, _, attribute = BUILT_IN[name].partition(":")
        return getattr(import_module(module), attribute)()
    if name not in _others():
        raise DataError(f"metric {name!r}: expected one of {', '.join(names())}")
    try:
        found = _others()[name].load()()
    except Exception as error:  # whatever another package does while it is imported
        raise DataError(
            f"metric {name!r}: {_others()[name].value} cannot be loaded "
            f"({type(error).__name__}: {error})"
        ) from None
    if not isinstance(found, Metric) or found.name != name:
        raise DataError(f"metric {name!r}: {_others()[name].value} is no Metric of that name")
    return found


def chosen(wanted: str | Iterable[str]) -> tuple[str, ...]:
    """The metrics asked for, each once, in the order of tables.

    Raises DataError for none, and for unknown ones, all of them together.
    """
    from bsdsbench.files.arguments import kind_of_value

    one = isinstance(wanted, str) or not isinstance(wanted, Iterable)
    asked: list[Any] = [wanted] if one else list(wanted)
    faults = [] if asked else [DataError("metrics: none given, expected at least one")]
    for name in asked:
        if not isinstance(name, str) or (name not in BUILT_IN and name not in _others()):
            known = ", ".join(names())
            faults.append(DataError(f"metrics {kind_of_value(name)}: expected one of {known}"))
    if faults:
        raise DataError.collect(faults)
    return in_order(asked)


def with_curve(metrics: Sequence[str], protocol: Protocol) -> tuple[str, ...]:
    """Those of the metrics that have a precision-recall curve with their options."""
    found = []
    for metric in map(get, metrics):
        if metric.has_curve(metric.options_of(protocol)):
            found.append(metric.name)
    return tuple(found)


@cache  # it reads what every installed package says of itself
def _others() -> dict[str, EntryPoint]:
    from importlib.metadata import entry_points

    return {e.name: e for e in entry_points(group=GROUP) if e.name not in BUILT_IN}


def settled(protocol: Protocol) -> Protocol:
    """The protocol with its options checked, those of a default value left out.

    So protocols that mean the same are equal. Raises ProtocolError for options of no metric,
    unknown ones and wrong values.
    """
    if not protocol.options:
        return protocol
    for name in protocol.options:
        if name not in names():
            raise ProtocolError(
                f"options {name!r}: expected the name of a metric, one of {', '.join(names())}"
                f"{did_you_mean(name, names())}"
            )
    given = [m for m in names() if m in protocol.options]
    return evolve(protocol, options={m: get(m).options_of(protocol) for m in given})


def stored(values: Mapping[str, Any]) -> Protocol:
    """The protocol of a saved run, settled. Raises ProtocolError."""
    from bsdsbench.protocol.protocol import Protocol

    return settled(Protocol.from_mapping(values))


def describe(metrics: Sequence[str], protocol: Protocol) -> str:
    """How the scores of some metrics are made: what they use of the protocol, and their own."""
    used: set[str] = set()
    own = []
    for metric in map(get, metrics):
        opt = metric.options_of(protocol)
        used.update(metric.used(opt))
        own.append(metric.describe(protocol, opt))
    return protocol.describe(used, list(filter(None, own)))


def unused(metrics: Sequence[str], protocol: Protocol) -> frozenset[str]:
    """Fields of a protocol, and names in its options, that no score of the metrics depends on."""
    if not metrics:
        return frozenset()
    known = {*protocol.names(), *protocol.options}.difference(metrics)
    for metric in map(get, metrics):
        known.difference_update(metric.used(metric.options_of(protocol)))
    return frozenset(known)
