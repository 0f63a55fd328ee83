"""Python kernels through the real numba-cuda, in the real sandbox."""

import os
from decimal import Decimal
from pathlib import Path

import pytest
from build_workshop import CONTRACT, Workshop

from kerneltrial.build import numba_ptx
from kerneltrial.build.builder import Builder
from kerneltrial.build.problem import BuildProblem
from kerneltrial.inputs.resolve import resolve
from kerneltrial.records.build import Built, NotBuilt
from kerneltrial.records.contract import Array, Contract, DimensionArgument, Range, ScalarArgument
from kerneltrial.records.plan import Scratch
from kerneltrial.records.reason import Reason
from kerneltrial.sandbox.nursery import Nursery
from kerneltrial.store.objects import Objects

SCALE = """\
from numba import cuda

def k(x, y, n):
    i = cuda.grid(1)
    if i < n:
        y[i] = x[i] * 2
"""
ARRAY = (8,) * 7


def refused(outcome, reason: Reason) -> NotBuilt:
    assert isinstance(outcome, NotBuilt), outcome
    assert outcome.reason is reason, outcome
    return outcome


def test_a_python_kernel_gives_ptx_under_its_own_name(workshop) -> None:
    built = workshop.numba(SCALE)
    ptx = workshop.ptx(built)
    (entry,) = built.entries
    assert entry.name == "k"
    assert entry.parameters == (*ARRAY, *ARRAY, 4)
    assert ".visible .entry k(" in ptx
    assert ".global .align" not in ptx  # no writable state of the module
    assert built.abi == "numba_array"
    assert "numba-cuda" in built.compiler


def test_a_byte_order_mark_is_no_part_of_a_python_source(workshop) -> None:
    assert isinstance(workshop.numba("\ufeff" + SCALE), Built)


def test_nvjitlink_gives_machine_code_and_registers(workshop) -> None:
    built = workshop.numba(SCALE)
    assert workshop.cubin(built).startswith(b"\x7fELF")
    assert built.entries[0].registers > 4
    assert "Compile time" not in workshop.log(built)


def test_equal_sources_give_equal_bytes_whatever_ran_before(workshop) -> None:
    first = workshop.numba(SCALE)
    workshop.numba(SCALE.replace("* 2", "* 3"))
    assert workshop.numba(SCALE) == first


def test_lines_are_those_of_the_source(workshop) -> None:
    ptx = workshop.ptx(workshop.numba(SCALE))
    assert "\t.loc\t1 6 " in ptx
    assert 'candidate.py"' in ptx


def test_device_functions_shared_memory_and_decorators(workshop) -> None:
    source = """\
from numba import cuda, float32
import math

@cuda.jit(device=True)
def twice(value, times):
    for _ in range(times):
        value = math.exp(value)
    return value

@cuda.jit
def k(x, y, n):
    tile = cuda.shared.array(256, float32)
    i = cuda.grid(1)
    tile[cuda.threadIdx.x] = x[i]
    cuda.syncthreads()
    y[i] = twice(tile[cuda.threadIdx.x ^ 1], n)
"""
    built = workshop.numba(source)
    assert isinstance(built, Built), workshop.log(built)
    assert built.entries[0].shared_bytes == 1024


def test_several_kernels_go_into_one_binary(workshop) -> None:
    source = """\
from numba import cuda, float32

def first(x, part, n):
    tile = cuda.shared.array(64, float32)
    tile[cuda.threadIdx.x] = x[0]
    cuda.syncthreads()
    part[cuda.threadIdx.x] = tile[63 - cuda.threadIdx.x]

def second(x, part, n):
    tile = cuda.shared.array(32, float32)
    tile[cuda.threadIdx.x] = part[n]
    cuda.syncthreads()
    part[cuda.threadIdx.x] = tile[31 - cuda.threadIdx.x]
"""
    scratch = Scratch(name="part", dtype="float32", elements="n", initial="zeroed")
    plan = workshop.plan("first", "second", args=("x", "part", "int64(n)"), scratch=(scratch,))
    built = workshop.numba(source, plan)
    ptx = workshop.ptx(built)
    assert [(entry.name, entry.shared_bytes) for entry in built.entries] == [("first", 256), ("second", 128)]
    assert built.entries[0].parameters == (*ARRAY, *ARRAY, 8)
    assert ptx.count(".version") == 1
    assert all(entry.registers > 0 for entry in built.entries)


