"""Advice for folders whose files have other names than those of the other side."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence

# In names of masks that data sets keep beside their photos
_OF_MASKS = re.compile("(?<![a-z])(mask|gt|seg|label|annot|manual|truth)", re.IGNORECASE)


def suggest_renaming(preds: Collection[str], gts: Collection[str]) -> str:
    """Suggest to rename files if one side numbers its images from 0 or with zeros before numbers.

    Returns "" if the ids of predictions and truth differ otherwise, or if there are fewer than two.

    >>> suggest_renaming({"f0", "f1"}, {"f1", "f2"})
    'names are numbered from 0 and from 1, as f0 and f1: rename one side'
    >>> suggest_renaming({"f01", "f02"}, {"f1", "f2"})
    'names are numbered with other leading zeros, as f01 and f1: rename one side'
    """
    pred_ids, gt_ids = _by_number_from_0(sorted(preds)), _by_number_from_0(sorted(gts))
    are_unique = len(preds) == len(gts) == len(pred_ids)  # no two ids became equal
    if pred_ids.keys() != gt_ids.keys() or not are_unique or len(preds) < 2:
        return ""
    example = next(iter(pred_ids))  # the key of the first image
    pred_id, gt_id = pred_ids[example], gt_ids[example]
    pred_number, gt_number = (int(re.findall(r"\d+", i)[-1]) for i in (pred_id, gt_id))
    numbering = "with other leading zeros" if pred_number == gt_number else "from 0 and from 1"
    return f"names are numbered {numbering}, as {pred_id} and {gt_id}: rename one side"


def suggest_truth_alone(shared: Collection[str], unpredicted: Collection[str]) -> str:
    """Suggest to keep photos out of a folder of masks if it has a mask beside each image id.

    `shared` are names of its files that the predictions have too, and `unpredicted` those that they
    lack. Returns "" unless these have, for each shared id, one with the same addition, as "_mask".

    >>> suggest_truth_alone({"a1", "a2"}, {"a1_mask", "a2_mask"})
    'a1_mask lies beside a1: give a folder of the masks alone, under the names of the predictions'
    """
    if not shared:
        return ""
    photo = min(shared)
    for mask in sorted(unpredicted):
        before, _, after = mask.partition(photo)  # the additions to the name of the photo
        is_mask = photo in mask and _OF_MASKS.search(f"{before} {after}")
        if is_mask and all(f"{before}{image_id}{after}" in unpredicted for image_id in shared):
            advice = "give a folder of the masks alone, under the names of the predictions"
            return f"{mask} lies beside {photo}: {advice}"
    return ""


def _by_number_from_0(ids: Sequence[str]) -> dict[object, str]:
    """Return {key: id}, with keys as if numbered from 0: {("f", 0, ""): "f1", ("f", 1, ""): "f2"}.

    A key is the text before the last number of an id, this number minus the lowest of all ids, and
    the text after it. Returns {} if an id has no number, or if the lowest is neither 0 nor 1.
    """
    matches = [re.fullmatch(r"(.*?)(\d+)(\D*)", image_id, re.S) for image_id in ids]
    split_ids = [match.groups() for match in matches if match]  # (before, number, after) each
    if not ids or len(split_ids) < len(ids):
        return {}
    lowest = min(int(number) for _, number, _ in split_ids)
    if lowest not in (0, 1):
        return {}
    keys = [(before, int(number) - lowest, after) for before, number, after in split_ids]
    return dict(zip(keys, ids, strict=True))
