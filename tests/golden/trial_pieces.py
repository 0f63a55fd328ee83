"""Three whole trials as records: what decide/ and report/ are tested on, and what the golden files are made from.

`cpu`: no GPU, example terms; INCONCLUSIVE. `go`: an H200, own terms, all evidence there; GO. `failures`: every way in
which an attempt can end badly, written by a hostile hand; NO-GO.
"""

from dataclasses import dataclass, field
from decimal import Decimal

from kerneltrial.decide.cost import cost, spent
from kerneltrial.decide.decision import decide
from kerneltrial.decide.grounds import Grounds
from kerneltrial.decide.prize import prize
from kerneltrial.decide.standing import Iteration
from kerneltrial.decide.winner import Judged
from kerneltrial.records.build import Build, Built, Cubin, Entry, NoCubin, NotBuilt
from kerneltrial.records.candidate import Candidate
from kerneltrial.records.case import Case, Cases, Distribution, Generated
from kerneltrial.records.confirmation import (
    Confirmation,
    EndToEnd,
    NotSeen,
    Seen,
)
from kerneltrial.records.contract import Array, Contract, DimensionArgument, Range, Tolerance
from kerneltrial.records.cost import Cost
from kerneltrial.records.counts import Counts
from kerneltrial.records.decision import Decision
from kerneltrial.records.device import Device
from kerneltrial.records.holdout import Holdout, HoldoutVerdict
from kerneltrial.records.lock import Lock
from kerneltrial.records.plan import Launch, LaunchPlan, Scratch, Variant
from kerneltrial.records.prize import Prize
from kerneltrial.records.proposal import Duplicate, ModelUsage, Origin, Proposal, Proposed, Unusable
from kerneltrial.records.protocol import Protocol
from kerneltrial.records.qualification import (
    BaselineCounts,
    BaselineLatency,
    NullCandidate,
    Qualification,
    QualifiedCase,
    SecondOpinion,
)
from kerneltrial.records.reason import Finding, Reason, Skipped
from kerneltrial.records.receipt import NoReceipt, Receipt
from kerneltrial.records.record import Interval
from kerneltrial.records.terms import Agreed, Policy, Prices, Terms, Workload
from kerneltrial.records.timing import CaseCounts, CaseLatency, Counted, Timed, Timing
from kerneltrial.records.usage import Usage
from kerneltrial.records.validation import (
    CaseVerdict,
    ErrorMeasure,
    Invalid,
    SkippedCandidate,
    Validated,
    Validation,
)
from kerneltrial.report.inputs import ReportInputs
from kerneltrial.store.canonical import canonical, digest

SQUARE, WIDE = "square_256", "wide_384x256x320"
BASELINE_US = {SQUARE: 18.432, WIDE: 21.887}
BASELINE_SCORE = {SQUARE: 1_482_355.5, WIDE: 2_776_190.25}
NO_RECEIPT = NoReceipt()
NO_MODEL = ModelUsage(requests=(), replies=(), input_tokens=0, cached_tokens=0, output_tokens=0, reasoning_tokens=0)
HOSTILE = (
    "</script><script>alert(1)</script><img src=x onerror=alert(2)> {{ 7*7 }} {% raw %} \"quoted\" 'single' & "
    "]]> <!-- -->\u202egnp.exe\u202c \x1b[31mred\x07 \x00 $\\frac{1}{0}$ =cmd|'/c calc'!A1"
)


def fake(text: str) -> str:
    """A digest of something that is not needed here."""
    return digest(text.encode())


def plan(tile: int = 64, split: int = 1) -> LaunchPlan:
    scratch = (Scratch(name="partial", dtype="float32", elements=f"{split}*M*N", initial="uninitialised"),)
    launch = Launch(
        entry="matmul",
        grid=(f"ceil_div(N, {tile})", f"ceil_div(M, {tile})", str(split)),
        block=("256", "1", "1"),
        args=("A", "B", "partial" if split > 1 else "C", "M", "N", "K"),
    )
    reduce = Launch(
        entry="add_up", grid=("ceil_div(M*N, 256)", "1", "1"), block=("256", "1", "1"), args=("partial", "C")
    )
    launches = (launch, reduce) if split > 1 else (launch,)
    return LaunchPlan(variants=(Variant(launches=launches),), scratch=scratch if split > 1 else ())


