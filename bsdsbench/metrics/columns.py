"""Columns of score tables, and means of scores over images and over classes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bsdsbench.arguments import F8
from bsdsbench.scores.curve import PRCurve
from bsdsbench.scores.error_scores import AGREEMENT, FALSE, MISSED
from bsdsbench.scores.ratios import Weights, defined_mean, weighted_mean, weighted_sum

ScoreTree: TypeAlias = "Mapping[str, NDArray[Any] | PRCurve | ScoreTree | None]"
AT_ODS = "f_at_ods"  # an image's F at the threshold that is best for its run


@dataclass(frozen=True, slots=True)
class Column:
    """A column of score tables: a score, and how it is shown.

    Parameters
    ----------
    key : str
        The path of the score in the result of `scores`, such as "ap" or "ods.threshold". The path
        of a point of a curve, such as "ods", stands for the F-measure of this point.
    heading, short : str
        The heading of the column, and a shorter one for narrow tables.
    lower : bool
        True if smaller values are better.
    digits : int
        Decimals in the table of one run; tables of several runs show one fewer.
    shown : str
        "always", "own" (only in the table of one run), "several" (only in tables of several runs)
        or "never" (only in files and gates).
    score : bool
        False for values that are not scores, such as a threshold or a number of images.
    undefined : str
        The reason why the score can be undefined, for a note under the table.
    quantity : str
        The name under which papers report the score. `explain` compares a reported number with all
        columns of the same quantity.

    Examples
    --------
    >>> Column("ods", "ODS").digits
    4
    """

    key: str
    heading: str
    short: str = ""
    lower: bool = False
    digits: int = 4
    shown: str = "always"
    score: bool = True
    undefined: str = "nothing in these images defines it"
    quantity: str = ""


# The scores by class of error, with keys such as "error.absent". There are classes of missed pixels
# (MISSED, such as "absent"), of false pixels (FALSE, such as "duplicate"), and of annotated pixels
# by the annotators who agree (AGREEMENT, such as "alone")
ERROR_COLUMNS = tuple(
    Column(
        f"{group}.{name}",
        heading.format(name.replace("_", " ")),
        lower=group != "agreement",
        shown="never",
    )
    for group, names, heading in (
        ("error", MISSED, "{} (of annotated)"),
        ("error", FALSE, "{} (of predicted)"),
        ("error_share", MISSED, "{} (of missed)"),
        ("error_share", FALSE, "{} (of false)"),
        ("agreement", AGREEMENT, "recall, drawn by {}"),
        ("delta_ods", (*MISSED, *FALSE), "dODS, {}"),
        ("delta_ods", AGREEMENT, "dODS, drawn by {}"),
    )
    for name in names
)
IMAGES = Column("n_images", "images", "n", digits=0, shown="own", score=False)

# score -> unit -> (S, 2): the number of values that the mean includes, and the number of all values
Over = dict[str, dict[str, NDArray[Any]]]


def over(unit: str, counts: Mapping[str, tuple[ArrayLike, ArrayLike]]) -> Over:
    """Build the entry "over" of `scores`: how many values each mean includes, out of how many.

    counts: score -> (number of values included, number of all values), each (S,) or a number.

    Returns score -> `unit` -> (S, 2), such as {"iou": {"images": array([[98, 100]])}}.
    """
    entry = {}
    for score, (n_included, n_all) in counts.items():
        pair = np.broadcast_arrays(n_included, n_all)
        entry[score] = {unit: np.stack(pair, axis=-1)}  # (S, 2)
    return entry


def image_means(weights: Weights, values: Mapping[str, F8]) -> ScoreTree:
    """Return the mean of each score, (S,), over the images in which it is defined (not NaN).

    weights (S, N): how often each image occurs in each of S data sets.
    values: score -> (N,). If there are any, the result also has the entry "over".
    """
    if not values:
        return {}
    table = np.column_stack(list(values.values()))  # (N, scores)
    means = weighted_mean(weights, table)  # (S, scores)
    n_defined, n_images = weighted_sum(weights, ~np.isnan(table)), weights.sum(axis=1)
    scores: dict[str, Any] = {name: means[:, k] for k, name in enumerate(values)}
    counts = {name: (n_defined[:, k], n_images) for k, name in enumerate(values)}
    return {**scores, "over": over("images", counts)}


def class_means(values: Mapping[str, F8]) -> ScoreTree:
    """Return the mean of each score, (S,), over the classes in which it is defined (not NaN).

    values: score -> (S, C) for C classes in S data sets. The result also has the entry "over".
    """
    counts = {name: ((~np.isnan(v)).sum(axis=1), v.shape[1]) for name, v in values.items()}
    means = {name: defined_mean(v) for name, v in values.items()}
    return {**means, "over": over("classes", counts)}
