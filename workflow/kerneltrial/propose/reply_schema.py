"""The form of a proposal that a model or a program returns, and the way from its JSON to a draft.

The schema keeps to what servers enforce in strict mode: every object closed, every field required, no patterns. What it
cannot say is checked here by the record types.
"""

from collections.abc import Sequence
from typing import Any, get_args

import msgspec

from kerneltrial.inputs.documents import explained, with_text_expressions
from kerneltrial.propose.proposer import Draft
from kerneltrial.records.candidate import Language, Pattern
from kerneltrial.records.plan import DType, LaunchPlan
from kerneltrial.records.proposal import Origin, Unusable
from kerneltrial.records.reason import Reason
from kerneltrial.records.record import Digest, Record

NAME = "kernel_proposal"
MAXIMUM_HYPOTHESIS = 2_000


class ProposalReply(Record):
    """What a reply holds."""

    language: Language
    hypothesis: str
    pattern: Pattern
    source: str
    plan: LaunchPlan


def reply_schema(languages: Sequence[str]) -> dict[str, Any]:
    """The JSON Schema of a reply in one of `languages`."""
    return _closed(
        language={"type": "string", "enum": list(languages)},
        hypothesis=_TEXT,
        pattern={"type": "string", "enum": list(get_args(Pattern))},
        source=_TEXT,
        plan=_closed(scratch=_list(_SCRATCH), variants=_list(_VARIANT)),
    )


def draft_of(document: Any, languages: Sequence[str], parents: Sequence[Digest] = ()) -> Draft | Unusable:
    """Return the draft in JSON types `document`, or what is wrong with them as UNUSABLE_REPLY."""
    if not isinstance(document, dict):
        return _unusable("it is no JSON object")
    try:
        document = with_text_expressions(document)
        reply = msgspec.convert(document, ProposalReply)
    except msgspec.ValidationError as fault:
        return _unusable(f"the JSON is not of the form that was asked for: {explained(fault, document, ProposalReply)}")
    except RecursionError:
        return _unusable("the JSON is not of the form that was asked for: it lies too deep")
    if reply.language not in languages:
        return _unusable(f"the language {reply.language} was not asked for; allowed: {', '.join(languages)}")
    if not reply.source.strip():
        return _unusable("the source is empty")
    origin = Origin(
        hypothesis=reply.hypothesis[:MAXIMUM_HYPOTHESIS], pattern=reply.pattern, parents=tuple(parents), parameters={}
    )
    return Draft(language=reply.language, source=reply.source.encode(), plan=reply.plan, origin=origin)


def _unusable(detail: str) -> Unusable:
    return Unusable(reason=Reason.UNUSABLE_REPLY, detail=detail[:1000])


def _closed(**properties: Any) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


def _list(items: Any) -> dict[str, Any]:
    return {"type": "array", "items": items}


_TEXT: dict[str, Any] = {"type": "string"}
_SCRATCH = _closed(
    name=_TEXT,
    dtype={"type": "string", "enum": list(get_args(DType))},
    elements=_TEXT,
    initial={"type": "string", "enum": ["uninitialised", "zeroed", "self_restoring"]},
)
_LAUNCH = _closed(
    entry=_TEXT,
    grid=_list(_TEXT),
    block=_list(_TEXT),
    args=_list(_TEXT),
    cluster=_list(_TEXT),
    cooperative={"type": "boolean"},
    shared_bytes=_TEXT,
)
_VARIANT = _closed(when=_TEXT, launches=_list(_LAUNCH))
