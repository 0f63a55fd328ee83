"""What only Hopper has (wgmma, TMA, clusters) is judged where it runs: no `cpu` device ever looked at it.

The whole judge looks, as in a trial: float64 oracle, poisons, guards, fences, boundary and far shapes.
"""

import sys
from contextlib import ExitStack
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "bench"))

from kerneltrial.devices.runner import Runner
from kerneltrial.judge.setup import Subject
from kerneltrial.propose.search.space import read_space
from kerneltrial.records.build import Built
from kerneltrial.records.case import Case
from kerneltrial.records.device import Device
from kerneltrial.records.protocol import Protocol
from kerneltrial.records.validation import Validated
from kerneltrial.store.canonical import digest

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


@pytest.mark.parametrize("way", [5, 6, 7, 8, 9])
def test_clusters_that_stay_draw_more_rows_than_they_were_given(way, card, tmp_path):
    from mutation import Family

    space = read_space(KERNELS / "softmax_wide_f32" / "space.yaml", card.device)
    chosen = [c for c in space.configurations if c["WAY"] == way]
    if not chosen:
        pytest.skip(f"{card.device.arch} has no clusters")
    chosen = chosen[:: max(1, len(chosen) // SPREAD)]
    # 66 clusters of two blocks have three rows to begin with, or twice as many clusters one; rows ragged and whole
    # vectors, and of one block, where `st.async` would end a kernel that has no cluster
    rows = 210 if way in (5, 7) else 140
    cases = [
        Case(name=f"rows_of_{cols}", kind="correctness", dimensions={"rows": rows, "cols": cols}, seed=cols)
        for cols in (20_002, 20_004, 9_001)
    ]
    with ExitStack() as stack:
        family = Family("softmax_wide_f32", tmp_path, stack, Protocol(), "cuda")
        for parameters in chosen:
            plan = space.plan(parameters)
            built = family.build(space.source(parameters), plan)
            assert isinstance(built, Built), f"{parameters}: {built}"
            with Runner(family.runners, "cuda", arch=family.arch) as runner:
                subject = Subject(binary=family.binary(built), plan=plan, abi=built.abi, runner=runner)
                outcome = family.judge.judge_subject(digest(repr(parameters).encode()), subject, cases)
            assert isinstance(outcome, Validated), f"{parameters}: {outcome}"