@dataclass
class Story:
    """Builds the records of a trial, attempt by attempt."""

    clocked: bool
    sources: dict[str, bytes] = field(default_factory=dict)
    iterations: list[Iteration] = field(default_factory=list)
    slots: list[tuple] = field(default_factory=list)

    def candidate(self, source: str, tile: int = 64, split: int = 1, language: str = "cuda_cpp") -> Candidate:
        data = source.encode()
        self.sources[digest(data)] = data
        content = {"language": language, "source": digest(data), "plan": plan(tile, split)}
        return Candidate(id=digest(canonical(content)), **content)

    def attempt(self, candidate: Candidate, origin: Origin, ends: str, **how) -> Candidate:
        """One slot; `ends` is built-in prose for the fate, `how` what that fate needs."""
        key = candidate.id
        build = how.get("build") or self._built(candidate)
        validation = how.get("validation") or Validated(
            candidate=key, cases=tuple(case_verdicts()), checks=CHECKS, unchecked=how.get("unchecked", ())
        )
        skipped = SkippedCandidate(
            candidate=key, skipped=Skipped(stage=ends, reason=how.get("reason", Reason.WRONG_VALUES))
        )
        timing = how.get("timing") or skipped
        verdict = how.get("verdict")
        holdout = HoldoutVerdict(candidate=key, verdict=verdict, cases=6) if verdict else skipped
        if isinstance(build, NotBuilt):
            validation = skipped
        self.slots.append((Proposed(candidate=candidate, origin=origin), build, validation, timing, holdout))
        return candidate

    def held(self, candidate: Candidate, origin: Origin, square: float, wide: float, **how) -> Candidate:
        timing = self.timing(candidate.id, square, wide)
        return self.attempt(candidate, origin, "", timing=timing, verdict=how.pop("verdict", "held"), **how)

    def invalid(self, candidate: Candidate, origin: Origin, reason: Reason, detail: str) -> Candidate:
        verdict = Invalid(candidate=candidate.id, reason=reason, detail=detail, cases=(), checks=CHECKS, unchecked=())
        return self.attempt(candidate, origin, "validate", validation=verdict, reason=reason)

    def not_built(self, candidate: Candidate, origin: Origin, reason: Reason, detail: str) -> Candidate:
        build = NotBuilt(candidate=candidate.id, reason=reason, detail=detail, log=fake(detail))
        return self.attempt(candidate, origin, "build", build=build, reason=reason)

    def duplicate(self, candidate: Candidate, origin: Origin) -> None:
        self.slots.append((Duplicate(duplicate_of=candidate.id, origin=origin),))

    def unusable(self, reason: Reason, detail: str) -> None:
        self.slots.append((Unusable(reason=reason, detail=detail),))

    def close(self, proposer: str = "search", usage: ModelUsage = NO_MODEL) -> None:
        """End the iteration."""
        judged = [slot for slot in self.slots if len(slot) > 1]
        columns = list(zip(*judged, strict=True)) if judged else [()] * 5
        self.iterations.append(
            Iteration(
                number=len(self.iterations) + 1,
                proposal=Proposal(proposer=proposer, attempts=tuple(slot[0] for slot in self.slots), usage=usage),
                build=Build(candidates=tuple(columns[1])),
                validation=Validation(candidates=tuple(columns[2])),
                timing=Timing(candidates=tuple(columns[3])),
                holdout=Holdout(candidates=tuple(columns[4])),
            )
        )
        self.slots = []

    def timing(self, key: str, square: float, wide: float) -> Timed | Counted:
        mean = round((square * wide) ** 0.5, 6)
        pairs = ((SQUARE, square), (WIDE, wide))
        if self.clocked:
            return Timed(candidate=key, cases=tuple(case_latency(key, *p) for p in pairs), geometric_mean=mean)
        return Counted(candidate=key, cases=tuple(case_counts(key, *p) for p in pairs), geometric_mean=mean)

    def _built(self, candidate: Candidate) -> Built:
        key = candidate.id
        return Built(
            candidate=key,
            abi="pointer" if candidate.language == "cuda_cpp" else "numba_array",
            ptx=fake(f"ptx {key}"),
            cubin=Cubin(digest=fake(f"cubin {key}"), arch="sm_90a") if self.clocked else NoCubin(),
            entries=(
                Entry(name="matmul", parameters=(8, 8, 8, 4, 4, 4), registers=96, shared_bytes=16384, spilled_bytes=0),
            ),
            compiler="nvrtc 13.0.88",
            options=("--gpu-architecture=sm_90a", "-default-device"),
            log=fake("log"),
            same_ptx_as=(),
        )


