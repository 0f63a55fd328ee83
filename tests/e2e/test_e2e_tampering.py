"""What is caught by which level, without the team's key and with it: the table in workflow/adr/0020-evidence.md.

The table is compared with what happens here, so that the documents claim no more and no less.
"""

import json
import re
import shutil
import sys
import tarfile
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
from forgery import Bundle

from kerneltrial.commands.verify import look
from kerneltrial.dag import graph
from kerneltrial.evidence.lock_page import lock_page
from kerneltrial.evidence.sealed import Brought, revealed_salt
from kerneltrial.evidence.tarball import unpack
from kerneltrial.inputs.config import read
from kerneltrial.records.envelope import SCHEMA_VERSION
from kerneltrial.records.lock import Lock
from kerneltrial.records.terms import Terms
from kerneltrial.stages.code_folder import CodeFolder
from kerneltrial.stages.judged_again import judged_again
from kerneltrial.stages.recompiled import recompiled
from kerneltrial.stages.running import run_stage
from kerneltrial.store import journal
from kerneltrial.store.canonical import canonical, convert, digest

pytestmark = pytest.mark.e2e
ADR = Path(__file__).parents[2] / "workflow/adr/0020-evidence.md"


@pytest.fixture
def bundle(sealed, tmp_path):
    return Bundle(unpack(sealed.folder / "bundle.tar", tmp_path))


def edit_a_figure(bundle):
    def better(body):
        body["candidates"][0]["geometric_mean"] *= 2

    bundle.edit("time", 3, better)
    bundle.cover()


def edit_the_config(bundle):
    path = bundle.results / "config.json"
    config = json.loads(path.read_bytes())
    config["seed"] += 1
    path.write_bytes(canonical(config))
    bundle.cover()


def edit_the_decision(bundle):
    bundle.edit("decide", 0, lambda body: body["spent"].update(total_usd="1"))
    bundle.cover()


def delete_a_rejected_attempt(bundle):
    shutil.rmtree(bundle.results / "iterations/0002")
    for path in [*bundle.results.glob("journal/*-0002.jsonl"), *bundle.results.glob("usage/*-0002")]:
        shutil.rmtree(path) if path.is_dir() else path.unlink()
    bundle.cover()


def swap_kernels(bundle):
    two, three = (
        json.loads(bundle.path("build", i).read_bytes())["body"]["candidates"][0] for i in (2, 3)
    )  # b_wrong and c_wide
    for iteration, other in ((2, three), (3, two)):
        bundle.edit(
            "build", iteration, lambda body, other=other: body["candidates"][0].update(
                {key: other[key] for key in ("ptx", "cubin", "log")}
            )
        )  # fmt: skip
    bundle.cover()


def truncate_the_journal(bundle):
    path = bundle.results / "journal/decide.jsonl"
    lines = [line.event for line in journal.read(path)]
    path.unlink()
    bundle.journal(path, lines[:-1])
    (bundle.results / "chain.jsonl").unlink()
    bundle.close()


def reorder_the_chain(bundle):
    path = bundle.results / "chain.jsonl"
    links = [json.loads(line) for line in path.read_bytes().splitlines()]
    swapped, previous, text = [*links[:2], links[3], links[2], *links[4:]], "", b""
    for link in swapped:
        link["previous"] = previous
        text += canonical(link)
        previous = digest(canonical(link))
    path.write_bytes(text)
    bundle.close()


def splice_in_an_older_record(bundle):
    record = json.loads(bundle.path("cost", 2).read_bytes())
    record["iteration"] = record["body"]["iteration"] = 3
    own = json.loads(bundle.path("cost", 3).read_bytes())
    record["made_from"] = own["made_from"]
    bundle._write(bundle.path("cost", 3), record)
    bundle.cover()


def add_a_file(bundle):
    (bundle.results / "objects/more.txt").write_text("more")
    bundle.sums()


def lock_again_afterwards(bundle):
    bundle.edit("lock", 0, lambda body: body["protocol"].update(rounds=10))
    lock = json.loads(bundle.path("lock").read_bytes())["body"]
    (bundle.results / "ledger/lock.jsonl").write_bytes(canonical(lock))
    terms = convert(Terms, json.loads(bundle.path("terms").read_bytes())["body"])
    (bundle.results / "signed/lock-page.txt").write_bytes(lock_page(convert(Lock, lock), terms.now))
    bundle.cover()


