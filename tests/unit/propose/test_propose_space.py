"""A search space: enumeration, sources and plans of its configurations, and what is refused."""

from collections.abc import Callable
from itertools import product
from pathlib import Path

import pytest

from kerneltrial.inputs.expressions import evaluate
from kerneltrial.inputs.problem import InputProblem
from kerneltrial.propose.search.space import Space, read_space
from kerneltrial.propose.search.space_file import sentence
from kerneltrial.records.device import Device

KERNELS = Path(__file__).resolve().parents[3] / "kernels"


def test_the_configurations_are_those_that_meet_the_constraints_in_the_order_of_the_file(space: Space) -> None:
    expected = [
        {"TILE": t, "DEPTH": d, "SPLIT": s}
        for t, d, s in product([8, 16, 32, 64], [1, 2, 4, 8], [1, 2, 4])
        if t * d <= 256 and (s == 1 or t < 64)
    ]
    assert list(space.configurations) == expected


def test_the_table_holds_the_same_rows_with_derived_names(space: Space) -> None:
    assert space.table["TILE"].tolist() == [c["TILE"] for c in space.configurations]
    assert space.table["THREADS"].tolist() == [4 * c["TILE"] for c in space.configurations]


def test_a_source_stands_alone(space: Space) -> None:
    source = space.source({"TILE": 32, "DEPTH": 4, "SPLIT": 2}).decode()
    assert source == "#define TILE 32\n#define DEPTH 4\n#define SPLIT 2\n" + space.template


def test_a_source_in_python_holds_constants(write_space: Callable[..., Path]) -> None:
    space = read_space(write_space({"source: space.cu\n": "source: space.cu\nlanguage: numba_cuda\n"}))
    source = space.source({"TILE": 32, "DEPTH": 4, "SPLIT": 2}).decode()
    assert source.startswith("TILE = 32\nDEPTH = 4\nSPLIT = 2\n")


def test_a_plan_holds_numbers_for_parameters_and_keeps_dimensions(space: Space) -> None:
    plan = space.plan({"TILE": 32, "DEPTH": 4, "SPLIT": 2})
    first, second = plan.variants
    assert (first.when, first.launches[0].grid) == ("n % 32 == 0", ("n // 32", "2", "1"))
    assert (second.when, second.launches[0].block) == ("1", ("128", "1", "1"))
    assert plan.scratch[0].elements == "64 * n"


@pytest.mark.parametrize(("way", "entries"), [(2, ["scan_once"]), (1, ["scan_alone", "scan_sums", "add_sums"])])
def test_a_plan_leaves_out_variants_that_no_dimensions_can_reach(way: int, entries: list[str]) -> None:
    scan = read_space(KERNELS / "scan_i32" / "space.yaml")
    (variant,) = scan.plan({"THREADS": 128, "ITEMS": 4, "STAGED": 0, "WAY": way, "WINDOW": 1}).variants
    assert [launch.entry for launch in variant.launches] == entries


