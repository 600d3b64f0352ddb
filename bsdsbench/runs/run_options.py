# ruff: noqa: RUF009
"""What one may say about a run, written down once.

`RunOptions` gives the keywords of evaluate, evaluate_humans, evaluate_items, run and
StreamingEvaluator, their checks and their documentation, and the flags of the command line with
their help.
"""

from __future__ import annotations

import hashlib
import inspect
import json
import os
import re
from collections.abc import Callable, Iterable
from concurrent.futures import Executor
from functools import wraps
from numbers import Integral
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import attrs

from bsdsbench.files.bounded import show
from bsdsbench.files.errors import DataError, Problem, is_text
from bsdsbench.kernels import KERNEL_VERSION
from bsdsbench.metrics import registry

if TYPE_CHECKING:
    from bsdsbench.protocol.tasks import Task

T = TypeVar("T")
Folder = str | os.PathLike[str]
Progress = Callable[[int, int, str], None]  # (done, total, image id)
MAX_WORKERS = 4096
SPEED = "detector"  # in the provenance: what `bsdsbench run` measured
DASK = re.compile(r"thread|process|dask://[^/\s]+:[0-9]{1,5}/?")

Good = tuple[Callable[[Any], bool], str]  # a check, and what it expects, in words
TEXT: Good = (lambda v: isinstance(v, str) and v != "" and is_text(v), "text in UTF-8")
NAMES: Good = (lambda v: not isinstance(v, str) and isinstance(v, Iterable), "names in a list")
PATH: Good = (lambda v: isinstance(v, str | os.PathLike), "a path")


def whole(value: Any, most: int) -> bool:
    """True for a whole number from 1 to `most`."""
    return isinstance(value, Integral) and not isinstance(value, bool) and 1 <= int(value) <= most


def option(default: Any = None, good: Good | None = None, **flag: Any) -> Any:
    """An option: its check, and its flag; docs and help say what the docstring has."""
    if "choices" in flag and good is None:
        allowed = flag["choices"]
        good = lambda v: isinstance(v, str) and v in allowed, f"one of {', '.join(allowed)}"
    return attrs.field(default=default, metadata={"good": good, "flag": flag})


