"""One module per metric: one image to counts, counts to scores.

`Column` and `Metric` are all that a metric of another package imports.
"""

from bsdsbench.files.late import late

__all__ = ["Column", "Metric"]
# When first used: names of metrics are read without numpy
__getattr__ = late(__name__, dict.fromkeys(__all__, "metrics.base"))
