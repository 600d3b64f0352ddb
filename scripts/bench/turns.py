"""Time this state of the project against another checkout of it, in turn on one machine.

    python scripts/bench turns OTHER_PYTHON [--ucm2 DIR --gt DIR] [--peers PYTHON] [--rows R]

OTHER_PYTHON and PYTHON are interpreters of environments: one that has the other state installed,
one that has panopticapi and opencv beside numpy and scipy. Each runs in a process of its own on
one thread; a row is asked of all of them in turn, and the medians of their processor times are
compared, of commands (first word evaluate or report) the time on the clock. Counts and scores must
be equal, by a hash of all of them; a peer's to 1e-12.
"""

import argparse
import atexit
import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
from scipy.ndimage import distance_transform_edt, gaussian_filter, zoom

SIZES = ((128, 128), (512, 512), (1024, 2048))
CLASSES, SEGMENTS, DIVISOR = 19, 1000, 1000
VAL, IMAGES = "20 val images", 20
COMMANDS = ("evaluate", "report")
Job = Callable[[], Any]


def unit(values: np.ndarray) -> np.ndarray:
    """Scaled to 0 .. 1."""
    return (values - values.min()) / np.ptp(values)


def instances() -> tuple[np.ndarray, np.ndarray]:
    """Two instance maps, class x DIVISOR + instance, of cells around random points."""
    rng = np.random.default_rng(0)
    rows, cols = 256, 512
    points = rng.choice(rows * cols, SEGMENTS, replace=False)
    free = np.ones(rows * cols, bool)
    free[points] = False
    free = free.reshape(rows, cols)
    near = distance_transform_edt(free, return_distances=False, return_indices=True)
    number = np.zeros(rows * cols, int)
    number[points] = np.arange(SEGMENTS)
    gt = np.kron(number[near[0] * cols + near[1]], np.ones((4, 4), int))
    value = rng.integers(0, CLASSES, SEGMENTS) * DIVISOR + np.arange(SEGMENTS)
    return value[np.roll(gt, (3, 5), (0, 1))], value[gt]


def masks(shape: tuple[int, int]) -> tuple[np.ndarray, np.ndarray]:
    """Two masks of blobs, uint8."""
    field = gaussian_filter(np.random.default_rng(0).standard_normal(shape), shape[0] / 20)
    gt = field > 0
    return np.roll(gt, (2, 3), (0, 1)).astype(np.uint8), gt.astype(np.uint8)


def lines(labels: np.ndarray) -> np.ndarray:
    """Where a label differs from the next one, bool."""
    out = np.zeros(labels.shape, bool)
    out[:-1] |= labels[:-1] != labels[1:]
    out[:, :-1] |= labels[:, :-1] != labels[:, 1:]
    return out


def crops(images: list[tuple[Any, Any]], blur: float) -> Iterator[tuple[np.ndarray, Any]]:
    """Two 64 x 64 pieces of each image's map and of its first annotator's boundaries."""
    rng = np.random.default_rng(0)
    for pred, gt in images:
        soft, drawn = pred.boundary_map(), np.asarray(gt.boundaries[0])
        soft = unit(gaussian_filter(soft, blur)) if blur else soft
        for _ in range(2):
            rows, cols = (slice(k, k + 64) for k in rng.integers(0, np.array(soft.shape) - 63))
            yield soft[rows, cols].astype(np.float32), drawn[rows, cols]


def stacks() -> Iterator[tuple[Any, list[np.ndarray], dict[str, Any]]]:
    """60 small random maps of all kinds, their ground truth, changes of the protocol."""
    rng = np.random.default_rng(1)
    for k in range(60):
        shape = tuple(rng.integers(1, 60, 2))
        soft = rng.random(shape)
        kinds = soft, soft.astype(np.float32), (255 * soft).astype(np.uint8), soft < 0.2
        gts = [rng.random(shape) < rng.choice([0, 0.05, 0.3]) for _ in range(1 + k % 5)]
        radius = float(rng.choice([0, 1, 2.5, 7, 30]))
        yield kinds[k % 4], gts, {"max_dist_px": radius, "thin": k % 3 > 0, "clean": k % 5 == 0}


