"""Parts that several commands share: classes, options, and the keywords they stand for."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import partial, reduce, wraps
from importlib import import_module
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import attrs
import click
from click import Choice, IntRange
from click.core import ParameterSource

from bsdsbench.cli.output import say
from bsdsbench.errors import Setting
from bsdsbench.kernels import never_compiled
from bsdsbench.metrics import registry
from bsdsbench.runs.keywords import RunKeywords
from bsdsbench.text import did_you_mean

if TYPE_CHECKING:
    from bsdsbench.protocol.protocol import Protocol

Decorator = Callable[[Any], Any]

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

USUAL = "protocol's"  # the value of a --nms without a recipe: the recipe of the protocol


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

        --quiet is kept in `ctx.meta`, so that it is no parameter of the command's function. Returns
        the arguments that were not parsed.
        """
        if "--nms" in args:
            from bsdsbench.protocol.protocol import RECIPES

            for k, argument in enumerate(args):
                following = args[k + 1] if k + 1 < len(args) else ""
                if argument == "--nms" and following not in RECIPES:
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
            record = param.get_help_record(ctx)  # (option, help text), or None if hidden
            if record:
                sections[heading].append(record)
        for heading, records in sections.items():
            if records:
                with formatter.section(heading):
                    formatter.write_dl(records)


class Arguments(SimpleNamespace):
    """The values of the arguments and options of a command, as attributes.

    An attribute has the name that click gives to the option: --split-file is `split_file`.
    """

    def only(self, *names: str) -> dict[str, Any]:
        """Return the values of these names, as keywords of a call."""
        return {name: getattr(self, name) for name in names}

    def options_of(self, keywords: type[Any]) -> dict[str, Any]:
        """Return the values that are keys of `keywords`, a TypedDict such as RunOptions.

        Keys for which the command has no option are left out.
        """
        return self.only(*(vars(self).keys() & keywords.__annotations__.keys()))


def command(function: Callable[..., object]) -> click.Command:
    """Make the command NAME of a function NAME_command.

    The function is called with the values of all arguments and options as keywords. Its docstring
    is the help page, and the first sentence of the docstring is the summary in lists of commands.
    """
    return click.command(function.__name__.removesuffix("_command"), cls=Command)(function)


def with_arguments(function: Callable[[Arguments], object]) -> Callable[..., object]:
    """Let the function of a command take all values as one `Arguments`, in place of keywords."""

    @wraps(function)
    def call(**values: object) -> object:
        return function(Arguments(**values))

    return call


def refuse(parameters: Collection[str], beside: str) -> None:
    """Raise UsageError "FLAG: not with `beside`" if the user gave one of these parameters.

    `parameters` are names as in `Arguments`. A default value counts as not given.
    """
    context = click.get_current_context()
    flags = [
        max(param.opts, key=len)
        for param in context.command.params
        if param.name in parameters
        and context.get_parameter_source(param.name) is ParameterSource.COMMANDLINE
    ]
    if flags:
        raise click.UsageError(f"{', '.join(flags)}: not with {beside}")


def require_runs_or_methods(args: Arguments) -> None:
    """Raise UsageError if the user gave both runs and --method, or neither."""
    if args.runs and args.method:
        raise click.UsageError("runs and --method: expected one of them")
    if not args.runs and not args.method:
        raise click.UsageError("Missing argument '[OUT|FILE|ref:NAME]...'.")


# Options -----------------------------------------------------------------------------------------


def combine_options(*options: Decorator) -> Decorator:
    """Combine several option decorators into one. The help page shows them in this order."""
    return lambda function: reduce(lambda decorated, add: add(decorated), options[::-1], function)


def add_option(*names_and_help: str, **settings: Any) -> Decorator:
    """Return the decorator of a click option.

    `names_and_help` are the flags and, optionally, the name of the parameter, as click takes them,
    then the help text. `settings` are further keywords of `click.option`.
    """
    return click.option(*names_and_help[:-1], help=names_and_help[-1], **settings)


def choice(*names_and_help: str, choices: Sequence[str]) -> Decorator:
    """Return an option that takes one of `choices`. The first choice is the default."""
    return add_option(*names_and_help, type=Choice(choices), default=choices[0])


def _split_words(
    ctx: click.Context, param: click.Parameter, texts: tuple[str, ...]
) -> list[str] | None:
    """Split the values of a repeated option at commas, or return None if the option is not given.

    `--published list` prints the published results instead, and ends the program.
    """
    items = [item.strip() for item in ",".join(texts).split(",") if item.strip()]
    if param.name == "published" and items == ["list"]:
        _print_published()
        ctx.exit()
    return items if texts else None


