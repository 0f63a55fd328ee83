"""Every kernel family: its files agree, it qualifies, and two configurations are valid, on small shapes on `cpu`.

`tests/bench/families.py` judges every configuration of every space on every case; that takes hours, and this seconds.
"""

from pathlib import Path

import pytest
from family_court import CLONE, NO_CARD, Family, names
from msgspec.structs import replace

from kerneltrial.inputs.plans import plan_path, read_plan
from kerneltrial.inputs.trial import check_workload
from kerneltrial.propose.history import History
from kerneltrial.propose.proposer import Draft
from kerneltrial.propose.search.search import open_search
from kerneltrial.propose.search.space import read_space
from kerneltrial.records.validation import Validated
from kerneltrial.store.canonical import digest

FAMILIES = names()
FEW = {"LARGE": 0, "RESIDENT": 1, "BAND": 1, "SQUARES": 0}
MANY = {"LARGE": 1, "SLICES": 1, "BAND": 8, "SQUARES": 1}
# In place of seeds that take seconds to compile: small tiles, and the same structure. None: no configuration here.
QUICK: dict[str, tuple[dict[str, int] | None, ...]] = {
    "matmul_bias_gelu_f32": (
        FEW | {"BM": 32, "BN": 32, "BK": 16, "TM": 2, "TN": 4, "STAGES": 2, "SLICES": 2, "SPLIT": 4, "FUSED": 1},
        MANY | {"BM": 64, "BN": 64, "BK": 8, "TM": 8, "TN": 8, "STAGES": 1, "SPLIT": 2, "RESIDENT": 2, "FUSED": 1},
    ),
    "cross_entropy_f32": (
        {"GROUP": 32, "ROWS": 2, "VEC": 1, "ONLINE": 1, "FLIGHT": 1, "SPLIT": 1},
        {"GROUP": 256, "ROWS": 1, "VEC": 4, "ONLINE": 2, "FLIGHT": 1, "SPLIT": 4},
    ),
    "softmax_wide_f32": (
        {"THREADS": 128, "VEC": 1, "FLIGHT": 1, "CHUNK": 2048, "WAY": 1, "BACK": 1, "HINT": 0, "FAST": 1},
        {"THREADS": 128, "VEC": 2, "FLIGHT": 1, "CHUNK": 2048, "WAY": 3, "BACK": 1, "HINT": 0, "FAST": 0},
    ),
    "matmul_f16": (
        None,
        {
            "BM": 32,
            "BN": 32,
            "BK": 16,
            "WM": 16,
            "WN": 16,
            "STAGES": 3,
            "LDMATRIX": 1,
            "BAND": 1,
            "WGMMA": 0,
            "CLUSTER": 1,
        },
    ),
    "conv3x3_f32": (
        {"WINOGRAD": 1, "BM": 32, "BN": 16, "OUT": 4, "PX": 4, "DEPTH": 8, "SLICES": 1},
        {"WINOGRAD": 0, "BM": 32, "BN": 32, "OUT": 4, "PX": 4, "DEPTH": 32, "SLICES": 4},
    ),
    "dct8x8_quant_i16": (
        {"BLOCKS": 4, "WAY": 1, "BUTTERFLY": 1, "VEC": 8},
        {"BLOCKS": 8, "WAY": 0, "BUTTERFLY": 1, "VEC": 1},
    ),
    "layernorm_residual_f32": (
        {"GROUP": 64, "ROWS": 1, "VEC": 1, "KEEP": 2, "HOLD": 1, "WELFORD": 1, "EARLY": 0},
        {"GROUP": 64, "ROWS": 2, "VEC": 4, "KEEP": 1, "HOLD": 4, "WELFORD": 0, "EARLY": 0},
    ),
    "rmsnorm_residual_f32": ({"GROUP": 64, "ROWS": 1, "VEC": 1, "KEEP": 2, "HOLD": 1, "EARLY": 0},),
    "matmul_large_f32": (
        {"BM": 64, "BN": 64, "BK": 8, "TN": 8, "STAGES": 1, "RESIDENT": 2, "SPLIT": 4, "BAND": 8, "SQUARES": 1},
        {"BM": 64, "BN": 128, "BK": 8, "TN": 16, "STAGES": 3, "RESIDENT": 4, "SPLIT": 0, "BAND": 1, "SQUARES": 0},
    ),
    "matmul_bf16": (
        {
            "BM": 32,
            "BN": 32,
            "BK": 16,
            "WM": 16,
            "WN": 16,
            "STAGES": 1,
            "LDMATRIX": 0,
            "BAND": 8,
            "WGMMA": 0,
            "CLUSTER": 1,
        },
    ),
    "matmul_residual_norm_f32": (
        FEW | {"BM": 32, "BN": 32, "BK": 16, "TM": 4, "TN": 4, "STAGES": 1, "SLICES": 4, "SPLIT": 1, "NORM": 1},
        MANY | {"BM": 64, "BN": 64, "BK": 8, "TM": 8, "TN": 8, "STAGES": 3, "SPLIT": 1, "RESIDENT": 2, "NORM": 0},
    ),
}


