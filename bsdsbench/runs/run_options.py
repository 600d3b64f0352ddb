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
import textwrap
from collections.abc import Callable, Sequence
from concurrent.futures import Executor
from functools import wraps
from numbers import Integral
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import attrs

from bsdsbench.files.bounded import show
from bsdsbench.files.errors import DataError, is_text
from bsdsbench.kernels import KERNEL_VERSION
from bsdsbench.metrics import registry

if TYPE_CHECKING:
    from bsdsbench.protocol.tasks import Task

T = TypeVar("T")
Folder = str | os.PathLike[str]
Progress = Callable[[int, int, str], None]  # (done, total, image id)
MAX_WORKERS = 4096
MANY = 8  # workers from which processes are faster than threads: reading holds the GIL
DASK = re.compile(r"thread|process|dask://[^/\s]+:[0-9]{1,5}/?")

Good = tuple[Callable[[Any], bool], str]  # a check, and what it expects, in words
TEXT: Good = (lambda v: isinstance(v, str) and v != "" and is_text(v), "text in UTF-8")
PATH: Good = (lambda v: isinstance(v, str | os.PathLike), "a path")


def whole(value: Any, most: int) -> bool:
    """True for a whole number from 1 to `most`."""
    return isinstance(value, Integral) and not isinstance(value, bool) and 1 <= int(value) <= most


def option(default: Any, kind: str, words: str, good: Good | None = None, **flag: Any) -> Any:
    """An option: what it may be, what docs and help say of it, its check, and its flag."""
    if "choices" in flag and good is None:
        allowed = flag["choices"]
        good = lambda v: isinstance(v, str) and v in allowed, f"one of {', '.join(allowed)}"
    about = {"kind": kind, "words": words, "good": good, "flag": flag}
    return attrs.field(default=default, metadata=about)


@attrs.frozen(kw_only=True, eq=False)
class RunOptions:
    """The options of a run, checked. Raises DataError that lists every wrong one, ProtocolError."""

    protocol: Any = option(
        None,
        "Protocol or str or None",
        "A Protocol or the name of a preset; default: that of the first metric.",
    )
    task: Task | None = option(
        None,
        "Task or str or path or None",
        "A set, a protocol and a metric by one name, or in a .toml file: gives protocol and "
        "metric, and the ground truth must be its set.",
        metavar="NAME|FILE",
    )
    metrics: tuple[str, ...] = option(
        registry.DEFAULT,
        "str or sequence of str",
        "Names of metrics that read the same kind of ground truth.",
    )
    classes: tuple[str, ...] | None = option(
        None,
        "sequence of str or None",
        "Names of the classes in the order of their labels from 0, for metrics of label maps; "
        "default: those of the protocol.",
    )
    name: str = option(
        None,
        "str or None",
        "Name in tables; default: the last part of the folder's path that "
        "is no split, or the function's.",
        TEXT,
    )
    split_file: Folder | None = option(
        None,
        "path or None",
        "Text file of the ids to evaluate, one per line; default: all images.",
        PATH,
        path=True,
    )
    missing: str = option(
        "error",
        "str",
        "A missing prediction is an error, counts as an empty map (zero), or is left out (skip).",
        choices=("error", "zero", "skip"),
    )
    pred_kind: str | None = option(
        None,
        "str or None",
        "Whether pictures and arrays hold strengths (soft), region labels (labels) or classes; "
        "default: what the first metric expects.",
        (lambda v: isinstance(v, str), "a word"),
        choices=("soft", "labels"),
    )
    images_dir: Folder | None = option(
        None,
        "path or None",
        "Folder of the pictures, for metrics that use them; default: beside the ground truth in "
        "BSDS layout.",
        PATH,
        names=("--images",),
        path=True,
    )
    shard: tuple[int, int] = option(
        (1, 1),
        "tuple of int, int",
        "Evaluate part I of N of the images; merge joins them.",
        (
            lambda v: isinstance(v, tuple) and len(v) == 2 and whole(v[1], 10**7) and whole(*v),
            "(I, N) with 1 <= I <= N",
        ),
        metavar="I/N",
    )
    on_error: str = option(
        "fail",
        "str",
        "After all images: fail if some are bad, or leave those out and list them (skip).",
        choices=("fail", "skip"),
    )
    workers: int | None = option(
        None,
        "int or None",
        "Number of images processed in parallel; default: all cores.",
        (lambda v: whole(v, MAX_WORKERS), f"a number from 1 to {MAX_WORKERS}"),
        number=True,
        metavar="N",
    )
    executor: str | Executor | None = option(
        None,
        "str or Executor or None",
        "Where to run: thread, process, dask://HOST:PORT, in Python also any "
        f"concurrent.futures.Executor; default: threads, processes from {MANY} workers on.",
        (
            lambda v: isinstance(v, Executor) or (isinstance(v, str) and bool(DASK.fullmatch(v))),
            "thread, process, dask://HOST:PORT or an Executor",
        ),
        metavar="E",
    )
    out: Path | None = option(
        None,
        "path or None",
        "Folder for the results and for what is done so far, from which a later call goes on.",
        PATH,
        names=("-o", "--out"),
        path=True,
    )
    fresh: bool = option(
        False, "bool", "Ignore the results of an earlier run in OUT.", is_flag=True
    )
    resume: bool = option(
        False, "bool", "Keep the maps that are in OUT, and make those that lack.", is_flag=True
    )
    tag: str | None = option(
        None,
        "str or None",
        "What tells this detector from others of its name, such as a checkpoint: stands in "
        "maps/run.json.",
        TEXT,
        metavar="TEXT",
    )
    progress: Progress | None = option(
        None,
        "callable or None",
        "Called with (done, total, image_id); total is done where the number is not known.",
        (callable, "a function"),
    )
    stamp: str = attrs.field(init=False, default="")  # what all images' counts depend on
    settings: dict[str, Any] = attrs.field(init=False, factory=dict)  # options of each metric

    def __attrs_post_init__(self) -> None:
        from bsdsbench.files.arguments import kind_of_value
        from bsdsbench.protocol.protocol import MAPS, Protocol

        put, faults, metrics = object.__setattr__, list[str](), self.metrics
        for field in attrs.fields(RunOptions):
            good, value = field.metadata.get("good"), getattr(self, field.name)
            if good and (value is not None or field.default is not None) and not good[0](value):
                faults.append(f"{field.name} {kind_of_value(value)}: expected {good[1]}")
        try:
            metrics = registry.chosen(self.metrics)
        except DataError as error:
            faults += error.problems
        if faults:
            raise DataError("\n".join(faults), faults)
        if self.task is not None:
            from bsdsbench.protocol.tasks import Task

            task = Task.load(self.task)
            fixed = Protocol.preset(task.protocol)
            given = fixed if self.protocol is None else Protocol.load(self.protocol)
            if given.replace(**{name: getattr(fixed, name) for name in MAPS}) != fixed:
                faults.append(f"task {task.name}: its protocol is {task.protocol}, no other")
            if metrics not in (registry.DEFAULT, (task.metric,)):
                faults.append(f"task {task.name}: its metric is {task.metric}, expected no other")
            if "skip" in (self.missing, self.on_error):
                faults.append(f"task {task.name}: needs every image, expected none to be skipped")
            put(self, "task", task)
            put(self, "protocol", given)
            metrics = (task.metric,)
        first = registry.get(metrics[0])
        kind, versions = self.pred_kind or first.pred_kinds[0], list[tuple[str, int]]()
        for found in map(registry.get, metrics):
            if kind not in found.pred_kinds:
                kinds = " or ".join(found.pred_kinds)
                faults.append(
                    f"metric {found.name}: takes predictions of kind {kinds}, not {kind!r}"
                )
            if found.gt_kind != first.gt_kind:
                faults.append(
                    f"metrics {first.name}, {found.name}: read different ground truth "
                    f"({first.gt_kind}, {found.gt_kind}), expected one run for each"
                )
            versions.append((found.name, found.version))
        if faults:
            raise DataError("\n".join(faults), faults)
        usual = first.default_protocol or "bsds500"
        protocol = Protocol.load(usual if self.protocol is None else self.protocol)
        if self.classes is not None:
            own = {"classes": tuple(self.classes)}
            tables = {m: {**protocol.options.get(m, {}), **own} for m in metrics}
            protocol = protocol.replace(options={**protocol.options, **tables})
        protocol = registry.settled(protocol)
        for found in map(registry.get, metrics):
            self.settings[found.name] = found.options_of(protocol)
        put(self, "protocol", protocol)
        put(self, "metrics", metrics)
        put(self, "pred_kind", kind)
        put(self, "out", None if self.out is None else Path(self.out))
        told = json.dumps([KERNEL_VERSION, protocol.to_mapping(), versions, kind], sort_keys=True)
        put(self, "stamp", hashlib.blake2b(told.encode(), digest_size=16).hexdigest())

    def refuse_out_in(self, **folders: Folder) -> None:
        """Raise DataError if the results would lie in a folder that is read, or one is no path.

        They would be paired with it the next time.
        """
        from bsdsbench.files.arguments import kind_of_value

        faults = []
        for what, folder in folders.items():
            if not PATH[0](folder):
                raise DataError(f"{what} {kind_of_value(folder)}: expected {PATH[1]}")
            if self.out and self.out.resolve().is_relative_to(Path(folder).resolve()):
                where = f"{show(str(self.out))}: lies in {what} ({show(folder)})"
                faults.append(f"{where}, expected a folder elsewhere for the results")
        if faults:
            raise DataError("\n".join(faults), faults)


