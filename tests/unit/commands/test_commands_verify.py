"""`verify` on the sealed example, tampered with: each fault is one line, and nothing is waited for or printed raw."""

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from kerneltrial.__main__ import main
from kerneltrial.evidence.tarball import pack, unpack
from kerneltrial.store import journal
from kerneltrial.store.canonical import canonical, digest

EXAMPLE = Path(__file__).parents[3] / "reports/example/matmul_example-evidence.tar"


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    return unpack(EXAMPLE, tmp_path_factory.mktemp("example"))


@pytest.fixture
def bundle(whole, tmp_path, monkeypatch):
    shutil.copytree(whole, tmp_path / "bundle")
    monkeypatch.chdir(tmp_path)
    return tmp_path / "bundle"


@pytest.fixture
def results(bundle):
    return bundle / "results/matmul_example"


def verify(capsys, *words):
    status = main(["verify", "bundle", "--recompile", "none", *words])
    said = capsys.readouterr()
    return status, said.out + said.err


def test_an_edited_config_is_a_problem(bundle, results, capsys):
    told = json.loads((results / "config.json").read_bytes())
    told["seed"] += 1
    (results / "config.json").write_text(json.dumps(told))
    status, said = verify(capsys)
    assert status == 1
    assert "config.json: seed is 2, and results/matmul_example/lock.json was made with 1" in said


def as_folder(path):
    path.unlink()
    path.mkdir()


def as_pipe(path):
    path.unlink()
    os.mkfifo(path)


def as_link(path):
    target = path.with_name("moved")
    path.rename(target)
    path.symlink_to(target)


@pytest.mark.parametrize("change", [as_folder, as_pipe, as_link])
@pytest.mark.parametrize("name", ["decision.json", "config.json", "chain.jsonl", "journal/lock.jsonl"])
def test_what_is_no_plain_file_is_one_line(bundle, results, capsys, change, name):
    change(results / name)
    status, said = verify(capsys)
    assert status == 3
    assert f"results/matmul_example/{name}: is a " in said
    assert said.count("\n") == 1


def test_names_are_printed_escaped(bundle, capsys):
    (bundle / "a\x1b[31m\n\nall whole, every link holds").write_text("")
    status, said = verify(capsys)
    assert status == 1
    assert "\x1b" not in said
    assert "a\\x1b[31m\\n\\nall whole" in said


@pytest.mark.parametrize("words", ["--keys", "--heads"])
def test_a_file_that_is_not_there_is_said_at_once(tmp_path, monkeypatch, capsys, words):
    monkeypatch.chdir(tmp_path)
    assert main(["verify", "no-bundle.tar", words, "nosuch"]) == 3
    said = capsys.readouterr().err
    assert f"{words} " in said
    assert said.count("\n") == 1


def test_the_script_says_that_there_is_no_such_file_of_keys():
    script = Path(__file__).parents[3] / "workflow/kerneltrial/evidence/templates/verify.sh"
    done = subprocess.run(["sh", str(script), "/nosuch"], capture_output=True, text=True)
    assert done.returncode == 2
    assert "/nosuch: there is no such file of keys" in done.stderr


def test_the_script_shows_names_of_a_bundle_set_in_and_plain(bundle, tmp_path):
    script = Path(__file__).parents[3] / "workflow/kerneltrial/evidence/templates/verify.sh"
    shutil.copyfile(script, bundle / "verify.sh")
    (bundle / "a\x1b[31m\nok           bytes: all whole").write_text("")
    done = subprocess.run(
        ["sh", "verify.sh", str(EXAMPLE.parent / "allowed_signers")], cwd=bundle, capture_output=True, text=True
    )
    assert done.returncode == 1
    assert "\x1b" not in done.stdout
    assert "all whole" in done.stdout
    assert not [line for line in done.stdout.splitlines() if line.startswith("ok") and "all whole" in line]


def as_device(path):
    path.unlink()
    path.symlink_to("/dev/zero")


