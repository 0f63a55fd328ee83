"""The decision: every rule at its edges, and no way to GO past a rule that did not pass."""

from dataclasses import replace
from decimal import Decimal
from importlib import resources
from typing import Any

import msgspec
import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st
from trial_pieces import BASELINE_US, CPU, SQUARE, WIDE, agreed, fake, interval, ran, receipt, terms
from trial_stories import STORIES, Trial, confirmed, go_shaped

from kerneltrial.decide.decision import decide
from kerneltrial.decide.grounds import Grounds
from kerneltrial.decide.rules_fast import no_case_worse
from kerneltrial.decide.winner import Judged, choose_winner
from kerneltrial.devices.device import Samples
from kerneltrial.measure.confirm import figures
from kerneltrial.records.compilers import CompilerLatency, Compilers
from kerneltrial.records.confirmation import (
    Confirmation,
    Confirmed,
    ConfirmedCase,
    EndToEnd,
    EndToEndFailed,
    NoEndToEnd,
    NotTimed,
    NoWinner,
    VendorSpeed,
)
from kerneltrial.records.contract import Array
from kerneltrial.records.decision import RULES, Decision, Failed, Passed, RuleResult, Unknown, Winner, verdict
from kerneltrial.records.holdout import Holdout, HoldoutVerdict
from kerneltrial.records.proposal import Unusable
from kerneltrial.records.protocol import Protocol
from kerneltrial.records.qualification import COPY_OF_BASELINE, SecondOpinion
from kerneltrial.records.reason import Finding, Reason
from kerneltrial.records.receipt import NoReceipt, Receipt
from kerneltrial.records.residency import AsStated
from kerneltrial.records.terms import Terms
from kerneltrial.store.canonical import canonical, decode

GO = go_shaped()


def grounds(trial: Trial = GO, **changes: Any) -> Grounds:
    whole = Grounds(
        lock=trial.lock,
        terms=trial.terms,
        qualification=trial.qualification,
        prize=trial.prize,
        iterations=trial.iterations,
        confirmation=trial.confirmation,
        spent=trial.decision.spent,
        receipt=receipt(changes.get("terms", trial.terms)),
    )
    return replace(whole, **changes)


def rule(decision: Decision, name: str) -> RuleResult:
    return next(result for result in decision.rules if result.rule == name)


def results(decision: Decision) -> dict[str, str]:
    return {result.rule: type(result).__name__ for result in decision.rules}


def confirmation(**changes: Any) -> Confirmation:
    """The GO trial's confirmation with another outcome inside."""
    outcome = msgspec.structs.replace(GO.confirmation.outcome, **changes)
    return msgspec.structs.replace(GO.confirmation, outcome=outcome)


def read_without_steps() -> tuple[ConfirmedCase, ...]:
    """The GO trial's cases, read by a clock without steps: for rules at their very edges."""
    return tuple(msgspec.structs.replace(case, resolution_us=0.0) for case in GO.confirmation.outcome.cases)


def policy(**changes: Any) -> Terms:
    now = GO.terms.now
    return terms(msgspec.structs.replace(now, policy=msgspec.structs.replace(now.policy, **changes)))


def priced(**changes: Any) -> Terms:
    now = GO.terms.now
    return terms(msgspec.structs.replace(now, prices=msgspec.structs.replace(now.prices, **changes)))


def test_the_starter_names_no_author_and_no_source_of_its_prices() -> None:
    starter = yaml.safe_load(resources.files("kerneltrial.commands").joinpath("starter/config.yaml").read_text())
    lock = msgspec.structs.replace(GO.lock, oracle_author=starter["oracle_author"])
    decision = decide(grounds(lock=lock, terms=priced(source=starter["prices"]["source"])))
    assert {name for name, result in results(decision).items() if result != "Passed"} == {
        "independent_oracle",
        "own_terms",
    }
    assert decision.example
    assert all(held.example for held in decision.rules if held.rule in ("positive_saving", "payback_within_horizon"))
    own_terms = rule(decision, "own_terms")
    assert own_terms.seen == "an example's figures: prices.source is 'example row, no quotation'"
    assert "prices.source" in own_terms.settled_by


def test_a_winner_that_counts_and_was_wrong_again_is_no_go() -> None:
    wrong = Finding(reason=Reason.WRONG_VALUES, detail="draw 9")
    outcome = NotTimed(winner=GO.confirmation.outcome.winner, ratio=1.2, valid=False, findings=(wrong,))
    decision = decide(grounds(confirmation=Confirmation(outcome=outcome)))
    assert decision.outcome == "NO-GO"
    held = rule(decision, "correct_on_public_cases")
    assert isinstance(held, Failed)
    assert held.seen == "the winner was right in the search and wrong at the confirmation: wrong values, draw 9"


def test_everything_there_is_go() -> None:
    decision = decide(grounds())
    assert decision.outcome == "GO"
    assert set(results(decision).values()) == {"Passed"}


