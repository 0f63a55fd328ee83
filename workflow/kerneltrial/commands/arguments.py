"""The arguments of the command line; each command's work lies in its own module, imported when it is asked for."""

import argparse
import importlib
from collections.abc import Sequence
from pathlib import Path

from kerneltrial.commands.usage import Parser, Version
from kerneltrial.dag.graph import STAGES

COMMANDS = {
    "init": "make a folder with a trial of one's own",
    "doctor": "say what is installed, which device there is, and what is missing",
    "rehearse": "try lock and qualification in a scratch copy, before anything is locked",
    "receipt": "take in a reviewer's signature under the lock page, before the first proposal",
    "heads": "say how far the journal has come, for the reviewer to keep",
    "seal": "end the trial: reveal the salt, write down and sign every file's digest",
    "bundle": "pack the sealed evidence as one reproducible tar file",
    "rocrate": "write a bundle as a Workflow Run RO-Crate, for archives that read those",
    "verify": "check evidence: a bundle, a folder, or the trial of the config",
    "compare": "show two trials side by side: what differs, attempts, best, cost",
    "ask-again": "have a model or program asked anew for an iteration, although its replies are recorded",
    "try": "have a draft judged, from within a program that proposes",
    "rerun": "run one case of a winner again from its best-case-N.json, and compare",
    "export": "write the winner as a Python package that launches it, or the baseline where it does not fit",
    "import": "make trials of problems in PyTorch (Model, get_inputs, get_init_inputs), or report on them",
    "cost-sheet": "write prices and workload as a CSV file, every field explained, to be filled in",
    "prices": "print a model's list price for the config",
}

_WITHOUT_A_TRIAL = ("init", "compare", "prices", "try", "rerun", "rocrate", "import")


def parser(only: str = "") -> Parser:
    """The parser of all stages and commands; of one alone where `only` names it, as each job of a trial starts here."""
    shown = {only} if only in STAGES or only in COMMANDS else {*STAGES, *COMMANDS}
    top = Parser(
        prog="kerneltrial",
        description="A locked, evidence-keeping trial of one question: should we replace this kernel by that one?",
        epilog="A trial of your own: `kerneltrial init DIR`, then `snakemake --cores 1` there, which runs the stages.",
    )
    top.add_argument("--version", action=Version, nargs=0, help="say which version is installed")
    kinds = top.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for command, text in ((name, text) for name, text in COMMANDS.items() if name in shown):
        one = kinds.add_parser(command, help=text, description=text)
        if command not in _WITHOUT_A_TRIAL:
            _trial_arguments(one)
        _own_arguments(command, one)
    for stage, spec in ((name, spec) for name, spec in STAGES.items() if name in shown):
        text = f"stage: make the record {spec.record}.json"
        one = kinds.add_parser(stage, help=text, description=f"{text}, by hand; `snakemake` runs all stages in order")
        _trial_arguments(one)
        one.add_argument("--code", default="", help=argparse.SUPPRESS)
        one.add_argument("--log", type=Path, help=argparse.SUPPRESS)
        if spec.loop:
            one.add_argument("--iteration", type=int, required=True, metavar="N", help="which iteration, from 1")
        if stage == "lock":
            one.add_argument("--new", action="store_true", help="set the old trial aside and lock anew")
            one.add_argument("--sign", type=Path, metavar="KEY", help="sign the lock page with this SSH key")
    return top


def unknown_command(argv: Sequence[str]) -> str | None:
    """What to say of a first word that is neither a stage nor a command, or None."""
    word = argv[0] if argv else ""
    known = (*STAGES, *COMMANDS)
    if not word or word.startswith("-") or word in known:
        return None
    if word == "help":
        return "there is no command 'help'; `kerneltrial COMMAND --help` explains one"
    import difflib  # only where a word is wrong

    near = difflib.get_close_matches(word, known, n=1)
    guess = f"; did you mean {near[0]!r}?" if near else ""
    return f"there is no command {word!r}{guess}"


