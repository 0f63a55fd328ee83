"""NVRTC's binding writes into the bytes object that it is given, and Python shares bytes objects of length one."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

TESTS = Path(__file__).resolve().parents[2]
FOLDERS = ("gpu", "gpu/corpus", "bench", "unit/devices_cpu")
SOURCE = 'extern "C" __global__ void k(float* x) { x[0] = 1.0f; }'
CHILD = """
{work}
print(bytes([32]), eval('lambda a, b: f"{{a}} {{b}}"')("str", "tag"))
"""
"""A space of one byte, and what a compile makes of the one between two fields (`strtag` from Python 3.12 on)."""


@pytest.mark.parametrize(
    "work",
    [
        f"import own_process; own_process.compile_cuda({SOURCE!r}, 'sm_80')",
        f"import families_bench; families_bench.built({SOURCE!r}, 'sm_80', ())",
        "import corpus_build; corpus_build.ptx_of_file('matmul.cu')",
        f"import cpu_random; cpu_random.build({SOURCE!r}, False)",
        f"import ptx_sources; ptx_sources.ptx_of({SOURCE!r})",
        f"from kerneltrial.build import nvrtc; nvrtc.compile_source({SOURCE.encode()!r}, ('-arch=sm_80',))",
    ],
    ids=lambda work: work.split(";")[0].split()[-1],
)
def test_a_compile_without_a_word_leaves_a_space_a_space(work: str) -> None:
    paths = [*(str(TESTS / folder) for folder in FOLDERS), os.environ.get("PYTHONPATH", "")]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, paths))}
    ran = subprocess.run(
        [sys.executable, "-c", CHILD.format(work=work)], env=environment, capture_output=True, text=True, check=False
    )
    assert (ran.returncode, ran.stdout) == (0, "b' ' str tag\n"), ran.stderr
