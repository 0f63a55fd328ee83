"""Receipts: who may sign, what was signed, and that it was there before the first proposal."""

import re
from datetime import UTC, datetime
from decimal import Decimal

import msgspec
import pytest
from trial_pieces import agreed, terms
from trial_stories import go_shaped

from kerneltrial.evidence.lock_page import lock_page
from kerneltrial.evidence.problem import EvidenceProblem
from kerneltrial.evidence.receipts import receipt_of, received
from kerneltrial.evidence.signatures import LOCK, RECEIPT, sign
from kerneltrial.records.contract import Tolerance
from kerneltrial.records.receipt import NoReceipt, Receipt
from kerneltrial.store import journal
from kerneltrial.store.canonical import canonical, digest
from kerneltrial.store.files import write_atomic
from kerneltrial.store.signed import Signed

LOCKED = go_shaped().lock
TERMS = terms(agreed(False))


def keep(results, receipt, signature):
    signed = Signed(results)
    write_atomic(signed.receipt_signature, signature)
    write_atomic(signed.receipt, canonical(receipt))
    event = {"stage": "propose", "iteration": 1, "receipt": signed.receipt_digest()}
    journal.append(results / "journal/propose-0001.jsonl", event)


@pytest.fixture
def kept(people, tmp_path):
    """A trial's folder with a receipt that counts."""
    signature = sign(lock_page(LOCKED, TERMS.now), people.reviewer, RECEIPT)
    receipt = received(LOCKED, TERMS, signature, people.usual, {"lock": "0" * 64})
    keep(tmp_path, receipt, signature)
    return tmp_path


def test_the_page_says_what_a_case_states_as_warm_and_is_as_ever_where_none_does():
    cases = tuple(
        msgspec.structs.replace(case, residency={"B": "warm", "A": "cold"}) if case.kind == "performance" else case
        for case in LOCKED.cases.cases
    )
    stated = msgspec.structs.replace(LOCKED, cases=msgspec.structs.replace(LOCKED.cases, cases=cases))
    timed = sum(case.kind == "performance" for case in cases)
    page = " ".join(lock_page(stated, TERMS.now).decode().split())  # long lines are wrapped
    assert page.count("; in the L2 when a call starts: B") == timed
    assert "in the L2" not in lock_page(LOCKED, TERMS.now).decode()


def test_the_page_says_what_a_reviewer_has_to_know():
    page = lock_page(LOCKED, TERMS.now).decode()
    for words in (digest(canonical(LOCKED)), digest(canonical(TERMS.now)), LOCKED.oracle_author, "horizon_months 12",
                  LOCKED.holdout_commitment, LOCKED.device.name, *LOCKED.files):  # fmt: skip
        assert words in page
    assert max(map(len, page.splitlines())) <= 130
    read, _ = page.split("EVERY LOCKED KEY")
    assert len(read.splitlines()) <= 60, "what is to be read is one page"
    for words in ("by more than 2 %", "not slower by more than 1 %", "within 12 months", " of square_256"):
        assert words in read
    assert lock_page(LOCKED, TERMS.now) == page.encode()
    assert "EXAMPLE FIGURES" in lock_page(LOCKED, agreed(True)).decode()


def test_the_page_prints_no_empty_value_and_counts_in_words() -> None:
    once = msgspec.structs.replace(TERMS.now, iterations=1)
    asked = {**LOCKED.asked, "model": {"base_url": "", "words": [], "name": "m"}}
    page = lock_page(msgspec.structs.replace(LOCKED, asked=asked), once).decode()
    assert "1 iteration of " in page
    assert "base_url none; name m; words none" in " ".join(page.split())
    assert "2 iterations of " in lock_page(LOCKED, msgspec.structs.replace(TERMS.now, iterations=2)).decode()
    assert not re.search(r"\w ([,;}]|$)|\[\]", page, re.MULTILINE)


def test_what_a_policy_waives_is_said_where_it_is_read():
    policy = msgspec.structs.replace(
        TERMS.now.policy, waive_vendor=("cublas",), waive_floor=("wide",), accept_unseen=True, require_receipt=False
    )
    read, _ = lock_page(LOCKED, msgspec.structs.replace(TERMS.now, policy=policy)).decode().split("BEFORE YOU SIGN")
    for words in ("waived: cublas", "the card's limit, for wide", "that the cpu device can look", "NO SIGNATURE IS"):
        assert words in read
        assert words not in lock_page(LOCKED, TERMS.now).decode()


def test_a_tolerance_is_said_in_words():
    exact = msgspec.structs.replace(LOCKED.contract, tolerances={"C": Tolerance(baseline_factor=Decimal(1))})
    page = lock_page(msgspec.structs.replace(LOCKED, contract=exact), TERMS.now).decode()
    assert "C: every bit; at most 1 times the baseline's own error" in page


