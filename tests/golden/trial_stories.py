"""The three trials, told attempt by attempt."""

from decimal import Decimal
from math import exp

from trial_pieces import (
    BASELINE_US,
    CPU,
    H200,
    HOSTILE,
    SQUARE,
    WIDE,
    Story,
    Trial,
    agreed,
    fake,
    finish,
    interval,
    lock,
    origin,
    qualification,
    ran,
    receipt,
    terms,
)

from kerneltrial.measure.quantile import student_t
from kerneltrial.records.confirmation import (
    Confirmation,
    Confirmed,
    ConfirmedCase,
    Looked,
    NotTimed,
    NoWinner,
    VendorSpeed,
)
from kerneltrial.records.device import Device
from kerneltrial.records.proposal import ModelUsage
from kerneltrial.records.reason import Finding, Reason
from kerneltrial.records.terms import ModelPrices
from kerneltrial.records.timing import Untimed
from kerneltrial.records.validation import Unchecked


def on_cpu() -> Trial:
    """A search on a machine without a GPU: two iterations of four, example terms, iterations raised after the lock."""
    story = Story(clocked=False)
    tiles = [story.candidate(f"// tile {tile}\n__global__ void matmul() {{}}\n", tile) for tile in (32, 64, 128, 96)]
    unsupported = Finding(reason=Reason.CHECK_ABSENT, detail="memcheck and initcheck need a GPU")
    story.held(tiles[0], origin("The expert's seed: 32 × 32 tile, double-buffered.", tile=32), 1.02, 0.98)
    story.held(tiles[1], origin("A 64 × 64 tile reads each input half as often.", tile=64), 1.31, 1.22)
    story.invalid(
        tiles[2],
        origin("A 128 × 128 tile fits the wide case.", tile=128),
        Reason.WRONG_VALUES,
        "small_31x37x29, draw 2: 37 of 1147 elements of C are wrong; worst at (30, 36): got 0.0, expected -4.25",
    )
    story.attempt(
        tiles[3],
        origin("cp.async hides the latency of loads.", "hardware", tile=96),
        "validate",
        validation=Unchecked(
            candidate=tiles[3].id,
            reason=Reason.UNSUPPORTED_INSTRUCTION,
            detail="cp.async.bulk.tensor.2d at line 118 is not known to the cpu device",
        ),
        reason=Reason.UNSUPPORTED_INSTRUCTION,
    )
    story.close()
    split = story.candidate("// split K\n__global__ void matmul() {}\n", 64, 4)
    story.held(
        split,
        origin("Splitting K over 4 blocks fills the card on small shapes.", "algebra", (tiles[1],), tile=64, split=4),
        1.4,
        1.35,
        unchecked=(unsupported,),
    )
    story.duplicate(tiles[1], origin("A 64 × 64 tile again.", tile=64))
    story.unusable(Reason.SPACE_EXHAUSTED, "all 37 valid configurations were tried")
    story.close()
    outcome = NotTimed(winner=split.id, ratio=1.374773, valid=True, findings=())
    return finish(
        story,
        lock(CPU, "matmul_on_cpu"),
        terms(agreed(True, iterations=2), agreed(True, iterations=1)),
        qualification(CPU, (unsupported,)),
        Confirmation(outcome=outcome),
    )


def go_shaped(example: bool = False) -> Trial:
    """A model's proposals on an H200, with all evidence: own terms, vendor, application, receipt."""
    story = Story(clocked=True)
    used = ModelUsage(
        requests=(fake("request"),),
        replies=(fake("reply"),),
        input_tokens=18_420,
        cached_tokens=12_288,
        output_tokens=6_105,
        reasoning_tokens=4_100,
    )
    seeds = [story.candidate(f'// seed {n}\nextern "C" __global__ void matmul() {{}}\n', 64 + n) for n in range(5)]
    story.held(seeds[0], origin("The baseline's tile, with float4 loads.", vectors=4), 1.08, 1.05)
    story.not_built(
        seeds[1],
        origin("Warp-specialised producer and consumer.", "hardware"),
        Reason.DOES_NOT_COMPILE,
        'kernel.cu(41): error: identifier "__pipeline_memcpy_asink" is undefined\n\n1 error detected',
    )
    story.close("openai", used)
    story.held(seeds[2], origin("Double buffering hides the loads.", parents=(seeds[0],), stages=2), 1.21, 1.17)
    story.held(seeds[3], origin("Three stages hide them better.", parents=(seeds[2],), stages=3), 1.16, 1.12)
    story.close("openai", used)
    numba = story.candidate(
        "from numba import cuda\n\n\n@cuda.jit\ndef matmul(A, B, C, M, N, K):\n    pass\n", 64, 1, "numba_cuda"
    )
    story.held(numba, origin("The same in numba, for reference.", "library"), 0.71, 0.69)
    best = story.candidate('// best\nextern "C" __global__ void matmul() {}\n', 128, 2)
    story.held(best, origin("Split K in two and swizzle shared memory.", "algebra", (seeds[2],), split=2), 1.36, 1.29)
    story.held(seeds[4], origin("Skip the edge check.", parents=(best,)), 1.44, 1.37, verdict="failed")
    story.close("openai", used)
    model = ModelPrices(
        input_usd=Decimal("1.25"),
        cached_input_usd=Decimal("0.125"),
        output_usd=Decimal(10),
        source="genai-prices 0.0.72",
        date="2026-11-01",
    )
    confirmation = Confirmation(
        outcome=Confirmed(
            winner=best.id,
            cases=(confirmed(SQUARE, 1.352), confirmed(WIDE, 1.284)),
            geometric_mean=interval(1.317561, 0.009),
            looked=LOOKED,
            valid=True,
            findings=(),
        ),
        vendors=(VendorSpeed(name="cublas", speedup=interval(1.03, 0.01)),),
        end_to_end=ran(interval(0.42, 0.11), 10),
    )
    fixed = terms(agreed(example, iterations=3, model=model))
    return finish(
        story,
        lock(H200, "matmul_on_h200", "openai"),
        fixed,
        qualification(H200),
        confirmation,
        receipt(fixed),
    )


