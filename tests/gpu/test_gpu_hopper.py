"""What only Hopper has (wgmma, TMA, clusters) is judged where it runs: no `cpu` device ever looked at it.

The whole judge looks, as in a trial: float64 oracle, poisons, guards, fences, boundary and far shapes.
"""

import sys
from contextlib import ExitStack
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "bench"))

from kerneltrial.devices.runner import Runner
from kerneltrial.propose.search.space import read_space
from kerneltrial.records.build import Built
from kerneltrial.records.device import Device
from kerneltrial.records.protocol import Protocol
from kerneltrial.records.validation import Validated

pytestmark = pytest.mark.gpu
KERNELS = Path(__file__).resolve().parents[2] / "kernels"
ELSEWHERE = Device(kind="cpu", arch="sm_80", name="", fingerprint={})
SPREAD = 3  # configurations of each family beside its seeds


def own(name: str, card: Device) -> list[dict[str, int]]:
    """Some of the configurations that nothing else has: seeds first, then evenly."""
    path = KERNELS / name / "space.yaml"
    here, common = read_space(path, card), read_space(path, ELSEWHERE).configurations
    found = [c for c in here.configurations if c not in common]
    seeds = [seed.parameters for seed in here.file.seeds if seed.parameters in found]
    return [*seeds, *found[:: max(1, len(found) // SPREAD)]]


@pytest.mark.parametrize("name", ["matmul_bf16", "matmul_f16", "softmax_wide_f32"])
def test_configurations_that_only_this_card_has_are_valid(name, card, tmp_path):
    from mutation import Family

    chosen = own(name, card.device)
    if not chosen:
        pytest.skip(f"{card.device.arch} has no configurations of its own")
    with ExitStack() as stack:
        family = Family(name, tmp_path, stack, Protocol(boundary_shapes=12), "cuda")
        space = read_space(KERNELS / name / "space.yaml", card.device)
        for parameters in chosen:
            plan = space.plan(parameters)
            built = family.build(space.source(parameters), plan)
            assert isinstance(built, Built), f"{parameters}: {built}"
            with Runner(family.runners, "cuda", arch=family.arch) as runner:
                outcome = family.judge.judge_candidate(built, family.binary(built), plan, runner)
            assert isinstance(outcome, Validated), f"{parameters}: {outcome}"
