"""A confirmation draws processes until its plan stops; the best of an iteration is profiled where that is asked for."""

import contextlib
from random import Random
from types import SimpleNamespace

import msgspec
import pytest
from trial_pieces import H200, SQUARE, WIDE, lock, plan, qualification

from kerneltrial.devices.device import Refused, Samples
from kerneltrial.evidence.alike import same
from kerneltrial.measure.confirm import figures
from kerneltrial.records.build import Built, NoCubin
from kerneltrial.records.candidate import Candidate
from kerneltrial.records.confirmation import Confirmed, NotTimed
from kerneltrial.records.profile import NOT_ASKED, NoProfile
from kerneltrial.records.qualification import BaselineLatency
from kerneltrial.records.reason import Finding, Reason
from kerneltrial.records.roofline import Floor
from kerneltrial.records.timing import Timed, Untimed
from kerneltrial.records.validation import Validated
from kerneltrial.stages import confirm, time
from kerneltrial.stages.measuring import CHOICE, Drawn, Kernel
from kerneltrial.store.canonical import builtins
from kerneltrial.store.measurements import Stored

WINNER = "a" * 64
FLOOR = Floor(floor_us=9.0, bound="fp32", assumes="ordinary units")  # the winner stays below it


class Child:
    """A runner that counts how often one was opened and whether it is closed."""

    opened: list["Child"] = []

    def __init__(self) -> None:
        self.begun = self.device_asked = self.closed = False
        Child.opened.append(self)

    def __enter__(self) -> "Child":
        return self

    def __exit__(self, *_: object) -> None:
        self.closed = True

    def begin(self) -> None:
        self.begun = True

    def device(self) -> None:
        self.device_asked = True

    close = __exit__


def drawn(spread: float, case: str, process: int, faults: tuple[Finding, ...] = ()) -> Drawn:
    random = Random(f"{case} {process}")
    own = random.gauss(1.0, spread)
    rows = {key: tuple(us * random.gauss(1.0, 1e-4) for _ in range(20)) for key, us in (("a", 10.0), ("a2", 10.0))}
    rows |= {key: tuple(8.0 * own * random.gauss(1.0, 1e-4) for _ in range(20)) for key in ("b", "b2")}
    samples = Samples(
        clock="graph", resolution_us=0.01, calls_per_sample=50, warm_us=rows, cold_us=rows,
        outputs=(), device_state={"warm_up": "50 calls", "cublas_algorithm_chosen": "2"}, discarded=0,
    )  # fmt: skip
    return Drawn(samples=samples, faults=faults)


def built(candidate: str) -> Built:
    return Built(
        candidate=candidate, abi="pointer", ptx="0" * 64, cubin=NoCubin(), entries=(), compiler="", options=(),
        log="0" * 64, same_ptx_as=(),
    )  # fmt: skip


@pytest.fixture
def ground(monkeypatch):
    """Just as much of a stage's ground as the loop over processes asks for."""
    Child.opened = []
    latency = BaselineLatency(cases={}, samples={}, floors={SQUARE: FLOOR})
    qualified = msgspec.structs.replace(qualification(H200), performance=latency)
    job = SimpleNamespace(record=lambda stage, type_: qualified)
    monkeypatch.setattr(confirm, "read_salt", lambda job: b"salt")
    monkeypatch.setattr(confirm, "is_stored", lambda *_: False)
    monkeypatch.setattr(confirm.Runner, "close", lambda child: child.__exit__())
    monkeypatch.setattr(confirm.Runner, "device", lambda child: child.device())
    return SimpleNamespace(lock=lock(H200, "t"), job=job, runner=Child, setup=lambda *_: None, baseline=lambda *_: None)


