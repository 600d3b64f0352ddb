"""`run` scores its own detector's maps or none: each way to a mixture that was found."""

import functools
import importlib
import itertools
import json
import sys
import threading

import imageio.v3 as iio
import numpy as np
import pytest

import bsdsbench as bb
from bsdsbench.files.errors import RunLockedError
from bsdsbench.files.writing import MANIFEST
from bsdsbench.integrations.call_identity import identity_of
from bsdsbench.integrations.detectors import machine
from tests.helpers.runs import call

IDS = ("a", "b", "c")
DETECTOR = """
import numpy as np
import their_helper

SCALE = 1.0

def detect(image):
    return their_helper.turned(image.mean(axis=2) / 255) * SCALE

def lazy(image):
    import their_other
    return their_other.turned(image.mean(axis=2) / 255)

def rarely(image):
    try:
        raise KeyError
    except KeyError:
        match image.ndim:
            case 3:
                import their_third
    return their_third.turned(image.mean(axis=2) / 255)
"""
HELPER = "def turned(soft):\n    return soft\n"
OTHER = "def turned(soft):\n    return 1 - soft\n"


@pytest.fixture
def data(tmp_path):
    images, gt = tmp_path / "images", tmp_path / "gt"
    made(images, gt, IDS, 1)
    return images, gt


def made(images, gt, ids, seed):
    rng = np.random.default_rng(seed)
    images.mkdir(exist_ok=True)
    gt.mkdir(exist_ok=True)
    for k in ids:
        iio.imwrite(images / f"{k}.png", rng.integers(0, 256, (30, 40, 3), dtype=np.uint8))
        iio.imwrite(gt / f"{k}.png", (rng.random((30, 40)) < 0.1).astype(np.uint8) * 255)


@pytest.fixture
def user(tmp_path, monkeypatch):
    """Writes modules of the user's, which are imported anew."""
    folder = tmp_path / "code"
    folder.mkdir()
    monkeypatch.syspath_prepend(folder)
    monkeypatch.setattr(sys, "dont_write_bytecode", True)

    def write(**texts):
        for name, text in texts.items():
            (folder / f"{name}.py").write_text(text, "utf-8")
        forget()

    def forget():
        for name in ("their_detector", "their_helper", "their_other", "their_third"):
            sys.modules.pop(name, None)
        importlib.invalidate_caches()

    write(their_detector=DETECTOR, their_helper=HELPER, their_other=HELPER, their_third=HELPER)
    yield write
    forget()


def scored(detector, data, out, **options):
    return bb.run(detector, data[0], gt=data[1], out=out, workers=1, **options)


def anew(detector, data, tmp_path):
    """What a run in a folder of its own gives: the truth."""
    return scored(detector, data, tmp_path / f"anew{len(list(tmp_path.iterdir()))}")


def same_scores(one, two):
    return one.evaluation.scores() == two.evaluation.scores()


def test_the_same_call_is_taken_over_and_said(data, user, tmp_path):
    out = tmp_path / "out"
    first = scored("their_detector:detect", data, out)
    user()
    second = scored("their_detector:detect", data, out)
    assert (first.taken_over, second.taken_over) == (0, 3)
    assert second.milliseconds == first.milliseconds
    assert same_scores(first, second)
    assert second.notes == ("3 of 3 maps were taken over from an earlier call.",)
    told = json.loads((out / "result.json").read_text("utf-8"))
    assert told["provenance"]["detector"]["taken_over"] == 3
    assert "|maps:3 taken over|" in told["signature"]
    loaded = bb.Evaluation.load(out).signature
    assert str(type(loaded).parse(str(loaded))) == str(loaded)
    assert loaded.differences(first.evaluation.signature) == []
    assert "maps:" not in str(first.evaluation.signature)
    assert "taken over" in second.summary()


@pytest.mark.parametrize(
    ("spec", "change"),
    [
        ("their_detector:detect", {"their_detector": DETECTOR.replace("/ 255", "/ 510")}),
        ("their_detector:detect", {"their_helper": OTHER}),
        ("their_detector:lazy", {"their_other": OTHER}),
        ("their_detector:rarely", {"their_third": OTHER}),
    ],
)
def test_a_changed_source_is_another_detector(spec, change, data, user, tmp_path):
    scored(spec, data, tmp_path / "out")
    user(**change)
    again = scored(spec, data, tmp_path / "out")
    assert again.taken_over == 0
    assert same_scores(again, anew(spec, data, tmp_path))


