"""`on_a_card.py` with pretended parts: what fails, overruns or does not fit is told, and does not stop the rest."""

import json
import os
import re
import signal
import subprocess
import sys
import sysconfig
import time
from pathlib import Path

import card_summary
import pytest
from card_parts import PARTS, Figure, Part
from card_runs import FAILED, KILLED, LEFT_OUT, ROOT, WELL, Session, run_all
from on_a_card import chosen, listed, measured, without_torch

TIME = Figure("time, s", r"took ([\d.]+) s", most=60)


def python(text: str) -> str:
    return "{python} -c '" + text + "'"


def states(session: Session) -> dict[str, str]:
    return {name: outcome.state for name, outcome in session.outcomes.items()}


def gone(pid: int) -> bool:
    """Whether a process has left, or is a zombie that nobody has asked for yet; waits a while."""
    for _ in range(600):
        try:
            state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
        except OSError:
            return True
        if state == "Z":
            return True
        time.sleep(0.1)
    return False


def test_what_fails_or_overruns_does_not_stop_the_rest(tmp_path: Path) -> None:
    sleeper = "import subprocess, sys; print(subprocess.Popen([sys.executable, "
    sleeper += '"-c", "import time; time.sleep(600)"]).pid, flush=True); import time; time.sleep(600)'
    parts = [
        Part("fails", python('print("took 70 s"); raise SystemExit(3)'), 1, (TIME,)),
        Part("overruns", python(sleeper), 1, limit_s=15),
        Part("wants_it", "{python} -c pass {overruns}", 1, after=("overruns",)),
        Part("lacks", python("pass"), 1, needs=("no_such_module", ":no-such-program", "json")),
        Part("cannot_start", "/no/such/program", 1),
        Part("well", python('import os; open(os.environ["OUT"] + "/left", "w"); print("took 58.5 s")'), 1, (TIME,)),
        Part("reads_it", python('import sys; open(sys.argv[1] + "/left"); print("took 5 s")') + " {well}", 1, (TIME,),
             after=("well",)),
    ]  # fmt: skip
    session = Session(tmp_path)
    measured(parts, session, {"card": "pretended"})
    assert states(session) == {
        "fails": FAILED, "overruns": KILLED, "wants_it": LEFT_OUT, "lacks": LEFT_OUT, "cannot_start": FAILED,
        "well": WELL, "reads_it": WELL,
    }  # fmt: skip
    assert gone(int((tmp_path / "overruns.log").read_text()))
    assert session.outcomes["lacks"].why == "no_such_module and no-such-program cannot be found"
    assert session.outcomes["wants_it"].why == "overruns did not run well before it"
    summary = json.loads((tmp_path / "summary.json").read_text())
    figures = {part["part"]: [(f["values"], f["reached"]) for f in part["figures"]] for part in summary["parts"]}
    assert figures["fails"] == [([70.0], False)]
    assert figures["well"] == [([58.5], True)]
    assert json.loads((tmp_path / "reads_it.json").read_text())["figures"][0]["values"] == [5.0]
    text = (tmp_path / "summary.md").read_text()
    assert "| fails | time, s | 70 | at most 60 | **no** |" in text
    assert "| well | time, s | 58.5 | at most 60 | yes |" in text
    assert "| fails | failed | " in text
    assert "| status 3 |" in text
    assert card_summary.bad(list(session.outcomes.values()))
    assert not card_summary.bad([session.outcomes["well"], session.outcomes["lacks"]])


def test_a_part_is_begun_only_where_its_time_fits_and_the_summary_says_what_was_left_out(tmp_path: Path) -> None:
    parts = [Part("long", python("pass"), 5000), Part("short", python("pass"), 1)]
    session = Session(tmp_path, budget_s=2000)
    seen = []
    run_all(parts, session, lambda outcome: seen.append((outcome.part.name, outcome.state)))
    assert seen == [("long", LEFT_OUT), ("short", WELL)]
    assert "it takes about 5000 s, and 199" in session.outcomes["long"].why
    none_left = Session(tmp_path, budget_s=3)
    run_all(parts, none_left, lambda outcome: None)
    assert states(none_left) == {"long": LEFT_OUT, "short": LEFT_OUT}


