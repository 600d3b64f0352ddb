"""pyEdgeEval's evaluators of classes against `evaluate` on folders, and where they differ."""

import imageio.v3 as iio
import numpy as np
import pytest
from scipy.io import savemat

import bsdsbench as bb
from bsdsbench.integrations.compat import CityscapesEvaluator, SBDEvaluator
from bsdsbench.integrations.compat.py_edge_eval import LEVELS
from bsdsbench.metrics.class_maps import class_boundaries
from bsdsbench.metrics.semantic import SemanticMetric
from tests.helpers.making import cells

KEYS = (
    *("ODS_threshold", "ODS_recall", "ODS_precision", "ODS_f1"),
    *("OIS_recall", "OIS_precision", "OIS_f1", "AUC", "AP"),
)


def soft(rng, drawn):
    """A picture of a boundary, shifted by a pixel, with noise around it."""
    return (200 * np.roll(drawn, 1, 0) + 55 * rng.random(drawn.shape)).astype(np.uint8)


@pytest.fixture
def sbd(tmp_path):
    """Two images with an aeroplane (1) or a person (15), the person in two instances."""
    rng, root = np.random.default_rng(4), tmp_path / "dataset"
    for folder in ("cls", "inst"):
        (root / folder).mkdir(parents=True)
    params = SemanticMetric().options_of(bb.Protocol.preset("sbd"))
    for name, label in (("x1", 1), ("x2", 15)):
        a = np.zeros((60, 80), np.uint8)
        a[15:45, 20:60] = label
        drawn = class_boundaries(a, params)
        apart = np.where(a > 0, 1, 0)
        apart[15:45, 40:60] = 1 + (label == 15)
        outlines = [
            class_boundaries((apart == v) * 1, params)[0] for v in range(1, apart.max() + 1)
        ]
        savemat(root / "cls" / f"{name}.mat", {"GTcls": {"Boundaries": cells(drawn), **seg(a)}})
        struct = {"Boundaries": cells(outlines), "Categories": [label] * len(outlines)}
        savemat(root / "inst" / f"{name}.mat", {"GTinst": struct | seg(apart.astype(float))})
        for k in range(20):
            folder = tmp_path / "pred" / f"class_{k + 1:03d}"
            folder.mkdir(parents=True, exist_ok=True)
            edges = np.any([drawn[k], *outlines], 0) if k + 1 == label else drawn[k]
            iio.imwrite(folder / f"{name}.png", soft(rng, edges))
    (root / "val.txt").write_text("x1\nx2\n")
    return root, tmp_path / "pred"


def seg(labels):
    return {"Segmentation": labels}


def test_parameters_of_the_modes(sbd):
    """Without instances "post-seal" kills and skips; for SBD the modes have their own tolerance."""

    def of(evaluator, **options):
        evaluator.set_eval_params(**options)
        protocol = evaluator.protocol()
        s = SemanticMetric().options_of(protocol)
        return s.instances, s.interior, s.absent, protocol.max_dist

    one, two = SBDEvaluator(*sbd), CityscapesEvaluator(*sbd)
    before = (False, "kill", "skip", 0.02)
    for e in (one, two):
        assert of(e, eval_mode="pre-seal", max_dist=0.1) == before
        assert of(e, max_dist=0.1) == (True, "keep", "count", 0.1)
    assert of(one, eval_mode="post-seal", max_dist=0.1) == (True, "keep", "count", 0.02)
    assert of(two, eval_mode="post-seal", max_dist=0.1) == (True, "keep", "count", 0.1)
    assert of(one, eval_mode="post-seal", instance_sensitive=False) == before
    after = of(two, eval_mode="post-seal", instance_sensitive=False)
    assert after == (False, "kill", "skip", 0.0035)
    for thin, radius in ((True, 1), (False, 2)):
        s = SemanticMetric().options_of(SBDEvaluator(*sbd, thin=thin).protocol())
        assert (s.border, s.border_rule, s.radius, s.thin_gt) == (5, "ignore", radius, thin)