@pytest.mark.parametrize(
    ("name", "changes", "outcome"),
    [
        ("reviewer_receipt", {"receipt": NoReceipt()}, "INCONCLUSIVE"),
        ("own_terms", {"terms": terms(agreed(True, model=GO.terms.now.prices.model))}, "INCONCLUSIVE"),
        (
            "end_to_end_evidence",
            {"confirmation": msgspec.structs.replace(GO.confirmation, end_to_end=NoEndToEnd())},
            "INCONCLUSIVE",
        ),
        (
            "end_to_end_evidence",
            {"confirmation": msgspec.structs.replace(GO.confirmation, end_to_end=ran(interval(0.1, 0.2), 5))},
            "INCONCLUSIVE",
        ),
        (
            "end_to_end_evidence",
            {"confirmation": msgspec.structs.replace(GO.confirmation, end_to_end=ran(interval(-0.3, 0.2), 5))},
            "NO-GO",
        ),
        ("vendor_not_faster", {"confirmation": msgspec.structs.replace(GO.confirmation, vendors=())}, "INCONCLUSIVE"),
        (
            "vendor_not_faster",
            {
                "confirmation": msgspec.structs.replace(
                    GO.confirmation, vendors=(VendorSpeed(name="cublas", speedup=interval(0.9, 0.01)),)
                )
            },
            "NO-GO",
        ),
        (
            "vendor_not_faster",
            {
                "confirmation": msgspec.structs.replace(
                    GO.confirmation, vendors=(VendorSpeed(name="cublas", speedup=interval(1.0, 0.01)),)
                )
            },
            "INCONCLUSIVE",
        ),
        ("confirmed_speedup", {"confirmation": confirmation(geometric_mean=interval(1.02, 0.01))}, "INCONCLUSIVE"),
        ("confirmed_speedup", {"confirmation": confirmation(geometric_mean=interval(1.0, 0.01))}, "NO-GO"),
        (
            "no_case_worse",
            {"confirmation": confirmation(cases=(confirmed(SQUARE, 2.0), confirmed(WIDE, 0.9)))},
            "NO-GO",
        ),
        (
            "no_case_worse",
            {"confirmation": confirmation(cases=(confirmed(SQUARE, 2.0), confirmed(WIDE, 0.99)))},
            "INCONCLUSIVE",
        ),
        ("measured_on_gpu", {"lock": msgspec.structs.replace(GO.lock, device=CPU)}, "INCONCLUSIVE"),
        (
            "measured_on_gpu",
            {
                "confirmation": confirmation(
                    cases=tuple(
                        msgspec.structs.replace(case, clock="events-10-100") for case in GO.confirmation.outcome.cases
                    )
                )
            },
            "INCONCLUSIVE",
        ),
        ("independent_oracle", {"lock": msgspec.structs.replace(GO.lock, oracle_author="")}, "INCONCLUSIVE"),
        ("independent_oracle", {"lock": msgspec.structs.replace(GO.lock, oracle_author="openai")}, "INCONCLUSIVE"),
        (
            "independent_oracle",
            {"lock": msgspec.structs.replace(GO.lock, oracle_author=" Put your  name here")},
            "INCONCLUSIVE",
        ),
        ("own_terms", {"terms": priced(source="example row, no quotation")}, "INCONCLUSIVE"),
        ("own_terms", {"terms": priced(source="An EXAMPLE")}, "INCONCLUSIVE"),
        ("own_terms", {"terms": priced(source=" ")}, "INCONCLUSIVE"),
        (
            "own_terms",
            {"terms": priced(model=msgspec.structs.replace(GO.terms.now.prices.model, source="example"))},
            "INCONCLUSIVE",
        ),
        (
            "independent_oracle",
            {"lock": msgspec.structs.replace(GO.lock, asked={"oracle_by_proposer": True})},
            "INCONCLUSIVE",
        ),
        (
            "independent_oracle",
            {
                "qualification": msgspec.structs.replace(
                    GO.qualification, second_opinion=SecondOpinion(by="none", agrees=False, detail="")
                )
            },
            "INCONCLUSIVE",
        ),
        (
            "independent_oracle",
            {
                "qualification": msgspec.structs.replace(
                    GO.qualification, second_opinion=SecondOpinion(by="nothing", agrees=False, detail=COPY_OF_BASELINE)
                )
            },
            "INCONCLUSIVE",
        ),
        (
            "independent_oracle",
            {
                "qualification": msgspec.structs.replace(
                    GO.qualification, second_opinion=SecondOpinion(by="reference.cu", agrees=False, detail="off")
                )
            },
            "NO-GO",
        ),
        ("payback_within_horizon", {"terms": policy(horizon_months=Decimal(5))}, "INCONCLUSIVE"),
        ("payback_within_horizon", {"terms": policy(horizon_months=Decimal(3))}, "NO-GO"),
        (
            "correct_on_public_cases",
            {
                "confirmation": confirmation(
                    valid=False, findings=(Finding(reason=Reason.WRONG_VALUES, detail="draw 9"),)
                )
            },
            "NO-GO",
        ),
        (
            "correct_on_public_cases",
            {
                "confirmation": confirmation(
                    valid=False, findings=(Finding(reason=Reason.DEVICE_LOST, detail="Xid 79"),)
                )
            },
            "INCONCLUSIVE",
        ),
    ],
)
def test_one_rule_alone_holds_the_decision(name: str, changes: dict[str, Any], outcome: str) -> None:
    decision = decide(grounds(**changes))
    assert decision.outcome == outcome
    others = {other for other, result in results(decision).items() if result != "Passed"}
    if grounds(**changes).lock.device == CPU:
        others -= {"end_to_end_evidence"}  # an application on cpu is no evidence either
    assert others == {name}
    held = rule(decision, name)
    assert isinstance(held, Failed if outcome == "NO-GO" else Unknown)
    if isinstance(held, Unknown):
        assert held.settled_by