def test_neighbours_that_time_nothing_run_beside_each_other_and_others_alone(tmp_path: Path) -> None:
    """Two wait for each other's file; the third must find both ended."""
    meet = (
        'import os, sys, time; open(sys.argv[1], "w"); t = time.monotonic()\n'
        'while not os.path.exists(sys.argv[2]) and time.monotonic() - t < 120: time.sleep(0.05)\n'
        'sys.exit(not os.path.exists(sys.argv[2]))'
    )  # fmt: skip
    a, b = tmp_path / "a", tmp_path / "b"
    parts = [
        Part("first", python(meet) + f" {a} {b}", 1, beside=True, limit_s=200),
        Part("second", python(meet) + f" {b} {a}", 1, beside=True, limit_s=200),
        Part("alone", python("pass"), 1),
    ]
    session, running = Session(tmp_path / "out"), {}
    (tmp_path / "out").mkdir()
    run_all(parts, session, lambda outcome: running.update({outcome.part.name: list(session.outcomes)}))
    assert set(states(session).values()) == {WELL}
    assert running["alone"][-1] == "alone"
    assert set(running["alone"][:2]) == {"first", "second"}


def test_a_run_that_is_ended_leaves_its_summary_and_no_process(tmp_path: Path) -> None:
    text = (
        "import sys; from pathlib import Path\n"
        "from card_parts import Part; from card_runs import Session; from on_a_card import measured\n"
        "sleep = \"{python} -c 'import os, time; print(os.getpid(), flush=True); time.sleep(600)'\"\n"
        "parts = [Part('quick', '{python} -c pass', 1), Part('slow', sleep, 900), Part('never', sleep, 1)]\n"
        "measured(parts, Session(Path(sys.argv[1])), {})\n"
    )
    paths = os.pathsep.join((str(ROOT / "tests/bench"), str(ROOT / "workflow")))
    run = subprocess.Popen(
        [sys.executable, "-c", text, str(tmp_path)], env={**os.environ, "PYTHONPATH": paths}, stdout=subprocess.DEVNULL
    )
    log, until = tmp_path / "slow.log", time.monotonic() + 120
    while not (log.exists() and log.read_text().endswith("\n")) and time.monotonic() < until:
        time.sleep(0.05)
    run.send_signal(signal.SIGTERM)
    assert run.wait(120) != 0
    assert gone(int(log.read_text()))
    summary = json.loads((tmp_path / "summary.json").read_text())
    assert next(part["part"] for part in summary["parts"]) == "quick"
    assert "never" in summary["not_begun"]


def test_the_tables_parts_name_files_that_are_there_and_parts_that_come_before() -> None:
    seen: set[str] = set()
    for part in PARTS:
        assert set(part.after) <= seen, part.name
        seen.add(part.name)
        scripts = [word for word in part.words.split() if word.startswith("tests/")]
        assert scripts
        assert [word for word in scripts if not (ROOT / word).is_file()] == []
    assert len(seen) == len(PARTS)
    every = {path.name for path in (ROOT / "tests/gpu").glob("test_gpu_*.py")}
    assert every == {Path(w).name for part in PARTS for w in part.words.split() if w.startswith("tests/gpu/")}
    assert "in all about" in listed(chosen("trial,families", PARTS), 4)
    with pytest.raises(SystemExit, match="'nothing' is no part: trial"):
        chosen("nothing", PARTS)


def test_every_bench_is_a_part_or_imported_or_named_where_its_figures_stand() -> None:
    told = [ROOT / "README.md", *(ROOT / "tests/bench").iterdir()]
    told += [page for folder in ("docs", "reports", "workflow/adr", "tests") for page in (ROOT / folder).rglob("*.md")]
    texts = {path: path.read_text() for path in told if path.suffix in (".py", ".md", ".sh")}
    scripts = [path for path, text in texts.items() if '__name__ == "__main__"' in text or path.suffix == ".sh"]
    assert len(scripts) > 30

    def called(script: Path) -> bool:
        words = re.compile(rf"{re.escape(script.name)}|^(?:from|import) {script.stem}\b", re.MULTILINE)
        return any(words.search(text) for path, text in texts.items() if path != script)

    assert [script.name for script in scripts if not called(script)] == []


