"""Support for packages that import their public names on first use."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from importlib import import_module


def lazy_getattr(
    package: str, names: Mapping[str, str], modules: Mapping[str, str] | None = None
) -> Callable[[str], object]:
    """Return a `__getattr__` for the package `package` that imports names on their first use.

    - names: public name -> the module that defines it, relative to bsdsbench ("curves.areas")
    - modules: public name -> the module that has this name in the package
    """

    def get(name: str) -> object:
        """Import the name, and store it in the package so that the next access is fast."""
        if modules and name in modules:
            return import_module(f"bsdsbench.{modules[name]}")
        if name not in names:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        value = getattr(import_module(f"bsdsbench.{names[name]}"), name)
        setattr(sys.modules[package], name, value)
        return value

    return get
