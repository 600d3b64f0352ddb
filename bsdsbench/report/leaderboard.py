"""A static leaderboard: one page of runs, with one board for each set and protocol.

Runs of one task share a board; so do others if they have the same ground truth and no field of
their protocols differs. Intervals and groups come from the paired bootstrap. Published results
appear only on the board of their own task, and an AP by a different rule is labelled with it.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Any

from bsdsbench.comparison.bootstrap import N_BOOT, SEED
from bsdsbench.comparison.compare import compare
from bsdsbench.comparison.comparison_result import Interval
from bsdsbench.comparison.published import PublishedResult, published_results
from bsdsbench.files.errors import DataError, FileFormatError
from bsdsbench.files.writing import SITE, WAIT, Manifest, locked, write_results
from bsdsbench.loaders.official_txt import safe_name
from bsdsbench.metrics import registry
from bsdsbench.plotting.palette import ISO_LEVELS, iso_f_points, lines_of
from bsdsbench.runs.evaluation import Evaluation, Progress
from bsdsbench.runs.run_folder import load_runs
from bsdsbench.runs.run_identity import incomparable, is_reference, reference_of, shared_task
from bsdsbench.runs.score_tables import Speed, speed_of

METRIC = registry.DEFAULT[0]
REPORT = "report.html"
SCORES = ("ods", "ois", "ap")
SIDE = 400  # of the plot, in its own units


@dataclass(frozen=True, slots=True)
class Row:
    """A line of a board.

    values : score -> (text, low, high); "-" where undefined, None without an interval
    group  : letters; rows that share one do not differ significantly in ODS. "" where unknown
    link   : the report's page, "" without one; note : the signature, or a published row's source
    color, dash : of the curve in the plot, "" without one
    speed  : what `bsdsbench run` measured, None where the maps came from elsewhere
    """

    name: str
    values: Mapping[str, tuple[str, float | None, float | None]]
    order: float
    group: str
    link: str
    note: str
    published: bool
    speed: Speed | None = None
    color: str = ""
    dash: str = ""


@dataclass(frozen=True, slots=True)
class Curve:
    """A run's precision-recall curve in the plot, whose side is `SIDE`: a path of an SVG."""

    name: str
    color: str
    dash: str
    path: str
    best: tuple[float, float]


@dataclass(frozen=True, slots=True)
class Board:
    """The runs of one task, or of one set and protocol, best ODS first.

    task : its name, or ""; drawn : the curves of its plot
    """

    title: str
    protocol: str
    notes: tuple[str, ...]
    rows: tuple[Row, ...]
    drawn: tuple[Curve, ...] = ()
    task: str = ""


def write_leaderboard(
    folders: Iterable[str | Path],
    out: str | Path,
    names: Iterable[str] | None = None,
    *,
    n_boot: int = N_BOOT,
    seed: int = SEED,
    progress: Progress | None = None,
) -> list[Board]:
    """Write index.html, leaderboard.json and the runs' reports into `out`; returns the boards.

    folders : the folders of runs, as `evaluate -o` leaves them; names : in place of their own
    n_boot, seed, progress : as in `compare`, for one board after the other
    Of a run's report only one that its manifest names is published. Raises DataError for runs
    without boundary counts, OSError.
    """
    paths = list(folders)
    found = list(zip(paths, load_runs(paths, names), strict=True))
    faults = [
        DataError(f"{path}: no {METRIC} counts of images, expected them for a leaderboard")
        for path, run in found
        if not run.records or METRIC not in run.metrics
    ]
    if faults:
        raise DataError.collect(faults)
    reports = {run.name: _report(path, run.name) for path, run in found}
    links = {name: link for name, (link, _) in reports.items()}
    sampling = {"n_boot": n_boot, "seed": seed, "progress": progress}
    boards = [_board(group, links, sampling) for group in _groups([run for _, run in found])]
    plain = [
        {
            "task": b.task or None,
            "title": b.title,
            "protocol": b.protocol,
            "rows": [_plain(r) for r in b.rows],
        }
        for b in boards
    ]
    text = json.dumps(plain, indent=1, ensure_ascii=False, allow_nan=False)
    files = {"index.html": _page(boards), "leaderboard.json": text + "\n"}
    pages = {link: page for link, page in reports.values() if link}
    with locked(Path(out), wait=WAIT):
        write_results(Path(out), [*files.items(), *pages.items()], SITE)
    return boards


def _groups(runs: Sequence[Evaluation]) -> list[list[Evaluation]]:
    """Runs that stand on one board, the largest board first."""
    groups: list[list[Evaluation]] = []
    for run in runs:
        for group in groups:
            first = group[0]
            same = _truth(first) == _truth(run) and not incomparable(first, run)
            if same or shared_task([first, run], METRIC):
                group.append(run)
                break
        else:
            groups.append([run])
    return sorted(groups, key=len, reverse=True)


