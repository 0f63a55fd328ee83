"""`kerneltrial init DIR`: a folder with a small trial of one's own, ready to run and to be edited."""

import argparse
import contextlib
import shlex
import shutil
import sys
from pathlib import Path

from kerneltrial.inputs.problem import InputProblem

STARTER = Path(__file__).with_name("starter")
_IGNORED = """# generated; results/NAME/private holds the salt of the sealed cases, which never travels before the seal
.snakemake/
results/
__pycache__/
"""


def run(given: argparse.Namespace, root: Path) -> int:
    """Copy the starter; an existing folder must be empty."""
    folder = (root / given.folder).resolve()
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise InputProblem(f"{given.folder}: is there already and is not empty; name a new folder")
    _copy(folder, str(given.folder))
    clone = next((above for above in folder.parents if (above / "workflow/kerneltrial/__main__.py").is_file()), None)
    if clone is not None:
        print(
            f"kerneltrial: {given.folder} lies inside the clone {clone.name}, whose git would take it in: move it",
            file=sys.stderr,
        )
    print(f"{given.folder}: a trial of out = alpha * x + y that runs as it is")
    print(f"next: cd {shlex.quote(str(given.folder))} && snakemake --cores 1")
    print("then put your kernel in kernels/, oracle, reference and cases in cases/, and name them in config.yaml;")
    print("`kerneltrial rehearse` tries them before anything is locked")
    print("application/ is run with both kernels once you set end_to_end.words: [python3, app.py]; GO needs one")
    return 0


def _copy(folder: Path, name: str) -> None:
    """All of the starter, or nothing: half of one would be refused as a folder that is not empty."""
    there = folder.is_dir()
    try:
        shutil.copytree(STARTER, folder, dirs_exist_ok=True, ignore=shutil.ignore_patterns("__pycache__"))
        (folder / ".gitignore").write_text(_IGNORED)
    except OSError as fault:
        with contextlib.suppress(OSError):
            for path in folder.iterdir() if there else [folder]:
                shutil.rmtree(path) if path.is_dir() else path.unlink()
        # `shutil.Error` has a list of (from, to, why) in the place of an errno
        why = fault.strerror or (fault.args[0][-1][-1] if isinstance(fault, shutil.Error) else str(fault))
        raise InputProblem(f"{name}: cannot be made ({why}); name a folder elsewhere") from fault
