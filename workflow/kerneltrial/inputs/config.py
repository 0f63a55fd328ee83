"""The trial's config: one file of keys, with overrides, as a checked record.

`read` and `check` give one line for a wrong key, type or value, and for a file that is missing; `check` also looks into
the files and compares them with each other. Paths are relative to the folder of the config file.
"""

from collections.abc import Iterable, Mapping
from pathlib import Path, PurePosixPath
from typing import Annotated, Any, Literal

from msgspec import Meta

from kerneltrial.inputs.addresses import is_address
from kerneltrial.inputs.cost_sheet import with_sheet
from kerneltrial.inputs.documents import parse, read_document, to_record
from kerneltrial.inputs.file_keys import FILE_KEYS
from kerneltrial.inputs.plans import plan_path
from kerneltrial.inputs.problem import InputProblem
from kerneltrial.inputs.sources import FOLDERS, leads_out, sources
from kerneltrial.records.application import EndToEndAsked
from kerneltrial.records.asking import Command, Model
from kerneltrial.records.candidate import Language
from kerneltrial.records.presentation import Presentation
from kerneltrial.records.protocol import Protocol
from kerneltrial.records.record import Name, Record
from kerneltrial.records.terms import ModelPrices, Policy, Prices, Workload
from kerneltrial.store.canonical import builtins

__all__ = ["Config", "check", "read", "sources"]

Arch = Annotated[str, Meta(pattern=r"^(auto|sm_[0-9]{2,3}[af]?)(?!\n)$", description="auto, or such as sm_90a")]
_NESTED = ("end_to_end", "report", "protocol", "policy", "prices", "workload", "model", "command")
_NEEDED = {"search": "space", "files": "candidates", "replay": "replies"}


class Config(Record):
    """One trial. config.yaml at the root of the project explains every key."""

    trial: Name
    contract: str
    baseline: str
    cases: str
    oracle: str
    oracle_author: Annotated[str, Meta(min_length=1, max_length=200)]
    holdout: str
    prices: Prices
    workload: Workload
    iterations: Annotated[int, Meta(ge=1, le=1000)] = 7
    device: Literal["auto", "cpu", "cuda"] = "auto"
    arch: Arch = "auto"
    oracle_by_proposer: bool = False
    reference: str = ""
    proposer: Literal["search", "files", "openai", "replay", "command"] = "search"
    languages: Annotated[tuple[Language, ...], Meta(min_length=1, max_length=2)] = ("cuda_cpp",)
    space: str = ""
    candidates: str = ""
    replies: str = ""
    program: str = ""
    model: Model = Model()
    command: Command = Command()
    stop: Literal["fixed", "beats_compiler"] = "fixed"
    reviewers: str = ""
    application: str = ""
    end_to_end: EndToEndAsked = EndToEndAsked()
    report: Presentation = Presentation()
    candidates_per_iteration: Annotated[int, Meta(ge=1, le=64)] = 4
    seed: Annotated[int, Meta(ge=0, lt=2**53)] = 0
    sandbox: Literal["required", "plain"] = "required"
    protocol: Protocol = Protocol()
    policy: Policy = Policy()

    def slice(self, keys: Iterable[str]) -> dict[str, Any]:
        """Return the values of dotted keys (`policy.horizon_months`, or all of `policy`) in JSON types.

        Decimals are texts in one normal form, so that `0.020` and `0.02` are the same.

        Raises
        ------
        KeyError
            Where a key is none of the config's: a fault of the caller.
        """
        return {key: self._value(key) for key in keys}

    def _value(self, key: str) -> Any:
        value: Any = builtins(self)
        for part in key.split("."):
            if not isinstance(value, dict) or part not in value:
                raise KeyError(f"{key!r} is no config key")
            value = value[part]
        return value


def read(path: Path, overrides: Mapping[str, Any], folder: Path | None = None) -> Config:
    """Read a config file, put `overrides` over it (keys may be dotted), and check types, values and that files exist.

    Paths are relative to `folder`, by default the file's own. Raises `InputProblem`.
    """
    document = read_document(path)
    if not isinstance(document, dict):
        raise InputProblem(f"{path}: must hold keys, such as trial: NAME")
    folder = path.parent if folder is None else folder
    config = _converted(with_sheet(_overridden(document, overrides, path.name), folder, path.name), path.name)
    _check_paths(config, folder, path.name)
    return config


def check(mapping: Mapping[str, Any], folder: Path, where: str = "config.yaml") -> Config:
    """Check a config that another reader (Snakemake) read, and the files that it names, before any job runs.

    `where` is the config file's name, the first word of what is wrong with it.

    Raises
    ------
    InputProblem
        One line: a wrong key, type or value; a missing file; or what `check_files` finds.
    """
    config = _converted(with_sheet(_overridden({}, mapping, where), folder, where), where)
    _check_paths(config, folder, where)
    check_files(config, folder, where)
    return config


def check_files(config: Config, folder: Path, where: str) -> None:
    """Look into the files of a config and compare them with each other; the oracle is not run.

    Raises
    ------
    InputProblem
        One line: contract, cases, plans, kernels, holdout, candidates or workload that contradict each other.
    """
    from kerneltrial.inputs.candidates import check_candidates, check_space_language
    from kerneltrial.inputs.trial import check_workload, read_trial  # numpy comes with it

    inputs = read_trial(sources(config, folder), folder)
    check_workload(config.workload, inputs.cases, where)
    if config.proposer == "files":
        check_candidates(config.candidates, folder, config.languages)
    if config.proposer == "search":
        check_space_language(config.space, folder, config.languages)


