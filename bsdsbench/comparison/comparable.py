"""Whether runs may be compared: the same images, ground truth and protocol, in words."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from bsdsbench.files.arguments import given_list, kind_of_value
from bsdsbench.files.errors import DataError
from bsdsbench.runs.evaluation import Evaluation
from bsdsbench.runs.run_identity import reference_notes, reference_of

FEW_IMAGES = 20
# Words of a signature that do not make scores incomparable
HARMLESS = ("set", "pred", "proto")
# and those of a reference run, which has its own parameters and its program's matching
OWN_OF_REFERENCES = ("thr", "match", "nms", "op", "ods", "thin")


def labels_of(runs: Sequence[Evaluation], names: Sequence[str] | None) -> list[str]:
    """The runs' names, or those given. DataError for none, too few, doubled ones and no text."""
    if not runs:
        raise DataError("no runs given, expected at least one to compare")
    labels = [run.name for run in runs]
    if names is not None:
        labels = given_list(names, "names", "a list of names")
    for name in labels:
        if not isinstance(name, str):
            raise DataError(f"names: {kind_of_value(name)}, expected text")
    if len(labels) != len(runs):
        raise DataError(f"{len(labels)} names for {len(runs)} runs, expected one each")
    doubled = sorted({name for name in labels if labels.count(name) > 1})
    if doubled:
        raise DataError(f"two runs are named {doubled[0]!r}, expected different names")
    return labels


def comparable(
    runs: Sequence[Evaluation], labels: Sequence[str], common: bool, force: bool
) -> tuple[list[Evaluation], list[str]]:
    """The runs on the images they share, and what is to be said about it. Raises DataError."""
    bare = [
        DataError(f"{n}: no counts per image")
        for n, r in zip(labels, runs, strict=True)
        if not r.records
    ]
    if bare:
        raise DataError.collect(bare)
    ids = [set(run.image_ids) for run in runs]
    shared = set.intersection(*ids)
    notes: list[str] = []
    if any(i != shared for i in ids):
        odd = sorted(set.union(*ids) - shared)
        fault = f"{', '.join(labels)}: {len(odd)} images are not in every run, such as {odd[0]!r}"
        if not (common and shared):
            raise DataError(f"{fault}; expected the same images in all")
        notes.append(f"{fault}; compared on the {len(shared)} in all")
    kept = [replace(r, records=tuple(x for x in r.records if x.image_id in shared)) for r in runs]
    if not shared:
        raise DataError(f"{', '.join(labels)}: no images, expected at least one")
    faults: list[str] = []
    for name, run in zip(labels[1:], kept[1:], strict=True):
        found, other = _differences(kept[0], run)
        faults += [f"{labels[0]}, {name}: {line}" for line in found]
        notes += [f"{labels[0]}, {name}: {line}" for line in other]
    if faults and not force:
        why = "such scores are not comparable (--force compares them all the same)"
        raise DataError.collect([DataError(f"{f}; {why}") for f in faults])
    notes += [
        f"{name}: from official files, which do not state the protocol; "
        f"AP by the rule {run.protocol.ap_rule}"
        + " without their row of threshold 0"
        * (run.protocol.whole_image and run.protocol.ap_rule != "edter")
        for name, run in zip(labels, runs, strict=True)
        if "official" in run.provenance
    ]
    notes += reference_notes(labels, kept)
    if len(shared) < FEW_IMAGES:
        notes.append(f"{len(shared)} images only: intervals and p-values are rough")
    return kept, [*notes, *faults]


def _differences(a: Evaluation, b: Evaluation) -> tuple[list[str], list[str]]:
    """What makes the scores incomparable, and what else differs, in the words of the signatures.

    Each line has both values and what the difference usually costs.
    """
    found = a.signature.differences(b.signature)
    if reference_of(a) or reference_of(b):
        found = [d for d in found if d.key not in OWN_OF_REFERENCES]
    image = _other_ground_truth(a, b)
    faults = [d for d in found if d.key.partition(".")[0] not in (*HARMLESS, "gt")]
    lines = [f"protocols differ in {d.line()}" for d in faults]
    if image is None and any(d.key == "gt" for d in found):
        pairs = zip(a.records, b.records, strict=True)
        image = next(x.image_id for x, y in pairs if x.truth != y.truth)
    if image is not None:
        lines.append(f"ground truth of image {image!r} differs")
    return lines, [d.line() for d in found if d.key == "pred"]


def _other_ground_truth(a: Evaluation, b: Evaluation) -> str | None:
    """The first image whose counts cannot come from the same ground truth, or None."""
    for one, two in zip(a.records, b.records, strict=True):
        if one.truth and two.truth and one.truth != two.truth:
            return one.image_id
    return None
