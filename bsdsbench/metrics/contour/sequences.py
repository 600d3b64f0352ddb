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
from numpy.typing import ArrayLike

from bsdsbench.arguments import F8, I8
from bsdsbench.errors import DataError, Setting
from bsdsbench.loaders.pairing import natural
from bsdsbench.scores.counts import Stack
from bsdsbench.scores.ratios import Weights, defined_mean, weighted_mean

OBJECTS = ("frame", "objects")  # of different lengths
TRACKS = ("sequence", "position", "n_frames", "n_objects", "unknown", "tracks")
_OVER_IMAGES = Setting("contour.mean", "images", "means over frames")


def frame_counts(image_id: str) -> dict[str, F8]:
    """Store a frame's id among the counts, as the code points of its characters, (L, 1)."""
    return {"frame": np.array([[ord(letter)] for letter in image_id], np.float64)}


def object_counts(ids: I8, areas: I8, values: F8, absent: ArrayLike) -> dict[str, F8]:
    """Return the counts of the n objects of a frame.

    objects : (n, 3 + M), each object's number, its pixels in pred and in gt, and its M measures
    absent  : (M,), the measures of two empty masks
    """
    rows = np.column_stack([ids, areas[:, 1:], values])
    return {"objects": rows, "absent": np.asarray(absent, np.float64)}


def by_sequence(stack: Stack) -> Stack:
    """Convert the objects of N frames to tracks of the objects of each sequence.

    Replaces the arrays of `object_counts`; a stack without them is returned as it is. Adds

    sequence, position  : i8 (N,), the number of the frame's sequence, and the frame's place in it
    n_frames, n_objects : i8 (N,), numbers of frames and objects of the sequence
    unknown             : i8 (N,), a predicted object that no frame of the sequence annotates, or 0
    tracks              : f8 (N, K, M), the measures of the k-th object of the sequence
    """
    if "objects" not in stack:
        return stack
    ids = []
    for row in stack["frame"][..., 0]:
        ids.append("".join(map(chr, row[~np.isnan(row)].astype(int))))
    sequences: dict[str, list[int]] = {}
    for i in sorted(range(len(ids)), key=lambda i: natural(ids[i])):
        sequences.setdefault(ids[i].rpartition("/")[0], []).append(i)
    numbers, values = stack["objects"][..., 0], stack["objects"][..., 3:]
    in_pred, in_gt = np.nan_to_num(np.moveaxis(stack["objects"], -1, 0)[1:3]) > 0
    objects = {name: numbers[places[0]][in_gt[places[0]]] for name, places in sequences.items()}
    tracks = np.repeat(stack["absent"][:, None], max(map(len, objects.values())), axis=1)
    place = np.zeros((5, len(ids)), np.int64)
    for s, (name, frames) in enumerate(sequences.items()):
        places = np.array(frames)
        known = numbers[places][in_gt[places]]
        unknown = np.where(in_pred[places] & ~np.isin(numbers[places], known), numbers[places], 0)
        place[0, places], place[1, places] = s, np.arange(places.size)
        place[2, places], place[3, places] = places.size, objects[name].size
        place[4, places] = unknown.max(axis=1, initial=0)
        for k, number in enumerate(objects[name]):
            row, column = np.nonzero(numbers[places] == number)
            tracks[places[row], k] = values[places[row], column]
    others = {name: array for name, array in stack.items() if name not in (*OBJECTS, "absent")}
    return {**others, **dict(zip(TRACKS, (*place, tracks), strict=True))}


def check_sequences(ids: Sequence[str], stack: Stack, skip_ends: bool) -> None:
    """Raise DataError if frames form no sequences, or objects do not fit them.

    Refused are images in one folder whose names begin like those of several sequences, predicted
    objects that a sequence does not have, and, with `skip_ends`, sequences of fewer than 3 frames.
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
    """Compute the mean, recall and decay of every measure, (S, M) each, averaged over objects.

    Recall is the share of frames above 0.5. Decay is the mean of the first of four bins of frames
    minus the mean of the last one; neighbouring bins share a frame. `objects` (S,) is the number of
    objects.
    """
    ends, tracks = int(skip_ends), stack["tracks"]
    means: dict[str, list[F8]] = {"mean": [], "recall": [], "decay": []}
    for number in np.unique(stack["sequence"]):
        frames = np.flatnonzero(stack["sequence"] == number)
        n = int(stack["n_frames"][frames[0]]) - 2 * ends
        place = stack["position"][frames] - ends
        frames, place = (array[(place >= 0) & (place < n)] for array in (frames, place))
        if not frames.size:
            continue
        values, drawn = tracks[frames, : int(stack["n_objects"][frames[0]])], weights[:, frames]
        edges = (np.linspace(1, n, 5) + 0.5).astype(int) - 1
        first, last = place <= edges[1], place >= edges[3]
        means["mean"].append(weighted_mean(drawn, values))
        means["recall"].append(weighted_mean(drawn, values > 0.5))
        means["decay"].append(
            weighted_mean(drawn, np.where(first[:, None, None], values, np.nan))
            - weighted_mean(drawn, np.where(last[:, None, None], values, np.nan))
        )
    if not means["mean"]:
        nothing = np.full((len(weights), tracks.shape[2]), np.nan)
        return {**dict.fromkeys(means, nothing), "objects": np.zeros(len(weights))}
    joined = {key: np.concatenate(parts, axis=1) for key, parts in means.items()}
    objects = (~np.isnan(joined["mean"])).any(axis=2).sum(axis=1)
    averages = {key: defined_mean(values, axis=1) for key, values in joined.items()}
    return {**averages, "objects": objects.astype(np.float64)}
