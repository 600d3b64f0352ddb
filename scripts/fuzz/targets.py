"""What is read, and how hostile input for it is made: one table of targets.

Three kinds: damaged files of every format; small files that claim, or decode to, much more; damaged
results. Counts are read as they were or refused, whatever is damaged; in "forged" ones the hash is
made to fit. result.json, baselines, protocols, score lists and tables are text without a checksum:
what still is such a text may read differently.
"""

from __future__ import annotations

import contextlib
import io
import json
import multiprocessing
import random
import struct
import warnings
import zipfile
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import formats
import numpy as np

import bsdsbench as bb
from bsdsbench.comparison.gate import Baseline
from bsdsbench.errors import DataError
from bsdsbench.io import digest
from bsdsbench.loaders.formats.official_txt import _read_ev1, _read_rows
from bsdsbench.loaders.formats.scores import read_scores
from bsdsbench.loaders.pairing import Pair
from bsdsbench.loaders.readers import load_ground_truth, load_prediction, read_prediction
from bsdsbench.loaders.split_files import read_split
from bsdsbench.results.storage import unpack_records
from bsdsbench.text import LINE

SIZES = (0, 1, 3, 1000, 10**5, 3 * 10**6, 4 * 10**7, 5 * 10**8, 2**31 - 1)
NUMBERS = (*SIZES[:3], 7, 0x7F, 0xFF, 0xFFFF, 100_000, 2**31 - 1, 2**31, 2**32 - 1)
TOKENS = (
    *(b"NaN", b"-1", b"1e999", b"-Infinity", b"9" * 5000, b"[" * 3000, b"{}", b"[]", b"null"),
    *(b'""', b"true", b"\\ud800", b"\0", b"x" * 131_073, b"1e308", b"0.5,", b"\xff", b"\n", b"inf"),
)
ANY = object()
Read = Callable[[Path], object]
Make = Callable[[random.Random], bytes | None]  # None: it has written the file itself
READ: dict[str, Read] = {
    "soft": load_prediction,
    "labels": partial(load_prediction, kind="labels"),
    "truth": load_ground_truth,
    "depth": lambda path: read_prediction(Pair("a", (path,), ()), "depth-map", formats.SMALL),
    "split": read_split,
    "ev1": _read_ev1,
    "table": lambda path: _read_rows(path, 4),
}


@dataclass
class Target:
    """A file, how it is read, how hostile bytes for it are made, and what reading must give."""

    path: Path
    read: Read
    make: Make
    expected: object = ANY
    names: str = ""  # what a line of refusal must hold
    sound: bytes | None = None  # what the file holds between two attempts

    def attempt(self, data: bytes | None) -> str:
        """ "loaded", "refused", or what is wrong."""
        if data is not None:
            self.path.write_bytes(data)
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("error")
                found = self.read(self.path)
        except DataError as error:
            for line in map(str, error.problems):
                if not line.isprintable() or len(line) > LINE or self.names not in line:
                    return f"not one short printable line with {self.names}: {line[:200]!r}"
            return "refused"
        except BaseException as error:
            return f"{type(error).__name__}: {error}"
        finally:
            self.path.unlink() if self.sound is None else self.path.write_bytes(self.sound)
        same = self.expected is ANY or found == self.expected
        return "loaded" if same else f"changed in silence: {found}"


# ---- damages


def damage(data: bytes, other: bytes, rng: random.Random) -> bytes:
    """Up to three places in which something else stands, mostly at the start, or nothing at all."""
    out = bytearray(data)
    for _ in range(rng.randint(1, 3)):
        at = rng.randrange(len(out) + 1)
        at = min(at, rng.randrange(200)) if rng.random() < 0.4 else at
        span = rng.choice((0, 1, 1, 1, 2, 2, 4, 4, 8, 64, len(out)))
        here, start = bytes(out[at : at + span]), rng.randrange(len(other) + 1)
        number = struct.pack(rng.choice("<>") + "I", rng.choice(NUMBERS))
        pieces = b"", here * rng.choice((2, 50)), rng.randbytes(min(span, 512)), number
        pieces += rng.choice(TOKENS), other[start : start + span]
        pieces += bytes(byte ^ 1 << rng.randrange(8) for byte in here[:2]) + here[2:], b"\0\x80"
        out[at : at + span] = rng.choice(pieces)
    return bytes(out)


