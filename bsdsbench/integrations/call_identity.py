"""Identity of a detector between calls: a hash of its sources, arguments and libraries.

Known is a function that stands in a module, by its name there, or a partial of one with plain
arguments. Its hash is of the files of its module and of all modules of the user's that these import
(a library counts by its version), and of the plain values that these modules now hold. A lambda, a
closure, an object, or a module that holds one (a network), has content that no source shows;
`unknown` gives the reason. Files that a function reads are the subject of `opened_files`.
"""

from __future__ import annotations

import ast
import functools
import hashlib
import importlib.metadata
import importlib.util
import json
import logging
import platform
import re
import sys
import sysconfig
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import GenericAlias, ModuleType
from typing import Any

import numpy as np

PLAIN = (type(None), bool, int, float, complex, str, bytes)
STATELESS = (ModuleType, type, GenericAlias, logging.Logger, re.Pattern, Path)
OWN = __name__.partition(".")[0]
STATEMENTS = (ast.stmt, ast.ExceptHandler, ast.match_case)  # and what else may hold them
LIBRARY_FOLDERS = {"site-packages", "dist-packages"}


@dataclass(frozen=True, slots=True)
class CallIdentity:
    """A hash of what is known of a detector, and why that is not all of it ("" where it is)."""

    digest: str
    unknown: str = ""


def identity_of(detector: Any, *more: str) -> CallIdentity:
    """The identity of a detector, and of `more` that its maps and times depend on.

    Examples
    --------
    >>> identity_of(functools.partial(identity_of, 1)) == identity_of(identity_of)
    False
    >>> identity_of(lambda image: image).unknown
    "'<lambda>' is no function that stands in a module by this name"
    """
    told: dict[str, Any] = {"python": platform.python_version(), "more": more}
    faults: list[str] = []
    function, arguments = detector, []
    while isinstance(function, functools.partial):
        arguments.append([function.args, function.keywords])
        function = function.func
    told["arguments"] = _plain(arguments, "an argument", faults)
    name = str(getattr(function, "__qualname__", type(function).__qualname__))
    told["name"] = [str(getattr(function, "__module__", "")), name]
    if not _stands(function):
        faults.append(f"{name!r} is no function that stands in a module by this name")
    told["modules"] = dict(_modules(told["name"][0], faults))
    text = json.dumps(told, sort_keys=True)
    return CallIdentity(
        hashlib.blake2b(text.encode(), digest_size=16).hexdigest(), faults[0] if faults else ""
    )


def _stands(value: Any) -> bool:
    """Whether a function or what wraps it is what its own name leads to in its module."""
    found: Any = sys.modules.get(getattr(value, "__module__", None) or "")
    for part in str(getattr(value, "__qualname__", "-")).split("."):
        found = getattr(found, part, None)
    return found is value


def _modules(start: str, faults: list[str]) -> Iterator[tuple[str, Any]]:
    """Each module that `start` comes to by imports: the user's with hash and values, libraries'
    version. Libraries are not gone into."""
    waiting, seen = [start], set()
    while waiting:
        name = waiting.pop()
        if name in seen:
            continue
        seen.add(name)
        path = _file_of(name)
        if path is None or in_library(path):
            package = name.partition(".")[0]
            seen.add(package)
            yield package, _version(package)
            if name == start and not path:
                faults.append(f"no source of the module {name!r} is there")
            continue
        source = path.read_bytes()
        values = _plain(_values(sys.modules.get(name)), f"the module {name!r}", faults)
        yield name, [hashlib.blake2b(source, digest_size=16).hexdigest(), values]
        waiting += _imported(source, name, path.name == "__init__.py")


def _values(module: ModuleType | None) -> dict[str, Any]:
    """What a module holds by now; of this package, which keeps locks and caches there, nothing.

    A package gets its modules as they are imported, so modules are no values.
    """
    if module is None or module.__name__.partition(".")[0] == OWN:
        return {}
    found = vars(module).items()
    return {k: v for k, v in found if k[:2] != "__" and not isinstance(v, ModuleType)}


def _plain(value: Any, where: str, faults: list[str], depth: int = 0) -> Any:
    """A value as JSON has it; what holds something that no source shows is a fault."""
    if isinstance(value, PLAIN):
        return repr(value)
    if isinstance(value, list | tuple | dict | set | frozenset) and depth < 8:
        items = value.items() if isinstance(value, dict) else value
        found = [_plain(item, where, faults, depth + 1) for item in items]
        return sorted(found, key=str) if isinstance(value, dict | set | frozenset) else found
    if isinstance(value, np.ndarray) and value.dtype.kind in "biufcSU":
        content = hashlib.blake2b(np.ascontiguousarray(value).tobytes(), digest_size=16)
        return [str(value.dtype), value.shape, content.hexdigest()]
    if _stands(value):
        return [value.__module__, value.__qualname__]
    if not isinstance(value, STATELESS):
        kind = f"{type(value).__module__}.{type(value).__qualname__}"
        if not kind.startswith(("typing.", "__future__.")):
            faults.append(f"{where} holds an object of type {kind}, whose content is not known")
        return kind
    return str(getattr(value, "__name__", value))


def _imported(source: bytes, name: str, is_package: bool) -> Iterator[str]:
    """Full names of the modules that a module imports, anywhere in it."""
    package = name if is_package else name.rpartition(".")[0]
    for level, module, names in _imports(source):
        above = package.split(".")[: len(package.split(".")) + 1 - level]
        base = ".".join([*(above if level else ()), *filter(None, [module])])
        yield base
        if names and _is_user(base):
            yield from (n for n in (f"{base}.{each}" for each in names) if _file_of(n))


@functools.lru_cache(maxsize=1024)
def _imports(source: bytes) -> list[tuple[int, str | None, list[str]]]:
    """Level, module and names of each import of a source; a process may run many detectors."""
    found: list[tuple[int, str | None, list[str]]] = []
    nodes: list[ast.AST] = [ast.parse(source)]
    for node in nodes:  # which grows; most nodes are of expressions, which import nothing
        if isinstance(node, ast.Import):
            found += [(0, alias.name, []) for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            found.append((node.level, node.module, [alias.name for alias in node.names]))
        else:
            nodes += [n for n in ast.iter_child_nodes(node) if isinstance(n, STATEMENTS)]
    return found


def _is_user(name: str) -> bool:
    path = _file_of(name)
    return path is not None and not in_library(path)


def _file_of(name: str) -> Path | None:
    """The source of a module, whether it is imported already or not."""
    path = getattr(sys.modules.get(name), "__file__", None)
    if path is None:
        try:
            spec = importlib.util.find_spec(name)
        except (ImportError, ValueError, AttributeError):
            return None
        path = spec.origin if spec else None
    found = Path(path) if path else None
    return found if found and found.suffix == ".py" and found.is_file() else None


@functools.lru_cache(maxsize=4096)
def in_library(path: Path) -> bool:
    """True for a file of Python or of an installed package."""
    found = path.resolve()
    return bool(LIBRARY_FOLDERS & set(found.parts)) or found.is_relative_to(_standard())


@functools.cache
def _standard() -> Path:
    return Path(sysconfig.get_path("stdlib")).resolve()


def _version(package: str) -> str:
    """The version of a library, that of Python for its own."""
    if package in sys.stdlib_module_names:
        return platform.python_version()
    try:
        return importlib.metadata.version(package)
    except (importlib.metadata.PackageNotFoundError, ValueError):
        return str(getattr(sys.modules.get(package), "__version__", ""))
