"""A variant of numba's compiler that takes half as long, for functions as simple as our kernels.

Kernels raise nothing, have no closures, and most of them allocate nothing. What numba does only for
other functions is left out. Functions of other packages are compiled by numba as usual. This module
uses numba's internals, so it is imported only if it is tested with the version of numba (jit.py).
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, TypeAlias

from llvmlite import binding, ir
from numba.core import cgutils, entrypoints
from numba.core import types as numba_types
from numba.core.callwrapper import PyCallWrapper
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import CompilerBase, StateDict
from numba.core.compiler_lock import global_compiler_lock
from numba.core.compiler_machinery import PassManager
from numba.core.ir import Expr
from numba.core.lowering import Lower
from numba.core.pythonapi import PythonAPI
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
_Value: TypeAlias = Any  # a value in LLVM's language

_Type: TypeAlias = Any  # a type of numba
_Dispatcher: TypeAlias = Any  # a function that numba compiles


class KernelCode(JITCodeLibrary):
    """The code of a kernel that allocates no memory, which LLVM optimises once, after linking.

    numba would also optimise each function separately before that, and all of them at a low level
    to remove reference counts. Level 3 or unrolled loops would make kernels slower to compile but
    no faster to run.
    """

    vectorises = False  # whether LLVM may use vector instructions in loops
    allocates = False  # whether the code needs numba's runtime, which counts references

    def add_linking_library(self, library: JITCodeLibrary) -> None:
        """Link another library, but numba's runtime only if it is needed."""
        if self.allocates or library is not rtsys.library:
            super().add_linking_library(library)

    def _optimize_functions(self, ll_module: binding.ModuleRef) -> None:
        ll_module.data_layout = self._codegen._data_layout

    def _optimize_final_module(self) -> None:
        """Optimise the complete code of a kernel at LLVM's level 2.

        With llvmlite 0.45 or later, loops are not unrolled, straight-line code is not vectorised
        (SLP), and loops are vectorised only if `vectorises` is True. Earlier versions offer no such
        choice.
        """
        module = self._final_module
        # Functions that were linked into the kernel (linkonce_odr) become internal: LLVM may then
        # inline them and remove their unused arguments
        for function in module.functions:
            if function.linkage == binding.Linkage.linkonce_odr and not function.is_declaration:
                function.linkage = binding.Linkage.internal
        if not hasattr(binding, "create_pipeline_tuning_options"):  # before llvmlite 0.45
            self._codegen._module_pass_manager(opt=2).run(module)
            return
        options = binding.create_pipeline_tuning_options(speed_level=2)
        options.slp_vectorization = options.loop_unrolling = False
        options.loop_vectorization = self.vectorises
        passes = binding.create_pass_builder(self._codegen._tm, options)
        passes.getModulePassManager().run(module, passes)


class VectorisedCode(KernelCode):
    """The code of a kernel whose loops use vector instructions, which take longer to compile."""

    vectorises = True


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


class _Wrapper(PyCallWrapper):
    """The function that Python calls, around a kernel that raises nothing and allocates nothing."""

    def build_wrapper(
        self, api: PythonAPI, builder: ir.IRBuilder, closure: _Value, args: _Value, kws: _Value
    ) -> None:
        """Write code that converts Python's arguments, calls the kernel, and converts its result.

        The kernel runs without the GIL. Conversions are not checked, because numba calls the
        function only with arguments of the types for which it was compiled.

        api, builder: writers of code; each call of their methods adds instructions.
        args: the address of the tuple of all arguments; `closure` and `kws` are unused.
        """
        context, kinds = self.context, self.fndesc.argtypes  # the types of the arguments
        # Unpack the tuple of arguments: the Python object k is stored at the address places[k]
        places = [api.alloca_obj() for _ in kinds]
        api.unpack_tuple(args, self.fndesc.qualname, len(kinds), len(kinds), *places)
        values = []
        for kind, place in zip(kinds, places, strict=True):
            value = builder.load(place)
            if isinstance(kind, types.Array):
                # Reserve numba's struct of an array (data, shape, strides). A C function, which
                # takes the address of the struct as void*, fills it
                struct = context.make_array(kind)(context, builder)._getpointer()
                api.numba_array_adaptor(value, builder.bitcast(struct, api.voidptr))
                values.append(builder.load(struct))
            else:  # a number or a tuple
                values.append(api.to_native_value(kind, value).value)
        thread = api.save_thread()  # releases the GIL
        # As in numba's code, LLVM must not copy the kernel into this function (noinline). The
        # error status is ignored, because the kernel raises nothing
        _, returned = context.call_conv.call_function(
            builder, self.func, self.fndesc.restype, kinds, values, attrs=("noinline",)
        )
        api.restore_thread(thread)  # takes the GIL again
        builder.ret(api.from_native_return(self.fndesc.restype, returned, None))


