"""A runner against a device that misbehaves: every death is a finding, and the next call works again."""

import time
from collections.abc import Iterator

import fake_device  # noqa: F401  (found by the nursery on this path)
import numpy as np
import pytest

from kerneltrial.devices.device import Binary, Conditions, DeviceProblem, Refused, TimingRequest
from kerneltrial.devices.runner import Runner
from kerneltrial.inputs.calls import Buffer, Call
from kerneltrial.records.device import Device
from kerneltrial.records.reason import Reason
from kerneltrial.sandbox.limits import Limits
from kerneltrial.sandbox.nursery import Nursery

LIMITS = Limits(wall_s=60, cpu_s=30, memory_bytes=1 << 28)
CONDITIONS = Conditions(poison="nan")
CALL = Call(
    buffers=(
        Buffer(name="x", role="input", dtype="float32", shape=(2, 3), initial="given"),
        Buffer(name="h", role="inout", dtype="bfloat16", shape=(4,), initial="given"),
        Buffer(name="y", role="output", dtype="float32", shape=(2, 3), initial="poisoned"),
    ),
    launches=(),
)
VALUES = {
    "x": np.arange(6, dtype=np.float32).reshape(3, 2).T,  # not contiguous: the row-major bytes must travel
    "h": np.arange(4, dtype=np.uint16),
    "unused": np.zeros(3),
}


@pytest.fixture(scope="module")
def nursery() -> Iterator[Nursery]:
    with Nursery(["fake_device:install"]) as opened:
        yield opened


@pytest.fixture
def runner(nursery: Nursery) -> Iterator[Runner]:
    with Runner(nursery, "cpu", LIMITS, call_s=1.0) as opened:
        yield opened


def binary(what: str) -> Binary:
    return Binary(ptx=what, cubin=b"")


def test_a_run_gives_outputs_by_name_in_row_major_order(runner: Runner) -> None:
    runner.load(binary("double"))
    run = runner.run(CALL, VALUES, CONDITIONS)
    assert run.completed
    assert np.frombuffer(run.outputs["x"], np.float32).tolist() == [0, 4, 8, 2, 6, 10]
    assert np.frombuffer(run.outputs["h"], np.uint16).tolist() == [0, 2, 4, 6]
    assert run.outputs["told"] == b"nan ['float32', 'uint16']"


def test_counts_and_samples_come_back(runner: Runner) -> None:
    runner.load(binary("double"))
    assert runner.count(CALL, VALUES, CONDITIONS).instructions == {"fma": 6}
    request = TimingRequest(
        baseline=binary("a"),
        baseline_call=CALL,
        candidate=binary("b"),
        candidate_call=CALL,
        rounds=10,
        clock="graph",
        seed=1,
    )
    samples = runner.time(request, [VALUES, VALUES])
    assert samples.warm_us == {"a": (15.0, 15.0)}
    assert samples.outputs == ({"y": b"z"},)


def test_the_device_says_what_it_is(runner: Runner) -> None:
    device = runner.device()
    assert (device.name, device.arch) == ("fake", "sm_80")


@pytest.mark.parametrize(
    ("what", "reason"),
    [
        ("die", Reason.RUNNER_DIED),
        ("hang", Reason.HANG),
        ("loop", Reason.HANG),
        ("eat", Reason.OUT_OF_MEMORY),
        ("bug", Reason.RUNNER_DIED),
        ("fault", Reason.DEVICE_FAULT),
    ],
)
def test_a_bad_end_is_a_finding_and_the_runner_lives_on(runner: Runner, what: str, reason: Reason) -> None:
    runner.load(binary(what))
    run = runner.run(CALL, VALUES, CONDITIONS)
    assert not run.completed
    assert [finding.reason for finding in run.findings] == [reason]
    runner.load(binary("double"))
    assert runner.run(CALL, VALUES, CONDITIONS).completed


def test_after_a_death_the_same_binary_is_loaded_again(runner: Runner) -> None:
    runner.load(binary("die"))
    first = runner.run(CALL, VALUES, CONDITIONS)
    second = runner.run(CALL, VALUES, CONDITIONS)
    assert [run.findings[0].reason for run in (first, second)] == [Reason.RUNNER_DIED] * 2


def test_a_bug_in_the_device_is_told_with_its_place(runner: Runner) -> None:
    runner.load(binary("bug"))
    (finding,) = runner.run(CALL, VALUES, CONDITIONS).findings
    assert "an instruction that the translator forgot" in finding.detail
    assert "fake_device.py" in finding.detail


def test_on_cuda_a_fault_ends_the_process(nursery: Nursery) -> None:
    with Runner(nursery, "cuda", LIMITS, call_s=5.0, arch="sm_90a") as runner:
        before = runner.device().fingerprint["pid"]
        runner.load(binary("fault"))
        run = runner.run(CALL, VALUES, CONDITIONS)
        assert [finding.reason for finding in run.findings] == [Reason.DEVICE_FAULT]
        assert runner.device().fingerprint["pid"] != before