def _converted(document: dict[str, Any], where: str) -> Config:
    _require_a_name(document.get("model"), where)
    config = to_record(document, Config, where)
    if len(set(config.languages)) != len(config.languages):
        raise InputProblem(f"{where}: languages: {list(config.languages)} names one twice")
    needed = _NEEDED.get(config.proposer, "")
    if needed and not getattr(config, needed):
        raise InputProblem(f"{where}: the key {needed!r} is missing, and proposer {config.proposer} needs it")
    _check_asking(config, where)
    return config


def _require_a_name(model: object, where: str) -> None:
    """Where a key itself was written, the line does not repeat it, as it would be kept in logs."""
    named = model.get("key_variable", "K") if isinstance(model, Mapping) else "K"
    if not (isinstance(named, str) and named.isidentifier() and named.isascii()):
        raise InputProblem(
            f"{where}: model.key_variable: no name of a variable stands there; name the environment variable that "
            "holds the key, such as OPENAI_API_KEY, and write the key itself nowhere"
        )


def _check_asking(config: Config, where: str) -> None:
    """A model needs a price, a program its words; and an address is no place for a password."""
    if config.proposer == "openai" and not isinstance(config.prices.model, ModelPrices):
        raise InputProblem(
            f"{where}: the key 'prices.model' is missing, and proposer openai needs it; "
            f"`kerneltrial prices {config.model.name}` prints it"
        )
    if config.proposer == "command" and not config.command.words:
        raise InputProblem(f"{where}: the key 'command.words' is missing, and proposer command needs it")
    if config.end_to_end.words and not config.application:
        raise InputProblem(
            f"{where}: the key 'application' is missing, and end_to_end.words needs it: the folder to run in"
        )
    url = config.model.base_url
    if url and not is_address(url):
        raise InputProblem(
            f"{where}: model.base_url: {url.rpartition('@')[2]!r} is not allowed; allowed: http:// or https://, a host "
            "and a path, without a user, password or query"
        )


def _overridden(document: Mapping[str, Any], overrides: Mapping[str, Any], where: str) -> dict[str, Any]:
    """Merge overrides key by key; a text for a mapping (`--config` makes one of it) is read as YAML."""
    merged = {key: dict(value) if isinstance(value, Mapping) else value for key, value in document.items()}
    for key, value in overrides.items():
        head, _, rest = str(key).partition(".")
        if rest:
            inner = merged.setdefault(head, {})
            merged[head] = _overridden(inner if isinstance(inner, Mapping) else {}, {rest: value}, where)
        elif head in _NESTED and isinstance(value, str | Mapping):
            given = _mapping(head, value, where)
            inner = merged.get(head)
            merged[head] = {**(inner if isinstance(inner, Mapping) else {}), **given}
        elif head == "languages" and isinstance(value, str):
            merged[head] = [part.strip() for part in value.strip("[]").split(",")]
        else:
            merged[head] = value
    return merged


def _mapping(key: str, value: str | Mapping[str, Any], where: str) -> Mapping[str, Any]:
    if isinstance(value, Mapping):
        return value
    try:
        found = parse(value)
    except InputProblem:
        found = None
    if not isinstance(found, dict):
        raise InputProblem(f"{where}: {key}: {value!r} is not allowed; allowed: a mapping, such as '{{KEY: VALUE}}'")
    return found


def _check_paths(config: Config, folder: Path, where: str) -> None:
    for key in FILE_KEYS:
        path = str(getattr(config, key))
        unused = config.proposer != ("search" if key == "space" else FOLDERS.get(key, config.proposer))
        if unused or (key in ("reference", "program", "reviewers", "application") and not path):
            continue
        _check_path(f"{where}: {key}", path, folder)
    for key in ("baseline", "reference"):
        path = str(getattr(config, key))
        if not path:
            continue
        _check_kernel(where, key, path, config.device)
        plan = plan_path(PurePosixPath(path)).as_posix()
        if not (folder / plan).is_file():
            raise InputProblem(f"{where}: {key}: {plan} is missing; it says how {path} is launched")


def _check_kernel(where: str, key: str, path: str, device: str) -> None:
    """A baseline may be what production runs, without its source; a second opinion has to be read by people."""
    allowed = (".cu", ".ptx", ".cubin") if key == "baseline" else (".cu",)
    if not path.endswith(allowed):
        binary = ", or a binary that ends in .ptx or .cubin" if key == "baseline" else ""
        raise InputProblem(
            f"{where}: {key}: {path!r} is not allowed; allowed: a CUDA C++ source that ends in .cu{binary}"
        )
    if path.endswith(".cubin") and device == "cpu":
        raise InputProblem(
            f"{where}: {key}: {path} is machine code, which only a card runs; give its PTX, or set device: cuda"
        )


def _check_path(where: str, path: str, folder: Path) -> None:
    """Look for what a key names; `where` ends with the key."""
    if not path or PurePosixPath(path).is_absolute() or "\\" in path:
        raise InputProblem(f"{where}: {path!r} is not allowed; allowed: a path relative to the config file")
    if leads_out(PurePosixPath(path)):
        raise InputProblem(f"{where}: {path} leads out of the config's folder; copy it there and name the copy")
    key = where.rpartition(": ")[2]
    found = folder / path
    if key == "replies" and found.is_dir() and not any(found.glob("*.json")):
        raise InputProblem(f"{where}: {path} holds no reply; name a folder such as results/TRIAL/replies")
    is_folder = key in FOLDERS or key == "application"
    if not (found.is_dir() if is_folder else found.is_file()):
        kind = "folder" if is_folder else "file"
        raise InputProblem(f"{where}: there is no {kind} {path}; create it or correct the key")
