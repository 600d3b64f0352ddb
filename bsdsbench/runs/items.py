"""An evaluation of images that come from no folder: any iterable of (id, prediction, truth)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence, Sized
from concurrent.futures import Executor
from pathlib import Path
from typing import Any

from bsdsbench.files.arguments import kind_of_value
from bsdsbench.files.errors import DataError, is_text
from bsdsbench.loaders.pairing import Pair
from bsdsbench.metrics import registry
from bsdsbench.protocol.protocol import Protocol
from bsdsbench.runs.evaluation import Evaluation
from bsdsbench.runs.job import Job, check_run, kind_of, protocol_of
from bsdsbench.runs.runner import Settings, check_words, run
from bsdsbench.runs.streaming import given_inputs


def evaluate_items(
    items: Iterable[tuple[str, Any, Any]],
    protocol: Protocol | str | None = None,
    *,
    metrics: str | Sequence[str] = registry.DEFAULT,
    name: str = "items",
    workers: int | None = None,
    executor: str | Executor = "process",
    out: str | Path | None = None,
    fresh: bool = False,
    on_error: str = "fail",
    progress: Callable[[int, int, str], None] | None = None,
) -> Evaluation:
    """Evaluate images from an iterable: a data set of another library, arrays in zarr, a generator.

    The iterable is read as the images are needed, a few for each worker at a time. The scores are
    those that `evaluate` gives of files with the same values.

    Parameters
    ----------
    items : iterable of (str, prediction, truth)
        Image id; prediction and truth as `StreamingEvaluator.update` takes them for one image.
    protocol : Protocol or str or None
        A Protocol or the name of a preset; default: the one of the first metric.
    metrics : str or sequence of str
        Names of metrics that read the same kind of ground truth.
    name : str
        The name in tables and legends.
    workers : int or None
        How many images at a time; default: the available cores.
    executor : str or Executor
        "process", "thread", "dask://host:port" or a concurrent.futures.Executor.
    out : path or None
        Folder for results and for records, from which a later call goes on; None: nothing is
        written.
    fresh : bool
        Ignore the records of an earlier run in `out`.
    on_error : str
        "fail" raises when all images have been tried; "skip" leaves the bad ones out.
    progress : callable or None
        Called with (done, total, image_id); total is done where the iterable has no length.

    Returns
    -------
    Evaluation
        Records and scores of the run.

    Raises
    ------
    DataError
        That lists every problem of the run; for an item of another form, or an id twice, at once;
        if all maps are bytes of 0 and 1, of which none counts.

    Examples
    --------
    >>> import numpy as np
    >>> maps = (("a", np.eye(20), [np.eye(20)]), ("b", np.eye(20), [np.eye(20)]))
    >>> evaluate_items(maps, workers=1).boundary_score().ods.f
    1.0
    """
    chosen = check_words(metrics, "error", on_error, (1, 1))
    check_run(name, workers, out, {})
    if isinstance(items, str | bytes) or not isinstance(items, Iterable):
        raise DataError(
            f"items: {kind_of_value(items)}, expected (id, prediction, truth) of images"
        )
    proto = protocol_of(protocol, chosen)
    origin = {"pred_kind": kind_of(None, chosen), "missing": "error"}
    settings = Settings(workers, executor, Path(out) if out else None, fresh, on_error, progress)
    total = len(items) if isinstance(items, Sized) else 0
    blank = Evaluation(proto, name, (), origin)
    return run(blank, _jobs(items, proto, chosen, origin["pred_kind"]), settings, total=total)


def _jobs(
    items: Iterable[Any], protocol: Protocol, metrics: tuple[str, ...], kind: str
) -> Iterator[Job]:
    """A job for each item. Raises DataError for an item of another form, or an id twice."""
    seen: set[str] = set()
    for number, item in enumerate(items, 1):
        if not isinstance(item, tuple | list) or len(item) != 3:
            raise DataError(
                f"item {number}: {kind_of_value(item)}, expected (id, prediction, truth)"
            )
        image_id, pred, gts = item
        if not isinstance(image_id, str) or not image_id or not is_text(image_id):
            raise DataError(f"item {number}: id {kind_of_value(image_id)}, expected text")
        if image_id in seen:
            raise DataError(f"{image_id}: this image is already there, expected each once")
        seen.add(image_id)
        arrays: Any
        try:
            arrays = given_inputs(pred, gts, image_id, metrics)
        except DataError as error:
            arrays = error
        yield Job(Pair(image_id, (), ()), protocol, metrics, kind, arrays=arrays)