CHECKS = ("two poisons agree", "inputs intact", "guards intact", "all elements against the oracle", "repeats agree")


def case_verdicts(valid: bool = True) -> list[CaseVerdict]:
    shapes = {"small_31x37x29": (31, 37, 29), SQUARE: (256, 256, 256), WIDE: (384, 256, 320)}
    return [
        CaseVerdict(
            case=name,
            dimensions=dict(zip("MNK", shape, strict=True)),
            draws=5,
            valid=valid,
            errors=(
                ErrorMeasure(output="C", worst_error=3.1e-6, bound_share=0.21, baseline_share=0.2, worst_index=(3, 5)),
            ),
            findings=(),
        )
        for name, shape in shapes.items()
    ]


def case_latency(key: str, case: str, speedup: float) -> CaseLatency:
    warm = round(BASELINE_US[case] / speedup, 3)
    return CaseLatency(
        case=case,
        clock="graph",
        resolution_us=0.0078125,
        samples=fake(f"samples {key} {case}"),
        warm_us=warm,
        cold_us=round(warm * 1.31, 3),
        baseline_warm_us=BASELINE_US[case],
        baseline_cold_us=round(BASELINE_US[case] * 1.28, 3),
        speedup=interval(speedup, 0.012),
        noise_floor=interval(1.0, 0.004),
        device_state={"sm_clock_mhz": "1980", "temperature_c": "41", "throttle": "none"},
    )


def case_counts(key: str, case: str, ratio: float) -> CaseCounts:
    counts = Counts(
        instructions={"fma": 16_777_216, "load_shared": 3_145_728, "load_global": 524_288, "other": 2_359_296},
        global_transactions=round(98_304 / ratio),
        shared_accesses=196_608,
        shared_conflicts=round(4096 / ratio),
        barriers=64,
        blocks=16,
        threads_per_block=256,
        shared_bytes=16_384,
    )
    score = round(BASELINE_SCORE[case] / ratio, 2)
    return CaseCounts(
        case=case,
        samples=fake(f"counts {key} {case}"),
        counts=counts,
        score=score,
        baseline_score=BASELINE_SCORE[case],
        ratio=ratio,
    )


def interval(middle: float, half: float, confidence: float = 0.95) -> Interval:
    return Interval(low=round(middle - half, 6), middle=middle, high=round(middle + half, 6), confidence=confidence)


def origin(
    hypothesis: str, pattern: str = "memory_access", parents: tuple[Candidate, ...] = (), **parameters: int
) -> Origin:
    return Origin(
        hypothesis=hypothesis,
        pattern=pattern,
        parents=tuple(parent.id for parent in parents),
        parameters=parameters,
    )


