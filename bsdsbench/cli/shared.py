"""What verbs share: their words and classes, the protocol that flags mean, progress, tables."""

from __future__ import annotations

import os
import re
import shlex
import sys
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from functools import partial, reduce
from importlib import import_module
from typing import TYPE_CHECKING, Any

import attrs
import click
from click import Choice, IntRange
from click.core import ParameterSource

from bsdsbench.errors import Setting
from bsdsbench.io import as_json
from bsdsbench.kernels import never_compiled
from bsdsbench.metrics import registry
from bsdsbench.runs.keywords import RunKeywords
from bsdsbench.text import counted, did_you_mean, listed

if TYPE_CHECKING:
    from bsdsbench.protocol.protocol import Protocol
    from bsdsbench.results.evaluation import Evaluation
    from bsdsbench.tables.table import Table

Decorator = Callable[[Any], Any]

# What a user does, in the order of the help page. A group is a file, a verb a function in it.
GROUPS = {
    "Score": ("demo", "evaluate", "run", "merge", "nms"),
    "Understand": ("doctor", "compare", "errors", "worst", "explain", "plot"),
    "Curves": ("curves",),
    "Publish": ("report", "view", "share"),
    "Check": ("check", "data", "protocols"),
}
VERBS = {verb: heading.lower() for heading, verbs in GROUPS.items() for verb in verbs}

USUAL = "protocol's"  # what --nms without a recipe means
PLAIN_SECONDS = 5.0  # between two lines at first, later a tenth of the time that has passed
BRIEF = 2.0  # seconds of work that need no line


class Verbs(click.Group):
    """The verbs by groups; a group's file is imported when one of its verbs is called."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(VERBS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command:
        if cmd_name not in VERBS:
            ctx.fail(f"no verb {cmd_name!r}{did_you_mean(cmd_name, VERBS)}")
        return getattr(import_module(f"bsdsbench.cli.{VERBS[cmd_name]}"), f"{cmd_name}_verb")

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        wide = max(map(len, VERBS))
        for heading, verbs in GROUPS.items():
            lines = [
                (verb.ljust(wide), self.get_command(ctx, verb).get_short_help_str(80))
                for verb in verbs
            ]
            with formatter.section(heading):
                formatter.write_dl(lines)


class Verb(click.Command):
    """A verb: it has --quiet, --nms may stand alone; help lists the options in parts."""

    def __init__(self, *args: Any, **settings: Any) -> None:
        super().__init__(*args, **settings)
        self.params.append(click.Option(["--quiet"], is_flag=True, help="Show no progress."))

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if "--nms" in args:
            from bsdsbench.protocol.protocol import RECIPES

            # Without a recipe it stands for the protocol's, before other arguments too
            for k, word in enumerate(args):
                if word == "--nms" and [*args, ""][k + 1] not in RECIPES:
                    args[k] = f"--nms={USUAL}"
        rest = super().parse_args(ctx, args)
        ctx.meta["quiet"] = ctx.params.pop("quiet")
        return rest

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        parts: dict[str, Any] = {"Options": [], "Protocol": [], "Running": []}
        for param in self.get_params(ctx):
            if isinstance(param, click.Option) and param.name == "metrics":
                metrics, usual = ", ".join(registry.names()), ",".join(registry.DEFAULT_METRICS)
                param.help = f"Metrics to compute: {metrics}; default: {usual}."
            part = "Protocol" if param.name in PROTOCOL else "Options"
            record = param.get_help_record(ctx)
            parts["Running" if param.name in RUNNING else part] += [record] if record else []
        for heading, records in parts.items():
            if records:
                with formatter.section(heading):
                    formatter.write_dl(records)


def verb(function: Callable[..., object]) -> click.Command:
    """Return the verb of a function NAME_verb.

    Its help is the docstring, of which the first sentence stands in lists of verbs.
    """
    return click.command(function.__name__.removesuffix("_verb"), cls=Verb)(function)


def refuse(parameters: Collection[str], beside: str) -> None:
    """Raise UsageError naming each of the parameters that was given on the command line."""
    context = click.get_current_context()
    given = [
        max(param.opts, key=len)
        for param in context.command.params
        if param.name in parameters
        and context.get_parameter_source(param.name) is ParameterSource.COMMANDLINE
    ]
    if given:
        raise click.UsageError(f"{', '.join(given)}: not with {beside}")


def one_of_runs_and_methods(runs: Sequence[str], method: Sequence[str]) -> None:
    """Raise UsageError unless runs or methods are given, one of them."""
    if runs and method:
        raise click.UsageError("runs and --method: expected one of them")
    if not runs and not method:
        raise click.UsageError("Missing argument '[OUT|FILE|ref:NAME]...'.")


# Options -----------------------------------------------------------------------------------------


def together(*options: Decorator) -> Decorator:
    """Several options as one, in this order."""
    return lambda function: reduce(lambda decorated, one: one(decorated), options[::-1], function)


def add_option(*names_and_help: str, **more: Any) -> Decorator:
    """Return a click option from its names and, last, its help text."""
    return click.option(*names_and_help[:-1], help=names_and_help[-1], **more)


def choice(*names_and_help: str, words: Sequence[str]) -> Decorator:
    """An option that takes one of these words; the first is the default."""
    return add_option(*names_and_help, type=Choice(words), default=words[0])


def _words(ctx: click.Context, param: click.Parameter, texts: tuple[str, ...]) -> list[str] | None:
    words = list(filter(None, map(str.strip, ",".join(texts).split(","))))
    if param.name == "published" and words == ["list"]:
        from bsdsbench.comparison.published import published_results

        for key, row in published_results().items():
            facts = [str(row.year), row.variant, row.input, row.tasks[0]]
            print(f"{key:32}  {row.name} ({', '.join(filter(None, facts))})")
        ctx.exit()
    return words if texts else None


flag = partial(add_option, is_flag=True)
path = partial(add_option, type=click.Path())
# An option of words between commas, which may be repeated: a list, None where it is not given
words = partial(add_option, multiple=True, callback=_words)


def run_option(name: str, **changes: object) -> Decorator:
    """The flag of an option of a run, with the words that Python's documentation has."""
    field = attrs.fields_dict(RunKeywords)[name]
    flag: dict[str, Any] = {"default": field.default, **field.metadata["flag"], **changes}
    names = flag.pop("names", (f"--{name.replace('_', '-')}",))
    if flag.pop("path", False):
        flag["type"] = click.Path()
    if flag.pop("number", False):
        flag["type"] = IntRange(1)
    if "choices" in flag:
        flag["type"] = Choice(flag.pop("choices"))
    return add_option(*names, name, field.metadata["help"], **flag)


