"""Possible causes of a different score: other readings of the counts, settings, other images."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from attrs import evolve

from bsdsbench.arguments import I8
from bsdsbench.curves.areas import auc_pr, largest_precision_from
from bsdsbench.errors import DataError, ProtocolError
from bsdsbench.images import GroundTruth
from bsdsbench.loaders.pairing import read_split
from bsdsbench.loaders.sets.identity import shipped_sets
from bsdsbench.metrics import registry
from bsdsbench.metrics.base import Metric
from bsdsbench.protocol.fields import HOME_MADE, in_use
from bsdsbench.protocol.protocol import RECIPES, NMSParams, Protocol
from bsdsbench.protocol.signature import Severity, Signature
from bsdsbench.results.score_names import score_name
from bsdsbench.scores.curve import RECALL_LEVELS, PRCurve, area, average_precision, best
from bsdsbench.scores.ratios import f_measure

MAX_SPLIT_FILES = 50


# ---- readings: the same counts, but a different rule for the score -------------------------------

AREAS = {  # AP rule -> programs that use it
    "bsds": "the BSDS500 and edges programs",
    "edter": "EDTER, UAED, MuGE, SAUGE",
    "endpoints": "plot-edge-pr-curves",
    "seism": "SEISM and multi-task learning (InvPT, ATRC)",
    "sbd": "the SBD programs, Area",
    "101-point": "the SBD programs, AP; COCO-style scripts",
}


def readings(
    run: PRCurve, images: PRCurve, whole: PRCurve
) -> Iterator[tuple[str, str, str, float]]:
    """Yield (measure, description, programs, value) for every rule in use.

    `run` is the curve of the run, `images` the stacked curves of its images, and `whole` the
    run's curve with the row of threshold 0.
    """
    f, who = images.f, "scikit-learn's average precision"
    yield "ods", "ODS at a threshold, not interpolated", "SEISM, skeval", best(run, "maximum").f
    yield "ods", "ODS interpolated between thresholds", "the BSDS500 programs", best(run).f
    yield "ods", "ODS as mean of the images' F", HOME_MADE, f.mean(axis=0).max()
    of_means = f_measure(images.precision.mean(axis=0), images.recall.mean(axis=0))
    yield "ods", "ODS as F of the images' mean P and R", HOME_MADE, of_means.max()
    yield "ois", "OIS as mean of the images' best F", HOME_MADE, f.max(axis=1).mean()
    for rule, programs in AREAS.items():
        yield "ap", f"AP rule {rule}", programs, float(average_precision(whole, rule))
    order = np.argsort(run.recall, kind="stable")
    p, r = run.precision[order], run.recall[order]
    envelope = largest_precision_from(p, r, RECALL_LEVELS).sum() * 0.01
    yield "ap", "AP of the envelope", HOME_MADE, envelope
    yield "ap", "AP as a step sum", who, auc_pr(p, r, rule="step")
    who = "numpy's and scikit-learn's auc"
    yield "ap", "AP as a trapezoid sum", who, auc_pr(p, r, rule="trapezoid")
    yield "ap", "AP as mean of the images' AP", HOME_MADE, area(images).mean()


def other_columns(
    metric: Metric, targets: Mapping[str, Any], scores: Mapping[str, float]
) -> Iterator[tuple[str, dict[str, float]]]:
    """Yield (description, scores by target) with targets read off other columns.

    A column can replace another column of the same quantity, such as "mae_sum" for "mae_mean".
    """
    score_names = [score_name(f"{metric.name}.{target}") for target in targets]
    parts = {name.part if name else "" for name in score_names}
    part = parts.pop() if len(parts) == 1 else ""
    prefix = f"{part}." if part else ""
    columns = {prefix + c.key: c for c in metric.columns if c.quantity}
    if not targets.keys() <= columns.keys():
        return
    keys_of_form: dict[str, dict[str, str]] = {}  # "_sum" -> quantity -> key
    for key, column in columns.items():
        form = key.replace(column.quantity, "", 1)
        keys_of_form.setdefault(form, {}).setdefault(column.quantity, key)
    for key_of_quantity in keys_of_form.values():
        keys = {t: key_of_quantity.get(columns[t].quantity, "") for t in targets}
        if all(key in scores for key in keys.values()):
            description = ", ".join(columns[key].heading for key in keys.values())
            yield description, {t: scores[key] for t, key in keys.items()}


# ---- settings: images are counted again ----------------------------------------------------------


@dataclass(frozen=True, slots=True, eq=False)
class CountingChange:
    """A different way to count images; two changes of the same kind exclude each other.

    label : the change in words
    who : the programs that do so
    changes : changed fields of the protocol, applied one after the other
    how : "first" (only the first annotator of an image), "union" (all annotators drawn into one
        map), "1toN" (many-to-one matching)
    n_causes : 2 for a pair of changes
    """

    kind: str
    label: str
    who: str
    changes: tuple[Mapping[str, Any], ...] = ()
    how: tuple[str, ...] = ()
    n_causes: int = 1

    @property
    def fields(self) -> set[str]:
        """The changed fields of the protocol."""
        return {name for change in self.changes for name in change}

    def on(self, protocol: Protocol) -> Protocol:
        """Return a protocol with the changes applied."""
        for change in self.changes:
            protocol = protocol.replace(**change)
        return protocol

    def differs(self, protocol: Protocol, metric: Metric) -> bool:
        """Tell whether the change makes a difference to a run under this protocol."""
        try:
            after = self.on(protocol)
            metric.options_of(after)
        except ProtocolError:  # the change contradicts other options
            return False
        plain = [Signature(evolve(p, name="any", options={})) for p in (protocol, after)]
        return (
            bool(self.how)
            or metric.options_of(protocol) != metric.options_of(after)
            or any(d.severity is not Severity.IGNORED for d in plain[0].differences(plain[1]))
        )

    def truth(self, gt: GroundTruth) -> GroundTruth:
        """Return the ground truth with the annotators that count."""
        if "first" in self.how:
            drawings = gt.parts.keys() & {"boundaries", "segmentations"}
            return gt.replace(**{name: gt.parts[name][:1] for name in drawings})
        if "union" in self.how:
            drawn = np.logical_or.reduce(gt.boundaries)
            return gt.replace(boundaries=(drawn,), segmentations=None)
        return gt

    def with_other(self, other: CountingChange) -> CountingChange | None:
        """Combine two changes, or return None if they exclude each other."""
        if self.kind == other.kind or (self.fields & other.fields) - {"options"}:
            return None
        kind, label = f"{self.kind} + {other.kind}", f"{self.label} + {other.label}"
        both = other.changes + self.changes, self.how + other.how
        return CountingChange(kind, label, f"{self.who}; {other.who}", *both, n_causes=2)


def counting_changes(metric: Metric) -> Iterator[CountingChange]:
    """Yield every change in use for a metric, the most frequent ones first."""
    for name, value, who in in_use(metric.options, metric.name) if metric.options else ():
        text = ", ".join(map(str, value)) if isinstance(value, tuple) else value
        key = f"{metric.name}.{name}"
        chosen = {"options": {metric.name: {name: value}}}
        yield CountingChange(key, f"{key} {text}", who, (chosen,))
    if metric.name == registry.DEFAULT_METRICS[0]:
        who = f"{HOME_MADE} with a distance transform"
        yield CountingChange("matching", "many-to-one matching", who, how=("1toN",))
        label = "many-to-one matching of unthinned maps"
        yield CountingChange("matching", label, who, ({"thin": False},), ("1toN",))
    for name, value, who in in_use(Protocol, "protocol"):
        if name in metric.uses:
            changes = {name: value, **({"max_dist_px": None} if name == "max_dist" else {})}
            yield CountingChange(name, f"{name} {value}", who, (changes,))
    if "nms" in metric.uses:
        yield CountingChange(
            "nms", "no NMS", "maps that had it already, or never", ({"nms": False},)
        )
        names: dict[NMSParams, list[str]] = {}
        for name, recipe in RECIPES.items():
            names.setdefault(recipe, []).append(name)
        for recipe, known in names.items():
            label = f"NMS {known[0]} ({recipe.describe().partition(': ')[2]})"
            changes = {"nms": True, "nms_params": known[0]}
            yield CountingChange("nms", label, ", ".join(known), (changes,))
    if metric.reads == "annotators":
        who = "scripts that read one annotation"
        yield CountingChange("annotators", "the first annotator alone", who, how=("first",))
        yield CountingChange("annotators", "all annotators drawn into one map", who, how=("union",))


# ---- images --------------------------------------------------------------------------------------


def named_images(ids: Sequence[str], place: str | Path | None) -> dict[str, I8]:
    """Find the subsets of the images that have a name.

    A subset is a public set, or the images in a split file beside the ground truth (`place`).
    Returns description -> positions of the images in `ids`.
    """
    members_of = {name: list(images) for name, images in shipped_sets().items()}
    gt_dir = Path(place) if place else None
    if gt_dir and gt_dir.is_dir():
        for folder in (gt_dir, *gt_dir.parents[:2]):
            for path in sorted([*folder.glob("*.txt"), *folder.glob("*.lst")])[:MAX_SPLIT_FILES]:
                with suppress(DataError, OSError):
                    members_of.setdefault(f"the split file {path.name}", read_split(path))
    position = {image_id: k for k, image_id in enumerate(ids)}
    subsets: dict[bytes, tuple[str, I8]] = {}  # of equal subsets the first name
    for name, members in members_of.items():
        images = np.array(sorted({position[i] for i in members if i in position}), np.int64)
        if 0 < images.size < len(ids):
            subsets.setdefault(images.tobytes(), (f"the images of {name} only", images))
    return dict(subsets.values())
