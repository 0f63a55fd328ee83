"""A row sum whose index has 32 bits: right up to 2**31 elements, wrong above; the shipped one is right there too."""

import sys
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "bench"))

from kerneltrial.devices.runner import Runner
from kerneltrial.inputs.beyond import beyond, bytes_of
from kerneltrial.inputs.contracts import read_contract
from kerneltrial.inputs.plans import read_plan
from kerneltrial.judge.beyond import CHECK, Room
from kerneltrial.judge.validation import Further
from kerneltrial.records.build import Built
from kerneltrial.records.protocol import Protocol
from kerneltrial.records.validation import Invalid, Validated
from kerneltrial.stages.room import available_bytes

pytestmark = pytest.mark.gpu
KERNELS = Path(__file__).resolve().parents[2] / "kernels" / "reduce_rows_f32"
WIDE, NARROW = "(long long)blockIdx.x * cols", "(int)blockIdx.x * cols"


def test_an_index_of_32_bits_is_caught_above_its_end_and_the_shipped_kernel_passes(card):
    from mutation import Family

    contract = read_contract(KERNELS / "contract.yaml")
    case = beyond(contract, 1)
    room = Room(host_bytes=available_bytes(), device_bytes=int(card.device.fingerprint["memory_bytes"]))
    wanted = 9 * bytes_of(contract, case)[0]
    if room.host_bytes < wanted:
        pytest.skip(f"{wanted >> 30} GiB of memory are wanted, {room.host_bytes >> 30} are free")
    source, plan = (KERNELS / "baseline.cu").read_text(), read_plan(KERNELS / "baseline.plan.yaml")
    assert WIDE in source
    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        family = Family("reduce_rows_f32", Path(folder), stack, Protocol(boundary_shapes=2), "cuda")
        outcomes = []
        for text in (source, source.replace(WIDE, NARROW)):
            built = family.build(text.encode(), plan)
            assert isinstance(built, Built)
            start = time.perf_counter()
            with Runner(family.runners, "cuda", arch=family.arch) as runner:
                further = Further(room=room)
                outcomes.append(family.judge.judge_candidate(built, family.binary(built), plan, runner, further))
            print(f"{case.dimensions}: {time.perf_counter() - start:.1f} s, {type(outcomes[-1]).__name__}")
    right, narrow = outcomes
    assert isinstance(right, Validated), right
    assert CHECK in right.checks, right.unchecked
    assert isinstance(narrow, Invalid), narrow
    print(narrow.reason, narrow.detail)
    assert "beyond_int32" in narrow.detail
