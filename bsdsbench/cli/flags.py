"""Settings of Python, such as those that an error message suggests, as options of a command."""

from __future__ import annotations

import shlex

import attrs
import click

from bsdsbench.cli.shared import Commands
from bsdsbench.errors import Setting
from bsdsbench.metrics import registry


def as_flag(setting: Setting, command_name: str) -> str:
    """Format a setting as the user must type it on the command line.

    - An option of the command `command_name` gives "--flag VALUE", such as "--max-dist 0.01", or,
      if its value is a bool, "--flag" (True) or the advice "without --flag" (False).
    - A field of the protocol or option of a metric gives "--set FIELD=VALUE", if there is a --set.
    - Any other setting is written as in Python: "name=value".
    """
    from bsdsbench.protocol.protocol import Protocol

    commands = Commands()  # the group of all commands; click wants a context of it for a look-up
    params = commands.get_command(click.Context(commands), command_name).params
    flags = {param.name: max(param.opts, key=len) for param in params}  # --out rather than -o
    fields_of_set = {*Protocol.names(), *registry.names()} if "set" in flags else set[str]()
    name = setting.name
    # Text as it is, anything else as Python writes it, such as True, 0.01 or [1, 2]
    value = setting.value if isinstance(setting.value, str) else setting.shown()
    if name in flags and isinstance(setting.value, bool):
        return flags[name] if setting.value else f"without {flags[name]}"
    if name in flags:
        return f"{flags[name]} {shlex.quote(value)}"
    if name.partition(".")[0] in fields_of_set:  # FIELD, FIELD.ENTRY or METRIC.OPTION
        if isinstance(setting.value, bool):
            value = value.lower()  # true, as --set wants it
        return f"--set {shlex.quote(f'{name}={value}')}"
    # The caller adds the effect ("for region labels") and the settings that must be given with it
    return str(attrs.evolve(setting, effect="", beside=()))