def test_a_sentence_takes_values_and_words() -> None:
    assert sentence("{A} of {A * 2} at {case}", {"A": 3}, {"case": "8x8"}) == "3 of 6 at 8x8"


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ("TILE * DEPTH <= 256", "TILE * WIDTH <= 256", "constraints, number 1: 'WIDTH' is not known"),
        ("TILE * DEPTH <= 256", "TILE > 64", "no configuration meets the constraints"),
        ("{TILE: 16, DEPTH: 2, SPLIT: 1}", "{TILE: 64, DEPTH: 8, SPLIT: 1}", "seeds, number 1: .* no valid"),
        ("{TILE: 16, DEPTH: 2, SPLIT: 1}", "{TILE: 16}", "seeds, number 1: .* no valid"),
        ("  TILE: {pattern", "  TILES: {pattern", "reasons.TILES is no parameter"),
        ("source: space.cu", "source: other.cu", "other.cu: cannot be read"),
        ("THREADS: TILE * 4", "THREADS: TILE ** 4", r"operator \*\* is not allowed"),
        ("THREADS: TILE * 4", "SPLIT: TILE * 4", "derived.SPLIT: a parameter has this name too"),
        ("source: space.cu", "source: space.cu\nsauce: x", "unknown key 'sauce'"),
        ("[8, 16, 32, 64]", "[8, many]", "parameters.TILE"),
        ("[8, 16, 32, 64]", "[8, 8, 16]", "parameters.TILE: a value stands twice"),
        ('"{TILE * SPLIT} * n"', '"{TILE * SPLOT} * n"', "'SPLOT' is not known"),
        ("SPLIT == 1 or TILE < 64", "TILE % (SPLIT - 1) == 0", "divides by zero"),
    ],
)
def test_a_wrong_space_is_one_line_that_names_file_and_place(
    write_space: Callable[..., Path], old: str, new: str, says: str
) -> None:
    with pytest.raises(InputProblem, match=says) as caught:
        read_space(write_space({old: new}))
    assert "\n" not in str(caught.value)
    assert str(caught.value).startswith(str(write_space().parent))


def test_too_many_configurations_are_refused(write_space: Callable[..., Path]) -> None:
    wide = "[" + ", ".join(map(str, range(1, 40))) + "]"
    replaced = {
        "[8, 16, 32, 64]": wide,
        "[1, 2, 4, 8]": wide,
        "[1, 2, 4]": wide,
        "TILE * DEPTH <= 256": '"1"',
        "SPLIT == 1 or TILE < 64": '"1"',
    }
    with pytest.raises(InputProblem, match="59319 configurations are valid, at most 20000"):
        read_space(write_space(replaced))


@pytest.mark.parametrize("name", ["matmul_f32", "softmax_f32"])
def test_a_shipped_space_has_hundreds_of_configurations_that_meet_its_constraints(name: str) -> None:
    space = read_space(KERNELS / name / "space.yaml")
    assert 200 <= len(space.configurations) <= 2000
    assert len(space.file.seeds) >= 2
    for configuration in space.configurations[::29]:
        known = space.named(configuration)
        assert all(evaluate(constraint, known) for constraint in space.file.constraints)


def test_what_one_architecture_alone_has_is_left_out_elsewhere(write_space: Callable[..., Path]) -> None:
    path = write_space({"constraints:": 'requires:\n  - {arch: sm_90a, when: "SPLIT == 4"}\nconstraints:'})
    whole = read_space(path)
    assert {c["SPLIT"] for c in whole.configurations} >= {1, 4}
    hopper = Device(kind="cuda", arch="sm_90a", name="", fingerprint={})
    assert read_space(path, hopper).configurations == whole.configurations
    for kind, arch in (("cuda", "sm_80"), ("cpu", "sm_90a")):
        left = read_space(path, Device(kind=kind, arch=arch, name="", fingerprint={}))
        assert left.configurations == tuple(c for c in whole.configurations if c["SPLIT"] != 4)
        assert left.file.seeds == whole.file.seeds


def test_a_seed_that_needs_another_architecture_is_left_out_too(write_space: Callable[..., Path]) -> None:
    path = write_space(
        {"constraints:": 'requires:\n  - {arch: sm_90a, when: "DEPTH == 2 and SPLIT == 1"}\nconstraints:'}
    )
    card = Device(kind="cuda", arch="sm_80", name="", fingerprint={})
    assert len(read_space(path, card).file.seeds) == len(read_space(path).file.seeds) - 1


def test_what_is_required_may_only_speak_of_parameters(write_space: Callable[..., Path]) -> None:
    path = write_space({"constraints:": 'requires:\n  - {arch: sm_90a, when: "SPLOT == 4"}\nconstraints:'})
    with pytest.raises(InputProblem, match="requires, number 1: 'SPLOT' is not known"):
        read_space(path)
