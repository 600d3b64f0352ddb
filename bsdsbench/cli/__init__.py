"""The command line, with one file per heading of its help page.

Results go to standard output, progress and messages to standard error.
"""

from __future__ import annotations

import gc
import io
import os
import sys
import warnings
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from typing import Any

import click

from bsdsbench import __version__
from bsdsbench.cli.flags import as_flag
from bsdsbench.cli.shared import COMMANDS, GROUPS, Commands, log
from bsdsbench.errors import (
    MANY_FILES,
    DataError,
    InputWarning,
    Problem,
    Setting,
    locate_bug,
    merge_similar_problems,
)
from bsdsbench.text import escape_unprintable, shorten, show

__all__ = ["COMMANDS", "GROUPS", "cli", "main"]

cli = Commands(
    "bsdsbench",
    context_settings={"help_option_names": ["-h", "--help"], "show_default": True},
    help="""The BSDS500 contour and segmentation benchmark, exact and fast.

    Start with `bsdsbench demo`, then
    `bsdsbench evaluate PRED_DIR --gt GT_DIR`.
    """,
)
click.version_option(__version__, "-V", "--version", prog_name="bsdsbench")(cli)


def main() -> None:
    """Run the command line and exit. Failures are reported in one line.

    The exit status is 0 for success, 1 if a check failed (such as a regression), 2 for invalid
    input and for an unexpected error, whose traceback is written to a file, 130 if interrupted.
    """
    arguments = sys.argv[1:] or ["--help"]
    _prepare_process(arguments[0])
    # An option such as -h may come before the command. Without a command, any name will do
    command_name = next((word for word in arguments if word in COMMANDS), "demo")
    # Messages suggest settings. It writes them as flags of the command, such as "--max-dist 0.01"
    write_setting = partial(as_flag, command_name=command_name)
    _print_input_warnings(write_setting)
    status: object = 2  # unless the command ends without a failure
    try:
        # Set by the shell when the user presses Tab: click then prints the next words, and exits
        if "_BSDSBENCH_COMPLETE" in os.environ:
            cli.main(arguments, prog_name="bsdsbench")
        with cli.make_context("bsdsbench", arguments) as context:
            status = cli.invoke(context)
        sys.stdout.flush()
    except click.exceptions.Exit as error:
        status = error.exit_code
    except click.ClickException as error:  # a wrong command line
        context_of_error = getattr(error, "ctx", None)  # knows the command; some errors have none
        one_line = " ".join(error.format_message().split())
        hint = f" ({context_of_error.command_path} --help)" if context_of_error else ""
        log(shorten(escape_unprintable(one_line), 500) + hint)
    except DataError as error:  # a wrong input
        _print_problems(error.problems, write_setting)
    except (KeyboardInterrupt, click.Abort) as error:
        advice = next(iter(error.args), "")  # a run adds which files are kept, and how to resume
        if isinstance(advice, Problem):
            advice = advice.line(write_setting)
        log(f"interrupted; {advice}" if advice else "interrupted")
        status = 130
    except BrokenPipeError:  # the program that reads our output has ended, such as `head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        status = 0
    except OSError as error:
        reason = error.strerror or str(error)
        place = os.fsdecode(error.filename) if error.filename else "standard output"
        if isinstance(error, FileNotFoundError) and not error.filename:  # raised by os.getcwd
            log("the current folder was deleted, expected one that exists")
        else:
            log(
                escape_unprintable(
                    f"{place}: cannot be written ({reason}), expected a writable path"
                )
            )
    except MemoryError:
        log("not enough memory (fewer --workers need less); finished images in OUT are kept")
    except Exception as error:
        _report_bug(error)
    gc.freeze()  # spares a last garbage collection of all imported modules, 0.15 s
    sys.exit(status if isinstance(status, int) else 0)  # a command may return None


