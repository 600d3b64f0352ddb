"""bsdsbench data certify on the official self-test, and on a copy that disagrees."""

import json
import shutil

import pytest
from click.testing import CliRunner

import bsdsbench as bb
from bsdsbench.cli import cli
from bsdsbench.integrations.certificate import certificate


def test_every_official_table_agrees_and_an_altered_one_does_not(bsds500_bench, tmp_path):
    copy = shutil.copytree(bsds500_bench, tmp_path / "data")
    table = copy / "test_1" / "eval_cover.txt"
    table.chmod(0o644)
    table.write_text(table.read_text().replace("0.", "0.1", 1))
    words = ["data", "certify", str(copy), "--format", "json", "--quiet"]
    ran = CliRunner().invoke(cli, words, standalone_mode=False)
    found = json.loads(ran.output)
    assert ran.return_value == 1
    assert not found["passed"]
    assert len(found["tables"]) == 27
    wrong = [(row["test"], row["table"]) for row in found["tables"] if not row["passed"]]
    assert wrong == [("test_1", "eval_cover.txt")]


def test_a_folder_that_is_not_the_self_test_is_one_line(tmp_path):
    (tmp_path / "images").mkdir()
    with pytest.raises(bb.DataError, match=r"no groundTruth, ucm2, .*expected the folder bench"):
        certificate(tmp_path)
