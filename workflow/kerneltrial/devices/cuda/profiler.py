"""A small set of ncu's counters of one call, where ncu is there and may read them; else why not.

ncu is a program of NVIDIA Nsight Compute. It runs a process of its own, outside the sandbox: it talks to what it
profiles through the network of this machine, which a sandboxed child has not. That process holds a candidate's machine
code and nothing else of it, and is asked for by `protocol.profile` only (workflow/adr/0018).
"""

import csv
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec

from kerneltrial.devices.cuda.profiled import ProfileRequest

_LIMIT_S = 120
_USUAL = ("/usr/local/cuda/bin/ncu", "/opt/nvidia/nsight-compute/ncu")
_PERMISSION = "ERR_NVGPUCTRPERM"


class Absent(Exception):
    """There are no counters; the text says why and what to do."""


def counters(request: ProfileRequest, metrics: Sequence[str], limit_s: float = _LIMIT_S) -> list[dict[str, float]]:
    """Counters of these names of each launch of one warm call, in base units.

    Raises
    ------
    Absent
        ncu is not installed, has no permission, ended in an error, or gave something else.
    """
    ncu = _found()
    with tempfile.TemporaryDirectory(prefix="kerneltrial-ncu-") as folder:
        asked = Path(folder) / "request"
        asked.write_bytes(msgspec.msgpack.encode(request))
        environment = {**os.environ, "TMPDIR": folder}
        try:
            done = subprocess.run(
                [*_command(ncu, metrics, len(request.call.launches)), str(asked)],
                capture_output=True, text=True, timeout=limit_s, check=False, env=environment,
            )  # fmt: skip
        except (OSError, subprocess.TimeoutExpired) as error:
            raise Absent(f"ncu did not end well: {error}") from error
    return _rows(done.stdout, done.stderr, len(request.call.launches))


def _found() -> str:
    for place in (shutil.which("ncu"), *_USUAL):
        if place and os.access(place, os.X_OK):
            return place
    raise Absent("ncu is not on the PATH: install NVIDIA Nsight Compute, or set protocol.profile to none")


def _command(ncu: str, metrics: Sequence[str], launches: int) -> list[str]:
    """No clock control, since the card's settings are the user's; no cache control, since the call is a warm one."""
    return [
        ncu, "--metrics", ",".join(metrics), "--clock-control", "none", "--cache-control", "none",
        "--launch-skip", str(launches), "--launch-count", str(launches), "--print-units", "base", "--csv",
        sys.executable, "-m", "kerneltrial.devices.cuda.profiled",
    ]  # fmt: skip


def _rows(output: str, errors: str, launches: int) -> list[dict[str, float]]:
    found: dict[str, dict[str, float]] = {}
    for row in csv.DictReader(line for line in output.splitlines() if line.startswith('"')):
        found.setdefault(_cell(row, "ID"), {})[_cell(row, "Metric Name")] = _number(_cell(row, "Metric Value"))
    if len(found) == launches:
        return list(found.values())
    words = f"{output}\n{errors}"
    if _PERMISSION in words:
        raise Absent(
            f"{_PERMISSION}: the driver lets only administrators read counters; "
            "NVreg_RestrictProfilingToAdminUsers=0 allows everybody"
        )
    said = next((line.strip() for line in words.splitlines() if "==ERROR==" in line), "")
    raise Absent(f"ncu gave {len(found)} launches, the plan has {launches}{': ' if said else ''}{said[:500]}")


def _cell(row: Mapping[str, str], name: str) -> str:
    if row.get(name) is None:
        raise Absent(f"ncu's table has no column {name!r}")
    return row[name]


def _number(text: str) -> float:
    try:
        return float(text.replace(",", ""))
    except ValueError:
        raise Absent(f"ncu gave {text[:80]!r} for a counter") from None