def command_jobs(ucm2: Path, gt_dir: Path) -> dict[str, Job]:
    """Row -> a command from the start of its process to its end; the curve that it wrote."""
    folder = Path(tempfile.mkdtemp())
    atexit.register(shutil.rmtree, folder)

    def call(*words: object) -> None:
        line = [sys.executable, "-P", "-m", "bsdsbench", *map(str, words)]
        subprocess.run(line, check=True, capture_output=True)

    def evaluate(maps: Path, out: Path) -> np.ndarray:
        shutil.rmtree(out, ignore_errors=True)
        call("evaluate", maps, "--gt", gt_dir, "-o", out)
        return np.loadtxt(out / "eval_bdry_thr.txt")

    def png() -> np.ndarray:
        from PIL import Image

        import bsdsbench as bb

        maps = folder / "png"
        if not maps.is_dir():
            maps.mkdir()
            for path in ucm2.glob("*.mat"):
                values = np.rint(255 * bb.load_prediction(path).boundary_map()).astype(np.uint8)
                Image.fromarray(values).save(maps / f"{path.stem}.png")
        return evaluate(maps, folder / "of_png")

    def report() -> np.ndarray:
        out = folder / "of_ucm2"
        if not out.is_dir():
            evaluate(ucm2, out)
        call("report", out, "-o", folder / "page.html", "--gt", gt_dir)
        return np.zeros(0)

    return {
        "evaluate ucm2": lambda: evaluate(ucm2, folder / "of_ucm2"),
        "evaluate png": png,
        "report": report,
    }


