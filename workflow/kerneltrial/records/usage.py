"""What a stage's run used: a write-once entry beside the measurements, the only source of `Cost`'s seconds."""

from decimal import Decimal

from kerneltrial.records.record import Record


class Usage(Record):
    """Seconds. `device_s` is time in which the GPU was held; `cpu_s` processor time of the stage and its children."""

    wall_s: Decimal
    cpu_s: Decimal
    device_s: Decimal
    finished_at: str
    host: str
