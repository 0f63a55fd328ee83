"""compute-sanitizer, where it is there: what is asked of it, what is read of it, and every way of not having looked."""

import json
import os
import sys

import msgspec
import numpy as np
import pytest
from cuda import bindings as cuda_bindings
from fake_card import FakeCard

from kerneltrial.devices import messages
from kerneltrial.devices.cuda import sanitizer, sanitizer_log
from kerneltrial.devices.cuda.sanitized import Laid, SanitizeRequest, run
from kerneltrial.devices.cuda.sanitizer import Sanitizer
from kerneltrial.devices.device import Binary
from kerneltrial.devices.preloading import preload
from kerneltrial.inputs.calls import Buffer, Call, Pointer, ResolvedLaunch
from kerneltrial.records.reason import Reason
from kerneltrial.records.sanitizer import TOOLS, Looked, NotLooked
from kerneltrial.sandbox.nursery import Nursery

CALL = Call(
    buffers=(
        Buffer(name="x", role="input", dtype="float32", shape=(4,), initial="given"),
        Buffer(name="y", role="output", dtype="float32", shape=(4,), initial="poisoned"),
        Buffer(name="s", role="scratch", dtype="float32", shape=(2,), initial="zeroed"),
    ),
    launches=tuple(
        ResolvedLaunch(
            entry=entry, grid=(1, 1, 1), block=(1, 1, 1), cluster=(1, 1, 1), cooperative=False, shared_bytes=0,
            parameters=(Pointer(buffer="x"), Pointer(buffer="y")),
        )
        for entry in ("first", "second")
    ),
)  # fmt: skip
BINARY = Binary(ptx="", cubin=b"x")
VALUES = {"x": np.ones(4, np.float32)}
ASKED = [("small", CALL, VALUES), ("ragged", CALL, VALUES)]
CASES = ("small", "ragged")

# as compute-sanitizer 2022 to 2025 printed them (its manual, and logs that people published), with our kernel's names
BEHIND = """========= COMPUTE-SANITIZER
========= Invalid __global__ read of size 4 bytes
=========     at copy+0x70 in candidate.cu:6
=========     by thread (255,0,0) in block (3,0,0)
=========     Address 0x74b834000010 is out of bounds
=========     and is 1 bytes after the nearest allocation at 0x74b834000000 of size 16 bytes
=========     Saved host backtrace up to driver entry point at kernel launch time
=========         Host Frame: main [0x8ae3] in program
=========
========= Program hit CUDA_ERROR_LAUNCH_FAILED (error 719) due to "unspecified launch failure" on CUDA API call to cuX.
=========
========= ERROR SUMMARY: 1 error
"""
NEWER = """========= COMPUTE-SANITIZER
========= Invalid __global__ write of size 16 bytes
=========     at copy+0x80
=========     by thread (96,0,0) in block (3906,0,0)
=========     Access to 0x74b834000004 is misaligned
=========     and is inside the nearest allocation at 0x74b834000000 of size 16 bytes
========= ERROR SUMMARY: 769 errors
========= ERROR SUMMARY: 669 errors were not printed. Use --print-limit option to adjust the number of printed errors
"""
RACE = """========= COMPUTE-SANITIZER
========= Error: Race reported between Write access at reduce(int *, int *)+0xf0 in candidate.cu:12
=========     and Read access at reduce(int *, int *)+0xd0 in candidate.cu:12 [32 hazards]
=========     and Write access at reduce(int *, int *)+0xf0 in candidate.cu:12 [4 hazards]
=========
========= RACECHECK SUMMARY: 1 hazard displayed (1 error, 0 warnings)
"""
WARNED = """========= COMPUTE-SANITIZER
========= Warning: Race reported between Read access at reduce+0xd0 in candidate.cu:12
=========     and Write access at reduce+0xf0 in candidate.cu:13 [4 hazards]
=========
========= RACECHECK SUMMARY: 1 hazard displayed (0 errors, 1 warning)
"""
NEVER_WRITTEN = """========= COMPUTE-SANITIZER
========= Uninitialized __global__ memory read of size 4 bytes
=========     at copy+0x70 in candidate.cu:41
=========     by thread (31,0,0) in block (1,0,0)
=========     Address 0x74b83400000c
=========
========= Uninitialized __global__ memory read of size 4 bytes
=========     at copy+0x70 in candidate.cu:41
=========     by thread (30,0,0) in block (1,0,0)
=========     Address 0x74b834000008
=========
========= ERROR SUMMARY: 2 errors
"""
BARRIER = """========= COMPUTE-SANITIZER
========= Barrier error detected. Divergent thread(s) in block.
=========     at reduce+0xa0 in candidate.cu:61
=========     by thread (19,0,0) in block (0,0,0)
=========
========= ERROR SUMMARY: 1 error
"""
CLEAN = "========= COMPUTE-SANITIZER\n========= ERROR SUMMARY: 0 errors\n"
NO_RACE = "========= COMPUTE-SANITIZER\n========= RACECHECK SUMMARY: 0 hazards displayed (0 errors, 0 warnings)\n"
BUFFERS = {0x74B834000000: ("x", 16)}


