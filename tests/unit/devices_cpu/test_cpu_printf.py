"""printf of a kernel: what it says is kept, limited, and can neither stop nor mislead anything."""

import re

import numpy as np
import pytest
from ptx_runner import array, call_of, out, run
from ptx_sources import ptx_of

from kerneltrial.devices.cpu.device import open_cpu
from kerneltrial.devices.cpu.printing import KEPT
from kerneltrial.devices.device import Binary, Conditions, Refused, Run

X = np.arange(128, dtype=np.float32) / 3


def source(statement: str) -> str:
    return (
        'extern "C" __global__ void kern(const float* x, float* y, int n) {'
        f" int i = blockIdx.x * blockDim.x + threadIdx.x; y[i] = x[i]; {statement} }}"
    )


def printed(result: Run) -> str:
    """What the run says that was printed, or nothing."""
    return " ".join(f.detail for f in result.unchecked if "printf" in f.detail)


CALL = call_of([array("x", X), out("y", "float32", 128), 128], (4,), (32,))


@pytest.mark.parametrize("checks", ["all", "bounds"])
def test_what_is_printed_is_kept_with_its_thread(checks: str) -> None:
    arguments = 'i, x[i], "abc", -5LL, 113, x[i], i, i, 257'
    text = f'if (i == 43) printf("x[%d] = %f %s %lld %c %.2e%% %08x|%-4u|%hhd", {arguments});'
    result = run(ptx_of(source(text)), CALL, {"x": X}, checks=checks)
    assert result.completed
    assert result.outputs["y"] == X.tobytes()
    assert "thread 11 of block 1: x[43] = 14.333333 abc -5 q 1.43e+01% 0000002b|43  |1" in printed(result)


def test_a_kernel_that_could_print_and_does_not_says_nothing() -> None:
    assert printed(run(ptx_of(source('if (n < 0) printf("never");')), CALL, {"x": X})) == ""


def test_only_some_calls_and_the_first_run_are_kept() -> None:
    loaded = open_cpu().load(Binary(ptx=ptx_of(source(r'printf("%d,", i);')), cubin=b""))
    first, second = (loaded.run(CALL, {"x": X}, Conditions(poison="nan")) for _ in range(2))
    assert re.findall(r"block 0: (\d+),", printed(first)) == [str(k) for k in range(KEPT)]
    assert "128 calls" in printed(first)
    assert printed(second) == ""


@pytest.mark.parametrize(
    ("statement", "said"),
    [
        (r'printf("%s", (const char*)x);', "block 0: "),
        (r'printf("%s %s", (const char*)0, (const char*)0xffffffffffffffff);', "(no text) (no text)"),
        (r"printf((const char*)(size_t)(n + 1));", "(no text)"),
        (r'printf("%9999999d|%.9999999f", 1, 1.0);', "1|1.0000"),
        (r'printf("%n%*d%q", &y[0], 3, 4);', "%n%*d%q"),
        (r'printf("\x1b[2J\nnot checked on cpu: nothing");', r"\x1b[2J\nnot checked"),
    ],
)
def test_no_format_reads_or_writes_what_it_must_not(statement: str, said: str) -> None:
    result = run(ptx_of(source(f"if (i == 0) {statement}")), CALL, {"x": X})
    assert result.completed
    assert result.outputs["y"] == X.tobytes()
    assert said in printed(result)
    assert len(printed(result)) < 400
    assert printed(result).isprintable()


def test_a_result_that_hangs_on_what_printf_returns_is_poisoned() -> None:
    text = ptx_of(source(r'y[i] = printf("a");'))
    results = [run(text, CALL, {"x": X}, poison=poison) for poison in ("nan", "huge")]
    assert results[0].outputs != results[1].outputs


def test_a_call_that_returns_into_the_kernel_s_own_parameters_is_refused() -> None:
    text = ptx_of(source(r'if (i == 0) printf("%d", i);'))
    hostile = text.replace("call.uni (retval0)", "call.uni (kern_param_2)")
    assert hostile != text
    with pytest.raises(Refused):
        run(hostile, CALL, {"x": X})
