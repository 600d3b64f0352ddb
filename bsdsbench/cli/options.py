"""Options that several verbs share, and what their words mean."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import click
from click.core import ParameterSource

if TYPE_CHECKING:
    from bsdsbench.protocol.protocol import Protocol

PROTOCOL_S = "protocol's"  # what --nms without a recipe means
_F = TypeVar("_F", bound=Callable[..., Any])


def _names(ctx: click.Context, param: click.Parameter, text: str | None) -> list[str] | None:
    return [name.strip() for name in text.split(",")] if text else None


names_option = click.option(
    "--names",
    metavar="A,B",
    callback=_names,
    help="Comma-separated names of the runs; default: as stored.",
)


def bootstrap_options(n_boot: int = 10_000) -> Callable[[_F], _F]:
    """--n-boot, with its default, and --seed."""

    def add(function: _F) -> _F:
        seed = click.option(
            "--seed",
            type=click.IntRange(0),
            default=0,
            show_default=True,
            help="Bootstrap seed; the same seed gives the same numbers.",
        )
        samples = click.option(
            "--n-boot",
            type=click.IntRange(1),
            default=n_boot,
            show_default=True,
            help="Number of bootstrap samples.",
        )
        return samples(seed(function))

    return add


pred_kind_option = click.option(
    "--pred-kind",
    type=click.Choice(["soft", "labels"]),
    help="Whether pictures and arrays hold strengths or region labels; default: soft.",
)
workers_option = click.option(
    "--workers",
    type=click.IntRange(1),
    metavar="N",
    help="Number of images processed in parallel; default: all cores.",
)
quiet_option = click.option("--quiet", is_flag=True, help="Show no progress.")


def format_option(*kinds: str) -> Callable[[_F], _F]:
    """--format KIND, given as `form`; the first kind is the default."""
    return click.option(
        "--format",
        "form",
        type=click.Choice(kinds),
        default=kinds[0],
        show_default=True,
        help="Output format.",
    )


class ProtocolCommand(click.Command):
    """A command with `protocol_options`, where --nms alone stands before other arguments too."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        from bsdsbench.protocol.nms_recipes import RECIPES

        words = [*args, ""]
        plain = [
            f"--nms={PROTOCOL_S}" if word == "--nms" and words[k + 1] not in RECIPES else word
            for k, word in enumerate(args)
        ]
        return super().parse_args(ctx, plain)


def table_output_options(function: _F) -> _F:
    """-o and --format of a verb that makes tables; the suffix of -o chooses the format."""
    for option in reversed(
        (
            click.option(
                "-o",
                "--out",
                type=click.Path(),
                help="Write to this file; the suffix chooses the format: .txt, .md, .tex, .csv, "
                ".json, .html. Several CSV tables become NAME-TABLE.csv, or FOLDER/TABLE.csv.",
            ),
            click.option(
                "--format",
                "form",
                type=click.Choice(["table", "markdown", "latex", "csv", "json", "html"]),
                help="Format on standard output.  [default: table]",
            ),
        )
    ):
        function = option(function)
    return function


PROTOCOL_FIELDS = (
    *("protocol", "signature", "thresholds", "max_dist", "no_thin", "nms", "invert", "overrides"),
)


def protocol_options(usual: str = "default: bsds500") -> Callable[[_F], _F]:
    """--protocol and the options that change one of its fields; `usual` says what it is without."""
    return some_protocol_options(*PROTOCOL_FIELDS, usual=usual)


def some_protocol_options(*names: str, usual: str = "default: bsds500") -> Callable[[_F], _F]:
    """Those of `protocol_options` that a verb uses, by parameter."""
    named = click.option(
        "--protocol",
        metavar="NAME|FILE",
        help=f"A preset (`bsdsbench protocols`) or a .toml file; {usual}.",
    )

    def decorate(function: _F) -> _F:
        for name in reversed(names):
            function = (named if name == "protocol" else _OPTIONS[name])(function)
        return function

    return decorate


_OPTIONS = dict(
    zip(
        PROTOCOL_FIELDS[1:],
        (
            click.option(
                "--signature",
                metavar="LINE",
                help="Use the protocol of a signature, as printed under tables.",
            ),
            click.option(
                "--thresholds",
                metavar="N|T,T",
                help="Number of evenly spaced thresholds, or their values.",
            ),
            click.option(
                "--max-dist",
                metavar="F",
                help="Match tolerance, a fraction of the diagonal.",
            ),
            click.option("--no-thin", is_flag=True, help="Do not thin before matching."),
            click.option(
                "--nms",
                is_flag=False,
                flag_value=PROTOCOL_S,
                metavar="[RECIPE]",
                help="Apply edge NMS to raw maps: the protocol's recipe, or hed, rcf, dexined ...",
            ),
            click.option("--invert", is_flag=True, help="Maps are dark on bright: use 1 - value."),
            click.option(
                "--set",
                "overrides",
                multiple=True,
                metavar="FIELD=VALUE",
                help="Set another field, such as nms_params.radius=2; a wrong one lists them all.",
            ),
        ),
        strict=True,
    )
)


def split_protocol(options: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """The options of `protocol_options`, and the others."""
    mine = {name: options[name] for name in PROTOCOL_FIELDS}
    return mine, {name: value for name, value in options.items() if name not in mine}


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

    Raises ProtocolError.
    """
    from dataclasses import asdict

    from bsdsbench.protocol.protocol import NMSParams, Protocol, parse_overrides
    from bsdsbench.protocol.signature import Signature

    if signature:
        base = Signature.parse(signature).protocol
    else:
        base = Protocol.load(_usual_protocol(metrics) if protocol is None else protocol)
    changes: dict[str, Any] = parse_overrides(overrides)
    if thresholds is not None:
        changes["thresholds"] = _thresholds(thresholds)
    if max_dist is not None:
        changes["max_dist"] = _number("--max-dist", max_dist)
    if no_thin:
        changes["thin"] = False
    if nms:
        changes["nms"] = True
        if isinstance(nms, str) and nms != PROTOCOL_S:
            given = changes.get("nms_params")
            more = given if isinstance(given, dict) else {}
            changes["nms_params"] = asdict(NMSParams.recipe(nms)) | more
    if invert:
        changes["invert"] = True
    return base.replace(**changes)


def _usual_protocol(metrics: Sequence[str]) -> str:
    """The preset that the first metric is meant with."""
    from bsdsbench.metrics import registry
    from bsdsbench.runs.setup import usual_protocol

    return usual_protocol(registry.chosen(metrics)) if metrics else "bsds500"


def _thresholds(text: str) -> int | tuple[float, ...]:
    if text.isascii() and text.isdigit() and len(text) < 10:
        return int(text)
    return tuple(_number("--thresholds", part) for part in text.split(","))


def _number(option: str, text: str) -> float:
    from bsdsbench.files.errors import DataError

    try:
        return float(text)
    except ValueError:
        raise DataError(f"{option} {text!r}: expected a number") from None


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
