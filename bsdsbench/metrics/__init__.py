"""One module per metric: one image to counts, counts to scores.

`Column` and `Metric` are all that a metric of another package imports.
"""

from typing import Any

__all__ = ["Column", "Metric"]


def __getattr__(name: str) -> Any:
    """The two classes when first used: names of metrics are read without numpy."""
    if name not in __all__:
        raise AttributeError(name)
    from bsdsbench.metrics import base

    return getattr(base, name)
