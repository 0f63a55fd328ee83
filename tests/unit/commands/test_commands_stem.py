"""A stage that is forked from the run's stem is like one that was started for itself, and ends when it should."""

import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from kerneltrial.commands import stem as commanded
from kerneltrial.dag import stem
from kerneltrial.inputs import documents
from kerneltrial.report import page

HAND_OVER = Path(stem.__file__).with_name("hand_over.py")
WAIT_S = 60.0
# A run: it starts a stem whose stages execute $BODY, says who that is, and starts the jobs that its input names.
RUN = """
import os, socket, subprocess, sys
from kerneltrial.dag import guard, stem
guard.announce_run()
listening = socket.socket(socket.AF_UNIX)
name = f"kerneltrial-test-{os.getpid()}"
listening.bind(chr(0) + name)
listening.listen(8)
words = [sys.executable, "-c", os.environ["STEM"], str(listening.fileno()), str(os.getpid()), "cpu", "absent"]
held = subprocess.Popen(words, pass_fds=(listening.fileno(),), env={**os.environ, "MARK": "stem"})
listening.close()
os.environ[stem.NAME] = name
print(held.pid, flush=True)
for line in sys.stdin:
    program, *arguments = line.split()
    job = subprocess.Popen([program, "-I", "-S", *arguments])
    print("status", job.wait(), flush=True)
"""
STEM = """
import os, sys
from kerneltrial.commands import stem
stem._MODULES, stem._kept = ("json",), lambda device: ()
stem.serve(sys.argv[1:])
exec(os.environ["BODY"])
"""