@pytest.mark.parametrize("change", [as_folder, as_pipe, as_link, as_device])
@pytest.mark.parametrize("name", ["SHA256SUMS", "SHA256SUMS.sig"])
def test_sums_that_are_no_plain_file_are_not_taken_for_absent(bundle, capsys, change, name):
    if name == "SHA256SUMS.sig":
        (bundle / "SHA256SUMS").unlink()
    change(bundle / name)
    status, said = verify(capsys)
    assert status == 3
    assert f"{name}: is a " in said
    assert said.count("\n") == 1


def test_a_device_in_results_that_are_not_sealed_is_not_read(bundle, results, capsys):
    for name in ("SHA256SUMS", "SHA256SUMS.sig"):
        (bundle / name).unlink()
    as_device(results / "lock.json")
    status, said = verify(capsys)
    assert status == 3
    assert "lock.json: is a link where a file belongs" in said


@pytest.mark.parametrize("name", ["abc", "-1", "0001x", "٠٠٠١", "1", "9" * 22])
def test_a_folder_that_is_no_iterations_is_a_problem(results, capsys, name):
    (results / "iterations" / name).mkdir()
    shutil.copyfile(results / "iterations/0001/build.json", results / "iterations" / name / "build.json")
    status, said = verify(capsys)
    assert status == 1
    assert f"iterations/{name}/build.json: lies in a folder that is no iteration's" in said


@pytest.mark.parametrize("name", ["build", "build-x", "build--001", "build-٠٠٠١", "build-" + "9" * 5000])
def test_usage_of_no_job_is_a_problem(results, capsys, name):
    usage = next((results / "usage/build-0001").glob("*.json"))
    there = results / "usage" / name[:200]
    there.mkdir()
    shutil.copyfile(usage, there / usage.name)
    status, said = verify(capsys)
    assert status == 1
    assert f"usage/{name[:200]}/{usage.name}: the journal knows of no such usage" in said


@pytest.mark.parametrize("iteration", ["x", None, [], 1.5, {"a": 1}])
def test_a_journal_of_another_form_is_a_problem(results, capsys, iteration):
    journal.append(results / "journal/build-0001.jsonl", {"stage": "build", "iteration": iteration})
    status, said = verify(capsys)
    assert status == 1
    assert "build-0001.jsonl: 1 lines are not in the chain" in said


def reseal(path, change):
    """Change a record and make its own digest right, as whoever forges a bundle does."""
    record = json.loads(path.read_bytes())
    change(record)
    record.pop("sha256")
    path.write_bytes(canonical({**record, "sha256": digest(canonical(record))}))


BODIES = [[], 7, "text", None, {}]
RECORDS = (
    *("lock", "terms", "qualification", "prize", "confirmation", "decision", "report"),
    *(f"iterations/0001/{name}" for name in ("proposal", "build", "validation", "timing", "holdout", "cost")),
)


@pytest.mark.parametrize("name", RECORDS)
@pytest.mark.parametrize("body", [[], {"candidates": [1]}], ids=repr)
def test_a_record_of_another_form_is_a_problem_and_no_trace(results, capsys, name, body):
    reseal(results / f"{name}.json", lambda record: record.update(body=body))
    assert verify(capsys)[0] == 1


@pytest.mark.parametrize("name", ["/proc/self/maps", "../outside", "a" * 5000, "a\0b"])
def test_inputs_outside_the_bundle_are_not_read(bundle, results, capsys, name):
    (bundle.parent / "outside").write_text("secret")
    reseal(results / "prize.json", lambda record: record["made_from"]["inputs"].update({name: digest(b"secret")}))
    status, said = verify(capsys)
    assert status == 1
    assert "prize.json: was made from " in said
    assert "which is missing" in said


