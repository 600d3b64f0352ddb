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
import random
import struct
import warnings
import zipfile
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import bsdsbench as bb
from bsdsbench.comparison.gate import Baseline
from bsdsbench.files.bounded import digest, read_json
from bsdsbench.files.errors import LINE, DataError
from bsdsbench.loaders import Pair, load_ground_truth, load_prediction
from bsdsbench.loaders.depth_files import depth_prediction
from bsdsbench.loaders.official_txt import read_ev1, read_rows
from bsdsbench.loaders.pairing import read_split
from bsdsbench.loaders.scores import read_scores
from bsdsbench.runs.folder import unpack_records

INTERESTING = (0, 1, 2, 7, 0x7F, 0xFF, 0xFFFF, 100_000, 2**31 - 1, 2**31, 2**32 - 1)
SIZES = (0, 1, 3, 1000, 10**5, 3 * 10**6, 4 * 10**7, 5 * 10**8, 2**31 - 1)
TOKENS = (
    *(b"NaN", b"-1", b"1e999", b"-Infinity", b"9" * 5000, b"[" * 3000, b"{}", b"[]", b"null"),
    *(b'""', b"true", b"\\ud800", b"\0", b"x" * 131_073, b"1e308", b"0.5,", b"\xff", b"\n", b"inf"),
)
ANY = object()
Read = Callable[[Path], object]
Make = Callable[[random.Random], bytes]


@dataclass
class Target:
    """A file, how it is read, how hostile bytes for it are made, and what reading must give."""

    path: Path
    read: Read
    make: Make
    expected: object = ANY
    names: str = ""  # what a line of refusal must hold

    def attempt(self, rng: random.Random) -> tuple[str, str]:
        return self.verdict(self.make(rng))

    def verdict(self, data: bytes) -> tuple[str, str]:
        """("loaded" | "refused", "") or ("failed", why)."""
        self.path.write_bytes(data)
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("error")
                found = self.read(self.path)
        except DataError as error:
            for line in error.problems:
                if not line.isprintable() or len(line) > LINE:
                    return "failed", f"not one short printable line: {line[:200]!r}"
                if self.names not in line:
                    return "failed", f"a line without {self.names}: {line!r}"
            return "refused", ""
        except BaseException as error:
            return "failed", f"{type(error).__name__}: {error}"
        if self.expected is not ANY and found != self.expected:
            return "failed", f"changed in silence: {found}"
        return "loaded", ""


# ---- the sound files that are mutated


def sound_files() -> dict[str, tuple[bytes, Read]]:
    """Name with suffix -> bytes and the function that reads such a file."""
    soft = load_prediction
    found: dict[str, tuple[bytes, Read]] = {}
    found.update({k: (v, soft) for k, v in _pictures().items()})
    found["gt.png"] = (_picture(_map() > 128, "PNG"), load_ground_truth)
    found.update({k: (v, soft) for k, v in _arrays().items()})
    found.update(_matlab())
    runs = "".join(f"{r % 3} {r} 0 30\n" for r in range(23))
    seg = f"format ascii cr\nimage 1\nwidth 31\nheight 23\nsegments 3\ndata\n{runs}"
    found["truth.seg"] = (seg.encode(), load_ground_truth)
    dpt = struct.pack("<fii", 202021.25, 31, 23) + _map().astype("<f4").tobytes()
    found["depth.dpt"] = (dpt, _load_depth)
    found["split.txt"] = (b"# a split\n2018\n3063.png\n\nval/8068.mat\n", read_split)
    table = "".join(f"{t / 6:10g} {9 - t:10g} {9:10g} {5:10g} {12:10g}\n" for t in range(1, 6))
    found["2018_ev1.txt"] = (table.encode(), read_ev1)
    found["eval_bdry_thr.txt"] = (table.encode(), lambda p: read_rows(p, 4))
    return found


def _load_depth(path: Path) -> object:
    return depth_prediction(Pair("a", (path,), ()), (23, 31))


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
    return {"soft.npy": npy.getvalue(), "soft.npz": npz.getvalue(), "segs.npz": packed.getvalue()}


def _matlab() -> dict[str, tuple[bytes, Read]]:
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
    found: dict[str, tuple[bytes, Read]] = {}
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
        found["depth.h5"] = (_hdf5(ucm2), _load_depth)
    return found


def _hdf5(ucm2: np.ndarray) -> bytes:
    import h5py

    stream = io.BytesIO()
    with h5py.File(stream, "w", userblock_size=512) as file:
        item = file.create_dataset("ucm2", data=ucm2.T, compression="gzip")
        item.attrs["MATLAB_class"] = np.bytes_("double")
    return b"MATLAB 7.3 MAT-file".ljust(512) + stream.getvalue()[512:]


# ---- the mutations


def damage(data: bytes, other: bytes, rng: random.Random) -> bytes:
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
        body = zlib.compress(damage(zlib.decompress(body), other, rng))
    else:
        body = damage(body, other, rng)
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
        return data[:128] + damage(data[128:], other, rng)
    body = zlib.compress(damage(zlib.decompress(data[136 : 136 + size]), other, rng))
    return data[:128] + struct.pack("<II", 15, len(body)) + body


# ---- claims


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


# ---- results