DTYPES = ["float16", "bfloat16", "float64", "uint8", "int64"]


@pytest.mark.parametrize("dtype", DTYPES)
def test_parameters_are_those_that_a_call_passes(build_nursery, tmp_path: Path, dtype: str) -> None:
    contract = Contract(
        name="copy",
        description="y = x",
        arguments=(
            Array(name="x", role="input", dtype=dtype, shape=("n", "2", "3")),
            Array(name="y", role="output", dtype=dtype, shape=("n", "6")),
            ScalarArgument(name="s", dtype="float64", value=Decimal(2)),
            DimensionArgument(name="n", dtype="int64"),
        ),
        dimensions={"n": Range(minimum=1, maximum=1000)},
        tolerances={},
        operations="n",
        bytes="n",
    )
    workshop = Workshop(Builder(build_nursery, contract, "sm_80"), Objects(tmp_path))
    source = "def k(x, y, s, n, m):\n    for i in range(n):\n        if s > m:\n            y[i, 1] = x[i, 0, 1]\n"
    plan = workshop.plan("k", args=("x", "y", "s", "n", "int32(n)"))
    built = workshop.numba(source, plan)
    assert isinstance(built, Built), workshop.log(built)
    assert built.entries[0].parameters == ((8,) * 11 + (8,) * 9 + (8, 8, 4))
    call = resolve(plan, contract, {"n": 5}, built.abi)
    assert len(call.launches[0].parameters) == len(built.entries[0].parameters)


@pytest.mark.parametrize(
    ("source", "told"),
    [
        (
            "def k(x, y, n):\n    y[0] = 1\n    y[0] = undefined_name\n",
            "NameError: name 'undefined_name' is not defined",
        ),
        ("def k(x, y, n):\n    y[0] = 1\n    y[0] = x + 'a'\n", "TypingError: No implementation of function"),
        ("def k(x, y, n):\n    y[0] = 1\n    y[0] = x.foo(1)\n", "TypingError: Unknown attribute 'foo' of type array("),
        ("def k(x, y, n):\n    y[0] = 1\n    y[0] = x.foo(1)\n", '(File "candidate.py", line 3)'),
    ],
)
def test_a_compile_error_is_one_line_with_its_cause(workshop, source: str, told: str) -> None:
    bad = refused(workshop.numba(source), Reason.DOES_NOT_COMPILE)
    assert told in bad.detail
    assert "Failed in" not in bad.detail


@pytest.mark.parametrize(
    ("source", "told"),
    [
        ("def k(x, y, n:\n", "SyntaxError"),
        ("raise ValueError('at import')\n", "ValueError: at import"),
        ("import sys\nsys.exit(0)\n", "SystemExit"),
        ("def k(x, y, n):\n    y[0] = undefined_name\n", "undefined_name"),
        ("def k(x, y, n):\n    y[0] = open('x')\n", "open"),
        ("def k(x):\n    x[0] = 1\n", ""),
    ],
)
def test_what_does_not_compile_is_told(workshop, source: str, told: str) -> None:
    bad = refused(workshop.numba(source), Reason.DOES_NOT_COMPILE)
    assert told in bad.detail + workshop.log(bad)
    assert os.getcwd() not in workshop.log(bad)


@pytest.mark.parametrize("source", ["x = 1\n", "k = 7\n", "def other(x, y, n):\n    pass\n"])
def test_a_function_that_is_not_there(workshop, source: str) -> None:
    bad = refused(workshop.numba(source), Reason.ENTRY_MISSING)
    assert "'k'" in bad.detail


HOSTILE = {
    "reads a file": "told = open('/etc/passwd').read()",
    "reads the environment of its parent": "import os\ntold = open(f'/proc/{os.getppid()}/environ').read()",
    "lists a folder": "import os\ntold = os.listdir('/')",
    "opens a socket": "import socket\ntold = socket.create_connection(('127.0.0.1', 22))",
    "starts a program": "import subprocess\ntold = subprocess.run(['/bin/id'])",
    "forks": "import os\ntold = os.fork()",
    "writes a file": "told = open('/tmp/kerneltrial_was_here', 'w')",
    "loads a driver": "from cuda.bindings import driver\ntold = driver.cuInit(0)",
}


