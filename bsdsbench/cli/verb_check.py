"""bsdsbench check: fail when a run is worse than a stored baseline."""

from __future__ import annotations

import sys
from collections.abc import Iterable

import click

from bsdsbench.cli.options import bootstrap_options, format_option, refuse, verb

ONLY_CHECK = ("statistical", "level", "n_boot", "seed", "form", "junit", "summary")


@verb("check", short_help="Fail if a run is worse than a baseline.")
@click.argument("run", type=click.Path(), metavar="OUT")
@click.option("--baseline", type=click.Path(), help="Baseline file (JSON).  [required]")
@click.option(
    "--scores",
    default="",
    metavar="SCORE,...",
    help="The scores to check, such as contour.dice,ods; default: all. --update keeps the choice "
    "in the baseline.",
)
@click.option(
    "--tolerance",
    multiple=True,
    metavar="X|SCORE=X",
    help="How much worse a score may be: 0.01, or 5% of the baseline's value; default 0.002. May "
    "be repeated for single scores. --update keeps it in the baseline.",
)
@click.option("--statistical", is_flag=True, help="Fail only if the drop is also significant.")
@click.option(
    "--level", type=float, default=0.95, show_default=True, help="Significance level is 1 - LEVEL."
)
@bootstrap_options
@format_option("table", "json")
@click.option("--quiet", is_flag=True, help="Show only scores that failed.")
@click.option("--junit", type=click.Path(), help="Also write JUnit XML to this file.")
@click.option("--summary", type=click.Path(), help="Also write Markdown to this file.")
@click.option(
    "--update",
    is_flag=True,
    help="Write the baseline from OUT instead of checking it; stored tolerances stay.",
)
def command(
    run: str,
    baseline: str | None,
    scores: str,
    tolerance: tuple[str, ...],
    statistical: bool,
    level: float,
    n_boot: int,
    seed: int,
    form: str,
    quiet: bool,
    junit: str | None,
    summary: str | None,
    update: bool,
) -> int:
    """Compare the run in OUT with a baseline: exit status 1 if a score is worse."""
    from pathlib import Path

    from bsdsbench.cli.evaluating import print_json, progress
    from bsdsbench.comparison.gate import Baseline, check
    from bsdsbench.files.writing import write_atomic
    from bsdsbench.runs.evaluation import Evaluation
    from bsdsbench.runs.score_tables import flat_scores

    if baseline is None:
        makes = f"`bsdsbench check {run} --baseline FILE --update` makes one"
        raise click.UsageError(f"Missing option '--baseline'; {makes}.")
    if update:
        refuse(ONLY_CHECK, "--update, which checks nothing")
    loaded = Evaluation.load(run)
    chosen = [score.strip() for score in scores.split(",") if score.strip()]
    if update:
        known = _tolerances(tolerance, flat_scores(loaded.scores()))
        Baseline.of(loaded, known, earlier=baseline, gated=chosen).save(baseline)
        if not quiet:
            print(baseline)
        return 0
    stored = Baseline.load(baseline)
    known = _tolerances(tolerance, stored.scores)
    with progress("check", quiet, "samples") as report:
        found = check(
            loaded,
            stored,
            tolerance=known,
            scores=chosen,
            statistical=statistical,
            level=level,
            n_boot=n_boot,
            seed=seed,
            progress=report,
        )
    if junit:
        write_atomic(Path(junit), found.to_junit())
    if summary:
        write_atomic(Path(summary), found.to_markdown())
    if form == "json":
        print_json(found.to_mapping())
    else:
        for line in found.lines(failed_only=quiet):
            print(line)
        for note in found.notes:
            print(f"bsdsbench: {note}", file=sys.stderr)
    return 0 if found.passed else 1


def _tolerances(items: tuple[str, ...], scores: Iterable[str]) -> dict[str, float | str]:
    """`0.002` or `ods=5%` -> the tolerances by score; one without a score is of all others."""
    from bsdsbench.files.errors import DataError
    from bsdsbench.runs.score_tables import full_name

    known = list(scores)
    found: dict[str, float | str] = {}
    for item in items:
        score, equals, text = item.rpartition("=")
        try:
            value = float(text.strip().removesuffix("%"))
        except ValueError:
            value = -1.0
        if not 0 <= value < float("inf") or bool(equals) != bool(score.strip()):
            raise DataError(
                f"--tolerance {item!r}: expected a number from 0, a share such as 5%, or "
                "SCORE=NUMBER"
            )
        name = full_name(score.strip(), known)
        if name in found:
            raise DataError(f"--tolerance {item!r}: given more than once")
        found[name] = text.strip() if text.strip().endswith("%") else value
    common = found.pop("", None)
    return found if common is None else {**dict.fromkeys(known, common), **found}
