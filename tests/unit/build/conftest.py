"""One nursery for all tests that really compile."""

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from kerneltrial.build.builder import Builder
from kerneltrial.build.preloading import preload
from kerneltrial.sandbox.nursery import Nursery
from kerneltrial.store.objects import Objects

sys.path.insert(0, str(Path(__file__).parent))

from build_workshop import CONTRACT, Workshop


@pytest.fixture(scope="session")
def build_nursery() -> Iterator[Nursery]:
    with Nursery(preload(["cuda_cpp", "numba_cuda"])) as nursery:
        yield nursery


@pytest.fixture
def workshop(build_nursery: Nursery, tmp_path: Path) -> Workshop:
    return Workshop(Builder(build_nursery, CONTRACT, "sm_80"), Objects(tmp_path))
