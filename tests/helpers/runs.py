"""Runs as tests make them: maps in folders, one process, the command line, what is left on disk."""

import gc
import io
import math
import re
import sqlite3
import sys
from contextlib import closing, contextmanager, redirect_stderr, redirect_stdout
from subprocess import CompletedProcess
from unittest.mock import patch

import imageio.v3 as iio
import numpy as np
import pytest
from click.testing import CliRunner

import bsdsbench as bb
from bsdsbench.cli import cli, main
from bsdsbench.errors import DataError
from bsdsbench.plotting.beside import draw
from bsdsbench.results.storage import RECORDS

UNLIKE = ("records.db",)  # in a run's folder, and no result
FAST = {"workers": 1, "executor": "thread"}


def refused(words, function, *args, error=DataError, **options):
    """Check that a call raises the error, with a message in which the words are found."""
    with pytest.raises(error, match=words):
        function(*args, **options)


def counted(pred, gt, protocol=None, metrics="boundary", **options):
    """`evaluate` in this process, without others."""
    return bb.evaluate(pred, gt, protocol, metrics=metrics, **{**FAST, **options})


def write_maps(folder, maps):
    """{image id: array} as files: integers and truth values as PNG, others as .npy."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, values in maps.items():
        values = np.asarray(values)
        if values.dtype == bool:
            values = values * np.uint8(255)
        if values.ndim == 2 and values.dtype.kind in "iu":
            small = values.dtype if values.dtype.itemsize < 3 else np.uint8
            iio.imwrite(folder / f"{name}.png", values.astype(small))
        else:
            np.save(folder / f"{name}.npy", values)
    return folder


def changed(folder, function, names="*"):
    """Replace the maps of a folder by what `function` makes of them: pictures, or floats: .npy."""
    for path in sorted(folder.glob(names)):
        made = function(iio.imread(path))
        if made.dtype.kind == "f":
            np.save(path.with_suffix(".npy"), made)
            path.unlink()
        else:
            iio.imwrite(path, made, compress_level=1)
    return folder


def call(*words, plots=False):
    """What a command prints but for progress, which slow machines show; raises what it raises."""
    no_progress = patch.multiple("bsdsbench.cli.shared", BRIEF=math.inf, PLAIN_SECONDS=math.inf)
    plotting = patch("bsdsbench.cli.score.plots_beside", plots_here if plots else no_plots)
    with plotting, no_progress:
        found = CliRunner().invoke(cli, list(map(str, words)), standalone_mode=False)
    if found.exception:
        raise found.exception
    return found.output


@contextmanager
def no_plots(out):
    """`plots_beside` without plots, which take longer than most runs of tests."""
    yield lambda: None


@contextmanager
def plots_here(out):
    """`plots_beside` in this process, which imports matplotlib once for all calls."""
    yield lambda: None
    if out:
        draw(out)


def command(*words, plots=False):
    """`python -m bsdsbench` in this process: returncode, stdout, stderr."""
    out, err, before = io.StringIO(), io.StringIO(), gc.get_threshold()
    with (
        patch.object(sys, "argv", ["bsdsbench", *map(str, words)]),
        patch("bsdsbench.cli.score.plots_beside", plots_here if plots else no_plots),
        redirect_stdout(out),
        redirect_stderr(err),
        pytest.raises(SystemExit) as end,
    ):
        main()
    gc.set_threshold(*before)
    return CompletedProcess(words, end.value.code, out.getvalue(), err.getvalue())


def stored(out):
    """Image id -> fingerprint of what a run has counted so far."""
    path = out / RECORDS
    if not path.exists():
        return {}
    with closing(sqlite3.connect(f"{path.as_uri()}?nolock=1", uri=True)) as database:
        try:
            return dict(database.execute("select id, mark from record"))
        except sqlite3.DatabaseError:  # no table yet, or read while its first page is written
            return {}


def bits(folder):
    """Name -> bytes of every result file; times and dates are not results."""
    found = {}
    for path in sorted(folder.rglob("*")):
        name = path.relative_to(folder).as_posix()
        if path.is_file() and not name.startswith(".") and name not in UNLIKE:
            found[name] = re.sub(rb'"date": "[^"]*"', b'"date"', path.read_bytes())
    return found
