"""From samples to the records that stages write."""

from math import exp, log

import msgspec
import pytest

from kerneltrial.devices.device import Binary, Samples, TimingRequest
from kerneltrial.inputs.calls import Call
from kerneltrial.measure import confirm, rounds
from kerneltrial.measure.sequential import plan_of
from kerneltrial.records.confirmation import Energy, NoEnergy, NoThroughput, Throughput
from kerneltrial.records.counts import Counts
from kerneltrial.records.protocol import Protocol
from kerneltrial.records.roofline import Floor, Share
from kerneltrial.store.canonical import canonical

CALL = Call(buffers=(), launches=())
BINARY = Binary(ptx="", cubin=b"x")
REQUEST = TimingRequest(
    baseline=BINARY, baseline_call=CALL, candidate=BINARY, candidate_call=CALL, rounds=10, clock="auto", seed=1
)
DIGEST = "0" * 64
LEVEL = confirm.Level(0.95, 0.95)


def drawn(ratio: float, clock: str = "graph", noise: float = 1.0) -> Samples:
    """Ten rounds in which the baseline takes 6 to 6.9 us and the candidate `ratio` times less."""
    a = tuple(6.0 + 0.1 * i for i in range(10))
    b = tuple(value / ratio for value in a)
    return Samples(
        clock=clock,
        resolution_us=0.01,
        calls_per_sample=50,
        warm_us={"a": a, "a2": tuple(v / noise for v in a), "b": b},
        cold_us={"a": tuple(2 * v for v in a), "a2": tuple(2 * v for v in a), "b": tuple(3 * v for v in b)},
        outputs=({"c": b"1234"},),
        device_state={"order": "random"},
        discarded=0,
    )


def counts(**more) -> Counts:
    usual = {
        "instructions": {"fp32": 1_000_000, "integer": 200_000},
        "global_transactions": 10_000,
        "shared_accesses": 50_000,
        "shared_conflicts": 0,
        "barriers": 640,
        "blocks": 64,
        "threads_per_block": 256,
        "shared_bytes": 8192,
    }
    return Counts(**(usual | more))


def test_a_case_latency_holds_medians_and_the_speedup():
    latency = rounds.case_latency("m", drawn(1.5), DIGEST, 0.95)
    assert latency.baseline_warm_us == pytest.approx(6.45)
    assert latency.warm_us == pytest.approx(6.45 / 1.5)
    assert latency.baseline_cold_us == pytest.approx(12.9)
    assert latency.cold_us == pytest.approx(3 * 6.45 / 1.5)
    assert latency.speedup.low == pytest.approx(1.5)
    assert latency.speedup.high == pytest.approx(1.5)
    assert latency.noise_floor.middle == pytest.approx(1.0)
    assert latency.samples == DIGEST
    assert canonical(latency)


def test_the_speedup_of_a_slower_kernel_is_below_one():
    assert rounds.case_latency("m", drawn(0.8), DIGEST, 0.95).speedup.high < 1


def test_outputs_can_be_left_out_and_nothing_else_is():
    whole = drawn(1.1)
    assert whole.outputs
    assert rounds.without_outputs(whole).outputs == ()
    assert rounds.without_outputs(whole).warm_us == whole.warm_us


def test_case_counts_compare_costs():
    cheap = counts(instructions={"fp32": 500_000, "integer": 100_000}, shared_accesses=20_000)
    record = rounds.case_counts("m", cheap, counts(), DIGEST)
    assert record.score < record.baseline_score
    assert record.ratio == record.baseline_score / record.score > 1


def test_each_process_of_a_confirmation_has_its_own_seed_and_abba_order():
    requests = [confirm.process_request(REQUEST, process) for process in range(5)]
    assert len({request.seed for request in requests}) == 5
    assert {request.order for request in requests} == {"abba"}
    assert requests[2] == confirm.process_request(REQUEST, 2)
    assert requests[0].baseline == REQUEST.baseline


def test_a_confirmed_case_is_a_t_interval_over_processes():
    ratios = [1.19, 1.2, 1.21, 1.2, 1.2]
    case = confirm.confirmed_case("m", [drawn(r, noise=1.001) for r in ratios], [DIGEST] * 5, LEVEL)
    # pooled over A and A', which is 0.1 % faster, the baseline is 0.05 % faster than A alone
    mean = exp(sum(map(log, ratios)) / 5) / 1.001**0.5
    assert case.speedup.middle == pytest.approx(mean, rel=1e-9)
    assert case.speedup.low < mean < case.speedup.high
    assert case.noise_floor.middle == pytest.approx(1.001)
    assert case.baseline_cold_us == pytest.approx(2 * case.baseline_warm_us, rel=1e-3)
    assert case.cold_us == pytest.approx(3 * case.warm_us)
    assert case.processes == 5
    assert case.clock == "graph"


def as_stated(samples: Samples, ratio: float) -> Samples:
    """Calls that find the L2 as the case states: 9 us by the baseline, by the candidate `ratio` times less."""
    nine = (9.0,) * 10
    return msgspec.structs.replace(samples, stated_us={"a": nine, "a2": nine, "b": (9.0 / ratio,) * 10})


