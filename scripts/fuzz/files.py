"""Damaged files of every format that loaders read: each loads, or is refused in one line."""

import contextlib
import io
import random
import struct
import warnings
import zlib
from collections.abc import Callable
from pathlib import Path

import numpy as np

from bsdsbench.files.errors import LINE, DataError
from bsdsbench.loaders import Pair, load_ground_truth, load_prediction
from bsdsbench.loaders.depth_files import depth_prediction
from bsdsbench.loaders.official_txt import read_ev1, read_rows
from bsdsbench.loaders.pairing import read_split

INTERESTING = (0, 1, 2, 7, 0x7F, 0xFF, 0xFFFF, 100_000, 2**31 - 1, 2**31, 2**32 - 1)
Loader = Callable[[Path], object]
Attempt = Callable[[random.Random], tuple[str, str]]


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
    dpt = struct.pack("<fii", 202021.25, 31, 23) + _map().astype("<f4").tobytes()
    found["depth.dpt"] = (dpt, _load_depth)
    found["split.txt"] = (b"# a split\n2018\n3063.png\n\nval/8068.mat\n", read_split)
    table = "".join(f"{t / 6:10g} {9 - t:10g} {9:10g} {5:10g} {12:10g}\n" for t in range(1, 6))
    found["2018_ev1.txt"] = (table.encode(), read_ev1)
    found["eval_bdry_thr.txt"] = (table.encode(), lambda p: read_rows(p, 4))
    return found


def _load_depth(path: Path) -> object:
    return depth_prediction(Pair("a", (Path(path),), ()), (23, 31))


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


def mutate(data: bytes, other: bytes, rng: random.Random, suffix: str) -> bytes:
    """One to four random damages; containers are also damaged inside, with sound checksums."""
    inside = {".png": _inside_png, ".mat": _inside_mat}.get(suffix)
    if inside and rng.random() < 0.4:
        return inside(data, other, rng)
    return damage(data, other, rng)


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


# ---- one input


def attempts(folder: Path) -> dict[str, Attempt]:
    """Name of a sound file -> what damages and loads it; raises where it does not load sound."""
    sound = sound_files()
    found: dict[str, Attempt] = {}
    for name, (data, load) in sound.items():
        path = folder / name
        path.write_bytes(data)
        verdict, why = complaint(load, path)
        if verdict != "loaded":
            raise RuntimeError(f"{name}: the sound file is {verdict}: {why}")
        found[name] = _attempt(path, data, load, [other for other, _ in sound.values()])
    return found


def _attempt(path: Path, data: bytes, load: Loader, others: list[bytes]) -> Attempt:
    def attempt(rng: random.Random) -> tuple[str, str]:
        path.write_bytes(mutate(data, rng.choice(others), rng, path.suffix))
        return complaint(load, path)

    return attempt


def refusal(error: DataError, name: str = "") -> tuple[str, str]:
    """("refused", ""), or ("failed", why) where a line is none, or does not have the name."""
    for line in error.problems:
        if not line.isprintable() or len(line) > LINE:
            return "failed", f"not one short printable line: {line[:200]!r}"
        if name not in line:
            return "failed", f"a line without {name}: {line!r}"
    return "refused", ""


def complaint(load: Loader, path: Path) -> tuple[str, str]:
    """("loaded" | "refused", "") or ("failed", why)."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            load(path)
    except DataError as error:
        return refusal(error, path.name)
    except BaseException as error:
        return "failed", f"{type(error).__name__}: {error}"
    return "loaded", ""
