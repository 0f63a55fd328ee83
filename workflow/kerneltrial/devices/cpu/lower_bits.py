"""Logic, shifts, bit fields, permutation of bytes, dot products of bytes."""

from kerneltrial.devices.cpu.forms import Form
from kerneltrial.devices.cpu.ir import Body
from kerneltrial.devices.cpu.syntax import WIDTHS

Fields = dict[str, str]


def _logic(b: Body, f: Fields, x: str, y: str) -> str:
    return b.op(f"{f['op']} i{WIDTHS[f['t']]} {x}, {y}")


def _not(b: Body, f: Fields, x: str) -> str:
    return b.op(f"xor i{WIDTHS[f['t']]} {x}, -1")


def _cnot(b: Body, f: Fields, x: str) -> str:
    w = WIDTHS[f["t"]]
    return b.op(f"zext i1 {b.op(f'icmp eq i{w} {x}, 0')} to i{w}")


def resize(b: Body, value: str, width: int, to: int) -> str:
    """Zero-extend or truncate."""
    if width == to:
        return value
    return b.op(f"{'zext' if to > width else 'trunc'} i{width} {value} to i{to}")


def _shift(b: Body, f: Fields, x: str, amount: str) -> str:
    """Amounts beyond the width shift everything out (an arithmetic shift leaves the sign)."""
    w = WIDTHS[f["t"]]
    beyond = b.op(f"icmp uge i32 {amount}, {w}")
    inside = resize(b, b.op(f"select i1 {beyond}, i32 {w - 1}, i32 {amount}"), 32, w)
    if f["op"] == "shr" and f["t"][0] == "s":
        return b.op(f"ashr i{w} {x}, {inside}")
    shifted = b.op(f"{'shl' if f['op'] == 'shl' else 'lshr'} i{w} {x}, {inside}")
    return b.op(f"select i1 {beyond}, i{w} 0, i{w} {shifted}")


def _funnel(b: Body, f: Fields, low: str, high: str, amount: str) -> str:
    """Shift the 64 bits high:low; left gives the upper half, right the lower one."""
    if f["mode"] == "wrap":
        count = b.op(f"and i32 {amount}, 31")
    else:
        count = b.call("i32", "llvm.umin.i32", ("i32", amount), ("i32", 32))
    both = b.op(f"or i64 {b.op(f'shl i64 {resize(b, high, 32, 64)}, 32')}, {resize(b, low, 32, 64)}")
    wide = resize(b, count, 32, 64)
    if f["side"] == "l":
        return resize(b, b.op(f"lshr i64 {b.op(f'shl i64 {both}, {wide}')}, 32"), 64, 32)
    return resize(b, b.op(f"lshr i64 {both}, {wide}"), 64, 32)


def _low_ones(b: Body, w: int, count: str) -> str:
    """`count` ones (i32, 0 to 255) in the low bits of w."""
    all_ = b.op(f"icmp uge i32 {count}, {w}")
    safe = resize(b, b.op(f"select i1 {all_}, i32 0, i32 {count}"), 32, w)
    ones = b.op(f"sub i{w} {b.op(f'shl i{w} 1, {safe}')}, 1")
    return b.op(f"select i1 {all_}, i{w} -1, i{w} {ones}")


def _moved(b: Body, w: int, value: str, word: str, amount: str) -> str:
    """A logical shift by i32 `amount`, 0 where it is beyond the width."""
    beyond = b.op(f"icmp uge i32 {amount}, {w}")
    safe = resize(b, b.op(f"select i1 {beyond}, i32 0, i32 {amount}"), 32, w)
    return b.op(f"select i1 {beyond}, i{w} 0, i{w} {b.op(f'{word} i{w} {value}, {safe}')}")


def _place(b: Body, w: int, value: str) -> str:
    """A position or a length: its low 8 bits, as PTX has it; of 64-bit fields an H200 looks at all of it."""
    if w == 32:
        return b.op(f"and i32 {value}, 255")
    return b.call("i32", "llvm.umin.i32", ("i32", value), ("i32", 255))