@pytest.mark.parametrize("form", [1, 2])
def test_a_page_of_an_earlier_form_that_was_signed_still_counts(form, tmp_path, people):
    page = lock_page(LOCKED, TERMS.now, form=form)
    assert page.startswith(f"kerneltrial lock page {form}: ".encode())
    assert page != lock_page(LOCKED, TERMS.now)
    signature = sign(page, people.reviewer, RECEIPT)
    keep(tmp_path, received(LOCKED, TERMS, signature, people.usual, {"lock": "0" * 64}), signature)
    assert isinstance(receipt_of(tmp_path, LOCKED, TERMS, people.usual), Receipt)


def test_nothing_on_the_page_steers_the_terminal_of_who_reads_it():
    strange = msgspec.structs.replace(
        LOCKED, oracle_author="A\x1b[2Kme", files={**LOCKED.files, "a\nb\x1b[31m": "0" * 64}
    )
    page = lock_page(strange, TERMS.now).decode()
    assert "\x1b" not in page
    assert "A\\x1b[2Kme" in page
    assert f"  {'0' * 64}  a\\nb\\x1b[31m" in page.splitlines()


def test_a_receipt_in_time_counts(kept, people):
    receipt = receipt_of(kept, LOCKED, TERMS, people.usual)
    assert isinstance(receipt, Receipt)
    assert receipt.reviewer == "rita@example.org"
    assert receipt.lock == digest(canonical(LOCKED))


def test_once_proposals_are_there_none_is_taken(people):
    signature = sign(lock_page(LOCKED, TERMS.now), people.reviewer, RECEIPT)
    with pytest.raises(EvidenceProblem, match="proposals were made already"):
        received(LOCKED, TERMS, signature, people.usual, {"propose-0001": "0" * 64})


@pytest.mark.parametrize("who", ["team", "stranger"])
def test_another_key_is_refused(people, who):
    signature = sign(lock_page(LOCKED, TERMS.now), getattr(people, who), RECEIPT)
    with pytest.raises(EvidenceProblem, match="refused"):
        received(LOCKED, TERMS, signature, people.usual, {})


def test_another_page_is_refused(people):
    other = msgspec.structs.replace(LOCKED, seed=LOCKED.seed + 1)
    signature = sign(lock_page(other, TERMS.now), people.reviewer, RECEIPT)
    with pytest.raises(EvidenceProblem, match="refused"):
        received(LOCKED, TERMS, signature, people.usual, {})


def test_an_expired_key_is_refused_at_the_door(people):
    signature = sign(lock_page(LOCKED, TERMS.now), people.reviewer, RECEIPT)
    keys = people.keys(("rita@example.org", 'valid-before="20260101"', people.reviewer))
    with pytest.raises(EvidenceProblem, match="not valid at that time"):
        received(LOCKED, TERMS, signature, keys, {})


def test_a_key_that_expires_later_does_not_change_what_was_decided(kept, people):
    tomorrow = datetime.now(UTC).strftime("%Y%m%d") + "235959"
    keys = people.keys(("rita@example.org", f'valid-before="{tomorrow}"', people.reviewer))
    assert isinstance(receipt_of(kept, LOCKED, TERMS, keys), Receipt)


def none(results, keys, lock=LOCKED, agreed_terms=TERMS):
    found = receipt_of(results, lock, agreed_terms, keys)
    assert isinstance(found, NoReceipt)
    return found.why


def test_what_does_not_count_says_why(kept, people, tmp_path):
    keys = people.usual
    assert none(tmp_path / "nothing", keys) == "there is no reviewer's signature"
    assert "names no reviewers" in none(kept, None)
    other = msgspec.structs.replace(LOCKED, seed=LOCKED.seed + 1)
    assert "does not count" in none(kept, keys, lock=other)
    assert "does not count" in none(kept, keys, agreed_terms=terms(agreed(False, horizon_months=Decimal(99))))


def test_a_receipt_that_was_edited_does_not_count(kept, people):
    path = Signed(kept).receipt
    edited = path.read_bytes().replace(b"rita@example.org", b"nina@example.org")
    write_atomic(path, edited)
    assert "says other things than were signed" in none(kept, people.usual)


def test_a_receipt_that_the_first_proposal_does_not_name_came_too_late(kept, people):
    path = kept / "journal/propose-0001.jsonl"
    path.unlink()
    journal.append(path, {"stage": "propose", "iteration": 1, "receipt": ""})
    assert "was not there when the first proposal was made" in none(kept, people.usual)


def test_the_team_cannot_be_its_own_reviewer(kept, people):
    write_atomic(Signed(kept).lock_signature, sign(lock_page(LOCKED, TERMS.now), people.reviewer, LOCK))
    assert "the same key signed" in none(kept, people.usual)
    write_atomic(Signed(kept).lock_signature, sign(lock_page(LOCKED, TERMS.now), people.team, LOCK))
    assert isinstance(receipt_of(kept, LOCKED, TERMS, people.usual), Receipt)


def test_the_page_in_place_of_its_signature_is_no_signature(people):
    with pytest.raises(EvidenceProblem, match=r"is no SSH signature; .*lock-page.txt.sig"):
        received(LOCKED, TERMS, lock_page(LOCKED, TERMS.now), people.usual, {})
