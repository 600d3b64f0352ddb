"""The options of metrics in a protocol, checked and resolved, and the fields that metrics use."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from bsdsbench.files.errors import ProtocolError, did_you_mean
from bsdsbench.metrics.registry import BUILT_IN, get, names
from bsdsbench.protocol.protocol import Protocol


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
    return protocol.with_options({m: get(m).options_of(protocol) for m in given})


def stored(values: Mapping[str, Any]) -> Protocol:
    """The protocol of a saved run, settled. Raises ProtocolError."""
    protocol = Protocol.stored(values)
    if protocol.options and "options" not in values:  # saved before options had metrics
        given = dict(protocol.options)
        for metric in map(get, BUILT_IN):
            if metric.options and metric.options_were in given:
                table, known = given[metric.options_were], metric.options.names()
                given[metric.name] = {k: v for k, v in table.items() if k in known}
        protocol = protocol.with_options(given)
    return settled(protocol)


def describe(metrics: Sequence[str], protocol: Protocol) -> str:
    """How the scores of some metrics are made: what they use of the protocol, and their own."""
    found = [get(m) for m in metrics]
    used = {name for m in found for name in m.used(protocol)}
    own = [text for m in found if (text := m.describe(protocol))]
    return protocol.describe(used, own)


def unused(metrics: Sequence[str], protocol: Protocol) -> frozenset[str]:
    """Fields of a protocol, and names in its options, that no score of the metrics depends on."""
    if not metrics:
        return frozenset()
    used = {name for m in metrics for name in get(m).used(protocol)}
    return frozenset({*Protocol.names(), *protocol.options} - {*used, *metrics})
