"""No reader takes a folder of two runs for one, and nothing of an earlier run stays in it."""

import threading

import pytest
from click.testing import CliRunner

import bsdsbench as bb
from bsdsbench.cli import cli
from bsdsbench.files.errors import FileFormatError
from bsdsbench.files.writing import MANIFEST, READ_BACK, Manifest
from bsdsbench.runs.record_store import FOLDER
from bsdsbench.runs.run_folder import load_run, write_drawn
from tests.helpers.runs import refused
from tests.helpers.simulated import simulated_run


@pytest.fixture
def out(tmp_path):
    return simulated_run("one", 8, quality=0.2, seed=1).save(tmp_path / "out")


def half_overwritten(out, tmp_path):
    """As a writer without a manifest would leave it: some images of another run."""
    other = simulated_run("two", 8, quality=0.8, seed=2).save(tmp_path / "other")
    for path in sorted((other / "per_image").iterdir())[:3]:
        (out / "per_image" / path.name).write_bytes(path.read_bytes())


@pytest.mark.parametrize("below", ["", "per_image"])
@pytest.mark.parametrize("read", [bb.Evaluation.from_official, load_run])
def test_official_files_of_ours_are_read_by_their_manifest(out, tmp_path, below, read):
    before = bb.Evaluation.from_official(out / below).boundary_score().ods
    half_overwritten(out, tmp_path)
    if below or read is not load_run:  # of OUT load_run reads the counts
        with pytest.raises(FileFormatError, match=r"_ev1\.txt: is not what manifest\.json names"):
            read(out / below)
    assert bb.Evaluation.load(out).boundary_score().ods == before


@pytest.mark.parametrize(
    "words",
    [
        ["report", "--rules", "{out}/per_image"],
        ["plot", "{out}/per_image", "-o", "{out}/../x.png"],
        ["compare", "{out}/per_image", "{other}"],
    ],
)
def test_verbs_on_a_folder_half_overwritten(out, tmp_path, words):
    half_overwritten(out, tmp_path)
    words = [word.format(out=out, other=tmp_path / "other") for word in words]
    ran = CliRunner().invoke(cli, words, standalone_mode=False)
    assert isinstance(ran.exception, bb.DataError)
    assert "is not what manifest.json names" in str(ran.exception)


@pytest.mark.parametrize("below", ["", "per_image"])
def test_a_run_being_written_is_no_folder_of_official_files(out, below, monkeypatch):
    found = Manifest.read(out)
    found.state = "being written"
    found.write()
    refused("was not finished", bb.Evaluation.from_official, out / below, error=FileFormatError)
    monkeypatch.chdir(out / "per_image")
    refused("was not finished", bb.Evaluation.from_official, ".", error=FileFormatError)


def test_an_image_that_the_manifest_does_not_have_is_refused(out):
    extra = out / "per_image" / "zz_ev1.txt"
    extra.write_bytes(next((out / "per_image").iterdir()).read_bytes())
    with pytest.raises(FileFormatError, match=r"zz_ev1\.txt: is not what manifest"):
        bb.Evaluation.from_official(out)


def test_an_image_or_a_table_that_is_gone_is_missed(out):
    (out / "eval_bdry.txt").unlink()
    with pytest.raises(FileFormatError, match=r"eval_bdry\.txt: is gone, manifest\.json names it"):
        bb.Evaluation.from_official(out)
    assert len(bb.Evaluation.from_official(out / "per_image").records) == 8
    next((out / "per_image").iterdir()).unlink()
    with pytest.raises(FileFormatError, match=r"per_image/.*_ev1\.txt: is gone, manifest\.json"):
        bb.Evaluation.from_official(out / "per_image")


def test_images_that_the_new_run_does_not_have_do_not_stay(out):
    """Also where the writer in between was killed."""
    found = Manifest.read(out)
    found.state = "being written"
    found.write()
    fewer = simulated_run("fewer", 3, quality=0.2, seed=1)
    fewer.save(out)
    assert len(list((out / "per_image").iterdir())) == 3
    assert len(bb.Evaluation.from_official(out).records) == 3


