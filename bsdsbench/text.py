"""Text of one line for people: unprintable characters as escapes, clipped, listed, counted."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

LINE = 600  # characters of a message


def visible(text: str, spaces: bool = True) -> str:
    r"""Return text with escapes for what is not seen: control, bidirectional and zero-width
    characters, line ends and lone surrogates; wide spaces stay, unless `spaces` is false.

    >>> visible("a\x1b[31mb\u202ec\n")
    'a\\x1b[31mb\\u202ec\\n'
    """
    shown = ""
    for c in text:
        wide = spaces and c.isspace() and c > "\x85" and c not in "\u2028\u2029"
        shown += c if c.isprintable() or wide else c.encode("unicode_escape").decode("ascii")
    return shown


def show(name: object) -> str:
    """Return a name or a path as one printable line."""
    text = str(name)
    return text if text.isprintable() else visible(text)


def clip(text: str, limit: int = LINE) -> str:
    """Return text, or its beginning and its end where it is longer than `limit`."""
    if len(text) <= limit:
        return text
    end = limit // 3
    return f"{text[: limit - end - 5]} ... {text[-end:]}"


def listed(names: Sequence[str], limit: int = 10) -> str:
    """Return names joined by commas: at most `limit` of them, and the number of the others."""
    text = ", ".join(clip(show(name), 80) for name in names[:limit])
    return text + (f" and {len(names) - limit} more" if len(names) > limit else "")


def counted(n: int, noun: str) -> str:
    """Return a number with its noun: "1 image", "2 images"."""
    return f"{n} {noun}{'' if n == 1 else 's'}"


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """Return "; did you mean 'X'?" for the known word most like this one; "" if none is."""
    from difflib import get_close_matches

    near = get_close_matches(word, list(known), n=1, cutoff=0.6)
    return f"; did you mean {near[0]!r}?" if near else ""


def is_text(value: str) -> bool:
    """Return True if text can be written as UTF-8: no character stands for undecodable bytes."""
    return re.search("[\ud800-\udfff]", value) is None
