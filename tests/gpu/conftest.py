"""Tests that need a card; where there is none each is skipped, and the reason says why."""

import sys
from pathlib import Path

import pytest

from kerneltrial.devices.device import DeviceProblem

sys.path.insert(0, str(Path(__file__).parent))


@pytest.fixture(scope="session")
def card():
    """The first visible card, open in this process."""
    from kerneltrial.devices.cuda.device import open_cuda
    from kerneltrial.devices.cuda.probe import probe

    try:
        found = probe()
    except DeviceProblem as problem:
        pytest.skip(str(problem))
    opened = open_cuda(found.arch)
    yield opened
    opened.close()


@pytest.fixture(scope="session")
def behaviour(card):
    """`behaviour.cu`, compiled for the card."""
    from own_process import KERNELS, compile_cuda

    return compile_cuda((KERNELS / "behaviour.cu").read_text(), card.device.arch)


@pytest.fixture(scope="session")
def matmul(card):
    """`matmul.cu`, compiled for the card."""
    from own_process import KERNELS, compile_cuda

    return compile_cuda((KERNELS / "matmul.cu").read_text(), card.device.arch)


@pytest.fixture(scope="session")
def streams(card):
    """`streams.cu`, compiled for the card."""
    from own_process import KERNELS, compile_cuda

    return compile_cuda((KERNELS / "streams.cu").read_text(), card.device.arch)
