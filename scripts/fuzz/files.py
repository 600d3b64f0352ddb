"""Mutate files of every format and load them: no crash, hang, traceback, leak of words or memory.

    python scripts/fuzz_inputs.py --count 20000 --seed 0

A child process does the loading, so that a crash or a hang is seen and the rest goes on. Each input
must load, or raise DataError whose lines are single and printable, with nothing written to the
screen and no warning. Every input is made from (seed, number) alone: `--first N --count 1 --keep
DIR` makes input N again. Exit status 1 if anything failed.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import os
import random
import shutil
import struct
import subprocess
import sys
import tempfile
import threading
import time
import warnings
import zlib
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import numpy as np

from bsdsbench.files.errors import DataError
from bsdsbench.files.escapes import visible
from bsdsbench.loaders import load_ground_truth, load_prediction
from bsdsbench.loaders.official_txt import read_ev1, read_rows
from bsdsbench.loaders.pairing import read_split

SECONDS_PER_INPUT = 20.0
MEMORY_BOUND = 1536 << 20  # growth of one process over its start, whatever the input claims
INTERESTING = (0, 1, 2, 7, 0x7F, 0xFF, 0xFFFF, 100_000, 2**31 - 1, 2**31, 2**32 - 1)
Loader = Callable[[Path], object]


# ---- the sound files that are mutated


def sound_files() -> dict[str, tuple[bytes, Loader]]:
    """Name with suffix -> bytes and the function that reads such a file."""
    soft = load_prediction
    found: dict[str, tuple[bytes, Loader]] = {}
    found.update({k: (v, soft) for k, v in _pictures().items()})
    found["gt.png"] = (_picture(_map() > 128, "PNG"), load_ground_truth)
    found.update({k: (v, soft) for k, v in _arrays().items()})
    found.update(_matlab())
    runs = "".join(f"{r % 3} {r} 0 30\n" for r in range(23))
    seg = f"format ascii cr\nimage 1\nwidth 31\nheight 23\nsegments 3\ndata\n{runs}"
    found["truth.seg"] = (seg.encode(), load_ground_truth)
    found["split.txt"] = (b"# a split\n2018\n3063.png\n\nval/8068.mat\n", read_split)
    table = "".join(f"{t / 6:10g} {9 - t:10g} {9:10g} {5:10g} {12:10g}\n" for t in range(1, 6))
    found["2018_ev1.txt"] = (table.encode(), read_ev1)
    found["eval_bdry_thr.txt"] = (table.encode(), lambda p: read_rows(p, 4))
    return found


def _map() -> np.ndarray:
    rows, cols = np.mgrid[:23, :31]
    return ((rows * 7 + cols * 5) % 256).astype(np.uint8)


def _picture(array: np.ndarray, kind: str, mode: str | None = None, **options: object) -> bytes:
    from PIL import Image

    image = Image.fromarray(array)
    stream = io.BytesIO()
    (image.convert(mode) if mode else image).save(stream, kind, **options)
    return stream.getvalue()


def _pictures() -> dict[str, bytes]:
    gray = _map()
    wide = gray.astype(np.uint16) * 257
    return {
        "gray.png": _picture(gray, "PNG"),
        "gray16.png": _picture(wide, "PNG"),
        "rgb.png": _picture(gray, "PNG", "RGB"),
        "rgba.png": _picture(gray, "PNG", "RGBA"),
        "palette.png": _picture(gray, "PNG", "P"),
        "bits.png": _picture(gray > 99, "PNG"),
        "raw.tif": _picture(gray, "TIFF"),
        "deflate.tif": _picture(gray, "TIFF", compression="tiff_deflate"),
        "lzw16.tiff": _picture(wide, "TIFF", compression="tiff_lzw"),
        "float.tiff": _picture(gray.astype(np.float32) / 255, "TIFF"),
        "gray.bmp": _picture(gray, "BMP"),
        "gray.jpg": _picture(gray, "JPEG"),
        "rgb.jpeg": _picture(gray, "JPEG", "RGB", progressive=True),
        "palette.gif": _picture(gray, "GIF"),
        "lossless.webp": _picture(gray, "WEBP", "RGB", lossless=True),
        "gray.pgm": _picture(gray, "PPM"),
        "gray16.pgm": b"P5 31 23 65535\n" + wide.astype(">u2").tobytes(),
        "plain.pgm": b"P2 31 23 255\n" + b" ".join(b"%d" % v for v in gray.ravel()),
        "bits.pbm": _picture(gray > 99, "PPM"),
        "rgb.ppm": _picture(gray, "PPM", "RGB"),
        "float.pfm": _picture(gray.astype(np.float32) / 255, "PPM"),
    }


def _arrays() -> dict[str, bytes]:
    soft = _map().astype(np.float32) / 255
    npy, npz, packed = io.BytesIO(), io.BytesIO(), io.BytesIO()
    np.save(npy, soft)
    np.savez(npz, pred=soft)
    np.savez_compressed(packed, segs=np.stack([_map() // 9, _map() // 40]))
    return {
        "soft.npy": npy.getvalue(),
        "soft.npz": npz.getvalue(),
        "segs.npz": packed.getvalue(),
    }


def _matlab() -> dict[str, tuple[bytes, Loader]]:
    from scipy.io import savemat
    from scipy.sparse import csc_matrix

    labels = (_map() // 40).astype(np.uint16)
    ucm2 = np.zeros((47, 63))
    ucm2[::5] = 0.25
    segs = np.empty((1, 2), object)
    segs[0, 0], segs[0, 1] = labels, labels // 2
    truth = np.empty((1, 2), object)
    for k in range(2):
        truth[0, k] = {"Segmentation": labels + 1, "Boundaries": _map() > 99 + k}
    cells = {"ucm2": ucm2, "segs": segs, "groundTruth": truth}
    found: dict[str, tuple[bytes, Loader]] = {}
    for name, value in cells.items():
        load = load_ground_truth if name == "groundTruth" else load_prediction
        for packed in (False, True):
            stream = io.BytesIO()
            savemat(stream, {name: value}, do_compression=packed)
            found[f"{name}{'_z' if packed else ''}.mat"] = (stream.getvalue(), load)
    stream = io.BytesIO()
    savemat(stream, {"edges": csc_matrix(_map() > 200)})
    found["sparse.mat"] = (stream.getvalue(), load_ground_truth)
    with contextlib.suppress(ImportError):
        found["ucm2_v73.mat"] = (_hdf5(ucm2), load_prediction)
    return found


def _hdf5(ucm2: np.ndarray) -> bytes:
    import h5py

    stream = io.BytesIO()
    with h5py.File(stream, "w", userblock_size=512) as file:
        item = file.create_dataset("ucm2", data=ucm2.T, compression="gzip")
        item.attrs["MATLAB_class"] = np.bytes_("double")
    return b"MATLAB 7.3 MAT-file".ljust(512) + stream.getvalue()[512:]


# ---- the mutations


def mutate(data: bytes, other: bytes, rng: random.Random, suffix: str) -> bytes:
    """One to four random damages; containers are also damaged inside, with sound checksums."""
    inside = {".png": _inside_png, ".mat": _inside_mat}.get(suffix)
    if inside and rng.random() < 0.4:
        return inside(data, other, rng)
    return _damage(data, other, rng)


def _damage(data: bytes, other: bytes, rng: random.Random) -> bytes:
    out = bytearray(data)
    for _ in range(rng.randint(1, 4)):
        _damage_once(out, other, rng)
    return bytes(out)


def _damage_once(out: bytearray, other: bytes, rng: random.Random) -> None:
    at = rng.randrange(len(out) + 1)
    # most of what can go wrong stands at the start
    if rng.random() < 0.4:
        at = min(at, rng.randrange(200))
    span = rng.choice((1, 2, 4, 8, 64, 512))
    kind = rng.randrange(8)
    if kind == 0 and at < len(out):
        out[at] ^= 1 << rng.randrange(8)
    elif kind == 1 and at < len(out):
        out[at] = rng.choice((0, 1, 0x7F, 0x80, 0xFF, rng.randrange(256)))
    elif kind == 2:
        del out[at:]
    elif kind == 3:
        del out[at : at + span]
    elif kind == 4:
        out[at:at] = out[at : at + span] * rng.choice((1, 2, 50))
    elif kind == 5:
        out[at:at] = rng.randbytes(span)
    elif kind == 6:
        order = rng.choice("<>")
        out[at & ~3 : (at & ~3) + 4] = struct.pack(order + "I", rng.choice(INTERESTING))
    else:
        start = rng.randrange(len(other) + 1)
        out[at : at + span] = other[start : start + span]


def _inside_png(data: bytes, other: bytes, rng: random.Random) -> bytes:
    """Damage a chunk (or what IDAT decodes to) and write a sound checksum."""
    chunks, at = [], 8
    while at + 12 <= len(data):
        size = struct.unpack_from(">I", data, at)[0]
        chunks.append((data[at + 4 : at + 8], data[at + 8 : at + 8 + size]))
        at += 12 + size
    k = rng.randrange(len(chunks))
    name, body = chunks[k]
    if name == b"IDAT" and rng.random() < 0.5:
        body = zlib.compress(_damage(zlib.decompress(body), other, rng))
    else:
        body = _damage(body, other, rng)
    chunks[k] = (name, body)
    if rng.random() < 0.2:
        rng.shuffle(chunks)
    return data[:8] + b"".join(
        struct.pack(">I", len(b)) + n + b + struct.pack(">I", zlib.crc32(n + b)) for n, b in chunks
    )


def _inside_mat(data: bytes, other: bytes, rng: random.Random) -> bytes:
    """Damage what a compressed element decodes to, and compress it again."""
    kind, size = struct.unpack_from("<II", data, 128)
    if kind != 15:
        return data[:128] + _damage(data[128:], other, rng)
    body = zlib.compress(_damage(zlib.decompress(data[136 : 136 + size]), other, rng))
    return data[:128] + struct.pack("<II", 15, len(body)) + body


# ---- the child: load one input after the other


def make_input(number: int, seed: int, sound: dict[str, tuple[bytes, Loader]]) -> tuple[str, bytes]:
    """Input `number` of `seed`: the name of its sound file and the damaged bytes."""
    rng = random.Random(f"{seed}/{number}")
    names = sorted(sound)
    name = names[number % len(names)]
    other = sound[rng.choice(names)][0]
    return name, mutate(sound[name][0], other, rng, Path(name).suffix)


def complaint(load: Loader, path: Path) -> tuple[str, str]:
    """("loaded" | "refused", "") or ("failed", why)."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            load(path)
    except DataError as error:
        for line in (str(error), *error.problems):
            if visible(line) != line or len(line) > 2000:  # spaces of other scripts may stay
                return "failed", f"a line that is not one printable line: {line!r}"
            if path.name not in line:
                return "failed", f"a line without the file's name: {line!r}"
        return "refused", ""
    except BaseException as error:
        return "failed", f"{type(error).__name__}: {error}"
    return "loaded", ""


