"""bsdsbench nms: raw maps to pictures, and from raw maps to scores in one command."""

import shutil

import imageio.v3 as iio
import numpy as np
import pytest

from bsdsbench.detectors.nms_folder import nms_files
from bsdsbench.errors import DataError, InputWarning
from bsdsbench.protocol.protocol import Protocol
from bsdsbench.runs.engine import evaluate
from bsdsbench.transforms.maps import _quantise, nms
from tests.helpers.crops import crops
from tests.helpers.runs import call, refused


@pytest.fixture
def raw(tmp_path):
    return crops(tmp_path, "structure-tensor-raw")


def test_written_and_read_again_scores_as_with_the_switch(raw, tmp_path):
    proto = Protocol.preset("biped").replace(thresholds=9)
    done = []
    count = nms_files(raw[0], tmp_path / "thin", proto, progress=lambda *a: done.append(a))
    assert (count, len(done)) == (2, 2)
    options = {"workers": 1, "executor": "thread"}
    switched = evaluate(*raw, proto.replace(nms=True), **options)
    written = evaluate(tmp_path / "thin", raw[1], proto, **options)
    for a, b in zip(switched.records, written.records, strict=True):
        assert a.counts["boundary"].equals(b.counts["boundary"])


def test_pictures_of_16_bits(raw, tmp_path):
    words = ["--set", "nms_params.bits=16", "--set", "nms_params.radius=2", "--quiet"]
    assert "2, 5, 1.01" in call("nms", raw[0], tmp_path / "thin", *words)
    written = iio.imread(tmp_path / "thin" / "herd2.png")
    assert written.dtype == np.uint16
    assert np.array_equal(written, _quantise(nms(iio.imread(raw[0] / "herd2.png"), radius=2), 16))


def test_maps_of_an_earlier_call_are_said(raw, tmp_path):
    """The other maps would be scored with the new ones."""
    nms_files(raw[0], tmp_path / "thin", Protocol())
    nms_files(raw[0], tmp_path / "thin", Protocol())  # the same maps again are no surprise
    (raw[0] / "herd2.png").unlink()
    with pytest.warns(InputWarning, match="holds maps of earlier calls: herd2, expected only"):
        nms_files(raw[0], tmp_path / "thin", Protocol())


def test_raw_maps_are_not_replaced(raw, tmp_path):
    """Two folders of inputs, and no folder for the result."""
    shutil.copytree(raw[0], tmp_path / "other")
    before = {path: path.read_bytes() for path in (tmp_path / "other").iterdir()}
    words = r"other: would replace fruit1.png, herd2.png, no results of NMS, expected a new folder"
    refused(words, nms_files, raw[0], tmp_path / "other", Protocol())
    assert {path: path.read_bytes() for path in (tmp_path / "other").iterdir()} == before


def test_maps_that_are_thin_or_inverted_are_said(raw, tmp_path):
    """Neither can be seen in the maps that NMS writes."""
    nms_files(raw[0], tmp_path / "thin", Protocol())
    with pytest.warns(InputWarning, match="^2 of 2 checked maps have thin edges already"):
        nms_files(tmp_path / "thin", tmp_path / "twice", Protocol())
    for path in raw[0].iterdir():
        iio.imwrite(path, 255 - iio.imread(path))
    with pytest.warns(InputWarning, match=r"^2 of 2 checked maps are bright, .*\(invert=True\)"):
        nms_files(raw[0], tmp_path / "dark", Protocol())
    nms_files(raw[0], tmp_path / "light", Protocol(invert=True))
    assert [p.read_bytes() for p in sorted((tmp_path / "light").iterdir())] == [
        p.read_bytes() for p in sorted((tmp_path / "thin").iterdir())
    ]


def test_faults_are_said_together_and_the_rest_is_written(raw, tmp_path):
    (raw[0] / "a.png").write_bytes(b"no picture")
    np.save(raw[0] / "herd2.npy", np.zeros((80, 120)))
    with pytest.raises(DataError, match=r"herd2(.|\n)*same id(.|\n)*a\.png"):
        nms_files(raw[0], tmp_path / "thin", Protocol())
    assert sorted(p.name for p in (tmp_path / "thin").iterdir()) == ["fruit1.png", "herd2.png"]
    for target in (raw[0], raw[0] / "deep" / "out"):
        refused(
            "is inside the input .*, expected a folder outside it",
            nms_files,
            raw[0],
            target,
            Protocol(),
        )
    for folder, words in ((".", "no soft maps"), ("nowhere", "nowhere: does not exist")):
        refused(words, nms_files, tmp_path / folder, tmp_path / "thin", Protocol())
