"""Options that several verbs share, and how their values are parsed."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Collection, Sequence
from functools import partial, reduce
from typing import TYPE_CHECKING, Any, TypeVar

import attrs
import click
from click.core import ParameterSource

from bsdsbench.runs.run_options import RunOptions

if TYPE_CHECKING:
    from bsdsbench.protocol.protocol import Protocol

FEW = 3  # options that are worth a heading of their own in help
PROTOCOL_S = "protocol's"  # what --nms without a recipe means
_F = TypeVar("_F", bound=Callable[..., Any])


class Verb(click.Command):
    """A verb: options that stand twice add up or are refused; help lists them in parts."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if "--nms" in args and any(param.name == "nms" for param in self.params):
            from bsdsbench.protocol.protocol import RECIPES

            # Without a recipe it stands for the protocol's, before other arguments too
            for k, (word, after) in enumerate(zip(args, [*args[1:], ""], strict=True)):
                if word == "--nms" and after not in RECIPES:
                    args[k] = f"--nms={PROTOCOL_S}"
        *_, order = self.make_parser(ctx).parse_args(args=list(args))
        twice = []
        for option, times in Counter(order).items():
            if times > 1 and isinstance(option, click.Option) and not option.multiple:
                twice.append(max(option.opts, key=len))
        if twice and not ctx.resilient_parsing:
            raise click.UsageError(f"{', '.join(twice)}: given more than once", ctx)
        return super().parse_args(ctx, args)

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        options = [p for p in self.get_params(ctx) if isinstance(p, click.Option)]
        parts = [_PARTS.get(str(option.name), "Options") for option in options]
        for heading in dict.fromkeys(["Options", *parts]):
            found = [
                option.get_help_record(ctx)
                for option, part in zip(options, parts, strict=True)
                if heading == (part if parts.count(part) >= FEW else "Options")
            ]
            if found:
                with formatter.section(heading):
                    formatter.write_dl([record for record in found if record])


verb = partial(click.command, cls=Verb)


def _words(ctx: click.Context, param: click.Parameter, texts: tuple[str, ...]) -> list[str] | None:
    return list(filter(None, map(str.strip, ",".join(texts).split(",")))) if texts else None


def words_option(
    name: str, cls: type[click.Option] = click.Option, **more: Any
) -> Callable[[_F], _F]:
    """An option of words between commas, which may be repeated: a list, None where not given."""
    return click.option(name, cls=cls, multiple=True, callback=_words, **more)


names_option = words_option("--names", metavar="A,B", help="Names of the runs; default: as stored.")


def _published(
    ctx: click.Context, param: click.Parameter, texts: tuple[str, ...]
) -> list[str] | None:
    words = _words(ctx, param, texts)
    if words == ["list"]:
        from bsdsbench.comparison.published import published_results

        for key, row in published_results().items():
            told = [str(row.year), row.variant, row.input, row.tasks[0]]
            print(f"{key:32}  {row.name} ({', '.join(word for word in told if word)})")
        ctx.exit()
    return words


published_option = click.option(
    "--published",
    multiple=True,
    callback=_published,
    is_eager=True,
    metavar="KEY,...",
    help="Published results to add: keys, task=NAME, rule=NAME; `list` shows every key.",
)


class _MetricsOption(click.Option):
    """The metrics that there are stand in help, those of other packages too."""

    def get_help_record(self, ctx: click.Context) -> tuple[str, str] | None:
        from bsdsbench.metrics import registry

        usual = ",".join(registry.DEFAULT)
        self.help = f"Metrics to compute: {', '.join(registry.names())}; default: {usual}."
        return super().get_help_record(ctx)


metrics_option = words_option("--metrics", _MetricsOption, metavar="M,M")


def metrics_or_default(given: list[str] | None) -> tuple[str, ...]:
    """The metrics asked for, in the order of tables. Raises DataError for unknown ones."""
    from bsdsbench.metrics import registry

    return registry.chosen(registry.DEFAULT if given is None else given)


