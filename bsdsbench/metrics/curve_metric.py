"""Metrics of precision-recall curves whose counts are matched and total boundary pixels.

A metric gives the counts of each of its curves; scores, parts and files are those of the boundary
benchmark for all of them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import numpy as np

from bsdsbench.arguments import I8
from bsdsbench.loaders.formats.official_txt import boundary_files, safe_name
from bsdsbench.metrics.base import AT_ODS, IMAGES, Column, Metric, Opt, ScoreTree, Texts
from bsdsbench.protocol.protocol import Protocol
from bsdsbench.scores.counts import Score, Stack, part_of
from bsdsbench.scores.curve import curve_scores
from bsdsbench.scores.ratios import Weights

CURVE_COLUMNS = (
    Column("ods", "ODS"),
    Column("ods.threshold", "ODS threshold", "threshold", digits=3, shown="own", score=False),
    Column("ods.precision", "ODS P", "P", shown="own", score=False),
    Column("ods.recall", "ODS R", "R", shown="own", score=False),
    Column("ois", "OIS"),
    Column("ap", "AP", undefined="all thresholds have one recall (binary or label maps)"),
)
# Of an image: its F at the ODS threshold of the run, beside its best F.
F_AT_ODS = Column(AT_ODS, "F at the ODS threshold", "F at ODS")
BOUNDARY_COLUMNS = (
    *CURVE_COLUMNS,
    Column("r50", "R50", undefined="the curve does not pass a precision of 0.5"),
    IMAGES,
)


class CurveMetric(Metric[Opt]):
    """A metric of one curve, or of several, each with the scores of the boundary benchmark.

    Attributes
    ----------
    curve_names : dict of str to str
        The key of each curve in the score, and its title; none where the score is that of one.
    """

    curve_names: ClassVar[Mapping[str, str]] = {}
    cuts_at_thresholds = True
    part_columns = BOUNDARY_COLUMNS

    def curves(self, stack: Stack, opt: Opt) -> dict[tuple[str, ...], I8]:
        """Return the counts (N, T, 4) of each curve by the path of its scores."""
        if not self.curve_names:
            return {(): stack["matches"]}
        return {(key,): stack[key] for key in self.curve_names}

    def scores(self, stack: Stack, weights: Weights, protocol: Protocol, opt: Opt) -> ScoreTree:
        scores: dict[str, Any] = {}
        for path, matches in self.curves(stack, opt).items():
            of_curve = curve_scores(stack["thresholds"], matches, weights, protocol, r50=True)
            scores |= {path[0]: of_curve} if path else of_curve
        return scores

    def parts(self, protocol: Protocol, opt: Opt) -> dict[str, tuple[str, ...]]:
        return {title: (key,) for key, title in self.curve_names.items()}

    def files(
        self, score: Score, ids: Sequence[str], stack: Stack, protocol: Protocol, opt: Opt
    ) -> Texts:
        """Yield the official tables, of several curves in a folder each, named by its key.

        A class that no image has is left out, and an image in which it was not counted.
        """
        counted = stack.get("counted")
        for k, (path, matches) in enumerate(self.curves(stack, opt).items()):
            if (of_curve := part_of(score, path)) is None:
                continue
            images = np.arange(len(ids)) if counted is None else np.flatnonzero(counted[:, k])
            folder, own_ids = "/".join(map(safe_name, path[-1:])), [ids[i] for i in images.tolist()]
            rows = stack["thresholds"], matches[images], protocol.ods_rule
            for name, text in boundary_files(of_curve, own_ids, *rows):
                yield f"{folder}/{name}" if folder else name, text
