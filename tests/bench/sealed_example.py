"""A whole trial with evidence, from the lock page to the bundle, each command as a team and its reader type it.

    python tests/bench/sealed_example.py [--device cpu] [--iterations 7] [--candidates 2] [--cores 4]

It runs in a fresh copy: keys, lock, receipt, heads that are handed out while the trial runs, the application with both
kernels, seal, bundle, and `verify` at every level. It prints what each took and leaves `sealed_example.tar` under $OUT
(or the folder it runs in): the bundle, the public keys, the heads, what `verify` and `verify.sh` said. The private keys
are thrown away. Both keys are this script's, so the receipt shows how a receipt works and that nobody reviewed. For a
machine without ssh-keygen, `carry_ssh_keygen.sh` makes a folder to put on its PATH; `place_example.py` puts what came
out into reports/example/.
"""

import argparse
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
import time
from pathlib import Path

import yaml

ROOT = Path(__file__).resolve().parents[2]
TRIAL = "matmul_example"
TEAM, REVIEWER = "team-of-the-example", "no-person-a-script-signed-for-the-example"
KEPT = ("Snakefile", "config.yaml", "workflow", "kernels/matmul_f32", "cases/matmul_f32", "profiles")


class Failed(Exception):
    """A command ended badly; its output is in the log."""


