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
    from bsdsbench.protocol.protocol import Protocol
    from bsdsbench.protocol.tasks import Task

T = TypeVar("T")
Check = Callable[[Any, str], None]  # of a value, by a name for messages; raises DataError
Folder = str | os.PathLike[str]
Progress = Callable[[int, int, str], None]  # (done, total, image id)
MAX_WORKERS = 4096
MANY = 8  # workers from which processes are faster than threads: reading holds the GIL


def _check(good: Callable[[Any], bool], expected: str) -> Check:
    """A check of one option. Raises DataError."""

    def check(value: Any, what: str) -> None:
        if not good(value):
            from bsdsbench.files.arguments import kind_of_value

            raise DataError(f"{what} {kind_of_value(value)}: expected {expected}")

    return check


def _one_of(*words: str) -> Check:
    return _check(lambda v: isinstance(v, str) and v in words, f"one of {', '.join(words)}")


def _is_whole(value: Any, most: int) -> bool:
    return isinstance(value, Integral) and not isinstance(value, bool) and 1 <= int(value) <= most


def _is_executor(value: Any) -> bool:
    found = re.fullmatch(r"thread|process|dask://[^/\s]+:[0-9]{1,5}/?", str(value))
    return isinstance(value, Executor) or (isinstance(value, str) and found is not None)


_text = _check(lambda v: isinstance(v, str) and v != "" and is_text(v), "text in UTF-8")
_path = _check(lambda v: isinstance(v, str | os.PathLike), "a path")
_workers = _check(lambda v: _is_whole(v, MAX_WORKERS), f"a number from 1 to {MAX_WORKERS}")
_shard = _check(
    lambda v: isinstance(v, tuple) and len(v) == 2 and _is_whole(v[1], 10**7) and _is_whole(*v),
    "(I, N) with 1 <= I <= N",
)
_executor = _check(_is_executor, "thread, process, dask://HOST:PORT or an Executor")
_called = _check(callable, "a function")


def option(default: Any, kind: str, words: str, check: Check | None = None, **flag: Any) -> Any:
    """An option: what it may be, what docs and help say of it, its check, and its flag."""
    about = {"kind": kind, "words": words, "check": check, "flag": flag}
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
    name: str = option(
        None, "str or None", "Name in tables; default: that of the folder or function.", _text
    )
    split_file: Folder | None = option(
        None,
        "path or None",
        "Text file of the ids to evaluate, one per line; default: all images.",
        _path,
        path=True,
    )
    missing: str = option(
        "error",
        "str",
        "A missing prediction is an error, counts as an empty map (zero), or is left out (skip).",
        _one_of("error", "zero", "skip"),
        choices=("error", "zero", "skip"),
    )
    pred_kind: str | None = option(
        None,
        "str or None",
        "Whether pictures and arrays hold strengths (soft), region labels (labels) or classes; "
        "default: what the first metric expects.",
        choices=("soft", "labels"),
    )
    images_dir: Folder | None = option(
        None,
        "path or None",
        "Folder of the pictures, for metrics that use them; default: beside the ground truth in "
        "BSDS layout.",
        _path,
        names=("--images",),
        path=True,
    )
    shard: tuple[int, int] = option(
        (1, 1),
        "tuple of int, int",
        "Evaluate part I of N of the images; merge joins them.",
        _shard,
        metavar="I/N",
    )
    on_error: str = option(
        "fail",
        "str",
        "After all images: fail if some are bad, or leave those out and list them (skip).",
        _one_of("fail", "skip"),
        choices=("fail", "skip"),
    )
    workers: int | None = option(
        None,
        "int or None",
        "Number of images processed in parallel; default: all cores.",
        _workers,
        number=True,
        metavar="N",
    )
    executor: str | Executor | None = option(
        None,
        "str or Executor or None",
        "Where to run: thread, process, dask://HOST:PORT, in Python also any "
        f"concurrent.futures.Executor; default: threads, processes from {MANY} workers on.",
        _executor,
        metavar="E",
    )
    out: Path | None = option(
        None,
        "path or None",
        "Folder for the results and for what is done so far, from which a later call goes on.",
        _path,
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
        _text,
        metavar="TEXT",
    )
    progress: Progress | None = option(
        None,
        "callable or None",
        "Called with (done, total, image_id); total is done where the number is not known.",
        _called,
    )
    stamp: str = attrs.field(init=False, default="")  # what all images' counts depend on
    settings: dict[str, Any] = attrs.field(init=False, factory=dict)  # options of each metric

    def __attrs_post_init__(self) -> None:
        from bsdsbench.protocol.protocol import Protocol
        from bsdsbench.protocol.tasks import Task

        put, faults = object.__setattr__, list[Any]()
        for field in attrs.fields(RunOptions):
            check, value = field.metadata.get("check"), getattr(self, field.name)
            try:
                if check and (value is not None or field.default is not None):
                    check(value, field.name)
                if field.name == "metrics":
                    put(self, "metrics", registry.chosen(value))
            except DataError as error:
                faults.append(error)
        if faults:
            raise DataError.collect(faults)
        if self.task is not None:
            task = Task.load(self.task)
            fixed = Protocol.preset(task.protocol)
            if self.protocol is not None and Protocol.load(self.protocol) != fixed:
                faults.append(f"its protocol is {task.protocol}, expected no other")
            if self.metrics not in (registry.DEFAULT, (task.metric,)):
                faults.append(f"its metric is {task.metric}, expected no other")
            if "skip" in (self.missing, self.on_error):
                faults.append("needs every image, expected none to be skipped")
            if faults:
                raise DataError.collect([DataError(f"task {task.name}: {f}") for f in faults])
            put(self, "task", task)
            put(self, "protocol", fixed)
            put(self, "metrics", (task.metric,))
        put(self, "protocol", protocol_of(self.protocol, self.metrics))
        put(self, "pred_kind", kind_of(self.pred_kind, self.metrics))
        put(self, "out", None if self.out is None else Path(self.out))
        versions = []
        for found in map(registry.get, self.metrics):
            self.settings[found.name] = found.options_of(self.protocol)
            versions.append((found.name, found.version))
        told = [KERNEL_VERSION, self.protocol.to_mapping(), versions, self.pred_kind]
        text = json.dumps(told, sort_keys=True)
        put(self, "stamp", hashlib.blake2b(text.encode(), digest_size=16).hexdigest())

    def refuse_out_in(self, **folders: Folder) -> None:
        """Raise DataError if the results would lie in a folder that is read, or one is no path.

        They would be paired with it the next time.
        """
        for what, folder in folders.items():
            _path(folder, what)
        faults = []
        for what, folder in folders.items():
            if self.out and self.out.resolve().is_relative_to(Path(folder).resolve()):
                where = f"{show(str(self.out))}: lies in {what} ({show(folder)})"
                faults.append(DataError(f"{where}, expected a folder elsewhere for the results"))
        if faults:
            raise DataError.collect(faults)


