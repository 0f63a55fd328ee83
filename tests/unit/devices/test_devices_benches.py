"""Benches of readings by graphs, on a card whose truth is known: their columns are what they say they are."""

import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from cuda import bindings as cuda_bindings
from fake_card import GRAPH_GAP_US, LAUNCH_GAP_US, FakeCard, FakeCupti
from test_devices_cuda_on_fake import call_of

from kerneltrial.devices.cuda import activity, cupti_clock
from kerneltrial.devices.cuda.launches import Module
from kerneltrial.devices.cuda.subjects import PlanSubject, SharedBuffers

sys.path.insert(0, str(Path(__file__).parents[2] / "bench"))
import cold_graph_variants
import cold_trains
import fidelity
import fidelity_witness
import launch_gaps


def card_and_recorder(monkeypatch):
    card = FakeCard({"slow": 12.0, "first": 3.0, "second": 2.0})
    monkeypatch.setattr(cuda_bindings, "driver", card)
    one = activity.Recorder(FakeCupti(card))
    monkeypatch.setattr(cupti_clock, "recorder", lambda: one)
    return card, one


def on_card(card, entries):
    context, call = card.context(), call_of(*entries)
    values = [{name: np.full((4, 4), seed, np.float32) for name in ("a", "b")} for seed in (1, 2, 3)]
    shared = SharedBuffers((call,), values, context.queue.stream)
    plan = PlanSubject(Module(b"x"), call, shared, context.queue)
    plan.grow(shared.cycle)
    return context, shared, plan


@pytest.mark.parametrize("entries", [("slow",), ("first", "second")])
def test_where_times_add_up_the_gap_is_all_that_a_cold_reading_holds_too_much(monkeypatch, entries):
    card, one = card_and_recorder(monkeypatch)
    card.event_gap_us, card.code_us = 1.2, 0.5
    context, shared, plan = on_card(card, entries)
    timed = cold_graph_variants.Timed(context, shared, plan, 5)
    empty = cold_graph_variants.Empty(context)
    row = cold_graph_variants.by_graphs(timed, empty)
    span = 18.0 if len(entries) == 1 else 4.5 + GRAPH_GAP_US + card.code_us + 2.0
    assert row["now"] == pytest.approx(span + GRAPH_GAP_US)
    assert row["params"] == pytest.approx(row["now"])
    assert row["two"] == row["same"] == pytest.approx(row["now"] + card.code_us)
    cold_us = 6.0 if entries == ("slow",) else 1.5
    assert row["spaced"] == pytest.approx(row["now"] - cold_us)  # here the first kernel after a sweep alone is cold
    one.start()
    row |= cold_graph_variants.by_cupti(timed, empty, one, row)
    assert row["call"] == pytest.approx(span, abs=0.07)
    assert row["known"] == pytest.approx(span, abs=0.07)
    assert row["gap"] == pytest.approx(GRAPH_GAP_US + card.code_us, abs=0.04)
    assert row["empty"] == pytest.approx(0.9, abs=0.04)
    launched_one_by_one = span + (LAUNCH_GAP_US - GRAPH_GAP_US) * (len(entries) - 1)
    assert row["cupti"] == pytest.approx(launched_one_by_one, abs=0.07)


@pytest.mark.parametrize("entries", [("slow",), ("first", "second")])
def test_launches_on_a_stream_and_in_a_graph_are_told_apart(monkeypatch, entries):
    card, one = card_and_recorder(monkeypatch)
    context, _, plan = on_card(card, entries)
    timed = launch_gaps.made(context, plan, 3)
    row = launch_gaps.without_recorder(timed)
    one.start()
    row |= launch_gaps.with_recorder(timed, one)
    work, more = (12.0, 0) if len(entries) == 1 else (5.0, 1)
    for way, gap in (("stream", LAUNCH_GAP_US), ("graph", GRAPH_GAP_US)):
        assert row[way] == pytest.approx(work + gap * (1 + more))
        assert row[f"{way}+"] == pytest.approx(row[way])
    assert row["span"] == pytest.approx(work + LAUNCH_GAP_US * more, abs=0.07)
    assert row["span g"] == pytest.approx(work + GRAPH_GAP_US * more, abs=0.07)
    if more:
        assert row["inner"] == pytest.approx(LAUNCH_GAP_US, abs=0.07)
        assert row["inner g"] == pytest.approx(GRAPH_GAP_US, abs=0.07)


