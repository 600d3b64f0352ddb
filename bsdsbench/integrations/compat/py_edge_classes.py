"""SBDEvaluator and CityscapesEvaluator of pyEdgeEval: boundaries of every class."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from bsdsbench.files.errors import DataError, ShapeError
from bsdsbench.integrations.compat.py_edge_eval import named_scores
from bsdsbench.integrations.compat.shared import thresholds_of, write_official
from bsdsbench.loaders import load_prediction
from bsdsbench.loaders.groundtruth import read_truth
from bsdsbench.loaders.images import read_image
from bsdsbench.loaders.inputs import GroundTruth, Prediction
from bsdsbench.loaders.official_txt import safe_name
from bsdsbench.loaders.pairing import Pair, read_split
from bsdsbench.metrics import registry
from bsdsbench.protocol.protocol import Protocol
from bsdsbench.runs.evaluation import Evaluation
from bsdsbench.runs.executors import available_cores
from bsdsbench.runs.streaming import measure

METRIC = "semantic"


class ClassesEvaluator(ABC):
    """What the two evaluators share: samples, parameters, and one call per class or for all.

    Predictions lie in PRED_ROOT/class_001 and so on, one picture per image.
    """

    PRED_SUFFIX: str
    PRESET: str
    DRAWN: ClassVar[dict[str, Any]]
    SCALE = 1.0
    MAX_DIST = 0.02
    MODES_FIX_DIST = False

    def __init__(
        self,
        dataset_root: str | Path,
        pred_root: str | Path,
        split: str = "val",
        thin: bool = False,
        *,
        pred_suffix: str | None = None,
        strict: bool = False,
    ) -> None:
        self.dataset_root, self.pred_root = Path(dataset_root), Path(pred_root)
        self.split, self.thin, self.strict = split, thin, strict
        self.CLASSES = registry.get(METRIC).class_names(Protocol.preset(self.PRESET))
        self.pred_suffix = pred_suffix or self.PRED_SUFFIX
        self.sample_names: list[str] | None = None
        self.set_eval_params()

    @abstractmethod
    def _all_names(self) -> list[str]:
        """The names of the split."""

    @abstractmethod
    def _truth(self, name: str, protocol: Protocol) -> GroundTruth:
        """One image's ground truth."""

    def set_sample_names(
        self, sample_names: Iterable[str] | None = None, split_file: str | Path | None = None
    ) -> None:
        """Choose the images; by default all of the split.

        Parameters
        ----------
        sample_names : sequence of str, optional
            Image names.
        split_file : path, optional
            A file with one name per line; used without `sample_names`.
        """
        if sample_names is None and split_file is not None:
            sample_names = read_split(split_file)
        self.sample_names = None if sample_names is None else list(sample_names)

    def set_eval_params(
        self,
        eval_mode: str | None = None,
        scale: float | None = None,
        apply_thinning: bool = False,
        apply_nms: bool = False,
        instance_sensitive: bool = True,
        max_dist: float | None = None,
        skip_if_nonexistent: bool = False,
        kill_internal: bool = False,
    ) -> None:
        """Choose how images are evaluated.

        Parameters
        ----------
        eval_mode : str, optional
            "pre-seal": boundaries of classes alone, tolerance 0.02, predictions inside objects
            taken out, images without a class left out of it. "post-seal": none of these but, for
            SBD, the tolerance; without `instance_sensitive` all but, for Cityscapes, the tolerance.
            None: as the other arguments say.
        scale : float, optional
            Only the data set's usual one: 1 for SBD, 0.5 for Cityscapes.
        apply_thinning : bool
            Thin the thresholded maps. What the ground truth is, `thin` of the evaluator says.
        apply_nms : bool
            Apply edge NMS to the maps first.
        instance_sensitive : bool
            Boundaries between instances of a class count.
        max_dist : float, optional
            Match tolerance, a fraction of the image diagonal; by default 0.02 for SBD, 0.0035 for
            Cityscapes.
        skip_if_nonexistent, kill_internal : bool
            Leave images without a class out of it; take out predictions inside objects.

        Raises
        ------
        DataError
            For another mode or scale.
        """
        if eval_mode not in (None, "pre-seal", "post-seal"):
            raise DataError(f"eval_mode {eval_mode!r}: expected pre-seal, post-seal or None")
        if scale not in (None, self.SCALE):
            raise DataError(f"scale {scale:g}: expected {self.SCALE:g}")
        before, after = eval_mode == "pre-seal", eval_mode == "post-seal"
        instance_sensitive = instance_sensitive and not before
        if before or after:
            skip_if_nonexistent = kill_internal = not instance_sensitive
        given = self.MAX_DIST if max_dist is None else max_dist
        if before or (after and self.MODES_FIX_DIST):
            given = 0.02
        self._changes = {"max_dist": given, "nms": apply_nms, "thin": apply_thinning}
        self._semantic = {
            "instances": instance_sensitive,
            "interior": "kill" if kill_internal else "keep",
            "absent": "skip" if skip_if_nonexistent else "count",
        }

    def protocol(self, thresholds: int | Sequence[float] = 99) -> Protocol:
        """What is evaluated by.

        Parameters
        ----------
        thresholds : int or sequence of float
            Number of even thresholds, or their values.

        Returns
        -------
        Protocol
            The preset of this package with pyEdgeEval's ground truth and the parameters chosen.
        """
        drawn = {"radius": 1 if self.thin else 2, "thin_gt": self.thin, "ignored_rule": "span"}
        semantic = {**drawn, "resize": "nearest", **self.DRAWN, **self._semantic}
        found = Protocol.preset(self.PRESET).replace(
            thresholds=thresholds_of(thresholds), options={METRIC: semantic}, **self._changes
        )
        return registry.settled(found)

    def evaluate_category(
        self,
        category: int,
        thresholds: int | Sequence[float] = 99,
        nproc: int | None = None,
        save_dir: str | Path | None = None,
    ) -> dict[str, float]:
        """Evaluate one class.

        Parameters
        ----------
        category : int
            Number of the class, from 1.
        thresholds : int or sequence of float
            Number of even thresholds, or their values.
        nproc : int, optional
            Images at a time; by default all cores. It does not change the result.
        save_dir : path, optional
            Folder for the official result files, in class_015 and so on.

        Returns
        -------
        dict of str to float
            ODS_threshold, ODS_recall, ODS_precision, ODS_f1, OIS_recall, OIS_precision, OIS_f1,
            AUC, AP.

        Raises
        ------
        DataError
            For missing or broken files, or a class without ground truth in these images.
        """
        found = self.evaluate([category], thresholds, nproc, save_dir)
        return found[self.CLASSES[category - 1]]

    def evaluate(
        self,
        categories: Sequence[int] | None = None,
        thresholds: int | Sequence[float] = 99,
        nproc: int | None = None,
        save_dir: str | Path | None = None,
    ) -> dict[str, dict[str, float]]:
        """Evaluate several classes.

        Parameters
        ----------
        categories : sequence of int, optional
            Numbers of the classes, from 1; by default all.
        thresholds, nproc, save_dir : various
            As in `evaluate_category`.

        Returns
        -------
        dict of str to dict
            Class name to what `evaluate_category` returns; classes without ground truth are left
            out.

        Raises
        ------
        DataError
            As `evaluate_category`.
        """
        count = len(self.CLASSES)
        wanted = range(1, count + 1) if categories is None else list(categories)
        if not wanted or not all(1 <= category <= count for category in wanted):
            raise DataError(f"categories {list(wanted)}: expected numbers from 1 to {count}")
        run = self.run(wanted, thresholds, nproc)
        scores = run.score(METRIC).per_class
        names = {self.CLASSES[category - 1]: f"class_{category:03d}" for category in wanted}
        there = {name: folder for name, folder in names.items() if name in scores}
        if not there:
            raise DataError(f"{', '.join(names)}: no ground truth in these images")
        if save_dir is not None:
            write_official(run, save_dir, {safe_name(name): to for name, to in there.items()})
        return {name: named_scores(scores[name], self.strict) for name in there}

    def run(
        self,
        categories: Iterable[int],
        thresholds: int | Sequence[float] = 99,
        nproc: int | None = None,
    ) -> Evaluation:
        """The evaluation behind the scores, with all that this package offers on it.

        Parameters
        ----------
        categories : sequence of int
            Numbers of the classes whose predictions are read, from 1; the others count as empty.
        thresholds, nproc : various
            As in `evaluate_category`.

        Returns
        -------
        Evaluation
            The run, with the metric semantic.

        Raises
        ------
        DataError
            For missing or broken files, all of them listed.
        """
        protocol, chosen = self.protocol(thresholds), set(categories)
        names = self.sample_names if self.sample_names is not None else self._all_names()
        if not names:
            raise DataError(f"{self.dataset_root}: no images, expected at least one")
        faults: list[DataError] = []

        def one(name: str) -> Any:
            try:
                truth = self._truth(name, protocol)
                pred = self._prediction(name, chosen)
                return measure(pred, truth, name, protocol, (METRIC,))
            except DataError as error:
                faults.append(error)

        with ThreadPoolExecutor(nproc or available_cores()) as pool:
            records = list(pool.map(one, names))
        if faults:
            raise DataError.collect(sorted(faults, key=str))
        return Evaluation(protocol, self.pred_root.name, records)

    def _prediction(self, name: str, chosen: set[int]) -> Prediction:
        maps: dict[int, Any] = {}
        for category in sorted(chosen):
            path = self.pred_root / f"class_{category:03d}" / f"{name}{self.pred_suffix}"
            maps[category] = load_prediction(path).soft
        shapes = {m.shape for m in maps.values()}
        if len(shapes) > 1:
            raise ShapeError(f"{name}: maps of sizes {sorted(shapes)}, expected one size")
        size, kind = next((m.shape, m.dtype) for m in maps.values())
        stack = np.zeros((len(self.CLASSES), *size), kind)
        for category, one in maps.items():
            stack[category - 1] = one
        return Prediction(name, classes=stack)


