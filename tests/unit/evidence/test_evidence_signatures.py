"""Signatures: another key, another namespace, other bytes, another time are each refused."""

import pytest

from kerneltrial.evidence.problem import EvidenceProblem
from kerneltrial.evidence.signatures import LOCK, RECEIPT, SEAL, key_of, sign, signer

MESSAGE = b"these bytes\n"


def test_who_signed_is_who_the_readers_own_keys_name(people):
    signature = sign(MESSAGE, people.reviewer, RECEIPT)
    who = signer(MESSAGE, signature, people.usual, RECEIPT)
    assert who.name == "rita@example.org"
    assert who.key == key_of(MESSAGE, signature, RECEIPT)
    assert who.key.startswith("SHA256:")


def test_other_bytes_are_refused(people):
    with pytest.raises(EvidenceProblem, match="not one of these bytes"):
        signer(b"other bytes\n", sign(MESSAGE, people.reviewer, RECEIPT), people.usual, RECEIPT)
    with pytest.raises(EvidenceProblem, match="not one of these bytes"):
        key_of(b"other bytes\n", sign(MESSAGE, people.reviewer, RECEIPT), RECEIPT)


@pytest.mark.parametrize(("signed", "asked"), [(SEAL, RECEIPT), (RECEIPT, SEAL), (LOCK, RECEIPT)])
def test_a_signature_for_one_thing_stands_for_no_other(people, signed, asked):
    keys = people.keys(("all@example.org", "", people.team))
    assert signer(MESSAGE, sign(MESSAGE, people.team, signed), keys, signed)
    with pytest.raises(EvidenceProblem):
        signer(MESSAGE, sign(MESSAGE, people.team, signed), keys, asked)


def test_a_key_that_may_not_sign_receipts_does_not(people):
    with pytest.raises(EvidenceProblem):
        signer(MESSAGE, sign(MESSAGE, people.team, RECEIPT), people.usual, RECEIPT)


def test_a_foreign_key_is_refused(people):
    with pytest.raises(EvidenceProblem, match="foreign"):
        signer(MESSAGE, sign(MESSAGE, people.stranger, RECEIPT), people.usual, RECEIPT)


@pytest.mark.parametrize(
    ("option", "at", "good"),
    [
        ('valid-before="20260101"', "", False),
        ('valid-before="20260101"', "20251231120000", True),
        ('valid-after="20270101"', "20261201120000", False),
        ('valid-after="20260101",valid-before="20270101"', "20260601120000", True),
    ],
)
def test_a_key_counts_only_while_it_is_valid(people, option, at, good):
    keys = people.keys(("rita@example.org", option, people.reviewer))
    signature = sign(MESSAGE, people.reviewer, RECEIPT)
    if good:
        assert signer(MESSAGE, signature, keys, RECEIPT, at)
    else:
        with pytest.raises(EvidenceProblem):
            signer(MESSAGE, signature, keys, RECEIPT, at)


@pytest.mark.parametrize("rubbish", [b"", b"-----BEGIN SSH SIGNATURE-----\nAAAA\n-----END SSH SIGNATURE-----\n"])
def test_what_is_no_signature_is_refused(people, rubbish):
    with pytest.raises(EvidenceProblem):
        signer(MESSAGE, rubbish, people.usual, RECEIPT)


def test_a_key_that_is_not_there_is_one_line(people, tmp_path):
    with pytest.raises(EvidenceProblem, match="no such key"):
        sign(MESSAGE, tmp_path / "absent", SEAL)
    (tmp_path / "rubbish").write_text("no key\n")
    with pytest.raises(EvidenceProblem, match="is no SSH key"):
        sign(MESSAGE, tmp_path / "rubbish", SEAL)
