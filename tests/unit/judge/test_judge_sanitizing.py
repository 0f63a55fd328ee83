"""compute-sanitizer's word in a verdict: a fault ends it, what was not looked at stays unchecked, and only then."""

import threading

import msgspec
import pytest
from judge_doubles import PTX, FakeRunner, binary, built, cases, contract, multiply, plan, setup

from kerneltrial.judge.validation import Further, Judge
from kerneltrial.records.reason import Finding, Reason
from kerneltrial.records.sanitizer import TOOLS, Looked, NotLooked, Sanitized, not_run
from kerneltrial.records.validation import Invalid, Unchecked, Validated

NONE_LOOKED = tuple(not_run(tool) for tool in TOOLS)
SMID = ".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry k() { .reg .b32 %r; mov.u32 %r, %smid; ret; }\n"


class Tools:
    """Clean tools, but for what is given by their names; keeps what they were asked."""

    def __init__(self, **words) -> None:
        self.words = words
        self.asked: list = []

    def __call__(self, binary, asked):
        self.asked.append(asked)
        names = tuple(case for case, _, _ in asked)
        plain = {tool: Looked(tool=tool, cases=names, findings=(), unchecked=()) for tool in TOOLS}
        told = {**plain, **{t: w if isinstance(w, NotLooked) else msgspec.structs.replace(plain[t], **w)
                            for t, w in self.words.items()}}  # fmt: skip
        return Sanitized(tools=tuple(told[tool] for tool in TOOLS))


def judged(tmp_path, tools, runner=None, ptx=None, **changes):
    judge = Judge(setup(tmp_path, **changes))
    runner = runner or FakeRunner(unchecked=NONE_LOOKED)
    return judge.judge_candidate(built(), binary(ptx) if ptx else binary(), plan(), runner, Further(sanitizes=tools))


def test_clean_tools_are_checks_of_their_own_and_leave_nothing_of_theirs_unchecked(tmp_path):
    tools = Tools()
    outcome = judged(tmp_path, tools)
    assert isinstance(outcome, Validated)
    assert outcome.checks[-4:] == TOOLS
    assert not any(finding in outcome.unchecked for finding in NONE_LOOKED)
    (asked,) = tools.asked
    assert {"case_0", "case_1"} <= {case for case, _, _ in asked}
    assert not any(case.startswith("far") for case, _, _ in asked)
    _, call, values = asked[0]
    assert {buffer.name for buffer in call.buffers} == {"A", "B", "C"}
    assert values["A"].shape == next(buffer.shape for buffer in call.buffers if buffer.name == "A")


class Telling(Tools):
    def __init__(self, **words) -> None:
        super().__init__(**words)
        self.event = threading.Event()

    def __call__(self, binary, asked):
        self.event.set()
        return super().__call__(binary, asked)


def test_at_once_tools_look_while_the_device_judges_and_the_verdict_is_the_same(tmp_path):
    race = Finding(reason=Reason.SHARED_RACE, detail="racecheck, cases a: Error: Race reported")
    for words in ({}, {"racecheck": {"findings": (race,)}}):
        tools = Telling(**words)
        judge = Judge(setup(tmp_path))

        def held(inputs, buffers, state, asked=tools.event):
            assert asked.wait(60.0), "the tools were not asked while the device judged"
            multiply(inputs, buffers, state)

        runner = FakeRunner(held, unchecked=NONE_LOOKED)
        outcome = judge.judge_candidate(built(), binary(), plan(), runner, Further(sanitizes=tools, at_once=True))
        assert outcome == judged(tmp_path, Tools(**words))


def test_at_once_a_wrong_candidate_stays_what_it_is(tmp_path):
    judge = Judge(setup(tmp_path))
    tools = Tools()
    further = Further(sanitizes=tools, at_once=True)
    outcome = judge.judge_candidate(built(), binary(), plan(), FakeRunner(lambda *_: None), further)
    assert isinstance(outcome, Invalid)
    assert outcome == judged(tmp_path, None, FakeRunner(lambda *_: None))


