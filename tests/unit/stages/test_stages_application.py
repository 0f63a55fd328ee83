"""End to end: the application with both kernels in turn, what it prints or takes, and how it can go wrong."""

import json
import shutil
from importlib import resources
from pathlib import Path

import numpy as np
import pytest

from kerneltrial.inputs.contracts import read_contract
from kerneltrial.inputs.plans import read_plan
from kerneltrial.loader import LoaderProblem, OnCard, Told, load
from kerneltrial.measure.application import end_to_end, order
from kerneltrial.records.application import ApplicationRun, ApplicationRuns, EndToEndAsked
from kerneltrial.records.confirmation import EndToEndFailed, NotSeen, Seen
from kerneltrial.records.device import Device
from kerneltrial.stages.application import (
    Application,
    ApplicationProblem,
    Stopped,
    environment,
    interleaved,
    run_once,
)
from kerneltrial.store.canonical import canonical

NAME = "import os, sys; name = os.path.basename(os.environ['KERNELTRIAL_KERNEL']); "
COUNTED = "open(os.environ['KERNELTRIAL_COUNTS'], 'w').write('{\"calls\": 6, \"peak_bytes\": 1024}'); "


@pytest.fixture
def folders(tmp_path):
    found = {name: tmp_path / name for name in "ab"}
    for folder in found.values():
        folder.mkdir()
    return found


def application(tmp_path, code, **asked):
    (tmp_path / "app.py").write_text(NAME + code)
    return Application(EndToEndAsked(words=("python3", "app.py"), pairs=5, **asked), tmp_path)


def test_runs_come_in_turn_and_the_saving_is_that_of_pairs(tmp_path, folders):
    printed = "print('kerneltrial_ms: 99'); print('kerneltrial_ms:', {'a': 12.0, 'b': 9.0}[name])"
    asked = application(tmp_path, COUNTED + printed, measure="printed", invocations=3)
    stored = interleaved(asked, folders)
    assert "".join(run.kernel for run in stored.runs) == order(5) == "abbaabbaab"
    found = end_to_end(stored, asked.asked, 0.95, "0" * 64)
    assert (found.saved_ms.low, found.saved_ms.middle, found.saved_ms.high) == (1.0, 1.0, 1.0)
    assert (found.baseline_ms, found.candidate_ms, found.processes) == (4.0, 3.0, 5)
    assert found.seen == Seen(calls_per_invocation=2.0, baseline_peak_bytes=1024, candidate_peak_bytes=1024)
    assert all(run.wall_ms > 1 for run in stored.runs)


def test_wall_time_counts_where_nothing_is_printed(tmp_path, folders):
    run = run_once(application(tmp_path, "import time; time.sleep(0.1)"), "a", folders["a"])
    assert run.ms == run.wall_ms
    assert run.ms > 100
    assert run.calls == 0


def test_calls_that_nobody_counted_are_not_known():
    runs = tuple(ApplicationRun(kernel=name, ms=10.0, wall_ms=11.0) for name in order(5))
    assert isinstance(end_to_end(ApplicationRuns(runs=runs), EndToEndAsked(), 0.95, "0" * 64).seen, NotSeen)


def test_the_interval_is_students_t_over_pairs():
    times = {"a": iter([10.0, 11.0, 10.5, 10.0, 10.5]), "b": iter([9.0, 9.5, 9.5, 9.0, 9.25])}
    runs = tuple(ApplicationRun(kernel=name, ms=next(times[name]), wall_ms=1.0) for name in order(5))
    saved = end_to_end(ApplicationRuns(runs=runs), EndToEndAsked(), 0.95, "0" * 64).saved_ms
    differences = np.array([1.0, 1.5, 1.0, 1.0, 1.25])
    half = 2.776445 * differences.std(ddof=1) / np.sqrt(5)
    assert saved.middle == pytest.approx(differences.mean())
    assert saved.high - saved.middle == pytest.approx(half, rel=1e-6)


def test_runs_that_are_no_pairs_are_refused():
    runs = tuple(ApplicationRun(kernel="a", ms=1.0, wall_ms=1.0) for _ in range(4))
    with pytest.raises(ValueError, match="pairs"):
        end_to_end(ApplicationRuns(runs=runs), EndToEndAsked(), 0.95, "0" * 64)


@pytest.mark.parametrize(
    ("code", "asked", "words"),
    [
        ("sys.exit('out of luck')", {}, "exit status 1, out of luck"),
        ("print('nothing')", {"measure": "printed"}, "printed no line"),
        ("import time; time.sleep(30)", {"timeout_s": 1}, "longer than 1 s"),
    ],
)
def test_how_a_run_goes_wrong_is_said(tmp_path, folders, code, asked, words):
    with pytest.raises(Stopped, match=words):
        run_once(application(tmp_path, code, **asked), "a", folders["a"])


def test_a_command_that_is_not_there_is_said(tmp_path, folders):
    absent = Application(EndToEndAsked(words=("no-such-command",)), tmp_path)
    with pytest.raises(ApplicationProblem, match="no-such-command"):
        interleaved(absent, folders)