def measurement(bundle, change):
    """Change a candidate's counts; the record points to the new file."""
    case = json.loads(bundle.path("time", 3).read_bytes())["body"]["candidates"][0]["cases"][0]
    name = case["samples"]
    path = next(p for p in bundle.results.glob("measurements/*.json") if digest(p.read_bytes()) == name)
    entry = json.loads(path.read_bytes())
    change(entry["value"])
    path.chmod(0o644)
    path.write_bytes(canonical(entry))
    return name, digest(path.read_bytes()), entry["value"]


def fewer(value):
    value["global_transactions"] = value["global_transactions"] // 2


def falsify_a_sample(bundle):
    old, new, value = measurement(bundle, fewer)
    assert old != new

    def point(body):
        body["candidates"][0]["cases"][0].update(samples=new, counts=value)

    bundle.edit("time", 3, point)
    bundle.cover()


def falsify_a_sample_and_make_all_after_it_anew(bundle):
    """And what was made before it is forgotten."""
    for stage, iteration in REMADE:
        (bundle.root / graph.fragment_path("tiny", stage, iteration)).unlink()
        shutil.rmtree(bundle.results / f"usage/{stage}-{iteration:04d}")
    (bundle.results / "chain.jsonl").unlink()
    measure_until_it_pleases(bundle)


REMADE = (("time", 3), ("cost", 3), ("confirm", 0), ("decide", 0), ("report", 0))


def measure_until_it_pleases(bundle):
    """What removing a measurement and running on gives, where the second one is luckier."""
    measurement(bundle, fewer)
    salt = json.loads((bundle.results / "signed/seal.json").read_bytes())["salt"]
    (bundle.results / "private").mkdir()
    (bundle.results / "private/holdout-salt").write_bytes(bytes.fromhex(salt))
    config = read(bundle.results / "config.json", {}, bundle.root)
    seal = bundle.results / "signed/seal.json"
    kept = seal.read_bytes()
    seal.unlink()
    for stage, iteration in REMADE:
        code = json.loads(bundle.path(stage, iteration).read_bytes())["made_from"]["code"]
        run_stage(config, stage, iteration, code, bundle.root)
    seal.write_bytes(kept)
    for made in ("private", "cache"):
        shutil.rmtree(bundle.results / made, ignore_errors=True)
    bundle.close()


def decided_anew(bundle, stages):
    """The records after one that was edited, as its stages make them."""
    bundle.cover()
    config = read(bundle.results / "config.json", {}, bundle.root)
    seal = bundle.results / "signed/seal.json"
    kept = seal.read_bytes()
    seal.unlink()
    for stage in stages:
        code = json.loads(bundle.path(stage).read_bytes())["made_from"]["code"]
        run_stage(config, stage, 0, code, bundle.root)
    seal.write_bytes(kept)
    shutil.rmtree(bundle.results / "private", ignore_errors=True)
    bundle.cover()


def edit_the_ratio_and_decide_anew(bundle):
    bundle.edit("confirm", 0, lambda body: body["outcome"].update(ratio=7.5))
    decided_anew(bundle, ("decide", "report"))


def edit_a_verdict_and_decide_anew(bundle):
    def disagrees(body):
        assert body["second_opinion"]["agrees"]  # the starter has a reference
        body["second_opinion"].update(agrees=False, detail="disagrees")

    bundle.edit("qualify", 0, disagrees)
    decided_anew(bundle, ("prize", "decide", "report"))


def say_another_version(bundle):
    for stage, iteration in graph.jobs(bundle.iterations):
        record = json.loads(bundle.path(stage, iteration).read_bytes())
        record["schema_version"] = SCHEMA_VERSION + 1
        bundle._write(bundle.path(stage, iteration), record)
    bundle.cover()


def replace_the_key(bundle):
    """Everything is as it was, and someone else signs for it."""


TAMPERINGS = {
    "edit a figure in a record": edit_a_figure,
    "edit the config of the run": edit_the_config,
    "edit the decision": edit_the_decision,
    "delete a rejected attempt": delete_a_rejected_attempt,
    "swap two kernels": swap_kernels,
    "truncate the journal": truncate_the_journal,
    "reorder the journal's chain": reorder_the_chain,
    "splice in a record of an older state": splice_in_an_older_record,
    "replace the key": replace_the_key,
    "add a file": add_a_file,
    "lock again afterwards": lock_again_afterwards,
    "falsify a sample": falsify_a_sample,
    "remove a measurement and measure again until it pleases": measure_until_it_pleases,
    "falsify a sample and make all after it anew": falsify_a_sample_and_make_all_after_it_anew,
    "edit the ratio of the confirmation and decide anew": edit_the_ratio_and_decide_anew,
    "edit a verdict of judging and decide anew": edit_a_verdict_and_decide_anew,
    "say that the records are of another version": say_another_version,
}
ORDER = ("bytes", "signatures", "derivation", "decision")


