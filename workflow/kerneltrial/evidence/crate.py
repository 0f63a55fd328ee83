"""The metadata of a sealed bundle as a Workflow Run RO-Crate, for archives that read such crates. Pure.

RO-Crate 1.1 (https://w3id.org/ro/crate/1.1) with the profiles Workflow RO-Crate 1.0, Process Run Crate 0.5 and Workflow
Run Crate 0.5 (https://w3id.org/ro/wfrun). The bundle lies in the crate as it is, in `evidence/`; the crate adds nothing
to what it shows.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any

METADATA, EVIDENCE, WORKFLOW = "ro-crate-metadata.json", "evidence", "Snakefile"
_PROFILES = {
    "https://w3id.org/ro/wfrun/process/0.5": ("Process Run Crate", "0.5"),
    "https://w3id.org/ro/wfrun/workflow/0.5": ("Workflow Run Crate", "0.5"),
    "https://w3id.org/workflowhub/workflow-ro-crate/1.0": ("Workflow RO-Crate", "1.0"),
}
_SNAKEMAKE = "https://w3id.org/workflowhub/workflow-ro-crate#snakemake"
_FORMATS = {
    ".json": "application/json",
    ".html": "text/html",
    ".md": "text/markdown",
    ".yaml": "application/yaml",
    ".svg": "image/svg+xml",
    ".png": "image/png",
    ".py": "text/x-python",
}


@dataclass(frozen=True)
class Told:
    """What is said of a trial: its outcome, when it ran and was sealed (ISO 8601), digests of its files by path."""

    trial: str
    kernel: str
    outcome: str
    started_at: str
    ended_at: str
    sealed_at: str
    inputs: Mapping[str, str]
    results: Mapping[str, str]
    licence: str


def crate(told: Told) -> dict[str, Any]:
    """The content of ro-crate-metadata.json."""
    return {"@context": "https://w3id.org/ro/crate/1.1/context", "@graph": list(_graph(told))}


def _graph(told: Told) -> Iterator[dict[str, Any]]:
    files = {**told.inputs, **told.results}
    conforms = ["https://w3id.org/ro/crate/1.1", "https://w3id.org/workflowhub/workflow-ro-crate/1.0"]
    yield {"@id": METADATA, "@type": "CreativeWork", "about": _id("./"), "conformsTo": [_id(name) for name in conforms]}
    yield {
        "@id": "./",
        "@type": "Dataset",
        "name": f"Evidence of the kerneltrial trial {told.trial}",
        "description": f"A trial of one question: should the kernel {told.kernel} be replaced by the candidate that "
        f"was found? It ended {told.outcome}. The folder {EVIDENCE} is the sealed bundle as it is; "
        f"{EVIDENCE}/VERIFY.md says how to check it.",
        "datePublished": told.sealed_at,
        "license": told.licence,
        "conformsTo": [_id(name) for name in _PROFILES],
        "hasPart": [_id(WORKFLOW), *(_id(f"{EVIDENCE}/{path}") for path in files), _id(f"{EVIDENCE}/")],
        "mainEntity": _id(WORKFLOW),
        "mentions": [_id("#run")],
    }
    for name, (title, version) in _PROFILES.items():
        yield {"@id": name, "@type": "CreativeWork", "name": title, "version": version}
    yield from _workflow(told)
    yield {
        "@id": "#run",
        "@type": "CreateAction",
        "name": f"The trial {told.trial}",
        "description": "Lock, qualification, iterations of proposing and judging, confirmation, decision, report",
        "instrument": _id(WORKFLOW),
        "object": [_id(f"{EVIDENCE}/{path}") for path in told.inputs],
        "result": [_id(f"{EVIDENCE}/{path}") for path in told.results],
        "startTime": told.started_at,
        "endTime": told.ended_at,
        "actionStatus": _id("http://schema.org/CompletedActionStatus"),
    }
    yield {"@id": f"{EVIDENCE}/", "@type": "Dataset", "name": "The sealed bundle, every file of it"}
    for path, digest in files.items():
        yield _file(path, digest)


def _workflow(told: Told) -> Iterator[dict[str, Any]]:
    yield {
        "@id": WORKFLOW,
        "@type": ["File", "SoftwareSourceCode", "ComputationalWorkflow"],
        "name": "kerneltrial: the steps of a trial",
        "description": "Includes the rules that come with kerneltrial; what is tried stands in the trial's config",
        "programmingLanguage": _id(_SNAKEMAKE),
    }
    yield {
        "@id": _SNAKEMAKE,
        "@type": "ComputerLanguage",
        "name": "Snakemake",
        "alternateName": "Snakemake",
        "identifier": _id("https://doi.org/10.1093/bioinformatics/bts480"),
        "url": _id("https://snakemake.readthedocs.io"),
    }


def _file(path: str, digest: str) -> dict[str, Any]:
    found = {
        "@id": f"{EVIDENCE}/{path}",
        "@type": "File",
        "name": PurePosixPath(path).name,
        "identifier": f"sha256:{digest}",
    }
    form = _FORMATS.get(PurePosixPath(path).suffix)
    return {**found, "encodingFormat": form} if form else found


def _id(name: str) -> dict[str, str]:
    return {"@id": name}