def results(root: Path) -> dict[str, tuple[Path, Read, bool]]:
    """Name -> sound file, how it is read, and whether it must read as it did."""
    rng, protocol = np.random.default_rng(0), bb.Protocol.preset("bsds500").replace(thresholds=5)
    one: dict[str, Any] = {"workers": 1, "executor": "thread"}

    def made() -> list[tuple[str, Any, Any]]:
        return [(f"im{k}", maps[k], bb.GroundTruth(f"im{k}", (maps[k] > 0.8,))) for k in range(3)]

    maps = rng.random((3, 20, 30))
    run = bb.evaluate_items(made(), protocol, **one)
    for name in ("out", "forged"):
        run.save(root / name)
    Baseline.of(run).save(root / "baseline.json")
    (root / "p.toml").write_text(protocol.to_toml(), "utf-8")
    (root / "s.csv").write_text("label,score\n" + "".join(f"{k % 2},{k / 20}\n" for k in range(20)))

    def scores(path: Path) -> object:
        found = bb.Evaluation.load(path.parent)
        return json.dumps([found.scores(), found.protocol.to_mapping()])

    def forged(path: Path) -> object:
        told = json.loads((path.parent / "result.json").read_bytes())
        told["files"] = {"counts.npz": digest(path.read_bytes())}
        (path.parent / "result.json").write_text(json.dumps(told), "utf-8")
        return scores(path)

    def baseline(path: Path) -> object:
        found = Baseline.load(path)
        counts = [r.counts["boundary"].total_gt.tolist() for r in found.records]
        return found.scores, found.n_images, found.protocol, counts

    def again(path: Path) -> object:
        """The run that was interrupted goes on; a damaged record counts as none."""
        (path.parent / "result.json").unlink(missing_ok=True)
        try:
            run = bb.evaluate(root / "pred", root / "gt", protocol, out=path.parent, **one)
        except OSError as error:  # what sqlite cannot read at all
            raise DataError(f"{path}: {error.strerror}") from None
        return run.scores()

    for folder in ("pred", "gt"):
        (root / folder).mkdir()
        for k, soft in enumerate(maps):
            kept = soft if folder == "pred" else soft > 0.8
            (root / folder / f"im{k}.png").write_bytes(_picture((kept * 255).astype("u1"), "PNG"))
    stop = {"progress": lambda done, total, name: 1 // (2 - done)}
    with contextlib.suppress(ZeroDivisionError):
        bb.evaluate(root / "pred", root / "gt", protocol, out=root / "going", **one, **stop)
    return {
        "result.json": (root / "out" / "result.json", scores, False),
        "counts.npz": (root / "out" / "counts.npz", scores, True),
        "forged counts": (root / "forged" / "counts.npz", forged, False),
        "records.db": (root / "going" / "records.db", again, True),
        "baseline": (root / "baseline.json", baseline, False),
        "protocol": (root / "p.toml", bb.Protocol.load, False),
        "scores": (root / "s.csv", read_scores, False),
        "table": (root / "out" / "eval_bdry_thr.txt", lambda path: read_rows(path, 4), False),
        "json": (root / "baseline.json", lambda path: read_json(path, "an object"), False),
    }


def with_tokens(data: bytes, other: bytes, rng: random.Random) -> bytes:
    """Random damages of bytes, or a token where it may hurt."""
    if rng.random() < 0.6:
        return damage(data, other, rng)
    at, span = rng.randrange(len(data) + 1), rng.choice((0, 1, 3, 10, 40))
    return data[:at] + rng.choice(TOKENS) + data[at + span :]


# ---- the table

CLAIMS: dict[str, tuple[str, Make, Read]] = {
    "claim: mat": ("a.mat", mat, load_prediction),
    "claim: hdf5": ("a.mat", hdf5, load_prediction),
    "claim: npy": ("a.npy", npy, load_prediction),
    "claim: npz": ("a.npz", npz, load_prediction),
    "claim: counts": ("counts.npz", counts, unpack_records),
    "claim: baseline": ("b.json", text, Baseline.load),
    "claim: protocol": ("p.json", text, bb.Protocol.load),
    "claim: scores": ("s.csv", lines, read_scores),
}


def table(folder: Path, only: str = "") -> dict[str, Target]:
    """Name -> target, in folders of its own; raises where a sound file does not load."""
    found: dict[str, Target] = {}

    def add(
        name: str, path: Path, read: Read, data: bytes, how: Callable[..., bytes], exact: bool
    ) -> None:
        path.write_bytes(data)
        expected = read(path) if exact else ANY
        make: Make = lambda rng: how(data, rng.choice(others), rng)  # noqa: E731
        found[name] = Target(path, read, make, expected, path.parent.name if exact else path.name)
        if (verdict := found[name].verdict(data)) != ("loaded", ""):
            raise RuntimeError(f"{name}: the sound file: {verdict}")

    sound = sound_files()
    others = [data for data, _ in sound.values()]
    for name, (data, read) in sound.items():
        suffix = Path(name).suffix
        inside = {".png": _inside_png, ".mat": _inside_mat}.get(suffix, damage)
        how = lambda data, other, rng, inside=inside: (  # noqa: E731
            inside if rng.random() < 0.4 else damage
        )(data, other, rng)
        (folder / "files").mkdir(exist_ok=True)
        add(name, folder / "files" / name, read, data, how, False)
    for name, (file, make, read) in CLAIMS.items():
        below = folder / name.replace(": ", "_")
        below.mkdir()
        found[name] = Target(below / file, read, make, names=file)
    for name, (path, read, exact) in results(folder).items():
        add(f"result: {name}", path, read, path.read_bytes(), with_tokens, exact)
    return {name: target for name, target in found.items() if only in name}
