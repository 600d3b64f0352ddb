"""An evaluation: a protocol and one record per image, with scores, storage and sums."""

from __future__ import annotations

import os
from collections.abc import Collection, Sequence, Set
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import chain, pairwise, zip_longest
from operator import attrgetter
from pathlib import Path
from typing import Any

from bsdsbench import __version__
from bsdsbench.arguments import given_list, given_path, kind_of_value
from bsdsbench.errors import DataError, FileFormatError, InputWarning, MergeError
from bsdsbench.io import FaultError, Progress, as_json, entries, entry, reading, write_atomic
from bsdsbench.loaders.reading import Readings, read_as, verdict
from bsdsbench.loaders.sets.identity import Identity, identify
from bsdsbench.metrics import registry
from bsdsbench.metrics.base import AT_ODS
from bsdsbench.metrics.optional import ChecksSet, ResultFiles
from bsdsbench.protocol.protocol import Protocol
from bsdsbench.protocol.signature import UNKNOWN, Signature
from bsdsbench.protocol.tasks import Task, tasks
from bsdsbench.results.groups import group_rows, records_with_groups
from bsdsbench.results.references import (
    NOT_STATED,
    PREFIX,
    Reference,
    official_run,
    reference_run,
    references,
)
from bsdsbench.results.sharing import (
    download_shared_run,
    is_address,
    pack_shared_run,
    read_shared_run,
)
from bsdsbench.results.storage import (
    RESULT,
    SCHEMA,
    Provenance,
    columns_of,
    is_run,
    npz_bytes,
    read_result,
    writing_result,
)
from bsdsbench.scores.counts import Counts, ImageRecord, Score, counts_of, part_of, value_at
from bsdsbench.scores.curve import BoundaryScore, PRCurve
from bsdsbench.tables.read_only import ReadOnlyDict
from bsdsbench.tables.result_object import TabularResult
from bsdsbench.tables.table import Table
from bsdsbench.text import show