@attrs.frozen(kw_only=True, eq=False)
class RunOptions:
    """The options of a run, checked. Raises DataError that lists every wrong one, ProtocolError.

    Parameters
    ----------
    protocol : Protocol or str or None
        A Protocol or the name of a preset; default: that of the first metric.
    task : Task or str or path or None
        A set, a protocol and a metric by one name, or in a .toml file: gives protocol and metric,
        and the ground truth must be its set.
    metrics : str or sequence of str
        Names of metrics that read the same kind of ground truth.
    classes : sequence of str or None
        Names of the classes in the order of their labels from 0, for metrics of label maps;
        default: those of the protocol.
    name : str or None
        Name in tables; default: the last part of the folder's path that is no split, or the
        function's.
    split_file : path or None
        Text file of the ids to evaluate, one per line; default: all images.
    missing : str
        A missing prediction is an error, counts as an empty map (zero), or is left out (skip).
    pred_kind : str or None
        Whether pictures and arrays hold strengths (soft), region labels (labels) or classes;
        default: what the first metric expects.
    images_dir : path or None
        Folder of the pictures, for metrics that use them; default: beside the ground truth in BSDS
        layout.
    shard : tuple of int, int
        Evaluate part I of N of the images; merge joins them.
    on_error : str
        After all images: fail if some are bad, or leave those out and list them (skip).
    workers : int or None
        Number of images processed in parallel; default: all cores.
    executor : str or Executor or None
        Where to run: thread, process, dask://HOST:PORT, in Python also any
        concurrent.futures.Executor; default: threads, processes from 8 workers or 2,000
        images of folders on.
    out : path or None
        Folder for the results and for what is done so far, from which a later call goes on.
    fresh : bool
        Ignore the results of an earlier run in OUT.
    resume : bool
        Keep the maps that are in OUT, and make those that lack.
    tag : str or None
        What tells this detector from others of its name, such as a checkpoint: stands in
        maps/run.json.
    progress : callable or None
        Called with (done, total, image_id); total is done where the number is not known.
    ready : callable or None
        Called with the Evaluation once all is counted, before the files in OUT are written.
    """

    protocol: Any = option()
    task: Task | None = option(metavar="NAME|FILE")
    metrics: tuple[str, ...] = option(registry.DEFAULT)
    classes: tuple[str, ...] | None = option(None, NAMES)
    name: str = option(None, TEXT)
    split_file: Folder | None = option(None, PATH, path=True)
    missing: str = option("error", choices=("error", "zero", "skip"))
    pred_kind: str | None = option(
        None, (lambda v: isinstance(v, str), "a word"), choices=("soft", "labels")
    )
    images_dir: Folder | None = option(None, PATH, names=("--images",), path=True)
    shard: tuple[int, int] = option(
        (1, 1),
        (
            lambda v: isinstance(v, tuple) and len(v) == 2 and whole(v[1], 10**7) and whole(*v),
            "(I, N) with 1 <= I <= N",
        ),
        metavar="I/N",
    )
    on_error: str = option("fail", choices=("fail", "skip"))
    workers: int | None = option(
        None,
        (lambda v: whole(v, MAX_WORKERS), f"a number from 1 to {MAX_WORKERS}"),
        number=True,
        metavar="N",
    )
    executor: str | Executor | None = option(
        None,
        (
            lambda v: isinstance(v, Executor) or (isinstance(v, str) and bool(DASK.fullmatch(v))),
            "thread, process, dask://HOST:PORT or an Executor",
        ),
        metavar="E",
    )
    out: Path | None = option(None, PATH, names=("-o", "--out"), path=True)
    fresh: bool = option(False, is_flag=True)
    resume: bool = option(False, is_flag=True)
    tag: str | None = option(None, TEXT, metavar="TEXT")
    progress: Progress | None = option(None, (callable, "a function"))
    ready: Callable[[Any], None] | None = option(None, (callable, "a function"))
    stamp: str = attrs.field(init=False, default="")  # what all images' counts depend on
    unused: frozenset[str] = attrs.field(init=False, default=frozenset())  # of the protocol

    def __attrs_post_init__(self) -> None:
        from bsdsbench.files.arguments import kind_of_value
        from bsdsbench.protocol.protocol import MAPS, Protocol

        faults, metrics, protocol = list[str | Problem](), self.metrics, self.protocol
        for field in attrs.fields(RunOptions):
            good, value = field.metadata.get("good"), getattr(self, field.name)
            if good and (value is not None or field.default is not None) and not good[0](value):
                faults.append(f"{field.name} {kind_of_value(value)}: expected {good[1]}")
        try:
            metrics = registry.chosen(self.metrics)
        except DataError as error:
            faults += error.problems
        if faults:
            raise DataError(problems=faults)
        task = self.task
        if task is not None:
            from bsdsbench.protocol.tasks import Task

            task = Task.load(task)
            fixed, says = Protocol.preset(task.protocol), f"task {task.name}:"
            protocol = fixed if protocol is None else Protocol.load(protocol)
            if protocol.replace(**{name: getattr(fixed, name) for name in MAPS}) != fixed:
                faults.append(f"{says} its protocol is {task.protocol}, expected no other")
            if metrics not in (registry.DEFAULT, (task.metric,)):
                faults.append(f"{says} its metric is {task.metric}, expected no other")
            if "skip" in (self.missing, self.on_error):
                faults.append(f"{says} needs every image, expected none to be skipped")
            metrics = (task.metric,)
        first, versions = registry.get(metrics[0]), []
        kind = self.pred_kind or first.pred_kinds[0]
        for found in map(registry.get, metrics):
            versions.append((found.name, found.version))
            if kind not in found.pred_kinds:
                kinds = " or ".join(found.pred_kinds)
                faults.append(f"metric {found.name}: reads predictions of {kinds}, not {kind!r}")
            if found.gt_kind != first.gt_kind:
                both = f"{first.name}, {found.name}: read {first.gt_kind} and {found.gt_kind}"
                faults.append(f"metrics {both} as ground truth, expected a run for each")
        if faults:
            raise DataError(problems=faults)
        protocol = Protocol.load(first.default_protocol if protocol is None else protocol)
        if self.classes is not None:
            own = {"classes": tuple(self.classes)}
            tables = {m: {**protocol.options.get(m, {}), **own} for m in metrics}
            protocol = protocol.replace(options={**protocol.options, **tables})
        protocol = registry.settled(protocol)
        registry.void_values(metrics, protocol)  # one void, or a fault
        told = json.dumps([KERNEL_VERSION, protocol.to_mapping(), versions, kind], sort_keys=True)
        settled: dict[str, Any] = {
            "task": task,
            "protocol": protocol,
            "metrics": metrics,
            "pred_kind": kind,
        }
        settled["stamp"] = hashlib.blake2b(told.encode(), digest_size=16).hexdigest()
        settled["out"] = None if self.out is None else Path(self.out)
        settled["unused"] = registry.unused(metrics, protocol)
        for name, value in settled.items():
            object.__setattr__(self, name, value)

    def refuse_out_in(self, **folders: Folder) -> None:
        """Raise DataError if the results would lie in a folder that is read, or one is no path.

        They would be paired with it the next time.
        """
        from bsdsbench.files.arguments import kind_of_value

        faults = []
        for what, folder in folders.items():
            if not PATH[0](folder):
                faults.append(f"{what} {kind_of_value(folder)}: expected {PATH[1]}")
            elif self.out and self.out.resolve().is_relative_to(Path(folder).resolve()):
                where = f"{show(self.out)}: lies in {what} ({show(folder)})"
                faults.append(f"{where}, expected a folder elsewhere for the results")
        if faults:
            raise DataError(problems=faults)


