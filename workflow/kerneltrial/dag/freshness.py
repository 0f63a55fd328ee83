"""What is stale: decided from digests inside the records, never from mtimes or the .snakemake folder.

`tidy` runs while the Snakefile is parsed, under the trial's lock. It sets stale records aside and takes back those that
are current again, so that Snakemake sees only *missing* and *up to date*, with its metadata or without.
"""

import os
import sys
import time
from pathlib import Path

from kerneltrial.dag import closure, graph
from kerneltrial.inputs.config import Config, sources
from kerneltrial.records.envelope import Envelope, MadeFrom
from kerneltrial.store import envelopes
from kerneltrial.store.canonical import canonical, digest

ABSENT = "0" * 64  # no file has this digest; an input that is absent makes its record stale


class Digests:
    """Digests of a job's inputs: of a source its bytes, of a record its body. Each is read once."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self._known: dict[str, str] = {}
        self._files: tuple[Config, dict[str, tuple[str, ...]]] | None = None

    def files(self, config: Config) -> dict[str, tuple[str, ...]]:
        """`inputs.sources.sources`, which parses several files: once for one config."""
        if self._files is None or self._files[0] is not config:
            self._files = (config, sources(config, self.root))
        return self._files[1]

    def source(self, path: str) -> str:
        if path not in self._known:
            file = self.root / path
            self._known[path] = digest(file.read_bytes()) if file.is_file() else ABSENT
        return self._known[path]

    def record(self, path: str) -> str:
        if path not in self._known:
            envelope = envelopes.read(self.root / path)
            self._known[path] = envelopes.body_digest(envelope) if envelope else ABSENT
        return self._known[path]

    def expect(self, path: str, envelope: Envelope) -> None:
        """The record that will lie there."""
        self._known[path] = envelopes.body_digest(envelope)

    def forget(self, path: str) -> None:
        """The record is to be made: what was made from it is stale."""
        self._known[path] = ABSENT


def made_from(config: Config, stage: str, iteration: int, digests: Digests, code: str) -> MadeFrom:
    """What a record of this job would be made from, if it were made now."""
    spec = graph.STAGES[stage]
    files = digests.files(config)
    inputs = {path: digests.source(path) for group in spec.sources for path in files.get(group, ())}
    paths = graph.record_inputs(config.trial, stage, iteration, config.iterations)
    inputs |= {path: digests.record(path) for path in paths}
    inputs |= {path: digests.source(path) for path in graph.received(config.trial, stage, digests.root)}
    again = graph.again_path(config.trial, iteration)
    if stage == "propose" and (digests.root / again).is_file():
        inputs[again] = digests.source(again)
    return MadeFrom(code=code, config=config.slice(spec.reads), inputs=inputs)


def tidy(config: Config, root: Path, dry: bool = False) -> list[str]:
    """Set stale records aside, take back those that are current again; return the names of those set aside.

    A missing file is a thing that Snakemake always sees. Current records get the mtime of their newest input, so that
    Snakemake's comparison of mtimes agrees. A `dry` one returns the same names and changes nothing.
    """
    trial, digests, gone = config.trial, Digests(root), list[str]()
    prize_is_stale = False
    for stage, iteration in graph.jobs(max([config.iterations, *graph.iterations_present(trial, root)])):
        path = graph.record_path(trial, stage, iteration)
        want = made_from(config, stage, iteration, digests, closure.code_digest(stage))
        envelope = envelopes.read(root / path)
        current = envelope is not None and envelope.made_from == want and _whole(envelope, trial, root)
        outlived = current and envelope and stage == "propose" and prize_is_stale and _withheld(envelope)
        if not dry:
            _settle(root, [], list(want.inputs))
        if not current or outlived:
            aside = _aside(root, trial, stage, iteration, want)
            kept = None if outlived else _kept(root, trial, aside, want)
            if (root / path).exists():
                gone.append(path)
                if envelope is None:
                    _say_edited(path, aside.relative_to(root) if kept else None)
                if not dry:
                    # one that has the name of what is taken back would take its place
                    _set_aside(
                        root, trial, path, None if kept and envelope and envelope.made_from == want else envelope
                    )
            if kept is None:
                digests.forget(path)
                prize_is_stale |= stage == "prize"
                continue
            digests.expect(path, kept)
            if not dry:
                _take_back(root / path, aside)
        outputs = [path, *([graph.ledger_path(trial, stage)] if graph.STAGES[stage].ledger else [])]
        if not dry:
            _settle(root, outputs, list(want.inputs))
    return gone


def _say_edited(path: str, kept: Path | None) -> None:
    """Somebody's edit goes away: it shall not do so in silence."""
    then = f"what was made before is put back from {kept}" if kept else "it is made anew"
    print(
        f"kerneltrial: {path}: was edited by hand, as its bytes are not those of its own digest; {then}",
        file=sys.stderr,
    )


def _withheld(envelope: Envelope) -> bool:
    """A proposal that was never asked for, as the prize was too small: it lives no longer than that prize."""
    return any(attempt.get("reason") == "prize_too_small" for attempt in envelope.body["attempts"])


def _whole(envelope: Envelope, trial: str, root: Path) -> bool:
    """A report's record is current only while the files that it names are what they were."""
    if envelope.stage != "report":
        return True
    folder = root / graph.reports(trial)
    files = {name: folder / name for name in envelope.body["files"]}
    return all(p.is_file() and digest(p.read_bytes()) == envelope.body["files"][n] for n, p in files.items())


def _aside(root: Path, trial: str, stage: str, iteration: int, want: MadeFrom) -> Path:
    name = f"{stage}-{iteration:04d}-{digest(canonical(want))[:32]}.json"
    return root / graph.results(trial) / "aside" / name


def _set_aside(root: Path, trial: str, path: str, envelope: Envelope | None) -> None:
    if envelope is None or graph.STAGES[envelope.stage].ledger:
        # torn, or a record that speaks of its own history: never taken back
        (root / path).unlink()
        return
    aside = _aside(root, trial, envelope.stage, envelope.iteration, envelope.made_from)
    aside.parent.mkdir(exist_ok=True)
    os.replace(root / path, aside)


def _kept(root: Path, trial: str, aside: Path, want: MadeFrom) -> Envelope | None:
    """The record that was set aside and is current again, if any."""
    envelope = envelopes.read(aside)
    current = envelope is not None and envelope.made_from == want and _whole(envelope, trial, root)
    return envelope if current else None


def _take_back(path: Path, aside: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    os.replace(aside, path)


def _settle(root: Path, outputs: list[str], inputs: list[str]) -> None:
    """No mtime lies in the future (Snakemake fails a job whose input is newer than its output), no input is newer."""
    now = time.time_ns()
    present = [name for name in [*inputs, *outputs] if (root / name).exists()]
    times = {name: min((root / name).stat().st_mtime_ns, now) for name in present}
    newest = max((times[name] for name in inputs if name in times), default=0)
    for name, mtime in times.items():
        wanted = max(mtime, newest) if name in outputs else mtime
        if wanted != (root / name).stat().st_mtime_ns:
            os.utime(root / name, ns=(wanted, wanted))
