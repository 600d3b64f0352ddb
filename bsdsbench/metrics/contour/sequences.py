"""Means over sequences, as DAVIS takes them: over the frames of each object, then over all objects.

Source. Perazzi et al., CVPR 2016, and davis2017-evaluation.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np

from bsdsbench.arguments import Floats, Ints
from bsdsbench.errors import DataError, Setting
from bsdsbench.loaders.formats.pictures import natural_sort_key
from bsdsbench.scores.counts import Stack
from bsdsbench.scores.ratios import Weights, defined_mean, weighted_mean
from bsdsbench.text import grouped

OBJECT_COUNTS = ("frame", "objects")  # counts whose length differs between frames
_RECALLED = 0.5  # recall is the share of frames in which a measure is above this
_OVER_IMAGES = Setting("contour.mean", "images", "means over frames")


def follow_objects(stack: Stack) -> Stack:
    """Collect the measures of each object along its sequence of frames (images), as DAVIS does.

    The objects of a sequence are those that are annotated in its first frame.

    `stack` holds these counts of N frames, padded with NaN to equal lengths:

    frame : (N, L, 1), the code points of the image ids
    objects : (N, n, 3 + M), a row for each object of either map with its number, its pixels in
        pred, its pixels in gt, and M measures
    absent : (N, M), the measures of two empty masks

    Returns the stack with these counts replaced by

    sequence, position : int64 (N,), index of the frame's sequence, and of the frame in it
    n_frames, n_objects : int64 (N,), number of frames and of objects of the sequence
    unknown : int64 (N,), the number of an object that is predicted in the frame, but annotated in
        no frame of the sequence, or 0 if there is none
    tracks : float64 (N, K, M), the measures of the k-th of up to K objects of the sequence;
        `absent` if neither map of the frame has the object

    A stack without "objects" is returned unchanged.
    """
    if "objects" not in stack:
        return stack
    # One row for each object of each frame: (N, n), and (N, n, M) for the measures
    numbers, measures = stack["objects"][..., 0], stack["objects"][..., 3:]
    in_pred = np.nan_to_num(stack["objects"][..., 1]) > 0  # has pixels; False for the padding
    in_gt = np.nan_to_num(stack["objects"][..., 2]) > 0
    frames_of_sequence = _group_frames(stack["frame"][..., 0])
    objects_of_sequence = []  # the numbers of the objects annotated in the first frame
    for frames in frames_of_sequence:
        first = frames[0]
        objects_of_sequence.append(numbers[first, in_gt[first]])
    most_objects = max(map(len, objects_of_sequence))
    # (N, K, M): `absent` of each frame for all objects, replaced below where a frame has the object
    tracks = np.repeat(stack["absent"][:, None], most_objects, axis=1)
    names = ("sequence", "position", "n_frames", "n_objects", "unknown")
    counts = {name: np.zeros(len(tracks), np.int64) for name in names}
    sequences = zip(frames_of_sequence, objects_of_sequence, strict=True)
    for index, (frames, objects) in enumerate(sequences):
        counts["sequence"][frames] = index
        counts["position"][frames] = np.arange(frames.size)
        counts["n_frames"][frames] = frames.size
        counts["n_objects"][frames] = objects.size
        numbers_here = numbers[frames]  # (frames of the sequence, n)
        annotated = numbers_here[in_gt[frames]]  # in any frame of the sequence
        is_unknown = in_pred[frames] & ~np.isin(numbers_here, annotated)
        # The error message names one unknown object: the largest number will do
        counts["unknown"][frames] = np.where(is_unknown, numbers_here, 0).max(axis=1, initial=0)
        for k, number in enumerate(objects):
            position, row = np.nonzero(numbers_here == number)  # the frames and rows that list it
            tracks[frames[position], k] = measures[frames[position], row]
    replaced = ("frame", "objects", "absent")
    others = {name: array for name, array in stack.items() if name not in replaced}
    return {**others, **counts, "tracks": tracks}


def _group_frames(codes: Floats) -> list[Ints]:
    """Return the indices of the frames of each sequence, in natural order ("2" before "10").

    codes (N, L): the image ids SEQUENCE/FRAME as code points, padded with NaN.
    """
    ids = []
    for padded_codes in codes:
        code_points = padded_codes[~np.isnan(padded_codes)].astype(int)
        ids.append("".join(map(chr, code_points)))
    order = sorted(range(len(codes)), key=lambda k: natural_sort_key(ids[k]))
    frames_of_sequence = grouped((ids[k].rpartition("/")[0], k) for k in order)
    return [np.array(frames) for frames in frames_of_sequence.values()]


def check_sequences(ids: Sequence[str], stack: Stack, skip_ends: bool) -> None:
    """Raise DataError if frames cannot be grouped into sequences, or predict unknown objects.

    ids: the N image ids, SEQUENCE/FRAME. stack: from `follow_objects`, of which "sequence",
        "n_frames" and "unknown" (N,) are used.

    Two errors suggest `_OVER_IMAGES`, means over images instead of sequences. The errors are:

    - numbered names without folders have several prefixes, such as "cat_01" and "dog_01"
    - the image ids and the ids of the ground truth give different numbers of sequences
    - an object is predicted that is annotated in no frame of its sequence
    - `skip_ends` is True, and a sequence has fewer than three frames
    """
    numbered = [re.fullmatch(r"(.*?)[_.-]?\d+", image_id) for image_id in ids]
    beginnings = sorted({match[1] for match in numbered if match})  # the text before the number
    has_folder = any("/" in image_id for image_id in ids)
    if all(numbered) and len(beginnings) > 1 and not has_folder:  # such as cat_01 and dog_01
        raise DataError(
            f"{ids[0]}: names in one folder begin with {beginnings[0]} and {beginnings[1]}, "
            "expected a folder for each sequence, SEQUENCE/FRAME",
            fix=_OVER_IMAGES,
        )
    if len({image_id.rpartition("/")[0] for image_id in ids}) != stack["sequence"].max() + 1:
        raise DataError(
            f"{ids[0]}: the ground truth has another image_id, expected the same, SEQUENCE/FRAME"
        )
    if stack["unknown"].any():
        frame = int(np.flatnonzero(stack["unknown"])[0])  # index of the first
        number = stack["unknown"][frame]  # of the object
        raise DataError(
            f"{ids[frame]}: object {number} is predicted, expected those of the sequence",
            fix=_OVER_IMAGES,
        )
    is_short = stack["n_frames"] < 3
    if skip_ends and is_short.any():
        raise DataError(
            f"{ids[int(np.argmax(is_short))]}: in a sequence of fewer than 3 frames, none is left "
            "without its ends",
            fix=Setting("contour.skip_ends", False),
        )


def sequence_means(stack: Stack, weights: Weights, skip_ends: bool) -> dict[str, Floats]:
    """Compute DAVIS' statistics: over the frames of each object, then averaged over all objects.

    stack: from `follow_objects`. Its "tracks" (N, K, M) hold the M measures of the k-th object of
        the frame's sequence in each of N frames.
    weights (S, N): how often each frame occurs in each of S data sets: the data set itself and, for
        confidence intervals, random resamples of it. A frame that a resample lacks has weight 0.
    skip_ends: whether to leave out the first and last frame of each sequence.

    Returns a dict of float64 arrays, in which statistics without any frame are NaN:

    mean : (S, M), the mean of each measure
    recall : (S, M), the share of frames in which the measure exceeds 0.5
    decay : (S, M), the mean over the first quarter of the frames minus that over the last
    objects : (S,), the number of objects for which at least one mean is defined
    """
    tracks = stack["tracks"]
    # Mean, recall and decay of the objects of each sequence, (3, S, objects, M). The empty first
    # entry gives their shape if no frame is kept
    statistics = [np.zeros((3, len(weights), 0, tracks.shape[2]))]
    n_skipped = 1 if skip_ends else 0  # at either end
    for sequence in np.unique(stack["sequence"]):
        # Indices in `stack`, which may hold only some of the frames ("n_frames" counts all). The
        # kept ones have the positions 0 .. n_kept - 1
        frames = np.flatnonzero(stack["sequence"] == sequence)
        n_kept = int(stack["n_frames"][frames[0]]) - 2 * n_skipped
        position = stack["position"][frames] - n_skipped
        is_kept = (position >= 0) & (position < n_kept)
        if not is_kept.any():
            continue
        frames, position = frames[is_kept], position[is_kept]
        times = weights[:, frames]  # (S, frames), how often each occurs
        n_objects = int(stack["n_objects"][frames[0]])
        values = tracks[frames, :n_objects]  # (frames, objects, M)
        recall = weighted_mean(times, values > _RECALLED)
        # The positions at 0, 1/4, 1/2, 3/4 and 1 of the sequence. Each of them belongs to both
        # quarters beside it. They are rounded, halves up, as numbers from 1, because DAVIS' code
        # does so: of 4 frames, 1.75 becomes number 2, which is position 1
        quarter_limits = (np.linspace(1, n_kept, 5) + 0.5).astype(int) - 1
        in_first_quarter = (position <= quarter_limits[1])[:, None, None]
        in_last_quarter = (position >= quarter_limits[3])[:, None, None]
        first_mean = weighted_mean(times, np.where(in_first_quarter, values, np.nan))
        last_mean = weighted_mean(times, np.where(in_last_quarter, values, np.nan))
        decay = first_mean - last_mean
        statistics.append(np.stack([weighted_mean(times, values), recall, decay]))
    of_objects = np.concatenate(statistics, axis=2)  # of all sequences
    mean, recall, decay = defined_mean(of_objects, axis=2)  # over objects, without NaN
    n_defined = (~np.isnan(of_objects[0])).any(axis=2).sum(axis=1)  # objects with a mean
    return {"mean": mean, "recall": recall, "decay": decay, "objects": n_defined.astype(np.float64)}