@pytest.mark.parametrize("text", ["[" * 100_000, "7", "[]", '{"salt": 7}', '{"outcome": "GO"}', "\udcff"])
def test_a_seal_that_is_none_is_one_line(bundle, results, capsys, text):
    (results / "signed/seal.json").write_bytes(text.encode("utf-8", "surrogateescape"))
    assert verify(capsys)[0] == 1
    files = [path for path in bundle.rglob("*") if path.is_file()]
    pack({path.relative_to(bundle).as_posix(): path for path in files}, "bundle", Path("bundle.tar"))
    assert main(["rocrate", "bundle.tar"]) == 3
    said = capsys.readouterr().err
    assert said.startswith("kerneltrial: bundle.tar: its seal, lock or journal is none")
    assert said.count("\n") == 1


@pytest.mark.parametrize("body", BODIES, ids=repr)
def test_compare_of_records_of_another_form_is_one_line(results, capsys, body):
    reseal(results / "terms.json", lambda record: record.update(body=body))
    assert main(["compare", "bundle/results/matmul_example", "bundle/results/matmul_example"]) == 3
    said = capsys.readouterr().err
    assert "compare: records of these trials have a form" in said
    assert said.count("\n") == 1


def test_heads_with_numbers_that_are_none_are_no_heads(capsys, bundle, tmp_path):
    (tmp_path / "heads").write_text("".join(f"lock {number} {'0' * 64}\n" for number in ("٣", "0", "9" * 5000)))
    status, said = verify(capsys, "--heads", "heads")
    assert status == 1
    assert "heads: holds no heads" in said


@pytest.mark.parametrize("name", ["SHA256SUMS", "VERIFY.md"])
def test_the_script_reads_no_device(bundle, name):
    script = Path(__file__).parents[3] / "workflow/kerneltrial/evidence/templates/verify.sh"
    shutil.copyfile(script, bundle / "verify.sh")
    as_device(bundle / name)
    keys = str(EXAMPLE.parent / "allowed_signers")
    done = subprocess.run(["sh", "verify.sh", keys], cwd=bundle, capture_output=True, text=True, timeout=60)
    assert done.returncode == 1
    assert f"./{name}" in done.stdout
    assert "no plain file, so nothing was read" in done.stdout


def script_said(bundle):
    script = Path(__file__).parents[3] / "workflow/kerneltrial/evidence/templates/verify.sh"
    shutil.copyfile(script, bundle / "verify.sh")
    keys = str(EXAMPLE.parent / "allowed_signers")
    done = subprocess.run(
        ["sh", "verify.sh", keys], cwd=bundle, capture_output=True, text=True, timeout=120, stdin=subprocess.DEVNULL
    )
    return done.returncode, done.stdout


@pytest.mark.parametrize(
    "line", [f"{'0' * 64}  /dev/zero", f"SHA256 (/dev/zero) = {'0' * 64}", f"{'0' * 64} */dev/zero"]
)
def test_the_script_hashes_nothing_outside_of_the_bundle(bundle, line):
    with (bundle / "SHA256SUMS").open("a") as sums:
        sums.write(line + "\n")
    there = bundle / line  # a name that looks like a line of the other form
    if line.startswith("SHA256 ("):
        there.parent.mkdir(parents=True)
        there.write_text("")
    status, said = script_said(bundle)
    assert status == 1
    assert "was read" in said


def test_without_the_seals_signature_the_script_believes_nothing(bundle):
    (bundle / "SHA256SUMS.sig").unlink()
    status, said = script_said(bundle)
    assert status == 1
    assert "kerneltrial-seal: not signed, so anyone may have made these bytes" in said


def test_without_the_seals_signature_keys_are_answered_by_a_problem(bundle, capsys):
    keys = str(EXAMPLE.parent / "allowed_signers")
    assert "the seal is not signed" not in verify(capsys, "--keys", keys)[1]
    (bundle / "SHA256SUMS.sig").unlink()
    status, said = verify(capsys, "--keys", keys)
    assert status == 1
    assert "the seal is not signed: anyone may have made anew what follows the lock page" in said


def as_loop(path):
    path.unlink()
    path.symlink_to(path.name)