def protocol_of(protocol: Protocol | str | None, metrics: Sequence[str]) -> Protocol:
    """The resolved protocol: the one given, or the default of the first metric.

    Raises ProtocolError for options that no metric has or a value out of its range, if it lacks
    what a metric needs, or if there is no default.
    """
    from bsdsbench.protocol.protocol import Protocol

    usual = registry.get(metrics[0]).default_protocol or "bsds500"
    proto = registry.settled(Protocol.load(usual if protocol is None else protocol))
    for found in map(registry.get, metrics):
        found.check(proto, found.options_of(proto))
    return proto


def kind_of(pred_kind: str | None, metrics: Sequence[str]) -> str:
    """The kind of the predictions: the one given, or what the first metric expects.

    Raises DataError if a metric does not take it, or metrics read different ground truth.
    """
    first, faults = registry.get(metrics[0]), []
    if pred_kind is not None and not isinstance(pred_kind, str):
        raise DataError(f"pred_kind {pred_kind!r}: expected a word")
    kind = pred_kind or first.pred_kinds[0]
    for m in map(registry.get, metrics):
        if kind not in m.pred_kinds:
            kinds = " or ".join(m.pred_kinds)
            faults.append(f"metric {m.name}: takes predictions of kind {kinds}, not {kind!r}")
        if m.gt_kind != first.gt_kind:
            faults.append(
                f"metrics {first.name}, {m.name}: read different ground truth ({first.gt_kind}, "
                f"{m.gt_kind}), expected one run for each"
            )
    if faults:
        raise DataError("\n".join(faults), faults)
    return kind


def takes(*names: str, **usual: Any) -> Callable[[Callable[..., T]], Callable[..., T]]:
    """Give a function with a parameter `options` these options as arguments, shown and documented.

    names : after "*" keywords only; usual : defaults that differ from those of RunOptions
    """
    fields, keywords = attrs.fields_dict(RunOptions), names.index("*")
    taken = [name for name in names if name != "*"]

    def change(function: Callable[..., T]) -> Callable[..., T]:
        own = inspect.signature(function)
        kept = [p for p in own.parameters.values() if p.name != "options"]
        more = [
            inspect.Parameter(
                name,
                inspect.Parameter.KEYWORD_ONLY
                if number >= keywords
                else inspect.Parameter.POSITIONAL_OR_KEYWORD,
                default=usual.get(name, fields[name].default),
                annotation=fields[name].metadata["kind"].replace(" or ", " | "),
            )
            for number, name in enumerate(taken)
        ]
        shown = own.replace(parameters=sorted([*kept, *more], key=lambda p: p.kind))

        @wraps(function)
        def call(*args: Any, **given: Any) -> T:
            bound = shown.bind(*args, **given)
            words = {n: bound.arguments.pop(n) for n in taken if n in bound.arguments}
            return function(*bound.args, **bound.kwargs, options=RunOptions(**{**usual, **words}))

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
