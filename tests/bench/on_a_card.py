"""Reproduce the project's figures on the card of this machine: one run, one folder, one table.

    python tests/bench/on_a_card.py --out FOLDER [--only a,b] [--budget-s N] [--trial-python PATH] [--commit WORD]
    python tests/bench/on_a_card.py --list

Parts are benches and groups of `tests/gpu` (`card_parts.py`), and run in the order of the table, or of `--only`.
Nothing runs beside what is timed. With a budget a part is begun only where its expected time still fits. A part that
fails or overruns its limit is told and the next begins. After each part `summary.json` and `summary.md` in FOLDER hold
all that is known, so a run that is killed leaves them too; FOLDER also has a log, a JSON file and a folder of each.
Where torch is installed a trial takes time to compare with it, which is not asked of the default one: trials run in an
environment that links all of this one but torch, or with the interpreter that `--trial-python` names.
The exit status is 1 where a part failed or a figure was not reached, 2 where there is no card. Needs an NVIDIA card.
"""

import argparse
import datetime
import json
import os
import signal
import subprocess
import sys
import sysconfig
import venv
from collections.abc import Sequence
from pathlib import Path

import card_runs
import card_summary
from card_parts import PARTS, Part
from card_runs import ROOT, Outcome, Session, run_all

_PROBE = """
import json
from kerneltrial.devices.cuda.probe import probe
found = probe()
print(json.dumps({"card": found.name, "arch": found.arch, "driver": found.fingerprint.get("driver", "unknown")}))
"""


def main() -> int:
    given = _arguments()
    parts = chosen(given.only, PARTS)
    if given.list:
        print(listed(parts, given.side_by_side))
        return 0
    about, why = card()
    if why:
        print(f"no card: {why}", file=sys.stderr)
        return 2
    about |= {"cores": str(len(os.sched_getaffinity(0))), "commit": given.commit or commit()}
    given.out.mkdir(parents=True, exist_ok=True)
    trial_python = given.trial_python or (
        str(without_torch(given.out.resolve() / "environment")) if card_runs.there("torch") else sys.executable
    )
    session = Session(given.out.resolve(), trial_python, given.budget_s, given.side_by_side)
    return 1 if card_summary.bad(measured(parts, session, about)) else 0


def measured(parts: Sequence[Part], session: Session, about: dict[str, str]) -> list[Outcome]:
    """Run the parts; a line for each and the table at the end. SIGTERM ends what runs, not the summary."""

    def ended(outcome: Outcome) -> None:
        found = list(session.outcomes.values())
        waiting = [part.name for part in parts if part.name not in session.outcomes]
        about["load"] = f"{os.getloadavg()[0]:.1f}"
        card_summary.write(session.folder, about, found, waiting)
        print(f"{outcome.part.name}: {outcome.state} {outcome.why} {outcome.seconds:.1f} s", flush=True)

    def stopped(number: int, frame: object) -> None:
        session.end()
        sys.exit(128 + number)

    before = signal.signal(signal.SIGTERM, stopped)
    try:
        run_all(parts, session, ended)
    finally:
        signal.signal(signal.SIGTERM, before)
    found = list(session.outcomes.values())
    print("\n" + card_summary.write(session.folder, about, found, []), flush=True)
    return found


def chosen(only: str, parts: Sequence[Part]) -> list[Part]:
    """The parts that are named, in that order, or all; exits with one line where a name is none."""
    by_name = {part.name: part for part in parts}
    names = only.split(",") if only else list(by_name)
    unknown = [name for name in names if name not in by_name]
    if unknown:
        sys.exit(f"{unknown[0]!r} is no part: {', '.join(by_name)}")
    return [by_name[name] for name in names]


def listed(parts: Sequence[Part], side_by_side: int) -> str:
    """The table of parts for people."""
    lines = [f"{'part':20s} {'s':>4s}  beside  needs"]
    for part in parts:
        needs = ", ".join((*(need.removeprefix(":") for need in part.needs), *part.after))
        lines.append(f"{part.name:20s} {part.seconds:4.0f}  {'yes' if part.beside else 'no':6s}  {needs}")
        lines.append(f"    {part.words}")
    return "\n".join([*lines, f"in all about {card_runs.expected(parts, side_by_side):.0f} s"])


def without_torch(folder: Path) -> Path:
    """The interpreter of a new environment with links to all packages of this one but torch and its compiler."""
    venv.EnvBuilder(symlinks=True, clear=True).create(folder)
    base = {"base": str(folder), "platbase": str(folder)}
    target = Path(sysconfig.get_path("purelib", vars=base))
    for source in dict.fromkeys(sysconfig.get_path(name) for name in ("purelib", "platlib")):
        for entry in Path(source).iterdir():
            if not entry.name.startswith(("torch", "functorch", "triton")) and not (target / entry.name).exists():
                (target / entry.name).symlink_to(entry)
    return folder / "bin" / "python"


def card() -> tuple[dict[str, str], str]:
    """What the card is, told by a child, or why there is none."""
    environment = card_runs.environment(Path(os.devnull))
    done = subprocess.run([sys.executable, "-c", _PROBE], capture_output=True, text=True, env=environment)
    if done.returncode:
        return {}, done.stderr.strip().splitlines()[-1] if done.stderr.strip() else f"status {done.returncode}"
    today = datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%d %H:%M UTC")
    return {**json.loads(done.stdout.splitlines()[-1]), "date": today}, ""


def commit() -> str:
    """What git calls this version, or that it does not know."""
    words = ["git", "describe", "--always", "--dirty", "--abbrev=7"]
    try:
        done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True)
    except OSError:
        return "unknown"
    return done.stdout.strip() or "unknown"


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--list", action="store_true", help="the parts, their commands and expected seconds")
    parser.add_argument("--only", default="", help="parts by name, by commas, in this order")
    parser.add_argument("--out", type=Path, default=Path("card_figures"))
    parser.add_argument("--budget-s", type=float, default=float("inf"))
    parser.add_argument("--trial-python", default="")
    parser.add_argument("--commit", default="", help="what to call this version, where git does not know")
    parser.add_argument("--side-by-side", type=int, default=max(1, len(os.sched_getaffinity(0)) // 4))
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
