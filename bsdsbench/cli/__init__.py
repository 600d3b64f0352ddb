"""The command line: one verb, one module. Verbs call the public API only.

Results go to standard output, progress and logs to standard error. Exit status: 0 success, 1 a
check failed (such as a regression), 2 invalid input or call, 130 interrupted.
"""

from __future__ import annotations

import gc
import os
import re
import sys
import warnings
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

import click

from bsdsbench import __version__

# What a user does, in the order of the help page; the module verb_NAME exposes `command`.
GROUPS = {
    "Score": ("demo", "evaluate", "run", "merge", "nms"),
    "Understand": ("doctor", "compare", "worst", "explain", "plot", "curves"),
    "Publish": ("report",),
    "Check": ("check", "data", "protocols"),
}
VERBS = tuple(verb for group in GROUPS.values() for verb in group)
REPORT = "this is a bug in bsdsbench: please report it to the project"


class _Verbs(click.Group):
    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(VERBS)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        from bsdsbench.files.errors import did_you_mean

        if args[0] not in VERBS and not args[0].startswith("-"):
            ctx.fail(f"no verb {args[0]!r}{did_you_mean(args[0], VERBS)}")
        return super().resolve_command(ctx, args)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in VERBS:
            return None
        command: click.Command = import_module(f"bsdsbench.cli.verb_{cmd_name}").command
        return command

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt as error:  # click would write an empty line
            raise click.Abort from error
        except BrokenPipeError:  # click's status would be that of a check that failed
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            return 0

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        wide = max(map(len, VERBS))
        for heading, verbs in GROUPS.items():
            with formatter.section(heading):
                commands = [(name, self.get_command(ctx, name)) for name in verbs]
                formatter.write_dl(
                    [(n.ljust(wide), c.get_short_help_str(80)) for n, c in commands if c]
                )


@click.group(cls=_Verbs, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, "-V", "--version", prog_name="bsdsbench")
@click.option("--debug", is_flag=True, help="Show the traceback of an unexpected error.")
def cli(debug: bool) -> None:
    """The BSDS500 contour and segmentation benchmark, exact and fast.

    Start with `bsdsbench demo`, then
    `bsdsbench evaluate PRED_DIR --gt GT_DIR`.
    """


def main() -> None:
    """Run the command line; every expected failure becomes a line and an exit status."""
    from bsdsbench.files.errors import DataError, grouped, visible

    gc.set_threshold(100_000)  # imports allocate many long-lived objects: 1/7 of a short run
    for name in ("stdin", "stdout", "stderr"):  # closed: the next file would take its place
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, "r+"))  # noqa: SIM115
    words = sys.argv[1:]
    debug = "--debug" in words  # wherever it stands
    _one_line_warnings()
    words = [word for word in words if word != "--debug"]
    try:
        status = cli.main(words, prog_name="bsdsbench", standalone_mode=False)
        sys.stdout.flush()
    except click.exceptions.Exit as error:
        status = error.exit_code
    except click.ClickException as error:
        _say(_wrong_call(error))
        status = 2
    except DataError as error:
        for line in grouped(error.problems):
            _say(f"bsdsbench: {_in_flags(line)}")
        status = 2
    except (KeyboardInterrupt, click.Abort) as error:  # the second is click's word for it
        told = next((str(e) for e in (error, error.__cause__) if e and str(e)), "")
        _say(_in_flags(f"bsdsbench: interrupted{told and f'; {told}'}"))
        status = 130
    except BrokenPipeError:
        # The reader of our output has gone; nothing more can be said there.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        status = 0
    except OSError as error:
        _say(f"bsdsbench: {visible(_reason(error))}")
        status = 2
    except MemoryError:
        _say("bsdsbench: not enough memory on this machine; what was done is kept")
        status = 2
    except Exception as error:
        _say(f"bsdsbench: {_unexpected(error, words, debug)}")
        status = 2
    gc.freeze()  # Python would look for garbage in all that was imported once more, for 0.15 s
    sys.exit(status if isinstance(status, int) else 0)


def _in_flags(line: str, words: Sequence[str] | None = None) -> str:
    """A message with NAME=VALUE, Python's words, as the flags of the verb that was called."""
    called = sys.argv[1:] if words is None else words
    verb = next((word for word in called if word in VERBS), "demo")
    params = import_module(f"bsdsbench.cli.verb_{verb}").command.params
    flags = {param.name: max(param.opts, key=len) for param in params}

    def flag(found: re.Match[str]) -> str:
        name, value = found[1], found[2].strip("'")
        if name in flags:
            return flags[name] if value == "True" else f"{flags[name]} {value}"
        if "overrides" not in flags:
            return found[0]
        from bsdsbench.metrics import registry
        from bsdsbench.protocol.protocol import Protocol

        if name in Protocol.names() or name.partition(".")[0] in registry.names():
            return f"--set {name}={'true' if value == 'True' else value}"
        return found[0]

    return re.sub(r"(?<!--set )\b([a-z_]+(?:\.[a-z_]+)?)=(True|'[^']*'|[\w.]+)", flag, line)


def _wrong_call(error: click.ClickException) -> str:
    """A wrong call in one line, and where help is; or the help of a group without a verb."""
    from bsdsbench.files.errors import clip, visible

    context = getattr(error, "ctx", None)
    if type(error).__name__ == "NoArgsIsHelpError":  # since click 8.2
        return error.format_message()
    message = clip(visible(" ".join(error.format_message().split())), 500)
    return f"bsdsbench: {message}" + (f" ({context.command_path} --help)" if context else "")


def _reason(error: OSError) -> str:
    """The system's words, or which file stands where a folder was expected."""
    if not error.filename:
        return error.strerror or str(error)
    if isinstance(error, FileExistsError | NotADirectoryError):
        path = Path(os.fsdecode(error.filename))
        for part in (path, *path.parents):
            if part.is_file():
                return f"{part}: a file, expected a folder"
    return f"{error.filename}: {error.strerror or error}"


def _one_line_warnings() -> None:
    """What looks wrong with inputs is a line like any other."""
    from bsdsbench.files.errors import InputWarning, visible

    usual = warnings.showwarning

    def show(message: Warning | str, category: type[Warning], *where: Any, **more: Any) -> None:
        if issubclass(category, InputWarning):
            _say(f"bsdsbench: warning: {visible(_in_flags(str(message)))}")
        else:
            usual(message, category, *where, **more)

    warnings.simplefilter("always", InputWarning)
    warnings.showwarning = show


def _unexpected(error: Exception, words: list[str], debug: bool) -> str:
    """One line about a bug in bsdsbench; its traceback goes into a file, or is shown."""
    import tempfile
    import traceback

    from bsdsbench.files.errors import clip, visible

    what = clip(visible(f"{type(error).__name__}: {error}"), 200)
    verb = next((word for word in words if word in VERBS), "the start")
    text = f"bsdsbench {__version__}, Python {sys.version}\n{words}\n{traceback.format_exc()}"
    where = "shown above"
    if debug:
        _say(text)
    else:
        try:
            with tempfile.NamedTemporaryFile(
                "w", prefix="bsdsbench_", suffix=".txt", delete=False, errors="backslashreplace"
            ) as file:
                file.write(text)
            where = f"in {file.name}"
        except OSError:
            where = "shown with --debug"
    return f"unexpected {what} in {verb}; {REPORT}, with the traceback ({where})"


def _say(line: str) -> None:
    click.echo(line, err=True)
