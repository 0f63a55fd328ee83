"""Rules about being right: on the public cases, on the sealed ones, against an oracle that can be believed."""

from kerneltrial.decide.amounts import plural
from kerneltrial.decide.authors import by_proposer
from kerneltrial.decide.grounds import Grounds
from kerneltrial.decide.standing import Fate, Standing
from kerneltrial.records.confirmation import Confirmed, NotTimed
from kerneltrial.records.decision import Failed, Passed, RuleName, RuleResult, Unknown, Winner
from kerneltrial.records.qualification import COPY_OF_BASELINE
from kerneltrial.records.reason import Reason, ReasonClass
from kerneltrial.records.validation import Validated

_CHECKED = "judge the candidates again on a device that can check them"
_REVIEWED = (
    "a person reads the winner for what no check could look at (instructions of one architecture and ways that only "
    "large shapes take are honest reasons, an odd instruction or condition that the kernel does not need is none) and "
    "says so by policy.accept_unseen"
)
_USABLE = "a proposer that gives a candidate; the records proposal.json say what was wrong with each reply"
_PLACEHOLDER = "put your name here"  # the author in the starter's config


def correct_on_public_cases(grounds: Grounds) -> RuleResult:
    """One candidate is right on every draw of every public case, and the winner is so again when confirmed."""
    rule: RuleName = "correct_on_public_cases"
    asked = "every element right on every draw of every public case, and again at the confirmation"
    outcome = grounds.confirmation.outcome
    if isinstance(outcome, Confirmed | NotTimed) and not outcome.valid:
        seen = "the winner was right in the search and wrong at the confirmation: " + _in_words(outcome)
        doubtful = all(finding.reason.reason_class is not ReasonClass.CANDIDATE for finding in outcome.findings)
        if outcome.findings and doubtful:
            return Unknown(rule=rule, asked=asked, seen=seen, example=False, settled_by="run the confirmation again")
        return Failed(rule=rule, asked=asked, seen=seen, example=False)
    if isinstance(grounds.winner, Winner):
        seen = f"the winner is right on {_looked_at(grounds, grounds.winner)}, and was right again at the confirmation"
        unseen = [one.detail for one in grounds.confirmation.unchecked if one.reason is Reason.NEEDS_REVIEW]
        if unseen and grounds.terms.now.policy.accept_unseen is not True:
            seen = f"{seen}, but {unseen[0]}"
            return Unknown(rule=rule, asked=asked, seen=seen, example=False, settled_by=_REVIEWED)
        return Passed(rule=rule, asked=asked, seen=seen, example=False)
    return _without_winner(grounds, rule, asked)


def _without_winner(grounds: Grounds, rule: RuleName, asked: str) -> RuleResult:
    candidates = grounds.candidates
    valid = sum(standing.valid for standing in candidates)
    if valid:
        seen = f"{valid} of {plural(len(candidates), 'candidate')} right on every public case"
        return Passed(rule=rule, asked=asked, seen=seen, example=False)
    doubtful = sum(standing.in_doubt for standing in candidates)
    if doubtful:
        seen = f"{doubtful} of {plural(len(candidates), 'candidate')} could not be checked here, and none was right"
        return Unknown(rule=rule, asked=asked, seen=seen, example=False, settled_by=_CHECKED)
    if grounds.stop == "prize":
        settled = "a trial whose prize is worth trying for"
        return Unknown(rule=rule, asked=asked, seen="no candidate was asked for", example=False, settled_by=settled)
    if not candidates:
        return Unknown(rule=rule, asked=asked, seen=_nothing_judged(grounds), example=False, settled_by=_USABLE)
    seen = f"none of {plural(len(candidates), 'candidate')} was right"
    return Failed(rule=rule, asked=asked, seen=seen, example=False)


def _nothing_judged(grounds: Grounds) -> str:
    """Why there was no candidate: it says something of the proposer, and nothing of any kernel."""
    unusable = [s for s in grounds.standings if s.reason is Reason.UNUSABLE_REPLY]
    if not unusable:
        return "no candidate was proposed, so nothing was judged"
    replies = "the reply" if len(unusable) == 1 else f"all {len(unusable)} replies"
    return f"nothing was judged: {replies} of the proposer could not be used; the last one: {unusable[-1].detail}"


