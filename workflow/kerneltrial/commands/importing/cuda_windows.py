"""Kernels of an imported problem that look at a window of their input: convolutions and pools, a thread an output."""

import math
from collections.abc import Callable, Sequence
from contextlib import ExitStack

from kerneltrial.commands.importing.cuda_expressions import Expressions
from kerneltrial.commands.importing.graph import Op


class Windows(Expressions):
    """Bodies of kernels; `places` are the output's indices, `out` the element to write."""

    def conv(self, op: Op, places: Sequence[str], out: str) -> None:
        x, w = (str(one) for one in op.operands)
        a, size, kernel = op.attributes, self.shapes[x], self.shapes[w][2:]
        each_out = op.shape[1] // a["groups"]
        group = "0" if a["groups"] == 1 else self.let(f"{places[1]} / {each_out}")
        self.say("float total = 0;")
        with self.block(f"for (int c = 0; c < {self.shapes[w][1]}; c++)"):
            channel = "c" if group == "0" else self.let(f"{group} * {self.shapes[w][1]} + c")
            self._over_kernel(kernel, lambda at: self._conv_term(op, places, at, channel, size))
        self.say(f"{out} = total;")

    def _conv_term(self, op: Op, places: Sequence[str], at: list[str], channel: str, size: Sequence[int]) -> None:
        x, w = op.operands
        a = op.attributes
        seats = [
            self.let(f"{p} * {s} + {k} * {d} - {q}")
            for p, s, k, d, q in zip(places[2:], a["stride"], at, a["dilation"], a["padding"], strict=True)
        ]
        inside = " && ".join(f"{seat} >= 0 && {seat} < {n}" for seat, n in zip(seats, size[2:], strict=True))
        value = self.at(x, [places[0], channel, *seats])
        self.say(f"if ({inside}) total += {value} * {self.at(w, [places[1], 'c', *at])};")

    def transposed(self, op: Op, places: Sequence[str], out: str) -> None:
        x, w = (str(one) for one in op.operands)
        a, size = op.attributes, self.shapes[x]
        each_in, each_out = size[1] // a["groups"], self.shapes[w][1]
        group = "0" if a["groups"] == 1 else self.let(f"{places[1]} / {each_out}")
        own = places[1] if group == "0" else self.let(f"{places[1]} % {each_out}")
        self.say("float total = 0;")

        def term(at: list[str]) -> None:
            far = [
                self.let(f"{p} + {q} - {k} * {d}")
                for p, q, k, d in zip(places[2:], a["padding"], at, a["dilation"], strict=True)
            ]
            seats = [self.let(f"{f} / {s}") for f, s in zip(far, a["stride"], strict=True)]
            fits = " && ".join(
                f"{f} >= 0 && {f} % {s} == 0 && {seat} < {n}"
                for f, s, seat, n in zip(far, a["stride"], seats, size[2:], strict=True)
            )
            self.say(
                f"if ({fits}) total += {self.at(x, [places[0], channel, *seats])} * {self.at(w, [channel, own, *at])};"
            )

        with self.block(f"for (int c = 0; c < {each_in}; c++)"):
            channel = "c" if group == "0" else self.let(f"{group} * {each_in} + c")
            self._over_kernel(self.shapes[w][2:], term)
        self.say(f"{out} = total;")

    def _over_kernel(self, kernel: Sequence[int], term: Callable[[list[str]], None]) -> None:
        names = [f"k{axis}" for axis in range(len(kernel))]
        with ExitStack() as loops:
            for name, size in zip(names, kernel, strict=True):
                loops.enter_context(self.block(f"for (int {name} = 0; {name} < {size}; {name}++)"))
            term(names)

    def pool(self, op: Op, places: Sequence[str], out: str) -> None:
        a, source = op.attributes, str(op.operands[0])
        rank = len(a["kernel"])
        size, lead, own = self.shapes[source][-rank:], list(places[:-rank]), places[-rank:]
        self.say(f"float total = {'-INFINITY' if a['fn'] == 'max' else '0'};")
        self.say("int count = 0;")

        def term(at: list[str]) -> None:
            seats = [
                self.let(f"{p} * {s} + {k} * {d} - {q}")
                for p, s, k, d, q in zip(own, a["stride"], at, a["dilation"], a["padding"], strict=True)
            ]
            inside = " && ".join(f"{seat} >= 0 && {seat} < {n}" for seat, n in zip(seats, size, strict=True))
            value = self.at(source, [*lead, *seats])
            update = f"total = larger({value}, total);" if a["fn"] == "max" else f"total += {value};"
            self.say(f"if ({inside}) {{ {update} count++; }}")

        self._over_kernel(a["kernel"], term)
        divisor = a["divisor"] or (math.prod(a["kernel"]) if a["include"] else 0)
        self.say(f"{out} = total{'' if a['fn'] == 'max' else f' / {divisor}' if divisor else ' / count'};")
