"""The command line: the groups of its help are its files. Verbs call the public API only.

Results go to standard output, progress and logs to standard error. Exit status: 0 success, 1 a
check failed (such as a regression), 2 invalid input or call, 130 interrupted.
"""

from __future__ import annotations

import gc
import os
import re
import sys
import warnings
from pathlib import Path
from typing import Any

import click

from bsdsbench import __version__
from bsdsbench.cli.shared import GROUPS, VERBS, Verbs, say
from bsdsbench.files.errors import DataError, InputWarning, clip, grouped, visible

__all__ = ["GROUPS", "VERBS", "cli", "main"]

cli = Verbs(
    "bsdsbench",
    context_settings={"help_option_names": ["-h", "--help"], "show_default": True},
    help="""The BSDS500 contour and segmentation benchmark, exact and fast.

    Start with `bsdsbench demo`, then
    `bsdsbench evaluate PRED_DIR --gt GT_DIR`.
    """,
)
click.version_option(__version__, "-V", "--version", prog_name="bsdsbench")(cli)


def main() -> None:
    """Run the command line; every expected failure becomes a line and an exit status."""
    gc.set_threshold(100_000)  # imports allocate many long-lived objects: 1/7 of a short run
    for name in ("stdin", "stdout", "stderr"):  # closed: the next file would take its place
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, "r+"))  # noqa: SIM115
    usual = warnings.showwarning

    def show(message: Warning | str, category: type[Warning], *where: Any, **more: Any) -> None:
        if issubclass(category, InputWarning):  # what looks wrong with inputs is a line like others
            say(f"warning: {visible(in_flags(str(message)))}")
        else:
            usual(message, category, *where, **more)

    warnings.simplefilter("always", InputWarning)
    warnings.showwarning = show
    words = sys.argv[1:]
    status = 2
    try:
        if "_BSDSBENCH_COMPLETE" in os.environ:
            cli.main(words, prog_name="bsdsbench")
        with cli.make_context("bsdsbench", words) as context:
            status = cli.invoke(context)
        sys.stdout.flush()
    except click.exceptions.Exit as error:
        status = error.exit_code
    except click.ClickException as error:
        if type(error).__name__ == "NoArgsIsHelpError":  # since click 8.2
            click.echo(error.format_message(), err=True)
        else:
            of = getattr(error, "ctx", None)
            message = clip(visible(" ".join(error.format_message().split())), 500)
            say(message + (f" ({of.command_path} --help)" if of else ""))
    except DataError as error:
        for line in grouped(error.problems):
            say(in_flags(line))
    except (KeyboardInterrupt, click.Abort) as error:
        say(in_flags(f"interrupted{str(error) and f'; {error}'}"))
        status = 130
    except BrokenPipeError:  # the reader of our output has gone; nothing more can be said there
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        status = 0
    except OSError as error:
        say(visible(_reason(error)))
    except MemoryError:
        say("not enough memory on this machine; what was done is kept")
    except Exception as error:
        say(_unexpected(error, words))
    gc.freeze()  # Python would look for garbage in all that was imported once more, for 0.15 s
    sys.exit(status if isinstance(status, int) else 0)


def in_flags(line: str, words: list[str] | None = None) -> str:
    """A message with NAME=VALUE, Python's words, as the flags of the verb that was called."""
    verb = next((word for word in words or sys.argv[1:] if word in VERBS), "demo")
    command = cli.get_command(click.Context(cli), verb)
    flags = {param.name: max(param.opts, key=len) for param in command.params}

    def flag(found: re.Match[str]) -> str:
        name, value = found[1], found[2].strip("'")
        if name in flags:
            return flags[name] if value == "True" else f"{flags[name]} {value}"
        if "set" not in flags:
            return found[0]
        from bsdsbench.metrics import registry
        from bsdsbench.protocol.protocol import Protocol

        if name in Protocol.names() or name.partition(".")[0] in registry.names():
            return f"--set {name}={'true' if value == 'True' else value}"
        return found[0]

    return re.sub(r"(?<!--set )\b([a-z_]+(?:\.[a-z_]+)?)=(True|'[^']*'|[\w.]+)", flag, line)


def _reason(error: OSError) -> str:
    """The system's words, or which file stands where a folder was expected."""
    if not error.filename:
        return error.strerror or str(error)
    path = Path(os.fsdecode(error.filename))
    if isinstance(error, FileExistsError | NotADirectoryError):
        for part in (path, *path.parents):
            if part.is_file():
                return f"{part}: a file, expected a folder"
    return f"{path}: {error.strerror or error}"


def _unexpected(error: Exception, words: list[str]) -> str:
    """One line about a bug in bsdsbench; its traceback goes into a file."""
    import tempfile
    import traceback

    text = f"bsdsbench {__version__}, Python {sys.version}\n{words}\n{traceback.format_exc()}"
    try:
        with tempfile.NamedTemporaryFile(
            "w", prefix="bsdsbench_", suffix=".txt", delete=False, errors="backslashreplace"
        ) as file:
            file.write(text)
        where = f"in {file.name}"
    except OSError:
        click.echo(text, err=True)
        where = "shown above"
    what = clip(visible(f"{type(error).__name__}: {error}"), 200)
    verb = next((word for word in words if word in VERBS), "the start")
    return (
        f"unexpected {what} in {verb}; this is a bug in bsdsbench: please report it to the "
        f"project, with the traceback ({where})"
    )
