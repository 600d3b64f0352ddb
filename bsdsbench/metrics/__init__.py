"""One module per metric: one image to counts, counts to scores.

`Column` and `Metric` are all that a metric of another package imports.
"""

from typing import TYPE_CHECKING

from bsdsbench.lazy import late

if TYPE_CHECKING:
    from bsdsbench.metrics.base import Column as Column
    from bsdsbench.metrics.base import Metric as Metric

__all__ = ["Column", "Metric"]
# When first used: names of metrics are read without numpy
if not TYPE_CHECKING:  # it would give every name the type Any
    __getattr__ = late(__name__, dict.fromkeys(__all__, "metrics.base"))
