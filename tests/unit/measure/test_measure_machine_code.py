"""The bench that reads machine code: what it takes from nvdisasm, and what its model says of loops that are plain."""

import pytest
from machine_code import inner_loops, instructions
from machine_code_model import Instruction, rate

# As nvdisasm 13.5 prints a loop of the shipped space, shortened.
TEXT = """matmul_whole:
.L_x_0:
        /*0ff0*/                   LDS.128 R28, [R105+0x210] ;                        /* 0x00021000691c7984 */
                                                                                      /* 0x000fe20000000c00 */
        /*1000*/                   FFMA R23, R39.reuse, R79, R23 ;                    /* 0x0000004f27177223 */
                                                                                      /* 0x080fe20000000017 */
        /*1010*/              @!P0 BRA `(.L_x_0) ;                                    /* 0xfffffffc00f88947 */
                                                                                      /* 0x000fec000383ffff */
"""


def ffma(target: int, *sources: str) -> Instruction:
    return Instruction("FFMA", ", ".join([f"R{target}", *sources]))


def test_instructions_carry_what_the_compiler_tells_the_scheduler() -> None:
    code, labels = instructions(TEXT)
    assert [i.kind for i in code] == ["LDS", "FFMA", "BRA"]
    assert labels == {".L_x_0": 0}
    assert code[1].reads == ((0, 39, True), (1, 79, False), (2, 23, False))
    assert [i.stall for i in code] == [1, 1, 6]
    assert code[0].sets == (7, 7)


def test_a_loop_counts_where_it_holds_multiply_adds_enough_and_no_other_loop() -> None:
    body = [ffma(4, "R1", "R2", "R3")] * 100
    code = [*body, Instruction("BRA", "`(.L_1)"), *body, Instruction("BRA", "`(.L_0)")]
    assert [len(loop) for loop in inner_loops(code, {".L_0": 0, ".L_1": 0})] == [101]
    assert inner_loops(code[:50], {".L_0": 0}) == []


@pytest.mark.parametrize(
    ("loop", "window", "expected"),
    [
        ([ffma(9, "R1.reuse", "R2", "R5")] * 64, True, 1.0),  # one register of each bank, one kept
        ([ffma(9, "R1", "R3", "R5")] * 64, True, 1 / 3),  # three of one bank
        ([ffma(9, "R8.reuse", "R1", "R5"), ffma(8, "R8.reuse", "R2", "R4")] * 32, True, 1.0),  # pairs by turns
        ([ffma(9, "R8.reuse", "R1", "R5"), ffma(8, "R8.reuse", "R2", "R4")] * 32, False, 1 / 2),
    ],
)
def test_two_banks_give_one_register_each_a_cycle(loop: list[Instruction], window: bool, expected: float) -> None:
    assert rate(loop, (1, 2), window=window) == pytest.approx(expected, rel=0.03)


def test_four_quarters_share_the_passes_of_shared_memory() -> None:
    loop = [Instruction("LDS.128", "R20, [R8]"), *[ffma(9, "R1.reuse", "R2", "R5")] * 8] * 40
    assert rate(loop, (1, 1), passes=2) == pytest.approx(8 / 9, rel=0.03)
    assert rate(loop, (1, 1), passes=4) == pytest.approx(8 / 16, rel=0.05)


def test_a_warp_waits_for_what_it_loads_and_another_fills_in() -> None:
    load = Instruction("LDS.128", "R20, [R8]", sets=(0, 7))
    use = Instruction("FFMA", "R9, R1.reuse, R2, R5", waits=(0,))
    loop = [load, use, *[ffma(9, "R1.reuse", "R2", "R5")] * 30]
    assert rate(loop, (4, 1)) > 1.5 * rate(loop, (1, 1))