def project_jobs(ucm2: Path | None, gt_dir: Path | None) -> dict[str, Job]:
    """Row -> what this environment's bsdsbench does; by names that both states have."""
    import bsdsbench as bb
    from bsdsbench.metrics import contour, segmentation
    from bsdsbench.metrics.semantic import semantic_counts

    jobs: dict[str, Job] = {}
    bsds = bb.Protocol.preset("bsds500")
    names = [f"c{k}" for k in range(CLASSES)]
    fields = {"classes": tuple(names), "unit": "instance", "divisor": DIVISOR}
    if hasattr(contour, "LabelOptions"):
        params = contour.LabelOptions(**fields)
    else:  # as 238506b has it
        params = bb.Protocol(contour=fields).contour
    pred, gt = instances()
    jobs["panoptic quality"] = lambda: segmentation.panoptic_quality(pred, gt, params)
    for shape in SIZES:
        pair = masks(shape)
        name = f"Boundary IoU {shape[0]} x {shape[1]}"
        jobs[name] = lambda pair=pair: np.array([contour.boundary_iou(*pair)])
    jobs["a preset by its name"] = lambda: bb.Protocol.of("bsds500").threshold_array()
    line = bb.thin(lines(masks((64, 64))[1]))
    noise = np.random.default_rng(2).random(line.shape)
    thick = unit(unit(gaussian_filter(line.astype(float), 1)) + 0.05 * noise)
    for name, soft in (("thin", np.where(line, noise, 0)), ("thick", thick)):
        given = soft.astype(np.float32)
        jobs[f"64 x 64, {name} lines"] = lambda s=given: bb.boundary_counts(s, [line], "bsds500")
    if ucm2 and gt_dir:
        jobs |= command_jobs(ucm2, gt_dir)
        paths = sorted(ucm2.glob("*.mat"))
        paths = [paths[k * len(paths) // IMAGES] for k in range(IMAGES)]
        images = [(bb.load_prediction(p), bb.load_ground_truth(gt_dir / p.name)) for p in paths]
        jobs[VAL] = lambda: [bb.boundary_counts(*image, bsds) for image in images]
        for blur in (0, 1, 2):
            pairs = list(crops(images, blur))
            jobs[f"{len(pairs)} crops 64 x 64, blur {blur} px"] = lambda pairs=pairs: [
                bb.boundary_counts(soft, [drawn], "bsds500") for soft, drawn in pairs
            ]
        drawn = [np.asarray(g) for g in images[0][1].boundaries]
        large = [bb.thin(zoom(g.astype(np.uint8), 4, order=0) > 0) for g in drawn]
        raw = unit(gaussian_filter(np.mean(large, 0), 4)).astype(np.float32)
        smooth = unit(gaussian_filter(np.random.default_rng(0).random(raw.shape), 16))
        for name, soft in (("raw", raw), ("NMSed", bb.nms(raw)), ("smooth", smooth)):
            name = f"{raw.shape[1]} x {raw.shape[0]}, {name}"
            jobs[name] = lambda s=soft: bb.boundary_counts(s, large, bsds)
    shared = {"semantic": {"ids": (), "ignore": (255,), "instances": False, "scale": 1.0}}
    options = {"options": shared} if hasattr(contour, "LabelOptions") else shared
    city = bb.Protocol.preset("cityscapes").replace(**options)
    labels = (gt // DIVISOR).astype(np.uint8)[::2, ::2]
    soft = [gaussian_filter(lines(labels == k).astype(np.float32), 3) for k in range(CLASSES)]
    shown = np.stack([np.roll(unit(s), (2, 3), (0, 1)) for s in soft])
    jobs["1024 x 512, 19 classes"] = lambda: semantic_counts(shown, labels, city)
    jobs["60 random stacks"] = lambda: [
        bb.boundary_counts(soft, gts, bsds.replace(**changes)) for soft, gts, changes in stacks()
    ]
    return jobs


def peer_jobs() -> dict[str, Job]:
    """The same rows by panopticapi, and by Boundary IoU's definition with OpenCV's erosion."""
    import contextlib

    import cv2
    from panopticapi import evaluation
    from PIL import Image

    cv2.setNumThreads(1)
    jobs: dict[str, Job] = {}
    folder = tempfile.mkdtemp()
    annotated = []
    for name, values in zip(("pred", "gt"), instances(), strict=True):
        colours = np.stack([(values + 1) >> s & 255 for s in (0, 8, 16)], -1).astype(np.uint8)
        Image.fromarray(colours).save(f"{folder}/{name}.png", compress_level=0)
        parts = [
            {"id": int(v) + 1, "category_id": int(v) // DIVISOR, "iscrowd": 0, "area": int(n)}
            for v, n in zip(*np.unique(values, return_counts=True), strict=True)
        ]
        annotated.append({"file_name": f"{name}.png", "image_id": 0, "segments_info": parts})
    pair = [(annotated[1], annotated[0])]
    kinds = {k: {"isthing": 1} for k in range(CLASSES)}

    def panoptic() -> np.ndarray:
        with contextlib.redirect_stdout(None):
            found = evaluation.pq_compute_single_core(0, pair, folder, folder, kinds)
        classes = [found[k] for k in range(CLASSES)]
        return np.array([c.iou / (c.tp + 0.5 * c.fp + 0.5 * c.fn) for c in classes])

    def reading() -> np.ndarray:
        for name in ("gt", "pred"):
            png = Image.open(f"{folder}/{name}.png")
            evaluation.rgb2id(np.array(png, dtype=np.uint32))
        return np.zeros(0)

    jobs["panoptic quality"], jobs["panoptic quality, reading"] = panoptic, reading

    def shell(mask: np.ndarray, width: int) -> np.ndarray:
        framed = cv2.copyMakeBorder(mask, 1, 1, 1, 1, cv2.BORDER_CONSTANT, value=0)
        eroded = cv2.erode(framed, np.ones((3, 3), np.uint8), iterations=width)
        return mask - eroded[1:-1, 1:-1]

    def boundary_iou(pred: np.ndarray, gt: np.ndarray) -> np.ndarray:
        width = max(1, round(0.02 * np.hypot(*gt.shape)))
        a, b = shell(pred, width), shell(gt, width)
        return np.array([(a & b).sum() / (a | b).sum()])

    for shape in SIZES:
        name, shape_pair = f"Boundary IoU {shape[0]} x {shape[1]}", masks(shape)
        jobs[name] = lambda pair=shape_pair: boundary_iou(*pair)
    return jobs


def arrays_of(result: Any) -> Iterator[np.ndarray]:
    """All numbers of a result."""
    if isinstance(result, np.ndarray):
        yield result
    elif isinstance(result, dict):
        for key in sorted(result):
            yield from arrays_of(result[key])
    elif isinstance(result, list | tuple):
        for part in result:
            yield from arrays_of(part)
    else:
        yield from result.arrays().values()


def serve(jobs: dict[str, Job]) -> None:
    """Answer each row's name with its seconds, a hash of its result, and short results whole."""
    print(*jobs, sep="\t", flush=True)
    for asked in sys.stdin:
        job = jobs[asked.rstrip("\n")]
        spent: list[float] = []
        clock = time.perf_counter if asked.startswith(COMMANDS) else time.process_time
        while sum(spent) < 0.1 and len(spent) < 200:
            start = clock()
            result = job()
            spent.append(clock() - start)
        arrays = list(arrays_of(result))
        digest = hashlib.sha256(b"".join(np.ascontiguousarray(a).tobytes() for a in arrays))
        few = arrays[0].tolist() if len(arrays) == 1 and arrays[0].size < 20 else []
        print(median(spent), digest.hexdigest(), *few, sep="\t", flush=True)


class Side:
    """A process that serves."""

    def __init__(self, python: str, words: list[str]) -> None:
        threads = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS")
        self.process = subprocess.Popen(
            [python, "-P", __file__, *words],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, **dict.fromkeys(threads, "1")},
        )
        self.rows = self._line()

    def _line(self) -> list[str]:
        assert self.process.stdout
        line = self.process.stdout.readline()
        if not line:
            raise SystemExit(f"{self.process.args}: ended")
        return line.rstrip("\n").split("\t")

    def ask(self, row: str) -> tuple[float, str, np.ndarray]:
        """Seconds, hash, numbers."""
        assert self.process.stdin
        self.process.stdin.write(row + "\n")
        self.process.stdin.flush()
        seconds, digest, *values = self._line()
        return float(seconds), digest, np.array(values, float)


def main() -> None:
    """Print one table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("other", help="Python with the other state; 'project', 'peers': serve")
    parser.add_argument("--ucm2", type=Path)
    parser.add_argument("--gt", type=Path)
    parser.add_argument("--peers", help="Python with panopticapi and opencv")
    parser.add_argument("--repeat", type=int, default=7)
    parser.add_argument("--rows", default="", help="only rows with one of these words, comma apart")
    options = parser.parse_args()
    if options.other == "project":
        return serve(project_jobs(options.ucm2, options.gt))
    if options.other == "peers":
        return serve(peer_jobs())
    words = ["project"]
    if options.ucm2 and options.gt:
        words += ["--ucm2", str(options.ucm2), "--gt", str(options.gt)]
    sides = [Side(options.other, words), Side(sys.executable, words)]
    if options.peers:
        sides.append(Side(options.peers, ["peers"]))
    heads = ("other", "here", "ratio", "peer", "peer/here")
    print(f"{'ms':28}" + "".join(f"{h:>10}" for h in heads))
    for row in dict.fromkeys(name for side in sides for name in side.rows):
        if not any(word in row for word in options.rows.split(",")):
            continue
        asked = [side for side in sides if row in side.rows]
        answers: list[list[Any]] = [[] for _ in asked]
        for k in range(options.repeat + 1):
            for side, found in zip(asked, answers, strict=True):
                answer = side.ask(row)
                if k:  # the first call compiles
                    found.append(answer)
        ms = [1e3 * median(a[0] for a in found) for found in answers]
        if len(asked) == 1:
            print(f"{row:28}{'':30}{ms[0]:10.3f}", flush=True)
            continue
        if answers[0][0][1] != answers[1][0][1]:
            raise SystemExit(f"{row}: other counts")
        line = f"{row:28}{ms[0]:10.3f}{ms[1]:10.3f}{ms[1] / ms[0]:10.2f}"
        if len(asked) == 3:
            np.testing.assert_allclose(answers[2][0][2], answers[1][0][2], rtol=1e-12, err_msg=row)
            line += f"{ms[2]:10.3f}{ms[2] / ms[1]:10.1f}"
        print(line, flush=True)


if __name__ == "__main__":
    main()
