"""How drafts become a proposal: ids, duplicates, order, stored sources."""

from pathlib import Path

import msgspec
import pytest

from kerneltrial.propose.history import History, Measured, NoResources, Tried
from kerneltrial.propose.proposer import Draft, assemble, candidate_of
from kerneltrial.records.plan import Launch, LaunchPlan, Variant
from kerneltrial.records.proposal import Duplicate, Origin, Proposed, Unusable
from kerneltrial.records.reason import Reason
from kerneltrial.store.canonical import canonical, digest
from kerneltrial.store.objects import Objects

NONE = History(0, 0, ())


def _draft(source: bytes = b"void f();\n", grid: str = "n", hypothesis: str = "why") -> Draft:
    launch = Launch(entry="f", grid=(grid, "1", "1"), block=("32", "1", "1"), args=("x", "n"))
    return Draft(
        language="cuda_cpp",
        source=source,
        plan=LaunchPlan(variants=(Variant(launches=(launch,)),)),
        origin=Origin(hypothesis=hypothesis, pattern="none", parents=(), parameters={}),
    )


def test_the_id_is_the_digest_of_language_source_and_plan(tmp_path: Path) -> None:
    draft = _draft()
    candidate = assemble("files", [draft], NONE, Objects(tmp_path)).candidates[0]
    identity = {"language": "cuda_cpp", "source": digest(draft.source), "plan": msgspec.to_builtins(draft.plan)}
    assert candidate.id == digest(canonical(identity))


def test_the_hypothesis_is_no_part_of_the_identity() -> None:
    assert candidate_of(_draft(hypothesis="one")).id == candidate_of(_draft(hypothesis="two")).id


def test_another_plan_or_source_is_another_candidate() -> None:
    ids = {candidate_of(d).id for d in (_draft(), _draft(grid="n + 1"), _draft(source=b"void g();\n"))}
    assert len(ids) == 3


def test_sources_are_stored_under_their_digest(tmp_path: Path) -> None:
    objects = Objects(tmp_path)
    candidate = assemble("files", [_draft()], NONE, objects).candidates[0]
    assert objects.get(candidate.source) == b"void f();\n"


def test_attempts_keep_the_order_and_duplicates_within_one_proposal_are_marked(tmp_path: Path) -> None:
    unusable = Unusable(reason=Reason.BAD_PLAN, detail="no")
    drafts = [_draft(), unusable, _draft(hypothesis="again"), _draft(grid="2")]
    attempts = assemble("files", drafts, NONE, Objects(tmp_path)).attempts
    assert [type(a) for a in attempts] == [Proposed, Unusable, Duplicate, Proposed]
    duplicate = attempts[2]
    assert isinstance(duplicate, Duplicate)
    assert duplicate.duplicate_of == candidate_of(_draft()).id
    assert duplicate.origin.hypothesis == "again"


def test_a_candidate_of_an_earlier_iteration_is_a_duplicate(tmp_path: Path) -> None:
    draft = _draft()
    earlier = Tried(
        iteration=1,
        candidate=candidate_of(draft).id,
        origin=draft.origin,
        resources=NoResources(),
        fate=Measured(ratio=1.5),
    )
    proposal = assemble("files", [draft], History(1, 1, (earlier,)), Objects(tmp_path))
    assert isinstance(proposal.attempts[0], Duplicate)
    assert proposal.candidates == ()


@pytest.mark.parametrize(
    ("source", "says"),
    [
        (b"a\0b", "NUL byte at offset 1"),
        (b"\xff\xfe", "not UTF-8"),
        (b"x" * 1_000_001, "at most 1000000"),
    ],
    ids=["nul", "utf8", "large"],
)
def test_a_source_that_no_compiler_should_see_is_unusable_and_not_stored(
    tmp_path: Path, source: bytes, says: str
) -> None:
    objects = Objects(tmp_path)
    attempt = assemble("files", [_draft(source=source)], NONE, objects).attempts[0]
    assert isinstance(attempt, Unusable)
    assert attempt.reason is Reason.SOURCE_REFUSED
    assert says in attempt.detail
    assert objects.names() == []
