"""Run every command of README.md and docs/howto/maps.md in order, as it stands there.

    python scripts/readme_commands.py

In an empty folder with a few maps of the sample. Each command is printed with what it said, so that
a person can read it; exit status 1 if one ends otherwise than expected.
"""

import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from bsdsbench.loaders.sample import sample_ground_truth, sample_images, sample_results

ROOT = Path(__file__).resolve().parents[1]
FEW = ("fruit1", "herd1", "herd2", "lake1")
# Installing and building are what .ci/run does; the archive of BSDS500 is not here
LEFT = re.compile("venv|pip|uv tool|data certify|demo|NAME")
STATUS = {"check": (2,), "explain": (0, 1), "doctor": (0, 2)}
BEFORE = """
import bsdsbench as bb
for name in ("hed", "ucm"):
    bb.evaluate("maps", "gt", name=name, out=f"out/{name}", workers=1)
pred = bb.load_prediction("maps/fruit1.png").soft
gts = bb.load_ground_truth("gt/fruit1.mat").boundaries
bmap, gt = pred > 100, gts[0]
"""


def prepare(root: Path) -> None:
    """Maps, raw maps, pictures and ground truth of a few images where the pages expect them."""
    maps, truth = sample_results("structure-tensor"), sample_ground_truth()
    places = {"maps": maps, "raw": maps, "images": sample_images()}
    places |= dict.fromkeys(("gt", "groundTruth", "BSDS500/data/groundTruth/test"), truth)
    for name, source in places.items():
        (root / name).mkdir(parents=True)
        for path in source.iterdir():
            if path.stem in FEW:
                shutil.copy(path, root / name)
    (root / "my_module.py").write_text("def detect(image):\n    return image.mean(2) / 255\n")


def lines_of(text: str) -> list[str]:
    """The commands of the page in order: lines of shell blocks, and spans of code in the text."""
    found = []
    for block, span in re.findall(r"```sh\n(.*?)```|`(bsdsbench [^`]*)`", text, re.DOTALL):
        found += [line.partition("#")[0] for line in block.splitlines()] or [" ".join(span.split())]
    lines = [line.strip() for line in found if line.strip().startswith("bsdsbench")]
    return [line for line in lines if not LEFT.search(line) and line != "bsdsbench evaluate"]


def shell(root: Path, line: str, expected: tuple[int, ...], *said: str) -> list[str]:
    """Run a line as it would be typed; what was not as expected."""
    print(f"\n$ {line}", flush=True)
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    environment = {**os.environ, "PATH": path, "COLUMNS": "150"}
    run = {"cwd": root, "env": environment, "capture_output": True, "text": True, "timeout": 900}
    done = subprocess.run(["bash", "-c", line], **run, check=False)
    text = done.stdout + done.stderr
    print(text, end="", flush=True)
    faults = [f"status {done.returncode}"] * (done.returncode not in expected)
    faults += ["a traceback"] * ("Traceback (most recent call" in text)
    faults += [f"does not say {word!r}" for word in said if word not in text]
    return [f"{line}: {fault}" for fault in faults]


def main() -> int:
    faults = []
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        prepare(root)
        faults += shell(root, "bsdsbench demo --quiet", (0,), "What differs")
        for page in ("README.md", "docs/howto/maps.md"):
            text = (ROOT / page).read_text("utf-8")
            for line in lines_of(text):
                # published results and reference runs are of BSDS500's test images, these are not
                of_test = "--published" in line or " ref:" in line
                faults += shell(root, line, (2,) if of_test else STATUS.get(line.split()[1], (0,)))
            for code in re.findall(r"^```python\n(.*?)^```", text, re.DOTALL | re.M):
                (root / "example.py").write_text(BEFORE + code)
                faults += shell(root, "python example.py", (0,), "<Evaluation 'maps', 4 images")
        baseline = "bsdsbench check out/mine --baseline baseline.json"
        faults += shell(root, f"{baseline} --update", (0,))
        faults += shell(root, baseline, (0,), "boundary.ods")
        if not (root / "report.html").is_file():
            faults.append("no report was written")
    print(*faults, f"{len(faults)} commands were not as expected", sep="\n")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