@pytest.mark.parametrize(
    "changes",
    [
        {"terms": policy(require_receipt=False), "receipt": NoReceipt()},
        {
            "terms": policy(waive_vendor=("cublas",)),
            "confirmation": msgspec.structs.replace(
                GO.confirmation, vendors=(VendorSpeed(name="cublas", speedup=interval(0.9, 0.01)),)
            ),
        },
        {
            "terms": policy(accept_derived=True),
            "confirmation": msgspec.structs.replace(GO.confirmation, end_to_end=ran(interval(0.1, 0.2), 5, calls=3)),
        },
        {"confirmation": confirmation(geometric_mean=interval(1.03, 0.009999), cases=read_without_steps())},
    ],
)
def test_what_the_policy_allows_passes(changes: dict[str, Any]) -> None:
    assert decide(grounds(**changes)).outcome == "GO"


def drifting(case: ConfirmedCase, by: float) -> ConfirmedCase:
    return msgspec.structs.replace(case, drift=interval(by, 0.001))


@pytest.mark.parametrize(
    ("speedup", "by", "result"),
    [
        (1.05, 1.0005, "Passed"),  # its interval includes 1: no drift is told
        (1.05, 1.015, "Passed"),  # 1.04 / 1.015 is still above 1.02
        (1.05, 1.03, "Unknown"),
        (1.05, 0.97, "Unknown"),
        (1.0, 1.005, "Failed"),  # 1.01 x 1.005 is still below 1.02
        (1.0, 1.02, "Unknown"),
    ],
)
def test_a_ratio_that_moves_must_not_be_able_to_move_the_answer(speedup: float, by: float, result: str) -> None:
    cases = (confirmed(SQUARE, 1.3), drifting(confirmed(WIDE, 1.3), by))
    found = rule(
        decide(grounds(confirmation=confirmation(cases=cases, geometric_mean=interval(speedup, 0.01)))),
        "confirmed_speedup",
    )
    assert type(found).__name__ == result
    assert (WIDE in found.seen) is (result == "Unknown")


@pytest.mark.parametrize(
    ("speedup", "by", "result"), [(1.005, 1.003, "Passed"), (1.005, 1.03, "Unknown"), (0.9, 1.2, "Unknown")]
)
def test_a_case_whose_ratio_moves_is_worse_only_where_the_move_does_not_matter(
    speedup: float, by: float, result: str
) -> None:
    cases = (confirmed(SQUARE, 1.3), drifting(confirmed(WIDE, speedup), by))
    assert results(decide(grounds(confirmation=confirmation(cases=cases))))["no_case_worse"] == result


@pytest.mark.parametrize(
    ("warm", "stated", "result"),
    [(1.3, 0.9, "Failed"), (1.3, 1.2, "Passed"), (1.3, 0.985, "Passed"), (0.9, 1.2, "Failed")],
)
def test_a_loss_where_the_l2_is_as_the_case_states_is_a_loss(warm: float, stated: float, result: str) -> None:
    """Such calls are read one by one: a loss of 1 % that is not shown is none."""
    like = confirmed(WIDE, stated)
    found = AsStated(us=9.0, baseline_us=9.0, speedup=like.speedup, process_ratios=like.process_ratios)
    cases = (confirmed(SQUARE, 1.3), msgspec.structs.replace(confirmed(WIDE, warm), stated=found))
    told = rule(decide(grounds(confirmation=confirmation(cases=cases))), "no_case_worse")
    assert type(told).__name__ == result
    assert (f"{WIDE}, the L2 as the case states, at 0.900" in told.seen) is (stated == 0.9)


def test_the_worst_of_many_cases_is_not_worse_by_chance() -> None:
    """A case that alone would be shown to be slow is not, as one of twelve; far slower it is."""
    clear, chance = confirmed(WIDE, 1.3), confirmed(SQUARE, 0.978)
    assert chance.speedup.high < 0.99

    def told(*cases: ConfirmedCase) -> str:
        return type(no_case_worse(grounds(confirmation=confirmation(cases=cases)))).__name__

    assert told(chance) == "Failed"
    assert told(chance, *([clear] * 11)) == "Unknown"
    assert told(confirmed(SQUARE, 0.9), *([clear] * 11)) == "Failed"


def test_the_lower_end_must_lie_above_the_minimum_effect_not_on_it() -> None:
    on_it = interval(1.03, 0.01)
    assert on_it.low == 1.02
    decision = decide(grounds(confirmation=confirmation(geometric_mean=on_it)))
    assert isinstance(rule(decision, "confirmed_speedup"), Unknown)


def test_cpu_is_never_go_and_says_why() -> None:
    decision = STORIES["cpu"]().decision
    assert decision.outcome == "INCONCLUSIVE"
    held = rule(decision, "measured_on_gpu")
    assert isinstance(held, Unknown)
    assert "not time" in held.seen
    assert "GPU" in held.settled_by
    assert isinstance(rule(decision, "own_terms"), Unknown)


def test_failures_name_the_rule_that_failed() -> None:
    decision = STORIES["failures"]().decision
    assert decision.outcome == "NO-GO"
    assert results(decision)["prize"] == "Failed"
    assert decision.post_hoc
    assert isinstance(decision.winner, NoWinner)


