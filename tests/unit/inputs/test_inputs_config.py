"""Config: one line for every mistake; groups of files; slices; the lock."""

import os
import re
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
import yaml
from msgspec import inspect

from kerneltrial.dag.graph import LOCKED_KEYS
from kerneltrial.inputs import lock
from kerneltrial.inputs.config import Config, check, read, sources
from kerneltrial.inputs.oracle import load
from kerneltrial.inputs.problem import InputProblem
from kerneltrial.inputs.trial import check_oracle, read_trial
from kerneltrial.records.case import Cases, HoldoutDomain
from kerneltrial.records.contract import Contract
from kerneltrial.records.device import Device
from kerneltrial.records.plan import LaunchPlan
from kerneltrial.store.canonical import canonical, decode

CLONE = Path(__file__).resolve().parents[3]


def problem(trial: Any, changes: dict[str, Any]) -> str:
    """The line that `read` gives; `check`, on what Snakemake would hand it, must say the same of the same key."""
    with pytest.raises(InputProblem) as caught:
        read(trial.path("config.yaml"), changes)
    line = str(caught.value)
    assert "\n" not in line
    return line


def test_the_shipped_configs_are_right(trial: Any) -> None:
    config = read(CLONE / "config.yaml", {})
    assert config == check(yaml.safe_load((CLONE / "config.yaml").read_text()), CLONE)
    assert (config.trial, config.iterations, config.candidates_per_iteration) == ("matmul_f32", 7, 4)
    assert (config.device, config.proposer, config.workload.example) == ("auto", "search", True)
    softmax = check(yaml.safe_load((CLONE / "config_softmax.yaml").read_text()), CLONE)
    assert softmax.proposer == "files"