def test_a_value_that_was_set_is_another_detector(data, user, tmp_path, monkeypatch):
    import their_detector

    scored(their_detector.detect, data, tmp_path / "out")
    monkeypatch.setattr(their_detector, "SCALE", 0.5)
    assert scored(their_detector.detect, data, tmp_path / "out").taken_over == 0


def test_what_this_package_imports_meanwhile_changes_nothing(user, monkeypatch):
    """It keeps modules, locks and caches in its own modules."""
    user(their_helper=f"import bsdsbench\n{HELPER}")
    import their_detector

    one = identity_of(their_detector.detect)
    monkeypatch.setattr(bb, "imported_later", np, raising=False)
    monkeypatch.setattr(bb, "kept", [3], raising=False)
    assert identity_of(their_detector.detect) == one
    assert one.unknown == ""


def test_a_library_of_another_version_is_another_detector(user, monkeypatch):
    import their_detector

    one = identity_of(their_detector.detect)
    monkeypatch.setattr(importlib.metadata, "version", lambda name: f"{name} 99")
    assert identity_of(their_detector.detect) != one


def test_times_of_two_machines_are_not_mixed(data, user, tmp_path, monkeypatch):
    for name, taken in (("one", 0), ("one", 3), ("other", 0)):
        monkeypatch.setattr("bsdsbench.integrations.detectors.machine", lambda name=name: name)
        found = scored("their_detector:detect", data, tmp_path / "out")
        assert (found.machine, found.taken_over) == (name, taken)
    assert machine()


def scaled(image, by):
    return image.mean(axis=2) / 255 * by


class Network:
    def __init__(self, weight):
        self.weight = weight

    def __call__(self, image):
        return image.mean(axis=2) / 255 * self.weight


def closed_over(by):
    def detect(image):
        return scaled(image, by)

    return detect


@pytest.mark.parametrize(
    "make",
    [
        lambda by: functools.partial(scaled, by=by),
        lambda by: lambda image: scaled(image, by),
        closed_over,
        Network,
        lambda by: Network(by).__call__,
        lambda by: functools.partial(scaled, by=np.float64(by)),
    ],
    ids=["partial", "lambda", "closure", "network", "method", "partial of an array"],
)
@pytest.mark.slow
def test_two_callables_of_one_name_are_two_detectors(make, data, tmp_path):
    scored(make(1.0), data, tmp_path / "out", name="x")
    again = scored(make(0.5), data, tmp_path / "out", name="x")
    assert again.taken_over == 0
    assert np.array_equal(iio.imread(again.maps / "a.png"), first_map(data, 0.5))


def first_map(data, by):
    return np.rint(scaled(iio.imread(data[0] / "a.png"), by) * 65535).astype(np.uint16)


def test_a_partial_of_plain_arguments_is_known(user):
    import their_detector

    one, two = (functools.partial(their_detector.detect, by=k) for k in (1, 1))
    assert identity_of(one) == identity_of(two)
    assert identity_of(one).unknown == ""


READER = """
from pathlib import Path

import numpy as np

NET = None

def detect(image):
    global NET
    if NET is None:
        NET = np.load(Path(__file__).with_name("weights.npy")), object()
        if (image[0, 0] == 7).all():
            raise ValueError("after the weights were read")
    Path("notes.txt").write_text("own")
    Path("notes.txt").read_text()
    return image.mean(axis=2) / 255 * NET[0]
"""


@pytest.mark.parametrize("first_fails", [False, True])
def test_weights_of_another_training_are_another_detector(
    first_fails, data, user, tmp_path, monkeypatch
):
    """The module holds no network before it is called, so its content seems known."""
    monkeypatch.chdir(tmp_path)
    if first_fails:
        picture = np.full((30, 40, 3), 7, np.uint8)
        iio.imwrite(data[0] / "a.png", picture)
    weights, said = tmp_path / "code" / "weights.npy", []
    for scale in (1.0, 1.0, 0.5):
        user(their_detector=READER)
        np.save(weights, np.float64(scale))
        scored("their_detector:detect", data, tmp_path / "out")
        user(their_detector=READER)
        said.append(scored("their_detector:detect", data, tmp_path / "out"))
    kept = 2 if first_fails else 3
    assert [run.taken_over for run in said] == [kept] * 3
    read = json.loads((tmp_path / "out" / "maps" / MANIFEST).read_text())["about"]["read"]
    assert list(read) == ["../../code/weights.npy"]
    user(their_detector=READER)
    np.save(weights, np.float64(0.25))
    last = scored("their_detector:detect", data, tmp_path / "out")
    assert last.taken_over == 0
    assert "weights.npy, which the detector reads, has changed" in last.notes[0]
    assert iio.imread(tmp_path / "out" / "maps" / "b.png").max() <= 65535 * 0.25
    weights.unlink()
    user(their_detector=READER)
    refused = pytest.raises(bb.DataError, match="No such file")
    with refused:
        scored("their_detector:detect", data, tmp_path / "out")