def only(trial: Trial, *fates: str) -> Grounds:
    """The failures trial with only the slots whose candidate ended in one of these ways."""
    whole = grounds(trial)
    kept = {standing.candidate for standing in whole.standings if standing.proposed and standing.fate.value in fates}
    iterations = []
    for iteration in whole.iterations:
        attempts = tuple(
            a for a in iteration.proposal.attempts if getattr(getattr(a, "candidate", None), "id", "") in kept
        )
        proposal = msgspec.structs.replace(iteration.proposal, attempts=attempts)
        iterations.append(replace(iteration, proposal=proposal))
        for stage in ("build", "validation", "timing", "holdout"):
            entries = tuple(e for e in getattr(iteration, stage).candidates if e.candidate in kept)
            iterations[-1] = replace(iterations[-1], **{stage: type(getattr(iteration, stage))(candidates=entries)})
    return replace(whole, iterations=tuple(iterations), prize=GO.prize, terms=GO.terms)


@pytest.mark.parametrize(
    ("fates", "right", "held"),
    [
        (("invalid", "not_built"), "Unknown", "Unknown"),  # among them one whose compiler died
        (("invalid",), "Failed", "Unknown"),
        (("invalid", "unchecked"), "Unknown", "Unknown"),
        ((), "Unknown", "Unknown"),
        (("holdout_failed",), "Passed", "Failed"),
        (("holdout_failed", "holdout_unchecked"), "Passed", "Unknown"),
        (("holdout_failed", "untimed"), "Passed", "Passed"),
    ],
)
def test_without_a_winner(fates: tuple[str, ...], right: str, held: str) -> None:
    decision = decide(only(STORIES["failures"](), *fates))
    assert results(decision)["correct_on_public_cases"] == right
    assert results(decision)["held_on_holdout"] == held
    assert decision.outcome == ("NO-GO" if "Failed" in (right, held) else "INCONCLUSIVE")


@pytest.mark.parametrize(
    ("attempts", "told"),
    [
        (1, "nothing was judged: the reply of the proposer could not be used; the last one: the program ended 1"),
        (
            12,
            "nothing was judged: all 12 replies of the proposer could not be used; the last one: the program ended 12",
        ),
        (0, "no candidate was proposed, so nothing was judged"),
    ],
)
def test_a_proposer_that_gave_nothing_usable_says_nothing_of_any_kernel(attempts: int, told: str) -> None:
    whole = only(STORIES["failures"]())
    unusable = tuple(Unusable(Reason.UNUSABLE_REPLY, f"the program ended {n}") for n in range(1, attempts + 1))
    first, *others = whole.iterations
    first = replace(first, proposal=msgspec.structs.replace(first.proposal, attempts=unusable))
    decision = decide(replace(whole, iterations=(first, *others)))
    right = decision.rules[0]
    assert isinstance(right, Unknown)
    assert right.seen == told
    assert decision.outcome == "INCONCLUSIVE"


def test_a_confirmation_of_another_candidate_is_refused() -> None:
    with pytest.raises(ValueError, match="run the confirmation again"):
        decide(grounds(confirmation=confirmation(winner=fake("another"))))


def test_a_winner_that_the_card_would_not_time_again_is_unknown_not_counted() -> None:
    refused = Finding(reason=Reason.NOT_MEASURED, detail="the driver refused the graph")
    outcome = NotTimed(winner=GO.confirmation.outcome.winner, ratio=0.0, valid=False, findings=(refused,))
    decision = decide(grounds(confirmation=msgspec.structs.replace(GO.confirmation, outcome=outcome)))
    assert decision.outcome == "INCONCLUSIVE"
    for name in ("confirmed_speedup", "no_case_worse", "measured_on_gpu"):
        held = rule(decision, name)
        assert isinstance(held, Unknown)
        assert "the driver refused the graph" in held.seen
        assert "count" not in held.seen


def test_milestones_follow_the_fate() -> None:
    rewards = [milestone.reward for milestone in GO.decision.milestones]
    assert rewards == [2, -1, 2, 2, 1, 2, -1]
    assert 0 in [milestone.reward for milestone in STORIES["failures"]().decision.milestones]
    assert max(milestone.reward for milestone in STORIES["cpu"]().decision.milestones) == 1  # counts are not time


@pytest.mark.parametrize(
    ("name", "share", "rewards"),
    [
        ("torch_compile", 0.95, [2, -1, 2, 2, 1, 3, -1]),  # the fastest that held is 1.36 and 1.29 times as fast
        ("torch_compile", 0.7, [2, -1, 2, 2, 1, 2, -1]),
        ("torch_eager", 0.95, [2, -1, 2, 2, 1, 2, -1]),  # eager is no compiler
    ],
)
def test_who_is_faster_than_the_compiler_too_has_one_more(name: str, share: float, rewards: list[int]) -> None:
    """The compiler takes this share of the baseline's time, less a sixth, in both cases."""
    cases = {case: share * BASELINE_US[case] / 1.2 for case in (SQUARE, WIDE)}
    known = Compilers(entries=(CompilerLatency(name=name, version="2", cases=cases),))
    qualified = msgspec.structs.replace(GO.qualification, compilers=known)
    assert [m.reward for m in decide(grounds(qualification=qualified)).milestones] == rewards


def judged(trial: Trial) -> list[Judged]:
    return [Judged(i.number, i.validation, i.timing, i.holdout) for i in trial.iterations]


def test_winner_is_the_best_that_held_not_the_fastest() -> None:
    winner = choose_winner(judged(GO))
    assert isinstance(winner, Winner)
    assert winner.iteration == 3
    fastest = max(t.geometric_mean for i in GO.iterations for t in i.timing.candidates if hasattr(t, "geometric_mean"))
    assert winner.geometric_mean < fastest  # the fastest failed on the holdout