def test_every_kernel_folder_belongs_to_a_trial() -> None:
    folders = {path.parent.name for path in (CLONE / "kernels").glob("*/contract.yaml")}
    assert folders == {path.parent.name for path in (CLONE / "cases").glob("*/cases.yaml")}
    assert folders - set(FAMILIES) == {"matmul_f32", "softmax_f32"}  # config.yaml and config_softmax.yaml


@pytest.mark.parametrize("name", FAMILIES)
def test_the_files_of_a_family_agree(name: str) -> None:
    family = Family(name)
    assert family.config.trial == family.contract.name == name
    check_workload(family.config.workload, family.cases)
    assert len(family.small.cases) >= 2
    assert len(family.space.file.seeds) >= 2
    search = open_search(CLONE / family.config.space, family.cases, NO_CARD, 1)  # prior and reasons hold for its cases
    assert len(search.space.configurations) >= 20


@pytest.mark.parametrize("name", FAMILIES)
def test_a_family_qualifies_and_two_configurations_are_valid(name: str) -> None:
    family = Family(name, checks="bounds")
    judge = family.judge(family.small, 0)
    qualified = family.qualified(judge)
    assert qualified.second_opinion.agrees
    for case in qualified.cases:
        assert {null.name.split(": ")[-1] for null in case.nulls} >= {"zeros", "the mean of the right answer"}
        assert all(null.refused > 0 for null in case.nulls)
    # One case a configuration: the first takes the entry for any shape and every check, the second the entry for
    # vectors. Each check costs compile time, so that races and unwritten memory are looked for once.
    chosen = QUICK.get(name, tuple(seed.parameters for seed in family.space.file.seeds))
    for parameters, case, checks in zip(chosen, family.small.cases, ("all", "bounds"), strict=False):
        if parameters is None:
            continue
        assert parameters in family.space.configurations
        outcome = Family(name, checks).verdict(judge, parameters, (case,))
        assert isinstance(outcome, Validated), f"{parameters} in {case.name}: {outcome}"


# Structures that neither of the two above has, each in the case that takes it through.
FURTHER: dict[str, tuple[str, str, dict[str, int]]] = {
    "splits that the last block adds": (
        "reduce_columns_f32", "high",
        {"WIDE": 32, "HIGH": 4, "VEC": 4, "FLIGHT": 2, "SPLIT": 64, "FINISH": 1},
    ),
    "products by way of shared memory, in several tiles": (
        "spmv_csr_f32", "one_long_row",
        {"THREADS": 64, "WAY": 2, "LANES": 4, "FLIGHT": 1, "ITEMS": 4},
    ),
    "a window of 128 tiles": (
        "scan_i32", "many_tiles",
        {"THREADS": 128, "ITEMS": 4, "STAGED": 1, "WAY": 2, "WINDOW": 128},
    ),
    "Welford's parts of rows that are kept": (
        "layernorm_residual_f32", "far_from_zero",
        {"GROUP": 64, "ROWS": 2, "VEC": 4, "KEEP": 1, "HOLD": 4, "WELFORD": 1, "EARLY": 1},
    ),
}  # fmt: skip


@pytest.mark.parametrize("structure", FURTHER)
def test_a_further_structure_is_valid(structure: str) -> None:
    name, at, parameters = FURTHER[structure]
    family = Family(name, checks="all")
    assert parameters in family.space.configurations
    judge = family.judge(family.small, 0)
    outcome = family.verdict(judge, parameters, [case for case in family.small.cases if case.name == at])
    assert isinstance(outcome, Validated), outcome
    assert len(outcome.cases) == 1


def test_blocks_that_end_one_tile_and_begin_the_next_leave_two_partial_tiles() -> None:
    family = Family("matmul_large_f32", checks="bounds")
    parameters = {
        "BM": 64,
        "BN": 128,
        "BK": 8,
        "TN": 8,
        "STAGES": 1,
        "RESIDENT": 1,
        "SPLIT": 0,
        "BAND": 1,
        "SQUARES": 1,
    }
    assert parameters in family.space.configurations
    judge = family.judge(family.small, 0)
    runs = next(case for case in family.small.cases if case.name == "runs")
    outcome = family.verdict(judge, parameters, (runs,))
    assert isinstance(outcome, Validated), outcome