def _form(ctx: click.Context, param: click.Parameter, form: str | None) -> str:
    from bsdsbench.tables.forms import form_of

    out = ctx.params["out"]
    if ctx.params.get("history") and out and out.lower().endswith((".pdf", ".svg", ".png")):
        return "figure"
    return form_of(out, form)


names_option = words("--names", "Names of the runs; default: as stored.", metavar="A,B")


def _labels(ctx: click.Context, param: click.Parameter, texts: tuple[str, ...]) -> dict[str, str]:
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
    callback=_labels,
    metavar="KEY=TEXT",
)
runs = click.argument(
    "runs", nargs=-1, required=True, type=click.Path(), metavar="[OUT|FILE|ref:NAME]..."
)
grouping = together(run_option("groups"), run_option("group_by"))
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
slicing = add_option(
    "--by",
    "Show slices too: the groups of this column; numbers are cut at quartiles, or as in "
    "size=0,1024,9216; size=each cuts none. May be repeated.",
    multiple=True,
    metavar="COLUMN[=X,X]",
)
by_column = add_option(
    "--by",
    "Each slice too: the groups of this column, as in `evaluate --by`.",
    metavar="COLUMN[=X,X]",
)
slice_clusters = add_option(
    "--cluster",
    "Leave out whole groups of images by this column, such as patient, for the intervals of --by.",
    metavar="COLUMN",
)
cluster_option = add_option(
    "--cluster",
    "Draw, leave out and exchange whole groups of images by this column, such as scene or patient.",
    metavar="COLUMN",
)
truth = path(
    "--gt",
    "Ground-truth folder; default: the --task's, if `bsdsbench data get` downloaded it.",
)
published = words(
    "--published",
    "Published results to add: keys; `list` shows every one.",
    is_eager=True,
    metavar="KEY,...",
)
bootstrap = together(
    add_option("--n-boot", "Number of bootstrap samples.", type=IntRange(1), default=10_000),
    add_option(
        "--seed",
        "Bootstrap seed; the same seed gives the same numbers.",
        type=IntRange(0),
        default=0,
    ),
)
columns_option = words(
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
# -o, --format, --columns of a verb that makes tables
tables = together(
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
        callback=_form,
    ),
    columns_option,
)


