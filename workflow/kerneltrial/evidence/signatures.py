"""SSH signatures, made and checked by `ssh-keygen -Y`: whoever checks needs nothing that is not on his machine already.

Each kind of document has a namespace of its own, so that a signature under one can never stand under another. Keys to
check with are an OpenSSH `allowed_signers` file that the reader brings; nothing in the evidence is taken for a key.
"""

import os
import re
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path

from kerneltrial.evidence.problem import EvidenceProblem

LOCK = "kerneltrial-lock"
RECEIPT = "kerneltrial-receipt"
SEAL = "kerneltrial-seal"

_GOOD = re.compile(r'^Good "(?P<namespace>\S+)" signature for (?P<name>.+) with \S+ key (?P<key>SHA256:\S+)$')


@dataclass(frozen=True)
class Signer:
    """Who signed: the name that the reader's own file of keys gives, and the key's fingerprint."""

    name: str
    key: str


def sign(message: bytes, key: Path, namespace: str) -> bytes:
    """The armoured signature of `message`; a passphrase is asked for on the terminal by ssh-keygen itself."""
    require_key(key)
    done = _run(["sign", "-n", namespace, "-f", str(key)], message)
    if done.returncode or not done.stdout.startswith(b"-----BEGIN SSH SIGNATURE-----"):
        raise EvidenceProblem(f"{key}: ssh-keygen did not sign with it: {_last(done.stderr)}")
    return done.stdout


def require_key(key: Path) -> None:
    """Raise EvidenceProblem where the file is no SSH key; asks for no passphrase."""
    if not key.is_file():
        raise EvidenceProblem(f"{key}: no such key; name an SSH private key, or a public one that an agent holds")
    done = _ssh_keygen(["-l", "-f", str(key)], b"")
    if done.returncode:
        raise EvidenceProblem(f"{key}: is no SSH key: {_last(done.stderr)}")


def signer(message: bytes, signature: bytes, keys: Path, namespace: str, at: str = "") -> Signer:
    """Who signed `message`, by the reader's file of keys.

    Parameters
    ----------
    keys : Path
        An `allowed_signers` file, a line for each key; its options (namespaces, dates) are honoured.
    at : str
        The time at which the key must have been valid, as YYYYMMDDHHMMSS in UTC; now where it is empty.

    Raises
    ------
    EvidenceProblem
        The signature is of other bytes or another namespace, or its key is foreign, expired, or not valid yet.
    """
    if not keys.is_file():
        raise EvidenceProblem(f"{keys}: there is no such file of keys (OpenSSH allowed_signers)")
    when = [f"-Overify-time={at}"] if at else []
    with tempfile.NamedTemporaryFile(suffix=".sig") as file:
        file.write(signature)
        file.flush()
        found = _run(["find-principals", *when, "-s", file.name, "-f", str(keys)], b"")
        names = found.stdout.decode(errors="replace").replace(",", "\n").split("\n")
        if found.returncode or not names[0]:
            raise EvidenceProblem(f"the key is foreign ({keys.name} does not name it) or not valid at that time")
        done = _run(["verify", *when, "-n", namespace, "-I", names[0], "-s", file.name, "-f", str(keys)], message)
    match = _GOOD.match(done.stdout.decode(errors="replace").strip())
    if done.returncode or match is None or match["namespace"] != namespace:
        why = _last(done.stderr)
        raise EvidenceProblem(f"the signature of {names[0]} is not one of these bytes as {namespace}: {why}")
    return Signer(name=match["name"], key=match["key"])


def key_of(message: bytes, signature: bytes, namespace: str) -> str:
    """The fingerprint of the key that signed `message`, whoever's it is; raises where the signature does not fit."""
    with tempfile.NamedTemporaryFile(suffix=".sig") as file:
        file.write(signature)
        file.flush()
        done = _run(["check-novalidate", "-n", namespace, "-s", file.name], message)
    match = re.search(r"key (SHA256:\S+)", done.stdout.decode(errors="replace"))
    if done.returncode or match is None:
        raise EvidenceProblem(f"the signature is not one of these bytes as {namespace}")
    return match[1]


def _run(arguments: list[str], message: bytes) -> subprocess.CompletedProcess[bytes]:
    return _ssh_keygen(["-Y", *arguments], message)


def _ssh_keygen(arguments: list[str], message: bytes) -> subprocess.CompletedProcess[bytes]:
    environment = {**os.environ, "TZ": "UTC", "LC_ALL": "C"}  # times in allowed_signers mean the same everywhere
    try:
        return subprocess.run(["ssh-keygen", *arguments], input=message, capture_output=True, env=environment)
    except FileNotFoundError:
        raise EvidenceProblem("ssh-keygen is not installed; install OpenSSH's client") from None


def _last(output: bytes) -> str:
    lines = output.decode(errors="replace").strip().splitlines()
    return lines[-1] if lines else "no reason was given"