def _own_arguments(command: str, one: argparse.ArgumentParser) -> None:
    match command:
        case "init":
            one.add_argument("folder", type=Path, metavar="DIR", help="a folder that is not there yet, or an empty one")
        case "export":
            words = "loader: a package that needs cuda.core alone; torch: a custom operation of PyTorch"
            one.add_argument("form", choices=("loader", "torch"), help=words)
            one.add_argument(
                "--out",
                type=Path,
                metavar="FOLDER",
                help="where to (reports/TRIAL/CONTRACT_loader or CONTRACT_torch_loader)",
            )
        case "import":
            one.add_argument("form", choices=("torch", "report"), help="torch: import; report: what came of them")
            one.add_argument("paths", type=Path, nargs="+", metavar="FILE", help="problems, or folders of them")
            one.add_argument("--out", type=Path, default=Path("imported"), metavar="FOLDER", help="where to (imported)")
        case "rerun":
            one.add_argument("file", type=Path, metavar="FILE", help="a best-case-N.json of a report")
            one.add_argument("--device", choices=("auto", "cpu", "cuda"), default="auto", help="where to run it (auto)")
            one.add_argument(
                "--inputs", type=Path, metavar="FOLDER", help="where the case's .npy files lie (beside FILE)"
            )
        case "ask-again":
            one.add_argument(
                "iteration", type=int, metavar="ITERATION", help="its number; those after it are asked anew too"
            )
        case "compare":
            one.add_argument("first", metavar="A", help="a trial under results/, or the path of its results or folder")
            one.add_argument("second", metavar="B", help="the other, named likewise")
        case "try":
            one.add_argument("draft", type=Path, metavar="FILE", help="JSON in the form of schema.json")
        case "cost-sheet":
            one.add_argument("--out", type=Path, default=Path("costs.csv"), metavar="FILE", help="where to (costs.csv)")
        case "prices":
            one.add_argument("model", metavar="MODEL", help="as model.name in the config")
        case "receipt":
            one.add_argument("signature", type=Path, help="the reviewer's lock-page.txt.sig")
        case "seal":
            one.add_argument("--sign", type=Path, metavar="KEY", help="an SSH key of the team")
        case "bundle":
            one.add_argument("--out", type=Path, metavar="FILE", help="where to (TRIAL-evidence.tar beside the config)")
        case "rocrate":
            one.add_argument("bundle", type=Path, metavar="BUNDLE", help="a tar file that `kerneltrial bundle` made")
            one.add_argument("--out", type=Path, metavar="FILE", help="where to (BUNDLE.crate.zip)")
            one.add_argument(
                "--license", default="none stated: ask the trial's team", metavar="TEXT", help="or a URL: for the crate"
            )
        case "verify":
            one.add_argument(
                "evidence",
                type=Path,
                nargs="?",
                metavar="BUNDLE",
                help="a tar file, or it unpacked, or a trial's results/NAME",
            )
            one.add_argument("--keys", type=Path, metavar="FILE", help="OpenSSH allowed_signers, from the people")
            one.add_argument("--at", default="", metavar="DAY", help="when keys must have been valid (today)")
            one.add_argument("--heads", type=Path, metavar="FILE", help="heads that were handed out during the run")
            one.add_argument(
                "--recompile",
                choices=("winner", "all", "none"),
                help="compile sources again (the winner's of a bundle, none of a trial in its own folder)",
            )
            one.add_argument(
                "--rerun",
                type=Path,
                metavar="ORACLE",
                help="judge winner and baseline again on a device here; ORACLE is Python: a copy that you have read",
            )


def _trial_arguments(one: argparse.ArgumentParser) -> None:
    one.add_argument("--config", type=Path, default=Path("config.yaml"), help="the trial's config (config.yaml)")
    one.add_argument(
        "--set", action="append", default=[], metavar="KEY=VALUE", help="override a config key, such as iterations=7"
    )


def dispatch(given: argparse.Namespace, root: Path) -> int:
    """Run what was asked for; return the exit status."""
    name = (
        "stage"
        if given.command in STAGES
        else {"try": "try_draft", "import": "import_problem"}.get(given.command, given.command)
    )
    status: int = importlib.import_module(f"kerneltrial.commands.{name.replace('-', '_')}").run(given, root)
    return status
