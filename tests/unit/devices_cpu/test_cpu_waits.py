"""What a thread keeps of its registers while it waits."""

import numpy as np
import pytest
from ptx_runner import HEADER, call_of, out, output, run

from kerneltrial.devices.cpu.flow import analyse, bits
from kerneltrial.devices.cpu.inline import flatten
from kerneltrial.devices.cpu.parser import parse
from kerneltrial.devices.cpu.spilling import kept_in_context

KERNEL = """
.visible .entry kern(.param .u64 py) {{
  .reg .b64 %y, %o; .reg .b32 %t, %b, %once, %twice, %k, %r<9>; .reg .pred %p<4>;
  ld.param.u64 %y, [py];
  mov.u32 %t, %tid.x; mov.u32 %b, %ctaid.x; mad.lo.u32 %r0, %b, 32, %t;
  mul.wide.u32 %o, %r0, 4; add.s64 %y, %y, %o;
  {body}
  ret;
}}"""

MAYBE = """
  setp.ne.u32 %p0, %b, 0;
  @%p0 bra SKIP;
  add.u32 %once, %t, 77;
SKIP:
  bar.sync 0;
  st.global.u32 [%y], %once;
"""
GUARDED = """
  setp.eq.u32 %p0, %b, 0;
  @%p0 add.u32 %once, %t, 77;
  bar.sync 0;
  st.global.u32 [%y], %once;
"""
LOOP = """
  mov.u32 %twice, 0; mov.u32 %k, 0;
AGAIN:
  mad.lo.u32 %once, %k, %t, %b;
  setp.gt.u32 %p1, %once, 40;
  bar.sync 0;
  add.u32 %twice, %twice, %once;
  @%p1 add.u32 %twice, %twice, 1000;
  add.u32 %k, %k, 1;
  setp.lt.u32 %p2, %k, 5;
  @%p2 bra AGAIN;
  st.global.u32 [%y], %twice;
"""

JOINED = """
  add.u32 %once, %t, 5;
  setp.ne.u32 %p0, %b, 0;
  @%p0 bra FAR;
JOIN:
  st.global.u32 [%y], %once;
  bra END;
FAR:
  bar.sync 0;
  bra JOIN;
END:
"""


def _run(body: str, checks: str, poison: str = "nan") -> np.ndarray:
    call = call_of([out("y", "uint32", 64)], (2,), (32,))
    done = run(HEADER + KERNEL.format(body=body), call, {}, checks=checks, poison=poison)
    assert done.completed, done.findings
    return output(done, "y", "uint32").reshape(2, 32)


@pytest.mark.parametrize("checks", ["bounds", "all"])
@pytest.mark.parametrize("body", [MAYBE, GUARDED], ids=["branch", "guard"])
@pytest.mark.parametrize(("poison", "held"), [("nan", 0x7FFF7FFF), ("huge", 0x7B7A7B7A), ("plain", 0xFB7BFB7B)])
def test_what_was_never_written_holds_poison_in_every_block(body: str, checks: str, poison: str, held: int) -> None:
    """The first block writes it; the second has the same contexts."""
    first, second = _run(body, checks, poison)
    assert np.array_equal(first, np.arange(77, 109))
    assert (second == held).all()


@pytest.mark.parametrize("checks", ["bounds", "all"])
def test_values_and_predicates_outlive_waits_in_a_loop(checks: str) -> None:
    b, t, k = np.ogrid[:2, :32, :5]
    once = k * t + b
    assert np.array_equal(_run(LOOP, checks), (once + 1000 * (once > 40)).sum(2))


@pytest.mark.parametrize("checks", ["bounds", "all"])
def test_a_way_with_a_wait_joins_one_without(checks: str) -> None:
    assert np.array_equal(_run(JOINED, checks), np.tile(np.arange(5, 37), (2, 1)))


def test_which_registers_lie_in_the_context_alone() -> None:
    """Written once, read behind a wait, and never before they are written: of the loop %t, %b, %once and %p1."""
    for body, expected in ((MAYBE, []), (GUARDED, []), (LOOP, ["b32", "b32", "b32", "pred"])):
        module = parse(HEADER + KERNEL.format(body=body))
        function = flatten(module, module.functions["kern"])
        kept = bits(kept_in_context(analyse(function)))
        assert sorted(function.registers[register] for register in kept) == expected
