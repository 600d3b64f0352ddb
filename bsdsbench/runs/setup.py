"""What a run of some metrics needs before it starts: the protocol, the kind of prediction."""

from __future__ import annotations

from collections.abc import Sequence

from bsdsbench.core.errors import DataError
from bsdsbench.core.protocol import Protocol
from bsdsbench.metrics import registry


def protocol_of(protocol: Protocol | str | None, metrics: Sequence[str]) -> Protocol:
    """The protocol meant: the one given, or the default of the first metric.

    Raises ProtocolError if it lacks what a metric needs, or if there is no default.
    """
    if protocol is None:
        protocol = registry.get(metrics[0]).default_protocol or "bsds500"
    proto = Protocol.preset(protocol) if isinstance(protocol, str) else protocol
    for metric in metrics:
        registry.get(metric).check(proto)
    return proto


def kind_of(pred_kind: str | None, metrics: Sequence[str]) -> str:
    """The kind of the predictions: the one given, or what the first metric expects.

    Raises DataError if a metric does not take it, or metrics read different ground truth.
    """
    found = [registry.get(m) for m in metrics]
    kind = pred_kind or found[0].pred_kinds[0]
    faults = [
        f"metric {m.name}: takes predictions of kind {' or '.join(m.pred_kinds)}, not {kind!r}"
        for m in found
        if kind not in m.pred_kinds
    ]
    faults += [
        f"metrics {found[0].name}, {m.name}: read different ground truth ({found[0].gt_kind}, "
        f"{m.gt_kind}), expected one run for each"
        for m in found
        if m.gt_kind != found[0].gt_kind
    ]
    if faults:
        raise DataError("\n".join(faults), faults)
    return kind
