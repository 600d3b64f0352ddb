"""The region benchmark as a metric: what it needs, its columns, its bootstrap, its files."""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from io import StringIO
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from bsdsbench.loaders.inputs import GroundTruth, Prediction
from bsdsbench.loaders.labels import seg2bdry
from bsdsbench.loaders.official_txt import table_files
from bsdsbench.metrics.base import Column, Metric, at_least_two
from bsdsbench.metrics.region.region_record import RegionCounts
from bsdsbench.metrics.region.scoring import (
    ERRORS,
    SIMILAR_TO,
    VOI_PARTS,
    RegionScore,
    fop_curve,
    image_row,
    region_score,
)
from bsdsbench.metrics.sampling import defined_areas, official_areas
from bsdsbench.protocol.protocol import Protocol
from bsdsbench.scores.counts import ImageRecord
from bsdsbench.scores.precision_recall import f_measure, ratio

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

    def count(self, pred: Prediction, gt: GroundTruth, protocol: Protocol) -> RegionCounts:
        """See `region_counts`."""
        from bsdsbench.metrics.region.counting import region_counts

        return region_counts(pred, gt, protocol)

    def count_humans(self, gt: GroundTruth, protocol: Protocol) -> RegionCounts:
        """See `human_region_counts`."""
        from bsdsbench.metrics.region.counting import human_region_counts

        at_least_two(gt, len(gt.segmentations))
        return human_region_counts(gt)

    def score(self, records: Iterable[ImageRecord], protocol: Protocol) -> RegionScore:
        """See `region_score`."""
        return region_score(records)

    def image_values(self, counts: RegionCounts) -> dict[str, float]:
        """Each measure's best, and its threshold."""
        return image_row(counts)

    def sampler(self, records: Sequence[ImageRecord], protocol: Protocol) -> RegionSampler:
        """Covering, PRI, VOI, objects and parts, and every error."""
        return RegionSampler([r.counts[self.name] for r in records])

    def parts(self, score: RegionScore | ReportedRegions) -> Mapping[str, Any]:
        """The errors (0 is best), and beside them the similarities (1 is best) of SEISM.

        Official tables have none.
        """
        if isinstance(score, ReportedRegions):
            return {}
        names = {error: name for name, error in SIMILAR_TO.items()}
        found: dict[str, Any] = {}
        for error, value in score.others.items():
            found[error] = value
            if error in names:
                found[f"1 - {error} ({names[error]})"] = score.similarities[names[error]]
        return {**found, "nvoi": score.similarities["nvoi"]}

    def files(
        self, score: RegionScore, records: Sequence[ImageRecord], protocol: Protocol
    ) -> Iterator[tuple[str, str]]:
        """The official tables, and every measure at each threshold."""
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
        """Two halves."""
        labels = np.ones((12, 16), np.int32)
        labels[:, 8:] = 2
        ucm2 = np.zeros((25, 33))
        ucm2[:, 16] = 0.4
        truth = GroundTruth("a", (seg2bdry(labels),), (labels,))
        return Prediction("a", ucm2=ucm2), truth, Protocol(thresholds=(0.25, 0.5))


@dataclass(frozen=True, slots=True, eq=False)
class ReportedRegions:
    """Region scores known from official tables only."""

    values: dict[str, Any]
    n_images: int
    per_image: tuple[tuple[str, Any], ...] = ()

    def to_mapping(self) -> dict[str, Any]:
        """What the tables hold."""
        return dict(self.values)


class RegionSampler:
    """Region scores: covering (ods, ois, best), pri and voi (ods, ois), fop (ods, ois, ap), and ods
    and ois of the errors and similarities.

    The sums are of floats here, so a score may differ from `region_score` in its last bits.
    """

    def __init__(self, counts: Sequence[Any]) -> None:
        self.covered = _stack(counts, lambda c: c.covered_gt)
        self.total = _stack(counts, lambda c: c.total_gt)
        share = ratio(self.covered, self.total)
        self.covered_best = self.covered[np.arange(len(counts)), share.argmax(axis=1)]
        self.every_best = np.array([float(c.best_covered_gt) for c in counts])
        self.pri = _stack(counts, lambda c: c.pri)
        self.voi = _stack(counts, lambda c: c.voi)
        curves = [fop_curve(c) for c in counts]
        self.fop = np.stack(
            [_stack(curves, lambda c: c.precision), _stack(curves, lambda c: c.recall)]
        )
        self.errors = {name: _stack(counts, value) for name, value in ERRORS.items()}
        self.nvoi = _stack(counts, lambda c: c.nvoi)
        self.fop_best = self.fop[:, np.arange(len(counts)), [int(np.argmax(c.f)) for c in curves]]

    def scores(self, weights: F8) -> dict[str, F8]:
        """Score name -> (B,)."""
        n = weights.sum(axis=1)
        total = weights @ self.total
        precision, recall = (weights @ table / n[:, None] for table in self.fop)
        p_ois, r_ois = (weights @ best / n for best in self.fop_best)
        return {
            "covering.ods": ratio(weights @ self.covered, total).max(axis=1),
            "covering.ois": ratio(weights @ self.covered_best, total[:, 0]),
            "covering.best": ratio(weights @ self.every_best, total[:, 0]),
            "pri.ods": (weights @ self.pri / n[:, None]).max(axis=1),
            "pri.ois": weights @ self.pri.max(axis=1) / n,
            "voi.ods": (weights @ self.voi / n[:, None]).min(axis=1),
            "voi.ois": weights @ self.voi.min(axis=1) / n,
            "fop.ods": f_measure(precision, recall).max(axis=1),
            "fop.ois": f_measure(p_ois, r_ois),
            "fop.ap": defined_areas(recall, official_areas(precision, recall)),
            **self._others(weights, n),
        }

    def _others(self, weights: F8, n: F8) -> dict[str, F8]:
        """Errors and similarities; VOI's parts at the thresholds of VOI."""
        images, samples = np.arange(self.voi.shape[0]), np.arange(n.size)
        out: dict[str, F8] = {}
        for name, values in self.errors.items():
            sums = weights @ values
            by, by_image = sums, values
            if name in VOI_PARTS:
                by, by_image = weights @ self.voi, self.voi
            out[f"{name}.ods"] = sums[samples, by.argmin(axis=1)] / n
            out[f"{name}.ois"] = weights @ values[images, by_image.argmin(axis=1)] / n
        for name, error in SIMILAR_TO.items():
            for k in ("ods", "ois"):
                out[f"similarities.{name}.{k}"] = 1 - out[f"{error}.{k}"]
        out["similarities.nvoi.ods"] = (weights @ self.nvoi / n[:, None]).max(axis=1)
        out["similarities.nvoi.ois"] = weights @ self.nvoi.max(axis=1) / n
        return out


def _stack(items: Sequence[Any], value: Callable[[Any], F8]) -> F8:
    return np.stack([value(c) for c in items]).astype(np.float64)


def _csv(columns: Mapping[str, F8]) -> str:
    """A header of names, then a row per threshold."""
    out = StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows(zip(*(column.tolist() for column in columns.values()), strict=True))
    return out.getvalue()
