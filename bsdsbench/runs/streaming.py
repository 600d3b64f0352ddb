"""Evaluation inside a training loop: update with arrays, merge over ranks, compute.

>>> import numpy as np
>>> ev = StreamingEvaluator("bsds500", fast=True)
>>> for image_id in ("a", "b"):
...     ev.update(np.eye(20), [np.eye(20)], image_id=image_id)
>>> ev.compute().boundary_score().ods.f
1.0

The state is one ImageRecord per image, so `compute` gives the same bits as `evaluate` on the same
arrays, however the images were split over updates, batches and ranks.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from threading import Lock
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bsdsbench.files.arguments import given_array, kind_of_value
from bsdsbench.files.errors import DataError, MergeError, ShapeError
from bsdsbench.loaders.inputs import GroundTruth, Prediction
from bsdsbench.loaders.map_checks import binary_map
from bsdsbench.metrics import registry
from bsdsbench.protocol.protocol import Protocol
from bsdsbench.runs.evaluation import Evaluation
from bsdsbench.runs.setup import kind_of, protocol_of
from bsdsbench.scores.counts import ImageRecord
from bsdsbench.scores.precision_recall import RECALL_LEVELS, PRCurve, f_measure

# Half of the official grid: counts of a further threshold cost little, and a coarser grid up to .07
# of AP (a curve that starts between two of its thresholds loses the area before the first).
FAST_THRESHOLDS = 50


@dataclass(frozen=True, slots=True)
class FastError:
    """What fewer thresholds cost, measured: fast minus exact, of the same images.

    ods, ois, ap : the signed errors; thresholds : how many the fast mode has
    """

    ods: float
    ois: float
    ap: float
    thresholds: int
    n_images: int

    def __str__(self) -> str:
        return (
            f"fast mode, {self.thresholds} thresholds on {self.n_images} images: "
            f"ODS {self.ods:+.4f}, OIS {self.ois:+.4f}, AP {self.ap:+.4f} from the exact scores"
        )


class StreamingEvaluator:
    """Collects counts image by image. Picklable; an image counts once. Threads may share it.

    Parameters
    ----------
    protocol : Protocol or str or None
        A Protocol or the name of a preset; default: the one of the first metric.
    metrics : str or sequence of str
        Names of metrics that read the same kind of ground truth.
    fast : bool
        Every image at 50 of the protocol's thresholds: the curve has fewer points, the counts at
        them are the exact ones. ODS is then within 0.002 and AP within 0.01 of the exact ones on
        detectors whose maps use the range 0 .. 1 (held by test). Maps squeezed between two of the
        thresholds can be anything, so the result also has the bound of its own curve
        (`fast_bound`), which holds whatever the maps are. OIS has none. `measure_fast` gives what
        the mode costs on an exact run. repr, protocol and result say it.
    name : str
        The name in tables and legends.

    Raises
    ------
    DataError
        For unknown metrics.
    ProtocolError
        For an unknown preset.
    """

    def __init__(
        self,
        protocol: Protocol | str | None = None,
        metrics: str | Sequence[str] = registry.DEFAULT,
        *,
        fast: bool = False,
        name: str = "streaming",
    ) -> None:
        if not isinstance(fast, bool) or not isinstance(name, str):
            wrong = ("name", name) if isinstance(fast, bool) else ("fast", fast)
            expected = "text" if isinstance(fast, bool) else "True or False"
            raise DataError(f"{wrong[0]}: {kind_of_value(wrong[1])}, expected {expected}")
        self.metrics = registry.chosen(metrics)
        exact = protocol_of(protocol, self.metrics)
        self.exact_protocol = exact
        self.protocol = fast_protocol(exact) if fast else exact
        self.fast = fast
        self.name = name
        self._records: dict[str, ImageRecord] = {}
        self._lock = Lock()

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name != "_lock"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state, _lock=Lock())

    def update(self, pred: Any, gts: Any, image_id: str | Sequence[str] | None = None) -> None:
        """Add one image or a batch.

        pred : one image: (H, W) soft map, numpy or torch, as for `boundary_counts`, or a
            Prediction; a batch: (B, H, W) or (B, 1, H, W), or a list of images
        gts  : one image: its annotators, (H, W) each, as a list, an (A, H, W) array (values as for
            `boundary_counts`), or a GroundTruth; a batch: a sequence of these
        image_id : a name, for a batch a list of names; None numbers them, which ranks that are to
            be merged must not rely on
        Raises ShapeError if the numbers of images differ, DataError for an image that is already
        there and for what the metrics refuse. A batch with a fault adds nothing.
        """
        items = image_items(pred, gts, image_id, len(self._records))
        counted = [measure(*each, self.protocol, self.metrics) for each in items]
        with self._lock:
            if image_id is None:  # another thread may have added images since
                first = len(self._records)
                counted = [replace(r, image_id=_numbered(k)) for k, r in enumerate(counted, first)]
            fresh: dict[str, ImageRecord] = {}
            for record in counted:
                if record.image_id in self._records or record.image_id in fresh:
                    fault = "this image is already there, expected each once"
                    raise DataError(f"{record.image_id}: {fault}")
                fresh[record.image_id] = record
            self._records.update(fresh)

    def compute(self) -> Evaluation:
        """The Evaluation of all images so far. Raises DataError if there are none."""
        with self._lock:
            records = tuple(self._records.values())
        if not records:
            raise DataError("no images yet, expected an update before compute")
        run = Evaluation(self.protocol, self.name, records)
        return noted(run, self.exact_protocol) if self.fast else run

    def merge(self, other: StreamingEvaluator) -> StreamingEvaluator:
        """Add the images of `other` (another rank); returns self.

        Raises MergeError for another protocol, other metrics, or an image that both have.
        """
        if (self.protocol, self.metrics) != (other.protocol, other.metrics):
            raise MergeError(f"{other.name}: its protocol or metrics differ from {self.name}'s")
        with self._lock:
            shared = sorted(self._records.keys() & other._records.keys())
            if shared:
                raise MergeError(f"image {shared[0]!r} is in both, expected each image once")
            self._records.update(other._records)
        return self

    def reset(self) -> None:
        """Forget all images."""
        with self._lock:
            self._records.clear()

    def __repr__(self) -> str:
        given = ", ".join(self.metrics)
        mode = fast_words(self.protocol, self.exact_protocol) if self.fast else "exact"
        return f"StreamingEvaluator({self.protocol.name}, {given}, {mode}, {len(self)} images)"

    def __len__(self) -> int:
        return len(self._records)


def fast_protocol(protocol: Protocol, thresholds: int = FAST_THRESHOLDS) -> Protocol:
    """The protocol at about `thresholds` of its own thresholds, the first and the last kept."""
    own = protocol.thresholds
    if len(own) <= thresholds:
        return protocol
    at = np.unique(np.rint(np.linspace(0, len(own) - 1, thresholds)).astype(int))
    return protocol.replace(thresholds=tuple(own[i] for i in at))


def fast_words(protocol: Protocol, exact: Protocol) -> str:
    """What the fast mode is, for a repr and for a result."""
    few, all_ = len(protocol.thresholds), len(exact.thresholds)
    usual = "ODS within 0.002 and AP within 0.01 on maps that use the range 0 .. 1"
    return f"fast: {few} of {all_} thresholds, {usual}"


def noted(run: Evaluation, exact: Protocol) -> Evaluation:
    """A run of the fast mode with what that is in its provenance, and its own bound."""
    words = fast_words(run.protocol, exact)
    for metric in registry.with_curve(run.metrics)[:1]:
        ods, ap = fast_bound(run.score(metric).curve)
        words += f"; by this curve's own gaps ODS within {ods:.4f} and AP within {ap:.4f}, OIS open"
    return replace(run, provenance={**run.provenance, "fast": words})


def fast_bound(curve: PRCurve) -> tuple[float, float]:
    """By how much ODS and AP (rule bsds) of the fast mode can be off, from its own curve.

    Between two of its thresholds the exact curve lies in the box of their recalls and precisions,
    where recall falls and precision rises with the threshold; a threshold without a match leaves
    precision open. So no map can hide more than its boxes hold, whatever its range of values.

    Examples
    --------
    >>> curve = PRCurve(np.array([0.1, 0.3]), np.array([0.5, 0.6]), np.array([0.8, 0.7]))
    >>> [round(v, 4) for v in fast_bound(curve)]
    [0.0396, 0.011]
    """
    recall, precision = curve.recall, curve.precision
    found = (recall > 0) | (precision > 0)
    low, high = np.where(found, precision, 0.0), np.where(found, precision, 1.0)
    top, bottom = np.maximum(high[1:], high[:-1]), np.minimum(low[1:], low[:-1])
    widest = f_measure(top, np.maximum(recall[1:], recall[:-1])).max(initial=curve.f.max())
    ends = np.sort(np.stack([recall[1:], recall[:-1]]), axis=0)
    there = (ends[0] <= RECALL_LEVELS[:, None]) & (RECALL_LEVELS[:, None] <= ends[1])
    most = np.where(there, top, -np.inf).max(axis=1, initial=-np.inf)
    least = np.where(there, bottom, np.inf).min(axis=1, initial=np.inf)
    area = np.sum((most - least)[there.any(axis=1)]) * 0.01
    return float(widest - curve.f.max()), float(area)


def measure_fast(
    run: Evaluation, thresholds: int = FAST_THRESHOLDS, metric: str = registry.DEFAULT[0]
) -> FastError:
    """The error of the fast mode on the images of an exact run.

    The fast mode counts at some of the run's own thresholds, so its counts are picked out of the
    run's and nothing has to be matched again. metric : one with a PR curve. Raises DataError if
    there are no counts of it.
    """
    found = registry.curve_metric(metric)
    if metric not in run.metrics:
        raise DataError(f"{run.name}: no {metric} counts, expected them to measure the fast mode")
    some = fast_protocol(run.protocol, thresholds).thresholds
    at = np.isin(run.protocol.threshold_array(), some)
    fewer = []
    for record in run.records:
        counts: Any = record.counts[metric]
        if counts.thresholds.size != at.size:
            raise DataError(f"{run.name}: {record.image_id} has other thresholds than the protocol")
        arrays = {k: v[at] if v.shape == at.shape else v for k, v in counts.arrays().items()}
        fewer.append(replace(record, counts={metric: type(counts)(**arrays)}))
    exact, fast = run.score(metric), found.score(fewer, run.protocol)
    return FastError(
        fast.ods.f - exact.ods.f,
        fast.ois.f - exact.ois.f,
        fast.ap - exact.ap,
        len(some),
        len(fewer),
    )


def measure(
    pred: Any, gts: Any, image_id: str, protocol: Protocol, metrics: Sequence[str]
) -> ImageRecord:
    """One image's record from arrays, by the same functions that `evaluate` calls."""
    found = {m: registry.get(m) for m in metrics}
    first = found[metrics[0]]
    if not isinstance(pred, Prediction):
        pred = _prediction(image_id, pred, kind_of(None, metrics))
    if not isinstance(gts, GroundTruth):
        gts = _truth(image_id, gts, first.gt_kind)
    counts = {name: m.count(pred, gts, protocol) for name, m in found.items()}
    return ImageRecord(image_id, gts.shape, counts)


