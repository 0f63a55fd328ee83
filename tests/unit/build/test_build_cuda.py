"""CUDA C++ through the real NVRTC, in the real sandbox."""

import time
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest
from build_workshop import CONTRACT, Workshop

from kerneltrial.build import nvrtc, toolkit
from kerneltrial.build.builder import LIMITS, Builder
from kerneltrial.build.compilers import Compilers, Headers
from kerneltrial.build.messages import Compiled
from kerneltrial.build.preloading import preload
from kerneltrial.build.problem import BuildProblem
from kerneltrial.records.build import Built, Cubin, NotBuilt
from kerneltrial.records.plan import Scratch
from kerneltrial.records.reason import Reason
from kerneltrial.sandbox import kept, libc
from kerneltrial.sandbox.limits import Limits, View
from kerneltrial.sandbox.nursery import Nursery
from kerneltrial.store.objects import Objects

SCALE = """\
extern "C" __global__ void k(const float* x, float* y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = 2.0f * x[i];
}
"""
BAD_INCLUDES = ['"/etc/hostname"', "</etc/hostname>", '"etc/hostname"', '"../etc/hostname"', "<unistd.h>"]


def refused(outcome, reason: Reason) -> NotBuilt:
    assert isinstance(outcome, NotBuilt), outcome
    assert outcome.reason is reason, outcome
    return outcome


def test_one_compile_gives_ptx_machine_code_and_resources(workshop) -> None:
    built = workshop.cuda(SCALE)
    assert isinstance(built, Built)
    (entry,) = built.entries
    assert (entry.name, entry.parameters, entry.shared_bytes, entry.spilled_bytes) == ("k", (8, 8, 4), 0, 0)
    assert 4 <= entry.registers <= 32
    assert ".target sm_80" in workshop.ptx(built)
    assert isinstance(built.cubin, Cubin)
    assert built.cubin.arch == "sm_80"
    assert workshop.cubin(built).startswith(b"\x7fELF")
    assert built.abi == "pointer"
    assert built.compiler.startswith("nvrtc ")
    assert "--gpu-architecture=sm_80" in built.options


def test_a_byte_order_mark_is_no_part_of_a_source_and_hides_nothing(workshop) -> None:
    marked = workshop.cuda(b"\xef\xbb\xbf" + SCALE.encode())
    assert isinstance(marked, Built)
    assert workshop.ptx(marked) == workshop.ptx(workshop.cuda(SCALE))
    refused(workshop.cuda(b'\xef\xbb\xbf#include "/etc/hostname"\n' + SCALE.encode()), Reason.INCLUDE_REFUSED)


def test_equal_sources_give_equal_bytes(workshop) -> None:
    source = "#include <cuda_fp16.h>\n" + SCALE.replace("2.0f * x[i]", "__half2float(__float2half(x[i]))")
    first, second = workshop.cuda(source), workshop.cuda(source)
    assert first == second


def test_nothing_tells_of_this_host(workshop) -> None:
    built = workshop.cuda("#include <cuda/std/cstdint>\n#include <cuda_fp16.h>\n" + SCALE)
    told = workshop.ptx(built) + workshop.log(built) + str(built.options)
    for folder in (*toolkit.include_folders(), Path.cwd()):
        assert str(folder) not in told
    assert "-I<toolkit>" in built.options


def test_lines_are_those_of_the_source(workshop) -> None:
    ptx = workshop.ptx(workshop.cuda(SCALE))
    assert "\t.loc\t1 3 " in ptx
    assert 'candidate.cu"' in ptx
    bad = refused(workshop.cuda(SCALE.replace("2.0f", "oops")), Reason.DOES_NOT_COMPILE)
    assert bad.detail == 'candidate.cu(3): error: identifier "oops" is undefined'


def test_constants_of_the_c_library_are_there(workshop) -> None:
    workshop.ptx(workshop.cuda(SCALE.replace("2.0f", "(i ? INFINITY : NAN) + FLT_MAX + FLT_EPSILON + INT_MAX")))
    source = (
        "#include <cuda/std/cfloat>\n#include <cuda/std/cmath>\n#include <cuda/std/limits>\n#include <cuda_fp16.h>\n"
    )
    workshop.ptx(workshop.cuda(source + SCALE))


