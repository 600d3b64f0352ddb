"""The range of every field of a protocol, and what is said of a value outside it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import pairwise
from typing import Any

from bsdsbench.files.errors import ProtocolError, clip
from bsdsbench.files.json_fields import is_text
from bsdsbench.protocol.contour_params import CONTOUR_GROUPS

MAX_THRESHOLDS = 32_767  # what the kernels count in 16 bits
MAX_PX = 1_000
MAX_TEXT = 200
MAX_CLASSES = 65_536
MAX_LIST = 64

Rule = tuple[Callable[[Any], bool], str]


def _is_int(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _is_text(value: Any) -> bool:
    return isinstance(value, str) and 0 < len(value) <= MAX_TEXT and is_text(value)


def _ints(low: int, high: float, expected: str) -> Rule:
    return lambda v: _is_int(v) and low <= v <= high, expected


def _one_of(*choices: Any) -> Rule:
    shown = [repr(c) for c in choices]
    expected = f"{', '.join(shown[:-1])} or {shown[-1]}"
    return lambda v: type(v) in {type(c) for c in choices} and v in choices, expected


def _optional(rule: Rule) -> Rule:
    check, expected = rule
    return lambda v: v is None or check(v), expected


def _thresholds(values: Any) -> bool:
    return any(x > 0 for x in values) and all(0 <= x <= 1 for x in values)


def _few(values: Any) -> bool:
    return len(values) <= MAX_THRESHOLDS


def _increasing(values: Any) -> bool:
    return all(a < b for a, b in pairwise(values))


def _names(values: Any) -> bool:
    good = isinstance(values, tuple) and 0 < len(values) <= MAX_CLASSES
    good = good and all(map(_is_text, values))
    return good and len(set(values)) == len(values)


def _labels(values: Any) -> bool:
    return isinstance(values, tuple) and all(_is_int(v) and 0 <= v < 2**31 for v in values)


BOOL: Rule = (lambda v: isinstance(v, bool), "true or false")
FIELDS: dict[str, tuple[Rule, ...]] = {
    "name": ((_is_text, "text"),),
    "version": (_ints(1, 10**6, "a whole number from 1"),),
    "thresholds": (
        (_thresholds, "values in [0, 1], one or more above 0"),
        (_increasing, "strictly increasing values"),
        (_few, f"at most {MAX_THRESHOLDS} values"),
    ),
    "max_dist": ((lambda v: _is_number(v) and 0 < v < 1, "a fraction in (0, 1) of the diagonal"),),
    "max_dist_px": (
        _optional((lambda v: _is_number(v) and 0 <= v <= MAX_PX, f"pixels, 0 to {MAX_PX}")),
    ),
    "gt_threshold": (_optional((lambda v: _is_number(v) and 0 < v <= 1, "a value in (0, 1]")),),
    "gt_kind": (_one_of("boundaries", "labels"),),
    "ap_rule": (_one_of("bsds", "edter", "endpoints", "seism", "sbd", "101-point"),),
    "ods_rule": (_one_of("interpolated", "maximum"),),
    "operator": (_one_of(">=", ">"),),
    "thin": (BOOL,),
    "nms": (BOOL,),
    "invert": (BOOL,),
    "clean": (BOOL,),
    "gt_thin": (BOOL,),
    "normalise": (BOOL,),
    "gt_invert": (BOOL,),
    "regions_from_soft": (BOOL,),
}
NMS: dict[str, tuple[Rule, ...]] = {
    "radius": (_ints(1, 99, "1 to 99 pixels"),),
    "border": (_ints(0, 9999, "0 to 9999 pixels"),),
    "multiplier": ((lambda v: _is_number(v) and 0 < v <= 1e6, "a number above 0"),),
    "smooth": (BOOL,),
    "bits": (_one_of(0, 8, 16),),
}
SEMANTIC: dict[str, tuple[Rule, ...]] = {
    "classes": ((_names, "names"),),
    "first": (_ints(0, 2**31 - 1, "a label from 0"),),
    "ids": ((_labels, "labels from 0"),),
    "ignore": (
        (lambda v: (_is_int(v) and -1 <= v < 2**31) or _labels(v), "a label, labels, or -1"),
    ),
    "radius": (_ints(0, 99, "0 to 99"),),
    "ignored_rule": (_one_of("drop", "span"),),
    "interior": (_one_of("keep", "kill", "kill_first"),),
    "absent": (_one_of("count", "skip"),),
    "instances": (BOOL,),
    "instance_from": (_ints(1, 2**31 - 1, "a value from 1"),),
    "thin_gt": (BOOL,),
    "border": (_ints(0, 9999, "0 to 9999 pixels"),),
    "border_rule": (_one_of("crop", "ignore"),),
    "scale": ((lambda v: _is_number(v) and 0 < v <= 1, "a number in (0, 1]"),),
    "scaled": (_one_of("labels", "boundaries"),),
    "resize": (_one_of("refuse", "nearest", "bicubic"),),
}
SALIENCY: dict[str, tuple[Rule, ...]] = {
    "beta2": ((lambda v: _is_number(v) and 0 < v <= 1e6, "a number above 0"),),
    "stretch": (BOOL,),
    "levels": (_one_of("floor", "round"),),
    "operator": (_one_of(">", ">="),),
    "cap": (_one_of("one", "max"),),
    "e_divisor": (_one_of("pixels-1", "pixels"),),
    "centroid": (_one_of("even", "up"),),
}


def _positive(value: Any) -> bool:
    return _is_number(value) and 0 < value <= 1e6


def _each(check: Callable[[Any], bool]) -> Callable[[Any], bool]:
    return lambda v: isinstance(v, tuple) and 0 < len(v) <= MAX_LIST and all(map(check, v))


POSITIVE: Rule = (_positive, "a number above 0, at most 1e6")
POSITIVES: Rule = (_each(_positive), f"1 to {MAX_LIST} numbers above 0, at most 1e6")
CONTOUR: dict[str, tuple[Rule, ...]] = {
    "classes": ((lambda v: v == () or _names(v), "names"),),
    "first": (_ints(0, 2**31 - 1, "a label from 0"),),
    "ignore": (_ints(-1, 2**31 - 1, "a label, or -1"),),
    "unit": (_one_of("class", "instance", "id"),),
    "divisor": (_ints(0, 2**31 - 1, "a whole number from 0"),),
    "spacing": (POSITIVES, (lambda v: len(v) == 2, "two steps, of rows and columns")),
    "empty": (_one_of("skip", "inf", "perfect", "diagonal", "zero", "error"),),
    "groups": (
        (lambda v: isinstance(v, tuple) and set(v) <= set(CONTOUR_GROUPS), "groups of measures"),
    ),
    "boundary_sizes": (POSITIVES,),
    "davis_bounds": (POSITIVES,),
    "bf_theta": (POSITIVE,),
    "percent": ((lambda v: _is_number(v) and 0 <= v <= 100, "0 to 100"),),
    "tolerances": (
        (_each(lambda v: _is_number(v) and 0 <= v <= 1e6), f"1 to {MAX_LIST} numbers from 0"),
    ),
    "pratt_alpha": (POSITIVE,),
    "trimap_widths": (POSITIVES,),
}


def check_fields(record: Any, rules: Mapping[str, tuple[Rule, ...]], prefix: str = "") -> None:
    """Raise ProtocolError for the first field of `record` that breaks one of its rules."""
    for name, checks in rules.items():
        value = getattr(record, name)
        for good, expected in checks:
            if not good(value):
                raise ProtocolError(f"{prefix}{name} {clipped(value)}: expected {expected}")


def clipped(value: Any) -> str:
    """The value as Python writes it, at most 60 characters."""
    if isinstance(value, tuple | list) and len(value) > 100:
        return f"of {len(value)} values"
    return clip(repr(value), 60)
