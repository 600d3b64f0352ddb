"""Regions: how well does a segmentation agree with the annotated ones?

Definition. Covering, PRI, VOI, objects and parts, and more; `region.counting` defines each for one
image. For T thresholds the official rules (collect_eval_reg.m) are:

- covering: sums of covered and of total area over images. ODS uses the best single threshold (the
  first if several are equal), OIS each image's best threshold (the last if several are equal). Best
  covers each annotated region by the best region of any threshold.
- PRI and VOI: means over images. ODS is the best value of the mean curve (at the first if several
  are equal), OIS the mean of each image's best value.

The rules of SEISM are: objects and parts, and pairs of pixels, have a mean precision and a mean
recall over images at each threshold, and F of these means. ODS is the largest F; OIS is F of the
means at each image's best threshold (the first if several are equal). AP is the mean precision at
101 recall levels, without levels that the curve does not reach.

Conventions. All other measures are means over images, with ODS and OIS as for VOI; distances are
shares of the image. `similarities` are 1 - error under SEISM's names, and its normalised VOI. VOI
split and merge are taken at the thresholds that are best in VOI, so that they add up to its ODS and
OIS: alone, each would be least at an end of the thresholds. A measure that only falls or only rises
with the threshold has its ODS at an end of the thresholds, which says nothing about the method;
`at_grid_end` marks it. The published human agreement (precision 0.6724, recall 0.4739) is a mean
over left-out annotators; sums of counts, in `fop.summed`, give less, as annotators with many
regions agree less. Sums run in the order of the image ids.

Source. Arbelaez et al., PAMI 2011, and collect_eval_reg.m; Unnikrishnan et al., PAMI 2007 (PRI);
Meila, 2007 (VOI); Pont-Tuset and Marques, PAMI 2016, and SEISM.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from bsdsbench.arguments import F8
from bsdsbench.images import GroundTruth, Map, Prediction
from bsdsbench.loaders.formats.official_txt import format_rows
from bsdsbench.metrics.base import IMAGES, Arrays, Column, Metric, ScoreTree, Texts, at_least_two
from bsdsbench.protocol.protocol import ANNOTATED, MAPS, Protocol
from bsdsbench.scores.counts import Counts, ImageRecord, Score, Stack
from bsdsbench.scores.curve import PRCurve, average_precision, best
from bsdsbench.scores.ratios import Weights, f_measure, ratio, weighted_mean, weighted_sum

ADAPTED_RAND = ("are_region", "are_skimage", "are_cremi")
# Error (0 is best) -> the name under which SEISM prints 1 - error, or ""
ERRORS = {
    **{"bgm": "bgm", "hamming_gt": "dhd", "hamming_pred": "sdhd", "van_dongen": "vd", "bce": "bce"},
    **{"gce": "gce", "lce": "lce"},
    **dict.fromkeys(("voi_per_log_area", "voi_split", "voi_merge", *ADAPTED_RAND), ""),
}
SIMILAR_TO = {name: error for error, name in ERRORS.items() if name}
SIMILARITIES = {**{s: f"1 - {error} ({s})" for s, error in SIMILAR_TO.items()}, "nvoi": "nvoi"}
MEANS = ("pri", "voi", "bce", "gce", "lce", "nvoi", "voi_split", "voi_merge", *ADAPTED_RAND)
# For humans these are means over left-out annotators; all other counts are sums.
_RATIOS = (*MEANS, "fop_precision", "fop_recall", "pair_precision", "pair_recall")


def _image_curves(c: Stack) -> dict[str, F8]:
    """Compute the per-image values, (N, T), of every measure that is averaged over images."""
    curves = {name: c[name] for name in MEANS}
    curves |= {
        name: ratio(c[name], c["total_gt"]) for name in ("bgm", "hamming_gt", "hamming_pred")
    }
    curves["van_dongen"] = ratio(c["hamming_gt"] + c["hamming_pred"], 2 * c["total_gt"])
    # In [0, 1]; 0 for a single pixel. Source: Meila 2007.
    curves["voi_per_log_area"] = ratio(c["voi"], np.log2(c["n_pixels"])[:, None])
    return curves


def _mean_scores(
    weights: Weights, thresholds: F8, values: F8, highest: bool, by: F8 | None = None
) -> dict[str, F8]:
    """Average values (N, T) over images at the best threshold of the mean, and of each image.

    Thresholds are best by `by` (N, T), by default the values themselves; `highest` says whether the
    largest or the smallest value is best.
    """
    first_best = np.argmax if highest else np.argmin
    by = values if by is None else by
    mean, deciding = (weighted_mean(weights, v) for v in (values, by))
    best_step = np.arange(len(mean)), first_best(deciding, axis=1)
    top = deciding[best_step]
    of_images = values[np.arange(len(values)), first_best(by, axis=1)]
    ends = (top == deciding[:, 0]) | (top == deciding[:, -1])
    return {
        "ods": mean[best_step],
        "ods_threshold": thresholds[best_step[1]],
        "ois": weighted_mean(weights, of_images),
        "at_grid_end": ends & (thresholds.size > 1),
        "curve": mean,
    }


def _f_scores(weights: Weights, thresholds: F8, precision: F8, recall: F8) -> ScoreTree:
    """Compute ODS, OIS and AP from precision and recall (N, T) of N images, by SEISM's rules."""
    best_f = np.arange(len(recall)), f_measure(precision, recall).argmax(axis=1)
    at_best = (weighted_mean(weights, share[best_f]) for share in (precision, recall))
    means = [weighted_mean(weights, share) for share in (precision, recall)]
    mean = PRCurve(thresholds, means[0], means[1])
    ods = best(mean, "maximum")
    return {
        "ods": np.asarray(ods.f),
        "ois": f_measure(*at_best),
        "ap": average_precision(mean),
        "ods_threshold": np.asarray(ods.threshold),
        "ods_recall": np.asarray(ods.recall),
        "ods_precision": np.asarray(ods.precision),
        "curve": mean,
    }


