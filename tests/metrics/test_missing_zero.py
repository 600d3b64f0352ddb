"""An image without a prediction counts as an empty one, for every metric that reads files."""

import numpy as np
import pytest
from scipy.io import savemat

import bsdsbench as bb
from bsdsbench.loaders.pairing import Pair
from bsdsbench.loaders.readers import read_prediction
from bsdsbench.metrics import registry
from bsdsbench.protocol.protocol import Protocol
from bsdsbench.runs.sources import find_sources
from tests.helpers.metric_cases import CASES


@pytest.mark.parametrize("name", registry.BUILT_IN)
def test_nothing_is_counted_by_every_metric(name):
    make, _, given, *_ = CASES[name]
    metric, (_, gt) = registry.get(name), make("a", np.random.default_rng(0), (30, 40))
    protocol = registry.complete_options(given or Protocol.preset(metric.default_protocol))
    n_maps = len(metric.files_read(metric.options_of(protocol)).classes) or 1
    for kind in metric.pred_kinds:
        nothing = read_prediction(Pair("a", (), ()), kind, gt.shape, n_maps)
        assert metric.stack([metric.count_image(nothing, gt, protocol)] * 2)


def partition(k):
    labels = np.zeros((30, 40), np.int32)
    labels[:, 10 + k :] = 1
    labels[15:, 20:] = 2
    return labels


@pytest.mark.parametrize("metric", ["region", "superpixel", "boundary"])
@pytest.mark.parametrize("levels", [1, 3])
@pytest.mark.parametrize("files", [False, True])
def test_a_missing_label_map_is_one_region_at_each_level(tmp_path, metric, levels, files):
    if metric == "superpixel" and levels > 1:
        return
    (tmp_path / "p").mkdir(), (tmp_path / "g").mkdir()
    for k, name in enumerate("abc"):
        truth = np.empty((1, 1), object)
        truth[0, 0] = {"Segmentation": partition(k) + 1, "Boundaries": bb.seg2bdry(partition(k))}
        savemat(tmp_path / "g" / f"{name}.mat", {"groundTruth": truth})
        maps = [partition(k + n) for n in range(levels)]
        if name != "b" and files:
            for n, labels in enumerate(maps, 1):
                np.save(
                    tmp_path / "p" / (f"{name}_{n}.npy" if levels > 1 else f"{name}.npy"), labels
                )
        elif name != "b":
            segs = np.empty((1, levels), object)
            segs[0] = maps
            savemat(tmp_path / "p" / f"{name}.mat", {"segs": segs})
    options = {"missing": "zero", "pred_kind": "labels", "metrics": metric, "workers": 1}
    run = bb.evaluate(tmp_path / "p", tmp_path / "g", **options)
    assert run.image_ids == ["a", "b", "c"]
    record = next(record for record in run.records if record.image_id == "b")
    find_sources(run).load_of_run(run, record, registry.get(metric))  # raises for other counts
    own = record.counts[metric]
    if metric == "superpixel":
        assert own["n_superpixels"] == 1
    elif metric == "boundary":
        assert not own["total_pred"].any()
        assert own["total_pred"].size == levels