def _bfe(b: Body, f: Fields, x: str, position: str, length: str) -> str:
    """Bits position .. position+length-1; what lies beyond the word is 0, or the field's sign bit."""
    w = WIDTHS[f["t"]]
    at, count = _place(b, w, position), _place(b, w, length)
    room, shifted = _moved(b, w, "-1", "lshr", at), _moved(b, w, x, "lshr", at)
    inside = b.op(f"and i{w} {_low_ones(b, w, count)}, {room}")
    taken = b.op(f"and i{w} {shifted}, {inside}")
    if f["t"][0] == "u":
        return taken
    end = b.op(f"sub i32 {b.op(f'add i32 {at}, {count}')}, 1")
    top = b.call("i32", "llvm.umin.i32", ("i32", end), ("i32", w - 1))
    sign = b.op(f"trunc i{w} {b.op(f'lshr i{w} {x}, {resize(b, top, 32, w)}')} to i1")
    some = b.op(f"icmp ne i32 {count}, 0")
    fill = b.op(f"xor i{w} {inside}, -1")
    filled = b.op(f"select i1 {b.op(f'and i1 {sign}, {some}')}, i{w} {fill}, i{w} 0")
    return b.op(f"or i{w} {taken}, {filled}")


def _bfi(b: Body, f: Fields, x: str, into: str, position: str, length: str) -> str:
    w = WIDTHS[f["t"]]
    at, count = _place(b, w, position), _place(b, w, length)
    mask = _moved(b, w, _low_ones(b, w, count), "shl", at)
    kept = b.op(f"and i{w} {into}, {b.op(f'xor i{w} {mask}, -1')}")
    moved = _moved(b, w, x, "shl", at)
    return b.op(f"or i{w} {kept}, {b.op(f'and i{w} {moved}, {mask}')}")


def _bfind(b: Body, f: Fields, x: str) -> str:
    """Position of the highest bit that is set (signed: that differs from the sign), or its way to the top; else -1."""
    w = WIDTHS[f["t"]]
    value = x
    if f["t"][0] == "s":
        value = b.op(f"xor i{w} {x}, {b.op(f'ashr i{w} {x}, {w - 1}')}")
    zeros = resize(b, b.call(f"i{w}", f"llvm.ctlz.i{w}", (f"i{w}", value), ("i1", "false")), w, 32)
    found = zeros if f["amount"] else b.op(f"sub i32 {w - 1}, {zeros}")
    none = b.op(f"icmp eq i{w} {value}, 0")
    return b.op(f"select i1 {none}, i32 -1, i32 {found}")


def _count(b: Body, f: Fields, x: str) -> str:
    w = WIDTHS[f["t"]]
    if f["op"] == "popc":
        return resize(b, b.call(f"i{w}", f"llvm.ctpop.i{w}", (f"i{w}", x)), w, 32)
    return resize(b, b.call(f"i{w}", f"llvm.ctlz.i{w}", (f"i{w}", x), ("i1", "false")), w, 32)


def _reverse(b: Body, f: Fields, x: str) -> str:
    w = WIDTHS[f["t"]]
    return b.call(f"i{w}", f"llvm.bitreverse.i{w}", (f"i{w}", x))


def _permute(b: Body, _: Fields, x: str, y: str, selector: str) -> str:
    """Each nibble of the selector picks one of eight bytes; its top bit asks for the byte's sign instead."""
    both = b.op(f"or i64 {b.op(f'shl i64 {resize(b, y, 32, 64)}, 32')}, {resize(b, x, 32, 64)}")
    result = "0"
    for lane in range(4):
        nibble = b.op(f"lshr i32 {selector}, {4 * lane}")
        shift = resize(b, b.op(f"shl i32 {b.op(f'and i32 {nibble}, 7')}, 3"), 32, 64)
        byte = b.op(f"trunc i64 {b.op(f'lshr i64 {both}, {shift}')} to i8")
        wants_sign = b.op(f"icmp ne i32 {b.op(f'and i32 {nibble}, 8')}, 0")
        chosen = b.op(f"select i1 {wants_sign}, i8 {b.op(f'ashr i8 {byte}, 7')}, i8 {byte}")
        result = b.op(f"or i32 {result}, {b.op(f'shl i32 {resize(b, chosen, 8, 32)}, {8 * lane}')}")
    return result


def _lop3(b: Body, _: Fields, x: str, y: str, z: str, table: int) -> str:
    """Any function of three bits: bit 4x+2y+z of the table."""
    result = "0"
    for row in range(8):
        if table >> row & 1:
            terms = [v if row >> (2 - k) & 1 else b.op(f"xor i32 {v}, -1") for k, v in enumerate((x, y, z))]
            both = b.op(f"and i32 {terms[0]}, {terms[1]}")
            result = b.op(f"or i32 {result}, {b.op(f'and i32 {both}, {terms[2]}')}")
    return result


