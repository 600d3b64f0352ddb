"""Parse names of scores, METRIC.SCORE and METRIC.PART.SCORE, and list all scores of a run.

PART is a class, or whatever else the metric reports separately. SCORE is the key of a column of the
metric. Users may write shorter names, which `full_name` expands.
"""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import compress
from typing import TYPE_CHECKING, NamedTuple

from bsdsbench.errors import DataError
from bsdsbench.metrics import registry
from bsdsbench.metrics.base import ERROR_COLUMNS, Column
from bsdsbench.scores.counts import value_at
from bsdsbench.tables.table import Table
from bsdsbench.text import did_you_mean

if TYPE_CHECKING:
    from bsdsbench.results.evaluation import Evaluation

# METRIC.per_class.PART.SCORE, as in result.json, is also METRIC.PART.SCORE
_GROUP_KEY = re.compile(r"^(\w+\.)?(per_class|by_size)\.")
_NOT_LOGGED = re.compile(r"[^\w/. -]", re.ASCII)  # a character that MLflow rejects in names


class ScoreName(NamedTuple):
    """The parsed name of a score."""

    metric: str
    part: str  # "" for the overall score
    column: Column


def score_name(score: str) -> ScoreName | None:
    """Parse a name such as "contour.left lung.pooled.iou" (part "left lung", score "pooled.iou").

    The score is the key of a column for runs (`columns_of`), for parts or for images; a part of an
    image has scores too. Returns None if there is no such metric or score.
    """
    metric_name, *pieces = score.split(".")
    if metric_name not in registry.names():
        return None
    metric = registry.get(metric_name)
    # Names of parts and keys may both contain dots: try every split, first that without a part
    for k in range(len(pieces)):
        part, key = ".".join(pieces[:k]), ".".join(pieces[k:])
        part_columns = metric.part_columns if part else ()
        for column in (*metric.columns_of([key]), *part_columns, *metric.image_columns):
            if column.key == key:
                return ScoreName(metric_name, part, column)
    return None


def parse_score(score: str) -> ScoreName:
    """Parse METRIC.SCORE or METRIC.PART.SCORE; raise KeyError if no metric has the score."""
    name = score_name(score)
    if name is None:
        raise KeyError(score)
    return name


def lower_is_better(score: str) -> bool:
    """Return True if lower values are better for a score METRIC.SCORE; False for unknown names."""
    named = score_name(score)
    return named is not None and named.column.lower


def flat_scores(run: Evaluation) -> dict[str, float]:
    """Return the defined scores of a run by name: "boundary.ods", "contour.liver.dice" and so on.

    Scores by class of error are left out, because some of them do not tell which run is better: if
    one class has fewer errors, the shares of the other classes rise.
    """
    flat: dict[str, float] = {}
    for name in run.metrics:
        scores = run.score(name).to_mapping()
        protocol = run.protocol if run.records else None  # official tables have no parts
        for key, column, value in registry.get(name).score_columns(scores, protocol):
            if value is not None and column not in ERROR_COLUMNS:
                flat[f"{name}.{key}"] = float(value)
    return flat


def logged_scores(
    run: Evaluation, prefix: str, per_class: bool, undefined: bool = False
) -> dict[str, float]:
    """Return the scores of a run for an experiment tracker: {PREFIX + METRIC/SCORE: value}.

    Characters that MLflow rejects become "_". If two names become equal, the second gets one more.

    per_class : True to add the scores of classes and other parts, as METRIC/PART/SCORE
    undefined : True to keep scores that are NaN or infinite, also of classes that never occur
    """
    scores: dict[str, float] = {}
    for metric in run.metrics:
        definition, run_scores = registry.get(metric), run.score(metric)
        # Without a protocol, `score_columns` yields only the overall scores
        for key, column, value in definition.score_columns(run_scores, None):
            if column not in ERROR_COLUMNS:
                scores[f"{metric}/{key}"] = float(value)
        if not per_class:
            continue
        # Part -> nested scores, such as {"dice": 0.8, "ods": {"f": 0.7, "threshold": 0.4}}
        scores_of_part = definition.scores_by_part(run_scores, run.protocol)
        del scores_of_part[""]  # the overall scores
        columns = (*definition.part_columns, *definition.columns)
        keys = dict.fromkeys(column.key for column in columns if column.score)  # no thresholds
        # Those that the metric computed for at least one part
        all_parts = scores_of_part.values()
        computed = [key for key in keys if any(value_at(s, key) is not None for s in all_parts)]
        for part, scores_in_part in scores_of_part.items():
            never_occurs = not scores_in_part  # a class that no image has: all its scores are NaN
            for key in computed:
                # "ods.threshold" is in the dict of "ods"
                if never_occurs or key.partition(".")[0] in scores_in_part:
                    value = value_at(scores_in_part, key)
                    scores[f"{metric}/{part}/{key}"] = math.nan if value is None else float(value)
    logged: dict[str, float] = {}
    for name, value in scores.items():
        if not undefined and not math.isfinite(value):
            continue
        steps = [_NOT_LOGGED.sub("_", step) for step in name.split("/")]
        # MLflow also rejects path components that are empty or consist of dots
        loggable_name = prefix + "/".join(step if step.strip(".") else "_" for step in steps)
        while loggable_name in logged:
            loggable_name += "_"
        logged[loggable_name] = value
    return logged


