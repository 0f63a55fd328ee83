"""What goes wrong with a card: each is named, and only a candidate's own fault counts against a candidate."""

import ctypes
from importlib.metadata import version

import msgspec
import numpy as np
import pytest
from cuda import bindings as cuda_bindings
from cuda.bindings import driver as real
from fake_card import FakeCard, FakeCupti, FakeNvml

from kerneltrial.devices.cuda import activity, cupti_clock, driver, timing
from kerneltrial.devices.cuda.device import load_module
from kerneltrial.devices.cuda.launches import BoundLaunch, Module
from kerneltrial.devices.cuda.loaded import CudaLoaded
from kerneltrial.devices.device import Binary, Conditions, DeviceProblem, Refused, TimingRequest
from kerneltrial.inputs.calls import Buffer, Call, Pointer, ResolvedLaunch
from kerneltrial.records.reason import Reason, ReasonClass
from kerneltrial.store.canonical import canonical

BINARY = Binary(ptx="", cubin=b"x")
N = 16


def launch(entry: str, **more) -> ResolvedLaunch:
    usual = {"grid": (1, 1, 1), "block": (1, 1, 1), "cluster": (1, 1, 1), "cooperative": False, "shared_bytes": 0}
    return ResolvedLaunch(entry=entry, parameters=tuple(Pointer(buffer="y") for _ in range(8)), **(usual | more))


def call_of(entry: str, scratch_bytes: int = 0) -> Call:
    buffers = [
        Buffer(name="x", role="input", dtype="float32", shape=(N,), initial="given"),
        Buffer(name="y", role="output", dtype="float32", shape=(N,), initial="poisoned"),
    ]
    if scratch_bytes:
        buffers.append(
            Buffer(name="s", role="scratch", dtype="uint8", shape=(scratch_bytes,), initial="self_restoring")
        )
    return Call(buffers=tuple(buffers), launches=(launch(entry),))


@pytest.fixture
def card(monkeypatch) -> FakeCard:
    made = FakeCard({"slow": 12.0, "fast": 8.0})
    for name in ("slow", "fast"):
        made.effects[name] = lambda pointers: ctypes.memset(pointers[0], 0, 4 * N)
    monkeypatch.setattr(cuda_bindings, "driver", made)
    return made


@pytest.fixture
def nvml() -> FakeNvml:
    return FakeNvml()


def breaks(card: FakeCard, monkeypatch, code: str, entry: str = "fast") -> None:
    """From the first launch of this kernel on, the stream ends in this error."""
    broken: list[int] = []
    card.effects[entry] = lambda pointers: broken.append(1)
    answer = getattr(real.CUresult, code)
    monkeypatch.setattr(card, "cuStreamSynchronize", lambda *_: (answer if broken else real.CUresult.CUDA_SUCCESS,))


def timed(card: FakeCard, nvml: FakeNvml, context=None, **more):
    usual = {"rounds": 20, "clock": "graph", "baseline_call": call_of("slow"), "candidate_call": call_of("fast")}
    request = TimingRequest(baseline=BINARY, candidate=BINARY, seed=3, **(usual | more))
    modules = {key: Module(b"x") for key in ("a", "a2", "b")}
    return timing.time(context or nvml.behind(card.context()), modules, request, [{"x": np.zeros(N, np.float32)}])


@pytest.mark.parametrize(
    ("code", "reason"),
    [
        ("CUDA_ERROR_ILLEGAL_ADDRESS", Reason.DEVICE_FAULT),
        ("CUDA_ERROR_LAUNCH_FAILED", Reason.DEVICE_FAULT),
        ("CUDA_ERROR_MISALIGNED_ADDRESS", Reason.MISALIGNED),
    ],
)
def test_a_fault_in_the_candidates_kernel_counts_against_it_and_ends_its_process(card, nvml, monkeypatch, code, reason):
    breaks(card, monkeypatch, code)
    context = nvml.behind(card.context())
    with pytest.raises(Refused) as caught:
        timed(card, nvml, context)
    assert caught.value.finding.reason is reason
    assert reason.reason_class is ReasonClass.CANDIDATE
    assert code in caught.value.finding.detail
    with pytest.raises(Refused) as again:  # nothing works in this process any more, and says why
        load_module(context, BINARY)
    assert again.value.finding == caught.value.finding


