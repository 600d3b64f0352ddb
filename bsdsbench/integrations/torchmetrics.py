"""The benchmark as a torchmetrics.Metric. Needs the extra bsdsbench[torch].

    metric = BoundaryMetric("bsds500", fast=True)
    metric.update(pred, annotators, image_id=ids)      # in the validation step
    metric.compute()                                   # {"ods": tensor, "ois": ..., ...}

The state is one table of integers per image, gathered over ranks as torchmetrics gathers lists, so
many ranks give the numbers of one. Images that a distributed sampler hands out twice to fill the
last batch count once, by their id.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any

import numpy as np

try:
    import torch
    from torchmetrics import Metric
except ImportError as error:
    raise ImportError(
        "bsdsbench.integrations.torchmetrics needs torch and torchmetrics: "
        "install the extra bsdsbench[torch]"
    ) from error

from bsdsbench.core.errors import DataError
from bsdsbench.core.protocol import Protocol
from bsdsbench.core.records import BoundaryCounts, ImageRecord
from bsdsbench.runs.evaluation import Evaluation
from bsdsbench.runs.streaming import FAST_THRESHOLDS, fast_protocol, image_items, measure


class BoundaryMetric(Metric):
    """ODS, OIS, AP and R50 as a torchmetrics.Metric; see `bsdsbench.StreamingEvaluator`.

    protocol : a Protocol or the name of a preset; fast : fewer thresholds, for every epoch
    `compute` gives a dict of float64 tensors; `evaluation` the whole Evaluation. Raises what
    `boundary_counts` raises.
    """

    is_differentiable = False
    higher_is_better = True
    full_state_update = False

    def __init__(
        self, protocol: Protocol | str = "bsds500", *, fast: bool = False, **options: Any
    ) -> None:
        super().__init__(**options)
        exact = Protocol.preset(protocol) if isinstance(protocol, str) else protocol
        self.protocol = fast_protocol(exact, FAST_THRESHOLDS) if fast else exact
        self.add_state("counts", default=[], dist_reduce_fx="cat")
        self.counts: Any

    def update(self, pred: Any, gts: Any, image_id: str | Sequence[str] | None = None) -> None:
        """Add one image or a batch; as `StreamingEvaluator.update`.

        Ranks that number their images themselves would mix them up: give names. Without names the
        content of prediction and ground truth is the name.
        """
        for one, annotators, name in image_items(pred, gts, image_id, 0):
            record = measure(one, annotators, name, self.protocol, ("boundary",))
            counts = record.boundary
            if counts is None or len(counts.thresholds) != len(self.protocol.thresholds):
                raise DataError(f"{name}: expected a soft map, thresholds come from the protocol")
            mark = _mark(name) if image_id is not None else _content(one, annotators)
            rows = [counts.matched_gt, counts.total_gt, counts.matched_pred, counts.total_pred]
            head = np.array([*mark, *record.size], np.int64)
            flat = np.concatenate([head, *rows])
            self.counts.append(torch.from_numpy(flat)[None].to(self.device))

    def evaluation(self, name: str = "torchmetrics") -> Evaluation:
        """The Evaluation of all images so far, named by a hash of their ids."""
        parts = self.counts if isinstance(self.counts, list) else [self.counts]
        if not parts:
            raise DataError("no images yet, expected an update before compute")
        table = torch.cat(list(parts)).cpu().numpy()
        thresholds = self.protocol.threshold_array()
        records = {}
        for row in table:
            image_id = f"{row[0] & 0xFFFFFFFF:08x}{row[1] & 0xFFFFFFFF:08x}"
            counts = BoundaryCounts(thresholds, *row[4:].reshape(4, -1))
            records[image_id] = ImageRecord(image_id, (int(row[2]), int(row[3])), boundary=counts)
        return Evaluation(self.protocol, name, tuple(records.values()))

    def compute(self) -> dict[str, Any]:
        """The scores as float64 tensors: ods, ois, ap, r50."""
        score = self.evaluation().boundary_score()
        found = {"ods": score.ods.f, "ois": score.ois.f, "ap": score.ap, "r50": score.r50}
        return {k: torch.tensor(v, dtype=torch.float64) for k, v in found.items()}


def _mark(name: str) -> tuple[int, int]:
    """64 bits of a hash as two numbers that any integer tensor holds."""
    digest = hashlib.blake2b(name.encode("utf-8", "surrogatepass"), digest_size=8).digest()
    return int.from_bytes(digest[:4], "big"), int.from_bytes(digest[4:], "big")


def _content(pred: Any, gts: Any) -> tuple[int, int]:
    from bsdsbench.runs.streaming import annotator_maps, to_numpy

    soft = to_numpy(pred) if not hasattr(pred, "soft") else to_numpy(pred.boundary_map())
    annotators = gts.boundaries if hasattr(gts, "boundaries") else annotator_maps(gts)
    digest = hashlib.blake2b(digest_size=16)
    for array in (soft, *annotators):
        digest.update(f"{array.shape}{array.dtype}".encode())
        digest.update(np.ascontiguousarray(array).tobytes())
    return _mark(digest.hexdigest())