def confirmed(ground, monkeypatch, spread: float, **more):
    asked = []

    def samples_of(g, pair, cases, answers, how):
        asked.append(how)
        assert answers == "those of the judgement"  # worked out, and the baseline run, before anything is timed
        if how.process == more.get("refused_at"):
            raise Refused(Finding(reason=Reason.DEVICE_FAULT, detail="a fault"))
        faults = (more["fault"],) if how.process == 1 and "fault" in more else ()
        return {
            case.name: Stored(value=drawn(spread, case.name, how.process, faults), digest=f"{how.process:064x}")
            for case in cases
        }

    monkeypatch.setattr(confirm, "samples_of", samples_of)
    kernel = Kernel(built=built(WINNER), plan=plan())
    with contextlib.ExitStack() as children:
        waiting = confirm._begun(ground, kernel, children)
        assert all(child.begun and not child.device_asked for child in waiting)  # the card opens, and nobody waits
        own = children.enter_context(Child())
        answers = "those of the judgement"
        again = confirm.Again(findings=(), checks=(), unchecked=(), answers=answers, own=own)
        return confirm._timed_again(ground, kernel, again, waiting), asked


@pytest.mark.parametrize(("spread", "processes", "narrow"), [(3e-4, 5, True), (0.02, 10, False)])
def test_a_quiet_card_needs_one_look_and_a_noisy_one_all(ground, monkeypatch, spread, processes, narrow):
    confirmation, asked = confirmed(ground, monkeypatch, spread)
    outcome = confirmation.outcome
    assert isinstance(outcome, Confirmed)
    assert (outcome.looked.processes, outcome.looked.narrow) == (processes, narrow)
    assert [how.process for how in asked] == [CHOICE, *range(processes)]
    assert len({id(how.runner) for how in asked}) == 1 + processes  # each in a fresh process
    assert asked[0].clocks == {}
    assert all(how.clocks == {SQUARE: "graph", WIDE: "graph"} for how in asked[1:])
    assert all(how.algorithms == {SQUARE: 2, WIDE: 2} for how in asked[1:])
    assert all(child.closed for child in Child.opened)
    assert len(Child.opened) == 1 + 1 + processes  # that which chooses a clock, the baseline's, and the rest
    assert [child.device_asked for child in Child.opened] == [True] * 6 + [False] + [True] * (processes - 5)
    again = figures(
        {case: [drawn(spread, case, p).samples for p in range(processes)] for case in (SQUARE, WIDE)},
        {case: [f"{p:064x}" for p in range(processes)] for case in (SQUARE, WIDE)},
        ground.lock.protocol,
        {SQUARE: FLOOR},
    )
    assert same(builtins(outcome.cases), builtins(again.cases))
    assert outcome.valid
    assert list(outcome.review) == [SQUARE]


def test_a_clock_that_is_asked_for_by_name_needs_no_choice(ground, monkeypatch):
    protocol = msgspec.structs.replace(ground.lock.protocol, clock="graph")
    ground.lock = msgspec.structs.replace(ground.lock, protocol=protocol)
    assert [how.process for how in confirmed(ground, monkeypatch, 3e-4)[1]] == list(range(5))


def test_a_wrong_output_of_a_timed_launch_makes_the_winner_wrong(ground, monkeypatch):
    fault = Finding(reason=Reason.WRONG_VALUES, detail="in a timed launch")
    outcome = confirmed(ground, monkeypatch, 3e-4, fault=fault)[0].outcome
    assert not outcome.valid
    assert fault in outcome.findings


@pytest.mark.parametrize("dear", [True, False])
def test_what_a_person_must_look_at_is_told_again_whatever_was_asked_for(dear):
    way = Finding(reason=Reason.NEEDS_REVIEW, detail="line 4 of k: no case shows what it does")
    absent = Finding(reason=Reason.CHECK_ABSENT, detail="initcheck was not run")
    right = Validated(candidate=WINNER, cases=(), checks=("oracle",), unchecked=(absent, way))
    findings, _, unchecked = confirm._told(right, dear=dear)
    assert unchecked == ((absent, way) if dear else (way,))
    assert findings == ()