def test_the_shipped_config_names_every_key_with_its_default_or_more() -> None:
    document = yaml.safe_load((CLONE / "config.yaml").read_text())
    assert set(document) == set(Config.__struct_fields__)
    text = (CLONE / "config.yaml").read_text()
    for line in text.splitlines():
        if line and not line.startswith((" ", "#")):
            assert "#" in line, f"the key in {line!r} has no comment"


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"iterations": 0}, ["iterations", "0", "1 to 1000"]),
        ({"iterations": "0"}, ["iterations", "'0'", "1 to 1000"]),
        ({"iterations": -1}, ["iterations", "-1", "1 to 1000"]),
        ({"iterations": "-1"}, ["iterations", "-1"]),
        ({"iterations": "abc"}, ["iterations", "'abc'", "an integer from 1 to 1000"]),
        ({"iterations": 1.5}, ["iterations", "1.5"]),
        ({"iterations": None}, ["iterations: no value is given", "an integer from 1 to 1000"]),
        ({"iterations": True}, ["iterations", "True"]),
        ({"iterations": [7]}, ["iterations", "[7]"]),
        ({"iteration": 7}, ["unknown key 'iteration'; did you mean 'iterations'?"]),
        ({"qqq": 7}, ["unknown key 'qqq'; allowed: ", "candidates_per_iteration"]),
        ({"zzz": 7}, ["unknown key 'zzz'", "allowed: trial"]),
        ({"gpu_hour_usd": 5}, ["it stands inside another", "--config 'prices={gpu_hour_usd: VALUE}'"]),
        ({"language": "ko"}, ["report: {language: VALUE}"]),
        ({"timeout_s": 1}, ["protocol: {timeout_s: VALUE}", " or end_to_end: {timeout_s: VALUE}"]),
        ({"prices": "{gpu_hour_usd:5}"}, ["prices: unknown key", "a space after the colon", "gpu_hour_usd: 5"]),
        ({"device": "gpu"}, ["device", "'gpu'", "auto, cpu, cuda"]),
        ({"arch": "compute_90"}, ["arch", "'compute_90'", "sm_90a"]),
        ({"proposer": "magic"}, ["proposer", "'magic'", "command, files, openai, replay, search"]),
        ({"sandbox": "none"}, ["sandbox", "'none'", "plain, required"]),
        ({"languages": "[cuda_cpp, opencl]"}, ["languages.#2", "'opencl'", "cuda_cpp, numba_cuda"]),
        ({"languages": []}, ["languages", "1 to 2"]),
        ({"languages": ["cuda_cpp", "cuda_cpp"]}, ["languages", "twice"]),
        ({"candidates_per_iteration": 65}, ["candidates_per_iteration", "65", "1 to 64"]),
        ({"seed": -1}, ["seed", "-1", "at least 0"]),
        ({"trial": "../x"}, ["trial", "'../x'", "letter"]),
        ({"trial": ""}, ["trial", "''"]),
        ({"trial": "x\n"}, ["trial", "letter"]),
        ({"policy": {"minimum_efect": 1}}, ["policy", "'minimum_efect'", "did you mean 'minimum_effect'"]),
        ({"policy.minimum_effect": "much"}, ["policy.minimum_effect", "'much'", "a number"]),
        ({"policy.minimum_effect": "nan"}, ["policy", "minimum_effect=NaN", "0 to 10"]),
        ({"policy": "{minimum_effect: -1}"}, ["policy", "minimum_effect=-1", "0 to 10"]),
        ({"policy": "5"}, ["policy", "'5'", "a mapping"]),
        ({"policy": None}, ["policy", "a mapping with the keys minimum_effect"]),
        ({"protocol.rounds": 5}, ["protocol.rounds", "5", "10 to 10000"]),
        ({"protocol.clock": "sundial"}, ["protocol.clock", "'sundial'", "auto, cupti, events, events-10-100, graph"]),
        ({"protocol.draws_per_case": 4}, ["protocol.draws_per_case", "5 to 100"]),
        ({"prices.gpu_hour_usd": -1}, ["prices", "gpu_hour_usd=-1"]),
        ({"prices.date": "soon"}, ["prices.date", "'soon'", "such as 2026-12-01"]),
        ({"workload.example": "maybe"}, ["workload.example", "'maybe'", "true or false"]),
        ({"workload.calls_per_month": {"a b": 1}}, ["workload.calls_per_month.a b", "not allowed"]),
        ({"workload.calls_per_month": {"square_256": -1}}, ["square_256", "-1", "at least 0"]),
        ({"contract": "kernels/none.yaml"}, ["contract", "no file kernels/none.yaml"]),
        ({"baseline": "kernels/matmul_f32"}, ["baseline", "no file"]),
        ({"baseline": "kernels/matmul_f32/contract.yaml"}, ["baseline", ".cu"]),
        ({"baseline": "kernels/matmul_f32/alone.cu"}, ["baseline", "alone.plan.yaml", "missing"]),
        ({"cases": ""}, ["cases", "''"]),
        ({"oracle": "/etc/passwd"}, ["oracle", "'/etc/passwd'", "relative"]),
        ({"oracle_author": ""}, ["oracle_author"]),
        ({"reference": "none.cu"}, ["reference", "no file none.cu"]),
        ({"space": "none.yaml"}, ["space", "no file none.yaml"]),
        ({"space": ""}, ["'space' is missing", "search"]),
        ({"proposer": "files", "candidates": ""}, ["'candidates' is missing", "files"]),
        ({"proposer": "files", "candidates": "none"}, ["candidates", "no folder none"]),
    ],
    ids=str,
)
def test_a_mistake_is_one_line(trial: Any, changes: dict[str, Any], words: list[str]) -> None:
    trial.path("kernels/matmul_f32/alone.cu").write_text("")
    line = problem(trial, changes)
    assert all(word in line for word in words), line
    assert line.startswith("config.yaml: ")


@pytest.mark.parametrize(
    "url",
    [
        *(f"http://{host}/v1" for host in ("a" * 64, "..", "", "[::1", "1.2.3.4:99999", "host:port", "a b", "a\x1b")),
        "ftp://host/v1",
        "https://user:secret@host/v1",
        "https://host/v1?key=secret",
    ],
)
def test_an_address_that_is_none_is_said_before_any_job(trial: Any, url: str) -> None:
    line = problem(trial, {"model": {"base_url": url}})
    assert line.startswith("config.yaml: model.base_url: ")
    assert "allowed: http:// or https://" in line
    assert "user" not in line.partition(";")[0]


