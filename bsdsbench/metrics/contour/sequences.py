"""Means over sequences, as in DAVIS: over the frames of each object, then over all objects.

The objects of a sequence are those annotated in its first frame. If an object is absent from both
maps of a frame, its value is that of two empty masks. Frames are in natural order of their ids,
SEQUENCE/FRAME. Source: davis2017-evaluation (Pont-Tuset et al. 2017), which defines mean, recall
and decay.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np

from bsdsbench.arguments import F8
from bsdsbench.errors import DataError, Setting
from bsdsbench.loaders.pairing import natural_sort_key
from bsdsbench.scores.counts import Stack
from bsdsbench.scores.ratios import Weights, defined_mean, weighted_mean

OBJECTS = ("frame", "objects")  # of different lengths
TRACKS = ("sequence", "position", "n_frames", "n_objects", "unknown", "tracks")
_OVER_IMAGES = Setting("contour.mean", "images", "means over frames")


def frame_counts(image_id: str) -> dict[str, F8]:
    """Return a frame's id of L letters as a count, code points (L, 1), to sort the frames by."""
    return {"frame": np.array([[ord(letter)] for letter in image_id], np.float64)}


def by_sequence(stack: Stack) -> Stack:
    """Convert the objects of N frames to tracks of the objects of each sequence.

    `stack` holds "frame" (N, L, 1), "objects" (N, n, 3 + M), with the columns number, pixels in
    pred, pixels in gt, and M measures, and "absent" (N, M), the measures of two empty masks; all
    are filled up with NaN. They are replaced by

    sequence, position : int64 (N,), the number of the frame's sequence, and the frame's index in it
    n_frames, n_objects : int64 (N,), numbers of frames and objects of the sequence
    unknown : int64 (N,), a predicted object that no frame of the sequence annotates, or 0
    tracks : float64 (N, K, M), the measures of the k-th object of the sequence, or "absent"

    The objects of a sequence are those annotated in its first frame. A stack without "objects" is
    returned as it is.
    """
    if "objects" not in stack:
        return stack
    ids = _frame_ids(stack["frame"])
    sequences: dict[str, list[int]] = {}  # name -> its frames in natural order
    for i in sorted(range(len(ids)), key=lambda i: natural_sort_key(ids[i])):
        sequences.setdefault(ids[i].rpartition("/")[0], []).append(i)
    numbers, values = stack["objects"][..., 0], stack["objects"][..., 3:]
    in_pred = np.nan_to_num(stack["objects"][..., 1]) > 0
    in_gt = np.nan_to_num(stack["objects"][..., 2]) > 0
    objects = {name: numbers[i[0]][in_gt[i[0]]] for name, i in sequences.items()}
    most_objects = max(map(len, objects.values()))
    tracks = np.repeat(stack["absent"][:, None], most_objects, axis=1)
    sequence, position, n_frames, n_objects, unknown = np.zeros((5, len(ids)), np.int64)
    for s, (name, indices) in enumerate(sequences.items()):
        frames = np.array(indices)
        annotated = numbers[frames][in_gt[frames]]
        is_unknown = in_pred[frames] & ~np.isin(numbers[frames], annotated)
        sequence[frames] = s
        position[frames] = np.arange(frames.size)
        n_frames[frames] = frames.size
        n_objects[frames] = objects[name].size
        unknown[frames] = np.where(is_unknown, numbers[frames], 0).max(axis=1, initial=0)
        for k, number in enumerate(objects[name]):
            row, column = np.nonzero(numbers[frames] == number)
            tracks[frames[row], k] = values[frames[row], column]
    others = {name: array for name, array in stack.items() if name not in (*OBJECTS, "absent")}
    per_frame = (sequence, position, n_frames, n_objects, unknown, tracks)
    return others | dict(zip(TRACKS, per_frame, strict=True))


def _frame_ids(code_points: F8) -> list[str]:
    """Return the ids of N frames from their code points (N, L, 1), which are filled up with NaN."""
    return ["".join(map(chr, row[~np.isnan(row)].astype(int))) for row in code_points[..., 0]]


