"""Mutated PTX through the cpu device: texts that no compiler wrote must be refused, or run under every check.

    PYTHONPATH=workflow python tests/bench/cpu_fuzz.py [--texts 100000] [--runs 5000] [--seed 1] [--further]

Kernels of the corpus (tests/golden/corpus_ptx.json) and of `fuzz_kernels.py` (printf, tickets, fences, barriers of a
grid), cut to one entry each, are mutated by words, lines and bytes; with --further the latter alone. Each text goes
through parser, table and flow of this process, where any exception but `Refused` is a fault of ours. Those that pass go
on, as many as are asked for, to machine code and execution in forked children: one that dies is a fault, too. Prints
what became of them and every fault with its text's number, also when it is interrupted; exits 1 where there was a
fault. The same seed gives the same texts.
"""

import argparse
import os
import random
import re
import resource
import signal
import sys
import time
import traceback
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tests" / part) for part in ("unit/devices_cpu", "gpu/corpus", "bench")]

from corpus_results import stored_ptx
from corpus_table import Kernel, kernels
from fuzz_kernels import Further, further

from kerneltrial.devices.cpu.device import open_cpu
from kerneltrial.devices.cpu.flow import analyse
from kerneltrial.devices.cpu.inline import flatten
from kerneltrial.devices.cpu.parser import parse
from kerneltrial.devices.device import Binary, Conditions, Refused

LONGEST = 6000
BATCH = 20
SECONDS = 20
BUDGET = 300_000
_NUMBERS = re.findall(
    r"\S+",
    "0 -1 1 3 31 32 64 255 4095 65536 2147483647 4294967295 -2147483648 9223372036854775807 18446744073709551615 "
    "99999999999999999999999 0f7fc00000 0d7ff8000000000000 0x80000000",
)
_WORDS = re.findall(
    r"[^ ]+",
    "%tid.x %clock64 _ { } ( ) ; , [ ] | @%p1 bra ret bar.sync call .shared .local .param .const .extern .align .v4 "
    ".u8 .f64 .b128 .pred %r1 %rd1 %p1 %f1 shfl.sync.idx.b32 atom.global.add.u32 ld.volatile.u32 mma.sync .ftz .sat "
    '%envreg3 <999999999> \u2028 // /* */ " \0',
)


@dataclass(frozen=True)
class Seed:
    """One entry with what stands before the first one."""

    kernel: Kernel | Further
    entry: str
    text: str


def seeds(alone: bool = False) -> list[Seed]:
    """Short kernels, each alone in its text: of the corpus, unless `alone`, and the further ones."""
    stored = stored_ptx(ROOT / "tests" / "golden" / "corpus_ptx.json")
    corpus = [(kernel, stored[kernel.name][1], stored[kernel.name][0]) for kernel in kernels()]
    found = []
    for kernel, entry, text in [*([] if alone else corpus), *further()]:
        head = re.split(r"^\s*(?:\.visible )?\.(?:entry|func)", text, maxsplit=1, flags=re.M)[0]
        start = text.index(f".visible .entry {entry}(")
        rest = re.split(r"^\s*\.(?:visible|entry|func|weak)", text[start + 1 :], maxsplit=1, flags=re.M)[0]
        whole = head + text[start] + rest[: rest.rindex("\n}") + 3]
        whole = _used(re.sub(r"^\s*(?:\.loc\b|\.file\b|//).*\n", "", whole, flags=re.M))
        if len(whole) <= LONGEST and read(whole, entry) == "passed":
            found.append(Seed(kernel, entry, whole))
    return found


def _used(text: str) -> str:
    """Without the module's variables that nothing names, such as the constants of the toolkit's headers."""
    lines = text.splitlines(keepends=True)
    names = [re.match(r"\.global .*?([\w$]+)(?:\[\d*\])?(?: = .*)?;", line) for line in lines]
    return "".join(line for line, name in zip(lines, names, strict=True) if not name or text.count(name[1]) > 1)


