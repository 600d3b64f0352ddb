"""The list of changes for mutation testing holds of the sources as they stand."""

import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
LISTED = tomllib.loads((ROOT / "scripts" / "mutants.toml").read_text("utf-8"))


@pytest.mark.parametrize("mutant", LISTED["mutant"], ids=lambda mutant: mutant["name"])
def test_what_a_change_replaces_is_once_in_its_file_and_its_tests_are_there(mutant):
    assert (ROOT / mutant["file"]).read_text("utf-8").count(mutant["old"]) == 1
    for name in mutant["tests"]:
        assert (ROOT / name.partition("::")[0]).exists()


@pytest.mark.parametrize("change", LISTED["equivalent"], ids=lambda change: change["line"])
def test_a_line_whose_change_is_excused_is_in_its_file(change):
    lines = (ROOT / change["file"]).read_text("utf-8").splitlines()
    assert change["line"] in [line.strip() for line in lines]