def test_a_key_where_the_name_of_its_variable_belongs_is_not_repeated(trial: Any) -> None:
    line = problem(trial, {"model": {"key_variable": "sk-proj-abcdefghij0123456789"}})
    assert line.startswith("config.yaml: model.key_variable: no name of a variable")
    assert "sk-proj" not in line


@pytest.mark.parametrize("url", ["http://localhost:8000/v1", "https://[::1]:8443/v1", "https://bücher.example/v1"])
def test_an_address_of_a_server_is_taken(trial: Any, url: str) -> None:
    assert read(trial.path("config.yaml"), {"model": {"base_url": url}}).model.base_url == url


@pytest.mark.parametrize("key", ["trial", "contract", "oracle_author", "prices", "workload"])
def test_a_missing_key_is_named(trial: Any, key: str) -> None:
    document = yaml.safe_load(trial.path("config.yaml").read_text())
    del document[key]
    trial.path("config.yaml").write_text(yaml.safe_dump(document))
    assert f"the key '{key}' is missing" in problem(trial, {})


def test_what_is_set_on_the_command_line_comes_through(trial: Any) -> None:
    config = read(
        trial.path("config.yaml"),
        {
            "iterations": "3",
            "languages": "[cuda_cpp,numba_cuda]",
            "policy.minimum_effect": "5e-2",
            "policy": "{horizon_months: 6}",
            "workload.example": "false",
            "seed": 5,
        },
    )
    assert config.iterations == 3
    assert config.languages == ("cuda_cpp", "numba_cuda")
    assert config.policy.minimum_effect == Decimal("0.05")
    assert config.policy.horizon_months == 6
    assert config.policy.worst_case_loss == Decimal("0.01")
    assert config.workload.example is False
    assert read(trial.path("config.yaml"), {"languages": "numba_cuda"}).languages == ("numba_cuda",)


def test_pyyamls_types_are_understood(trial: Any) -> None:
    document = yaml.safe_load(trial.path("config.yaml").read_text())
    document["policy"]["minimum_effect"] = "1e-2"
    document["protocol"]["confidence"] = 0.9
    config = check(document, trial.folder)
    assert config.policy.minimum_effect == Decimal("0.01")
    assert config.protocol.confidence == Decimal("0.9")
    assert config.prices.date == "2026-12-01"


def test_the_effective_config_reads_back(trial: Any) -> None:
    config = read(trial.path("config.yaml"), {"iterations": 3})
    trial.path("effective.json").write_bytes(canonical(config))
    assert read(trial.path("effective.json"), {}) == config
    assert decode(Config, canonical(config)) == config


def test_paths_may_be_relative_to_another_folder(trial: Any) -> None:
    (trial.folder / "results").mkdir()
    trial.path("results/config.json").write_bytes(canonical(read(trial.path("config.yaml"), {})))
    assert read(trial.path("results/config.json"), {}, trial.folder).trial == "matmul_f32"
    with pytest.raises(InputProblem, match="no file"):
        read(trial.path("results/config.json"), {})


