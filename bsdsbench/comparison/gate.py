"""Check a run for regressions against a baseline of stored scores.

A baseline is one JSON file: protocol, scores, tolerances, and the counts of every image (base64 of
counts.npz), which the statistical check needs.

A score fails if it is worse than the baseline by more than its tolerance, a number or a percentage
of the baseline's value ("5%"). All scores are gated (checked), or only chosen ones. With
`statistical` the drop must also be significant in a paired bootstrap over the images (Holm over the
gated scores), so that noise from single images does not fail a build. If there are too few images
for a significant drop, the tolerance alone decides, and a note says so.
"""

from __future__ import annotations

import base64
import contextlib
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, TypeVar
from xml.etree import ElementTree

from bsdsbench.arguments import given_number
from bsdsbench.comparison.bootstrap import N_BOOT, SEED, WeightedRun, check_sampling
from bsdsbench.comparison.comparable import comparable, fewer_values
from bsdsbench.comparison.compare import compare
from bsdsbench.comparison.comparison_tables import coverage_lines
from bsdsbench.comparison.significance import holm, least_p
from bsdsbench.comparison.slices import runs_by_slice
from bsdsbench.errors import FileFormatError
from bsdsbench.io import (
    FaultError,
    PathLike,
    as_json,
    entries,
    entry,
    read_json,
    reading,
    write_atomic,
)
from bsdsbench.metrics import registry
from bsdsbench.results.evaluation import Evaluation, Progress
from bsdsbench.results.footers import left_out_notes
from bsdsbench.results.given_runs import as_runs
from bsdsbench.results.score_names import (
    flat_scores,
    full_name,
    lower_is_better,
    score_name,
    unknown_score,
    usual_scores,
)
from bsdsbench.results.storage import arrays_of_records, npz_bytes, unpack_records
from bsdsbench.tables.forms import to_markdown
from bsdsbench.tables.table import Field, Table
from bsdsbench.text import clip, show

_V = TypeVar("_V")
_SCHEMA = "bsdsbench.baseline/4"
_SCHEMA_OF_CHECKS = "bsdsbench.check/1"
TOLERANCE = 0.002
_NAME = "baseline"  # the name of its run, in notes and errors
Tolerance = float | str  # in units of the score, or "5%" of the baseline's value


@dataclass(frozen=True, slots=True)
class Baseline:
    """A run that others are checked against: its scores by METRIC.SCORE, and their tolerances."""

    run: Evaluation
    scores: Mapping[str, float]
    tolerances: Mapping[str, Tolerance]  # of single scores
    gated: Sequence[str] = ()  # the scores that are checked; none: all

    @classmethod
    def of(
        cls,
        run: Evaluation,
        tolerances: Mapping[str, Tolerance] | None = None,
        earlier: PathLike | None = None,
        gated: Sequence[str] = (),
    ) -> Baseline:
        """Make a baseline from the scores of a run.

        The tolerances and gated scores of the file `earlier` are kept unless new ones are given.
        Raises DataError if a tolerance is bad or names an unknown score.
        """
        scores = flat_scores(run)
        limits = _by_full_name(tolerances or {}, scores)
        gated_scores = list(_by_full_name(dict.fromkeys(gated), scores))
        for score, value in limits.items():
            _limit(value, 0.0, f"tolerance of {score!r}")
        if earlier is not None and Path(earlier).exists():
            stored = cls.load(earlier)
            limits = {k: v for k, v in stored.tolerances.items() if k in scores} | limits
            gated_scores = gated_scores or [score for score in stored.gated if score in scores]
        before = Evaluation(run.protocol, _NAME, run.records, failed=run.left_out)
        return cls(before, scores, limits, gated_scores)

    def save(self, path: PathLike) -> None:
        """Write the JSON file atomically. Raises OSError if it cannot be written."""
        run = self.run
        arrays = arrays_of_records(
            run.records, {metric: run.stack(metric) for metric in run.metrics}
        )
        content = {
            "schema": _SCHEMA,
            "scores": dict(self.scores),
            "tolerances": dict(self.tolerances),
            "protocol": run.protocol.to_mapping(),
            "counts": base64.b64encode(npz_bytes(arrays)).decode("ascii"),
        }
        if self.gated:
            content["gated"] = list(self.gated)
        if run.left_out:
            content["left_out"] = run.left_out
        write_atomic(Path(path), as_json(content))

    @classmethod
    def load(cls, path: PathLike) -> Baseline:
        """Read a file that `save` wrote. Raises FileFormatError if it is missing or damaged."""
        source = Path(path)
        if not source.exists():
            raise FileFormatError(
                f"{source}: no such file, expected a baseline; `bsdsbench check OUT --baseline "
                f"{source} --update` makes one"
            )
        stored = read_json(source, "a baseline")
        with reading(source, "a baseline"):
            if stored.get("schema") != _SCHEMA:
                raise FaultError(
                    f"schema {clip(repr(stored.get('schema')), 60)}, expected {_SCHEMA!r}: remove "
                    "it, and make a baseline from a run that is known to be good"
                )
            given = entry(stored, "tolerances", dict)
            percent = {k: v for k, v in given.items() if isinstance(v, str) and v.endswith("%")}
            coded = entry(stored, "counts", str)
            counts = base64.b64decode(coded, validate=True)
            gated = stored.get("gated", [])
            if isinstance(gated, str):  # as earlier versions wrote it
                gated = gated.split(", ")
            run = Evaluation(
                registry.stored(entry(stored, "protocol", dict)),
                _NAME,
                unpack_records(Path("counts"), counts),
                failed=entries({"left_out": {}, **stored}, "left_out", str),
            )
            tolerances = {k: percent.get(k) or entry(given, k, float) for k in given}
            scores = entries(stored, "scores", float)
            return cls(run, scores, tolerances, [str(score) for score in gated])


