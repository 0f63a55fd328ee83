"""Other rounding modes than to nearest, as LLVM IR: functions that set the host's mode around one operation.

What the host's IEEE 754 arithmetic gives in that mode is what PTX asks for, subnormals, overflow and zeros included.
"""

from kerneltrial.devices.cpu.ir import Body

MODES = {".rz": 0, ".rp": 2, ".rm": 3}
"""As FLT_ROUNDS of C has them."""
_LLVM = {"f32": "float", "f64": "double"}
_NAMES = {"add": 2, "sub": 2, "mul": 2, "div": 2, "fma": 3, "sqrt": 1}
OPERATIONS = tuple((name, t) for name in _NAMES for t in _LLVM)
INTEGERS = tuple((word, t) for word in ("sitofp", "uitofp") for t in _LLVM)


def symbol(name: str, t: str) -> str:
    """`kt_round_add_f64(i32 mode, double, double)`; of integers `kt_round_sitofp_f64(i32 mode, i64)`."""
    return f"kt_round_{name}_{t}"


def function(name: str, t: str) -> str:
    """The text of one function."""
    llvm, integer = _LLVM[t], name in ("sitofp", "uitofp")
    source = "i64" if integer else llvm
    count = 1 if integer else _NAMES[name]
    arguments = ", ".join(f"{source} %x{k}" for k in range(count))
    suffix = f"{t}.i64" if integer else t
    word = f"llvm.experimental.constrained.{name if integer or name in ('fma', 'sqrt') else 'f' + name}.{suffix}"
    metadata = 'metadata !"round.dynamic", metadata !"fpexcept.ignore"'
    return f"""
declare {llvm} @{word}({", ".join([source] * count)}, metadata, metadata)
define {llvm} @{symbol(name, t)}(i32 %mode, {arguments}) strictfp noinline {{
  call void @llvm.set.rounding(i32 %mode) strictfp
  %r = call {llvm} @{word}({arguments}, {metadata}) strictfp
  call void @llvm.set.rounding(i32 1) strictfp
  ret {llvm} %r
}}
"""


def text() -> str:
    """A module of all of them."""
    functions = [function(*entry) for entry in (*OPERATIONS, *INTEGERS)]
    return "declare void @llvm.set.rounding(i32)\n" + "".join(functions)


def rounded(b: Body, name: str, t: str, mode: str, *values: str) -> str:
    """The call of one."""
    source = "i64" if name in ("sitofp", "uitofp") else _LLVM[t]
    return b.call(_LLVM[t], symbol(name, t), ("i32", MODES[mode]), *((source, v) for v in values))
