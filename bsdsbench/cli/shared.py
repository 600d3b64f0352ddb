"""What commands share: their classes, inputs resolved from options, and how they print.

Lines and progress go to standard error, results to standard output.
"""

from __future__ import annotations

import inspect
import os
import shlex
import sys
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from importlib import import_module
from typing import TYPE_CHECKING, Any, NamedTuple

import attrs
import click
from click.core import ParameterSource

from bsdsbench.cli.options import PROTOCOL, RUNNING, USUAL, EvaluationOptions, ProtocolOptions
from bsdsbench.errors import Setting
from bsdsbench.io import as_json
from bsdsbench.kernels import never_compiled
from bsdsbench.metrics import registry
from bsdsbench.text import counted, did_you_mean, listed

if TYPE_CHECKING:
    from bsdsbench.protocol.protocol import Protocol
    from bsdsbench.protocol.tasks import Task
    from bsdsbench.results.evaluation import Evaluation
    from bsdsbench.tables.table import Table

# The commands in the order of the help page. The commands of a heading are in the file of this
# folder that is named after the heading, in lower case.
GROUPS = {
    "Score": ("demo", "evaluate", "run", "merge", "nms"),
    "Understand": ("doctor", "compare", "errors", "worst", "explain", "plot"),
    "Curves": ("curves",),
    "Publish": ("report", "view", "share"),
    "Check": ("check", "data", "protocols"),
}
COMMANDS = {name: heading.lower() for heading, names in GROUPS.items() for name in names}


class Commands(click.Group):
    """The group of all commands. The file of a command is imported only when it is needed."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names of all commands."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command:
        """Import a command by its name. An unknown name raises UsageError with a suggestion."""
        if cmd_name not in COMMANDS:
            ctx.fail(f"no verb {cmd_name!r}{did_you_mean(cmd_name, COMMANDS)}")
        return getattr(import_module(f"bsdsbench.cli.{COMMANDS[cmd_name]}"), f"{cmd_name}_command")

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the commands with their summaries, one section per heading of GROUPS."""
        width = max(map(len, COMMANDS))
        for heading, names in GROUPS.items():
            rows = []
            for name in names:
                summary = self.get_command(ctx, name).get_short_help_str(80)
                rows.append((name.ljust(width), summary))  # padded: all sections align
            with formatter.section(heading):
                formatter.write_dl(rows)


class Command(click.Command):
    """A command with --quiet, a --nms with an optional value, and help in sections."""

    def __init__(self, *args: Any, **settings: Any) -> None:
        super().__init__(*args, **settings)
        self.params.append(click.Option(["--quiet"], is_flag=True, help="Show no progress."))

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse the arguments of the command line. A --nms without a recipe gets the value USUAL.

        --quiet is kept in `ctx.meta`, so that it is no argument of the command's function. Returns
        the arguments that were not parsed.
        """
        if "--nms" in args:
            from bsdsbench.protocol.protocol import RECIPES

            for k, argument in enumerate(args):
                if argument == "--nms" and (k + 1 == len(args) or args[k + 1] not in RECIPES):
                    args[k] = f"--nms={USUAL}"
        remaining = super().parse_args(ctx, args)
        ctx.meta["quiet"] = ctx.params.pop("quiet")
        return remaining

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the options in the sections Options, Protocol and Running.

        The help text of --metrics, which lists the installed metrics, is set here.
        """
        sections: dict[str, list[tuple[str, str]]] = {"Options": [], "Protocol": [], "Running": []}
        for param in self.get_params(ctx):
            if not isinstance(param, click.Option):
                continue  # arguments are in the usage line
            if param.name == "metrics":
                metrics = ", ".join(registry.names())
                default = ",".join(registry.DEFAULT_METRICS)
                param.help = f"Metrics to compute: {metrics}; default: {default}."
            heading = "Options"
            if param.name in RUNNING:
                heading = "Running"
            elif param.name in PROTOCOL:
                heading = "Protocol"
            if record := param.get_help_record(ctx):  # (option, help text), or None if hidden
                sections[heading].append(record)
        for heading, records in sections.items():
            if records:
                with formatter.section(heading):
                    formatter.write_dl(records)


def command(function: Callable[..., object], name: str | None = None) -> Command:
    """Make the command NAME of a function NAME_command, or of another `name`.

    The defaults of the function's parameters declare the arguments and options, see `cli.options`,
    in the order of the help page. The docstring of the function is the help page, and its first
    sentence is the summary in lists of commands.
    """
    return Command(
        name or function.__name__.removesuffix("_command"),
        callback=lambda **values: function(**_nest(function, values)),
        params=_make_parameters(function),
        help=function.__doc__,
    )


