"""The cost of the trial so far, and the provisional payback."""

from decimal import Decimal

from kerneltrial.records.record import Count, Digest, Record


class KnownPayback(Record, tag_field="state", tag="known"):
    """Months until the pilot's cost is saved, from the best candidate so far. Provisional: nothing is confirmed."""

    best: Digest
    saved_usd_per_month: Decimal
    payback_months: Decimal


class NoPayback(Record, tag_field="state", tag="none"):
    """No payback can be shown, and why."""

    why: str


class Cost(Record):
    """Sums over this iteration and all earlier ones. Seconds come from write-once usage entries.

    `device_s` is time on a GPU; `cpu_s` is processor time of all stages and their children.
    """

    iteration: Count
    input_tokens: Count
    output_tokens: Count
    model_usd: Decimal
    device_s: Decimal
    cpu_s: Decimal
    device_usd: Decimal
    people_usd: Decimal
    total_usd: Decimal
    payback: KnownPayback | NoPayback
    example: bool