def mutated(draw: random.Random, text: str, other: str) -> str:
    """`text` with one to four changes; `other` lends words and lines."""
    for _ in range(draw.randint(1, 4)):
        text = draw.choice(_MUTATIONS)(draw, text, other)
    return text


def _words_of(text: str) -> list[re.Match[str]]:
    return list(re.finditer(r"[%\w.$]+|[^\s\w]", text))


def _one_word(draw: random.Random, text: str, other: str) -> str:
    words = _words_of(text)
    if not words:
        return text
    place = draw.choice(words)
    lent = draw.choice([*_NUMBERS, *_WORDS, *(w[0] for w in draw.sample(_words_of(other), 8))])
    return text[: place.start()] + lent + text[place.end() :]


def _opcode(draw: random.Random, text: str, other: str) -> str:
    """An instruction of the other kernel, or its modifiers, with the operands that are here."""
    lines, lent = text.split("\n"), re.findall(r"^\s*([a-z]+[.\w:]*)\s", other, re.M)
    places = [k for k, line in enumerate(lines) if re.match(r"\s*[a-z]+[.\w:]*\s", line)]
    if not places or not lent:
        return text
    k = draw.choice(places)
    opcode = draw.choice(lent)
    if draw.random() < 0.5:
        own = re.match(r"\s*([a-z]+)", lines[k])
        opcode = (own[1] if own else "add") + "." + ".".join(opcode.split(".")[1:])
    lines[k] = re.sub(r"[a-z]+[.\w:]*\s", lambda _: opcode + " ", lines[k], count=1)
    return "\n".join(lines)


def _number(draw: random.Random, text: str, _: str) -> str:
    places = list(re.finditer(r"(?<![\w.%])-?\d+", text))
    if not places:
        return text
    place = draw.choice(places)
    return text[: place.start()] + draw.choice(_NUMBERS) + text[place.end() :]


def _lines(draw: random.Random, text: str, other: str) -> str:
    """Drop, double, swap or lend lines."""
    lines = text.split("\n")
    k, m = draw.randrange(len(lines)), draw.randrange(len(lines))
    match draw.randrange(4):
        case 0:
            del lines[k]
        case 1:
            lines.insert(m, lines[k])
        case 2:
            lines[k], lines[m] = lines[m], lines[k]
        case _:
            lines.insert(k, draw.choice(other.split("\n")))
    return "\n".join(lines)


def _characters(draw: random.Random, text: str, _: str) -> str:
    """One character becomes another, goes, or many come; or the text ends early."""
    k = draw.randrange(len(text) + 1)
    match draw.randrange(4):
        case 0:
            return text[:k] + chr(draw.choice([draw.randrange(128), draw.randrange(0xD800)])) + text[k + 1 :]
        case 1:
            return text[:k] + text[k + 1 :]
        case 2:
            return text[:k] + draw.choice("{[(;,.%@-<") * draw.choice([1, 3, 500]) + text[k:]
        case _:
            return text[:k]


_MUTATIONS = (_one_word, _one_word, _opcode, _opcode, _number, _number, _lines, _lines, _characters)


def texts(count: int, seed: int, alone: bool = False) -> Iterator[tuple[int, Seed, str]]:
    """`count` texts with their numbers and the kernels that they were."""
    pool = seeds(alone)
    for number in range(count):
        draw = random.Random(f"{seed} {number}")
        here = draw.choice(pool)
        yield number, here, mutated(draw, here.text, draw.choice(pool).text)


def read(text: str, entry: str) -> str:
    """What becomes of a text before machine code: `passed`, a reason of refusal, or `FAULT` with the traceback."""
    try:
        module = parse(text)
        function = module.functions.get(entry)
        if function is None or not function.entry:
            return "entry_missing"
        analyse(flatten(module, function))
    except Refused as refused:
        return refused.finding.reason.value
    except Exception:
        return "FAULT " + traceback.format_exc(limit=-3)
    return "passed"