def test_headers_that_people_include_out_of_habit_are_there(workshop) -> None:
    names = ["stdint.h", "cstdint", "stddef.h", "limits.h", "float.h", "math.h", "cmath", "stdio.h", "cuda_runtime.h"]
    names += ["cassert", "assert.h", "cstdio"]
    source = "".join(f"#include <{name}>\n" for name in names) + SCALE.replace(
        "2.0f", "(float)(uint32_t)i * std::uint8_t(3) * (int64_t)FLT_MAX * sqrtf(INT_MAX) * sizeof(size_t)"
    )
    workshop.ptx(workshop.cuda(source))
    mixed = "#include <cuda/std/cstdint>\n#include <cuda/std/limits>\n#include <cuda_bf16.h>\n#include <mma.h>\n"
    workshop.ptx(workshop.cuda(source + mixed))
    workshop.ptx(workshop.cuda(mixed + source))


def test_shared_memory_and_spills_are_read_from_the_log(workshop) -> None:
    source = """\
    extern "C" __global__ void __launch_bounds__(1024, 2) k(const float* x, float* y, int n) {
        __shared__ float tile[1024];
        float r[80];
        #pragma unroll
        for (int j = 0; j < 80; ++j) r[j] = x[j * n + threadIdx.x];
        tile[threadIdx.x] = x[threadIdx.x];
        __syncthreads();
        for (int s = 0; s < n; ++s) {
            #pragma unroll
            for (int j = 0; j < 80; ++j) r[j] = r[j] * r[(j + 7) % 80] + tile[(j + s) % 1024];
        }
        #pragma unroll
        for (int j = 0; j < 80; ++j) y[j * n + threadIdx.x] = r[j];
    }
    """
    (entry,) = workshop.cuda(source).entries
    assert entry.shared_bytes == 4096
    assert entry.registers == 32
    assert entry.spilled_bytes > 100


def test_several_kernels_and_scratch(workshop) -> None:
    source = """\
    extern "C" __global__ void first(const float* x, float* part, long long n) { part[0] = x[n - 1]; }
    extern "C" __global__ void second(const float* x, float* part, long long n) { part[0] += x[0]; }
    """
    scratch = Scratch(name="part", dtype="float32", elements="n", initial="zeroed")
    plan = workshop.plan("second", "first", args=("x", "part", "int64(n + 1)"), scratch=(scratch,))
    built = workshop.cuda(source, plan)
    assert [(entry.name, entry.parameters) for entry in built.entries] == [
        ("second", (8, 8, 8)),
        ("first", (8, 8, 8)),
    ]


def test_the_whole_log_is_kept(workshop) -> None:
    bad = refused(
        workshop.cuda("\n".join(f"__device__ int a{n} = oops{n};" for n in range(20)) + SCALE), Reason.DOES_NOT_COMPILE
    )
    log = workshop.log(bad)
    assert all(f'"oops{n}"' in log for n in range(20))
    assert "oops0" in bad.detail


def test_a_flood_of_errors_is_bounded(workshop) -> None:
    source = "\n".join(f"int {'a' * 200}{n} = oops{n};" for n in range(2000)) + SCALE
    bad = refused(workshop.cuda("#pragma nv_diag_error 1\n" + source), Reason.DOES_NOT_COMPILE)
    assert len(workshop.log(bad).encode()) <= 1 << 20


@pytest.mark.parametrize("source", [b"x" * (512 * 1024 + 1), b"int a;\0", b"\xff\xfe"])
def test_sources_that_are_none(workshop, source: bytes) -> None:
    bad = refused(workshop.cuda(source), Reason.SOURCE_REFUSED)
    assert workshop.log(bad) == bad.detail


@pytest.mark.parametrize("operand", BAD_INCLUDES)
def test_other_headers_are_refused_before_the_compiler_sees_them(workshop, operand: str) -> None:
    bad = refused(workshop.cuda(f"#include {operand}\n{SCALE}"), Reason.INCLUDE_REFUSED)
    assert Path("/etc/hostname").read_text().strip() not in workshop.log(bad).replace("hostname", "")


@pytest.mark.parametrize("path", ["/etc/hostname", "/proc/self/environ", nvrtc.__file__])
def test_the_kernel_keeps_files_from_the_compiler_if_the_scan_is_fooled(workshop, build_nursery, path: str) -> None:
    if not Path(path).exists():
        pytest.skip(f"{path} is not here")
    request = nvrtc.NvrtcRequest(source=f'#include "{path}"\n{SCALE}'.encode(), options=("--gpu-architecture=sm_80",))
    view = View(read=tuple(map(str, toolkit.include_folders())), python=False)
    with build_nursery.open("kerneltrial.build.nvrtc:serve", b"", LIMITS, view) as child:
        answer = child.ask(msgspec.msgpack.encode(request), 60)
    assert isinstance(answer, bytes), answer
    reply = msgspec.msgpack.decode(answer, type=nvrtc.CompilerReply)
    assert isinstance(reply, nvrtc.Refusal)
    assert "cannot open source file" in reply.log


