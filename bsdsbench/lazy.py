"""Packages that import their names on first use."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from importlib import import_module


def lazy_getattr(
    package: str, names: Mapping[str, str], modules: Mapping[str, str] | None = None
) -> Callable[[str], object]:
    """Return a `__getattr__` for the module `package` that imports names when they are first used.

    - names: public name -> module that defines it, as a path below bsdsbench ("curves.areas")
    - modules: public name -> module that the name itself stands for, as such a path
    """

    def get(name: str) -> object:
        """Import the module or the name. A name is then stored, so that the next access is fast.

        Raises AttributeError for an unknown name.
        """
        if modules and name in modules:
            return import_module(f"bsdsbench.{modules[name]}")
        if name not in names:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        value = getattr(import_module(f"bsdsbench.{names[name]}"), name)
        setattr(sys.modules[package], name, value)
        return value

    return get
