"""Write a run into its folder, and read runs in every form that is loaded."""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from bsdsbench.arguments import given_path
from bsdsbench.errors import FileFormatError
from bsdsbench.io import FaultError, Progress, as_json, entries, entry, reading
from bsdsbench.metrics import registry
from bsdsbench.metrics.optional import ResultFiles
from bsdsbench.results.provenance import Provenance
from bsdsbench.results.references import PREFIX, official_run, reference_run
from bsdsbench.results.sharing import download_shared_run, is_address, read_shared_run
from bsdsbench.results.storage import (
    RESULT,
    arrays_of_records,
    is_run,
    npz_bytes,
    read_result,
    writing_result,
)
from bsdsbench.text import show

if TYPE_CHECKING:
    from bsdsbench.results.evaluation import Evaluation


def save_run(run: Evaluation, out: Path, progress: Progress | None = None) -> None:
    """Write a run's result.json, counts.npz, timing.json and the metrics' own files into a folder.

    `progress` is called with (files written, approximate total, name of the file).
    """
    stacks = {metric: run.stack(metric) for metric in run.metrics}
    counts = npz_bytes(arrays_of_records(run.records, stacks))
    content = run.to_mapping()
    if run.places:
        content["places"] = _relative_places(run.places, out.resolve())
    total = len(run.records)
    with writing_result(out, content, counts) as write:
        for metric in map(registry.get, run.metrics):
            if not isinstance(metric, ResultFiles):
                continue
            files = metric.files(
                run.score(metric.name),
                run.image_ids,
                stacks[metric.name],
                run.protocol,
                metric.options_of(run.protocol),
            )
            for n_written, (name, text) in enumerate(files, 1):
                write(name, text)
                if progress:
                    progress(min(n_written, total), total, name)
        times = {record.image_id: round(record.seconds, 4) for record in run.records}
        write("timing.json", as_json({"seconds": times}))


def _relative_places(places: Mapping[str, str], folder: Path) -> dict[str, str]:
    """Return the paths of the run's inputs relative to its folder; on another drive unchanged."""
    relative = dict(places)
    for side, path in places.items():
        with suppress(ValueError):  # on another drive
            relative[side] = Path(os.path.relpath(path, folder)).as_posix()
    return relative


def load_run(run_class: type[Evaluation], folder: str | Path) -> Evaluation:
    """Load a finished run in any of the forms of `Evaluation.load`, as a `run_class`.

    The forms are tried in this order: a URL, `ref:NAME`, a shared file, a folder with result.json,
    a folder of official files. Raises FileFormatError if there is no file or folder, if a file is
    damaged, or if the run was not finished.
    """
    if is_address(folder):
        return run_class(**read_shared_run(download_shared_run(str(folder))))
    path = given_path(folder, "folder")
    if str(folder).startswith(PREFIX):
        return run_class(**reference_run(str(folder)))
    if path.is_file():
        return run_class(**read_shared_run(path))
    if is_run(path):
        return _load_result_folder(run_class, path)
    if path.is_dir():
        return run_class(**official_run(path))
    raise FileFormatError(
        f"{show(path)}: not there, expected the folder of a finished run, or a file of "
        "`bsdsbench share`"
    )


def _load_result_folder(run_class: type[Evaluation], folder: Path) -> Evaluation:
    """Load the folder of a finished run. The paths of inputs, which are relative to the folder in
    result.json, become absolute.
    """
    content, records = read_result(folder)
    with reading(folder / RESULT, "the result of a run"):
        places = entries({"places": {}, **content}, "places", str).items()
        run = run_class(
            protocol=registry.stored(entry(content, "protocol", dict)),
            name=entry(content, "name", str),
            records=records,
            provenance=Provenance.from_mapping(entry(content, "provenance", dict)),
            failed=entries(content, "failed", str),
            places={side: os.path.normpath(folder.absolute() / path) for side, path in places},
        )
        if entry(content, "n_images", int) != len(run.records):
            raise FaultError(f"n_images is not the {len(run.records)} of counts.npz")
        return run
