"""The region benchmark: covering, PRI, VOI, objects and parts, and more.

Official rules (collect_eval_reg.m), T thresholds:

- Covering: sums of covered and total area over images. ODS: the best single threshold, the first of
  ties. OIS: each image at its best threshold, the last of ties. Best: every annotated region with
  its best over all thresholds.
- PRI and VOI: means over images. ODS: the best of the mean curve, the first of ties. OIS: the mean
  of each image's best.

SEISM (PAMI 2016). Objects and parts, and pairs of pixels: per threshold the mean precision and the
mean recall over images, F of the means; ODS is its maximum, OIS the F of the means at each image's
threshold of best F, both the first of ties. AP: precision at 101 recall levels, outside ignored.
Humans: the published agreement (precision .6724, recall .4739) is a mean over left-out annotators
as well; sums of counts give less, as annotators with many regions agree less. `fop.summed` has it.
The other measures: means over images, ODS and OIS as for VOI; distances as a share of the image.
`similarities` are 1 - error under SEISM's names, and its normalised VOI. VOI split and merge are
taken at the thresholds that are best in VOI, so that they sum to its ODS and OIS: each alone is
least at an end of the grid. A measure that always falls or rises with the threshold has its ODS at
the end of the grid, which says nothing of the method: `at_grid_end`.
Sums run in the order of the image ids.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from bsdsbench.arguments import F8
from bsdsbench.images import GroundTruth, Map, Prediction
from bsdsbench.loaders.formats.official_txt import format_rows
from bsdsbench.metrics.base import IMAGES, Column, Metric, Texts, Tree, at_least_two
from bsdsbench.protocol.protocol import ANNOTATED, MAPS, Protocol
from bsdsbench.scores.counts import Counts, ImageRecord, Score, Stack
from bsdsbench.scores.curve import PRCurve, average_precision, best
from bsdsbench.scores.ratios import Weights, f_measure, ratio, weighted_mean, weighted_sum

ADAPTED_RAND = ("are_region", "are_skimage", "are_cremi")
# Errors, 0 is best, and beside them the name under which SEISM prints 1 - error.
ERRORS = {
    **{"bgm": "bgm", "hamming_gt": "dhd", "hamming_pred": "sdhd", "van_dongen": "vd", "bce": "bce"},
    **{"gce": "gce", "lce": "lce"},
    **dict.fromkeys(("voi_per_log_area", "voi_split", "voi_merge", *ADAPTED_RAND), ""),
}
SIMILAR_TO = {name: error for error, name in ERRORS.items() if name}
SIMILARITIES = {**{s: f"1 - {error} ({s})" for s, error in SIMILAR_TO.items()}, "nvoi": "nvoi"}
MEANS = ("pri", "voi", "bce", "gce", "lce", "nvoi", "voi_split", "voi_merge", *ADAPTED_RAND)
# Of humans these are means over the left-out annotators, where the others are sums.
_RATIOS = (*MEANS, "fop_precision", "fop_recall", "pair_precision", "pair_recall")


def image_curves(c: Stack) -> dict[str, F8]:
    """Every measure that is a mean over images: its value in each image, (N, T)."""
    found = {name: c[name] for name in MEANS}
    found |= {name: ratio(c[name], c["total_gt"]) for name in ("bgm", "hamming_gt", "hamming_pred")}
    found["van_dongen"] = ratio(c["hamming_gt"] + c["hamming_pred"], 2 * c["total_gt"])
    # In [0, 1]; 0 for a single pixel. Source: Meila 2007.
    found["voi_per_log_area"] = ratio(c["voi"], np.log2(c["n_pixels"])[:, None])
    return found


class RegionMetric(Metric):
    """Covering, PRI, VOI, objects and parts, and more: segmentations against segmentations.

    Scores: `covering`, `pri`, `voi` and each of `ERRORS` with ods, ods_threshold, ois, curve (and
    covering.best); `fop` and `pair_f`, objects and parts and pairs of pixels, with ap, ods_recall,
    ods_precision too; `similarities` by SEISM's names.
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
        Column("ods_threshold", "ODS threshold", "at", digits=3, score=False),
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

    def count_humans(self, gt: GroundTruth, protocol: Protocol, opt: None) -> Tree:
        """Each annotator's segmentation against the others', at the one threshold 1.

        Areas and counts are summed over the left-out annotators, ratios are means over them.
        """
        from bsdsbench.metrics.region.counting import region_counts

        maps = gt.segmentations
        at_least_two(gt, len(maps))
        rows = [region_counts(one, maps[:k] + maps[k + 1 :]) for k, one in enumerate(maps)]
        sums: dict[str, Any] = {name: np.sum([r[name] for r in rows], axis=0) for name in rows[0]}
        means = {name: sums[name] / len(rows) for name in _RATIOS}
        return {**sums, **means, "thresholds": np.ones(1), "n_pixels": rows[0]["n_pixels"]}

    def scores(self, stack: Stack, weights: Weights, protocol: Protocol, opt: None) -> Tree:
        c, t = stack, stack["thresholds"]
        samples, images = np.arange(len(weights)), np.arange(len(c["pri"]))

        def of_sums(top: F8, bottom: Map) -> F8:
            return ratio(weighted_sum(weights, top), weighted_sum(weights, bottom))

        curve = of_sums(c["covered_gt"], c["total_gt"])
        at = curve.argmax(axis=1)
        share = ratio(c["covered_gt"], c["total_gt"])
        last_best = t.size - 1 - share[:, ::-1].argmax(axis=1)
        found: dict[str, Any] = {
            "covering": {
                "ods": curve[samples, at],
                "ods_threshold": t[at],
                "ois": of_sums(c["covered_gt"][images, last_best], c["total_gt"][:, 0]),
                "best": of_sums(c["best_covered_gt"], c["total_gt"][:, 0]),
                "curve": curve,
            }
        }

        def measure(values: F8, highest: bool, by: F8 | None = None) -> dict[str, F8]:
            """A mean over images, at the thresholds where `by`, by default itself, is best."""
            first_best = np.argmax if highest else np.argmin
            by = values if by is None else by
            mean, deciding = (weighted_mean(weights, v) for v in (values, by))
            at = first_best(deciding, axis=1)
            top = deciding[samples, at]
            own = values[images, first_best(by, axis=1)]
            ends = (top == deciding[:, 0]) | (top == deciding[:, -1])
            return {
                "ods": mean[samples, at],
                "ods_threshold": t[at],
                "ois": weighted_mean(weights, own),
                "at_grid_end": ends & (t.size > 1),
                "curve": mean,
            }

        each = image_curves(c)
        found["pri"] = measure(each["pri"], True)
        found["voi"] = measure(each["voi"], False)
        # F of mean precision and mean recall: at one threshold, at each image's best
        for name, kind in (("fop", "fop"), ("pair_f", "pair")):
            shares = c[f"{kind}_precision"], c[f"{kind}_recall"]
            best_f = images, f_measure(*shares).argmax(axis=1)
            precision, recall = (weighted_mean(weights, share) for share in shares)
            mean = PRCurve(t, precision, recall)
            ods = best(mean, "maximum")
            found[name] = {
                "ods": ods.f,
                "ois": f_measure(*(weighted_mean(weights, share[best_f]) for share in shares)),
                "ap": average_precision(mean),
                "ods_threshold": ods.threshold,
                "ods_recall": ods.recall,
                "ods_precision": ods.precision,
                "curve": mean,
            }
        precision = of_sums(c["fop_pred"], c["fop_pred_candidates"])
        recall = of_sums(c["fop_gt"], c["fop_gt_candidates"])
        found["fop"]["summed"] = f_measure(precision, recall).max(axis=1)
        for name in ERRORS:
            by = each["voi"] if name in ("voi_split", "voi_merge") else None
            found[name] = measure(each[name], False, by)
        found["similarities"] = {
            "nvoi": measure(each["nvoi"], True),
            **{seism: measure(1 - each[error], True) for seism, error in SIMILAR_TO.items()},
        }
        return found

    def parts(self, protocol: Protocol, opt: None) -> dict[str, tuple[str, ...]]:
        """The errors (0 is best), and beside them the similarities (1 is best) of SEISM."""
        found: dict[str, tuple[str, ...]] = {}
        for error, name in ERRORS.items():
            found[error] = (error,)
            if name:
                found[SIMILARITIES[name]] = ("similarities", name)
        return {**found, "nvoi": ("similarities", "nvoi")}

    def files(
        self, score: Score, ids: Sequence[str], stack: Stack, protocol: Protocol, opt: None
    ) -> Texts:
        """The five official tables, and every measure at each threshold."""
        cover, pri, voi, t = score.covering, score.pri, score.voi, stack["thresholds"]
        own = ratio(stack["covered_gt"], stack["total_gt"])
        at, rows = own.argmax(axis=1), np.arange(len(ids))
        found = ratio(stack["covered_pred"], stack["total_pred"])[rows, at]
        tables = {
            "eval_cover.txt": [(cover.ods_threshold, cover.ods, cover.ois, cover.best)],
            "eval_cover_th.txt": np.column_stack([t, cover.curve]),
            "eval_cover_img.txt": np.column_stack([rows + 1, t[at], own[rows, at], found]),
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
        """The scores of eval_cover.txt and eval_RI_VOI.txt."""
        found = {}
        if "eval_cover.txt" in tables:
            _, ods, ois, most = tables["eval_cover.txt"][0].tolist()
            found["covering"] = {"ods": ods, "ois": ois, "best": most}
        if "eval_RI_VOI.txt" in tables:
            _, ri, ri_ois, _, voi, voi_ois = tables["eval_RI_VOI.txt"][0].tolist()
            found["pri"] = {"ods": ri, "ois": ri_ois}
            found["voi"] = {"ods": voi, "ois": voi_ois}
        return {**found, "n_images": len(tables.get("eval_cover_img.txt", ()))} if found else None


def region_score(records: Sequence[ImageRecord]) -> Score:
    """Score records that carry region counts, in any order. Source: collect_eval_reg.m; SEISM.

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
        For no records, one without region counts, or different thresholds (sets of segmentations of
        unequal length).

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