def _dp4a(b: Body, f: Fields, x: str, y: str, total: str) -> str:
    for lane in range(4):
        parts = []
        for value, type_ in ((x, f["t"]), (y, f["u"])):
            byte = b.op(f"trunc i32 {b.op(f'lshr i32 {value}, {8 * lane}')} to i8")
            parts.append(b.op(f"{'sext' if type_[0] == 's' else 'zext'} i8 {byte} to i32"))
        total = b.op(f"add i32 {total}, {b.op(f'mul i32 {parts[0]}, {parts[1]}')}")
    return total


def _absolute_differences(b: Body, f: Fields, x: str, y: str, other: str) -> str:
    """Of four pairs of bytes: added to the third operand, or side by side."""
    result = other if f["sum"] else "0"
    for lane in range(4):
        one, two = (b.op(f"and i32 {b.op(f'lshr i32 {v}, {8 * lane}')}, 255") for v in (x, y))
        less = b.op(f"icmp ult i32 {one}, {two}")
        far = b.op(f"select i1 {less}, i32 {b.op(f'sub i32 {two}, {one}')}, i32 {b.op(f'sub i32 {one}, {two}')}")
        result = b.op(f"add i32 {result}, {far if f['sum'] else b.op(f'shl i32 {far}, {8 * lane}')}")
    return result


_PERMUTATIONS = {
    "f4e": ("0123", "1234", "2345", "3456"),
    "b4e": ("0765", "1076", "2107", "3210"),
    "rc8": ("0000", "1111", "2222", "3333"),
    "ecl": ("0123", "1123", "2223", "3333"),
    "ecr": ("0000", "0111", "0122", "0123"),
    "rc16": ("0101", "2323", "0101", "2323"),
}
"""For each mode and each value of the selector's two low bits: which byte goes where, lowest byte first."""


def _permute_mode(b: Body, f: Fields, x: str, y: str, selector: str) -> str:
    which = b.op(f"and i32 {selector}, 3")
    nibbles = "0"
    for n, digits in enumerate(_PERMUTATIONS[f["mode"]]):
        value = sum(int(d) << 4 * k for k, d in enumerate(digits))
        nibbles = b.op(f"select i1 {b.op(f'icmp eq i32 {which}, {n}')}, i32 {value}, i32 {nibbles}")
    return _permute(b, f, x, y, nibbles)


def _dp2a(b: Body, f: Fields, x: str, y: str, total: str) -> str:
    """Two 16-bit elements of x with the lower or the upper two bytes of y."""
    for lane in range(2):
        byte_at = 8 * (lane + (2 if f["half"] == "hi" else 0))
        word = b.op(f"trunc i32 {b.op(f'lshr i32 {x}, {16 * lane}')} to i16")
        byte = b.op(f"trunc i32 {b.op(f'lshr i32 {y}, {byte_at}')} to i8")
        wide = b.op(f"{'sext' if f['t'][0] == 's' else 'zext'} i16 {word} to i32")
        narrow = b.op(f"{'sext' if f['u'][0] == 's' else 'zext'} i8 {byte} to i32")
        total = b.op(f"add i32 {total}, {b.op(f'mul i32 {wide}, {narrow}')}")
    return total


def _clamped_or_wrapped(b: Body, f: Fields, value: str) -> str:
    if f["mode"] == "wrap":
        return b.op(f"and i32 {value}, 31")
    return b.call("i32", "llvm.umin.i32", ("i32", value), ("i32", 32))


def _mask(b: Body, f: Fields, position: str, count: str) -> str:
    """`count` ones from `position` on."""
    at, n = _clamped_or_wrapped(b, f, position), _clamped_or_wrapped(b, f, count)
    return _moved(b, 32, _low_ones(b, 32, n), "shl", at)


def _extend_from(b: Body, f: Fields, x: str, count: str) -> str:
    """The low `count` bits, extended; none of them where `count` is 0."""
    n = _clamped_or_wrapped(b, f, count)
    kept = b.op(f"and i32 {x}, {_low_ones(b, 32, n)}")
    if f["t"] == "u32":
        return kept
    none = b.op(f"icmp eq i32 {n}, 0")
    safe = b.op(f"select i1 {none}, i32 0, i32 {b.op(f'sub i32 32, {n}')}")
    up = b.op(f"shl i32 {x}, {safe}")
    return b.op(f"select i1 {none}, i32 0, i32 {b.op(f'ashr i32 {up}, {safe}')}")


