"""Load runs whose counts come from other programs: official result files and reference runs.

A reference run `ref:NAME` has the boundary counts of a published method on the BSDS500 test images.
They were computed by the official randomised solver, and published with SEISM (Pont-Tuset and
Marques, PAMI 2016) or SAUGE (AAAI 2025). references.npz holds `ids` (N,) and `total_gt` (N,). For
each method it has KEY.parameter (T,), the parameter values as text, and three arrays of counts
KEY.NAME, packed for `sharing.unpack_counts`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import lru_cache
from importlib import resources
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from bsdsbench.arguments import Floats, Ints
from bsdsbench.errors import DataError, FileFormatError, InputWarning, warn
from bsdsbench.io import FaultError, file_errors
from bsdsbench.loaders.formats.official_txt import SBD_COLUMNS, read_run_folder
from bsdsbench.loaders.sets.identity import shipped_sets
from bsdsbench.metrics import registry
from bsdsbench.metrics.optional import OfficialTables
from bsdsbench.protocol.fields import even_thresholds
from bsdsbench.protocol.protocol import UNSTATED, UNSTATED_GRID, Protocol
from bsdsbench.results.sharing import unpack_counts
from bsdsbench.results.storage import Provenance, RunArguments
from bsdsbench.scores.counts import ImageRecord, MatchCounts, Score
from bsdsbench.scores.curve import AP_RULES, ODS_RULES, PRCurve, area, best
from bsdsbench.text import did_you_mean, join_names, quantity

if TYPE_CHECKING:
    from bsdsbench.results.evaluation import Evaluation

_SAME_F = 0.02  # the F of ODS, and the AP, in two official tables of one run differ by less
_SAME_COVERING = 0.006  # ODS of regions, which is the best of the curve; either of two decimals
# An official table, its column with an ODS, the table and column of the curve, and the best of it
_REGION_ODS = (
    ("eval_cover.txt", 1, "eval_cover_th.txt", 1, np.max),
    ("eval_RI_VOI.txt", 1, "eval_RI_VOI_thr.txt", 1, np.max),  # PRI
    ("eval_RI_VOI.txt", 4, "eval_RI_VOI_thr.txt", 2, np.min),  # VOI
)

REF_PREFIX, SET = "ref:", "bsds500-test"
SOLVER = "the official randomised solver"
# The largest difference in ODS between two runs of the solver. In one image, at most 19 of some
# thousands of counts differ.
SOLVER_MOVES = 0.0003
# Matches per map that the solver misses: 4 on average, at most 9 (33 maps of 5 images, 10 runs)
PAIRS_LOST = 4
# `Reference.form` -> `ImageRecord.form`
_FORMS = {"contours": "contours", "hierarchy": "ucm2", "segmentations": "segs"}


@dataclass(frozen=True, slots=True)
class Reference:
    """The description of a reference run: the type of its maps, its parameter and its source."""

    key: str  # the name after `ref:`
    name: str
    year: int | None
    form: str  # "contours", "segmentations", or "hierarchy" for thresholds of an ultrametric map
    parameter: str  # what the T columns of counts are, such as "thresholds"
    paper: str  # the paper about the method
    ordered: bool = True  # False for unordered parameter combinations, which cannot be interpolated
    note: str = ""  # a remark about the counts
    # Who published the counts, with their licence
    source: str = "stored results of SEISM v3 (Pont-Tuset and Marques, PAMI 2016)"
    ods_rule: str = "maximum"  # the rules of the scores that were published with the counts
    ap_rule: str = "bsds"


@lru_cache(maxsize=1)
def references() -> dict[str, Reference]:
    """Return the reference runs by key, in the order of references.json."""
    text = resources.files("bsdsbench.results").joinpath("references.json").read_text("utf-8")
    return {row["key"]: Reference(**row) for row in json.loads(text)}


def reference_run(name: str) -> RunArguments:
    """Load a reference run, given as KEY or `ref:KEY`, as the arguments of an Evaluation.

    It has the boundary counts of a published method on the BSDS500 test images. Its protocol is the
    preset bsds500, with the AP and ODS rules of the publication and the thresholds of the counts.
    Segmentations have no thresholds, and keep those of the preset. Image sizes are unknown: (0, 0).
    """
    key = name.removeprefix(REF_PREFIX).lower()
    if key not in references():
        known = f"{', '.join(references())}{did_you_mean(key, references())}"
        raise DataError(f"{name}: no such reference run, expected ref: and one of {known}")
    reference = references()[key]
    data = resources.files("bsdsbench.results").joinpath("references.npz").read_bytes()
    with np.load(BytesIO(data)) as file:
        ids, total_gt = file["ids"].tolist(), file["total_gt"]
        parameter = file[f"{key}.parameter"]
        # Counts of pixels in N images at T parameter values of the method, (N, T). The file has
        # the B bytes of each number in separate planes (B, T, N), which compress well
        counts_by_kind = {}
        for kind in ("matched_gt", "unmatched_pred", "total_pred"):
            planes = file[f"{key}.{kind}"].transpose(0, 2, 1)  # (B, N, T)
            counts_by_kind[kind] = unpack_counts(planes)
    total_pred = counts_by_kind["total_pred"]
    matched_pred = total_pred - counts_by_kind["unmatched_pred"]
    # The annotated pixels of an image, (N,), do not depend on the method's parameter
    total_gts = np.broadcast_to(total_gt[:, None], total_pred.shape)
    columns = [counts_by_kind["matched_gt"], total_gts, matched_pred, total_pred]
    matches = np.stack(columns, axis=2)  # (N, T, 4)
    # If all parameter values are numbers in [0, 1), they are the thresholds. Otherwise, for example
    # if they are numbers of regions or names of parameter combinations, 1, 2, ..., T stand for them
    thresholds = np.arange(1.0, parameter.size + 1)
    with suppress(ValueError):  # not numbers
        numbers = parameter.astype(np.float64)
        if numbers.min() >= 0 and numbers.max() < 1:
            thresholds = _restore_digits(numbers)  # the stored texts are rounded to six digits
    rules = {"ods_rule": reference.ods_rule, "ap_rule": reference.ap_rule}
    protocol = Protocol.preset("bsds500").replace(**rules)
    if reference.form != "segmentations":
        protocol = protocol.replace(thresholds=tuple(thresholds.tolist()))
    truths = shipped_sets()[SET]  # image id -> fingerprint of its ground truth
    form = _FORMS[reference.form]  # the type of the maps as records name it, such as "ucm2"
    records = []
    for image_id, image_matches in zip(ids, matches, strict=True):
        counts = {registry.DEFAULT_METRICS[0]: MatchCounts(thresholds, image_matches)}
        record = ImageRecord(image_id, (0, 0), counts, truth=truths[image_id], form=form)
        records.append(record)
    content = f"{reference.form}, {len(parameter)} {reference.parameter}"
    source = f"{reference.source}, matched by {SOLVER}"
    description = "; ".join(filter(None, (content, source, reference.note)))
    origin = Provenance(reference=key, source=reference.source, about=description)
    name = REF_PREFIX + key
    return {"protocol": protocol, "name": name, "records": records, "provenance": origin}


def official_run(path: Path) -> RunArguments:
    """Read a folder of result files of the official BSDS program as the arguments of an Evaluation.

    ID_ev1.txt files hold the counts of one image each, at T thresholds; they become records with
    the size (0, 0). If there are only eval_*.txt files, which hold scores of the whole set, these
    become `Evaluation.reported`.

    The files do not state the protocol. Only its thresholds are known, if they ascend within
    [0, 1]. The protocol gets the name UNSTATED, or UNSTATED_GRID without known thresholds.
    """
    tables = read_run_folder(path)  # name of an eval_*.txt file -> its numbers (rows, columns)
    counts = tables.pop("ev1")  # image id -> MatchCounts of ID_ev1.txt, {} without such files
    no_rows = np.zeros((0, 4))  # in place of a table that is not in the folder
    printed = tables.get("eval_bdry_thr.txt", no_rows)[:, 0]  # (T,), with six digits
    if counts:  # all of them must have the same thresholds, see below
        printed = next(iter(counts.values())).thresholds
    thresholds = _restore_digits(printed)
    protocol = Protocol(name=UNSTATED_GRID)
    does_ascend = thresholds.size > 0 and bool(np.all(np.diff(thresholds) > 0))
    if does_ascend and thresholds[0] >= 0 and 0 < thresholds[-1] <= 1:  # as a protocol requires
        protocol = Protocol(name=UNSTATED, thresholds=tuple(thresholds.tolist()))
    records, matches = [], []
    for image_id, image_counts in counts.items():
        printed_of_image = image_counts.thresholds
        if printed_of_image.shape != printed.shape or not np.allclose(printed_of_image, printed):
            raise FileFormatError(f"{path}: thresholds of {image_id!r} differ from the others'")
        matches.append(image_counts.matches)  # (T, 4)
        by_metric = {registry.DEFAULT_METRICS[0]: MatchCounts(thresholds, image_counts.matches)}
        records.append(ImageRecord(image_id, (0, 0), by_metric))
    _check_summary(tables, thresholds, matches)  # warns if files of several runs seem to be mixed
    reported: dict[str, Score] = {}
    if not counts:
        # The programs of SBD append a column, and have their own rule for AP
        if tables.get("eval_bdry.txt", no_rows).shape[1] == SBD_COLUMNS:
            # With its name, which says that it is unknown: `replace` would add a star
            protocol = protocol.replace(ap_rule="sbd", name=protocol.name)
        with file_errors(path, "official tables"):
            for metric in map(registry.get, registry.names()):
                scores = metric.reported(tables) if isinstance(metric, OfficialTables) else None
                if scores is not None:
                    reported[metric.name] = Score(scores)
            if not reported:
                raise FaultError(
                    f"has {join_names([*tables])}, expected a table of scores beside it"
                )
    return {
        "protocol": protocol,
        "name": path.resolve().name,
        "records": records,
        "provenance": Provenance(official=str(path)),
        "reported": reported,
    }


def _check_summary(
    tables: Mapping[str, Floats], thresholds: Floats, matches: Sequence[Ints]
) -> None:
    """Give an InputWarning if the tables of a folder seem to be of several runs.

    This is so if eval_bdry_img.txt lists another number of images than there are counts, or if the
    F of ODS or the AP in eval_bdry.txt does not follow from the counts or the curve. The files do
    not say which rules they used, so any score from the smallest to the largest by a rule is
    accepted.

    tables: name of an official table -> its rows
    thresholds: (T,) of the counts
    matches: for each image, its counts in ID_ev1.txt (T, 4); [] if there are none, so that the
        curve in eval_bdry_thr.txt is used
    """
    listed_images = tables.get("eval_bdry_img.txt")  # one row per image
    if matches and listed_images is not None and len(listed_images) != len(matches):
        has = f"{quantity(len(matches), 'file')} ID_ev1.txt, which are scored"
        n_listed = quantity(len(listed_images), "image")
        warn(InputWarning(f"{has}, but eval_bdry_img.txt lists {n_listed}"))
    for summary, column, curve_file, curve_column, best_of in _REGION_ODS:
        if summary not in tables:
            continue
        ods, ois = tables[summary][0, column : column + 2]
        if abs(best_of([ods, ois]) - ois) > _SAME_COVERING:  # each image has its best threshold
            has = f"{summary}: ODS {ods:.3f} is better than OIS {ois:.3f}"
            warn(InputWarning(has, fix="are the columns exchanged?"))
        expected = best_of(tables[curve_file][:, curve_column]) if curve_file in tables else ods
        if abs(ods - expected) > _SAME_COVERING:
            has = f"{summary}: ODS {ods:.3f}, but the best of {curve_file} is {expected:.3f}"
            warn(InputWarning(f"{has} (files of two runs?)"))
    if "eval_bdry.txt" not in tables:
        return
    if matches:
        curve = PRCurve.of_counts(thresholds, np.sum(matches, axis=0))
    elif "eval_bdry_thr.txt" in tables:
        printed, recall, precision, _ = tables["eval_bdry_thr.txt"].T  # threshold, R, P, F
        curve = PRCurve(printed, precision, recall, whole_image=bool(printed[0] == 0))
    else:
        return
    source = "the counts of the images" if matches else "eval_bdry_thr.txt"
    row = tables["eval_bdry.txt"][0]  # threshold, R, P, F of ODS; R, P, F of OIS; AP
    ods_by_rule = np.array([best(curve, rule).f for rule in ODS_RULES])
    ap_by_rule = np.array([area(curve, rule) for rule in AP_RULES])
    for name, printed_score, by_rule in (("F", row[3], ods_by_rule), ("AP", row[7], ap_by_rule)):
        nearest = np.clip(printed_score, np.nanmin(by_rule), np.nanmax(by_rule))
        if abs(printed_score - nearest) > _SAME_F:
            has = f"eval_bdry.txt: {name} {printed_score:.3f}, but that of {source} is"
            warn(InputWarning(f"{has} {nearest:.3f} by the nearest rule (files of two runs?)"))


def _restore_digits(printed: Floats) -> Floats:
    """Restore the exact values of evenly spaced thresholds (T,) that were printed with six digits.

    Evenly spaced means `even_thresholds` (1/100, 2/100, ... for T = 99), possibly after a threshold
    0. Other thresholds are returned unchanged.
    """
    n_zeros = 1 if printed.size > 1 and printed[0] == 0 else 0
    even = np.r_[[0.0] * n_zeros, even_thresholds(printed.size - n_zeros)]
    return even if np.allclose(printed, even, rtol=0, atol=2e-6) else printed


def with_common_rules(runs: list[Evaluation]) -> list[Evaluation]:
    """Set the AP and ODS rules of reference runs to those of the other runs.

    A rule is a way to compute the score from the curve, such as ODS "interpolated" between the
    thresholds or as their "maximum". The rules are those of the first run that is not a reference
    run; if its protocol is unknown, nothing is changed. If all are reference runs, each keeps the
    rules of its publication unless AP rules differ; then all get those of the preset bsds500.
    """
    protocols = [run.protocol for run in runs if run.reference is None]
    if not protocols and len({run.protocol.ap_rule for run in runs}) < 2:
        return runs
    common = protocols[0] if protocols else Protocol.preset("bsds500")
    if not common.stated:
        return runs
    aligned = []
    for run in runs:
        if run.reference is not None:
            # If the parameter is not ordered, ODS cannot be interpolated
            ods_rule = common.ods_rule if run.reference.ordered else "maximum"
            protocol = run.protocol.replace(ap_rule=common.ap_rule, ods_rule=ods_rule)
            run = replace(run, protocol=protocol)
        aligned.append(run)
    return aligned
