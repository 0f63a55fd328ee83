"""Every shipped kernel and reference is right on the `cpu` device, within its contract and with every check silent."""

import multiprocessing
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from kerneltrial.build.messages import Compiled, NumbaRequest
from kerneltrial.build.nvrtc import compile_source
from kerneltrial.build.signatures import signatures
from kerneltrial.devices.cpu.device import open_cpu
from kerneltrial.devices.device import Binary, Conditions, Loaded
from kerneltrial.inputs import oracle
from kerneltrial.inputs.boundary import boundary_cases, boundary_shapes
from kerneltrial.inputs.cases import read_cases
from kerneltrial.inputs.contracts import read_contract
from kerneltrial.inputs.dtypes import epsilon, from_bytes, widen
from kerneltrial.inputs.plans import plan_path, read_plan
from kerneltrial.inputs.resolve import parameter_sizes, resolve
from kerneltrial.inputs.values import generate
from kerneltrial.records.build import Abi
from kerneltrial.records.case import Case, Cases
from kerneltrial.records.contract import Contract
from kerneltrial.records.reason import Reason

CLONE = Path(__file__).resolve().parents[3]
FAMILIES = ("matmul_f32", "softmax_f32")


def _sources() -> list[str]:
    found: list[Path] = []
    for family in FAMILIES:
        found += [CLONE / f"kernels/{family}/baseline.cu", CLONE / f"cases/{family}/reference.cu"]
        found += sorted((CLONE / f"kernels/{family}/candidates").glob("*.cu"))
        found += sorted((CLONE / f"kernels/{family}/candidates").glob("*.py"))
    return [path.relative_to(CLONE).as_posix() for path in found]


@cache
def _family(name: str) -> tuple[Contract, Cases, oracle.Oracle]:
    contract = read_contract(CLONE / f"kernels/{name}/contract.yaml")
    return contract, read_cases(CLONE / f"cases/{name}/cases.yaml"), oracle.load(CLONE / f"cases/{name}/oracle.py")


def _numba(request: NumbaRequest) -> str:
    from kerneltrial.build.numba_ptx import compile_source as compile_python

    reply = compile_python(request)
    assert isinstance(reply, Compiled), reply
    return reply.ptx.decode()


def _ptx(path: Path, contract: Contract) -> str:
    if path.suffix == ".cu":
        reply = compile_source(path.read_bytes(), ("--gpu-architecture=sm_80", "--std=c++17"))
        assert isinstance(reply, Compiled), reply
        return reply.ptx.decode()
    request = NumbaRequest(
        source=path.read_bytes(), kernels=signatures(read_plan(plan_path(path)), contract), arch="sm_80"
    )
    with multiprocessing.get_context("spawn").Pool(1) as child:  # numba counts compiles: one candidate a process
        return child.apply(_numba, (request,))


def _share_of_bound(loaded: Loaded, source: Path, case: Case, draw: int, abi: Abi) -> float:
    """The worst error over what the contract allows; every check of the device must be silent."""
    contract, _, trusted = _family(source.parts[-2] if source.parts[-2] in FAMILIES else source.parts[-3])
    call = resolve(read_plan(plan_path(source)), contract, case.dimensions, abi)
    values = generate(contract, case, draw)
    run = loaded.run(call, values, Conditions(poison="nan"))
    assert run.completed
    assert run.findings == ()
    assert all(finding.reason is Reason.CHECK_ABSENT for finding in run.unchecked)
    assert run.inputs_intact
    assert run.guards_intact
    answer = trusted.answer(contract, values, case.dimensions)
    worst = 0.0
    for output in contract.outputs:
        shape = next(buffer.shape for buffer in call.buffers if buffer.name == output.name)
        want, tolerance = answer.outputs[output.name], contract.tolerances[output.name]
        error = np.abs(widen(from_bytes(run.outputs[output.name], output.dtype, shape), output.dtype) - want)
        bound = float(tolerance.absolute) + float(tolerance.relative) * np.abs(want)
        bound = bound + float(tolerance.scaled) * epsilon(output.dtype) * answer.terms.get(output.name, 0.0)
        assert not np.isnan(error).any()
        worst = max(worst, float(np.max(np.where(error == 0, 0, error / np.maximum(bound, 1e-300)))))
    return worst


@pytest.mark.parametrize("name", _sources())
def test_a_shipped_kernel_is_right(name: str) -> None:
    source = CLONE / name
    contract, cases, _ = _family(source.parts[-2] if source.parts[-2] in FAMILIES else source.parts[-3])
    abi: Abi = "numba_array" if source.suffix == ".py" else "pointer"
    loaded = open_cpu().load(Binary(ptx=_ptx(source, contract), cubin=b""))
    small = [case for case in cases.cases if case.kind == "correctness"]
    for case in small:
        for draw in (0, 1, 3):
            # A tenth: the contract's bound is for the largest shapes, and small ones must keep well inside of it.
            assert _share_of_bound(loaded, source, case, draw, abi) < 0.1, (case.name, draw)
    for case in boundary_cases(boundary_shapes(contract, cases, 7, 3), 3):
        assert _share_of_bound(loaded, source, case, 1, abi) < 0.1, case.dimensions


@pytest.mark.parametrize("name", _sources())
def test_a_shipped_plan_takes_every_shape(name: str) -> None:
    source = CLONE / name
    contract, cases, _ = _family(source.parts[-2] if source.parts[-2] in FAMILIES else source.parts[-3])
    plan = read_plan(plan_path(source))
    abi: Abi = "numba_array" if source.suffix == ".py" else "pointer"
    ends = [{name: getattr(span, end) for name, span in contract.dimensions.items()} for end in ("minimum", "maximum")]
    for dimensions in (*ends, *(case.dimensions for case in cases.cases), *boundary_shapes(contract, cases, 40, 9)):
        call = resolve(plan, contract, dimensions, abi)
        sizes = parameter_sizes(plan, contract, abi)
        for launch in call.launches:
            widths = tuple(8 if not hasattr(p, "bytes") else p.bytes for p in launch.parameters)
            assert widths == sizes[launch.entry]