# Option -> what its lines in the docstring say: kind, then what it means
DOC = inspect.cleandoc(RunOptions.__doc__ or "")
ABOUT: dict[str, str] = dict(re.findall(r"^(\w+) : (.+\n(?:    .+\n?)+)", DOC, re.MULTILINE))


def words_of(name: str) -> str:
    """What an option means, as help has it."""
    return " ".join(ABOUT.get(name, "").split("\n", 1)[-1].split())


def takes(words: str, **usual: Any) -> Callable[[Callable[..., T]], Callable[..., T]]:
    """Give a function with a parameter `options` some as arguments, shown and documented.

    words : their names; usual : defaults that differ from those of RunOptions
    """
    fields, names = attrs.fields_dict(RunOptions), words.split()

    def change(function: Callable[..., T]) -> Callable[..., T]:
        own = inspect.signature(function)
        parameters = [p for p in own.parameters.values() if p.name != "options"]
        for name in names:
            either, only = inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY
            kind = either if name in ("protocol", "metrics") else only
            default = usual.get(name, fields[name].default)
            parameters.append(inspect.Parameter(name, kind, default=default))
        shown = own.replace(parameters=sorted(parameters, key=lambda p: p.kind))

        @wraps(function)
        def call(*args: Any, **given: Any) -> T:
            bound, chosen = shown.bind(*args, **given), dict(usual)
            for name in names:
                if name in bound.arguments:
                    chosen[name] = bound.arguments.pop(name)
            return function(*bound.args, **bound.kwargs, options=RunOptions(**chosen))

        call.__signature__ = shown  # type: ignore[attr-defined]
        call.__doc__ = documented(function.__doc__, words)
        return call

    return change


def documented(text: str | None, words: str) -> str:
    """A docstring in which {options} becomes what these options say."""
    told = [f"{name} : {ABOUT.get(name, '')}".rstrip("\n") for name in words.split()]
    return inspect.cleandoc(text or "").replace("{options}", "\n".join(told))
