"""What the files of an image show about the meaning of their values, kept beside its counts.

One image does not decide what its values mean: bytes of 0 and 1 are a mask, or the noise of a gray
map whose other images go up to 255. So each image leaves evidence, and what that of all images says
together is decided once (`bsdsbench.loaders.reading`).
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from enum import Flag, auto
from typing import NamedTuple

from attrs import frozen

LEVELS = 5  # as many distinct values of a map are kept, and no map of more has a third value


class Values(Flag):
    """What the values of a map show; those of several maps show what any of them does."""

    NOTHING = 0
    UNIT = auto()  # 0 and 1 in 8 or 16 bits
    WHITE = auto()  # 0 and white
    GRAY = auto()  # more than `LEVELS` values
    FEW = auto()  # three to `LEVELS` values
    FAINT = auto()  # none reaches what counts
    STRONG = auto()  # some do
    WHITE_LABELS = auto()  # labels of 0 and 255 alone, where 255 is no class
    LABELS = auto()  # other labels
    DARK = auto()  # darker on the boundaries than off them
    LIGHT = auto()  # not darker there
    PIECES = auto()  # one number of instances, in several pieces
    NUMBERS = auto()  # several numbers of instances
    TRAIN_IDS = auto()  # labels below the number of classes, one of them of no class
    LABEL_IDS = auto()  # a label of a class above them
    VOID_ALONE = auto()  # void, and no object


@frozen
class Evidence:
    """What the maps of one side of an image show. `|` joins that of several maps.

    Parameters
    ----------
    values : Values
        What any of the maps shows.
    levels : tuple of float
        All values of a map of few, for the line that refuses it; or the one number in pieces.
    strongest : float
        The largest value of a faint map.
    maps : int
        How many maps there are, such as annotators; 0 where nothing is known.
    file : str
        The name of the first file, or the image's id where there is none.

    Examples
    --------
    >>> both = Evidence(Values.UNIT, maps=1) | Evidence(Values.FEW, (0.0, 1.0, 255.0), maps=1)
    >>> both.values == Values.UNIT | Values.FEW, both.levels, both.maps
    (True, (0.0, 1.0, 255.0), 2)
    """

    values: Values = Values.NOTHING
    levels: tuple[float, ...] = ()
    strongest: float = 0.0
    maps: int = 0
    file: str = ""

    def __or__(self, other: Evidence) -> Evidence:
        return Evidence(
            self.values | other.values,
            max(self.levels, other.levels),
            max(self.strongest, other.strongest),
            self.maps + other.maps,
            min(filter(None, (self.file, other.file)), default=""),
        )

    def row(self) -> list[float]:
        """Return all but the file as numbers, always as many; `of_row` reads them back."""
        levels = [*self.levels, *[math.nan] * (LEVELS - len(self.levels))]
        return [self.values.value, self.strongest, self.maps, *levels]

    @classmethod
    def of_row(cls, row: Iterable[float], file: str) -> Evidence:
        """Return the evidence that `row` made numbers of. Raises ValueError, TypeError."""
        values, strongest, maps, *levels = map(float, row)
        known = tuple(level for level in levels if level == level)
        return cls(Values(int(values)), known, strongest, int(maps), file)


NO_EVIDENCE = Evidence()


class Sides(NamedTuple):
    """What the files of an image's prediction and of its truth show to a metric."""

    pred: Evidence = NO_EVIDENCE
    gt: Evidence = NO_EVIDENCE