def _print_published() -> None:
    """Print a line with key, name and details of each published result."""
    from bsdsbench.comparison.published import published_results

    for key, row in published_results().items():
        details = [str(row.year), row.variant, row.input, row.tasks[0]]
        print(f"{key:32}  {row.name} ({', '.join(filter(None, details))})")


flag = partial(add_option, is_flag=True)
path = partial(add_option, type=click.Path())
# An option that takes words separated by commas and may be repeated. Its value is a list, or None.
word_list = partial(add_option, multiple=True, callback=_split_words)


def run_option(name: str, **changes: object) -> Decorator:
    """Return the command-line option of a keyword of `RunKeywords`, with the keyword's help.

    The keyword's metadata "flag" hold settings of `click.option`, and four settings of our own:

    - names: the flags, if they are not "--" and the name of the keyword
    - path: True for an option that takes a path
    - number: True for an option that takes a number of at least 1
    - choices: the words that the option takes

    `changes` override these settings.
    """
    field = attrs.fields_dict(RunKeywords)[name]
    settings: dict[str, Any] = {"default": field.default, **field.metadata["flag"], **changes}
    flags = settings.pop("names", (f"--{name.replace('_', '-')}",))
    if settings.pop("path", False):
        settings["type"] = click.Path()
    if settings.pop("number", False):
        settings["type"] = IntRange(1)
    if "choices" in settings:
        settings["type"] = Choice(settings.pop("choices"))
    return add_option(*flags, name, field.metadata["help"], **settings)


def _output_format(ctx: click.Context, param: click.Parameter, form: str | None) -> str:
    """Return the format of the tables: that of --format, or else of the suffix of -o, or "table".

    A callback of --format. With --history, -o may also be a plot, whose format is "figure".
    """
    from bsdsbench.tables.forms import form_of

    out = ctx.params["out"]
    if ctx.params.get("history") and out and out.lower().endswith((".pdf", ".svg", ".png")):
        return "figure"
    return form_of(out, form)


names_option = word_list(
    "--names", "Names of the runs, in order; default: as stored.", metavar="A,B"
)


def _parse_labels(
    ctx: click.Context, param: click.Parameter, texts: tuple[str, ...]
) -> dict[str, str]:
    """Parse the values KEY=TEXT of --label to a mapping of key to text."""
    for text in texts:
        if "=" not in text:
            raise click.BadParameter(f"{text!r}: expected KEY=TEXT", ctx, param)
    return dict(text.split("=", 1) for text in texts)


labels_option = add_option(
    "--label",
    "labels",
    "Another name to show. KEY is the name or folder of a run, or the key of a published result. "
    "May be repeated.",
    multiple=True,
    callback=_parse_labels,
    metavar="KEY=TEXT",
)
runs_argument = click.argument(
    "runs", nargs=-1, required=True, type=click.Path(), metavar="[OUT|FILE|ref:NAME]..."
)
grouping_options = combine_options(run_option("groups"), run_option("group_by"))
runs_or_methods = click.argument(
    "runs", nargs=-1, type=click.Path(), metavar="[OUT|FILE|ref:NAME]..."
)
methods_option = combine_options(
    add_option(
        "--method",
        "method",
        "A method of one or more runs, such as seeds or folds, in place of OUT. May be repeated.",
        multiple=True,
        metavar="NAME='out/seed*'",
    ),
    add_option(
        "--spread",
        "Spread shown with the mean over runs, or as the band of a mean curve: standard deviation "
        "(sd), range, or standard error (se).",
        type=Choice(("sd", "range", "se")),
        default="sd",
    ),
)
slicing_option = add_option(
    "--by",
    "Also show slices of the images: the groups of this column. Numbers are divided at their "
    "quartiles, or at limits as in size=0,1024,9216; size=each makes a group of each number. May "
    "be repeated.",
    multiple=True,
    metavar="COLUMN[=X,X]",
)
by_option = add_option(
    "--by",
    "Also show each slice of the images: the groups of this column, as in `evaluate --by`.",
    metavar="COLUMN[=X,X]",
)
slice_cluster_option = add_option(
    "--cluster",
    "For the intervals of --by, leave out whole groups of images by this column, such as patient.",
    metavar="COLUMN",
)
cluster_option = add_option(
    "--cluster",
    "Treat the groups of this column, such as scene or patient, as units: they are drawn, left "
    "out and exchanged as a whole.",
    metavar="COLUMN",
)
ground_truth_option = path(
    "--gt",
    "Ground-truth folder; default: that of --task, if `bsdsbench data get` downloaded it.",
)
published_option = word_list(
    "--published",
    "Published results to add, by their keys; `list` prints all keys.",
    is_eager=True,
    metavar="KEY,...",
)
bootstrap_options = combine_options(
    add_option("--n-boot", "Number of bootstrap samples.", type=IntRange(1), default=10_000),
    add_option(
        "--seed",
        "Bootstrap seed; the same seed gives the same numbers.",
        type=IntRange(0),
        default=0,
    ),
)
columns_option = word_list(
    "--columns",
    "Show only these scores, by key or heading, such as ods,ois,ap; `all` shows every score.",
    metavar="SCORE,...",
)
summary_option = add_option(
    "--summary",
    "Also summarise the scores of single images, with their number and how many are undefined: by "
    "mean and standard deviation (mean), also the median (median), or also the quartiles (iqr).",
    type=Choice(("mean", "median", "iqr")),
)
# -o, --format and --columns of a command that makes tables
table_options = combine_options(
    path(
        "-o",
        "--out",
        "Write to this file. The suffix selects the format: .txt, .md, .tex, .csv, .json or .html. "
        "Several CSV tables are written to NAME-TABLE.csv.",
        is_eager=True,
    ),
    add_option(
        "--format",
        "form",
        "Format on standard output.  [default: table]",
        type=Choice(["table", "markdown", "latex", "csv", "json", "html"]),
        callback=_output_format,
    ),
    columns_option,
)