def caught_by(bundle, people, heads=None, recompile=False):
    """The levels that name a problem, as `verify BUNDLE --keys …` looks at them, with `--recompile all` on demand."""
    config = read(bundle.results / "config.json", {}, bundle.root)
    verdict = look(config, bundle.root, Brought(keys=people / "signers", heads=heads), bundle=True)
    found = {level for level, lines in verdict.problems.items() if lines}
    if recompile and recompiled(config, bundle.root, every=True).problems:
        found |= {"derivation"}
    return ", ".join(level for level in ORDER if level in found) or "nothing"


def table():
    """What the document says: by tampering, (without the key, with it)."""
    rows = re.findall(r"^\| ([^|]+) \| ([^|]+) \| ([^|]+) \|$", ADR.read_text(), re.MULTILINE)
    return {name: (without, with_key) for name, without, with_key in rows[2:]}


def test_the_table_has_a_row_for_everything_that_is_tried_here():
    older = {"present a whole older run", "make a second, hidden run under one lock"}
    assert set(table()) == set(TAMPERINGS) | older | {f"{name}, heads handed out" for name in older}


@pytest.mark.parametrize("name", TAMPERINGS)
def test_each_level_catches_what_the_table_says(name, bundle, people):
    TAMPERINGS[name](bundle)
    if name == "replace the key":
        bundle.sign(people / "stranger")
    sources = name in ("swap two kernels", "falsify a sample and make all after it anew")  # what compiling could tell
    without = caught_by(bundle, people, recompile=sources)
    status, said = bundle.verify_sh(people / "signers")
    assert status == 1, said  # the old signature is not one of the new sums
    if name == "replace the key":
        assert (without, without) == table()[name]
        return
    bundle.sign(people / "team")
    assert (without, caught_by(bundle, people, recompile=sources)) == table()[name]


def test_without_covering_up_the_bytes_alone_tell(bundle, people):
    assert bundle.verify_sh(people / "signers")[0] == 0
    path = bundle.path("time", 3)
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(bytes(data))
    status, said = bundle.verify_sh(people / "signers")
    assert (status, "timing.json: FAILED" in said) == (1, True)
    assert "bytes" in caught_by(bundle, people)


@pytest.mark.parametrize(
    "gone", [["SHA256SUMS.sig"], ["SHA256SUMS.sig", "SHA256SUMS", "results/tiny/signed/seal.json"]]
)
def test_to_take_the_seal_away_hides_nothing_from_who_brings_keys(bundle, people, gone):
    """Else whoever has no key would edit a verdict, and leave out the one signature that is over it."""
    edit_a_verdict_and_decide_anew(bundle)
    for name in gone:
        (bundle.root / name).unlink()
    assert caught_by(bundle, people) == "signatures"
    assert bundle.verify_sh(people / "signers")[0] == 1


def test_a_file_too_many_or_too_few_is_named_by_the_script(bundle, people):
    extra = bundle.root / "extra"
    extra.symlink_to("/etc/passwd")
    status, said = bundle.verify_sh(people / "signers")
    assert (status, "extra" in said) == (1, True)
    extra.unlink()
    next(bundle.results.glob("objects/sha256/*/*")).unlink()
    assert bundle.verify_sh(people / "signers")[0] == 1


def another_run(bundle):
    """The decision made once more under the same lock: as whole as the first, with other lines in its journal."""
    config = read(bundle.results / "config.json", {}, bundle.root)
    seal = bundle.results / "signed/seal.json"
    kept = seal.read_bytes()
    seal.unlink()
    for name in ("journal/decide.jsonl", "journal/report.jsonl", "chain.jsonl"):
        (bundle.results / name).unlink()
    for stage in ("decide", "report"):
        shutil.rmtree(bundle.results / f"usage/{stage}-0000")
        code = json.loads(bundle.path(stage).read_bytes())["made_from"]["code"]
        run_stage(config, stage, 0, code, bundle.root)
    shutil.rmtree(bundle.results / "private", ignore_errors=True)
    seal.write_bytes(kept)
    bundle.close()