@pytest.mark.slow
def test_where_it_cannot_be_known_it_is_said_and_resume_takes_over(data, tmp_path):
    out, calls = tmp_path / "out", itertools.count()

    def detector(image):
        next(calls)
        return image.mean(axis=2) / 255

    assert scored(detector, data, out).notes == ()
    again = scored(detector, data, out)
    assert next(calls) == 8  # a warm-up and three, twice
    assert again.taken_over == 0
    assert "cannot be known" in again.notes[0]
    assert "'test_where_it_cannot" in again.notes[0]
    assert "--resume" in again.notes[0]
    kept = scored(detector, data, out, resume=True)
    assert next(calls) == 9
    assert kept.taken_over == 3
    other = scored(lambda image: image.mean(axis=2) / 300, data, out, resume=True)
    assert other.taken_over == 0


@pytest.mark.slow
def test_an_interrupted_run_is_no_result_and_goes_on(data, tmp_path):
    out, stop = tmp_path / "out", itertools.count()

    def detector(image):
        if next(stop) == 3:
            raise KeyboardInterrupt
        return image.mean(axis=2) / 255

    with pytest.raises(KeyboardInterrupt):
        scored(detector, data, out)
    with pytest.raises(bb.DataError, match=r"maps/manifest\.json: the run was not finished"):
        bb.evaluate(out / "maps", data[1], workers=1)
    assert scored(detector, data, out, resume=True).taken_over == 2
    assert len(bb.evaluate(out / "maps", data[1], workers=1).records) == 3


def test_only_this_runs_images_are_scored(data, user, tmp_path):
    out = tmp_path / "out"
    scored("their_detector:detect", data, out)
    other = tmp_path / "images2", tmp_path / "gt2"
    made(*other, ("b", "d"), 2)
    found = scored("their_detector:detect", other, out)
    assert [r.image_id for r in found.evaluation.records] == ["b", "d"]
    assert found.taken_over == 0  # b is another picture
    assert sorted(p.name for p in (out / "maps").iterdir()) == ["b.png", "d.png", MANIFEST]
    assert same_scores(found, anew("their_detector:detect", other, tmp_path))


def test_other_ground_truth_in_the_same_folder(data, user, tmp_path):
    scored("their_detector:detect", data, tmp_path / "out")
    made(tmp_path / "unused", tmp_path / "gt2", IDS, 9)
    other = data[0], tmp_path / "gt2"
    found = scored("their_detector:detect", other, tmp_path / "out")
    assert same_scores(found, anew("their_detector:detect", other, tmp_path))


@pytest.mark.parametrize("way", ["swapped", "edited", "gone"])
def test_maps_that_are_not_as_they_were_are_made_again(way, data, user, tmp_path):
    out = tmp_path / "out"
    first = scored("their_detector:detect", data, out)
    a, b = out / "maps" / "a.png", out / "maps" / "b.png"
    one, two = a.read_bytes(), b.read_bytes()
    if way == "swapped":
        a.write_bytes(two)
        b.write_bytes(one)
    elif way == "edited":
        iio.imwrite(a, np.zeros((30, 40), np.uint16))
    else:
        a.unlink()
    with pytest.raises(bb.DataError, match=r"a\.png: .*(not the map that the detector|No such)"):
        bb.evaluate(out / "maps", data[1], workers=1)
    again = scored("their_detector:detect", data, out)
    assert again.taken_over == (1 if way == "swapped" else 2)
    assert same_scores(first, again)
    assert (a.read_bytes(), b.read_bytes()) == (one, two)


def test_a_picture_that_has_become_unreadable_has_no_map(data, user, tmp_path):
    out = tmp_path / "out"
    scored("their_detector:detect", data, out)
    (data[0] / "b.png").write_bytes(b"no picture")
    again = scored("their_detector:detect", data, out)
    assert list(again.failed) == ["b"]
    assert [r.image_id for r in again.evaluation.records] == ["a", "c"]
    assert not (out / "maps" / "b.png").exists()


