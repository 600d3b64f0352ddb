"""Check a run for regressions against a baseline of stored scores.

A baseline is one JSON file: protocol, scores, tolerances, and the counts of every image, which the
statistical check needs. A score fails if it is worse than the baseline by more than its tolerance.
With `statistical`, the drop must also be significant in a paired bootstrap over the images, so that
chance differences do not fail a build.
"""

from __future__ import annotations

import base64
import contextlib
import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple, TypeVar
from xml.etree import ElementTree

from bsdsbench.arguments import check_list, check_number
from bsdsbench.comparison.bootstrap import N_BOOT, SEED, Sampling, WeightedRun, check_sampling
from bsdsbench.comparison.comparable import comparable, unequal_coverage
from bsdsbench.comparison.compare import compare
from bsdsbench.comparison.comparison import ScoreDifference, holm_together
from bsdsbench.comparison.comparison_tables import coverage_lines
from bsdsbench.comparison.significance import least_p
from bsdsbench.comparison.slices import runs_by_slice
from bsdsbench.errors import DataError, FileFormatError
from bsdsbench.io import (
    FaultError,
    PathLike,
    as_json,
    file_errors,
    json_field,
    json_fields,
    read_json,
    write_atomic,
)
from bsdsbench.metrics import registry
from bsdsbench.results import score_names
from bsdsbench.results.evaluation import Evaluation, Progress
from bsdsbench.results.given_runs import as_runs
from bsdsbench.results.score_tables import left_out_notes
from bsdsbench.results.storage import arrays_of_run, npz_bytes, unpack_records
from bsdsbench.tables.forms import to_markdown
from bsdsbench.tables.table import Field, Table
from bsdsbench.text import join_names, shared_names, shorten, show

_V = TypeVar("_V")
_SCHEMA = "bsdsbench.baseline/4"
TOLERANCE = 0.002
_BASELINE_NAME = "baseline"  # the run name of a baseline in notes and errors
Tolerance = float | str  # in units of the score, or "5%" of the baseline's value