def format_option(*formats: str) -> Decorator:
    """Return the option --format, whose value is the parameter `form`. The default is the first."""
    return choice("--format", "form", "Output format.", choices=formats)


# The options that change the protocol, by the names of their parameters
PROTOCOL = {
    "protocol": add_option(
        "--protocol",
        "A preset (see `bsdsbench protocols`) or a .toml file; default: the preset of the first "
        "metric, bsds500 for most metrics.",
        metavar="NAME|FILE",
    ),
    "signature": add_option(
        "--signature",
        "Use the protocol of a signature, the line printed under tables.",
        metavar="LINE",
    ),
    "thresholds": add_option(
        "--thresholds",
        "The number of evenly spaced thresholds, or the values of the thresholds.",
        metavar="N|T,T",
    ),
    "max_dist": add_option(
        "--max-dist",
        "Match tolerance, as a fraction of the image diagonal. With several (.0075,.00375) the "
        "first gives the scores, and further columns show the scores at each and their means.",
        metavar="F,F",
    ),
    "max_dist_px": add_option(
        "--max-dist-px", "Match tolerance in pixels, such as 2 or 1,2,4.", metavar="PX,PX"
    ),
    "no_thin": flag("--no-thin", "Do not thin the maps before matching.", flag_value="false"),
    "nms": add_option(
        "--nms",
        "Apply edge NMS to raw maps, by the protocol's recipe or another: hed, rcf, dexined ...",
        metavar="[RECIPE]",
    ),
    "invert": flag("--invert", "The maps are dark on bright: use 1 - value.", flag_value="true"),
    "set": add_option(
        "--set",
        "Set another field, such as nms_params.radius=2; an unknown field lists them. May be "
        "repeated.",
        multiple=True,
        metavar="FIELD=VALUE",
    ),
}
protocol_options = combine_options(*PROTOCOL.values())
RUNNING = ("on_error", "workers", "executor", "shard", "fresh", "quiet")


def evaluation_options(on_error: str) -> Decorator:
    """Return the options that `evaluate` and `run` share. `on_error` is the default of --on-error.

    The default executor is "auto", because processes can import the __main__ of the command line.
    """
    return combine_options(
        ground_truth_option,
        run_option("task"),
        run_option("name"),
        word_list("--metrics", "", metavar="M,M"),
        run_option("split_file"),
        grouping_options,
        format_option("table", "json"),
        protocol_options,
        run_option("on_error", default=on_error),
        run_option("shard", default="1/1"),
        run_option("workers"),
        run_option("executor", default="auto"),
        run_option("fresh"),
    )


# From options to keywords ------------------------------------------------------------------------