class _KernelLower(Lower):
    """The translation of a kernel to LLVM's language, with little code for shapes and ranges.

    Numbers and pointers stay values. numba copies arrays and ranges to memory to read a field,
    which LLVM has to remove again.
    """

    def create_cpython_wrapper(self, release_gil: bool = False) -> None:
        """Write the function that Python calls to run the kernel, and add it to the library."""
        context, kernel = self.context, self.fndesc
        # With numba's runtime (nrt) the kernel may allocate, with checks of indices it may raise:
        # it needs the function that numba writes
        if context.enable_nrt or context.enable_boundscheck:
            super().create_cpython_wrapper(release_gil)
            return
        module = context.create_module("wrapper")
        kind = context.call_conv.get_function_type(kernel.restype, kernel.argtypes)
        compiled = ir.Function(module, kind, kernel.llvm_func_name)  # declares the kernel
        _Wrapper(context, module, compiled, kernel, self.env, self.call_helper, release_gil).build()
        self.library.add_ir_module(module)

    def lower_expr(self, resty: _Type, expr: Expr) -> _Value:
        """Write LLVM code that computes an expression, and return its value, of type `resty`.

        The shape or the size of an array, the iterator of a range and its next number get shorter
        code than numba writes. All other expressions are left to numba.
        """
        # Reading an attribute, making the iterator of a loop, and advancing it
        if expr.op in ("getattr", "getiter", "iternext"):
            operand = expr.value.name  # the variable on which the expression operates
            kind = self.typeof(operand)
            if isinstance(kind, types.Array) and expr.op == "getattr":
                # The field of the struct in which numba keeps an array
                field = {"shape": "shape", "size": "nitems"}.get(expr.attr)
                if field:
                    position = self.context.data_model_manager[kind].get_field_position(field)
                    return self.builder.extract_value(self.loadvar(operand), position)
            elif isinstance(kind, types.RangeType) and expr.op == "getiter":
                return self._range_iterator(resty, self.loadvar(operand))
            elif isinstance(kind, types.RangeIteratorType) and expr.op == "iternext":
                return self._next_of_range(resty, self.loadvar(operand))
        return super().lower_expr(resty, expr)

    def _range_iterator(self, kind: _Type, numbers: _Value) -> _Value:
        """Write code that makes an iterator over a range of numbers, and return the iterator.

        kind: numba's type of the iterator, a struct of four fields: the address of the next number,
            the stop, the step, and the count of the numbers that are left. The count stays
            undefined: `_next_of_range`, which reads the iterator, compares with the stop instead.
        numbers: the range, a struct of its start, stop and step.
        """
        start, stop, step = cgutils.unpack_tuple(self.builder, numbers)
        address = cgutils.alloca_once_value(self.builder, start)  # a new variable, set to `start`
        iterator = self.context.get_constant_undef(kind)  # a struct whose fields are undefined
        for position, value in enumerate((address, stop, step)):
            iterator = self.builder.insert_value(iterator, value, position)
        return iterator

    def _next_of_range(self, kind: _Type, iterator: _Value) -> _Value:
        """Write code that advances the iterator of a range by one number.

        iterator: a struct of the address of the next number, the stop and the step.

        Returns a struct of type `kind` with two fields: the number, and a flag that is true while
        the number lies before the stop of the range (above the stop if the step is negative).
        """
        builder = self.builder
        address, stop, step = (builder.extract_value(iterator, k) for k in range(3))
        number = builder.load(address)
        builder.store(builder.add(number, step), address)
        is_upwards = builder.icmp_signed(">", step, step.type(0))
        is_below = builder.icmp_signed("<", number, stop)
        is_above = builder.icmp_signed(">", number, stop)
        is_in_range = builder.select(is_upwards, is_below, is_above)  # below if upwards, else above
        pair = builder.insert_value(self.context.get_constant_undef(kind), number, 0)
        return builder.insert_value(pair, is_in_range, 1)


