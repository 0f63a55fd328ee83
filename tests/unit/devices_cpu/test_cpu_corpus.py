"""The corpus on the `cpu` device under all checks, and beside what an H200 made of the same PTX."""

import json
from pathlib import Path

import pytest
from corpus_build import ptx_of
from corpus_results import compare_instructions, compare_kernel, digest
from corpus_table import Kernel, kernels
from instruction_cases import Case, cases
from known_differences import INSTRUCTIONS, KERNELS

from kerneltrial.devices.cpu.device import open_cpu
from kerneltrial.devices.device import Binary, Conditions

CARD = Path(__file__).parents[2] / "golden" / "corpus_h200.json"
ALL = kernels()


def known(differences: dict[str, str], name: str) -> list[pytest.MarkDecorator]:
    """A strict expectation of failure for what is known to differ."""
    return [pytest.mark.xfail(strict=True, reason=differences[name])] if name in differences else []


@pytest.fixture(scope="module")
def card() -> dict:
    if not CARD.exists():
        pytest.skip(f"no results of a card: tests/gpu/corpus_digests.py makes {CARD.name}")
    return json.loads(CARD.read_text())


def test_the_corpus_is_large_and_its_names_differ() -> None:
    assert len({k.name for k in ALL}) == len(ALL) >= 60
    assert len({(k.source, k.entry) for k in ALL}) >= 60


@pytest.mark.parametrize("kernel", [pytest.param(k, id=k.name) for k in ALL])
def test_honest_kernels_have_no_findings(kernel: Kernel) -> None:
    """Two poisons and two levels of checks give the same bytes."""
    ptx, entry = ptx_of(kernel)
    loaded = open_cpu().load(Binary(ptx=ptx, cubin=b""))
    call, values = kernel.call(entry), kernel.values()
    runs = [
        loaded.run(call, values, Conditions(poison=poison, checks=checks))
        for poison, checks in (("nan", "all"), ("huge", "bounds"))
    ]
    for done in runs:
        assert done.completed, done.findings
        assert not done.findings
        assert done.guards_intact
        assert done.inputs_intact
        assert done.scratch_restored
    assert runs[0].outputs == runs[1].outputs


@pytest.mark.parametrize("kernel", [pytest.param(k, id=k.name, marks=known(KERNELS, k.name)) for k in ALL])
def test_as_on_the_card(card: dict, kernel: Kernel) -> None:
    known = card["kernels"][kernel.name]
    assert not known["findings"]
    if digest(ptx_of(kernel)[0].encode()) != known["ptx"]:
        pytest.skip("this compiler makes other PTX than the one that the card ran")
    assert compare_kernel(kernel, known) == []


NAMED = [(c, c.name.replace(" ", "-")) for c in cases()]


@pytest.mark.parametrize("case", [pytest.param(c, id=name, marks=known(INSTRUCTIONS, name)) for c, name in NAMED])
def test_instructions_as_on_the_card(card: dict, case: Case) -> None:
    assert compare_instructions(case, card["instructions"]) == []
