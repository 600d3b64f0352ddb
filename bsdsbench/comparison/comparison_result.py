"""What `compare` finds: intervals, differences, images, and all of it as one object."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

import numpy as np

from bsdsbench.comparison.comparison_tables import comparison_tables
from bsdsbench.files.errors import DataError
from bsdsbench.metrics import registry
from bsdsbench.runs.score_tables import Speed, full_name
from bsdsbench.scores.ratios import or_none
from bsdsbench.tables.result_object import Shown
from bsdsbench.tables.table import Table

SCHEMA = "bsdsbench.comparison/1"


@dataclass(frozen=True, slots=True)
class Interval:
    """One run's score and the interval around it."""

    run: str
    score: str
    value: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class Difference:
    """Score of `a` minus score of `b`, its interval, p-value, and the p-value after Holm.

    least  : the smallest difference of these two runs that these images can tell, see `compare`
    solver : whether the difference is smaller than what the solver of a reference run moves
    """

    a: str
    b: str
    score: str
    value: float
    low: float
    high: float
    p: float
    p_holm: float
    least: float = math.nan
    solver: bool = False


@dataclass(frozen=True, slots=True)
class ImageEffect:
    """One image under two runs: its value in each (best F, best covering), a - b, and `influence`,
    by how much the data set's difference would fall if the image were left out."""

    image_id: str
    a: float
    b: float
    difference: float
    influence: float


@dataclass(frozen=True, slots=True)
class ImagePairs:
    """Two runs image by image, under one metric. effects are in id order, of the images that have a
    value in both."""

    a: str
    b: str
    metric: str
    effects: tuple[ImageEffect, ...]

    @property
    def record(self) -> tuple[int, int, int]:
        """On how many images `a` wins, ties, loses; an error's smaller value wins."""
        better = -1 if registry.get(self.metric).image_columns[0].lower else 1
        signs = [better * ((e.difference > 0) - (e.difference < 0)) for e in self.effects]
        return signs.count(1), signs.count(0), signs.count(-1)

    @property
    def effect_size(self) -> float:
        """Mean difference per image over its standard deviation (Cohen's d); 0 if equal."""
        d = np.array([e.difference for e in self.effects])
        spread = float(d.std(ddof=1)) if d.size > 1 else 0.0
        return float(d.mean()) / spread if spread > 0 else 0.0


@dataclass(frozen=True, slots=True, repr=False)
class Comparison(Shown):
    """What `compare` found. scores are named METRIC.SCORE; runs keep the order they were given in.

    Parameters
    ----------
    names, scores : tuple of str
        Names of the runs, and of the scores (METRIC.SCORE).
    intervals, differences : tuple of Interval or tuple of Difference
        One per run, one per pair of runs, of each score.
    letters : dict of str to tuple of str
        Score -> one string per run; runs that share a letter do not differ significantly; "" for
        a run whose score is undefined.
    images : tuple of ImagePairs
        Each pair of runs image by image.
    n_images, n_boot, seed, level, interval, test
        Number of images, and what `compare` was given.
    protocol : str
        What `Protocol.describe` says of the runs' protocol; several with " / " between.
    notes : tuple of str
        What a reader has to know before trusting the numbers.
    signatures : tuple of str
        How each run was made, in the order of `names`.
    speeds : dict of str to Speed
        Milliseconds per image of the runs of `bsdsbench run`, by name.
    shown : tuple of str
        The scores of the first tables, the others are in further ones; empty: all.

    Examples
    --------
    >>> import bsdsbench as bb
    >>> found = bb.compare(["ref:hed", "ref:cob"], n_boot=200)
    >>> round(found.interval_of("ref:hed", "ods").value, 3)
    0.78
    >>> [table.key for table in found.tables()]
    ['scores', 'differences', 'images']
    """

    names: tuple[str, ...]
    scores: tuple[str, ...]
    intervals: tuple[Interval, ...]
    differences: tuple[Difference, ...]
    letters: Mapping[str, tuple[str, ...]]
    images: tuple[ImagePairs, ...]
    n_images: int
    n_boot: int
    seed: int
    level: float
    interval: str
    protocol: str
    notes: tuple[str, ...] = ()
    signatures: tuple[str, ...] = ()
    speeds: Mapping[str, Speed] = field(default_factory=dict)
    test: str = "bootstrap"
    shown: tuple[str, ...] = ()

    def __repr__(self) -> str:
        first = self.scores[0]
        values = ", ".join(
            f"{name} {self.interval_of(name, first).value:.4g}" for name in self.names[:4]
        )
        more = f" and {len(self.names) - 4} more" if len(self.names) > 4 else ""
        return f"<Comparison of {first} on {self.n_images} images: {values}{more}>"

    def tables(self) -> list[Table]:
        """Scores with intervals; with two runs or more also differences, and image by image."""
        return comparison_tables(self)

    def to_mapping(self) -> dict[str, Any]:
        """The comparison as plain values for JSON."""
        plain = ("n_images", "n_boot", "seed", "level", "interval", "test", "protocol")
        return {
            "schema": SCHEMA,
            "names": list(self.names),
            **{name: getattr(self, name) for name in plain},
            "notes": list(self.notes),
            "signatures": dict(zip(self.names, self.signatures, strict=False)),
            "speeds": {name: speed._asdict() for name, speed in self.speeds.items()},
            "intervals": [_plain(i) for i in self.intervals],
            "letters": {score: list(letters) for score, letters in self.letters.items()},
            "differences": [_plain(d) for d in self.differences],
            "images": [
                {
                    **{name: getattr(pair, name) for name in ("a", "b", "metric", "effect_size")},
                    "win_tie_loss": list(pair.record),
                    "effects": [_plain(e) for e in pair.effects],
                }
                for pair in self.images
            ],
        }

    def only(self, scores: Sequence[str]) -> Comparison:
        """The same with these scores alone ("ods"; "all"), without the times. Raises DataError."""
        if "all" in scores:
            return replace(self, shown=self.scores)
        kept = tuple(full_name(score, self.scores) for score in scores)
        if odd := [score for score in kept if score not in self.scores]:
            raise DataError(f"score {odd[0]!r}: expected some of {', '.join(self.scores)}")
        return replace(
            self,
            scores=kept,
            intervals=tuple(i for i in self.intervals if i.score in kept),
            differences=tuple(d for d in self.differences if d.score in kept),
            letters={score: self.letters[score] for score in kept},
            speeds={},
            shown=kept,
        )

    def interval_of(self, run: str, score: str) -> Interval:
        """The interval of one run's score, "boundary.ods" or "ods". Raises KeyError."""
        score = full_name(score, self.scores)
        for found in self.intervals:
            if (found.run, found.score) == (run, score):
                return found
        raise KeyError(f"{run}, {score}")

    def difference_of(self, a: str, b: str, score: str) -> Difference:
        """The difference a - b of one score, for any order of the two runs. Raises KeyError."""
        score = full_name(score, self.scores)
        for d in self.differences:
            if (d.a, d.b, d.score) == (a, b, score):
                return d
            if (d.b, d.a, d.score) == (a, b, score):
                return replace(d, a=a, b=b, value=-d.value, low=-d.high, high=-d.low)
        raise KeyError(f"{a}, {b}, {score}")


def _plain(record: Any) -> dict[str, Any]:
    """The fields of a record, None where a number is undefined."""
    return {k: or_none(v) if isinstance(v, float) else v for k, v in asdict(record).items()}
