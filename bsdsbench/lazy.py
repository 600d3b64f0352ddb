"""Support for packages that import their public names on first use."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from importlib import import_module


def lazy_getattr(
    package: str, names: Mapping[str, str], modules: Mapping[str, str] | None = None
) -> Callable[[str], object]:
    """Return a module-level `__getattr__` that imports public names when they are first used.

    - package: the full name of the package that gets this `__getattr__`, such as "bsdsbench"
    - names: maps each public name to the module that defines it, relative to bsdsbench (such as
      "curves.areas")
    - modules: maps each public name of a module to the module, also relative to bsdsbench

    The returned function raises AttributeError for any other name.
    """

    def get(name: str) -> object:
        """Import the public object or module `name` of `package`, as its `__getattr__`.

        The module to import is `names[name]` for an object and `modules[name]` for a module, if
        there are `modules`. An object is stored in the package, which then finds it by itself.
        """
        if modules and name in modules:
            return import_module(f"bsdsbench.{modules[name]}")
        if name not in names:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        value = getattr(import_module(f"bsdsbench.{names[name]}"), name)
        setattr(sys.modules[package], name, value)
        return value

    return get
