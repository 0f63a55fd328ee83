"""New memory lies where it is asked to, and nothing stays taken."""

import ctypes
import mmap
import resource

import pytest

from kerneltrial.sandbox import libc, placing

pytestmark = pytest.mark.skipif(libc.MACHINE != "x86_64", reason="addresses are chosen on 64-bit x86 alone")
TOP = 0x7A00_0000_0000
LENGTH = 1 << 20


def address(memory: mmap.mmap) -> int:
    return ctypes.addressof(ctypes.c_char.from_buffer(memory))


def taken() -> int:
    return int(open("/proc/self/statm").read().split()[0])


def test_what_is_mapped_meanwhile_lies_right_below() -> None:
    before = taken()
    with placing.below(TOP):
        first, second = mmap.mmap(-1, LENGTH), mmap.mmap(-1, LENGTH)
        assert taken() - before > (1 << 40) // mmap.PAGESIZE
    assert [address(first), address(second)] == [TOP - LENGTH, TOP - 2 * LENGTH]
    first[:5] = b"alive"
    assert first[:5] == b"alive"
    assert address(mmap.mmap(-1, LENGTH)) > TOP
    assert taken() - before < (1 << 30) // mmap.PAGESIZE


def test_a_process_with_many_mappings_leaves_no_gap_by_reading_of_them() -> None:
    many = mmap.mmap(-1, 12_000 * mmap.PAGESIZE)
    start = address(many)
    protect = ctypes.CDLL(None, use_errno=True).mprotect
    for page in range(0, 12_000, 2):
        assert protect(ctypes.c_void_p(start + page * mmap.PAGESIZE), mmap.PAGESIZE, mmap.PROT_READ) == 0
    with placing.below(TOP):
        first = mmap.mmap(-1, LENGTH)
    assert address(first) == TOP - LENGTH


def test_a_second_place_lies_below_the_first_although_the_first_is_free_again() -> None:
    with placing.below(TOP):
        first = mmap.mmap(-1, LENGTH)
    with placing.below(TOP - (1 << 36)):
        second = mmap.mmap(-1, LENGTH)
    assert (address(first), address(second)) == (TOP - LENGTH, TOP - (1 << 36) - LENGTH)


def test_programs_get_a_bounded_stack_meanwhile() -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_STACK)
    if hard != resource.RLIM_INFINITY:
        pytest.skip("this host bounds every stack")
    resource.setrlimit(resource.RLIMIT_STACK, (resource.RLIM_INFINITY, hard))
    try:
        with libc.fixed_addresses():
            assert resource.getrlimit(resource.RLIMIT_STACK)[0] == 8 << 20
        assert resource.getrlimit(resource.RLIMIT_STACK)[0] == resource.RLIM_INFINITY
    finally:
        resource.setrlimit(resource.RLIMIT_STACK, (soft, hard))
