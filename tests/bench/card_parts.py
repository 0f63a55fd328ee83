"""What `on_a_card.py` can run: a table of parts, in the order of their worth.

A part is a bench or a group of `tests/gpu`. Its words may hold `{python}`, the interpreter that runs this; `{trial}`,
the one that `--trial-python` names, which may lack torch; `{out}`, the part's own folder, which is OUT in its
environment too; and `{NAME}`, the folder of another part, which must have ended well before. Seconds were seen on an
H200 beside 16 cores, or are guessed from such. A figure is read off what the part prints, by a pattern with one group.
"""

from dataclasses import dataclass
from math import inf


@dataclass(frozen=True)
class Figure:
    """A number that a part prints, once or several times, and what is asked of each: `least` to `most`.

    `none` is a pattern of what a part prints that ended well: where that is there and no number is, there were none.
    """

    name: str
    pattern: str
    least: float = -inf
    most: float = inf
    none: str = ""

    @property
    def asked(self) -> str:
        """In words; a dash where nothing is asked."""
        words = [f"at least {self.least:g}"] * (self.least > -inf) + [f"at most {self.most:g}"] * (self.most < inf)
        return " and ".join(words) or "–"


@dataclass(frozen=True)
class Part:
    """One command. `beside`: nothing is timed in it, so it may run beside its neighbours in the table that say so too.

    `needs` are modules, and programs behind a colon (`:ssh-keygen`); `after` are parts whose folders the words name. It
    is killed with its process group after `limit_s` seconds; 0 stands for half as long again as expected, and 30.
    """

    name: str
    words: str
    seconds: float
    figures: tuple[Figure, ...] = ()
    needs: tuple[str, ...] = ()
    after: tuple[str, ...] = ()
    beside: bool = False
    limit_s: float = 0.0

    @property
    def patience_s(self) -> float:
        return self.limit_s or 1.5 * self.seconds + 30


_PYTEST = "{python} -m pytest -q -s -p no:cacheprovider "
_TRIAL = "{trial} tests/bench/trial_figures.py --cores 4 --no-memory "
_FAMILY = "{python} tests/bench/families_on_gpu.py --no-compile --limit 200 "
_COMPARED = _TRIAL.replace("{trial}", "{python}")
_ENDED = r"^=* ?\d+ \w+.* in [\d.]+s"  # pytest's last line, which names no count of zero
_PASSED = (
    Figure("tests passed", r"^(?:\d+ failed, )?(\d+) passed", none=_ENDED),
    Figure("tests failed", r"^(\d+) failed", most=0, none=_ENDED),
    Figure("tests skipped", r"^.*\b(\d+) skipped.* in [\d.]+s", none=_ENDED),
)
_SPEEDUP = Figure("speedup over the baseline", r"confirmed_speedup: ([\d.]+)×")
_VENDOR = Figure("over cuBLAS", r"against cublas: ([\d.]+)×")
_ALARMS = r"^[ !] {}\s+(\S+)\s+asked"


def _tests(*names: str) -> str:
    return _PYTEST + " ".join(f"tests/gpu/test_gpu_{name}.py" for name in names)


