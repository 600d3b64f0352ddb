"""Small files that decode to as much as the loaders allow, or claim more: memory stays bounded.

    python scripts/fuzz large              # every case, some minutes, 1 GB of temporary files
    python scripts/fuzz large --only npz

Each file is written by one process and loaded by another, whose growth over its start is measured.
A file must load, or raise DataError. Exit status 1 if one does neither or takes over BOUND bytes.
"""

import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

BOUND = 1536 << 20
SIDE = 8_190  # of a square of 8-byte values just under MAX_DECODED_BYTES
WIDE = 10_000  # of a square of MAX_PIXELS


def npz(path: Path, dtype: str, value: float, side: int = SIDE, order: str = "C") -> None:
    import numpy as np

    np.savez_compressed(path, x=np.full((side, side), value, dtype, order=order))


def distinct(path: Path) -> None:
    """Stored uncompressed, all labels different, none of them small."""
    import numpy as np

    np.savez(path, x=-np.arange(SIDE * SIDE, dtype=np.int64).reshape(SIDE, SIDE))


def segs(path: Path, dtype: str, count: int, side: int) -> None:
    import numpy as np

    np.savez_compressed(path, segs=np.ones((count, side, side), dtype))


def npy(path: Path, dtype: str) -> None:
    import numpy as np

    np.save(path, np.ones((SIDE, SIDE), dtype, order="F"))


def mat(path: Path, dtype: str, side: int, name: str = "x", value: float = 1) -> None:
    import numpy as np
    from scipy.io import savemat

    savemat(path, {name: np.full((side, side), value, dtype)}, do_compression=True)


def truth(path: Path, side: int, annotators: int) -> None:
    import numpy as np
    from scipy.io import savemat

    cells = np.empty((1, annotators), object)
    for k in range(annotators):
        labels = np.ones((side, side), np.uint16)
        labels[0] = 2
        cells[0, k] = {"Segmentation": labels, "Boundaries": labels == 2}
    savemat(path, {"groundTruth": cells}, do_compression=True)


def v73(path: Path, dtype: str, value: float, chunk: int) -> None:
    import h5py
    import numpy as np

    with h5py.File(path, "w") as file:
        data = np.full((SIDE, SIDE), value, dtype)
        file.create_dataset("x", data=data, compression="gzip", chunks=(chunk, chunk))


def picture(path: Path, mode: str, dtype: str = "u1", side: int = WIDE, **options: object) -> None:
    import numpy as np
    from PIL import Image

    Image.MAX_IMAGE_PIXELS = None
    image = Image.fromarray(np.full((side, side), 255, dtype))
    (image.convert(mode) if mode else image).save(path, **options)


