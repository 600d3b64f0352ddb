"""The ground-truth set of a run, and its signature.

Whether a result was made by this user on this machine, and so may name folders to read.

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
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from bsdsbench.files.errors import is_text
from bsdsbench.files.writing import write_atomic
from bsdsbench.loaders.identity import Identity, KnownSet, identify
from bsdsbench.metrics import registry
from bsdsbench.protocol.protocol import Protocol
from bsdsbench.protocol.signature import UNKNOWN, Signature
from bsdsbench.scores.counts import ImageRecord

# What the stored counts of a reference run do not tell.
_NOT_STATED = frozenset(["nms", "nms_params", "operator"])
MOST = 20_000  # images of a set that is looked for among the known ones


def identity_of(records: Sequence[ImageRecord], sets: Sequence[KnownSet] = ()) -> Identity | None:
    """Which ground-truth set the records are of; None where it is not known of every image.

    sets : known sets beside those that ship. No records, and very many, give None.
    """
    if not 0 < len(records) <= MOST:
        return None
    truths = {r.image_id: r.truth for r in records}
    return identify(truths, sets) if all(truths.values()) else None


def signature_of(
    protocol: Protocol,
    records: Sequence[ImageRecord],
    identity: Identity | None,
    provenance: Mapping[str, Any],
) -> Signature:
    """The signature of a run: what its metrics use of the protocol, its set, its predictions."""
    detector = provenance.get("detector")
    taken = detector.get("taken_over") if isinstance(detector, Mapping) else 0
    forms = sorted({r.form for r in records} - {"none"}) if len(records) <= MOST else []
    size = identity.to_mapping()["of"] if identity else None
    metrics = tuple(records[0].counts) if records else ()
    unused = registry.unused(metrics, protocol)
    stored = "reference" in provenance
    return Signature(
        protocol,
        identity.name if identity else None,
        len(records),
        size,
        identity.fingerprint if identity else UNKNOWN,
        pred="+".join(f or UNKNOWN for f in forms) or UNKNOWN,
        match="random" if stored else "1to1",
        unused=unused | _NOT_STATED if stored else unused,
        taken_over=taken if isinstance(taken, int) and 0 < taken <= len(records) else 0,
    )


def absolute(folders: Mapping[str, str | Path]) -> dict[str, str]:
    """Folders as absolute paths, without those whose names are no text."""
    found = {what: str(Path(folder).resolve()) for what, folder in folders.items()}
    return {what: path for what, path in found.items() if is_text(path)}


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
