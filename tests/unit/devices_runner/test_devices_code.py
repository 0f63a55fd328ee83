"""Machine code on a shelf between children: found again for the same binary, never handed to another one."""

import hashlib
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from kerneltrial.devices.cpu import native
from kerneltrial.devices.cpu.device import open_cpu
from kerneltrial.devices.device import Binary, Conditions
from kerneltrial.devices.machine_code import MOST_BYTES, MachineCode
from kerneltrial.devices.preloading import preload
from kerneltrial.devices.runner import Runner
from kerneltrial.inputs.calls import Buffer, Call, Pointer, ResolvedLaunch
from kerneltrial.sandbox.nursery import Nursery
from kerneltrial.stages.code_folder import CodeFolder
from kerneltrial.stages.signed_folder import SignedFolder, code_key

PTX = """.version 8.0
.target sm_80
.address_size 64
.visible .entry k(.param .u64 x)
{
 .reg .b64 %rd<4>; .reg .b32 %r<4>;
 ld.param.u64 %rd1, [x];
 mov.u32 %r1, %tid.x;
 mul.wide.u32 %rd2, %r1, 4;
 add.s64 %rd3, %rd1, %rd2;
 add.s32 %r2, %r1, NUMBER;
 st.global.u32 [%rd3], %r2;
 ret;
}
"""
BUFFER = Buffer(name="x", role="output", dtype="int32", shape=(32,), initial="poisoned")
KEY = bytes(32)
LAUNCH = ResolvedLaunch(
    entry="k", grid=(1, 1, 1), block=(32, 1, 1), cluster=(1, 1, 1), cooperative=False, shared_bytes=0,
    parameters=(Pointer(buffer="x"),),
)  # fmt: skip


def binary(number: int) -> Binary:
    return Binary(ptx=PTX.replace("NUMBER", str(number)), cubin=b"")


@pytest.fixture(scope="module")
def nursery() -> Iterator[Nursery]:
    with Nursery(preload("cpu")) as opened:
        yield opened


class Recorder(CodeFolder):
    """The real folder, and what was asked of it."""

    def __init__(self, folder: Path) -> None:
        super().__init__(SignedFolder(folder, KEY))
        self.given: list[tuple[str, int]] = []
        self.added: list[tuple[str, int]] = []

    def known(self, binary: Binary) -> dict[str, bytes]:
        found = super().known(binary)
        self.given.append((binary.ptx, len(found)))
        return found

    def add(self, binary: Binary, made) -> None:
        self.added.append((binary.ptx, len(made)))
        super().add(binary, made)


def answer(nursery: Nursery, shelf: CodeFolder, *binaries: Binary) -> list[list[int]]:
    call = Call(buffers=(BUFFER,), launches=(LAUNCH,))
    found = []
    with Runner(nursery, "cpu", shelf=shelf) as runner:
        for one in binaries:
            runner.load(one)
            outcome = runner.run(call, {}, Conditions(poison="nan"))
            assert outcome.completed, outcome.findings
            found.append(np.frombuffer(outcome.outputs["x"], np.int32).tolist())
    return found


def test_the_next_child_of_a_binary_finds_its_code_and_gives_the_same_answer(nursery, tmp_path: Path) -> None:
    shelf = Recorder(tmp_path)
    first = answer(nursery, shelf, binary(7))
    assert first == [[7 + i for i in range(32)]]
    assert answer(nursery, shelf, binary(7)) == first
    assert [made for _, made in shelf.added] == [1]  # the second child made nothing
    assert [count for _, count in shelf.given][-1] == 1


def test_code_is_handed_to_children_of_its_own_binary_alone(nursery, tmp_path: Path) -> None:
    shelf = Recorder(tmp_path)
    assert answer(nursery, shelf, binary(1), binary(2)) == [list(range(1, 33)), list(range(2, 34))]
    assert [ptx for ptx, _ in shelf.added] == [binary(1).ptx, binary(2).ptx]
    assert set(shelf.known(binary(1))).isdisjoint(shelf.known(binary(2)))