def held_on_holdout(grounds: Grounds) -> RuleResult:
    """The winner was right on the sealed cases too."""
    rule: RuleName = "held_on_holdout"
    sealed = plural(grounds.lock.holdout_count, "sealed case")
    which = "drawn shapes, far ones, and the performance cases on sealed values"
    asked = f"right on {sealed} that no proposer saw ({which})"
    if isinstance(grounds.winner, Winner):
        return Passed(rule=rule, asked=asked, seen=f"the winner was right on {sealed}", example=False)
    reached = [standing for standing in grounds.candidates if standing.valid]
    if any(standing.held for standing in reached):
        seen = f"{sum(standing.held for standing in reached)} of {plural(len(reached), 'candidate')} held"
        return Passed(rule=rule, asked=asked, seen=seen, example=False)
    if not reached:
        settled = "a candidate that is right on the public cases"
        return Unknown(rule=rule, asked=asked, seen="no candidate got so far", example=False, settled_by=settled)
    failed = _count(reached, Fate.HOLDOUT_FAILED)
    if failed == len(reached):
        seen = f"all of {plural(failed, 'candidate')} that got so far were wrong on a sealed case"
        return Failed(rule=rule, asked=asked, seen=seen, example=False)
    seen = f"{failed} of {plural(len(reached), 'candidate')} failed, the others could not be checked"
    return Unknown(rule=rule, asked=asked, seen=seen, example=False, settled_by=_CHECKED)


def independent_oracle(grounds: Grounds) -> RuleResult:
    """The oracle was written by someone other than the proposer, and something else agrees with it."""
    rule: RuleName = "independent_oracle"
    asked = "an oracle that the proposer did not write, and a second opinion that agrees with it"
    author = grounds.lock.oracle_author.strip()
    opinion = grounds.qualification.second_opinion
    whose = by_proposer(author, grounds.lock)
    if whose or grounds.lock.asked.get("oracle_by_proposer") is True:
        settled = "an oracle that someone else wrote, under the name of that person, in a new trial"
        seen = f"the proposer wrote it ({author}: {whose})" if whose else "the proposer wrote it"
        return Unknown(rule=rule, asked=asked, seen=seen, example=False, settled_by=settled)
    nobody = opinion.by.strip().lower() in ("", "none", "nothing")
    if not nobody and not opinion.agrees:
        seen = f"{opinion.by} disagrees with the oracle: {opinion.detail}"
        return Failed(rule=rule, asked=asked, seen=seen, example=False)
    if not author or " ".join(author.casefold().split()) == _PLACEHOLDER:
        settled = "name the oracle's author in the config and lock a new trial"
        return Unknown(rule=rule, asked=asked, seen="nobody is named as author", example=False, settled_by=settled)
    if nobody:
        seen = f"written by {author}; nothing else was asked"
        if opinion.detail == COPY_OF_BASELINE:
            seen = f"written by {author}; the reference kernel is the baseline's own code, which is no second opinion"
        settled = "a plain reference kernel beside the oracle, in a new trial"
        return Unknown(rule=rule, asked=asked, seen=seen, example=False, settled_by=settled)
    return Passed(rule=rule, asked=asked, seen=f"written by {author}; {opinion.by} agrees", example=False)


def _in_words(outcome: Confirmed | NotTimed) -> str:
    first = outcome.findings[0] if outcome.findings else None
    return f"{first.reason.value.replace('_', ' ')}, {first.detail}" if first else "no finding was recorded"


def _count(candidates: list[Standing], fate: Fate) -> int:
    return sum(standing.fate is fate for standing in candidates)


def _looked_at(grounds: Grounds, winner: Winner) -> str:
    entries = (entry for iteration in grounds.iterations for entry in iteration.validation.candidates)
    valid = next(entry for entry in entries if isinstance(entry, Validated) and entry.candidate == winner.candidate)
    draws = sum(case.draws for case in valid.cases)
    return f"{plural(len(valid.cases), 'public case')} ({plural(draws, 'draw')})"