def child(first: int, last: int, seed: int, folder: Path) -> None:
    """Load inputs first..last-1; one JSON line before and after each, on the real stdout."""
    report = os.fdopen(os.dup(1), "w", buffering=1)
    leak = os.open(folder / "screen.txt", os.O_CREAT | os.O_RDWR | os.O_TRUNC)
    os.dup2(leak, 1)
    os.dup2(leak, 2)
    sound = sound_files()
    for name, (data, load) in sound.items():  # also warms up every import
        path = folder / name
        path.write_bytes(data)
        verdict, why = complaint(load, path)
        if verdict != "loaded":
            report.write(json.dumps({"broken": f"{name}: {verdict} {why}"}) + "\n")
    start = _peak()
    for number in range(first, last):
        name, data = make_input(number, seed, sound)
        path = folder / name
        path.write_bytes(data)
        report.write(json.dumps({"begin": number, "name": name}) + "\n")
        began = time.perf_counter()
        verdict, why = complaint(sound[name][1], path)
        seconds = time.perf_counter() - began
        if os.fstat(leak).st_size:
            verdict, why = "failed", "wrote to the screen"
            os.ftruncate(leak, 0)
        line = {"end": number, "verdict": verdict, "why": why, "seconds": seconds}
        report.write(json.dumps({**line, "grown": _peak() - start}) + "\n")