def test_ties_go_to_the_lower_id() -> None:
    iteration = GO.iterations[1]
    timed = tuple(msgspec.structs.replace(t, geometric_mean=1.5) for t in iteration.timing.candidates)
    tied = Judged(
        2, iteration.validation, msgspec.structs.replace(iteration.timing, candidates=timed), iteration.holdout
    )
    winner = choose_winner([tied])
    assert isinstance(winner, Winner)
    assert winner.candidate == min(t.candidate for t in timed)


def test_nobody_that_did_not_hold_wins() -> None:
    lost = [
        Judged(
            j.number,
            j.validation,
            j.timing,
            Holdout(
                candidates=tuple(
                    HoldoutVerdict(candidate=t.candidate, verdict="failed", cases=6) for t in j.holdout.candidates
                )
            ),
        )
        for j in judged(GO)
    ]
    assert isinstance(choose_winner(lost), NoWinner)


RESULTS = st.sampled_from([Passed, Failed, Unknown])


def result(kind: type, name: str) -> RuleResult:
    more = {"settled_by": "more"} if kind is Unknown else {}
    return kind(rule=name, asked="", seen="", example=False, **more)


@given(st.lists(RESULTS, min_size=len(RULES), max_size=len(RULES)), st.booleans())
@settings(max_examples=200, deadline=None)
def test_no_failed_or_unknown_rule_can_yield_go(kinds: list[type], example: bool) -> None:
    rules = tuple(result(kind, name) for kind, name in zip(kinds, RULES, strict=True))
    expected = "NO-GO" if Failed in kinds else "INCONCLUSIVE" if Unknown in kinds else "GO"
    assert verdict(rules) == expected
    for outcome in ("GO", "NO-GO", "INCONCLUSIVE"):
        changes = {"outcome": outcome, "rules": rules, "example": example}
        if outcome == expected and not (outcome == "GO" and example):
            assert msgspec.structs.replace(GO.decision, **changes).outcome == outcome
        else:
            with pytest.raises(ValueError, match="GO"):
                msgspec.structs.replace(GO.decision, **changes)


def test_a_decision_lacking_a_rule_cannot_be_made() -> None:
    with pytest.raises(ValueError, match="each rule once"):
        msgspec.structs.replace(GO.decision, rules=GO.decision.rules[1:])


def test_an_edited_decision_cannot_be_read() -> None:
    data = canonical(STORIES["cpu"]().decision).replace(b'"outcome":"INCONCLUSIVE"', b'"outcome":"GO"')
    with pytest.raises(msgspec.ValidationError, match="not GO"):
        decode(Decision, data)


INTERVALS = st.builds(interval, st.floats(0.5, 2.0).map(lambda x: round(x, 4)), st.floats(0.001, 0.3))


@st.composite
def worlds(draw: st.DrawFn) -> Grounds:
    """The GO trial with anything about it changed."""
    example, cuda = draw(st.booleans()), draw(st.sampled_from([True, True, False]))
    cases = tuple(
        msgspec.structs.replace(
            case, speedup=draw(INTERVALS), clock=draw(st.sampled_from(["graph", "graph", "events-10-100"]))
        )
        for case in GO.confirmation.outcome.cases
    )
    outcome = msgspec.structs.replace(
        GO.confirmation.outcome, cases=cases, geometric_mean=draw(INTERVALS), valid=draw(st.booleans())
    )
    not_timed = NotTimed(winner=outcome.winner, ratio=1.2, valid=True, findings=())
    fixed = terms(agreed(example, model=GO.terms.now.prices.model))
    return grounds(
        lock=msgspec.structs.replace(
            GO.lock,
            device=GO.lock.device if cuda else CPU,
            oracle_author=draw(st.sampled_from(["A. Engineer", "", "openai"])),
        ),
        terms=fixed,
        confirmation=Confirmation(
            outcome=draw(st.sampled_from([outcome, outcome, not_timed])),
            vendors=draw(st.sampled_from([(), GO.confirmation.vendors])),
            end_to_end=draw(st.sampled_from([NoEndToEnd(), GO.confirmation.end_to_end])),
        ),
        receipt=draw(st.sampled_from([NoReceipt(), receipt(fixed)])),
    )


@given(worlds())
@settings(max_examples=150, deadline=None)
def test_go_needs_everything(world: Grounds) -> None:
    decision = decide(world)
    outcome = world.confirmation.outcome
    if decision.outcome == "GO":
        assert set(results(decision).values()) == {"Passed"}
        assert outcome.valid
        assert world.lock.device.kind == "cuda"
        assert outcome.geometric_mean.low > 1.02
        assert all(case.speedup.low >= 0.99 and case.clock == "graph" for case in outcome.cases)
        assert not world.terms.example
        assert isinstance(world.receipt, Receipt)
        assert isinstance(world.confirmation.end_to_end, EndToEnd)
        assert world.confirmation.vendors
    else:
        assert {"Failed", "Unknown"} & set(results(decision).values())
    assert decode(Decision, canonical(decision)) == decision
    for held in decision.rules:
        assert held.asked
        assert held.seen
        assert not isinstance(held, Unknown) or held.settled_by


UNDER = {SQUARE: Finding(reason=Reason.UNDER_ROOFLINE, detail="square: 1 us is below the fp32 floor of 2 us")}


def test_a_time_that_the_card_should_not_allow_asks_for_a_person() -> None:
    decision = decide(grounds(confirmation=confirmation(review=UNDER)))
    found = rule(decision, "measured_on_gpu")
    assert decision.outcome == "INCONCLUSIVE"
    assert isinstance(found, Unknown)
    assert "below the fp32 floor of 2 us" in found.seen
    assert "policy.waive_floor" in found.settled_by


