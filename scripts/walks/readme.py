"""Every command of README.md and docs/howto/maps.md in order, as it stands there."""

import re
from pathlib import Path

from walk import Walk

ROOT = Path(__file__).resolve().parents[2]
# Installing and building are what .ci/run does; the archive of BSDS500 is not here
LEFT = re.compile("venv|pip|uv tool|data certify|demo|NAME")
STATUS = {"check": 2, "explain": (0, 1), "doctor": (0, 2)}
BEFORE = """
import bsdsbench as bb
for name in ("hed", "ucm"):
    bb.evaluate("maps", "gt", name=name, out=f"out/{name}", workers=1)
pred = bb.load_prediction("maps/fruit1.png").soft
gts = bb.load_ground_truth("gt/fruit1.mat").boundaries
bmap, gt = pred > 100, gts[0]
"""


def go(walk: Walk, count: int) -> None:
    walk.sample("maps", "gt", "images")
    for truth in ("BSDS500/data/groundTruth/test", "groundTruth"):
        walk.sample("maps", truth)
    walk.sample("raw", "gt")
    (walk.root / "my_module.py").write_text("def detect(image):\n    return image.mean(2) / 255\n")
    walk.bsdsbench("demo --quiet", "What differs", "next")
    for page in ("README.md", "docs/howto/maps.md"):
        text = (ROOT / page).read_text("utf-8")
        for line in lines_of(text):
            verb = line.split()[1]
            said = ["--update` makes one"] if verb == "check" else []
            # published results and reference runs are of BSDS500's test images, which these are not
            of_test = "--published" in line or " ref:" in line
            status = 2 if of_test else STATUS.get(verb, 0)
            walk.shell(line, *said, status=status)
        for code in re.findall(r"^```python\n(.*?)^```", text, re.DOTALL | re.M):
            (walk.root / "example.py").write_text(BEFORE + code)
            walk.shell("python example.py", "<Evaluation 'maps', 4 images", "Differences")
    walk.bsdsbench("check out/mine --baseline baseline.json --update")
    walk.bsdsbench("check out/mine --baseline baseline.json", "ok +boundary.ods")
    walk.check("a report was written", (walk.root / "report.html").stat().st_size > 10_000)


def lines_of(text: str) -> list[str]:
    """The commands of the page in order: lines of shell blocks, and spans of code in the text."""
    found = []
    for block, span in re.findall(r"```sh\n(.*?)```|`(bsdsbench [^`]*)`", text, re.DOTALL):
        found += [line.partition("#")[0] for line in block.splitlines()] or [" ".join(span.split())]
    lines = [line.strip() for line in found if line.strip().startswith("bsdsbench")]
    return [line for line in lines if not LEFT.search(line) and line != "bsdsbench evaluate"]
