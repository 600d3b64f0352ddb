"""bsdsbench nms: raw maps to thin ones, written as PNG."""

from __future__ import annotations

from typing import Any

import click

from bsdsbench.cli.options import protocol_from, protocol_options, quiet_option, verb


@verb("nms", short_help="Apply non-maximum suppression to soft maps.")
@click.argument("source", metavar="IN", type=click.Path())
@click.argument("target", metavar="OUT", type=click.Path())
@protocol_options("protocol", "nms", "invert", "overrides")
@click.option(
    "--bits", type=click.Choice(["8", "16"]), help="Bit depth of the PNG; default: the protocol's."
)
@quiet_option
def command(source: str, target: str, bits: str | None, quiet: bool, **options: Any) -> int:
    """Apply edge non-maximum suppression to IN (a soft map or a folder of them), and write PNG.

    OUT is a .png file, or a folder for a folder. The constants are the protocol's nms_params
    (`--protocol biped`, `--set nms_params.radius=2`) or those of a recipe (`--nms rcf`). The result
    is what `evaluate --nms` scores.

    An exactly horizontal, straight ridge has no mixed second derivative, so its orientation comes
    out as 0: it is compared along itself and stays thick, as in every program of this NMS in use.
    The fade at the border covers at most half of the shorter side.
    """
    from bsdsbench.cli.evaluating import progress
    from bsdsbench.runs.convert import nms_files

    options["nms"] = options["nms"] or True
    protocol = protocol_from(**options)
    if bits:
        protocol = protocol.replace(nms_params={"bits": int(bits)})
    with progress("nms", quiet) as report:
        count = nms_files(source, target, protocol, progress=report)
    print(f"{count} maps written to {target}")
    print(f"protocol {protocol.describe()}")
    return 0
