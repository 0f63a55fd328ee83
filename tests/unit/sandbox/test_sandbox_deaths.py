"""When the stage dies, nothing of it lives on."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

STAGE = """
import signal, sys, time
signal.signal(signal.SIGINT, signal.default_int_handler)  # whoever runs the tests in the background has it ignored
sys.path.insert(0, {here!r})
from kerneltrial.sandbox.limits import Limits, View
from kerneltrial.sandbox.nursery import Nursery
with Nursery(["sandbox_children"]) as nursery:
    limits = Limits(wall_s=600, cpu_s=600, memory_bytes=0, processes=8)
    children = [nursery.open("sandbox_children:" + name, b"{mark}", limits, View(driver=driver))
                for name in ("attempt", "endless_loop") for driver in (False, True)]
    assert children[0].ask(b"thread", 10) == b"thread ran"
    assert children[1].ask(b"fork", 10) == b"forked"
    print("ready", flush=True)
    children[2].ask(b"go", 600)
"""


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_a_killed_stage_leaves_no_process(how: signal.Signals) -> None:
    mark = f"KERNELTRIAL_MARK_{os.getpid()}_{how.name}"
    # the mark is carried by CUDA_PATH, which a nursery hands on, so that /proc tells whose process one is
    code = STAGE.format(here=str(Path(__file__).parent), mark=mark)
    stage = subprocess.Popen(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, text=True, env={**os.environ, "CUDA_PATH": mark}
    )
    assert stage.stdout is not None
    assert stage.stdout.readline() == "ready\n"
    assert len(_marked(mark)) >= 9  # stage, server, four supervisors, four children, one left by a child
    stage.send_signal(how)
    stage.wait(timeout=10)
    deadline = time.monotonic() + 10
    while (left := _marked(mark)) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert left == []


def test_a_nursery_that_is_killed_is_told_and_takes_its_children_along() -> None:
    mark = f"KERNELTRIAL_MARK_{os.getpid()}_server"
    code = f"""
import os, sys, time
sys.path.insert(0, {str(Path(__file__).parent)!r})
os.environ["CUDA_PATH"] = {mark!r}
from kerneltrial.sandbox.limits import Limits, View
from kerneltrial.sandbox.nursery import Nursery
with Nursery(["sandbox_children"]) as nursery:
    child = nursery.open("sandbox_children:echo", b"", Limits(wall_s=60, cpu_s=60, memory_bytes=0), View())
    assert child.ask(b"x", 10) == b"x"
    os.kill(nursery._server.pid, 9)
    for _ in range(1000):
        answer = child.ask(b"x", 10)
        if not isinstance(answer, bytes):
            break
        time.sleep(0.01)
    print(answer)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    assert "Ended(how=" in done.stdout
    deadline = time.monotonic() + 10
    while (left := _marked(mark)) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert left == []


def test_what_children_use_is_in_the_account_of_the_stage() -> None:
    code = f"""
import resource, sys
sys.path.insert(0, {str(Path(__file__).parent)!r})
from kerneltrial.sandbox.limits import Limits, View
from kerneltrial.sandbox.nursery import Nursery
with Nursery(["sandbox_children"]) as nursery:
    for _ in range(2):
        limits = Limits(wall_s=60, cpu_s=1, memory_bytes=1 << 27)
        with nursery.open("sandbox_children:endless_loop", b"", limits, View()) as child:
            child.ask(b"go", 30)
used = resource.getrusage(resource.RUSAGE_CHILDREN)
print(used.ru_utime + used.ru_stime)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
    assert float(done.stdout) > 1.9


def _marked(mark: str) -> list[str]:
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                if mark.encode() in (entry / "environ").read_bytes():
                    found.append(entry.name)
            except OSError:
                continue
    return found