def test_calls_that_find_the_l2_as_stated_have_a_figure_of_their_own():
    latency = rounds.case_latency("m", as_stated(drawn(1.5), 1.2), DIGEST, 0.95)
    assert (latency.stated.us, latency.stated.baseline_us) == (pytest.approx(7.5), 9.0)
    assert latency.stated.speedup.middle == pytest.approx(1.2)
    assert latency.stated.process_ratios == (pytest.approx(1.2),)
    assert latency.speedup.middle == pytest.approx(1.5)
    ratios = [1.19, 1.2, 1.21, 1.2, 1.2]
    case = confirm.confirmed_case("m", [as_stated(drawn(1.5), r) for r in ratios], [DIGEST] * 5, LEVEL)
    alike = confirm.confirmed_case("m", list(map(drawn, ratios)), [DIGEST] * 5, LEVEL).speedup
    assert (case.stated.speedup.low, case.stated.speedup.high) == pytest.approx((alike.low, alike.high))
    assert case.stated.process_ratios == pytest.approx(ratios)
    assert case.stated.us == pytest.approx(7.5)
    assert case.speedup.middle == pytest.approx(1.5)


def test_a_call_that_was_read_as_nothing_still_has_a_ratio():
    nothing = as_stated(drawn(1.5), 1.2)
    rows = {**nothing.stated_us, "b": (0.0, *nothing.stated_us["b"][1:])}
    nothing = msgspec.structs.replace(nothing, stated_us=rows)
    assert rounds.case_latency("m", nothing, DIGEST, 0.95).stated.speedup.middle == pytest.approx(1.2)


def test_where_no_case_states_anything_records_have_the_bytes_that_they_always_had():
    silent = confirm.confirmed_case("m", [as_stated(drawn(1.5), 1.2), drawn(1.5)], [DIGEST] * 2, LEVEL)
    assert b"stated" not in canonical(silent)
    assert b"stated" not in canonical(rounds.case_latency("m", drawn(1.5), DIGEST, 0.95))


def with_vendor(samples: Samples, ratio: float) -> Samples:
    """A vendor that takes `ratio` times what the candidate takes, in every round."""
    vendor = tuple(ratio * value for value in samples.warm_us["b"])
    return msgspec.structs.replace(samples, warm_us={**samples.warm_us, "cublas": vendor})


def test_a_vendor_is_compared_over_cases_within_each_process():
    # processes 1.1, 1.2, 1.3 in one case and 1.3, 1.2, 1.1 in the other: every process has the same mean
    cases = [[with_vendor(drawn(1.5), r) for r in ratios] for ratios in ((1.1, 1.2, 1.3), (1.3, 1.2, 1.1))]
    (speed,) = confirm.vendor_speeds(cases, LEVEL)
    assert speed.name == "cublas"
    assert speed.speedup.middle == pytest.approx(exp((log(1.1) + log(1.2) + log(1.3)) / 3))
    assert 1.15 < speed.speedup.low < speed.speedup.middle < speed.speedup.high < 1.25


def test_a_vendor_that_is_missing_once_is_not_compared_and_why_is_said_once():
    absent = msgspec.structs.replace(drawn(1.5), vendors_absent={"cublas": "not installed"})
    cases = [[with_vendor(drawn(1.5), 1.1), absent], [absent, absent]]
    assert confirm.vendor_speeds(cases, LEVEL) == ()
    assert [finding.detail for finding in confirm.vendors_absent(cases)] == ["cublas: not installed"]


def test_the_share_of_the_limit_stands_beside_the_latencies():
    floor = Floor(floor_us=1.0, bound="fp32", assumes="")
    limit = rounds.case_latency("m", drawn(1.5), DIGEST, 0.95, floor).limit
    assert isinstance(limit, Share)
    assert limit.baseline == pytest.approx(1 / 6.45)
    assert limit.candidate == pytest.approx(1.5 / 6.45)
    again = confirm.confirmed_case("m", [drawn(1.5)] * 5, [DIGEST] * 5, LEVEL, floor)
    assert again.limit == limit


def test_samples_of_different_clocks_are_not_put_together():
    with pytest.raises(ValueError, match="different clocks"):
        confirm.confirmed_case("m", [drawn(1.2), drawn(1.2, clock="events")], [DIGEST] * 2, LEVEL)


def test_the_geometric_mean_is_taken_within_processes_first():
    # one process is slow for the candidate in both cases: the interval must be as wide as the processes differ
    first = [drawn(r) for r in (1.1, 1.2, 1.3)]
    second = [drawn(r) for r in (1.3, 1.2, 1.1)]
    together = confirm.geometric_interval([first, second], LEVEL)
    apart = confirm.geometric_interval([first, first], LEVEL)
    assert together.middle == pytest.approx(exp((log(1.1) + log(1.2) + log(1.3)) / 3))
    assert together.high - together.low < 0.1 * (apart.high - apart.low)


