"""Put what `sealed_example.py` left into reports/example/, with a page whose figures are read off the bundle.

    python tests/bench/place_example.py sealed_example.tar [--to reports/example]

The bundle is verified first, by the keys and the heads that came with it; it is refused where a level finds a problem,
and where the trial ran without a reviewer's receipt from before its first proposal.
"""

import argparse
import json
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path
from typing import Any

from kerneltrial.evidence.tarball import unpack

ROOT = Path(__file__).resolve().parents[2]
TRIAL = "matmul_example"
BUNDLE = f"{TRIAL}-evidence.tar"

PAGE = """\
# A sealed example

A trial of the shipped matmul on one **{name}** (driver {driver}, NVRTC {nvrtc}), {iterations} iterations
of {candidates} candidates, run on {day} by `tests/bench/sealed_example.py` (`{command}`: {seconds} s), with an
application around the kernel (`kernels/matmul_f32/application/app.py`). It ended **{outcome}**; {passed} of
{rules} rules passed. Open:

{open}

{figures}

`report.html` is the report as it lies in the bundle. The bundle is {size:.1f} MiB: every source, PTX and cubin
of {attempts} candidates, {measurements} measurements with their raw samples, the journal, receipt and seal. Check it:

```bash
kerneltrial verify reports/example/{bundle} --keys reports/example/allowed_signers --heads reports/example/heads.txt
tar xf reports/example/{bundle} && sh {trial}-evidence/verify.sh reports/example/allowed_signers
kerneltrial rerun {trial}-evidence/reports/{trial}/best-case-1.json
```

What to know of it. The order is that of a real trial: lock, page signed by the team, page signed for a reviewer,
receipt ({received}), first proposal, heads handed out half-way, decision, seal. But the keys of
team and reviewer (`{reviewer}`) are a script's, made for this
example and thrown away: **nobody reviewed it**. That public keys lie here, beside the bundle, is against the
rule that keys come from people. The signatures show the mechanics alone.

Verified on the machine of the trial, all candidates compiled again, winner and baseline judged again:

```text
{verified}
```

With compilers of another version nothing is compiled again, and `verify` says so. A test verifies this bundle at
every level that needs no card.
"""


SHOWN = {
    "confirmed_speedup": "speedup over the baseline, confirmed",
    "vendor_not_faster": "against vendor libraries",
    "end_to_end_evidence": "the application, by request",
}


def read(folder: Path, name: str) -> dict[str, Any]:
    """The body of a record of the trial, or the receipt itself."""
    found: dict[str, Any] = json.loads((folder / f"results/{TRIAL}/{name}.json").read_bytes())
    return found.get("body", found)


def page(folder: Path, came: Path) -> str:
    """README.md of the example; `came` holds what lay beside the bundle."""
    lock, decision, receipt = read(folder, "lock"), read(folder, "decision"), read(folder, "signed/receipt")
    rules = decision["rules"]
    unsettled = [rule for rule in rules if rule["result"] != "passed"]
    command, seconds = re.findall(
        r"^\| (snakemake[^|]*) \| ([0-9.]+) s", (came / "steps.md").read_text(), re.MULTILINE
    )[0]
    seen = {rule["rule"]: rule["seen"] for rule in rules}
    figures = "\n".join(f"| {words} | {seen[rule]} |" for rule, words in SHOWN.items())
    return PAGE.format(
        name=lock["device"]["name"],
        driver=lock["device"]["fingerprint"].get("driver", "none"),
        nvrtc=lock["toolchain"]["nvidia-cuda-nvrtc"],
        iterations=read(folder, "terms")["first"]["iterations"],
        candidates=lock["candidates_per_iteration"],
        day=receipt["received_at"][:10],
        seconds=round(float(seconds)),
        command=command,
        outcome=decision["outcome"],
        passed=len(rules) - len(unsettled),
        rules=len(rules),
        open="\n".join(f"- `{rule['rule']}`: {rule['result']}; {rule['seen']}" for rule in unsettled),
        figures=f"| figure | value |\n| --- | --- |\n{figures}",
        size=(came / BUNDLE).stat().st_size / 2**20,
        attempts=len(decision["milestones"]),
        measurements=re.findall(r"(\d+) measurements", (came / "verify.txt").read_text())[0],
        bundle=BUNDLE,
        trial=TRIAL,
        received=receipt["received_at"],
        reviewer=receipt["reviewer"],
        verified=(came / "verify.txt").read_text().strip(),
    )


def problems(folder: Path, came: Path) -> str:
    """Why this is no example to show, or nothing."""
    keys, heads = str(came / "allowed_signers"), str(came / "heads.txt")
    words = [sys.executable, "-m", "kerneltrial", "verify", str(came / BUNDLE), "--keys", keys, "--heads", heads]
    done = subprocess.run(words, capture_output=True, text=True)
    if done.returncode:
        return f"verify ends with {done.returncode}:\n{done.stdout}{done.stderr}"
    receipt = [rule for rule in read(folder, "decision")["rules"] if rule["rule"] == "reviewer_receipt"]
    return "" if receipt and receipt[0]["result"] == "passed" else "there is no reviewer's receipt that counts"


def main() -> None:
    """Unpack, verify, write."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("tar", type=Path)
    parser.add_argument("--to", type=Path, default=ROOT / "reports/example")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="kerneltrial-example-") as scratch:
        came = Path(scratch) / "came"
        with tarfile.open(given.tar) as tar:
            tar.extractall(came, filter="data")
        folder = unpack(came / BUNDLE, Path(scratch))
        if why := problems(folder, came):
            sys.exit(f"{given.tar}: not placed: {why}")
        given.to.mkdir(parents=True, exist_ok=True)
        for name in (BUNDLE, "allowed_signers", "heads.txt", "report.html"):
            shutil.copyfile(came / name, given.to / name)
        (given.to / "README.md").write_text(page(folder, came))
    print(f"{given.to}: placed; look at it with `git diff --stat`, and run tests/e2e/test_e2e_example.py")


if __name__ == "__main__":
    main()
