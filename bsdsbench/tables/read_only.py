"""Read-only classes, which stay read-only when copied, pickled or sent to another process."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields
from typing import NoReturn, TypeVar

import numpy as np

_V = TypeVar("_V")


class ReadOnly:
    """Base class of frozen dataclasses whose arrays stay read-only in copies and pickles."""

    __slots__ = ()

    def __reduce__(self) -> tuple[object, ...]:
        """Make `copy` and `pickle` rebuild the object from its fields, by `_rebuild`."""
        return _rebuild, (type(self), *(getattr(self, f.name) for f in fields(self)))  # type: ignore[arg-type]


def _rebuild(kind: Callable[..., object], *values: object) -> object:
    """Construct an object from the values of its fields. Arrays are made read-only in place."""
    for value in values:
        if isinstance(value, np.ndarray):
            value.flags.writeable = False
    return kind(*values)


class ReadOnlyDict(dict[str, _V]):
    """A dict that cannot be changed. Unlike a mappingproxy it can be pickled and copied."""

    __slots__ = ()

    def _refuse(self, *_: object, **__: object) -> NoReturn:
        """Raise TypeError; replaces every method that would modify the dict."""
        raise TypeError("read-only, expected a dict(...) of it to change")

    __setitem__ = __delitem__ = __ior__ = _refuse
    clear = pop = popitem = setdefault = update = _refuse

    def __reduce__(self) -> tuple[object, ...]:
        """Make `copy` and `pickle` rebuild the dict by its constructor, not item by item."""
        return type(self), (dict(self),)
