"""`kerneltrial rocrate BUNDLE`: a sealed bundle as a Workflow Run RO-Crate, a zip file for archives that read those."""

import argparse
import io
import json
import tempfile
import zipfile
from collections.abc import Iterator, Mapping
from importlib import resources
from pathlib import Path
from typing import Any

from kerneltrial.inputs.problem import InputProblem
from kerneltrial.store import envelopes, journal
from kerneltrial.store.files import write_atomic

_THEN = (1980, 1, 1, 0, 0, 0)  # the first day that a zip file knows: equal bundles give equal crates


def run(given: argparse.Namespace, root: Path) -> int:
    """Write the zip file; 3 where the bundle cannot be read or is not sealed."""
    from kerneltrial.evidence import crate
    from kerneltrial.evidence.tarball import unpack

    bundle = root / given.bundle
    if not bundle.is_file():
        raise InputProblem(f"{given.bundle}: there is no such file; `kerneltrial bundle` makes one")
    out = root / given.out if given.out else bundle.with_name(f"{bundle.stem}.crate.zip")
    with tempfile.TemporaryDirectory(prefix="kerneltrial-") as scratch:
        folder = unpack(bundle, Path(scratch))
        try:
            told = _told(folder, given.license)
        except (ValueError, LookupError, TypeError, AttributeError, RecursionError) as fault:
            raise InputProblem(
                f"{given.bundle}: its seal, lock or journal is none ({type(fault).__name__}: {fault}); "
                "`kerneltrial verify` says more"
            ) from fault
        text = json.dumps(crate.crate(told), indent=2, ensure_ascii=False, sort_keys=False) + "\n"
        workflow = resources.files("kerneltrial.commands").joinpath("starter", "Snakefile").read_bytes()
        members = {crate.METADATA: text.encode(), crate.WORKFLOW: workflow}
        files = sorted(path for path in folder.rglob("*") if path.is_file())
        members |= {f"{crate.EVIDENCE}/{p.relative_to(folder).as_posix()}": p.read_bytes() for p in files}
        write_atomic(out, _zipped(members))
    print(f"{out.name}: {len(members)} files, {out.stat().st_size / 2**20:.1f} MiB")
    return 0


def _told(folder: Path, licence: str) -> Any:
    """What the crate says of the trial; read from the frame of the records, so bundles of any version will do."""
    from kerneltrial.evidence.crate import Told
    from kerneltrial.evidence.manifest import parse

    found = sorted(folder.glob("results/*/signed/seal.json"))
    if len(found) != 1 or not (folder / "SHA256SUMS").is_file():
        raise InputProblem(f"{folder.name}: is no sealed bundle of one trial")
    results = found[0].parents[1]
    seal = json.loads(found[0].read_bytes())
    sums, trial = parse((folder / "SHA256SUMS").read_bytes()), results.name
    lock = envelopes.read(results / "lock.json")
    times = sorted(_times(results))
    if lock is None or not times:
        raise InputProblem(f"{folder.name}: has no lock or no journal; `kerneltrial verify` says more")
    outside = ("results/", "reports/")
    inputs = {path: name for path, name in sums.items() if not path.startswith(outside) and "/" in path}
    inputs |= {path: name for path, name in sums.items() if path == f"results/{trial}/config.json"}
    ends = (f"results/{trial}/decision.json", f"results/{trial}/lock.json")
    return Told(
        trial=trial,
        kernel=str(lock.body.get("contract", {}).get("name", trial)),
        outcome=str(seal["outcome"]),
        started_at=times[0],
        ended_at=times[-1],
        sealed_at=str(seal["sealed_at"]),
        inputs=inputs,
        results={path: name for path, name in sums.items() if path.startswith(f"reports/{trial}/") or path in ends},
        licence=licence,
    )


def _times(results: Path) -> Iterator[str]:
    for path in results.glob("journal/*.jsonl"):
        for line in journal.read(path):
            usage = line.event.get("usage")
            told = usage.get("finished_at") if isinstance(usage, dict) else line.event.get("at")
            if told:
                yield str(told)


def _zipped(members: Mapping[str, bytes]) -> bytes:
    written = io.BytesIO()
    with zipfile.ZipFile(written, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in members.items():
            entry = zipfile.ZipInfo(name, _THEN)
            entry.compress_type = zipfile.ZIP_DEFLATED
            entry.external_attr = 0o644 << 16
            archive.writestr(entry, data)
    return written.getvalue()
