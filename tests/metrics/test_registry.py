"""Metrics of other packages among ours."""

import importlib.metadata
from types import SimpleNamespace

import numpy as np
import pytest

import bsdsbench as bb
from bsdsbench.errors import DataError
from bsdsbench.metrics import Column, Metric, registry
from bsdsbench.metrics.pixel import PixelMetric
from tests.helpers.runs import call, refused


@pytest.fixture
def others(monkeypatch):
    """Entry points: of a metric's name, of no metric, and of another name than its metric's."""
    made = {"boundary": PixelMetric, "odd": lambda: SimpleNamespace(name="odd"), "px": PixelMetric}
    found = [
        SimpleNamespace(name=name, value=f"{name}:Metric", load=lambda make=make: make)
        for name, make in made.items()
    ]
    monkeypatch.setattr(
        importlib.metadata, "entry_points", lambda group: found * (group == "bsdsbench.metrics")
    )
    registry._entry_points.cache_clear()
    yield
    registry._entry_points.cache_clear()


def test_a_package_adds_metrics_of_its_own_names(others):
    assert registry.names() == (*registry.BUILT_IN, "odd", "px")
    assert registry.get("boundary").title == "Boundaries"


@pytest.mark.parametrize("name", ["odd", "px"])
def test_what_is_no_metric_of_its_name_is_refused(others, name):
    words = f"^metric '{name}': {name}:Metric is no Metric of that name$"
    refused(words, registry.get, name)


class Twos(Metric):
    """The share of label 2, by a package that says nothing of images and has faults."""

    name, title, reads, default_protocol = "twos", "Twos", "classes", "masks"
    columns = (Column("share", "share of twos"), Column("n_images", "images", score=False))
    fault = ""

    def count(self, pred, gt, protocol, opt):
        twos = int((pred.classes == 2).sum())
        if twos and self.fault == "raises":
            np.zeros(3).reshape(2)  # numpy's line is innermost, ours is to blame
        more = {"late": np.ones(1)} if twos and self.fault == "late" else {}
        return {"twos": twos, "pixels": gt.labels.size, **more}

    def scores(self, stack, weights, protocol, opt):
        return {"share": (weights @ stack["twos"]) / (weights @ stack["pixels"])}


@pytest.fixture
def twos(monkeypatch):
    made = SimpleNamespace(name="twos", value="tests:Twos", load=lambda: Twos)
    monkeypatch.setattr(importlib.metadata, "entry_points", lambda group: [made])
    registry._entry_points.cache_clear()
    yield
    registry._entry_points.cache_clear()


def images(first=0, last=2):
    for k, label in enumerate((first, last)):
        truth = np.ones((4, 4), int)
        yield f"im{k}", np.where(np.eye(4) > 0, label, 1), truth


@pytest.mark.parametrize(
    ("fault", "words"),
    [
        ("raises", r"^im1: unexpected ValueError: .*\(a bug in tests, in test_registry.py, line "),
        ("late", "only some images have the counts late"),
    ],
)
def test_a_fault_of_another_package_is_named_as_its_own(twos, monkeypatch, fault, words):
    monkeypatch.setattr(Twos, "fault", fault)
    with pytest.raises(DataError, match=words):
        bb.evaluate_items(images(), metrics="twos", workers=1).scores()


def test_a_metric_that_says_nothing_of_images_is_shown_everywhere(twos, tmp_path):
    assert [column.key for column in Twos.image_columns] == ["share"]
    for name, last in (("a", 2), ("b", 1)):
        out = tmp_path / name
        bb.evaluate_items(images(last=last), metrics="twos", workers=1, name=name, out=out)
    page = tmp_path / "page.html"
    few = ("--n-boot", 50, "--quiet")
    call("report", tmp_path / "a", tmp_path / "b", "-o", page, *few)
    assert "share of twos" in page.read_text("utf-8")
    assert call("worst", tmp_path / "a", "--quiet").count("im1") == 1
    assert "share of twos" in call("compare", tmp_path / "a", tmp_path / "b", *few)


@pytest.mark.parametrize(
    ("name", "words"),
    [("hd95", "expected one of boundary"), ("PIXELS", "did you mean 'pixel'"),
     ("", "expected one of boundary"), ("iou", "calibration$")],
)  # fmt: skip
def test_an_unknown_metric_is_refused_with_those_there_are(name, words):
    refused(words, registry.check_names, name)


@pytest.mark.parametrize(
    ("preset", "metrics"),
    [("saliency", "saliency"), ("masks", "contour, segmentation"), ("calibration", "calibration"),
     ("crack-aiu", "aiu"), ("medical", "contour"), ("cityscapes", "semantic"), ("sintel", "depth")],
)  # fmt: skip
def test_a_preset_of_other_metrics_needs_them(preset, metrics, tmp_path):
    refused(f"none given, and protocol {preset} is for {metrics}", bb.evaluate_items, [], preset)
    changed = bb.Protocol.preset(preset).replace(gt_invert=True)
    refused("none given", bb.doctor, tmp_path, tmp_path, changed)
    refused("none given", call, "evaluate", tmp_path, "--gt", tmp_path, "--protocol", preset)
    stream = bb.StreamingEvaluator(preset, "boundary")  # asked for
    stream.update(np.eye(9), [np.eye(9)])
    assert stream.compute().metrics == ("boundary",)


@pytest.mark.parametrize("preset", ["biped", "crispness-ceval", "crispness-seval", "wireframe"])
def test_presets_of_boundaries_need_no_metric(preset):
    assert bb.StreamingEvaluator(preset).metrics == ("boundary",)
