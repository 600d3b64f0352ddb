"""Damaged results: no score that changes in silence.

result.json, counts.npz, baselines, protocols in TOML, score lists in CSV and official tables. A
reader must give what the sound file gave, or refuse it in one line. result.json, protocols, score
lists and tables are text without a checksum: what still is such a text may read differently. In
every second damaged run the hash of counts.npz is made to fit, as a forger would.
"""

import contextlib
import json
import random
import traceback
import warnings
from collections.abc import Callable
from pathlib import Path

import numpy as np
from files import Attempt, damage, refusal

import bsdsbench as bb
from bsdsbench.comparison.gate import Baseline
from bsdsbench.files.errors import DataError
from bsdsbench.files.writing import digest
from bsdsbench.loaders.official_txt import read_ev1, read_rows
from bsdsbench.loaders.scores import read_scores
from bsdsbench.runs.run_folder import load_run
from bsdsbench.scores.counts import Counts, ImageRecord

TOKENS = (
    *(b"NaN", b"-1", b"1e999", b"-Infinity", b"9" * 5000, b"[" * 3000, b"{}", b"[]", b"null"),
    *(b'""', b"true", b"\\ud800", b"\0", b"x" * 131_073, b"1e308", b"0.5,", b"\xff", b"\n", b"inf"),
)
Reader = Callable[[], object]


def made(folder: Path, shift: int) -> bb.Evaluation:
    """Three made images under five thresholds."""
    proto = bb.Protocol.preset("bsds500").replace(thresholds=5)
    rng = np.random.default_rng(shift)
    records = []
    for k in range(3):
        total = rng.integers(50, 90, 5)
        half = total // 2
        counts = Counts(
            thresholds=proto.threshold_array(),
            **dict.fromkeys(("matched_gt", "matched_pred"), half),
            **dict.fromkeys(("total_gt", "total_pred"), total),
        )
        records.append(ImageRecord(f"im{k}", (30, 40), {"boundary": counts}, f"{k:032x}", 0.5))
    run = bb.Evaluation(proto, "made", records, {"pred": "p", "gt": "g", "shard": "1/1"})
    run.save(folder)
    return run


class Case:
    """A sound file, how it is read, and what must come of a damaged one."""

    def __init__(self, path: Path, read: Reader, exact: bool) -> None:
        self.path, self.read, self.exact = path, read, exact
        self.sound = path.read_bytes()
        self.expected = read()


def cases(root: Path) -> dict[str, Case]:
    """Name -> case, their files below `root`."""
    out = root / "out"
    run = made(out, 0)
    Baseline.of(run).save(root / "baseline.json")
    (root / "p.toml").write_text(run.protocol.to_toml(), "utf-8")
    rows = "".join(f"{k % 2},{k / 20}\n" for k in range(20))
    (root / "s.csv").write_text(f"label,score\n{rows}")
    (root / "im0_ev1.txt").write_bytes((out / "per_image" / "im0_ev1.txt").read_bytes())
    (root / "table.txt").write_text("0.1 0.2 0.3 0.4\n0.2 0.3 0.4 0.5\n")

    def scores() -> object:
        return json.dumps([bb.Evaluation.load(out).scores(), load_run(out).protocol.to_mapping()])

    def baseline() -> object:
        found = Baseline.load(root / "baseline.json")
        counts = [r.counts["boundary"].total_gt.tolist() for r in found.records]
        return found.scores, found.n_images, found.protocol, counts

    return {
        "result.json": Case(out / "result.json", scores, False),
        "counts.npz": Case(out / "counts.npz", scores, True),
        "baseline": Case(root / "baseline.json", baseline, True),
        "protocol": Case(root / "p.toml", lambda: bb.Protocol.load(root / "p.toml"), False),
        "scores": Case(root / "s.csv", lambda: read_scores(root / "s.csv"), False),
        "ev1": Case(root / "im0_ev1.txt", lambda: read_ev1(root / "im0_ev1.txt"), False),
        "table": Case(root / "table.txt", lambda: read_rows(root / "table.txt", 4), False),
    }


def damaged(data: bytes, other: bytes, rng: random.Random) -> bytes:
    """Random damages of bytes, or a token where it may hurt."""
    if rng.random() < 0.6:
        return damage(data, other, rng)
    at, span = rng.randrange(len(data) + 1), rng.choice((0, 1, 3, 10, 40))
    return data[:at] + rng.choice(TOKENS) + data[at + span :]


def verdict_of(name: str, case: Case, forged: bool) -> tuple[str, str]:
    """("refused" | "same" | "other" | "failed", why) of a damaged file that lies in its place."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            found = case.read()
    except DataError as error:
        return refusal(error, case.path.parent.name)
    except BaseException:
        return "failed", traceback.format_exc(limit=-3)
    if not case.exact or forged:
        return "other", ""
    return ("same", "") if found == case.expected else ("failed", f"changed in silence: {found}")


def attempts(root: Path) -> dict[str, Attempt]:
    """Name of a kind of file -> what damages and reads one."""
    found = cases(root)
    others = [case.sound for case in found.values()]
    return {f"result: {name}": _attempt(name, found, others) for name in found}


def _attempt(name: str, found: dict[str, Case], others: list[bytes]) -> Attempt:
    case = found[name]

    def attempt(rng: random.Random) -> tuple[str, str]:
        case.path.write_bytes(damaged(case.sound, rng.choice(others), rng))
        forged = name in ("result.json", "counts.npz") and rng.random() < 0.5
        if forged:
            _fit(case.path.parent)
        try:
            return verdict_of(name, case, forged)
        finally:
            case.path.write_bytes(case.sound)
            found["result.json"].path.write_bytes(found["result.json"].sound)

    return attempt


def _fit(out: Path) -> None:
    """The hash of the counts as they are, in a result that can be read."""
    with contextlib.suppress(ValueError):
        told = json.loads((out / "result.json").read_bytes())
        if isinstance(told, dict):
            told["files"] = {"counts.npz": digest((out / "counts.npz").read_bytes())}
            (out / "result.json").write_text(json.dumps(told), "utf-8")