def _prediction(image_id: str, pred: Any, kind: str) -> Prediction:
    if kind == "classes":
        return Prediction(image_id, classes=to_numpy(pred))
    if kind == "labels":
        return Prediction(image_id, segs=(_plane(pred),))
    return Prediction(image_id, soft=_plane(pred))


def _truth(image_id: str, gts: Any, kind: str) -> GroundTruth:
    what = f"{image_id}: ground truth"
    if kind == "mask":
        return GroundTruth(image_id, mask=binary_map(_plane(gts), what))
    if kind == "classes":
        array = to_numpy(gts)
        if array.ndim == 2:
            return GroundTruth(image_id, labels=array)
        return GroundTruth(image_id, class_boundaries=array != 0)
    return GroundTruth(image_id, tuple(binary_map(a, what) for a in annotator_maps(gts)))


def to_numpy(value: Any) -> NDArray[Any]:
    """A numpy array from an array or a torch tensor on any device."""
    if hasattr(value, "detach"):
        value = value.detach().cpu()
        # numpy has no bfloat16; float32 holds every half precision value.
        if "float16" in str(value.dtype):
            value = value.float()
        value = value.numpy()
    return given_array(value, "array")


def _plane(pred: Any) -> NDArray[Any]:
    """(H, W) from (H, W) or (1, H, W)."""
    soft = to_numpy(pred)
    return soft[0] if soft.ndim == 3 and soft.shape[0] == 1 else soft


