"""The effective config of a run is held against the records, so that no key and no file in it can be edited."""

import json
import shutil
from pathlib import Path

import pytest

from kerneltrial.dag import bound
from kerneltrial.evidence.tarball import unpack
from kerneltrial.inputs.config import read
from kerneltrial.store.canonical import canonical, digest

EXAMPLE = Path(__file__).parents[3] / "reports/example/matmul_example-evidence.tar"


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    return unpack(EXAMPLE, tmp_path_factory.mktemp("example"))


@pytest.fixture
def trial(whole, tmp_path):
    """A copy of the sealed example: its root, and where its config lies."""
    shutil.copytree(whole, tmp_path / "trial")
    (path,) = (tmp_path / "trial").glob("results/*/config.json")
    return tmp_path / "trial", path


def lines(root, path, change):
    told = json.loads(path.read_bytes())
    change(told)
    path.write_bytes(canonical(told))
    return list(bound.differences(read(path, {}, root), root))


def test_the_config_of_the_run_differs_in_nothing(trial):
    assert lines(*trial, lambda told: None) == []


@pytest.mark.parametrize(
    ("key", "change"),
    [
        ("seed", lambda told: told.update(seed=told["seed"] + 1)),
        ("oracle_author", lambda told: told.update(oracle_author="somebody else")),
        ("protocol.repeats", lambda told: told["protocol"].update(repeats=told["protocol"]["repeats"] + 1)),
        ("protocol.screening.trap", lambda told: told["protocol"]["screening"].update(trap="allow")),
        ("sandbox", lambda told: told.update(sandbox="plain")),
        ("policy.horizon_months", lambda told: told["policy"].update(horizon_months=60)),
        ("prices.gpu_hour_usd", lambda told: told["prices"].update(gpu_hour_usd="99")),
        ("report.language", lambda told: told["report"].update(language="ko")),
    ],
)
def test_a_key_that_was_edited_is_named_in_one_line(trial, key, change):
    (line,) = lines(*trial, change)
    assert line.startswith(f"results/{trial[1].parent.name}/config.json: {key} is ")


def test_another_file_than_the_locked_one_is_named(trial):
    root, path = trial
    old = json.loads(path.read_bytes())["contract"]
    shutil.copyfile(root / old, root / f"{old}.yaml")
    found = lines(root, path, lambda told: told.update(contract=f"{old}.yaml"))
    assert any(f"contract: names {old}.yaml, which was not locked" in line for line in found)
    assert any(f"does not name {old}, which was locked" in line for line in found)


def test_two_locked_files_that_change_places_are_named(trial):
    def swap(told):
        told["oracle"], told["holdout"] = told["holdout"], told["oracle"]

    found = lines(*trial, swap)
    assert any("another part than it had when" in line for line in found)


@pytest.mark.parametrize("name", ["contract", "cases"])
def test_what_the_lock_holds_as_values_is_what_its_files_say(trial, name):
    """Include folders, say: what is compiled again is compiled by the contract in the lock."""
    root, path = trial
    lock = path.with_name("lock.json")
    record = json.loads(lock.read_bytes())
    if name == "contract":
        record["body"]["contract"]["include_folders"] = ["/etc"]
    else:
        record["body"]["cases"]["cases"][0]["seed"] += 1
    record.pop("sha256")
    record["sha256"] = digest(canonical(record))
    lock.write_bytes(canonical(record))
    (line,) = lines(root, path, lambda told: None)
    assert line.startswith(f"results/{path.parent.name}/lock.json: its {name} is not that of ")