@dataclass(frozen=True, slots=True)
class Check:
    """The verdict on one score of a run."""

    score: str
    baseline: float
    value: float | None  # None if the run lacks the score
    drop: float  # positive if the run is worse
    tolerance: float
    p: float | None  # p-value of the difference in `compare`; None without statistics
    p_holm: float | None  # after Holm's correction over the `n_tests` scores, which decides
    failed: bool
    n_tests: int = 0

    def __str__(self) -> str:
        """Return one line: score, value, baseline and the reason."""
        if self.value is None:
            return f"{self.score}: missing, baseline {self.baseline:.4f}"
        return f"{self.score}: {self.value:.4f}, baseline {self.baseline:.4f}, {self.reason}"

    @property
    def reason(self) -> str:
        """Explain in one phrase why the score passed or failed."""
        if self.value is None:
            return "missing"
        if not self.drop > 0:  # NaN counts as not worse
            return f"not worse (tolerance {self.tolerance:.4g})"
        relation = "more than" if self.drop > self.tolerance else "within"
        text = f"worse by {self.drop:.4f}, {relation} the tolerance {self.tolerance:.4g}"
        if self.p is None or self.drop <= self.tolerance:
            return text
        p_values = f"p {self.p:.4f}, after Holm over {self.n_tests} scores {self.p_holm:.4f}"
        return f"{text}, {'and' if self.failed else 'not'} significant ({p_values})"


@dataclass(frozen=True, slots=True)
class GateResult:
    """The verdict of `check`, with one `Check` per gated score."""

    name: str
    checks: tuple[Check, ...]
    notes: tuple[str, ...] = ()
    reading: str = ""  # how the files of the run were read
    left_out: Mapping[str, str] = field(default_factory=dict)  # image id -> reason

    @property
    def passed(self) -> bool:
        """Return True if no score failed."""
        return not any(c.failed for c in self.checks)

    def lines(self, failed_only: bool = False) -> list[str]:
        """Return a line for each score, or only for scores that failed."""
        checks = [c for c in self.checks if c.failed or not failed_only]
        return [f"{'FAIL' if c.failed else 'ok  '} {c}" for c in checks]

    def to_mapping(self) -> dict[str, object]:
        """Return plain values for JSON."""
        return {"schema": _SCHEMA_OF_CHECKS, "passed": self.passed} | asdict(self)

    def to_markdown(self) -> str:
        """Return a Markdown table for the summary of a CI job."""
        failed = sum(c.failed for c in self.checks)
        title = f"{self.name}: {failed} of {len(self.checks)} scores failed"
        columns = [Field("result", "Result"), Field("score", "Score"), Field("reason", "Why")]
        columns[2:2] = [Field(key, key.capitalize(), "", ".4f") for key in ("value", "baseline")]
        rows = [
            ["FAIL" if c.failed else "ok", c.score, c.value, c.baseline, c.reason]
            for c in self.checks
        ]
        words: Any = {"reading": self.reading, "notes": self.notes}
        return to_markdown([Table("check", title, columns, rows, **words)])

    def to_junit(self) -> str:
        """Return JUnit XML with one test case per score."""
        failed = str(sum(c.failed for c in self.checks))
        summary = {"name": f"bsdsbench {show(self.name)}", "tests": str(len(self.checks))}
        suite = ElementTree.Element("testsuite", {**summary, "failures": failed})
        for check in self.checks:
            names = {"classname": show(self.name), "name": check.score}
            case = ElementTree.SubElement(suite, "testcase", names)
            if check.failed:
                ElementTree.SubElement(case, "failure", {"message": str(check)}).text = str(check)
        if self.notes:
            ElementTree.SubElement(suite, "system-out").text = show("; ".join(self.notes))
        text = ElementTree.tostring(suite, encoding="unicode")
        return f'<?xml version="1.0" encoding="UTF-8"?>\n{text}\n'