def test_a_winner_that_faults_when_it_is_timed_again_is_not_timed(ground, monkeypatch):
    outcome = confirmed(ground, monkeypatch, 3e-4, refused_at=3)[0].outcome
    assert isinstance(outcome, NotTimed)
    assert [finding.reason for finding in outcome.findings] == [Reason.DEVICE_FAULT]
    assert all(child.closed for child in Child.opened)


@pytest.mark.parametrize(("candidates", "waves"), [(3, [3]), (16, [16]), (33, [16, 16, 1])])
def test_so_many_processes_of_a_search_are_open_at_once_as_a_card_has_room_for(ground, monkeypatch, candidates, waves):
    ahead: list[int] = []  # how many devices were open when answers were worked out: while they open, none is

    def draw_ahead(asked, over):
        ahead.append(sum(child.device_asked for child in Child.opened if not child.closed))

    ready = SimpleNamespace(draw_ahead=draw_ahead)
    monkeypatch.setattr(time, "Judge", lambda setup: SimpleNamespace(answers=ready))
    monkeypatch.setattr(time, "timed_draws", lambda g: ())
    monkeypatch.setattr(time, "is_stored", lambda g, pair, *_: pair[1].built.candidate == "0" * 64)
    monkeypatch.setattr(time, "performance_cases", lambda g: ())
    seen: list[list[Child]] = []

    def timed(g, pair, answers, child):
        assert answers is ready
        now = [one for one in Child.opened[1:] if not one.closed]
        assert all(one.begun and one.device_asked for one in now[1:])  # the first is stored
        seen.extend([now] if not seen or seen[-1] != now else [])
        assert now[len(done) % 16] is child
        done.append(pair[1].built.candidate)
        return done[-1]

    done: list[str] = []
    monkeypatch.setattr(time, "_time", timed)
    names = [f"{number:x}" * 64 for number in range(16)] * 3
    valid = [
        (Candidate(id=name, language="cuda_cpp", source="0" * 64, plan=plan()), built(name))
        for name in names[:candidates]
    ]
    assert time._timed(ground, Kernel(built=built("f" * 64), plan=plan()), valid) == names[:candidates]
    assert [len(now) for now in seen] == waves
    assert ahead == [0] * sum(processes > 1 for processes in waves)  # the last of 33 is stored, so nothing is asked
    assert all(child.closed for child in Child.opened)


def outcomes() -> list[Timed | Untimed]:
    timed = [Timed(candidate=name * 64, cases=(), geometric_mean=mean) for name, mean in (("b", 1.1), ("c", 1.3))]
    return [Untimed(candidate="d" * 64, reason=Reason.HANG, detail=""), *timed]


@pytest.mark.parametrize("asked", ["none", "ncu"])
def test_the_best_of_an_iteration_is_profiled_where_the_protocol_asks(ground, monkeypatch, asked):
    looked_at = []

    def profile_of(g, kernel):
        looked_at.append(kernel.built.candidate)
        return NoProfile(why="ncu is not here")

    monkeypatch.setattr(time, "profile_of", profile_of)
    protocol = msgspec.structs.replace(ground.lock.protocol, profile=asked)
    ground.lock = msgspec.structs.replace(ground.lock, protocol=protocol)
    valid = [
        (Candidate(id=name * 64, language="cuda_cpp", source="0" * 64, plan=plan()), built(name * 64)) for name in "dbc"
    ]
    found = time._best_profiled(ground, valid, outcomes())
    assert looked_at == (["c" * 64] if asked == "ncu" else [])
    profiles = [entry.profile for entry in found if isinstance(entry, Timed)]
    assert profiles == [NOT_ASKED, NoProfile(why="ncu is not here") if asked == "ncu" else NOT_ASKED]
    assert [entry.candidate[0] for entry in found] == ["d", "b", "c"]
