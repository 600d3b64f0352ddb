"""The region benchmark as a metric: what it needs, its columns, its bootstrap, its files."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from io import StringIO
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from bsdsbench.loaders.inputs import GroundTruth, Prediction
from bsdsbench.loaders.labels import seg2bdry
from bsdsbench.loaders.official_txt import table_files
from bsdsbench.metrics.base import Metric, at_least_two
from bsdsbench.metrics.columns import Column
from bsdsbench.metrics.region.region_record import RegionCounts
from bsdsbench.metrics.region.scoring import (
    ADAPTED_RAND,
    ERRORS,
    SIMILAR_TO,
    MeasureScore,
    RegionScore,
    image_row,
    region_columns,
    region_result,
)
from bsdsbench.protocol.constants import ANNOTATED, MAPS
from bsdsbench.protocol.protocol import Protocol
from bsdsbench.scores.counts import ImageRecord, Stack
from bsdsbench.scores.ratios import Weights

F8 = NDArray[np.float64]


class RegionMetric(Metric):
    """Covering, PRI, VOI, objects and parts, and more: segmentations against segmentations."""

    name = "region"
    title = "Regions"
    version = 2
    counts_type = RegionCounts
    columns: ClassVar[tuple[Column, ...]] = (
        Column("covering.ods", "Covering ODS", "Cov. ODS"),
        Column("covering.ois", "Covering OIS", "Cov. OIS"),
        Column("covering.best", "Covering best", "Cov. best"),
        Column("pri.ods", "PRI ODS"),
        Column("pri.ois", "PRI OIS"),
        Column("voi.ods", "VOI ODS", lower=True),
        Column("voi.ois", "VOI OIS", lower=True),
        Column("fop.ods", "Fop ODS"),
        Column("fop.ois", "Fop OIS"),
        Column("fop.ap", "Fop AP"),
        Column("fop.summed", "Fop of sums", shown="never"),
        *(Column(f"pair_f.{k}", f"Pairs {k.upper()}", shown="never") for k in ("ods", "ois", "ap")),
        *(
            Column(f"{name}.{k}", f"{name} {k.upper()}", lower=True, shown="never")
            for name in ERRORS
            for k in ("ods", "ois")
        ),
        *(
            Column(
                f"similarities.{name}.{k}",
                f"1 - {SIMILAR_TO[name]} ({name}) {k.upper()}",
                shown="never",
            )
            for name in SIMILAR_TO
            for k in ("ods", "ois")
        ),
        *(
            Column(f"similarities.nvoi.{k}", f"nvoi {k.upper()}", shown="never")
            for k in ("ods", "ois")
        ),
        Column("n_images", "images", "n", digits=0, shown="own", score=False),
    )
    part_columns: ClassVar[tuple[Column, ...]] = (
        Column("ods", "ODS", score=False),
        Column("ods_threshold", "ODS threshold", "at", digits=3, score=False),
        Column("ois", "OIS", score=False),
    )
    image_columns: ClassVar[tuple[Column, ...]] = (
        Column("covering", "covering"),
        Column("pri", "PRI"),
        Column("voi", "VOI", lower=True),
    )

    uses = ("thresholds", *MAPS, *ANNOTATED, "regions_from_soft")

    def count(self, pred: Prediction, gt: GroundTruth, protocol: Protocol) -> RegionCounts:
        from bsdsbench.metrics.region.counting import region_counts

        return region_counts(pred, gt, protocol)

    def count_humans(self, gt: GroundTruth, protocol: Protocol) -> RegionCounts:
        from bsdsbench.metrics.region.counting import human_region_counts

        at_least_two(gt, len(gt.segmentations))
        return human_region_counts(gt)

    def scores(self, stack: Stack, weights: Weights, protocol: Protocol) -> dict[str, F8]:
        return region_columns(stack, weights)

    def result(
        self, values: Mapping[str, float], stack: Stack, ids: Sequence[str], protocol: Protocol
    ) -> RegionScore:
        return region_result(values, stack, ids)

    def image_values(self, counts: RegionCounts, protocol: Protocol) -> dict[str, float]:
        """Each measure's best, and its threshold."""
        return image_row(counts)

    def parts(self, score: RegionScore | ReportedRegions) -> Mapping[str, Any]:
        """The errors (0 is best), and beside them the similarities (1 is best) of SEISM.

        Rules of the adapted Rand error that print the same are one part, which names them. Official
        tables have none.
        """
        if isinstance(score, ReportedRegions):
            return {}
        names = {error: name for name, error in SIMILAR_TO.items()}
        found: dict[str, Any] = {}
        shown = _rules_shown(score.others)
        for error, value in score.others.items():
            if error in ADAPTED_RAND and error not in shown:
                continue
            found[shown.get(error, error)] = value
            if error in names:
                found[f"1 - {error} ({names[error]})"] = score.similarities[names[error]]
        return {**found, "nvoi": score.similarities["nvoi"]}

    def files(
        self, score: RegionScore, records: Sequence[ImageRecord], protocol: Protocol
    ) -> Iterator[tuple[str, str]]:
        yield from table_files(score.official_rows())
        yield "region_curves.csv", _csv(score.curves())

    def has_tables(self, tables: Mapping[str, Any]) -> bool:
        """True with eval_cover.txt or eval_RI_VOI.txt."""
        return "eval_cover.txt" in tables or "eval_RI_VOI.txt" in tables

    def reported(self, tables: Mapping[str, Any], run: str) -> ReportedRegions:
        """The scores of eval_cover.txt and eval_RI_VOI.txt."""
        found: dict[str, Any] = {}
        if "eval_cover.txt" in tables:
            _, ods, ois, best = tables["eval_cover.txt"][0].tolist()
            found["covering"] = {"ods": ods, "ois": ois, "best": best}
        if "eval_RI_VOI.txt" in tables:
            _, ri, ri_ois, _, voi, voi_ois = tables["eval_RI_VOI.txt"][0].tolist()
            found["pri"] = {"ods": ri, "ois": ri_ois}
            found["voi"] = {"ods": voi, "ois": voi_ois}
        return ReportedRegions(found, len(tables.get("eval_cover_img.txt", ())))

    def example(self) -> tuple[Prediction, GroundTruth, Protocol]:
        labels = np.ones((12, 16), np.int32)
        labels[:, 8:] = 2
        ucm2 = np.zeros((25, 33))
        ucm2[:, 16] = 0.4
        truth = GroundTruth("a", (seg2bdry(labels),), (labels,))
        return Prediction("a", ucm2=ucm2), truth, Protocol(thresholds=(0.25, 0.5))


