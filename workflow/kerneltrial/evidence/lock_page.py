"""The one page that the lock prints: what a reviewer reads in five minutes and signs before the first proposal.

It is a pure function of the lock and of one version of the terms, so that anyone who has both can make it again and see
that exactly these bytes were signed. So its words and figures are made here alone: what another module says otherwise
tomorrow must not change a page that was signed today. A page that changes gets a new form, and the old one stays.
"""

import textwrap
from collections.abc import Callable, Iterator, Mapping, Sequence
from decimal import Decimal
from typing import Any, Final, Literal, cast

from kerneltrial.evidence import lock_page_earlier as earlier
from kerneltrial.evidence.signatures import RECEIPT
from kerneltrial.records.contract import Array, Tolerance
from kerneltrial.records.lock import Lock
from kerneltrial.records.terms import Agreed, Alternative
from kerneltrial.store.canonical import builtins, canonical, digest
from kerneltrial.store.printed import printed

Form = Literal[1, 2, 3]
FORMS: Final[tuple[Form, ...]] = (3, 2, 1)
_WIDTH = 100
_LABEL = 17
_ASK = (
    "Are the cases the shapes that production calls, with the values that occur there?",
    "Did someone other than the proposer write the oracle, and would you trust it?",
    "Are the thresholds of 3 and 4 those that you would want, whatever comes out?",
    "Are calls, hours and prices the team's own? Is anything waived, and do you agree?",
)


def lock_page(lock: Lock, agreed: Agreed, form: Form = 3) -> bytes:
    """The page as UTF-8 text, in the form of today or of an earlier page that somebody may have signed."""
    if form != 3:
        return earlier.earlier_page(lock, agreed, form)
    return ("\n".join(_lines(lock, agreed)) + "\n").encode()


def lock_pages(lock: Lock, agreed: Agreed) -> tuple[bytes, ...]:
    """The page in every form that there was, today's first."""
    return tuple(lock_page(lock, agreed, form) for form in FORMS)


def _lines(lock: Lock, agreed: Agreed) -> Iterator[str]:
    yield f"kerneltrial lock page 3: trial {lock.trial}"
    yield ""
    yield from textwrap.wrap(
        "Whoever signs this page says: I saw it before the first kernel was proposed, I was not part of the trial, and "
        "this is how it will be judged. Sections 1 to 4 are to be read; what follows them is for looking up.",
        _WIDTH,
    )
    sections: tuple[tuple[str, Callable[[Lock, Agreed], Iterator[str]]], ...] = (
        ("1. WHAT IS ASKED", _asked),
        ("2. WHEN IS A KERNEL RIGHT", _right),
        ("3. WHEN IS IT FASTER", _faster),
        ("4. DOES IT PAY", _pays),
        ("BEFORE YOU SIGN", _before),
        ("TO SIGN", _sign),
        ("EVERY LOCKED KEY, FOR LOOKING UP", _keys),
        ("FILES (SHA-256)", _files),
    )
    for title, section in sections:
        yield from ("", title)
        yield from section(lock, agreed)


def _asked(lock: Lock, agreed: Agreed) -> Iterator[str]:
    device = f"{lock.device.name} ({lock.device.kind}, compiled for {lock.device.arch})"
    yield from _field("question", f"should another kernel replace {lock.contract.name} on {device}?")
    yield from _field("kernel", " ".join(lock.contract.description.split()))
    yield from _field("proposed by", f"{lock.proposer}, in {', '.join(lock.languages)}, seed {lock.seed}")
    count = f"{agreed.iterations} iteration{'s' * (agreed.iterations != 1)} of {lock.candidates_per_iteration}"
    early = "; ends early once the best is faster than the compiler's kernel" if lock.stop == "beats_compiler" else ""
    yield from _field("attempts", f"{count}{early}")