PARTS: tuple[Part, ...] = (
    Part(
        "trial", _TRIAL + "--times 2 --verify", 140,
        (
            Figure("default trial, s", r"^trial \d+: ([\d.]+) s", most=60),
            Figure("the same command again, s", r"same command again(?: \||:) ([\d.]+) s", most=5),
            Figure("start-up of a stage, over numpy", r"start-up of a stage \| [\d.]+ s, ([\d.]+) x", most=1.5),
            _SPEEDUP, Figure("7 x 4 over cuBLAS", _VENDOR.pattern, least=1.0),
            Figure("verify's status", r"^verify: status (\d+)", most=0),
        ),
        needs=("snakemake",),
    ),
    Part("process_pool", "{python} tests/bench/process_pool.py --seconds 190", 150),
    Part(
        "false_alarms", "{python} tests/bench/false_alarms.py {process_pool}/pool.json.gz", 15,
        (
            Figure("best of 28 clones passes, of 100", _ALARMS.format("best of 28 clones passes, of 100"), most=0),
            Figure("passes at the boundary, share", _ALARMS.format("passes at the boundary, share of 400"), most=0.05),
            Figure("2 % slower is told, of 100", _ALARMS.format("2 % slower is told, of 100"), least=98),
            Figure("0.5 % slower is told, of 100", _ALARMS.format(r"0\.5 % slower is told, of 100"), least=80),
            Figure("GPU seconds of a trial", _ALARMS.format("GPU seconds of the longest of these"), most=1),
            Figure("95 % interval holds", _ALARMS.format("the 95 % interval holds, share of draws"), 0.92, 0.975),
            Figure("processes of a pair", _ALARMS.format(r"processes of \S+"), least=100),
        ),
        after=("process_pool",),
    ),
    Part(
        "throughput", "{trial} tests/bench/throughput_on_gpu.py", 80,
        (Figure("validate and time 32 x 2, s", r"^validate and time: ([\d.]+) s", most=60),),
    ),
    Part(
        "fidelity", "{python} tests/bench/fidelity.py --rounds 10", 100,
        (
            Figure("figures judged", r"^(\d+) figures are judged"),
            Figure("figures further off than asked", r"are judged, (\d+) further off", most=0),
        ),
        needs=("cupti",),
    ),
    Part("families", "{python} tests/bench/families_on_gpu.py --limit 24", 245, (
        Figure("geometric mean over torch.compile", r"^Geometric mean without.* warm: ([\d.]+) x torch", least=1.3),
        Figure("geometric mean over eager", r"^Geometric mean without.* warm: .* ([\d.]+) x eager", least=2.2),
        Figure("goals missed", r"^(\d+) of \d+ goals missed", most=0),
    ), needs=("torch",)),
    Part("wgmma", "{python} tests/bench/wgmma_on_gpu.py", 45, (
        Figure("bf16 and f16 at 4096, over cuBLAS", r"^best at 4096: .*\(([\d.]+)\)", least=0.75),
    ), needs=("torch",)),
    Part("matmul_search", _TRIAL + "--set candidates_per_iteration=16", 150, (
        _SPEEDUP, Figure("7 x 16 over cuBLAS", r"against cublas: ([\d.]+)×", least=1.12),
    ), needs=("snakemake",)),
    Part(
        "tests_timing",
        _tests("timing", "runner", "vendors", "ceilings", "compilers", "profiler", "proposers", "faults"), 110, _PASSED,
    ),
    Part("tests_run", _tests("run", "fences", "cooperative", "export"), 60, _PASSED, beside=True),
    Part("tests_tools", _tests("sanitizer", "hopper"), 60, _PASSED, beside=True),
    Part(
        "exploits",
        "{python} tests/bench/exploits_on_gpu.py --sanitizers --strictly --workers 6 --to {out}/exploits.json", 180,
        (
            Figure("hostile kernels not caught", r"'not caught': (\d+)", most=0),
            Figure("caught, the right reason", r"'caught, the right reason': (\d+)", least=1),
            Figure("caught, another reason", r"'caught, another reason': (\d+)", most=0),
            Figure("not reached", r"'not reached': (\d+)", most=0),
            Figure("honest twins that pass", r"'twin passed': (\d+)"),
            Figure("honest twins refused", r"'twin NOT PASSED': (\d+)", most=0),
        ),
        beside=True,
    ),
    Part("tests_beyond", _tests("beyond"), 200, _PASSED, beside=True),
    Part(
        "validation_cost",
        "{python} tests/bench/validation_cost.py --device cuda --configurations 8 --sanitizers", 35,
        (
            Figure("one candidate with four sanitizers, s", r"^median on cuda: .*'wall': ([\d.]+)", most=15),
            Figure("the sanitizers of that, s", r"^median on cuda: .*'sanitizers': ([\d.]+)"),
        ),
    ),
    Part("validation_plain", "{python} tests/bench/validation_cost.py --device cuda --configurations 8", 15, (
        Figure("one candidate, s", r"^median on cuda: .*'wall': ([\d.]+)", most=1.5),
    )),
    Part("cold_graph_variants", "{python} tests/bench/cold_graph_variants.py", 20, needs=("cupti",)),
    Part("cold_trains", "{python} tests/bench/cold_trains.py", 20, needs=("cupti",)),
    Part("launch_gaps", "{python} tests/bench/launch_gaps.py", 20, needs=("cupti",)),
    Part("copies", "{python} tests/bench/copies_on_gpu.py", 20, (
        Figure("copy of 128 MiB by plain blocks, us", r"^best plain: ([\d.]+) us"),
        Figure("by blocks that stay, us", r"^best staying: ([\d.]+) us"),
        Figure("by bulk copies, us", r"^best bulk: ([\d.]+) us"),
        Figure("configurations that copied wrongly", r"^(\d+) of \d+ configurations copied wrongly", most=0),
    )),
    Part("beats_compiler", _COMPARED + "--set stop=beats_compiler", 60, (
        _SPEEDUP, Figure("stopped by", r"stopped: (\w+)"),
    ), needs=("torch", "snakemake")),
    Part(
        "numba_space",
        _TRIAL + "--set space=kernels/matmul_f32/space_numba.yaml --set languages=[numba_cuda]",
        100, (_SPEEDUP, _VENDOR), needs=("snakemake",),
    ),
    Part(
        "families_large", "{python} tests/bench/families_on_gpu.py --only matmul_large_f32 --limit 64", 120,
        needs=("torch",),
    ),
    Part("families_wide", _FAMILY + "--only softmax_wide_f32 --where 'WAY >= 4'", 50, needs=("torch",)),
    Part("families_scan", _FAMILY + "--only scan_i32 --where 'WAY != 1'", 50, needs=("torch",)),
    Part("sealed_example", "{trial} tests/bench/sealed_example.py --cores 4", 110, needs=(":ssh-keygen", "snakemake")),
    Part("sanitizer_ways", "{python} tests/bench/sanitizer_ways.py --to {out}/tools.json", 20),
    Part("device_costs", "{python} tests/bench/device_costs.py", 30),
    Part("spaces", "{python} tests/bench/space_on_gpu.py histogram_u8 reduce_columns_f32 transpose_f32", 90),
)  # fmt: skip