def protocol_from(args: Arguments, metrics: Sequence[str] = ()) -> Protocol:
    """Return the protocol that the options of a command describe.

    The options in PROTOCOL override, field by field, the protocol of --signature or --protocol, or
    else the default protocol of the first of `metrics`, or bsds500 without metrics. A command may
    lack some of these options.

    Raises ProtocolError for a value that a field does not accept, and UsageError if two options
    exclude each other.
    """
    from bsdsbench.protocol.signature import parse_overrides

    flags: dict[str, Any] = dict.fromkeys(PROTOCOL) | vars(args)
    protocol = _base_protocol(flags, metrics)
    overrides = list(flags["set"] or ())
    if flags["max_dist"] and flags["max_dist_px"]:
        raise click.UsageError("--max-dist, --max-dist-px: expected one of them")
    if flags["max_dist"]:  # the preset may give its tolerance in pixels
        overrides.append("max_dist_px=none")
    for name in ("thresholds", "max_dist", "max_dist_px", "no_thin", "invert"):
        if flags[name]:  # the value of --no-thin is "false", that of --invert "true"
            overrides.append(f"{name.removeprefix('no_')}={flags[name]}")
    if flags["nms"]:
        overrides.append("nms=true")
        if flags["nms"] != USUAL:
            protocol = protocol.replace(nms_params=flags["nms"])
    changes = parse_overrides(overrides)
    if flags["thresholds"]:  # also takes forms that --set does not
        changes["thresholds"] = flags["thresholds"]
    return registry.settled(protocol.replace(**changes))


def _base_protocol(flags: Mapping[str, Any], metrics: Sequence[str]) -> Protocol:
    """Return the protocol of --signature or --protocol, else the default of the first metric.

    `flags` has the values of the options by name, None if an option is not given. Raises UsageError
    if both options are given, and if a signature has a field of view but --valid is not given.
    """
    from bsdsbench.protocol.protocol import Protocol
    from bsdsbench.protocol.signature import Signature

    if flags["signature"]:
        if flags["protocol"]:
            raise click.UsageError("--signature, --protocol: expected one of them")
        signature = Signature.parse(flags["signature"])
        if signature.valid and not flags.get("valid_dir"):
            raise click.UsageError("--signature: its pixels have a field of view, expected --valid")
        return Protocol.load(signature.protocol)
    if flags["protocol"] is None and metrics:
        return Protocol.load(registry.get(metrics[0]).default_protocol)
    return Protocol.load(flags["protocol"])


def resolve_run_options(args: Arguments) -> None:
    """Replace the texts of options by the values that a run takes, in place.

    - shard: (I, N) of "I/N", if the command has this option
    - task: the Task of this name, which also sets `metrics` and `protocol`. If its data set was
      downloaded, it is the default of `gt` and, if the command takes images, of `images`.
    - metrics: names of metrics, by default DEFAULT_METRICS
    - protocol: the Protocol of all protocol options

    Raises UsageError if an option is malformed, if the task forbids an option, or if a command
    that needs ground truth has neither --gt nor --task.
    """
    from bsdsbench.loaders.sets.public_sets import set_folder
    from bsdsbench.protocol.tasks import Task

    if hasattr(args, "shard"):
        shard = re.fullmatch("([0-9]{1,7})/([0-9]{1,7})", args.shard)
        if not shard:
            raise click.UsageError(f"--shard {args.shard!r}: expected I/N, such as 1/4")
        args.shard = int(shard[1]), int(shard[2])
    takes_images = hasattr(args, "images")
    if args.task:
        refuse({*PROTOCOL, "metrics", "humans"} - {"nms", "invert"}, "--task, which fixes them")
        task = Task.load(args.task)
        args.task = task
        args.metrics = [task.metric]
        args.protocol = task.protocol
        args.gt = args.gt or set_folder(task.set)
        if takes_images:
            args.images = args.images or set_folder(task.set, "images")
    elif not args.gt and not takes_images:
        raise click.UsageError(
            "give --gt FOLDER, or a --task whose set `bsdsbench data get` brings"
        )
    args.metrics = registry.resolved(args.metrics or registry.DEFAULT_METRICS)
    args.protocol = protocol_from(args, args.metrics)


def compile_first(
    metrics: Iterable[str] = registry.DEFAULT_METRICS, *folders: str | os.PathLike[str]
) -> None:
    """Compile the kernels, and say so, if no kernel was ever compiled and a metric matches pixels.

    Nothing is compiled if one of `folders`, the inputs, does not exist, so that the error about the
    folder comes at once.
    """
    matches_pixels = any("max_dist" in registry.get(name).uses for name in metrics)
    if matches_pixels and never_compiled() and all(map(os.path.exists, folders)):
        from bsdsbench.kernels.warm import compile_once

        say("first run: compiling the kernels, about 10 seconds", progress=True)
        compile_once()


# Output ------------------------------------------------------------------------------------------


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