def default_scores(run: Evaluation, known: Sequence[str], parts: bool = False) -> list[str]:
    """Return the names in `known` of the scores that tables of the run show by default.

    These are full names, METRIC.SCORE or METRIC.PART.SCORE, where a part is a class, for example.

    parts : True to include scores of parts, except those that only the table of a single run shows
    """
    usual = []
    for score in known:
        named = score_name(score)
        if named is None or named.metric not in run.metrics or (named.part and not parts):
            continue
        metric = registry.get(named.metric)
        # The columns that the metric shows with these options, None for all of its columns
        usual_keys = metric.usual(metric.options_of(run.protocol))
        is_usual = usual_keys is None or named.column.key in usual_keys
        # Of the tables in which a column is shown, "own" are those of a single run
        hidden = ("never", "own") if named.part else ("never",)
        if is_usual and named.column.shown not in hidden:
            usual.append(score)
    return usual


def full_name(score: str, known: Collection[str]) -> str:
    """Expand a short name to a known name, METRIC.SCORE or METRIC.PART.SCORE.

    The first rule that applies is used:

    - A known name is returned unchanged.
    - SCORE or PART.SCORE, where SCORE is a key, stands for this score of the default metric
      ("boundary"), or else of the only metric that has it.
    - SCORE or PART.SCORE, where SCORE is a heading in any case, stands for the only score with it.
    - The start of a key, up to "-" or "@", stands for the first known score with such a key. For
      example, hd95 stands for hd95-pooled.

    "per_class." and "by_size.", which occur in result.json, are removed from all names that are not
    known. If several scores match, or none, this name is returned without being expanded.
    """
    if score in known:
        return score
    word = _GROUP_KEY.sub(r"\1", score)  # METRIC.per_class.PART.SCORE becomes METRIC.PART.SCORE
    candidates = _candidates(word, {name: score_name(name) for name in known})
    return candidates[0] if len(candidates) == 1 else word


# Full name of a score -> the name parsed by `score_name`, None if there is no such metric or score
_ParsedNames = Mapping[str, ScoreName | None]


def _candidates(word: str, known: _ParsedNames) -> list[str]:
    """Return the known scores METRIC.SCORE or METRIC.PART.SCORE that a word of the user stands for.

    `known` maps full names of scores to parsed names, or to None if no metric has the score. The
    result is the first of these lists that is not empty, or []:

    1. the score with this full name
    2. the score of the default metric with this SCORE or PART.SCORE
    3. all scores with this SCORE or PART.SCORE
    4. all scores with this heading or PART.HEADING, ignoring case
    5. one score: the first that continues the word with "-" or "@", as hd95-pooled continues hd95
    """
    for name in (word, f"{registry.DEFAULT_METRICS[0]}.{word}"):
        if name in known:
            return [name]
    without_metric = {name: name.partition(".")[2] for name in known}  # SCORE or PART.SCORE
    with_this_score = [name for name, score in without_metric.items() if score == word]
    if with_this_score:
        return with_this_score
    with_this_heading = []
    for name, parsed in known.items():
        if parsed is not None:
            heading = ".".join(filter(None, (parsed.part, parsed.column.heading)))
            if heading.casefold() == word.casefold():
                with_this_heading.append(name)
    if with_this_heading:
        return with_this_heading
    starts = (f"{word}-", f"{word}@")
    longer = [name for name, score in without_metric.items() if score.startswith(starts)]
    longer += [name for name in known if name.startswith(starts)]
    return longer[:1]


def chosen_scores(words: Sequence[str], known: Sequence[str]) -> tuple[str, ...]:
    """Resolve words of the user to full names of scores, in the order of the words.

    words: full names (METRIC.SCORE or METRIC.PART.SCORE, where a part is a class, for example),
        or parts of them: "dice" stands for the overall Dice and that of every class. "all" stands
        for every known score.
    known: the full names from which to choose.
    """
    if "all" in words:
        return tuple(known)
    parsed = {name: score_name(name) for name in known}
    chosen: list[str] = []
    for word in words:
        meant = _scores_meant(word, parsed)
        if not meant:
            raise unknown_score(word, known)
        chosen += meant
    return tuple(dict.fromkeys(chosen))


def names_meant(words: Sequence[str], known: Collection[str]) -> list[str]:
    """Return the known scores that any of the words stands for. Other words are ignored."""
    parsed = {name: score_name(name) for name in known}
    return list(dict.fromkeys(name for word in words for name in _scores_meant(word, parsed)))


