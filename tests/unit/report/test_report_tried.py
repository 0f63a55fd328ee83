"""What the report says of dimensions and values that were not tried."""

from dataclasses import replace
from decimal import Decimal

import msgspec
import numpy as np
import pytest
from trial_pieces import Trial, report_inputs
from trial_stories import STORIES

from kerneltrial.inputs.distributions import Span, draw_floats, draw_integers, integer_bounds
from kerneltrial.records.case import Cases, Distribution, Stored
from kerneltrial.records.contract import Range
from kerneltrial.records.lock import Lock
from kerneltrial.records.plan import DType, Scratch
from kerneltrial.records.sanitizer import BETWEEN_BLOCKS, CPU_DEVICE, TOOLS, not_run
from kerneltrial.records.validation import Validated
from kerneltrial.report.not_shown import not_shown, of_winner
from kerneltrial.report.texts import plain
from kerneltrial.report.tried import DRAWN, DRAWN_INTEGERS, domain_tried

GO = STORIES["go"]()


def said(trial: Trial, start: str) -> str:
    """The one sentence that starts so, or nothing."""
    found = [
        shown.sentence for shown in not_shown(report_inputs(trial), plain("en")) if shown.sentence.startswith(start)
    ]
    assert len(found) <= 1
    return found[0] if found else ""


def of_shapes(trial: Trial) -> str:
    return said(trial, "That a kernel is right in the largest shapes")


def of_values(trial: Trial) -> str:
    return said(trial, "That a kernel is right for every value.")


def contracted(**changes: object) -> Trial:
    lock: Lock = msgspec.structs.replace(GO.lock, contract=msgspec.structs.replace(GO.lock.contract, **changes))
    return replace(GO, lock=lock)


def test_the_largest_dimensions_that_ran_stand_beside_the_contracts() -> None:
    shown = of_shapes(GO)
    assert "of the best candidate" in shown
    assert "384 of 8,192 for M, 256 of 8,192 for N and 320 of 8,192 for K" in shown


def test_without_a_winner_they_are_the_baselines() -> None:
    assert "The largest that ran of the baseline" in of_shapes(STORIES["failures"]())


def test_only_dimensions_that_fall_short_are_named() -> None:
    spans = {"M": Range(minimum=1, maximum=400, multiple_of=128), "N": Range(minimum=1, maximum=257)}
    shown = of_shapes(contracted(dimensions={**spans, "K": Range(minimum=1, maximum=320)}))
    assert (
        "public cases, boundary shapes and far ones: 256 of 257 for N. Sealed" in shown
    )  # M: no multiple is above 384
    assert of_shapes(contracted(dimensions={name: Range(minimum=1, maximum=256) for name in "MNK"})) == ""


def test_a_case_without_a_draw_did_not_run() -> None:
    cases = tuple(
        msgspec.structs.replace(case, baseline=msgspec.structs.replace(case.baseline, draws=0))
        for case in GO.qualification.cases
        if case.case != "small_31x37x29"
    )
    small = next(case for case in GO.qualification.cases if case.case == "small_31x37x29")
    qualified = msgspec.structs.replace(GO.qualification, cases=(small, *cases))
    failed = STORIES["failures"]()
    assert "31 of 8,192 for M" in of_shapes(replace(failed, qualification=qualified))


def test_values_name_their_distributions_and_what_none_of_them_draws() -> None:
    shown = of_values(GO)
    assert "distributions named integers, normal, offset, wide and ties, and are of moderate size" in shown
    assert "minus infinity, subnormals, negative zero and magnitudes of float32 outside about 2^-20 to 2^20" in shown


def test_bounds_and_files_are_told() -> None:
    a, b, *others = GO.lock.contract.arguments
    low, high = Decimal(0), Decimal(1)
    one = contracted(arguments=(msgspec.structs.replace(a, low=low, high=high), b, *others))
    assert "low and high, and of moderate size where it lacks one" in of_values(one)
    both = contracted(arguments=tuple(msgspec.structs.replace(array, low=low, high=high) for array in (a, b)))
    assert (
        "low and high. Not tried on purpose: NaN, infinity, minus infinity, subnormals and negative zero"
        in of_values(both)
    )
    integers = contracted(arguments=(msgspec.structs.replace(a, dtype="int32"), *others))
    assert "tried on purpose: integers further than 32,768 from zero" in of_values(integers)
    read = msgspec.structs.replace(GO.lock.cases.cases[0], inputs={"A": Stored(path="a.npy", sha256="0" * 64)})
    lock = msgspec.structs.replace(GO.lock, cases=Cases(cases=(read,)))
    assert "or read from files" in of_values(replace(GO, lock=lock))


