"""Names of packages that are imported when first used."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from importlib import import_module


def late(
    package: str, names: Mapping[str, str], modules: Mapping[str, str] | None = None
) -> Callable[[str], object]:
    """Return a package's `__getattr__`, which imports listed names and `modules` on first use.

    Both map a name to the module of bsdsbench that has it, or that it is.
    """

    def get(name: str) -> object:
        if modules and name in modules:
            return import_module(f"bsdsbench.{modules[name]}")
        if name not in names:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        value = getattr(import_module(f"bsdsbench.{names[name]}"), name)
        setattr(sys.modules[package], name, value)
        return value

    return get