@dataclass(frozen=True, slots=True)
class Baseline:
    """A run to check others against: its scores by METRIC.SCORE, and their tolerances."""

    run: Evaluation
    scores: Mapping[str, float]
    tolerances: Mapping[str, Tolerance]  # by score, for scores with a tolerance of their own
    gated: Sequence[str] = ()  # the scores to check; if empty, `check` chooses them

    @classmethod
    def of(
        cls,
        run: Evaluation,
        tolerances: Mapping[str, Tolerance] | None = None,
        earlier: PathLike | None = None,
        gated: Sequence[str] = (),
    ) -> Baseline:
        """Make a baseline from the scores of a run. Score names may be short, such as "ods".

        tolerances : score -> its tolerance, a number or a percentage such as "5%"
        earlier : file of an earlier baseline, if it exists. It supplies the tolerances that are not
            given here and, if `gated` is empty, the scores to check. Scores that the run lacks are
            dropped.
        gated : the scores to check. If empty here and in the earlier file, `check` chooses them.

        Raises DataError if a tolerance is invalid, if a score is unknown, or if the earlier file is
        damaged.
        """
        scores = score_names.flat_scores(run)
        new_tolerances = _with_full_names(tolerances or {}, scores)
        gated_scores = list(_with_full_names(dict.fromkeys(gated), scores))
        for score, tolerance in new_tolerances.items():
            _in_units_of_score(tolerance, 0.0, score)  # only to raise if the tolerance is invalid
        kept_tolerances = {}
        if earlier is not None and Path(earlier).exists():
            stored = cls.load(earlier)  # its tolerances were checked when it was made
            kept_tolerances = {k: v for k, v in stored.tolerances.items() if k in scores}
            gated_scores = gated_scores or [score for score in stored.gated if score in scores]
        # Images that the run left out for any reason (empty ground truth, skipped, failed) are all
        # stored as `failed`, the one list of a run without provenance, with their reasons
        baseline_run = Evaluation(run.protocol, _BASELINE_NAME, run.records, failed=run.left_out)
        return cls(baseline_run, scores, kept_tolerances | new_tolerances, gated_scores)

    def save(self, path: PathLike) -> None:
        """Write the baseline to a JSON file, atomically. Raises OSError if that fails.

        Raises DataError if its run has no counts per image, which every check needs.
        """
        run = self.run
        run.require_records()
        content = {
            "schema": _SCHEMA,
            "scores": dict(self.scores),
            "tolerances": dict(self.tolerances),
            "protocol": run.protocol.to_mapping(),
            # The counts of all images, as an .npz file in text
            "counts": base64.b64encode(npz_bytes(arrays_of_run(run))).decode("ascii"),
        }
        if self.gated:
            content["gated"] = list(self.gated)
        if run.left_out:
            content["left_out"] = run.left_out
        write_atomic(Path(path), as_json(content))

    @classmethod
    def load(cls, path: PathLike) -> Baseline:
        """Read a file that `save` wrote.

        Raises FileFormatError if the file is missing or damaged, or has another schema.
        """
        source = Path(path)
        if not source.exists():
            command = f"bsdsbench check OUT --baseline {source} --update"
            expected = f"expected a baseline; `{command}` makes one"
            raise FileFormatError(f"{source}: no such file, {expected}")
        stored = read_json(source, "a baseline")
        # Errors on the content of the file become a FileFormatError that starts with its path
        with file_errors(source, "a baseline"):
            if stored.get("schema") != _SCHEMA:
                schema = shorten(repr(stored.get("schema")), 60)
                fix = "remove it, and make a baseline from a run that is known to be good"
                raise FaultError(f"schema {schema}, expected {_SCHEMA!r}: {fix}")
            # `json_field` checks the type of a field, and `json_fields` the types of its values
            tolerances: dict[str, Tolerance] = json_field(stored, "tolerances", dict)
            for score, tolerance in tolerances.items():  # a number, or a text such as "1%"
                if not (isinstance(tolerance, str) and tolerance.endswith("%")):
                    json_field(tolerances, score, float)  # raises unless it is a number
            optional = {"gated": [], "left_out": {}, **stored}  # `save` leaves out empty ones
            gated = [str(name) for name in json_field(optional, "gated", list)]  # to check
            left_out = json_fields(optional, "left_out", str)  # image id -> reason
            protocol = registry.read_protocol(json_field(stored, "protocol", dict))
            # An .npz file as base64 text
            counts = base64.b64decode(json_field(stored, "counts", str), validate=True)
            records = unpack_records(source, counts)
            run = Evaluation(protocol, _BASELINE_NAME, records, failed=left_out)
            return cls(run, json_fields(stored, "scores", float), tolerances, gated)


@dataclass(frozen=True, slots=True)
class Check:
    """The outcome of checking one score of a run."""

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
        is_worse = self.drop > 0  # False if the drop is NaN
        if not is_worse:
            return f"not worse (tolerance {self.tolerance:.4g})"
        relation = "more than" if self.drop > self.tolerance else "within"
        text = f"worse by {self.drop:.4f}, {relation} the tolerance {self.tolerance:.4g}"
        if self.p is None or self.drop <= self.tolerance:  # p does not decide
            return text
        p_values = f"p {self.p:.4f}, after Holm over {self.n_tests} scores {self.p_holm:.4f}"
        significance = "and significant" if self.failed else "not significant"
        return f"{text}, {significance} ({p_values})"