def printed(*kinds: str) -> Decorator:
    """Return the option --format KIND, given as `form`."""
    return choice("--format", "form", "Output format.", words=kinds)


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
protocol = together(*PROTOCOL.values())
RUNNING = ("on_error", "workers", "executor", "shard", "fresh", "quiet")


def of_runs(on_error: str) -> Decorator:
    """The options of a run that `evaluate` and `run` have; `on_error` is the usual way."""
    return together(
        truth,
        run_option("task"),
        run_option("name"),
        words("--metrics", "", metavar="M,M"),
        run_option("split_file"),
        grouping,
        printed("table", "json"),
        protocol,
        run_option("on_error", default=on_error),
        run_option("shard", default="1/1"),
        run_option("workers"),
        run_option("executor", default="auto"),  # our __main__ can be imported by processes
        run_option("fresh"),
    )


# What they mean ----------------------------------------------------------------------------------


def protocol_from(options: dict[str, Any], metrics: Sequence[str] = ()) -> Protocol:
    """The protocol that the flags among `options` describe, which are taken out of there.

    It starts from that of the first metric, or bsds500. Raises ProtocolError, UsageError.
    """
    from bsdsbench.protocol.protocol import Protocol
    from bsdsbench.protocol.signature import Signature, parse_overrides

    given = dict.fromkeys(PROTOCOL) | options
    for name in PROTOCOL:
        options.pop(name, None)
    base, nms = given["protocol"], given["nms"]
    if given["signature"]:
        if base:
            raise click.UsageError("--signature, --protocol: expected one of them")
        signature = Signature.parse(given["signature"])
        if signature.valid and not given.get("valid_dir"):
            raise click.UsageError("--signature: its pixels have a field of view, expected --valid")
        base = signature.protocol
    elif base is None and metrics:
        base = registry.get(metrics[0]).default_protocol
    fields = list(given["set"] or ())
    if given["max_dist"] and given["max_dist_px"]:
        raise click.UsageError("--max-dist, --max-dist-px: expected one of them")
    if given["max_dist"]:  # also where the preset has pixels
        fields.append("max_dist_px=none")
    for flag in ("thresholds", "max_dist", "max_dist_px", "no_thin", "invert"):
        if given[flag]:
            fields.append(f"{flag.removeprefix('no_')}={given[flag]}")
    protocol = Protocol.load(base)
    if nms:
        fields.append("nms=true")
        protocol = protocol if nms == USUAL else protocol.replace(nms_params=nms)
    changes = parse_overrides(fields)
    if given["thresholds"]:
        changes["thresholds"] = given["thresholds"]  # which is read in forms of its own
    return registry.settled(protocol.replace(**changes))


def settle(options: dict[str, Any]) -> None:
    """Put what --task, --metrics, --shard and the flags of a protocol mean into a run's options.

    Without --gt the ground truth is that of the task's set in the cache; so are the images where
    they are an option. Raises UsageError, DataError.
    """
    from bsdsbench.loaders.sets.public_sets import set_folder
    from bsdsbench.protocol.tasks import Task

    if "shard" in options:
        parts = re.fullmatch("([0-9]{1,7})/([0-9]{1,7})", options["shard"])
        if not parts:
            raise click.UsageError(f"--shard {options['shard']!r}: expected I/N, such as 1/4")
        options["shard"] = int(parts[1]), int(parts[2])
    if options["task"]:
        refuse({*PROTOCOL, "metrics", "humans"} - {"nms", "invert"}, "--task, which fixes them")
        task = options["task"] = Task.load(options["task"])
        options["metrics"], options["protocol"] = [task.metric], task.protocol
        options["gt"] = options["gt"] or set_folder(task.set)
        if "images" in options:
            options["images"] = options["images"] or set_folder(task.set, "images")
    elif not options["gt"] and "images" not in options:
        raise click.UsageError(
            "give --gt FOLDER, or a --task whose set `bsdsbench data get` brings"
        )
    options["metrics"] = registry.resolved(options["metrics"] or registry.DEFAULT_METRICS)
    options["protocol"] = protocol_from(options, options["metrics"])


