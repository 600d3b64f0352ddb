"""Maps without a value that counts: bytes of 0 and 1, 8 bit saved as 16, divided by 255 twice.

One such map may be an image without boundaries; a set of them alone is a fault of its form.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bsdsbench.files.errors import DataError
from bsdsbench.loaders.inputs import Prediction
from bsdsbench.metrics.maps import unit
from bsdsbench.protocol.protocol import Protocol
from bsdsbench.scores.counts import ImageRecord

SMALL = {"u1": 9, "u2": 255}  # of 255 and 65535: no detector's strongest boundary in a whole set


def is_faint(soft: NDArray[Any], protocol: Protocol, curve: bool = True) -> bool:
    """True if nothing of a map reaches the lowest threshold, or it holds only small integers.

    curve : False for metrics without thresholds.
    """
    if protocol.normalise or soft.dtype == bool:
        return False
    top = soft.max(initial=0)
    if soft.dtype.kind == "u" and top <= SMALL[soft.dtype.str[1:]]:
        return True
    if protocol.invert:
        return False
    return curve and bool(unit(np.asarray(top)) < _lowest(protocol))


def _lowest(protocol: Protocol) -> float:
    return next(t for t in protocol.thresholds if t > 0)


def faint_words(form: str, top: float, protocol: Protocol) -> str:
    """The fault of a set whose maps are all faint, its reason and what mends it.

    form, top : of the map with the largest value, as `Prediction.form`, and that value.
    """
    if form == "soft8":
        return (
            f"no value above {top:g} of 255 in any map (0/1 or labels saved as 8 bit?), expected "
            "strengths from 0 to 255: --set normalise=true takes each map's largest value as 1, "
            "--pred-kind labels reads region labels"
        )
    if form == "soft16" and top <= SMALL["u2"]:
        return (
            f"no value above {top:g} of 65535 in any map (8 bit saved as 16?), expected strengths "
            "from 0 to 65535: save them as 8 bit, or multiply by 257"
        )
    return (
        f"no value above {top:.4g} in any map (divided by 255 twice?), expected strengths above "
        f"the lowest threshold, {_lowest(protocol):.4g}: scale them to 0 .. 1"
    )


ALL_ZERO = "every map is zero everywhere: all scores are 0"


def faint_set(preds: Iterable[Prediction], protocol: Protocol, curve: bool = True) -> str:
    """What is wrong with a set all of whose maps are faint; "" at the first that is not.

    curve : False for metrics without thresholds.
    """
    tops: list[tuple[float, str]] = []
    for pred in preds:
        soft = pred.soft if pred.ucm2 is None else pred.ucm2
        if soft is None or not is_faint(soft, protocol, curve):
            return ""
        tops.append((float(soft.max(initial=0)), pred.form))
    if not tops:
        return ""
    top, form = max(tops)
    return faint_words(form, top, protocol) if top else ALL_ZERO


# Records of arrays hold no pixels: the form of a map of small integers says its largest value
TOP = " up to "


def form_of(pred: Prediction, protocol: Protocol) -> str:
    """The prediction's form; for a map of few small integers with its largest value."""
    soft = pred.soft
    if soft is None or soft.dtype.kind != "u" or not is_faint(soft, protocol):
        return pred.form
    return f"{pred.form}{TOP}{soft.max(initial=0)}"


def without_tops(records: Iterable[ImageRecord], protocol: Protocol) -> tuple[ImageRecord, ...]:
    """Records with plain forms. Raises DataError if every map has only few small integers."""
    found = tuple(records)
    parts = [r.form.partition(TOP) for r in found]
    tops = [(int(top), form) for form, _, top in parts if top]
    if tops and len(tops) == len(found) and max(tops)[0]:
        top, form = max(tops)
        raise DataError(faint_words(form, top, protocol))
    return tuple(replace(r, form=form) for r, (form, _, _) in zip(found, parts, strict=True))