def test_the_measured_space_of_convolutions_beside_the_trials_own_is_valid() -> None:
    family = Family("conv3x3_f32", checks="bounds")
    space = read_space(CLONE / "kernels" / "conv3x3_f32" / "space.yaml", NO_CARD)
    judge = family.judge(family.small, 0)
    for way, high in ((2, 4), (0, 4), (1, 8)):
        parameters = {"WIDE": 16, "HIGH": high, "PX": 2, "OUT": 1, "DEPTH": 2, "WAY": way}
        assert parameters in space.configurations
        subject = family.subject(space.source(parameters), space.plan(parameters))
        outcome = judge.judge_subject(digest(repr(parameters).encode()), subject, family.small.cases[:2])
        assert isinstance(outcome, Validated), f"{parameters}: {outcome}"


def test_a_cluster_that_norms_is_right_where_it_is_one_block() -> None:
    """The `cpu` device has no clusters: their barriers are the block's here, and a block tells itself alone."""
    family = Family("matmul_residual_norm_f32", checks="all")
    space = read_space(CLONE / "kernels" / family.name / "space.yaml")
    parameters = FEW | {"BM": 32, "BN": 32, "BK": 16, "TM": 4, "TN": 4, "STAGES": 2, "SLICES": 4, "SPLIT": 1, "NORM": 3}
    assert parameters in space.configurations
    source, plan = space.source(parameters).decode(), space.plan(parameters)
    begin, end = (source.index(text) for text in ("__device__ __forceinline__ void arrive_in", "// The grid's rows of"))
    alone = """__device__ void arrive_in_cluster() {}
        __device__ void wait_for_cluster() { __syncthreads(); }
        __device__ void tell(float* own, int, float value) { *own = value; }
    """
    assert [v.launches[0].entry for v in plan.variants[:2]] == ["cluster_whole", "cluster_any"]
    single = [
        replace(
            v, when=v.when.replace("n <= 256", "n <= 32"), launches=(replace(v.launches[0], cluster=("1", "1", "1")),)
        )
        for v in plan.variants[:2]
    ]
    plan = replace(plan, variants=(*single, *plan.variants[2:]))
    subject = family.subject((source[:begin] + alone + source[end:]).encode(), plan)
    judge = family.judge(family.small, 0)
    sizes = ({"m": 64, "n": 32, "k": 48}, {"m": 61, "n": 27, "k": 49})
    cases = tuple(replace(judge.cases[0], name=f"alone_{d['m']}", dimensions=d) for d in sizes)
    outcome = judge.judge_subject(digest(repr(parameters).encode()), subject, cases)
    assert isinstance(outcome, Validated), outcome


ON_CARD = sorted((CLONE / "trials" / "on_card").glob("*.yaml"))


@pytest.mark.parametrize("path", ON_CARD, ids=lambda path: path.stem)
def test_a_trial_for_a_card_has_its_familys_files_and_begins_with_its_seeds(path: Path) -> None:
    family = Family(path.stem, file=path)
    assert {family.config.contract, family.config.space} == {
        Family(path.stem).config.contract,
        Family(path.stem).config.space,
    }
    check_workload(family.config.workload, family.cases)
    correctness = {case.name: case.dimensions for case in Family(path.stem).small.cases}
    assert {case.name: case.dimensions for case in family.small.cases} == correctness
    count = family.config.candidates_per_iteration
    drafts = open_search(CLONE / family.config.space, family.cases, NO_CARD, 1).propose(History(0, 0, ()), count)
    seeds = [seed.parameters for seed in family.space.file.seeds]
    assert [draft.origin.parameters for draft in drafts if isinstance(draft, Draft)] == seeds[:count]


CANDIDATES = sorted(path for name in FAMILIES for path in (CLONE / "kernels" / name / "candidates").glob("*.cu"))


@pytest.mark.parametrize("path", CANDIDATES, ids=lambda path: path.stem)
def test_a_kernel_beside_a_space_is_valid(path: Path) -> None:
    family = Family(path.parents[1].name, checks="all")
    judge = family.judge(family.small, 4)
    subject = family.subject(path.read_bytes(), read_plan(plan_path(path)))
    outcome = judge.judge_subject(digest(path.name.encode()), subject, judge.cases)
    assert isinstance(outcome, Validated), outcome
