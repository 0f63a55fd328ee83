"""Barriers and collectives of a warp. A thread hands over its words, waits, and resumes with all lanes' words in view.

What a lane reads from one that did not take part is the launch's poison, so that a result that depends on it differs
between two poisons; a shuffle that reads from a lane which its mask names and which has ended is a finding.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kerneltrial.devices.cpu import layout as at
from kerneltrial.devices.cpu.barriers import BARRIERS
from kerneltrial.devices.cpu.forms import Form
from kerneltrial.devices.cpu.syntax import WIDTHS, Immediate, Instruction, Operand, Pair

if TYPE_CHECKING:
    from kerneltrial.devices.cpu.generator import Generator

Fields = dict[str, str]


def _barrier_number(
    g: Generator, instruction: Instruction, number: Operand, count: Operand | None, vote: str = ""
) -> str:
    """The number of a barrier, with the count that it waits for noted where there is one: a multiple of 32."""
    b = g.body
    for operand in (number, count):
        if operand is not None:
            g.same_width(operand, 32, instruction)
    value = g.bits(number, 32)
    g.require(b.op(f"icmp ult i32 {value}, 16"), g.site(instruction, kind="mask"))
    expected = "0"
    if count is not None:
        expected = g.bits(count, 32)
        low = b.op(f"and i32 {expected}, 31")
        whole = b.op(f"icmp eq i32 {low}, 0")
        inside = b.op(f"icmp ult i32 {b.op(f'sub i32 {expected}, 1')}, 1024")
        g.require(b.op(f"and i1 {whole}, {inside}"), g.site(instruction, kind="mask"))
    if vote:
        brought = b.op(f"zext i1 {vote} to i32")
        expected = b.op(f"or i32 {expected}, {b.op(f'shl i32 {brought}, {at.VOTE_SHIFT}')}")
    b.set_field("%ctx", at.EXPECTED, "i32", expected)
    return value


def _barrier(g: Generator, instruction: Instruction, f: Fields) -> None:
    number, *count = instruction.operands
    if not count and isinstance(number, Immediate) and number.kind == "int" and 0 <= int(number.value) < BARRIERS:
        g.wait(at.AT_PLAIN + int(number.value), "", [], instruction)
        return
    value = _barrier_number(g, instruction, number, count[0] if count else None)
    g.wait(at.AT_BARRIER, value, [], instruction)


def _arrive(g: Generator, instruction: Instruction, f: Fields) -> None:
    number, count = instruction.operands
    value = _barrier_number(g, instruction, number, count)
    g.body.call("void", "kt_arrive", ("ptr", "%blk"), ("ptr", "%ctx"), ("i32", value))


def _barrier_reduction(g: Generator, instruction: Instruction, f: Fields) -> None:
    """How many of the threads that a barrier releases brought a true predicate."""
    target, number, *count, source = instruction.operands
    b = g.body
    vote = g.predicate(source, instruction)
    value = _barrier_number(g, instruction, number, count[0] if count else None, vote)
    g.wait(at.AT_BARRIER, value, [], instruction)
    votes, voters = g.context_field(at.VOTES), g.context_field(at.VOTERS)
    match f["what"]:
        case "popc":
            g.assign(target, "u32", votes, instruction)
        case "and":
            g.assign(target, "pred", b.op(f"icmp eq i32 {votes}, {voters}"), instruction)
        case _:
            g.assign(target, "pred", b.op(f"icmp ne i32 {votes}, 0"), instruction)


def _active(g: Generator, instruction: Instruction, f: Fields) -> None:
    """The lanes that meet here: as many as can, since each runs as far as it can before any goes on."""
    g.wait(at.AT_MEETING, "-1", [], instruction)
    g.assign(instruction.operands[0], "b32", g.context_field(at.GROUP), instruction)


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
    poison = g.invariant("poison", "i32")
    return b.op(f"select i1 {took_part}, i32 {value}, i32 {poison}")


def _still_there(g: Generator, instruction: Instruction, mask: str, lane: str) -> None:
    """Under all checks: a lane that the mask names and that is read from must not have ended before."""
    if g.level != "all":
        return
    b = g.body
    linear = b.op(f"add i32 {b.op(f'sub i32 {g.context_field(at.LINEAR)}, {g.context_field(at.LANE)}')}, {lane}")
    exists = b.op(f"icmp ult i32 {linear}, {b.field('%blk', at.BLOCK['threads'], 'i32')}")
    bits = b.op(f"and i32 {mask}, {b.op(f'xor i32 {g.context_field(at.GROUP)}, -1')}")
    named = b.op(f"trunc i32 {b.op(f'lshr i32 {bits}, {lane}')} to i1")
    ended = b.op(f"and i1 {named}, {exists}")
    g.require(b.op(f"xor i1 {ended}, true"), g.site(instruction, kind="ended"), b.op(f"zext i32 {lane} to i64"))


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
    _still_there(g, instruction, g.bits(mask, 32), from_lane)
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


def _words(g: Generator, operand: Operand, width: int, instruction: Instruction) -> list[str]:
    """A value of 32 or 64 bits as the words that a lane hands over."""
    g.same_width(operand, width, instruction)
    value = g.bits(operand, width)
    if width == 32:
        return [value]
    b = g.body
    return [b.op(f"trunc i64 {value} to i32"), b.op(f"trunc i64 {b.op(f'lshr i64 {value}, 32')} to i32")]


def _match(g: Generator, instruction: Instruction, f: Fields) -> None:
    """The lanes that hold the same value as this one; of .all, all lanes if they agree, or none."""
    target, source, mask = instruction.operands
    b, width = g.body, WIDTHS[f["t"]]
    g.same_width(mask, 32, instruction)
    _meet(g, instruction, g.bits(mask, 32), _words(g, source, width, instruction))
    own = _words(g, source, width, instruction)

    def combine(total: str, value: str, lane: str) -> str:
        same = b.op(f"icmp eq i32 {value}, {own[0]}")
        if width == 64:
            same = b.op(f"and i1 {same}, {b.op(f'icmp eq i32 {word_of_lane(g, lane, 1)}, {own[1]}')}")
        wide = b.op(f"zext i1 {same} to i32")
        return b.op(f"or i32 {total}, {b.op(f'shl i32 {wide}, {lane}')}")

    found = _fold(g, "0", combine)
    if f["mode"] == "any":
        g.assign(target, "b32", found, instruction)
        return
    agree = b.op(f"icmp eq i32 {found}, {g.context_field(at.GROUP)}")
    first, second = (target.first, target.second) if isinstance(target, Pair) else (target, None)
    g.assign(first, "b32", b.op(f"select i1 {agree}, i32 {found}, i32 0"), instruction)
    if second is not None:
        g.assign(second, "pred", agree, instruction)


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

_B = "bar{cta:|.cta}"
_B2 = "barrier{cta:|.cta}"
_ALIGNED = "{aligned:|.aligned}"

FORMS = (
    Form(f"{_B}.sync", "b32 b32?", _barrier, "barrier", raw=True, sync=True),
    Form(f"{_B2}.sync{_ALIGNED}", "b32 b32?", _barrier, "barrier", raw=True, sync=True),
    Form(f"{_B}.arrive", "b32 b32", _arrive, "barrier", raw=True),
    Form(f"{_B2}.arrive{_ALIGNED}", "b32 b32", _arrive, "barrier", raw=True),
    Form(f"{_B}.red.{{what:popc}}.u32", "=u32 b32 pred pred?", _barrier_reduction, "barrier", raw=True, sync=True),
    Form(f"{_B}.red.{{what:and|or}}.pred", "=pred b32 pred pred?", _barrier_reduction, "barrier", raw=True, sync=True),
    Form(f"{_B2}.red.{{what:popc}}{_ALIGNED}.u32", "=u32 b32 pred pred?", _barrier_reduction, "barrier", raw=True,
         sync=True),
    Form(f"{_B2}.red.{{what:and|or}}{_ALIGNED}.pred", "=pred b32 pred pred?", _barrier_reduction, "barrier", raw=True,
         sync=True),
    Form("bar.warp.sync", "b32", _warp_barrier, "barrier", raw=True, sync=True),
    Form("activemask.b32", "=b32", _active, _G, raw=True, sync=True),
    Form("shfl.sync.{mode:up|down|bfly|idx}.b32", "=b32|pred b32 b32 b32 b32", _shuffle, _G, raw=True, sync=True),
    Form("vote.sync.{mode:any|all|uni}.pred", "=pred pred b32", _vote, _G, raw=True, sync=True),
    Form("vote.sync.{mode:ballot}.b32", "=b32 pred b32", _vote, _G, raw=True, sync=True),
    Form("match.{mode:any}.sync.{t:b32|b64}", "=b32 t b32", _match, _G, raw=True, sync=True, words=2),
    Form("match.{mode:all}.sync.{t:b32|b64}", "=b32|pred t b32", _match, _G, raw=True, sync=True, words=2),
    Form("redux.sync.{what:add|min|max}.{t:u32|s32}", "=t t b32", _redux, _G, raw=True, sync=True),
    Form("redux.sync.{what:and|or|xor}.{t:b32}", "=t t b32", _redux, _G, raw=True, sync=True),
)  # fmt: skip