@dataclass(frozen=True, slots=True)
class GateResult:
    """The result of `check`, with one `Check` for each score."""

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
        """Return one line of text per score, or only for scores that failed."""
        checks = [c for c in self.checks if c.failed or not failed_only]
        return [f"{'FAIL' if c.failed else 'ok  '} {c}" for c in checks]

    def to_mapping(self) -> dict[str, object]:
        """Return the fields, "schema" and "passed" as a dict for JSON."""
        return {"schema": "bsdsbench.check/1", "passed": self.passed} | asdict(self)

    def to_markdown(self) -> str:
        """Return a Markdown table with a row per score, for the summary of a CI job."""
        n_failed = sum(c.failed for c in self.checks)
        numbers = [Field("value", "Value", "", ".4f"), Field("baseline", "Baseline", "", ".4f")]
        labels = [Field("result", "Result"), Field("score", "Score")]
        fields = [*labels, *numbers, Field("reason", "Why")]
        rows = [
            ["FAIL" if c.failed else "ok", c.score, c.value, c.baseline, c.reason]
            for c in self.checks
        ]
        title = f"{self.name}: {n_failed} of {len(self.checks)} scores failed"
        table = Table("check", title, fields, rows, reading=self.reading, notes=self.notes)
        return to_markdown([table])

    def to_junit(self) -> str:
        """Return JUnit XML: a test suite with one test case per score, and the notes as output."""
        n_failed = sum(c.failed for c in self.checks)
        counts = {"tests": str(len(self.checks)), "failures": str(n_failed)}
        suite = ElementTree.Element("testsuite", {"name": f"bsdsbench {show(self.name)}"} | counts)
        for check in self.checks:
            names = {"classname": show(self.name), "name": check.score}
            case = ElementTree.SubElement(suite, "testcase", names)
            if check.failed:
                ElementTree.SubElement(case, "failure", message=str(check)).text = str(check)
        if self.notes:
            ElementTree.SubElement(suite, "system-out").text = show("; ".join(self.notes))
        text = ElementTree.tostring(suite, encoding="unicode")
        return f'<?xml version="1.0" encoding="UTF-8"?>\n{text}\n'


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
    """Compare a run with a baseline (or its file), and decide which scores failed.

    A score fails if the run lacks it, or if it is worse than the baseline by more than its
    tolerance. If `statistical` is True, the drop must also be significant at 1 - level, after
    Holm's correction over the scores, unless no drop could be significant (too few images) or the
    score has no p-value (undefined in some samples).

    tolerance : a number in units of the score, or a percentage of the baseline's value ("5%").
        Either one tolerance for all scores, or a mapping from scores to tolerances. A tolerance in
        the baseline overrides the one for all scores; a mapping overrides the baseline. Scores in
        neither have the tolerance TOLERANCE.
    scores : the scores to check. Default: those that the baseline names. If it names none: all
        overall scores, and the per-part scores (such as of classes) that tables show.
    common : use only the images that both runs have, instead of raising if the images differ
    by : a group column. The scores of each group of images are checked too.
    level, n_boot, seed : the confidence level, and the number and the seed of bootstrap samples
    progress : called with (samples done, all samples, "")

    Raises DataError if protocols, images or ground truth differ, if a score is unknown, if there is
    no score to check, or if the baseline is damaged.
    """
    sampling = check_sampling(n_boot, seed, level)
    stored = baseline if isinstance(baseline, Baseline) else Baseline.load(baseline)
    to_check = _scores_to_check(stored, scores)
    # `strict`: images that are not in both runs raise even if they were left out for a reason
    (run, baseline_run), notes = comparable([run, stored.run], common, strict=True)
    left_out = {r.name: (len(r.records), r.left_out) for r in (run, baseline_run)}
    notes += [note.text for note in left_out_notes(left_out)]
    scores_before = stored.scores
    if baseline_run is not stored.run:  # a copy, restricted to the images that both runs have
        scores_before = score_names.flat_scores(baseline_run)
        if undefined := [score for score in to_check if score not in scores_before]:
            notes.append(f"not checked, because undefined on these images: {', '.join(undefined)}")
        to_check = [score for score in to_check if score in scores_before]
    if not to_check:
        raise DataError(f"baseline of {run.name}: no score to check, expected one or more")
    # Tolerances given by score override the baseline's; a single one is for the other scores
    given_by_score = tolerance if isinstance(tolerance, Mapping) else {}
    default_tolerance = TOLERANCE if isinstance(tolerance, Mapping) else tolerance
    by_score = _with_full_names({**stored.tolerances, **given_by_score}, stored.scores)
    tolerances = {score: by_score.get(score, default_tolerance) for score in to_check}
    test = sampling if statistical else None
    checks, new_notes = _check_pair(run, baseline_run, scores_before, tolerances, test, progress)
    notes += new_notes
    if by is not None:
        slices = runs_by_slice([run, baseline_run], by)
        # Bonferroni: 1 - level, the significance level, is divided by the number of slices
        level_in_slice = 1 - (1 - level) / len(slices)
        test = sampling._replace(level=level_in_slice) if statistical else None
        known_notes = set(notes)  # those on all images are not repeated
        for name, (run_in_slice, baseline_in_slice) in slices.items():
            before = score_names.flat_scores(baseline_in_slice)
            # Scores that are undefined for the baseline, as of a class without an object, are left
            # out in this slice
            defined = {score: allowed for score, allowed in tolerances.items() if score in before}
            in_slice, new_notes = _check_pair(
                run_in_slice, baseline_in_slice, before, defined, test
            )
            label = f"{by.partition('=')[0]}={name}"  # "size=[0, 1024)", where `by` has limits
            checks += [replace(c, score=f"{c.score} [{label}]") for c in in_slice]
            notes += [f"{label}: {note}" for note in new_notes if note not in known_notes]
    # `read_as`: a line on how the files of the run were interpreted
    return GateResult(run.name, tuple(checks), tuple(notes), run.read_as, run.left_out)


