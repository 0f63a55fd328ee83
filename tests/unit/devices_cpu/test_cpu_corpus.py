"""The corpus on the `cpu` device under all checks, and beside what an H200 made of the same PTX.

The texts that the card ran are stored, so that no other compiler's output is compared with it.
"""

import json
from functools import cache
from pathlib import Path

import pytest
from corpus_build import ptx_of
from corpus_results import compare_instructions, compare_kernel, digest, stored_ptx
from corpus_table import Kernel, kernels
from instruction_cases import Case, cases
from known_differences import INSTRUCTIONS, KERNELS

from kerneltrial.devices.cpu.device import LoadedCpu, open_cpu
from kerneltrial.devices.device import Binary, Conditions, Run

GOLDEN = Path(__file__).parents[2] / "golden"
ALL = kernels()


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
    """Run under two poisons and two levels of checks, which must find nothing and give the same bytes."""
    call, values = kernel.call(entry), kernel.values()
    runs = [
        loaded(ptx).run(call, values, Conditions(poison=poison, checks=checks))
        for poison, checks in (("nan", "all"), ("huge", "bounds"))
    ]
    for done in runs:
        assert done.completed, done.findings
        assert not done.findings
        assert done.guards_intact
        assert done.inputs_intact
        assert done.scratch_restored
    assert runs[0].outputs == runs[1].outputs
    return runs[0]


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
