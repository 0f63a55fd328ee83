"""Every shipped trial names a plain reference kernel, which every check passes, and which contradicts a wrong oracle.

That it agrees with the family's own oracle, in every draw of every small case, `test_families.py` asks.
"""

from pathlib import Path

import numpy as np
import pytest
from family_court import CLONE, Family, names

from kerneltrial.devices.device import Conditions
from kerneltrial.inputs.boundary import boundary_shapes
from kerneltrial.inputs.contracts import read_contract
from kerneltrial.inputs.oracle import Oracle, load
from kerneltrial.inputs.plans import plan_path, read_plan
from kerneltrial.inputs.resolve import resolve
from kerneltrial.judge.answers import compare_all
from kerneltrial.judge.casework import fault_of
from kerneltrial.judge.qualification import QualificationProblem, second_opinion
from kerneltrial.judge.setup import JudgeSetup, Subject
from kerneltrial.judge.validation import Judge
from kerneltrial.records.contract import Contract
from kerneltrial.records.protocol import Protocol
from kerneltrial.records.reason import Reason

STARTER = CLONE / "workflow/kerneltrial/commands/starter"
SHIPPED = {path.relative_to(CLONE).as_posix(): path for path in sorted((CLONE / "trials").rglob("*.yaml"))} | {
    "config.yaml": CLONE / "config.yaml",
    "config_softmax.yaml": CLONE / "config_softmax.yaml",
}
SPECIAL = 4  # the draw of special values, where a contract has some


def _trial(path: Path) -> Family:
    return Family(path.stem, file=path)


@pytest.mark.parametrize("name", [*SHIPPED, "the starter"])
def test_a_shipped_trial_names_a_reference(name: str) -> None:
    """Without one the rule `independent_oracle` stays unknown, so that no trial of the family could end in GO."""
    family = (
        Family(name, root=STARTER, file=STARTER / "config.yaml") if name == "the starter" else _trial(SHIPPED[name])
    )
    assert family.config.reference, f"{name}: the key `reference` names no kernel"
    plan = read_plan(plan_path(family.root / family.config.reference))
    ends = [{d: getattr(span, end) for d, span in family.contract.dimensions.items()} for end in ("minimum", "maximum")]
    shapes = boundary_shapes(family.contract, family.cases, 20, 9)
    for dimensions in (*ends, *(case.dimensions for case in family.cases.cases), *shapes):
        resolve(plan, family.contract, dimensions, "pointer")


def _question(contract: Contract) -> object:
    """What two contracts must share for one kernel to answer both."""
    arguments = [
        (type(a), a.name, getattr(a, "role", ""), getattr(a, "dtype", ""), getattr(a, "shape", ()))
        for a in contract.arguments
    ]
    return arguments, contract.torch, contract.deterministic, contract.tf32


def test_a_reference_of_another_family_answers_the_same_question() -> None:
    shared = set()
    for name, path in SHIPPED.items():
        family = _trial(path)
        owner = Path(family.config.reference).parent.name
        if owner != family.contract.name:
            shared.add((family.contract.name, owner))
            other = read_contract(CLONE / "kernels" / owner / "contract.yaml")
            assert _question(family.contract) == _question(other), name
    assert shared == {("matmul_large_f32", "matmul_f32"), ("softmax_wide_f32", "softmax_f32")}


def _reference(family: Family) -> Subject:
    reference = family.reference()
    assert reference is not None
    return reference


def _judge(family: Family, reference: Subject, trusted: Oracle) -> Judge:
    """A judge of small cases; nothing asks for its baseline."""
    setup = JudgeSetup(
        contract=family.contract,
        cases=family.small,
        protocol=Protocol(boundary_shapes=0),
        oracle=trusted,
        baseline=reference,
        folder=(family.root / family.config.cases).parent,
    )
    return Judge(setup)


@pytest.mark.parametrize("name", names())
def test_every_check_is_silent_on_a_reference(name: str) -> None:
    family = Family(name, checks="all")
    reference = _reference(family)
    judge = _judge(family, reference, load(CLONE / family.config.oracle))
    for number, case in enumerate(family.small.cases[:3]):
        drawn = judge.answers.drawn(case, SPECIAL if number == 0 else number)
        call = reference.call(family.contract, case.dimensions)
        run = reference.run(call, drawn.values, Conditions(poison="nan"))
        assert fault_of(run) is None, case.name
        assert all(finding.reason is Reason.CHECK_ABSENT for finding in run.unchecked), case.name
        assert [c.finding for c in compare_all(run, call, drawn.expected, lambda _: None) if c.finding] == [], case.name


