"""Whether a result was made by this user on this machine, and so may name folders to read.

A result that comes from somebody else could name any folder of ours; a report made of it would
show, and hand on, the pictures there. So a run signs its result with a key that never leaves the
user's own folder, and only signed results have their folders read without being asked to.
"""

from __future__ import annotations

import contextlib
import hashlib
import hmac
import os
import secrets
from pathlib import Path

from bsdsbench.files.writing import write_atomic

MARK = ".origin"
KEY_BYTES = 32


def mark_of(result: bytes) -> str | None:
    """The mark to lie beside a result; None without a place for the key."""
    key = _key(make=True)
    return None if key is None else _mark(key, result)


def is_own(folder: Path, result: bytes) -> bool:
    """True if the mark beside a result is one of this user's own."""
    key = _key(make=False)
    if key is None:
        return False
    try:
        found = (folder / MARK).read_bytes()[:200]
    except OSError:
        return False
    return hmac.compare_digest(found, _mark(key, result).encode())


def _mark(key: bytes, result: bytes) -> str:
    return hmac.new(key, result, hashlib.sha256).hexdigest()


def _key(make: bool) -> bytes | None:
    """The user's key, 32 random bytes; None where there is no folder for it."""
    with contextlib.suppress(OSError, RuntimeError):
        state = os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state"
        path = Path(state) / "bsdsbench" / "key"
        if make and not path.exists():
            write_atomic(path, secrets.token_bytes(KEY_BYTES))
            path.chmod(0o600)
        key = path.read_bytes()
        return key if len(key) == KEY_BYTES else None
    return None