def takes(*names: str, **usual: Any) -> Callable[[Callable[..., T]], Callable[..., T]]:
    """Give a function with a parameter `options` these options as arguments, shown and documented.

    names : after "*" keywords only; usual : defaults that differ from those of RunOptions
    """
    fields, keywords = attrs.fields_dict(RunOptions), names.index("*")
    taken = [name for name in names if name != "*"]
    kinds = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)

    def change(function: Callable[..., T]) -> Callable[..., T]:
        own = inspect.signature(function)
        parameters = [p for p in own.parameters.values() if p.name != "options"]
        for number, name in enumerate(taken):
            kind = fields[name].metadata["kind"].replace(" or ", " | ")
            default = usual.get(name, fields[name].default)
            more = {"default": default, "annotation": kind}
            parameters.append(inspect.Parameter(name, kinds[number >= keywords], **more))
        shown = own.replace(parameters=sorted(parameters, key=lambda p: p.kind))

        @wraps(function)
        def call(*args: Any, **given: Any) -> T:
            bound, words = shown.bind(*args, **given), dict(usual)
            for name in taken:
                if name in bound.arguments:
                    words[name] = bound.arguments.pop(name)
            return function(*bound.args, **bound.kwargs, options=RunOptions(**words))

        call.__signature__ = shown  # type: ignore[attr-defined]
        call.__doc__ = documented(function.__doc__, taken)
        return call

    return change


def documented(text: str | None, names: Sequence[str]) -> str:
    """A docstring in which {options} becomes what these options say."""
    told = []
    for name in names:
        about = attrs.fields_dict(RunOptions)[name].metadata
        words = textwrap.fill(about["words"], 92, break_on_hyphens=False)
        told.append(f"{name} : {about['kind']}\n{textwrap.indent(words, '    ')}")
    return inspect.cleandoc(text or "").replace("{options}", "\n".join(told))
