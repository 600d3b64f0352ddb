"""What a reader of a page has: maps, ground truth, pictures and runs, under the names in a call."""

import shutil
from pathlib import Path

import click
import imageio.v3 as iio
import numpy as np

from bsdsbench.cli import cli
from tests.helpers.masks import blobs
from tests.helpers.metric_cases import IDS, SHAPES, case_of
from tests.helpers.runs import counted

DETECTOR = "def detect(photo):\n    return abs(photo.mean(2) - photo.mean()) / 255\n"
CLASSES = ("cityscapes", "sbd")  # protocols with classes of their own
SCORES = "label,score\n1,0.9\n1,0.6\n1,0.4\n-1,0.7\n-1,0.3\n-1,0.2\n"


def parsed(words):
    """The arguments and options of a call by name; of a group of verbs, none."""
    command = cli.get_command(click.Context(cli), words[0])
    if isinstance(command, click.Group):
        return {}
    return command.make_context(words[0], list(words[1:]), resilient_parsing=True).params


def write_pictures(folder, images):
    """{id, perhaps with folders: array} as PNG."""
    for name, values in images.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        iio.imwrite(folder / f"{name}.png", values)
    return folder


def enlarge(path):
    """Repeat what an array file has, to at least the size of KITTI's pictures."""
    arrays = np.load(path)
    if path.suffix == ".npy":
        np.save(path, np.tile(arrays, (18, 48))[:375, :1242])
    else:
        tiled = {name: np.tile(values, (18, 48))[:375, :1242] for name, values in arrays.items()}
        np.savez(path, **tiled)


def label_maps(values, frames=("",)):
    """Predictions and ground truth as {id: labels}: regions, which are moved by a pixel."""
    truth = {
        name + frame: np.asarray(values, np.uint8)[blobs(np.random.default_rng(3), shape, 3, 4)]
        for name, shape in zip(IDS, SHAPES, strict=True)
        for frame in frames
    }
    return {name: np.roll(labels, 1, axis=1) for name, labels in truth.items()}, truth


def make_images(pred, truth, metric, protocol=None):
    """Write predictions and ground truth for a metric, each where there is none."""
    made = pred.parent / f"made.{pred.name}"
    shutil.rmtree(made, ignore_errors=True)
    if metric in ("contour", "segmentation", "masks") or (protocol or "").startswith(CLASSES):
        frames = [f"/{k:05}" for k in range(4)] if protocol == "davis" else [""]
        ids = [7, 8, 11] if protocol == "cityscapes" else [1, 2, 3]
        sides = label_maps(ids if protocol else [0, 255, 255], frames)
        pairs = zip((made / "p", made / "g"), sides, strict=True)
        folders = [write_pictures(*pair) for pair in pairs]
        write_pictures(truth.parent / "inst", sides[1])  # of sets that tell instances apart
    else:
        made.mkdir(parents=True)
        folders = case_of(metric).write(made)
    if protocol == "kitti-de":  # which crops
        for path in [*folders[0].iterdir(), *folders[1].iterdir()]:
            enlarge(path)
    for source, target in zip(folders, (pred, truth), strict=True):
        if not target.exists():
            shutil.copytree(source, target)
    shutil.rmtree(made)


def make_run(out, metric):
    """Evaluate the metric's images into a folder."""
    pred, gt = Path(f"maps of {metric}"), Path(f"truth of {metric}")
    make_images(pred, gt, metric)
    if out.name.startswith("split"):  # each has images of its own
        for side in (pred, gt):
            for path in list(side.iterdir()):
                path.rename(side / f"{out.name}-{path.name.rpartition('-')[2]}")
    counted(pred, gt, None, metric, out=out)


def prepare(words, metric):
    """Make what a call needs and the working folder has not, for a page of a metric."""
    given = parsed(words)
    metric = [*(given.get("metrics") or ()), metric][0]
    if "instances.components=8" in words:
        metric = "masks"
    gt = Path(given.get("gt") or "no-gt")
    if file := given.get("split_file"):
        Path(file).parent.mkdir(parents=True, exist_ok=True)
        Path(file).write_text("\n".join(IDS))
    folders = [] if words[0] != "nms" else given["folders"][:-1]
    for name in filter(None, (given.get("pred_dir"), *folders)):
        if not (Path(name).exists() and (gt.exists() or words[0] == "nms")):
            make_images(Path(name), gt, metric, given.get("protocol") or given.get("task"))
    if words[0] == "run":
        Path("my_module.py").write_text(DETECTOR)
        noise = np.random.default_rng(5)
        shapes = zip(IDS, SHAPES, strict=True)
        photos = {name: noise.integers(0, 256, (*shape, 3), np.uint8) for name, shape in shapes}
        write_pictures(Path(given["images"]), photos)
        make_images(Path("no-maps"), gt, metric)
    for file in given.get("files") or ():
        Path(file).write_text(SCORES)
    history = [name.replace("*", n) for name in given.get("history") or () for n in "12"]
    for _, _, folders in (item.partition("=") for item in given.get("method") or ()):
        history += [folders.replace("*", n) for n in "12"] if not any(Path().glob(folders)) else []
    for out in filter(
        None, (*(given.get("runs") or given.get("outs") or ()), given.get("run"), *history)
    ):
        if not out.startswith("ref:") and not Path(out).exists():
            if given.get("gt"):
                make_images(Path(out), gt, metric)
            else:
                make_run(Path(out), metric)
