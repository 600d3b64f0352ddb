"""The constants of a benchmark: the fields of a `Protocol`, their ranges and words."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import MISSING, dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from bsdsbench.files.arguments import given_list
from bsdsbench.files.errors import ProtocolError, clip
from bsdsbench.protocol.settings import (
    BOOL,
    HOME_MADE,
    TEXT,
    NMSParams,
    Settings,
    clipped,
    is_int,
    is_number,
    one_of,
    option_tables,
    optional,
    setting,
    whole,
)
from bsdsbench.scores.curve import AP_RULES, ODS_RULES
from bsdsbench.tables.read_only import ReadOnlyDict

MAX_THRESHOLDS = 32_767  # what the kernels count in 16 bits
MAX_PX = 1_000
# Fields of the protocol that move scores: all that change a soft map or the reading of annotators,
# all that make a curve's numbers, and with them those of matching.
MAPS = ("invert", "normalise", "nms", "nms_params")
ANNOTATED = ("gt_invert", "gt_threshold", "gt_kind", "empty_gt")
CURVE = ("thresholds", "operator", "ap_rule", "ods_rule")
MATCHING = ("max_dist", "max_dist_px", "thin", "clean", "gt_thin")
MATCHED = (*MAPS, *ANNOTATED, *CURVE, *MATCHING)


def even_thresholds(count: int) -> tuple[float, ...]:
    """linspace(1/(T+1), 1 - 1/(T+1), T): the official default grid (boundaryBench.m)."""
    return tuple(np.linspace(1 / (count + 1), 1 - 1 / (count + 1), count).tolist())


def byte_thresholds() -> tuple[float, ...]:
    """k/255 for k = 1 .. 255: every level of an 8-bit picture but the trivial zero."""
    return tuple((np.arange(1, 256) / 255).tolist())


# Grids that have a name, in files and signatures.
GRIDS = {
    "8bit": byte_thresholds(),
    "seism": (0.001, *(k / 100 for k in range(1, 100)), 0.999),  # of its programs for contours
}


def _thresholds(given: Any) -> tuple[float, ...]:
    """Thresholds from a number of even ones, a name, or their values. Raises ProtocolError."""
    if isinstance(given, np.ndarray):
        given = tuple(given_list(given, "thresholds", "numbers"))
    if isinstance(given, str) and given in GRIDS:
        return GRIDS[given]
    if is_int(given):
        if not 1 <= given <= MAX_THRESHOLDS:
            raise ProtocolError(
                f"thresholds {clip(str(given), 40)}: expected 1 to {MAX_THRESHOLDS} of them"
            )
        return even_thresholds(given)
    try:
        return tuple(float(t) for t in given)
    except (TypeError, ValueError, OverflowError):
        raise ProtocolError(
            f"thresholds {clipped(given)}: expected a number of them, a list, '8bit' or 'seism'"
        ) from None


@dataclass(frozen=True, slots=True, repr=False)
class Constants(Settings):
    """The fields of a protocol."""

    name: str = setting("custom", "Its name; a changed preset carries a star.", TEXT)
    version: int = setting(
        1,
        "Raised whenever a constant of the preset changes.",
        whole(1, 10**6, "a whole number from 1"),
    )
    thresholds: tuple[float, ...] = setting(
        even_thresholds(99),
        'Increasing, in [0, 1]; also an int (that many even ones), "8bit" (k/255) or "seism" '
        '(.001, .01 .. .99, .999). With operator ">=" a threshold 0 stands for the whole image, '
        "every pixel on and not thinned.",
        (
            lambda v: any(x > 0 for x in v) and all(0 <= x <= 1 for x in v),
            "values in [0, 1], one or more above 0",
        ),
        (lambda v: all(a < b for a, b in pairwise(v)), "strictly increasing values"),
        (lambda v: len(v) <= MAX_THRESHOLDS, f"at most {MAX_THRESHOLDS} values"),
        read=_thresholds,
        others=dict.fromkeys(("8bit", 100, 50, 33, 25, 20, 19, 10, 9, 5), "nthresh of the run"),
        describe=lambda p: (
            f"{len(p.thresholds)} thresholds {p.thresholds[0]:.4g}..{p.thresholds[-1]:.4g}"
        ),
    )
    max_dist: float = setting(
        0.0075,
        "Match tolerance, a fraction of the image diagonal.",
        (lambda v: is_number(v) and 0 < v < 1, "a fraction in (0, 1) of the diagonal"),
        others={
            0.0075: "BSDS500 and most programs",
            0.011: "NYUDv2 programs",
            0.01: "SEISM on PASCAL, skeletons, wireframes",
            0.02: "SBD, Cityscapes (raw)",
            0.0035: "Cityscapes (thin)",
            0.003: "SDPED (strict)",
            0.002: "KITTI-DE, DDAD-DE",
            **dict.fromkeys((0.005, 0.015), HOME_MADE),
        },
        describe=lambda p: (
            f"max_dist {p.max_dist:g} of the diagonal"
            if p.max_dist_px is None
            else f"max_dist {p.max_dist_px:g} px"
        ),
    )
    max_dist_px: float | None = setting(
        None,
        "The same in pixels; overrides max_dist when set.",
        optional((lambda v: is_number(v) and 0 <= v <= MAX_PX, f"pixels, 0 to {MAX_PX}")),
    )
    thin: bool = setting(
        True,
        "Thin each thresholded map to one pixel before matching.",
        BOOL,
        others={False: "CEval, raw forms of SBD", True: "the benchmark"},
        describe={True: "thinned", False: "not thinned"},
    )
    nms: bool = setting(
        False,
        "Apply edge NMS to the soft map before thresholding. Off in the presets of data sets, as "
        "only the user knows whether the files on disk have had it.",
        BOOL,
        describe=lambda p: f"NMS {p.nms_params.describe()}" if p.nms else "no NMS",
    )
    nms_params: NMSParams = setting(
        NMSParams(),
        "The constants `nms` uses; also the name of a recipe.",
        (lambda v: isinstance(v, NMSParams), "the entries of NMSParams"),
        read=NMSParams.read,
    )
    operator: str = setting(
        ">=",
        '">=" or ">": which values are on at a threshold.',
        one_of(">=", ">"),
        others={">": "SEISM, DeepCrack"},
        describe="value {} threshold",
    )
    clean: bool = setting(
        False,
        "After thinning drop pixels without one of the eight neighbours.",
        BOOL,
        describe="single pixels dropped",
    )
    gt_thin: bool = setting(
        False,
        "Thin each annotator's map to one pixel before matching.",
        BOOL,
        describe="ground truth thinned",
    )
    normalise: bool = setting(
        False,
        "Divide each map by its largest value, before NMS.",
        BOOL,
        describe="divided by its maximum",
    )
    invert: bool = setting(
        False, "The prediction is dark on bright (1 - value is taken).", BOOL, describe="inverted"
    )
    gt_invert: bool = setting(
        False,
        "Ground-truth pictures are dark boundaries on bright ground.",
        BOOL,
        describe="ground truth inverted",
    )
    gt_threshold: float | None = setting(
        None,
        "Gray ground-truth pictures are boundary from this value in (0, 1] on; None refuses gray.",
        optional((lambda v: is_number(v) and 0 < v <= 1, "a value in (0, 1]")),
        describe="ground truth from {:g} on",
    )
    gt_kind: str = setting(
        "boundaries",
        '"boundaries", or "labels" for ground-truth pictures and arrays of region labels.',
        one_of("boundaries", "labels"),
        describe="ground truth from labels",
    )
    empty_gt: str = setting(
        "error",
        'Images whose ground truth has no boundary: "error", "count" (their false positives count) '
        'or "skip".',
        one_of("error", "count", "skip"),
        describe={
            "count": "images without ground-truth boundaries count",
            "skip": "images without ground-truth boundaries left out",
        },
    )
    regions_from_soft: bool = setting(
        False,
        "Region measures close soft boundary maps into regions at each threshold.",
        BOOL,
        describe="regions from soft maps",
    )
    ods_rule: str = setting(
        "interpolated",
        '"interpolated" between thresholds, or "maximum" over the thresholds.',
        one_of(*ODS_RULES),
        describe="ODS rule {}",
    )
    ap_rule: str = setting(
        "bsds",
        "How AP is read off the curve, a name of bsdsbench.scores.curve.AP_RULES.",
        one_of(*AP_RULES),
        describe=lambda p: f"AP rule {p.ap_rule}",
    )
    options: Mapping[str, Any] = setting(
        MISSING,
        "Metric to its own options, those that are given, read-only. In a file each is a table, "
        "`[saliency]`. The metric checks them (`Metric.options_of`).",
        read=option_tables,
        default_factory=ReadOnlyDict,
        hash=False,
    )