LOOKED = Looked(at=(5, 10), processes=5, nominal_confidence=0.9644, narrow=False)


def confirmed(case: str, speedup: float, half: float = 0.01) -> ConfirmedCase:
    """Five processes whose median log ratios have the interval that is asked for."""
    deviation = half / speedup * 5**0.5 / student_t((1 + LOOKED.nominal_confidence) / 2, 4)
    return ConfirmedCase(
        case=case,
        clock="graph",
        resolution_us=0.0078125,
        warm_up="64 calls before each warm reading, the L2 emptied before each cold one",
        samples=tuple(fake(f"{case} process {number}") for number in range(5)),
        processes=5,
        warm_us=round(BASELINE_US[case] / speedup, 3),
        baseline_warm_us=BASELINE_US[case],
        cold_us=round(1.3 * BASELINE_US[case] / speedup, 3),
        baseline_cold_us=round(1.28 * BASELINE_US[case], 3),
        speedup=interval(speedup, half),
        process_ratios=tuple(round(speedup * exp(step * deviation * 0.4**0.5), 6) for step in (0, 2, -1, 1, -2)),
        noise_floor=interval(1.0, 0.003),
        drift=interval(1.0, 0.002),
    )


def failures() -> Trial:
    """Every bad end that an attempt can have, and hostile text wherever a proposer can put it."""
    story = Story(clocked=True)
    all_ends = [story.candidate(f"// {n} {HOSTILE}", 64, n + 1) for n in range(12)]
    texts = iter(all_ends)
    story.unusable(Reason.UNUSABLE_REPLY, f"the reply is not JSON: {HOSTILE}")
    for reason in (
        Reason.SOURCE_REFUSED,
        Reason.INCLUDE_REFUSED,
        Reason.DOES_NOT_COMPILE,
        Reason.BAD_PLAN,
        Reason.COMPILER_DIED,
    ):
        story.not_built(next(texts), origin(HOSTILE, "none"), reason, HOSTILE * 40)
    story.close("files")
    for reason in (Reason.WRONG_VALUES, Reason.GUARD_OVERWRITTEN, Reason.HANG):
        story.invalid(next(texts), origin(HOSTILE, "fusion"), reason, HOSTILE)
    lost = next(texts)
    story.attempt(
        lost,
        origin("x" * 4000, "none"),
        "validate",
        validation=Unchecked(candidate=lost.id, reason=Reason.DEVICE_LOST, detail=HOSTILE),
        reason=Reason.DEVICE_LOST,
    )
    story.duplicate(all_ends[5], origin(HOSTILE, "none"))
    story.close("files")
    story.held(next(texts), origin(HOSTILE), 1.4, 1.3, verdict="failed")
    story.held(next(texts), origin(HOSTILE), 1.2, 1.1, verdict="unchecked")
    untimed = next(texts)
    story.attempt(
        untimed,
        origin(HOSTILE),
        "time",
        timing=Untimed(candidate=untimed.id, reason=Reason.NOT_MEASURED, detail=HOSTILE),
        verdict="held",
    )
    story.close("files")
    hostile_device = Device(kind="cuda", arch="sm_90a", name=f"NVIDIA {HOSTILE}", fingerprint={HOSTILE: HOSTILE})
    return finish(
        story,
        lock(hostile_device, "failures", "files"),
        terms(
            agreed(True, iterations=3, gpu_hour_usd="0.02"),
            agreed(False, iterations=3),
            agreed(False, iterations=3, minimum_effect=Decimal("0.1")),
        ),
        qualification(hostile_device),
        Confirmation(outcome=NoWinner(why="1 of 4 candidates held, and it was not measured")),
    )


def too_small() -> Trial:
    """No kernel could pay back, so the proposer was not asked."""
    story = Story(clocked=True)
    story.unusable(Reason.PRIZE_TOO_SMALL, "no kernel could pay back the pilot within the horizon")
    story.close()
    return finish(
        story,
        lock(H200, "too_small"),
        terms(agreed(False, iterations=1, gpu_hour_usd="0.02")),
        qualification(H200),
        Confirmation(outcome=NoWinner(why="no candidate was proposed")),
    )


STORIES = {"cpu": on_cpu, "go": go_shaped, "failures": failures}
