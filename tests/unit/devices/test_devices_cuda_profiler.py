"""ncu, where it is there: what is asked of it, what is read of it, and every reason why there are no counters."""

import os
import sys

import msgspec
import numpy as np
import pytest
from cuda import bindings as cuda_bindings
from fake_card import FakeCard

from kerneltrial.devices import messages
from kerneltrial.devices.cuda import profiler
from kerneltrial.devices.cuda.profiled import ProfileRequest, run
from kerneltrial.devices.device import Binary
from kerneltrial.inputs.calls import Buffer, Call, Pointer, ResolvedLaunch
from kerneltrial.measure.counters import METRICS, merged

CALL = Call(
    buffers=(
        Buffer(name="x", role="input", dtype="float32", shape=(4,), initial="given"),
        Buffer(name="y", role="output", dtype="float32", shape=(4,), initial="poisoned"),
    ),
    launches=tuple(
        ResolvedLaunch(
            entry=entry, grid=(1, 1, 1), block=(1, 1, 1), cluster=(1, 1, 1), cooperative=False, shared_bytes=0,
            parameters=(Pointer(buffer="x"), Pointer(buffer="y")),
        )
        for entry in ("first", "second")
    ),
)  # fmt: skip
REQUEST = ProfileRequest(
    arch="sm_90a",
    binary=Binary(ptx="", cubin=b"x"),
    call=CALL,
    values=messages.pack(CALL, {"x": np.ones(4, np.float32)}),
)


def rows(launches: int, metrics=METRICS, value: str = '"1,234.5"') -> str:
    """ncu's table, between lines of its own."""
    lines = ['"ID","Process ID","Kernel Name","Metric Name","Metric Unit","Metric Value"']
    lines += [f'"{i}","7","k","{name}","%",{value}' for i in range(launches) for name in metrics]
    return "\n".join(["==PROF== Connected to process 7", *lines, "==PROF== Disconnected"])


@pytest.fixture
def ncu(monkeypatch, tmp_path):
    """Make a program called ncu that writes down what it was asked, and says and ends as it is told."""

    def made(output: str, code: int = 0, before: str = ""):
        program = tmp_path / "ncu"
        program.write_text(
            f"#!{sys.executable}\nimport pathlib, sys, time\n"
            f"pathlib.Path({str(tmp_path / 'asked')!r}).write_text('\\n'.join(sys.argv[1:]))\n"
            f"{before}\nprint({output!r})\nsys.exit({code})\n"
        )
        program.chmod(0o755)
        monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
        return tmp_path / "asked"

    return made


def test_counters_of_each_launch_come_back(ncu):
    asked = ncu(rows(2))
    found = profiler.counters(REQUEST, METRICS)
    assert [set(launch) for launch in found] == [set(METRICS)] * 2
    assert found[0][METRICS[1]] == 1234.5
    assert merged(found)[METRICS[0]] == 2469.0
    words = asked.read_text().splitlines()
    assert words[words.index("--clock-control") + 1] == "none"  # the card's settings are the user's
    assert words[words.index("--launch-skip") + 1] == words[words.index("--launch-count") + 1] == "2"
    assert words[-3:-1] == ["-m", "kerneltrial.devices.cuda.profiled"]


@pytest.mark.parametrize(
    ("output", "why"),
    [
        ("==ERROR== ERR_NVGPUCTRPERM - The user does not have permission", "NVreg_RestrictProfilingToAdminUsers=0"),
        ("==ERROR== Failed to find metric sm__nonsense", "Failed to find metric sm__nonsense"),
        ("", "ncu gave 0 launches, the plan has 2"),
        (rows(3), "ncu gave 3 launches, the plan has 2"),
        (rows(2, value='"n/a"'), "ncu gave 'n/a' for a counter"),
        ('"ID","Something"\n"0","1"', "no column 'Metric Value'"),
    ],
)
def test_what_is_no_table_of_counters_says_why(ncu, output, why):
    ncu(output, code=1)
    with pytest.raises(profiler.Absent, match=why):
        profiler.counters(REQUEST, METRICS)


def test_an_ncu_that_hangs_is_ended(ncu):
    ncu("", before="time.sleep(60)")
    with pytest.raises(profiler.Absent, match="did not end well"):
        profiler.counters(REQUEST, METRICS, limit_s=0.5)


def test_without_ncu_it_says_what_to_install(monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(profiler, "_USUAL", ())
    with pytest.raises(profiler.Absent, match="install NVIDIA Nsight Compute"):
        profiler.counters(REQUEST, METRICS)


def test_the_program_under_the_profiler_calls_the_plan_twice_and_launches_nothing_else(monkeypatch):
    card = FakeCard({"first": 3.0, "second": 2.0})
    monkeypatch.setattr(cuda_bindings, "driver", card)
    run(card.context(), msgspec.msgpack.decode(msgspec.msgpack.encode(REQUEST), type=ProfileRequest))
    assert card.launched == ["first", "second"] * 2
