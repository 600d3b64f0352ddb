"""Text of one line for people: escapes for unprintable characters, clipping, lists and counts."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

LINE = 600  # the largest number of characters of a message


def visible(text: str, spaces: bool = True) -> str:
    r"""Replace unprintable characters by their Python escapes.

    These are control and zero-width characters, line ends, surrogates and marks of writing
    direction, and without `spaces` also spaces other than the ASCII space.

    >>> visible("a\x1b[31mb\u202ec\n")
    'a\\x1b[31mb\\u202ec\\n'
    """
    escaped = ""
    for c in text:
        is_space = spaces and c.isspace() and c > "\x85" and c not in "\u2028\u2029"
        is_visible = c.isprintable() or is_space
        escaped += c if is_visible else c.encode("unicode_escape").decode("ascii")
    return escaped


def show(name: object) -> str:
    """Return a name or a path as one printable line."""
    text = str(name)
    return text if text.isprintable() else visible(text)


def clip(text: str, limit: int = LINE) -> str:
    """Shorten a text to at most `limit` characters by replacing its middle with " ... ".

    The beginning gets two thirds of the room, the end one third.
    """
    if len(text) <= limit:
        return text
    end = limit // 3
    return f"{text[: limit - end - 5]} ... {text[-end:]}"


def listed(names: Sequence[str], limit: int = 10) -> str:
    """Join names by commas: at most `limit` names, then the number of the others."""
    text = ", ".join(clip(show(name), 80) for name in names[:limit])
    return text + (f" and {len(names) - limit} more" if len(names) > limit else "")


def counted(n: int, noun: str) -> str:
    """Return a number with its noun: "1 image", "2 images"."""
    return f"{n} {noun}{'' if n == 1 else 's'}"


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """Return "; did you mean 'X'?" with the known word most similar to `word`, or "" if none is."""
    from difflib import get_close_matches

    near = get_close_matches(word, list(known), n=1, cutoff=0.6)
    return f"; did you mean {near[0]!r}?" if near else ""


def is_text(value: str) -> bool:
    """Return True if a text can be written as UTF-8, that is, holds no lone surrogates."""
    return re.search("[\ud800-\udfff]", value) is None
