"""Small files that claim, or decode to, much more: bounded memory and time."""

import io
import json
import random
import struct
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path

import numpy as np
from files import Attempt, Loader, complaint

import bsdsbench as bb
from bsdsbench.comparison.gate import Baseline
from bsdsbench.loaders import load_prediction
from bsdsbench.loaders.scores import read_scores
from bsdsbench.runs.folder import unpack_records

SIZES = (0, 1, 3, 1000, 10**5, 3 * 10**6, 4 * 10**7, 5 * 10**8, 2**31 - 1)
Write = Callable[[random.Random], bytes]


def mat(rng: random.Random) -> bytes:
    """A cell, a struct or numbers of some size, of nothing or of names."""
    kind, size = rng.choice((1, 2, 2, 5, 6, 9)), rng.choice(SIZES)
    shape = rng.choice(((size, 1), (1, size), (size, size), (0, size)))
    dims = struct.pack("<IIii", 5, 8, *shape)
    body = (
        struct.pack("<IIII", 6, 8, kind, 0) + dims + struct.pack("<II", 1, 4) + b"ucm2" + bytes(4)
    )
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
            item = file.create_dataset("ucm2", (side, side), "d", chunks=chunks, fillvalue=0.5)
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


def npz(rng: random.Random, names: tuple[str, ...] = ("pred", "segs")) -> bytes:
    """Some of the above in an archive, or arrays that are sound and large."""
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        for name in names:
            if rng.random() < 0.5:
                data = npy(rng)
            else:
                found = io.BytesIO()
                np.save(found, np.zeros((rng.choice((1, 10**3, 10**6)), rng.choice((1, 9))), "f8"))
                data = found.getvalue()
            archive.writestr(f"{name}.npy", data)
    return stream.getvalue()


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
    for name in ("matched_gt", "total_gt", "matched_pred", "total_pred"):
        arrays[f"boundary.{name}"] = np.ones((images, wide), rng.choice(("u1", "i8")))
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        for name, array in arrays.items():
            with archive.open(f"{name}.npy", "w", force_zip64=True) as file:
                np.lib.format.write_array(file, array)
    return stream.getvalue()


def text(rng: random.Random) -> bytes:
    """JSON of many, deep or long values."""
    count = min(rng.choice(SIZES), 3 * 10**6)
    way = rng.randrange(5)
    if way == 0:
        return b'{"a": [' + b"0," * count + b"0]}"
    if way == 1:
        return b'{"a": ' + b"[" * min(count, 10**5) + b"]" * min(count, 10**5) + b"}"
    if way == 2:
        return json.dumps({"schema": "x" * count, "files": {"\U0001f600": "y"}}).encode()
    if way == 3:
        return b'{"a": ' + b"9" * min(count, 10**5) + b"}"
    return ("{" + ",".join(f'"{k}":{{}}' for k in range(count // 10)) + "}").encode()


def lines(rng: random.Random) -> bytes:
    """A score list of many lines or long ones."""
    count = min(rng.choice(SIZES), 3 * 10**6)
    row = rng.choice((b"1,0.5\n", b"0;0.25\n", b"1 0.5\n", b",\n", b"\n", b"1,1e999\n"))
    return b"label,score\n" + rng.choice((row * count, row.strip() * count))


KINDS: dict[str, tuple[str, Write, Loader]] = {
    "claim: mat": ("a.mat", mat, load_prediction),
    "claim: hdf5": ("a.mat", hdf5, load_prediction),
    "claim: npy": ("a.npy", npy, load_prediction),
    "claim: npz": ("a.npz", npz, load_prediction),
    "claim: counts": ("counts.npz", counts, unpack_records),
    "claim: baseline": ("b.json", text, Baseline.load),
    "claim: protocol": ("p.json", text, bb.Protocol.load),
    "claim: scores": ("s.csv", lines, read_scores),
}


def attempts(folder: Path) -> dict[str, Attempt]:
    """Name of a kind -> what makes one and loads it."""
    return {
        name: _attempt(folder / file, write, load) for name, (file, write, load) in KINDS.items()
    }


def _attempt(path: Path, write: Write, load: Loader) -> Attempt:
    def attempt(rng: random.Random) -> tuple[str, str]:
        path.write_bytes(write(rng))
        return complaint(load, path)

    return attempt