def lock(device: Device, trial: str, proposer: str = "search") -> Lock:
    performance = (
        Case(name=SQUARE, kind="performance", dimensions={"M": 256, "N": 256, "K": 256}, seed=2),
        Case(name=WIDE, kind="performance", dimensions={"M": 384, "N": 256, "K": 320}, seed=3),
    )
    small = Case(
        name="small_31x37x29",
        kind="correctness",
        dimensions={"M": 31, "N": 37, "K": 29},
        seed=1,
        inputs={"A": Generated(distribution=Distribution.INTEGERS)},
    )
    paths = ("kernels/matmul_f32/contract.yaml", "kernels/matmul_f32/baseline.cu", "cases/matmul_f32/oracle.py")
    return Lock(
        trial=trial,
        asked={"device": "auto"},
        contract=contract(),
        cases=Cases(cases=(small, *performance)),
        protocol=Protocol(),
        device=device,
        files={path: fake(path) for path in paths},
        oracle_author="A. Engineer",
        proposer=proposer,
        languages=("cuda_cpp", "numba_cuda"),
        candidates_per_iteration=4,
        seed=0,
        toolchain={"nvidia-cuda-nvrtc": "13.0.88", "numba-cuda": "0.24.0", "numpy": "2.3.5", "kerneltrial": "0.1.0"},
        sandbox={"files": "Landlock ABI 7", "namespaces": "user+network+ipc+pid"},
        holdout_commitment=fake("salt"),
        holdout_count=6,
    )


def contract() -> Contract:
    return Contract(
        name="matmul_f32",
        description="C = A B in float32, row-major, without TF32",
        arguments=(
            Array(name="A", role="input", dtype="float32", shape=("M", "K")),
            Array(name="B", role="input", dtype="float32", shape=("K", "N")),
            Array(name="C", role="output", dtype="float32", shape=("M", "N")),
            *(DimensionArgument(name=name) for name in "MNK"),
        ),
        dimensions={name: Range(minimum=1, maximum=8192) for name in "MNK"},
        tolerances={"C": Tolerance(scaled=Decimal(2))},
        operations="2*M*N*K",
        bytes="4*(M*K + K*N + M*N)",
    )


CPU = Device(kind="cpu", arch="sm_90a", name="x86_64", fingerprint={"llvmlite": "0.46.0"})
H200 = Device(
    kind="cuda",
    arch="sm_90a",
    name="NVIDIA H200",
    fingerprint={"driver": "580.95.05", "ecc": "on", "mig": "off", "sm_clock_limit_mhz": "1980"},
)


def qualification(device: Device, unchecked: tuple[Finding, ...] = ()) -> Qualification:
    cuda = device.kind == "cuda"
    story = Story(clocked=cuda)
    baseline = story.candidate("baseline")
    nulls = tuple(
        NullCandidate(name=name, draws=5, refused=5) for name in ("zeros", "mean", "copy of A", "lower precision")
    )
    return Qualification(
        baseline_errors={},
        baseline=story._built(baseline),
        baseline_plan=baseline.plan,
        cases=tuple(QualifiedCase(case=verdict.case, nulls=nulls, baseline=verdict) for verdict in case_verdicts()),
        second_opinion=SecondOpinion(
            by="cases/matmul_f32/reference.cu", agrees=True, detail="worst 0.2 of the bound over 15 draws"
        ),
        performance=(
            BaselineLatency(cases=BASELINE_US, samples={name: digest(name.encode()) for name in BASELINE_US})
            if cuda
            else BaselineCounts(cases=BASELINE_SCORE, samples={name: digest(name.encode()) for name in BASELINE_SCORE})
        ),
        unchecked=unchecked,
    )


def agreed(example: bool, **changes) -> Agreed:
    calls = changes.pop("calls", {SQUARE: 9_000_000_000, WIDE: 4_000_000_000})
    prices = Prices(
        gpu_hour_usd=Decimal(changes.pop("gpu_hour_usd", "3.79")),
        engineer_hour_usd=Decimal("95"),
        source="example price list" if example else "cloud contract 2026-118, region eu-west",
        date="2026-11-02",
        **({"model": changes.pop("model")} if "model" in changes else {}),
    )
    workload = Workload(calls_per_month=calls, setup_hours=Decimal(2), review_hours=Decimal("1.5"), example=example)
    return Agreed(iterations=changes.pop("iterations", 7), policy=Policy(**changes), prices=prices, workload=workload)


