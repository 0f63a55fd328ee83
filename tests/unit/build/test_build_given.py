"""A baseline that is a binary already: what is read out of it, and the one line where it is not what is needed."""

import struct

import pytest
from build_workshop import CONTRACT, plan

from kerneltrial.build import cubin
from kerneltrial.build.builder import LIMITS
from kerneltrial.build.compilers import Compilers
from kerneltrial.build.entries import entries
from kerneltrial.build.given import Given, kind_of
from kerneltrial.build.nvrtc import compile_source
from kerneltrial.build.problem import BuildProblem
from kerneltrial.build.resources import resources
from kerneltrial.records.build import Cubin, NoCubin
from kerneltrial.records.device import Device
from kerneltrial.store.canonical import canonical
from kerneltrial.store.objects import Objects

SOURCE = b"""
extern "C" __global__ void k(const float* x, float* y, int n) {
  __shared__ float tile[128];
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  tile[threadIdx.x] = i < n ? x[i] : 0.0f;
  __syncthreads();
  if (i < n) y[i] = 2.0f * tile[threadIdx.x];
}
extern "C" __global__ void other(double scale, const short* s, char flag) { if (flag) ((short*)s)[0] = scale; }
"""


def compiled(arch: str):
    made = compile_source(SOURCE, (f"--gpu-architecture={arch}", "--ptxas-options=-v"))
    assert hasattr(made, "cubin"), made
    return made


@pytest.fixture(scope="module")
def hopper():
    return compiled("sm_90a")


def given(nursery, device: str, arch: str) -> Given:
    fields = Device(kind=device, arch=arch, name="", fingerprint={})
    return Given(Compilers(nursery, arch, LIMITS), CONTRACT, fields)


@pytest.mark.parametrize("arch", ["sm_80", "sm_89", "sm_90a", "sm_100a", "sm_120"])
def test_a_cubin_says_what_the_compiler_said(arch):
    made = compiled(arch)
    machine = cubin.read(made.cubin)
    assert f"sm_{machine.arch}" == arch.rstrip("a")
    assert {name: kernel.parameters for name, kernel in machine.kernels.items()} == entries(made.ptx.decode())
    for name, told in resources(made.log).items():
        kernel = machine.kernels[name]
        assert (kernel.registers, kernel.shared_bytes) == (told.registers, told.shared_bytes)


def test_the_old_place_of_the_architecture_is_read_too(hopper):
    old = bytearray(hopper.cubin)
    old[8] = 7
    struct.pack_into("<I", old, 48, 0x5A055A)
    assert cubin.read(bytes(old)).arch == 90


@pytest.mark.parametrize("content", [b"", b"\x7fELF\x02\x01" + b"\0" * 60, b"MZ and so on", b".version 8.0"])
def test_what_is_no_cubin_is_said_to_be_none(content):
    with pytest.raises(ValueError, match="no cubin"):
        cubin.read(content)


def test_a_cubin_that_is_cut_short_is_never_half_read(hopper):
    for length in range(64, len(hopper.cubin) - 64, 499):
        with pytest.raises(ValueError, match="no whole cubin"):
            cubin.read(hopper.cubin[:length])


def test_machine_code_is_taken_as_it_is(build_nursery, tmp_path, hopper):
    objects = Objects(tmp_path)
    built = given(build_nursery, "cuda", "sm_90a").build("cubin", hopper.cubin, plan(), objects)
    assert isinstance(built.cubin, Cubin)
    assert objects.get(built.cubin.digest) == hopper.cubin
    assert objects.get(built.ptx) == b""
    (entry,) = built.entries
    assert (entry.name, entry.parameters, entry.shared_bytes) == ("k", (8, 8, 4), 512)
    assert built.compiler == "none: machine code as it was given"
    assert canonical(built)


def test_ptx_is_assembled_for_the_card_and_left_alone_on_cpu(build_nursery, tmp_path):
    objects, text = Objects(tmp_path), compiled("sm_80").ptx
    on_card = given(build_nursery, "cuda", "sm_90a").build("ptx", text + b"\0", plan(), objects)
    assert cubin.read(objects.get(on_card.cubin.digest)).arch == 90
    assert "nvjitlink" in on_card.compiler
    assert on_card.entries[0].registers > 0
    on_cpu = given(build_nursery, "cpu", "sm_80").build("ptx", text + b"\0", plan(), objects)
    assert on_cpu.cubin == NoCubin()
    assert objects.get(on_cpu.ptx) == text
    assert on_cpu.entries[0].shared_bytes == 512
    assert on_cpu.candidate == on_card.candidate


@pytest.mark.parametrize(
    ("kind", "device", "arch", "launches", "said"),
    [
        ("cubin", "cpu", "sm_80", {}, "only a card runs: give its PTX"),
        ("cubin", "cuda", "sm_80", {}, "machine code for sm_90, and this trial runs on sm_80"),
        ("cubin", "cuda", "sm_90a", {"entries": ("absent",)}, "launches 'absent', and it has k, other"),
        ("cubin", "cuda", "sm_90a", {"args": ("x", "y")}, r"parameters of \[8, 8, 4\] bytes, the plan passes \[8, 8\]"),
        ("cubin", "cuda", "sm_90a", {"args": ("x", "z")}, "unknown argument 'z'"),
        ("ptx", "cpu", "sm_80", {"entries": ("absent",)}, "launches 'absent', and it has k, other"),
        ("ptx", "cuda", "sm_80", {}, "does not assemble for sm_80"),
    ],
)
def test_a_binary_that_does_not_fit_is_one_line(build_nursery, tmp_path, hopper, kind, device, arch, launches, said):
    names, more = launches.get("entries", ()), {key: value for key, value in launches.items() if key != "entries"}
    with pytest.raises(BuildProblem, match=said) as caught:
        given(build_nursery, device, arch).build(
            kind, hopper.cubin if kind == "cubin" else hopper.ptx, plan(*names, **more), Objects(tmp_path)
        )
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("content", [b"\xff\xfe", b"int main() {}", b".version 8.0\n.target sm_80\n", b""])
def test_what_is_no_ptx_is_one_line(build_nursery, tmp_path, content):
    with pytest.raises(BuildProblem, match="is no PTX text"):
        given(build_nursery, "cpu", "sm_80").build("ptx", content, plan(), Objects(tmp_path))


def test_a_file_is_known_by_its_name(tmp_path):
    assert [kind_of(tmp_path / name) for name in ("k.ptx", "k.cubin", "k.cu")] == ["ptx", "cubin", None]
