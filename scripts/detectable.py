"""Smallest detectable differences of 12 reference runs: the tables of docs/evidence/differences.md.

Usage: python scripts/detectable.py [OUT.md]

For each of the 66 pairs of methods the standard error of the difference comes from a paired
bootstrap of n images of BSDS500 test; 1.96 of them are a difference with p = .05, 2.80 one that is
found in four of five samples of images. Ranks are those of the whole counts by other rules. The
null of a best of M is the best of M rescalings of one run, which has nothing new in it.
"""

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import kendalltau

from bsdsbench.comparison.bootstrap import N_BOOT, SEED, WeightedRun
from bsdsbench.runs.evaluation import Evaluation
from bsdsbench.runs.merging import best_of
from bsdsbench.runs.run_folder import load_run
from bsdsbench.runs.run_identity import references
from bsdsbench.scores.counts import BoundaryCounts
from bsdsbench.scores.curve import AP_RULES

PAGE = Path(__file__).resolve().parents[1] / "docs" / "evidence" / "differences.md"
SCORES = ("ods", "ois", "ap")
SIZES = (50, 100, 200, 500)
FIELDS = ("matched_gt", "total_gt", "matched_pred", "total_pred")
WHOLE = np.ones((1, 200), np.int64)
GRANULARITIES = (2, 4, 11, 20)
NULL_RUNS = ("hed", "cob", "se", "mcg")

Scores = Callable[[Any], Mapping[str, Any]]


def scores_of(key: str, **rules: str) -> Scores:
    """The scores of one method under weights (B, 200) of its images, by its own plain ODS."""
    run = load_run(f"ref:{key}")
    weighted = WeightedRun(replace(run, protocol=run.protocol.replace(**rules)), ["boundary"])
    return lambda weights: {
        name.removeprefix("boundary."): values for name, values in weighted.scores(weights).items()
    }


def draws(methods: Sequence[Scores], n: int, n_boot: int = N_BOOT) -> list[dict[str, Any]]:
    """Of each method, score -> (n_boot,) values on n of 200 images, the same draws for all."""
    weights = np.random.default_rng(SEED).multinomial(n, np.full(200, 1 / 200), size=n_boot)
    return [dict(scores(weights)) for scores in methods]


def errors(drawn: Sequence[Mapping[str, Any]]) -> dict[str, NDArray[np.float64]]:
    """Score -> standard error of the difference of each pair, in the order of `combinations`."""
    return {
        s: np.array([np.std(a[s] - b[s], ddof=1) for a, b in combinations(drawn, 2)])
        for s in SCORES
    }


def by_size(methods: Sequence[Scores], n_boot: int = N_BOOT) -> list[str]:
    """Rows of the table by number of images."""
    out = []
    for n in SIZES:
        found = errors(draws(methods, n, n_boot))
        cells = [1.96 * found["ods"].min(), *(1.96 * np.median(found[s]) for s in SCORES)]
        out.append(_row(n, *(f"{cell:.3f}" for cell in cells)))
    return out


def by_pair(keys: Sequence[str], methods: Sequence[Scores], n_boot: int = N_BOOT) -> list[str]:
    """Rows of the table by pair: the smallest ODS, OIS, AP difference, and the one there is."""
    found = errors(draws(methods, 200, n_boot))
    whole = [scores(WHOLE) for scores in methods]
    rows = []
    for k, (i, j) in enumerate(combinations(range(len(keys)), 2)):
        least = [f"{1.96 * found[s][k]:.4f}" for s in SCORES]
        there = abs(float(whole[i]["ods"][0] - whole[j]["ods"][0]))
        mark = "" if there > 1.96 * found["ods"][k] else ", not detectable"
        rows.append(_row(f"{keys[i]}, {keys[j]}", *least, f"{there:.4f}{mark}"))
    return rows


def ranks(keys: Sequence[str]) -> list[str]:
    """Rows of the table of ranks: by each score and rule, the order and how far it moves."""
    ways: dict[str, tuple[str, dict[str, str]]] = {
        "ODS, plain maximum": ("ods", {}),
        "ODS, interpolated": ("ods", {"ods_rule": "interpolated"}),
        "OIS": ("ois", {}),
    }
    ways |= {f"AP, {rule}": ("ap", {"ap_rule": rule}) for rule in AP_RULES if rule != "edter"}
    values = {
        name: np.array([float(scores_of(k, **rules)(WHOLE)[score][0]) for k in keys])
        for name, (score, rules) in ways.items()
    }
    base, rows = values["ODS, plain maximum"], []
    for name, found in values.items():
        order = [keys[i] for i in np.argsort(-found, kind="stable")]
        moved = np.abs(_places(found) - _places(base)).max()
        rows.append(_row(name, " ".join(order), moved, f"{kendalltau(base, found).statistic:.2f}"))
    return rows


def rescaled(run: Evaluation, rng: np.random.Generator) -> Evaluation:
    """The run with every value v of its maps as v^g, g between 1/2 and 2: the same curve."""
    thresholds = run.records[0].counts["boundary"].thresholds
    power = 2.0 ** rng.uniform(-1, 1)
    at = np.abs(thresholds[None] - thresholds[:, None] ** (1 / power)).argmin(axis=1)
    records = []
    for record in run.records:
        c = record.counts["boundary"]
        moved = BoundaryCounts(thresholds, *(getattr(c, f)[at] for f in FIELDS))
        records.append(replace(record, counts={"boundary": moved}))
    return replace(run, records=tuple(records))


def null_rows() -> list[str]:
    """Rows of the table of best of M: ODS of one run, and of the best of M rescalings of it."""
    rows = []
    for key in NULL_RUNS:
        run, rng = load_run(f"ref:{key}"), np.random.default_rng(SEED)
        many = [run, *(rescaled(run, rng) for _ in range(max(GRANULARITIES) - 1))]
        gains = [run.boundary_score().ods.f]
        gains += [best_of(many[:m]).boundary_score().ods.f for m in GRANULARITIES]
        rows.append(_row(key, *(f"{g:.3f}" for g in gains), f"{run.boundary_score().ois.f:.3f}"))
    return rows


def _places(values: NDArray[np.float64]) -> NDArray[np.int64]:
    return np.argsort(np.argsort(-values, kind="stable"))


def _row(*cells: object) -> str:
    return f"| {' | '.join(map(str, cells))} |"


def page(text: str, n_boot: int = N_BOOT) -> str:
    """The page with the rows of its four tables made again."""
    keys = list(references())
    methods = [scores_of(key) for key in keys]
    tables = iter(
        (by_size(methods, n_boot), by_pair(keys, methods, n_boot), ranks(keys), null_rows())
    )
    lines: list[str] = []
    for line in text.splitlines():
        if lines and lines[-1].startswith("|") and line.startswith("|---"):
            lines += [line, *next(tables)]
        elif not line.startswith("| ") or not _in_table(lines):
            lines.append(line)
    return "\n".join(lines) + "\n"


def _in_table(lines: Sequence[str]) -> bool:
    return bool(lines) and lines[-1].startswith("|")


if __name__ == "__main__":
    out = Path(sys.argv[1]) if len(sys.argv) > 1 else PAGE
    out.write_text(page(PAGE.read_text("utf-8")), "utf-8")
