"""Score one submission: INPUT/res has its maps, INPUT/ref the ground truth; writes to OUTPUT."""

import json
import sys
import tempfile
from pathlib import Path

import bsdsbench as bb
from bsdsbench.report import write_report

where, out = Path(sys.argv[1]), Path(sys.argv[2])
try:
    run = bb.evaluate(where / "res", where / "ref", out=tempfile.mkdtemp(), name="submission")
except bb.DataError as error:  # one line for each bad file; the participant sees it
    sys.exit(str(error))
score = run.boundary_score()
values = {"ods": score.ods.f, "ois": score.ois.f, "ap": score.ap, "r50": score.r50}
(out / "scores.json").write_text(json.dumps(values))
write_report([run], out / "detailed_results.html")
