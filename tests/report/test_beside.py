"""Published rows and the human point in a report: beside runs of their own set only."""

import json
import re

from bsdsbench.report import write_report
from tests.helpers.simulated import simulated_run


def human_point(text):
    data = re.search(r'id="data">(.*?)</script>', text, re.DOTALL)
    return json.loads(data[1])["human"]


def test_published_rows_and_what_they_do_not_fit(tmp_path):
    path = tmp_path / "r.html"
    write_report([simulated_run("mine", 5)], path, published=["hed"], n_boot=10)
    text = path.read_text("utf-8")
    assert "HED (2015, published)" in text
    assert "5 images, but published results are of the 200 BSDS500 test images" in text
    assert "they do not compare" in text


def test_human_agreement_on_bsds500_stands_beside_its_test_images_only(tmp_path):
    path = tmp_path / "r.html"
    notes = write_report([simulated_run("mine", 5)], path, human=True, n_boot=10)
    assert human_point(path.read_text("utf-8")) is None
    assert any(note.startswith("no human point: mine: 5 images, but") for note in notes)
    notes = write_report([simulated_run("all", 200)], path, human=True, n_boot=10)
    assert human_point(path.read_text("utf-8")) == [0.7235, 0.9014]
    assert not any("human" in note for note in notes)
