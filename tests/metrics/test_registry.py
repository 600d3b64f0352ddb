"""Metrics of other packages among ours."""

import importlib.metadata
from types import SimpleNamespace

import pytest

from bsdsbench.metrics import registry
from bsdsbench.metrics.pixel import PixelMetric
from tests.helpers.runs import refused


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
    registry._others.cache_clear()
    yield
    registry._others.cache_clear()


def test_a_package_adds_metrics_of_its_own_names(others):
    assert registry.names() == (*registry.BUILT_IN, "odd", "px")
    assert registry.get("boundary").title == "Boundaries"


@pytest.mark.parametrize("name", ["odd", "px"])
def test_what_is_no_metric_of_its_name_is_refused(others, name):
    words = f"^metric '{name}': {name}:Metric is no Metric of that name$"
    refused(words, registry.get, name)
