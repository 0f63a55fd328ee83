"""Barriers and collectives of a warp. A thread hands over its words, waits, and resumes with all lanes' words in view.

What a lane reads from one that did not take part is the launch's poison, so that a result that depends on it differs
between two poisons.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kerneltrial.devices.cpu import layout as at
from kerneltrial.devices.cpu.forms import Form
from kerneltrial.devices.cpu.syntax import Instruction, Pair

if TYPE_CHECKING:
    from kerneltrial.devices.cpu.generator import Generator

Fields = dict[str, str]


def _barrier(g: Generator, instruction: Instruction, f: Fields) -> None:
    number = g.bits(instruction.operands[0], 32)
    g.require(g.body.op(f"icmp ult i32 {number}, 16"), g.site(instruction, kind="mask"))
    g.wait(at.AT_BARRIER, number, [], instruction)


def _own_lane_named(g: Generator, instruction: Instruction, mask: str) -> None:
    """PTX leaves a collective open whose mask does not name the lane that executes it: a fault."""
    b = g.body
    own = b.op(f"shl i32 1, {g.context_field(at.LANE)}")
    named = b.op(f"icmp ne i32 {b.op(f'and i32 {mask}, {own}')}, 0")
    g.require(named, g.site(instruction, kind="mask"))


def _meet(g: Generator, instruction: Instruction, mask: str, words: list[str]) -> None:
    _own_lane_named(g, instruction, mask)
    g.wait(at.AT_COLLECTIVE, mask, words, instruction)


def _warp_barrier(g: Generator, instruction: Instruction, f: Fields) -> None:
    mask = g.bits(instruction.operands[0], 32)
    _own_lane_named(g, instruction, mask)
    g.wait(at.AT_WARP_BARRIER, mask, [], instruction)


def visible_words(g: Generator) -> int:
    """Where in a context the words begin that the lanes of the last collective see."""
    return at.PUBLIC + 4 * g.layout.public_words


def word_of_lane(g: Generator, lane: str, word: int = 0) -> str:
    """A word that another lane handed over; the launch's poison where that lane did not take part."""
    b = g.body
    group = g.context_field(at.GROUP)
    took_part = b.op(f"trunc i32 {b.op(f'lshr i32 {group}, {lane}')} to i1")
    distance = b.op(f"sext i32 {b.op(f'sub i32 {lane}, {g.context_field(at.LANE)}')} to i64")
    distance = b.op(f"select i1 {took_part}, i64 {distance}, i64 0")
    start = b.op(f"getelementptr i8, ptr %ctx, i64 {b.op(f'mul i64 {distance}, {g.layout.context_bytes}')}")
    value = b.field(start, visible_words(g) + 4 * word, "i32")
    poison = b.field("%blk", at.BLOCK["poison"], "i32", "!invariant.load !0")
    return b.op(f"select i1 {took_part}, i32 {value}, i32 {poison}")


def _shuffle(g: Generator, instruction: Instruction, f: Fields) -> None:
    """As PTX spells it out: segments by the upper byte of c, clamped by its lower five bits."""
    target, source, shift, control, mask = instruction.operands
    for operand in (source, shift, control, mask):
        g.same_width(operand, 32, instruction)
    _meet(g, instruction, g.bits(mask, 32), [g.bits(source, 32)])
    b = g.body
    lane = g.context_field(at.LANE)
    amount = b.op(f"and i32 {g.bits(shift, 32)}, 31")
    c = g.bits(control, 32)
    clamp = b.op(f"and i32 {c}, 31")
    segment = b.op(f"and i32 {b.op(f'lshr i32 {c}, 8')}, 31")
    rest = b.op(f"xor i32 {segment}, 31")
    low = b.op(f"and i32 {lane}, {segment}")
    high = b.op(f"or i32 {low}, {b.op(f'and i32 {clamp}, {rest}')}")
    match f["mode"]:
        case "up":
            other = b.op(f"sub i32 {lane}, {amount}")
        case "down":
            other = b.op(f"add i32 {lane}, {amount}")
        case "bfly":
            other = b.op(f"xor i32 {lane}, {amount}")
        case _:
            other = b.op(f"or i32 {low}, {b.op(f'and i32 {amount}, {rest}')}")
    inside = b.op(f"icmp {'sge' if f['mode'] == 'up' else 'sle'} i32 {other}, {high}")
    from_lane = b.op(f"and i32 {b.op(f'select i1 {inside}, i32 {other}, i32 {lane}')}, 31")
    value = word_of_lane(g, from_lane)
    first, second = (target.first, target.second) if isinstance(target, Pair) else (target, None)
    g.assign(first, "b32", value, instruction)
    if second is not None:
        g.assign(second, "pred", inside, instruction)