@pytest.mark.parametrize("what", HOSTILE)
def test_what_runs_at_import_runs_in_a_cage(workshop, what: str) -> None:
    body = "\n".join(f"    {line}" for line in HOSTILE[what].splitlines())
    source = f"try:\n{body}\nexcept BaseException as problem:\n    told = type(problem).__name__\n"
    bad = refused(workshop.numba(source + "raise RuntimeError(f'got {told!r}')\n"), Reason.DOES_NOT_COMPILE)
    errors = ("PermissionError", "OSError", "RuntimeError", "FileNotFoundError", "DynamicLibNotFoundError")
    assert any(f"got {name!r}" in bad.detail for name in errors), bad.detail
    assert not Path("/tmp/kerneltrial_was_here").exists()


def test_secrets_of_the_environment_are_not_there(workshop, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-not-for-candidates")
    source = "import os\nraise RuntimeError(repr(sorted(os.environ.items())))\n"
    bad = refused(workshop.numba(source), Reason.DOES_NOT_COMPILE)
    assert "PYTHONHASHSEED" in bad.detail
    assert "sk-not-for-candidates" not in workshop.log(bad)


@pytest.mark.parametrize(
    "source",
    [
        "import os\nos.kill(os.getpid(), 9)\nos.abort()\n",
        "import ctypes\nctypes.string_at(0)\n",
    ],
)
def test_a_child_that_dies_is_no_fault_of_the_pipeline(workshop, source: str) -> None:
    refused(workshop.numba(source), Reason.COMPILER_DIED)


@pytest.mark.parametrize("status", [0, 1, 97])
def test_a_source_that_leaves_has_not_compiled(workshop, status: int) -> None:
    bad = workshop.numba(f"import os\nos._exit({status})\n")
    assert bad.reason in (Reason.DOES_NOT_COMPILE, Reason.COMPILE_LIMIT)
    assert bad.reason.reason_class.value == "candidate"


def test_a_forged_answer_is_no_binary(workshop) -> None:
    source = "import os\nos.write(3, (5).to_bytes(8, 'little') + b'hello')\nos._exit(0)\n"
    bad = refused(workshop.numba(source), Reason.DOES_NOT_COMPILE)
    assert "no proper answer" in bad.detail


def test_a_forged_binary_is_checked_like_any_other(workshop) -> None:
    source = """\
import os, msgspec
from kerneltrial.build.messages import Compiled
forged = msgspec.msgpack.encode(Compiled(ptx=TEXT, cubin=b"machine code that is not of the text", log="", compiler="x"))
os.write(3, len(forged).to_bytes(8, "little") + forged)
os._exit(0)
"""
    refused(workshop.numba(source.replace("TEXT", 'b"no PTX \\xff"')), Reason.DOES_NOT_COMPILE)
    other = workshop.ptx(workshop.numba(SCALE.replace("def k", "def other"), workshop.plan("other")))
    refused(workshop.numba(source.replace("TEXT", repr(other.encode()))), Reason.ENTRY_MISSING)
    honest = workshop.numba(SCALE)
    same = workshop.numba(source.replace("TEXT", repr(workshop.ptx(honest).encode())))
    assert (same.ptx, same.cubin, same.compiler) == (honest.ptx, honest.cubin, honest.compiler)


def test_a_host_without_numba_is_a_problem_of_the_host(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def absent_library(module: str) -> None:
        raise RuntimeError("libnvvm.so cannot be found")

    monkeypatch.setattr(numba_ptx, "_numba", absent_library)
    numba_ptx.absent.cache_clear()
    assert "libnvvm.so cannot be found" in numba_ptx.absent()
    assert "pip install" in numba_ptx.absent()
    numba_ptx.absent.cache_clear()
    (tmp_path / "build_without_numba.py").write_text(
        "from kerneltrial.build import numba_ptx\ndef install():\n    numba_ptx.absent = lambda: 'no libNVVM here'\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    with Nursery(["build_without_numba:install"]) as nursery:
        workshop = Workshop(Builder(nursery, CONTRACT, "sm_80"), Objects(tmp_path / "objects"))
        with pytest.raises(BuildProblem, match="no libNVVM here"):
            workshop.numba(SCALE)


def test_a_candidate_cannot_stop_the_pipeline_by_blaming_the_host(workshop) -> None:
    source = """\
import os, msgspec
from kerneltrial.build.messages import Refusal
forged = msgspec.msgpack.encode(Refusal(why="absent", detail="no libNVVM", log=""))
os.write(3, len(forged).to_bytes(8, "little") + forged)
os._exit(0)
"""
    refused(workshop.numba(source), Reason.DOES_NOT_COMPILE)