def inside_png(data: bytes, other: bytes, rng: random.Random) -> bytes:
    """Damage a chunk (or what IDAT decodes to) and write a sound checksum."""
    chunks, at = [], 8
    while at + 12 <= len(data):
        size = struct.unpack_from(">I", data, at)[0]
        chunks.append((data[at + 4 : at + 8], data[at + 8 : at + 8 + size]))
        at += 12 + size
    k = rng.randrange(len(chunks))
    name, body = chunks[k]
    if name == b"IDAT" and rng.random() < 0.5:
        body = zlib.compress(damage(zlib.decompress(body), other, rng))
    else:
        body = damage(body, other, rng)
    chunks[k] = (name, body)
    return data[:8] + b"".join(
        struct.pack(">I", len(b)) + n + b + struct.pack(">I", zlib.crc32(n + b)) for n, b in chunks
    )


def inside_mat(data: bytes, other: bytes, rng: random.Random) -> bytes:
    """Damage what a compressed element decodes to, and compress it again."""
    kind, size = struct.unpack_from("<II", data, 128)
    if kind != 15:
        return data[:128] + damage(data[128:], other, rng)
    body = zlib.compress(damage(zlib.decompress(data[136 : 136 + size]), other, rng))
    return data[:128] + struct.pack("<II", 15, len(body)) + body


def damaged(data: bytes, others: list[bytes], suffix: str) -> Make:
    """What damages a file, also inside of what a checksum or compression protects."""
    inside = {".png": inside_png, ".mat": inside_mat}.get(suffix, damage)
    ways = damage, damage, inside
    return lambda rng: rng.choice(ways)(data, rng.choice(others), rng)


# ---- claims