def _scores_to_check(stored: Baseline, wanted: Sequence[str]) -> list[str]:
    """Return the full names of the scores to check: those `wanted`, or those the baseline names.

    If neither names any, they are all overall scores, and the scores of parts, such as classes,
    that tables show. Raises DataError if a wanted score is unknown.
    """
    names = check_list(wanted, "scores", "a list of names")
    if names:
        return list(_with_full_names(dict.fromkeys(names), stored.scores))
    if stored.gated:
        return list(stored.gated)
    shown = score_names.default_scores(stored.run, list(stored.scores), parts=True)
    to_check = []
    for score in stored.scores:
        name = score_names.score_name(score)  # None: of a metric that is not installed here
        is_of_part = name is not None and name.part != ""  # such as the Dice of one class
        if score in shown or not is_of_part:
            to_check.append(score)
    return to_check


class _Checked(NamedTuple):
    """The checks of the scores of a run, and notes to show to the reader."""

    checks: list[Check]
    notes: list[str]


def _check_pair(
    run: Evaluation,
    baseline_run: Evaluation,
    scores_before: Mapping[str, float],
    tolerances: Mapping[str, Tolerance],
    sampling: Sampling | None,
    progress: Progress | None = None,
) -> _Checked:
    """Check the scores of a run against those of a baseline run on the same images.

    scores_before : the baseline's scores by name, such as "boundary.ods"
    tolerances : the tolerance of each score to check
    sampling : the settings of the bootstrap that tests whether a drop is significant, or None to
        decide by tolerance alone

    A note lists scores that are means over different numbers of values in the two runs.
    """
    names, metrics = list(tolerances), shared_names([run.metrics, baseline_run.metrics])
    weighted_runs = [WeightedRun(run_of_pair, metrics) for run_of_pair in (run, baseline_run)]
    coverage = unequal_coverage(weighted_runs, [run.name, baseline_run.name], names)
    notes = coverage_lines(coverage, names)
    tests: dict[str, ScoreDifference] = {}  # by score: those with a p-value
    does_p_decide, alpha = False, 0.0
    if sampling and metrics and tolerances:
        alpha = 1 - sampling.level  # a drop is significant if its corrected p is below
        differences = _test_drops(run, baseline_run, names, sampling, progress)
        tests = {d.score: d for d in differences if not math.isnan(d.p)}
        # An equal error rate, for example, cannot be resampled
        if untested := [d.score for d in differences if math.isnan(d.p)]:
            notes.append(f"no p-value, only the tolerance decides: {join_names(untested, 5)}")
        least = least_p(len(run.records), sampling.n_boot, len(tests))  # the smallest possible p
        does_p_decide = least < alpha  # otherwise every score would pass
        if tests and not does_p_decide:
            sizes = f"{len(tests)} scores, {len(run.records)} images and {sampling.n_boot} samples"
            reason = f"with {sizes}, p is at least {least:.3f}"
            notes.append(f"no drop can be significant: {reason}; only the tolerance decides")
    scores_now = score_names.flat_scores(run)
    checks = []
    for score, tolerance in tolerances.items():
        value, before = scores_now.get(score), scores_before.get(score, math.nan)
        drop = 0.0  # by how much the score is worse than before; a score that is gone always fails
        if value is not None:
            drop = value - before if score_names.lower_is_better(score) else before - value
        allowed_drop = _in_units_of_score(tolerance, before, score)  # "5%" of 0.8 is 0.04
        test = tests.get(score) if does_p_decide else None  # None: the tolerance alone decides
        is_real = test is None or test.p_holm < alpha
        checked = Check(
            score=score,
            baseline=before,
            value=value,
            drop=drop,
            tolerance=allowed_drop,
            p=test.p if test else None,
            p_holm=test.p_holm if test else None,
            failed=value is None or (drop > allowed_drop and is_real),
            n_tests=len(tests),
        )
        checks.append(checked)
    # Tolerances are in units of the score, which cannot fall by more than its value in the
    # baseline: no drop exceeds 5, where 5% may be meant. The default TOLERANCE of 0.002 is no
    # mistake of the user, even if the baseline is 0.001
    given = [
        c for c in checks if c.tolerance > TOLERANCE and not score_names.lower_is_better(c.score)
    ]
    never_fail = [c.score for c in given if c.tolerance >= c.baseline]
    if never_fail:
        expected = "expected a smaller one, or a percentage such as 5%"
        notes.append(f"tolerance: no drop exceeds that of {join_names(never_fail, 5)}, {expected}")
    return _Checked(checks, notes)