# name of the file, how to load it, how to write it
CASES: list[tuple[str, str, Callable[[Path], None]]] = [
    ("far_i8.npz", "labels", lambda p: npz(p, "i8", -1)),
    ("far_f8.npz", "labels", lambda p: npz(p, "f8", 2**52)),
    ("far_u8.npz", "labels", lambda p: npz(p, "u8", 2**63)),
    ("fortran.npz", "labels", lambda p: npz(p, "i8", -1, order="F")),
    ("big_endian.npz", "labels", lambda p: npz(p, ">f8", -3)),
    ("long.npz", "labels", lambda p: npz(p, "longdouble", -1, side=5_790)),
    ("distinct.npz", "labels", distinct),
    ("small.npz", "labels", lambda p: npz(p, "u1", 1, side=WIDE)),
    ("over.npz", "labels", lambda p: npz(p, "i8", -1, side=SIDE + 10)),
    ("segs.npz", "soft", lambda p: segs(p, "u1", 40, 1_500)),
    ("segs_over.npz", "soft", lambda p: segs(p, "u1", 40, 1_580)),
    ("soft.npz", "soft", lambda p: npz(p, "f8", 0.5)),
    ("soft_f2.npz", "soft", lambda p: npz(p, "f2", 0.5, side=WIDE)),
    ("soft_long.npz", "soft", lambda p: npz(p, "longdouble", 0.5, side=5_790)),
    ("soft_fortran.npz", "soft", lambda p: npz(p, ">f8", 0.5, order="F")),
    ("gray.npz", "truth", lambda p: npz(p, "f8", 0.5, order="F")),
    ("fortran.npy", "labels", lambda p: npy(p, "i8")),
    ("labels_f8.mat", "labels", lambda p: mat(p, "f8", 8_000, value=-1)),
    ("labels_u1.mat", "labels", lambda p: mat(p, "u1", WIDE)),
    ("ucm2.mat", "soft", lambda p: mat(p, "f4", 9_999, "ucm2", 0.5)),
    ("ucm2_u1.mat", "soft", lambda p: mat(p, "u1", 8_001, "ucm2")),
    ("truth.mat", "truth", lambda p: truth(p, 4_000, 5)),
    ("truth_over.mat", "truth", lambda p: truth(p, 4_000, 9)),
    ("labels_v73.mat", "labels", lambda p: v73(p, "f8", -1, 1_000)),
    ("one_chunk_v73.mat", "labels", lambda p: v73(p, "i8", -1, SIDE)),
    ("gray.png", "soft", lambda p: picture(p, "L")),
    ("gray16.png", "soft", lambda p: picture(p, "", "u2")),
    ("rgba.png", "soft", lambda p: picture(p, "RGBA")),
    ("la.png", "soft", lambda p: picture(p, "LA")),
    ("palette.png", "soft", lambda p: picture(p, "P")),
    ("labels.png", "labels", lambda p: picture(p, "P")),
    ("rgb.tif", "soft", lambda p: picture(p, "RGB", compression="tiff_lzw")),
    ("float.tif", "labels", lambda p: picture(p, "F", compression="tiff_deflate")),
    ("gray.jpg", "soft", lambda p: picture(p, "L")),
    ("rgb.bmp", "soft", lambda p: picture(p, "RGB")),
    ("palette.gif", "soft", lambda p: picture(p, "P")),
    ("rgba.webp", "soft", lambda p: picture(p, "RGBA", side=SIDE, lossless=True)),
    ("over.webp", "soft", lambda p: picture(p, "RGBA", lossless=True)),
    ("rgb.ppm", "soft", lambda p: picture(p, "RGB")),
]


def load(path: Path, how: str) -> str:
    """Load a file in this process: "loaded", or what was refused; then the bytes it took."""
    import resource
    import warnings

    import h5py  # noqa: F401
    import numpy as np
    from PIL import Image

    from bsdsbench.files.errors import DataError
    from bsdsbench.loaders import load_ground_truth, load_prediction

    warnings.simplefilter("error")
    Image.init()
    np.ones(10)
    start = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    try:
        if how == "truth":
            load_ground_truth(path)
        else:
            load_prediction(path, kind=how)
        found = "loaded"
    except DataError as error:
        found = str(error)
    return f"{1024 * (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - start)} {found}"


def run(only: str = "") -> list[str]:
    """Try the cases whose name holds `only`; prints a row for each and returns the faults."""
    faults = []
    with tempfile.TemporaryDirectory(prefix="fuzz_large_") as folder:
        for number, (name, how, _) in enumerate(CASES):
            if only not in name:
                continue
            path = Path(folder) / name
            _child("--write", number, path)
            began = time.perf_counter()
            answer = _child("--load", number, path)
            seconds = time.perf_counter() - began
            grown, _, found = answer.partition(" ")
            size = path.stat().st_size
            path.unlink()
            row = f"{name:18} {how:7} {size / 2**20:7.1f} MiB {seconds:5.1f} s "
            if not grown.isdigit():
                faults.append(f"{name}: {answer[-500:]}")
                continue
            print(f"{row} took {int(grown) / 2**20:5.0f} MiB  {found.partition(': ')[2] or found}")
            if int(grown) > BOUND:
                faults.append(f"{name}: took {grown} bytes, expected at most {BOUND}")
    return faults


def _child(what: str, number: int, path: Path) -> str:
    """A process of its own, so that its peak is its own; this one stays small."""
    command = [sys.executable, __file__, what, str(number), str(path)]
    found = subprocess.run(command, capture_output=True, text=True)
    return found.stdout.strip() if found.returncode == 0 else f"died: {found.stderr}"


if __name__ == "__main__":
    number, where = int(sys.argv[2]), Path(sys.argv[3])
    print(CASES[number][2](where) if sys.argv[1] == "--write" else load(where, CASES[number][1]))
