"""The decision's rules as a person asks for them: question by question, and what would settle those that are open."""

from typing import Any

from kerneltrial.records.decision import RuleResult, Unknown
from kerneltrial.report import words
from kerneltrial.report.inputs import ReportInputs
from kerneltrial.report.texts import Say, recorded, sentence_in


def rules(inputs: ReportInputs, say: Say) -> list[dict[str, Any]]:
    """Every rule in words, the weightiest first."""
    told, whole = recorded(inputs.language), sentence_in(inputs.language)
    return [
        {
            "title": say(words.RULES[rule.rule]),
            "name": rule.rule,
            "result": _result(rule),
            "asked": told(rule.asked),
            "seen": whole(rule.seen),
            "example": rule.example,
            "settled_by": told(rule.settled_by) if isinstance(rule, Unknown) else "",
        }
        for rule in words.by_weight(inputs.decision.rules)
    ]


def questions(inputs: ReportInputs, say: Say) -> list[dict[str, Any]]:
    """The four questions, each with its rules and what these come to; a rule that has no question is under the last."""
    listed = rules(inputs, say)
    named = {name for _, names in words.QUESTIONS for name in names}
    found = []
    for title, names in words.QUESTIONS:
        last = title == words.QUESTIONS[-1][0]
        own = [rule for rule in listed if rule["name"] in names or (last and rule["name"] not in named)]
        result = own[0]["result"] if own else "passed"
        met = sum(rule["result"] == "passed" for rule in own)
        told = say("%(met)s of %(all)s", met=met, all=len(own))
        found.append({"title": say(title), "result": result, "told": told, "rules": own})
    return found


def next_steps(inputs: ReportInputs, say: Say) -> list[dict[str, Any]]:
    """What would settle the unknown rules, each step once, the one that settles most first."""
    steps: dict[str, list[str]] = {}
    for rule in inputs.decision.rules:
        if isinstance(rule, Unknown):
            title = say(words.RULES[rule.rule])
            steps.setdefault(rule.settled_by, []).append(title[0].lower() + title[1:])
    told = recorded(inputs.language)
    listed = [{"step": told(step), "rules": rules} for step, rules in steps.items()]
    return sorted(listed, key=lambda step: -len(step["rules"]))


def _result(rule: RuleResult) -> str:
    return type(rule).__name__.lower()
