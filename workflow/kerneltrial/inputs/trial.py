"""All input files of a trial, read and compared with each other."""

import re
from collections.abc import Mapping
from pathlib import Path

from kerneltrial.inputs.cases import check_cases, read_cases
from kerneltrial.inputs.contracts import read_contract
from kerneltrial.inputs.holdout import check_holdout, read_holdout
from kerneltrial.inputs.oracle import Oracle
from kerneltrial.inputs.plans import plan_path, read_plan
from kerneltrial.inputs.problem import InputProblem
from kerneltrial.inputs.resolve import PlanProblem, parameter_sizes, resolve
from kerneltrial.inputs.values import generate
from kerneltrial.records.case import Cases, HoldoutDomain
from kerneltrial.records.contract import Contract
from kerneltrial.records.plan import LaunchPlan
from kerneltrial.records.record import Record
from kerneltrial.records.terms import Workload


class TrialInputs(Record):
    """What a trial is about."""

    contract: Contract
    cases: Cases
    holdout: HoldoutDomain
    baseline_plan: LaunchPlan


def read_trial(files: Mapping[str, tuple[str, ...]], folder: Path) -> TrialInputs:
    """Read contract, cases, holdout and plans, and compare them with each other.

    `files` is what `inputs.sources.sources` gives: the group's own file first. The oracle is not run (`check_oracle`).

    Raises
    ------
    InputProblem
        One line with file and field.
    """
    contract = read_contract(folder / files["contract"][0])
    cases_path = folder / files["cases"][0]
    cases = read_cases(cases_path)
    check_cases(cases, contract, cases_path)
    holdout_path = folder / files["holdout"][0]
    holdout = read_holdout(holdout_path)
    check_holdout(holdout, contract, holdout_path)
    plans = {
        group: _plan(folder / files[group][0], contract, cases) for group in ("baseline", "reference") if files[group]
    }
    return TrialInputs(contract=contract, cases=cases, holdout=holdout, baseline_plan=plans["baseline"])


def check_workload(workload: Workload, cases: Cases, where: str = "config.yaml") -> None:
    """Raise `InputProblem` unless the workload has a number of calls for every performance case and for no other."""
    wanted = {case.name for case in cases.cases if case.kind == "performance"}
    for name in workload.calls_per_month:
        if name not in wanted:
            known = ", ".join(sorted(wanted))
            raise InputProblem(f"{where}: workload.calls_per_month: {name!r} is no performance case; allowed: {known}")
    for name in sorted(wanted - set(workload.calls_per_month)):
        raise InputProblem(f"{where}: workload.calls_per_month: the performance case {name!r} has no number of calls")


def check_oracle(oracle: Oracle, inputs: TrialInputs, folder: Path) -> None:
    """Ask the oracle once, on the smallest case; `folder` is where the cases' file lies. Raises `InputProblem`."""
    smallest = min(inputs.cases.cases, key=lambda case: (sum(case.dimensions.values()), case.name))
    oracle.answer(inputs.contract, generate(inputs.contract, smallest, 0, folder), smallest.dimensions)


def _plan(source: Path, contract: Contract, cases: Cases) -> LaunchPlan:
    """The plan beside a trusted kernel: it must launch for every case."""
    path = plan_path(source)
    plan = read_plan(path)
    try:
        _check_entries(source, plan)
        parameter_sizes(plan, contract, "pointer")
        for case in cases.cases:
            resolve(plan, contract, case.dimensions, "pointer")
    except PlanProblem as fault:
        raise InputProblem(f"{path}: {fault}") from None
    return plan


def _check_entries(source: Path, plan: LaunchPlan) -> None:
    """Raise `InputProblem` for an entry that cannot be in the source: the compiler would say so after the lock only.

    A name that a macro or a header may put together is left to the compiler.
    """
    if source.suffix != ".cu":
        return
    text = source.read_text(errors="replace")
    if "##" in text or re.search(r'#\s*include\s*"', text):
        return
    for launch in (launch for variant in plan.variants for launch in variant.launches):
        if not re.search(rf"\b{re.escape(launch.entry)}\b", text):
            there = ", ".join(re.findall(r"__global__\s[^({;]*?(\w+)\s*\(", text)) or "none"
            raise InputProblem(
                f"{plan_path(source)}: entry: {launch.entry!r} is no kernel of {source.name}; it has: {there}; correct "
                "the plan or the source"
            )