def test_who_looked_into_a_time_under_the_floor_names_its_case() -> None:
    decision = decide(grounds(confirmation=confirmation(review=UNDER), terms=policy(waive_floor=(SQUARE,))))
    assert decision.outcome == "GO"
    assert "waived by the policy" in rule(decision, "measured_on_gpu").seen
    other = decide(grounds(confirmation=confirmation(review=UNDER), terms=policy(waive_floor=(WIDE,))))
    assert other.outcome == "INCONCLUSIVE"


UNSEEN = Finding(reason=Reason.NEEDS_REVIEW, detail="the cpu device did not look (wgmma)")


def test_a_winner_that_the_cpu_device_could_not_run_beside_the_card_asks_for_a_person() -> None:
    unseen = msgspec.structs.replace(GO.confirmation, unchecked=(UNSEEN,))
    decision = decide(grounds(confirmation=unseen))
    found = rule(decision, "correct_on_public_cases")
    assert decision.outcome == "INCONCLUSIVE"
    assert isinstance(found, Unknown)
    assert found.seen.endswith("but the cpu device did not look (wgmma)")
    assert "policy.accept_unseen" in found.settled_by
    assert decide(grounds(confirmation=unseen, terms=policy(accept_unseen=True))).outcome == "GO"
    assert decide(grounds(confirmation=unseen, terms=policy(accept_unseen=False))).outcome == "INCONCLUSIVE"
    absent = msgspec.structs.replace(unseen, unchecked=(Finding(reason=Reason.CHECK_ABSENT, detail="no LLVM"),))
    assert decide(grounds(confirmation=absent)).outcome == "GO"


def test_a_policy_that_was_loosened_after_the_signature_is_no_longer_signed() -> None:
    now = GO.terms.now
    loose = msgspec.structs.replace(now, policy=msgspec.structs.replace(now.policy, horizon_months=Decimal(60)))
    later = terms(loose, now)
    found = rule(decide(grounds(terms=later)), "reviewer_receipt")
    assert isinstance(found, Unknown)
    assert "but policy was changed afterwards" in found.seen
    assert isinstance(rule(decide(grounds(terms=later, receipt=receipt(later, 1))), "reviewer_receipt"), Passed)


def test_a_waived_floor_and_more_iterations_may_come_after_the_signature() -> None:
    now = GO.terms.now
    for change in (
        {"iterations": now.iterations + 4},
        {"policy": msgspec.structs.replace(now.policy, waive_floor=(SQUARE,))},
        {"policy": msgspec.structs.replace(now.policy, accept_unseen=True)},
    ):
        decision = decide(grounds(terms=terms(msgspec.structs.replace(now, **change), now)))
        assert isinstance(rule(decision, "reviewer_receipt"), Passed)
        assert decision.post_hoc


def test_figures_that_no_reviewer_signed_are_no_go() -> None:
    """Prices and calls decide the payback as the policy does."""
    now = GO.terms.now
    few = dict.fromkeys(now.workload.calls_per_month, 1)
    for name, before in (
        ("prices", msgspec.structs.replace(now.prices, gpu_hour_usd=Decimal("3.80"))),
        ("prices", msgspec.structs.replace(now.prices, engineer_hour_usd=Decimal(300))),
        ("workload", msgspec.structs.replace(now.workload, calls_per_month=few)),
        ("workload", msgspec.structs.replace(now.workload, setup_hours=Decimal(400))),
    ):
        later = terms(now, msgspec.structs.replace(now, **{name: before}))
        decision = decide(grounds(terms=later))
        found = rule(decision, "reviewer_receipt")
        assert decision.outcome == "INCONCLUSIVE"
        assert isinstance(found, Unknown)
        assert f"but {name} {'were' if name == 'prices' else 'was'} changed afterwards" in found.seen
        assert f"put back the {name}" in found.settled_by
        assert isinstance(rule(decide(grounds(terms=later, receipt=receipt(later, 1))), "reviewer_receipt"), Passed)


NO_VENDOR = "no library has this fused operation"


def test_a_contract_that_no_vendor_has_a_kernel_for_can_be_go_where_the_policy_says_so() -> None:
    without = msgspec.structs.replace(GO.confirmation, vendors=())
    decision = decide(grounds(confirmation=without, terms=policy(no_vendor=NO_VENDOR)))
    assert decision.outcome == "GO"
    assert NO_VENDOR in rule(decision, "vendor_not_faster").seen
    for nothing in ("", "  "):
        found = rule(decide(grounds(confirmation=without, terms=policy(no_vendor=nothing))), "vendor_not_faster")
        assert isinstance(found, Unknown)
        assert "policy.no_vendor" in found.settled_by


def test_a_product_has_a_vendors_kernel_whatever_the_policy_says() -> None:
    without = msgspec.structs.replace(GO.confirmation, vendors=())
    shapes = {"a": ("m", "k"), "b": ("k", "n"), "c": ("m", "n")}
    arguments = tuple(
        Array(name=name, role="output" if name == "c" else "input", dtype="float32", shape=shape)
        for name, shape in shapes.items()
    )
    contract = msgspec.structs.replace(GO.lock.contract, arguments=arguments, torch="a @ b")
    lock = msgspec.structs.replace(GO.lock, contract=contract)
    found = rule(
        decide(grounds(confirmation=without, lock=lock, terms=policy(no_vendor=NO_VENDOR))), "vendor_not_faster"
    )
    assert isinstance(found, Unknown)
    assert "policy.no_vendor" not in found.settled_by
    slower = msgspec.structs.replace(
        GO.confirmation, vendors=(VendorSpeed(name="cublas", speedup=interval(0.9, 0.01)),)
    )
    measured = decide(grounds(confirmation=slower, terms=policy(no_vendor=NO_VENDOR)))
    assert measured.outcome == "NO-GO"