@pytest.mark.parametrize("mode", ["pre-seal", "post-seal", None])
@pytest.mark.parametrize("thin", [True, False])
def test_sbd_has_the_numbers_of_its_protocol(sbd, mode, thin, tmp_path):
    evaluator = SBDEvaluator(*sbd, thin=thin)
    evaluator.set_eval_params(eval_mode=mode, apply_thinning=thin)
    found = evaluator.evaluate(thresholds=9, nproc=2, save_dir=tmp_path / "out")
    assert list(found) == ["aeroplane", "person"]
    proto = evaluator.protocol(9)
    run = bb.evaluate(sbd[1], sbd[0] / "cls", proto, metrics="semantic", workers=1)
    for name, scores in found.items():
        assert tuple(scores) == KEYS
        wanted = run.score("semantic").per_class[name]
        assert scores["ODS_f1"] == wanted.ods.f > 0
        assert scores["OIS_recall"] == wanted.ois.recall
        assert scores["AUC"] == wanted.ap
        points = list(zip(wanted.curve.recall, wanted.curve.precision, strict=True))
        beyond = [max((p for r, p in points if r >= t), default=0) for t in LEVELS]
        assert scores["AP"] == pytest.approx(
            (sum(beyond) + max(p * (r >= 1) for r, p in points)) / 101
        )
    written = {p.parent.name for p in (tmp_path / "out").rglob("eval_bdry.txt")}
    assert written == {"class_001", "class_015"}
    table = np.loadtxt(tmp_path / "out" / "class_015" / "eval_bdry.txt")
    assert table[3] == pytest.approx(found["person"]["ODS_f1"], abs=1e-6)


def test_sbd_one_class_reads_the_pictures_of_that_class_alone(sbd):
    for path in sbd[1].glob("class_*/*.png"):
        if path.parent.name != "class_015":
            path.unlink()
    evaluator = SBDEvaluator(*sbd, thin=True)
    evaluator.set_eval_params(apply_thinning=True)
    alone = evaluator.evaluate_category(15, thresholds=9, nproc=1)
    assert alone["ODS_recall"] == 1
    evaluator.set_eval_params(apply_thinning=True, instance_sensitive=False)
    without = evaluator.evaluate_category(15, thresholds=9, nproc=1)
    assert without["ODS_precision"] < alone["ODS_precision"]  # the line between is in no truth
    evaluator.set_sample_names(["x1"])
    with pytest.raises(bb.DataError, match="person: no ground truth"):
        evaluator.evaluate_category(15, thresholds=9)
    evaluator.set_sample_names(split_file=sbd[0] / "val.txt")
    assert evaluator.sample_names == ["x1", "x2"]
    with pytest.raises(bb.DataError, match=r"class_001.x1\.png: cannot be opened") as caught:
        evaluator.evaluate([1, 15], thresholds=9)
    assert len(caught.value.problems) == 2


def test_cityscapes_has_the_numbers_of_its_protocol(tmp_path):
    rng = np.random.default_rng(5)
    labels = np.full((96, 160), 7, np.uint8)  # road, and two cars side by side
    labels[30:70, 40:120] = 26
    instances = np.where(labels == 26, 26000, 7).astype(np.uint16)
    instances[30:70, 80:120] = 26001
    folders = {n: tmp_path / n for n in ("labels", "instances", "pred")}
    truth = tmp_path / "cityscapes" / "gtFine" / "val" / "ulm"
    for folder in (folders["labels"], folders["instances"], truth):
        folder.mkdir(parents=True)
    for kind, array in (("label", labels), ("instance", instances)):
        iio.imwrite(truth / f"ulm_0_gtFine_{kind}Ids.png", array)
        iio.imwrite(folders[f"{kind}s"] / "ulm_0.png", array)
    params = SemanticMetric().options_of(bb.Protocol.preset("cityscapes"))
    drawn = class_boundaries(labels, params, instances)
    for k in range(19):
        picture = soft(rng, drawn[k])
        for root, name in (("pred", "ulm_0"), ("theirs", "ulm/ulm_0_leftImg8bit")):
            path = tmp_path / root / f"class_{k + 1:03d}" / f"{name}.png"
            path.parent.mkdir(parents=True, exist_ok=True)
            iio.imwrite(path, picture)
    for thin in (True, False):
        theirs = CityscapesEvaluator(tmp_path / "cityscapes", tmp_path / "theirs", thin=thin)
        theirs.set_eval_params(apply_thinning=thin)
        found = theirs.evaluate(thresholds=5, nproc=1)
        run = bb.evaluate(
            folders["pred"], folders["labels"], theirs.protocol(5), metrics="semantic", workers=1
        ).score("semantic")
        assert {n: s["ODS_f1"] for n, s in found.items()} == {
            n: s.ods.f for n, s in run.per_class.items()
        }
        assert set(found) == {"road", "car"}


@pytest.mark.parametrize(
    ("call", "fault"),
    [
        (lambda e: e.set_eval_params(scale=0.5), "expected 1"),
        (lambda e: e.set_eval_params(eval_mode="seal"), "expected pre-seal, post-seal or None"),
        (lambda e: e.evaluate([0]), "expected numbers from 1 to 20"),
        (lambda e: e.evaluate_category(21), "expected numbers from 1 to 20"),
    ],
)
def test_wrong_arguments_are_one_line(sbd, call, fault):
    with pytest.raises(bb.DataError, match=fault):
        call(SBDEvaluator(*sbd))