def _peak() -> int:
    """The most memory this process ever held, bytes; 0 where the system does not say."""
    try:
        import resource
    except ImportError:
        return 0
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024


# ---- the parent: watch the child


class Tally:
    """What happened to the inputs of each format."""

    def __init__(self) -> None:
        self.verdicts: dict[str, Counter[str]] = {}
        self.slowest: dict[str, float] = {}
        self.failures: list[tuple[int, str, str]] = []
        self.broken: list[str] = []
        self.grown = 0

    def add(self, name: str, number: int, verdict: str, why: str, seconds: float) -> None:
        kind = Path(name).suffix
        self.verdicts.setdefault(kind, Counter())[verdict] += 1
        self.slowest[kind] = max(self.slowest.get(kind, 0.0), seconds)
        if verdict == "failed":
            self.failures.append((number, name, why))

    def table(self) -> str:
        """One row per suffix and the sum."""
        rows = ["format   inputs  loaded  refused  failed  slowest"]
        total: Counter[str] = Counter()
        for kind, count in sorted(self.verdicts.items()):
            rows.append(self._row(kind, count, self.slowest[kind]))
            total += count
        rows.append(self._row("all", total, max(self.slowest.values(), default=0.0)))
        rows.append(f"memory: grew by at most {self.grown / 2**20:.0f} MiB")
        return "\n".join(rows)

    @staticmethod
    def _row(kind: str, count: Counter[str], slowest: float) -> str:
        loaded, refused, failed = (count[k] for k in ("loaded", "refused", "failed"))
        total = sum(count.values())
        return f"{kind:8} {total:6}  {loaded:6}  {refused:7}  {failed:6}  {slowest:6.2f} s"


