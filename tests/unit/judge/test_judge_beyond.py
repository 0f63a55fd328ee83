"""One case of more elements than an index of 32 bits counts, here with a smaller number in its place."""

import numpy as np
import pytest
from judge_doubles import FakeRunner, binary, built, contract, multiply, plan, setup, subject

from kerneltrial.devices import messages
from kerneltrial.inputs import values
from kerneltrial.inputs.beyond import beyond, bytes_of
from kerneltrial.inputs.calls import Buffer, Call
from kerneltrial.inputs.dtypes import numpy_dtype
from kerneltrial.judge.beyond import CHECK, Room
from kerneltrial.judge.validation import Further, Judge
from kerneltrial.records.case import Case
from kerneltrial.records.contract import Array, Range
from kerneltrial.records.reason import Finding, Reason
from kerneltrial.records.validation import Invalid, Validated

ENOUGH = Room(host_bytes=1 << 40, device_bytes=1 << 40, elements=5000)
TALL = {
    "m": Range(minimum=1, maximum=100),
    "n": Range(minimum=1, maximum=3),
    "k": Range(minimum=4, maximum=64, multiple_of=4),
}


def test_the_case_is_the_cheapest_with_an_array_that_is_large_enough():
    case = beyond(contract(), 7, 5000)
    m, n, k = (case.dimensions[name] for name in "mnk")
    assert max(m * n, m * k, k * n) > 5000
    assert max((m - 1) * n, (m - 1) * k) <= 5000 or max(m * (n - 1), k * (n - 1)) <= 5000 or m * (k - 1) <= 5000
    assert min(m, n, k) == 1  # two dimensions are enough
    assert bytes_of(contract(), case)[1] == 4 * max(m * n, m * k, k * n)
    assert beyond(contract(), 7) is None  # 512 times 512 ends below 2**31


def test_ranges_and_multiples_are_kept():
    case = beyond(contract(dimensions=TALL), 0, 5000)
    assert case.dimensions["k"] % 4 == 0
    assert all(TALL[name].minimum <= size <= TALL[name].maximum for name, size in case.dimensions.items())
    assert case.dimensions["m"] * case.dimensions["k"] > 5000
    assert beyond(contract(dimensions=TALL), 0, 6400) is None


def judged(tmp_path, kernel, room=ENOUGH, **changes):
    judge = Judge(setup(tmp_path, **changes))
    return judge.judge_candidate(built(), binary(), plan(), FakeRunner(kernel), Further(room=room))


def wraps(inputs, buffers, state):
    """Right as long as no array is large."""
    multiply(inputs, buffers, state)
    if max(inputs["A"].size, inputs["B"].size, buffers["C"].size) > 5000:
        buffers["C"].reshape(-1)[-1] += 1


def test_a_kernel_that_is_wrong_there_alone_is_refused_and_told_where(tmp_path):
    assert isinstance(judged(tmp_path, wraps, None), Validated)
    outcome = judged(tmp_path, wraps)
    assert isinstance(outcome, Invalid)
    assert outcome.reason is Reason.WRONG_VALUES
    assert outcome.detail.startswith("case beyond_int32 (")
    assert outcome.cases[-1].case == "beyond_int32"


def test_a_right_one_has_a_check_more(tmp_path):
    outcome = judged(tmp_path, multiply)
    assert isinstance(outcome, Validated)
    assert outcome.checks[-1] == CHECK
    assert outcome.cases[-1].valid


@pytest.mark.parametrize(
    ("room", "words"),
    [
        (Room(host_bytes=1000, device_bytes=1 << 40, elements=5000), "of this machine's memory"),
        (Room(host_bytes=1 << 40, device_bytes=1000, elements=5000), "of the card's memory"),
    ],
)
def test_without_room_it_is_unchecked_and_says_so(tmp_path, room, words):
    outcome = judged(tmp_path, wraps, room)
    assert isinstance(outcome, Validated)
    assert CHECK not in outcome.checks
    (told,) = [f for f in outcome.unchecked if "more than 2^31 elements" in f.detail]
    assert told.reason is Reason.CHECK_ABSENT
    assert words in told.detail


def test_where_the_baseline_fails_there_nothing_is_held_against_the_candidate(tmp_path):
    def fails(inputs, buffers, state):
        multiply(inputs, buffers, state)
        if max(inputs["A"].size, inputs["B"].size, buffers["C"].size) > 5000:
            return Finding(reason=Reason.OUT_OF_BOUNDS, detail="an index of 32 bits")
        return None

    outcome = judged(tmp_path, multiply, baseline=subject(fails))
    assert isinstance(outcome, Validated)
    assert any("the baseline failed in case beyond_int32" in f.detail for f in outcome.unchecked)


def test_a_contract_that_ends_below_says_nothing(tmp_path):
    outcome = judged(tmp_path, multiply, Room(host_bytes=0, device_bytes=0))
    assert isinstance(outcome, Validated)
    assert not any("2^31" in f.detail for f in outcome.unchecked)


def test_values_of_large_arrays_repeat_and_travel_as_what_they_repeat(monkeypatch):
    monkeypatch.setattr(values, "LARGE_ELEMENTS", 10_000)
    monkeypatch.setattr(values, "PERIOD", 101)
    monkeypatch.setattr(messages, "PERIOD", 101)
    monkeypatch.setattr(messages, "_LARGEST_BYTES", 20_000)
    arrays = (
        Array(name="A", role="input", dtype="bfloat16", shape=("m", "k")),
        *contract().arguments[1:],
    )
    case = Case(name="large", kind="correctness", dimensions={"m": 200, "n": 2, "k": 100})
    found = values.generate(contract(arguments=arrays), case, 5)
    flat = found["A"].reshape(-1)
    assert flat.size == 20_000
    assert np.array_equal(flat[101:], flat[:-101])
    assert len(np.unique(flat[:101])) > 20
    call = Call(
        buffers=(
            Buffer(name="A", role="input", dtype="bfloat16", shape=(200, 100), initial="given"),
            Buffer(name="B", role="input", dtype="float32", shape=(100, 2), initial="given"),
        ),
        launches=(),
    )
    packed = messages.pack(call, found)
    assert len(packed["A"].data) == 202
    back = messages.unpack(packed)
    assert all(np.array_equal(back[name], found[name]) for name in "AB")
    assert back["A"].dtype == numpy_dtype("bfloat16")
    assert not back["A"].flags.writeable
    with pytest.raises(ValueError, match="do not repeat"):
        messages.pack(call, {**found, "A": np.arange(20_000, dtype=np.uint16).reshape(200, 100)})
