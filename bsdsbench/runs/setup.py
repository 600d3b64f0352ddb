"""What a run of some metrics needs before it starts: the protocol, the kind of prediction."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from bsdsbench.files.arguments import kind_of_value
from bsdsbench.files.bounded import show
from bsdsbench.files.errors import DataError
from bsdsbench.files.json_fields import is_text
from bsdsbench.metrics import metric_options, registry
from bsdsbench.protocol.protocol import Protocol
from bsdsbench.protocol.settings import clipped

MAX_WORKERS = 4096


def usual_protocol(metrics: Sequence[str]) -> str:
    """The preset that the first metric is meant with, bsds500 where it names none."""
    return registry.get(metrics[0]).default_protocol or "bsds500"


def protocol_of(protocol: Protocol | str | None, metrics: Sequence[str]) -> Protocol:
    """The protocol meant: the one given, or the default of the first metric.

    Raises ProtocolError for options that no metric has or a value out of its range, if it lacks
    what a metric needs, or if there is no default.
    """
    given = Protocol.of(usual_protocol(metrics) if protocol is None else protocol)
    proto = metric_options.settled(given)
    for metric in metrics:
        registry.get(metric).check(proto)
    return proto


def check_run(
    name: str | None,
    workers: int | None,
    out: str | os.PathLike[str] | None,
    folders: Mapping[str, str | os.PathLike[str]],
) -> None:
    """Raise DataError, listing all faults, for what no run can be made of.

    The results may not lie inside a folder that is read (they would be paired with it the next
    time), and everything that is written as text must be text.
    """
    faults = []
    for what, folder in (*folders.items(), ("out", out)):
        if not isinstance(folder, str | os.PathLike) and (folder is not None or what != "out"):
            faults.append(f"{what}: {kind_of_value(folder)}, expected the path of a folder")
    if name is not None and not (isinstance(name, str) and name and is_text(name)):
        faults.append(f"name {clipped(name)}: expected text in UTF-8")
    whole = isinstance(workers, int | np.integer) and not isinstance(workers, bool)
    if workers is not None and not (whole and 1 <= workers <= MAX_WORKERS):
        faults.append(f"workers {clipped(workers)}: expected a number from 1 to {MAX_WORKERS}")
    if out is not None and not faults:
        target = Path(out).resolve()
        faults += [
            f"{show(out)}: lies in the folder of the {what} ({show(folder)}), expected a folder "
            "elsewhere for the results"
            for what, folder in folders.items()
            if target.is_relative_to(Path(folder).resolve())
        ]
    if faults:
        raise DataError("\n".join(faults), faults)


def kind_of(pred_kind: str | None, metrics: Sequence[str]) -> str:
    """The kind of the predictions: the one given, or what the first metric expects.

    Raises DataError if a metric does not take it, or metrics read different ground truth.
    """
    found = [registry.get(m) for m in metrics]
    if pred_kind is not None and not isinstance(pred_kind, str):
        raise DataError(f"pred_kind: {kind_of_value(pred_kind)}, expected a word")
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
