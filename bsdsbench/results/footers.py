"""Compose the notes below tables of runs: protocol, readings, images left out, signatures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypedDict

from bsdsbench.metrics.base import Column
from bsdsbench.protocol.signature import Severity
from bsdsbench.results.comparability import pair_differences
from bsdsbench.tables.table import Note
from bsdsbench.text import clip, listed

if TYPE_CHECKING:
    from bsdsbench.results.evaluation import Evaluation

MOST_NAMED = 20  # images that are left out, in a note
_LONG_REASON = 50  # characters; what was expected is dropped from a longer one


def reference_notes(runs: Sequence[Evaluation]) -> list[str]:
    """Return notes on the sources of runs: a line for each reference run and each shared run.

    A last line is added if the runs have several ODS rules and one of them is a reference run whose
    parameters have no order, so that its ODS cannot be interpolated.
    """
    lines: list[str] = []
    without_order: list[str] = []
    for run in runs:
        if run.reference:
            lines.append(f"{run.name}: reference run, {run.provenance.about}.")
            if not run.reference.ordered:
                without_order.append(run.name)
        elif run.provenance.licence or run.provenance.citation:
            line = f"{run.name}: shared counts, licence {run.provenance.licence or 'not stated'}"
            if run.provenance.citation:
                line += f"; cite: {' '.join(run.provenance.citation.split())}"
            lines.append(f"{line}.")
    if without_order and len({run.protocol.ods_rule for run in runs}) > 1:
        rule = "ODS is the best of all combinations; for other runs it is interpolated."
        lines.append(f"{', '.join(without_order)}: {rule}")
    return lines


class TableFooter(TypedDict):
    """The texts below a table of scores, as keyword arguments of `Table`.

    caption : the protocol, or "" if the runs differ in it
    reading : how the files were read
    notes : further lines, see `table_footer`
    signatures : the signature of each run
    """

    caption: str
    reading: str
    notes: Sequence[str | Note]
    signatures: list[str]


def table_footer(runs: Sequence[Evaluation]) -> TableFooter:
    """Return the texts below a table of runs: protocol, reading, notes and signatures.

    The notes are, in this order: images that were left out, differences between the runs, scales
    that were averaged, and sources of reference runs and shared runs. If all runs have the same
    protocol, it is the caption. Otherwise the caption is empty, and a note names the runs of each
    protocol.
    """
    lines = _differences_of(runs) if len(runs) > 1 else []
    runs_by_protocol: dict[str, list[str]] = {}
    for run in runs:
        runs_by_protocol.setdefault(f"protocol {run.described}", []).append(run.name)
        if scales := run.signature.ms:
            lines.append(f"{run.name}: each map is the mean over the scales {scales}.")
    if len(runs_by_protocol) > 1:
        caption = ""
        lines += [f"{', '.join(names)}: {text}." for text, names in runs_by_protocol.items()]
    else:
        caption = "".join(runs_by_protocol)
    names = [run.name for run in runs]
    return {
        "caption": caption,
        "reading": reading_line(runs),
        "notes": [*left_out_notes(runs), *lines, *reference_notes(runs)],
        "signatures": signature_lines(names, [run.signature_line for run in runs]),
    }


def _differences_of(runs: Sequence[Evaluation]) -> list[str]:
    """Return a line for each difference between two runs that a reader of a table must know.

    - Differences of the protocol that forbid a comparison share one line, the first.
    - Other differences that forbid a comparison have a line each, except for metrics, because each
      metric has a table of its own.
    - Different images have a line even if they do not forbid a comparison.
    """
    protocols_differ = False
    lines = list[str]()
    for pair in pair_differences(runs):
        forbids = pair.difference.severity is Severity.FORBIDS
        if pair.difference.of_protocol:
            protocols_differ = protocols_differ or forbids
        elif forbids and pair.difference.field != "metrics":
            lines.append(f"{pair.line()}; such scores are not comparable.")
        elif pair.difference.field == "images":
            lines.append(f"{pair.line()}.")
    if protocols_differ:
        lines.insert(0, "Protocols differ; such scores are not comparable.")
    return lines


def reading_line(runs: Sequence[Evaluation]) -> str:
    """Describe how the files of the runs were read.

    Without run names if all runs were read alike, otherwise with the names of the runs before each
    description. Runs whose reading is unknown are left out.
    """
    names_by_line: dict[str, list[str]] = {}
    for run in runs:
        if run.read_as:
            names_by_line.setdefault(run.read_as, []).append(run.name)
    if [len(names) for names in names_by_line.values()] == [len(runs)]:
        return next(iter(names_by_line))
    # The lines begin with "Read as", which follows the names in lower case
    return "; ".join(f"{', '.join(names)} r{line[1:]}" for line, names in names_by_line.items())


def left_out_notes(runs: Sequence[Evaluation]) -> list[Note]:
    """Return notes on the images that the runs left out, see `notes_on_left_out`."""
    return notes_on_left_out({run.name: (len(run.records), run.left_out) for run in runs})


def notes_on_left_out(left_out: Mapping[str, tuple[int, Mapping[str, str]]]) -> list[Note]:
    """Return notes on left-out images: how many images there are, which ones lack, and why.

    `left_out` maps the name of a run or method to its number of images and to {image id: reason}.
    Runs that lack the same images for the same reasons share a note. Runs that lack no image have
    none.
    """
    names_by_line: dict[str, list[str]] = {}
    for name, (n_images, reasons) in left_out.items():
        if reasons:
            n_all = n_images + len(reasons)
            line = f"{n_images} of {n_all} images; left out: {summarize_reasons(reasons)}."
            names_by_line.setdefault(line, []).append(name)
    notes = []
    for line, names in names_by_line.items():
        text = f"{', '.join(names)}: {line}" if len(left_out) > 1 else line
        notes.append(Note(text, needed=True))
    return notes


def summarize_reasons(reasons: Mapping[str, str]) -> str:
    """List images by the reason why they are left out, with the reason in brackets.

    `reasons` maps image ids to reasons. The name of the file is dropped from a reason that begins
    with it, and a long reason is cut. At most MOST_NAMED reasons, and images of each, are listed.

    Examples
    --------
    >>> fault = "p/b.png: shape (9, 9), expected (8, 8)"
    >>> summarize_reasons({"a": "empty", "b": fault, "c": "empty"})
    'a, c (empty), b (shape (9, 9), expected (8, 8))'
    """
    ids_by_reason: dict[str, list[str]] = {}
    for image_id, reason in reasons.items():
        file, _, problem = reason.partition(": ")
        short_reason = problem if problem and image_id in file else reason
        if len(short_reason) > _LONG_REASON:
            short_reason = clip(short_reason.partition(", expected ")[0], _LONG_REASON)
        ids_by_reason.setdefault(short_reason, []).append(image_id)
    texts = [f"{listed(ids, MOST_NAMED)} ({reason})" for reason, ids in ids_by_reason.items()]
    line = ", ".join(texts[:MOST_NAMED])
    n_more = len(texts) - MOST_NAMED
    return f"{line}, and {n_more} other faults" if n_more > 0 else line


def signature_lines(names: Sequence[str], signatures: Sequence[str]) -> list[str]:
    """Return a line for each different signature, with the names of its runs.

    `signatures` has the signature of each of the runs `names`, or "", which has no line.
    """
    names_by_signature: dict[str, list[str]] = {}
    for name, signature in zip(names, signatures, strict=True):
        if signature:
            names_by_signature.setdefault(signature, []).append(name)
    lines = []
    for signature, its_names in names_by_signature.items():
        is_common = len(names) > 1 and its_names == list(names)
        who = "each" if is_common else ", ".join(its_names)
        lines.append(f"Signature of {who}: {signature}")
    return lines


def undefined_notes(
    columns: Mapping[str, Column], rows: Sequence[Mapping[str, Any]]
) -> list[list[Note]]:
    """Return for each row the notes that explain why its undefined scores can be undefined.

    columns : key in the table -> column of the metric
    rows : for each row, key in the table -> score; None if it is undefined
    """
    note_of = {key: Note(f"{c.undefined}.", (key,), True) for key, c in columns.items() if c.score}
    return [[note for key, note in note_of.items() if row[key] is None] for row in rows]
