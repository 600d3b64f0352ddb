"""An engineer: a gate in CI, its JSON and JUnit, and the pytest fixture."""

import json
from xml.etree import ElementTree

import numpy as np
from walk import Walk

TEST = """
def test_the_run(assert_scores):
    assert_scores("out", "expected.json")
"""
LATER = "python -m pytest -q -p no:cacheprovider test_scores.py"


def go(walk: Walk, count: int) -> None:
    walk.sample("maps", "gt")
    gate = "check out --baseline baseline.json"
    walk.bsdsbench("evaluate maps --gt gt -o out --quiet", "ODS")
    walk.bsdsbench(gate, "no such file, .* --update` makes one", status=2)
    walk.bsdsbench(f"{gate} --update --tolerance ods=0.001", "baseline.json")
    walk.bsdsbench(gate, "ok +boundary.ods")
    walk.bsdsbench(f"{gate} --quiet")
    found = json.loads(walk.bsdsbench(f"{gate} --format json"))
    walk.check("JSON says that it passed", found["passed"] and not found["notes"])

    (walk.root / "test_scores.py").write_text(TEST)
    walk.shell(LATER, "no baseline yet, .* --bsdsbench-update", status=1)
    walk.shell(f"{LATER} --bsdsbench-update", "baseline new: .*expected.json")
    walk.shell(LATER, "1 passed|100%")
    (walk.root / "test_more.py").write_text(TEST)
    walk.shell(
        f"{LATER} test_more.py --bsdsbench-update", "is the baseline of test_scores.py", status=1
    )

    rng = np.random.default_rng(0)
    walk.changed("worse", lambda a: (a * (rng.random(a.shape) < 0.6)).astype(np.uint8))
    walk.bsdsbench("evaluate worse --gt gt -o out --quiet", "ODS")
    walk.bsdsbench(f"{gate} --junit score.xml", "FAIL boundary.ods", status=1)
    suite = ElementTree.parse(walk.root / "score.xml").getroot()
    walk.check("JUnit has the failures", int(suite.attrib["failures"]) > 0)
    found = json.loads(walk.bsdsbench(f"{gate} --format json --quiet", status=1))
    walk.check("JSON says that it failed", not found["passed"])
    # four images can make nothing significant: the tolerance decides, or nothing ever failed
    said = "no drop can be significant: .* the tolerance alone decides"
    walk.bsdsbench(f"{gate} --statistical", "FAIL boundary.ods", said, status=1)
    walk.shell(LATER, "FAIL boundary.ods", status=1)
    walk.shell(f"{LATER} --bsdsbench-update", "baseline changed: .*expected.json")
    walk.bsdsbench("evaluate worse --gt gt -o other --max-dist 0.011 --quiet", "ODS")
    walk.bsdsbench("check other --baseline baseline.json", "protocol differs", status=2)
    walk.bsdsbench("compare out other", "--force", status=2)
    walk.bsdsbench("compare out other --force --names a,b --n-boot 500", "nothing can be signif")