def _nth_set(b: Body, _: Fields, mask: str, base: str, offset: str) -> str:
    """Where the |offset|-th bit that is set lies, from `base` on, upwards or downwards; all ones where it does not."""
    down = b.op(f"icmp slt i32 {offset}, 0")
    step = b.op(f"select i1 {down}, i32 -1, i32 1")
    size = b.call("i32", "llvm.abs.i32", ("i32", offset), ("i1", "false"))
    left = b.variable("i32", b.call("i32", "llvm.umax.i32", ("i32", size), ("i32", 1)))
    last = b.op(f"select i1 {b.op(f'icmp eq i32 {offset}, 0')}, i32 1, i32 32")
    found = b.variable("i32", -1)
    # PTX leaves a base beyond the word open; on an H200 nothing is found from there
    last = b.op(f"select i1 {b.op(f'icmp ult i32 {base}, 32')}, i32 {last}, i32 0")
    with b.loop(0, last) as k:
        position = b.op(f"add i32 {base}, {b.op(f'mul i32 {k}, {step}')}")
        inside = b.op(f"icmp ult i32 {position}, 32")
        safe = b.op(f"and i32 {position}, 31")
        bit = b.op(f"trunc i32 {b.op(f'lshr i32 {mask}, {safe}')} to i1")
        with b.when(b.op(f"and i1 {inside}, {bit}")):
            left.set(b.op(f"sub i32 {left.get()}, 1"))
            here = b.op(f"icmp eq i32 {left.get()}, 0")
            found.set(b.op(f"select i1 {here}, i32 {position}, i32 {found.get()}"))
    return found.get()


_G = "integer"

FORMS = (
    Form("{op:and}.{t:pred|b16|b32|b64}", "=t t t", _logic, _G),
    Form("{op:or}.{t:pred|b16|b32|b64}", "=t t t", _logic, _G),
    Form("{op:xor}.{t:pred|b16|b32|b64}", "=t t t", _logic, _G),
    Form("not.{t:pred|b16|b32|b64}", "=t t", _not, _G),
    Form("cnot.{t:b16|b32|b64}", "=t t", _cnot, _G),
    Form("{op:shl}.{t:b16|b32|b64}", "=t t b32", _shift, _G),
    Form("{op:shr}.{t:b16|b32|b64|u16|u32|u64|s16|s32|s64}", "=t t b32", _shift, _G),
    Form("shf.{side:l|r}.{mode:wrap|clamp}.b32", "=b32 b32 b32 b32", _funnel, _G),
    Form("bfe.{t:u32|s32|u64|s64}", "=t t b32 b32", _bfe, _G),
    Form("bfi.{t:b32|b64}", "=t t t b32 b32", _bfi, _G),
    Form("bfind{amount:|.shiftamt}.{t:u32|s32|u64|s64}", "=b32 t", _bfind, _G),
    Form("{op:popc}.{t:b32|b64}", "=b32 t", _count, _G),
    Form("{op:clz}.{t:b32|b64}", "=b32 t", _count, _G),
    Form("brev.{t:b32|b64}", "=t t", _reverse, _G),
    Form("prmt.b32", "=b32 b32 b32 b32", _permute, _G),
    Form("lop3.b32", "=b32 b32 b32 b32 #", _lop3, _G),
    Form("dp4a.{t:u32|s32}.{u:u32|s32}", "=b32 b32 b32 b32", _dp4a, _G),
    Form("vabsdiff4.u32.u32.u32{sum:|.add}", "=b32 b32 b32 b32", _absolute_differences, _G),
    Form("prmt.b32.{mode:f4e|b4e|rc8|ecl|ecr|rc16}", "=b32 b32 b32 b32", _permute_mode, _G),
    Form("dp2a.{half:lo|hi}.{t:u32|s32}.{u:u32|s32}", "=b32 b32 b32 b32", _dp2a, _G),
    Form("bmsk.{mode:clamp|wrap}.b32", "=b32 b32 b32", _mask, _G),
    Form("szext.{mode:clamp|wrap}.{t:u32|s32}", "=t t b32", _extend_from, _G),
    Form("fns.b32", "=b32 b32 b32 s32", _nth_set, _G),
)