@pytest.mark.parametrize(
    ("file", "changes", "words"),
    [
        ("config.yaml", {"workload__calls_per_month": {"square_256": 1}}, ["calls_per_month", "'rect_384'"]),
        ("config.yaml", {"workload__calls_per_month__ragged": 1}, ["'ragged'", "rect_384, square_256"]),
        ("cases/matmul_f32/cases.yaml", {"cases__0__dimensions__m": 99999}, ["cases.yaml", "ragged", "99999"]),
        ("cases/matmul_f32/holdout.yaml", {"count": 0}, ["holdout.yaml", "count"]),
        ("kernels/matmul_f32/contract.yaml", {"operations": "m**2"}, ["contract.yaml", "**"]),
        (
            "kernels/matmul_f32/baseline.plan.yaml",
            {"variants__0__launches__0__args": ["a", "b", "q"]},
            ["baseline.plan.yaml", "'q'"],
        ),
        (
            "kernels/matmul_f32/baseline.plan.yaml",
            {"variants__0__when": "m > 100"},
            ["baseline.plan.yaml", "no variant", "m=31"],
        ),
        ("kernels/matmul_f32/baseline.plan.yaml", {"variants__0__launches__0__block": ["9**9**9", 1, 1]}, ["**"]),
        (
            "cases/matmul_f32/reference.plan.yaml",
            {"variants__0__launches__0__grid": [0, 1, 1]},
            ["reference.plan.yaml"],
        ),
    ],
    ids=str,
)
def test_files_that_contradict_each_other_are_found_before_any_job(
    trial: Any, file: str, changes: dict[str, Any], words: list[str]
) -> None:
    trial.edit(file, **changes)
    with pytest.raises(InputProblem) as caught:
        check(yaml.safe_load(trial.path("config.yaml").read_text()), trial.folder)
    assert all(word in str(caught.value) for word in words), str(caught.value)
    assert "\n" not in str(caught.value)


def test_sources_name_all_files_of_a_group(trial: Any) -> None:
    (trial.folder / "kernels/matmul_f32/include/deep").mkdir(parents=True)
    trial.path("kernels/matmul_f32/include/deep/tile.cuh").write_text("")
    trial.edit("kernels/matmul_f32/contract.yaml", include_folders=["include"])
    trial.edit(
        "cases/matmul_f32/cases.yaml", cases__0__inputs={"a": {"from": "file", "path": "a.npy", "sha256": "0" * 64}}
    )
    found = sources(read(trial.path("config.yaml"), {}), trial.folder)
    kernels, cases = "kernels/matmul_f32", "cases/matmul_f32"
    assert found == {
        "contract": (f"{kernels}/contract.yaml", f"{kernels}/include/deep/tile.cuh"),
        "baseline": (f"{kernels}/baseline.cu", f"{kernels}/baseline.plan.yaml"),
        "cases": (f"{cases}/cases.yaml", f"{cases}/a.npy"),
        "oracle": (f"{cases}/oracle.py",),
        "reference": (f"{cases}/reference.cu", f"{cases}/reference.plan.yaml"),
        "holdout": (f"{cases}/holdout.yaml",),
        "space": (f"{kernels}/space.yaml", f"{kernels}/space.cu"),
        "candidates": (),
        "replies": (),
        "program": (),
        "reviewers": (),
        "application": (),
    }


def test_sources_follow_the_proposer(trial: Any) -> None:
    found = sources(read(trial.path("config.yaml"), {"proposer": "files", "reference": ""}), trial.folder)
    assert found["space"] == ()
    assert found["reference"] == ()
    names = [Path(path).name for path in found["candidates"]]
    assert names == sorted(names)
    assert {"register_blocked.cu", "register_blocked.plan.yaml", "tiled.py", "tiled.plan.yaml"} <= set(names)


def test_a_space_that_names_no_file(trial: Any) -> None:
    trial.edit("kernels/matmul_f32/space.yaml", source="gone.cu")
    with pytest.raises(InputProblem, match=r"source: there is no file kernels/matmul_f32/gone\.cu"):
        sources(read(trial.path("config.yaml"), {}), trial.folder)


def test_a_slice_has_one_form_for_equal_values(trial: Any) -> None:
    first = read(trial.path("config.yaml"), {"policy.minimum_effect": "0.020"})
    second = read(trial.path("config.yaml"), {"policy.minimum_effect": "2e-2"})
    keys = ("policy.minimum_effect", "prices", "iterations", "languages")
    assert first.slice(keys) == second.slice(keys)
    assert first.slice(keys)["policy.minimum_effect"] == "0.02"
    assert first.slice(("prices",))["prices"]["gpu_hour_usd"] == "3.5"
    assert first.slice(("languages",)) == {"languages": ["cuda_cpp"]}
    with pytest.raises(KeyError, match="iteration"):
        first.slice(("iteration",))