def test_another_run_under_the_same_lock_is_told_only_by_heads_that_were_handed_out(sealed, bundle, people, tmp_path):
    heads = tmp_path / "heads.txt"
    handed = sealed.kerneltrial("heads")
    assert handed.returncode == 0
    heads.write_text(handed.stdout)
    assert caught_by(bundle, people, heads) == "nothing"
    another_run(bundle)
    without = caught_by(bundle, people)
    bundle.sign(people / "team")
    with_key, by_heads = caught_by(bundle, people), caught_by(bundle, people, heads)
    said = table()
    hidden, older = "make a second, hidden run under one lock", "present a whole older run"
    assert said[hidden] == (without, with_key)
    assert said[f"{hidden}, heads handed out"] == (f"{by_heads}, {without}", by_heads)
    # an older run was sealed by the team in its time: whoever presents it needs no key
    assert said[older] == (with_key, with_key)
    assert said[f"{older}, heads handed out"] == (by_heads, by_heads)


def test_keys_that_lie_in_the_bundle_count_for_nothing(bundle, people):
    shutil.copyfile(people / "signers", bundle.root / "signers")
    status, said = bundle.verify_sh(bundle.root / "signers")
    assert (status, "the keys lie in the bundle" in said) == (1, True)


def test_an_expired_or_foreign_key_is_refused(bundle, people, tmp_path):
    lines = (people / "signers").read_text()
    expired = tmp_path / "expired"
    expired.write_text(lines.replace("namespaces=", 'valid-before="20260101",namespaces='))
    assert bundle.verify_sh(expired)[0] == 1
    foreign = tmp_path / "foreign"
    foreign.write_text(lines.splitlines()[0] + "\n")
    assert bundle.verify_sh(foreign)[0] == 1


def test_a_bundle_verifies_from_the_command_line_and_is_judged_again(sealed, people):
    oracle = sealed.folder / "cases/scale_add/oracle.py"
    done = sealed.kerneltrial(
        "verify", "bundle.tar", "--keys", str(people / "signers"), "--recompile", "all", "--rerun", str(oracle)
    )
    assert done.returncode == 0, done.stdout + done.stderr
    for words in (
        "the seal by team@example.org",
        "the receipt by rita@example.org",
        "all 2 compiled again",
        "rerun       ok",
    ):
        assert words in done.stdout
    with tarfile.open(sealed.folder / "bundle.tar") as tar:
        assert not any("/cache/" in name for name in tar.getnames())
    other = sealed.kerneltrial("verify", "bundle.tar", "--rerun", "cases/scale_add/cases.yaml")
    assert (other.returncode, "is not the locked oracle" in other.stderr) == (3, True)


def test_code_in_a_bundle_is_neither_run_nor_passed_over_and_judging_again_writes_nothing(bundle, people):
    """Code of the right kernel under the name of the wrong one would make the wrong one right."""
    config = read(bundle.results / "config.json", {}, bundle.root)
    salt = revealed_salt(bundle.results)
    asked = []
    original = CodeFolder.known
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(CodeFolder, "known", lambda shelf, binary: asked.append(binary) or original(shelf, binary))
        before = sorted(bundle.root.rglob("*"))
        assert list(judged_again(config, bundle.root, salt, bundle.root / "cases/scale_add/oracle.py")) == []
    assert (asked, sorted(bundle.root.rglob("*"))) == ([], before)
    forged = bundle.results / "cache/machine-code/0.code"
    forged.parent.mkdir(parents=True)
    forged.write_bytes(b"code")
    bundle.sums()
    bundle.sign(people / "team")
    assert caught_by(bundle, people) == "bytes"
    status, said = bundle.verify_sh(people / "signers")
    assert (status, "cache" in said) == (1, True)


def test_a_sealed_trial_is_over(sealed, tmp_path):
    trial = sealed.copy(tmp_path / "again")
    more = trial.snakemake("--config", "iterations=4")
    assert more.returncode != 0
    assert "is sealed" in more.stdout + more.stderr
    by_hand = trial.kerneltrial("decide")
    assert (by_hand.returncode, "is sealed" in by_hand.stderr) == (3, True)
    late = trial.kerneltrial("receipt", "bundle.tar")
    assert (late.returncode, "proposals were made already" in late.stderr) == (3, True)


def test_the_reviewers_receipt_passes_its_rule(finished):
    decision = json.loads((finished.results / "decision.json").read_bytes())["body"]
    rule = next(rule for rule in decision["rules"] if rule["rule"] == "reviewer_receipt")
    assert (rule["result"], rule["seen"]) == ("passed", "signed by rita@example.org")
    assert [graph.STAGES[name].receipt for name in ("decide", "propose")] == [True, False]
