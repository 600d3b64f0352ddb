"""The pages in datasets/ say what the presets say."""

import re
from pathlib import Path

import pytest

from bsdsbench.protocol.protocol import Protocol, preset_names

PAGES = sorted(
    p for p in (Path(__file__).parents[1] / "datasets").glob("*.md") if p.stem != "README"
)


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.stem)
def test_page_names_its_presets_and_their_constants(page):
    text = page.read_text("utf-8")
    (row,) = re.findall(r"^\| protocol \| (.*) \|$", text, re.M)
    presets = [name for name in re.findall(r"`([\w-]+)`", row) if name in preset_names()]
    assert presets
    for name in presets:
        preset = Protocol.preset(name)
        assert f"{preset.max_dist:g}" in row, name
        assert ("thin" in row) or not preset.thin
        if "multiplier" in text:
            assert f"{preset.nms_params.multiplier:g}" in text, name
    used = set(re.findall(r"--protocol ([\w-]+)", text))
    assert used <= set(preset_names())


def test_every_public_data_set_has_a_page():
    linked = re.findall(r"\]\((\w[\w-]*)\.md\)", (PAGES[0].parent / "README.md").read_text("utf-8"))
    assert sorted(linked) == [p.stem for p in PAGES]