def _right(lock: Lock, _agreed: Agreed) -> Iterator[str]:
    own = " (BY THE PROPOSER ITSELF: no GO is possible)" if lock.asked.get("oracle_by_proposer") else ""
    yield from _field("the answer", f"an oracle by {lock.oracle_author}{own}")
    for name, tolerance in sorted(lock.contract.tolerances.items()):
        yield from _field("exact to", f"{name}: {_exact(tolerance)}")
    order = [a.name for a in lock.contract.arguments if not isinstance(a, Array)]
    for case in lock.cases.cases:
        warm = f"; in the L2 when a call starts: {', '.join(case.warm)}" if case.warm else ""
        yield from _field(f"{case.kind[:11]} case", f"{case.name}: {_sizes(case.dimensions, order)}{warm}")
    protocol = lock.protocol
    yield from _field(
        "beside them",
        f"{protocol.boundary_shapes} boundary shapes; {protocol.draws_per_case} draws of values a case, "
        f"each run {protocol.repeats} times",
    )
    yield from _field(
        "sealed cases", f"{lock.holdout_count} a candidate, drawn once it is fixed; their salt is shown at the seal"
    )


def _exact(tolerance: Tolerance) -> str:
    """A tolerance in words; parts that are zero say nothing."""
    parts = [
        f"{tolerance.absolute} absolute" * bool(tolerance.absolute),
        f"{tolerance.relative} of the value" * bool(tolerance.relative),
        f"{tolerance.scaled} roundings (eps) of the sum of its terms" * bool(tolerance.scaled),
    ]
    found = " plus ".join(part for part in parts if part) or "every bit"
    signed = "; zeros with their sign" * tolerance.signed_zero
    return f"{found}; at most {tolerance.baseline_factor} times the baseline's own error{signed}"


def _sizes(sizes: Mapping[str, int], order: Sequence[str]) -> str:
    """Dimensions in the order in which a call names them, then the others."""
    names = [*(name for name in order if name in sizes), *sorted(set(sizes) - set(order))]
    return ", ".join(f"{name} {sizes[name]}" for name in names)


def _faster(lock: Lock, agreed: Agreed) -> Iterator[str]:
    policy, protocol = agreed.policy, lock.protocol
    looks = [protocol.confirmation_processes * 2**look for look in range(protocol.confirmation_looks)]
    yield from _field(
        "over all cases",
        f"by more than {_percent(policy.minimum_effect)}, at the lower end of a {_percent(protocol.confidence)} "
        f"interval of {' or '.join(map(str, looks))} fresh processes",
    )
    yield from _field("each case", f"not slower by more than {_percent(policy.worst_case_loss)}")
    waived = f"; waived: {', '.join(policy.waive_vendor)}" if policy.waive_vendor else ""
    none = f"none exists: {policy.no_vendor}" if policy.no_vendor else "none is faster"
    yield from _field("libraries", f"{none}{waived}")
    if policy.waive_floor:
        yield from _field("waived", f"the card's limit, for {', '.join(policy.waive_floor)}")
    if policy.accept_unseen is True:
        yield from _field("waived", "that the cpu device can look at the winner beside the card")
    instead = "" if policy.accept_derived else "not "
    yield from _field(
        "application", f"saves time with the new kernel; calls times latency may {instead}stand in for running it"
    )
    yield from _field("reviewer", "this page has to be signed" if policy.require_receipt else "NO SIGNATURE IS ASKED")