def test_special_values_that_the_contract_allows_are_named_as_tried() -> None:
    a, b, *others = GO.lock.contract.arguments
    masked = msgspec.structs.replace(a, specials=("-inf", "huge"))
    shown = of_values(contracted(arguments=(masked, b, *others)))
    assert "; in the draws named ties some are minus infinity and numbers near the largest. Not tried" in shown
    assert "NaN, infinity, minus infinity, subnormals, negative zero and magnitudes" in shown  # b has none
    each = tuple(msgspec.structs.replace(array, specials=("nan", "inf", "-inf", "subnormal")) for array in (a, b))
    shown = of_values(contracted(arguments=(*each, *others)))
    assert (
        "on purpose: negative zero and magnitudes of float32 outside about 2^-20 to 2^20, zero and the special" in shown
    )


# Draws in which numbers come as near to zero as chance has it.
ABOUT_ZERO = {Distribution.NORMAL, Distribution.SMALL, Distribution.OUTLIERS, Distribution.SMOOTH}


@pytest.mark.parametrize("dtype", DRAWN)
@pytest.mark.parametrize("sharp", [True, False])
def test_what_is_said_of_sizes_is_what_is_drawn(dtype: DType, sharp: bool) -> None:
    rng = np.random.Generator(np.random.PCG64(5))
    low, high = DRAWN[dtype]
    for distribution in Distribution:
        sizes = np.abs(draw_floats(distribution, dtype, Span((20_000,), 64, sharp), rng))
        assert np.isfinite(sizes).all()
        assert sizes.max() <= 2.0**high
        assert distribution in ABOUT_ZERO or sizes.min(where=sizes > 0, initial=1.0) >= 2.0**low


def test_integers_without_bounds_stay_near_zero_but_in_wide_draws() -> None:
    rng = np.random.Generator(np.random.PCG64(5))
    for distribution in set(Distribution) - {Distribution.WIDE}:
        bounds = integer_bounds(distribution, (None, None), (-(2**31), 2**31 - 1))
        drawn = draw_integers(distribution, bounds, Span((20_000,), 64, True), rng)
        assert np.abs(drawn).max() <= DRAWN_INTEGERS


def test_dimensions_that_were_large_alone_are_told() -> None:
    start = "That a kernel is right where several dimensions are large at once."
    usual = GO.qualification.cases[0].baseline
    far = msgspec.structs.replace(usual, case="far_K", dimensions={"M": 1, "N": 3, "K": 8192}, draws=1)
    assert not any(line.startswith(start) for line in domain_tried(GO.lock, (usual,), "the baseline"))
    told = [line for line in domain_tried(GO.lock, (usual, far), "the baseline") if line.startswith(start)]
    assert len(told) == 1
    assert told[0].endswith("beside small ones and with one draw of values.")


@pytest.mark.parametrize(("initial", "told"), [("uninitialised", True), ("zeroed", False), (None, False)])
def test_what_scratch_of_the_best_candidate_may_keep_within_a_batch_is_said(initial: str | None, told: bool) -> None:
    inputs = report_inputs(GO)
    best = inputs.best
    kept = (Scratch(name="s", dtype="float32", elements="16", initial=initial),) if initial else ()
    plan = msgspec.structs.replace(best.plan, scratch=kept)
    inputs.candidates[best.id] = msgspec.structs.replace(best, plan=plan)
    sentences = [shown.sentence for shown in not_shown(inputs, plain("en"))]
    assert any("through scratch of its own" in sentence for sentence in sentences) is told


def test_what_compute_sanitizer_saw_of_the_winner_is_not_called_unseen() -> None:
    confirmation = GO.confirmation
    valid = Validated(candidate="a" * 64, cases=(), checks=(), unchecked=tuple(not_run(tool) for tool in TOOLS))
    assert list(of_winner(valid, confirmation)) == list(valid.unchecked)
    absent = not_run("synccheck", "it did not end within 60 s")
    looked = msgspec.structs.replace(confirmation, checks=TOOLS[:3], unchecked=(absent,))
    assert list(of_winner(valid, looked)) == [absent]


def test_what_the_cpu_device_saw_of_the_winner_is_not_called_unseen() -> None:
    valid = Validated(candidate="a" * 64, cases=(), checks=(), unchecked=(BETWEEN_BLOCKS,))
    for checks, left in ((TOOLS, [BETWEEN_BLOCKS]), ((*TOOLS, CPU_DEVICE), [])):
        looked = msgspec.structs.replace(GO.confirmation, checks=checks, unchecked=())
        assert list(of_winner(valid, looked)) == left
