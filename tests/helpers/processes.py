"""What other processes do, as Linux tells it in /proc."""

import contextlib
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

TOLD = Path("/proc/self/stat").exists()


def start_python(*words, **options):
    """Start Python, with pipes for what it prints."""
    # Where the tests run in the background Ctrl-C is ignored, and the child would inherit that.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    try:
        return subprocess.Popen([sys.executable, *map(str, words)], **pipes, **options)
    finally:
        signal.signal(signal.SIGINT, before)


def fields_of(session):
    """The living processes of a session: id -> the fields of its stat after the name."""
    found = {}
    for name in filter(str.isdigit, os.listdir("/proc") if TOLD else ()):
        with contextlib.suppress(OSError):  # it has ended meanwhile
            fields = Path("/proc", name, "stat").read_text().rpartition(")")[2].split()
            if int(fields[3]) == session and fields[0] != "Z":
                found[int(name)] = fields
    return found


def gone(session, seconds=60):
    """Whether they end in time; elsewhere they are given two seconds."""
    limit = time.monotonic() + (seconds if TOLD else 2)
    while (fields_of(session) or not TOLD) and time.monotonic() < limit:
        time.sleep(0.05)
    return not fields_of(session)
