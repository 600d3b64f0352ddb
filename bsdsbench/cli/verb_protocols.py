"""bsdsbench protocols: the presets and their constants."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from bsdsbench.cli.options import format_option, verb

if TYPE_CHECKING:
    from bsdsbench.protocol.signature import Signature


@verb("protocols", short_help="List the presets and their constants.")
@click.argument("name", required=False)
@format_option("table", "toml", "json")
def command(name: str | None, form: str) -> int:
    """List the protocols, or show the one called NAME (or a .toml file) with its sources.

    NAME may also be a signature, the line under a table: each of its words is explained, and
    the last line is a sentence for a paper.
    """
    from bsdsbench.cli.evaluating import print_json
    from bsdsbench.protocol.protocol import Protocol, preset_names, preset_text
    from bsdsbench.protocol.signature import Signature

    signature = Signature.parse(name) if name and "|" in name else None
    if signature:
        chosen = [signature.protocol]
    else:
        chosen = [Protocol.load(name)] if name else [Protocol.preset(n) for n in preset_names()]
    if form == "json":
        print_json([p.to_mapping() for p in chosen])
    elif form == "toml":
        print("\n".join(p.to_toml() for p in chosen), end="")
    elif signature:
        _explain(signature)
    elif name and name in preset_names():
        print(preset_text(name), end="")
    else:
        for protocol in chosen:
            print(f"{protocol.describe()}; --nms means {protocol.nms_params.describe()}")
    return 0


def _explain(signature: Signature) -> None:
    from bsdsbench.protocol.decoder import decode, sentence

    for word, meaning in decode(signature):
        print(f"{word:20}  {meaning}")
    print(f"\n{sentence(signature)}")