def test_a_link_to_itself_is_one_line(bundle, capsys):
    as_loop(next(bundle.glob("results/*/chain.jsonl")))
    (bundle / "SHA256SUMS").unlink()
    (bundle / "SHA256SUMS.sig").unlink()
    status, said = verify(capsys)
    assert status == 3
    assert "chain.jsonl: is a link to nothing" in said
    assert said.count("\n") == 1


def test_a_prize_that_was_removed_from_the_ledger_is_named(bundle, results, capsys):
    (bundle / "SHA256SUMS").unlink()
    (bundle / "SHA256SUMS.sig").unlink()
    (results / "ledger/prize.jsonl").unlink()
    status, said = verify(capsys)
    assert status == 1
    assert "ledger/prize.jsonl: its last version is not the prize that is here" in said
    assert "ledger/prize.jsonl: the journal knows of a prize that is not in it" in said


def test_a_prize_that_was_added_to_the_ledger_is_named(bundle, results, capsys):
    (bundle / "SHA256SUMS").unlink()
    (bundle / "SHA256SUMS.sig").unlink()
    ledger = results / "ledger/prize.jsonl"
    other = json.loads(ledger.read_bytes().splitlines()[-1])
    other["prize"]["people_usd"] = "1"
    ledger.write_bytes(ledger.read_bytes() + canonical(other))
    status, said = verify(capsys)
    assert status == 1
    assert "ledger/prize.jsonl: its last version is not the prize that is here" in said
    assert "a prize that is not in it" not in said


@pytest.mark.parametrize(
    "name", ["journal/lock.jsonl", "chain.jsonl", "ledger/terms.jsonl", "ledger/prize.jsonl", "config.json"]
)
def test_other_bytes_of_the_same_value_are_an_edit(bundle, capsys, name):
    (bundle / "SHA256SUMS").unlink()
    (bundle / "SHA256SUMS.sig").unlink()
    path = next(bundle.glob(f"results/*/{name}"))
    path.write_bytes(path.read_bytes().removesuffix(b"\n") + b"\r\n")
    status, said = verify(capsys)
    assert status == 1
    assert path.stem in said


def test_before_a_trial_has_run_nothing_is_called_ok(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert main(["init", "mine"]) == 0
    monkeypatch.chdir(tmp_path / "mine")
    capsys.readouterr()
    assert main(["verify"]) == 1
    said = capsys.readouterr().out
    assert "results/scale_add: holds no record of a trial" in said
    assert " ok" not in said
    assert "derivation  not done (there is no record to follow)" in said


def test_a_decision_that_is_not_there_is_not_called_ok(bundle, results, capsys):
    """Nothing of a trial under way is wrong, and who takes the decision out of one leaves the same."""
    (bundle / "SHA256SUMS").unlink()
    (bundle / "SHA256SUMS.sig").unlink()
    for name in ("decision", "report"):
        (results / f"{name}.json").unlink()
    said = verify(capsys)[1]
    assert "decision    not done (there is none)" in said
    assert "decision follow from" not in said
    assert "the decision holds" not in said


def test_nothing_is_said_to_hold_where_something_is_wrong(results, capsys):
    (results / "terms.json").unlink()
    status, said = verify(capsys)
    assert status == 1
    assert "terms.json" in said
    assert "the decision holds" not in said


def test_a_seal_without_its_sums_is_held_against_the_decision(bundle, results, capsys):
    """Who takes the decision out of sealed evidence, and SHA256SUMS with it, leaves no trial under way."""
    (bundle / "SHA256SUMS").unlink()
    (bundle / "SHA256SUMS.sig").unlink()
    status, said = verify(capsys)
    assert status == 0
    assert "SHA256SUMS is not here: what was added or left out as a whole cannot be told" in said
    for name in ("decision", "report"):
        (results / f"{name}.json").unlink()
    status, said = verify(capsys)
    assert status == 1
    assert "signed/seal.json: is of another decision than the one that is here" in said
