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

# The commands in the order of the help page. A heading is a file of this folder, in lower case.
GROUPS = {
    "Score": ("demo", "evaluate", "run", "merge", "nms"),
    "Understand": ("doctor", "compare", "errors", "worst", "explain", "plot"),
    "Curves": ("curves",),
    "Publish": ("report", "view", "share"),
    "Check": ("check", "data", "protocols"),
}
VERBS = {verb: heading.lower() for heading, verbs in GROUPS.items() for verb in verbs}

USUAL = "protocol's"  # the recipe that --nms without a recipe stands for


class Verbs(click.Group):
    """The group of all commands. A command's file is imported when the command is called."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names of all commands."""
        return list(VERBS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command:
        """Import a command. An unknown name ends the program with a suggestion."""
        if cmd_name not in VERBS:
            ctx.fail(f"no verb {cmd_name!r}{did_you_mean(cmd_name, VERBS)}")
        return getattr(import_module(f"bsdsbench.cli.{VERBS[cmd_name]}"), f"{cmd_name}_verb")

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the commands with their summaries, one section per heading of GROUPS."""
        width = max(map(len, VERBS))
        for heading, names in GROUPS.items():
            lines = [
                (name.ljust(width), self.get_command(ctx, name).get_short_help_str(80))
                for name in names
            ]
            with formatter.section(heading):
                formatter.write_dl(lines)


class Verb(click.Command):
    """A command with --quiet, an optional value of --nms, and a help page in sections."""

    def __init__(self, *args: Any, **settings: Any) -> None:
        super().__init__(*args, **settings)
        self.params.append(click.Option(["--quiet"], is_flag=True, help="Show no progress."))

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse the arguments. A --nms without a recipe gets the value USUAL."""
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
        """Write the options in the sections Options, Protocol and Running."""
        sections: dict[str, list[tuple[str, str]]] = {"Options": [], "Protocol": [], "Running": []}
        for param in self.get_params(ctx):
            if isinstance(param, click.Option) and param.name == "metrics":
                metrics = ", ".join(registry.names())
                default = ",".join(registry.DEFAULT_METRICS)
                param.help = f"Metrics to compute: {metrics}; default: {default}."
            heading = "Protocol" if param.name in PROTOCOL else "Options"
            if param.name in RUNNING:
                heading = "Running"
            record = param.get_help_record(ctx)
            if record:
                sections[heading].append(record)
        for heading, records in sections.items():
            if records:
                with formatter.section(heading):
                    formatter.write_dl(records)


class Given(SimpleNamespace):
    """The values of the arguments and options of a command, as attributes."""

    def only(self, *names: str) -> dict[str, Any]:
        """Return some of the values by their names, as keywords of a call."""
        return {name: getattr(self, name) for name in names}

    def options_of(self, keywords: type[Any]) -> dict[str, Any]:
        """Return the values that are keywords of a run, a TypedDict such as RunOptions."""
        return self.only(*(vars(self).keys() & keywords.__annotations__.keys()))


def verb(function: Callable[[Given], object]) -> click.Command:
    """Make the command NAME of a function NAME_verb, which takes all values as one `Given`.

    The docstring is the help page. Lists of commands show its first sentence.
    """

    @wraps(function)
    def call(**values: object) -> object:
        return function(Given(**values))

    return click.command(function.__name__.removesuffix("_verb"), cls=Verb)(call)


def refuse(parameters: Collection[str], beside: str) -> None:
    """Raise UsageError if the user gave any of these parameters.

    `beside` says in the message what the parameters do not go with.
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


def one_of_runs_and_methods(given: Given) -> None:
    """Raise UsageError unless the user gave either runs or methods."""
    if given.runs and given.method:
        raise click.UsageError("runs and --method: expected one of them")
    if not given.runs and not given.method:
        raise click.UsageError("Missing argument '[OUT|FILE|ref:NAME]...'.")


# Options -----------------------------------------------------------------------------------------


def together(*options: Decorator) -> Decorator:
    """Combine several option decorators into one decorator, in this order."""
    return lambda function: reduce(lambda decorated, add: add(decorated), options[::-1], function)


def add_option(*names_and_help: str, **settings: Any) -> Decorator:
    """Return the decorator of a click option. The last of `names_and_help` is the help text."""
    return click.option(*names_and_help[:-1], help=names_and_help[-1], **settings)


def choice(*names_and_help: str, choices: Sequence[str]) -> Decorator:
    """Return an option that takes one of these choices. The first choice is the default."""
    return add_option(*names_and_help, type=Choice(choices), default=choices[0])


def _split_words(
    ctx: click.Context, param: click.Parameter, texts: tuple[str, ...]
) -> list[str] | None:
    """Split the values of a repeated option at commas, or return None if the option is not given.

    `--published list` prints the published results and ends the program.
    """
    items = [item.strip() for item in ",".join(texts).split(",") if item.strip()]
    if param.name == "published" and items == ["list"]:
        from bsdsbench.comparison.published import published_results

        for key, row in published_results().items():
            details = [str(row.year), row.variant, row.input, row.tasks[0]]
            print(f"{key:32}  {row.name} ({', '.join(filter(None, details))})")
        ctx.exit()
    return items if texts else None


flag = partial(add_option, is_flag=True)
path = partial(add_option, type=click.Path())
# An option that takes words between commas and may be repeated. Its value is a list, or None.
word_list = partial(add_option, multiple=True, callback=_split_words)


def run_option(name: str, **changes: object) -> Decorator:
    """Return the command-line option of a keyword of `RunKeywords`, with the keyword's help.

    `changes` override the settings that the keyword's metadata give to click.
    """
    field = attrs.fields_dict(RunKeywords)[name]
    settings: dict[str, Any] = {"default": field.default, **field.metadata["flag"], **changes}
    names = settings.pop("names", (f"--{name.replace('_', '-')}",))
    if settings.pop("path", False):
        settings["type"] = click.Path()
    if settings.pop("number", False):
        settings["type"] = IntRange(1)
    if "choices" in settings:
        settings["type"] = Choice(settings.pop("choices"))
    return add_option(*names, name, field.metadata["help"], **settings)


def _output_format(ctx: click.Context, param: click.Parameter, form: str | None) -> str:
    """Return the format of --format or of the suffix of -o.

    With --history the suffix of a plot gives the format "figure".
    """
    from bsdsbench.tables.forms import form_of

    out = ctx.params["out"]
    if ctx.params.get("history") and out and out.lower().endswith((".pdf", ".svg", ".png")):
        return "figure"
    return form_of(out, form)


names_option = word_list("--names", "Names of the runs; default: as stored.", metavar="A,B")


def _parse_labels(
    ctx: click.Context, param: click.Parameter, texts: tuple[str, ...]
) -> dict[str, str]:
    """Parse the values KEY=TEXT of --label."""
    for text in texts:
        if "=" not in text:
            raise click.BadParameter(f"{text!r}: expected KEY=TEXT", ctx, param)
    return dict(text.split("=", 1) for text in texts)


labels_option = add_option(
    "--label",
    "labels",
    "Another name to show: KEY is a run's name or folder, or the key of a published result; may "
    "be repeated.",
    multiple=True,
    callback=_parse_labels,
    metavar="KEY=TEXT",
)
runs_argument = click.argument(
    "runs", nargs=-1, required=True, type=click.Path(), metavar="[OUT|FILE|ref:NAME]..."
)
grouping_options = together(run_option("groups"), run_option("group_by"))
runs_or_methods = click.argument(
    "runs", nargs=-1, type=click.Path(), metavar="[OUT|FILE|ref:NAME]..."
)
methods_option = together(
    add_option(
        "--method",
        "method",
        "A method of one or more runs (seeds, folds), in place of OUT; may be repeated.",
        multiple=True,
        metavar="NAME='out/seed*'",
    ),
    add_option(
        "--spread",
        "Beside the mean over runs, or as the band of a mean curve: standard deviation, range, or "
        "standard error.",
        type=Choice(("sd", "range", "se")),
        default="sd",
    ),
)
slicing_option = add_option(
    "--by",
    "Show slices too: the groups of this column; numbers are cut at quartiles, or as in "
    "size=0,1024,9216; size=each cuts none. May be repeated.",
    multiple=True,
    metavar="COLUMN[=X,X]",
)
by_option = add_option(
    "--by",
    "Each slice too: the groups of this column, as in `evaluate --by`.",
    metavar="COLUMN[=X,X]",
)
slice_cluster_option = add_option(
    "--cluster",
    "Leave out whole groups of images by this column, such as patient, for the intervals of --by.",
    metavar="COLUMN",
)
cluster_option = add_option(
    "--cluster",
    "Draw, leave out and exchange whole groups of images by this column, such as scene or patient.",
    metavar="COLUMN",
)
ground_truth_option = path(
    "--gt",
    "Ground-truth folder; default: the --task's, if `bsdsbench data get` downloaded it.",
)
published_option = word_list(
    "--published",
    "Published results to add: keys; `list` shows every one.",
    is_eager=True,
    metavar="KEY,...",
)
bootstrap_options = together(
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
    "Show only these scores, by key or heading, such as ods,ois,ap; all: every one.",
    metavar="SCORE,...",
)
summary_option = add_option(
    "--summary",
    "Also the images' own values, with n and how many are undefined: mean and standard deviation; "
    "with the median; with the quartiles (iqr).",
    type=Choice(("mean", "median", "iqr")),
)
# -o, --format and --columns of a command that makes tables
table_options = together(
    path(
        "-o",
        "--out",
        "Write to this file; the suffix chooses the format: .txt, .md, .tex, .csv, .json, "
        ".html. Several CSV tables become NAME-TABLE.csv.",
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
    """Return the option --format, whose value is the keyword `form` of the command."""
    return choice("--format", "form", "Output format.", choices=formats)


PROTOCOL = {
    "protocol": add_option(
        "--protocol",
        "A preset (`bsdsbench protocols`) or a .toml file; default: that of the first metric, "
        "bsds500 for most.",
        metavar="NAME|FILE",
    ),
    "signature": add_option(
        "--signature",
        "Use the protocol of a signature, as printed under tables.",
        metavar="LINE",
    ),
    "thresholds": add_option(
        "--thresholds",
        "Number of evenly spaced thresholds, or their values.",
        metavar="N|T,T",
    ),
    "max_dist": add_option(
        "--max-dist",
        "Match tolerance, a fraction of the diagonal. Of several (.0075,.00375) the first gives "
        "the scores, and each has columns of its own, with their means.",
        metavar="F,F",
    ),
    "max_dist_px": add_option(
        "--max-dist-px", "The same in pixels, such as 2 or 1,2,4.", metavar="PX,PX"
    ),
    "no_thin": flag("--no-thin", "Do not thin before matching.", flag_value="false"),
    "nms": add_option(
        "--nms",
        "Apply edge NMS to raw maps: the protocol's recipe, or hed, rcf, dexined ...",
        metavar="[RECIPE]",
    ),
    "invert": flag("--invert", "Maps are dark on bright: use 1 - value.", flag_value="true"),
    "set": add_option(
        "--set",
        "Set another field, such as nms_params.radius=2; an unknown one lists them.",
        multiple=True,
        metavar="FIELD=VALUE",
    ),
}
protocol_options = together(*PROTOCOL.values())
RUNNING = ("on_error", "workers", "executor", "shard", "fresh", "quiet")


def evaluation_options(on_error: str) -> Decorator:
    """Return the options that `evaluate` and `run` share. `on_error` is the default of --on-error.

    The default executor is "auto": processes can import the __main__ of the command line.
    """
    return together(
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


def protocol_from(given: Given, metrics: Sequence[str] = ()) -> Protocol:
    """Return the protocol that the protocol flags of a command describe.

    The flags override --signature or --protocol, by default the protocol of the first metric, or
    bsds500 if `metrics` is empty. Raises ProtocolError for a bad value, and UsageError if two flags
    exclude each other.
    """
    from bsdsbench.protocol.signature import parse_overrides

    flags: dict[str, Any] = dict.fromkeys(PROTOCOL) | vars(given)
    preset = _preset_of(flags, metrics)
    overrides = list(flags["set"] or ())
    if flags["max_dist"] and flags["max_dist_px"]:
        raise click.UsageError("--max-dist, --max-dist-px: expected one of them")
    if flags["max_dist"]:  # the preset may give its tolerance in pixels
        overrides.append("max_dist_px=none")
    for flag in ("thresholds", "max_dist", "max_dist_px", "no_thin", "invert"):
        if flags[flag]:
            overrides.append(f"{flag.removeprefix('no_')}={flags[flag]}")
    if flags["nms"]:
        overrides.append("nms=true")
        if flags["nms"] != USUAL:
            preset = preset.replace(nms_params=flags["nms"])
    changes = parse_overrides(overrides)
    if flags["thresholds"]:  # also takes forms that --set does not
        changes["thresholds"] = flags["thresholds"]
    return registry.settled(preset.replace(**changes))


def _preset_of(flags: Mapping[str, Any], metrics: Sequence[str]) -> Protocol:
    """Return the protocol of --signature or --protocol, else the default of the first metric."""
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


def resolve_run_options(given: Given) -> None:
    """Replace --task, --metrics, --shard and --protocol by the values of a run, in place.

    Without --gt, a task's set in the cache gives the ground truth, and also the images if the
    command takes images. Raises UsageError if an option cannot be resolved.
    """
    from bsdsbench.loaders.sets.public_sets import set_folder
    from bsdsbench.protocol.tasks import Task

    if hasattr(given, "shard"):
        shard = re.fullmatch("([0-9]{1,7})/([0-9]{1,7})", given.shard)
        if not shard:
            raise click.UsageError(f"--shard {given.shard!r}: expected I/N, such as 1/4")
        given.shard = int(shard[1]), int(shard[2])
    takes_images = hasattr(given, "images")
    if given.task:
        refuse({*PROTOCOL, "metrics", "humans"} - {"nms", "invert"}, "--task, which fixes them")
        task = Task.load(given.task)
        given.task = task
        given.metrics = [task.metric]
        given.protocol = task.protocol
        given.gt = given.gt or set_folder(task.set)
        if takes_images:
            given.images = given.images or set_folder(task.set, "images")
    elif not given.gt and not takes_images:
        raise click.UsageError(
            "give --gt FOLDER, or a --task whose set `bsdsbench data get` brings"
        )
    given.metrics = registry.resolved(given.metrics or registry.DEFAULT_METRICS)
    given.protocol = protocol_from(given, given.metrics)


def compile_first(
    metrics: Iterable[str] = registry.DEFAULT_METRICS, *folders: str | os.PathLike[str]
) -> None:
    """Compile the kernels before the first run, if a metric matches pixels.

    Nothing is compiled if one of `folders` does not exist.
    """
    matches_pixels = any("max_dist" in registry.get(name).uses for name in metrics)
    if matches_pixels and never_compiled() and all(map(os.path.exists, folders)):
        from bsdsbench.kernels.warm import compile_once

        say("first run: compiling the kernels, about 10 seconds", progress=True)
        compile_once()


# Output ------------------------------------------------------------------------------------------


def as_flag(setting: Setting, verb: str) -> str:
    """Return a setting as the user writes it on the command line of `verb`, such as "--nms".

    A setting that the command has no option for is written as in Python.
    """
    from bsdsbench.protocol.protocol import Protocol

    params = Verbs().get_command(click.Context(Verbs()), verb).params
    flags = {param.name: max(param.opts, key=len) for param in params}
    fields_of_set = {*Protocol.names(), *registry.names()} if "set" in flags else set[str]()
    name = setting.name
    value = setting.value if isinstance(setting.value, str) else setting.shown()
    if name in flags and isinstance(setting.value, bool):
        return flags[name] if setting.value else f"without {flags[name]}"
    if name in flags:
        return f"{flags[name]} {shlex.quote(value)}"
    if name.partition(".")[0] in fields_of_set:
        if isinstance(setting.value, bool):
            value = value.lower()
        return f"--set {shlex.quote(f'{name}={value}')}"
    return str(attrs.evolve(setting, effect="", beside=()))
