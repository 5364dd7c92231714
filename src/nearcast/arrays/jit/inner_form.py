"""The inner form of a kernel: optimised LLVM code that only other kernels contain, without machine code of its own.

Numba generates machine code for every compiled function, also for one that is only ever linked into its callers. That
took a third of the time of compiling. An inner form ends with its bitcode: in memory, and as a file of the cache.
"""

from __future__ import annotations

from typing import Any

import llvmlite.binding as llvm
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import Compiler, CompileResult, Flags

BITCODE = "bitcode"


class KernelFlags(Flags):
    """Numba's compiler flags, quick to compare.

    Numba looks up each NumPy function that a kernel calls by the flags, and compiles the function again for other
    flags. What distinguishes the forms of a kernel makes no difference to the functions that it calls.
    """

    __slots__ = ()

    def _decisive(self) -> dict[str, Any]:
        return {name: value for name, value in self._values.items() if name not in ("no_compile", "no_cpython_wrapper")}

    def __hash__(self) -> int:
        return hash(frozenset(self._decisive()))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, KernelFlags) and self._decisive() == other._decisive()


class InnerLibrary(JITCodeLibrary):
    """A library of LLVM code that is linked into other libraries and never executed itself."""

    def _finalize_final_module(self) -> None:
        self._finalize_dynamic_globals()
        self._verify_declare_only_symbols()
        self._finalized = True

    def serialize_using_object_code(self) -> tuple[str, str, bytes]:
        return (self.name, BITCODE, self._get_module_for_linking().as_bitcode())


class KernelPipeline(Compiler):
    """Numba's compiler; a function without an entry from Python gets an `InnerLibrary`."""

    def __init__(self, typingctx: Any, targetctx: Any, library: Any, args: Any, *rest: Any) -> None:
        super().__init__(typingctx, targetctx, library, args, *rest)
        if self.state.flags.no_compile:
            self.state.library = InnerLibrary(targetctx.codegen(), f"inner form {id(self)}")


def register(compiled: Any, target: Any) -> Any:
    """Let other kernels call a new inner form. Returns the form with the key by which Numba finds it."""
    compiled = compiled._replace(entry_point=object())
    target.insert_user_function(compiled.entry_point, compiled.fndesc, [compiled.library])
    return compiled


def rebuild(target: Any, payload: tuple[Any, ...]) -> Any:
    """The compiled form that `CompileResult._reduce` made a payload of."""
    (name, kind, code), fndesc, env, signature, objectmode, lifted, annotation, reload_init, envs = payload
    if kind != BITCODE:
        return CompileResult._rebuild(target, *payload)
    library = InnerLibrary(target.codegen(), name)
    library._final_module = llvm.parse_bitcode(code)
    library._finalize_final_module()
    return CompileResult(
        typing_context=target.typing_context,
        target_context=target,
        entry_point=object(),  # a key: nobody calls it
        typing_error=None,
        type_annotation=annotation,
        signature=signature,
        objectmode=objectmode,
        lifted=lifted,
        fndesc=fndesc,
        library=library,
        call_helper=None,
        environment=env,
        metadata=None,
        reload_init=reload_init,
        referenced_envs=envs,
    )


def set_environments(compiled: Any) -> None:
    """Give the inner forms that an outer form contains their environments (constants that are Python objects)."""
    for env in compiled._find_referenced_environments():
        compiled.library.codegen.set_env(env.env_name, env)