def run(first: int, count: int, seed: int) -> Tally:
    """Load `count` inputs in child processes; a child that dies or hangs is replaced."""
    tally = Tally()
    at, last = first, first + count
    while at < last:
        at = _one_child(at, last, seed, tally)
    if tally.grown > MEMORY_BOUND:
        tally.failures.append((-1, "all", f"memory grew by {tally.grown} bytes"))
    return tally


def _one_child(first: int, last: int, seed: int, tally: Tally) -> int:
    """Run a child from `first`; the number of the next input to do."""
    folder = Path(tempfile.mkdtemp(prefix="fuzz_"))
    command = [sys.executable, __file__, "--child", str(folder), "--first", str(first)]
    command += ["--count", str(last - first), "--seed", str(seed)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    watch = Watchdog(process)
    current: tuple[int, str] | None = None
    done = first
    try:
        for line in process.stdout or ():
            watch.alive()
            event = json.loads(line)
            if "broken" in event:
                tally.broken.append(event["broken"])
            elif "begin" in event:
                current = (event["begin"], event["name"])
            else:
                number, name = current or (event["end"], "?")
                tally.grown = max(tally.grown, event["grown"])
                tally.add(name, number, event["verdict"], event["why"], event["seconds"])
                current, done = None, number + 1
        process.wait()
    finally:
        watch.stop()
        process.kill()
        process.communicate()
        shutil.rmtree(folder, ignore_errors=True)
    if current is not None:
        why = "hang" if watch.killed else f"crash, exit status {process.returncode}"
        tally.add(current[1], current[0], "failed", why, SECONDS_PER_INPUT * watch.killed)
        return current[0] + 1
    if process.returncode:
        tally.failures.append((done, "child", f"exit status {process.returncode}"))
        return last
    return done


class Watchdog:
    """Kills a process that has not reported for SECONDS_PER_INPUT (thrice that at the start)."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self.process, self.killed = process, False
        self.deadline = time.monotonic() + 3 * SECONDS_PER_INPUT
        self._stopped = threading.Event()
        self.thread = threading.Thread(target=self._watch, daemon=True)
        self.thread.start()

    def alive(self) -> None:
        self.deadline = time.monotonic() + SECONDS_PER_INPUT

    def stop(self) -> None:
        self._stopped.set()
        self.thread.join()

    def _watch(self) -> None:
        while not self._stopped.wait(0.5):
            if time.monotonic() > self.deadline:
                self.killed = True
                self.process.kill()
                return


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--count", type=int, default=20_000)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--keep", type=Path, help="write the inputs into this folder, load nothing")
    parser.add_argument("--child", type=Path, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.child:
        child(args.first, args.first + args.count, args.seed, args.child)
        return 0
    if args.keep:
        sound = sound_files()
        args.keep.mkdir(parents=True, exist_ok=True)
        for number in range(args.first, args.first + args.count):
            name, data = make_input(number, args.seed, sound)
            (args.keep / f"{number}_{name}").write_bytes(data)
        return 0
    tally = run(args.first, args.count, args.seed)
    print(tally.table())
    for line in tally.broken:
        print("sound file does not load:", line)
    for number, name, why in tally.failures[:50]:
        print(f"input {number} ({name}): {why}")
    print(f"{len(tally.failures)} failures")
    return 1 if tally.failures or tally.broken else 0


if __name__ == "__main__":
    sys.exit(main())
