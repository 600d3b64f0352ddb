"""Functions that declare arguments and options, and the options shared by several commands.

The attributes of the class of a command's options are declarations, made by `add_argument`,
`add_option` or `add_options`. The latter declares a class of options, whose attributes are
declarations too. A declaration is a function from the name of the attribute to the argument or
option of click.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from functools import partial
from typing import Any

import attrs
import click
from click import Choice, IntRange

from bsdsbench.cli.shared import NMS_WITHOUT_RECIPE, Options, parse_shard, split_words
from bsdsbench.runs.keywords import RunKeywords


def add_option(text: str, *flags: str, **settings: Any) -> Any:
    """Declare a command-line option.

    Use what is returned as an attribute of a class of `Options`. It is a function that takes the
    name of the attribute and returns the `click.Option`.

    text: the help text.
    flags: the spellings of the option, such as "-o", "--out". Default: "--" and the name of the
        attribute, with hyphens for underscores.
    settings: keywords of `click.Option`.
    """

    def make_option(name: str) -> click.Option:
        spellings = flags or (f"--{name.replace('_', '-')}",)
        return click.Option([*spellings, name], help=text, **settings)

    return make_option


def add_argument(metavar: str | None = None, **settings: Any) -> Any:
    """Declare a command-line argument; what is returned is used like that of `add_option`.

    metavar: the name of the argument in the usage line. Default: the attribute in upper case.
    settings: keywords of `click.Argument`.
    """
    return lambda name: click.Argument([name], metavar=metavar, **settings)


def add_options(owner: type[Options]) -> Any:
    """Declare all options of a class. The attribute gets an instance of it."""
    return owner


def choice(text: str, *flags: str, choices: Sequence[str]) -> Any:
    """Declare an option that takes one of `choices`. The first choice is the default."""
    return add_option(text, *flags, type=Choice(choices), default=choices[0])


def _published_keys(
    ctx: click.Context, param: click.Parameter, texts: tuple[str, ...]
) -> list[str]:
    """Split the values of --published at commas into keys, which are not checked here.

    If the only key is "list", print all existing keys with their results, and exit.
    """
    keys = split_words(ctx, param, texts) or []
    if keys == ["list"]:
        from bsdsbench.comparison.published import published_results

        for key, row in published_results().items():
            details = [str(row.year), row.variant, row.input, row.tasks[0]]  # some may be ""
            print(f"{key:32}  {row.name} ({', '.join(filter(None, details))})")
        ctx.exit()
    return keys


flag = partial(add_option, is_flag=True)
path = partial(add_option, type=click.Path())
repeatable = partial(add_option, multiple=True)  # its value is a tuple
word_list = partial(repeatable, callback=split_words)  # of words between commas: a list or None


def run_option(name: str, **changes: object) -> Any:
    """Declare the command-line option for a keyword of `evaluate` or `run`, such as "workers".

    Its default, its help text and its settings are those of the field `name` of `RunKeywords`; the
    settings are in the field's metadata "flag". `changes` override them. Settings are keywords of
    `click.Option`, and these:

    - "names": the spellings, such as ("-o", "--out"). Default: "--" and `name`.
    - "path": True if the value is a path.
    - "number": True if the value is an integer of at least 1.
    - "choices": the allowed values.
    """
    field = attrs.fields_dict(RunKeywords)[name]
    settings: dict[str, Any] = {"default": field.default, **field.metadata["flag"], **changes}
    flags = settings.pop("names", ())  # if empty, `add_option` makes the flag of the name
    if settings.pop("path", False):
        settings["type"] = click.Path()
    if settings.pop("number", False):
        settings["type"] = IntRange(1)
    if "choices" in settings:
        settings["type"] = Choice(settings.pop("choices"))
    return add_option(field.metadata["help"], *flags, **settings)


def _parse_labels(
    ctx: click.Context, param: click.Parameter, texts: tuple[str, ...]
) -> dict[str, str]:
    """Parse the values KEY=TEXT of --label into a dict."""
    for text in texts:
        if "=" not in text:
            raise click.BadParameter(f"{text!r}: expected KEY=TEXT", ctx, param)
    return dict(text.split("=", 1) for text in texts)


def _parse_recipe(text: str) -> str:
    """Return the value of --nms; refuse a folder, which was meant as that of the maps."""
    if not os.path.isdir(text):
        return text
    from bsdsbench.protocol.nms_recipes import RECIPES

    if text in RECIPES:  # there happens to be a folder of its name, perhaps that of the maps
        return text
    expected = "expected a recipe, such as rcf; without one, --nms stands after the folders"
    raise click.UsageError(f"--nms {text!r}: {expected}")


def _choose_format(ctx: click.Context, param: click.Parameter, output_format: str | None) -> str:
    """Return the format of tables: --format, else that of the suffix of -o, else "table".

    With --history, -o may also name a figure (.pdf, .svg, .png), for which "figure" is returned.
    """
    from bsdsbench.tables.forms import format_of

    out = ctx.params["out"]  # -o and --history were parsed before, as they are eager
    if ctx.params.get("history") and out and out.lower().endswith((".pdf", ".svg", ".png")):
        return "figure"
    return format_of(out, output_format)


runs_argument = partial(add_argument, "[OUT|FILE|ref:NAME]...", nargs=-1, type=click.Path())
names_option = word_list("Names of the runs, in order; default: as stored.", metavar="A,B")
labels_option = repeatable(
    "Another name to show. KEY is the name or folder of a run, or the key of a published result. "
    "May be repeated.",
    "--label",
    callback=_parse_labels,
    metavar="KEY=TEXT",
)
by_option = add_option(
    "Also show each slice of the images: the groups of this column, as in `evaluate --by`.",
    metavar="COLUMN[=X,X]",
)
cluster_option = add_option(
    "Treat the groups of this column, such as scene or patient, as units: they are drawn, left "
    "out and exchanged as a whole.",
    metavar="COLUMN",
)
ground_truth_option = path(
    "Ground-truth folder; default: that of --task, if `bsdsbench data get` downloaded it."
)
metrics_option = word_list("", metavar="M,M")
published_option = repeatable(
    "Published results to add, by their keys; `list` prints all keys.",
    callback=_published_keys,
    is_eager=True,
    metavar="KEY,...",
)
columns_option = word_list(
    "Show only these scores, by key or heading, such as ods,ois,ap; `all` shows every score.",
    metavar="SCORE,...",
)
summary_option = add_option(
    "Also summarise the scores of single images, with their number and how many are undefined: by "
    "mean and standard deviation (mean), also the median (median), or also the quartiles (iqr).",
    type=Choice(("mean", "median", "iqr")),
)


def format_option(*formats: str) -> Any:
    """Return the option --format. The default is the first of `formats`."""
    return choice("Output format.", "--format", choices=formats)


class GroupingOptions(Options):
    """Columns that group the images: from a CSV file, or from the image ids by an expression."""

    groups: str | None = run_option("groups")
    group_by: str | None = run_option("group_by")


class SliceOptions(Options):
    """Slices (groups of images) to show beside the scores, and clusters for their intervals."""

    by: tuple[str, ...] = repeatable(
        "Also show slices of the images: the groups of this column. Numbers are divided at their "
        "quartiles, or at limits as in size=0,1024,9216; size=each makes a group of each number. "
        "May be repeated.",
        metavar="COLUMN[=X,X]",
    )
    cluster: str | None = add_option(
        "For the intervals of --by, leave out whole groups of images by this column, such as "
        "patient.",
        metavar="COLUMN",
    )


class MethodOptions(Options):
    """Methods (NAME=RUNS), and the measure of spread over runs: "sd", "range" or "se"."""

    method: tuple[str, ...] = repeatable(
        "A method of one or more runs, such as seeds or folds, in place of OUT. May be repeated.",
        metavar="NAME='out/seed*'",
    )
    spread: str = add_option(
        "Spread shown with the mean over runs, or as the band of a mean curve: standard deviation "
        "(sd), range, or standard error (se).",
        type=Choice(("sd", "range", "se")),
        default="sd",
    )


class BootstrapOptions(Options):
    """The number of bootstrap samples, and the random seed."""

    n_boot: int = add_option("Number of bootstrap samples.", type=IntRange(1), default=10_000)
    seed: int = add_option(
        "Bootstrap seed; the same seed gives the same numbers.", type=IntRange(0), default=0
    )


class TableOptions(Options):
    """The file and the format of tables, and the scores that they show."""

    out: str | None = path(
        "Write to this file. The suffix selects the format: .txt, .md, .tex, .csv, .json or .html. "
        "Several CSV tables are written to NAME-TABLE.csv.",
        "-o",
        "--out",
        is_eager=True,
    )
    output_format: str = add_option(
        "Format on standard output.  [default: table]",
        "--format",
        type=Choice(["table", "markdown", "latex", "csv", "json", "html"]),
        callback=_choose_format,
    )
    columns: list[str] | None = columns_option


preset_option = add_option(
    "A preset (see `bsdsbench protocols`) or a .toml file; default: the preset of the first "
    "metric, bsds500 for most metrics.",
    metavar="NAME|FILE",
)
nms_option = add_option(
    "Apply edge NMS to raw maps, by the protocol's recipe or another: hed, rcf, dexined ...",
    is_flag=False,
    flag_value=NMS_WITHOUT_RECIPE,
    type=_parse_recipe,
    metavar="[RECIPE]",
)
invert_option = flag("The maps are dark on bright: use 1 - value.", flag_value="true")
set_option = repeatable(
    "Set another field, such as nms_params.radius=2; an unknown field lists them. May be repeated.",
    metavar="FIELD=VALUE",
)


class ProtocolOptions(Options):
    """The options that change the protocol or single fields of it. None means no change."""

    protocol: str | None = preset_option
    signature: str | None = add_option(
        "Use the protocol of a signature, the line printed under tables.", metavar="LINE"
    )
    thresholds: str | None = add_option(
        "The number of evenly spaced thresholds, or the values of the thresholds.", metavar="N|T,T"
    )
    max_dist: str | None = add_option(
        "Match tolerance, as a fraction of the image diagonal. With several (0.0075,0.00375) the "
        "first gives the scores, and further columns show the scores at each and their means.",
        metavar="F,F",
    )
    max_dist_px: str | None = add_option(
        "Match tolerance in pixels, such as 2 or 1,2,4.", metavar="PX,PX"
    )
    no_thin: str | None = flag("Do not thin the maps before matching.", flag_value="false")
    nms: str | None = nms_option
    invert: str | None = invert_option
    set: tuple[str, ...] = set_option


class EvaluationOptions(Options):
    """The options shared by `evaluate` and `run`."""

    gt: str | None = ground_truth_option
    task: str | None = run_option("task")
    name: str | None = run_option("name")
    metrics: list[str] | None = metrics_option
    split_file: str | None = run_option("split_file")
    grouping: GroupingOptions = add_options(GroupingOptions)
    output_format: str = format_option("table", "json")
    protocol: ProtocolOptions = add_options(ProtocolOptions)
    shard: tuple[int, int] = run_option("shard", default="1/1", callback=parse_shard)
    workers: int | None = run_option("workers")
    # Its default is "auto", not threads as in Python, because child processes can import the
    # command line's __main__
    executor: str = run_option("executor", default="auto")
    fresh: bool = run_option("fresh")
