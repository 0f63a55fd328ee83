"""Validation of candidates by a runner that calls Python functions: which reason each kind of fault gets."""

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from judge_doubles import Arrays, FakeRunner, binary, built, cases, contract, multiply, plan, setup, subject

from kerneltrial.devices.device import Conditions
from kerneltrial.judge.levels import Levels, Sized, left_out
from kerneltrial.judge.setup import JudgeProblem
from kerneltrial.judge.validation import Judge
from kerneltrial.records.case import Case, Cases
from kerneltrial.records.contract import Range
from kerneltrial.records.plan import LaunchPlan, Scratch
from kerneltrial.records.protocol import Protocol
from kerneltrial.records.reason import Finding, Reason
from kerneltrial.records.screening import Screening
from kerneltrial.records.validation import Invalid, Unchecked, Validated

State = dict[str, Any]


def judged(folder: Path, kernel: Any, a_plan: LaunchPlan | None = None, **changes: Any) -> Any:
    judge = Judge(setup(folder, **changes))
    return judge.judge_candidate(built(), binary(), a_plan or plan(), FakeRunner(kernel))


def test_an_honest_kernel_is_valid(tmp_path: Path) -> None:
    outcome = judged(tmp_path, multiply)
    assert isinstance(outcome, Validated)
    assert [v.draws for v in outcome.cases] == [5] * 6 + [1] * 6  # and far shapes once
    assert all(v.valid and not v.findings for v in outcome.cases)
    assert {"oracle", "two_poisons", "history", "screen", "device:all"} <= set(outcome.checks)
    assert [finding.detail for finding in outcome.unchecked] == [
        "races, reads of memory that was never written, barriers that not all threads reach, in middle_k, middle_m, "
        "middle_n, far_m, far_n, far_k: too large to look at"
    ]


def test_another_order_of_sums_is_valid(tmp_path: Path) -> None:
    def split(inputs: Arrays, buffers: Arrays, state: State) -> None:
        half = inputs["A"].shape[1] // 2
        buffers["C"][:] = inputs["A"][:, half:] @ inputs["B"][half:] + inputs["A"][:, :half] @ inputs["B"][:half]

    assert isinstance(judged(tmp_path, split), Validated)


def last_row_unwritten(inputs: Arrays, buffers: Arrays, state: State) -> None:
    buffers["C"][:-1] = (inputs["A"] @ inputs["B"])[:-1]


def nothing_written(inputs: Arrays, buffers: Arrays, state: State) -> None:
    pass


def adds_to_output(inputs: Arrays, buffers: Arrays, state: State) -> None:
    buffers["C"][:] = np.abs(buffers["C"] * np.float32(0)) + inputs["A"] @ inputs["B"]


def zeros(inputs: Arrays, buffers: Arrays, state: State) -> None:
    buffers["C"][:] = 0


def nan_everywhere(inputs: Arrays, buffers: Arrays, state: State) -> None:
    buffers["C"][:] = np.nan


def in_half(inputs: Arrays, buffers: Arrays, state: State) -> None:
    buffers["C"][:] = inputs["A"].astype(np.float16).astype(np.float32) @ inputs["B"]


def shape_known_by_heart(inputs: Arrays, buffers: Arrays, state: State) -> None:
    if inputs["A"].shape == (8, 9):
        multiply(inputs, buffers, state)
    else:
        buffers["C"][:] = 1


def right_for_one_draw(inputs: Arrays, buffers: Arrays, state: State) -> None:
    buffers["C"][:] = (inputs["A"] @ inputs["B"]) * np.float32(np.abs(inputs["A"]).max() < 100)


def counts_calls(inputs: Arrays, buffers: Arrays, state: State) -> None:
    state["calls"] = state.get("calls", 0) + 1
    multiply(inputs, buffers, state)
    if state["calls"] > 5:
        buffers["C"][0] += np.float32(1e-7)


def knows_addresses(inputs: Arrays, buffers: Arrays, state: State) -> None:
    multiply(inputs, buffers, state)
    buffers["C"][0] += np.float32(state["conditions"].offset_bytes)


