"""Import the function that "MODULE:FUNCTION" names, as its file is now, and leave no trace."""

from __future__ import annotations

import contextlib
import hashlib
import os
import sys
import sysconfig
from collections.abc import Iterator
from importlib import import_module, invalidate_caches
from pathlib import Path
from types import ModuleType
from typing import Any

from bsdsbench.errors import DataError
from bsdsbench.text import visible
from bsdsbench.transforms.multi_scale import Detector as Detector


@contextlib.contextmanager
def undisturbed() -> Iterator[None]:
    """Send what a detector prints to standard error, and return to the working folder."""
    here = os.getcwd()
    try:
        with contextlib.redirect_stdout(sys.stderr):
            yield
    finally:
        os.chdir(here)


@contextlib.contextmanager
def fresh_modules(name: str) -> Iterator[None]:
    """Import the module `name` anew from its file, looking in the current folder first.

    Modules of the current folder that are imported meanwhile are forgotten in the end, and
    `sys.path` and what was imported before are restored: another call, in another folder or after
    an edit, gets what it asks for.
    """
    here, package = Path.cwd(), name.partition(".")[0]
    path, bytecode, before = list(sys.path), sys.dont_write_bytecode, dict(sys.modules)
    local = (here / f"{package}.py").is_file() or (here / package).is_dir()
    for module, loaded in before.items():
        reloaded = module == name or (local and module.partition(".")[0] == package)
        if reloaded and package != "bsdsbench" and not _is_installed(loaded):
            del sys.modules[module]
    sys.path.insert(0, str(here))
    sys.dont_write_bytecode = True  # it cannot tell an edit within a second from what was there
    invalidate_caches()
    try:
        yield
    finally:
        sys.path[:], sys.dont_write_bytecode = path, bytecode
        for module, loaded in list(sys.modules.items()):
            if module not in before and _is_of(loaded, here):
                del sys.modules[module]
        sys.modules.update(before)


def _is_installed(module: ModuleType) -> bool:
    """Return whether a module is of Python or in site-packages, which nobody edits."""
    file, places = getattr(module, "__file__", None) or "", sysconfig.get_paths()
    return any(Path(file).is_relative_to(places[kind]) for kind in ("stdlib", "purelib", "platlib"))


def _is_of(module: ModuleType, folder: Path) -> bool:
    """Return whether a module was imported from the folder itself, not from packages below it."""
    package = getattr(module, "__name__", "").partition(".")[0]
    file = getattr(module, "__file__", None)
    files = [file] if file else list(getattr(module, "__path__", ()))  # of a folder of modules
    return any(
        Path(file) == place / f"{package}.py" or Path(file).is_relative_to(place / package)
        for place in (folder, folder.resolve())
        for file in files
    )


def file_of(detector: Detector) -> dict[str, str] | None:
    """Return name and hash of the file that a function is from."""
    file = getattr(sys.modules.get(detector.__module__), "__file__", None)
    if file is None:
        return None
    data = Path(file).read_bytes()
    return {"name": Path(file).name, "blake2b": hashlib.blake2b(data, digest_size=16).hexdigest()}


def load_function(spec: str) -> Detector:
    """Return the function that "MODULE:FUNCTION" names, or a baseline."""
    if ":" not in spec:
        from bsdsbench.detectors.baselines import baseline

        return baseline(spec)
    module_name, _, attribute = spec.partition(":")
    try:
        with undisturbed():
            function: Any = import_module(module_name)
    except (Exception, SystemExit) as error:  # the user's module may raise anything
        raise DataError(f"{spec!r}: cannot be imported ({reason_of(error)})") from None
    for part in attribute.split("."):
        function = getattr(function, part, None)
    if not callable(function):
        raise DataError(f"{spec!r}: {module_name} has no function {attribute!r}")
    return function


def reason_of(error: BaseException) -> str:
    """Return the reason of a failure as one short line."""
    if isinstance(error, DataError):
        return str(error)
    return visible(f"{type(error).__name__}: {error}")[:300]
