"""Packages that import their names on first use."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from importlib import import_module


def lazy_getattr(
    package: str, names: Mapping[str, str], modules: Mapping[str, str] | None = None
) -> Callable[[str], object]:
    """Return a module `__getattr__` for `package` that imports names on first use.

    `names` maps a name to the module of bsdsbench that defines it. `modules` maps a name to the
    module of bsdsbench that it stands for.
    """

    def get(name: str) -> object:
        """Import and return a name. Raises AttributeError for an unknown name."""
        if modules and name in modules:
            return import_module(f"bsdsbench.{modules[name]}")
        if name not in names:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        value = getattr(import_module(f"bsdsbench.{names[name]}"), name)
        setattr(sys.modules[package], name, value)
        return value

    return get
