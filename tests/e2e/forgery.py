"""What somebody with an editor and an afternoon does to a bundle, and how he makes every digest right again."""

import json
import subprocess
from pathlib import Path

from kerneltrial.dag import graph
from kerneltrial.evidence import chain, links, members
from kerneltrial.evidence.sealing import sums
from kerneltrial.evidence.signatures import SEAL, sign
from kerneltrial.store import journal
from kerneltrial.store.canonical import canonical, digest

TRIAL = "tiny"


class Bundle:
    """An unpacked bundle that can be tampered with."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.results = root / "results" / TRIAL

    def path(self, stage, iteration=0):
        return self.root / graph.record_path(TRIAL, stage, iteration)

    def edit(self, stage, iteration, change):
        """Change a record's body; its own digest is made right."""
        path = self.path(stage, iteration)
        record = json.loads(path.read_bytes())
        change(record["body"])
        self._write(path, record)

    def _write(self, path, record):
        record.pop("sha256", None)
        record["sha256"] = digest(canonical(record))
        path.write_bytes(canonical(record))

    @property
    def iterations(self):
        return json.loads((self.results / "config.json").read_bytes())["iterations"]

    def cover(self):
        """Make everything agree that digests can make agree: links, usage, journal, chain, seal, SHA256SUMS."""
        for stage, iteration in graph.jobs(self.iterations):
            if self.path(stage, iteration).is_file():
                self._relink(stage, iteration)
        (self.results / "chain.jsonl").unlink(missing_ok=True)
        self.close()

    def _relink(self, stage, iteration):
        path = self.path(stage, iteration)
        record = json.loads(path.read_bytes())
        old = digest(canonical(record["made_from"]))
        for name in record["made_from"]["inputs"]:
            file = self.root / name
            if file.is_file():
                body = json.loads(file.read_bytes())["body"] if self._is_record(name) else None
                record["made_from"]["inputs"][name] = digest(file.read_bytes() if body is None else canonical(body))
        if stage == "report":
            for name in record["body"]["files"]:
                record["body"]["files"][name] = digest((self.root / "reports" / TRIAL / name).read_bytes())
        self._write(path, record)
        self._usage(stage, iteration, old, digest(canonical(record["made_from"])))
        self._journal(stage, iteration, record)

    def _is_record(self, name):
        return name.startswith(f"results/{TRIAL}/") and "/signed/" not in name

    def _usage(self, stage, iteration, old, new):
        folder = self.results / "usage" / f"{stage}-{iteration:04d}"
        key = {"usage": stage, "iteration": iteration}
        before = folder / f"{digest(canonical({**key, 'made_from': old}))}.json"
        if old != new and before.is_file():
            entry = json.loads(before.read_bytes())
            entry["key"]["made_from"] = new
            before.unlink()
            (folder / f"{digest(canonical(entry['key']))}.json").write_bytes(canonical(entry))

    def _journal(self, stage, iteration, record):
        path = self.root / graph.fragment_path(TRIAL, stage, iteration)
        events = [line.event for line in journal.read(path)]
        last = max((n for n, event in enumerate(events) if event.get("stage") == stage), default=None)
        if last is not None:
            events[last] |= {"record": record["sha256"], "body": digest(canonical(record["body"]))}
            if "measurements" in events[last]:
                events[last]["measurements"] = sorted(links.measurements(record["body"]))
        self.journal(path, events)

    def journal(self, path, events):
        """A fragment with these events and a chain that holds."""
        path.unlink(missing_ok=True)
        for event in events:
            journal.append(path, event)

    def close(self):
        """Chain, seal and SHA256SUMS anew."""
        head = chain.extend(self.results)
        path = self.results / "signed/seal.json"
        seal = json.loads(path.read_bytes())
        for name, stage in (("lock", "lock"), ("terms", "terms"), ("decision", "decide")):
            seal[name] = digest(canonical(json.loads(self.path(stage).read_bytes())["body"]))
        seal["chain"], seal["heads"] = head, chain.heads(chain.fragments(self.results))
        path.write_bytes(canonical(seal))
        self.sums()

    def sums(self):
        (self.root / members.SUMS).write_bytes(sums(members.present(self.root)))

    def sign(self, key):
        data = (self.root / members.SUMS).read_bytes()
        (self.root / members.SUMS_SIGNATURE).write_bytes(sign(data, key, SEAL))

    def verify_sh(self, keys):
        """Exit status of the bundle's own script."""
        done = subprocess.run(["sh", str(self.root / "verify.sh"), str(keys)], capture_output=True, text=True)
        return done.returncode, done.stdout + done.stderr
