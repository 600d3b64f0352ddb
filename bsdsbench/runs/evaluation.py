"""An evaluation: a protocol and one record per image, with scores, storage and sums."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import pairwise
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bsdsbench import __version__
from bsdsbench.files.arguments import given_list, given_path, kind_of_value
from bsdsbench.files.bounded import (
    FaultError,
    reading,
    table_field,
    text_field,
    text_fields,
    whole_field,
)
from bsdsbench.files.errors import DataError, FileFormatError, MergeError
from bsdsbench.loaders.identity import Identity
from bsdsbench.metrics import registry
from bsdsbench.protocol.protocol import Protocol
from bsdsbench.protocol.signature import Signature
from bsdsbench.protocol.tasks import Task
from bsdsbench.runs.folder import RESULT, SCHEMA, as_json, pack_records, read_result, write_result
from bsdsbench.runs.run_identity import identity_of, signature_of, tasks_of
from bsdsbench.runs.run_options import Progress
from bsdsbench.runs.score_tables import image_table, per_image, score_tables
from bsdsbench.scores.counts import ImageRecord, at
from bsdsbench.tables.result_object import Shown
from bsdsbench.tables.table import Table

if TYPE_CHECKING:
    from bsdsbench.scores.counts import Score


EMPTY = "empty_gt"  # in the provenance: ids that the protocol left out


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Evaluation(Shown):
    """Records of one method on one data set under one protocol, sorted by image id.

    failed maps the ids that could not be evaluated to the reason; provenance holds plain values
    (where the inputs came from). Two evaluations with equal protocols and metrics and disjoint ids
    add (`+`). Without records there are no metrics, and the scores raise DataError.

    Parameters
    ----------
    protocol : Protocol
        The constants the counts were made with.
    name : str
        The name in tables and legends.
    records : sequence of ImageRecord
        One record per image.
    provenance : dict of str to object
        Where the inputs came from, plain values.
    failed : dict of str to str
        Images that could not be evaluated, with the reason.
    places : dict of str to str
        Absolute paths of the folders in `provenance`; in result.json they are relative to it, so
        that they are found from anywhere, and after all was moved together.
    kept : int
        How many records an earlier call had made; not part of the result.

    Raises
    ------
    DataError
        For records with counts of different metrics.
    MergeError
        For a duplicate id, or a sum of different protocols or metrics.

    Examples
    --------
    >>> import numpy as np
    >>> from bsdsbench import evaluate_items
    >>> run = evaluate_items([("a", np.eye(20), [np.eye(20)])], workers=1)
    >>> run.boundary_score().ods.f, len(run.records), run.protocol.name
    (1.0, 1, 'bsds500')
    """

    protocol: Protocol
    name: str
    records: Sequence[ImageRecord]
    provenance: dict[str, Any] = field(default_factory=dict)
    failed: dict[str, str] = field(default_factory=dict)
    places: dict[str, str] = field(default_factory=dict)
    kept: int = 0

    def __post_init__(self) -> None:
        if not isinstance(self.protocol, Protocol) or not isinstance(self.name, str):
            wrong = self.name if isinstance(self.protocol, Protocol) else self.protocol
            raise DataError(f"Evaluation: {kind_of_value(wrong)}, expected a Protocol and a name")
        found = given_list(self.records, "records", "ImageRecords")
        for each in found:
            if not isinstance(each, ImageRecord):
                raise DataError(f"records: {kind_of_value(each)}, expected ImageRecords")
            if each.counts.keys() != found[0].counts.keys():
                raise DataError(f"{self.name}: {_other_metrics(each, found[0])}")
        object.__setattr__(self, "records", tuple(sorted(found, key=attrgetter("image_id"))))
        for a, b in pairwise(self.image_ids):
            if a == b:
                raise MergeError(f"{self.name}: image {a!r} is a duplicate id, expected once")

    @property
    def metrics(self) -> tuple[str, ...]:
        """The metrics of the records, in the order of tables."""
        return registry.in_order(self.records[0].counts) if self.records else ()

    @property
    def image_ids(self) -> list[str]:
        """The ids of its images, in order."""
        return [r.image_id for r in self.records]

    @property
    def empty(self) -> list[str]:
        """Images that were left out as the protocol says, their ground truth being empty."""
        found = self.provenance.get(EMPTY)
        return list(map(str, found)) if isinstance(found, list) else []

    def place(self, what: str) -> str | None:
        """The folder of the inputs, where it is now or as it was given.

        Parameters
        ----------
        what : str
            "pred", "gt" or "photos".

        Returns
        -------
        str or None
            None if it is not known.
        """
        here = self.places.get(what)
        given = self.provenance.get(what)
        return here if here and Path(here).is_dir() else str(given) if given else None

    @property
    def identity(self) -> Identity | None:
        """The ground-truth set of the run, or None where the records do not tell."""
        return identity_of(self.records)

    @property
    def tasks(self) -> tuple[Task, ...]:
        """The tasks that it is of: its whole set, protocol and metrics. See `protocol.tasks`."""
        return tasks_of(self)

    @property
    def signature(self) -> Signature:
        """How the scores were made, in one line that can be read back."""
        return signature_of(self.protocol, self.records, self.identity, self.provenance)

    def __repr__(self) -> str:
        """One line: name, images, the main scores."""
        parts = []
        for metric in self.metrics:
            columns = [c for c in registry.get(metric).columns if c.shown == "always" and c.score]
            score = self.score(metric)
            named = []
            for c in columns[:4]:
                value = at(score, c.key)
                known = value is not None and value == value
                named.append(f"{c.short or c.heading} {f'{value:.3f}' if known else '-'}")
            parts.append(f"{metric} {', '.join(named)}")
        scores = "; ".join(parts) or "no scores"
        failed = f", {len(self.failed)} left out" if self.failed else ""
        return f"<Evaluation {self.name!r}, {len(self.records)} images{failed}: {scores}>"

    def tables(self) -> list[Table]:
        """A table of scores per metric, and one of all images ("images") last.

        Returns
        -------
        list of Table
            In the order in which they are shown.
        """
        return [*score_tables([self]), image_table(self)] if self.records else []

    def score(self, metric: str) -> Any:
        """The score of one metric. Raises DataError if the records do not have it.

        Parameters
        ----------
        metric : str
            Its name, such as "boundary".

        Returns
        -------
        object
            That metric's score.
        """
        return registry.get(metric).score(self.records, self.protocol)

    def boundary_score(self) -> Score:
        """ODS, OIS, AP, R50 of the boundary benchmark: short for score("boundary")."""
        return self.score("boundary")

    def pixel_score(self) -> Score:
        """The pixel benchmark without tolerance: short for score("pixel")."""
        return self.score("pixel")

    def region_score(self) -> Score:
        """Covering, PRI, VOI and more: short for score("region")."""
        return self.score("region")

    def image_scores(self, metric: str) -> dict[str, dict[str, float]]:
        """Image id -> its own scores under a metric, in id order.

        Raises DataError if the records do not have it.

        Parameters
        ----------
        metric : str
            Its name.

        Returns
        -------
        dict
            Image id -> {key of a column: value}, NaN where it is undefined.
        """
        rows: dict[str, dict[str, float]] = {r.image_id: {} for r in self.records}
        if not rows:
            return rows
        self._require(metric)
        found = registry.get(metric)
        stack = found.stack([r.counts[metric] for r in self.records])
        images = iter(rows.values())
        for tree in found.image_scores(stack, self.protocol):
            known = [(c.key, at(tree, c.key)) for c in found.image_columns]
            columns = {key: values.tolist() for key, values in known if values is not None}
            for values in zip(*columns.values(), strict=True):
                next(images).update(zip(columns, values, strict=True))
        return rows

    def per_image(self, metric: str) -> Table:
        """Every score of every image: a row an image, and one for each of its classes or parts.

        Raises DataError if the records do not have the metric.

        Parameters
        ----------
        metric : str
            Its name.

        Returns
        -------
        Table
            Every column of the metric; undefined values are empty.

        Examples
        --------
        >>> import numpy as np
        >>> from bsdsbench import evaluate_items
        >>> run = evaluate_items([("a", np.eye(20), [np.eye(20)])], workers=1)
        >>> table = run.per_image("boundary")
        >>> table.columns[1].key, table.rows[0][:2]
        ('ods', ('a', 1.0))
        """
        self._require(metric)
        return per_image(self, metric)

    def _require(self, metric: str) -> None:
        """Raise DataError for a metric that the records do not have."""
        if metric not in self.metrics:
            had = ", ".join(self.metrics) or "none"
            raise DataError(f"{self.name}: no {metric} counts, expected a metric it has: {had}")

    def __add__(self, other: Evaluation) -> Evaluation:
        if not isinstance(other, Evaluation):
            return NotImplemented
        if self.protocol != other.protocol:
            raise MergeError(f"{other.name}: its protocol differs from that of {self.name}")
        if self.records and other.records and set(self.metrics) != set(other.metrics):
            fault = _other_metrics(other.records[0], self.records[0])
            raise MergeError(f"{self.name} + {other.name}: {fault}")
        return Evaluation(
            self.protocol,
            self.name,
            (*self.records, *other.records),
            self.provenance,
            {**self.failed, **other.failed},
            self.places,
        )

    def equals(self, other: object) -> bool:
        """True if protocol and all records are the same; times and names take no part.

        Parameters
        ----------
        other : object
            Usually an Evaluation.

        Returns
        -------
        bool
            Bit for bit.
        """
        if not isinstance(other, Evaluation) or self.protocol != other.protocol:
            return False
        pairs = zip(self.records, other.records, strict=False)
        return len(self.records) == len(other.records) and all(a.equals(b) for a, b in pairs)

    def scores(self) -> dict[str, Any]:
        """The `scores` object of result.json, for the metrics that were computed.

        Returns
        -------
        dict
            Metric -> plain values.
        """
        return {metric: self.score(metric).to_mapping() for metric in self.metrics}

    def save(self, folder: str | Path, progress: Progress | None = None) -> Path:
        """Write result.json, counts.npz, timing.json and the metrics' own files into `folder`.

        result.json is removed first and written last: a folder without it is not a result.
        Raises RunLockedError while others write there, OSError.

        Parameters
        ----------
        folder : str or path
            Made if missing.
        progress : callable, optional
            Called with (files written, about how many, name).

        Returns
        -------
        path
            The folder.
        """
        out, counts, scores = Path(folder), pack_records(self.records), {}
        for metric in self.metrics:
            scores[metric] = self.score(metric)
        result = self._mapping(scores)
        if self.places:
            result["places"] = {}
        for what, path in self.places.items():
            with suppress(ValueError):  # on another drive
                path = Path(os.path.relpath(path, out.resolve())).as_posix()
            result["places"][what] = path

        def files() -> Iterator[tuple[str, str | bytes]]:
            for metric, score in scores.items():
                found = registry.get(metric)
                stack = found.stack([r.counts[metric] for r in self.records])
                opt = found.options_of(self.protocol)
                made = found.files(score, self.image_ids, stack, self.protocol, opt)
                for done, (name, text) in enumerate(made, 1):
                    yield name, text
                    if progress:
                        progress(min(done, len(self.records)), len(self.records), name)
            times = {r.image_id: round(r.seconds, 4) for r in self.records}
            yield "timing.json", as_json({"seconds": times})

        write_result(out, result, counts, files())
        return out

    def to_mapping(self) -> dict[str, Any]:
        """The content of result.json as plain values.

        Returns
        -------
        dict
            Ready for JSON.
        """
        return self._mapping({metric: self.score(metric) for metric in self.metrics})

    def _mapping(self, scores: Mapping[str, Any]) -> dict[str, Any]:
        """What `to_mapping` gives, with scores that are known already."""
        identity, images = self.identity, list[dict[str, Any]]()
        for r in self.records:
            images.append(dict(id=r.image_id, size=list(r.size), fingerprint=r.fingerprint))
        for metric in scores:
            for row, own in zip(images, self.image_scores(metric).values(), strict=True):
                row[metric] = {k: None if v != v else v for k, v in own.items()}
        return {
            "schema": SCHEMA,
            "bsdsbench": __version__,
            "name": self.name,
            "signature": str(signature_of(self.protocol, self.records, identity, self.provenance)),
            "set": identity.to_mapping() if identity else None,
            "tasks": [task.name for task in self.tasks],
            "protocol": self.protocol.to_mapping(),
            "metrics": list(self.metrics),
            "scores": {metric: score.to_mapping() for metric, score in scores.items()},
            "n_images": len(self.records),
            "images": images,
            "failed": self.failed,
            "provenance": self.provenance,
        }

    @classmethod
    def load(cls, folder: str | Path) -> Evaluation:
        """Read what `save` wrote. Raises FileFormatError naming the file and the fault.

        Parameters
        ----------
        folder : str or path
            The OUT of a run.
        """
        path = given_path(folder, "folder")
        found, records = read_result(path)
        with reading(path / RESULT, "the result of a run"):
            places = text_fields({"places": {}, **found}, "places").items()
            run = cls(
                registry.stored(table_field(found, "protocol")),
                text_field(found, "name"),
                records,
                table_field(found, "provenance"),
                text_fields(found, "failed"),
                {what: os.path.normpath(path.absolute() / place) for what, place in places},
            )
            if whole_field(found, "n_images") != len(run.records):
                raise FaultError(f"n_images is not the {len(run.records)} of counts.npz")
            return run

    @classmethod
    def from_official(cls, folder: str | Path, name: str | None = None) -> Evaluation:
        """Read a folder of official ID_ev1.txt files. See `bsdsbench.runs.official`.

        Parameters
        ----------
        folder : str or path
            With one file for each image.
        name : str, optional
            Default: the folder's.
        """
        from bsdsbench.runs.official import ReportedRun, reported_run

        found = reported_run(folder, name)
        if isinstance(found, ReportedRun):
            raise FileFormatError(f"{folder}: no ID_ev1.txt file, expected one per image")
        return cls(*found)


def _other_metrics(record: ImageRecord, first: ImageRecord) -> str:
    """The fault that two records of a run have different metrics, in words."""
    theirs, ours = (", ".join(r.counts) or "no metric" for r in (record, first))
    return (
        f"image {record.image_id!r} has counts of {theirs}, image {first.image_id!r} of {ours}, "
        "expected the same metrics"
    )