def test_the_throughput_of_a_short_call_is_a_median_over_processes_that_all_measured_it():
    def short(a: float, b: float) -> Samples:
        return msgspec.structs.replace(drawn(1.2), throughput_us={"a": a, "b": b})

    processes = [short(7.0, 5.0), short(7.2, 5.1), short(7.9, 5.9)]
    found = confirm.confirmed_case("m", processes, [DIGEST] * 3, LEVEL).throughput
    assert found == Throughput(candidate_us=5.1, baseline_us=7.2)
    lacking = confirm.confirmed_case("m", [*processes, drawn(1.2)], [DIGEST] * 4, LEVEL).throughput
    assert isinstance(lacking, NoThroughput)


def test_energy_is_a_ratio_over_processes_and_absent_where_one_process_has_none():
    def used(a: float, b: float) -> Samples:
        return msgspec.structs.replace(drawn(1.2), energy_mj={"a": (a, a), "b": (b, b)}, energy_absent="")

    found = confirm.energy_of([used(10.0, 8.0), used(11.0, 8.8), used(12.0, 9.6)], LEVEL)
    assert isinstance(found, Energy)
    assert found.baseline_mj == pytest.approx(11.0)
    assert found.candidate_mj == pytest.approx(8.8)
    assert found.ratio.low == pytest.approx(1.25)
    assert found.ratio.high == pytest.approx(1.25)
    assert confirm.energy_of([used(10.0, 8.0), drawn(1.2)], LEVEL) == NoEnergy(why="not asked for")


PROTOCOL = Protocol()


def moved(by: float) -> Samples:
    """The ratio of its last rounds is that of its first ones times exp(by)."""
    samples = drawn(1.2)
    faster = tuple(value * exp(-by * (i >= 5)) for i, value in enumerate(samples.warm_us["b"]))
    return msgspec.structs.replace(samples, warm_us={**samples.warm_us, "b": faster})


def test_a_quiet_confirmation_stops_at_its_first_look_and_a_noisy_one_at_its_last():
    quiet = {"m": [drawn(1.2 + 1e-4 * i) for i in range(10)]}
    noisy = {"m": [drawn(1.2 + 1e-2 * i) for i in range(10)]}
    stops = {
        name: [count for count in range(1, 11) if confirm.enough({"m": cases["m"][:count]}, PROTOCOL)]
        for name, cases in (("quiet", quiet), ("noisy", noisy))
    }
    assert stops == {"quiet": [5, 10], "noisy": [10]}


def test_every_speedup_must_be_narrow_before_a_confirmation_stops():
    quiet, noisy = [drawn(1.2)] * 5, [drawn(1.2 + 1e-2 * i) for i in range(5)]
    assert confirm.enough({"m": quiet, "n": quiet}, PROTOCOL)
    assert not confirm.enough({"m": quiet, "n": noisy}, PROTOCOL)
    loud_vendor = [with_vendor(drawn(1.2), 1.1 + 1e-2 * i) for i in range(5)]
    assert not confirm.enough({"m": loud_vendor}, PROTOCOL)


def test_a_vendor_need_not_be_known_as_closely_as_the_baseline():
    """Steps of 0.004 give about 0.8 % on either side: too much for the baseline, less than four times 0.25 %."""
    quiet_pair = [with_vendor(drawn(1.2), 1.2 * (1 + 0.004 * i)) for i in range(5)]
    assert confirm.enough({"m": quiet_pair}, PROTOCOL)
    assert not confirm.enough({"m": [drawn(1.2 * (1 + 0.004 * i)) for i in range(5)]}, PROTOCOL)


def test_the_figures_say_where_the_plan_stopped_and_at_which_level():
    found = confirm.figures({"m": [drawn(1.2 + 1e-4 * i) for i in range(5)]}, {"m": [DIGEST] * 5}, PROTOCOL, {})
    assert (found.looked.at, found.looked.processes, found.looked.narrow) == ((5, 10), 5, True)
    assert found.looked.nominal_confidence == plan_of(PROTOCOL).nominal_confidence > 0.95
    (case,) = found.cases
    assert case.speedup.confidence == found.geometric_mean.confidence == 0.95
    assert case.process_ratios == pytest.approx([1.2 + 1e-4 * i for i in range(5)])
    wider = confirm.confirmed_case("m", [drawn(1.2 + 1e-4 * i) for i in range(5)], [DIGEST] * 5, LEVEL).speedup
    assert case.speedup.low < wider.low < wider.high < case.speedup.high


def test_drift_is_the_last_third_over_the_first():
    case = confirm.confirmed_case("m", [moved(0.01 + 1e-4 * i) for i in range(5)], [DIGEST] * 5, LEVEL)
    assert case.drift.middle == pytest.approx(exp(0.0102))
    assert case.drift.low > 1
    steady = confirm.confirmed_case("m", [moved(1e-4 * (-1) ** i) for i in range(6)], [DIGEST] * 6, LEVEL)
    assert steady.drift.low < 1 < steady.drift.high
