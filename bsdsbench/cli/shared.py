"""What verbs share: their words and classes, the protocol that flags mean, progress, tables."""

from __future__ import annotations

import json
import re
import sys
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from functools import partial, reduce
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

import attrs
import click
from click import Choice, IntRange, option
from click.core import ParameterSource

from bsdsbench.files.bounded import counted, listed
from bsdsbench.files.errors import did_you_mean
from bsdsbench.runs.run_options import RunOptions, words_of

if TYPE_CHECKING:
    from bsdsbench.protocol.protocol import Protocol
    from bsdsbench.runs.evaluation import Evaluation
    from bsdsbench.tables.table import Table

Decorator = Callable[[Any], Any]

# What a user does, in the order of the help page. A group is a file, a verb a function in it.
GROUPS = {
    "Score": ("demo", "evaluate", "run", "merge", "nms"),
    "Understand": ("doctor", "compare", "worst", "explain", "plot", "curves"),
    "Publish": ("report",),
    "Check": ("check", "data", "protocols"),
}
VERBS = {verb: heading.lower() for heading, verbs in GROUPS.items() for verb in verbs}

FEW = 3  # options that are worth a heading of their own in help
PROTOCOL = ("protocol", "signature", "thresholds", "max_dist", "no_thin", "nms", "invert", "set")
PAGE = ("title", "images_dir", "pred_dirs", "pictures", "full_pictures", "human")
_PARTS = {
    **dict.fromkeys(PROTOCOL, "Protocol"),
    **dict.fromkeys(("on_error", "workers", "executor", "shard", "fresh", "quiet"), "Running"),
    **dict.fromkeys(PAGE, "Page (-o FILE.html)"),
}
USUAL = "protocol's"  # what --nms without a recipe means

PLAIN_SECONDS = 5.0  # between two lines at first, later a tenth of the time that has passed
BRIEF = 2.0  # seconds of work without images that need no line


class Verbs(click.Group):
    """The verbs by groups; a group's file is imported when one of its verbs is called."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(VERBS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command:
        if cmd_name not in VERBS:
            ctx.fail(f"no verb {cmd_name!r}{did_you_mean(cmd_name, VERBS)}")
        file = import_module(f"bsdsbench.cli.{VERBS[cmd_name]}")
        command: click.Command = getattr(file, cmd_name)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        wide = max(map(len, VERBS))
        for heading, verbs in GROUPS.items():
            with formatter.section(heading):
                formatter.write_dl(
                    [
                        (verb.ljust(wide), self.get_command(ctx, verb).get_short_help_str(80))
                        for verb in verbs
                    ]
                )


class Verb(click.Command):
    """A verb: --nms may stand alone; help lists the options in parts."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if "--nms" in args and any(param.name == "nms" for param in self.params):
            from bsdsbench.protocol.protocol import RECIPES

            # Without a recipe it stands for the protocol's, before other arguments too
            for k, (word, after) in enumerate(zip(args, [*args[1:], ""], strict=True)):
                if word == "--nms" and after not in RECIPES:
                    args[k] = f"--nms={USUAL}"
        return super().parse_args(ctx, args)

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        options = [param for param in self.get_params(ctx) if isinstance(param, click.Option)]
        parts = [_PARTS.get(str(one.name), "Options") for one in options]
        parts = [part if parts.count(part) >= FEW else "Options" for part in parts]
        for heading in dict.fromkeys(["Options", *parts]):
            found = [
                one.get_help_record(ctx)
                for one, p in zip(options, parts, strict=True)
                if p == heading
            ]
            if found:
                with formatter.section(heading):
                    formatter.write_dl([record for record in found if record])


verb = partial(click.command, cls=Verb)


def refuse(parameters: Collection[str], beside: str) -> None:
    """Raise UsageError that names those of the parameters that stand on the command line."""
    context = click.get_current_context()
    given = [
        max(param.opts, key=len)
        for param in context.command.params
        if param.name in parameters
        and context.get_parameter_source(param.name) is ParameterSource.COMMANDLINE
    ]
    if given:
        raise click.UsageError(f"{', '.join(given)}: not with {beside}")


# Options -----------------------------------------------------------------------------------------


def together(*options: Decorator) -> Decorator:
    """Several options as one, in this order."""
    return lambda function: reduce(lambda found, one: one(found), options[::-1], function)


def path(*names: str, help: str, **more: Any) -> Decorator:
    """An option that takes a path."""
    return option(*names, type=click.Path(), help=help, **more)


