"""A variant of numba's compiler that takes half as long, for functions as simple as our kernels.

Kernels raise nothing, have no closures, and most of them allocate nothing. What numba does only for
other functions is left out. Functions of other packages are compiled by numba as usual. This module
uses numba's internals, so it is imported only if it is tested with the version of numba (jit.py).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeAlias

from llvmlite import binding
from numba.core import types as numba_types
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import CompilerBase, StateDict
from numba.core.compiler_lock import global_compiler_lock
from numba.core.compiler_machinery import PassManager
from numba.core.registry import cpu_target
from numba.core.runtime import rtsys
from numba.core.typed_passes import (
    IRLegalization,
    NativeLowering,
    NoPythonBackend,
    NopythonTypeInference,
    PreLowerStripPhis,
)
from numba.core.untyped_passes import (
    FixupArgs,
    InlineInlinables,
    IRProcessing,
    ReconstructSSA,
    TranslateByteCode,
)

types: Any = numba_types
_Type: TypeAlias = Any  # a type of numba
_Compile: TypeAlias = Callable[[tuple[_Type, ...], _Type], object]


class KernelCode(JITCodeLibrary):
    """The code of a kernel that allocates no memory, which LLVM optimises once, after linking.

    numba would also optimise each function separately before that, and all of them at a low level
    to remove reference counts.
    """

    allocates = False  # whether the code needs numba's runtime, which counts references

    def add_linking_library(self, library: JITCodeLibrary) -> None:
        """Link another library, but numba's runtime only if it is needed."""
        if self.allocates or library is not rtsys.library:
            super().add_linking_library(library)

    def _optimize_functions(self, ll_module: binding.ModuleRef) -> None:
        ll_module.data_layout = self._codegen._data_layout

    def _optimize_final_module(self) -> None:
        """Optimise the code of a kernel, linked with all that it calls, at LLVM's level 2, not 3.

        With llvmlite 0.45 or later, loops are not unrolled and straight-line code is not vectorised
        (SLP): this takes long to compile and makes kernels no faster. Earlier versions offer no
        such choice.
        """
        module = self._final_module
        # The linkage of called functions, linkonce_odr, lets others use them too. Make it internal
        # to this module, so that LLVM may remove unused functions and arguments
        for function in module.functions:
            if function.linkage == binding.Linkage.linkonce_odr and not function.is_declaration:
                function.linkage = binding.Linkage.internal
        if not hasattr(binding, "create_pipeline_tuning_options"):  # before llvmlite 0.45
            self._codegen._module_pass_manager(opt=2).run(module)
            return
        options = binding.create_pipeline_tuning_options(speed_level=2)
        options.slp_vectorization = options.loop_unrolling = False
        passes = binding.create_pass_builder(self._codegen._tm, options)  # _tm: the target machine
        passes.getModulePassManager().run(module, passes)


class AllocatingCode(KernelCode):
    """The code of a kernel that allocates memory."""

    allocates = True


class InnerCode(KernelCode):
    """The code of an `inner` function, which is linked into kernels and optimised only there."""

    def _optimize_final_module(self) -> None:
        pass

    def _finalize_final_module(self) -> None:
        self._finalized = True

    @property
    def codegen(self) -> InnerCode:
        """Return self, so that numba calls `set_env` below instead of that of the real codegen."""
        return self

    def set_env(self, env_name: str, env: object) -> None:
        """Do nothing: only errors need the environment, and inner functions raise none."""


class _Steps(PassManager):
    """The steps of numba's compiler that kernels need, without checks between them."""

    def run(self, state: StateDict) -> None:
        """Compile a function with only those steps (passes) of numba that a kernel needs.

        This replaces `PassManager.run`, which also rewrites closures, array expressions and other
        things that kernels lack.

        state: numba's record of the compilation. It holds the function and the types of its
            arguments, and receives what each step computes, at last the machine code.
        """
        # From bytecode to numba's intermediate representation
        steps = [TranslateByteCode, FixupArgs, IRProcessing]
        steps += [InlineInlinables]  # inserts the kernels with inline="always"
        # Types. In SSA form each variable is assigned once, and so has one type. Where branches
        # meet, a "phi" selects one of two variables; it becomes an assignment in each branch
        steps += [ReconstructSSA, NopythonTypeInference, PreLowerStripPhis]
        if state.flags.nrt:  # the function allocates memory: mark where variables are last used
            steps.append(IRLegalization)
        steps += [NativeLowering, NoPythonBackend]  # to machine code by LLVM; makes the result
        for step in steps:
            step().run_pass(state)


class KernelCompiler(CompilerBase):
    """A compiler of kernels, for the option `pipeline_class` of numba's decorators."""

    def define_pipelines(self) -> list[PassManager]:
        """Return the steps."""
        return [_Steps("kernel")]


_resolve = types.BaseFunction.get_call_type  # numba's method, which is replaced by `_signature`
_signatures: dict[tuple[object, ...], tuple[object, object, object]] = {}


def _signature(
    function: _Type, context: object, args: tuple[_Type, ...], kws: dict[str, _Type]
) -> object:
    """Return the signature that numba gives to a call of a builtin function, such as `+`.

    It replaces the method `get_call_type` of numba, which tries many candidates at each call. The
    signature depends only on the function, the typing context and the types of the arguments, so it
    is stored and reused. The same calls occur again and again in kernels.
    """
    key = id(function), id(context), args, tuple(kws.items())
    if key not in _signatures:  # keep both objects too, so that no other object can get their ids
        _signatures[key] = _resolve(function, context, args, kws), function, context
    return _signatures[key][0]


@contextmanager
def _compiling(code: type[KernelCode]) -> Iterator[None]:
    """Replace two parts of numba in the `with` block, so that it compiles faster.

    - the class of the object that holds and optimises the code of a function, by `code`
    - the method that finds the types of a call of a builtin function, such as `+`, by `_signature`,
      which remembers them for the next call

    The caller must hold the lock of numba's compiler, so that nothing else is compiled meanwhile.
    """
    codegen, function = cpu_target.target_context.codegen(), types.BaseFunction
    originals = codegen._library_class, function.get_call_type
    codegen._library_class, function.get_call_type = code, _signature
    try:
        yield
    finally:
        codegen._library_class, function.get_call_type = originals


@global_compiler_lock
def import_compiler() -> None:
    """Make numba ready to compile: import and register the functions that kernels may call.

    This is done before the first compilation, because it takes long and a process that loads all
    its kernels from the disk does not need it. Further calls take almost no time.
    """
    from numba.np import linalg

    # When numba's module `arraymath` is imported, it calls `ensure_blas` of the module `linalg`,
    # which imports scipy.linalg only to see that it is there. This takes a tenth of a second, so
    # the function does nothing during the import. Both modules then get the original function
    original = linalg.ensure_blas
    linalg.ensure_blas = lambda: None
    try:
        from numba.np import arraymath

        arraymath.ensure_blas = original
    finally:
        linalg.ensure_blas = original
    # Register the functions: first the types that they return, then their code
    cpu_target.typing_context.refresh()
    cpu_target.target_context.refresh()


def compile_as(
    code: type[KernelCode], compile_with_numba: _Compile, args: tuple[_Type, ...], returned: _Type
) -> object:
    """Compile a kernel for the argument types `args`, and return a CompileResult of numba.

    code: the class of the object that holds and optimises the code, such as `KernelCode`.
    compile_with_numba: numba's method that compiles this kernel, given the types.
    returned: the required return type, or None if numba infers it.
    """
    import_compiler()  # what numba needs to compile, imported when it is first needed
    with _compiling(code):
        return compile_with_numba(args, returned)
