"""Means over sequences, as in DAVIS: over the frames of each object, then over all objects.

The objects of a sequence are those annotated in its first frame. If an object is absent from both
maps of a frame, its value is that of two empty masks. Frames are in natural order of their ids,
SEQUENCE/FRAME. Source: davis2017-evaluation (Pont-Tuset et al. 2017), which defines mean, recall
and decay.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bsdsbench.arguments import F8, I8
from bsdsbench.errors import DataError, Setting
from bsdsbench.loaders.pairing import natural_sort_key
from bsdsbench.scores.counts import Stack
from bsdsbench.scores.ratios import Weights, defined_mean, weighted_mean

OBJECTS = ("frame", "objects")  # of different lengths
TRACKS = ("sequence", "position", "n_frames", "n_objects", "unknown", "tracks")
_OVER_IMAGES = Setting("contour.mean", "images", "means over frames")


def frame_counts(image_id: str) -> dict[str, F8]:
    """Return a frame's id as a count, so that `by_sequence` can sort the frames.

    frame : float64 (L, 1), the code points of the L characters of the id
    """
    return {"frame": np.array([[ord(letter)] for letter in image_id], np.float64)}


def object_counts(
    ids: NDArray[np.integer[Any]], areas: I8, values: F8, absent: ArrayLike
) -> dict[str, F8]:
    """Return the counts of the n objects of a frame.

    ids (n,): numbers of the objects in the maps.
    areas int64 (n, 3): pixels in both maps, in pred, in gt.
    values (n, M): the M measures of each object.
    absent (M,): the measures of two empty masks.

    Returns "objects" float64 (n, 3 + M), with columns number, pixels in pred, pixels in gt, and the
    measures, and "absent" float64 (M,).
    """
    rows = np.column_stack([ids, areas[:, 1:], values])
    return {"objects": rows, "absent": np.asarray(absent, np.float64)}


def by_sequence(stack: Stack) -> Stack:
    """Convert the objects of N frames to tracks of the objects of each sequence.

    `stack` holds "frame" (N, L, 1), "objects" (N, n, 3 + M) and "absent" (N, M), filled up with
    NaN. They are replaced by

    sequence, position : int64 (N,), the number of the frame's sequence, and the frame's place in it
    n_frames, n_objects : int64 (N,), numbers of frames and objects of the sequence
    unknown : int64 (N,), a predicted object that no frame of the sequence annotates, or 0
    tracks : float64 (N, K, M), the measures of the k-th object of the sequence; those of two empty
        masks if the frame does not have the object

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
    return {
        **others,
        "sequence": sequence,
        "position": position,
        "n_frames": n_frames,
        "n_objects": n_objects,
        "unknown": unknown,
        "tracks": tracks,
    }


def _frame_ids(code_points: F8) -> list[str]:
    """Return the ids of N frames from the code points (N, L, 1) of their characters.

    Shorter ids are filled up with NaN.
    """
    return ["".join(map(chr, row[~np.isnan(row)].astype(int))) for row in code_points[..., 0]]


def check_sequences(ids: Sequence[str], stack: Stack, skip_ends: bool) -> None:
    """Raise DataError if frames form no sequences, or objects do not fit them.

    `ids` are the N image ids, and `stack` the counts of `by_sequence`. Refused are

    - images in one folder whose names begin like those of several sequences
    - ground truth whose image ids name other sequences than the images
    - predicted objects that no frame of the sequence annotates
    - sequences of fewer than 3 frames, if `skip_ends` leaves out the first and last frame
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
    """Average every measure over the frames of each object, then over all objects.

    stack: the counts of `by_sequence`; `tracks` (N, K, M) holds M measures.
    weights (S, N): how often each frame occurs in each data set.
    skip_ends: whether the first and the last frame of each sequence are left out.

    Returns `mean`, `recall`, the share of frames above 0.5, and `decay`, float64 (S, M) each, and
    `objects` (S,), the number of objects. Decay is the mean of the first of four bins of frames
    minus the mean of the last; neighbouring bins share a frame. Without a frame the means are NaN.
    """
    n_skipped, tracks = int(skip_ends), stack["tracks"]
    # Of each sequence: (S, objects, M)
    parts: dict[str, list[F8]] = {"mean": [], "recall": [], "decay": []}
    for number in np.unique(stack["sequence"]):
        frames = np.flatnonzero(stack["sequence"] == number)
        n = int(stack["n_frames"][frames[0]]) - 2 * n_skipped
        place = stack["position"][frames] - n_skipped
        is_kept = (place >= 0) & (place < n)
        frames, place = frames[is_kept], place[is_kept]
        if not frames.size:
            continue
        values = tracks[frames, : int(stack["n_objects"][frames[0]])]  # (frames, objects, M)
        frame_weights = weights[:, frames]
        ends = (np.linspace(1, n, 5) + 0.5).astype(int) - 1  # of the bins, as places of frames
        in_first_bin, in_last_bin = place <= ends[1], place >= ends[3]
        first_values = np.where(in_first_bin[:, None, None], values, np.nan)
        last_values = np.where(in_last_bin[:, None, None], values, np.nan)
        decay = weighted_mean(frame_weights, first_values) - weighted_mean(
            frame_weights, last_values
        )
        parts["mean"].append(weighted_mean(frame_weights, values))
        parts["recall"].append(weighted_mean(frame_weights, values > 0.5))
        parts["decay"].append(decay)
    if not parts["mean"]:
        nothing = np.full((len(weights), tracks.shape[2]), np.nan)
        return {**dict.fromkeys(parts, nothing), "objects": np.zeros(len(weights))}
    by_object = {key: np.concatenate(arrays, axis=1) for key, arrays in parts.items()}
    n_objects = (~np.isnan(by_object["mean"])).any(axis=2).sum(axis=1)
    averages = {key: defined_mean(values, axis=1) for key, values in by_object.items()}
    return {**averages, "objects": n_objects.astype(np.float64)}
