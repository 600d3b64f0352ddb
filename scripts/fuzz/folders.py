"""Hostile folders: results, maps and data with links, strangers' files and edited manifests.

A reader gives a whole result that was once written, or refuses in one line; a writer leaves what
is outside of its folder, and the user's files in it, as they were.
"""

import contextlib
import json
import os
import random
import shutil
import traceback
import warnings
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import imageio.v3 as iio
import numpy as np
from files import Attempt, damage, refusal
from results import made

import bsdsbench as bb
from bsdsbench.files.errors import DataError
from bsdsbench.files.writing import MANIFEST
from bsdsbench.report.html import write_report
from bsdsbench.runs.run_folder import load_run, load_runs

FIVE = bb.Protocol.preset("bsds500").replace(thresholds=5)
ODD: tuple[Any, ...] = (
    None,
    True,
    -1,
    3,
    1e300,
    "",
    "x",
    "1/2",
    "1/300000000",
    [],
    [1],
    {},
    {"a": 1},
)
NAMES = (
    "../outside/secret.txt",
    "/etc/x",
    "a/../b",
    "",
    "x" * 300,
    "per_image/im9_ev1.txt",
    "\u202e",
)


def bright(image: np.ndarray) -> np.ndarray:
    """A detector."""
    return image.mean(axis=2) / 255


class Place:
    """A sound folder, copies of which are spoilt, and what lies outside of them."""

    def __init__(self, root: Path, make: Callable[[Path], object]) -> None:
        self.root, self.sound, self.now = root, root / "sound", root / "now"
        self.outside = root / "outside"
        make(self.sound)

    def spoilt(self, rng: random.Random) -> Path:
        """A copy with one to four things wrong."""
        shutil.rmtree(self.now, ignore_errors=True)
        shutil.rmtree(self.outside, ignore_errors=True)
        (self.outside / "deep").mkdir(parents=True)
        (self.outside / "secret.txt").write_text("secret")
        (self.outside / "deep" / "im0.png").write_bytes(b"mine")
        shutil.copytree(self.sound, self.now, symlinks=True)
        for _ in range(rng.randint(1, 4)):
            with contextlib.suppress(Exception):  # what is wrong already may be in the way
                rng.choice(SPOIL)(self, rng)
        return self.now

    def files(self) -> list[Path]:
        """Everything in the copy, folders too."""
        return sorted(p for p in self.now.rglob("*") if p.name != ".lock")

    def harmed(self) -> str:
        """What is outside and is not as it was."""
        wanted = {"secret.txt": b"secret", "deep/im0.png": b"mine"}
        there = (p for p in self.outside.rglob("*") if p.is_file())
        found = {p.relative_to(self.outside).as_posix(): p.read_bytes() for p in there}
        return "" if found == wanted else f"outside is {found}"


def _gone(place: Place, rng: random.Random) -> None:
    path = rng.choice(place.files())
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink()


def _linked(place: Place, rng: random.Random) -> None:
    """A file or folder is a link: to outside, to another one, to itself, to nothing."""
    path, others = rng.choice(place.files()), place.files()
    goals = (
        place.outside / "secret.txt",
        place.outside,
        place.outside / "deep",
        rng.choice(others),
    )
    goal = rng.choice((*goals, path, place.root / "none"))
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink()
    path.symlink_to(goal)


def _swapped(place: Place, rng: random.Random) -> None:
    files = [p for p in place.files() if p.is_file() and not p.is_symlink()]
    one, two = rng.choice(files), rng.choice(files)
    data = one.read_bytes()
    one.write_bytes(two.read_bytes())
    if rng.random() < 0.5:
        two.write_bytes(data)


def _damaged(place: Place, rng: random.Random) -> None:
    files = [p for p in place.files() if p.is_file() and not p.is_symlink()]
    path = rng.choice(files)
    path.write_bytes(damage(path.read_bytes(), rng.choice(files).read_bytes(), rng))


def _stranger(place: Place, rng: random.Random) -> None:
    """A file, a folder or a pipe of another's."""
    below = (p for p in place.files() if p.is_dir() and not p.is_symlink())
    folder = rng.choice([place.now, *below])
    path = folder / rng.choice(("im0_ev1.txt", "zz_ev1.txt", "eval_bdry.txt", "im0.npy", "im9.png"))
    if path.is_symlink() or path.is_fifo():  # written to, it would be its goal or wait for a reader
        path.unlink()
    way = rng.randrange(3)
    if way == 0:
        path.write_bytes(rng.choice([p for p in place.files() if p.is_file()]).read_bytes())
    elif way == 1:
        path.mkdir()
    else:
        os.mkfifo(path)


