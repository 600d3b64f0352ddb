"""bsdsbench protocols: the presets and their constants."""

from __future__ import annotations

import click

from bsdsbench.cli.options import format_option, verb


@verb("protocols", short_help="List the presets and their constants.")
@click.argument("name", required=False)
@format_option("table", "toml", "json")
def command(name: str | None, form: str) -> int:
    """List the protocols, or show the one called NAME (or a .toml file) with its sources."""
    from bsdsbench.cli.evaluating import print_json
    from bsdsbench.protocol.protocol import Protocol, preset_names, preset_text

    chosen = [Protocol.load(name)] if name else [Protocol.preset(n) for n in preset_names()]
    if form == "json":
        print_json([p.to_mapping() for p in chosen])
    elif form == "toml":
        print("\n".join(p.to_toml() for p in chosen), end="")
    elif name and name in preset_names():
        print(preset_text(name), end="")
    else:
        for protocol in chosen:
            print(f"{protocol.describe()}; --nms means {protocol.nms_params.describe()}")
    return 0