def test_a_fault_in_the_baselines_kernel_is_no_candidates(card, nvml, monkeypatch):
    breaks(card, monkeypatch, "CUDA_ERROR_ILLEGAL_ADDRESS", entry="slow")
    with pytest.raises(DeviceProblem, match="the baseline does not run on this card"):
        timed(card, nvml)


def test_a_card_that_vanishes_is_no_candidates_fault_whatever_the_error(card, nvml, monkeypatch):
    breaks(card, monkeypatch, "CUDA_ERROR_LAUNCH_FAILED")
    nvml.lost = True
    with pytest.raises(DeviceProblem, match=r"the card is lost.*Xid.*what was measured is kept"):
        timed(card, nvml)
    context = nvml.behind(card.context())
    with pytest.raises(DeviceProblem, match="the card is lost"):
        CudaLoaded(context, Module(b"x")).run(call_of("fast"), {"x": np.zeros(N, np.float32)}, Conditions(poison="nan"))
    assert context.spent is None


def test_an_error_that_names_no_kernel_is_the_drivers(card, nvml, monkeypatch):
    breaks(card, monkeypatch, "CUDA_ERROR_UNKNOWN")
    with pytest.raises(DeviceProblem, match=r"CUDA_ERROR_UNKNOWN.*the driver lost the card.*Xid"):
        timed(card, nvml)


def test_another_process_that_stays_on_the_card_stops_the_timing(card, nvml):
    asked = iter(range(10**6))
    nvml.pids = lambda: [100] if next(asked) < 5 else [100, 4242]
    with pytest.raises(DeviceProblem, match=r"tenth of 20 rounds.*another process \(4242\).*end it"):
        timed(card, nvml)


def test_another_process_that_passes_by_costs_its_round_alone(card, nvml):
    asked = iter(range(10**6))
    nvml.pids = lambda: [100, 4242] if next(asked) == 7 else [100, 200]  # 200 was there before
    samples = timed(card, nvml)
    assert samples.discarded == 1
    assert {len(row) for row in samples.warm_us.values()} == {20}
    (fallen,) = samples.set_aside
    assert fallen.why.startswith("another process (4242)")
    assert set(fallen.warm_us) == set(fallen.cold_us) == {"a", "a2", "b"}
    assert fallen.cold_us["a"] > fallen.warm_us["a"] > 0


def test_a_card_at_its_power_cap_is_recorded_and_no_round_falls_out(card, nvml):
    nvml.reasons = lambda: 0x4
    samples = timed(card, nvml)
    assert samples.discarded == 0
    assert samples.device_state["clocks_event_reasons_seen"] == "sw_power_cap"


@pytest.mark.parametrize(
    ("bit", "name"), [(0x8, "hw_slowdown"), (0x20, "sw_thermal"), (0x40, "hw_thermal"), (0x80, "brake")]
)
def test_a_round_in_which_the_card_slowed_down_falls_out_and_many_stop_the_timing(card, nvml, bit, name):
    asked = iter(range(10**6))
    nvml.reasons = lambda: bit if next(asked) == 9 else 0x4
    samples = timed(card, nvml)
    assert samples.discarded == 1
    assert name in samples.set_aside[0].why
    assert set(samples.device_state["clocks_event_reasons_seen"].split(",")) > {"sw_power_cap"}
    nvml.reasons = lambda: bit
    with pytest.raises(DeviceProblem, match=rf"tenth of 20 rounds.*slowed down \(\w*{name}.*let it cool"):
        timed(card, nvml)


def test_where_no_round_fell_out_samples_have_the_bytes_that_they_always_had(card, nvml):
    samples = timed(card, nvml)
    assert samples.discarded == 0
    assert b"set_aside" not in canonical(msgspec.structs.replace(samples, outputs=()))


def test_a_full_card_is_no_candidates_fault(card, nvml, monkeypatch):
    context = nvml.behind(card.context())
    monkeypatch.setattr(card, "cuMemAlloc", lambda nbytes: (real.CUresult.CUDA_ERROR_OUT_OF_MEMORY, 0))
    with pytest.raises(DeviceProblem, match=r"CUDA_ERROR_OUT_OF_MEMORY.*too little free memory"):
        timed(card, nvml, context)
    with pytest.raises(DeviceProblem, match="too little free memory"):
        CudaLoaded(context, Module(b"x")).run(call_of("fast"), {"x": np.zeros(N, np.float32)}, Conditions(poison="nan"))