def _edited(place: Place, rng: random.Random) -> None:
    """A manifest that says something else; no hash is made to fit."""
    path = rng.choice([p for p in place.files() if p.name in (MANIFEST, "result.json")])
    told = json.loads(path.read_text("utf-8"))
    way = rng.randrange(5)
    if way == 0:
        told[rng.choice([*told, "what", "about"])] = rng.choice(ODD)
    elif way == 1 and isinstance(told.get("files"), dict):
        told["files"][rng.choice(NAMES)] = rng.choice(("", "0" * 32))
    elif way == 2 and told.get("files"):
        del told["files"][rng.choice(list(told["files"]))]
    elif way == 3:
        told["what"] = rng.choice(("result", "maps"))
    elif isinstance(told.get("about"), dict) and told["about"].get("images"):
        image = rng.choice(list(told["about"]["images"]))
        told["about"]["images"][image] = rng.choice(ODD)
    path.write_text(json.dumps(told), "utf-8")


SPOIL = (_gone, _linked, _swapped, _damaged, _stranger, _edited)


def _said(place: Place, work: Callable[[], object], wanted: list[object]) -> tuple[str, str]:
    """Whether the outcome is one of `wanted`, or one line, and the outside is as it was."""
    verdict, why = "read", ""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            found = work()
        if wanted and found not in wanted:
            verdict, why = "failed", f"another result: {str(found)[:300]}"
    except DataError as error:
        verdict, why = refusal(error)
    except OSError as error:  # the command line shows it in one line
        verdict = "refused"
        if not error.filename:
            verdict, why = "failed", f"an OSError without a name: {error}"
    except BaseException:
        verdict, why = "failed", traceback.format_exc(limit=-4)
    harm = place.harmed()
    return ("failed", harm) if harm else (verdict, why)


def _counts(run: Any) -> object:
    return [
        (r.image_id, [list(map(int, a)) for a in list(r.counts["boundary"].arrays().values())[1:]])
        for r in run.records
    ]


def attempts(root: Path) -> dict[str, Attempt]:
    """Name of what is done in a hostile folder -> what spoils one and does it."""
    out = Place(root / "result", lambda path: made(path, 0))
    truth = _counts(bb.Evaluation.load(out.sound))
    data = root / "data"
    for name in ("images", "gt"):
        (data / name).mkdir(parents=True)
    rng = np.random.default_rng(0)
    for k in range(3):
        iio.imwrite(data / "images" / f"im{k}.png", rng.integers(0, 256, (20, 30, 3), np.uint8))
        iio.imwrite(data / "gt" / f"im{k}.png", np.eye(20, 30, dtype=np.uint8) * 255)
    given = {"gt": data / "gt", "protocol": FIVE, "workers": 1}

    def detect(path: Path) -> object:
        return _counts(bb.run(bright, data / "images", out=path, **given).evaluation)

    maps = Place(root / "maps", detect)
    scored = _counts(bb.Evaluation.load(maps.sound))
    again = replace(bb.Evaluation.load(out.sound), name="again")
    works: dict[str, tuple[Place, Callable[[Path], object], list[object]]] = {
        "load": (out, lambda p: _counts(bb.Evaluation.load(p)), [truth]),
        "load_run": (out, lambda p: _counts(load_run(p)), []),
        "official": (out, lambda p: _counts(bb.Evaluation.from_official(p)), [truth]),
        "per_image": (out, _per_image, [truth]),
        "save": (out, lambda p: _counts(bb.Evaluation.load(again.save(p))), [truth]),
        "report": (out, _report, []),
        "merge": (out, lambda p: _counts(bb.merge([bb.Evaluation.load(p)])), [truth]),
        "run": (maps, detect, [scored]),
        "evaluate maps": (maps, lambda p: _evaluated(p / "maps", data), [scored]),
        "evaluate": (maps, lambda p: _evaluated(maps.sound / "maps", data, p), [scored]),
    }
    return {f"folder: {name}": _attempt(*work) for name, work in works.items()}


def _attempt(place: Place, work: Callable[[Path], object], wanted: list[object]) -> Attempt:
    def attempt(rng: random.Random) -> tuple[str, str]:
        path = place.spoilt(rng)
        unread = not (path / MANIFEST).is_file()  # then what lies there is anyone's tables
        return _said(place, lambda: work(path), [] if unread else wanted)

    return attempt


def _evaluated(pred: Path, data: Path, out: Path | None = None) -> object:
    return _counts(bb.evaluate(pred, data / "gt", FIVE, workers=1, out=out))


def _per_image(path: Path) -> object:
    return _counts(bb.Evaluation.from_official(path / "per_image"))


def _report(path: Path) -> None:
    write_report(load_runs([path]), path / "report.html", pictures=False, n_boot=5)