class Run:
    """A process that stands for Snakemake, and the stem that it started."""

    def __init__(self, folder: Path, body: str, **environment: str) -> None:
        self.folder = folder
        script = folder / "run.py"
        script.write_text(RUN)
        variables = {"STEM": STEM, "BODY": body, "OPENBLAS_NUM_THREADS": "1", **environment}
        self.process = subprocess.Popen(
            [sys.executable, str(script)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            text=True, cwd=folder, env={**os.environ, **variables},
        )  # fmt: skip
        assert self.process.stdout is not None
        self.stem = int(self.process.stdout.readline())

    def job(self, *words: str, program: str = sys.executable) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(" ".join((program, *words)) + "\n")
        self.process.stdin.flush()

    def status(self) -> int:
        """Of the job, after the lines that it printed, which are thrown away."""
        assert self.process.stdout is not None
        while not (line := self.process.stdout.readline()).startswith("status "):
            assert line, "the run ended"
        return int(line.split()[1])

    def told(self) -> str:
        """What the run and its jobs said on standard error, to the end."""
        return self.process.communicate(timeout=WAIT_S)[1]


@pytest.fixture
def runs(tmp_path: Path) -> Iterator[list[Run]]:
    started: list[Run] = []
    yield started
    for run in started:
        run.process.kill()
        run.process.communicate()


def waited_for(path: Path) -> str:
    """The text of a file, once it has any."""
    deadline = time.monotonic() + WAIT_S
    while not (path.is_file() and path.read_text().endswith("\n")):
        assert time.monotonic() < deadline, f"{path} never came"
        time.sleep(0.02)
    return path.read_text()


def gone(pid: int) -> bool:
    deadline = time.monotonic() + WAIT_S
    while time.monotonic() < deadline:
        try:
            if Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z":
                return True
        except OSError:
            return True
        time.sleep(0.02)
    return False


def test_a_stage_gets_what_its_job_has_and_its_status_is_the_jobs(tmp_path: Path, runs: list[Run]) -> None:
    body = """
import json
from pathlib import Path
told = {"argv": sys.argv[1:], "folder": os.getcwd(), "parent": os.getppid(), "mark": os.environ.get("MARK"),
        "run": os.environ["KERNELTRIAL_RUN"], "stem": os.environ.get("KERNELTRIAL_STEM"), "own": os.environ.get("OWN")}
Path("told").write_text(json.dumps(told) + chr(10))
print("on standard error", file=sys.stderr, flush=True)
sys.exit(41)
"""
    run = Run(tmp_path, body, OWN="the job's")
    runs.append(run)
    run.job(str(HAND_OVER), "cost", "--iteration", "2")
    assert run.status() == 41
    found = json.loads((tmp_path / "told").read_text())
    assert found.pop("parent") == run.stem == int(found.pop("run"))
    wanted = {"argv": ["cost", "--iteration", "2"], "folder": str(tmp_path), "mark": None, "stem": None}
    assert found == {**wanted, "own": "the job's"}
    assert "on standard error" in run.told()


def test_a_stage_that_a_signal_ends_ends_its_job_so(tmp_path: Path, runs: list[Run]) -> None:
    run = Run(tmp_path, "os.kill(os.getpid(), 15)")
    runs.append(run)
    run.job(str(HAND_OVER), "cost")
    assert run.status() == -signal.SIGTERM


def test_each_stage_is_a_process_of_its_own(tmp_path: Path, runs: list[Run]) -> None:
    body = "import json; n = getattr(json, 'n', 0) + 1; json.n = n; sys.exit(n)"
    run = Run(tmp_path, body)
    runs.append(run)
    for _ in range(3):
        run.job(str(HAND_OVER), "cost")
        assert run.status() == 1


def test_whoever_the_run_did_not_start_is_turned_away(tmp_path: Path, runs: list[Run]) -> None:
    """Its stage would write a file; what the run's grandchild starts itself finds that it is no stage of the run."""
    run = Run(tmp_path, "open('taken', 'w').close()")
    runs.append(run)
    between = tmp_path / "between.py"
    between.write_text(
        f"import subprocess, sys; sys.exit(subprocess.run([sys.executable, {str(HAND_OVER)!r}, 'cost', '--iteration', "
        "'1', '--config', 'absent.yaml']).returncode)"
    )
    run.job(str(between))
    assert run.status() == 1
    assert not (tmp_path / "taken").exists()
    assert "the run that started this stage is gone" in run.told()


def test_without_a_stem_a_job_starts_its_stage_itself(tmp_path: Path) -> None:
    words = [sys.executable, "-I", "-S", str(HAND_OVER), "cost", "--iteration", "1", "--config", "absent.yaml"]
    for name in ("", "kerneltrial-of-nobody"):
        environment = {**os.environ, stem.NAME: name, "OPENBLAS_NUM_THREADS": "1"}
        done = subprocess.run(words, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=WAIT_S)
        assert (done.returncode, done.stderr.count("\n")) == (3, 1)
        assert "absent.yaml" in done.stderr


def test_with_another_number_of_threads_a_job_starts_its_stage_itself(tmp_path: Path, runs: list[Run]) -> None:
    run = Run(tmp_path, "open('taken', 'w').close()", OPENBLAS_NUM_THREADS="2")
    runs.append(run)
    run.job(str(HAND_OVER), "cost", "--iteration", "1", "--config", "absent.yaml")
    assert run.status() == 3
    assert not (tmp_path / "taken").exists()


STAYS = """
import time
from pathlib import Path
from kerneltrial.dag import guard
guard.die_with_parent()  # as each stage does
Path("pid").write_text(f"{os.getpid()}\\n")
time.sleep(600)
"""


@pytest.mark.parametrize("whom", ["job", "stem", "run", "stage"])
def test_a_death_anywhere_ends_the_stage(tmp_path: Path, runs: list[Run], whom: str) -> None:
    run = Run(tmp_path, STAYS)
    runs.append(run)
    run.job(str(HAND_OVER), "cost")
    stage = int(waited_for(tmp_path / "pid"))
    children = Path(f"/proc/{run.process.pid}/task/{run.process.pid}/children").read_text().split()
    (job,) = (int(pid) for pid in children if int(pid) != run.stem)
    os.kill({"job": job, "stem": run.stem, "run": run.process.pid, "stage": stage}[whom], signal.SIGKILL)
    assert gone(stage)
    if whom == "run":
        assert gone(run.stem)
        assert gone(job)
        return
    assert run.status() == (3 if whom == "stem" else -signal.SIGKILL)
    if whom == "stem":
        assert "was ended; run the same command again" in run.told()


def test_documents_are_parsed_and_templates_compiled_ahead(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(Path(__file__).parents[3])
    documents._parsed.cache_clear()
    page._environment.cache_clear()
    commanded._read(Path("config.yaml"))
    parsed_ahead = documents._parsed.cache_info().misses
    assert {"page.html.j2", "verdict.html.j2"} <= {name for _, name in page._environment("en").cache}
    contract = documents.read_document(Path("kernels/matmul_f32/contract.yaml"))
    assert documents._parsed.cache_info().misses == parsed_ahead
    contract["arguments"].clear()  # what one reader does to its own is not seen by the next
    assert documents.read_document(Path("kernels/matmul_f32/contract.yaml"))["arguments"]


def test_a_job_that_is_stopped_while_the_stem_is_not_ready_leaves_no_trace(tmp_path: Path) -> None:
    name = f"kerneltrial-test-{os.getpid()}-waiting"
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as deaf:
        deaf.bind(f"\0{name}")
        deaf.listen(1)
        job = subprocess.Popen(
            [sys.executable, "-I", "-S", str(HAND_OVER), "cost"],
            cwd=tmp_path,
            env={**os.environ, "KERNELTRIAL_STEM": name, "OPENBLAS_NUM_THREADS": "1"},
            stderr=subprocess.PIPE,
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
        )
        asked, _ = deaf.accept()
        assert asked.recv(1)
        job.send_signal(signal.SIGINT)
        assert (job.communicate(timeout=WAIT_S)[1], job.returncode) == (b"", -signal.SIGINT)