def test_a_fault_with_the_winner_is_a_value_and_one_with_the_baseline_stops(tmp_path, folders):
    stored = interleaved(application(tmp_path, "sys.exit(name == 'b')"), folders)
    failed = end_to_end(stored, EndToEndAsked(), 0.95, "0" * 64)
    assert isinstance(failed, EndToEndFailed)
    assert "does not run with the winner: exit status 1" in failed.why
    with pytest.raises(ApplicationProblem, match=r"with the baseline: exit status 1; .*end_to_end.words: \[\]"):
        interleaved(application(tmp_path, "sys.exit(name == 'a')"), folders)


def test_secrets_stay_behind_and_what_is_named_goes_along(tmp_path, monkeypatch):
    for name in ("OPENAI_API_KEY", "AWS_SECRET_ACCESS_KEY", "MODEL_PATH"):
        monkeypatch.setenv(name, "x")
    given = environment(EndToEndAsked(environment=("MODEL_PATH",)), tmp_path)
    assert "MODEL_PATH" in given
    assert not {"OPENAI_API_KEY", "AWS_SECRET_ACCESS_KEY"} & set(given)
    assert given["KERNELTRIAL_PTX"] == str(tmp_path / "kernel.ptx")


STARTER = Path(str(resources.files("kerneltrial.commands").joinpath("starter")))
PTX = STARTER.parents[3] / "tests/unit/stages/scale_add.ptx"


def kernel_folder(folder, device):
    """What the stage hands over of the starter's baseline."""
    told = Told(
        contract=read_contract(STARTER / "kernels/scale_add/contract.yaml"),
        plan=read_plan(STARTER / "kernels/scale_add/baseline.plan.yaml"),
        abi="pointer",
        device=device,
    )
    folder.mkdir(exist_ok=True)
    (folder / "kernel.json").write_bytes(canonical(told))
    (folder / "kernel.ptx").write_bytes(PTX.read_bytes())
    (folder / "kernel.cubin").write_bytes(b"cubin")
    return folder


HOST = Device(kind="cpu", arch="sm_80", name="host", fingerprint={})
CARD = Device(kind="cuda", arch="sm_90a", name="card", fingerprint={})


def test_the_shipped_application_runs_on_a_machine_without_a_card(tmp_path):
    shutil.copytree(STARTER / "application", tmp_path / "app")
    folder = kernel_folder(tmp_path / "a", HOST)
    asked = EndToEndAsked(words=("python3", "app.py"), measure="printed", invocations=1)
    run = run_once(Application(asked, tmp_path / "app"), "a", folder)
    assert 0 < run.ms < run.wall_ms
    assert run.calls == 4
    assert sorted(path.name for path in (tmp_path / "app").iterdir()) == ["app.py"]


def test_an_application_of_another_kernel_is_told_its_dimensions(tmp_path):
    kernel = load(kernel_folder(tmp_path / "a", CARD))
    with pytest.raises(LoaderProblem, match=r"the kernel .* takes the dimensions n; given were m, n"):
        kernel({}, {"n": 3, "m": 4})


def test_without_a_kernel_to_load_the_loader_says_so(monkeypatch):
    monkeypatch.delenv("KERNELTRIAL_KERNEL", raising=False)
    with pytest.raises(LoaderProblem, match="KERNELTRIAL_KERNEL is not set"):
        load()


def test_on_a_card_launches_go_to_the_callers_stream_and_addresses(tmp_path, monkeypatch):
    calls = []

    def driver(function, *arguments):
        calls.append((function, arguments))
        return {"cuMemGetInfo": (1000, 5000)}.get(function, 7)

    class Bound:
        def __init__(self, module, launch, addresses, stream):
            self.what = (launch.entry, launch.grid, dict(addresses), stream)

        def enqueue(self):
            calls.append(("launch", self.what))

    monkeypatch.setattr("kerneltrial.devices.cuda.driver.call", driver)
    monkeypatch.setattr("kerneltrial.devices.cuda.launches.BoundLaunch", Bound)
    monkeypatch.setattr("kerneltrial.devices.cuda.launches.Module", lambda cubin: ("module", cubin))
    counts = tmp_path / "counts.json"
    monkeypatch.setenv("KERNELTRIAL_COUNTS", str(counts))
    kernel = load(kernel_folder(tmp_path / "k", CARD))
    assert isinstance(kernel, OnCard)
    addresses = {"x": 256, "y": 512, "out": 768}
    kernel.launch(addresses, {"n": 1000}, stream=42)
    launched = [what for name, what in calls if name == "launch"]
    assert [(entry, given, stream) for entry, _, given, stream in launched] == [("scale_add", addresses, 42)]
    kernel._tell(counts)
    assert json.loads(counts.read_text()) == {"calls": 1, "peak_bytes": 4000}
    with pytest.raises(LoaderProblem, match="no address was given for out"):
        kernel.launch({"x": 256, "y": 512}, {"n": 1000})
