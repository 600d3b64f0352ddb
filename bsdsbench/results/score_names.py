"""Parse names of scores, METRIC.SCORE and METRIC.PART.SCORE, and list all scores of a run.

A part is a class, or another part of a metric's score that has a table of its own.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import replace
from itertools import compress
from typing import TYPE_CHECKING, NamedTuple

from bsdsbench.errors import DataError
from bsdsbench.metrics import registry
from bsdsbench.metrics.base import ERROR_COLUMNS, Column
from bsdsbench.scores.counts import part_of, value_at
from bsdsbench.tables.table import Table

if TYPE_CHECKING:
    from bsdsbench.results.evaluation import Evaluation

_NOT_LOGGED = re.compile(r"[^\w/. -]", re.ASCII)  # what MLflow refuses in the name of a number


class ScoreName(NamedTuple):
    """The metric of a score, its part ("" for the whole), and its column."""

    metric: str
    part: str
    column: Column


def score_name(score: str) -> ScoreName | None:
    """Parse METRIC.SCORE or METRIC.PART.SCORE. Returns None if no metric has this score.

    Examples
    --------
    >>> named = score_name("contour.left lung.pooled.iou")
    >>> named.metric, named.part, named.column.key
    ('contour', 'left lung', 'pooled.iou')
    """
    name, *pieces = score.split(".")
    if name not in registry.names():
        return None
    metric = registry.get(name)
    for k in range(len(pieces)):  # keys and names of parts may contain dots, so try every split
        key = ".".join(pieces[k:])
        part_columns = metric.part_columns if k else ()
        for column in (*metric.columns_of([key]), *part_columns, *metric.image_columns):
            if column.key == key:
                return ScoreName(name, ".".join(pieces[:k]), column)
    return None


def lower_is_better(score: str) -> bool:
    """Return True if smaller values of METRIC.SCORE are better."""
    named = score_name(score)
    return named is not None and named.column.lower


def flat_scores(run: Evaluation) -> dict[str, float]:
    """Return the defined scores of a run by name: {"boundary.ods": F, "contour.liver.dice": ...}.

    A point of a PR curve is represented by its F. Thresholds and counts of images are left out. So
    are classes of errors, because repairing one class raises the shares of the others.
    """
    flat: dict[str, float] = {}
    for name in run.metrics:
        metric, tree = registry.get(name), run.score(name).to_mapping()
        protocol = run.protocol if run.records else None
        for key, column, value in metric.score_columns(tree, protocol):
            if value is not None and column not in ERROR_COLUMNS:
                flat[f"{name}.{key}"] = float(value)
    return flat


def named_scores(
    run: Evaluation, prefix: str, per_class: bool, undefined: bool = False
) -> dict[str, float]:
    """Flatten a run's scores to {PREFIX + METRIC/SCORE: value} for an experiment logger.

    per_class : also include METRIC/CLASS/SCORE
    undefined : keep undefined scores as NaN; classes that occur in no image then get NaN for every
        score
    """
    scores: dict[str, float] = {}
    for metric in run.metrics:
        scorer, score = registry.get(metric), run.score(metric)
        for column in scorer.columns_of(score):
            value = value_at(score, column.key)
            if column.score and column not in ERROR_COLUMNS and value is not None:
                scores[f"{metric}/{column.key}"] = float(value)
        if per_class:
            scores |= _class_scores(run, metric)
    if not undefined:
        scores = {name: value for name, value in scores.items() if math.isfinite(value)}
    logged: dict[str, float] = {}
    for name, value in scores.items():
        steps = [_NOT_LOGGED.sub("_", step) for step in name.split("/")]
        # MLflow also refuses empty steps and steps of dots alone
        loggable_name = prefix + "/".join(step if step.strip(".") else "_" for step in steps)
        while loggable_name in logged:
            loggable_name += "_"
        logged[loggable_name] = value
    return logged


def _class_scores(run: Evaluation, metric: str) -> dict[str, float]:
    """Return the scores of a metric's classes and other parts by METRIC/PART/SCORE.

    Scores that are undefined for all parts are left out. Other undefined scores are NaN.
    """
    scorer, score = registry.get(metric), run.score(metric)
    paths = scorer.parts(run.protocol, scorer.options_of(run.protocol))
    scores_of_part = {part: part_of(score, path) or {} for part, path in paths.items()}
    columns = [c for c in (*scorer.part_columns, *scorer.columns) if c.score]
    keys_with_values = [
        key
        for key in dict.fromkeys(c.key for c in columns)
        if any(value_at(part_scores, key) is not None for part_scores in scores_of_part.values())
    ]
    scores = {}
    for part, part_scores in scores_of_part.items():
        for key in keys_with_values:
            if not part_scores or key.partition(".")[0] in part_scores:
                value = value_at(part_scores, key)
                scores[f"{metric}/{part}/{key}"] = math.nan if value is None else float(value)
    return scores


def usual_scores(run: Evaluation, known: Sequence[str], parts: bool = False) -> list[str]:
    """Return the scores of `known` that tables show by default.

    With `parts`, scores of classes and other parts, which have tables of their own, are included.
    """
    shown = []
    for score in known:
        if (named := score_name(score)) and named.metric in run.metrics:
            metric = registry.get(named.metric)
            usual = metric.usual(metric.options_of(run.protocol))
            is_usual = usual is None or named.column.key in usual
            never = ("never", "own") if named.part else ("never",)
            is_usual = is_usual and (parts or not named.part)
            shown += [score] * (is_usual and named.column.shown not in never)
    return shown


def full_name(
    score: str, known: Collection[str], named: Callable[[str], ScoreName | None] = score_name
) -> str:
    """Return the known METRIC.SCORE that is meant; `score` itself if none is.

    SCORE alone, a key or a heading, is that of the default metric, or of the one that has it; of
    several of a kind (hd95) it is the first (hd95-pooled). PART.SCORE is that of a class, and so is
    per_class.PART.SCORE.

    Examples
    --------
    >>> full_name("ods", ["pixel.ods", "boundary.ods"]), full_name("mae", ["pixel.mae"])
    ('boundary.ods', 'pixel.mae')
    """
    if score in known:
        return score
    score = _without_group(score)
    if score in known:
        return score
    alike, usual = _alike(score, known, named), f"{registry.DEFAULT_METRICS[0]}.{score}"
    if len(alike) > 1 and usual not in alike:
        return score
    if alike:
        return usual if usual in alike else alike[0]
    bare = {name.partition(".")[2]: name for name in known}
    return bare.get(_key_meant(score, bare), _key_meant(score, known))


def _without_group(word: str) -> str:
    """Drop the level "per_class" or "by_size", which result.json puts into the name of a score.

    Examples
    --------
    >>> _without_group("contour.per_class.left lung.dice"), _without_group("contour.pooled.iou")
    ('contour.left lung.dice', 'contour.pooled.iou')
    """
    return re.sub(r"^(\w+\.)?(per_class|by_size)\.", r"\1", word)


def _key_meant(word: str, keys: Iterable[str]) -> str:
    """Return the word, or the first key that begins with it: hd95-pooled for hd95, nsd-area@1 for
    nsd.
    """
    kinds = [key for key in keys if re.match(rf"{re.escape(word)}(?![^@-])", key)]
    return word if word in kinds or not kinds else kinds[0]


def _alike(
    score: str, known: Collection[str], named: Callable[[str], ScoreName | None]
) -> list[str]:
    """Return the known scores whose key or heading is `score`."""
    keyed = [name for name in known if name.partition(".")[2] == score]
    if keyed:
        return keyed
    headed = []
    for name in known:
        if one := named(name):
            shown = f"{one.part}." * bool(one.part) + one.column.heading
            headed += [name] * (shown.casefold() == score.casefold())
    return headed


def chosen_scores(words: Sequence[str], known: Sequence[str]) -> tuple[str, ...]:
    """Return the known scores that the words mean. "all" means every score.

    Raises DataError if a word means no score.
    """
    if "all" in words:
        return tuple(known)
    meant = dict[str, None]()
    for word in words:
        of_word = _scores_meant(word, known)
        if not of_word:
            raise unknown_score(word, known)
        meant |= dict.fromkeys(of_word)
    return tuple(meant)


def names_meant(words: Sequence[str], known: Collection[str]) -> list[str]:
    """Return the known scores that any of the words means."""
    return list(dict.fromkeys(name for word in words for name in _scores_meant(word, known)))


def unknown_score(word: str | None, known: Iterable[str]) -> DataError:
    """Return the error for a word that means no known score."""
    return DataError(f"score {word!r}: expected some of {', '.join(known) or 'none'}")


def _scores_meant(
    word: str, known: Collection[str], named: Callable[[str], ScoreName | None] = score_name
) -> list[str]:
    """Return the known scores that a word means; SCORE alone includes the scores of all parts.

    PART.SCORE is that of each metric that has it. `named` splits the known names.

    Examples
    --------
    >>> known = ["contour.dice", "contour.liver.dice"]
    >>> _scores_meant("dice", known), _scores_meant("contour.dice", known)
    (['contour.dice', 'contour.liver.dice'], ['contour.dice'])
    >>> _scores_meant("dice", ["contour.liver.dice", "contour.lung.dice"])
    ['contour.liver.dice', 'contour.lung.dice']
    """
    word = _without_group(word)
    score = full_name(word, known, named)
    meant = [score] if score in known else _alike(word, known, named)
    unknown = not meant
    whole, folded = named(score), word.casefold()
    if whole and (whole.part or word.startswith(f"{whole.metric}.")):
        return meant
    for name in known:
        one = named(name)
        if one is None:
            continue
        if whole:
            is_part = (one.metric, one.column.key) == (whole.metric, whole.column.key)
        else:  # of parts alone, or the heading behind the metric
            heading, metric = one.column.heading, f"{one.metric}."
            of_part = [one.column.key, heading, metric + f"{one.part}." * bool(one.part) + heading]
            is_part = unknown and folded in map(str.casefold, of_part)
        meant += [name] * (is_part and name not in meant)
    return meant


def select(tables: Sequence[Table], wanted: Sequence[str]) -> list[Table]:
    """Return the tables with their columns of text and the wanted columns of numbers.

    A word is a key or heading of a score. "contour.liver.dice" and "liver.dice" also choose the
    rows of a part. Raises DataError if a word means no score in any table.
    """
    selected: list[Table] = []
    met, every = set[str](), dict[str, None]()
    for table in tables:
        metric = table.key.removesuffix("-parts")
        texts = [k for k, c in enumerate(table.columns) if not c.format]
        label = next((k for k, c in enumerate(table.columns) if c.key == "part"), None)
        part_of_row = ["" if label is None else str(row[label] or "") for row in table.rows]
        names, places = dict[str, ScoreName](), dict[str, int]()
        for k, field in enumerate(table.columns):
            for part in dict.fromkeys(part_of_row or [""]) if field.format else ():
                name = ".".join(filter(None, (metric, part, field.key)))
                names[name] = ScoreName(metric, part, Column(field.key, field.heading))
                places[name] = k
        every |= dict.fromkeys(names)
        chosen = dict[str, None]()
        for word in wanted:
            # Keys of parts of a score may be written with a point
            written = (word, word.replace(".", "_"), "_".join(word.rsplit(".", 1)))
            meant = next(filter(None, (_scores_meant(w, names, names.get) for w in written)), [])
            met |= {word} if meant else set()
            chosen |= dict.fromkeys(meant)
        if chosen:
            parts = {names[name].part for name in chosen}
            of_parts = [part in parts for part in part_of_row]
            rows = list(compress(table.rows, of_parts))
            row_notes = list(compress(table.row_notes, of_parts))
            kept = replace(table, rows=rows, row_notes=row_notes, asked=True)
            selected.append(kept.only([*texts, *dict.fromkeys(places[name] for name in chosen)]))
    for word in wanted:
        if word not in met:
            raise unknown_score(word, every)
    return selected