def execute(seed: Seed, text: str) -> str:
    """What becomes of a text that is run, in this process."""
    call = seed.kernel.call(seed.entry)
    outcome = ""
    try:
        loaded = open_cpu().load(Binary(ptx=text, cubin=b""))
        for level in ("all", "bounds"):
            conditions = Conditions(poison="nan", checks=level, budget_instructions=BUDGET)  # type: ignore[arg-type]
            done = loaded.run(call, seed.kernel.values(), conditions)
            outcome = outcome or (done.findings[0].reason.value if done.findings else "ran")
        loaded.count(call, seed.kernel.values(), conditions)
    except Refused as refused:
        return outcome or refused.finding.reason.value
    except Exception:
        return "FAULT " + traceback.format_exc(limit=-3)
    return outcome


def in_child(batch: list[tuple[int, Seed, str]]) -> list[str]:
    """The outcomes of a batch; where the child died or hung, the text that it had in hand is a fault."""
    outcomes: list[str] = []
    while len(outcomes) < len(batch):
        reader, writer = os.pipe()
        child = os.fork()
        if not child:
            try:
                os.close(reader)
                resource.setrlimit(resource.RLIMIT_AS, (8 << 30, 8 << 30))
                resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
                for _, seed, text in batch[len(outcomes) :]:
                    signal.alarm(SECONDS)
                    os.write(writer, execute(seed, text).replace("\0", " ").encode()[:3000] + b"\0")
            finally:
                os._exit(0)
        os.close(writer)
        with os.fdopen(reader, "rb") as pipe:
            outcomes += [part.decode(errors="replace") for part in pipe.read().split(b"\0")[:-1]]
        _, status = os.waitpid(child, 0)
        if len(outcomes) < len(batch):
            outcomes.append(f"FAULT the child ended with status {status}")
    return outcomes


@dataclass
class Tally:
    """How many texts ended how, before machine code and in execution, and the faults."""

    before: Counter[str] = field(default_factory=Counter)
    after: Counter[str] = field(default_factory=Counter)
    faults: list[str] = field(default_factory=list)

    def add(self, counter: Counter[str], number: int, outcome: str) -> None:
        counter[outcome.split()[0]] += 1
        if outcome.startswith("FAULT"):
            self.faults.append(f"text {number}: {outcome}")

    def __str__(self) -> str:
        return "\n".join(
            [
                f"{self.before.total()} texts: {dict(self.before.most_common())}",
                f"{self.after.total()} of them run: {dict(self.after.most_common())}",
                *self.faults,
                f"{len(self.faults)} faults",
            ]
        )


def fuzz(drawn: Iterator[tuple[int, Seed, str]], runs: int, tally: Tally) -> None:
    """Read texts, and run up to `runs` of those that pass; what is done is in `tally` at any time."""
    batch: list[tuple[int, Seed, str]] = []
    executed = 0

    def run_batch() -> None:
        for (number, _, _), outcome in zip(batch, in_child(batch), strict=True):
            tally.add(tally.after, number, outcome)
        batch.clear()

    for number, here, text in drawn:
        outcome = read(text, here.entry)
        tally.add(tally.before, number, outcome)
        if outcome == "passed" and executed < runs:
            executed += 1
            batch.append((number, here, text))
            if len(batch) == BATCH:
                run_batch()
    run_batch()


def main() -> int:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--texts", type=int, default=100_000)
    options.add_argument("--runs", type=int, default=5_000)
    options.add_argument("--seed", type=int, default=1)
    options.add_argument("--further", action="store_true")
    chosen = options.parse_args()
    start, tally = time.perf_counter(), Tally()
    try:
        fuzz(texts(chosen.texts, chosen.seed, chosen.further), chosen.runs, tally)
    except KeyboardInterrupt:
        print("interrupted; this is what was done:")
    print(tally, f"in {time.perf_counter() - start:.0f} s")
    return int(bool(tally.faults))


if __name__ == "__main__":
    sys.exit(main())