def _declarations(owner: Callable[..., object]) -> dict[str, Mapping[str, Any]]:
    """Return the metadata of `cli.options` by the name of a parameter, or a field of a class."""
    if isinstance(owner, type):
        return {field.name: field.metadata for field in attrs.fields(owner)}
    parameters = inspect.signature(owner).parameters
    return {name: parameter.default.metadata for name, parameter in parameters.items()}


def _make_parameters(owner: Callable[..., object]) -> list[click.Parameter]:
    """Make the parameters of click that a function or a class of options declares."""
    parameters: list[click.Parameter] = []
    for name, metadata in _declarations(owner).items():
        if "options_of" in metadata:
            parameters += _make_parameters(metadata["options_of"])
        else:
            parameters.append(metadata["make_parameter"](name))
    return parameters


def _nest(owner: Callable[..., object], values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments of a function or class from the values of all parameters by name."""
    arguments = {}
    for name, metadata in _declarations(owner).items():
        nested = metadata.get("options_of")
        arguments[name] = nested(**_nest(nested, values)) if nested else values[name]
    return arguments


def keywords_of(args: object, names: Iterable[str] | None = None) -> dict[str, Any]:
    """Return the values of a class of options, and of the classes in it, as keywords of a call.

    names: the keywords to return, by default all. Names that the command lacks are left out.
    """
    keywords: dict[str, Any] = {}
    for name, metadata in _declarations(type(args)).items():
        value = getattr(args, name)
        keywords |= keywords_of(value) if "options_of" in metadata else {name: value}
    return keywords if names is None else {k: keywords[k] for k in names if k in keywords}


def is_given(parameter: str) -> bool:
    """Return True if the user gave this argument or option, False if it has its default value."""
    source = click.get_current_context().get_parameter_source(parameter)
    return source is ParameterSource.COMMANDLINE


def refuse(parameters: Collection[str], beside: str) -> None:
    """Raise UsageError "FLAG: not with `beside`" if the user gave one of these parameters."""
    params = click.get_current_context().command.params
    refused = [p for p in params if p.name in parameters and is_given(str(p.name))]
    if refused:
        flags = ", ".join(max(param.opts, key=len) for param in refused)
        raise click.UsageError(f"{flags}: not with {beside}")


def require_runs_or_methods(runs: Sequence[str], methods: Sequence[str]) -> None:
    """Raise UsageError if the user gave both runs and --method, or neither."""
    if runs and methods:
        raise click.UsageError("runs and --method: expected one of them")
    if not runs and not methods:
        raise click.UsageError("Missing argument '[OUT|FILE|ref:NAME]...'.")


# From options to inputs --------------------------------------------------------------------------


def protocol_from(
    options: ProtocolOptions, metrics: Sequence[str] = (), valid_dir: str | None = None
) -> Protocol:
    """Return the protocol that the options describe.

    The options override, field by field, the protocol of --signature or --protocol, or else the
    default protocol of the first of `metrics`, or bsds500 without metrics.

    Raises ProtocolError for a value that a field does not accept. Raises UsageError if two options
    exclude each other, and if a signature has a field of view but `valid_dir` (--valid) is None.
    """
    from bsdsbench.protocol.protocol import Protocol
    from bsdsbench.protocol.signature import Signature, parse_overrides

    name: Protocol | str | None = options.protocol
    if options.signature:
        if options.protocol:
            raise click.UsageError("--signature, --protocol: expected one of them")
        signature = Signature.parse(options.signature)
        if signature.valid and not valid_dir:
            raise click.UsageError("--signature: its pixels have a field of view, expected --valid")
        name = signature.protocol
    elif name is None and metrics:
        name = registry.get(metrics[0]).default_protocol
    protocol = Protocol.load(name)
    overrides = list(options.set or ())
    if options.max_dist:
        if options.max_dist_px:
            raise click.UsageError("--max-dist, --max-dist-px: expected one of them")
        overrides.append("max_dist_px=none")  # the preset may give its tolerance in pixels
    for field in ("thresholds", "max_dist", "max_dist_px", "no_thin", "invert"):
        if value := getattr(options, field):  # of --no-thin it is "false", of --invert "true"
            overrides.append(f"{field.removeprefix('no_')}={value}")
    if options.nms:
        overrides.append("nms=true")
        if options.nms != USUAL:
            protocol = protocol.replace(nms_params=options.nms)
    changes = parse_overrides(overrides)
    if options.thresholds:  # also takes forms that --set does not
        changes["thresholds"] = options.thresholds
    return registry.complete_options(protocol.replace(**changes))


class RunInputs(NamedTuple):
    """What a run reads and counts. A folder is None if it is neither given nor needed.

    images, gt: folders of the images that a detector reads, and of the ground truth.
    metrics: their names, in the order of tables.
    """

    images: str | os.PathLike[str] | None
    gt: str | os.PathLike[str] | None
    metrics: tuple[str, ...]
    protocol: Protocol
    task: Task | None


def resolve_inputs(
    options: EvaluationOptions,
    valid_dir: str | None = None,
    images: str | None = None,
    takes_images: bool = False,
) -> RunInputs:
    """Resolve the options of a run: the task, the folders, the metrics and the protocol.

    valid_dir, images: the values of --valid and of the argument IMAGES.
    takes_images: True if the command takes images, and so needs no ground truth.

    A task gives metric and protocol, and its data set, which must have been downloaded, the folders
    that are not given. Without a task the default metrics are DEFAULT_METRICS.

    Raises UsageError if the task forbids an option, if options exclude each other, or if neither
    --gt nor --task gives the ground truth that is needed.
    """
    from bsdsbench.loaders.sets.public_sets import set_folder
    from bsdsbench.protocol.tasks import Task

    gt: str | os.PathLike[str] | None = options.gt
    image_folder: str | os.PathLike[str] | None = images
    metrics: Sequence[str] = options.metrics or registry.DEFAULT_METRICS
    protocol_options = options.protocol
    task = None
    if options.task:
        refuse({*PROTOCOL, "metrics", "humans"} - {"nms", "invert"}, "--task, which fixes them")
        task = Task.load(options.task)
        metrics = [task.metric]
        protocol_options = attrs.evolve(protocol_options, protocol=task.protocol)
        gt = gt or set_folder(task.set)
        if takes_images:
            image_folder = images or set_folder(task.set, "images")
    elif not gt and not takes_images:
        raise click.UsageError(
            "give --gt FOLDER, or a --task whose set `bsdsbench data get` brings"
        )
    names = registry.check_names(metrics)
    protocol = protocol_from(protocol_options, names, valid_dir)
    return RunInputs(image_folder, gt, names, protocol, task)


def compile_first(
    metrics: Iterable[str] = registry.DEFAULT_METRICS, *folders: str | os.PathLike[str]
) -> None:
    """Compile the kernels, and say so, if no kernel was ever compiled and a metric matches pixels.

    If one of `folders`, the inputs, does not exist, the error about it must come first.
    """
    matches_pixels = any("max_dist" in registry.get(name).uses for name in metrics)
    if matches_pixels and never_compiled() and all(map(os.path.exists, folders)):
        from bsdsbench.kernels.warm import compile_once

        say("first run: compiling the kernels, about 10 seconds", progress=True)
        compile_once()


# Output ------------------------------------------------------------------------------------------

PLAIN_SECONDS = 5.0  # between two lines at first, later a tenth of the time that has passed
BRIEF = 2.0  # work of fewer seconds ends without a line


def say(line: str, progress: bool = False) -> None:
    """Print a line to standard error. A line about progress is left out if --quiet is given."""
    if not (progress and click.get_current_context().meta.get("quiet")):
        print(f"bsdsbench: {line}", file=sys.stderr)


@contextmanager
def progress(title: str, unit: str = "images") -> Iterator[Callable[[int, int, str], None] | None]:
    """Show the progress of the work in the body of `with`.

    Yields a function to call with (done, total, image id), or None if --quiet is given. `unit`
    names the items that `done` counts. A terminal shows a bar. Otherwise a line is printed every
    PLAIN_SECONDS, in a long run less often, and at the end of work of more than BRIEF seconds.
    """
    if click.get_current_context().meta.get("quiet"):
        yield None
        return
    bar: Any = None
    if sys.stderr.isatty():
        from rich.console import Console
        from rich.progress import MofNCompleteColumn, Progress

        columns = (*Progress.get_default_columns(), MofNCompleteColumn())
        bar = Progress(*columns, console=Console(stderr=True), transient=True)
        bar.add_task(title, total=None)
    started = last_line = time.monotonic()
    # (done, time) at the first call. The rate is measured from there, because the first item also
    # compiles kernels and starts workers.
    first_call: tuple[int, float] | None = None

    def report(done: int, total: int, image_id: str) -> None:
        """Update the bar, or print a line if the last line is long ago or the work is done."""
        nonlocal first_call, last_line
        now = time.monotonic()
        if first_call is None:
            first_call = done, now
        done_before, since = first_call
        if bar:
            bar.update(0, completed=done, total=total)
            return
        elapsed = now - started
        interval = BRIEF if done == total else max(PLAIN_SECONDS, elapsed / 10)
        if now - last_line >= interval:
            last_line = now
            line = f"{title}: {done}/{total} {unit}, {elapsed:.0f} s elapsed"
            if done > done_before:
                rate = (done - done_before) / max(now - since, 1e-9)
                line += f", {rate:.1f} {unit}/s, {(total - done) / rate:.0f} s left"
            print(line, file=sys.stderr, flush=True)

    with bar or nullcontext():
        yield report


def print_json(value: object) -> None:
    """Print `value` as JSON to standard output."""
    print(as_json(value), end="")


def print_run(run: Evaluation, out: str | None, columns: Sequence[str] | None = None) -> None:
    """Print the tables of a run (by default its main scores), its data set, tasks, and folder."""
    from bsdsbench.results.score_tables import score_tables

    show_tables(score_tables([run], columns=columns))
    if run.set_line:
        print(f"set      {run.set_line}")
    for task in run.tasks:
        print(f"task     {task.name}")
    if out:
        print(f"results  {out}")


def report_left_out(failed: Mapping[str, str], run: Evaluation | None) -> int:
    """Print images that failed (id -> reason) or were left out. Return 2 if any failed, else 0."""
    if run and (empty := run.provenance.empty_gt):
        reason = "left out: no boundary in the ground truth (empty_gt=skip)"
        say(f"{counted(len(empty), 'image')} {reason}: {listed(empty, 3)}")
    for image_id, reason in failed.items():
        say(f"left out {image_id!r}: {reason}")
    return 2 if failed else 0


def show_tables(
    tables: Sequence[Table],
    out: str | None = None,
    output_format: str = "table",
    left_out: Mapping[str, Any] | None = None,
) -> None:
    """Print tables in a format, or write them to the file `out`.

    In the format "table" (plain text) tables marked `aside` are not printed, only their titles. In
    CSV, which has no notes, `left_out` (name of a run -> images left out) becomes a table.
    """
    from bsdsbench.results.score_tables import with_left_out
    from bsdsbench.tables.forms import render, write_tables
    from bsdsbench.tables.table import print_tables

    if output_format == "csv" and left_out is not None:
        tables = with_left_out(tables, left_out)
    if out is not None:
        say(f"wrote {', '.join(map(str, write_tables(tables, out, output_format)))}")
    elif output_format != "table":
        print(render(tables, output_format).rstrip("\n"))
    else:
        print_tables([table for table in tables if not table.aside], sys.stdout)
        aside_titles = [table.title for table in tables if table.aside]
        if aside_titles:
            print(f"\nIn a file (-o) and other formats also: {', '.join(aside_titles)}")


def as_flag(setting: Setting, command_name: str) -> str:
    """Return a setting as the user writes it on the command line of a command.

    - an option without a value: "--nms", or "without --nms" if the setting is False
    - any other option of the command: "--flag VALUE"
    - a field of the protocol or of a metric, if the command has --set: "--set FIELD=VALUE"
    - otherwise as in Python: "name=value"
    """
    from bsdsbench.protocol.protocol import Protocol

    params = Commands().get_command(click.Context(Commands()), command_name).params
    flags = {param.name: max(param.opts, key=len) for param in params}
    fields_of_set = {*Protocol.names(), *registry.names()} if "set" in flags else set[str]()
    name = setting.name
    value = setting.value if isinstance(setting.value, str) else setting.shown()
    if name in flags and isinstance(setting.value, bool):
        return flags[name] if setting.value else f"without {flags[name]}"
    if name in flags:
        return f"{flags[name]} {shlex.quote(value)}"
    if name.partition(".")[0] in fields_of_set:  # METRIC.OPTION is a field of the metric
        if isinstance(setting.value, bool):
            value = value.lower()
        return f"--set {shlex.quote(f'{name}={value}')}"
    return str(attrs.evolve(setting, effect="", beside=()))