def run_option(name: str, **changes: Any) -> Callable[[_F], _F]:
    """The flag of an option of a run, with the words that Python's documentation has."""
    field = attrs.fields_dict(RunOptions)[name]
    flag: dict[str, Any] = {"default": field.default, **field.metadata["flag"], **changes}
    names = flag.pop("names", (f"--{name.replace('_', '-')}",))
    if flag.pop("path", False):
        flag["type"] = click.Path()
    if flag.pop("number", False):
        flag["type"] = click.IntRange(1)
    if "choices" in flag:
        flag["type"] = click.Choice(flag.pop("choices"))
        flag["show_default"] = flag["default"] is not None
    return click.option(*names, name, help=field.metadata["words"], **flag)


def _shard(ctx: click.Context, param: click.Parameter, text: str) -> tuple[int, int]:
    found = re.fullmatch("([0-9]{1,7})/([0-9]{1,7})", text)
    if not found:
        raise click.BadParameter(f"{text!r}: expected I/N, such as 1/4", ctx, param)
    return int(found[1]), int(found[2])


def shared_by_runs(on_error: str) -> Callable[[_F], _F]:
    """The options of a run that `evaluate` and `run` have; `on_error` is the usual way."""
    return together(
        run_option("name"),
        metrics_option,
        run_option("split_file"),
        click.option(
            "--overlays",
            is_flag=True,
            help="Draw matched, false and missed pixels into OUT/overlays.",
        ),
        format_option("table", "json"),
        protocol_options(usual="default: that of the first metric, bsds500 for most"),
        run_option("on_error", default=on_error),
        run_option("shard", default="1/1", callback=_shard),
        run_option("workers"),
        run_option("executor"),
        run_option("fresh"),
        quiet_option,
    )


quiet_option = click.option("--quiet", is_flag=True, help="Show no progress.")


def together(*options: Callable[[_F], _F]) -> Callable[[_F], _F]:
    """Several options as one, in this order."""
    return lambda function: reduce(lambda found, option: option(found), options[::-1], function)


bootstrap_options = together(
    click.option(
        "--n-boot",
        type=click.IntRange(1),
        default=10_000,
        show_default=True,
        help="Number of bootstrap samples.",
    ),
    click.option(
        "--seed",
        type=click.IntRange(0),
        default=0,
        show_default=True,
        help="Bootstrap seed; the same seed gives the same numbers.",
    ),
)


def choice(*names: str, of: Sequence[str], help: str) -> Callable[[_F], _F]:
    """An option that takes one of these words; the first is the default."""
    return click.option(*names, type=click.Choice(of), default=of[0], show_default=True, help=help)


def format_option(*kinds: str) -> Callable[[_F], _F]:
    """--format KIND, given as `form`."""
    return choice("--format", "form", of=kinds, help="Output format.")


def table_output_options(folder: str) -> Callable[[_F], _F]:
    """-o, --format, --columns of a verb that makes tables; `folder`: what one means to -o."""
    out = click.option(
        "-o",
        "--out",
        type=click.Path(),
        help="Write to this file; the suffix chooses the format: .txt, .md, .tex, .csv, .json, "
        f".html. Several CSV tables become NAME-TABLE.csv, or {folder}.",
    )
    form = click.option(
        "--format",
        "form",
        type=click.Choice(["table", "markdown", "latex", "csv", "json", "html"]),
        help="Format on standard output.  [default: table]",
    )
    columns = words_option(
        "--columns", metavar="SCORE,...", help="Show only these scores, such as ods,ois,ap."
    )
    return together(out, form, columns)


PROTOCOL_FIELDS = (
    *("protocol", "signature", "thresholds", "max_dist", "no_thin", "nms", "invert", "overrides"),
)
RUNNING = ("on_error", "workers", "executor", "shard", "fresh", "quiet")
PAGE = ("title", "images_dir", "pred_dirs", "pictures", "full_pictures", "human")
_PARTS = {
    **dict.fromkeys(PROTOCOL_FIELDS, "Protocol"),
    **dict.fromkeys(RUNNING, "Running"),
    **dict.fromkeys(PAGE, "Page (-o FILE.html)"),
}


