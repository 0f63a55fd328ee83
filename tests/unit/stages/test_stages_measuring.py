"""What a stage asks of a card: the case's statement of what is warm goes with every request."""

from types import SimpleNamespace

import msgspec
import pytest

from kerneltrial.devices.device import Binary
from kerneltrial.inputs.calls import Call
from kerneltrial.records.case import Case
from kerneltrial.records.protocol import Protocol
from kerneltrial.stages import measuring
from kerneltrial.stages.measuring import CHOICE, SEARCH, Asked


@pytest.mark.parametrize("process", [SEARCH, CHOICE, 0, 3])
def test_what_a_case_states_as_warm_is_asked_of_the_card_and_names_the_measurement(monkeypatch, process):
    monkeypatch.setattr(measuring, "binary_of", lambda *_: Binary(ptx="", cubin=b"x"))
    monkeypatch.setattr(measuring, "resolve", lambda *_: Call(buffers=(), launches=()))
    monkeypatch.setattr(measuring, "product_of", lambda _: None)
    monkeypatch.setattr(measuring, "identity", lambda kernel: {"binary": kernel.built.abi})
    kernel = SimpleNamespace(built=SimpleNamespace(abi=None), plan=None)
    lock = SimpleNamespace(protocol=Protocol(), contract="contract", device="card", seed=1)
    g = SimpleNamespace(lock=lock, job=SimpleNamespace(objects=None))
    silent = Case(name="wide", kind="performance", dimensions={"n": 8})
    stated = msgspec.structs.replace(silent, residency={"x": "warm", "y": "cold", "b": "warm"})
    requests = [measuring.timing_request(g, (kernel, kernel), case, Asked(process)) for case in (silent, stated)]
    assert [request.warm for request in requests] == [(), ("b", "x")]
    keys = [measuring._key(g, (kernel, kernel), case, Asked(process)) for case in (silent, stated)]
    assert keys[0] != keys[1]


def test_timed_launches_are_given_the_inputs_that_answers_are_held_for(monkeypatch):
    case = Case(name="wide", kind="performance", dimensions={"n": 8})
    answers = SimpleNamespace(values=lambda case, draw: f"{case.name} {draw}")
    monkeypatch.setattr(measuring, "_key", lambda *_: {})
    monkeypatch.setattr(measuring, "timing_request", lambda *_: "request")
    monkeypatch.setattr(measuring, "_checked", lambda g, candidate, case, held, samples: (held, samples))
    g = SimpleNamespace(job=SimpleNamespace(measurements=SimpleNamespace(once=lambda key, draw, type_: draw())))
    runner = SimpleNamespace(time=lambda request, values: values)
    found = measuring.samples_of(g, (None, None), (case,), answers, Asked(runner=runner))
    assert found == {"wide": (answers, ["wide 0", "wide 1", "wide 2"])}
