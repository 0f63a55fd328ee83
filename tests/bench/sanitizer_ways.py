"""Does compute-sanitizer work on this machine, in the limited child and outside, and how long does each tool take?

    PYTHONPATH=workflow python tests/bench/sanitizer_ways.py [--to FILE]

Prints what each tool says of one call of a small honest kernel; FILE gets the whole logs. Needs an NVIDIA card.
"""

import argparse
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "gpu"))

from own_process import KERNELS, compile_cuda, numbers, simple_call

from kerneltrial.devices.cuda import sanitizer
from kerneltrial.devices.cuda.probe import probe
from kerneltrial.devices.preloading import preload
from kerneltrial.records.sanitizer import TOOLS
from kerneltrial.sandbox.nursery import Nursery


def main() -> None:
    parser = argparse.ArgumentParser(description="Does compute-sanitizer work on this machine?")
    parser.add_argument("--to", type=Path)
    asked = parser.parse_args()
    program = sanitizer.found()
    if not program:
        print("compute-sanitizer is not installed")
        return
    version = subprocess.run([program, "--version"], capture_output=True, text=True, check=False).stdout
    print(program, " ".join(version.split()[-4:]))
    arch = probe().arch
    kept: dict[str, object] = {"program": program, "version": version}
    with Nursery(preload("cuda")) as nursery:
        tools = sanitizer.Sanitizer(nursery, arch, 60.0)
        call = simple_call("waits", 1000)
        binary = compile_cuda((KERNELS / "sanitizer.cu").read_text(), arch)
        request = tools.request(binary, [("waits", call, {"x": numbers(1000)})])
        start = time.perf_counter()
        told = tools.look(request, ("waits",))
        print(f"in the limited child, all tools side by side: {time.perf_counter() - start:.2f} s")
        for tool in told.tools:
            print("  ", tool)
        kept["child"] = [str(tool) for tool in told.tools]
    with tempfile.TemporaryDirectory(dir="/tmp") as folder:
        (Path(folder) / "request").write_bytes(request)
        for tool in TOOLS:
            start = time.perf_counter()
            said = sanitizer.run_tool(
                sanitizer.Start(program=program, folder=folder, limit_s=60.0), tool, Path(folder) / "request"
            )
            seconds = time.perf_counter() - start
            print(f"outside of it, {tool}: {seconds:.2f} s, {sanitizer.judged(tool, said, ('waits',))}")
            kept[tool] = {
                "seconds": seconds,
                "log": said.log[:4000],
                "printed": said.printed[:4000],
                "ended": said.ended,
            }
    if asked.to:
        asked.to.write_text(json.dumps(kept, indent=1))


if __name__ == "__main__":
    main()
