"""A student with a deadline: a dozen mistakes, each met with what is wrong and how to mend it."""

import shutil
from collections.abc import Callable

import imageio.v3 as iio
import numpy as np
from scipy.io import loadmat
from walk import Walk

EVALUATE = "evaluate {} --gt gt --quiet"


def exchange(walk: Walk) -> str:
    """Two maps of one size under each other's names."""
    name = walk.changed("exchanged", lambda a: a)
    a, b = (walk.root / name / f"{image_id}.png" for image_id in ("herd1", "herd2"))
    a.rename(b.with_name("kept")), b.rename(a), b.with_name("kept").rename(b)
    return name


def go(walk: Walk, count: int) -> None:
    walk.sample("maps", "gt")
    truth = walk.bsdsbench(EVALUATE.format("maps"), "ODS")

    # refused: nothing is counted, status 2
    refused: dict[str, tuple[Callable[..., object], str]] = {
        "ones": (lambda a: (a > 99).astype(np.uint8), "0/1 .* --set normalise=true"),
        "sixteen": (lambda a: a.astype(np.uint16), r"8 bit saved as 16\?"),
        "bytes_as_float": (lambda a: a.astype(np.float32), "divide by 255"),
        "twice": (lambda a: a / 255.0**2, r"divided by 255 twice\?"),
        "labels": (lambda a: a.astype(np.int32), "--pred-kind labels"),
        "resized": (lambda a: a[::2, ::2], "161x241 .* expected 321x481"),
        "transposed": (lambda a: np.ascontiguousarray(a.T), "transposed"),
    }
    for name, (change, words) in refused.items():
        walk.bsdsbench(EVALUATE.format(walk.changed(name, change)), words, status=2)
        walk.bsdsbench(f"doctor {name} --gt gt", "error: ", status=2)
    walk.bsdsbench("evaluate ones --gt gt --quiet --set normalise=true", "ODS")

    # counted, with a line that says what looks wrong
    noted: dict[str, tuple[Callable[..., object], str]] = {
        "inverted": (lambda a: 255 - a, "warning: .* --invert"),
        "mirrored": (np.fliplr, "warning: .* mirrored left to right"),
        "upside_down": (np.flipud, "warning: .* upside down"),
        "black": (np.zeros_like, "warning: every map is zero"),
    }
    for name, (change, words) in noted.items():
        walk.bsdsbench(EVALUATE.format(walk.changed(name, change)), words)
        walk.bsdsbench(f"doctor {name} --gt gt", "error: ", status=2)
    same = walk.bsdsbench(f"{EVALUATE.format('inverted')} --invert", "ODS")
    walk.check("--invert gives the score of the maps as they were", row(same) == row(truth))
    walk.bsdsbench(EVALUATE.format(exchange(walk)), "warning: .* ground truth of another image")
    walk.bsdsbench("doctor exchanged --gt gt", "error: exchanged: ", status=2)
    walk.bsdsbench("run structure-tensor-raw images --gt gt -o raw --quiet", status=2)
    walk.sample("maps", "gt", "images")
    walk.bsdsbench("run structure-tensor-raw images --gt gt -o raw --quiet", "ODS")
    walk.bsdsbench("doctor raw/maps --gt gt", "never thinned by NMS .* --nms")

    # names and files
    shutil.copytree(walk.root / "maps", walk.root / "named")
    for path in sorted((walk.root / "named").iterdir()):
        path.rename(path.with_name(f"{path.stem}_edge.png"))
    walk.bsdsbench(EVALUATE.format("named"), "no prediction for", status=2)
    walk.bsdsbench("doctor named --gt gt", r"'\*_edge' .* rename", status=2)
    shutil.copytree(walk.root / "maps", walk.root / "lacking")
    (walk.root / "lacking" / "lake1.png").unlink()
    walk.bsdsbench(EVALUATE.format("lacking"), "no prediction for: lake1", status=2)
    walk.bsdsbench(f"{EVALUATE.format('lacking')} --missing skip", "ODS")
    walk.bsdsbench("evalute maps --gt gt", "did you mean 'evaluate'", status=2)

    empty_truth(walk)


def empty_truth(walk: Walk) -> None:
    """Ground truth as pictures, one of them empty, and one gray."""
    (walk.root / "drawn").mkdir()
    for path in (walk.root / "gt").glob("*.mat"):
        marks = loadmat(path)["groundTruth"][0, 0]["Boundaries"][0, 0] > 0
        iio.imwrite(walk.root / "drawn" / f"{path.stem}.png", marks.astype(np.uint8) * 255)
    words = "evaluate maps --gt drawn --protocol brind --quiet"
    walk.bsdsbench(words, "ODS")
    lake = walk.root / "drawn" / "lake1.png"
    iio.imwrite(lake, np.zeros_like(iio.imread(lake)))
    walk.bsdsbench(words, "lake1.png: no boundary .* empty_gt=count .* --on-error skip", status=2)
    walk.bsdsbench("doctor maps --gt drawn --protocol brind", "empty-truth", status=2)
    walk.bsdsbench(f"{words} --set empty_gt=count", 'empty_gt="count"')
    walk.bsdsbench(f"{words} --set empty_gt=skip", "1 image left out: no boundary")
    walk.bsdsbench(f"{words} --on-error skip", "left out 'lake1'", status=2)
    iio.imwrite(lake, np.tile(np.arange(256, dtype=np.uint8), (321, 2))[:, :481])
    walk.bsdsbench(words, "--set|gt_threshold=0.5", status=2)
    walk.bsdsbench(f"{words} --set gt_threshold=0.5", "ODS")


def row(text: str) -> str:
    """The numbers of the first table."""
    lines = text.splitlines()
    rule = next(k for k, line in enumerate(lines) if line.startswith("──"))
    return " ".join(lines[rule + 1].split()[1:])
