"""Reference runs: their counts, what stands beside them, and what they refuse."""

import json
import math
import os
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

import bsdsbench as bb
from bsdsbench.comparison.published import published_curves, published_results
from bsdsbench.loaders.pairing import ground_truths
from bsdsbench.loaders.readers import load_ground_truth
from bsdsbench.plotting import plot_runs
from bsdsbench.protocol.protocol import Protocol
from bsdsbench.results.comparability import forbidden
from bsdsbench.results.given_runs import as_runs
from bsdsbench.results.references import references
from bsdsbench.runs.merge import best_of
from bsdsbench.scores.counts import ImageRecord
from bsdsbench.scores.curve import PRCurve, area
from tests.helpers.runs import refused
from tests.helpers.simulated import boundary_of
from tests.reference.scores import f_of, shares

FIELDS = ("matched_gt", "total_gt", "matched_pred", "total_pred")


@pytest.fixture(scope="session")
def stored():
    if "BSDSBENCH_SPEC" not in os.environ:
        pytest.skip("BSDSBENCH_SPEC is not set: the stored counts are not available")
    folder = Path(os.environ["BSDSBENCH_SPEC"]).parent / "reference"
    paths = [*folder.glob("seism-*.npz"), *folder.glob("sauge-*.npz")]
    return {p.stem.removeprefix("seism-").removesuffix("-definite").lower(): p for p in paths}


def best(row):
    """The F of four counts."""
    return f_of(*shares(row))


def four(run):
    return np.stack([[getattr(r.counts["boundary"], f) for f in FIELDS] for r in run.records])