def test_the_lock_holds_the_trials_identity(trial: Any) -> None:
    config = read(trial.path("config.yaml"), {})
    files = sources(config, trial.folder)
    asked = config.slice((*LOCKED_KEYS, "prices.model"))
    identity = lock.Identity(lock.file_digests(files, trial.folder), {"numpy": "2"}, {"files": "none"}, "a" * 64)
    device = Device(kind="cpu", arch="sm_80", name="x86_64", fingerprint={})
    made = lock.assemble(asked, read_trial(files, trial.folder), device, identity)
    assert decode(type(made), canonical(made)) == made
    assert set(made.files) == {path for group in files.values() for path in group}
    assert made.holdout_count == 4 + 3 + 2  # drawn shapes, far ones, and the performance shapes on sealed values
    assert made.protocol == config.protocol
    assert (made.model, made.model_prices) == (config.model, config.prices.model)
    assert set(made.asked) == set(LOCKED_KEYS)
    path = trial.path("cases/matmul_f32/oracle.py")
    path.write_text(path.read_text() + "\n# edited\n")
    changed = lock.file_digests(files, trial.folder)
    assert {name for name in changed if changed[name] != made.files[name]} == {"cases/matmul_f32/oracle.py"}
    path.unlink()
    with pytest.raises(InputProblem, match=r"oracle\.py: cannot be read"):
        lock.file_digests(files, trial.folder)


def test_the_oracle_is_asked_once_before_the_lock(trial: Any) -> None:
    path = trial.path("cases/matmul_f32/oracle.py")
    inputs = read_trial(sources(read(trial.path("config.yaml"), {}), trial.folder), trial.folder)
    check_oracle(load(path), inputs, path.parent)
    path.write_text("def oracle(inputs, dims):\n    return {'c': inputs['a']}\n")
    with pytest.raises(InputProblem, match=r"\[31, 29\]; the contract wants \[31, 37\]"):
        check_oracle(load(path), inputs, path.parent)


@pytest.fixture
def of_files(trial: Any) -> Any:
    trial.edit("config.yaml", proposer="files", languages=["cuda_cpp", "numba_cuda"])
    return trial


def refused(trial: Any, where: str = "config.yaml") -> str:
    with pytest.raises(InputProblem) as caught:
        check(yaml.safe_load(trial.path("config.yaml").read_text()), trial.folder, where)
    return str(caught.value)


def test_candidates_are_looked_for_before_any_job(of_files: Any) -> None:
    folder = of_files.path("kernels/matmul_f32/candidates")
    (folder / "tiled.plan.yaml").rename(folder / "tilde.plan.yaml")
    assert "matmul_f32/candidates/tiled.py has no tiled.plan.yaml" in refused(of_files)
    for path in list(folder.iterdir()):
        path.unlink()
    assert "candidates: kernels/matmul_f32/candidates holds no NAME.cu or NAME.py" in refused(of_files)
    (folder / "README.md").write_text("nothing to try yet")
    assert "holds no NAME.cu or NAME.py" in refused(of_files)


def test_a_language_that_is_not_admitted_is_said_before_any_job(trial: Any) -> None:
    trial.edit("config.yaml", space="kernels/matmul_f32/space_numba.yaml")
    assert refused(trial) == (
        "space: kernels/matmul_f32/space_numba.yaml is numba_cuda, which the config does not admit; "
        "set languages: [cuda_cpp, numba_cuda]"
    )
    trial.edit("config.yaml", proposer="files")
    assert "candidates: kernels/matmul_f32/candidates/tiled.py is numba_cuda, which" in refused(trial)
    for proposer, languages in (("search", ["numba_cuda"]), ("files", ["numba_cuda", "cuda_cpp"])):
        trial.edit("config.yaml", proposer=proposer, languages=languages)
        check(yaml.safe_load(trial.path("config.yaml").read_text()), trial.folder)