def mat(rng: random.Random) -> bytes:
    """A cell, a struct or numbers of some size, of nothing or of names."""
    kind, size = rng.choice((1, 2, 2, 5, 6, 9)), rng.choice(SIZES)
    shape = rng.choice(((size, 1), (1, size), (size, size), (0, size)))
    body = struct.pack("<IIIIIIiiII", 6, 8, kind, 0, 5, 8, *shape, 1, 4) + b"ucm2" + bytes(4)
    room = min(rng.choice(SIZES), 1 << 25)
    if kind == 2:
        body += struct.pack("<IIII", 5 | 4 << 16, rng.choice((1, 4, 64)), 1, room) + bytes(room)
    elif kind == 1:
        body += struct.pack("<II", 14, 0) * (room // 8)
    else:
        body += struct.pack("<II", rng.choice((2, 9)), room) + bytes(room)
    raw = struct.pack("<II", 14, rng.choice((len(body), len(body), 2**32 - 9))) + body
    packed = zlib.compress(raw, 1)
    return bytes(124) + b"\x00\x01IM" + struct.pack("<II", 15, len(packed)) + packed


def hdf5(rng: random.Random) -> bytes:
    """Chunks that hold other than they say, groups in a graph of hard links, wide cells."""
    import h5py

    stream = io.BytesIO()
    with h5py.File(stream, "w") as file:
        way = rng.randrange(4)
        if way == 0:
            side = rng.choice((8, 64, 500))
            options = {"chunks": (side, side), "compression": "gzip"}
            item = file.create_dataset("ucm2", (side, side), rng.choice("df"), **options)
            room = min(rng.choice(SIZES), 1 << 26)
            item.id.write_direct_chunk((0, 0), zlib.compress(bytes(room), 1))
        elif way == 1:
            below = file.create_dataset("#leaf", data=np.ones((3, 3)))
            depth, width = rng.randint(1, 9), rng.choice((2, 10, 60))
            for level in range(depth):
                group = file.create_group("segs" if level == depth - 1 else f"#{level}")
                for k in range(width):
                    group[f"g{k}"] = below
                below = group
        elif way == 2:
            count = rng.choice((1, 100, 10_000, 10**6))
            cell = file.create_dataset("segs", (count, 1), h5py.ref_dtype)
            cell.attrs["MATLAB_class"] = np.bytes_("cell")
            cell[...] = np.full((count, 1), cell.ref, h5py.ref_dtype)
        else:
            side = rng.choice((10, 10**4, 10**5))
            chunks = (1, min(side, rng.choice((1, 100, 10**4))))
            file.create_dataset("ucm2", (side, side), "d", chunks=chunks, fillvalue=0.5)
    return stream.getvalue()


def npy(rng: random.Random) -> bytes:
    """A header of any shape and type."""
    shape = tuple(rng.choice(SIZES) for _ in range(rng.randint(0, 3)))
    kind = rng.choice(("<f8", "|u1", "<U9999", "<i8", "|O", "<f2", "|V99", "[('a', '<f8')]", "M8"))
    quoted = kind if kind[0] == "[" else repr(kind)
    text = f"{{'descr': {quoted}, 'fortran_order': {rng.random() < 0.5}, 'shape': {shape}, }}"
    text = text.replace("(", "(" * rng.choice((1, 1, 1, 500)))
    head = text.ljust(rng.choice((0, 118, 9000))).encode() + b"\n"
    version = rng.choice((1, 1, 2, 3))
    length = struct.pack("<H" if version == 1 else "<I", len(head) & 0xFFFF)
    body = bytes(min(rng.choice(SIZES), 1 << 24))
    return b"\x93NUMPY" + bytes([version, 0]) + length + head + body


def archive(arrays: dict[str, Any]) -> bytes:
    """An npz of arrays, or of bytes that are none."""
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as packed:
        for name, array in arrays.items():
            with packed.open(f"{name}.npy", "w", force_zip64=True) as file:
                if isinstance(array, bytes):
                    file.write(array)
                else:
                    np.lib.format.write_array(file, array)
    return stream.getvalue()


def npz(rng: random.Random) -> bytes:
    """Some of the above in an archive, or arrays that are sound and large."""
    sound = np.zeros((rng.choice((1, 10**3, 10**6)), rng.choice((1, 9))))
    return archive({name: rng.choice((npy(rng), sound)) for name in ("pred", "segs")})


def counts(rng: random.Random) -> bytes:
    """A counts file of very many images, or of very wide ones."""
    images, wide = rng.choice(((1, 10**6), (10**3, 99), (2000, 9)))
    if rng.random() < 0.05:  # these take seconds to write
        images, wide = rng.choice(((10**4, 99), (5 * 10**4, 9), (10**6, 1), (3 * 10**6, 1)))
    arrays = {
        "ids": np.arange(images).astype("U8"),
        "sizes": np.full((images, 2), rng.choice((0, 5)), np.int64),
        "fingerprints": np.zeros(images, "U1"),
        "boundary.thresholds": np.broadcast_to(np.linspace(0.01, 0.99, wide), (images, wide)),
    }
    arrays["boundary.matches"] = np.ones((images, wide, 4), rng.choice(("u1", "i8")))
    return archive(arrays)


def text(rng: random.Random) -> bytes:
    """JSON of many, deep or long values."""
    count = min(rng.choice(SIZES), 3 * 10**6)
    few = min(count, 10**5)
    made = (
        lambda: '{"a": [' + "0," * count + "0]}",
        lambda: '{"a": [' + "[" * few + "]" * few + "]}",
        lambda: '{"a": [' + "9" * few + "]}",
        lambda: json.dumps({"schema": "x" * count, **{str(k): {} for k in range(count // 10)}}),
    )
    return rng.choice(made)().encode()


def lines(rng: random.Random) -> bytes:
    """A score list of many lines or long ones."""
    count = min(rng.choice(SIZES), 3 * 10**6)
    row = rng.choice((b"1,0.5\n", b"0;0.25\n", b"1 0.5\n", b",\n", b"\n", b"1,1e999\n"))
    return b"label,score\n" + rng.choice((row * count, row.strip() * count))


CLAIMS: dict[str, tuple[str, Callable[[random.Random], bytes], Read]] = {
    "mat": ("a.mat", mat, load_prediction),
    "hdf5": ("a.mat", hdf5, load_prediction),
    "npy": ("a.npy", npy, load_prediction),
    "npz": ("a.npz", npz, load_prediction),
    "counts": ("counts.npz", counts, lambda path: unpack_records(path, path.read_bytes())),
    "baseline": ("b.json", text, Baseline.load),
    "protocol": ("p.json", text, bb.Protocol.load),
    "scores": ("s.csv", lines, read_scores),
}


# ---- results


def results(root: Path) -> dict[str, tuple[Path, Read, bool]]:
    """Name -> sound file, how it is read, and whether it must read as it did."""
    rng, protocol = np.random.default_rng(0), bb.Protocol.preset("bsds500").replace(thresholds=5)
    one: dict[str, Any] = {"workers": 1, "executor": "thread"}
    for folder in ("pred", "gt"):
        (root / folder).mkdir(parents=True)
    for k, soft in enumerate(rng.random((3, 20, 30), np.float32)):
        np.save(root / "pred" / f"im{k}.npy", soft)
        np.save(root / "gt" / f"im{k}.npy", soft > 0.8)
    run = bb.evaluate(root / "pred", root / "gt", protocol, **one)
    for name in ("out", "forged"):
        run.save(root / name)
    Baseline.of(run).save(root / "baseline.json")
    (root / "p.toml").write_text('base = "bsds500"\nthresholds = 5\n', "utf-8")
    (root / "s.csv").write_text("label,score\n" + "".join(f"{k % 2},{k / 20}\n" for k in range(20)))
    stop = {"progress": lambda done, total, name: 1 // (2 - done)}
    with contextlib.suppress(ZeroDivisionError):
        bb.evaluate(root / "pred", root / "gt", protocol, out=root / "going", **one, **stop)

    def scores(path: Path) -> object:
        found = bb.Evaluation.load(path.parent)
        return json.dumps([found.scores(), found.protocol.to_mapping()])

    def forged(path: Path) -> object:
        told = json.loads((path.parent / "result.json").read_bytes())
        told["files"] = {"counts.npz": digest(path.read_bytes())}
        (path.parent / "result.json").write_text(json.dumps(told), "utf-8")
        return scores(path)

    def again(path: Path) -> object:
        """The run that was interrupted goes on; a damaged record counts as none."""
        (path.parent / "result.json").unlink(missing_ok=True)
        try:
            run = bb.evaluate(root / "pred", root / "gt", protocol, out=path.parent, **one)
        except OSError as error:  # what sqlite cannot read at all
            raise DataError(f"{path}: {error.strerror}") from None
        return run.scores()

    return {
        "result.json": (root / "out" / "result.json", scores, False),
        "counts.npz": (root / "out" / "counts.npz", scores, True),
        "forged counts": (root / "forged" / "counts.npz", forged, False),
        "records.db": (root / "going" / "records.db", again, True),
        "baseline": (root / "baseline.json", Baseline.load, False),
        "protocol": (root / "p.toml", bb.Protocol.load, False),
        "scores": (root / "s.csv", read_scores, False),
        "table": (root / "out" / "eval_bdry_thr.txt", READ["table"], False),
    }


# ---- the table


def table(folder: Path, only: str = "") -> dict[str, Target]:
    """Name -> target, in folders of its own; raises where a sound file does not load."""
    targets: dict[str, Target] = {}
    for name, (file, make, read) in CLAIMS.items():
        (folder / name).mkdir()
        targets[f"claim: {name}"] = Target(folder / name / file, read, make, names=file)
    sound: dict[str, tuple[Path, Read, bool]] = {}
    for name, (kind, *how) in (formats.SOUND | formats.WRITTEN).items():
        formats.write(folder / name, *how)
        sound[name] = folder / name, READ[kind], False
    sound |= {f"result: {name}": row for name, row in results(folder / "runs").items()}
    others = [path.read_bytes() for path, *_ in sound.values()]
    for name, (path, read, exact) in sound.items():
        data, names = path.read_bytes(), path.parent.name if exact else path.name
        make, expected = damaged(data, others, path.suffix), read(path) if exact else ANY
        targets[name] = Target(path, read, make, expected, names, data)
        if (verdict := targets[name].attempt(data)) != "loaded":
            raise RuntimeError(f"{name}: the sound file: {verdict}")
    return {name: target for name, target in targets.items() if only in name}


def large(folder: Path, only: str = "") -> dict[str, Target]:
    """The files of formats.LARGE, each written in a process whose memory is not that of reading."""

    def written(*how: Any) -> Make:
        def make(rng: random.Random) -> None:
            writer = multiprocessing.get_context("fork").Process(target=formats.write, args=how)
            writer.start()
            writer.join()

        return make

    return {
        name: Target(folder / name, READ[kind], written(folder / name, *how), names=name)
        for name, (kind, *how) in formats.LARGE.items()
        if only in name
    }
