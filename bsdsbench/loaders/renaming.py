"""Advice for folders whose image ids differ only in how they are written."""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Sequence

# In names of masks that data sets keep beside their photos
_OF_MASKS = re.compile("(?<![a-z])(mask|gt|seg|label|annot|manual|truth)", re.IGNORECASE)


def suggest_renaming(preds: Collection[str], gts: Collection[str]) -> str:
    """Suggest to rename files if the ids of both sides differ only in how they are written.

    The sides are predictions and ground truth. The differences are: the start or end that all ids
    of a side share; capitals, separators, or zeros before numbers; numbers from 0 on one side and
    from 1 on the other. Returns "" if the ids differ otherwise, or if there are fewer than two.

    >>> suggest_renaming({"1_test", "2_test"}, {"img_1", "img_2"})
    'names differ in a prefix or suffix, as 1_test and img_1: rename one side'
    >>> suggest_renaming({"a_1", "a_2"}, {"A-01", "A-02"})
    'names differ in zeros, capitals or separators, as a_1 and A-01: rename one side'
    >>> suggest_renaming({"f0", "f1"}, {"f1", "f2"})
    'names are numbered from 0 and from 1, as f0 and f1: rename one side'
    """
    # Each function takes the ids of a side, and returns {id without this difference: id}
    simplifications = {
        "differ in a prefix or suffix": _without_common_ends,
        "differ in zeros, capitals or separators": _as_words_and_numbers,
        "are numbered from 0 and from 1": _count_from_lowest,
    }
    for difference, simplify in simplifications.items():
        pred_ids, gt_ids = simplify(sorted(preds)), simplify(sorted(gts))
        are_unique = len(preds) == len(gts) == len(pred_ids)  # no two ids became equal
        if pred_ids.keys() == gt_ids.keys() and are_unique and len(preds) > 1:
            rest = next(iter(pred_ids))
            example = f"{pred_ids[rest]} and {gt_ids[rest]}"
            return f"names {difference}, as {example}: rename one side"
    return ""


def suggest_truth_alone(ids: Collection[str], others: Collection[str]) -> str:
    """Suggest to keep photos out of a folder of masks if it has a mask beside each image id.

    `ids` are names of its files that the predictions have too, and `others` those that they lack.
    Returns "" unless these include, for each id, one with the same addition, such as "_mask".

    >>> suggest_truth_alone({"a1", "a2"}, {"a1_mask", "a2_mask"})
    'a1_mask lies beside a1: give a folder of the masks alone, under the names of the predictions'
    """
    if not ids:
        return ""
    first = min(ids)
    for other in sorted(others):
        start, _, end = other.partition(first)
        is_mask = other != start and _OF_MASKS.search(f"{start} {end}")
        if is_mask and all(f"{start}{i}{end}" in others for i in ids):
            advice = "give a folder of the masks alone, under the names of the predictions"
            return f"{other} lies beside {first}: {advice}"
    return ""


def _without_common_ends(ids: Sequence[str]) -> dict[object, str]:
    """Return {id without the start and the end that all ids share: id}.

    Digits next to the rest belong to the rest: the start of "img_10" and "img_12" is "img_".
    """
    common_start = os.path.commonprefix  # of the characters of any texts
    start = common_start(ids).rstrip("0123456789")
    end = common_start([i[::-1] for i in ids])[::-1].lstrip("0123456789")
    return {i[len(start) : len(i) - len(end)]: i for i in ids}


def _as_words_and_numbers(ids: Sequence[str]) -> dict[object, str]:
    """Return {(words in lower case and numbers of an id, in order): id}."""
    parts_of = {i: re.findall(r"\d+|[^\W\d_]+", i) for i in ids}
    return {
        tuple(int(part) if part.isdecimal() else part.casefold() for part in parts): i
        for i, parts in parts_of.items()
    }


def _count_from_lowest(ids: Sequence[str]) -> dict[object, str]:
    """Return {(start, last number minus the lowest of these numbers, end): id}.

    The ids "f1" and "f2" have the keys ("f", 0, "") and ("f", 1, ""). Returns {} if an id has no
    number, or if the lowest of these numbers is neither 0 nor 1.
    """
    matches = [re.fullmatch(r"(.*?)(\d+)(\D*)", i, re.S) for i in ids]
    split_ids = [match.groups() for match in matches if match]
    lowest = min((int(number) for _, number, _ in split_ids), default=-1)
    if len(split_ids) < len(ids) or lowest not in (0, 1):
        return {}
    return {(start, int(n) - lowest, end): start + n + end for start, n, end in split_ids}