def test_an_entry_that_is_not_in_the_source_is_said_of_the_plan(trial: Any) -> None:
    plan = trial.path("kernels/matmul_f32/baseline.plan.yaml")
    plan.write_text(re.sub(r"entry: \w+", "entry: matmull", plan.read_text()))
    line = refused(trial)
    assert all(words in line for words in ("baseline.plan.yaml: entry: 'matmull'", "baseline.cu", "it has: ")), line
    source = trial.path("kernels/matmul_f32/baseline.cu")
    source.write_text(source.read_text() + "// #define KERNEL(a, b) a##b\n")
    check(yaml.safe_load(trial.path("config.yaml").read_text()), trial.folder)  # the compiler will tell


def test_the_file_that_was_given_is_named(trial: Any) -> None:
    trial.edit("config.yaml", baseline="kernels/absent.cu")
    assert refused(trial, "mine.yaml").startswith("mine.yaml: baseline: ")


def test_an_empty_file_is_said_to_be_empty(trial: Any) -> None:
    trial.path("cases/matmul_f32/cases.yaml").write_text("# none yet\n")
    assert "cases.yaml: the file is empty" in refused(trial)


def integers(type_: Any, path: str, seen: tuple[type, ...] = ()) -> Iterator[tuple[str, Any]]:
    """Every integer that a person can write into a file of this type, with its bounds."""
    match type_:
        case inspect.Metadata():
            yield from integers(type_.type, path, seen)
        case inspect.IntType():
            yield path, type_
        case inspect.StructType() if type_.cls not in seen:
            for field in type_.fields:
                yield from integers(field.type, f"{path}.{field.encode_name}", (*seen, type_.cls))
        case inspect.UnionType():
            for one in type_.types:
                yield from integers(one, path, seen)
        case inspect.VarTupleType() | inspect.ListType():
            yield from integers(type_.item_type, path, seen)
        case inspect.TupleType():
            for one in type_.item_types:
                yield from integers(one, path, seen)
        case inspect.DictType():
            yield from integers(type_.value_type, path, seen)


@pytest.mark.parametrize("type_", [Config, Contract, Cases, HoldoutDomain, LaunchPlan])
def test_no_integer_may_be_longer_than_64_bits(type_: type) -> None:
    """One of 39 digits passed, and broke the way to a child or a float where it was first used."""
    found = list(integers(inspect.type_info(type_), type_.__name__))
    assert found or type_ is LaunchPlan
    assert [path for path, one in found if one.le is None and one.lt is None] == []


@pytest.mark.parametrize(
    "key", ["protocol.budget_instructions", "workload.invocations_per_month", "end_to_end.invocations"]
)
def test_an_integer_of_39_digits_is_one_line(trial: Any, key: str) -> None:
    line = problem(trial, {key: int("9" * 39)})
    assert key in line
    assert "in 64 bits" in line


def test_calls_of_39_digits_are_one_line(trial: Any) -> None:
    trial.edit("config.yaml", workload__calls_per_month__square_256=int("9" * 39))
    assert "workload.calls_per_month.square_256: 999" in problem(trial, {})


@pytest.mark.parametrize("text", ["\udcff", "a\ud800b"])
def test_half_of_a_character_is_one_line(trial: Any, text: str) -> None:
    assert "oracle_author: holds bytes that are no UTF-8" in problem(trial, {"oracle_author": text})
    trial.edit("config.yaml", prices__source=text)
    assert "prices.source: holds bytes that are no UTF-8" in problem(trial, {})


@pytest.mark.parametrize("name", [b"\xff.cu", b"a\nb.cu", b"a\\b.cu"])
def test_a_file_in_a_folder_whose_name_no_evidence_can_hold_is_one_line(trial: Any, name: bytes) -> None:
    """Else a trial ran to its end, and could not be sealed."""
    config = read(trial.path("config.yaml"), {"proposer": "files"})
    (trial.folder / config.candidates / os.fsdecode(name)).write_text("")
    with pytest.raises(InputProblem, match=r"candidates: a file there is called .* rename it$"):
        sources(config, trial.folder)
