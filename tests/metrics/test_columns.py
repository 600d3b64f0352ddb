"""What metrics say of themselves, columns' defaults, and scores by their keys."""

import copy
import re
from dataclasses import MISSING, fields

import pytest
from bsdsbench.metrics.columns import Column, Score

from bsdsbench.metrics import registry
from bsdsbench.protocol.fields import plain
from tests.helpers.snapshots import same_as_stored

ERRORS = (
    r"(min_|mean_|adaptive_)?"
    r"(voi|eer|mae|ue|hd|hd9[059]|assd|dbe|ber|bgm|hamming|van_dongen|[bgl]ce|are)([._@-]|$)"
)
NO_SCORES = r"n_.*|gt_pixels|(ods[._])?threshold|ods\.(precision|recall)"
FIELDS = ("title", "version", "pred_kinds", "gt_kind", "photo", "default_protocol", "uses")
SETS = ("columns", "image_columns", "part_columns")


def test_what_metrics_say_of_themselves():
    """A line for each column, field and default: what readers of tables, gates, records and
    protocols go by. First in this file, as it imports the metrics: a change of what a class says
    of itself is tried with this test."""
    parts = {}
    for name in registry.names():
        metric = registry.get(name)
        parts[name] = "".join(f"{k}: {getattr(metric, k)}\n" for k in FIELDS)
        for which in SETS:
            rows = [
                f"{c.key} | {c.heading} | {c.short} | {'lower' if c.lower else 'higher'} | "
                f"{c.digits} | {c.shown} | {'score' if c.score else ''} | {c.quantity}\n"
                for c in getattr(metric, which)
            ]
            parts[f"{name}, {which}"] = "".join(rows)
        counts = metric.counts_type
        parts[f"{name}, counts"] = f"{'add' if counts.adds else 'do not add'}\n" + "".join(
            f"{f.name} | {declared(f.metadata['counted'], f.default)}\n" for f in fields(counts)
        )
        options = plain(metric.options()) if metric.options else {}
        parts[f"{name}, options"] = "".join(f"{k} = {v}\n" for k, v in options.items())
    same_as_stored("columns", parts)


def declared(what, default):
    """One field of counts in words: axes, type, and what else is said of it."""
    more = list(what._asdict().items())[2:]
    said = [f"{k} {v}".removesuffix(" True") for k, v in more if v]
    said += [] if default in (MISSING, None) else [f"default {default}"]
    return " | ".join([" ".join(what.axes), what.dtype.__name__, *said])


@pytest.mark.parametrize("name", registry.names())
def test_errors_are_the_better_the_smaller_and_numbers_of_things_are_no_scores(name):
    metric = registry.get(name)
    for column in (c for which in SETS for c in getattr(metric, which)):
        assert column.lower == bool(re.match(ERRORS, column.key)), column.key
        if column not in registry.get("region").part_columns:  # parts of a score
            assert column.score == (not re.fullmatch(NO_SCORES, column.key)), column.key


def test_defaults_of_a_column_and_scores_of_a_part():
    f = Column("f", "F")
    assert (f.short, f.lower, f.digits, f.shown, f.score) == ("", False, 4, "always", True)
    score = Score({"voi.ods": 1.5, "voi.ois": 1.25, "f": 0.5}, 3)
    part = score.voi
    assert (part.ods, part.ois, part.n_images) == (1.5, 1.25, 3)
    assert (part.values, score.f) == ({"ods": 1.5, "ois": 1.25}, 0.5)
    with pytest.raises(AttributeError, match=r"score 'pri': expected one of voi\.ods, voi\.ois, f"):
        _ = score.pri
    with pytest.raises(AttributeError, match=r"^_repr_png_$"):
        _ = score._repr_png_
    assert copy.copy(score).values == score.values