def remembers_an_earlier_shape(inputs: Arrays, buffers: Arrays, state: State) -> None:
    """Gives one ULP more where a larger shape has been seen: within tolerance, but not the same bytes."""
    size = inputs["A"].size
    state["largest"] = max(state.get("largest", 0), size)
    multiply(inputs, buffers, state)
    if state["largest"] > size:
        buffers["C"][:] = np.nextafter(buffers["C"], np.float32(np.inf))


@pytest.mark.parametrize(
    ("kernel", "reason"),
    [
        (last_row_unwritten, Reason.OUTPUT_NOT_WRITTEN),
        (nothing_written, Reason.OUTPUT_NOT_WRITTEN),
        (adds_to_output, Reason.OUTPUT_NOT_WRITTEN),
        (zeros, Reason.WRONG_VALUES),
        (nan_everywhere, Reason.WRONG_NONFINITE),
        (in_half, Reason.WRONG_VALUES),
        (shape_known_by_heart, Reason.WRONG_VALUES),
        (right_for_one_draw, Reason.WRONG_VALUES),
        (counts_calls, Reason.NOT_DETERMINISTIC),
        (knows_addresses, Reason.OUTPUT_NOT_WRITTEN),
        (remembers_an_earlier_shape, Reason.NOT_DETERMINISTIC),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_a_fault_has_its_reason(tmp_path: Path, kernel: Any, reason: Reason) -> None:
    outcome = judged(tmp_path, kernel)
    assert isinstance(outcome, Invalid), outcome
    assert outcome.reason is reason, outcome.detail


def test_the_unwritten_part_is_named(tmp_path: Path) -> None:
    outcome = judged(tmp_path, last_row_unwritten, cases=cases((8, 7, 9)), protocol=Protocol(boundary_shapes=0))
    assert "7 of 56 elements were not written (the last row)" in outcome.detail
    assert outcome.cases[-1].findings[0].reason is Reason.OUTPUT_NOT_WRITTEN
    assert not outcome.cases[-1].valid


def test_a_wide_tolerance_does_not_hide_half_precision(tmp_path: Path) -> None:
    from decimal import Decimal

    from kerneltrial.records.contract import Tolerance

    loose = contract(tolerances={"C": Tolerance(relative=Decimal("0.01"), scaled=Decimal(100_000))})
    outcome = judged(tmp_path, in_half, contract=loose)
    assert isinstance(outcome, Invalid)
    assert outcome.reason is Reason.PRECISION_LOSS


def test_a_nondeterministic_contract_takes_an_envelope(tmp_path: Path) -> None:
    def wobbles(inputs: Arrays, buffers: Arrays, state: State) -> None:
        multiply(inputs, buffers, state)
        state["up"] = not state.get("up", False)
        buffers["C"] *= np.float32(1 + 2.0**-23 if state["up"] else 1 - 2.0**-24)

    assert judged(tmp_path, wobbles).reason is Reason.NOT_DETERMINISTIC
    assert isinstance(judged(tmp_path, wobbles, contract=contract(deterministic=False)), Validated)
    unwritten = judged(tmp_path, last_row_unwritten, contract=contract(deterministic=False))
    assert unwritten.reason is Reason.OUTPUT_NOT_WRITTEN


@pytest.mark.parametrize(
    ("flag", "reason"),
    [
        ("inputs_intact", Reason.INPUT_CHANGED),
        ("guards_intact", Reason.GUARD_OVERWRITTEN),
        ("scratch_restored", Reason.NOT_DETERMINISTIC),
    ],
)
def test_what_the_device_saw_beside_outputs_counts(tmp_path: Path, flag: str, reason: Reason) -> None:
    runner = FakeRunner()
    runner.flags[flag] = False
    outcome = Judge(setup(tmp_path)).judge_candidate(built(), binary(), plan(), runner)
    assert isinstance(outcome, Invalid)
    assert outcome.reason is reason


def test_uninitialised_scratch_is_poisoned_too(tmp_path: Path) -> None:
    scratch = (Scratch(name="W", dtype="float32", elements="m", initial="uninitialised"),)

    def trusts_scratch(inputs: Arrays, buffers: Arrays, state: State) -> None:
        multiply(inputs, buffers, state)
        buffers["C"][:, 0] += np.where(buffers["W"] > 1, np.float32(1), np.float32(0))

    outcome = judged(tmp_path, trusts_scratch, plan(scratch=scratch))
    assert outcome.reason is Reason.OUTPUT_NOT_WRITTEN
    assert "scratch" in outcome.detail


def finding(reason: Reason) -> Finding:
    return Finding(reason=reason, detail="as the device says")


def test_a_finding_of_the_device_ends_it(tmp_path: Path) -> None:
    outcome = judged(tmp_path, lambda *_: finding(Reason.OUT_OF_BOUNDS))
    assert isinstance(outcome, Invalid)
    assert outcome.reason is Reason.OUT_OF_BOUNDS


@pytest.mark.parametrize("reason", [Reason.RUNNER_DIED, Reason.OUT_OF_MEMORY, Reason.UNSUPPORTED_INSTRUCTION])
def test_what_is_not_the_candidates_fault_is_unchecked(tmp_path: Path, reason: Reason) -> None:
    outcome = judged(tmp_path, lambda *_: finding(reason))
    assert isinstance(outcome, Unchecked)
    assert outcome.reason is reason


def test_a_lost_device_stops_the_stage(tmp_path: Path) -> None:
    with pytest.raises(JudgeProblem, match="lost"):
        judged(tmp_path, lambda *_: finding(Reason.DEVICE_LOST))


def test_a_refusal_goes_by_its_class(tmp_path: Path) -> None:
    judge = Judge(setup(tmp_path))
    refusing = FakeRunner(refuses=finding(Reason.UNSUPPORTED_INSTRUCTION))
    assert isinstance(judge.judge_candidate(built(), binary(), plan(), refusing), Unchecked)
    failing = FakeRunner(refuses=finding(Reason.LAUNCH_FAILED))
    assert isinstance(judge.judge_candidate(built(), binary(), plan(), failing), Invalid)


def test_a_plan_without_a_launch_for_a_shape_is_invalid(tmp_path: Path) -> None:
    outcome = judged(tmp_path, multiply, plan(when="m == 8"))
    assert isinstance(outcome, Invalid)
    assert outcome.reason is Reason.NO_LAUNCH_FOR_SHAPE


@pytest.mark.parametrize("when", ["m <= 48", "m != 511", "m * n <= 261000", "k % 2 == 1"])
def test_a_plan_has_to_answer_the_whole_domain(tmp_path: Path, when: str) -> None:
    """Also shapes that no case has: nothing is run for that."""
    runner = FakeRunner()
    narrow = contract(dimensions={name: Range(minimum=1, maximum=511 if name == "m" else 512) for name in "mnk"})
    judge = Judge(setup(tmp_path, contract=narrow, protocol=Protocol(boundary_shapes=0)))
    outcome = judge.judge_candidate(built(), binary(), plan(when=when), runner)
    assert isinstance(outcome, Invalid)
    assert outcome.reason is Reason.NO_LAUNCH_FOR_SHAPE
    assert runner.loaded == 0


def test_the_domain_keeps_to_multiples(tmp_path: Path) -> None:
    multiples = contract(dimensions={name: Range(minimum=1, maximum=510, multiple_of=8) for name in "mnk"})
    judge = Judge(setup(tmp_path, contract=multiples, cases=cases((8, 16, 8)), protocol=Protocol(boundary_shapes=0)))
    outcome = judge.judge_candidate(built(), binary(), plan(when="m % 8 == 0 and n <= 504"), FakeRunner())
    assert isinstance(outcome, Validated)


def test_a_screened_binary_never_runs(tmp_path: Path) -> None:
    runner = FakeRunner()
    ptx = ".visible .entry k() {\n .reg .u32 %r<2>;\n mov.u32 %r1, %clock;\n ret;\n}\n"
    outcome = Judge(setup(tmp_path)).judge_candidate(built(), binary(ptx), plan(), runner)
    assert outcome.reason is Reason.FORBIDDEN_INSTRUCTION
    assert runner.loaded == 0


SMID = ".visible .entry k() {\n .reg .u32 %r<2>;\n mov.u32 %r1, %smid;\n ret;\n}\n"


def test_what_a_person_must_look_at_is_judged_and_stays_unchecked(tmp_path: Path) -> None:
    right = Judge(setup(tmp_path)).judge_candidate(built(), binary(SMID), plan(), FakeRunner())
    assert isinstance(right, Unchecked)
    assert right.reason is Reason.NEEDS_REVIEW
    assert "placement: line 3: reads %smid" in right.detail
    wrong = Judge(setup(tmp_path)).judge_candidate(built(), binary(SMID), plan(), FakeRunner(zeros))
    assert isinstance(wrong, Invalid)
    assert wrong.reason is Reason.WRONG_VALUES


def test_what_the_trial_allows_is_valid(tmp_path: Path) -> None:
    allowed = Protocol(screening=Screening(placement="allow"))
    outcome = Judge(setup(tmp_path, protocol=allowed)).judge_candidate(built(), binary(SMID), plan(), FakeRunner())
    assert isinstance(outcome, Validated)


def test_what_was_not_looked_at_is_told(tmp_path: Path) -> None:
    absent = finding(Reason.CHECK_ABSENT)
    runner = FakeRunner(unchecked=(absent,))
    outcome = Judge(setup(tmp_path)).judge_candidate(built(), binary(), plan(), runner)
    assert isinstance(outcome, Validated)
    assert outcome.unchecked[0] == absent


def test_a_kernel_that_knows_the_constant_poisons_is_caught(tmp_path: Path) -> None:
    """It works where it sees a poison that is one byte repeated, and leaves everything else as it is."""

    def leaves_what_it_does_not_know(inputs: Arrays, buffers: Arrays, state: State) -> None:
        known = np.isin(buffers["C"].view(np.uint32), (0xFFFFFFFF, 0x7B7B7B7B))
        buffers["C"][known] = (inputs["A"] @ inputs["B"])[known]

    outcome = judged(tmp_path, leaves_what_it_does_not_know)
    assert isinstance(outcome, Invalid)
    assert outcome.reason is Reason.OUTPUT_NOT_WRITTEN


def test_a_sum_in_the_order_of_blocks_is_not_deterministic(tmp_path: Path) -> None:
    def in_turn(inputs: Arrays, buffers: Arrays, state: State) -> None:
        turned = slice(None, None, -1) if state["conditions"].order == "backward" else slice(None)
        terms = np.einsum("ik,kj->kij", inputs["A"], inputs["B"])[turned]
        buffers["C"][:] = 0
        for term in terms:
            buffers["C"][:] += term

    outcome = judged(tmp_path, in_turn)
    assert isinstance(outcome, Invalid)
    assert outcome.reason is Reason.NOT_DETERMINISTIC
    assert "hang on the order in which blocks or threads run" in outcome.detail


def test_a_block_that_waits_for_an_earlier_one_is_judged_forward_only_and_that_is_told(tmp_path: Path) -> None:
    def look_back(inputs: Arrays, buffers: Arrays, state: State) -> Finding | None:
        if state["conditions"].order == "backward":
            return finding(Reason.ENDLESS_LOOP)
        multiply(inputs, buffers, state)
        return None

    runner = FakeRunner(look_back)
    outcome = Judge(setup(tmp_path)).judge_candidate(built(), binary(), plan(), runner)
    assert isinstance(outcome, Validated)
    assert [f.reason for f in outcome.unchecked] == [Reason.CHECK_ABSENT] * 2  # and far shapes, looked at for bounds
    assert "order of blocks" in outcome.unchecked[0].detail
    assert [c.order for c in runner.conditions].count("backward") == 1


def test_backward_gets_less_and_still_enough_for_many_threads_with_little_work(tmp_path: Path) -> None:
    runner = FakeRunner()
    Judge(setup(tmp_path, contract=contract(operations="1"))).judge_candidate(built(), binary(), plan(), runner)
    backward = [c.budget_instructions for c in runner.conditions if c.order == "backward"]
    assert 10_000_000 + 100 + 4000 * 16 * 16 in backward  # a block of one thread for each element of the larger case
    assert max(backward) < Protocol().budget_instructions


def test_a_loop_without_end_is_one_in_either_order(tmp_path: Path) -> None:
    outcome = judged(tmp_path, lambda *_: finding(Reason.ENDLESS_LOOP))
    assert isinstance(outcome, Invalid)
    assert outcome.reason is Reason.ENDLESS_LOOP


def test_poisons_are_the_same_in_the_same_trial_and_others_elsewhere(tmp_path: Path) -> None:
    def seen(seed: int) -> list[Conditions]:
        runner = FakeRunner()
        judge = Judge(setup(tmp_path, seed=seed, protocol=Protocol(boundary_shapes=0)))
        judge.judge_candidate(built(), binary(), plan(), runner)
        return runner.conditions

    first, again, other = seen(1), seen(1), seen(2)
    assert first == again
    assert {c.seed for c in first}.isdisjoint(c.seed for c in other)
    plain = [c.seed for c in first if c.poison == "plain"]
    assert len(plain) == len(set(plain)) == 4  # two cases, draws 1 and 3


def test_large_cases_are_run_with_bounds_only_and_that_is_told(tmp_path: Path) -> None:
    runner = FakeRunner()
    judge = Judge(setup(tmp_path, cases=cases((8, 7, 9), (256, 256, 128))))
    outcome = judge.judge_candidate(built(), binary(), plan(), runner)
    assert isinstance(outcome, Validated)
    assert [f.reason for f in outcome.unchecked] == [Reason.CHECK_ABSENT]
    assert "case_1" in outcome.unchecked[0].detail
    levels = [c.checks for c in runner.conditions]
    assert levels.count("all") == 10 * 5 + 1  # the small case and four boundary shapes, each draw twice; and history
    assert {c.poison for c in runner.conditions} == {"nan", "huge", "plain"}
    assert len({c.offset_bytes for c in runner.conditions}) == 2


@pytest.mark.parametrize(
    ("every", "once", "told"),
    [
        ("", "", ["in any case: too large"]),
        ("ab", "", []),
        ("a", "", ["in b: too large"]),
        ("a", "b", ["in b beyond the first run: large"]),
        ("", "a", ["in b: too large", "in a beyond the first run: large"]),
    ],
)
def test_what_only_bounds_were_looked_at_for_is_said_once_with_its_cases(
    every: str, once: str, told: list[str]
) -> None:
    call = subject().call(contract(), {"m": 1, "n": 1, "k": 1})
    sized = [Sized(case=name, operations=1, call=call) for name in "ab"]
    found = left_out(sized, Levels(every=frozenset(every), once=frozenset(once)))
    assert [f.detail.startswith("races, reads of memory") for f in found] == [True] * len(told)
    assert all(words in f.detail for words, f in zip(told, found, strict=True))


def test_kernels_of_large_shapes_only_are_looked_at_closely_once(tmp_path: Path) -> None:
    small, large = plan(when="m < 100").variants[0], plan().variants[0]
    other = with_entry(large, "wide")
    runner = FakeRunner()
    judge = Judge(
        setup(tmp_path, cases=cases((8, 7, 9), (256, 256, 128), (256, 256, 256)), protocol=Protocol(boundary_shapes=0))
    )
    outcome = judge.judge_candidate(built(), binary(), LaunchPlan(variants=(small, other)), runner)
    assert isinstance(outcome, Validated)
    assert [c.checks for c in runner.conditions].count("all") == 10 + 1 + 1
    assert len(outcome.unchecked) == 2


def with_entry(variant: Any, entry: str) -> Any:
    import msgspec

    launch = msgspec.structs.replace(variant.launches[0], entry=entry)
    return msgspec.structs.replace(variant, launches=(launch,))


def test_cheap_cases_come_first(tmp_path: Path) -> None:
    judge = Judge(setup(tmp_path, cases=cases((100, 60, 60), (3, 3, 3)), protocol=Protocol(boundary_shapes=0)))
    outcome = judge.judge_candidate(built(), binary(), plan(), FakeRunner())
    assert [v.case for v in outcome.cases] == ["case_1", "case_0"]


def test_answers_are_worked_out_once_for_all_candidates(tmp_path: Path) -> None:
    judge = Judge(setup(tmp_path))
    baseline = judge.setup.baseline.runner
    assert isinstance(baseline, FakeRunner)
    for _ in range(3):
        assert isinstance(judge.judge_candidate(built(), binary(), plan(), FakeRunner()), Validated)
    assert len(baseline.conditions) == 6 * 5 + 6
    assert baseline.loaded == 1


def test_a_failing_baseline_is_no_fault_of_the_candidate(tmp_path: Path) -> None:
    broken = subject(lambda *_: finding(Reason.OUT_OF_BOUNDS))
    with pytest.raises(JudgeProblem, match="baseline"):
        judged(tmp_path, multiply, baseline=broken)


def test_more_repeats_make_more_runs(tmp_path: Path) -> None:
    runner = FakeRunner()
    single = Cases(cases=(Case(name="one", kind="correctness", dimensions={"m": 2, "n": 3, "k": 4}),))
    protocol = Protocol(boundary_shapes=0, repeats=4)
    Judge(setup(tmp_path, cases=single, protocol=protocol)).judge_candidate(built(), binary(), plan(), runner)
    assert len(runner.conditions) == 4 * 5 + 1  # and once more for the history over shapes


@pytest.mark.parametrize("axis", [(0, "A", 0), (1, "B", 1), (2, "A", 1)])
def test_a_kernel_that_is_wrong_above_every_case_is_wrong(tmp_path: Path, axis: tuple[int, str, int]) -> None:
    place, name, at = axis

    def short(inputs: Any, buffers: Any, state: State) -> None:
        multiply(inputs, buffers, state)
        if inputs[name].shape[at] > 7000:
            buffers["C"][:] = 0

    large = contract(dimensions={name: Range(minimum=1, maximum=8192) for name in "mnk"})
    outcome = judged(tmp_path, short, contract=large)
    assert isinstance(outcome, Invalid)
    assert outcome.cases[-1].case == f"far_{'mnk'[place]}"
    assert outcome.cases[-1].dimensions["mnk"[place]] == 8192


def test_sizes_that_no_shape_reaches_are_told(tmp_path: Path) -> None:
    vast = contract(dimensions={name: Range(minimum=1, maximum=10**8 if name == "k" else 512) for name in "mnk"})
    outcome = judged(tmp_path, multiply, contract=vast)
    assert isinstance(outcome, Validated)
    assert re.search(r"k above [0-9,]{6,9} \(the contract allows 100,000,000\)$", outcome.unchecked[-1].detail)
    assert outcome.unchecked[-1].reason is Reason.CHECK_ABSENT


def test_a_kernel_for_far_shapes_alone_is_looked_at_closely_once(tmp_path: Path) -> None:
    large = contract(dimensions={name: Range(minimum=1, maximum=4096) for name in "mnk"})
    near, far = plan(when="k <= 1035").variants[0], with_entry(plan().variants[0], "far")
    runner = FakeRunner()
    judge = Judge(setup(tmp_path, contract=large))
    outcome = judge.judge_candidate(built(), binary(), LaunchPlan(variants=(near, far)), runner)
    assert isinstance(outcome, Validated)
    closely = [c.checks for c in runner.conditions[60:]].count("all")
    assert closely >= 1


def test_too_much_work_in_a_far_shape_does_not_count_against_a_candidate(tmp_path: Path) -> None:
    def slow(inputs: Arrays, buffers: Arrays, state: State) -> Finding | None:
        multiply(inputs, buffers, state)
        return finding(Reason.ENDLESS_LOOP) if max(inputs["A"].shape) == 512 else None

    outcome = judged(tmp_path, slow)
    assert isinstance(outcome, Unchecked)
    assert outcome.reason is Reason.CHECK_ABSENT
    assert "far_m" in outcome.detail


def test_a_fault_names_its_case_and_dimensions(tmp_path: Path) -> None:
    def strays(inputs: Arrays, buffers: Arrays, state: State) -> Finding | None:
        multiply(inputs, buffers, state)
        return finding(Reason.OUT_OF_BOUNDS) if inputs["A"].shape == (8, 9) else None

    outcome = judged(tmp_path, strays)
    assert isinstance(outcome, Invalid)
    assert outcome.detail == f"case case_0 (m=8, n=7, k=9): {finding(Reason.OUT_OF_BOUNDS).detail}"
    assert judged(tmp_path, zeros).detail.startswith("case boundary_1 (m=1, n=1, k=1): ")
