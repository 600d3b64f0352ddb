"""Code shared by the commands: click classes, resolving inputs from options, and printing."""

from __future__ import annotations

import os
import re
import sys
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib import import_module
from typing import TYPE_CHECKING, Any, NamedTuple, Self, get_type_hints

import click
from click.core import ParameterSource

from bsdsbench.errors import InputWarning, warn
from bsdsbench.metrics import registry
from bsdsbench.text import did_you_mean, join_names, quantity

if TYPE_CHECKING:
    from bsdsbench.cli.options import EvaluationOptions, ProtocolOptions
    from bsdsbench.protocol.protocol import Protocol
    from bsdsbench.protocol.tasks import Task
    from bsdsbench.results.evaluation import Evaluation
    from bsdsbench.tables.table import Table

# Heading of the help page -> its commands, in order -> the first sentence of their docstrings. They
# are in the file of this folder with the name of the heading in lower case.
GROUPS = {
    "Score": {
        "demo": "Run the whole benchmark on the sample of this package.",
        "evaluate": "Score a folder of predictions by any metric.",
        "run": "Run, time and score a detector: yours, or a built-in one.",
        "merge": "Join the shards of a run, or take the best of several runs.",
        "nms": "Apply non-maximum suppression to soft maps.",
    },
    "Understand": {
        "doctor": "Check names, sizes, value range, polarity and NMS of the inputs.",
        "compare": "Test whether the differences between runs are real.",
        "errors": "Show where the score is lost: missed and false pixels by class.",
        "worst": "List the worst images of a run, or where two runs differ most.",
        "explain": "Find which setting gives the published score.",
        "plot": "Draw the curves of runs in one figure.",
    },
    "Curves": {"curves": "Draw PR, ROC or DET curves of labels and scores, or of points."},
    "Publish": {
        "report": "Write runs as a page or as tables.",
        "view": "Look at every image of runs in a browser, at all thresholds.",
        "share": "Export a run as one small file to share.",
    },
    "Check": {
        "check": "Compare a run with a baseline, and fail if any score got worse.",
        "data": "Get a public data set, or identify one.",
        "protocols": "List the presets with their constants, and the tasks.",
    },
}
COMMANDS = {name: heading.lower() for heading, names in GROUPS.items() for name in names}
# The names of the options in the sections Protocol and Running of help
PROTOCOL_OPTIONS = (
    *("protocol", "signature", "thresholds", "max_dist", "max_dist_px"),
    *("no_thin", "nms", "invert", "set"),
)
_RUNNING_OPTIONS = ("on_error", "workers", "executor", "shard", "fresh", "quiet")
# The value of --nms alone (by the protocol's parameters); `--nms rcf` names a recipe (those of RCF)
NMS_WITHOUT_RECIPE = "protocol's"


class Commands(click.Group):
    """The group of all commands. The file of a command is imported only when it is needed."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names of all commands."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command:
        """Import a command by its name. Raises UsageError, with a suggestion, if there is none."""
        if cmd_name not in COMMANDS:
            ctx.fail(f"no command {cmd_name!r}{did_you_mean(cmd_name, COMMANDS)}")
        return getattr(import_module(f"bsdsbench.cli.{COMMANDS[cmd_name]}"), f"{cmd_name}_command")

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the commands with their summaries, one section per heading of GROUPS."""
        width = max(map(len, COMMANDS))
        for heading, summaries in GROUPS.items():
            with formatter.section(heading):  # names are padded: all sections align
                formatter.write_dl([(name.ljust(width), text) for name, text in summaries.items()])


