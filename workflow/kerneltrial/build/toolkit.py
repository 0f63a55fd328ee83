"""Where the toolkit's headers lie, and how this host's paths are kept out of logs and binaries."""

import importlib.util
import os
import sys
import sysconfig
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

_PACKAGE = Path(__file__).resolve().parents[1]
MAXIMUM_LOG_BYTES = 1 << 20
_SYSTEM_TOOLKITS = ("CUDA_HOME", "CUDA_PATH")


def include_folders() -> tuple[Path, ...]:
    """Folders with the headers of the CUDA runtime and of CCCL.

    NVRTC finds no headers by itself. Wheels put them under the `nvidia` namespace: CUDA 13 in `cu13/include`, CUDA 12
    in a folder a package. Where no wheel holds any, the system's toolkit is taken.
    """
    places = [Path(place) for place in _namespace_paths()]
    unified = [place / "cu13" for place in places if (place / "cu13" / "include").is_dir()]
    packages = unified or [package for place in places for package in sorted(place.iterdir()) if package.is_dir()]
    found = [folder for package in packages for folder in _with_cccl(package)]
    if not any((folder / "cuda_runtime.h").is_file() for folder in found):
        found += [folder for root in system_toolkits() for folder in _with_cccl(root)]
    return tuple(dict.fromkeys(found))


def system_toolkits() -> tuple[Path, ...]:
    """Toolkits outside Python's packages: those that the environment names, then the usual place."""
    named = [Path(os.environ[name]) for name in _SYSTEM_TOOLKITS if os.environ.get(name)]
    found = [*named, Path("/usr/local/cuda")]
    return tuple(dict.fromkeys(root.resolve() for root in found if root.is_dir()))


def nvidia_packages() -> tuple[Path, ...]:
    """The folders of the `nvidia` namespace, which hold libraries, headers and device code."""
    return tuple(Path(place) for place in _namespace_paths())


def _namespace_paths() -> Iterable[str]:
    spec = importlib.util.find_spec("nvidia")
    return tuple(spec.submodule_search_locations or ()) if spec else ()


def _with_cccl(root: Path) -> list[Path]:
    return [folder for folder in (root / "include", root / "include" / "cccl") if folder.is_dir()]


def scrub(text: str, names: Mapping[str, str]) -> str:
    """Replace this host's paths: those in `names`, longest first, by what they stand for, and Python's own."""
    places = {
        sysconfig.get_path("purelib"): "<packages>",
        sys.prefix: "<python>",
        sys.base_prefix: "<python>",
        str(_PACKAGE): "<kerneltrial>",
    }
    for path, name in sorted({**places, **names}.items(), key=lambda item: -len(item[0])):
        text = text.replace(path, name)
    return text


def path_names(toolkit: Sequence[Path], contract: Mapping[str, Path]) -> dict[str, str]:
    """What each include folder is called in records: `<toolkit>`, `<toolkit>/cccl`, or the contract's own word."""
    names = {str(folder): "<toolkit>/cccl" if folder.name == "cccl" else "<toolkit>" for folder in toolkit}
    return names | {str(folder): f"<{word}>" for word, folder in contract.items()}


def bounded(log: str) -> bytes:
    """A log as bytes, at most a megabyte: its beginning, which names the first error, and a word on the rest."""
    content = log.encode()
    if len(content) <= MAXIMUM_LOG_BYTES:
        return content
    kept = content[: MAXIMUM_LOG_BYTES - 200].decode(errors="ignore")
    return f"{kept}\n… {len(content)} bytes in all; the rest is left out\n".encode()
