"""Options that say nothing where another one was given: refused, so that none is ignored."""

from __future__ import annotations

from collections.abc import Collection

import click
from click.core import ParameterSource


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