@pytest.mark.slow
def test_the_manifest_names_all_that_we_wrote(tiny, tmp_path):
    out = tmp_path / "out"
    words = ["evaluate", str(tiny[0]), "--gt", str(tiny[1]), "-o", str(out), "--quiet"]
    more = ["--workers", "1", "--overlays", "--thresholds", "5"]
    assert CliRunner().invoke(cli, [*words, *more], standalone_mode=False).exception is None
    report = ["report", str(out), "-o", str(out / "report.html"), "--no-pictures", "--n-boot", "20"]
    assert CliRunner().invoke(cli, report, standalone_mode=False).exception is None
    ours = {".lock", MANIFEST}
    there = {p.relative_to(out).as_posix() for p in out.rglob("*") if p.is_file()}
    there = {name for name in there if not name.startswith(FOLDER)}
    assert {"pr.png", "pr.svg", "report.html", "timing.json", ".origin"} <= there
    assert len([name for name in there if name.startswith("overlays/")]) == 12
    assert set(Manifest.read(out).files) == there - ours
    words[words.index("--quiet") :] = ["--quiet", "--metrics", "pixel", "--workers", "1"]
    assert CliRunner().invoke(cli, words, standalone_mode=False).exception is None
    assert not (out / "report.html").exists()
    assert not list((out / "overlays").iterdir())


def test_what_is_drawn_of_another_result_is_not_put_beside_this_one(out):
    other = simulated_run("two", 8, quality=0.8, seed=2)
    write_drawn([other], out, ["pr.png"], [b"x"])
    assert not (out / "pr.png").exists()
    write_drawn([other], out, ["mine.html"], [b"x"])  # a name the user gave
    assert "mine.html" not in Manifest.read(out).files
    (out / "overlays").symlink_to(out.parent)
    with pytest.raises(bb.DataError, match="overlays: is a link"):
        write_drawn([bb.Evaluation.load(out)], out / "overlays", ["a.png"], [b"x"])


@pytest.mark.slow
def test_two_saves_at_once_leave_one_of_them(tmp_path):
    runs = [simulated_run(f"run{k}", 12, quality=0.1 * k, seed=k) for k in range(4)]
    for _ in range(3):
        threads = [threading.Thread(target=run.save, args=(tmp_path / "out",)) for run in runs]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        found = bb.Evaluation.load(tmp_path / "out")
        assert any(found.equals(run) for run in runs)
        assert len(bb.Evaluation.from_official(tmp_path / "out").records) == 12


def test_a_saving_clears_what_a_killed_merge_left(tmp_path):
    out = tmp_path / "out"
    (out / ".new" / "per_image").mkdir(parents=True)
    for name in (".result.json.x.part", ".new/result.json", ".new/per_image/.im0.y.part"):
        (out / name).write_text("half")
    simulated_run("one", 3, seed=1).save(out)
    left = [p for p in out.rglob("*") if p.suffix == ".part" or ".new" in p.parts]
    assert left == []


@pytest.mark.parametrize("name", [FOLDER, "per_image"])
def test_fresh_and_saving_follow_no_link(tiny, tmp_path, name):
    out, elsewhere = tmp_path / "out", tmp_path / "elsewhere"
    options = {"workers": 1, "out": out, "protocol": "bsds500"}
    bb.evaluate(*tiny, **options)
    before = [(out / each).read_bytes() for each in READ_BACK]
    (out / name).rename(elsewhere)
    (out / name).symlink_to(elsewhere)
    content = {p.name: p.read_bytes() for p in elsewhere.iterdir()}
    with pytest.raises(bb.DataError, match=f"{name}: is a link, expected a folder of its own"):
        bb.evaluate(*tiny, **options, fresh=True)
    assert {p.name: p.read_bytes() for p in elsewhere.iterdir()} == content
    assert [(out / each).read_bytes() for each in READ_BACK] == before


def test_a_folder_that_links_to_itself_is_one_line(out):
    (out / "per_image").rename(out / "elsewhere")
    (out / "per_image").symlink_to(out / "per_image")
    for folder in (out, out / "per_image"):
        with pytest.raises(FileFormatError, match="per_image"):
            bb.Evaluation.from_official(folder)