@pytest.mark.parametrize(
    ("author", "model"),
    [
        ("OpenAI", ""),
        (" Open-AI. ", ""),
        ("OPENAI's model", ""),
        ("ｏｐｅｎａｉ", ""),
        ("gpt-6.1-terra", ""),
        ("GPT 6.1 Terra (medium)", ""),
        ("ChatGPT", ""),
        ("GPT5", ""),
        ("Replay", ""),
        ("the search", ""),
        ("Claude", "anthropic/claude-sonnet-5"),
        ("Anthropic", "claude-sonnet-5"),
        ("Qwen3 coder", "Qwen/Qwen3-Coder-30B"),
        ("Alibaba", "qwen3"),
    ],
)
@pytest.mark.parametrize("proposer", ["openai", "replay"])
def test_an_oracle_by_the_model_under_any_of_its_names_is_not_independent(author, model, proposer) -> None:
    asked = msgspec.structs.replace(GO.lock.model, **({"name": model, "base_url": "http://localhost"} if model else {}))
    lock = msgspec.structs.replace(GO.lock, proposer=proposer, oracle_author=author, model=asked)
    decision = decide(grounds(lock=lock))
    assert decision.outcome == "INCONCLUSIVE"
    found = rule(decision, "independent_oracle")
    assert isinstance(found, Unknown)
    assert "the proposer wrote it" in found.seen


@pytest.mark.parametrize(
    "author", ["A. Engineer", "Gupta", "Claudia Replayson", "the authors of kerneltrial", "R. Search"]
)
def test_a_person_is_not_taken_for_a_model(author) -> None:
    lock = msgspec.structs.replace(GO.lock, proposer="openai", oracle_author=author)
    assert isinstance(rule(decide(grounds(lock=lock)), "independent_oracle"), Passed)


def test_a_model_that_was_not_asked_may_have_written_the_oracle() -> None:
    lock = msgspec.structs.replace(GO.lock, proposer="search", oracle_author="OpenAI Codex")
    assert isinstance(rule(decide(grounds(lock=lock)), "independent_oracle"), Passed)


def test_a_reference_that_was_a_copy_of_the_baseline_is_said_to_be_one() -> None:
    copied = SecondOpinion(by="nothing", agrees=False, detail=COPY_OF_BASELINE)
    decision = decide(grounds(qualification=msgspec.structs.replace(GO.qualification, second_opinion=copied)))
    assert rule(decision, "independent_oracle").seen.endswith(f"; {COPY_OF_BASELINE}")


def in_the_application(saved: Any, loose: bool = False, **changes: Any) -> RuleResult:
    trial_terms = policy(accept_derived=loose)
    ran_so = msgspec.structs.replace(GO.confirmation, end_to_end=saved)
    return rule(decide(grounds(confirmation=ran_so, terms=trial_terms, **changes)), "end_to_end_evidence")


def test_a_derived_saving_needs_counted_calls_and_must_be_too_small_to_be_seen() -> None:
    # a call of the mix saves about 5 us: 3 calls are far below the runs' noise of 0.2 ms, 100,000 calls far above
    unseen, few, many = (ran(interval(0.1, 0.2), 10, calls=calls) for calls in (0, 3, 100_000))
    assert isinstance(in_the_application(few, loose=True), Passed)
    assert "derived" in in_the_application(few, loose=True).seen
    assert isinstance(in_the_application(few), Unknown)
    assert isinstance(in_the_application(unseen, loose=True), Unknown)
    lost = in_the_application(many, loose=True)
    assert isinstance(lost, Unknown)
    assert "which these runs should have shown" in lost.seen


def test_an_application_that_does_not_run_with_the_winner_is_a_failure() -> None:
    found = in_the_application(EndToEndFailed(why="the application does not run with the winner: exit status 1"))
    assert isinstance(found, Failed)
    assert "exit status 1" in found.seen


def test_an_application_on_the_cpu_device_is_no_evidence_of_time() -> None:
    found = in_the_application(ran(interval(2.0, 0.1)), lock=msgspec.structs.replace(GO.lock, device=CPU))
    assert isinstance(found, Unknown)
    assert "interprets" in found.seen


def test_the_payback_follows_the_application_where_it_shows_a_saving_and_invocations_are_known() -> None:
    now = GO.terms.now
    workload = msgspec.structs.replace(now.workload, invocations_per_month=100_000_000)
    paid = decide(grounds(terms=terms(msgspec.structs.replace(now, workload=workload)))).payback
    assert paid.basis == "end_to_end"
    # 0.42 ms x 1e8 invocations = 42,000 s
    assert paid.gpu_hours_per_month.middle == Decimal("11.666667")
    assert decide(grounds()).payback.basis == "derived"