def test_headers_of_the_contract_are_found_and_named_in_its_words(build_nursery, tmp_path: Path) -> None:
    folder = tmp_path / "trial"
    (folder / "headers").mkdir(parents=True)
    (folder / "headers" / "team.h").write_text("#define FACTOR 2.0f\n#ifdef BAD\n#error bad here\n#endif\n")
    contract = msgspec.structs.replace(
        CONTRACT, include_folders=("headers",), defines={"TWICE": "2"}, options=("--use_fast_math",)
    )
    builder = Builder(build_nursery, contract, "sm_80", folder=folder)
    workshop = Workshop(builder, Objects(tmp_path / "objects"))
    source = '#include "team.h"\n' + SCALE.replace("2.0f", "FACTOR * TWICE")
    built = workshop.cuda(source)
    assert isinstance(built, Built)
    assert {"-I<headers>", "-DTWICE=2", "--use_fast_math"} <= set(built.options)
    bad = refused(workshop.cuda("#define BAD\n" + source), Reason.DOES_NOT_COMPILE)
    assert "<headers>/team.h(3)" in bad.detail
    assert str(tmp_path) not in workshop.log(bad)


def test_a_contract_without_its_include_folder_is_a_problem(build_nursery, tmp_path: Path) -> None:
    contract = msgspec.structs.replace(CONTRACT, include_folders=("absent",))
    with pytest.raises(BuildProblem, match="'absent' of the contract"):
        Builder(build_nursery, contract, "sm_80", folder=tmp_path)


def test_an_option_that_nvrtc_does_not_know_is_a_problem_of_the_contract(build_nursery, tmp_path: Path) -> None:
    contract = msgspec.structs.replace(CONTRACT, options=("--no-such-option",))
    workshop = Workshop(Builder(build_nursery, contract, "sm_80"), Objects(tmp_path))
    with pytest.raises(BuildProblem, match="no-such-option"):
        workshop.cuda(SCALE)


def test_an_entry_that_is_not_there(workshop) -> None:
    bad = refused(workshop.cuda(SCALE.replace('extern "C" ', "")), Reason.ENTRY_MISSING)
    assert "_Z1kPKfPfi" in bad.detail
    assert 'extern "C"' in bad.detail


def test_parameters_that_differ(workshop) -> None:
    bad = refused(workshop.cuda(SCALE.replace("int n", "long long n")), Reason.PARAMETERS_DIFFER)
    assert "[8, 8, 8]" in bad.detail
    assert "[8, 8, 4]" in bad.detail


def test_a_plan_that_names_what_is_not_there(workshop) -> None:
    bad = refused(workshop.cuda(SCALE, workshop.plan("k", args=("x", "z", "n"))), Reason.BAD_PLAN)
    assert "'z'" in bad.detail


HEAVY = """\
template <int N> struct F { static constexpr long long value = F<N - 1>::value + F<N - 2>::value; };
template <int D, int B> struct T { static constexpr int value = T<D - 1, 2 * B>::value + T<D - 1, 2 * B + 1>::value; };
template <int B> struct T<0, B> { static constexpr int value = 1; };
extern "C" __global__ void k(const float* x, float* y, int n) { y[0] = T<24, 1>::value; }
"""


def limited(build_nursery, tmp_path: Path, limits: Limits):
    return Workshop(Builder(build_nursery, CONTRACT, "sm_80", limits=limits), Objects(tmp_path))


@pytest.mark.parametrize(
    "limits",
    [
        Limits(wall_s=1.0, cpu_s=60, memory_bytes=4 << 30),
        Limits(wall_s=60.0, cpu_s=1, memory_bytes=4 << 30),
        Limits(wall_s=60.0, cpu_s=60, memory_bytes=256 << 20),
    ],
    ids=["wall", "cpu", "memory"],
)
def test_a_compile_without_end_meets_its_limit(build_nursery, tmp_path: Path, limits: Limits) -> None:
    workshop = limited(build_nursery, tmp_path, limits)
    start = time.monotonic()
    refused(workshop.cuda(HEAVY), Reason.COMPILE_LIMIT)
    assert time.monotonic() - start < 20