def protocol_options(*names: str, usual: str = "default: bsds500") -> Callable[[_F], _F]:
    """--protocol, of which `usual` says what it is without, and options that change its fields.

    names : the parameters that a verb uses; all of PROTOCOL_FIELDS if none are given
    """
    options = {
        "protocol": click.option(
            "--protocol",
            metavar="NAME|FILE",
            help=f"A preset (`bsdsbench protocols`) or a .toml file; {usual}.",
        ),
        "signature": click.option(
            "--signature",
            metavar="LINE",
            help="Use the protocol of a signature, as printed under tables.",
        ),
        "thresholds": click.option(
            "--thresholds",
            metavar="N|T,T",
            help="Number of evenly spaced thresholds, or their values.",
        ),
        "max_dist": click.option(
            "--max-dist", metavar="F", help="Match tolerance, a fraction of the diagonal."
        ),
        "no_thin": click.option("--no-thin", is_flag=True, help="Do not thin before matching."),
        "nms": click.option(
            "--nms",
            is_flag=False,
            flag_value=PROTOCOL_S,
            metavar="[RECIPE]",
            help="Apply edge NMS to raw maps: the protocol's recipe, or hed, rcf, dexined ...",
        ),
        "invert": click.option(
            "--invert", is_flag=True, help="Maps are dark on bright: use 1 - value."
        ),
        "overrides": click.option(
            "--set",
            "overrides",
            multiple=True,
            metavar="FIELD=VALUE",
            help="Set another field, such as nms_params.radius=2; an unknown one lists them.",
        ),
    }

    return together(*(options[name] for name in names or PROTOCOL_FIELDS))


def protocol_from(
    protocol: str | None = None,
    thresholds: str | None = None,
    max_dist: str | None = None,
    no_thin: bool = False,
    nms: str | bool | None = None,
    invert: bool = False,
    overrides: tuple[str, ...] = (),
    signature: str | None = None,
    metrics: Sequence[str] = (),
) -> Protocol:
    """The protocol the options describe; without one, that of the first metric or bsds500.

    Raises ProtocolError, UsageError for a field that is given in two ways.
    """
    from attrs import asdict

    from bsdsbench.metrics import registry
    from bsdsbench.protocol.protocol import NMSParams, Protocol
    from bsdsbench.protocol.signature import Signature, parse_overrides

    if signature and protocol:
        raise click.UsageError("--signature, --protocol: expected one of them")
    if signature:
        base = Signature.parse(signature).protocol
    else:
        usual = registry.get(metrics[0]).default_protocol if metrics else None
        base = Protocol.load((usual or "bsds500") if protocol is None else protocol)
    changes = parse_overrides(overrides)
    short: dict[str, Any] = {}
    if thresholds is not None:
        short["thresholds"] = thresholds
    if max_dist is not None:
        short |= parse_overrides([f"max_dist={max_dist}"])
    if no_thin:
        short["thin"] = False
    if invert:
        short["invert"] = True
    if nms:
        short["nms"] = True
    if twice := sorted(short.keys() & changes.keys()):
        raise click.UsageError(f"{', '.join(twice)}: given by --set and by an option of its own")
    if nms not in (None, True, PROTOCOL_S):
        given = changes.get("nms_params")
        more = given if isinstance(given, dict) else {}
        short["nms_params"] = asdict(NMSParams.recipe(str(nms))) | more
    return registry.settled(base.replace(**changes | short))


def refuse(parameters: Collection[str], beside: str) -> None:
    """Raise UsageError that names those of the parameters that stand on the command line."""
    context = click.get_current_context()
    given = [
        max(option.opts, key=len)
        for option in context.command.params
        if option.name in parameters
        and context.get_parameter_source(option.name) is ParameterSource.COMMANDLINE
    ]
    if given:
        raise click.UsageError(f"{', '.join(given)}: not with {beside}")
