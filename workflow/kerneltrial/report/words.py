"""What the report calls things, and how text that was not written here is made harmless to look at."""

import unicodedata
from collections.abc import Sequence

from kerneltrial.decide.standing import Fate
from kerneltrial.records.decision import Outcome, RuleName, RuleResult, Stop
from kerneltrial.records.reason import Reason

MEANING: dict[Outcome, str] = {
    "GO": "Take the candidate into a controlled integration test. GO authorises that test, no more.",
    "NO-GO": "Keep the baseline. At least one rule of the locked protocol failed.",
    "INCONCLUSIVE": "Keep the baseline for now. No rule failed, but the evidence does not answer all of them.",
}

FATES: dict[Fate, str] = {
    Fate.UNUSABLE: "no candidate",
    Fate.DUPLICATE: "duplicate",
    Fate.TRIED: "only tried",
    Fate.NOT_BUILT: "not built",
    Fate.INVALID: "wrong",
    Fate.UNCHECKED: "unchecked",
    Fate.HOLDOUT_FAILED: "failed on the holdout",
    Fate.HOLDOUT_UNCHECKED: "holdout unchecked",
    Fate.UNTIMED: "not measured",
    Fate.HELD: "held",
}

RULES: dict[RuleName, str] = {
    "correct_on_public_cases": "Right on the public cases",
    "held_on_holdout": "Right on the sealed cases",
    "confirmed_speedup": "Faster, confirmed in fresh processes",
    "no_case_worse": "No case made worse",
    "positive_saving": "Saves time over the whole workload",
    "measured_on_gpu": "Measured on a GPU",
    "vendor_not_faster": "No vendor library is faster",
    "independent_oracle": "Judged by an independent oracle",
    "end_to_end_evidence": "Seen in the application",
    "payback_within_horizon": "Pays for itself in time",
    "reviewer_receipt": "Seen by a reviewer",
    "own_terms": "Decided on your own figures",
    "prize": "Worth trying for",
}

# What a reader asks, and the rules that answer it.
QUESTIONS: tuple[tuple[str, tuple[RuleName, ...]], ...] = (
    ("Is it right?", ("correct_on_public_cases", "held_on_holdout", "independent_oracle")),
    ("Is it faster?", ("measured_on_gpu", "confirmed_speedup", "no_case_worse", "vendor_not_faster")),
    (
        "Does it pay?",
        ("prize", "positive_saving", "end_to_end_evidence", "payback_within_horizon", "own_terms"),
    ),
    ("Did someone else look?", ("reviewer_receipt",)),
)

GLOSSARY = {
    "baseline": "the kernel that runs today and must be beaten",
    "candidate": "a kernel that was proposed in its place",
    "attempt": "one slot used: a candidate, a duplicate, or a reply that could not be used",
    "case": "shapes and values of one call; a public case could be seen by whoever proposed",
    "sealed case": "a case drawn in secret after the candidate was fixed; a candidate that is right there has held",
    "oracle": "the trusted right answer, in double precision; it is compared with and never timed",
    "speedup": "the baseline's time over the candidate's: above 1 is faster, 1.25× takes a fifth less time",
    "count ratio": "the baseline's weighted count of instructions and memory accesses over the candidate's: it ranks "
    "candidates and is no time",
    "geometric mean": "the mean of ratios: 2× and 0.5× cancel out",
    "confidence": "were everything measured again many times, so many of the intervals would hold the true figure",
    "card's limit": "the least time that the card's own speed of memory and arithmetic allows for this case",
    "the pilot": "this trial itself, with the people's hours that it takes",
    "payback": "months until what is saved has paid for the pilot",
    "post hoc": "changed after the lock, so not fixed before the results were known",
}

TIMED_WORDS, COUNTED_WORDS = ("speedup", "confidence", "card's limit"), ("count ratio",)


def glossary(clocked: bool) -> dict[str, str]:
    """The words that a page uses: of times, or of counts."""
    other = COUNTED_WORDS if clocked else TIMED_WORDS
    return {word: meaning for word, meaning in GLOSSARY.items() if word not in other}


