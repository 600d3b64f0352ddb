"""One module per metric: one image to counts, counts to scores.

`Column` and `Metric` are all that a metric of another package imports.
"""

from typing import TYPE_CHECKING

from bsdsbench.lazy import lazy_getattr

if TYPE_CHECKING:
    from bsdsbench.metrics.base import Column as Column
    from bsdsbench.metrics.base import Metric as Metric
else:  # when first used: names of metrics are read without numpy
    __getattr__ = lazy_getattr(__name__, dict.fromkeys(("Column", "Metric"), "metrics.base"))

__all__ = ["Column", "Metric"]
