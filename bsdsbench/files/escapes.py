"""Text from files and users made safe to show: control and direction characters are escaped."""

from __future__ import annotations


def visible(text: str) -> str:
    r"""`text` with every character that is not seen written as an escape.

    Control characters (a terminal would obey them), bidirectional and zero-width ones (they
    disguise a name), line ends and lone surrogates become escapes such as ``\x1b``; spaces and
    all printable characters stay.

    Examples
    --------
    >>> visible("a\x1b[31mb\u202ec\n")
    'a\\x1b[31mb\\u202ec\\n'
    """
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() or _is_space(c) else _escape(c) for c in text)


def printable(text: str) -> str:
    r"""`text` with every character that is not printable as an escape, wide spaces too.

    Examples
    --------
    >>> printable("a\xa0b c")
    'a\\xa0b c'
    """
    return "".join(c if c.isprintable() else _escape(c) for c in text)


def _is_space(c: str) -> bool:
    return c.isspace() and c > "\x85" and c not in "\u2028\u2029"


def _escape(c: str) -> str:
    return c.encode("unicode_escape").decode("ascii")