@pytest.mark.parametrize(
    ("text", "reason", "words"),
    [
        (BEHIND, Reason.OUT_OF_BOUNDS, "copy+0x70 in candidate.cu:6, thread (255,0,0), block (3,0,0), out of bo"),
        (BEHIND, Reason.OUT_OF_BOUNDS, "1 bytes after x (16 bytes)"),
        (NEWER, Reason.MISALIGNED, "thread (96,0,0), block (3906,0,0), in x at byte 4 misaligned, inside x (16 bytes)"),
        (RACE, Reason.SHARED_RACE, "Read access at reduce(int *, int *)+0xd0 in candidate.cu:12 [32 hazards]"),
        (NEVER_WRITTEN, Reason.UNINITIALISED_READ, "candidate.cu:41, thread (31,0,0), block (1,0,0), in x at byte 12"),
        (BARRIER, Reason.BARRIER_DIVERGENCE, "thread(s) in block, at reduce+0xa0 in candidate.cu:61, thread (19,"),
    ],
)  # fmt: skip
def test_a_report_becomes_a_finding_that_names_kernel_line_thread_and_place(text, reason, words):
    log = sanitizer_log.read(text, BUFFERS)
    (fault,) = log.faults
    assert fault.reason is reason
    assert words in fault.detail
    assert "0x74b8" not in fault.detail  # addresses are others in the next run
    assert log.trouble == ""


def test_many_reports_of_a_kind_are_counted():
    one = "========= Invalid __shared__ write of size 4 bytes\n=========     at k+0x{0:x} in candidate.cu:{0}\n"
    text = "".join(one.format(line) for line in range(1, 9)) + "========= ERROR SUMMARY: 8 errors\n"
    (fault,) = sanitizer_log.read(text, {}).faults
    assert fault.detail.count("__shared__") == 3
    assert fault.detail.endswith("(and 5 more reports)")


def test_a_warning_is_no_fault_and_stays_unchecked():
    log = sanitizer_log.read(WARNED, {})
    assert log.faults == ()
    assert [w.reason for w in log.warnings] == [Reason.CHECK_ABSENT]
    assert "candidate.cu:13" in log.warnings[0].detail


@pytest.mark.parametrize("text", [CLEAN, NO_RACE])
def test_a_clean_log_is_clean(text):
    assert sanitizer_log.read(text, {}) == sanitizer_log.Log(faults=(), warnings=(), trouble="")


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "no summary"),
        ("========= COMPUTE-SANITIZER\n", "no summary"),
        (CLEAN.replace("\n=", "\n========= Device not supported. Please refer to the manual\n=", 1), "Device not supp"),
        ("========= Internal Sanitizer Error: it did not track the launch\n" + CLEAN, "Internal Sanitizer Error"),
        ("========= Something quite new\n=========     at k\n========= ERROR SUMMARY: 1 error\n", "quite new at k"),
        ("\x00\xff=========\ufffd" * 40, "no summary"),
    ],
)  # fmt: skip
def test_what_cannot_be_relied_upon_says_why(text, why):
    log = sanitizer_log.read(text, {})
    assert log.faults == ()
    assert why in log.trouble


@pytest.fixture
def tool(monkeypatch, tmp_path):
    """Make a compute-sanitizer that writes logs by tool, and prints what the program under it would."""
    folder = tmp_path / "bin"
    folder.mkdir()

    def made(logs: dict[str, str], printed: str = "", before: str = "") -> None:
        program = folder / "compute-sanitizer"
        program.write_text(
            f"#!{sys.executable}\nimport pathlib, sys, time\n"
            "words = sys.argv[1:]\nkind = words[words.index('--tool') + 1]\n"
            "asked = pathlib.Path(words[-1]).read_bytes()\nassert asked\n"
            "pathlib.Path(words[-1]).with_name('asked-' + kind).write_text(' '.join(words))\n"
            f"{before}\npathlib.Path(words[words.index('--log-file') + 1]).write_text({logs!r}.get(kind, {CLEAN!r}))\n"
            f"print({printed or two_calls()!r})\n"
        )
        program.chmod(0o755)
        folder.chmod(0o755)
        monkeypatch.setenv("PATH", f"{folder}{os.pathsep}{os.environ['PATH']}")

    return made


def two_calls(ended: str = "") -> str:
    lines = [{"call": number, "buffers": {"x": [0x74B834000000, 16]}} for number in range(2)]
    return "\n".join(json.dumps(line) for line in (*lines, {"ended": ended}))


