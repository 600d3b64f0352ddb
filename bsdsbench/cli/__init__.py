"""The command line: the groups of its help are its files. Verbs call the public API only.

Results go to standard output, progress and logs to standard error. Exit status: 0 success, 1 a
check failed (such as a regression), 2 invalid input or call, 130 interrupted.
"""

from __future__ import annotations

import gc
import io
import os
import sys
import warnings
from typing import Any

import click

from bsdsbench import __version__
from bsdsbench.cli.shared import GROUPS, VERBS, Verbs, as_flag, say
from bsdsbench.errors import DataError, InputWarning, Problem, Setting, grouped, place_of_bug
from bsdsbench.text import clip, visible

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
    sys.setswitchinterval(5e-5)  # workers wait for one another's Python, by 5 ms for 3 % longer
    usual, words = warnings.showwarning, sys.argv[1:] or ["--help"]

    def written(setting: Setting) -> str:
        return as_flag(setting, next((word for word in words if word in VERBS), "demo"))

    def show(message: Warning | str, category: type[Warning], *where: Any, **more: Any) -> None:
        if issubclass(category, InputWarning):  # what looks wrong with inputs is a line like others
            problem = getattr(message, "problem", Problem(has=str(message)))
            say(f"warning: {problem.line(written)}")
        else:
            usual(message, category, *where, **more)

    warnings.simplefilter("always", InputWarning)
    warnings.showwarning = show
    sys.stdout = sys.stdout or io.StringIO()  # where it is closed
    if words[0] in ("evaluate", "compare", "report"):
        # Threads of numpy's BLAS wait on a core, which ours are to have; a detector keeps them
        os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    status = 2
    try:
        if "_BSDSBENCH_COMPLETE" in os.environ:
            cli.main(words, prog_name="bsdsbench")
        with cli.make_context("bsdsbench", words) as call:
            status = cli.invoke(call)
        sys.stdout.flush()
    except click.exceptions.Exit as error:
        status = error.exit_code
    except click.ClickException as error:
        failed = getattr(error, "ctx", None)
        message = clip(visible(" ".join(error.format_message().split())), 500)
        say(message + (f" ({failed.command_path} --help)" if failed else ""))
    except DataError as error:
        for problem in grouped(error.problems):
            say(problem.line(written))
    except (KeyboardInterrupt, click.Abort) as error:
        kept = next(iter(error.args), "")  # what is kept, and how to go on
        kept = kept.line(written) if isinstance(kept, Problem) else kept
        say(f"interrupted{kept and f'; {kept}'}")
        status = 130
    except BrokenPipeError:  # the reader of our output has gone; nothing more can be said there
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        status = 0
    except OSError as error:
        what = error.strerror or str(error)
        say(visible(f"{os.fsdecode(error.filename)}: {what}" if error.filename else what))
    except MemoryError:
        say("not enough memory on this machine; what was done is kept")
    except Exception as error:  # a bug: one line, and its traceback in a file
        import tempfile
        import traceback

        from bsdsbench.metrics import registry

        what = clip(visible(f"{type(error).__name__}: {error}"), 200)
        place = place_of_bug(error, registry.other_packages())
        of_file: Any = {"prefix": "bsdsbench_", "delete": False, "errors": "backslashreplace"}
        with tempfile.NamedTemporaryFile("w", **of_file) as file:
            traceback.print_exc(file=file)
        where = place or f"bsdsbench {__version__}: please report it to the project"
        say(f"unexpected {what}; this is a bug in {where}, with the traceback (in {file.name})")
    gc.freeze()  # Python would look for garbage in all that was imported once more, for 0.15 s
    sys.exit(status if isinstance(status, int) else 0)