def unknown_score(word: str | None, known: Iterable[str]) -> DataError:
    """Return the error for a word that matches none of the `known` scores; it lists these."""
    names = list(known)
    hint = did_you_mean(str(word), [name.rpartition(".")[2] for name in names])
    return DataError(f"score {word!r}: expected some of {', '.join(names) or 'none'}{hint}")


def _scores_meant(word: str, known: _ParsedNames) -> list[str]:
    """Return all known scores that a word of the user stands for, without duplicates.

    - These are the scores of `_candidates`, if there are any: the score with this name, or else
      those with this SCORE or PART.SCORE, or else those with this heading.
    - If this is a single overall score, and the word does not start with the metric, the same score
      of every part follows. So "dice" stands for the overall Dice and that of each class.
    - If there are none, the word may be a key or heading that only parts have, or have a heading in
      place of the key (METRIC.PART.HEADING), in any case: these are all scores that match so.
    """
    word = _GROUP_KEY.sub(r"\1", word)  # METRIC.per_class.PART.SCORE becomes METRIC.PART.SCORE
    scores = _candidates(word, known)
    parsed_names = {name: parsed for name, parsed in known.items() if parsed is not None}
    if not scores:
        for name, (metric, part, column) in parsed_names.items():
            prefix = f"{metric}.{part}." if part else f"{metric}."
            spellings = (column.key, column.heading, prefix + column.heading)
            if word.casefold() in map(str.casefold, spellings):
                scores.append(name)
    elif len(scores) == 1 and scores[0] in parsed_names:
        overall = parsed_names[scores[0]]
        if not overall.part and not word.startswith(f"{overall.metric}."):
            for name, (metric, _, column) in parsed_names.items():  # of all parts
                if (metric, column.key) == (overall.metric, overall.column.key):
                    scores.append(name)
    return list(dict.fromkeys(scores))


def select(tables: Sequence[Table], wanted: Sequence[str]) -> list[Table]:
    """Restrict tables of scores to the wanted columns. Tables without such a column are dropped.

    wanted : keys or headings of scores. "liver.dice" also restricts the rows to the class "liver".
    """
    selected: list[Table] = []
    all_known: dict[str, ScoreName] = {}  # of all tables, for the error message
    matched: set[str] = set()  # the words that match a score of any table
    for table in tables:
        known = _scores_in(table)  # METRIC.KEY or METRIC.PART.KEY -> parsed name
        all_known |= known
        chosen: list[ScoreName] = []
        for word in wanted:
            # Keys in tables have "_" for ".", but users may write both. The word is tried as it is,
            # with "_" for all dots ("ods_threshold" for "ods.threshold"), and with "_" for the last
            # dot ("liver.ods_threshold" for "liver.ods.threshold")
            for spelling in (word, word.replace(".", "_"), "_".join(word.rsplit(".", 1))):
                names = _scores_meant(spelling, known)
                if names:
                    matched.add(word)
                    chosen += [known[name] for name in names]
                    break
        if not chosen:
            continue
        chosen_parts = {score.part for score in chosen}
        is_chosen = [part in chosen_parts for part in _parts_of_rows(table)]  # one per row
        rows = list(compress(table.rows, is_chosen))
        row_notes = list(compress(table.row_notes, is_chosen))
        # All columns of text, which have no number format, and then those of the chosen scores
        keys = [field.key for field in table.columns]
        texts = [k for k, field in enumerate(table.columns) if not field.format]
        scores = dict.fromkeys(keys.index(score.column.key) for score in chosen)
        # `asked`: the user chose the columns, so that none is left out when it is printed
        restricted = replace(table, rows=rows, row_notes=row_notes, asked=True)
        selected.append(restricted.only([*texts, *scores]))
    for word in wanted:
        if word not in matched:
            raise unknown_score(word, all_known)
    return selected


def _parts_of_rows(table: Table) -> list[str]:
    """Return the part (such as the class) of each row of a table, or "" for overall scores."""
    label = next((k for k, field in enumerate(table.columns) if field.key == "part"), None)
    return ["" if label is None else str(row[label] or "") for row in table.rows]


def _scores_in(table: Table) -> dict[str, ScoreName]:
    """Return the scores in a metric's table by name, METRIC.KEY or METRIC.PART.KEY.

    KEY is the key of the table column. It has "_" where the metric's key has ".", so the name of
    "boundary.ods.threshold" is "boundary.ods_threshold". All columns with a number format (the
    others are texts) are taken as scores, for each part in the rows. A table without rows has only
    overall scores.
    """
    metric = table.key.removesuffix("-parts")
    parts = list(dict.fromkeys(_parts_of_rows(table))) or [""]  # "": overall
    scores = {}
    for field in table.columns:
        if not field.format:
            continue
        for part in parts:
            name = ".".join(filter(None, (metric, part, field.key)))
            scores[name] = ScoreName(metric, part, Column(field.key, field.heading))
    return scores