class RegionMetric(Metric[None]):
    """Covering, PRI, VOI, objects and parts, and more: segmentations against segmentations.

    `covering`, `pri`, `voi` and each of `ERRORS` have ods, ods_threshold, ois and curve; covering
    has best too. `fop` (objects and parts) and `pair_f` (pairs of pixels) also have ap, ods_recall
    and ods_precision. `similarities` has SEISM's names.
    """

    name = "region"
    title = "Regions"
    segmentations = True
    version = 2
    columns = (
        Column("covering.ods", "Covering ODS", "Cov. ODS"),
        Column("covering.ois", "Covering OIS", "Cov. OIS"),
        Column("covering.best", "Covering best", "Cov. best"),
        *(
            Column(f"{key}.{k}", f"{words} {k.upper()}", lower=key == "voi")
            for key, words in (("pri", "PRI"), ("voi", "VOI"), ("fop", "Fop"))
            for k in ("ods", "ois")
        ),
        Column("fop.ap", "Fop AP"),
        Column("fop.summed", "Fop of sums", shown="never"),
        *(Column(f"pair_f.{k}", f"Pairs {k.upper()}", shown="never") for k in ("ods", "ois", "ap")),
        *(
            Column(f"{name}.{k}", f"{name} {k.upper()}", lower=True, shown="never")
            for name in ERRORS
            for k in ("ods", "ois")
        ),
        *(
            Column(f"similarities.{name}.{k}", f"{title} {k.upper()}", shown="never")
            for name, title in SIMILARITIES.items()
            for k in ("ods", "ois")
        ),
        IMAGES,
    )
    part_columns = (
        Column("ods", "ODS", score=False),
        Column("ods_threshold", "ODS threshold", "threshold", digits=3, score=False),
        Column("ois", "OIS", score=False),
    )
    image_columns = (
        Column("covering.ods", "covering"),
        Column("pri.ods", "PRI"),
        Column("voi.ods", "VOI", lower=True),
    )
    uses = ("thresholds", *MAPS, *ANNOTATED, "regions_from_soft")
    cuts_at_thresholds = True

    def count(self, pred: Prediction, gt: GroundTruth, protocol: Protocol, opt: None) -> Counts:
        from bsdsbench.metrics.region.counting import region_counts

        return region_counts(pred, gt, protocol)

    def count_humans(self, gt: GroundTruth, protocol: Protocol, opt: None) -> Arrays:
        """Count each annotator's segmentation against all others, as a single threshold, 1.

        Areas and counts are summed over the left-out annotators, ratios are averaged.
        """
        from bsdsbench.metrics.region.counting import region_counts

        maps = gt.segmentations
        at_least_two(gt, len(maps))
        rows = [
            region_counts(left_out, maps[:k] + maps[k + 1 :]) for k, left_out in enumerate(maps)
        ]
        sums: dict[str, Any] = {name: np.sum([r[name] for r in rows], axis=0) for name in rows[0]}
        means = {name: sums[name] / len(rows) for name in _RATIOS}
        return {**sums, **means, "thresholds": np.ones(1), "n_pixels": rows[0]["n_pixels"]}

    def scores(self, stack: Stack, weights: Weights, protocol: Protocol, opt: None) -> ScoreTree:
        c, t = stack, stack["thresholds"]
        samples, images = np.arange(len(weights)), np.arange(len(c["pri"]))

        def of_sums(top: F8, bottom: Map) -> F8:
            return ratio(weighted_sum(weights, top), weighted_sum(weights, bottom))

        curve = of_sums(c["covered_gt"], c["total_gt"])
        best_step = curve.argmax(axis=1)
        share = ratio(c["covered_gt"], c["total_gt"])
        last_best = t.size - 1 - share[:, ::-1].argmax(axis=1)
        scores: dict[str, Any] = {
            "covering": {
                "ods": curve[samples, best_step],
                "ods_threshold": t[best_step],
                "ois": of_sums(c["covered_gt"][images, last_best], c["total_gt"][:, 0]),
                "best": of_sums(c["best_covered_gt"], c["total_gt"][:, 0]),
                "curve": curve,
            }
        }

        measure = partial(_mean_scores, weights, t)
        curves = _image_curves(c)
        scores["pri"] = measure(curves["pri"], True)
        scores["voi"] = measure(curves["voi"], False)
        for name, kind in (("fop", "fop"), ("pair_f", "pair")):
            shares = c[f"{kind}_precision"], c[f"{kind}_recall"]
            scores[name] = _f_scores(weights, t, *shares)
        precision = of_sums(c["fop_pred"], c["fop_pred_candidates"])
        recall = of_sums(c["fop_gt"], c["fop_gt_candidates"])
        summed = f_measure(precision, recall).max(axis=1)
        scores["fop"] = {**scores["fop"], "summed": summed}
        for name in ERRORS:
            by = curves["voi"] if name in ("voi_split", "voi_merge") else None
            scores[name] = measure(curves[name], False, by)
        scores["similarities"] = {
            "nvoi": measure(curves["nvoi"], True),
            **{seism: measure(1 - curves[error], True) for seism, error in SIMILAR_TO.items()},
        }
        return scores

    def parts(self, protocol: Protocol, opt: None) -> dict[str, tuple[str, ...]]:
        """Return the errors (0 is best), each followed by SEISM's similarity (1 is best)."""
        paths: dict[str, tuple[str, ...]] = {}
        for error, name in ERRORS.items():
            paths[error] = (error,)
            if name:
                paths[SIMILARITIES[name]] = ("similarities", name)
        return {**paths, "nvoi": ("similarities", "nvoi")}

    def files(
        self, score: Score, ids: Sequence[str], stack: Stack, protocol: Protocol, opt: None
    ) -> Texts:
        """Yield the five official tables, and every measure at each threshold."""
        cover, pri, voi, t = score.covering, score.pri, score.voi, stack["thresholds"]
        covering = ratio(stack["covered_gt"], stack["total_gt"])
        best_step, rows = covering.argmax(axis=1), np.arange(len(ids))
        covering_pred = ratio(stack["covered_pred"], stack["total_pred"])[rows, best_step]
        tables = {
            "eval_cover.txt": [(cover.ods_threshold, cover.ods, cover.ois, cover.best)],
            "eval_cover_th.txt": np.column_stack([t, cover.curve]),
            "eval_cover_img.txt": np.column_stack(
                [rows + 1, t[best_step], covering[rows, best_step], covering_pred]
            ),
            "eval_RI_VOI.txt": [
                (pri.ods_threshold, pri.ods, pri.ois, voi.ods_threshold, voi.ods, voi.ois)
            ],
            "eval_RI_VOI_thr.txt": np.column_stack([t, pri.curve, voi.curve]),
        }
        for file, table in tables.items():
            yield file, format_rows(table)
        curves = {"thresholds": t, "covering": cover.curve, "pri": pri.curve, "voi": voi.curve}
        for name, curve in (("fop", score.fop.curve), ("pair", score.pair_f.curve)):
            curves |= {f"{name}_{k}": getattr(curve, k) for k in ("precision", "recall", "f")}
        curves |= {name: score[name].curve for name in ERRORS}
        rows = np.column_stack([*curves.values()]).tolist()
        lines = [",".join(curves), *(",".join(map(str, row)) for row in rows), ""]
        yield "region_curves.csv", "\n".join(lines)

    def reported(self, tables: Mapping[str, Any]) -> dict[str, Any] | None:
        """Parse the region scores that the official program wrote.

        `tables` maps file names to arrays. Returns None if neither file is among them.
        """
        scores = {}
        if "eval_cover.txt" in tables:
            # columns: threshold, ODS, OIS, best
            _, ods, ois, best_cover = tables["eval_cover.txt"][0].tolist()
            scores["covering"] = {"ods": ods, "ois": ois, "best": best_cover}
        if "eval_RI_VOI.txt" in tables:
            # columns: threshold, ODS, OIS of PRI; threshold, ODS, OIS of VOI
            _, pri, pri_ois, _, voi, voi_ois = tables["eval_RI_VOI.txt"][0].tolist()
            scores["pri"] = {"ods": pri, "ois": pri_ois}
            scores["voi"] = {"ods": voi, "ois": voi_ois}
        return {**scores, "n_images": len(tables.get("eval_cover_img.txt", ()))} if scores else None


def region_score(records: Sequence[ImageRecord]) -> Score:
    """Compute the region scores of records with region counts, given in any order.

    Source: collect_eval_reg.m; SEISM.

    Parameters
    ----------
    records : sequence of ImageRecord
        One record per image.

    Returns
    -------
    Score
        Covering, PRI, VOI and more, see `RegionMetric`.

    Raises
    ------
    DataError
        If there are no records, a record lacks region counts, or the thresholds differ (sets of
        segmentations of unequal length).

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
    return RegionMetric().score(records, Protocol())