def test_a_refusal_comes_back_as_refused(runner: Runner) -> None:
    with pytest.raises(Refused) as refused:
        runner.load(binary("refuse"))
    assert refused.value.finding.reason is Reason.UNSUPPORTED_INSTRUCTION
    assert refused.value.finding.detail == "frob.f32"


def test_death_at_load_and_at_count_is_a_refusal(runner: Runner) -> None:
    with pytest.raises(Refused) as refused:
        runner.load(binary("die at load"))
    assert refused.value.finding.reason is Reason.RUNNER_DIED
    runner.load(binary("die"))
    with pytest.raises(Refused, match="exit status 3"):
        runner.count(CALL, VALUES, CONDITIONS)


def test_what_is_wrong_with_the_device_is_a_device_problem(nursery: Nursery, runner: Runner) -> None:
    runner.load(binary("lost"))
    with pytest.raises(DeviceProblem, match="fallen off the bus"):
        runner.run(CALL, VALUES, CONDITIONS)
    with Runner(nursery, "cpu", LIMITS, arch="sm_00") as absent, pytest.raises(DeviceProblem, match="no card"):
        absent.load(binary("double"))


def test_nothing_loaded_is_a_refusal(runner: Runner) -> None:
    with pytest.raises(Refused, match="no binary is loaded"):
        runner.run(CALL, VALUES, CONDITIONS)


@pytest.mark.parametrize(
    ("values", "told"),
    [
        ({"x": VALUES["x"]}, "no value for the buffer 'h'"),
        ({**VALUES, "x": np.zeros((2, 3))}, "value is float64"),
        ({**VALUES, "x": np.zeros((3, 2), np.float32)}, r"\[3, 2\]"),
    ],
)
def test_values_that_do_not_fit_the_call_are_an_error_of_the_caller(
    runner: Runner, values: dict[str, np.ndarray], told: str
) -> None:
    runner.load(binary("double"))
    with pytest.raises(ValueError, match=told):
        runner.run(CALL, values, CONDITIONS)


def test_usage_adds_up_over_children(runner: Runner) -> None:
    runner.load(binary("loop"))
    runner.run(CALL, VALUES, CONDITIONS)
    once = runner.used
    runner.run(CALL, VALUES, CONDITIONS)
    assert 0.02 < once.cpu_s < 5.0  # a second of a loop, on a machine that may have other work
    assert runner.used.cpu_s > once.cpu_s + 0.05
    assert runner.used.wall_s >= 2.0


def test_forking_a_runner_is_quick(nursery: Nursery) -> None:
    took = []
    for _ in range(3):
        start = time.monotonic()
        with Runner(nursery, "cpu", LIMITS) as runner:
            runner.load(binary("double"))
        took.append(time.monotonic() - start)
    assert min(took) < 0.3


def test_a_large_array_travels_whole(runner: Runner) -> None:
    shape = (1 << 22,)
    call = Call(buffers=(Buffer(name="x", role="input", dtype="int32", shape=shape, initial="given"),), launches=())
    array = np.arange(1 << 22, dtype=np.int32)
    runner.load(binary("double"))
    run = runner.run(call, {"x": array}, CONDITIONS)
    assert np.array_equal(np.frombuffer(run.outputs["x"], np.int32), array + array)


def test_a_card_that_is_not_as_it_was_locked_measures_nothing(nursery: Nursery) -> None:
    locked = Device(kind="cuda", arch="sm_90a", name="fake", fingerprint={"pid": "another driver"})
    with (
        Runner(nursery, "cuda", LIMITS, arch="sm_90a", locked=locked) as changed,
        pytest.raises(DeviceProblem, match=r"pid is \d+ here, another driver in the lock.*kerneltrial lock --new"),
    ):
        changed.load(binary("double"))
    same = Device(kind="cuda", arch="sm_90a", name="fake", fingerprint={})
    with Runner(nursery, "cuda", LIMITS, arch="sm_90a", locked=same) as opened:
        assert opened.device().name == "fake"


def test_a_runner_that_has_begun_answers_what_is_asked_next(nursery: Nursery) -> None:
    with Runner(nursery, "cpu", LIMITS, call_s=1.0) as runner:
        runner.begin()
        runner.begin()
        runner.load(binary("double"))
        assert runner.run(CALL, VALUES, CONDITIONS).completed
        assert runner.device().name == "fake"


def test_a_device_that_cannot_be_opened_is_told_at_the_first_question(nursery: Nursery) -> None:
    with Runner(nursery, "cpu", LIMITS, arch="sm_00") as runner:
        runner.begin()
        with pytest.raises(DeviceProblem, match="no card of that kind"):
            runner.device()


def test_a_runner_that_has_begun_and_is_not_used_ends(nursery: Nursery) -> None:
    runner = Runner(nursery, "cpu", LIMITS)
    runner.begin()
    runner.close()
    assert runner.used.wall_s > 0
