"""Regions: how well does a segmentation agree with the annotated ones?

Definition. `region.counting` defines the measures of one image; docs/metrics/region.md lists other
programs that compute them. Covering, PRI and VOI follow the official collect_eval_reg.m: ODS is the
best value at one threshold for all images, OIS uses the best threshold of each image. Objects and
parts, and pixel pairs, follow SEISM: precision and recall are averaged over images before F.

Conventions. All other measures are means over images, with ODS and OIS as for VOI. Distances are
divided by the image area. The ODS of a measure that is monotonic in the threshold is at an end of
the threshold range and says nothing about the method; `at_grid_end` marks such values.

Source. Arbelaez et al., PAMI 2011, and collect_eval_reg.m; Unnikrishnan et al., PAMI 2007 (PRI);
Meila, 2007 (VOI); Pont-Tuset and Marques, PAMI 2016, and SEISM.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from bsdsbench.arguments import Floats
from bsdsbench.images import GroundTruth, Prediction
from bsdsbench.loaders.formats.official_txt import format_rows
from bsdsbench.metrics.base import IMAGES, Arrays, Column, Metric, ScoreTree, Symptoms, Texts
from bsdsbench.protocol.protocol import ANNOTATED, MAPS, Protocol
from bsdsbench.scores.counts import Counts, Score, Stack
from bsdsbench.scores.curve import PRCurve, average_precision, best
from bsdsbench.scores.ratios import Weights, f_measure, ratio, weighted_mean, weighted_sum

ADAPTED_RAND = ("are_region", "are_skimage", "are_cremi")
# Error (0 is best) -> SEISM's name for 1 - error, or "" if it has none
ERRORS = {
    "bgm": "bgm",
    "hamming_gt": "dhd",
    "hamming_pred": "sdhd",
    "van_dongen": "vd",
    "bce": "bce",
    "gce": "gce",
    "lce": "lce",
    **dict.fromkeys(("voi_per_log_area", "voi_split", "voi_merge", *ADAPTED_RAND), ""),
}
ERROR_OF_SIMILARITY = {name: error for error, name in ERRORS.items() if name}
# Name in `similarities` -> heading
SIMILARITY_HEADINGS = {k: f"1 - {error} ({k})" for k, error in ERROR_OF_SIMILARITY.items()}
SIMILARITY_HEADINGS["nvoi"] = "nvoi"
MEANS = ("pri", "voi", "bce", "gce", "lce", "nvoi", "voi_split", "voi_merge", *ADAPTED_RAND)
# For human agreement these are averaged over the left-out annotator, as in the published numbers
# (precision 0.6724, recall 0.4739 of objects and parts); all other counts are summed
_AVERAGED_FOR_HUMANS = (*MEANS, "fop_precision", "fop_recall", "pair_precision", "pair_recall")


def _image_curves(counts: Stack) -> dict[str, Floats]:
    """Return measures that are averaged over images: name -> values of N images, (N, T).

    counts: name -> the counts of N images at T thresholds, (N, T); but "n_pixels" is (N,).

    Three distances are numbers of pixels, summed over the annotators of an image: that of bipartite
    graph matching ("bgm") and the Hamming distances ("hamming_gt", "hamming_pred"). They are
    divided by "total_gt", the pixels of all annotators' maps, which is the largest value. The
    distance of "van_dongen" is the sum of both Hamming distances, divided by twice that number.
    "voi_per_log_area" is VOI / log2(pixels).
    """
    curves = {name: counts[name] for name in MEANS}  # means over annotators already
    for name in ("bgm", "hamming_gt", "hamming_pred"):
        curves[name] = ratio(counts[name], counts["total_gt"])
    hamming = counts["hamming_gt"] + counts["hamming_pred"]
    curves["van_dongen"] = ratio(hamming, 2 * counts["total_gt"])
    # VOI is at most log2(area), so this is in [0, 1]; 0 for a single pixel. Source: Meila 2007
    curves["voi_per_log_area"] = ratio(counts["voi"], np.log2(counts["n_pixels"])[:, None])
    return curves


def _mean_scores(
    weights: Weights,
    thresholds: Floats,
    values: Floats,
    *,
    highest: bool,
    deciding: Floats | None = None,
) -> dict[str, Floats]:
    """Average a measure over images at the best common threshold, and at each image's best one.

    values, deciding (N, T): the measure to average, and the one that selects the thresholds
        (default: `values`). Of equally good thresholds, the first is selected.
    highest: True if larger values are better.

    Returns, for S data sets: `ods`, the mean at the best common threshold; `ods_threshold`; `ois`,
    the mean at each image's best threshold; `at_grid_end`, True if the first or last of several
    thresholds is a best one, (S,) each; and `curve` (S, T), the mean at each threshold.
    """
    first_best = np.argmax if highest else np.argmin
    deciding = values if deciding is None else deciding
    mean, deciding_mean = weighted_mean(weights, values), weighted_mean(weights, deciding)
    best_index = first_best(deciding_mean, axis=1)  # (S,)
    samples, images = np.arange(len(mean)), np.arange(len(values))
    best_value = deciding_mean[samples, best_index]
    is_at_end = (best_value == deciding_mean[:, 0]) | (best_value == deciding_mean[:, -1])
    best_of_images = values[images, first_best(deciding, axis=1)]
    return {
        "ods": mean[samples, best_index],
        "ods_threshold": thresholds[best_index],
        "ois": weighted_mean(weights, best_of_images),
        "at_grid_end": is_at_end & (thresholds.size > 1),
        "curve": mean,
    }


def _f_scores(weights: Weights, thresholds: Floats, precision: Floats, recall: Floats) -> ScoreTree:
    """Compute ODS, OIS and AP from precision and recall (N, T) of N images, by SEISM's rules.

    Precision and recall are averaged over images before F is computed: at the best common threshold
    (ODS), or at the threshold where each image has its largest F (OIS). Of equally good thresholds
    the first is used. `curve` holds the mean precision and recall; other scores are (S,).
    """
    images = np.arange(len(recall))
    best_index = f_measure(precision, recall).argmax(axis=1)  # of each image
    ois_precision = weighted_mean(weights, precision[images, best_index])
    ois_recall = weighted_mean(weights, recall[images, best_index])
    curve = PRCurve(thresholds, weighted_mean(weights, precision), weighted_mean(weights, recall))
    ods = best(curve, "maximum")  # the point with the largest F
    return {
        "ods": np.asarray(ods.f),
        "ois": f_measure(ois_precision, ois_recall),
        "ap": average_precision(curve),
        "ods_threshold": np.asarray(ods.threshold),
        "ods_recall": np.asarray(ods.recall),
        "ods_precision": np.asarray(ods.precision),
        "curve": curve,
    }


def _covering_scores(counts: Stack, weights: Weights) -> dict[str, Floats]:
    """Compute the official covering scores, (S,) each, of S data sets from the counts of N images.

    Covering is `covered_gt`, summed over images, divided by the total area of the annotated
    regions: at the best common threshold (`ods`), at the best one of each image (`ois`), or of each
    annotated region (`best`). Of equally good thresholds, ODS takes the first and OIS the last, as
    the official program, collect_eval_reg.m, does. `curve` (S, T) is the covering per threshold.

    The count "best_covered_gt" (N,) is "covered_gt" (N, T) with the best threshold of each region.
    """
    covered, total, thresholds = counts["covered_gt"], counts["total_gt"], counts["thresholds"]
    curve = ratio(weighted_sum(weights, covered), weighted_sum(weights, total))  # (S, T)
    samples, images = np.arange(len(weights)), np.arange(len(covered))
    best_index = curve.argmax(axis=1)  # (S,), the first of the best
    from_last = ratio(covered, total)[:, ::-1]  # each image's covering, last threshold first
    last_best = thresholds.size - 1 - from_last.argmax(axis=1)  # (N,), the last of the best
    area = weighted_sum(weights, total[:, 0])  # the same at all thresholds
    return {
        "ods": curve[samples, best_index],
        "ods_threshold": thresholds[best_index],
        "ois": ratio(weighted_sum(weights, covered[images, last_best]), area),
        "best": ratio(weighted_sum(weights, counts["best_covered_gt"]), area),
        "curve": curve,
    }


def _columns_of(
    measures: Mapping[str, str], *scores: str, lower: bool = False, shown: str = "always"
) -> Iterator[Column]:
    """Yield one column per measure and score, such as "pri.ods" with the title "PRI ODS".

    measures: path of a measure in the scores -> its heading in tables, such as "pri" -> "PRI".
    scores: keys of its scores, such as "ods". lower, shown: as in `Column`.
    """
    for path, heading in measures.items():
        for score in scores:
            title = f"{heading} {score.upper()}"
            yield Column(f"{path}.{score}", title, lower=lower, shown=shown)


class RegionMetric(Metric[None]):
    """Region metrics for segmentations: covering, PRI, VOI, objects and parts, and others.

    Every measure has the scores ods, ods_threshold and ois, and a curve. Covering also has best.
    The measures `fop` (objects and parts) and `pair_f` (pixel pairs) also have ap, ods_recall and
    ods_precision. `similarities` holds normalised VOI (`nvoi`) and, under SEISM's names, 1 - error.
    """

    name, title, version = "region", "Regions", 2
    columns = (
        Column("covering.ods", "Covering ODS", "Cov. ODS"),
        Column("covering.ois", "Covering OIS", "Cov. OIS"),
        Column("covering.best", "Covering best", "Cov. best"),
        *_columns_of({"pri": "PRI"}, "ods", "ois"),
        *_columns_of({"voi": "VOI"}, "ods", "ois", lower=True),
        *_columns_of({"fop": "Fop"}, "ods", "ois", "ap"),
        Column("fop.summed", "Fop of sums", shown="never"),
        *_columns_of({"pair_f": "Pairs"}, "ods", "ois", "ap", shown="never"),
        *_columns_of({name: name for name in ERRORS}, "ods", "ois", lower=True, shown="never"),
        *_columns_of(
            {f"similarities.{name}": title for name, title in SIMILARITY_HEADINGS.items()},
            "ods",
            "ois",
            shown="never",
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
    segmentations = cuts_at_thresholds = True

    def count(self, pred: Prediction, gt: GroundTruth, protocol: Protocol, opt: None) -> Counts:
        """Compute the `region_counts` of one image."""
        from bsdsbench.metrics.region.counting import region_counts

        return region_counts(pred, gt, protocol)

    def symptoms(
        self, pred: Prediction, gt: GroundTruth, protocol: Protocol, opt: None
    ) -> Symptoms:
        """Yield (code, problem, fix) if maps have two labels, and probably show no regions.

        One is of thin lines in each predicted map: thinned boundary maps, given by mistake. Or the
        two lie in more than six large pieces in a map of the truth: a mask of cells or membranes.
        """
        from bsdsbench.metrics.label_maps import number_pieces

        fix = "write a map with a number for each region, such as skimage.measure.label"
        for labels in gt.parts.get("segmentations", ()):
            if np.unique(labels).size == 2:
                area_of_piece = np.bincount(number_pieces(labels, neighbours=8).ravel())
                is_large = area_of_piece >= max(25, labels.size // 1000)  # in pixels
                if np.count_nonzero(is_large) > 6:
                    problem = "a map of the truth has two labels in many pieces"
                    yield "lines", f"{problem}: cells without numbers?", fix
                    break
        maps = pred.parts.get("segs", ())
        for labels in maps:
            on = labels == labels.max(initial=0)  # the lines, 1 or 255, if it is such a map
            # Lines of one pixel fill no square of 2 x 2 pixels, which nearly all regions do
            has_squares = (on[:-1, :-1] & on[1:, :-1] & on[:-1, 1:] & on[1:, 1:]).any()
            if has_squares or np.unique(labels).size != 2:
                return  # at least one map is not of thin lines
        if len(maps):
            yield "lines", "a label map has two labels, of which one is thin lines", fix

    def count_humans(self, gt: GroundTruth, protocol: Protocol, opt: None) -> Arrays:
        """Count each annotator's segmentation against all other annotators of the image.

        Measures that are ratios, such as `pri`, are averaged over the annotators, of which there
        are at least two, and counts in pixels or regions are summed. The only threshold is 1.
        """
        from bsdsbench.metrics.region.counting import region_counts

        maps = gt.segmentations
        counts = []
        for k, predicted in enumerate(maps):
            others = maps[:k] + maps[k + 1 :]
            counts.append(region_counts(predicted, others))
        sums = {name: np.sum([c[name] for c in counts], axis=0) for name in counts[0]}
        means = {name: sums[name] / len(maps) for name in _AVERAGED_FOR_HUMANS}
        return {**sums, **means, "thresholds": np.ones(1), "n_pixels": counts[0]["n_pixels"]}

    def scores(self, stack: Stack, weights: Weights, protocol: Protocol, opt: None) -> ScoreTree:
        """Compute the scores of each measure for S data sets, such as scores["pri"]["ods"], (S,).

        stack: the counts of N images at T thresholds, from `region_counts`.
        weights (S, N): how often each image occurs in each data set.

        Each measure has ODS and OIS: at the best threshold of all images, and of each image. "pri"
        is the Rand index, "voi" the variation of information. "fop" (objects and parts) and
        "pair_f" (pixel pairs) also have AP, and "covering" has "best", with the best threshold of
        each annotated region. "similarities" holds normalised VOI ("nvoi") and 1 - error under the
        names of the program SEISM.
        """
        thresholds = stack["thresholds"]
        curves = _image_curves(stack)  # measure -> its values of each image, (N, T)
        mean_scores = partial(_mean_scores, weights, thresholds)  # ODS and OIS of such values
        f_scores = partial(_f_scores, weights, thresholds)  # ODS, OIS, AP of precision and recall
        # Precision (recall) of objects and parts from sums over images, (S, T): the credit that
        # predicted (annotated) regions earn, by the number of regions that may earn some
        sums = {name: weighted_sum(weights, stack[name]) for name in stack if "fop_" in name}
        precision = ratio(sums["fop_pred"], sums["fop_pred_candidates"])
        recall = ratio(sums["fop_gt"], sums["fop_gt_candidates"])
        scores: dict[str, Any] = {
            "covering": _covering_scores(stack, weights),  # its ODS and OIS have rules of their own
            "pri": mean_scores(curves["pri"], highest=True),
            "voi": mean_scores(curves["voi"], highest=False),
            "fop": {
                **f_scores(stack["fop_precision"], stack["fop_recall"]),
                "summed": f_measure(precision, recall).max(axis=1),
            },
            "pair_f": f_scores(stack["pair_precision"], stack["pair_recall"]),
        }
        for name in ERRORS:
            # The two parts of VOI are taken at the best threshold of VOI, so that they add up to
            # it. On its own, each would be smallest at one end of the threshold range
            deciding = curves["voi"] if name in ("voi_split", "voi_merge") else None
            scores[name] = mean_scores(curves[name], highest=False, deciding=deciding)
        similarities = {"nvoi": mean_scores(curves["nvoi"], highest=True)}
        for name, error in ERROR_OF_SIMILARITY.items():  # such as "dhd", 1 - "hamming_gt"
            similarities[name] = mean_scores(1 - curves[error], highest=True)
        return {**scores, "similarities": similarities}

    def parts(self, protocol: Protocol, opt: None) -> dict[str, tuple[str, ...]]:
        """Map the heading of each error and each similarity to the path of its scores in `scores`.

        An error's path is its name: "hamming_gt" -> ("hamming_gt",). SEISM has names for some
        similarities, 1 - error: "1 - hamming_gt (dhd)" -> ("similarities", "dhd"). Normalised VOI,
        "nvoi", is a similarity that is not 1 minus one of the errors, and comes last.
        """
        paths: dict[str, tuple[str, ...]] = {}
        for error, seism_name in ERRORS.items():  # such as "hamming_gt", "dhd"; "" if not in SEISM
            paths[error] = (error,)
            if seism_name:
                heading = SIMILARITY_HEADINGS[seism_name]  # "1 - hamming_gt (dhd)"
                paths[heading] = ("similarities", seism_name)
        return {**paths, "nvoi": ("similarities", "nvoi")}

    def files(
        self, score: Score, ids: Sequence[str], stack: Stack, protocol: Protocol, opt: None
    ) -> Texts:
        """Yield (file name, text) of the five tables of the official program and a CSV of curves.

        ODS is the score at the best threshold of all images, OIS that at the best threshold of each
        image. PRI is the Rand index, VOI the variation of information.

        - eval_cover.txt: one row with the covering's ODS threshold, ODS, OIS and best (that at the
          best threshold of each annotated region)
        - eval_cover_th.txt: threshold, covering
        - eval_cover_img.txt: image number from 1, its best threshold and, at this threshold, the
          covering of the ground truth by the prediction, and of the prediction by the ground truth
        - eval_RI_VOI.txt: one row with the ODS threshold, ODS and OIS of PRI, then of VOI
        - eval_RI_VOI_thr.txt: threshold, PRI, VOI
        - region_curves.csv: a row per threshold and a column for each measure, or three for those
          with precision and recall: fop_precision, fop_recall, fop_f
        """
        cover, pri, voi, thresholds = score.covering, score.pri, score.voi, stack["thresholds"]
        best_pri = pri.ods_threshold, pri.ods, pri.ois
        best_voi = voi.ods_threshold, voi.ods, voi.ois
        images = np.arange(len(ids))
        # (N, T): the areas of annotated (predicted) regions times their best IoUs, by all areas
        covering_of_gt = ratio(stack["covered_gt"], stack["total_gt"])
        covering_of_pred = ratio(stack["covered_pred"], stack["total_pred"])
        best_index = covering_of_gt.argmax(axis=1)  # (N,), of each image's best threshold
        columns_of_images = [
            images + 1,
            thresholds[best_index],
            covering_of_gt[images, best_index],
            covering_of_pred[images, best_index],
        ]
        tables = {
            "eval_cover.txt": [(cover.ods_threshold, cover.ods, cover.ois, cover.best)],
            "eval_cover_th.txt": np.column_stack([thresholds, cover.curve]),
            "eval_cover_img.txt": np.column_stack(columns_of_images),
            "eval_RI_VOI.txt": [(*best_pri, *best_voi)],
            "eval_RI_VOI_thr.txt": np.column_stack([thresholds, pri.curve, voi.curve]),
        }
        for file, table in tables.items():
            yield file, format_rows(table)
        columns = {"thresholds": thresholds}
        columns |= {name: score[name].curve for name in ("covering", "pri", "voi")}
        for name, curve in (("fop", score.fop.curve), ("pair", score.pair_f.curve)):
            columns[f"{name}_precision"] = curve.precision
            columns[f"{name}_recall"] = curve.recall
            columns[f"{name}_f"] = curve.f
        columns |= {name: score[name].curve for name in ERRORS}
        lines = [",".join(columns)]
        for row in np.column_stack([*columns.values()]).tolist():  # of a threshold
            lines.append(",".join(map(str, row)))
        yield "region_curves.csv", "\n".join([*lines, ""])

    def reported(self, tables: Mapping[str, Any]) -> dict[str, Any] | None:
        """Return the region scores in the official program's tables, or None if there are none.

        tables: file name -> array (rows, columns), as described in `files`.

        The result holds "covering", "pri" and "voi", as far as their tables are there, each with
        "ods" and "ois" (and "best" for covering), and `n_images`, 0 without eval_cover_img.txt.
        """
        scores = {}  # the thresholds in the tables, here _, are not scores
        if "eval_cover.txt" in tables:
            _, ods, ois, best_cover = tables["eval_cover.txt"][0].tolist()
            scores["covering"] = {"ods": ods, "ois": ois, "best": best_cover}
        if "eval_RI_VOI.txt" in tables:
            _, pri, pri_ois, _, voi, voi_ois = tables["eval_RI_VOI.txt"][0].tolist()
            scores["pri"] = {"ods": pri, "ois": pri_ois}
            scores["voi"] = {"ods": voi, "ois": voi_ois}
        if not scores:
            return None
        return {**scores, "n_images": len(tables.get("eval_cover_img.txt", ()))}
