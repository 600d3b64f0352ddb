"""The class Evaluation: a protocol and one record per image, with scores and storage."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from math import isnan
from operator import attrgetter
from pathlib import Path
from typing import Any

import attrs

from bsdsbench import __version__
from bsdsbench.arguments import check_path, kind_of_value
from bsdsbench.errors import DataError, FileFormatError, InputWarning, MergeError
from bsdsbench.io import Progress
from bsdsbench.loaders.pairing import Layout
from bsdsbench.loaders.reading import check_all_values
from bsdsbench.loaders.sets.identity import Identity, identify
from bsdsbench.metrics import registry
from bsdsbench.metrics.base import AT_ODS
from bsdsbench.metrics.optional import ChecksSet
from bsdsbench.protocol.protocol import Protocol
from bsdsbench.protocol.signature import UNKNOWN, Signature
from bsdsbench.protocol.tasks import Task
from bsdsbench.protocol.tasks import tasks as known_tasks
from bsdsbench.results import sharing
from bsdsbench.results.groups import group_rows, records_with_groups
from bsdsbench.results.references import Reference, official_run, reference_run, references
from bsdsbench.results.score_names import logged_scores
from bsdsbench.results.storage import SCHEMA, Provenance, is_run, read_result, save_run
from bsdsbench.scores.counts import Counts, ImageRecord, Score, unchecked_counts, value_at
from bsdsbench.scores.curve import BoundaryScore, PRCurve
from bsdsbench.tables.read_only import ReadOnlyDict
from bsdsbench.tables.result_object import TabularResult
from bsdsbench.tables.table import Table
from bsdsbench.text import show


@dataclass(frozen=True, eq=False, repr=False)
class Evaluation(TabularResult):
    """A run: the counts of one method on one data set under one protocol.

    Scores are computed from the counts on demand. A run loaded from official eval_*.txt tables
    alone has no records, only the scores in `reported`; requesting others raises DataError.

    Parameters
    ----------
    protocol : Protocol
        The settings with which the counts were made.
    name : str
        The name in tables and legends.
    records : sequence of ImageRecord
        One record per image, in any order; they are sorted by image id.
    provenance : Provenance
        The inputs of the run and how it was made.
    failed : dict of str to str
        Image id -> reason, for images that could not be evaluated.
    places : dict of str to str
        "pred", "gt", "photos" or "valid" -> the absolute path of this folder.
    kept : int
        The number of records that were reused from an earlier call. It is not saved.
    reported : dict of str to Score
        Metric -> its scores in official result tables.

    Raises
    ------
    DataError
        If a parameter has a wrong type.
    MergeError
        If two records have the same id, or counts of different metrics.

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
    provenance: Provenance = field(default_factory=Provenance)
    failed: dict[str, str] = field(default_factory=dict)
    places: dict[str, str] = field(default_factory=dict)
    kept: int = 0
    reported: dict[str, Score] = field(default_factory=dict)
    _scores: dict[str, Score] = field(default_factory=dict, init=False)
    _stacks: dict[str, Counts] = field(default_factory=dict, init=False)
    _images: dict[str, dict[str, Any]] = field(default_factory=dict, init=False)

    def __post_init__(self) -> None:
        """Check the fields, sort the records by image id, and make the mappings read-only."""
        if not isinstance(self.protocol, Protocol) or not isinstance(self.name, str):
            wrong = self.name if isinstance(self.protocol, Protocol) else self.protocol
            raise DataError(f"Evaluation: {kind_of_value(wrong)}, expected a Protocol and a name")
        if not isinstance(self.records, Iterable):
            raise DataError(f"records: {kind_of_value(self.records)}, expected ImageRecords")
        records = list(self.records)
        for record in records:
            if not isinstance(record, ImageRecord):
                raise DataError(f"records: {kind_of_value(record)}, expected ImageRecords")
        records.sort(key=attrgetter("image_id"))
        for k, record in enumerate(records):
            if record.counts.keys() != records[0].counts.keys():
                metrics = ", ".join(record.counts) or "no metric"
                expected = ", ".join(records[0].counts) or "none"
                fault = f"image {record.image_id!r} has counts of {metrics}"
                of_first = f"those of {records[0].image_id!r}: {expected}"
                raise MergeError(f"{self.name}: {fault}, expected {of_first}")
            if k and record.image_id == records[k - 1].image_id:
                fault = f"image {record.image_id!r} is a duplicate id"
                raise MergeError(f"{self.name}: {fault}, expected once")
        object.__setattr__(self, "records", tuple(records))  # `=` fails: the class is frozen
        for name in ("failed", "places", "reported"):
            object.__setattr__(self, name, ReadOnlyDict(getattr(self, name)))

    @cached_property
    def metrics(self) -> tuple[str, ...]:
        """The names of the metrics of the run, in the order in which tables show them."""
        return registry.sort_names(self.records[0].counts if self.records else self.reported)

    @property
    def image_ids(self) -> list[str]:
        """The ids of the images, sorted."""
        return list(map(attrgetter("image_id"), self.records))

    @property
    def left_out(self) -> dict[str, str]:
        """The images that were not counted, as {image id: reason}, sorted by id."""
        reasons = dict.fromkeys(self.provenance.no_prediction, "no prediction")
        reasons |= dict.fromkeys(self.provenance.empty_gt, "empty ground truth")
        return dict(sorted({**reasons, **self.failed}.items()))

    def with_groups(
        self,
        groups: object = None,
        group_by: str | None = None,
        others: Collection[str] | None = (),
    ) -> Evaluation:
        """Return a copy of the run with its images assigned to groups, such as scene or patient.

        Existing groups are kept. If no groups are given, the run itself is returned.

        Parameters
        ----------
        groups : path, mapping or data frame, optional
            Table with the groups of each image: a CSV file, a data frame, or {id: group}.
        group_by : str, optional
            Regular expression searched for in each image id. Its named groups become columns.
        others : collection of str or None
            Ids of images outside the run that the table may contain. Images that the run left out
            are always allowed. Any id is allowed if this is None, or if the run is a shard or is
            restricted to a split or a task.

        Raises
        ------
        DataError
            If an image has no row, a row names an unknown image, or a column occurs twice.

        Examples
        --------
        >>> import numpy as np
        >>> from bsdsbench import evaluate_items
        >>> run = evaluate_items([("s1_01", np.eye(20), [np.eye(20)])], workers=1)
        >>> dict(run.with_groups(group_by="(?P<scene>s.)_").records[0].groups)
        {'scene': 's1'}
        """
        if groups is None and group_by is None:
            return self
        self.require_records()
        origin = self.provenance
        other_ids = None  # any id: a part of a set may be given the table of the whole set
        if others is not None and not (origin.shard or origin.split or origin.task):
            other_ids = {*others, *self.left_out}
        rows = group_rows(self.image_ids, groups, group_by, other_ids)
        return replace(self, records=records_with_groups(rows, self.records, self.name))

    def with_provenance(self, **known: Any) -> Evaluation:
        """Return a copy of the run with the given fields of its provenance replaced."""
        return replace(self, provenance=attrs.evolve(self.provenance, **known))

    def require_records(self) -> None:
        """Raise DataError if the run has no records (counts per image)."""
        if not self.records:
            raise DataError(f"{self.name}: no counts per image, expected a run with them")

    def place(self, what: str) -> str | None:
        """Return the path of an input folder ("pred", "gt", "photos" or "valid"), or None.

        This is the absolute path in `places` if it exists, otherwise the path as the user gave it.
        """
        folder = self.places.get(what)
        return folder if folder and Path(folder).is_dir() else getattr(self.provenance, what)

    @cached_property
    def identity(self) -> Identity | None:
        """The identity of the ground-truth set; None if any image's fingerprint is unknown."""
        truths = dict(map(attrgetter("image_id", "truth"), self.records))
        return identify(truths) if truths and all(truths.values()) else None

    @property
    def set_line(self) -> str:
        """The ground-truth set in words, "bsds500-test, 200 of 200 images"; "" if unknown."""
        return self.identity.describe() if self.identity else ""

    @cached_property
    def tasks(self) -> tuple[Task, ...]:
        """The benchmark tasks, each a metric and a protocol on a data set, that the run completes.

        The run must have the task's metric, its protocol (except for reference runs, the counts of
        published methods) and its whole ground truth, recognised by the fingerprint. If the task
        has none, the run must have been made for it, and have the ids and the number of images that
        it states. A run with failed images or an unknown protocol completes no task.
        """
        if not self.records or not self.protocol.stated or self.failed:
            return ()
        candidates = dict(known_tasks())  # name -> task
        made_for = self.provenance.task  # the task for which the run was made, or None
        if made_for is not None:
            # A user's task of the same name is another one, unless a fingerprint defines it
            known = candidates.get(made_for.name)
            if known is None or known.fingerprint is None:
                candidates[made_for.name] = made_for
        completed = []
        for task in candidates.values():
            if task.fingerprint is not None:
                is_set = self.identity is not None and self.identity.fingerprint == task.fingerprint
            else:
                has_ids = not task.ids or set(task.ids) == set(self.image_ids)
                is_set = task == made_for and has_ids and task.images in (None, len(self.records))
            has_protocol = task.protocol == self.protocol.name or self.reference is not None
            if is_set and has_protocol and task.metric in self.metrics:
                completed.append(task)
        return tuple(completed)

    @cached_property
    def read_as(self) -> str:
        """The interpretation of the values in the files: "Read as: predictions ...; truth ...".

        For example, "truth boundaries, 3-5 annotators per image". It is "" if unknown. Metrics that
        read the files in another way follow as "; by METRIC, METRIC predictions ...; truth ...".
        """
        origin = self.provenance
        layouts = origin.pred_layout or Layout(), origin.gt_layout or Layout()  # files per image
        metrics_by_line: dict[str, list[str]] = {}
        for metric in registry.readers(self.metrics):  # those that decide how files are read
            readings = metric.readings(self.protocol, origin.pred_kind or "")
            line = readings.describe(self.records, *layouts)  # "Read as: ..."
            metrics_by_line.setdefault(line, []).append(metric.name)
        phrases: list[str] = []
        for line, names in metrics_by_line.items():
            if phrases:  # in the joined text, only the first is left as it is
                line = f"by {', '.join(names)} {line.removeprefix('Read as: ')}"
            phrases.append(line)
        return "; ".join(phrases)

    def verdict(self) -> list[InputWarning]:
        """Check the values of all files of the run together, and return warnings.

        A shard has only some of the files and is not checked. Raises DataError if the values have
        no consistent meaning, as when only some maps are inverted, or if a metric refuses the set.
        """
        if self.provenance.shard or not self.records:
            return []
        readings = []
        # The metrics that decide how files are read: those that require masks, if there are any
        for metric in registry.readers(self.metrics):
            readings.append(metric.readings(self.protocol, self.provenance.pred_kind or ""))
        warnings = check_all_values(readings, self.records)
        for metric in map(registry.get, self.metrics):
            if isinstance(metric, ChecksSet):  # it checks the counts of all images together
                options = metric.options_of(self.protocol)
                warnings += metric.check_set(self.image_ids, self.stack(metric.name), options)
        return warnings

    @cached_property
    def reference(self) -> Reference | None:
        """The description of the published method if this is a reference run, otherwise None."""
        return references().get(self.provenance.reference or "")

    @property
    def by_official_solver(self) -> bool:
        """True if the counts come from the official program, whose matching is randomised."""
        return self.reference is not None or self.provenance.official is not None

    @property
    def described(self) -> str:
        """A line with the protocol, its settings, and the conventions of each metric."""
        return registry.describe(self.metrics, self.protocol)

    @property
    def with_curve(self) -> tuple[str, ...]:
        """The names of the metrics that have a precision-recall curve."""
        return registry.with_curve(self.metrics, self.protocol)

    @cached_property
    def signature(self) -> Signature:
        """The signature, whose text has every setting on which scores depend, as "ods:maximum".

        Its `set` is "SET:N/M" for N images of a public set of M images, otherwise "set:N".
        """
        n_images = len(self.records)
        known = self.identity if self.identity is not None and self.identity.name else None
        set_name = f"{known.name}:{n_images}/{known.total}" if known else f"set:{n_images}"
        # Storage formats such as "soft8"; "none" is that of a missing prediction
        forms = {record.form or UNKNOWN for record in self.records}
        unused = registry.unused_settings(self.metrics if n_images else (), self.protocol)
        if self.reference:  # stored counts of another program, which thinned the maps in its way
            unused |= {"nms", "nms_params", "operator"}
        detector = self.provenance.detector or {}  # its run.json, whose values may have any type
        scales, n_taken_over = detector.get("scales"), detector.get("taken_over")  # earlier maps
        has_taken_over = isinstance(n_taken_over, int) and 0 < n_taken_over <= n_images
        return Signature(
            self.protocol,
            set=set_name,
            gt=self.identity.fingerprint[:8] if self.identity else UNKNOWN,
            pred="+".join(sorted(forms - {"none"})) or UNKNOWN,
            match="random" if self.reference else "1to1",  # random: the official solver
            maps=f"{n_taken_over} taken over" if has_taken_over else "",
            ms=scales if isinstance(scales, str) else "",
            valid="masks" if self.provenance.valid else "",
            unused=unused,
        )

    @property
    def signature_line(self) -> str:
        """The signature as text, or "" for a run without records."""
        return str(self.signature) if self.records else ""

    def __repr__(self) -> str:
        """Return one line: name, number of images, and up to four scores per metric."""
        texts = []
        for metric in self.metrics:
            # Scores that every table shows, without thresholds and the like
            columns = [c for c in registry.get(metric).columns if c.shown == "always" and c.score]
            try:
                values = self.score(metric).to_mapping()
            except DataError:  # the set has no scores, as without boundaries of any class
                values = {}
            scores = []
            for c in columns[:4]:
                value = value_at(values, c.key)
                scores.append(f"{c.short or c.heading} {'-' if value is None else f'{value:.3f}'}")
            texts.append(f"{metric} {', '.join(scores)}")
        images = f"{len(self.records)} images"
        images += f", {len(self.failed)} left out" if self.failed else ""
        return f"<Evaluation {self.name!r}, {images}: {'; '.join(texts) or 'no scores'}>"

    def tables(self) -> list[Table]:
        """Return the tables of scores per metric, or [] for a run without records."""
        from bsdsbench.results.score_tables import score_tables

        return score_tables([self]) if self.records else []

    def score(self, metric: str) -> Score:
        """Return the scores of a metric, such as "boundary", on all images.

        Raises DataError if the run does not have the metric.
        """
        if metric in self.reported:
            return self.reported[metric]
        if metric not in self._scores:
            self._scores[metric] = registry.get(metric).score_of(self.stack(metric), self.protocol)
        return self._scores[metric]

    def boundary_score(self) -> BoundaryScore:
        """Return `score("boundary")` with typed attributes: ODS, OIS, AP, R50 and the curve."""
        return BoundaryScore(self.score("boundary"))

    def image_scores(self, metric: str) -> dict[str, dict[str, float]]:
        """Return the scores of every image for a metric: {image id: {key of a score: value}}.

        NaN marks an undefined score. A run that was loaded from official result tables has no
        records; its scores are those in the tables, or {} if they list no images.
        """
        if not self.records:  # `reported`: metric -> {"images": {id: scores}, scores of the set}
            return dict(self.reported[metric].get("images", ())) if metric in self.reported else {}
        # Key of a score -> one value per image. "" stands for the overall scores, not of a class
        values = self.image_values(metric).get("", {})
        scores: dict[str, dict[str, float]] = {}
        for k, image_id in enumerate(self.image_ids):
            scores[image_id] = {}
            for column in registry.get(metric).image_columns:
                if column.key in values:
                    scores[image_id][column.key] = values[column.key][k]
        return scores

    def image_values(self, metric: str) -> dict[str, dict[str, list[Any]]]:
        """Return the scores of all images: {part: {key of a score: [one value per image]}}.

        A part is a class, or whatever the metric reports separately; "" is the whole image, as in
        {"": {"dice": [0.8, 0.9]}, "liver": {"dice": [0.7, 0.9]}}. Scores that options turn off have
        no key. If there is a curve, AT_ODS has each image's F at the ODS threshold of the run.
        """
        if metric in self._images:
            return self._images[metric]
        definition = registry.get(metric)
        run_scores = self.score(metric)
        run_scores_by_part = definition.scores_by_part(run_scores, self.protocol)
        run_columns = definition.columns_of(run_scores)
        columns = (*run_columns, *definition.image_columns, *definition.part_columns)
        keys = dict.fromkeys(map(attrgetter("key"), columns))  # such as "dice", each once
        values: dict[str, dict[str, list[Any]]] = {}
        # A block has nested scores as a run has, but of some images: arrays in place of numbers
        for block in definition.image_scores(self.stack(metric), self.protocol):
            for part, scores in definition.scores_by_part(block, self.protocol).items():
                ods_threshold = value_at(run_scores_by_part[part], "ods.threshold")
                curve = scores.get("curve")
                if ods_threshold is not None and isinstance(curve, PRCurve):
                    scores = {**scores, AT_ODS: curve.at(ods_threshold)["f"]}
                for key in keys:
                    array = value_at(scores, key)  # None if the part does not have the score
                    if array is not None:
                        values.setdefault(part, {}).setdefault(key, []).extend(array.tolist())
        self._images[metric] = values
        return values

    def per_image(self, metric: str) -> Table:
        """Return a table of all scores of a metric, with a row per image and class or other part.

        Undefined values are None. Raises DataError if the run does not have the metric.
        """
        from bsdsbench.results.image_tables import per_image

        return per_image(self, metric)

    def stack(self, metric: str) -> Counts:
        """Return the counts of a metric for all N images: read-only arrays (N, ...) by name.

        Arrays that are the same for all images, such as thresholds, have no axis N. The result is
        cached. Raises DataError if the run has no counts of the metric.
        """
        if not self.records or metric not in self.metrics:
            known = ", ".join(self.metrics if self.records else ()) or "none"
            raise DataError(f"{self.name}: no {metric} counts, expected a metric it has: {known}")
        if metric not in self._stacks:
            counts = [record.counts[metric] for record in self.records]
            self._stacks[metric] = unchecked_counts(registry.get(metric).stack(counts))
        return self._stacks[metric]

    def equals(self, other: object) -> bool:
        """Return True if the protocols are equal and all records are (see `ImageRecord.equals`)."""
        if not isinstance(other, Evaluation) or self.protocol != other.protocol:
            return False
        is_as_long = len(self.records) == len(other.records)
        return is_as_long and all(map(ImageRecord.equals, self.records, other.records))

    def numbers(self) -> dict[str, float]:
        """Return all numbers in the scores as {METRIC.SCORE: value}, such as "boundary.ods.f"."""
        return Score({metric: self.score(metric) for metric in self.metrics}).numbers()

    def scores(self) -> dict[str, dict[str, object]]:
        """Return the scores of each metric as nested dicts for JSON, as in result.json."""
        return {metric: self.score(metric).to_mapping() for metric in self.metrics}

    def save(self, folder: str | Path, progress: Progress | None = None) -> Path:
        """Write result.json, counts.npz and the metrics' own files into a folder.

        Parameters
        ----------
        folder : str or path
            The folder, which is created if it does not exist. It is returned as a Path.
        progress : callable, optional
            Called with (files written, approximate total, name of the file).

        Raises
        ------
        DataError
            If the run was loaded from official result tables and has no counts per image.
        RunLockedError
            If another process is writing to the folder.
        """
        if self.reported:
            self.require_records()
        out = check_path(folder, "folder")
        save_run(self, out, progress)
        return out

    def share(self, path: str | Path, licence: str = "", citation: str = "") -> Path:
        """Write the run to one small file, which others can compare with their runs.

        It does not contain the paths of your folders. `load` restores the run bit for bit, also
        from a URL.

        Parameters
        ----------
        path : str or path
            The file, such as mine.bsds.npz. It is returned as a Path.
        licence, citation : str
            The terms of use of the counts, and how to cite them.

        Raises
        ------
        DataError
            If the run has no counts per image, or the name does not end in .npz.

        Examples
        --------
        >>> import tempfile, pathlib
        >>> import numpy as np
        >>> from bsdsbench import Evaluation, evaluate_items
        >>> run = evaluate_items([("a", np.eye(20), [np.eye(20)])], workers=1)
        >>> file = run.share(pathlib.Path(tempfile.mkdtemp(), "a.bsds.npz"), licence="CC0-1.0")
        >>> Evaluation.load(file).equals(run), Evaluation.load(file).provenance.licence
        (True, 'CC0-1.0')
        """
        return sharing.share_run(self, path, licence, citation)

    def flat(self, prefix: str = "", *, per_class: bool = False) -> dict[str, float]:
        """Return all finite scores as a flat dict {METRIC/SCORE: value} for experiment trackers.

        Characters that MLflow rejects in names are replaced by "_". If two names become equal,
        another "_" is appended to the second.

        Parameters
        ----------
        prefix : str
            The beginning of every name, such as "val/".
        per_class : bool
            Include the scores of classes and other parts, as METRIC/PART/SCORE.

        Examples
        --------
        >>> round(Evaluation.load("ref:hed").flat(prefix="val/")["val/boundary/ods"], 3)
        0.78
        """
        return logged_scores(self, prefix, per_class)

    def to_mapping(self) -> dict[str, object]:
        """Return the content of result.json as a dict for JSON. Undefined scores are None."""
        images: list[dict[str, Any]] = []
        for r in self.records:
            images.append({"id": r.image_id, "size": list(r.size), "fingerprint": r.fingerprint})
            if r.groups:
                images[-1]["groups"] = dict(r.groups)
        scores = {}
        for metric in self.metrics:
            scores[metric] = self.score(metric).to_mapping()
            rows = self.image_scores(metric).values() if self.records else ()
            for image, values in zip(images, rows, strict=True):
                image[metric] = {}
                for key, value in values.items():
                    image[metric][key] = None if isnan(value) else value
        return {
            "schema": SCHEMA,
            "bsdsbench": __version__,
            "name": self.name,
            "signature": str(self.signature),
            "set": self.identity.to_mapping() if self.identity else None,
            "read_as": self.read_as,
            "tasks": list(map(attrgetter("name"), self.tasks)),
            "protocol": self.protocol.to_mapping(),
            "metrics": list(self.metrics),
            "scores": scores,
            "n_images": len(self.records),
            "images": images,
            "failed": self.failed,
            "left_out": self.left_out,
            "provenance": self.provenance.to_mapping(),
        }

    @classmethod
    def load(cls, folder: str | Path) -> Evaluation:
        """Load a finished run.

        Parameters
        ----------
        folder : str or path
            One of

            - a folder written by `save`
            - a file written by `share`, or its https URL
            - the name of a reference run, `ref:NAME`
            - a folder of official result files: ID_ev1.txt with counts, or eval_*.txt with scores

        Raises
        ------
        FileFormatError
            If a file is missing or damaged, or the run was not finished.
        DataError
            If the reference run is unknown, or the URL cannot be read.
        """
        if sharing.is_address(folder):
            return cls(**sharing.read_shared_run(sharing.download_shared_run(str(folder))))
        path = check_path(folder, "folder")
        if str(folder).startswith("ref:"):
            return cls(**reference_run(str(folder)))
        if path.is_file():
            return cls(**sharing.read_shared_run(path))
        if is_run(path):
            return cls(**read_result(path))
        if path.is_dir():
            return cls(**official_run(path))
        expected = "expected the folder of a finished run, or a file of `bsdsbench share`"
        raise FileFormatError(f"{show(path)}: does not exist, {expected}")