@pytest.mark.parametrize("entries", [("slow",), ("first", "second")])
def test_a_cold_call_takes_as_long_in_a_train_of_sweeps_as_alone(monkeypatch, entries):
    card, one = card_and_recorder(monkeypatch)
    monkeypatch.setattr(cold_trains, "IDLE_S", 0.0)
    context, shared, plan = on_card(card, entries)
    one.start()
    timed = cold_trains.Timed(context, shared, plan, 5)
    row = cold_trains.row(timed, one, context.sweep.enqueue)
    span = 18.0 if len(entries) == 1 else 4.5 + LAUNCH_GAP_US + 2.0
    assert row == {name: pytest.approx(span, abs=0.07) for name in cold_trains.COLUMNS}
    warm = cold_trains.single(timed, one, [])
    assert warm[-1] == pytest.approx(12.0 if len(entries) == 1 else 5.0 + LAUNCH_GAP_US, abs=0.07)


def test_a_plan_is_witnessed_as_it_is_launched_on_a_stream_and_in_a_graph(monkeypatch):
    card, one = card_and_recorder(monkeypatch)
    context, _, plan = on_card(card, ("first", "second"))

    class Taken:
        def taken(self):
            return [(record.start_ns, record.end_ns) for record in one.drain()]

    class Witnessed:
        each = 2

        def run(self):
            plan.enqueue(0)

    one.start()
    told = fidelity_witness.seen(Witnessed(), context.sweep, Taken(), context)
    for way, gap in (("stream", LAUNCH_GAP_US), ("graph", GRAPH_GAP_US)):
        assert told[way] == pytest.approx((5.0 + gap, 6.5 + gap), abs=0.07)
    assert told["alone"] == pytest.approx((5.0 + LAUNCH_GAP_US, 6.5 + LAUNCH_GAP_US), abs=0.07)


@pytest.mark.parametrize(("us", "calls"), [(12.0, 60), (600.0, 15)])
def test_a_long_plan_is_witnessed_fewer_times(monkeypatch, us, calls):
    card, one = card_and_recorder(monkeypatch)
    card.durations["slow"] = us
    context, _, plan = on_card(card, ("slow",))
    witnessed = SimpleNamespace(each=1, run=lambda: plan.enqueue(0))
    taken = SimpleNamespace(taken=lambda: [(record.start_ns, record.end_ns) for record in one.drain()])
    one.start()
    fidelity_witness.seen(witnessed, context.sweep, taken, context)
    ways = 6  # on a stream and in a graph, warm and cold, the warm graph once before, and alone
    assert card.launched.count("slow") == fidelity_witness.WARM_UP + ways * calls


def test_without_records_of_graphs_the_witness_on_a_stream_is_kept(monkeypatch, capsys):
    card, one = card_and_recorder(monkeypatch)
    context, _, plan = on_card(card, ("slow",))
    asked = iter(range(100))

    class Taken:
        def taken(self):
            found = [(record.start_ns, record.end_ns) for record in one.drain()]
            return found[:-1] if next(asked) > 5 else found  # drained twice a reading, and once to see how long one is

    class Witnessed:
        each = 1

        def run(self):
            plan.enqueue(0)

    one.start()
    told = fidelity_witness.seen(Witnessed(), context.sweep, Taken(), context)
    assert set(told) == {"stream"}
    said = capsys.readouterr().err
    assert "no witness in a graph: 59 records for 60 calls" in said
    assert "no witness of single calls: 119 records for 60 calls" in said
    assert set(fidelity_witness.over_placements([told, {"stream": (1.0, 2.0), "graph": (1.0, 2.0)}])) == {"stream"}