class SBDEvaluator(ClassesEvaluator):
    """Evaluate boundaries of the 20 SBD classes with pyEdgeEval's calls.

    Parameters
    ----------
    dataset_root : path
        The folder that holds cls, inst and val.txt.
    pred_root : path
        Folder of the predictions: class_001/ID.png and so on.
    split : str
        Name of the split's file without its suffix.
    thin : bool
        The boundaries of the ground truth are drawn 1 pixel to each side and thinned, else 2 pixels
        to each side.
    pred_suffix : str, optional
        Suffix of the predictions.
    strict : bool
        As in `BSDS500Evaluator`.

    Notes
    -----
    The protocol is pyEdgeEval's: boundaries are drawn from the label maps with a frame of 5 ignored
    pixels, predictions are 0 there, and the tolerance is that of the full size. SEAL's own protocol
    is the preset `sbd-seal` or `sbd-seal-raw`.

    Examples
    --------
    >>> from bsdsbench.integrations.compat import SBDEvaluator
    >>> evaluator = SBDEvaluator("SBD/dataset", "results", thin=True)
    >>> evaluator.set_eval_params(eval_mode="pre-seal", apply_thinning=True)
    >>> evaluator.evaluate_category(15, thresholds=99)["ODS_f1"]    # doctest: +SKIP
    """

    PRED_SUFFIX = ".png"
    PRESET = "sbd-seal"
    DRAWN: ClassVar[dict[str, Any]] = {"border_rule": "ignore"}
    MODES_FIX_DIST = True

    def _all_names(self) -> list[str]:
        return read_split(self.dataset_root / f"{self.split}.txt")

    def _truth(self, name: str, protocol: Protocol) -> GroundTruth:
        path = self.dataset_root / "cls" / f"{name}.mat"
        instances = registry.get(METRIC).reads_instances(protocol)
        return read_truth(Pair(name, (), (path,)), "classes", protocol, instances)