def _pays(_lock: Lock, agreed: Agreed) -> Iterator[str]:
    workload, prices, spread = agreed.workload, agreed.prices, agreed.workload.uncertainty
    if agreed.why_example:
        yield from _field("NOTE", f"EXAMPLE FIGURES ({agreed.why_example}): no GO is possible with these terms")
    yield from _field("pays back", f"within {agreed.policy.horizon_months} months")
    for case, calls in sorted(workload.calls_per_month.items()):
        yield from _field("calls a month", f"{calls:,} of {case}")
    known = f"{workload.invocations_per_month:,} a month" if workload.invocations_per_month else "not known"
    yield from _field("invocations", f"{known} (runs of the application)")
    hours = f"{workload.setup_hours} h to set up, {workload.review_hours} h to review"
    yield from _field(
        "people",
        f"{hours}, {workload.upkeep_hours_per_month} h a month of upkeep; {prices.engineer_hour_usd} dollars an hour",
    )
    yield from _field("GPU", f"{prices.gpu_hour_usd} dollars an hour")
    whose = [text for text in (prices.provider, prices.sku, prices.region, prices.source, prices.date) if text]
    yield from _field("prices", ", ".join(whose))
    if isinstance(prices.alternative, Alternative):
        offer = prices.alternative
        yield from _field("by hand instead", f"{offer.usd} dollars ({offer.source}, {offer.date})")
    yield from _field(
        "may be off by",
        f"calls {_percent(spread.calls)}, GPU price {_percent(spread.gpu_hour)}, hours {_percent(spread.hours)}",
    )


def _before(_lock: Lock, _agreed: Agreed) -> Iterator[str]:
    for question in _ASK:
        yield f"  [ ] {question}"


def _sign(lock: Lock, agreed: Agreed) -> Iterator[str]:
    yield "  keep exactly these bytes in a file and run"
    yield f"    ssh-keygen -Y sign -n {RECEIPT} -f YOUR_PRIVATE_KEY lock-page.txt"
    yield "  then hand back lock-page.txt.sig and keep this page. It stands for"
    yield from _field("lock", digest(canonical(lock)))
    yield from _field("terms", digest(canonical(agreed)))
    yield from _field("salt (SHA-256)", lock.holdout_commitment)


def _keys(lock: Lock, agreed: Agreed) -> Iterator[str]:
    """All of config, protocol and terms: what the sections above leave out, and again what they say."""
    asked = {key: value for key, value in lock.asked.items() if key != "protocol"}
    yield from _field("config", _said({key: value for key, value in asked.items() if not isinstance(value, dict)}))
    for key, value in sorted(asked.items()):
        if isinstance(value, dict):
            yield from _field(key, _said(value))
    protocol = cast(dict[str, Any], builtins(lock.protocol))
    yield from _field("protocol", _said({key: value for key, value in protocol.items() if key != "screening"}))
    yield from _field("screening", _said(protocol.get("screening", {})))
    yield from _field("tolerances", _said(builtins(lock.contract.tolerances)))
    yield from _field("sandbox", _said(lock.sandbox))
    yield from _field("policy", _said(builtins(agreed.policy)))
    yield from _field("workload", _said(builtins(agreed.workload)))
    yield from _field("prices", _said(builtins(agreed.prices)))


def _files(lock: Lock, _agreed: Agreed) -> Iterator[str]:
    for path, name in sorted(lock.files.items()):
        yield f"  {name}  {printed(path)}"


def _field(label: str, text: str) -> list[str]:
    start, indent = f"  {label:<{_LABEL}}", " " * (_LABEL + 2)
    lines = textwrap.wrap(text, _WIDTH, initial_indent=start, subsequent_indent=indent, break_on_hyphens=False)
    return [printed(line) for line in lines]  # whoever reads the page on a terminal sees what he signs


def _percent(share: Decimal) -> str:
    """A share as per cent: 0.025 is 2.5 %."""
    shown = format(share * 100, "f")
    return f"{shown.rstrip('0').rstrip('.') if '.' in shown else shown} %"


def _said(value: Any) -> str:
    """A value of JSON types on one line, as YAML people read it."""
    if isinstance(value, dict):
        return "; ".join(f"{key} {_inner(item)}" for key, item in sorted(value.items())) or "none"
    return _inner(value)


def _inner(value: Any) -> str:
    match value:
        case dict():
            return "{" + ", ".join(f"{key} {_inner(item)}" for key, item in sorted(value.items())) + "}"
        case "" | [] | ():
            return "none"
        case list() | tuple():
            return "[" + ", ".join(_inner(item) for item in value) + "]"
        case bool():
            return "yes" if value else "no"
        case _:
            return str(value)