def test_the_witness_tells_the_median_of_its_placements_and_how_far_they_lie_apart():
    plans = [{"stream": (1.0, 5.0)}, {"stream": (1.2, 4.0)}, {"stream": (1.1, 4.5)}]
    assert fidelity_witness.over_placements(plans)["stream"] == pytest.approx([1.1, 4.5, 0.2, 1.0])


def test_each_clock_is_held_against_the_plan_as_it_launches_it():
    ways = {"stream": [9.3, 17.3, 0.3, 0.4], "graph": [8.2, 16.2, 0.3, 0.4], "alone": [9.3, 16.3, 0.3, 0.2]}
    seen = fidelity.witnessed(ways)
    assert (seen["witness"], seen["in a graph"], seen["train"][1]) == ((9.3, 16.3), (8.2, 16.2), 17.3)
    figures = {**seen, "graph": (8.3, 17.1), "cupti": (9.2, 16.2)}
    marks = {name: [fidelity.judged(figures, name, index) for index in (0, 1)] for name in figures}
    assert set(map(tuple, marks.values())) == {(" ", " ")}
    in_a_train = fidelity.witnessed({"stream": ways["stream"]}) | {"cupti": (9.2, 16.2)}  # no call was waited for
    assert [fidelity.judged(in_a_train, "cupti", index) for index in (0, 1)] == [" ", "!"]
    assert fidelity.judged({**figures, "in a graph": (7.5, 16.2)}, "graph", 0) == "!"
    assert fidelity.apart({"two": figures, "none": {}}) == ["two, warm: graph 8.300 us, on a stream 9.300"]


def test_what_a_trial_reports_is_held_against_ncu_and_a_long_batch():
    """CUPTI reads 9.2 us warm, and `auto` leaves it."""
    figures = {"cupti": (9.2, 17.3), "graph": (8.2, 16.2), "auto": (8.2, 16.2), "throughput": (8.25, float("nan"))}
    for ncu, mark in ((8.9, " "), (9.3, "!")):
        assert fidelity.judged({**figures, "ncu": (ncu, 16.0)}, "ncu", 0) == mark
    assert fidelity.judged({**figures, "auto": figures["cupti"], "ncu": (9.3, 16.0)}, "ncu", 0) == " "
    assert [fidelity.judged(figures, "throughput", index) for index in (0, 1)] == [" ", " "]
    assert fidelity.judged({**figures, "auto": (9.2, 17.1)}, "throughput", 0) == "!"


def test_a_figure_is_the_median_over_sets_of_buffers():
    each = fidelity.BEFORE * [50.0]
    own = [*each, 2.0, 2.1, 2.2, 2.1, *each, 3.0, 3.0, 3.0, 3.0, *each, 2.3, 2.3, 2.3, 2.3]
    assert fidelity.of_profile(own) == 2.3
    places = [{"warm_us": {"a": [us], "b": [us]}, "cold_us": {"a": [us + 1], "b": [us + 2]}} for us in (5.0, 9.0, 6.0)]
    assert fidelity.over_placements(places) == (6.0, 7.5)


def test_a_clock_reads_each_set_of_buffers_beside_those_before_it(monkeypatch):
    card, _ = card_and_recorder(monkeypatch)
    alive = []
    monkeypatch.setattr(fidelity, "timed", lambda *_: alive.append(len(card._memory)) or {"clock": "graph"})
    subject = SimpleNamespace(call=call_of("slow"))
    assert len(fidelity.placed(None, subject, None, ("graph", 4, 3))) == 3
    each = 3 * len(subject.call.buffers)
    assert alive == [0, each, 2 * each]
    assert not card._memory
    monkeypatch.setattr(fidelity, "timed", lambda *_: "no cupti")
    assert fidelity.placed(None, subject, None, ("cupti", 4, 3)) == "no cupti"
