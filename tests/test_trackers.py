"""The page on trackers: what it logs is in the files of TensorBoard and MLflow, and W&B's call."""

import json
import re
import sys
from pathlib import Path
from types import ModuleType

import pytest

PAGE = (Path(__file__).parents[1] / "docs/howto/trackers.md").read_text("utf-8")
FIRST, *BLOCKS = re.findall(r"^```python\n(.*?)^```", PAGE, re.M | re.S)


@pytest.fixture
def logged(tmp_path, monkeypatch):
    """Run the page's first block and one more, and return the names they have."""
    monkeypatch.chdir(tmp_path)

    def run_block(tool):
        (block,) = (b for b in BLOCKS if re.search(rf"^(import|from) {tool}\b", b, re.M))
        names = {}
        exec(FIRST, names)
        exec(block, names)
        assert {type(value) for value in names["scores"].values()} == {float}
        assert names["scores"]["val/boundary/ods"] > 0
        return names

    return run_block


@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning")
def test_tensorboard(logged, tmp_path):
    pytest.importorskip("tensorboard")
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
    from tensorboard.util.tensor_util import make_ndarray

    names = logged("tensorboard")
    events = EventAccumulator(str(tmp_path / "logs")).Reload()
    assert set(events.Tags()["tensors"]) == set(names["scores"])
    for name, score in names["scores"].items():
        (event,) = events.Tensors(name)
        assert event.step == names["epoch"]
        assert make_ndarray(event.tensor_proto) == pytest.approx(score)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning")
def test_mlflow(logged, tmp_path, monkeypatch):
    for name, value in {
        "MLFLOW_TRACKING_URI": (tmp_path / "runs").as_uri(),
        "MLFLOW_ALLOW_FILE_STORE": "true",
        "MLFLOW_DISABLE_TELEMETRY": "true",
        "DO_NOT_TRACK": "true",
    }.items():
        monkeypatch.setenv(name, value)
    pytest.importorskip("mlflow")
    names = logged("mlflow")
    for name, score in names["scores"].items():
        (file,) = (tmp_path / "runs").rglob(f"metrics/{name}")
        _, value, step = file.read_text().split()
        assert (float(value), int(step)) == (score, names["epoch"])
    (signature,) = (tmp_path / "runs").rglob("params/signature")
    assert signature.read_text() == str(names["run"].signature)


def test_wandb_takes_a_mapping_that_is_json(logged, monkeypatch):
    """In place of its module one that takes what its `log` documents: a dict, and a step."""
    calls, wandb = {}, ModuleType("wandb")
    wandb.init = lambda *, project, config: calls.update(config=config)
    wandb.log = lambda data, step: calls.update(data=data, step=step)
    monkeypatch.setitem(sys.modules, "wandb", wandb)
    names = logged("wandb")
    assert json.loads(json.dumps(calls["data"], allow_nan=False)) == names["scores"]
    assert all(isinstance(name, str) for name in calls["data"])
    assert (calls["step"], list(calls["config"])) == (names["epoch"], ["signature"])