def test_candidates_are_built_side_by_side_and_in_order(workshop) -> None:
    sources = [SCALE.replace("2.0f", f"{n}.0f") for n in range(5)] + [SCALE.replace("2.0f", "oops")]
    pairs = [workshop.candidate(source.encode(), "cuda_cpp", workshop.plan()) for source in sources]
    outcomes = workshop.builder.build_all(pairs, workshop.objects)
    assert [outcome.candidate for outcome in outcomes] == [candidate.id for candidate, _ in pairs]
    assert [isinstance(outcome, Built) for outcome in outcomes] == [True] * 5 + [False]
    assert len({outcome.ptx for outcome in outcomes[:5]}) == 5
    assert workshop.builder.build_all([], workshop.objects) == ()


def test_a_small_kernel_is_built_quickly(workshop) -> None:
    def least(build: Callable[[], object]) -> float:
        took = []
        for _ in range(5):
            start = time.monotonic()
            build()
            took.append(time.monotonic() - start)
        return min(took)

    nvrtc.prepare()
    options = ("--gpu-architecture=sm_80", "--std=c++17", "--generate-line-info", "--ptxas-options=-v")
    alone = least(lambda: nvrtc.compile_source(SCALE.encode(), options))
    assert least(lambda: workshop.cuda(SCALE)) < alone + 0.3


# configurations of kernels/matmul_f32/space.cu
SENSITIVE = (
    {"BM": 32, "BN": 32, "BK": 64, "TM": 4, "TN": 4, "SLICES": 4, "SPLIT": 1, "STAGES": 2},
    {"BM": 16, "BN": 64, "BK": 64, "TM": 4, "TN": 4, "SLICES": 4, "SPLIT": 1, "STAGES": 2},
    {"BM": 32, "BN": 32, "BK": 32, "TM": 8, "TN": 4, "SLICES": 4, "SPLIT": 4, "STAGES": 2},
    {"BM": 16, "BN": 32, "BK": 64, "TM": 4, "TN": 4, "SLICES": 4, "SPLIT": 1, "STAGES": 1},
)
BEFORE = """
import mmap, random

kept = []


def __getattr__(name):
    return lambda: fill(random.Random(int(name.removeprefix("seed"))))


def fill(drawn):
    "Leave memory with holes, and mappings, as any other program would."
    kept.extend(bytearray(drawn.randrange(1, 6000)) for _ in range(drawn.randrange(3000)))
    kept[::3] = [None] * len(kept[::3])
    kept.extend(mmap.mmap(-1, drawn.randrange(1, 4000) * mmap.PAGESIZE) for _ in range(drawn.randrange(12)))
"""


def test_a_source_comes_out_alike_whatever_the_process_did_before(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """NVRTC gave these several texts where its library or its heap moved: workflow/adr/0030-equal-binaries.md."""
    with libc.fixed_addresses() as can_be_fixed:
        if not can_be_fixed:
            pytest.skip("this host does not let addresses be fixed")
    (tmp_path / "before_the_compiler.py").write_text(BEFORE)
    monkeypatch.syspath_prepend(tmp_path)
    space = (Path(__file__).parents[3] / "kernels/matmul_f32/space.cu").read_bytes()
    options = ("--gpu-architecture=sm_90a", "--std=c++17", "--generate-line-info")
    made: dict[int, set[bytes]] = {number: set() for number in range(len(SENSITIVE))}
    befores = ((), ("decimal",), ("numpy",), *((f"before_the_compiler:seed{seed}",) for seed in range(5)), (), ())
    names = preload({"cuda_cpp"})
    for turn, before in enumerate(befores):
        if turn == len(befores) - 2:  # the last two are forked from one kept process
            kept.keep(names)
        with Nursery((*before, *names)) as nursery:
            assert (nursery._server is None) == (names in kept._kept)
            compilers = Compilers(nursery, "sm_90a", LIMITS)
            order = sorted(made, reverse=turn % 2 == 1)
            for number in order:
                defines = "".join(f"#define {name} {value}\n" for name, value in SENSITIVE[number].items())
                reply = compilers.nvrtc(defines.encode() + space, options, Headers((), {}))
                assert isinstance(reply, Compiled), reply
                made[number].add(reply.ptx + reply.cubin)
    kept._kept.pop(names).close()
    assert [len(texts) for texts in made.values()] == [1] * len(SENSITIVE)
