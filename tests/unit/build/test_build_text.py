"""What is read out of PTX and logs, and how PTX text is changed."""

import contextlib
import time

import pytest

from kerneltrial.build import ptx_text
from kerneltrial.build.entries import entries
from kerneltrial.build.resources import Resources, resources, without_times
from kerneltrial.build.toolkit import bounded, scrub

PTX = """\
//
// .visible .entry commented(.param .u64 x)
.version 9.5
.target sm_90a
.address_size 64

.common .global .align 8 .u64 _ZN08NumbaEnv1a;
.visible .shared .align 4 .b8 tile[1024];

.visible .entry k$1(
\t.param .u64 .ptr .global .align 16 k$1_param_0,
\t.param .u32 k$1_param_1, // a comment, with a comma
\t.param .align 8 .b8 k$1_param_2[24],
\t.param .f64 k$1_param_3
)
.maxntid 128
{
\t.shared .align 4 .b8 own[64];
\tld.param.u64 \t%rd1, [k$1_param_0];
\tmov.u32 %r1, tile;
}
.visible .entry nothing()
{
\tret;
}
\t.file\t1 "/candidate.py"
"""


def test_entries_with_the_sizes_of_their_parameters() -> None:
    assert entries(PTX) == {"k$1": (8, 4, 24, 8), "nothing": ()}


def test_a_parameter_of_unknown_form_is_an_error() -> None:
    with pytest.raises(ValueError, match="unknown form"):
        entries(".entry k(.param .texref x)")


@pytest.mark.parametrize(
    "text",
    [
        "/*" * 500_000,
        ".entry k(" * 100_000,
        ".entry k(.param .u64 " + ".align 8 " * 10_000,
        ".entry k(" + ".param .u32 x," * 7_000 + ")",
        ".entry" + " " * 1_000_000,
        ".shared .align 4 .b8 a[1] " * 40_000,
    ],
)
def test_hostile_text_takes_no_time(text: str) -> None:
    start = time.monotonic()
    with contextlib.suppress(ValueError):
        entries(text)
    with contextlib.suppress(ValueError):
        ptx_text.shared_bytes(text + ".entry k(", "k")
    assert time.monotonic() - start < 3


def test_renaming_touches_the_entry_and_its_parameters_only() -> None:
    text = ptx_text.rename_entry(PTX, "k$1", "plain")
    assert entries(text) == {"plain": (8, 4, 24, 8), "nothing": ()}
    assert "[plain_param_0]" in text
    assert "k$1" not in text
    assert ptx_text.rename_entry("mov %rk$1, xk$1, k$1y, k$1;", "k$1", "new") == "mov %rk$1, xk$1, k$1y, new;"


def test_renaming_to_a_taken_name_is_an_error() -> None:
    with pytest.raises(ValueError, match="'tile'"):
        ptx_text.rename_entry(PTX, "k$1", "tile")


def test_unread_environments_go_and_read_ones_stay() -> None:
    assert "NumbaEnv" not in ptx_text.without_environments(PTX)
    used = PTX.replace("\tret;", "\tmov.u64 %rd1, _ZN08NumbaEnv1a;")
    assert ptx_text.without_environments(used) == used


def test_texts_are_joined_under_one_header() -> None:
    other = PTX.replace("k$1", "second").replace("nothing", "less").replace("tile", "tile2").replace("Env1a", "Env2a")
    text = ptx_text.join([PTX, other])
    assert text.count(".version") == text.count(".file") == 1
    assert list(entries(text)) == ["k$1", "nothing", "second", "less"]


def test_texts_that_define_one_symbol_are_not_joined() -> None:
    other = PTX.replace("k$1", "second").replace("nothing", "less").replace("Env1a", "Env2a")
    with pytest.raises(ValueError, match="both define tile"):
        ptx_text.join([PTX, other])


def test_shared_memory_of_an_entry() -> None:
    assert ptx_text.shared_bytes(PTX, "k$1") == 1024 + 64
    assert ptx_text.shared_bytes(PTX, "nothing") == 0


def test_resources_by_entry() -> None:
    log = (
        "ptxas info    : 0 bytes gmem\n"
        "ptxas info    : Compiling entry function 'a' for 'sm_90a'\n"
        "ptxas info    : Function properties for a\n"
        "ptxas         .     8 bytes stack frame, 12 bytes spill stores, 16 bytes spill loads\n"
        "ptxas info    : Function properties for helper\n"
        "ptxas         .     0 bytes stack frame, 4 bytes spill stores, 0 bytes spill loads\n"
        "ptxas info    : Used 255 registers, used 1 barriers, 256 bytes smem\n"
        "ptxas info    : Compile time = 4.278 ms\n"
        "ptxas info    : Compiling entry function 'b' for 'sm_90a'\n"
        "ptxas info    : Used 10 registers, 388 bytes cmem[0]\n"
    )
    assert resources(log) == {"a": Resources(255, 32, 256), "b": Resources(10, 0, 0)}
    assert "Compile time" not in without_times(log)
    assert without_times(log).count("\n") == log.count("\n") - 1


def test_paths_are_scrubbed_longest_first() -> None:
    names = {"/opt/x/include": "<toolkit>", "/opt/x/include/cccl": "<toolkit>/cccl"}
    assert scrub("/opt/x/include/cccl/a.h /opt/x/include/b.h", names) == "<toolkit>/cccl/a.h <toolkit>/b.h"


def test_logs_are_bounded() -> None:
    assert bounded("short") == b"short"
    log = bounded("first error\n" + "ü" * (1 << 20))
    assert log.startswith(b"first error")
    assert len(log) <= 1 << 20
    assert "the rest is left out" in log.decode()