def _prepare_process(first_argument: str) -> None:
    """Make this process faster, and replace streams that the caller closed."""
    # Imports allocate many long-lived objects: numba's and matplotlib's alone above 100,000.
    # Garbage collecting them takes 1/7 of a short run.
    gc.set_threshold(500_000)
    sys.setswitchinterval(5e-5)  # the default of 5 ms makes threads wait: runs take 3 % longer
    sys.stdout, sys.stderr = sys.stdout or io.StringIO(), sys.stderr or io.StringIO()  # not None
    if first_argument in ("evaluate", "compare", "report"):
        # Idle BLAS threads spin on cores that our workers need. Other commands keep the default,
        # since a detector may benefit from the threads.
        os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
        _keep_freed_memory()


def _keep_freed_memory() -> None:
    """Let glibc keep freed arrays for the next ones. Other C libraries are left as they are.

    It would return many to the system, and get their pages again one by one: a sixth of the time of
    `compare`.
    """
    if sys.platform == "linux":
        import ctypes

        with suppress(AttributeError):  # another C library
            set_option = ctypes.CDLL(None).mallopt
            set_option(-1, 128 << 20)  # M_TRIM_THRESHOLD: return free memory above 128 MB
            set_option(-3, 32 << 20)  # M_MMAP_THRESHOLD: arrays above 32 MB are returned at once


def _print_problems(problems: Sequence[Problem], write_setting: Callable[[Setting], str]) -> None:
    """Print the faults of the input, one line each: "FILE: WHAT IT HAS, expected WHAT (FIX)".

    If more than three files have the same fault, one line names the fault and the files. If these
    are more than ten (MANY_FILES), it names only three, and all are listed in a temporary file. A
    fix may be a setting, which `write_setting` formats as a command-line flag.
    """
    shown = merge_similar_problems(problems)
    for problem in shown:
        log(problem.line(write_setting))
    if any(len(problem.names) > MANY_FILES for problem in shown):
        lines = list[str]()  # of all problems, each followed by the files or images it is about
        for problem in problems:
            lines += [problem.line(write_setting), *(f"    {show(n)}" for n in problem.names)]
        with suppress(OSError):  # there may be no folder for temporary files
            log(f"all are listed in {_write_temporary(lines)}")


def _print_input_warnings(write_setting: Callable[[Setting], str]) -> None:
    """Make Python print each InputWarning as a one-line message, and equal messages only once.

    write_setting: formats a setting that a warning suggests as a command-line flag.
    """
    default_show = warnings.showwarning
    printed = set[str]()  # messages: those on the images of all runs would come once per run

    def show_warning(
        message: Warning | str, category: type[Warning], *place: Any, **target: Any
    ) -> None:
        """Print a warning; Python calls this in place of its own function, `default_show`.

        `place` is where in the code the warning was raised, and `target` the file to write to.
        """
        if isinstance(message, InputWarning):  # of this package
            line = message.problem.line(write_setting)
            if line not in printed:
                log(f"warning: {line}")
            printed.add(line)
        else:
            default_show(message, category, *place, **target)

    warnings.simplefilter("always", InputWarning)
    warnings.showwarning = show_warning


def _write_temporary(lines: Sequence[str]) -> str:
    """Write lines to a new file bsdsbench_*.txt in the folder for temporary files; return its path.

    The file is kept when the command ends.
    """
    import tempfile

    settings: Any = {"prefix": "bsdsbench_", "suffix": ".txt", "errors": "backslashreplace"}
    with tempfile.NamedTemporaryFile("w", encoding="utf-8", delete=False, **settings) as file:
        file.write("\n".join(lines) + "\n")
    return file.name


def _report_bug(error: Exception) -> None:
    """Print one line about an unexpected error, whose traceback is written to a temporary file.

    The line names the package to blame: one that provides a metric, or otherwise this package.
    """
    import traceback

    from bsdsbench.metrics import registry

    summary = shorten(escape_unprintable(f"{type(error).__name__}: {error}"), 200)
    # Such as "davis, in metric.py, line 12"; "" if no other package was running
    place = locate_bug(error, registry.other_packages())
    path = _write_temporary(["".join(traceback.format_exception(error))])
    culprit = place or f"bsdsbench {__version__}: please report it to the project"
    log(f"unexpected {summary}; this is a bug in {culprit}, with the traceback (in {path})")
