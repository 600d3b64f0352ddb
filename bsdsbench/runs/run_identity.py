"""What set a run is of, and its signature."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from bsdsbench.loaders.identity import Identity, KnownSet, identify
from bsdsbench.metrics import metric_options
from bsdsbench.protocol.protocol import Protocol
from bsdsbench.protocol.signature import UNKNOWN, Signature
from bsdsbench.scores.counts import ImageRecord

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
    return Signature(
        protocol,
        identity.name if identity else None,
        len(records),
        size,
        identity.fingerprint if identity else UNKNOWN,
        pred="+".join(f or UNKNOWN for f in forms) or UNKNOWN,
        unused=metric_options.unused(metrics, protocol),
        taken_over=taken if isinstance(taken, int) and 0 < taken <= len(records) else 0,
    )
