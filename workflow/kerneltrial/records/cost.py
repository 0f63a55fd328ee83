"""The cost of the trial so far, and the provisional payback."""

from decimal import Decimal

from kerneltrial.records.record import Count, Digest, Record


class Spent(Record):
    """What the pilot has cost: model charges, time of the GPU, people's hours.

    Seconds come from write-once usage entries: `device_s` is time in which the GPU was held, `cpu_s` processor time of
    all stages and their children (not charged). Dollars are rounded to 0.000001, `total_usd` from the unrounded sum.
    """

    input_tokens: Count
    output_tokens: Count
    device_s: Decimal
    cpu_s: Decimal
    model_usd: Decimal
    device_usd: Decimal
    people_usd: Decimal
    total_usd: Decimal


class KnownPayback(Record, tag_field="state", tag="known"):
    """Months until the pilot's cost is saved, from the best candidate so far. Provisional: nothing is confirmed."""

    best: Digest
    saved_usd_per_month: Decimal
    payback_months: Decimal


class NoPayback(Record, tag_field="state", tag="none"):
    """No payback can be shown, and why."""

    why: str


class Cost(Record):
    """Sums over this iteration and all earlier ones. `example`: prices and workload are not the user's own."""

    iteration: Count
    spent: Spent
    payback: KnownPayback | NoPayback
    example: bool