class _KernelLowering(NativeLowering):
    """The step of the compiler that translates a kernel to LLVM's language."""

    @property
    def lowering_class(self) -> type[Lower]:
        """The class that translates."""
        return _KernelLower


class _Steps(PassManager):
    """The steps of numba's compiler that kernels need, without checks between them."""

    def run(self, state: StateDict) -> None:
        """Compile a function.

        state: numba's record of the compilation. It holds the function and the types of its
            arguments, and receives what each step computes, at last the machine code.
        """
        # From bytecode to numba's typed intermediate representation
        steps = [TranslateByteCode, FixupArgs, IRProcessing, InlineInlinables, ReconstructSSA]
        steps += [NopythonTypeInference, PreLowerStripPhis]
        if state.flags.nrt:  # the function allocates memory
            steps.append(IRLegalization)  # ends the lifetime of variables
        steps += [_KernelLowering, NoPythonBackend]  # to LLVM's language, and to machine code
        for step in steps:
            step().run_pass(state)


class KernelCompiler(CompilerBase):
    """A compiler of kernels, for the option `pipeline_class` of numba's decorators."""

    def define_pipelines(self) -> list[PassManager]:
        """Return the steps."""
        return [_Steps("kernel")]


_resolve = types.BaseFunction.get_call_type
_signatures: dict[tuple[object, ...], tuple[object, object]] = {}


def _signature(
    function: _Type, context: object, args: tuple[_Type, ...], kws: dict[str, _Type]
) -> object:
    """Return the signature that numba gives to a call of a builtin function, such as `+`.

    It replaces the method `get_call_type` of numba, which tries many candidates at each call. The
    same calls occur again and again in kernels, so the signature is stored and reused.
    """
    key = id(function), id(context), args, tuple(kws.items())
    if key not in _signatures:  # the function is stored too, so that no other can get its id
        _signatures[key] = function, _resolve(function, context, args, kws)
    return _signatures[key][1]


@contextmanager
def _compiling(code: type[KernelCode]) -> Iterator[None]:
    """Patch numba in the `with` block, so that it compiles faster and keeps the code in `code`.

    `code` is the class of the objects that hold, link and optimise compiled code. The caller must
    hold the lock of numba's compiler, so that no other function is compiled with these patches.
    """
    codegen, function = cpu_target.target_context.codegen(), types.BaseFunction
    originals = codegen._library_class, entrypoints.init_all, function.get_call_type
    codegen._library_class = code
    entrypoints.init_all = lambda: None  # without the search for packages that extend numba
    function.get_call_type = _signature  # finds the types of a call, and remembers them
    try:
        yield
    finally:
        codegen._library_class, entrypoints.init_all, function.get_call_type = originals


@global_compiler_lock
def import_compiler() -> None:
    """Make numba ready to compile: import and register its builtin functions.

    This takes long, and a process that loads all its kernels from the disk does not need it.
    Further calls take almost no time.

    The function `ensure_blas` is replaced during the import. It only checks that scipy is
    installed, but imports scipy.linalg for that, which takes a tenth of a second.
    """
    from numba.np import linalg

    ensure_blas, linalg.ensure_blas = linalg.ensure_blas, lambda: None
    try:
        from numba.np import arraymath

        arraymath.ensure_blas = ensure_blas  # which imported the replacement
    finally:
        linalg.ensure_blas = ensure_blas
    with _compiling(KernelCode):
        cpu_target.typing_context.refresh()
        cpu_target.target_context.refresh()


def compile_as(
    code: type[KernelCode], dispatcher: _Dispatcher, args: tuple[_Type, ...], return_type: _Type
) -> object:
    """Compile a kernel for the argument types `args`, and return a CompileResult of numba.

    code: the class of the object that holds and optimises the code, for example `VectorisedCode`.
    dispatcher: what numba's decorator made of the kernel.
    return_type: the required return type, or None if numba infers it.
    """
    import_compiler()
    compiler = dispatcher._compiler
    with _compiling(code):
        return type(compiler).compile(compiler, args, return_type)
