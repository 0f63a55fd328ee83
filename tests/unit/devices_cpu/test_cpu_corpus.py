"""The corpus on the `cpu` device under all checks, and beside what an H200 made of the same PTX.

The texts that the card ran are stored, so that no other compiler's output is compared with it.
"""

import json
from functools import cache
from pathlib import Path
from typing import Literal

import corpus_results
import msgspec
import pytest
from corpus_build import ptx_of
from corpus_results import assembled, compare_instructions, compare_kernel, digest, stored_ptx
from corpus_table import Kernel, kernels
from instruction_cases import Case, cases
from known_differences import INSTRUCTIONS, KERNELS

from kerneltrial.devices.cpu.device import LoadedCpu, open_cpu
from kerneltrial.devices.device import Binary, Conditions, Run
from kerneltrial.records.reason import Reason

GOLDEN = Path(__file__).parents[2] / "golden"
ALL = kernels()
# What hangs on the order of blocks, and why: these run forward only.
FORWARD_ONLY = {
    "float_atomics": "sums floats in the order in which threads arrive",
    "scan_look_back": "a block waits for the one before it, which backward never comes",
}


@pytest.fixture(scope="module")
def card() -> dict:
    """What tests/gpu/corpus_digests.py brought from an H200."""
    return json.loads((GOLDEN / "corpus_h200.json").read_text())


@pytest.fixture(scope="module")
def texts() -> dict[str, tuple[str, str]]:
    return stored_ptx(GOLDEN / "corpus_ptx.json")


@cache
def loaded(ptx: str) -> LoadedCpu:
    return open_cpu().load(Binary(ptx=ptx, cubin=b""))


def honest(kernel: Kernel, ptx: str, entry: str) -> Run:
    """Run under three poisons, levels of checks and orders of threads: nothing is found, and the bytes are the same."""
    call, values = kernel.call(entry), kernel.values()
    order: Literal["forward", "backward"] = "forward" if kernel.name in FORWARD_ONLY else "backward"
    conditions = (
        Conditions(poison="nan"),
        Conditions(poison="huge", checks="bounds", order=order),
        Conditions(poison="plain", order=order),
    )
    runs = [loaded(ptx).run(call, values, each) for each in conditions]
    for done in runs:
        assert done.completed, done.findings
        assert not done.findings
        assert done.guards_intact
        assert done.inputs_intact
        assert done.scratch_restored
    assert runs[0].outputs == runs[1].outputs == runs[2].outputs
    return runs[0]


def backward(name: str) -> tuple[Run, Run]:
    """A kernel of the corpus in either order."""
    kernel = next(k for k in ALL if k.name == name)
    ptx, entry = stored_ptx(GOLDEN / "corpus_ptx.json")[name]
    call, values = kernel.call(entry), kernel.values()
    few = Conditions(poison="nan", checks="bounds", budget_instructions=20_000_000)
    back = msgspec.structs.replace(few, order="backward")
    return loaded(ptx).run(call, values, few), loaded(ptx).run(call, values, back)


def test_a_sum_in_the_order_of_arrival_differs_backward() -> None:
    forward, back = backward("float_atomics")
    assert forward.completed
    assert back.completed
    assert forward.outputs != back.outputs


def test_a_block_that_waits_for_the_one_before_it_never_ends_backward() -> None:
    forward, back = backward("scan_look_back")
    assert forward.completed
    assert [finding.reason for finding in back.findings] == [Reason.ENDLESS_LOOP]


def test_the_corpus_is_large_and_its_names_differ() -> None:
    assert len({k.name for k in ALL}) == len(ALL) >= 60
    assert len({(k.source, k.entry) for k in ALL}) >= 60


@pytest.mark.parametrize("kernel", [pytest.param(k, id=k.name) for k in ALL])
def test_honest_and_as_on_the_card(card: dict, texts: dict[str, tuple[str, str]], kernel: Kernel) -> None:
    ptx, entry = texts[kernel.name]
    known = card["kernels"][kernel.name]
    assert digest(ptx.encode()) == known["ptx"], "this is not the text that the card ran"
    assert not known["findings"]
    differences = compare_kernel(kernel, known, honest(kernel, ptx, entry))
    assert bool(differences) == (kernel.name in KERNELS), differences


@pytest.mark.parametrize("kernel", [pytest.param(k, id=k.name) for k in ALL])
def test_honest_by_the_compiler_that_is_installed(texts: dict[str, tuple[str, str]], kernel: Kernel) -> None:
    """Where it makes the text that the card ran, the test above has run it."""
    ptx, entry = ptx_of(kernel)
    if (ptx, entry) != texts[kernel.name]:
        honest(kernel, ptx, entry)


def known(name: str) -> list[pytest.MarkDecorator]:
    """A strict expectation of failure for what is known to differ."""
    return [pytest.mark.xfail(strict=True, reason=INSTRUCTIONS[name])] if name in INSTRUCTIONS else []


NAMED = [(c, c.name.replace(" ", "-")) for c in cases()]


@pytest.mark.parametrize("case", [pytest.param(c, id=name, marks=known(name)) for c, name in NAMED])
def test_instructions_as_on_the_card(card: dict, case: Case) -> None:
    assert compare_instructions(case, card["instructions"]) == []


def test_an_older_assembler_takes_a_text_for_the_newest_version_that_it_knows(
    texts: dict[str, tuple[str, str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    ptx = texts["logarithms"][0]
    cubin, version = assembled(ptx, "sm_90")
    assert cubin.startswith(b"\x7fELF")
    assert f".version {version}\n" in ptx
    newest = corpus_results.cubin_of

    def older(text: str, arch: str) -> bytes:
        if ".version 9.0\n" not in text:
            told = f"Unsupported .version {version}; current version is '9.0'"
            raise RuntimeError(f"nvJitLink: ptxas application ptx input, line 9; fatal   : {told}")
        return newest(text, arch)

    monkeypatch.setattr(corpus_results, "cubin_of", older)
    lowered, taken_for = assembled(ptx, "sm_90")
    assert lowered.startswith(b"\x7fELF")
    assert taken_for == "9.0"
    monkeypatch.setattr(corpus_results, "cubin_of", lambda *_: 1 // 0)
    with pytest.raises(ZeroDivisionError):
        assembled(ptx, "sm_90")
