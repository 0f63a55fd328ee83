"""LLVM IR to machine code in this process, through llvmlite."""

import hashlib
from collections.abc import Callable
from ctypes import CFUNCTYPE, c_int32, c_void_p
from dataclasses import dataclass
from functools import cache
from typing import Any

from kerneltrial.devices.cpu import (
    asynchronous,
    barriers,
    order,
    printing,
    races,
    races_global,
    reach,
    rounding,
    scheduler,
    tally,
    tensor,
)
from kerneltrial.devices.cpu.ir import module
from kerneltrial.devices.cpu.refusals import unsupported_feature
from kerneltrial.devices.machine_code import MachineCode


@dataclass(frozen=True)
class Effort:
    """How long LLVM may work on a module: passes over its IR, and the level of code generation."""

    passes: tuple[str, ...]
    level: int


RUNTIME = Effort(
    ("always_inliner", "sroa", "simplify_cfg", "instruction_combine", "new_gvn", "simplify_cfg",
     "dead_code_elimination"), 1
)  # fmt: skip
FAST = Effort(("sroa", "simplify_cfg", "dead_code_elimination"), 1)
"""For code that runs long: the host's code for a kernel is as good without the passes left out here."""
QUICK = Effort(("sroa", "simplify_cfg", "new_gvn", "dead_code_elimination"), 0)
"""For code whose time goes to the checks that it calls; measured by tests/bench/cpu_speed.py."""


@dataclass
class Native:
    """Machine code; it lives as long as this object does."""

    engine: Any
    symbols: dict[str, int]


@cache
def _machine() -> Any:
    import llvmlite.binding as llvm

    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    return llvm.Target.from_default_triple().create_target_machine(
        opt=2, cpu=llvm.get_host_cpu_name(), features=llvm.get_host_cpu_features().flatten()
    )


def compile_module(
    text: str, names: tuple[str, ...], code: MachineCode | None = None, effort: Effort = RUNTIME
) -> Native:
    """Optimise and compile a module; `names` are the functions to be called. No step may change a float's bits.

    Machine code that `code` has of the same text, for the same effort, processor and LLVM, is taken as it is.
    """
    key = "" if code is None else _key(text, effort)
    known = None if code is None else code.get(key)
    if known is not None:
        return _engine(_module(""), names, lambda _: known, _ignore, effort)
    parsed = _module(text)
    passes = _passes(effort)
    passes.run(parsed, _builder())
    made: list[bytes] = []
    native = _engine(parsed, names, lambda _: None, lambda _, piece: made.append(piece), effort)
    if code is not None and made:
        code.put(key, made[0])
    return native


def _key(text: str, effort: Effort) -> str:
    """The text and everything else that the machine code follows from, or that it relies on."""
    import llvmlite
    import llvmlite.binding as llvm

    version = ".".join(map(str, llvm.llvm_version_info))
    features = llvm.get_host_cpu_features().flatten()
    host = (llvmlite.__version__, version, llvm.get_host_cpu_name(), features)
    parts = (text, _called_digest(), *effort.passes, str(effort.level), *host)
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()


def _module(text: str) -> Any:
    import llvmlite.binding as llvm

    machine = _machine()
    try:
        parsed = llvm.parse_assembly(text)
        parsed.verify()
    except RuntimeError as problem:
        raise unsupported_feature(f"LLVM refuses what was made of this kernel: {problem}") from None
    parsed.triple = machine.triple
    return parsed


def _passes(effort: Effort) -> Any:
    import llvmlite.binding as llvm

    passes = llvm.create_new_module_pass_manager()
    for name in effort.passes:
        getattr(passes, f"add_{name}_pass")()
    return passes


def _builder() -> Any:
    import llvmlite.binding as llvm

    return llvm.create_pass_builder(_machine(), llvm.create_pipeline_tuning_options(speed_level=1))


def _engine(
    parsed: Any,
    names: tuple[str, ...],
    known: Callable[[Any], bytes | None],
    made: Callable[[Any, bytes], None],
    effort: Effort,
) -> Native:
    """Machine code in memory; `known` may give an object file in place of the module, `made` is told a new one."""
    import llvmlite.binding as llvm

    engine = llvm.create_mcjit_compiler(parsed, _fresh_machine(effort))
    engine.set_object_cache(made, known)
    engine.finalize_object()
    return Native(engine, {name: engine.get_function_address(name) for name in names})


def _ignore(_: Any, __: bytes) -> None:
    """An object file that was known is not told again."""


def _fresh_machine(effort: Effort) -> Any:
    """An engine takes its target machine over, so that each needs one of its own."""
    import llvmlite.binding as llvm

    return llvm.Target.from_default_triple().create_target_machine(
        opt=effort.level, cpu=llvm.get_host_cpu_name(), features=llvm.get_host_cpu_features().flatten()
    )


_CALLED = ("kt_print", "kt_fence", "kt_arrive", "kt_copy_start", "kt_copy_wait", *reach.SYMBOLS)


@cache
def _runtime_text() -> str:
    copies = (asynchronous.kt_copy_start, asynchronous.kt_copy_wait)
    makers = (
        *barriers.PARTS,
        *scheduler.PARTS,
        races.kt_shared,
        printing.kt_print,
        *order.PARTS,
        *races_global.PARTS,
        *tally.PARTS,
        *copies,
    )
    parts = [*(maker() for maker in makers), *reach.parts()]
    return module([function for function, _ in parts], [body for _, body in parts])


@cache
def _tensor_text() -> str:
    parts = [tensor.function(product) for product in tensor.PRODUCTS]
    return module([function for function, _ in parts], [body for _, body in parts])


@cache
def _called_digest() -> str:
    """Of all that kernels call by name: their own text does not say how these take their arguments."""
    texts = (_runtime_text(), _tensor_text(), rounding.text())
    return hashlib.sha256("\0".join(texts).encode()).hexdigest()


@cache
def runtime() -> Native:
    """The scheduler, and what kernels call by name (checks of shared memory, asynchronous copies); once a process."""
    import llvmlite.binding as llvm

    native = compile_module(_runtime_text(), ("run_grid", "resume_block", "after_pass", *_CALLED))
    _called_digest()  # once, before children are forked
    for name in _CALLED:
        llvm.add_symbol(name, native.symbols[name])
    return native


@cache
def tensor_products() -> Native:
    """Products of small matrices, made for the first kernel that has some; kernels find them by name."""
    import llvmlite.binding as llvm

    native = compile_module(_tensor_text(), tuple(product.symbol for product in tensor.PRODUCTS))
    for name, address in native.symbols.items():
        llvm.add_symbol(name, address)
    return native


@cache
def rounding_functions() -> Native:
    """Arithmetic with directed rounding, made for the first kernel that has some."""
    import llvmlite.binding as llvm

    names = tuple(rounding.symbol(*entry) for entry in (*rounding.OPERATIONS, *rounding.INTEGERS))
    native = compile_module(rounding.text(), names)
    for name, address in native.symbols.items():
        llvm.add_symbol(name, address)
    return native


def run_grid(block: int, contexts: int, threads: int, resume: bool = False) -> int:
    """Run a launch, or resume its one block; arguments are addresses of its state and contexts: see `scheduler`."""
    name = "resume_block" if resume else "run_grid"
    function = CFUNCTYPE(c_int32, c_void_p, c_void_p, c_int32)(runtime().symbols[name])
    return int(function(block, contexts, threads))
