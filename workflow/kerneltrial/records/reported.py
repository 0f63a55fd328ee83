"""The report's record: which files a person got, by digest."""

from kerneltrial.records.record import Digest, Record


class Reported(Record):
    """Files under reports/<trial>/, by name; `no_winner` says why there is no best kernel, or is empty."""

    files: dict[str, Digest]
    no_winner: str