def _test_drops(
    run: Evaluation,
    baseline_run: Evaluation,
    scores: Collection[str],
    sampling: Sampling,
    progress: Progress | None,
) -> list[ScoreDifference]:
    """Test the differences of some scores between a run and its baseline by a bootstrap.

    Holm's method corrects their p-values together; they are NaN if a score is undefined in samples.
    """
    runs = [replace(run, name="now"), baseline_run]  # `compare` refuses two runs of one name
    settings: Any = {"level": sampling.level, "n_boot": sampling.n_boot, "seed": sampling.seed}
    compared = compare(runs, **settings, progress=progress)
    return holm_together(d for d in compared.differences if d.score in scores)


def assert_scores(
    run: Evaluation | PathLike, baseline: PathLike, *, update: bool = False, **options: Any
) -> GateResult | None:
    """Check a run (or its folder) against a baseline file, and raise AssertionError on failure.

    `options` are further parameters of `check`. If `update` is True, nothing is checked: the
    baseline file is written from the run, keeping its tolerances, and None is returned. The
    AssertionError, with a message of at most five lines, is raised if a score fails or if there is
    no baseline.
    """
    __tracebackhide__ = True  # a failing test shows the scores, not this
    (evaluation,) = as_runs([run])
    if update:
        Baseline.of(evaluation, earlier=baseline).save(baseline)
        return None
    if not Path(baseline).exists():
        raise AssertionError(f"{baseline}: no baseline yet, make it with --bsdsbench-update")
    checked = check(evaluation, baseline, **options)
    if not checked.passed:
        failed = checked.lines(failed_only=True)
        count = f"{len(failed)} of {len(checked.checks)} scores failed: bsdsbench check shows all"
        lines = [f"{checked.name} is worse than {baseline}", *failed[:3], count]
        raise AssertionError("\n".join(lines))
    return checked


def _in_units_of_score(tolerance: Tolerance, before: float, score: str) -> float:
    """Return a tolerance as the largest allowed drop of a score.

    For example, the tolerance "5%" is 0.04 if the score was 0.8 in the baseline (`before`). A
    number is returned unchanged. `score` is the name of the score for errors. Raises DataError if
    the tolerance is neither a number nor a percentage, or if it is negative.
    """
    name_in_errors = f"tolerance of {score} (0.01, or 5%)"
    if isinstance(tolerance, str) and tolerance.endswith("%"):
        with contextlib.suppress(ValueError):  # the whole text is then refused below
            percentage = check_number(float(tolerance[:-1]), name_in_errors, 0, math.inf)
            return percentage / 100 * abs(before)
    return check_number(tolerance, name_in_errors, 0, math.inf)


def _with_full_names(values: Mapping[str, _V], scores: Mapping[str, float]) -> dict[str, _V]:
    """Replace short score names, the keys of `values`, by full ones ("ods" by "boundary.ods").

    Raises DataError if a name stands for none of the `scores`.
    """
    renamed = {score_names.full_name(name, scores): value for name, value in values.items()}
    for name in renamed:
        if name not in scores:
            raise score_names.unknown_score(name, scores)
    return renamed
