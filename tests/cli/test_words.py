"""What the command line says where a call is nearly right."""

import re

import click
import numpy as np
import pytest
from click.testing import CliRunner
from rich.progress import Progress

from bsdsbench.cli import cli, main
from bsdsbench.cli.flags import as_flag
from bsdsbench.cli.shared import progress
from bsdsbench.errors import DataError, Setting, merge_similar_problems
from bsdsbench.io import png_bytes
from bsdsbench.loaders.readers import load_ground_truth
from bsdsbench.loaders.sample import sample_ground_truth
from tests.helpers.runs import call, refused
from tests.helpers.simulated import simulated_run


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["evalute", "x"], "no command 'evalute'; did you mean 'evaluate'"),
        (["evaluate", ".", "--gt", ".", "--protocol", "bsd500"], "'bsd500': .* mean 'bsds500'"),
        (
            ["evaluate", ".", "--gt", ".", "--set", "nsm=canny"],
            r"field 'nsm': .*options, or METRIC\.OPTION; did you mean 'nms'\?$",
        ),
        (["check", "{out}", "--baseline", "none.json"], r"no such file, .* --update` makes one"),
        (
            ["evaluate", ".", "--gt", ".", "--metrics", "semantic"],
            r"semantic classes .*: expected class names: .*cityscapes.*sbd",
        ),
    ],
)
def test_a_call_that_is_nearly_right_is_told_what_is_meant(tmp_path, monkeypatch, words, said):
    out = simulated_run("a", 3).save(tmp_path / "a")
    monkeypatch.chdir(tmp_path)
    with pytest.raises((click.UsageError, DataError), match=said):
        call(*(word.format(out=out) for word in words))


@pytest.fixture
def clock(monkeypatch):
    """A list of one number, the seconds that it is."""
    seconds = [0.0]
    monkeypatch.setattr("time.monotonic", lambda: seconds[0])
    return seconds


def test_the_remaining_time_leaves_the_first_image_out(clock, capsys):
    with click.Context(cli), progress("x") as report:
        clock[0] = 60.0  # the first image compiled for a minute
        report(1, 100, "a")
        assert capsys.readouterr().err == "x: 1/100 images, 60 s elapsed\n"
        clock[0] = 70.0
        report(21, 100, "b")
        shown = "x: 21/100 images, 70 s elapsed, 2.0 images/s, 40 s left\n"
        assert capsys.readouterr().err == shown
        for clock[0] in range(600, 800, 10):  # a line a minute after ten
            report(22, 100, "c")
        assert len(capsys.readouterr().err.splitlines()) == 3


def test_a_terminal_has_a_bar(monkeypatch):
    shown = []
    monkeypatch.setattr(Progress, "update", lambda bar, task, **told: shown.append(told))
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    with click.Context(cli), progress("x") as report:
        report(21, 100, "b")
    assert shown == [{"completed": 21, "total": 100}]


FEW = 45  # of which the doctor measures some


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    """A square seen by a detector with values to 255, and its ground truth."""
    root = tmp_path_factory.mktemp("words")
    edges = np.zeros((24, 30), np.uint8)
    edges[6:18, 8], edges[6, 8:20] = 1, 1
    rng = np.random.default_rng(0)
    soft = np.where(edges > 0, 0.8, 0.1) + 0.1 * rng.random(edges.shape)
    for name in ("large", "gt"):
        (root / name).mkdir()
    for i in range(FEW):
        np.save(root / "large" / f"{i:02d}.npy", soft * (255 if i < 40 else 1))
        (root / "gt" / f"{i:02d}.png").write_bytes(png_bytes(255 * edges))
    return root


def ended(*words):
    """Status, output, and the lines of a refusal, of a call."""
    found = CliRunner().invoke(cli, list(map(str, words)), standalone_mode=False)
    if found.exception and not isinstance(found.exception, DataError):
        raise found.exception
    refused = list(
        map(str, merge_similar_problems(found.exception.problems if found.exception else ()))
    )
    return found.return_value, found.stdout, refused


