"""Evaluate inside a training loop: update with arrays, merge across ranks, compute scores.

`compute` returns the same scores, bit for bit, as `evaluate` on the same data, no matter how the
images were split into updates, batches and ranks.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from operator import attrgetter
from threading import Lock
from typing import Any, Unpack

import numpy as np

from bsdsbench.arguments import check_array, kind_of_value, suggest_one_map
from bsdsbench.errors import (
    DataError,
    EmptyTruthError,
    InputWarning,
    InvertedWarning,
    MergeError,
    Setting,
    ShapeError,
    warn,
)
from bsdsbench.loaders.formats.pictures import refuse_channels
from bsdsbench.metrics import registry
from bsdsbench.protocol.protocol import Protocol
from bsdsbench.results.evaluation import Evaluation
from bsdsbench.results.groups import group_value
from bsdsbench.results.storage import Provenance
from bsdsbench.runs.arrays import array_items, named_id
from bsdsbench.runs.engine import count
from bsdsbench.runs.fit import CheckedImage, Thumbnails
from bsdsbench.runs.keywords import Plan, StreamingOptions, plan_call
from bsdsbench.runs.sanity import N_CHECKED
from bsdsbench.scores.counts import ImageRecord

# One global lock, so that evaluators can be pickled. It is never held for long.
LOCK = Lock()


class StreamingEvaluator:
    """Count images one by one or in batches, and compute scores at any time.

    An evaluator can be pickled, and it is thread-safe.

    Parameters
    ----------
    protocol, metrics
        As for `evaluate`.
    **options : StreamingOptions
        Keywords described in `runs.keywords.RunKeywords`. The table `groups` may have rows of other
        images. If the protocol makes empty ground truth an error, `on_error` decides: "skip", the
        default, leaves the image out with a warning, and "fail" raises the error.

    Raises
    ------
    DataError
        For unknown metrics.
    ProtocolError
        For an unknown preset.

    Examples
    --------
    >>> import bsdsbench as bb
    >>> import numpy as np
    >>> from bsdsbench.loaders.formats.photos import read_photo
    >>> from bsdsbench.loaders.sample import sample_ground_truth, sample_images
    >>> truth = bb.load_ground_truth(sample_ground_truth() / "fruit1.mat")
    >>> grey = read_photo(sample_images() / "fruit1.jpg").mean(axis=2)
    >>> steps = np.hypot(*np.gradient(grey))
    >>> ev = StreamingEvaluator("bsds500")
    >>> ev.update(steps / steps.max(), truth.boundaries, image_id="fruit1")
    >>> ev.compute()
    <Evaluation 'streaming', 1 images: boundary ODS 0.402, OIS 0.402, AP 0.391, R50 0.323>
    """

    def __init__(
        self,
        protocol: Protocol | str | None = None,
        metrics: str | Sequence[str] = registry.DEFAULT_METRICS,
        **options: Unpack[StreamingOptions],
    ) -> None:
        """Check the arguments; `options` may replace the defaults that follow."""
        defaults: dict[str, Any] = {"name": "streaming", "on_error": "skip"}
        self._plan = plan_call(
            "StreamingEvaluator", StreamingOptions, options, protocol, metrics, **defaults
        )
        self.protocol, self.metrics = self._plan.protocol, self._plan.metrics
        self.name = str(self._plan.name)
        self._records: dict[str, ImageRecord] = {}

    def update(
        self,
        pred: object,
        gts: object,
        image_id: object = None,
        groups: Mapping[str, Any] | None = None,
    ) -> None:
        """Add one image or a batch. If an image of a batch raises an error, none is added.

        Parameters
        ----------
        pred : array, torch.Tensor, Prediction or list
            One image: an (H, W) soft map as for `boundary_counts`, or a Prediction. A batch:
            (B, H, W), (B, 1, H, W) or (B, H, W, 1), or a list of images. (H, W, 1) is one image.
        gts : list, array, GroundTruth or sequence of these
            One image: a GroundTruth, or the maps of A annotators as a list of (H, W) arrays or an
            (A, H, W) array. A batch: a sequence of these.
        image_id : str, int or sequence of these, optional
            One id for an image, a list or tensor of ids for a batch. 3, tensor(3) and "3" are the
            same id. By default, images are numbered, so evaluators of several ranks have the same
            ids and cannot be merged.
        groups : mapping of str to value, optional
            Grouping attribute -> value. For a batch: a list of values, or one for all images.

        Raises
        ------
        ShapeError
            If the numbers of images differ.
        DataError
            If an image id is already present, or if the metrics cannot use the input. An image
            without ground-truth boundaries is counted, left out or an error, as the protocol's
            `empty_gt` says; with on_error="skip", the error becomes a warning.
        """
        records = image_records(pred, gts, image_id, groups, self._plan, len(self._records))
        with LOCK:
            added: dict[str, ImageRecord] = {}
            for record in records:
                name = record.image_id
                # Number the image again, because another thread may have added images meanwhile
                if image_id is None:
                    name = numbered_id(len(self._records) + len(added))
                if name in self._records or name in added:
                    raise DataError(f"{name}: this image is already there, expected each once")
                added[name] = replace(record, image_id=name)
            self._records.update(added)

    def compute(self) -> Evaluation:
        """Return the evaluation of all images added so far. The evaluator is not reset.

        Warns if the images are numbered and seem to be several passes over one set, because
        `reset` was not called between them, and if most maps or masks seem to be inverted.

        Raises DataError if there are no images, or if their values have no consistent meaning.
        """
        if not self._records:
            raise DataError("no images yet: none was given to update, or all were left out")
        warn_of_passes(self._records)
        sources = registry.source_hashes(self.metrics) or None
        provenance = Provenance(pred_kind=self._plan.pred_kind, missing="error", sources=sources)
        run = Evaluation(self.protocol, self.name, list(self._records.values()), provenance)
        # None: the table of groups may have rows of images that were not added
        run = run.with_groups(self._plan.groups, self._plan.group_by, others=None)
        warn_if_inverted(run)
        return run

    def merge(self, other: StreamingEvaluator) -> StreamingEvaluator:
        """Add the images of another evaluator, for example of another rank, and return self.

        Parameters
        ----------
        other : StreamingEvaluator
            An evaluator with the same protocol and metrics. It is not changed.

        Raises
        ------
        MergeError
            If `other` is no evaluator, if protocol, metrics, `errors` or `pred_kind` differ, or if
            both evaluators have the same image.
        """
        if not isinstance(other, StreamingEvaluator):
            raise MergeError(f"merge: {kind_of_value(other)}, expected a StreamingEvaluator")
        compared = attrgetter("protocol", "metrics", "errors", "pred_kind")
        if compared(self._plan) != compared(other._plan):
            names = "" if other.name == self.name else f"{other.name} and {self.name}: "
            raise MergeError(f"{names}the protocols or metrics differ, expected the same")
        with LOCK:
            if shared := sorted(self._records.keys() & other._records.keys()):
                is_numbered = shared[0] in map(numbered_id, range(len(self)))
                fix = "give update the image_id, as each rank numbers from 0" if is_numbered else ()
                raise MergeError(f"image {shared[0]!r} is in both, expected each once", fix=fix)
            self._records.update(other._records)
        return self

    def reset(self) -> None:
        """Forget all images."""
        self._records = {}

    def __repr__(self) -> str:
        names = ", ".join(self.metrics)
        return f"StreamingEvaluator({self.protocol.name}, {names}, {len(self)} images)"

    def __len__(self) -> int:
        return len(self._records)


def warn_if_inverted(run: Evaluation) -> None:
    """Check the values of all images of a run together, and warn if most maps seem inverted.

    Other warnings, such as that nothing is predicted or that a few maps seem inverted, are usual
    early in training and are not issued. Raises DataError if the values have no consistent meaning.
    """
    for warning in run.verdict():
        # If most maps seem inverted, the suggested remedy is the setting `invert`
        has_remedy = any(isinstance(fix, Setting) for fix in warning.problem.fix)
        if isinstance(warning, InvertedWarning) and has_remedy:
            warn(warning)


def image_records(
    pred: object,
    gts: object,
    image_id: object,
    groups: Mapping[str, Any] | None,
    plan: Plan,
    n_seen: int = 0,
) -> list[ImageRecord]:
    """Count the images of an update, and return their records.

    The protocol's `empty_gt` decides whether an image without ground-truth boundaries is counted,
    left out (it has no record), or an error. If `plan.on_error` is "skip", a warning replaces this
    error, and the image is left out. All other errors raise DataError. Gives an InputWarning if the
    map of one of the first images fits its ground truth only flipped, or if this is inverted.

    pred, gts, image_id, groups: the arguments of `StreamingEvaluator.update`.
    n_seen: the number of images before the update.
    """
    items = _image_items(pred, gts, image_id, n_seen)
    records = []
    rows = _group_rows(groups, len(items))
    for number, (item, row) in enumerate(zip(items, rows, strict=True), n_seen):
        (array_item,) = array_items([item], plan)  # exactly one for each triple
        outcome = count(array_item, plan, sanity_check=number < N_CHECKED)
        if plan.on_error == "skip" and isinstance(outcome.error, EmptyTruthError):
            warn(InputWarning(f"left out: {outcome.error}"))
        elif outcome.error is not None:
            raise outcome.error
        elif outcome.record is not None:  # None if `empty_gt` leaves the image out
            records.append(replace(outcome.record, groups=row))
            if outcome.checked is not None and outcome.checked.is_comparable:
                _warn_of_turned(outcome.checked)
    return records


def _warn_of_turned(checked: CheckedImage) -> None:
    """Warn if a map fits its ground truth only flipped, or if the ground truth is inverted.

    Unlike the other mistakes that `FirstImages` reports of a run, a network that has learnt little
    does not give such maps.
    """
    image = Thumbnails.of(checked.pred.image_id, checked.soft, checked.truth)
    orientation = image.best_orientation()  # "" if it is right
    # A single map that misses an area may by chance lie where the area would be if it was flipped
    if orientation and not (checked.has_dark_boundaries or checked.shows_areas):
        warn(InputWarning(f"{image.image_id}: the map fits its ground truth only {orientation}"))
    if checked.is_truth_inverted():
        fault = "most pixels of the truth are boundaries, on which the map is darker"
        fix = Setting("gt_invert", not checked.protocol.gt_invert)
        warn(InvertedWarning(f"{image.image_id}: {fault}", fix=fix))


def _group_rows(groups: Mapping[str, Any] | None, n_images: int) -> list[dict[str, Any]]:
    """Return the groups of each image of an update, as a dict from column to value.

    groups: column, such as "scene" -> one value for all images, or a list with one value per image.
        Raises ShapeError if the list has another length.
    """
    if groups is not None and not isinstance(groups, Mapping):
        raise DataError(f"groups: {kind_of_value(groups)}, expected a mapping of columns")
    rows: list[dict[str, Any]] = [{} for _ in range(n_images)]  # one per image, filled by columns
    for column, cells in (groups or {}).items():
        is_single = isinstance(cells, str) or np.ndim(cells) == 0
        values = [cells] * n_images if is_single else list(cells)
        if len(values) != n_images:
            raise ShapeError(f"groups: {len(values)} values, expected {n_images} of {column!r}")
        for row, value in zip(rows, values, strict=True):
            # Scalars of numpy and torch are converted to those of Python
            plain = value.item() if hasattr(value, "item") else value
            row[str(column)] = group_value(plain, f"groups: column {column!r}")
    return rows


def _image_items(pred: Any, gts: Any, image_id: Any, n_seen: int) -> list[tuple[str, Any, Any]]:
    """Split the arguments of an update into one triple (id, prediction, ground truth) per image.

    pred, gts: the prediction and the ground truth of an image, or of each image of a batch.
    image_id: the id or ids that the user gave. If it is None, images are numbered starting at
        `n_seen`, the number of images before the update.

    `pred` is a batch if it is a list, or an array or tensor with more than two axes. One with the
    shape (H, W, 1) is a single map.

    Raises ShapeError if the numbers of predictions, ground truths and ids differ, or if `pred` is
    probably one image: (C, H, W) beside a single ground truth, or (H, W, C). Raises DataError
    if arrays (B, H, W) of ground truth are the one-hot channels of a single image.
    """
    pred_axes = getattr(pred, "ndim", 0)  # of an array or tensor
    # One map (H, W, 1). If H or W is 1 too, it may as well be a batch
    if pred_axes == 3 and pred.shape[2] == 1 < min(pred.shape[:2]):
        pred, pred_axes = pred[:, :, 0], 2
    is_batch = isinstance(pred, list | tuple) or pred_axes > 2
    if not is_batch:  # a map, or a Prediction
        single_id = numbered_id(n_seen) if image_id is None else named_id(image_id)
        return [(single_id, pred, gts)]
    gt_axes = getattr(gts, "ndim", 0)  # 2: a map beside (C, H, W) scores; 0: a list
    # Up to four channels; a batch of maps so narrow would be a small one, as in tests
    is_picture = pred_axes == 3 and pred.shape[2] <= 4 and min(pred.shape[:2]) > 16
    if pred_axes == 3 and (gt_axes == 2 or (gt_axes == 3 and is_picture)):
        raise ShapeError(
            f"prediction: shape {tuple(pred.shape)}, expected (H, W), or (B, H, W) of a batch with "
            "as many ground truths",
            fix=suggest_one_map(tuple(pred.shape)),
        )
    if pred_axes == 3 and gt_axes == 3:  # raises if they sum to one everywhere
        channels = list(check_array(gts, "ground truths"))
        refuse_channels(channels, "ground truths: ", "(B, H, W), a map of each image")
    preds = list(pred)
    ids = image_id
    if image_id is None:
        ids = [numbered_id(n_seen + k) for k in range(len(preds))]
    for label, values in (("ground truths", gts), ("image ids", ids)):
        # A text, or an array without axes, has no item for each prediction, and a set no order
        is_unfit = isinstance(values, str | set | frozenset) or getattr(values, "ndim", 1) == 0
        if is_unfit or not hasattr(values, "__len__") or len(values) != len(preds):
            raise ShapeError(
                f"{label}: {kind_of_value(values)}, expected {len(preds)} for as many predictions; "
                "one image alone is (H, W)"
            )
    return list(zip(map(named_id, ids), preds, gts, strict=True))


def warn_of_passes(records: Mapping[str, ImageRecord]) -> None:
    """Give an InputWarning if images without ids are several passes over the same ground truths.

    Such images are numbered. It is so if the sequence of their ground truths, of which at least two
    differ, repeats. `records` are those of one or more images by id, in the order of their arrival.
    """
    truths = [record.truth for record in records.values()]  # hashes of the annotations
    n_different = len({*truths})
    n_passes = len(truths) // n_different
    is_repeated = 1 < n_different < len(truths) and truths == truths[:n_different] * n_passes
    if is_repeated and all(name == numbered_id(k) for k, name in enumerate(records)):
        fault = f"each ground truth came {n_passes} times, in the same order"
        warn(InputWarning(f"{fault}: call reset between epochs, or give an image_id"))


def numbered_id(k: int) -> str:
    """Return the id of image number `k` if the images have no ids, such as "image000003"."""
    return f"image{k:06d}"