def region_score(records: Iterable[ImageRecord]) -> RegionScore:
    """Score records that carry region counts, in any order.

    Parameters
    ----------
    records : sequence of ImageRecord
        One record per image.

    Returns
    -------
    RegionScore
        Covering, PRI, VOI and more.

    Raises
    ------
    DataError
        For no records, one without region counts, or different thresholds (sets of segmentations of
        unequal length).

    References
    ----------
    Source: collect_eval_reg.m; SEISM (see the module).

    Examples
    --------
    >>> import bsdsbench as bb
    >>> import numpy as np
    >>> truth, pred = np.array([[1, 1, 1, 2, 2, 2]]), np.array([[1, 1, 3, 3, 2, 2]])
    >>> counts = bb.region_counts(bb.Prediction("a", segs=(pred,)), [truth])
    >>> score = bb.region_score([bb.ImageRecord("a", truth.shape, {"region": counts})])
    >>> round(score.covering.ods, 3)
    0.667
    """
    found: RegionScore = RegionMetric().score(records, Protocol())
    return found


@dataclass(frozen=True, slots=True, eq=False)
class ReportedRegions:
    """Region scores known from official tables only."""

    values: dict[str, Any]
    n_images: int
    per_image: tuple[tuple[str, Any], ...] = ()

    def to_mapping(self) -> dict[str, Any]:
        """What the tables hold."""
        return dict(self.values)


def _csv(columns: Mapping[str, F8]) -> str:
    """A header of names, then a row per threshold."""
    out = StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows(zip(*(column.tolist() for column in columns.values()), strict=True))
    return out.getvalue()


def _rules_shown(others: Mapping[str, MeasureScore]) -> dict[str, str]:
    """The rules of the adapted Rand error that have a row, and its name: of those that print the
    same it is the first, under the names of all."""
    same: dict[str, list[str]] = {}
    for rule in ADAPTED_RAND:
        value = others[rule]
        printed = f"{value.ods:.4f} {value.ods_threshold:.4f} {value.ois:.4f}"
        same.setdefault(printed, []).append(rule)
    agree = {rules[0]: ", ".join(r.removeprefix("are_") for r in rules) for rules in same.values()}
    return {rule: f"are ({who})" if ", " in who else rule for rule, who in agree.items()}
