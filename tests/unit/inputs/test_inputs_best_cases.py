"""A best case that came as a file: what could not fail, or cannot be run, is refused with its field in one line."""

import tarfile
from pathlib import Path

import msgspec
import pytest

from kerneltrial.inputs.best_cases import check_best_case
from kerneltrial.inputs.problem import InputProblem
from kerneltrial.records.best_case import BestCase
from kerneltrial.store.canonical import convert

EXAMPLE = Path(__file__).parents[3] / "reports/example/matmul_example-evidence.tar"


@pytest.fixture(scope="module")
def file():
    with tarfile.open(EXAMPLE) as tar:
        (name, *_) = [one for one in tar.getnames() if one.endswith("/best-case-1.json")]
        return tar.extractfile(name).read()


@pytest.fixture
def told(file):
    return msgspec.json.decode(file)


def output(told):
    (name,) = told["expected"]
    return told["expected"][name]


def refused(told, folder):
    with pytest.raises(InputProblem) as caught:
        check_best_case(convert(BestCase, told), folder, folder)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_what_a_report_wrote_is_taken(told, tmp_path):
    check_best_case(convert(BestCase, told), tmp_path, tmp_path)


@pytest.mark.parametrize(
    ("field", "change"),
    [
        ("expected:", lambda told: told.update(expected={})),
        ("expected:", lambda told: told["expected"].update(zzz=output(told) | {})),
        ("expected:", lambda told: told.update(expected={next(iter(told["inputs"])): output(told)})),
        ("inputs:", lambda told: told.update(inputs={})),
        ("places", lambda told: output(told).update(places=[], want=[], allowed=[])),
        ("places", lambda told: output(told)["places"].__setitem__(-1, 10**12)),
        ("places", lambda told: output(told)["places"].__setitem__(1, 0)),
        ("want", lambda told: output(told).update(want=[])),
        ("want", lambda told: output(told).update(want=output(told)["want"][:3])),
        ("want", lambda told: output(told)["want"].__setitem__(0, "abc")),
        ("allowed", lambda told: output(told).update(allowed=[])),
        ("allowed", lambda told: output(told)["allowed"].__setitem__(0, "nan")),
        ("allowed", lambda told: output(told)["allowed"].__setitem__(0, "inf")),
        ("allowed", lambda told: output(told)["allowed"].__setitem__(0, "-1")),
        ("allowed", lambda told: output(told)["allowed"].__setitem__(0, "1e9999")),
        ("shape", lambda told: output(told).update(shape=[10**6, 10**6])),
        ("shape", lambda told: output(told).update(shape=[0])),
        ("dtype", lambda told: output(told).update(dtype="int64")),
        ("case:", lambda told: told["case"].update(dimensions={})),
        ("include_folders", lambda told: told["contract"].update(include_folders=["/etc"])),
        ("include_folders", lambda told: told["contract"].update(include_folders=[".."])),
        ("include_folders", lambda told: told["contract"].update(include_folders=["."])),
        ("include_folders", lambda told: told["contract"].update(include_folders=["a/../../b"])),
        ("options", lambda told: told["contract"].update(options=["-I/etc"])),
        ("options", lambda told: told["contract"].update(options=["--pre-include=/etc/passwd"])),
    ],
)
def test_each_field_is_named(told, tmp_path, field, change):
    change(told)
    assert field in refused(told, tmp_path)


def test_an_error_without_a_bound_is_for_what_is_no_number_itself(told, tmp_path):
    output(told)["want"][0], output(told)["allowed"][0] = "inf", "inf"
    check_best_case(convert(BestCase, told), tmp_path, tmp_path)


def test_a_link_that_leads_out_of_the_folder_is_refused(told, tmp_path):
    told["contract"]["include_folders"] = ["headers"]
    (tmp_path / "file").mkdir()
    (tmp_path / "file/headers").symlink_to("/etc")
    assert "leads out" in refused(told, tmp_path / "file")
    (tmp_path / "file/headers").unlink()
    (tmp_path / "file/headers").mkdir()
    (tmp_path / "file/headers/own.h").write_text("")
    check_best_case(convert(BestCase, told), tmp_path / "file", tmp_path)
    (tmp_path / "file/headers/other.h").symlink_to("/etc/passwd")
    assert "leads out" in refused(told, tmp_path / "file")


def test_a_stored_input_lies_beside_the_file(told, tmp_path):
    name = next(iter(told["inputs"]))
    told["case"]["inputs"] = {name: {"from": "file", "path": "../../etc/passwd", "sha256": "0" * 64}}
    assert f"case.inputs.{name}" in refused(told, tmp_path)