def terms(now: Agreed, *before: Agreed) -> Terms:
    """`before`: versions from the first on, without the one in force."""
    versions = (*before, now)
    return Terms(first=versions[0], now=now, amendments=versions[1:])


def receipt(signed: Terms, version: int = 0) -> Receipt:
    """A receipt that counts, for the first version of the terms or for one of the amendments."""
    agreed_then = (signed.first, *signed.amendments)[version]
    return Receipt(
        reviewer="R. Reviewer",
        key="SHA256:reviewer",
        lock=fake("lock"),
        terms=digest(canonical(agreed_then)),
        page=fake("page"),
        signature=fake("signature"),
        received_at="2026-11-30T08:00:00+00:00",
        heads={},
    )


def ran(saved_ms: Interval, pairs: int = 10, calls: float = 0.0) -> EndToEnd:
    """The application ran with both kernels; `calls` an invocation, 0 where nobody counted."""
    seen = Seen(calls_per_invocation=calls, baseline_peak_bytes=1 << 30, candidate_peak_bytes=1 << 30)
    return EndToEnd(
        saved_ms=saved_ms,
        processes=pairs,
        baseline_ms=12.5,
        candidate_ms=12.5 - saved_ms.middle,
        measure="wall",
        seen=seen if calls else NotSeen(),
        samples=fake("application"),
    )


def usage(device_s: str, cpu_s: str) -> Usage:
    return Usage(
        wall_s=Decimal(cpu_s),
        cpu_s=Decimal(cpu_s),
        device_s=Decimal(device_s),
        finished_at="2026-11-30T12:00:00.000+00:00",
        host="somewhere",
    )


@dataclass(frozen=True)
class Trial:
    """Everything that a report is made from."""

    lock: Lock
    terms: Terms
    qualification: Qualification
    prize: Prize
    iterations: tuple[Iteration, ...]
    costs: tuple[Cost, ...]
    confirmation: Confirmation
    decision: Decision
    sources: dict[str, bytes]


def finish(
    story: Story,
    locked: Lock,
    agreed_terms: Terms,
    qualified: Qualification,
    confirmation: Confirmation,
    receipt: Receipt | NoReceipt = NO_RECEIPT,
) -> Trial:
    """The records that follow from the others: prize, costs, decision."""
    now = agreed_terms.now
    known = prize(qualified, now.policy, now.prices, now.workload)
    device = "3.25" if locked.device.kind == "cuda" else "0"
    entries = [usage(device, "4.5")]
    costs, models = [], []
    for iteration in story.iterations:
        entries.append(usage(device, "6.125"))
        models.append(iteration.proposal.usage)
        so_far = spent(models, entries, now.prices, now.workload)
        judged = [Judged(i.number, i.validation, i.timing, i.holdout) for i in story.iterations[: iteration.number]]
        costs.append(cost(iteration.number, so_far, judged, now.prices, now.workload))
    entries.append(usage("41.5" if device != "0" else "0", "18.75"))
    total = spent(models, entries, now.prices, now.workload)
    iterations = tuple(story.iterations)
    grounds = Grounds(locked, agreed_terms, qualified, known, iterations, confirmation, total, receipt)
    return Trial(
        locked, agreed_terms, qualified, known, iterations, tuple(costs), confirmation, decide(grounds), story.sources
    )


def report_inputs(trial: Trial) -> ReportInputs:
    """What the report of a trial is made from."""
    return ReportInputs(
        lock=trial.lock,
        terms=trial.terms,
        qualification=trial.qualification,
        prize=trial.prize,
        iterations=trial.iterations,
        costs=trial.costs,
        confirmation=trial.confirmation,
        decision=trial.decision,
        source_of=trial.sources.__getitem__,
    )
