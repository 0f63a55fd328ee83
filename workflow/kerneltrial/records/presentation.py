"""How the report is presented to people."""

from typing import Literal

from kerneltrial.records.record import Record

Language = Literal["en", "ko"]


class Presentation(Record):
    """`language` is that of the page's own words; what records say stays as it was recorded."""

    language: Language = "en"