def like(run, name, protocol, ids=None):
    """A run of one's own with the ground truth of `run`: every second pixel of it is found."""
    t = protocol.threshold_array()
    records = []
    for k, record in enumerate(run.records):
        total = np.full(t.size, record.counts["boundary"].total_gt[0])
        hit = np.round(total * (1 - t) * (0.8 + 0.001 * (k % 7))).astype(np.int64)
        counts = boundary_of(t, hit, total, hit // 5, hit // 5 + 500)
        records.append(replace(record, counts={"boundary": counts}, form="soft8"))
    return bb.Evaluation(protocol, name, tuple(records))


@pytest.mark.parametrize("key", sorted(references()))
def test_counts_are_the_stored_ones_and_scores_follow_from_them(stored, key):
    """ODS is the best F of the sums, OIS that of each image's best row, by plain loops."""
    run, path = bb.Evaluation.load(f"ref:{key}"), dict(np.load(stored[key]))
    order = np.argsort(path["ids"])
    np.testing.assert_array_equal(
        four(run), np.stack([path[f][order] for f in FIELDS], axis=1).astype(np.int64)
    )
    assert run.image_ids == sorted(path["ids"].tolist())

    images = np.stack([path[n] for n in FIELDS], axis=2).tolist()
    sums = [[sum(image[k][c] for image in images) for c in range(4)] for k in range(len(images[0]))]
    own = [max(image, key=best) for image in images]
    run = replace(run, protocol=run.protocol.replace(ods_rule="maximum"))
    score = run.boundary_score()
    assert score.ods.f == pytest.approx(max(map(best, sums)), abs=1e-12)
    assert score.ois.f == pytest.approx(best([sum(c) for c in zip(*own, strict=True)]), abs=1e-12)


# ODS, OIS and AP of the summary (eval_bdry.txt) that SAUGE's authors publish beside the counts
SAUGE = {
    "sauge-b": (0.839261, 0.8595, 0.893053),
    "sauge-l": (0.847167, 0.86767, 0.898032),
    "sauge-voc": (0.84197, 0.861569, 0.895512),
    "sauge-l-voc": (0.849205, 0.869031, 0.899039),
}


@pytest.mark.parametrize("key", sorted(SAUGE))
def test_the_summary_of_the_authors_follows_from_the_counts_of_sauge(key):
    run = bb.Evaluation.load(f"ref:{key}")
    score = run.boundary_score()
    assert (run.protocol.ap_rule, run.protocol.ods_rule) == ("edter", "interpolated")
    assert [score.ods.f, score.ois.f, score.ap] == pytest.approx(SAUGE[key], abs=5.01e-7)
    assert "|thr:0+99|" in run.signature_line
    about = run.provenance.about
    assert about.startswith("contours, 100 thresholds 0, 0.01 .. 0.99; counts published with SAUGE")
    assert "MIT licence, Copyright (c) 2024 STAR" in run.provenance.source
    without = replace(run, protocol=run.protocol.replace(ap_rule="bsds")).boundary_score()
    assert 0.019 < score.ap - without.ap < 0.0245  # spec: the gain of the row of threshold 0
    assert without.ods.f == score.ods.f


def test_eleven_granularities_make_the_best_of_them():
    """Figures of the authors' rule (best_ods_ois.py) on the same counts."""
    runs = as_runs([f"ref:sauge-b-{g}" for g in ("0", *[f"0.{k}" for k in range(1, 10)], "1")])
    score = best_of(runs, "best").boundary_score()
    assert [score.ods.f, score.ois.f] == pytest.approx([0.8575, 0.8654], abs=5e-5)


def test_references_of_two_rules_are_compared_by_one():
    cob, sauge = as_runs(["ref:cob", "ref:sauge-l"])
    assert {run.protocol.ap_rule for run in (cob, sauge)} == {"bsds"}
    assert not forbidden([cob, sauge])
    mine = like(cob, "mine", Protocol.preset("bsds500"))
    assert as_runs([mine, "ref:sauge-l"])[1].protocol.ap_rule == "bsds"
    # All are thinned, at about as many thresholds as the presets
    for changed in ({"thin": False}, {"thresholds": 10}):
        assert forbidden([cob, replace(mine, protocol=mine.protocol.replace(**changed))])
    quarter = replace(mine, protocol=mine.protocol.replace(thresholds=33))
    assert not forbidden([cob, mine])
    assert not forbidden([cob, quarter])
    assert as_runs(["ref:sauge-b", "ref:sauge-l"])[1].protocol.ap_rule == "edter"


def test_all_are_there_and_say_what_they_are():
    runs = {key: bb.Evaluation.load(f"ref:{key}") for key in references()}
    for run in runs.values():
        assert run.identity.describe() == "bsds500-test, 200 of 200 images"
        assert [t.name for t in run.tasks] == ["bsds500-test/boundary"]
    assert "ODS 0.780, not 0.788" in runs["hed"].provenance.about
    assert "|match:random|" in str(runs["hed"].signature)
    assert sum(not about.ordered for about in references().values()) == 2


def test_annotated_pixels_are_ours(bsds500_bench, request):
    """Per image, over all annotators: of all test images where they are, of five elsewhere."""
    folder = bsds500_bench / "groundTruth"
    if "BSDSBENCH_BSDS500" in os.environ:
        whole = request.getfixturevalue("bsds500") / "groundTruth" / "test"
        folder = whole if whole.is_dir() else folder
    totals = {
        r.image_id: r.counts["boundary"].total_gt[0] for r in bb.Evaluation.load("ref:cob").records
    }
    pairs = ground_truths(folder)
    assert len(pairs) in (5, 200)
    for each in pairs:
        drawn = load_ground_truth(each.gt_paths).boundaries
        assert sum(int(np.count_nonzero(b)) for b in drawn) == totals[each.image_id], each.image_id


@pytest.mark.slow
def test_two_are_compared_as_a_slow_bootstrap_does():
    """Images drawn with replacement, summed, the best F of the sums: interval, p and least."""
    runs = as_runs(["ref:mcg", "ref:se"])
    counts = [four(run).transpose(0, 2, 1) for run in runs]
    times = np.random.default_rng(0).multinomial(200, np.full(200, 1 / 200), size=100)

    def difference(drawn):
        total = [np.tensordot(drawn, images, 1).tolist() for images in counts]
        one, other = (max(map(best, sums)) for sums in total)
        return one - other

    differences = np.array(list(map(difference, times)))
    found = bb.compare(runs, n_boot=100, seed=0).difference_of("ref:mcg", "ref:se", "ods")
    assert found.value == pytest.approx(difference(np.ones(200, int)), abs=1e-12)
    t = stats.t(199).ppf(0.975) * math.sqrt(200 / 199)
    low, high = np.quantile(differences, stats.norm.cdf([-t, t]))
    assert [found.low, found.high] == pytest.approx([low, high], abs=1e-12)
    share = (min((differences <= 0).sum(), (differences >= 0).sum()) + 1) / 101
    z = stats.norm.ppf(min(0.5, share)) * math.sqrt(199 / 200)
    assert found.p == pytest.approx(2 * stats.t(199).cdf(z), abs=1e-9)
    both = t + stats.t(199).ppf(0.8) * math.sqrt(200 / 199)
    assert found.least == pytest.approx(both * differences.std(ddof=1), abs=1e-12)


def test_rules_are_those_of_the_run_beside():
    cob, egb = bb.Evaluation.load("ref:cob"), bb.Evaluation.load("ref:egb")
    own = like(cob, "mine", Protocol.preset("bsds500").replace(ap_rule="endpoints"))
    mine, cob, egb = as_runs([own, cob, egb])
    assert (cob.protocol.ap_rule, egb.protocol.ap_rule) == ("endpoints", "endpoints")
    assert (cob.protocol.ods_rule, egb.protocol.ods_rule) == ("interpolated", "maximum")
    assert not forbidden([mine, cob])
    notes = bb.compare([mine, cob, egb], n_boot=20).notes
    assert any(note.startswith("ref:egb: ODS is the best of all combinations") for note in notes)


def test_another_tolerance_or_set_is_refused(tmp_path):
    cob = bb.Evaluation.load("ref:cob")
    wide = like(cob, "wide", Protocol.preset("bsds500").replace(max_dist=0.011))
    refused("tolerance: .011d / .0075d", bb.compare, [wide, cob])
    refused("protocols differ in max_dist", plot_runs, [wide, cob])
    own = like(cob, "mine", Protocol.preset("bsds500"))
    part = replace(own, records=own.records[:50])
    refused("150 images are not in every run", bb.compare, [part, cob])
    assert bb.compare([part, cob], n_boot=20, common=True).n_images == 50
    other = [ImageRecord(r.image_id, r.size, r.counts, truth="0" * 16) for r in own.records]
    refused("ground truth of image", bb.compare, [replace(own, records=tuple(other)), cob])
    refused("no such reference run, expected ref: and one of cob", bb.Evaluation.load, "ref:cobb")


def test_combinations_are_drawn_as_points():
    lines = plot_runs(["ref:egb", "ref:cob"], human=False).axes[0].lines
    egb, cob = (next(x for x in lines if f"ref:{n}" in str(x.get_label())) for n in ("egb", "cob"))
    assert (egb.get_linestyle(), egb.get_marker()) == ("None", ".")
    assert cob.get_linestyle() != "None"
    refused(
        "ref:egb: combinations of three parameters, expected thr", plot_runs, ["ref:egb"], kind="f"
    )


def test_the_ods_of_every_published_curve_is_that_of_its_points():
    """As the plain maximum or interpolated; and the number of its row."""
    for key in sorted(published_curves()):
        curve = published_curves()[key]
        rows = list(zip(curve.precision, curve.recall, strict=True))
        steps = [k / 99 for k in range(100)] if curve.ods_rule == "interpolated" else [0.0, 1.0]
        found = max(
            f_of(b[0] * s + a[0] * (1 - s), b[1] * s + a[1] * (1 - s))
            for a, b in pairwise(rows)
            for s in steps
        )
        assert found == pytest.approx(curve.ods.f, abs=1.01e-6), key
        printed = published_results()[key]
        if printed.ap_rule == "bsds" and "pidinet" in key:
            points = PRCurve(np.arange(len(rows), dtype=float), curve.precision, curve.recall)
            assert float(area(points)) == pytest.approx(printed.boundary["ap"], abs=5.1e-5), key
        told = published_results()[key].boundary["ods"]
        assert curve.ods.f == pytest.approx(told, abs=6e-4 if key == "rds" else 6e-5)
        assert (curve.thresholds is None) == (key not in ("rds", "xyw-net-voc", "fcl-net"))


def test_every_gathered_curve_is_shipped(stored):
    folder, read = next(iter(stored.values())).parent, Path("scripts/curves_read.json")
    files = folder / "curves.json", folder / "curves_pidinet.json", read
    gathered = [curve for file in files for curve in json.loads(file.read_text("utf-8"))]
    assert len(published_curves()) == len(gathered) == 34 + 13 + 2
    by_source = {c.source: c for c in published_curves().values()}
    for curve in gathered:
        mine = by_source[curve["source"]]
        columns = dict(zip(curve["columns"], np.array(curve["rows"]).T, strict=True))
        for name in ("recall", "precision"):
            np.testing.assert_array_equal(getattr(mine, name), columns[name])
        assert mine.ods.f == curve["summary"][curve["summary_columns"].index("ods_f")]