def check_sequences(ids: Sequence[str], stack: Stack, skip_ends: bool) -> None:
    """Raise DataError if frames form no sequences, or objects do not fit them.

    `ids` are the N image ids, and `stack` the counts of `by_sequence`. Refused are names in one
    folder that begin like those of several sequences, ground truth whose ids name other sequences,
    predicted objects that no frame of the sequence annotates and, if `skip_ends` leaves out the
    first and last frame, sequences of fewer than 3 frames.
    """
    begins = [re.fullmatch(r"(.*?)[_.-]?\d+", image_id) for image_id in ids]
    named = sorted({begin[1] for begin in begins if begin})
    if len(named) > 1 and None not in begins and not any("/" in image_id for image_id in ids):
        raise DataError(
            f"{ids[0]}: names in one folder begin with {named[0]} and {named[1]}, expected a "
            "folder for each sequence, SEQUENCE/FRAME",
            fix=_OVER_IMAGES,
        )
    if len({image_id.rpartition("/")[0] for image_id in ids}) != stack["sequence"].max() + 1:
        raise DataError(
            f"{ids[0]}: its ground truth has another image_id, expected the image's, SEQUENCE/FRAME"
        )
    if stack["unknown"].any():
        i = int(np.flatnonzero(stack["unknown"])[0])
        raise DataError(
            f"{ids[i]}: object {stack['unknown'][i]} is predicted, expected those of the sequence",
            fix=_OVER_IMAGES,
        )
    if skip_ends and (short := stack["n_frames"] < 3).any():
        i = int(np.flatnonzero(short)[0])
        raise DataError(
            f"{ids[i]}: in a sequence of fewer than 3 frames, none is left without its ends",
            fix=Setting("contour.skip_ends", False),
        )


def sequence_means(stack: Stack, weights: Weights, skip_ends: bool) -> dict[str, F8]:
    """Average each measure over the frames of every object, then over all objects.

    stack: the counts of `by_sequence`; `tracks` (N, K, M) holds M measures.
    weights (S, N): how often each frame occurs in each data set.
    skip_ends: leave out the first and last frame of each sequence.

    Returns `objects` (S,), their number, and (S, M) `mean`, `recall`, the share of frames in which
    the measure exceeds 0.5, and `decay`, the mean over the first quarter of the frames minus that
    over the last (adjacent quarters share a frame). Without frames they are NaN.
    """
    n_skipped, tracks = int(skip_ends), stack["tracks"]
    by_object: dict[str, list[F8]] = {"mean": [], "recall": [], "decay": []}  # (S, objects, M)
    for number in np.unique(stack["sequence"]):
        frames = np.flatnonzero(stack["sequence"] == number)
        n = int(stack["n_frames"][frames[0]]) - 2 * n_skipped
        position = stack["position"][frames] - n_skipped
        is_kept = (position >= 0) & (position < n)
        frames, position = frames[is_kept], position[is_kept]
        if not frames.size:
            continue
        values = tracks[frames, : int(stack["n_objects"][frames[0]])]  # (frames, objects, M)
        quarter_ends = (np.linspace(1, n, 5) + 0.5).astype(int) - 1  # positions
        quarters = (position <= quarter_ends[1], position >= quarter_ends[3])
        first_mean, last_mean = (
            weighted_mean(weights[:, frames], np.where(quarter[:, None, None], values, np.nan))
            for quarter in quarters
        )
        by_object["mean"].append(weighted_mean(weights[:, frames], values))
        by_object["recall"].append(weighted_mean(weights[:, frames], values > 0.5))
        by_object["decay"].append(first_mean - last_mean)
    if not by_object["mean"]:
        undefined = np.full((len(weights), tracks.shape[2]), np.nan)
        return {**dict.fromkeys(by_object, undefined), "objects": np.zeros(len(weights))}
    joined = {key: np.concatenate(arrays, axis=1) for key, arrays in by_object.items()}
    n_objects = (~np.isnan(joined["mean"])).any(axis=2).sum(axis=1)
    averages = {key: defined_mean(values, axis=1) for key, values in joined.items()}
    return {**averages, "objects": n_objects.astype(np.float64)}
