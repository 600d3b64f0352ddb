"""Use the benchmark as a torchmetrics.Metric. Needs the extra bsdsbench[torch].

    metric = BenchmarkMetric("bsds500")
    metric.update(pred, annotators, image_id=ids)      # in the validation step
    metric.compute()                                   # {"ods": tensor, "ois": ..., ...}
    several = BenchmarkMetric(metrics=["boundary", "pixel"])   # {"boundary/ods": tensor, ...}

The scores do not depend on the number of ranks (processes). Images are told apart by their ids: an
image that a distributed sampler repeats to fill the last batch counts once, and two different
images with the same id are an error. Images without an id all count.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

try:
    import torch
    from torchmetrics import Metric
except ImportError as error:
    raise ImportError(
        "bsdsbench.integrations.torchmetrics needs torch and torchmetrics: "
        "install the extra bsdsbench[torch]"
    ) from error

from bsdsbench.errors import DataError
from bsdsbench.metrics import registry
from bsdsbench.protocol.protocol import Protocol
from bsdsbench.results.evaluation import Evaluation
from bsdsbench.results.score_names import logged_scores
from bsdsbench.results.storage import pack_record, unpack_record
from bsdsbench.runs.keywords import RunKeywords, make_plan
from bsdsbench.runs.streaming import image_records, numbered_id, warn_if_inverted, warn_of_passes
from bsdsbench.scores.counts import ImageRecord

_LENGTH_BYTES = 8  # size of the integer that precedes a packed record and gives its length


class BenchmarkMetric(Metric):
    """The scores of one or more metrics as a torchmetrics.Metric; see `StreamingEvaluator`.

    `compute` returns the scores as a dict of float64 tensors, `evaluation` the whole Evaluation.

    Parameters
    ----------
    protocol : Protocol or str
        A protocol or the name of a preset; default: the protocol of the first metric.
    metrics : str or sequence of str
        Names of metrics that read the same kind of ground truth.
    classes : sequence of str or None
        The names of the classes in the order of their labels from 0.
    groups, group_by
        The groups of images; see `StreamingEvaluator`.
    """

    is_differentiable = False
    higher_is_better = True
    full_state_update = False

    def __init__(
        self,
        protocol: Protocol | str | None = None,
        metrics: str | Sequence[str] = registry.DEFAULT_METRICS,
        classes: Sequence[str] | None = None,
        groups: object = None,
        group_by: str | None = None,
        **options: object,
    ) -> None:
        """Create the metric. The parameters are those of the class.

        groups, group_by : columns that group the images, or an expression for their ids
        options : passed to torchmetrics.Metric
        """
        super().__init__(**options)
        # The settings of all updates. `make_plan` checks them, and takes those that are not given
        # from the first metric. (`groups` has any type here, which the type checker must not see)
        any_type: Any = {"classes": tuple(classes) if classes else None, "groups": groups}
        keywords = RunKeywords(on_error="skip", group_by=group_by, **any_type)
        self.plan = make_plan(keywords, protocol, metrics)
        self.protocol = self.plan.protocol
        self.metrics = self.plan.metrics
        self._seen: dict[str, str] = {}  # image id -> hash of its arrays
        self._n_seen = 0  # images in all updates, of which the first are checked for mistakes
        # True during torchmetrics' `forward`, which resets the state temporarily; `reset` then
        # keeps the ids of images seen so far
        self._within_forward = False
        # A list of tensors, one per image, which torchmetrics concatenates over ranks
        self.add_state("counts", default=[], dist_reduce_fx="cat")
        self.counts: Any
        # torchmetrics' MetricCollection takes metrics with equal states after the first batch for
        # the same metric, and updates only one of them. `counts` of different protocols are both
        # empty if no image of the batch is counted, so a hash of the settings is a state too. It is
        # the same on all ranks, and so is its maximum
        settings_hash = zlib.crc32(repr((self.protocol, self.metrics)).encode())
        self.add_state("settings", default=torch.tensor(settings_hash), dist_reduce_fx="max")

    @property
    def dtype(self) -> torch.dtype:
        """The type of `counts`, in which a rank without images gathers none."""
        return torch.uint8

    def update(
        self,
        pred: object,
        gts: object,
        image_id: object = None,
        groups: Mapping[str, Any] | None = None,
    ) -> None:
        """Add one image or a batch, with the arguments of `StreamingEvaluator.update`.

        An image may be added again with the same id; `evaluation` counts it once. If an id was
        used for a different image, DataError is raised and nothing is added.

        The counts of each image are appended to the state `counts` as a tensor of bytes, because
        torchmetrics can gather only tensors from the processes of a distributed run (its ranks).
        """
        # The counts of each image
        records = image_records(pred, gts, image_id, groups, self.plan, self._n_seen)
        self._n_seen += len(records)
        if image_id is None:
            # Drop the numbers within this update: `evaluation` numbers the images of all ranks
            records = [replace(record, image_id="") for record in records]
        else:
            seen = dict(self._seen)  # a copy, so that an error leaves the metric unchanged
            for record in records:  # the fingerprint is a hash of the images
                if seen.setdefault(record.image_id, record.fingerprint) != record.fingerprint:
                    raise _different_images(record.image_id)
            self._seen = seen
        for record in records:
            data = pack_record(record)
            # The length comes first, so that packed records can be joined and told apart
            data_with_length = bytearray(len(data).to_bytes(_LENGTH_BYTES, "little") + data)
            state = torch.frombuffer(data_with_length, dtype=torch.uint8)
            self.counts.append(state.to(self.device))

    def evaluation(self, name: str = "torchmetrics") -> Evaluation:
        """Return the evaluation of all images added so far (of all ranks, once gathered).

        Images without an id are numbered. Warns if these seem to be several epochs, or if most maps
        seem inverted. Raises DataError if there are no images, if two images have the same id, if
        the values of all maps have no consistent meaning, or if a metric cannot score this set.
        """
        # The state `counts`: packed bytes of an image in each tensor of a list. After a reduction
        # over ranks, torchmetrics holds one tensor instead, in which they are joined
        states = self.counts if isinstance(self.counts, list) else [self.counts]
        all_bytes = b"".join(state.cpu().numpy().tobytes() for state in states)
        records: dict[str, ImageRecord] = {}  # by image id
        for record in _unpack_all(all_bytes):
            if not record.image_id:
                record = replace(record, image_id=numbered_id(len(records)))
            # The same image may come again, if a sampler repeats it to fill the last batch
            first = records.setdefault(record.image_id, record)
            if not first.equals(record):
                raise _different_images(record.image_id)
        if not records:
            raise DataError("no images yet: call update before compute")
        warn_of_passes(records)  # if the ground truths of numbered images repeat in the same order
        run = Evaluation(self.protocol, name, list(records.values()))
        run = run.with_groups(self.plan.groups, self.plan.group_by, others=None)
        # Both raise DataError for unusable values; the second also warns that most maps seem
        # inverted, for which a single batch (within `forward`) shows too little
        if self._within_forward:
            run.verdict()  # its warnings are not used
        else:
            warn_if_inverted(run)
        return run

    def forward(self, *args: object, **kwargs: object) -> object:
        """Add a batch of images as `update` does, and return the scores of this batch alone."""
        self._within_forward = True
        try:
            return super().forward(*args, **kwargs)
        finally:
            self._within_forward = False

    def reset(self) -> None:
        """Remove all images."""
        super().reset()
        if not self._within_forward:
            self._seen, self._n_seen = {}, 0

    def __repr__(self) -> str:
        """Return the names of the protocol and of the metrics."""
        return f"BenchmarkMetric({self.protocol.name}, {', '.join(self.metrics)})"

    def compute(self) -> dict[str, torch.Tensor]:
        """Return the scores by name, as 0-D float64 tensors; an undefined score is NaN.

        The names are SCORE or CLASS/SCORE, prefixed with METRIC/ if there are several metrics.
        Characters that experiment trackers reject are replaced with "_".
        """
        numbers = logged_scores(self.evaluation(), prefix="", per_class=True, undefined=True)
        if len(self.metrics) == 1:  # drop "METRIC/"
            numbers = {name.partition("/")[2]: value for name, value in numbers.items()}
        return {k: torch.tensor(v, dtype=torch.float64) for k, v in numbers.items()}


def _unpack_all(data: bytes) -> Iterator[ImageRecord]:
    """Yield the records of images from bytes: for each, its length in 8 bytes, then the record."""
    start = 0
    while start < len(data):
        body = start + _LENGTH_BYTES
        end = body + int.from_bytes(data[start:body], "little")
        yield unpack_record(data[body:end])
        start = end


def _different_images(image_id: str) -> DataError:
    """Return the error for two different images with the same id."""
    return DataError(f"{image_id}: two different images, expected an id for each")