def _fold(g: Generator, start: str, combine: object) -> str:
    """Combine lane by lane the words of all that took part; `combine(total, value, lane)` gives the new total."""
    assert callable(combine)
    b = g.body
    group = g.context_field(at.GROUP)
    total = b.variable("i32", start)
    with b.loop(0, 32) as lane:
        took_part = b.op(f"trunc i32 {b.op(f'lshr i32 {group}, {lane}')} to i1")
        with b.when(took_part):
            value = word_of_lane(g, lane)
            total.set(combine(total.get(), value, lane))
    return total.get()


def _vote(g: Generator, instruction: Instruction, f: Fields) -> None:
    target, source, mask = instruction.operands
    b = g.body
    g.same_width(mask, 32, instruction)
    _meet(g, instruction, g.bits(mask, 32), [b.op(f"zext i1 {g.predicate(source, instruction)} to i32")])
    ballot = _fold(g, "0", lambda t, v, lane: b.op(f"or i32 {t}, {b.op(f'shl i32 {v}, {lane}')}"))
    group = g.context_field(at.GROUP)
    match f["mode"]:
        case "ballot":
            g.assign(target, "b32", ballot, instruction)
            return
        case "any":
            result = b.op(f"icmp ne i32 {ballot}, 0")
        case "all":
            result = b.op(f"icmp eq i32 {ballot}, {group}")
        case _:
            none = b.op(f"icmp eq i32 {ballot}, 0")
            result = b.op(f"or i1 {none}, {b.op(f'icmp eq i32 {ballot}, {group}')}")
    g.assign(target, "pred", result, instruction)


def _match_any(g: Generator, instruction: Instruction, f: Fields) -> None:
    """The lanes that hold the same word as this one."""
    target, source, mask = instruction.operands
    b = g.body
    for operand in (source, mask):
        g.same_width(operand, 32, instruction)
    _meet(g, instruction, g.bits(mask, 32), [g.bits(source, 32)])
    own = g.bits(source, 32)

    def combine(total: str, value: str, lane: str) -> str:
        same = b.op(f"zext i1 {b.op(f'icmp eq i32 {value}, {own}')} to i32")
        return b.op(f"or i32 {total}, {b.op(f'shl i32 {same}, {lane}')}")

    g.assign(target, "b32", _fold(g, "0", combine), instruction)


_REDUCTIONS = {"add": "0", "and": "-1", "or": "0", "xor": "0"}


def _redux(g: Generator, instruction: Instruction, f: Fields) -> None:
    target, source, mask = instruction.operands
    b = g.body
    for operand in (source, mask):
        g.same_width(operand, 32, instruction)
    _meet(g, instruction, g.bits(mask, 32), [g.bits(source, 32)])
    what = f["what"]
    if what in _REDUCTIONS:
        result = _fold(g, _REDUCTIONS[what], lambda t, v, _: b.op(f"{what} i32 {t}, {v}"))
    else:
        name = f"llvm.{'s' if f['t'][0] == 's' else 'u'}{what}.i32"
        result = _fold(g, g.bits(source, 32), lambda t, v, _: b.call("i32", name, ("i32", t), ("i32", v)))
    g.assign(target, "b32", result, instruction)


_G = "collective"

FORMS = (
    Form("bar{cta:|.cta}.sync", "b32", _barrier, "barrier", raw=True, sync=True),
    Form("barrier{cta:|.cta}.sync{aligned:|.aligned}", "b32", _barrier, "barrier", raw=True, sync=True),
    Form("bar.warp.sync", "b32", _warp_barrier, "barrier", raw=True, sync=True),
    Form("shfl.sync.{mode:up|down|bfly|idx}.b32", "=b32|pred b32 b32 b32 b32", _shuffle, _G, raw=True, sync=True),
    Form("vote.sync.{mode:any|all|uni}.pred", "=pred pred b32", _vote, _G, raw=True, sync=True),
    Form("vote.sync.{mode:ballot}.b32", "=b32 pred b32", _vote, _G, raw=True, sync=True),
    Form("match.any.sync.b32", "=b32 b32 b32", _match_any, _G, raw=True, sync=True),
    Form("redux.sync.{what:add|min|max}.{t:u32|s32}", "=t t b32", _redux, _G, raw=True, sync=True),
    Form("redux.sync.{what:and|or|xor}.{t:b32}", "=t t b32", _redux, _G, raw=True, sync=True),
)
