"""Filling the shared memory of every multiprocessor, so that what a block finds there is nothing that a call left.

The kernel is PTX of an old version, as that of `sweep`. A block takes as much shared memory as one can have, so no two
share a multiprocessor, and there are several blocks for each: that each multiprocessor gets one is what cards do, and
is promised nowhere.
"""

from typing import Any

from kerneltrial.devices.cuda.launches import BoundLaunch, Module, row_of_blocks
from kerneltrial.inputs.calls import Scalar

# for (i = thread; i < words; i += threads) pool[i] = word;
PTX = """
.version 7.8
.target sm_75
.address_size 64
.extern .shared .align 16 .b8 pool[];
.visible .entry scrub(.param .u32 word, .param .u32 words)
{
  .reg .pred %p<2>;
  .reg .b32 %r<8>;
  ld.param.u32 %r1, [word];
  ld.param.u32 %r2, [words];
  mov.u32 %r3, %tid.x;
  mov.u32 %r4, %ntid.x;
  mov.u32 %r5, pool;
NEXT:
  setp.ge.u32 %p1, %r3, %r2;
  @%p1 bra DONE;
  shl.b32 %r6, %r3, 2;
  add.u32 %r6, %r6, %r5;
  st.volatile.shared.u32 [%r6], %r1;
  add.u32 %r3, %r3, %r4;
  bra NEXT;
DONE:
  ret;
}
"""
_THREADS = 1024
_BLOCKS_PER_MULTIPROCESSOR = 4


class Scrub:
    """The kernel, loaded; raises CudaError where this driver does not assemble it."""

    def __init__(self, multiprocessors: int, shared_bytes: int, stream: Any) -> None:
        self._module = Module(PTX.encode() + b"\0")
        self._blocks = multiprocessors * _BLOCKS_PER_MULTIPROCESSOR
        self._shared_bytes = shared_bytes // 4 * 4
        self._stream = stream

    def enqueue(self, byte: int) -> None:
        """Put a launch on the stream that fills shared memory with `byte`."""
        word = Scalar(bytes=4, bits=int.from_bytes(bytes([byte]) * 4, "little"))
        words = Scalar(bytes=4, bits=self._shared_bytes // 4)
        launch = row_of_blocks("scrub", self._blocks, _THREADS, (word, words), self._shared_bytes)
        BoundLaunch(self._module, launch, {}, self._stream).enqueue()

    def free(self) -> None:
        self._module.unload()
