"""`kerneltrial init DIR`: a folder with a small trial of one's own, ready to run and to be edited."""

import argparse
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
    try:
        shutil.copytree(STARTER, folder, dirs_exist_ok=True, ignore=shutil.ignore_patterns("__pycache__"))
        (folder / ".gitignore").write_text(_IGNORED)
    except OSError as fault:
        why = fault.strerror or fault
        raise InputProblem(f"{given.folder}: cannot be made ({why}); name a folder elsewhere") from None
    clone = next((above for above in folder.parents if (above / "workflow/kerneltrial/__main__.py").is_file()), None)
    if clone is not None:
        print(
            f"kerneltrial: {given.folder} lies inside the clone {clone.name}, whose git would take it in: move it",
            file=sys.stderr,
        )
    print(f"{given.folder}: a trial of out = alpha * x + y that runs as it is")
    print(f"next: cd {shlex.quote(str(given.folder))} && snakemake --cores 1")
    print("then put your kernel in kernels/, your oracle and cases in cases/, and name them in config.yaml;")
    print("`kerneltrial rehearse` tries them before anything is locked")
    print("application/ is run with both kernels once you set end_to_end.words: [python3, app.py]; GO needs one")
    return 0