def _tolerances(
    stored: Baseline, tolerance: Tolerance | Mapping[str, Tolerance]
) -> dict[str, Tolerance]:
    """Return the tolerance of each score.

    A tolerance by score in `tolerance` comes first, then the baseline's own, then the default,
    which is `tolerance` if it is a single one.
    """
    by_score = tolerance if isinstance(tolerance, Mapping) else {}
    default = TOLERANCE if isinstance(tolerance, Mapping) else tolerance
    return (
        dict.fromkeys(stored.scores, default)
        | _by_full_name(stored.tolerances, stored.scores)
        | _by_full_name(by_score, stored.scores)
    )


def check(
    run: Evaluation,
    baseline: Baseline | PathLike,
    *,
    tolerance: Tolerance | Mapping[str, Tolerance] = TOLERANCE,
    scores: Sequence[str] = (),
    statistical: bool = False,
    common: bool = False,
    by: str | None = None,
    level: float = 0.95,
    n_boot: int = N_BOOT,
    seed: int = SEED,
    progress: Progress | None = None,
) -> GateResult:
    """Compare a run with a baseline, and decide which scores failed.

    tolerance   : a number or "5%", for all scores or by score; scores that are not named have the
        tolerance of the baseline
    scores      : the scores to check; default: those that the baseline names, else all, but only
        those scores of classes and other parts that tables show
    statistical : fail only if the drop is also significant at 1 - level
    common      : check on the images that both have, instead of refusing different images
    by          : a column of groups; each group is checked too

    Raises DataError if protocols, images or ground truth differ, or if the baseline is damaged.
    """
    check_sampling(n_boot, seed, level)
    stored = baseline if isinstance(baseline, Baseline) else Baseline.load(baseline)
    before, n_images = stored.run, len(stored.run.records)
    gated = list(_by_full_name(dict.fromkeys(scores), stored.scores) or stored.gated)
    gated = gated or _gated_by_default(before, stored.scores)
    shared = [m for m in run.metrics if m in before.metrics]
    was = stored.scores
    kept, notes = comparable([run, before], common, strict=True)
    notes += [note.text for note in left_out_notes(kept)]
    if kept[1] is not before:
        run, before = kept
        was = flat_scores(before)
        if undefined := [score for score in gated if score not in was]:
            notes.append(f"not checked, because undefined on these images: {', '.join(undefined)}")
        gated = [score for score in gated if score in was]
    tables, labels = [WeightedRun(r, shared) for r in kept], [run.name, before.name]
    notes += coverage_lines(fewer_values(tables, labels, gated), gated)
    tolerances = _tolerances(stored, tolerance)
    p = {}
    if statistical and shared:
        now_and_before = [replace(run, name="now"), before]
        tested = compare(now_and_before, level=level, n_boot=n_boot, seed=seed, progress=progress)
        p = {d.score: d.p for d in tested.differences if d.score in gated}
    p_holm = dict(zip(p, holm(list(p.values())), strict=True))
    tests = sum(not math.isnan(value) for value in p.values())
    least = least_p(n_images, n_boot, tests)
    if tests and least >= 1 - level:  # no drop could be significant: all would pass
        p = p_holm = {}
        notes.append(
            f"no drop can be significant: with {tests} scores, {n_images} images and {n_boot} "
            f"samples, p is at least {least:.3f}; only the tolerance decides"
        )
    now, checks = flat_scores(run), []
    for score in gated:
        value, earlier = now.get(score), was.get(score, math.nan)
        limit = _limit(tolerances[score], earlier, f"tolerance of {score!r}")
        gain = 0.0 if value is None else value - earlier
        drop = gain if lower_is_better(score) else 0.0 - gain
        # Scores that cannot be resampled (an equal error rate, say) go by tolerance alone.
        failed = value is None or (drop > limit and p_holm.get(score, 0) < 1 - level)
        of_score = p.get(score), p_holm.get(score)
        checks.append(Check(score, earlier, value, drop, limit, *of_score, failed, tests))
    if by is not None:
        settings: Any = {"statistical": statistical, "n_boot": n_boot, "seed": seed}
        slices = _checks_by_slice(run, before, by, gated, tolerances, level, settings)
        for name, one in slices.items():
            checks += [replace(c, score=f"{c.score} [{name}]") for c in one.checks]
            notes += [f"{name}: {note}" for note in one.notes if note not in notes]
    return GateResult(run.name, tuple(checks), tuple(notes), run.read_as, run.left_out)


