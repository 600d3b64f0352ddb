"""The verbs as a whole: their groups, their help, and options that are given more than once."""

import json
import re
import subprocess
import sys

import click
import pytest

import bsdsbench as bb
from bsdsbench.cli import GROUPS, cli
from bsdsbench.detectors.baselines import BASELINES
from bsdsbench.metrics import registry
from tests.helpers.runs import call, refused

FEW = ("--thresholds", "5", "--workers", "1", "--executor", "thread", "--quiet")


def test_help_groups_the_verbs_by_what_a_user_does():
    lines = call("--help").splitlines()
    assert max(map(len, lines)) <= 80
    found, heading = {}, ""
    for line in lines:
        if re.fullmatch(r"[A-Z]\w+:", line):
            heading = line[:-1]
        elif line.startswith("  "):
            found.setdefault(heading, []).append(line.split()[0])
    assert {heading: found[heading] for heading in GROUPS} == {h: [*GROUPS[h]] for h in GROUPS}


def test_the_list_of_verbs_has_the_first_sentence_of_the_help_of_each():
    for summaries in GROUPS.values():
        for verb, summary in summaries.items():
            command = cli.get_command(click.Context(cli), verb)
            assert command.get_short_help_str(80) == summary
            first_sentence = " ".join(command.help.split("\n\n")[0].split()).partition(". ")[0]
            assert first_sentence.rstrip(".") == summary.removesuffix(".")


@pytest.mark.process
def test_the_list_of_verbs_imports_none_of_them():
    program = (
        "import sys\n"
        "from bsdsbench.cli import cli\n"
        "cli.main(['--help'], standalone_mode=False)\n"
        "print(*sorted(m for m in sys.modules if m.startswith('bsdsbench.')))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    expected = "cli cli.flags cli.shared errors lazy metrics metrics.registry text"
    assert done.stdout.splitlines()[-1].replace("bsdsbench.", "") == expected, done.stderr


@pytest.mark.parametrize("command", ["evaluate", "curves"])
def test_sections_of_the_help_list_options_alone(command):
    sections = call(command, "--help").partition("\nOptions:\n")[2]
    assert all(line.startswith("  -") for line in re.findall(r"(?m)^  \S.*", sections))


@pytest.mark.parametrize(
    "words",
    [
        ("--set", "nms_params.radius=2", "--set", "nms-params.radius=3"),
        ("--set", "thresholds=9", "--thresholds", "5"),
        ("--protocol", "bsds500", "--signature", "x"),
    ],
)
def test_a_field_that_is_given_twice_is_refused(words, tmp_path):
    expected = "given more than once|given by --set and by an option|not both"
    with pytest.raises((click.UsageError, bb.DataError), match=expected):
        call("evaluate", tmp_path, "--gt", tmp_path, *words)


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["--set", "divisor=1000"], r"field 'divisor': .*, or METRIC\.OPTION"),
        (
            ["--metrics", "segmentation", "--set", "segmentation.classes=6"],
            r"expected names, such as road,car \(not their",
        ),
    ],
)
def test_an_option_without_its_metric_and_a_number_of_classes_name_the_way(
    words, expected, tmp_path
):
    with pytest.raises((click.UsageError, bb.DataError), match=expected):
        call("evaluate", tmp_path, "--gt", tmp_path, *words)


def test_metrics_add_up_with_a_comma_or_an_option_each(tiny):
    pred, gt = tiny
    found = [
        json.loads(call("evaluate", pred, "--gt", gt, *FEW, "--format", "json", *words))["scores"]
        for words in (
            ["--metrics", "pixel,boundary"],
            ["--metrics", "boundary", "--metrics", "pixel"],
        )
    ]
    assert found[0] == found[1]
    assert list(found[0]) == ["boundary", "pixel"]


@pytest.mark.process
def test_help_lists_metrics_of_other_packages_and_imports_nothing_heavy(monkeypatch):
    monkeypatch.setattr(registry, "_entry_points", lambda: {"davis-f": None})
    text = " ".join(call("evaluate", "--help").split())
    assert f"{', '.join(registry.BUILT_IN)}, davis-f; default: boundary" in text
    program = (
        "import sys\n"
        "from bsdsbench.cli import cli\n"
        "cli.main(['evaluate', '--help'], standalone_mode=False)\n"
        "print('heavy:', {'numpy', 'scipy', 'numba', 'skimage'} & sys.modules.keys())"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.stdout.endswith("heavy: set()\n"), done.stderr


def test_help_of_run_names_every_built_in_detector():
    text = re.sub(r"-\s+", "-", call("run", "--help"))
    assert set(BASELINES) <= set(re.findall(r"[\w-]+", text))


def test_a_wrong_call_is_one_line_that_says_where_help_is(monkeypatch, capsys):
    from bsdsbench.cli import main

    monkeypatch.setattr(sys, "argv", ["bsdsbench", "compare"])
    refused("2", main, error=SystemExit)
    line = "bsdsbench: give the folder of a run (OUT), or --method NAME=OUT"
    assert capsys.readouterr() == ("", f"{line} (bsdsbench compare --help)\n")


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (("--max-dist", ""), "--max-dist '': expected a value"),  # of a variable that is not set
        (("--thresholds", " "), "--thresholds ' ': expected a value"),
        (("--max-dist", ".01", "--max-dist=.02"), "--max-dist is given 2 times, expected once"),
        (("-o", "a", "--out", "b"), "--out is given 2 times"),
        (("--set", "max_dist=.01", "--set", "max_dist_px=2"), "--max-dist-px, not both"),
    ],
)
def test_values_that_are_empty_or_given_twice_are_refused(words, expected, tmp_path):
    with pytest.raises(click.UsageError, match=re.escape(expected)):
        call("evaluate", tmp_path, "--gt", tmp_path, *words)


def test_the_files_of_a_run_are_not_overwritten(tmp_path):
    names = ("result.json", "counts.npz")
    for name in names:
        (tmp_path / name).write_text("kept")
    for name in names:
        with pytest.raises(click.UsageError, match=f"{name}: is a file of a run, expected another"):
            call("report", tmp_path, "-o", tmp_path / name)
        assert (tmp_path / name).read_text() == "kept"


def test_groups_that_a_figure_does_not_show_are_refused(tmp_path):
    with pytest.raises(click.UsageError, match=r"--groups.* without --by or --cluster"):
        call("plot", tmp_path, "-o", tmp_path / "x.png", "--groups", tmp_path / "none.csv")
