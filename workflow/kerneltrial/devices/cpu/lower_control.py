"""Branches and ends: what they do is in `generator`, where blocks are; here stands what they look like."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kerneltrial.devices.cpu.forms import Form
from kerneltrial.devices.cpu.syntax import Instruction

if TYPE_CHECKING:
    from kerneltrial.devices.cpu.generator import Generator


def _by_block(g: Generator, instruction: Instruction, f: dict[str, str]) -> None:
    raise AssertionError("control flow is made by blocks")


_G = "control"

FORMS = (
    Form("bra{uni:|.uni}", "label", _by_block, _G, raw=True),
    Form("ret{uni:|.uni}", "", _by_block, _G, raw=True),
    Form("exit", "", _by_block, _G, raw=True),
    Form("trap", "", _by_block, _G, raw=True),
)