class CityscapesEvaluator(ClassesEvaluator):
    """Evaluate boundaries of the 19 Cityscapes classes with pyEdgeEval's calls.

    Parameters
    ----------
    dataset_root : path
        The folder that holds gtFine.
    pred_root : path
        Folder of the predictions: class_001/CITY/NAME_leftImg8bit.png and so on.
    split : str
        Folder of gtFine.
    thin : bool
        As in `SBDEvaluator`.
    pred_suffix : str, optional
        What follows CITY/NAME in the names of the predictions.
    strict : bool
        As in `BSDS500Evaluator`.

    Notes
    -----
    Boundaries are drawn from gtFine_labelIds and gtFine_instanceIds as pyEdgeEval draws them, and
    then halved: no folder of converted boundaries is needed. SEAL's own protocol is the preset
    `cityscapes` or `cityscapes-raw`.

    Examples
    --------
    >>> from bsdsbench.integrations.compat import CityscapesEvaluator
    >>> evaluator = CityscapesEvaluator("cityscapes", "results", thin=True)
    >>> evaluator.evaluate_category(14, thresholds=99)["ODS_f1"]    # doctest: +SKIP
    """

    PRED_SUFFIX = "_leftImg8bit.png"
    PRESET = "cityscapes"
    DRAWN: ClassVar[dict[str, Any]] = {"scaled": "boundaries"}
    SCALE, MAX_DIST = 0.5, 0.0035

    def _all_names(self) -> list[str]:
        found = sorted(self._folder.glob("*/*_gtFine_labelIds.png"))
        return [f"{p.parent.name}/{p.name.removesuffix('_gtFine_labelIds.png')}" for p in found]

    @property
    def _folder(self) -> Path:
        return self.dataset_root / "gtFine" / self.split

    def _truth(self, name: str, protocol: Protocol) -> GroundTruth:
        maps = [
            read_image(self._folder / f"{name}_gtFine_{kind}Ids.png", indices=True)
            for kind in ("label", "instance")
        ]
        return GroundTruth(name, labels=maps[0], instances=maps[1])