def test_the_doctor_groups_equal_faults_and_says_what_it_rests_on(folders):
    status, out, _ = ended("doctor", folders / "large", "--gt", folders / "gt")
    lines = out.splitlines()
    assert status == 2
    assert re.fullmatch(
        r"error: unreadable: 40 files: .*values from [0-9.]+ to "
        r"22\d\.\d+, expected floats in .*\[00\.npy, 01\.npy, 02\.npy and 37 more\] -> "
        r"divide by 255, if that is white",
        lines[1],
    )
    assert lines[0].startswith("Read as: predictions soft float maps")
    assert lines[2] == f"1 error, 0 warnings; {FEW} images read, 5 of them measured"


@pytest.mark.process
def test_label_maps_taken_for_soft_maps_are_told_the_option(tmp_path):
    maps = tmp_path / "maps"
    maps.mkdir()
    for path in sorted(sample_ground_truth().glob("*.mat"))[:4]:
        labels = load_ground_truth(path).segmentations[0]
        np.save(maps / f"{path.stem}.npy", labels.astype(np.int64))
    ids = tmp_path / "ids.txt"
    ids.write_text("\n".join(p.stem for p in maps.iterdir()), "utf-8")
    given = [maps, "--gt", sample_ground_truth(), "--split-file", ids, "--metrics", "region"]
    given += ["--workers", 1]  # threads that import it would have pytest parse its modules at once
    (line,) = ended("evaluate", *given, "--quiet")[2]
    assert line.startswith("4 files (")
    assert "(pred_kind='labels' for label maps)" in line
    assert ended("evaluate", *given, "--quiet", "--pred-kind", "labels")[0] == 0


def test_shell_completion(monkeypatch, capsys):
    monkeypatch.setenv("_BSDSBENCH_COMPLETE", "zsh_source")
    refused(".", main, error=SystemExit)
    assert "_BSDSBENCH_COMPLETE=zsh_complete" in capsys.readouterr().out


def test_an_interrupted_folder_is_called_so(tmp_path):
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "records.db").touch()
    for words in (["compare"], ["check", "--baseline", "x.json"], ["merge", "-o", tmp_path / "x"]):
        refused("out: an unfinished run; repeat the command", call, *words, tmp_path / "out")


@pytest.mark.parametrize(
    ("setting", "verb", "flag"),
    [
        (Setting("nms"), "evaluate", "--nms"),
        (Setting("nms", False), "evaluate", "without --nms"),
        (Setting("pred_kind", "labels", "for label maps"), "doctor", "--pred-kind labels"),
        (Setting("empty_gt", "skip"), "evaluate", "--set empty_gt=skip"),
        (Setting("gt_invert"), "run", "--set gt_invert=true"),
        (Setting("contour.classes", "one,two"), "evaluate", "--set contour.classes=one,two"),
        (Setting("contour.classes", "a b,c"), "evaluate", "--set 'contour.classes=a b,c'"),
        (Setting("missing", ...), "evaluate", "--missing ..."),
        (Setting("force"), "plot", "--force"),
        (Setting("nms"), "compare", "nms=True"),  # which does not have it
    ],
)
def test_a_setting_is_written_as_the_verb_takes_it(setting, verb, flag):
    assert as_flag(setting, verb) == flag


@pytest.mark.process
@pytest.mark.parametrize("folder", ["nms=True,max_dist=0.01", "a: empty_gt='skip'", "invert=True"])
def test_what_a_message_quotes_stays_as_it_is(folder, tmp_path, monkeypatch, capsys):
    place = tmp_path / folder
    place.mkdir()
    (place / "fruit1.png").write_bytes(b"")
    monkeypatch.setattr(
        "sys.argv", ["bsdsbench", "evaluate", str(place), "--gt", str(sample_ground_truth())]
    )
    with pytest.raises(SystemExit) as end:
        main()
    assert end.value.code == 2
    assert folder in capsys.readouterr().err
