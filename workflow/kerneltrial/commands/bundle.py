"""`kerneltrial bundle`: the sealed evidence as one reproducible tar file that a stranger can check offline."""

import argparse
from pathlib import Path

from kerneltrial.commands.configuration import read_config
from kerneltrial.commands.trial_records import alone, record
from kerneltrial.dag import graph
from kerneltrial.inputs.problem import InputProblem
from kerneltrial.records.lock import Lock
from kerneltrial.store.signed import Signed


def run(given: argparse.Namespace, root: Path) -> int:
    """Pack what SHA256SUMS names, and nothing else; 3 where something was changed since the seal."""
    from kerneltrial.evidence.manifest import differences, parse
    from kerneltrial.evidence.members import SUMS, SUMS_SIGNATURE, evidence
    from kerneltrial.evidence.tarball import pack
    from kerneltrial.store.signed import is_sealed

    out = (root / given.out).resolve() if given.out else None
    config, root = read_config(given, root)
    results = alone(root, config.trial)
    signed = Signed(results)
    if not is_sealed(results) or not signed.sums.is_file():
        raise InputProblem(f"{graph.results(config.trial)}: is not sealed; run `kerneltrial seal --sign KEY` first")
    members = evidence(root, config.trial, record(root, config.trial, "lock", Lock).files)
    wrong = next(differences(parse(signed.sums.read_bytes()), members), None)
    if wrong:
        raise InputProblem(f"{wrong}: changed since the seal; restore it from a copy")
    members[SUMS] = signed.sums
    if signed.sums_signature.is_file():
        members[SUMS_SIGNATURE] = signed.sums_signature
    target = out or root / f"{config.trial}-evidence.tar"
    pack(members, f"{config.trial}-evidence", target)
    print(f"{target.name}: {len(members)} files, {target.stat().st_size / 2**20:.1f} MiB")
    if SUMS_SIGNATURE not in members:
        print("it is not signed, so no check with keys will pass: `kerneltrial seal --sign KEY`, then bundle again")
    print("check it: unpack it and run `sh verify.sh ALLOWED_SIGNERS` there, or `kerneltrial verify FILE --keys FILE`")
    return 0
