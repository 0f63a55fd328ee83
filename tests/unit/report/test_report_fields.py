"""Every field of the files for programs is explained in reports/fields.md."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from trial_pieces import report_inputs
from trial_stories import STORIES

from kerneltrial.decide.standing import Fate
from kerneltrial.report.render import contents

PAGE = Path(__file__).parents[3] / "reports/fields.md"
FREE = ("parameters", "fingerprint")  # what is in them has names of its own


def keys(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        for key, inner in value.items():
            yield key
            if key not in FREE:
                yield from keys(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from keys(inner)


@pytest.mark.parametrize("story", STORIES)
def test_every_field_is_explained(story: str) -> None:
    explained = set(re.findall(r"[a-z_0-9]+", " ".join(re.findall(r"`([^`]+)`", PAGE.read_text()))))
    made = contents(report_inputs(STORIES[story]()))
    found = {key for name in ("history.json", "summary.json") for key in keys(json.loads(made[name]))}
    assert found <= explained, found - explained


def test_every_fate_is_named() -> None:
    assert all(f"`{fate.value}`" in PAGE.read_text() for fate in Fate)
