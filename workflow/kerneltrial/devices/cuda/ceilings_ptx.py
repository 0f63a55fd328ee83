"""PTX of the kernels that measure ceilings. Each has one entry, `main`.

Stores that keep the work alive never happen: memory is zero, and no chain of multiply-adds ends in the magic word.
"""

_HEAD = ".version 7.8\n.target sm_75\n.address_size 64\n"
_MAGIC = "0x9E3779B9"
_CHAINS = 16
_UNROLLED = 8
OPERATIONS_A_ROUND = _CHAINS * _UNROLLED  # multiply-adds of one thread in one round
_VECTORS = 4
BYTES_A_STEP = 16 * _VECTORS  # of one thread in one step

_THREAD = """
  mov.u32 %r1, %ctaid.x;
  mov.u32 %r2, %ntid.x;
  mov.u32 %r3, %tid.x;
  mov.u32 %r4, %nctaid.x;
  mad.lo.u32 %r5, %r1, %r2, %r3;
  mul.lo.u32 %r6, %r4, %r2;
"""

EMPTY = _HEAD + ".visible .entry main()\n{\n  ret;\n}\n"


def _loads(pointer: str) -> str:
    """Four vectors of 16 bytes, one a stride (%d6) apart, cached in L2 only; leaves %d8 behind the last."""
    lines = [f"  mov.u64 %d8, {pointer};"]
    for i in range(_VECTORS):
        words = ", ".join(f"%v{4 * i + j}" for j in range(4))
        lines += [f"  ld.global.cg.v4.u32 {{{words}}}, [%d8];", "  add.s64 %d8, %d8, %d6;"]
    return "\n".join(lines) + "\n"


def _folded() -> str:
    return "\n".join(f"  xor.b32 %r9, %r9, %v{i};" for i in range(4 * _VECTORS)) + "\n"


def _stores(pointer: str) -> str:
    lines = [f"  mov.u64 %d9, {pointer};"]
    for i in range(_VECTORS):
        words = ", ".join(f"%v{4 * i + j}" for j in range(4))
        lines += [f"  st.global.v4.u32 [%d9], {{{words}}};", "  add.s64 %d9, %d9, %d6;"]
    return "\n".join(lines) + "\n"


_REGISTERS = "  .reg .pred %p<3>;\n  .reg .b32 %r<12>;\n  .reg .b32 %v<16>;\n  .reg .b64 %d<12>;\n"

# for each pass: for each step: read 4 vectors, a stride apart
READ = (
    _HEAD
    + ".visible .entry main(.param .u64 start, .param .u32 steps, .param .u32 passes, .param .u64 end)\n{\n"
    + _REGISTERS
    + "  ld.param.u64 %d1, [start];\n  ld.param.u32 %r7, [steps];\n  ld.param.u32 %r8, [passes];\n"
    + "  ld.param.u64 %d2, [end];\n  cvta.to.global.u64 %d1, %d1;\n  cvta.to.global.u64 %d2, %d2;"
    + _THREAD
    + "  mul.wide.u32 %d3, %r5, 16;\n  add.s64 %d4, %d1, %d3;\n  mul.wide.u32 %d6, %r6, 16;\n  mov.u32 %r9, 0;\n"
    + "PASS:\n  mov.u64 %d5, %d4;\n  mov.u32 %r10, %r7;\nSTEP:\n"
    + _loads("%d5")
    + _folded()
    + "  mov.u64 %d5, %d8;\n  sub.u32 %r10, %r10, 1;\n  setp.ne.u32 %p1, %r10, 0;\n  @%p1 bra STEP;\n"
    + "  sub.u32 %r8, %r8, 1;\n  setp.ne.u32 %p1, %r8, 0;\n  @%p1 bra PASS;\n"
    + f"  setp.ne.u32 %p2, %r9, {_MAGIC};\n  @%p2 bra END;\n  st.global.u32 [%d2], %r9;\nEND:\n  ret;\n}}\n"
)

# for each step: copy 4 vectors, a stride apart
COPY = (
    _HEAD
    + ".visible .entry main(.param .u64 start, .param .u64 target, .param .u32 steps)\n{\n"
    + _REGISTERS
    + "  ld.param.u64 %d1, [start];\n  ld.param.u64 %d2, [target];\n  ld.param.u32 %r7, [steps];\n"
    + "  cvta.to.global.u64 %d1, %d1;\n  cvta.to.global.u64 %d2, %d2;"
    + _THREAD
    + "  mul.wide.u32 %d3, %r5, 16;\n  add.s64 %d4, %d1, %d3;\n  add.s64 %d5, %d2, %d3;\n  mul.wide.u32 %d6, %r6, 16;\n"
    + "STEP:\n"
    + _loads("%d4")
    + _stores("%d5")
    + "  mov.u64 %d4, %d8;\n  mov.u64 %d5, %d9;\n"
    + "  sub.u32 %r7, %r7, 1;\n  setp.ne.u32 %p1, %r7, 0;\n  @%p1 bra STEP;\n  ret;\n}\n"
)


def multiply_add(kind: str) -> str:
    """Independent chains x = x * a + b in registers; `kind` is f32 or f64. `end` is written if all sums are magic."""
    one, two = {"f32": ("0f3F7FF972", "0f3A83126F"), "f64": ("0d3FEFFF2E48E8A71E", "0d3F50624DD2F1A9FC")}[kind]
    chains = range(_CHAINS)
    starts = "\n".join(f"  add.{kind} %x{i}, %y, {_float(kind, i)};" for i in chains)
    body = "\n".join(f"  fma.rn.{kind} %x{i}, %x{i}, %a, %b;" for _ in range(_UNROLLED) for i in chains)
    sums = "\n".join(f"  add.{kind} %y, %y, %x{i};" for i in chains)
    return (
        _HEAD
        + ".visible .entry main(.param .u32 rounds, .param .u64 end)\n{\n"
        + f"  .reg .pred %p<3>;\n  .reg .b32 %r<12>;\n  .reg .b64 %d<3>;\n  .reg .{kind} %x<{_CHAINS}>, %y, %a, %b;\n"
        + "  ld.param.u32 %r7, [rounds];\n  ld.param.u64 %d1, [end];\n  cvta.to.global.u64 %d1, %d1;"
        + _THREAD
        + f"  cvt.rn.{kind}.u32 %y, %r5;\n  mov.{kind} %a, {one};\n  mov.{kind} %b, {two};\n{starts}\n"
        + f"ROUND:\n{body}\n  sub.u32 %r7, %r7, 1;\n  setp.ne.u32 %p1, %r7, 0;\n  @%p1 bra ROUND;\n{sums}\n"
        + f"  setp.neu.{kind} %p2, %y, {_float(kind, -1)};\n  @%p2 bra END;\n  st.global.{kind} [%d1], %y;\n"
        + "END:\n  ret;\n}\n"
    )


def _float(kind: str, value: int) -> str:
    """A small integer as a PTX literal: IEEE bits after 0f or 0d."""
    import struct

    if kind == "f32":
        return "0f" + struct.pack(">f", value).hex().upper()
    return "0d" + struct.pack(">d", value).hex().upper()
