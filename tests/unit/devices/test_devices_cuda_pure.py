"""What of the cuda device can be checked without a card."""

from random import Random

import numpy as np
import pytest

from kerneltrial.devices.cuda import memory, state
from kerneltrial.devices.cuda.clocks import batch_size
from kerneltrial.devices.cuda.driver import CudaError
from kerneltrial.devices.cuda.interleaved import _places, order_of
from kerneltrial.devices.cuda.probe import arch_of, runs_here
from kerneltrial.devices.cuda.subjects import SharedBuffers
from kerneltrial.devices.device import DeviceProblem
from kerneltrial.devices.poison import POISON_BYTE
from kerneltrial.inputs.calls import Buffer
from kerneltrial.records.reason import Reason, ReasonClass


def buffer(dtype: str, *shape: int) -> Buffer:
    return Buffer(name="x", role="input", dtype=dtype, shape=shape, initial="given")


@pytest.mark.parametrize(
    ("capability", "arch"),
    [((7, 5), "sm_75"), ((8, 9), "sm_89"), ((9, 0), "sm_90a"), ((10, 0), "sm_100a"), ((12, 1), "sm_121a")],
)
def test_the_arch_of_a_card_runs_on_it(capability, arch):
    assert arch_of(*capability) == arch
    assert runs_here(arch, *capability)


@pytest.mark.parametrize(
    ("arch", "capability", "runs"),
    [
        ("sm_80", (8, 6), True),
        ("sm_86", (8, 0), False),
        ("sm_80", (9, 0), False),
        ("sm_90", (9, 0), True),
        ("sm_100a", (10, 3), False),
        ("sm_100f", (10, 3), True),
        ("sm_", (9, 0), False),
        ("host", (9, 0), False),
    ],
)
def test_machine_code_runs_within_its_major_version(arch, capability, runs):
    assert runs_here(arch, *capability) is runs


@pytest.mark.parametrize("poison", ["nan", "huge"])
@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_poisons_are_what_they_are_called_in_every_float_type(poison, dtype):
    word = np.full(8, POISON_BYTE[poison], np.uint8).view(dtype)[0]
    assert np.isnan(word) if poison == "nan" else np.isfinite(word) and word > 0.9 * np.finfo(dtype).max ** 0.9


def test_the_huge_poison_is_finite_in_bfloat16():
    pattern = POISON_BYTE["huge"] * 0x0101
    widened = np.uint32(pattern << 16).view(np.float32)
    assert np.isfinite(widened)
    assert widened > 1e36


def test_values_must_fit_their_buffer():
    given = memory.given_bytes(buffer("float32", 2, 3), {"x": np.ones((2, 3), np.float32)})
    assert given.nbytes == 24
    with pytest.raises(ValueError, match="x: 48 bytes were given, the call needs 24"):
        memory.given_bytes(buffer("float32", 2, 3), {"x": np.ones((2, 3))})
    with pytest.raises(ValueError, match="no value was given for x"):
        memory.given_bytes(buffer("float32", 2, 3), {})


def test_strided_values_travel_row_major():
    values = np.arange(6, dtype=np.int32).reshape(2, 3).T
    assert memory.given_bytes(buffer("int32", 3, 2), {"x": values}).tobytes() == np.ascontiguousarray(values).tobytes()


class Sets(SharedBuffers):
    """Only what the batch depends on."""

    def __init__(self, sets: int, own_bytes: int = 0) -> None:
        self.sets = sets
        self._own = own_bytes

    @property
    def own_bytes(self) -> int:
        return self._own


def test_a_batch_lasts_half_a_millisecond_and_is_whole_cycles_of_sets_and_slots():
    assert batch_size(12.0, 10.0, Sets(3), 1) == 48  # 24 calls would be 288 us
    assert batch_size(3.0, 3.0, Sets(2), 1) == 192  # 576 us
    assert batch_size(900.0, 900.0, Sets(2), 1) == 6


def test_a_batch_is_kept_short_by_nodes_slow_candidates_and_memory():
    assert batch_size(2.0, 2.0, Sets(2), 16) == 12
    assert batch_size(9000.0, 9000.0, Sets(3), 1) == 3  # a cycle of 12 would be 108 ms
    assert batch_size(2.0, 5000.0, Sets(1), 1) == 4
    assert batch_size(2.0, 2.0, Sets(1, own_bytes=2**29), 1) == 2


def test_orders_are_complete_and_balanced():
    random = Random(3)
    seen = {order_of("random", random) for _ in range(200)}
    assert len(seen) == 6
    assert all(sorted(places) == [("a", "a"), ("a2", "a2"), ("b", "b")] for places in seen)
    abba = [tuple(key for _, key in order_of("abba", random)) for _ in range(200)]
    assert set(abba) == {("a", "b", "b", "a2"), ("b", "a", "a2", "b")}
    assert 60 < abba.count(("a", "b", "b", "a2")) < 140


def test_a_vendor_stands_in_the_middle_of_an_abba_round_and_anywhere_in_a_random_one():
    random = Random(5)
    subjects = dict.fromkeys(("a", "a2", "b", "cublas"))
    abba = [[place for place, _ in _places(subjects, "abba", random)] for _ in range(50)]
    assert all(len(places) == 5 and places[2] == "cublas" for places in abba)
    seen = {tuple(place for place, _ in _places(subjects, "random", random)) for _ in range(2000)}
    assert len(seen) == 24


def test_clock_reasons_have_names():
    assert state.reason_names(0) == "none"
    assert state.reason_names(0x4 | 0x40) == "sw_power_cap,hw_thermal_slowdown"
    assert state.reason_names(0x1000) == "unknown_0x1000"
    assert not state.SLOWDOWNS & 0x4


def test_errors_are_told_apart():
    fault = CudaError("CUDA_ERROR_ILLEGAL_ADDRESS", "cuStreamSynchronize")
    assert fault.is_fault
    assert fault.finding("matmul").reason is Reason.DEVICE_FAULT
    assert "matmul" in fault.finding("matmul").detail
    assert CudaError("CUDA_ERROR_MISALIGNED_ADDRESS", "x").finding("k").reason is Reason.MISALIGNED
    full = CudaError("CUDA_ERROR_OUT_OF_MEMORY", "cuMemAlloc")
    assert not full.is_fault
    problem = full.problem()
    assert isinstance(problem, DeviceProblem)
    assert "cuMemAlloc" in str(problem)
    assert "smaller" in str(problem)
    assert fault.finding("k").reason.reason_class is ReasonClass.CANDIDATE