class Steps:
    """Runs the commands one after another, prints a line for each, and keeps what they said."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.log, self.table = folder, [], []
        paths = [str(ROOT / "workflow"), os.environ.get("PYTHONPATH", "")]
        self.environment = {
            **os.environ, "PYTHONPATH": os.pathsep.join(filter(None, paths)),
            "XDG_CACHE_HOME": str(folder / ".cache"),
        }  # fmt: skip

    def run(self, name: str, command: list[str], ok: tuple[int, ...] = (0,)) -> str:
        """What the command printed; raises `Failed` where its exit status is none of `ok`."""
        started = time.perf_counter()
        done = subprocess.run(
            command, cwd=self.folder, env=self.environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        )
        return self.note(name, done.returncode, time.perf_counter() - started, done.stdout, ok)

    def note(self, name: str, status: int, seconds: float, said: str, ok: tuple[int, ...] = (0,)) -> str:
        line = f"| {name} | {seconds:.1f} s | {status} |"
        self.table.append(line)
        print(line, flush=True)
        self.log.append(f"== {name} (exit status {status}, {seconds:.1f} s)\n{said}\n")
        if status not in ok:
            print(said[-3000:], flush=True)
            raise Failed(name)
        return said

    def trial(self, *words: str) -> list[str]:
        return [sys.executable, "-m", "kerneltrial", *words]


def fresh(folder: Path) -> None:
    """Copy what the trial needs."""
    for name in KEPT:
        source = ROOT / name
        if source.is_dir():
            shutil.copytree(source, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(source, folder / name)


def configure(folder: Path, given: argparse.Namespace, signs: bool) -> None:
    """The shipped config, with the application and the reviewers; prices and calls stay the example that they are."""
    path = folder / "config.yaml"
    config = yaml.safe_load(path.read_text())
    config |= {
        "trial": TRIAL,
        "device": given.device,
        "iterations": given.iterations,
        "candidates_per_iteration": given.candidates,
        "application": "kernels/matmul_f32/application",
        "reviewers": "keys/reviewers" if signs else "",
        "end_to_end": {"words": ["python3", "app.py"], "measure": "printed", "pairs": given.pairs},
    }
    # a request makes 2,000 square products and 1,000 others, so these are the calls of config.yaml
    config["workload"]["invocations_per_month"] = 20_000_000
    path.write_text(yaml.safe_dump(config, sort_keys=False))


def keys(steps: Steps, people: Path) -> None:
    """Two fresh keys, the reviewers' file of the trial, and the reader's file of keys."""
    lines = {}
    for name, spaces in ((TEAM, "kerneltrial-lock,kerneltrial-seal"), (REVIEWER, "kerneltrial-receipt")):
        key = people / name
        steps.run(
            f"ssh-keygen for {name}",
            ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", name, "-f", str(key)],
        )
        kind, text, *_ = Path(f"{key}.pub").read_text().split()
        lines[name] = f'{name}@example.org namespaces="{spaces}" {kind} {text}\n'
    (people / "allowed_signers").write_text("".join(lines.values()))
    (steps.folder / "keys").mkdir()
    (steps.folder / "keys/reviewers").write_text(lines[REVIEWER])


def signed(steps: Steps, people: Path) -> None:
    """Lock page, the team's signature, the reviewer's."""
    steps.run("lock --sign", steps.trial("lock", "--sign", str(people / TEAM)))
    page = people / "lock-page.txt"
    shutil.copyfile(steps.folder / f"results/{TRIAL}/signed/lock-page.txt", page)
    steps.run(
        "ssh-keygen -Y sign (the reviewer's)",
        ["ssh-keygen", "-q", "-Y", "sign", "-n", "kerneltrial-receipt", "-f", str(people / REVIEWER), str(page)],
    )
    steps.run("receipt", steps.trial("receipt", f"{page}.sig"))


def proposed(steps: Steps, given: argparse.Namespace, people: Path) -> None:
    """The trial itself; the heads are handed out once, half-way."""
    command = [sys.executable, "-m", "snakemake", "--cores", given.cores]
    half = steps.folder / f"results/{TRIAL}/iterations/{max(1, given.iterations // 2):04d}/timing.json"
    started, handed = time.perf_counter(), ""
    with tempfile.TemporaryFile("w+") as said:
        running = subprocess.Popen(command, cwd=steps.folder, env=steps.environment, stdout=said, stderr=said)
        while running.poll() is None:
            time.sleep(0.2)
            if half.is_file() and not handed:
                handed = steps.run("heads, during the run", steps.trial("heads"))
        said.seek(0)
        steps.note(f"snakemake --cores {given.cores}", running.returncode, time.perf_counter() - started, said.read())
    (people / "heads.txt").write_text(handed or steps.run("heads, after the run", steps.trial("heads")))


def verified(steps: Steps, people: Path, signs: bool) -> None:
    """Seal and pack; then what a reader does, in a folder where nothing else is."""
    team = ["--sign", str(people / TEAM)] if signs else []
    steps.run("seal", steps.trial("seal", *team))
    bundle = people / f"{TRIAL}-evidence.tar"
    steps.run("bundle", steps.trial("bundle", "--out", str(bundle)))
    by_keys = ["--keys", str(people / "allowed_signers")] if signs else []
    heads = ["--heads", str(people / "heads.txt")]
    asked = ["verify", str(bundle), *heads, *by_keys]
    steps.run("verify, nothing compiled", steps.trial(*asked, "--recompile", "none"))
    oracle = str(ROOT / "cases/matmul_f32/oracle.py")
    said = steps.run("verify, all levels", steps.trial(*asked, "--recompile", "all", "--rerun", oracle), (0, 1))
    (people / "verify.txt").write_text(said)
    print(said)
    if signs:
        with tarfile.open(bundle) as tar:
            tar.extractall(people / "unpacked", filter="data")
        script = people / f"unpacked/{TRIAL}-evidence/verify.sh"
        (people / "verify-sh.txt").write_text(
            steps.run("verify.sh", ["sh", str(script), str(people / "allowed_signers")], (0, 1))
        )


def pack(steps: Steps, people: Path) -> Path:
    """One tar of all that may be shown; no private key is in it."""
    (people / "log.txt").write_text("\n".join(steps.log))
    (people / "steps.md").write_text("| step | time | exit status |\n| --- | --- | --- |\n" + "\n".join(steps.table))
    target = Path(os.environ.get("OUT", ".")).resolve() / "sealed_example.tar"
    names = (
        f"{TRIAL}-evidence.tar", "allowed_signers", "heads.txt", "verify.txt", "verify-sh.txt", "log.txt", "steps.md"
    )  # fmt: skip
    with tarfile.open(target, "w") as tar:
        for name in names:
            if (people / name).is_file():
                tar.add(people / name, name)
        page = steps.folder / f"reports/{TRIAL}/report.html"
        if page.is_file():
            tar.add(page, "report.html")
        for log in sorted((steps.folder / f"results/{TRIAL}/logs").rglob("*.log")):
            tar.add(log, f"logs/{log.name}")
    return target


def main() -> int:
    """Run it; 1 where a step failed, and then too the log is packed."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--device", default="auto")
    parser.add_argument("--iterations", type=int, default=7)
    parser.add_argument("--candidates", type=int, default=2)
    parser.add_argument("--pairs", type=int, default=10)
    parser.add_argument("--cores", default="4")
    given = parser.parse_args()
    signs = shutil.which("ssh-keygen") is not None
    if not signs:
        print("no ssh-keygen here: the trial is sealed without signatures and has no receipt")
    with tempfile.TemporaryDirectory(prefix="kerneltrial-example-") as scratch:
        folder, people = Path(scratch) / "trial", Path(scratch) / "people"
        folder.mkdir()
        people.mkdir(mode=0o700)
        fresh(folder)
        configure(folder, given, signs)
        steps = Steps(folder)
        failed = ""
        try:
            if signs:
                keys(steps, people)
                signed(steps, people)
            proposed(steps, given, people)
            verified(steps, people, signs)
        except Failed as fault:
            failed = str(fault)
        target = pack(steps, people)
    print(f"{target}: {target.stat().st_size / 2**20:.2f} MiB" + (f"; FAILED at: {failed}" if failed else ""))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