def choice(*names: str, of: Sequence[str], help: str) -> Decorator:
    """An option that takes one of these words; the first is the default."""
    return option(*names, type=Choice(of), default=of[0], help=help)


def _words(ctx: click.Context, param: click.Parameter, texts: tuple[str, ...]) -> list[str] | None:
    words = list(filter(None, map(str.strip, ",".join(texts).split(","))))
    if param.name == "published" and words == ["list"]:
        from bsdsbench.comparison.published import published_results

        for key, row in published_results().items():
            told = [str(row.year), row.variant, row.input, row.tasks[0]]
            print(f"{key:32}  {row.name} ({', '.join(word for word in told if word)})")
        ctx.exit()
    return words if texts else None


# An option of words between commas, which may be repeated: a list, None where it is not given
words = partial(option, multiple=True, callback=_words)


class _Metrics(click.Option):
    """The metrics that there are stand in help, those of other packages too."""

    def get_help_record(self, ctx: click.Context) -> tuple[str, str] | None:
        from bsdsbench.metrics import registry

        usual = ",".join(registry.DEFAULT)
        self.help = f"Metrics to compute: {', '.join(registry.names())}; default: {usual}."
        return super().get_help_record(ctx)


def run_option(name: str, **changes: Any) -> Decorator:
    """The flag of an option of a run, with the words that Python's documentation has."""
    field = attrs.fields_dict(RunOptions)[name]
    flag: dict[str, Any] = {"default": field.default, **field.metadata["flag"], **changes}
    names = flag.pop("names", (f"--{name.replace('_', '-')}",))
    if flag.pop("path", False):
        flag["type"] = click.Path()
    if flag.pop("number", False):
        flag["type"] = IntRange(1)
    if "choices" in flag:
        flag["type"] = Choice(flag.pop("choices"))
    return option(*names, name, help=words_of(name), **flag)


def _shard(ctx: click.Context, param: click.Parameter, text: str) -> tuple[int, int]:
    found = re.fullmatch("([0-9]{1,7})/([0-9]{1,7})", text)
    if not found:
        raise click.BadParameter(f"{text!r}: expected I/N, such as 1/4", ctx, param)
    return int(found[1]), int(found[2])


def _quiet(ctx: click.Context, param: click.Parameter, quiet: bool) -> bool:
    ctx.meta["quiet"] = quiet
    return quiet


def _form(ctx: click.Context, param: click.Parameter, form: str | None) -> str:
    from bsdsbench.tables.forms import form_of

    return form_of(ctx.params["out"], form)


quiet = option(
    "--quiet", is_flag=True, expose_value=False, callback=_quiet, help="Show no progress."
)
names = words("--names", metavar="A,B", help="Names of the runs; default: as stored.")
runs = click.argument(
    "runs", nargs=-1, required=True, type=click.Path(), metavar="[OUT|ref:NAME]..."
)
truth = path(
    "--gt",
    help="Ground-truth folder; default: that of the --task, if `bsdsbench data get` brought it.",
)
published = words(
    "--published",
    is_eager=True,
    metavar="KEY,...",
    help="Published results to add: keys; `list` shows every one.",
)
bootstrap = together(
    option("--n-boot", type=IntRange(1), default=10_000, help="Number of bootstrap samples."),
    option(
        "--seed",
        type=IntRange(0),
        default=0,
        help="Bootstrap seed; the same seed gives the same numbers.",
    ),
)
chosen = words(
    "--columns",
    metavar="SCORE,...",
    help="Show only these scores, by key or heading, such as ods,ois,ap; all: every one.",
)
# -o, --format, --columns of a verb that makes tables
tables = together(
    path(
        "-o",
        "--out",
        is_eager=True,
        help="Write to this file; the suffix chooses the format: .txt, .md, .tex, .csv, .json, "
        ".html. Several CSV tables become NAME-TABLE.csv.",
    ),
    option(
        "--format",
        "form",
        type=Choice(["table", "markdown", "latex", "csv", "json", "html"]),
        callback=_form,
        help="Format on standard output.  [default: table]",
    ),
    chosen,
)


def printed(*kinds: str) -> Decorator:
    """--format KIND, given as `form`."""
    return choice("--format", "form", of=kinds, help="Output format.")