@pytest.mark.parametrize("damage", [b"", b"short", lambda old: old[:-1] + bytes([old[-1] ^ 1]), lambda old: old[:40]])
def test_a_damaged_file_is_made_again(nursery, tmp_path: Path, damage) -> None:
    shelf = Recorder(tmp_path)
    first = answer(nursery, shelf, binary(3))
    (path,) = tmp_path.iterdir()
    path.write_bytes(damage(path.read_bytes()) if callable(damage) else damage)
    assert answer(nursery, shelf, binary(3)) == first
    assert shelf.known(binary(3))


def spoilt(shelf: CodeFolder, number: int) -> None:
    """Put under the keys of a binary's code what is no code."""
    pieces = dict.fromkeys(shelf.known(binary(number)), b"no machine code")
    assert pieces
    shelf.add(binary(number), pieces)


def test_garbage_on_the_shelf_does_not_count_against_a_candidate(nursery, tmp_path: Path) -> None:
    shelf = Recorder(tmp_path)
    first = answer(nursery, shelf, binary(4))
    spoilt(shelf, 4)
    assert answer(nursery, shelf, binary(4)) == first


@pytest.mark.parametrize("how", ["digest_alone", "another_key", "another_binary"])
def test_code_that_the_trial_did_not_put_there_is_not_taken(nursery, tmp_path: Path, how: str) -> None:
    """Whoever hands over a folder with a cache chooses what would run here, and does not have its key."""
    shelf = Recorder(tmp_path / "mine")
    answer(nursery, shelf, binary(1), binary(2))
    own, other = (tmp_path / "mine" / f"{hashlib.sha256(binary(n).ptx.encode()).hexdigest()}.code" for n in (1, 2))
    if how == "digest_alone":
        body = own.read_bytes()[32:]
        own.write_bytes(hashlib.sha256(body).digest() + body)
    elif how == "another_key":
        CodeFolder(SignedFolder(tmp_path / "forged", bytes(31) + b"1")).add(binary(1), shelf.known(binary(1)))
        own.write_bytes((tmp_path / "forged" / own.name).read_bytes())
    else:
        own.write_bytes(other.read_bytes())
    assert shelf.known(binary(1)) == {}


def test_the_key_is_made_once_and_for_its_owner_alone(tmp_path: Path) -> None:
    key = code_key(tmp_path)
    assert len(key) == 32
    assert code_key(tmp_path) == key
    assert (tmp_path / "code-key").stat().st_mode & 0o777 == 0o600


def test_known_code_is_what_runs_and_depends_on_text_and_effort() -> None:
    """What is on the shelf is taken in place of the text: so its key must hold all that the code follows from."""
    text = "define i32 @thread() {{ ret i32 {} }}"
    code = MachineCode()
    native.compile_module(text.format(1), ("thread",), code)
    (key,) = code.made
    other = MachineCode()
    native.compile_module(text.format(2), ("thread",), other)
    assert set(other.made) != {key}
    for effort in (native.Effort(("sroa",), native.RUNTIME.level), native.Effort(native.RUNTIME.passes, 0)):
        third = MachineCode()
        native.compile_module(text.format(1), ("thread",), third, effort)
        assert set(third.made) != {key}


def test_what_is_too_much_is_not_kept() -> None:
    code = MachineCode()
    code.put("a", bytes(MOST_BYTES))
    code.put("b", b"1")
    assert set(code.made) == {"a"}
    code.restart({})
    assert code.get("a") is None


def test_a_device_without_a_shelf_works_as_before() -> None:
    loaded = open_cpu().load(binary(5))
    call = Call(buffers=(BUFFER,), launches=(LAUNCH,))
    outcome = loaded.run(call, {}, Conditions(poison="nan"))
    assert np.frombuffer(outcome.outputs["x"], np.int32).tolist() == list(range(5, 37))
