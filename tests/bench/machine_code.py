"""Read a space's main loops in machine code, and estimate how many multiply-adds they issue a cycle.

    pip install nvidia-cuda-nvdisasm
    PYTHONPATH=workflow python tests/bench/machine_code.py matmul_large_f32 matmul_whole [BM=128,BN=128,...]
    PYTHONPATH=workflow python tests/bench/machine_code.py conv3x3_f32/space_products.yaml conv3x3

Configurations are those that have the given values, or the seeds. Each is compiled as a trial does, for sm_90a; of
every loop with a hundred multiply-adds and no loop inside it prints the instructions, the share of multiply-adds, and
what `machine_code_model` makes of it in four ways: shared memory in as few passes as the lanes allow or in twice as
many, registers read in a window of three cycles or at once. No card is needed, and none has checked the model.
"""

import argparse
import re
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path

from machine_code_model import Instruction, rate

from kerneltrial.build.messages import Compiled
from kerneltrial.build.nvrtc import compile_source
from kerneltrial.build.resources import resources
from kerneltrial.propose.search.space import read_space

ROOT = Path(__file__).resolve().parents[2]
OPTIONS = ("--gpu-architecture=sm_90a", "--std=c++17", "--ptxas-options=-v")
MULTIPLY_ADDS = 100  # of a loop that is looked at
REGISTERS = 65_536

_WORD = re.compile(r"/\* 0x([0-9a-f]{16}) \*/")
_CODE = re.compile(r"/\*[0-9a-f]{4,5}\*/\s+(?:@!?U?P\w+\s+)?([A-Z][A-Z0-9_.]*)\s*(.*?);")


def instructions(text: str) -> tuple[list[Instruction], dict[str, int]]:
    """One function of `nvdisasm -c -hex`: instructions with what the compiler tells the scheduler, and labels."""
    found: list[Instruction] = []
    labels: dict[str, int] = {}
    lines = iter(text.splitlines())
    for line in lines:
        if label := re.match(r"\s*(\.L\w+):", line):
            labels[label[1]] = len(found)
        elif code := _CODE.search(line):
            word = _WORD.search(next(lines))
            control = int(word[1], 16) >> 41 if word else 0
            found.append(
                Instruction(
                    operation=code[1],
                    operands=code[2],
                    stall=max(1, control & 15),
                    sets=(control >> 5 & 7, control >> 8 & 7),
                    waits=tuple(b for b in range(6) if control >> (11 + b) & 1),
                )
            )
    return found, labels


def inner_loops(code: list[Instruction], labels: dict[str, int]) -> list[list[Instruction]]:
    """Loops with multiply-adds enough that hold no other such loop."""
    spans = []
    for at, one in enumerate(code):
        target = re.search(r"`\((\.L\w+)\)", one.operands) if one.operation.startswith("BRA") else None
        if target and labels.get(target[1], at + 1) <= at:
            first = labels[target[1]]
            if sum(i.operation == "FFMA" for i in code[first : at + 1]) >= MULTIPLY_ADDS:
                spans.append((first, at + 1))
    return [code[a:b] for a, b in spans if not any((a, b) != (c, d) and a <= c and d <= b for c, d in spans)]


def disassembled(cubin: bytes, entry: str) -> str:
    """The text of one entry; needs nvdisasm, from its wheel or the path."""
    wheel = next((p for root in sys.path for p in Path(root).glob("nvidia/cu*/bin/nvdisasm")), Path("nvdisasm"))
    with tempfile.NamedTemporaryFile(suffix=".cubin") as file:
        file.write(cubin)
        file.flush()
        command = [str(wheel), "-c", "-hex", file.name]
        text = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    return next(part for part in text.split("\n.text.")[1:] if part.startswith(entry + ":"))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("name")
    parser.add_argument("entry")
    parser.add_argument("values", nargs="?", default="")
    arguments = parser.parse_args()
    path = ROOT / "kernels" / arguments.name
    space = read_space(path if path.suffix == ".yaml" else path / "space.yaml")
    wanted = {name: int(value) for name, value in (v.split("=") for v in arguments.values.split(",") if v)}
    chosen = [seed.parameters for seed in space.file.seeds]
    if wanted:
        chosen = [c for c in space.configurations if wanted.items() <= c.items()]
    for parameters in chosen:
        compiled = compile_source(space.source(parameters), OPTIONS)
        if not isinstance(compiled, Compiled):
            sys.exit(f"{parameters}: does not compile: {compiled}")
        used = resources(compiled.log).get(arguments.entry)
        if used is None:
            print(parameters, f"has no {arguments.entry}")
            continue
        print(parameters, f"{used.registers} registers, {used.spilled_bytes} bytes spilled")
        threads = space.named(parameters)["THREADS"]
        blocks = max(1, REGISTERS // (-(-used.registers // 8) * 8 * threads))
        warps = (blocks, max(1, threads // 128))
        for loop in inner_loops(*instructions(disassembled(compiled.cubin, arguments.entry))):
            counts = Counter(i.operation.split(".")[0] for i in loop)
            rates = (f"{rate(loop, warps, passes, window):.2f}" for window in (True, False) for passes in (2, 4))
            print(
                f"  {len(loop)} instructions, {counts['FFMA'] / len(loop):.1%} multiply-adds, {blocks} blocks: "
                f"{' '.join(rates)} a cycle (window 2, 4 passes; at once 2, 4)  {dict(counts.most_common(8))}"
            )


if __name__ == "__main__":
    main()
