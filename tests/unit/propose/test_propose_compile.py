"""Every value of every parameter of every shipped space compiles for the card that the figures are of.

The `cpu` device takes what is compiled for an older architecture, and seeds are few: what only other values reach,
or only Hopper compiles, would be seen on a card for the first time.
"""

import re
from pathlib import Path

import pytest

from kerneltrial.build.entries import entries
from kerneltrial.build.messages import Compiled
from kerneltrial.build.nvrtc import compile_source
from kerneltrial.inputs.contracts import read_contract
from kerneltrial.propose.search.space import Space, read_space
from kerneltrial.records.device import Device

ROOT = Path(__file__).resolve().parents[3]
HOPPER = Device(kind="cuda", arch="sm_90a", name="none", fingerprint={"multiprocessors": "132"})
# Without optimisation: what is looked for is what the compiler refuses, and unrolled loops take it many seconds.
OPTIONS = ("--gpu-architecture=compute_90a", "--std=c++17", "--device-debug")
SPACES = sorted(
    path for path in (ROOT / "kernels").glob("*/space*.yaml") if "\nlanguage: cuda_cpp\n" in path.read_text()
)
SOURCES = sorted((ROOT / "kernels").glob("**/*.cu"))


def _covering(space: Space) -> list[dict[str, int]]:
    """Configurations that have every value of every parameter that any has, found greedily."""
    left = {pair for c in space.configurations for pair in c.items()}
    found = []
    while left:
        found.append(max(space.configurations, key=lambda c: len(left & c.items())))
        left -= found[-1].items()
    return found


@pytest.mark.parametrize("path", SPACES, ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_every_value_of_every_parameter_compiles_for_hopper(path: Path) -> None:
    space = read_space(path, HOPPER)
    options = (*OPTIONS, *read_contract(path.parent / "contract.yaml").options)
    for parameters in _covering(space):
        compiled = compile_source(space.source(parameters), options)
        assert isinstance(compiled, Compiled), f"{parameters}: {compiled}"
        launched = {launch.entry for variant in space.plan(parameters).variants for launch in variant.launches}
        assert launched <= set(entries(compiled.ptx.decode())), parameters


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: str(path.relative_to(ROOT / "kernels")))
def test_no_source_has_a_lambda_that_nvrtc_13_0_takes_for_a_host_function(path: Path) -> None:
    """Within a template, NVRTC 13.0 refuses generic lambdas, and with them the whole source; later ones do not."""
    assert not re.search(r"\]\s*\([^)]*\bauto\b", path.read_text())


def test_spaces_and_sources_are_found() -> None:
    assert len(SPACES) >= 22
    assert len(SOURCES) >= 44