def annotator_maps(gts: Any) -> list[NDArray[Any]]:
    """The (H, W) maps of one image: from a list of them, (A, H, W) or a single (H, W)."""
    if isinstance(gts, list | tuple):
        maps = [to_numpy(g) for g in gts]
        return [m[0] if m.ndim == 3 and m.shape[0] == 1 else m for m in maps]
    maps_array = to_numpy(gts)
    if maps_array.ndim not in (2, 3):
        raise DataError(f"ground truth: {kind_of_value(gts)}, expected maps (H, W) or (A, H, W)")
    return [maps_array] if maps_array.ndim == 2 else list(maps_array)


def image_items(pred: Any, gts: Any, image_id: Any, known: int) -> list[tuple[Any, Any, str]]:
    """(prediction, annotators, id) of each image of an update."""
    if not _is_batch(pred):
        name = _numbered(known) if image_id is None else image_id
        if not isinstance(name, str):
            raise DataError(f"image_id {name!r}: expected one name for one image")
        return [(pred, gts, name)]
    preds = list(pred)
    count = len(preds)
    names = [_numbered(known + i) for i in range(count)] if image_id is None else image_id
    for what, values in (("ground truths", gts), ("image ids", names)):
        if isinstance(values, str) or not hasattr(values, "__len__") or len(values) != count:
            found = len(values) if hasattr(values, "__len__") else type(values).__name__
            raise ShapeError(
                f"{found} {what} for a batch of {count} predictions, expected as many; one image "
                "alone is (H, W)"
            )
    return [(p, g, str(n)) for p, g, n in zip(preds, gts, names, strict=True)]


def _numbered(k: int) -> str:
    """The name of an image that has none."""
    return f"image{k:06d}"


def _is_batch(pred: Any) -> bool:
    if isinstance(pred, Prediction):
        return False
    if isinstance(pred, list | tuple):
        return True
    return getattr(pred, "ndim", 0) > 2