def test_a_map_that_no_manifest_names_is_not_scored_and_not_touched(data, user, tmp_path):
    maps = tmp_path / "out" / "maps"
    maps.mkdir(parents=True)
    for name in ("notes.txt", "zebra.png", "a.npy"):
        (maps / name).write_bytes(b"mine")
    found = scored("their_detector:detect", data, tmp_path / "out")
    assert len(found.evaluation.records) == 3
    again = scored("their_detector:lazy", data, tmp_path / "out", fresh=True)
    assert [r.image_id for r in again.evaluation.records] == list(IDS)
    assert all(
        (maps / name).read_bytes() == b"mine" for name in ("notes.txt", "zebra.png", "a.npy")
    )


def test_a_file_of_the_users_where_a_map_should_be_is_not_replaced(data, user, tmp_path):
    maps = tmp_path / "out" / "maps"
    maps.mkdir(parents=True)
    (maps / "b.png").write_bytes(b"mine")
    with pytest.raises(bb.DataError, match=r"maps/b\.png: was not written by bsdsbench, expected"):
        scored("their_detector:detect", data, tmp_path / "out")
    assert (maps / "b.png").read_bytes() == b"mine"
    assert [p.name for p in maps.iterdir()] == ["b.png"]


def test_linked_maps_are_not_followed(data, user, tmp_path):
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "a.png").write_bytes(b"mine")
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "maps").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(bb.DataError, match="maps: is a link, expected a folder of its own"):
        scored("their_detector:detect", data, tmp_path / "out", fresh=True)
    assert [p.name for p in (tmp_path / "elsewhere").iterdir()] == ["a.png"]


def test_a_kill_between_a_map_and_the_manifest_is_not_taken_over(data, user, tmp_path, monkeypatch):
    """The manifest of before the kill has the names of all maps and no hash of the new ones."""
    from bsdsbench.integrations import detector_maps

    out = tmp_path / "out"
    truth = scored("their_detector:detect", data, tmp_path / "truth")
    real = detector_maps.Manifest.write
    writes = itertools.count()

    def killed(self, durable=True):
        if next(writes):
            raise SystemExit  # what is to be written last is not written
        real(self, durable)

    with monkeypatch.context() as patch:
        patch.setattr(detector_maps, "SAVE_SECONDS", 1e9)
        patch.setattr(detector_maps.Manifest, "write", killed)
        with pytest.raises(SystemExit):
            scored("their_detector:detect", data, out)
    assert (out / "maps" / "a.png").exists()
    iio.imwrite(out / "maps" / "a.png", np.zeros((30, 40), np.uint16))
    user()
    found = scored("their_detector:detect", data, out)
    assert found.taken_over == 0
    assert same_scores(found, truth)


@pytest.mark.slow
def test_two_runs_at_once_in_one_folder_are_one(data, tmp_path):
    inside, go_on = threading.Event(), threading.Event()

    def slow(image):
        inside.set()
        go_on.wait(30)
        return image.mean(axis=2) / 255

    thread = threading.Thread(target=lambda: scored(slow, data, tmp_path / "out"))
    thread.start()
    assert inside.wait(30)
    with pytest.raises(RunLockedError, match=r"another run is writing there \(process \d+ on"):
        scored(closed_over(1), data, tmp_path / "out")
    go_on.set()
    thread.join()
    assert bb.Evaluation.load(tmp_path / "out").name == "slow"


def test_a_manifest_that_is_not_sound_takes_nothing_over(data, user, tmp_path):
    out = tmp_path / "out"
    scored("their_detector:detect", data, out)
    source = out / "maps" / MANIFEST
    told = json.loads(source.read_text("utf-8"))
    for image_id, bad in zip(IDS, ("../a.png", 3, None), strict=True):
        told["about"]["images"][image_id]["file"] = bad
    source.write_text(json.dumps(told))
    user()
    assert scored("their_detector:detect", data, out).taken_over == 0


@pytest.mark.process
def test_resume_on_the_command_line(data, user, tmp_path):
    words = ["run", "their_detector:detect", data[0], "--gt", data[1], "--quiet"]
    for more, taken in (([], 0), (["--resume"], 3), (["--fresh"], 0)):
        user()
        said = call(*words, "-o", tmp_path / "out", *more)
        assert ("3 of 3 maps were taken over" in said) == bool(taken)