def compile_first(
    metrics: Iterable[str] = registry.DEFAULT_METRICS, *folders: str | os.PathLike[str]
) -> None:
    """Before a first run with metrics that match pixels, compile what does.

    folders : where one of them does not exist, nothing is compiled
    """
    match = any("max_dist" in registry.get(name).uses for name in metrics)
    if match and never_compiled() and all(map(os.path.exists, folders)):
        from bsdsbench.kernels.warm import compile_once

        say("first run: compiling the kernels, about 10 seconds", progress=True)
        compile_once()


# What is said ------------------------------------------------------------------------------------


def as_flag(setting: Setting, verb: str) -> str:
    """Return a setting as a user writes it on the command line of `verb`: `--nms`, `--set ...`.

    An option that the verb does not have stands as in Python.
    """
    from bsdsbench.protocol.protocol import Protocol

    params = Verbs().get_command(click.Context(Verbs()), verb).params
    flags = {param.name: max(param.opts, key=len) for param in params}
    fields = {*Protocol.names(), *registry.names()} if "set" in flags else set[str]()
    name = setting.name
    value = setting.value if isinstance(setting.value, str) else setting.shown()
    if name in flags and isinstance(setting.value, bool):
        return flags[name] if setting.value else f"without {flags[name]}"
    if name in flags:
        return f"{flags[name]} {shlex.quote(value)}"
    if name.partition(".")[0] in fields:
        value = value.lower() if isinstance(setting.value, bool) else value
        return f"--set {shlex.quote(f'{name}={value}')}"
    return str(attrs.evolve(setting, effect="", beside=()))


def say(line: str, progress: bool = False) -> None:
    """A line of ours on standard error; one on progress not with --quiet."""
    if not (progress and click.get_current_context().meta.get("quiet")):
        print(f"bsdsbench: {line}", file=sys.stderr)


@contextmanager
def progress(title: str, what: str = "images") -> Iterator[Callable[[int, int, str], None] | None]:
    """A function to call with (done, total, image id) that shows how far the work is.

    A bar on a terminal, else a line every few seconds, more seldom in a long run, and one at the
    end; None with --quiet. what : the things that are counted
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
    started = last = time.monotonic()
    first: tuple[int, float] | None = None  # that one also compiled and started workers

    def report(done: int, total: int, image_id: str) -> None:
        nonlocal first, last
        now = time.monotonic()
        before, since = first = first or (done, now)
        if bar:
            bar.update(0, completed=done, total=total)
        elif now - last >= (BRIEF if done == total else max(PLAIN_SECONDS, (now - started) / 10)):
            last = now
            line = f"{title}: {done}/{total} {what}, {now - started:.0f} s elapsed"
            if done > before:
                rate = (done - before) / max(now - since, 1e-9)
                line += f", {rate:.1f} {what}/s, {(total - done) / rate:.0f} s left"
            print(line, file=sys.stderr, flush=True)

    with bar or nullcontext():
        yield report


def print_json(value: object) -> None:
    """Print `value` as JSON to standard output."""
    print(as_json(value), end="")


def print_run(run: Evaluation, out: str | None, columns: Sequence[str] | None = None) -> None:
    """Print a run's tables, then its input folders and the folder of its results."""
    from bsdsbench.results.score_tables import score_tables

    show_tables(score_tables([run], columns=columns))
    if run.set_line:
        print(f"set      {run.set_line}")
    for task in run.tasks:
        print(f"task     {task.name}")
    if out:
        print(f"results  {out}")


def left_out(failed: Mapping[str, str], run: Evaluation | None) -> int:
    """Name the images that failed or that the protocol left out; the exit status."""
    if run and (empty := run.provenance.empty_gt):
        what = "left out: no boundary in the ground truth (empty_gt=skip)"
        say(f"{counted(len(empty), 'image')} {what}: {listed(empty, 3)}")
    for image_id, reason in failed.items():
        say(f"left out {image_id!r}: {reason}")
    return 2 if failed else 0


def show_tables(tables: Sequence[Table], out: str | None = None, form: str = "table") -> None:
    """Tables in a form: printed, or written to `out`."""
    from bsdsbench.tables.forms import render, write_tables
    from bsdsbench.tables.table import print_tables

    if out is not None:
        say(f"wrote {', '.join(map(str, write_tables(tables, out, form)))}")
    elif form != "table":
        print(render(tables, form).rstrip("\n"))
    else:
        shown, aside = [], []
        for table in tables:
            if table.aside:
                aside.append(table.title)
            else:
                shown.append(table)
        print_tables(shown, sys.stdout)
        if aside:
            print(f"\nIn a file (-o) and other formats also: {', '.join(aside)}")