class Command(click.Command):
    """A command that checks its options before it uses them, and has help in sections."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse the command-line arguments, and return those that were not parsed."""
        self._check_values(ctx, args)
        return super().parse_args(ctx, args)

    def _check_values(self, ctx: click.Context, args: list[str]) -> None:
        """Raise UsageError for an option that is empty, given twice, or a file of a finished run.

        Click would take an empty value, such as that of a variable of the shell that is not set,
        for the default in many options, and of two values the last. A run is always named by its
        folder. A file in it is a mistake, and `-o OUT/result.json` would overwrite the run.
        """
        # Click's first step: {parameter name: text, or a tuple if the option takes two}, words left
        # over, and the parameters in the order of `args`, in which one given twice occurs twice
        texts, _, given = self.make_parser(ctx).parse_args(list(args))
        files_of_run = ("result.json", "counts.npz")
        for param in given:
            if not isinstance(param, click.Option) or param.is_flag or param.multiple:
                continue
            text, fault = str(texts[param.name]), ""
            # "" may be given if it is the default, such as for --licence. An option with a callback
            # (a function that converts the text) is checked there
            may_be_empty = param.default == "" or param.callback is not None
            folder, name = os.path.split(text)
            if given.count(param) > 1:
                fault = f"is given {given.count(param)} times, expected once"
            elif not text.strip() and not may_be_empty:
                fault = f"{text!r}: expected a value"
            elif name in files_of_run and all(
                os.path.exists(os.path.join(folder, file)) for file in files_of_run
            ):
                fault = f"{text}: is a file of a run, expected another"
            if fault:
                raise click.UsageError(f"{max(param.opts, key=len)} {fault}", ctx)

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the help of the options in the sections Options, Protocol and Running.

        The help text of --metrics, which lists the installed metrics, is only set here.
        """
        sections: dict[str, list[tuple[str, str]]] = {"Options": [], "Protocol": [], "Running": []}
        heading_of = dict.fromkeys(PROTOCOL_OPTIONS, "Protocol")
        heading_of |= dict.fromkeys(_RUNNING_OPTIONS, "Running")
        for param in self.get_params(ctx):
            if not isinstance(param, click.Option):
                continue  # arguments are in the usage line
            if param.name == "metrics":
                metrics = ", ".join(registry.names())
                default = ",".join(registry.DEFAULT_METRICS)
                param.help = f"Metrics to compute: {metrics}; default: {default}."
            if record := param.get_help_record(ctx):  # (option, help text), or None if hidden
                sections[heading_of.get(str(param.name), "Options")].append(record)
        for heading, records in sections.items():
            if records:
                with formatter.section(heading):
                    formatter.write_dl(records)


class Options:
    """The values of a group of options.

    Each annotated attribute of a subclass declares an argument or option of the command line, such
    as `workers: int = add_option("Number of workers.")`, or a group of them: a subclass of Options.
    An instance has the value, or the instance of the group, under the same name.
    """

    def __init__(self, **values: object) -> None:
        """Set the options by name: None for those that are not given.

        A group that is not given as an instance gets its own options from `values`, as click parses
        all options of a command into one dict.
        """
        for name in type(self).__annotations__:
            value, declaration = values.get(name), getattr(type(self), name)
            if isinstance(declaration, type) and not isinstance(value, declaration):
                value = declaration(**values)
            setattr(self, name, value)

    @classmethod
    def click_parameters(cls) -> list[click.Parameter]:
        """Make the click parameters that the class and its groups declare."""
        parameters: list[click.Parameter] = []
        for name in cls.__annotations__:
            declaration = getattr(cls, name)
            is_group = isinstance(declaration, type)
            parameters += declaration.click_parameters() if is_group else [declaration(name)]
        return parameters

    def replace(self, **changes: object) -> Self:
        """Return a copy with some values changed."""
        return type(self)(**(vars(self) | changes))


def command(function: Callable[[Any], object], name: str | None = None) -> Command:
    """Turn a function of `args`, whose class is a subclass of `Options`, into a click command.

    The class declares the command's arguments and options, in the order of the help page. The
    function is called with their values. Its docstring becomes the help page, and the first
    sentence the summary in lists of commands.

    name: the name of the command. Default: the function's name without "_command".
    """
    options: type[Options] = get_type_hints(function)["args"]
    quiet = click.Option(["--quiet"], is_flag=True, help="Show no progress.")
    return Command(
        name or function.__name__.removesuffix("_command"),
        callback=lambda **values: function(options(**values)),
        params=[*options.click_parameters(), quiet],
        help=function.__doc__,
    )


def option_values(args: Options, names: Collection[str] | None = None) -> dict[str, Any]:
    """Return {name: value} of the options in `args`, including those of its groups of options.

    names: the names to return; default: all. Unknown names are ignored.
    """
    values: dict[str, Any] = {}
    for name, value in vars(args).items():
        if isinstance(value, Options):  # a group, such as the options of the bootstrap
            values |= option_values(value, names)
        elif names is None or name in names:
            values[name] = value
    return values


def is_given(parameter: str) -> bool:
    """Return True if the user gave this argument or option on the command line."""
    source = click.get_current_context().get_parameter_source(parameter)
    return source is ParameterSource.COMMANDLINE


def refuse_given(parameters: Collection[str], conflict: str) -> None:
    """Raise UsageError, "FLAG: cannot be combined with CONFLICT", if any of the options was given.

    parameters: parameter names, such as "max_dist". Names that the command lacks are ignored.
    """
    params = click.get_current_context().command.params
    refused = [p for p in params if p.name in parameters and is_given(str(p.name))]
    if refused:
        flags = ", ".join(max(param.opts, key=len) for param in refused)
        raise click.UsageError(f"{flags}: cannot be combined with {conflict}")


def require_runs_or_methods(runs: Sequence[str], methods: Sequence[str]) -> None:
    """Raise UsageError unless the user gave exactly one of runs and --method."""
    if runs and methods:
        raise click.UsageError("give runs or --method, not both")
    if not runs and not methods:
        raise click.UsageError("give the folder of a run (OUT), or --method NAME=OUT")


def protocol_from(
    options: ProtocolOptions, metrics: Sequence[str] = (), valid_dir: str | None = None
) -> Protocol:
    """Build the protocol (the settings of counting and scoring) from the command-line options.

    It starts as the protocol of --signature or --protocol. If neither is given, it starts as the
    default protocol of the first metric or, without metrics, as bsds500. Then --set FIELD=VALUE and
    the options for single fields (--max-dist, --nms ..) change it. A warning is given for changes
    on which no score of the metrics depends. Raises ProtocolError if a value is invalid.

    options: the texts given by the user, such as options.max_dist = "0.01"; None if not given.
    valid_dir: the value of --valid (folder of field-of-view masks), which a signature may require.
    """
    from bsdsbench.protocol.protocol import Protocol
    from bsdsbench.protocol.signature import Signature

    start: Protocol | str | None = options.protocol  # the text of --protocol
    if options.signature:
        if options.protocol:
            raise click.UsageError("give --signature or --protocol, not both")
        signature = Signature.parse(options.signature)
        if signature.valid and not valid_dir:
            raise click.UsageError("--signature: has a field of view, which needs --valid FOLDER")
        start = signature.protocol
    elif start is None and metrics:
        start = registry.get(metrics[0]).default_protocol
    protocol = Protocol.load(start)
    if options.nms and options.nms != NMS_WITHOUT_RECIPE:  # the name of a recipe, such as "rcf"
        protocol = protocol.replace(nms_params=options.nms)
    changes = _changes_of(options)
    if changes:
        protocol = protocol.replace(**changes)
        # Warn of what was set in vain: fields, and metrics whose options were set, which are the
        # entries of the field "options". The fields "name" and "version" never change a score
        options_by_metric: Any = changes.get("options", ())
        changed = {*changes, *options_by_metric} - {"name", "version", "options"}
        unused = changed & registry.unused_settings(metrics, protocol)
        if unused:
            warn(InputWarning(f"{join_names(sorted(unused))}: not used by {join_names(metrics)}"))
    return registry.complete_options(protocol)  # with the defaults of metric options


def _changes_of(options: ProtocolOptions) -> dict[str, object]:
    """Return {field: value} of the fields of the protocol that the options change.

    Options of metrics are nested: --set depth.crop=1 gives {"options": {"depth": {"crop": 1}}}.
    Raises ProtocolError if a field is set twice.
    """
    from bsdsbench.protocol.signature import parse_overrides

    texts = list(options.set or ())  # FIELD=VALUE each
    for field in ("thresholds", "max_dist", "max_dist_px", "invert"):
        if value := getattr(options, field):
            texts.append(f"{field}={value}")
    if options.no_thin:
        texts.append("thin=false")
    if options.nms:
        texts.append("nms=true")
    changes = parse_overrides(texts) if texts else {}
    if "max_dist" in changes and changes.get("max_dist_px") is not None:
        raise click.UsageError("give --max-dist or --max-dist-px, not both")
    if options.thresholds:
        # Keep the text, which was parsed only to find a field that is set twice. The protocol knows
        # more forms of it, such as the "at .1,.2" of signatures, which was split at the comma
        changes["thresholds"] = options.thresholds
    return changes


def split_words(
    ctx: click.Context, param: click.Parameter, texts: tuple[str, ...]
) -> list[str] | None:
    """Split the values of a repeatable option at commas; None if the option is not given."""
    for text in texts:
        if not text.replace(",", " ").strip():
            raise click.UsageError(f"{param.opts[0]} {text!r}: expected words between commas")
    words = map(str.strip, ",".join(texts).split(","))
    return list(filter(None, words)) or None  # without empty words


def parse_shard(ctx: click.Context, param: click.Parameter, text: str) -> tuple[int, ...]:
    """Parse the value I/N of --shard to (I, N), where I is a number from 1 to N.

    A shard evaluates every N-th image, beginning with image I.
    """
    number, n_shards = 0, 0  # refused, as is a text of another form
    if re.fullmatch("[0-9]{1,7}/[0-9]{1,7}", text):
        number, n_shards = map(int, text.split("/"))
    if not 1 <= number <= n_shards:
        raise click.UsageError(f"--shard {text!r}: expected I/N with 1 <= I <= N, such as 1/4")
    return number, n_shards


class RunInputs(NamedTuple):
    """The inputs and settings of a run. A folder is None if it is neither given nor needed."""

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
    """Determine the task, folders, metrics and protocol of a run from its options.

    A task, such as "bsds500-test/boundary", sets the metric and the protocol. Folders that are not
    given are those of its data set.

    valid_dir, images: the values of --valid and of the argument IMAGES.
    takes_images: True for a command that runs a detector on images. Ground truth is then optional.

    Raises DataError if the data set was not downloaded.
    """
    from bsdsbench.protocol.tasks import Task

    gt: str | os.PathLike[str] | None = options.gt
    image_folder: str | os.PathLike[str] | None = images
    metrics = options.metrics or registry.DEFAULT_METRICS
    protocol_options = options.protocol
    task = None
    if options.task:
        from bsdsbench.loaders.sets.public_sets import set_folder  # imports readers of archives

        # --nms and --invert may be given: only the user knows whether the maps need them
        fixed_by_task = {*PROTOCOL_OPTIONS, "metrics", "humans"} - {"nms", "invert"}
        refuse_given(fixed_by_task, "--task, which fixes them")
        task = Task.load(options.task)
        metrics = (task.metric,)
        protocol_options = protocol_options.replace(protocol=task.protocol)
        gt = gt or set_folder(task.set)  # raises DataError if the set was not downloaded
        if takes_images:
            image_folder = images or set_folder(task.set, "images")
    elif not gt and not takes_images:
        raise click.UsageError(
            "give --gt FOLDER, or a --task whose set `bsdsbench data get` has downloaded"
        )
    names = registry.check_names(metrics)
    protocol = protocol_from(protocol_options, names, valid_dir)
    if metrics is registry.DEFAULT_METRICS:  # none were given
        registry.refuse_preset_of_others(protocol.name)
    return RunInputs(image_folder, gt, names, protocol, task)


def compile_first(
    metrics: Iterable[str] = registry.DEFAULT_METRICS, *folders: str | os.PathLike[str] | None
) -> None:
    """Compile the kernels if they were never compiled and any of the metrics matches pixels.

    A message announces the wait of a few seconds. If one of the input `folders` does not exist,
    nothing is compiled, so that the user gets the error at once. Folders that are None are ignored.
    """
    from bsdsbench.kernels import never_compiled

    if not never_compiled():
        return
    # Metrics that match pixels use the tolerance of the protocol, its field max_dist
    matches_pixels = any("max_dist" in registry.get(name).uses for name in metrics)
    inputs_exist = all(os.path.exists(folder) for folder in folders if folder is not None)
    if matches_pixels and inputs_exist:
        from bsdsbench.kernels.warm import compile_once

        log("first run: compiling the kernels, a few seconds", progress=True)
        compile_once()


# Two lines of progress are at least this far apart, or a tenth of the elapsed time if it is longer
PLAIN_SECONDS = 5.0
BRIEF = 2.0  # the last line of finished work is left out if less than this has passed since another


def log(line: str, progress: bool = False) -> None:
    """Print a line to standard error. A line with `progress` is not printed if --quiet is given."""
    if not (progress and click.get_current_context().params.get("quiet")):
        print(f"bsdsbench: {line}", file=sys.stderr)


@contextmanager
def progress(title: str, unit: str = "images") -> Iterator[Callable[[int, int, str], None] | None]:
    """Show the progress of the `with` block on standard error.

    In a terminal, show a bar. Otherwise print a line every PLAIN_SECONDS (5), or every tenth of the
    elapsed time if that is longer. A last line follows at the end, unless the previous line or the
    start was less than BRIEF seconds (2) before.

    title: the name of the work, such as "evaluate".
    unit: the plural noun for what is counted.

    Yields a function to call with (done, total, image id), or None if --quiet is given.
    """
    if click.get_current_context().params.get("quiet"):
        yield None
        return
    if not sys.stderr.isatty():
        yield _ProgressLines(title, unit).report
        return
    from rich.console import Console
    from rich.progress import MofNCompleteColumn, Progress

    columns = (*Progress.get_default_columns(), MofNCompleteColumn())
    bar = Progress(*columns, console=Console(stderr=True), transient=True)
    task = bar.add_task(title, total=None)
    with bar:
        yield lambda done, total, image_id: bar.update(task, completed=done, total=total)


class _ProgressLines:
    """Prints lines such as "evaluate: 3/10 images, 12 s elapsed, 0.4 images/s, 18 s left"."""

    def __init__(self, title: str, unit: str) -> None:
        """Begin to measure the time of the work `title` ("evaluate"), in `unit` ("images")."""
        self.title, self.unit = title, unit
        self.started = self.last_line = time.monotonic()
        self.first_call: tuple[int, float] | None = None  # what was done, and the time

    def report(self, done: int, total: int, image_id: str) -> None:
        """Print a line if one is due. Who reports progress also passes the id, which is unused."""
        now = time.monotonic()
        if self.first_call is None:
            self.first_call = done, now
        done_at_first, time_of_first = self.first_call
        elapsed = now - self.started
        is_last = done == total
        if now - self.last_line < (BRIEF if is_last else max(PLAIN_SECONDS, elapsed / 10)):
            return
        self.last_line = now
        line = f"{self.title}: {done}/{total} {self.unit}, {elapsed:.0f} s elapsed"
        if done > done_at_first:
            # From the first call on: before it, kernels were compiled and workers started
            rate = (done - done_at_first) / max(now - time_of_first, 1e-9)
            line += f", {rate:.1f} {self.unit}/s, {(total - done) / rate:.0f} s left"
        print(line, file=sys.stderr, flush=True)


def print_json(value: object) -> None:
    """Print `value` as JSON to standard output."""
    from bsdsbench.io import as_json

    print(as_json(value), end="")


def print_run(run: Evaluation, out: str | None, columns: Sequence[str] | None = None) -> None:
    """Print the score tables of a run, then its data set, its tasks, and its results folder.

    out: the results folder, or None if nothing was written.
    columns: the scores to show, or None for the default ones.
    """
    from bsdsbench.results.score_tables import score_tables

    show_tables(score_tables([run], columns=columns))
    if set_line := run.set_line:
        print(f"set      {set_line}")
    for task in run.tasks:
        print(f"task     {task.name}")
    if out:
        print(f"results  {out}")


def report_left_out(failed: Mapping[str, str], run: Evaluation | None) -> int:
    """Print the images that failed, with reasons, and those that the protocol left out.

    failed: image id -> reason.
    run: the run, or None if nothing was scored.

    Returns the exit status: 2 if any image failed, otherwise 0.
    """
    if run and (empty := run.provenance.empty_gt):
        reason = "left out: no boundary in the ground truth (empty_gt=skip)"
        log(f"{quantity(len(empty), 'image')} {reason}: {join_names(empty, 3)}")
    for image_id, reason in failed.items():
        log(f"left out {image_id!r}: {reason}")
    return 2 if failed else 0


def show_tables(
    tables: Sequence[Table],
    out: str | None = None,
    output_format: str = "table",
    left_out: Mapping[str, Any] | None = None,
) -> None:
    """Print tables, or write them to the file `out`, in a format of `forms.TABLE_FORMATS`.

    left_out: run name -> the images that the run left out, with reasons. In CSV, which has no
        notes, they are added as a last column to the tables of runs.
    """
    from bsdsbench.results.score_tables import with_left_out
    from bsdsbench.tables.forms import render, write_tables
    from bsdsbench.tables.table import print_tables

    if output_format == "csv" and left_out is not None:
        tables = with_left_out(tables, left_out)
    if out is not None:
        log(f"wrote {', '.join(map(str, write_tables(tables, out, output_format)))}")
    elif output_format != "table":
        print(render(tables, output_format).rstrip("\n"))
    else:
        print_tables(tables, sys.stdout)