def protocol(*names: str, usual: str = "default: bsds500") -> Decorator:
    """--protocol, of which `usual` says what it is without, and options that change its fields.

    names : the parameters that a verb uses; all of PROTOCOL if none are given
    """
    options = {
        "protocol": option(
            "--protocol",
            metavar="NAME|FILE",
            help=f"A preset (`bsdsbench protocols`) or a .toml file; {usual}.",
        ),
        "signature": option(
            "--signature",
            metavar="LINE",
            help="Use the protocol of a signature, as printed under tables.",
        ),
        "thresholds": option(
            "--thresholds",
            metavar="N|T,T",
            help="Number of evenly spaced thresholds, or their values.",
        ),
        "max_dist": option(
            "--max-dist", metavar="F", help="Match tolerance, a fraction of the diagonal."
        ),
        "no_thin": option(
            "--no-thin", is_flag=True, flag_value="false", help="Do not thin before matching."
        ),
        "nms": option(
            "--nms",
            is_flag=False,
            flag_value=USUAL,
            metavar="[RECIPE]",
            help="Apply edge NMS to raw maps: the protocol's recipe, or hed, rcf, dexined ...",
        ),
        "invert": option(
            "--invert",
            is_flag=True,
            flag_value="true",
            help="Maps are dark on bright: use 1 - value.",
        ),
        "set": option(
            "--set",
            multiple=True,
            metavar="FIELD=VALUE",
            help="Set another field, such as nms_params.radius=2; an unknown one lists them.",
        ),
    }
    return together(*(options[name] for name in names or PROTOCOL))


def of_runs(on_error: str) -> Decorator:
    """The options of a run that `evaluate` and `run` have; `on_error` is the usual way."""
    return together(
        truth,
        run_option("task"),
        run_option("name"),
        words("--metrics", cls=_Metrics, metavar="M,M"),
        run_option("split_file"),
        option(
            "--overlays",
            is_flag=True,
            help="Draw matched, false and missed pixels into OUT/overlays.",
        ),
        printed("table", "json"),
        protocol(usual="default: that of the first metric, bsds500 for most"),
        run_option("on_error", default=on_error),
        run_option("shard", default="1/1", callback=_shard),
        run_option("workers"),
        run_option("executor"),
        run_option("fresh"),
        quiet,
    )


# What they mean ----------------------------------------------------------------------------------


def protocol_from(options: dict[str, Any], metrics: Sequence[str] = ()) -> Protocol:
    """The protocol that the flags among `options` describe, which are taken out of there.

    It starts from that of the first metric, or bsds500. Raises ProtocolError, UsageError.
    """
    from bsdsbench.metrics import registry
    from bsdsbench.protocol.protocol import NMSParams
    from bsdsbench.protocol.signature import Signature, overridden

    given = dict.fromkeys(PROTOCOL, None) | options
    for name in PROTOCOL:
        options.pop(name, None)
    if given["signature"] and given["protocol"]:
        raise click.UsageError("--signature, --protocol: expected one of them")
    base = given["protocol"]
    if given["signature"]:
        base = Signature.parse(given["signature"]).protocol
    elif base is None and metrics:
        base = registry.get(metrics[0]).default_protocol
    fields = list(given["set"] or ())
    for flag in ("thresholds", "max_dist", "no_thin", "invert"):
        if given[flag]:
            fields.append(f"{flag.removeprefix('no_')}={given[flag]}")
    if given["nms"]:
        fields.append("nms=true")
    others: dict[str, Any] = {}
    if given["thresholds"]:
        others["thresholds"] = given["thresholds"]  # which is read in forms of its own
    if given["nms"] not in (None, True, USUAL):
        others["nms_params"] = attrs.asdict(NMSParams.recipe(given["nms"]))
    return registry.settled(overridden(base, fields, **others))


def settle(options: dict[str, Any], pictures: bool = False) -> None:
    """Put what --task, --metrics and the flags of a protocol mean into the options of a run.

    Without --gt the ground truth is that of the task's set in the cache, and with `pictures` the
    images too. Raises UsageError, DataError.
    """
    from bsdsbench.loaders.public_sets import set_folder
    from bsdsbench.metrics import registry
    from bsdsbench.protocol.tasks import Task

    if options["task"]:
        fixed = {*PROTOCOL, "metrics", "metric", "humans"} - {"nms", "invert"}
        refuse(fixed, "--task, which fixes them")
        task = options["task"] = Task.load(options["task"])
        options["metrics"], options["protocol"] = [task.metric], task.protocol
        options["gt"] = options["gt"] or set_folder(task.set)
        if pictures:
            options["images"] = options["images"] or set_folder(task.set, "images")
    elif not (options["gt"] or pictures):
        raise click.UsageError(
            "give --gt FOLDER, or a --task whose set `bsdsbench data get` brings"
        )
    options["metrics"] = registry.chosen(options["metrics"] or registry.DEFAULT)
    options["protocol"] = protocol_from(options, options["metrics"])