def drawn_by(clock: str, step_us: float, a_us: float, b_us: float) -> Confirmed:
    """Five processes of two kernels on which a clock with such steps reads the same every time."""
    a, b = (round(us / step_us) * step_us for us in (a_us, b_us))
    rows = {"a": (a,) * 30, "a2": (a,) * 30, "b": (b,) * 30, "b2": (b,) * 30, "cublas": (b,) * 30}
    samples = Samples(
        clock=clock, resolution_us=step_us, calls_per_sample=1, warm_us=rows, cold_us=rows, outputs=(),
        device_state={}, discarded=0,
    )  # fmt: skip
    both = (SQUARE, WIDE)
    found = figures(dict.fromkeys(both, [samples] * 5), dict.fromkeys(both, ["0" * 64] * 5), Protocol(), {})
    assert found.geometric_mean.low == pytest.approx(found.geometric_mean.high, rel=1e-12)
    winner = GO.confirmation.outcome.winner
    return Confirmed(
        winner=winner, cases=found.cases, geometric_mean=found.geometric_mean, looked=found.looked, valid=True,
        findings=(),
    )  # fmt: skip


def read_by(clock: str, step_us: float, a_us: float, b_us: float, name: str) -> RuleResult:
    outcome = drawn_by(clock, step_us, a_us, b_us)
    return rule(decide(grounds(confirmation=msgspec.structs.replace(GO.confirmation, outcome=outcome))), name)


def test_a_clock_whose_steps_make_up_a_speedup_shows_none() -> None:
    """2.26 and 2.24 us are read as 2.5 and 2.0 in all processes: 1.25 times as fast, with an interval of no width."""
    for name in ("confirmed_speedup", "no_case_worse"):
        found = read_by("events", 0.5, 2.26, 2.24 if name == "confirmed_speedup" else 2.3, name)
        assert isinstance(found, Unknown)
        assert "the clock reads in steps that can hide" in found.seen
        assert "protocol.clock: auto" in found.settled_by
    # nor does it show that there is none, as 2.24 and 2.0 are both read as 2.0, or a loss
    assert isinstance(read_by("events", 0.5, 2.24, 2.0, "confirmed_speedup"), Unknown)
    assert not isinstance(read_by("events", 0.5, 2.24, 2.26, "no_case_worse"), Failed)


@pytest.mark.parametrize(("clock", "step_us"), [("events", 0.5), ("graph", 0.01), ("cupti", 0.032)])
def test_steps_that_are_small_beside_a_speedup_hide_nothing(clock: str, step_us: float) -> None:
    scale = 20 * step_us if clock == "events" else 1
    for name in ("confirmed_speedup", "no_case_worse"):
        assert isinstance(read_by(clock, step_us, 3 * scale, 2 * scale, name), Passed)
        assert isinstance(read_by(clock, step_us, 2 * scale, 3 * scale, name), Failed)


@pytest.mark.parametrize(("speedup", "fine", "coarse"), [(1.05, Passed, Unknown), (0.95, Failed, Unknown)])
def test_a_vendor_is_not_told_apart_by_steps(speedup: float, fine: type, coarse: type) -> None:
    for step_us, expected in ((0.01, fine), (0.5, coarse)):
        drawn = drawn_by("events", 0.5, 5.0, 3.0)
        cases = tuple(msgspec.structs.replace(case, resolution_us=step_us) for case in drawn.cases)
        outcome = msgspec.structs.replace(drawn, cases=cases)
        vendors = (VendorSpeed(name="cublas", speedup=interval(speedup, 0.01)),)
        confirmation = msgspec.structs.replace(GO.confirmation, outcome=outcome, vendors=vendors)
        assert isinstance(rule(decide(grounds(confirmation=confirmation)), "vendor_not_faster"), expected)


def paid_with(**of: Any) -> Any:
    ran_so = msgspec.structs.replace(GO.confirmation, end_to_end=ran(interval(0.42, 0.02), **of))
    return decide(grounds(confirmation=ran_so))


def test_a_saving_that_the_application_does_not_have_pays_nothing_back() -> None:
    """100,000 calls should save half a second an invocation, and it saves 0.42 ms: it was GO on the half second."""
    believed = paid_with(calls=0.0)
    assert (believed.outcome, believed.payback.basis) == ("GO", "derived")
    decision = paid_with(calls=100_000.0)
    assert decision.outcome == "NO-GO"
    found = rule(decision, "payback_within_horizon")
    assert isinstance(found, Failed)
    paid = decision.payback
    assert paid.basis == "end_to_end"
    calls = sum(GO.terms.now.workload.calls_per_month.values())
    by_hand = Decimal("0.42") * calls / 100_000 / 3_600_000
    assert abs(paid.gpu_hours_per_month.middle - by_hand) <= Decimal("0.000001")
    assert paid.months_middle > 100 * believed.payback.months_middle
    alone = paid.pilot_usd / (12 * paid.saved_usd_per_month.middle)
    assert abs(paid.break_even_calls_per_month / (Decimal(calls) / 100_000 * alone) - 1) < Decimal("0.01")


def test_an_application_that_saves_as_much_as_its_calls_or_more_changes_nothing() -> None:
    for calls in (1.0, 10.0, 70.0):  # a call of the mix saves about 5 us, so 70 save 0.35 ms
        assert paid_with(calls=calls).payback == paid_with(calls=0.0).payback


def test_why_no_vendor_was_timed_is_said() -> None:
    absent = (Finding(reason=Reason.NOT_MEASURED, detail="cublas: its bindings are not installed"),)
    without = msgspec.structs.replace(GO.confirmation, vendors=(), vendors_absent=absent)
    found = rule(decide(grounds(confirmation=without)), "vendor_not_faster")
    assert isinstance(found, Unknown)
    assert "its bindings are not installed" in found.seen
