"""The page "Our number against theirs": each row whose program is installed gives both numbers."""

import importlib
import re
from pathlib import Path

import pytest

TEXT = (Path(__file__).parents[2] / "docs" / "evidence" / "theirs.md").read_text("utf-8")
ROWS = re.findall(r"^\| (\w+) \| `([^`]+)` \| `([^`]+)` \| (\S+) \| (\S+) \|", TEXT, re.M)
AS = {
    "sk": "sklearn.metrics",
    "sm": "skimage.metrics",
    "mp": "medpy.metric.binary",
    "sd": "surface_distance",
    "mm": "monai.metrics",
    "tf": "torchmetrics.functional",
}
pytestmark = pytest.mark.filterwarnings("ignore")  # of other packages


@pytest.fixture(scope="module")
def arrays():
    names: dict = {}
    exec(re.search(r"```python\n(.*?)```", TEXT, re.S)[1], names)
    return names


@pytest.mark.parametrize(("program", "their", "our", "theirs", "ours"), ROWS)
def test_a_row(arrays, program, their, our, theirs, ours):
    assert f"{float(eval(our, arrays)):.6f}" == ours
    word = re.match(r"(?:sum\()?(\w+)\.", their)[1]
    module = pytest.importorskip(AS[word], exc_type=ImportError)
    if word in ("mm", "tf"):
        import torch

        arrays["t"] = lambda x: torch.tensor(x)[None, None].float()
    assert f"{float(eval(their, arrays | {word: module})):.6f}" == theirs
    assert importlib.import_module(program)


def test_the_page_has_rows():
    assert len(ROWS) > 13