STOPS: dict[Stop, str] = {
    "iterations": "all iterations that the terms ask for were made",
    "space_exhausted": "the proposer had nothing left to propose",
    "prize": "no kernel could save enough to pay for the trial, so none was asked for",
    "budget": "the budget of the model was too small for another answer",
    "beats_compiler": "the best was 5 % faster than the compiler's kernel, so no more was asked for",
}

SWINGS = {
    "saving": "Measured saving",
    "calls": "Calls a month",
    "price": "Price of a GPU hour",
    "hours": "People's hours",
}

_REASONS: dict[Reason, str] = {
    Reason.WRONG_VALUES: "wrong values",
    Reason.WRONG_NONFINITE: "NaN or infinity in the wrong place",
    Reason.OUTPUT_NOT_WRITTEN: "part of the output was not written",
    Reason.GUARD_OVERWRITTEN: "wrote outside a buffer",
    Reason.INPUT_CHANGED: "changed its input",
    Reason.PRECISION_LOSS: "far less precise than the baseline",
    Reason.HANG: "hung until the watchdog ended it",
    Reason.SOURCE_REFUSED: "source refused",
    Reason.INCLUDE_REFUSED: "asks for a file that it may not include",
    Reason.DOES_NOT_COMPILE: "does not compile",
    Reason.COMPILER_DIED: "the compiler died, which is not the candidate's fault",
    Reason.DEVICE_LOST: "the device was lost, which is not the candidate's fault",
    Reason.OUT_OF_MEMORY: "out of memory, which is not the candidate's fault",
    Reason.RUNNER_DIED: "the runner died, which is not the candidate's fault",
    Reason.UNSUPPORTED_INSTRUCTION: "uses an instruction that this device does not know",
    Reason.UNSUPPORTED_FEATURE: "uses a feature that this device does not have",
    Reason.CHECK_ABSENT: "a check is not there on this device",
    Reason.NEEDS_REVIEW: "does something that a person must look at first",
    Reason.SPACE_EXHAUSTED: "nothing left to propose",
    Reason.UNUSABLE_REPLY: "the reply could not be used",
    Reason.HOLDOUT_FAILED: "wrong on a sealed case",
}


def reason(code: Reason) -> str:
    """A reason code in words."""
    return _REASONS.get(code, code.value.replace("_", " "))


def opened(text: str) -> str:
    """A record's words with a capital letter in front; a name in front keeps its letters.

    >>> opened("wrong values"), opened("workload.example is true")
    ('Wrong values', 'workload.example is true')
    """
    first = text.split(maxsplit=1)[0] if text.strip() else ""
    return text[0].upper() + text[1:] if first.strip(",;:").isalpha() else text


def sentence(text: str) -> str:
    """A record's words as a whole sentence; a name in front keeps its letters.

    >>> sentence("no vendor library was timed"), sentence("workload.example is true"), sentence("0.9×, counted.")
    ('No vendor library was timed.', 'workload.example is true.', '0.9×, counted.')
    """
    whole = opened(text)
    return whole if whole.endswith((".", "!", "?", "…")) or not whole else f"{whole}."


def by_weight(rules: Sequence[RuleResult]) -> list[RuleResult]:
    """Failed rules first, then unknown ones, then passed, each in the protocol's order."""
    order = {"Failed": 0, "Unknown": 1, "Passed": 2}
    return sorted(rules, key=lambda rule: order[type(rule).__name__])


def listed(parts: Sequence[str]) -> str:
    """Parts of a sentence one after another.

    >>> listed(["one"]), listed(["one", "two", "three"])
    ('one', 'one, two and three')
    """
    *first, last = parts
    return f"{', '.join(first)} and {last}" if first else last


def short(digest: str) -> str:
    """The start of a candidate's id, enough to tell candidates apart in a table."""
    return digest[:10]


def visible(text: str) -> str:
    r"""Text in which nothing is hidden: control, direction and unassigned characters are shown as escapes.

    >>> visible("a\u202eb\x1b[0m\tc\n")
    'a\\u202eb\\u001b[0m\tc\n'
    """
    return "".join(_shown(character) for character in text)


def _shown(character: str) -> str:
    if character in "\n\t" or unicodedata.category(character) not in _HIDDEN:
        return character
    return f"\\u{ord(character):04x}"


_HIDDEN = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})