# What is said ------------------------------------------------------------------------------------


def say(line: str, progress: bool = False) -> None:
    """A line of ours on standard error; one on progress not with --quiet."""
    if not (progress and click.get_current_context().meta.get("quiet")):
        print(f"bsdsbench: {line}", file=sys.stderr)


@contextmanager
def progress(title: str, what: str = "images") -> Iterator[Callable[[int, int, str], None]]:
    """A function to call with (done, total, image id) that shows how far the work is.

    A bar on a terminal, else a line every few seconds, more seldom in a long run, and one at the
    end. what : the things that are counted
    """
    if click.get_current_context().meta.get("quiet"):
        yield lambda *_: None
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
    ended = False  # work of several parts ends several times

    def report(done: int, total: int, image_id: str) -> None:
        nonlocal first, last, ended
        if bar:
            bar.update(0, completed=done, total=total)
            return
        now = time.monotonic()
        before, since = first = first or (done, now)
        spent, end = now - started, done == total and not ended
        pause = 0.0 if end else max(PLAIN_SECONDS, spent / 10)
        if now - last >= pause and (spent >= BRIEF or what == "images"):
            last, ended = now, ended or end
            told = f"{title}: {done}/{total} {what}, {spent:.0f} s elapsed"
            if done > before:
                rate = (done - before) / max(now - since, 1e-9)
                told += f", {rate:.1f} {what}/s, {(total - done) / rate:.0f} s left"
            print(told, file=sys.stderr, flush=True)

    with bar or nullcontext():
        yield report


def print_json(value: Any) -> None:
    """Print `value` as JSON to standard output."""
    print(json.dumps(value, indent=1, ensure_ascii=False, allow_nan=False))


def print_run(run: Evaluation, out: Any, columns: Sequence[str] | None = None) -> None:
    """A run's tables, what it is of, and where its results are."""
    from bsdsbench.runs.score_tables import score_tables

    show_tables(score_tables([run], columns=columns))
    if run.set_line:
        print(f"set      {run.set_line}")
    for task in run.tasks:
        print(f"task     {task.name}")
    if out:
        print(f"results  {out}")


def left_out(failed: Mapping[str, str], run: Evaluation | None) -> int:
    """Name the images that failed or that the protocol left out; the exit status."""
    if run and run.empty:
        what = "left out: no boundary in the ground truth (empty_gt=skip)"
        say(f"{counted(len(run.empty), 'image')} {what}: {listed(run.empty, 3)}")
    for image_id, reason in failed.items():
        say(f"left out {image_id!r}: {reason}")
    return 2 if failed else 0


def show_tables(tables: Sequence[Table], out: str | None = None, form: str = "table") -> None:
    """Tables in a form: printed, or written to `out`."""
    from bsdsbench.tables.forms import render, write_tables
    from bsdsbench.tables.table import print_tables

    if out is not None:
        say(f"wrote {', '.join(map(str, write_tables(tables, out, form)))}")
    elif form == "table":
        print_tables([table for table in tables if not table.aside], sys.stdout)
        if aside := [table.title for table in tables if table.aside]:
            print(f"\nIn a file (-o) and other formats also: {', '.join(aside)}")
    else:
        print(render(tables, form).rstrip("\n"))


def write_plots(run: Evaluation, out: str) -> None:
    """pr.png and pr.svg into OUT, if there is a precision-recall curve."""
    from bsdsbench.plotting.figures import plot_result

    plot_result(run, Path(out))


def check_overlays(metrics: Sequence[str], protocol: Protocol, needs: Any) -> None:
    """Raise UsageError before the run if there is no matching to draw, or nowhere to draw it."""
    from bsdsbench.report.overlays import matching_metric

    if not needs:
        raise click.UsageError("--overlays needs -o OUT")
    if not matching_metric(metrics, protocol):
        told = f"no metric that matches pixels, as boundary ({', '.join(metrics)})"
        raise click.UsageError(f"--overlays: {told}")


def write_overlays(run: Evaluation, out: str) -> None:
    """A picture of each image's matched, false and missed pixels into OUT/overlays."""
    from bsdsbench.report import overlays

    with progress("overlays") as report:
        overlays.write_overlays(run, Path(out, "overlays"), progress=report)
