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
    """Run the `with` block with standard output redirected to standard error.

    The working folder is restored at the end of the block.
    """
    working_folder = os.getcwd()
    try:
        with contextlib.redirect_stdout(sys.stderr):
            yield
    finally:
        os.chdir(working_folder)


@contextlib.contextmanager
def fresh_modules(name: str) -> Iterator[None]:
    """Make imports in the `with` block load the module `name` from its file, even after an edit.

    The module, and all modules of its package if that lies in the current folder, are imported
    anew, unless they are installed or of bsdsbench. The current folder is searched first. No
    bytecode is written. At the end, modules imported from the current folder are removed, and
    `sys.path` and the earlier modules are restored, so that a later call may import a module of the
    same name from another folder.
    """
    folder = Path.cwd()
    package = name.partition(".")[0]
    old_path = list(sys.path)
    old_dont_write_bytecode = sys.dont_write_bytecode
    old_modules = dict(sys.modules)
    is_local = (folder / f"{package}.py").is_file() or (folder / package).is_dir()
    for module_name, module in old_modules.items():
        is_wanted = module_name == name or (is_local and module_name.split(".")[0] == package)
        if is_wanted and package != "bsdsbench" and not _is_installed(module):
            del sys.modules[module_name]
    sys.path.insert(0, str(folder))
    sys.dont_write_bytecode = True  # bytecode misses edits within the same second
    invalidate_caches()
    try:
        yield
    finally:
        sys.path[:] = old_path
        sys.dont_write_bytecode = old_dont_write_bytecode
        for module_name, module in list(sys.modules.items()):
            if module_name not in old_modules and _is_from(module, folder):
                del sys.modules[module_name]
        sys.modules.update(old_modules)


def _is_installed(module: ModuleType) -> bool:
    """Return True if a module lies in the standard library or in site-packages."""
    file = getattr(module, "__file__", None) or ""
    paths = sysconfig.get_paths()
    return any(Path(file).is_relative_to(paths[kind]) for kind in ("stdlib", "purelib", "platlib"))


def _is_from(module: ModuleType, folder: Path) -> bool:
    """Return True if a module, or its top-level package, lies in a folder or its resolved path.

    A module without a file, such as one that is built in, lies in no folder.
    """
    package = getattr(module, "__name__", "").partition(".")[0]
    file = getattr(module, "__file__", None)
    # A namespace package has no file, only folders
    files = [file] if file else list(getattr(module, "__path__", ()))
    return any(
        Path(file) == parent / f"{package}.py" or Path(file).is_relative_to(parent / package)
        for parent in (folder, folder.resolve())
        for file in files
    )


def file_of(detector: Detector) -> dict[str, str] | None:
    """Return the "name" and "blake2b" hash of the file that defines a function, or None.

    The name is without the folder, the hash is hexadecimal.
    """
    file = getattr(sys.modules.get(detector.__module__), "__file__", None)
    if file is None:
        return None
    data = Path(file).read_bytes()
    return {"name": Path(file).name, "blake2b": hashlib.blake2b(data, digest_size=16).hexdigest()}


def load_function(spec: str) -> Detector:
    """Return the detector that a user named.

    "MODULE:FUNCTION" is imported; FUNCTION may be a path such as "Class.method". A text without
    ":" is the name of a baseline. Raises DataError if the import fails, or if the module has no
    function, or bsdsbench no baseline, of this name.
    """
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
    """Return the reason of a failure as one line of at most 300 characters.

    The message of a DataError is returned unchanged.
    """
    if isinstance(error, DataError):
        return str(error)
    return visible(f"{type(error).__name__}: {error}")[:300]