# How an oracle could be wrong and look right, a family each: text of oracle.py, and what stands in its place.
_PRODUCT = 'inputs["a"].astype(np.float64) @ inputs["b"].astype(np.float64)'
_ONE_SHORT = 'inputs["a"][:, 1:].astype(np.float64) @ inputs["b"][1:].astype(np.float64)'
_BORDERS = 'half = _across_columns(inputs["picture"].astype(np.int64))'
SLIPS = {
    "conv3x3_f32": ("the filter flipped", "w[:, :, u, v], padded", "w[:, :, 2 - u, 2 - v], padded"),
    "cross_entropy_f32": ("no maximum added again", "(maximum - right)", "(0 - right)"),
    "dct8x8_quant_i16": ("levels to the nearest", "87381) >> 18", "131072) >> 18"),
    "deblock_u8": (
        "horizontal borders first",
        _BORDERS,
        'return {"smooth": _across_columns(_across_columns(inputs["picture"].astype(np.int64).T).T)}',
    ),
    "diagonal_matmul_f32": ("half precision", "[:, None]", "[:, None].astype(np.float16).astype(np.float64)"),
    "histogram_u8": ("the last byte left out", 'inputs["x"],', 'inputs["x"][:-1],'),
    "layernorm_residual_f32": ("the unbiased variance", "((h - mean) ** 2).mean(axis=1, k", "h.var(axis=1, ddof=1, k"),
    "matmul_bf16": ("one product left out", _PRODUCT, _ONE_SHORT),
    "matmul_bias_gelu_f32": (
        "GELU by tanh",
        "_ERF(z / math.sqrt(2.0))",
        "np.tanh(math.sqrt(2 / math.pi) * (z + 0.044715 * z**3))",
    ),
    "matmul_f16": ("one product left out", _PRODUCT, _ONE_SHORT),
    "matmul_large_f32": ("one product left out", _PRODUCT, _ONE_SHORT),
    "matmul_residual_norm_f32": ("another epsilon", "1e-5", "1e-6"),
    "reduce_columns_f32": (
        "NaN left out",
        'inputs["x"].astype(np.float64).sum(',
        'np.nansum(inputs["x"].astype(float), ',
    ),
    "reduce_rows_f32": ("the last column left out", "float64).sum(", "float64)[:, :-1].sum("),
    "rmsnorm_residual_f32": ("epsilon beside the root", "keepdims=True) + 1e-5)", "keepdims=True)) + 1e-5"),
    "sad_search_u8": ("the highest of tied places", "sums.argmin(axis=0)", "288 - sums[::-1].argmin(axis=0)"),
    "scan_i32": ("sums before each value", "dtype=np.int64).astype", 'dtype=np.int64).__sub__(inputs["x"]).astype'),
    "softmax_wide_f32": ("powers of two", "np.exp(", "np.exp2("),
    "spmv_csr_f32": ("columns counted from one", '[inputs["columns"]]', '[inputs["columns"] - 1]'),
    "transpose_f32": ("zeros without a sign", "astype(np.float64).T", "astype(np.float64).T + 0.0"),
}


def test_there_is_a_slip_for_each_family() -> None:
    assert sorted(SLIPS) == names()


@pytest.mark.parametrize("name", SLIPS)
def test_a_reference_contradicts_an_oracle_with_a_slip(name: str, tmp_path: Path) -> None:
    _, right, wrong = SLIPS[name]
    family = Family(name, checks="bounds")
    text = (CLONE / family.config.oracle).read_text()
    assert right in text
    slipped = tmp_path / "oracle.py"
    slipped.write_text(text.replace(right, wrong))
    reference = _reference(family)
    with pytest.raises(QualificationProblem, match="oracle and reference kernel disagree in case "):
        second_opinion(_judge(family, reference, load(slipped)), reference)


INF, NAN = np.inf, np.nan
INFINITE = np.array([[INF, 0, 1], [INF, 0, 1], [-INF, 0, 0], [-INF, 0, 0], [-INF, -INF, -INF], [NAN, 0, 1]], np.float32)
LABELS = np.array([0, 1, 0, 1, 0, 1], np.int32)
# What the contracts say of such rows in words, and draws of special values seldom hold.
SAID = {
    "cross_entropy_f32": ({"logits": INFINITE, "labels": LABELS}, [NAN, NAN, INF, np.log(2), NAN, NAN]),
    "softmax_wide_f32": ({"x": INFINITE}, [[NAN] * 3, [NAN] * 3, [0, 0.5, 0.5], [0, 0.5, 0.5], [NAN] * 3, [NAN] * 3]),
}


@pytest.mark.parametrize("name", SAID)
def test_infinities_give_what_the_contract_says(name: str) -> None:
    values, said = SAID[name]
    family = Family(name, checks="bounds")
    (output,) = family.contract.outputs
    dims = dict(zip(family.contract.dimensions, INFINITE.shape, strict=True))
    answer = load(CLONE / family.config.oracle).answer(family.contract, values, dims)
    np.testing.assert_allclose(answer.outputs[output.name], said, rtol=1e-12)
    for subject in (_reference(family), family.baseline()):
        run = subject.run(subject.call(family.contract, dims), values, Conditions(poison="nan", checks="bounds"))
        got = np.frombuffer(run.outputs[output.name], np.float32).reshape(answer.outputs[output.name].shape)
        np.testing.assert_allclose(got, said, rtol=1e-6)