@dataclass(frozen=True, eq=False, repr=False)
class Evaluation(TabularResult):
    """Records of one method on one data set under one protocol, sorted by image id.

    Without records there are no metrics, and the scores raise DataError.

    Parameters
    ----------
    protocol : Protocol
        The constants the counts were made with.
    name : str
        The name in tables and legends.
    records : sequence of ImageRecord
        One record per image.
    provenance : Provenance
        Where the inputs came from.
    failed : dict of str to str
        Images that could not be evaluated, with the reason.
    places : dict of str to str
        Absolute paths of the folders in `provenance`; in result.json they are relative to it, so
        that they are found from anywhere, and after all was moved together.
    kept : int
        How many records an earlier call had made; not part of the result.
    reported : dict of str to Score
        Metric -> score, where official tables are all that is known of a run.

    Raises
    ------
    MergeError
        For a duplicate id, or counts of different metrics.

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
        if not isinstance(self.protocol, Protocol) or not isinstance(self.name, str):
            wrong = self.name if isinstance(self.protocol, Protocol) else self.protocol
            raise DataError(f"Evaluation: {kind_of_value(wrong)}, expected a Protocol and a name")
        records = given_list(self.records, "records", "ImageRecords")
        for record in records:
            if not isinstance(record, ImageRecord):
                raise DataError(f"records: {kind_of_value(record)}, expected ImageRecords")
            if record.counts.keys() != records[0].counts.keys():
                metrics, expected = ", ".join(record.counts), ", ".join(records[0].counts)
                raise MergeError(
                    f"{self.name}: image {record.image_id!r} has counts of "
                    f"{metrics or 'no metric'}, expected those of {records[0].image_id!r}: "
                    f"{expected or 'none'}"
                )
        records.sort(key=attrgetter("image_id"))
        object.__setattr__(self, "records", tuple(records))
        for name in ("failed", "places", "reported"):
            object.__setattr__(self, name, ReadOnlyDict(getattr(self, name)))
        for a, b in pairwise(self.image_ids):
            if a == b:
                raise MergeError(f"{self.name}: image {a!r} is a duplicate id, expected once")

    @cached_property
    def metrics(self) -> tuple[str, ...]:
        """Return the metrics of the run, in the order of tables."""
        return registry.in_order(self.records[0].counts if self.records else self.reported)

    @property
    def image_ids(self) -> list[str]:
        """Return the ids of the images, in order."""
        return list(map(attrgetter("image_id"), self.records))

    @property
    def left_out(self) -> dict[str, str]:
        """Return image id -> reason for images of the ground truth without counts, in order."""
        reasons = dict.fromkeys(self.provenance.no_prediction, "no prediction")
        reasons |= dict.fromkeys(self.provenance.empty_gt, "empty ground truth")
        return dict(sorted({**reasons, **self.failed}.items()))

    def with_groups(
        self,
        groups: object = None,
        group_by: str | None = None,
        others: Collection[str] | None = (),
    ) -> Evaluation:
        """Return the run with the groups of its images, beside those that they have.

        Parameters
        ----------
        groups : path, mapping or data frame, optional
            The table of groups, see `results.groups.group_rows`.
        group_by : str, optional
            A regular expression with named groups, found in each id.
        others : collection of str or None
            Images beside its own that rows may name; None: any, as for a shard or a split.

        Raises
        ------
        DataError
            For an image without a row, a row without an image, a column twice.

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
        known = None if others is None or origin.shard or origin.split or origin.task else {*others}
        known = None if known is None else known | self.left_out.keys()
        rows = group_rows(self.image_ids, groups, group_by, known)
        return replace(self, records=records_with_groups(rows, self.records, self.name))

    def require_records(self) -> None:
        """Raise DataError for a run of which nothing is known but official tables."""
        if not self.records:
            raise DataError(f"{self.name}: no counts per image, expected a run with them")

    def may_lack(self, ids: Set[str]) -> bool:
        """Return True if the run was allowed to leave these images out."""
        known = {*self.failed, *self.provenance.empty_gt}
        return self.provenance.missing == "skip" or ids <= known

    def place(self, what: str) -> str | None:
        """Return the folder "pred", "gt", "photos" or "valid", now or as given; None if unknown."""
        here = self.places.get(what)
        return here if here and Path(here).is_dir() else getattr(self.provenance, what)

    @cached_property
    def identity(self) -> Identity | None:
        """Return the ground-truth set of the run, or None if the records do not tell."""
        truths = dict(map(attrgetter("image_id", "truth"), self.records))
        return identify(truths) if truths and all(truths.values()) else None

    @property
    def set_line(self) -> str:
        """Return the ground-truth set in words, or "" if the set is unknown."""
        return self.identity.describe() if self.identity else ""

    @cached_property
    def tasks(self) -> tuple[Task, ...]:
        """The tasks that it belongs to: it has the complete set, the protocol and the metric.

        The fingerprint identifies the set. Without one, or for a task that is not known here, the
        run's own statement counts, if it can be read.
        """
        if not self.records or not self.protocol.stated or self.failed:
            return ()
        known, stated, identity, belonging = dict(tasks()), self.provenance.task, self.identity, []
        if stated is not None:
            known[stated.name] = stated
        for task in known.values():
            same = task.protocol == self.protocol.name or self.reference
            if task.metric not in self.metrics or not same:
                continue
            if task.fingerprint is not None:
                complete = identity is not None and identity.fingerprint == task.fingerprint
            else:
                listed = not task.ids or set(task.ids) == set(self.image_ids)
                complete = stated == task and listed and task.images in (None, len(self.records))
            if complete:
                belonging.append(task)
        return tuple(belonging)

    @property
    def readings(self) -> Readings | None:
        """Return how the values of predictions and ground truth are read; None without records."""
        return next(iter(self._readings_of_metrics()), None)

    def _readings_of_metrics(self) -> list[Readings]:
        origin, readings = self.provenance, list[Readings]()
        for metric in registry.readers(self.metrics):
            of_metric = metric.readings(self.protocol, origin.pred_kind or "")
            readings.append(of_metric.with_layouts(origin.pred_layout, origin.gt_layout))
        return readings

    @cached_property
    def read_as(self) -> str:
        """The readings in a line; "" where it is not known what the files show.

        Those of further metrics follow where these read the files otherwise.
        """
        return read_as(self._readings_of_metrics(), self.records)

    def verdict(self) -> list[InputWarning]:
        """Return what looks wrong with the whole set; nothing for a shard, which `merge` completes.

        Raises DataError where the files of a side have no one reading, or make no sequences.
        """
        if self.provenance.shard or not self.records:
            return []
        warnings = verdict(self._readings_of_metrics(), self.records)
        for metric in map(registry.get, self.metrics):
            if isinstance(metric, ChecksSet):
                opt, stack = metric.options_of(self.protocol), self.stack(metric.name)
                warnings += metric.check_set(self.image_ids, stack, opt)
        return warnings

    @cached_property
    def reference(self) -> Reference | None:
        """Return the description of a reference run, or None for any other run."""
        return references().get(self.provenance.reference or "")

    @property
    def by_official_solver(self) -> bool:
        """Return True if the counts come from the official program, whose matching is random."""
        return self.reference is not None or self.provenance.official is not None

    @property
    def described(self) -> str:
        """Return the protocol and the rules of the scores in words."""
        return registry.describe(self.metrics, self.protocol)

    @property
    def with_curve(self) -> tuple[str, ...]:
        """Return the metrics that have a precision-recall curve."""
        return registry.with_curve(self.metrics, self.protocol)

    @cached_property
    def signature(self) -> Signature:
        """Return the signature, a line with everything that the scores depend on."""
        identity, n = self.identity, len(self.records)
        detector = self.provenance.detector or {}
        taken, scales = detector.get("taken_over"), detector.get("scales")
        forms = sorted(set(map(attrgetter("form"), self.records)) - {"none"})
        if not any(forms[:1]):
            forms[:1] = [UNKNOWN]
        unused = registry.unused(tuple(self.records[0].counts) if n else (), self.protocol)
        known = identity.to_mapping() if identity and identity.name else None
        return Signature(
            self.protocol,
            f"{known['set']}:{n}/{known['of']}" if known else f"set:{n}",
            identity.fingerprint[:8] if identity else UNKNOWN,
            pred="+".join(forms),
            match="random" if self.reference else "1to1",
            maps=f"{taken} taken over" if isinstance(taken, int) and 0 < taken <= n else "",
            ms=scales if isinstance(scales, str) else "",
            valid="masks" if self.provenance.valid else "",
            unused=unused | NOT_STATED if self.reference else unused,
            named=registry.signed_options(self.metrics if n else (), self.protocol),
        )

    @property
    def signature_line(self) -> str:
        """Return the signature as it is printed, or "" for official tables without counts."""
        return str(self.signature) if self.records else ""

    def __repr__(self) -> str:
        """Return one line: name, number of images and the main scores."""
        parts = []
        for metric in self.metrics:
            columns, named = registry.get(metric).columns, []
            for c in [c for c in columns if c.shown == "always" and c.score][:4]:
                value = value_at(self.score(metric).to_mapping(), c.key)
                shown = "-" if value is None else f"{value:.3f}"
                named.append(f"{c.short or c.heading} {shown}")
            parts.append(f"{metric} {', '.join(named)}")
        scores = "; ".join(parts) or "no scores"
        failed = f", {len(self.failed)} left out" if self.failed else ""
        return f"<Evaluation {self.name!r}, {len(self.records)} images{failed}: {scores}>"

    def tables(self) -> list[Table]:
        """Return a table of scores per metric, and last a table of all images ("images")."""
        from bsdsbench.results.image_tables import image_table
        from bsdsbench.results.score_tables import score_tables

        return [*score_tables([self]), image_table(self)] if self.records else []

    def score(self, metric: str) -> Score:
        """The `Score` of a metric, such as "boundary". Raises DataError if the run has not it."""
        if metric in self.reported:
            return self.reported[metric]
        if metric not in self._scores:
            self._scores[metric] = registry.get(metric).score_of(self.stack(metric), self.protocol)
        return self._scores[metric]

    def boundary_score(self) -> BoundaryScore:
        """Return ODS, OIS, AP and R50 of the boundary benchmark, as score("boundary") does."""
        return BoundaryScore(self.score("boundary"))

    def image_scores(self, metric: str) -> dict[str, dict[str, float]]:
        """Return image id -> {key of a score: value} under a metric, in the order of ids.

        Undefined values are NaN. Raises DataError if the run does not have the metric.
        """
        if not self.records:
            return dict(self.reported[metric].get("images", ())) if metric in self.reported else {}
        values = self.image_values(metric).get("", {})
        keys = [c.key for c in registry.get(metric).image_columns if c.key in values]
        images = enumerate(self.image_ids)
        return {image_id: {key: values[key][i] for key in keys} for i, image_id in images}

    def image_values(self, metric: str) -> dict[str, dict[str, list[Any]]]:
        """Return part -> key of a score -> values of all images. The overall part is ""."""
        if metric in self._images:
            return self._images[metric]
        scorer = registry.get(metric)
        parts = {"": (), **scorer.parts(self.protocol, scorer.options_of(self.protocol))}
        keys = scorer.columns_of(self.score(metric)), scorer.image_columns, scorer.part_columns
        columns = list(chain(*keys))
        values: dict[str, dict[str, list[Any]]] = {}
        for tree in scorer.image_scores(self.stack(metric), self.protocol):
            for part, path in parts.items():
                scores = dict(part_of(tree, path) or {})
                threshold = value_at(part_of(self.score(metric), path) or {}, "ods.threshold")
                if threshold is not None and isinstance(scores.get("curve"), PRCurve):
                    scores[AT_ODS] = scores["curve"].at(threshold).f
                for key in dict.fromkeys(map(attrgetter("key"), columns)):
                    if (of_images := value_at(scores, key)) is not None:
                        values.setdefault(part, {}).setdefault(key, []).extend(of_images.tolist())
        self._images[metric] = values
        return values

    def per_image(self, metric: str) -> Table:
        """Every score of every image: a row an image, and one for each of its classes or parts.

        Undefined values are empty. Raises DataError if the run does not have the metric.

        Examples
        --------
        >>> import numpy as np
        >>> from bsdsbench import evaluate_items
        >>> run = evaluate_items([("a", np.eye(20), [np.eye(20)])], workers=1)
        >>> table = run.per_image("boundary")
        >>> table.columns[1].key, table.rows[0][:2]
        ('ods', ['a', 1.0])
        """
        from bsdsbench.results.image_tables import per_image

        return per_image(self, metric)

    def stack(self, metric: str) -> Counts:
        """Return the counts of all images as read-only arrays, name -> (N, ...).

        Raises DataError if the run does not have the metric.
        """
        if not self.records or metric not in self.metrics:
            had = ", ".join(self.metrics * bool(self.records)) or "none"
            raise DataError(f"{self.name}: no {metric} counts, expected a metric it has: {had}")
        if metric not in self._stacks:
            counts = [r.counts[metric] for r in self.records]
            self._stacks[metric] = counts_of(registry.get(metric).stack(counts))
        return self._stacks[metric]

    def equals(self, other: object) -> bool:
        """Return True if protocol and all records are equal, bit for bit, except for times."""
        if not isinstance(other, Evaluation) or self.protocol != other.protocol:
            return False
        pairs = zip_longest(self.records, other.records)
        return all(a is not None and a.equals(b) for a, b in pairs)

    def numbers(self) -> dict[str, float]:
        """Return all numbers of the scores by METRIC.SCORE, such as "boundary.ods.f"."""
        scores = {metric: self.score(metric).numbers() for metric in self.metrics}
        return {f"{m}.{key}": number for m in scores for key, number in scores[m].items()}

    def scores(self) -> dict[str, dict[str, object]]:
        """Return metric -> plain values, the `scores` object of result.json."""
        return {metric: self.score(metric).to_mapping() for metric in self.metrics}

    def save(self, folder: str | Path, progress: Progress | None = None) -> Path:
        """Write result.json, counts.npz, timing.json and the metrics' own files into `folder`.

        result.json is removed first and written last: a folder without it is not a result.
        Returns the folder. Raises RunLockedError while others write there, OSError.

        Parameters
        ----------
        folder : str or path
            Made if missing.
        progress : callable, optional
            Called with (files written, about how many, name).
        """
        if self.reported:
            self.require_records()
        out, stacks = Path(folder), {metric: self.stack(metric) for metric in self.metrics}
        counts = npz_bytes(columns_of(self.records, stacks))
        places = dict(self.places)
        for side, path in self.places.items():
            with suppress(ValueError):  # on another drive
                places[side] = Path(os.path.relpath(path, out.resolve())).as_posix()
        content = {**self.to_mapping(), **({"places": places} if places else {})}
        total = len(self.records)
        with writing_result(out, content, counts) as write:
            for metric in map(registry.get, self.metrics):
                if not isinstance(metric, ResultFiles):
                    continue
                score, options = self.score(metric.name), metric.options_of(self.protocol)
                given = score, self.image_ids, stacks[metric.name], self.protocol, options
                files = metric.files(*given)
                for done, (name, text) in enumerate(files, 1):
                    write(name, text)
                    if progress:
                        progress(min(done, total), total, name)
            times = {r.image_id: round(r.seconds, 4) for r in self.records}
            write("timing.json", as_json({"seconds": times}))
        self._stacks.clear()  # as large as the records
        return out

    def share(self, path: str | Path, licence: str = "", citation: str = "") -> Path:
        """Write the run into one small file that others can compare with theirs.

        It holds counts, protocol, readings, signature and the fingerprint of the ground truth, and
        no path of yours; `load` reads it back bit for bit, also from an address. Returns the path.
        Raises DataError for a run without counts and for a name that does not end in .npz.

        Parameters
        ----------
        path : str or path
            Such as mine.bsds.npz.
        licence, citation : str
            The terms of the counts, and the text to cite them by.

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
        self.require_records()
        target = given_path(path, "path")
        if target.suffix != ".npz":
            raise DataError(f"{show(target)}: expected a name that ends in .npz")
        arrays = columns_of(self.records, {m: self.stack(m) for m in self.metrics})
        write_atomic(target, pack_shared_run(self.to_mapping(), arrays, licence, citation))
        return target

    def flat(self, prefix: str = "", *, per_class: bool = False) -> dict[str, float]:
        """Return the defined scores as trackers log them: floats by PREFIX METRIC/SCORE.

        Names are those that MLflow takes, with "_" for other characters, and no two are one.

        Parameters
        ----------
        prefix : str
            What every name begins with, such as "val/".
        per_class : bool
            The scores of classes and other parts too, as METRIC/PART/SCORE.

        Examples
        --------
        >>> round(Evaluation.load("ref:hed").flat(prefix="val/")["val/boundary/ods"], 3)
        0.78
        """
        from bsdsbench.results.score_names import named_scores

        return named_scores(self, prefix, per_class)

    def to_mapping(self) -> dict[str, object]:
        """Return the content of result.json as plain values, ready for JSON."""
        images = list[dict[str, Any]]()
        for r in self.records:
            images.append(dict(id=r.image_id, size=list(r.size), fingerprint=r.fingerprint))
            images[-1] |= {"groups": dict(r.groups)} if r.groups else {}
        for metric in self.metrics if self.records else ():
            for row, scores in zip(images, self.image_scores(metric).values(), strict=True):
                row[metric] = {k: None if v != v else v for k, v in scores.items()}
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
            "scores": self.scores(),
            "n_images": len(self.records),
            "images": images,
            "failed": self.failed,
            "left_out": self.left_out,
            "provenance": self.provenance.to_mapping(),
        }

    @classmethod
    def load(cls, folder: str | Path) -> Evaluation:
        """Read a finished run: what `save` wrote, or official files by any program.

        A folder of ID_ev1.txt has the counts of each image; eval_*.txt alone give a curve and
        scores (`reported`). Raises FileFormatError naming the file and the fault, DataError for
        an unknown reference run.

        Parameters
        ----------
        folder : str or path
            The folder; or a file of `share`, its address (https://...), or `ref:NAME`, a reference
            run.
        """
        path = (
            download_shared_run(str(folder)) if is_address(folder) else given_path(folder, "folder")
        )
        if str(folder).startswith(PREFIX):
            return cls(**reference_run(str(folder)))
        if path.is_file():
            return cls(**read_shared_run(path))
        if not is_run(path):
            if not path.is_dir():
                raise FileFormatError(
                    f"{show(path)}: not there, expected the folder of a finished run, or a file of "
                    "`bsdsbench share`"
                )
            return cls(**official_run(path))
        content, records = read_result(path)
        with reading(path / RESULT, "the result of a run"):
            places = entries({"places": {}, **content}, "places", str).items()
            run = cls(
                registry.stored(entry(content, "protocol", dict)),
                entry(content, "name", str),
                records,
                Provenance.from_mapping(entry(content, "provenance", dict)),
                entries(content, "failed", str),
                {side: os.path.normpath(path.absolute() / place) for side, place in places},
            )
            if entry(content, "n_images", int) != len(run.records):
                raise FaultError(f"n_images is not the {len(run.records)} of counts.npz")
            return run