def _gated_by_default(before: Evaluation, scores: Mapping[str, float]) -> list[str]:
    """Return the overall scores of a baseline, and the scores of parts that tables show."""
    shown = {*usual_scores(before, list(scores), parts=True)}
    return [s for s in scores if s in shown or not ((name := score_name(s)) and name.part)]


def _checks_by_slice(
    run: Evaluation,
    before: Evaluation,
    by: str,
    gated: Sequence[str],
    tolerances: Mapping[str, Tolerance],
    level: float,
    sampling: Mapping[str, Any],
) -> dict[str, GateResult]:
    """Check the images of each group, and return the verdicts by "COLUMN=GROUP".

    With statistics a drop has to be significant at 1 - level over all groups (Bonferroni).
    """
    column, slices = runs_by_slice([run, before], by)
    slice_level = 1 - (1 - level) / len(slices)
    checks = {}
    for name, (run_in_slice, baseline_run) in slices.items():
        scores = flat_scores(baseline_run)
        scores_in_slice = [score for score in gated if score in scores]
        limits = {score: tolerances[score] for score in scores_in_slice}
        if scores_in_slice:
            checks[f"{column}={name}"] = check(
                run_in_slice,
                Baseline(baseline_run, scores, {}),
                tolerance=limits,
                scores=scores_in_slice,
                level=slice_level,
                **sampling,
            )
    return checks


def assert_scores(
    run: Evaluation | PathLike, baseline: PathLike, *, update: bool = False, **options: Any
) -> GateResult | None:
    """Raise AssertionError, in at most five lines, if a run or a run's folder fails `check`.

    update : write the baseline from the run instead; tolerances stay
    """
    __tracebackhide__ = True  # a failing test shows the scores, not this
    (found_run,) = as_runs([run])
    if update:
        Baseline.of(found_run, earlier=baseline).save(baseline)
        return None
    if not Path(baseline).exists():
        raise AssertionError(f"{baseline}: no baseline yet, make it with --bsdsbench-update")
    checked = check(found_run, baseline, **options)
    if not checked.passed:
        failed = checked.lines(failed_only=True)
        rest = f"{len(failed)} of {len(checked.checks)} scores failed: bsdsbench check shows all"
        lines = [f"{checked.name} is worse than {baseline}", *failed[:3], rest]
        raise AssertionError("\n".join(lines))
    return checked


def _limit(tolerance: Tolerance, was: float, what: str) -> float:
    """Convert a tolerance to units of the score, given the baseline's value `was`.

    Raises DataError, which names `what`, if the tolerance is not a number or a percentage.
    """
    if isinstance(tolerance, str) and tolerance.endswith("%"):
        with contextlib.suppress(ValueError):
            return given_number(float(tolerance[:-1]), what, 0, math.inf) / 100 * abs(was)
    return given_number(tolerance, what, 0, math.inf)


def _by_full_name(values: Mapping[str, _V], scores: Mapping[str, float]) -> dict[str, _V]:
    """Replace the keys by METRIC.SCORE. Raises DataError if a score is unknown."""
    by_full_name = {full_name(name, scores): value for name, value in values.items()}
    for name in by_full_name:
        if name not in scores:
            raise unknown_score(name, scores)
    return by_full_name
