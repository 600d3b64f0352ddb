"""What other processes do, as Linux tells it in /proc."""

import contextlib
import os
import time
from pathlib import Path

TOLD = Path("/proc/self/stat").exists()


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
