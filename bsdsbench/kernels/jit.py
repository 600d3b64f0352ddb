"""The decorators of all kernels, which compile them to run without the GIL and cache them on disk.

numba invalidates a cached function only if the function's own file changes, so it would miss a
change in a called function. Therefore the name of the cache folder contains a hash of all kernel
sources.
"""

from __future__ import annotations

import gc
import logging
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, TypeAlias

from numba import config, njit, version_info
from numba.core.caching import FunctionCache
from numba.core.runtime import rtsys

from bsdsbench.kernels import compiled_folder

# compiler.py uses internals of numba; with a version outside this range, numba compiles kernels
# itself, which takes longer
IS_TESTED = (0, 60) <= version_info[:2] <= (0, 68)
if IS_TESTED:
    from bsdsbench.kernels.compiler import (
        AllocatingCode,
        InnerCode,
        KernelCode,
        KernelCompiler,
        compile_as,
    )

Kernel: TypeAlias = Callable[..., Any]

_PATIENCE = 60  # seconds to wait for another process that compiles the same kernel
# An environment variable, so that worker processes do not repeat the warning
_WARNED = "BSDSBENCH_KERNELS_NOT_KEPT"
_cache_folder = compiled_folder()
if _cache_folder is None and not os.environ.get(_WARNED):
    os.environ[_WARNED] = "1"
    logging.getLogger(__name__).warning(
        "kernels are compiled in every run: neither the package's folder nor a cache in the home "
        "folder can be written; set NUMBA_CACHE_DIR to a folder that can"
    )


class _KernelCache(FunctionCache):
    """A variant of numba's function cache that loads code without importing the compiler's modules.

    Before loading, numba would register everything that it can compile. This imports scipy.linalg
    and cffi, and takes a third of the time to count one image. If a kernel has to be compiled, the
    compiler registers all this anyway.
    """

    allocates = True  # whether the kernel allocates memory, which needs numba's runtime
    save_under_lock = FunctionCache.save_overload  # numba's method, which writes to the disk

    def save_overload(self, sig: object, data: object) -> None:
        """Do nothing when numba calls this: `_Compilation` has saved the kernel under its lock."""

    def load_overload(self, sig: object, target_context: object) -> object:
        """Return the compiled function for a signature, or None if it is not on disk."""
        if self.allocates:
            rtsys.initialize(target_context)
        with self._guard_against_spurious_io_errors():
            return self._load_overload(sig, target_context)


@contextmanager
def _compiling_alone(path: Path) -> Iterator[None]:
    """Hold the lock file `path` of a kernel in the `with` block, with garbage collection disabled.

    If another process holds the lock, this waits for at most _PATIENCE seconds. If the file still
    cannot be locked, the block runs without a lock, and the kernel may be compiled twice.

    Garbage collection is disabled because the compiler allocates many long-lived objects, which
    every collection would visit.
    """
    from filelock import FileLock, Timeout  # most processes compile nothing

    lock = FileLock(path)
    was_enabled = gc.isenabled()
    with suppress(OSError, NotImplementedError, Timeout):
        lock.acquire(timeout=_PATIENCE)
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()
        lock.release()  # does nothing if the lock was not acquired


class _Compilation:
    """The compilation of a kernel: what numba calls in place of `_compiler.compile`.

    numba's decorator makes an object of the kernel, its dispatcher. At a call with argument types
    that are new and whose code is not on disk, the dispatcher calls its `_compiler.compile`.
    """

    def __init__(self, dispatcher: Any, code: type[KernelCode]) -> None:
        """Take the dispatcher of a kernel, and the class that is to hold and optimise its code."""
        self.dispatcher = dispatcher
        self.code = code
        self.compile_with_numba = dispatcher._compiler.compile  # before it is replaced

    def compile(self, args: tuple[object, ...], return_type: object) -> object:
        """Compile the kernel for some argument types, faster than numba does."""
        return compile_as(self.code, self.compile_with_numba, args, return_type)

    def load_or_compile(self, args: tuple[object, ...], return_type: object) -> object:
        """Compile the kernel and save it on disk, or load it if another process did so first.

        One process compiles it, under a lock file in the cache folder, while others wait. Then the
        kernels that it calls are compiled too, each under its own lock. This cannot deadlock,
        because kernels never call each other in a cycle.
        """
        dispatcher, function = self.dispatcher, self.dispatcher.py_func
        lock_file = f"{function.__module__}.{function.__qualname__}.lock"
        with _compiling_alone(Path(dispatcher._cache.cache_path).parent / lock_file):
            loaded = dispatcher._cache.load_overload(args, dispatcher.targetctx)
            if loaded is None:
                compiled = self.compile(args, return_type)
                dispatcher._cache.save_under_lock(args, compiled)
                return compiled
        # Let other kernels call the loaded code, as numba does with code that it loads itself
        library = [loaded.library]
        dispatcher.targetctx.insert_user_function(loaded.entry_point, loaded.fndesc, library)
        return loaded


def kernel(function: Kernel | None = None, **options: object) -> Kernel:
    """Compile a function like `numba.njit`; used as `@kernel` or `@kernel(option=...)`.

    The options are those of `numba.njit`. With `_nrt=False`, the caller promises that the function
    allocates no memory and raises nothing, so it is compiled without numba's runtime (NRT), which
    counts references. `no_cpython_wrapper=True` marks an inner function, which only kernels call.

    A kernel is compiled at its first call, runs without holding the GIL, and is cached on disk if a
    cache folder is writable. Inner functions are not cached, because their code becomes part of the
    kernels that call them. If numba's compiler is disabled, the function runs as plain Python.
    """
    if function is None:  # used as @kernel(option=...)
        return lambda decorated: kernel(decorated, **options)
    is_inner = "no_cpython_wrapper" in options
    is_cached = _cache_folder is not None and not is_inner
    user_folder = config.CACHE_DIR
    try:  # numba reads the folder for compiled code when a function is decorated
        config.CACHE_DIR = str(_cache_folder or "")
        if not IS_TESTED:  # this version of numba is not known to work with compiler.py
            inline = options.get("inline", "never")
            return njit(function, nogil=True, cache=is_cached, inline=inline)
        # Compile with fewer of numba's steps, and without a wrapper for calls from C
        options |= {"nogil": True, "no_cfunc_wrapper": True, "pipeline_class": KernelCompiler}
        compiled = njit(function, **options)
        if config.DISABLE_JIT:
            return compiled
        # The class whose objects link and optimise the code of the kernel
        allocates = bool(options.get("_nrt", True))
        code = InnerCode if is_inner else AllocatingCode if allocates else KernelCode
        compilation = _Compilation(compiled, code)
        compiled._compiler.compile = compilation.compile
        if is_cached:
            compiled._cache = _KernelCache(function)  # loads code from disk faster than numba's
            compiled._cache.allocates = allocates
            compiled._compiler.compile = compilation.load_or_compile
        return compiled
    finally:
        config.CACHE_DIR = user_folder


def inner(function: Kernel, **options: object) -> Kernel:
    """Compile a function that only kernels call, and that allocates no memory.

    For small functions, and medium ones with a single caller, `@kernel(inline="always")` compiles
    even faster.
    """
    return kernel(function, no_cpython_wrapper=True, _nrt=False, **options)