def _truth(run: Evaluation) -> Any:
    identity = run.identity
    return identity.fingerprint if identity else tuple(r.image_id for r in run.records)


def _board(
    runs: Sequence[Evaluation], links: Mapping[str, str], sampling: Mapping[str, Any]
) -> Board:
    told = compare(runs, **sampling)
    letters = told.letters.get(f"{METRIC}.ods", ("",) * len(runs))
    curves = [
        _curve(run, color, " ".join(f"{2 * d:g}" for d in dashes))
        for run, (color, dashes) in zip(runs, lines_of([run.name for run in runs]), strict=True)
    ]
    rows = []
    for run, group_of, drawn in zip(runs, letters, curves, strict=True):
        values = {}
        for score in SCORES:
            values[score] = _shown(told.interval_of(run.name, f"{METRIC}.{score}"))
        order = told.interval_of(run.name, f"{METRIC}.ods").value
        shown = group_of if len(runs) > 1 else ""
        about = (links[run.name], str(run.signature), False, speed_of(run), drawn.color, drawn.dash)
        rows.append(Row(run.name, values, order, shown, *about))
    first = runs[0]
    task = shared_task(runs, METRIC)
    if task:
        known = published_results().values()
        beside = [r for r in known if task.name in r.tasks and "ods" in r.boundary]
        rows += [_published(result, first.protocol.ap_rule) for result in beside]
    identity = first.identity
    title = identity.describe() if identity else f"{len(first.records)} images, set not known"
    ranked = tuple(sorted(rows, key=lambda row: -row.order))
    if task:
        title = f"{task.name}: {title}"
    how = registry.describe([METRIC], first.protocol)
    name = task.name if task else ""
    return Board(title, how, told.notes, ranked, tuple(curves), name)


def _curve(run: Evaluation, color: str, dash: str) -> Curve:
    score = run.score(METRIC)
    recall, precision = score.curve.recall, score.curve.precision
    drawn = (precision > 0) | (recall > 0)
    about = reference_of(run)
    line = about is None or about.ordered  # else dots: its parameters have several dimensions
    points = _points(recall[drawn], precision[drawn]).split()
    path = f"M{('L' if line else 'h0M').join(points)}h0"
    best = SIDE * score.ods.recall, SIDE * (1 - score.ods.precision)
    return Curve(run.name, color, dash if line else "", path, best)


def _points(recall: Any, precision: Any) -> str:
    """The points of a line in the plot, where precision goes up."""
    at = zip(SIDE * recall, SIDE * (1 - precision), strict=True)
    return " ".join(f"{x:.1f},{y:.1f}" for x, y in at)


def _shown(found: Interval) -> tuple[str, float | None, float | None]:
    """A score and its interval, "-" and None where they are undefined."""
    text = "-" if math.isnan(found.value) else f"{found.value:.3f}"
    if math.isnan(found.low) or math.isnan(found.high):
        return text, None, None
    return text, found.low, found.high


def _published(result: PublishedResult, rule: str) -> Row:
    values: dict[str, tuple[str, float | None, float | None]] = {}
    for score in SCORES:
        text = f"{result.boundary[score]:.3f}" if score in result.boundary else "-"
        mark = result.ap_mark(rule) if score == "ap" else ""
        values[score] = (f"{text} [{mark}]" if mark else text, None, None)
    name = f"{result.label}, {result.variant}" if result.variant else result.label
    return Row(name, values, result.boundary["ods"], "", "", f"source: {result.source}", True)


def _report(folder: str | Path, name: str) -> tuple[str, bytes]:
    """The link of a run's report.html and its page, if its manifest names it; else "" and b""."""
    path = Path(folder)
    found = None if is_reference(folder) else Manifest.read(path)
    if found is None or not found.files.get(REPORT):
        return "", b""
    try:
        return f"reports/{safe_name(name)}.html", found.finished().content(path / REPORT)
    except FileFormatError:  # altered, or gone
        return "", b""


def _plain(row: Row) -> dict[str, Any]:
    scores = {k: {"text": t, "low": a, "high": b} for k, (t, a, b) in row.values.items()}
    more = {"group": row.group, "note": row.note, "published": row.published}
    speed = row.speed.to_mapping() if row.speed else None
    return {"name": row.name, "scores": scores, **more, "speed": speed}


def _page(boards: Sequence[Board]) -> str:
    import jinja2

    text = resources.files("bsdsbench.report.page").joinpath("leaderboard.html").read_text("utf-8")
    environment = jinja2.Environment(autoescape=True, undefined=jinja2.StrictUndefined)
    lines = [(f, _points(*iso_f_points(f, 61)), SIDE * (1 - f / (2 - f))) for f in ISO_LEVELS]
    return environment.from_string(text).render(
        boards=boards, scores=SCORES, side=SIDE, iso_lines=lines
    )
