"""A sealed bundle as a Workflow Run RO-Crate: everything that it names is there, and the bundle in it verifies."""

import json
import zipfile

import pytest

from kerneltrial.store.canonical import digest

pytestmark = pytest.mark.e2e


@pytest.fixture
def crate(sealed, tmp_path):
    """The crate's folder."""
    for name in ("one.zip", "two.zip"):
        done = sealed.kerneltrial("rocrate", "bundle.tar", "--out", str(tmp_path / name))
        assert done.returncode == 0, done.stderr
    assert (tmp_path / "one.zip").read_bytes() == (tmp_path / "two.zip").read_bytes()
    with zipfile.ZipFile(tmp_path / "one.zip") as archive:
        archive.extractall(tmp_path / "crate")
    return tmp_path / "crate"


def entities(crate):
    found = json.loads((crate / "ro-crate-metadata.json").read_bytes())["@graph"]
    assert len({entity["@id"] for entity in found}) == len(found)
    return {entity["@id"]: entity for entity in found}


def references(value):
    if isinstance(value, dict):
        yield from ([value["@id"]] if set(value) == {"@id"} else [])
        for inner in value.values():
            yield from references(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from references(inner)


def test_what_is_named_is_there_with_these_bytes(crate):
    found = entities(crate)
    files = [entity for entity in found.values() if "File" in entity["@type"]]
    assert len(files) > 10
    for entity in files:
        data = (crate / entity["@id"]).read_bytes()
        assert entity.get("identifier", f"sha256:{digest(data)}") == f"sha256:{digest(data)}"
    local = {name for entity in found.values() for name in references(entity) if "://" not in name}
    assert local <= set(found)


def test_the_run_says_what_went_in_and_what_came_out(crate):
    found = entities(crate)
    run, root = found["#run"], found["./"]
    went_in = {entity["@id"].removeprefix("evidence/") for entity in run["object"]}
    assert {"kernels/scale_add/contract.yaml", "cases/scale_add/oracle.py", "results/tiny/config.json"} <= went_in
    came_out = {entity["@id"] for entity in run["result"]}
    assert {"evidence/results/tiny/decision.json", "evidence/reports/tiny/report.html"} <= came_out
    assert run["startTime"] < run["endTime"]
    assert found[run["instrument"]["@id"]]["@type"][-1] == "ComputationalWorkflow"
    assert root["mainEntity"] == run["instrument"]


def test_the_bundle_in_the_crate_verifies(crate, sealed, people):
    done = sealed.kerneltrial("verify", str(crate / "evidence"), "--keys", str(people / "signers"))
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_validator_of_ro_crates_finds_nothing(crate):
    """Without a network: the terms of the context, which it would fetch, stand in the document."""
    services = pytest.importorskip("rocrate_validator.services", reason="pip install roc-validator (44 packages)")
    path = crate / "ro-crate-metadata.json"
    document = json.loads(path.read_bytes())
    special = {
        "File": "http://schema.org/MediaObject",
        "ComputationalWorkflow": "https://bioschemas.org/ComputationalWorkflow",
        "conformsTo": "http://purl.org/dc/terms/conformsTo",
    }
    named = {key for entity in document["@graph"] for key in entity if not key.startswith("@")}
    kinds = {kind for entity in document["@graph"] for kind in [entity["@type"]] if isinstance(kind, str)}
    named |= kinds | {"SoftwareSourceCode"}
    document["@context"] = {name: f"http://schema.org/{name}" for name in named} | special
    path.write_text(json.dumps(document))
    settings = {"rocrate_uri": str(crate), "profile_identifier": "workflow-run-crate-0.5"}
    result = services.validate(settings)
    assert [issue.message for issue in result.get_issues()] == []