def test_without_tools_a_verdict_is_what_it_was(tmp_path):
    outcome = judged(tmp_path, None)
    assert not set(TOOLS) & set(outcome.checks)
    assert all(finding in outcome.unchecked for finding in NONE_LOOKED)


def test_a_tools_finding_refuses_the_candidate_with_its_reason(tmp_path):
    race = Finding(reason=Reason.SHARED_RACE, detail="racecheck, cases a: Error: Race reported")
    outcome = judged(tmp_path, Tools(racecheck={"findings": (race,)}))
    assert isinstance(outcome, Invalid)
    assert (outcome.reason, outcome.detail) == (race.reason, race.detail)
    assert outcome.cases
    assert outcome.checks[-4:] == TOOLS


def test_a_tool_that_did_not_look_is_unchecked_with_its_reason(tmp_path):
    outcome = judged(tmp_path, Tools(initcheck=NotLooked(tool="initcheck", why="Device not supported")))
    assert isinstance(outcome, Validated)
    assert "initcheck" not in outcome.checks
    (told,) = [f for f in outcome.unchecked if f.detail.startswith("initcheck was not run")]
    assert told.reason is Reason.CHECK_ABSENT
    assert "Device not supported" in told.detail
    assert "never written" in told.detail


@pytest.mark.parametrize(
    "barrier", ["barrier.cta.arrive 1, 128;", "bar.arrive 1, 128;", "barrier.arrive.aligned 1, 64;"]
)
def test_a_race_beside_a_one_sided_barrier_is_doubted(tmp_path, barrier):
    race = Finding(reason=Reason.SHARED_RACE, detail="racecheck, cases a: Error: Race reported")
    barred = Finding(reason=Reason.BARRIER_DIVERGENCE, detail="synccheck, cases a: Barrier error")
    ptx = PTX.replace("ret;", f"{barrier} ret;")
    outcome = judged(tmp_path, Tools(racecheck={"findings": (race,)}), ptx=ptx)
    assert isinstance(outcome, Validated)
    (doubt,) = [f for f in outcome.unchecked if f.detail.startswith("racecheck, cases a")]
    assert doubt.reason is Reason.CHECK_ABSENT
    assert "only arrive at a barrier" in doubt.detail
    assert judged(tmp_path, Tools(synccheck={"findings": (barred,)}), ptx=ptx).reason is Reason.BARRIER_DIVERGENCE
    sync = PTX.replace("ret;", "barrier.cta.sync 1, 128; // bar.arrive 1, 128;\n ret;")
    assert judged(tmp_path, Tools(racecheck={"findings": (race,)}), ptx=sync).reason is Reason.SHARED_RACE


def test_what_a_tool_warns_of_stays_unchecked(tmp_path):
    warned = Finding(reason=Reason.CHECK_ABSENT, detail="racecheck warns: perhaps")
    assert warned in judged(tmp_path, Tools(racecheck={"unchecked": (warned,)})).unchecked


def test_tools_are_not_asked_about_what_is_wrong_already(tmp_path):
    tools = Tools()

    def zeros(inputs, buffers, state):
        buffers["C"][:] = 0

    assert isinstance(judged(tmp_path, tools, FakeRunner(zeros)), Invalid)
    assert tools.asked == []


def test_a_finding_comes_before_a_review(tmp_path):
    race = Finding(reason=Reason.SHARED_RACE, detail="racecheck: Error: Race reported")
    assert isinstance(judged(tmp_path, Tools(), ptx=SMID), Unchecked)
    assert judged(tmp_path, Tools(racecheck={"findings": (race,)}), ptx=SMID).reason is Reason.SHARED_RACE


def test_large_cases_are_left_out_and_named(tmp_path):
    several = cases((8, 7, 9), (300, 300, 300), (400, 300, 300))
    tools = Tools()
    outcome = judged(tmp_path, tools, cases=several, contract=contract(operations="2000 * m * n * k"))
    names = [case for case, _, _ in tools.asked[0]]
    assert "case_0" in names
    assert not {"case_1", "case_2"} & set(names)
    (told,) = [f.detail for f in outcome.unchecked if "too large for it" in f.detail]
    assert "case_1" in told
    assert "case_2" in told
