"""Helpers for names and one-line messages: escape, shorten and join text, format numbers."""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Iterable, Sequence
from typing import TypeVar

_K = TypeVar("_K")
_V = TypeVar("_V")
LINE = 600  # the largest number of characters of a message
NUMBER = r"[0-9]*\.?[0-9]+(?:e-?[0-9]+)?"  # the pattern of `number_text`


def escape_unprintable(text: str, keep_spaces: bool = True) -> str:
    r"""Replace unprintable characters with their Python escapes.

    These include line breaks, zero-width characters and bidirectional controls. If `keep_spaces` is
    False, Unicode spaces are replaced too; the ASCII space never is.

    >>> escape_unprintable("a\x1b[31mb\u202ec\n")
    'a\\x1b[31mb\\u202ec\\n'
    """
    if text.isprintable():
        return text
    escaped = ""
    for c in text:
        # White space up to \x85 is tabs and line breaks, as are the separators \u2028 and \u2029;
        # other white space, such as \xa0, is spaces of various widths
        is_space = keep_spaces and c.isspace() and c > "\x85" and c not in "\u2028\u2029"
        is_visible = c.isprintable() or is_space
        escaped += c if is_visible else c.encode("unicode_escape").decode("ascii")
    return escaped


def show(name: object) -> str:
    """Convert a name or a path to one line of printable text, with Python escapes if needed."""
    text = str(name)
    return text if text.isprintable() else escape_unprintable(text)


def shorten(text: str, limit: int = LINE) -> str:
    """Shorten a text to at most `limit` characters, with " ... " in place of its middle part."""
    if len(text) <= limit:
        return text
    end = limit // 3
    return f"{text[: limit - end - 5]} ... {text[-end:]}"


def join_names(names: Sequence[str], limit: int = 10) -> str:
    """Join names with commas, with " and N more" in place of those after the first `limit`.

    Names are made printable, and long names are shortened.
    """
    text = ", ".join(shorten(show(name), 80) for name in names[:limit])
    return text + (f" and {len(names) - limit} more" if len(names) > limit else "")


def shared_names(collections: Iterable[Collection[str]]) -> list[str]:
    """Return the names that are in every one of the collections, in the order of the first."""
    first, *others = collections
    return [name for name in first if all(name in names for names in others)]


def grouped(pairs: Iterable[tuple[_K, _V]]) -> dict[_K, list[_V]]:
    """Collect pairs (key, value) by key: {key: [value, ...]}, in order of first occurrence."""
    groups: dict[_K, list[_V]] = {}
    for key, value in pairs:
        groups.setdefault(key, []).append(value)
    return groups


def quantity(n: int, noun: str) -> str:
    """Return a number with its noun, plural unless the number is 1: "1 image", "2 images"."""
    return f"{n} {noun}{'' if n == 1 else 's'}"


def number_text(value: float) -> str:
    """Format a number like `repr`, but without a leading zero (.5) or a trailing .0 (2)."""
    text = repr(value).removesuffix(".0")
    return text[1:] if text.startswith("0.") else text


def rounding_error(number: float | str) -> float:
    """Return the largest rounding error of a published number: half a unit in its last decimal.

    The string "0.760" has three decimals, but the float 0.760 has two. The result is at least 1e-6.
    """
    text = number if isinstance(number, str) else f"{number:.10f}".rstrip("0")
    return max(0.5 * 10.0 ** -len(text.partition(".")[2]), 1e-6)


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """Return "; did you mean 'X'?", where X is the `known` word most similar to `word`.

    Returns "" if no known word is similar. Less is required of a word with the same first letter:
    "nsm" is a slip of "nms", but "iou" none of "aiu".
    """
    from difflib import get_close_matches

    of_lower = {name.lower(): name for name in known}  # BSDS500 is bsds500
    same_initial = [name for name in of_lower if name[:1] == word[:1].lower()]
    near = get_close_matches(word.lower(), same_initial, n=1, cutoff=0.6)
    near = near or get_close_matches(word.lower(), of_lower, n=1, cutoff=0.67)
    return f"; did you mean {of_lower[near[0]]!r}?" if near else ""


def is_text(value: str) -> bool:
    """Return True if a text can be encoded as UTF-8, that is, has no surrogate characters."""
    return re.search("[\ud800-\udfff]", value) is None


def is_path(value: object) -> bool:
    """Return True for a path object or text that may name a file: not empty, not bytes, no NUL."""
    path = os.fspath(value) if isinstance(value, str | os.PathLike) else b""
    return isinstance(path, str) and path != "" and "\0" not in path
