"""Results that stay read-only when they are copied, pickled or come from another process."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields
from typing import NoReturn, TypeVar

import numpy as np

_V = TypeVar("_V")


class ReadOnly:
    """A base of frozen dataclasses that keeps arrays read-only in copies too, where numpy would
    not.
    """

    __slots__ = ()

    def __reduce__(self) -> tuple[object, ...]:
        return _made, (type(self), *(getattr(self, f.name) for f in fields(self)))  # type: ignore[arg-type]


def _made(kind: Callable[..., object], *values: object) -> object:
    for value in values:
        if isinstance(value, np.ndarray):
            value.flags.writeable = False
    return kind(*values)


class ReadOnlyDict(dict[str, _V]):
    """A dict that does not change. Unlike a mappingproxy it can be pickled and copied."""

    __slots__ = ()

    def _refuse(self, *_: object, **__: object) -> NoReturn:
        raise TypeError("read-only, expected a dict(...) of it to change")

    __setitem__ = __delitem__ = __ior__ = _refuse
    clear = pop = popitem = setdefault = update = _refuse

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), (dict(self),)
