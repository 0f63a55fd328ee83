"""Kernels that fault or hang, each in a process of its own; the card serves the next process."""

import json
import os
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from test_gpu_run import factors, product
from test_gpu_timing import request_of

from kerneltrial.devices.cuda.device import open_cuda
from kerneltrial.devices.device import DeviceProblem

pytestmark = pytest.mark.gpu
SCRIPT = str(Path(__file__).parent / "own_process.py")


def in_own_process(entry: str) -> list[dict]:
    done = subprocess.run([sys.executable, SCRIPT, entry], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


@pytest.mark.parametrize(
    ("entry", "reason", "code"),
    [
        ("illegal", "device_fault", "CUDA_ERROR_ILLEGAL_ADDRESS"),
        ("misaligned", "misaligned", "CUDA_ERROR_MISALIGNED_ADDRESS"),
        ("traps", "device_fault", "CUDA_ERROR_"),
    ],
)
def test_a_fault_is_a_finding_and_ends_the_process_use(card, entry, reason, code):
    first, second = in_own_process(entry)
    assert first["completed"] is False
    assert first["findings"][0][0] == reason
    assert code in first["findings"][0][1]
    assert entry in first["findings"][0][1]
    assert any("could not be compared" in detail for _, detail in first["unchecked"])
    assert second["completed"] is False
    assert second["findings"] == first["findings"]


def test_a_hanging_kernel_dies_with_its_process_and_the_card_lives_on(card):
    process = subprocess.Popen([sys.executable, SCRIPT, "hangs"], stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout.readline().strip() == "started"
        time.sleep(1.0)
        assert process.poll() is None
    finally:
        process.kill()
        process.wait(timeout=30)
    first, second = in_own_process("copy")
    assert first["completed"]
    assert second["completed"]


def test_another_process_that_comes_onto_the_card_stops_a_timing(card, matmul):
    """It opens a context in the middle of the rounds and stays: all rounds after that fall out."""
    call, values = product("tiled", 256, 256, 256), [factors(256, 256, 256)]
    script = "import time; from kerneltrial.devices.cuda.device import open_cuda; open_cuda('%s'); time.sleep(60)"
    started: list[subprocess.Popen] = []

    def come() -> None:
        started.append(subprocess.Popen([sys.executable, "-c", script % card.device.arch]))

    timer = threading.Timer(1.0, come)
    timer.start()
    try:
        with pytest.raises(DeviceProblem, match=r"another process \(\d+\) came onto the card"):
            card.time(request_of(matmul, call, matmul, call, clock="graph", rounds=10_000), values)
    finally:
        timer.join()
        for process in started:
            process.kill()
            process.wait(timeout=30)


def test_no_visible_card_is_one_line_that_says_what_to_do(card):
    script = "from kerneltrial.devices.cuda.device import open_cuda; open_cuda('sm_90a')"
    environment = os.environ | {"CUDA_VISIBLE_DEVICES": ""}
    done = subprocess.run([sys.executable, "-c", script], env=environment, capture_output=True, text=True, check=False)
    last = done.stderr.strip().splitlines()[-1]
    assert "DeviceProblem" in last
    assert "CUDA_VISIBLE_DEVICES" in last


def test_an_arch_that_the_card_does_not_run_is_one_line(card):
    with pytest.raises(DeviceProblem, match="locked for sm_75"):
        open_cuda("sm_75")
