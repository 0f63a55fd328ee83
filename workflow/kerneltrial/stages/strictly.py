"""The `cpu` device beside a card, where the protocol asks for dear checks: each look in a child of its own."""

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass

from kerneltrial.devices.opening import CPU_ARCH
from kerneltrial.devices.preloading import preload
from kerneltrial.devices.runner import Runner
from kerneltrial.sandbox.nursery import Nursery
from kerneltrial.stages.ground import Ground


@dataclass(frozen=True)
class Strictly:
    """Opens children with the `cpu` device; none where it is not asked for."""

    nursery: Nursery | None
    call_s: float

    @contextlib.contextmanager
    def runner(self) -> Iterator[Runner | None]:
        """A fresh child with the `cpu` device, or None."""
        if self.nursery is None:
            yield None
            return
        with Runner(self.nursery, "cpu", arch=CPU_ARCH, call_s=self.call_s) as runner:
            yield runner


@contextlib.contextmanager
def strictly(g: Ground, *, winner: bool = False) -> Iterator[Strictly]:
    """The `cpu` device for whoever compute-sanitizer looks at too: every candidate, or the winner in a confirmation."""
    wanted = g.lock.protocol.sanitizers
    asked = g.lock.device.kind == "cuda" and (wanted == "all" or (wanted == "winner" and winner))
    with contextlib.ExitStack() as own:
        nursery = own.enter_context(Nursery(preload("cpu"))) if asked else None
        yield Strictly(nursery, float(g.lock.protocol.timeout_s))