LINES = {
    "trial": [("trial 1: 61.2 s, load 0.1", "default trial, s", 61.2),
              ("| the same command again | 2.5 s (0.04 of the first) | 5 s |", "the same command again, s", 2.5),
              ("  the same command again: 2.4 s", "the same command again, s", 2.4),
              ("| start-up of a stage | 0.09 s, 0.99 x numpy", "start-up of a stage, over numpy", 0.99),
              ("  vendor_not_faster: the winner against cublas: 1.754× (1.750×", "7 x 4 over cuBLAS", 1.754)],
    "tests_run": [("1 failed, 94 passed, 1 xfailed in 38.05s", "tests passed", 94.0),
                  ("1 failed, 94 passed, 1 xfailed in 38.05s", "tests failed", 1.0),
                  ("52 passed in 33.16s", "tests passed", 52.0),
                  ("52 passed, 14 warnings in 133.16s (0:02:13)", "tests failed", 0.0),
                  ("52 passed in 33.16s", "tests skipped", 0.0),
                  ("=== 3 skipped in 0.10s ===", "tests passed", 0.0),
                  ("=== 3 skipped in 0.10s ===", "tests skipped", 3.0)],
    "exploits": [("8 pairs on cuda: {'caught, another reason': 2, 'not caught': 3}", "hostile kernels not caught", 3.0),
                 ("8 pairs on cuda: {'caught, another reason': 2, 'not caught': 3}", "caught, another reason", 2.0)],
    "validation_plain": [("median on cuda: {'wall': 0.591, 'judge_cpu': 0.4}", "one candidate, s", 0.591)],
    "fidelity": [("90 figures are judged, 3 further off than allowed", "figures judged", 90.0),
                 ("90 figures are judged, 3 further off than allowed", "figures further off than asked", 3.0)],
    "wgmma": [("best at 4096: matmul_bf16, over cuBLAS (0.98)", "bf16 and f16 at 4096, over cuBLAS", 0.98)],
    "families": [("Geometric mean without plain products, warm: 1.52 x torch.compile (3 shapes), 2.90 x eager",
                  "geometric mean over eager", 2.9),
                 ("Geometric mean without plain products, warm: 1.52 x torch.compile (3 shapes), 2.90 x eager",
                  "geometric mean over torch.compile", 1.52),
                 ("4 of 15 goals missed", "goals missed", 4.0)],
    "throughput": [("validate and time: 55.0 s (1.72 a candidate); asked: 60", "validate and time 32 x 2, s", 55.0)],
    "false_alarms": [("  2 % slower is told, of 100                      100   asked: 98 to 100",
                      "2 % slower is told, of 100", 100.0),
                     ("! 0.5 % slower is told, of 100                     12   asked: 80 to 100",
                      "0.5 % slower is told, of 100", 12.0),
                     ("  the 95 % interval holds, share of draws       0.967   asked: 0.92 to 0.975",
                      "95 % interval holds", 0.967)],
    "copies": [("best plain: 65.60 us, 512 threads, 4 floats, 4 loads", "copy of 128 MiB by plain blocks, us", 65.6),
               ("2 of 174 configurations copied wrongly", "configurations that copied wrongly", 2.0)],
    "beats_compiler": [("  INCONCLUSIVE; stopped: beats_compiler", "stopped by", "beats_compiler")],
}  # fmt: skip


@pytest.mark.parametrize(
    ("part", "line", "name", "value"), [(part, *one) for part, several in LINES.items() for one in several]
)
def test_figures_are_read_off_what_benches_print(part: str, line: str, name: str, value: float | str) -> None:
    (figure,) = (f for p in PARTS if p.name == part for f in p.figures if f.name == name)
    assert card_summary.read(figure, f"before\n{line}\nafter") == [value]


def test_no_number_is_none_only_where_the_part_came_to_its_end() -> None:
    failed = next(f for p in PARTS if p.name == "tests_run" for f in p.figures if f.name == "tests failed")
    assert card_summary.read(failed, "....\nF.") == []
    assert card_summary.read(failed, "....\n1 failed, 3 passed in 2.00s") == [1.0]
    assert card_summary.read(failed, "....\n4 passed in 2.00s") == [0.0]


def test_trials_run_where_all_is_linked_but_torch(tmp_path: Path) -> None:
    packages = Path(sysconfig.get_path("purelib"))
    python = without_torch(tmp_path / "environment")
    words = "import sys, sysconfig, msgspec, numpy; print(sys.prefix, sysconfig.get_path('purelib'))"
    prefix, purelib = subprocess.check_output([python, "-c", words], text=True).split()
    assert Path(prefix) == tmp_path / "environment"
    linked = {entry.name for entry in Path(purelib).iterdir()}
    wanted = {entry.name for entry in packages.iterdir() if not entry.name.startswith(("torch", "functorch", "triton"))}
    assert wanted <= linked
    assert not {name for name in linked if name.startswith(("torch", "triton"))}
