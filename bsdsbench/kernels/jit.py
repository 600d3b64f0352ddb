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
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias

from llvmlite import binding
from numba import config, njit
from numba.core.caching import FunctionCache
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler_lock import global_compiler_lock
from numba.core.runtime import rtsys

from bsdsbench.kernels import compiled_folder

Kernel: TypeAlias = Callable[..., Any]

_PATIENCE = 60  # seconds to wait for another process that compiles the same kernel
# An environment variable, so that worker processes do not repeat the warning
_WARNED = "BSDSBENCH_KERNELS_NOT_KEPT"
_folder = compiled_folder()
if _folder is None and not os.environ.get(_WARNED):
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
    keep = FunctionCache.save_overload

    def save_overload(self, sig: object, data: object) -> None:
        """Do nothing: `_compile_once` saves a kernel with `keep` before it releases the lock."""

    def load_overload(self, sig: object, target_context: object) -> object:
        """Return the compiled function for a signature, or None if it is not on disk."""
        if self.allocates:
            rtsys.initialize(target_context)
        with self._guard_against_spurious_io_errors():
            return self._load_overload(sig, target_context)


class _OptimisedOnce(JITCodeLibrary):
    """A code library that LLVM optimises only once, after linking.

    numba would also optimise each function separately before that, and all of them at a low level
    to remove reference counts. Level 3 or unrolled loops would make kernels slower to compile but
    no faster to run.
    """

    def _optimize_functions(self, ll_module: binding.ModuleRef) -> None:
        ll_module.data_layout = self._codegen._data_layout

    def _optimize_final_module(self) -> None:
        """Optimise the complete code of a kernel at LLVM's level 2.

        Linked functions become internal, so that LLVM may inline them and remove unused arguments.
        With llvmlite 0.45 or later, loops are not unrolled, and SLP vectorisation is off.
        """
        module = self._final_module
        for function in module.functions:
            if function.linkage == binding.Linkage.linkonce_odr and not function.is_declaration:
                function.linkage = binding.Linkage.internal
        if not hasattr(binding, "create_pipeline_tuning_options"):  # before llvmlite 0.45
            self._codegen._module_pass_manager(opt=2).run(module)
            return
        options = binding.create_pipeline_tuning_options(speed_level=2)
        options.slp_vectorization = options.loop_unrolling = False
        passes = binding.create_pass_builder(self._codegen._tm, options)
        passes.getModulePassManager().run(module, passes)


class _InnerCode(_OptimisedOnce):
    """The code of an `inner` function, which is linked into kernels and optimised only there."""

    def _optimize_final_module(self) -> None:
        pass

    def _finalize_final_module(self) -> None:
        self._finalized = True

    @property
    def codegen(self) -> _InnerCode:
        """Return self, so that numba calls `set_env` below instead of that of the real codegen."""
        return self

    def set_env(self, env_name: str, env: object) -> None:
        """Do nothing: only errors need the environment, and inner functions raise none."""


def _compile_as(
    library: type[JITCodeLibrary], dispatcher: Any, args: tuple[Any, ...], return_type: object
) -> Any:
    """Compile a numba function for the argument types `args`, into a code library of a given class.

    `return_type` is the required return type, or None if numba infers it.
    """
    codegen, compiler = dispatcher.targetctx.codegen(), dispatcher._compiler
    usual, codegen._library_class = codegen._library_class, library
    try:
        return type(compiler).compile(compiler, args, return_type)
    finally:
        codegen._library_class = usual


@global_compiler_lock
def import_compiler() -> None:
    """Import numba's support for arrays without scipy.linalg, which takes a tenth of a second.

    numba imports it only to check that scipy is installed. Functions that need it import it when
    they are compiled.
    """
    from numba.np import linalg

    ensure_blas, linalg.ensure_blas = linalg.ensure_blas, lambda: None
    try:
        from numba.np import arraymath

        arraymath.ensure_blas = ensure_blas
    finally:
        linalg.ensure_blas = ensure_blas


@contextmanager
def _compiling_alone(path: Path) -> Iterator[None]:
    """Hold the lock file `path` of a kernel in the `with` block, with garbage collection disabled.

    If another process holds the lock, this waits for at most _PATIENCE seconds. If the file still
    cannot be locked, the block runs without a lock, and the kernel may be compiled twice.

    Garbage collection is disabled because the compiler allocates many long-lived objects, which
    every collection would visit. At the end they are moved to the oldest generation.
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
            if not gc.get_freeze_count():
                gc.freeze()
                gc.unfreeze()  # moves all objects to the oldest generation
            gc.enable()
        lock.release()


def _compile_once(dispatcher: Any, folder: Path) -> None:
    """Patch a kernel so that one process compiles it, while the others wait and then load it.

    dispatcher: numba's dispatcher of the kernel; its `_compiler.compile` is replaced.
    folder: the cache folder of compiled kernels, which also holds the lock files.

    Compiling a kernel also compiles the kernels that it calls, each under its own lock, while the
    lock of the caller is still held. This cannot deadlock, because kernels never call each other in
    a cycle.
    """
    function = dispatcher.py_func
    path = folder / f"{function.__module__}.{function.__qualname__}.lock"

    def compile_or_load(args: tuple[object, ...], return_type: object) -> object:
        """Load the kernel if another process has compiled it; otherwise compile and save it."""
        with _compiling_alone(path):
            loaded = dispatcher._cache.load_overload(args, dispatcher.targetctx)
            if loaded is None:
                import_compiler()
                compiled = _compile_as(_OptimisedOnce, dispatcher, args, return_type)
                dispatcher._cache.keep(args, compiled)
                return compiled
            dispatcher.targetctx.insert_user_function(
                loaded.entry_point, loaded.fndesc, [loaded.library]
            )
            return loaded

    dispatcher._compiler.compile = compile_or_load


def kernel(function: Kernel | None = None, **options: object) -> Kernel:
    """Compile a function like `numba.njit`; used as `@kernel` or `@kernel(option=...)`.

    The options are those of `numba.njit`. `_nrt=False` promises that the function allocates no
    memory, so it needs no numba runtime. `no_cpython_wrapper` marks a function that only other
    kernels call, see `inner`.

    A kernel is compiled at its first call, runs without holding the GIL, and is cached on disk if a
    cache folder is writable. Inner functions are not cached, because their code becomes part of the
    kernels that call them. If numba's compiler is disabled, the function runs as plain Python.
    """
    if function is None:
        return lambda decorated: kernel(decorated, **options)
    user_folder = config.CACHE_DIR
    try:  # numba reads the folder when a function is decorated
        config.CACHE_DIR = str(_folder or "")
        # no_rewrites: rewriting is for expressions of whole arrays, which kernels do without
        compiled = njit(function, nogil=True, no_cfunc_wrapper=True, no_rewrites=True, **options)
        if config.DISABLE_JIT:
            return compiled
        if "no_cpython_wrapper" in options:  # an inner function, which Python never calls
            compiled._compiler.compile = partial(_compile_as, _InnerCode, compiled)
        elif _folder is not None:
            compiled._cache = _KernelCache(function)
            compiled._cache.allocates = options.get("_nrt", True)
            _compile_once(compiled, _folder)
        return compiled
    finally:
        config.CACHE_DIR = user_folder


def inner(function: Kernel, **options: object) -> Kernel:
    """Compile a function that only kernels call, and that allocates no memory.

    For small functions, and medium ones with a single caller, `@kernel(inline="always")` compiles
    even faster.
    """
    return kernel(function, no_cpython_wrapper=True, _nrt=False, **options)
