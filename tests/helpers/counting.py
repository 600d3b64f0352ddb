"""One image by a metric: its counts, and its score."""

from bsdsbench.metrics import registry
from bsdsbench.protocol.protocol import Protocol
from bsdsbench.scores.counts import ImageRecord, checked_counts


def counts_of(name, pred, gt, protocol=None):
    """What a metric counts in an image, under its own protocol by default."""
    metric = registry.get(name)
    protocol = protocol or Protocol.preset(metric.default_protocol)
    return checked_counts(metric.count_image(pred, gt, protocol))


def score_of(name, *images, protocol=None):
    """The score of some images' counts."""
    metric = registry.get(name)
    records = [ImageRecord(f"{k:03}", (9, 9), {name: c}) for k, c in enumerate(images)]
    return metric.score(records, protocol or Protocol.preset(metric.default_protocol))
