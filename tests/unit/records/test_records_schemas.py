"""JSON Schemas under workflow/schemas/ are those of the record types.

After a change of a record: KERNELTRIAL_REGENERATE=1 python -m pytest tests/unit/records
"""

import json
import os
from pathlib import Path

import jsonschema
import msgspec
import pytest

from kerneltrial.records.best_case import BestCase
from kerneltrial.records.build import Build
from kerneltrial.records.case import Cases, HoldoutDomain
from kerneltrial.records.confirmation import Confirmation
from kerneltrial.records.contract import Contract
from kerneltrial.records.cost import Cost
from kerneltrial.records.decision import Decision
from kerneltrial.records.envelope import Envelope
from kerneltrial.records.holdout import Holdout
from kerneltrial.records.lock import Lock
from kerneltrial.records.plan import LaunchPlan
from kerneltrial.records.prize import Prize
from kerneltrial.records.proposal import Proposal
from kerneltrial.records.qualification import Qualification
from kerneltrial.records.receipt import Receipt
from kerneltrial.records.reported import Reported
from kerneltrial.records.seal import Seal
from kerneltrial.records.terms import Terms
from kerneltrial.records.timing import Timing
from kerneltrial.records.usage import Usage
from kerneltrial.records.validation import Validation

SCHEMAS = Path(__file__).parents[3] / "workflow" / "schemas"
TYPES = {
    "best_case": BestCase,
    "build": Build,
    "cases": Cases,
    "confirmation": Confirmation,
    "contract": Contract,
    "cost": Cost,
    "decision": Decision,
    "envelope": Envelope,
    "holdout": Holdout,
    "holdout_domain": HoldoutDomain,
    "lock": Lock,
    "plan": LaunchPlan,
    "prize": Prize,
    "proposal": Proposal,
    "qualification": Qualification,
    "receipt": Receipt,
    "report": Reported,
    "seal": Seal,
    "terms": Terms,
    "timing": Timing,
    "usage": Usage,
    "validation": Validation,
}


def text(type_: type) -> str:
    schema = {"$schema": "https://json-schema.org/draft/2020-12/schema", **msgspec.json.schema(type_)}
    return json.dumps(schema, indent=2, sort_keys=True) + "\n"


@pytest.mark.parametrize("name", TYPES)
def test_the_schema_is_that_of_the_type(name):
    path = SCHEMAS / f"{name}.schema.json"
    if os.environ.get("KERNELTRIAL_REGENERATE"):
        path.write_text(text(TYPES[name]))
    assert path.read_text() == text(TYPES[name]), "a record changed: regenerate the schemas (see this file's top)"
    jsonschema.Draft202012Validator.check_schema(json.loads(path.read_text()))


def test_no_schema_is_left_over():
    assert {p.name for p in SCHEMAS.iterdir()} == {f"{name}.schema.json" for name in TYPES}


def test_records_are_frozen_and_strict():
    for type_ in TYPES.values():
        assert type_.__struct_config__.frozen
        assert type_.__struct_config__.forbid_unknown_fields