@pytest.fixture(scope="module")
def nursery():
    with Nursery(preload("cuda")) as opened:
        yield opened


def look(nursery, limit_s: float = 30.0):
    asks = Sanitizer(nursery, "sm_90a", limit_s)
    return asks.look(asks.request(BINARY, ASKED), CASES).tools


def test_clean_tools_have_looked_at_every_case(nursery, tool):
    tool({"racecheck": NO_RACE})
    assert look(nursery) == tuple(Looked(tool=name, cases=CASES, findings=(), unchecked=()) for name in TOOLS)


def test_each_tools_findings_are_its_own(nursery, tool):
    tool({"memcheck": BEHIND, "racecheck": RACE, "initcheck": NEVER_WRITTEN, "synccheck": BARRIER})
    told = look(nursery)
    assert [entry.tool for entry in told] == list(TOOLS)
    assert [entry.findings[0].reason for entry in told] == [
        Reason.OUT_OF_BOUNDS, Reason.SHARED_RACE, Reason.UNINITIALISED_READ, Reason.BARRIER_DIVERGENCE,
    ]  # fmt: skip
    assert told[0].findings[0].detail.startswith("memcheck, case ragged: Invalid __global__ read")
    assert "1 bytes after x (16 bytes)" in told[0].findings[0].detail
    assert told[1].findings[0].detail.startswith("racecheck, cases small, ragged: Error: Race reported")


def test_a_program_that_ended_early_has_not_been_looked_at(nursery, tool):
    tool({}, printed=two_calls("CUDA_ERROR_OUT_OF_MEMORY from cuMemAlloc"))
    assert {entry.why for entry in look(nursery)} == {"CUDA_ERROR_OUT_OF_MEMORY from cuMemAlloc"}
    tool({}, printed=two_calls().splitlines()[0] + "\nTraceback: something")
    assert all(isinstance(e, NotLooked) and "ended early" in e.why and "something" in e.why for e in look(nursery))


def test_a_tool_that_hangs_is_ended_and_says_so(nursery, tool):
    tool({"racecheck": NO_RACE}, before="time.sleep(60 if kind == 'racecheck' else 0)")
    told = look(nursery, limit_s=3.0)
    assert told[1] == NotLooked(tool="racecheck", why="it did not end within 3 s")
    assert all(isinstance(entry, Looked) for entry in (told[0], *told[2:]))


def test_without_the_program_each_tool_says_what_to_install(nursery, monkeypatch, tmp_path):
    monkeypatch.setattr(sanitizer, "found", lambda: "")
    assert {entry.why for entry in look(nursery)} == {
        "compute-sanitizer is not installed: it comes with the CUDA toolkit, and as nvidia-cuda-sanitizer-api"
    }


def test_it_is_found_in_a_package_of_pythons(monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(sanitizer, "_USUAL", ())
    monkeypatch.setattr(sys, "path", [*sys.path, str(tmp_path)])
    monkeypatch.setattr(sanitizer.site, "getsitepackages", list)
    before = sanitizer.found()
    program = tmp_path / "nvidia" / "cu13" / "compute-sanitizer" / "compute-sanitizer"
    program.parent.mkdir(parents=True)
    program.write_text("")
    assert sanitizer.found() == before  # it cannot be started
    program.chmod(0o755)
    assert sanitizer.found() in (before, str(program))
    assert sanitizer.found()


def test_the_program_under_a_tool_makes_each_call_once_and_leaves_outputs_as_they_are(monkeypatch, capsys):
    card = FakeCard({"first": 3.0, "second": 2.0})
    set_to: list[tuple[int, int]] = []
    plain = card.cuMemsetD8
    monkeypatch.setattr(
        card, "cuMemsetD8", lambda at, value, count: (set_to.append((value, count)), plain(at, value, count))[1]
    )
    monkeypatch.setattr(cuda_bindings, "driver", card)
    laid = Laid(call=CALL, values=messages.pack(CALL, VALUES))
    request = SanitizeRequest(arch="sm_90a", binary=BINARY, calls=(laid, laid))
    run(card.context(), msgspec.msgpack.decode(msgspec.msgpack.encode(request), type=SanitizeRequest))
    assert card.launched == ["first", "second"] * 2
    assert set_to == [(0, 8)] * 2  # zeroed scratch alone
    told = [msgspec.json.decode(line) for line in capsys.readouterr().out.splitlines()]
    assert [line["call"] for line in told] == [0, 1]
    addresses = [at for line in told for at, _ in line["buffers"].values()]
    assert len(set(addresses)) == 6  # none comes twice
    assert [size for _, size in told[0]["buffers"].values()] == [16, 16, 8]
