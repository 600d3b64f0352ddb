"""Coverage-guided fuzzing of the loaders with atheris (`pip install atheris`).

    python scripts/fuzz guided --count 60                        # seconds of each target
    python scripts/fuzz guided --only prediction --count 600

Targets: prediction, truth, mat, npz, image, official, scores, json, toml, counts, baseline. Each
starts from small sound files, is free in the sizes its input claims, and fails on anything but a
result or one short printable line, on a warning, and on memory over LIMIT MiB. Inputs that fail
are left in fuzz_found as crash-*.
"""

import os
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path

LIMIT = 1536
SECONDS_PER_INPUT = 20
KEEP = Path("fuzz_found")


def _files(target: str) -> list[tuple[str, bytes, Callable[[Path], object]]]:
    """Name, sound bytes and reader of the files of a target."""
    import files

    from bsdsbench.files.bounded import read_json
    from bsdsbench.loaders.scores import read_scores
    from bsdsbench.protocol.protocol import Protocol

    kinds = {"mat": (".mat",), "npz": (".npz", ".npy"), "official": (".txt", ".seg")}
    kinds["image"] = (".png", ".tif", ".tiff", ".bmp", ".jpg", ".jpeg")
    if target == "scores":
        return [("s.csv", b"label,score\n1,0.5\n0;0.25\n", read_scores)]
    if target == "json":
        return [("a.json", b'{"a": [1, -2.5e3, "x"]}', lambda p: read_json(p, "an object"))]
    if target == "toml":
        return [("p.toml", Protocol.preset("bsds500").to_toml().encode(), Protocol.load)]
    if target in ("counts", "baseline"):
        return [_run_file(target)]
    sound = files.sound_files()
    if target in kinds:
        return [(n, d, f) for n, (d, f) in sound.items() if Path(n).suffix in kinds[target]]
    wanted = "load_prediction" if target == "prediction" else "load_ground_truth"
    return [(n, d, f) for n, (d, f) in sound.items() if getattr(f, "__name__", "") == wanted]


def _run_file(target: str) -> tuple[str, bytes, Callable[[Path], object]]:
    import results

    from bsdsbench.comparison.gate import Baseline
    from bsdsbench.runs.folder import unpack_records

    with tempfile.TemporaryDirectory() as folder:
        run = results.made(Path(folder), 0)
        if target == "counts":
            return "counts.npz", (Path(folder) / "counts.npz").read_bytes(), unpack_records
        Baseline.of(run).save(Path(folder) / "b.json")
        return "b.json", (Path(folder) / "b.json").read_bytes(), Baseline.load


TARGETS = (
    *("prediction", "truth", "mat", "npz", "image", "official"),
    *("scores", "json", "toml", "counts", "baseline"),
)


def child(target: str, seconds: int, keep: Path) -> None:
    """Fuzz one target in this process, which libFuzzer ends."""
    import atheris

    with atheris.instrument_imports(include=["bsdsbench"]):
        import bsdsbench.comparison.gate
        import bsdsbench.loaders.hdf5
        import bsdsbench.loaders.segtext  # noqa: F401
        from bsdsbench.files.errors import LINE, DataError

        files = _files(target)
    folder = Path(tempfile.mkdtemp(prefix="fuzz_guided_"))
    corpus = folder / "corpus"
    corpus.mkdir()
    for k, (_, data, _) in enumerate(files):
        (corpus / f"seed{k}").write_bytes(bytes([k]) + data)
    warnings.simplefilter("error")

    def one(data: bytes) -> None:
        """The first byte says which file it is."""
        name, _, read = files[(data[0] if data else 0) % len(files)]
        path = folder / name
        path.write_bytes(data[1:])
        try:
            read(path)
        except DataError as error:
            for line in error.problems:
                if not line.isprintable() or len(line) > LINE:
                    raise AssertionError(f"not one short printable line: {line[:200]!r}") from None

    options = [f"-max_total_time={seconds}", f"-rss_limit_mb={LIMIT + 400}", "-max_len=65536"]
    options += [f"-timeout={SECONDS_PER_INPUT}", f"-artifact_prefix={keep}/", "-verbosity=1"]
    atheris.Setup([sys.argv[0], *options, str(corpus)], one)
    atheris.Fuzz()


def run(only: str, seconds: int, seed: int) -> list[str]:
    """Fuzz the targets whose name holds `only`, each for some seconds; the failures."""
    if not find_spec("atheris"):
        sys.exit("guided: atheris is not there (pip install atheris)")
    KEEP.mkdir(exist_ok=True)
    failures = []
    for target in (name for name in TARGETS if only in name):
        command = [sys.executable, __file__, target, str(seconds)]
        found = subprocess.run(command, capture_output=True, text=True, env={**os.environ})
        lines = found.stderr.splitlines()
        runs = next((line for line in reversed(lines) if line.startswith("Done ")), "")
        print(f"{target:11} {runs or 'failed'}", flush=True)
        if found.returncode:
            failures.append("\n".join([target, *lines[-25:]]))
    return failures


if __name__ == "__main__":
    child(sys.argv[1], int(sys.argv[2]), KEEP)
