"""Emptying the L2 cache by reading twice its size.

Reads, not writes: dirty lines would have to be written back while the next kernel runs, and would slow it. The
kernel is PTX of an old version, which every driver since CUDA 12 assembles, so that nothing is compiled here.
"""

from typing import Any

from kerneltrial.devices.cuda.driver import call, release
from kerneltrial.devices.cuda.launches import BoundLaunch, Module, row_of_blocks
from kerneltrial.devices.cuda.memory import settle
from kerneltrial.inputs.calls import Pointer, Scalar

# sum = 0; for (i = thread; i < vectors; i += threads) sum ^= words of start[i] (16 bytes, cached in L2 only);
# if (sum == 0x9E3779B9) *end = sum;  the store, which keeps the loads alive, never happens where memory is zero.
PTX = """
.version 7.8
.target sm_75
.address_size 64
.visible .entry sweep(.param .u64 start, .param .u64 vectors, .param .u64 end)
{
  .reg .pred %p<3>;
  .reg .b32 %r<12>;
  .reg .b64 %d<10>;
  ld.param.u64 %d1, [start];
  ld.param.u64 %d2, [vectors];
  ld.param.u64 %d3, [end];
  cvta.to.global.u64 %d1, %d1;
  cvta.to.global.u64 %d3, %d3;
  mov.u32 %r1, %ctaid.x;
  mov.u32 %r2, %ntid.x;
  mov.u32 %r3, %tid.x;
  mov.u32 %r4, %nctaid.x;
  mul.wide.u32 %d4, %r1, %r2;
  cvt.u64.u32 %d5, %r3;
  add.u64 %d4, %d4, %d5;
  mul.wide.u32 %d6, %r4, %r2;
  mov.u32 %r5, 0;
NEXT:
  setp.ge.u64 %p1, %d4, %d2;
  @%p1 bra DONE;
  shl.b64 %d7, %d4, 4;
  add.u64 %d8, %d1, %d7;
  ld.global.cg.v4.u32 {%r6, %r7, %r8, %r9}, [%d8];
  xor.b32 %r6, %r6, %r7;
  xor.b32 %r8, %r8, %r9;
  xor.b32 %r5, %r5, %r6;
  xor.b32 %r5, %r5, %r8;
  add.u64 %d4, %d4, %d6;
  bra NEXT;
DONE:
  setp.ne.u32 %p2, %r5, 0x9E3779B9;
  @%p2 bra END;
  st.global.u32 [%d3], %r5;
END:
  ret;
}
"""
_THREADS = 256
_BLOCKS_PER_MULTIPROCESSOR = 8


class Sweep:
    """Memory of twice the L2's size, and the launch that reads it all."""

    def __init__(self, l2_bytes: int, multiprocessors: int, stream: Any) -> None:
        self.nbytes = max(16, 2 * l2_bytes // 16 * 16)
        self._memory = int(call("cuMemAlloc", self.nbytes + 16))
        call("cuMemsetD8", self._memory, 0, self.nbytes + 16)
        settle()
        self._module = Module(PTX.encode() + b"\0")
        self._blocks, self._stream = multiprocessors * _BLOCKS_PER_MULTIPROCESSOR, stream
        self._launch = self.over(self._memory, self.nbytes)

    def enqueue(self) -> None:
        """Put the reads on the stream."""
        self._launch.enqueue()

    def over(self, start: int, nbytes: int) -> BoundLaunch:
        """A launch that reads other memory into the L2, up to 15 bytes behind its end with it.

        Should its words happen to give the sum that is stored, the store goes behind the memory that is swept.
        """
        parameters = (Pointer(buffer="start"), Scalar(bytes=8, bits=-(-nbytes // 16)), Pointer(buffer="end"))
        launch = row_of_blocks("sweep", self._blocks, _THREADS, parameters)
        addresses = {"start": start, "end": self._memory + self.nbytes}
        return BoundLaunch(self._module, launch, addresses, self._stream)

    def free(self) -> None:
        self._module.unload()
        release("cuMemFree", self._memory)