def test_scratch_that_no_card_has_room_for_is_the_plans_fault(card, nvml):
    context = nvml.behind(card.context())
    context.device.fingerprint["memory_bytes"] = "100000"
    fits, too_much = call_of("fast", 49_872), call_of("fast", 49_873)  # half of it, less two buffers of 64 bytes
    assert timed(card, nvml, context, candidate_call=fits).warm_us
    with pytest.raises(Refused, match="scratch takes 49873 bytes") as caught:
        timed(card, nvml, context, candidate_call=too_much)
    assert caught.value.finding.reason is Reason.LAUNCH_FAILED
    values = {"x": np.zeros(N, np.float32)}
    run = CudaLoaded(context, Module(b"x")).run(too_much, values, Conditions(poison="nan"))
    assert [finding.reason for finding in run.findings] == [Reason.LAUNCH_FAILED]
    assert context.spent is None


class LockedCupti(FakeCupti):
    """CUPTI as it is where only administrators may profile."""

    def activity_enable(self, kind: int) -> None:
        raise RuntimeError("CUPTI_ERROR_INSUFFICIENT_PRIVILEGES")


def test_cupti_without_permission_is_said_and_the_graph_taken(card, nvml, monkeypatch):
    recorder = activity.Recorder(LockedCupti(card))
    monkeypatch.setattr(cupti_clock, "recorder", lambda: recorder)
    samples = timed(card, nvml, clock="auto")
    assert samples.clock == "graph"
    assert "CUPTI_ERROR_INSUFFICIENT_PRIVILEGES" in samples.device_state["clock_choice"]
    assert "NVreg_RestrictProfilingToAdminUsers=0" in samples.device_state["clock_choice"]
    with pytest.raises(Refused, match="ask for clock=graph") as caught:
        timed(card, nvml, clock="cupti")
    assert caught.value.finding.reason is Reason.NOT_MEASURED
    assert caught.value.finding.reason.reason_class is ReasonClass.UNCHECKED


@pytest.mark.parametrize(("found", "told"), [(12_090, "CUDA 12.9"), (11_080, "CUDA 11.8")])
def test_a_driver_older_than_the_toolkit_is_one_line(card, found, told):
    card.version = found
    with pytest.raises(DeviceProblem, match=f"the driver speaks {told}, the toolkit here is CUDA") as caught:
        driver.require_driver()
    assert "update the driver" in str(caught.value)
    card.version = int(version("cuda-bindings").split(".")[0]) * 1000
    assert driver.require_driver() == card.version


def test_what_a_plan_asks_of_a_launch_reaches_the_driver(card):
    asked = launch("fast", grid=(16, 1, 1), cluster=(16, 1, 1), cooperative=True, shared_bytes=200 * 1024)
    BoundLaunch(Module(b"x"), asked, {"y": card.cuMemAlloc(64)[1]}, 7).enqueue()
    assert card.attributes == [
        ("fast", "CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES", 200 * 1024),
        ("fast", "CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED", 1),
    ]
    (configuration,) = card.configurations
    assert configuration.sharedMemBytes == 200 * 1024
    given = {attribute.id.name: attribute.value for attribute in configuration.attrs}
    assert given["CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION"].clusterDim.x == 16
    assert given["CU_LAUNCH_ATTRIBUTE_COOPERATIVE"].cooperative == 1


def test_a_launch_of_the_ordinary_kind_asks_for_nothing_special(card):
    BoundLaunch(Module(b"x"), launch("fast", shared_bytes=48 * 1024), {"y": card.cuMemAlloc(64)[1]}, 7).enqueue()
    assert card.attributes == []
    assert card.configurations[0].numAttrs == 0


def test_a_launch_that_the_driver_turns_down_is_the_plans_fault_and_the_card_lives_on(card, nvml, monkeypatch):
    refused = (real.CUresult.CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE,)
    taken = card.cuLaunchKernelEx
    monkeypatch.setattr(card, "cuLaunchKernelEx", lambda c, f, p, e: refused if f == "fast" else taken(c, f, p, e))
    context = nvml.behind(card.context())
    with pytest.raises(Refused, match="CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE") as caught:
        timed(card, nvml, context)
    assert caught.value.finding.reason is Reason.LAUNCH_FAILED
    assert context.spent is None


def test_nobody_is_on_a_card_whose_processes_cannot_be_read(card):
    absent = card.context().nvml
    assert absent.processes() == frozenset()
    assert not absent.lost()
