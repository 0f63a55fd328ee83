"""Launches an exported kernel on PyTorch's tensors and current stream. Needs torch and cuda.core.

`kerneltrial export torch` copies this file as `tensors.py` beside `runtime.py`, where it imports nothing of it.
Scratch comes from PyTorch's own allocator, so that a call can be captured into a CUDA graph.
"""

from collections.abc import Mapping
from typing import Any

from kerneltrial.commands.loader_runtime import Code, Dimensions, Kernel


class TensorKernel(Kernel):
    """The winner with the baseline to fall back on, for tensors on one card."""

    def put(self, tensors: Mapping[str, Any], dimensions: Dimensions) -> str:
        """Put one call on PyTorch's current stream; return "winner" or "baseline", whichever it was.

        Raises ValueError where a tensor is on no card, on another one than the others, or not as the contract says; or
        where neither kernel takes these dimensions.
        """
        import torch
        from cuda.core import Device, Stream

        places = {tensor.device for tensor in tensors.values()}
        if len(places) != 1 or not next(iter(places)).type == "cuda":
            raise ValueError(f"tensors are on {', '.join(sorted(map(str, places)))}; they must be on one CUDA card")
        with torch.cuda.device(next(iter(places))):
            Device(torch.cuda.current_device()).set_current()
            stream = Stream.from_handle(torch.cuda.current_stream().cuda_stream)
            return self(stream, {name: tensor.data_ptr() for name, tensor in tensors.items()}, dimensions)

    @staticmethod
    def axes(name: str, tensor: Any, count: int) -> Any:
        """The tensor's shape; ValueError where it has another number of axes."""
        if len(tensor.shape) != count:
            raise ValueError(f"{name} has the shape {list(tensor.shape)}, the contract wants {count} axes")
        return tensor.shape

    def ready(self, name: str, tensor: Any, dtype: Any, shape: tuple[int, ...]) -> Any:
        """The tensor, or a copy of it that is contiguous and aligned; ValueError where dtype or shape is another."""
        if tensor.dtype != dtype or tuple(tensor.shape) != shape:
            raise ValueError(
                f"{name} is {tensor.dtype} of {list(tensor.shape)}, the contract wants {dtype} of {list(shape)}"
            )
        held = tensor.contiguous()
        return held if held.data_ptr() % self._promise.alignment_bytes == 0 else held.clone()

    def _scratch_of(self, code: Code, dimensions: Dimensions, device: Any, stream: Any) -> dict[str, int]:
        """Addresses of a call's scratch; what restores itself is kept, except while a graph is captured.

        The other buffers go back to PyTorch's allocator when this returns: it hands them out again on this stream
        alone, behind the launches that use them.
        """
        import torch

        held = []
        for name, scratch in code.scratch(dimensions).items():
            key = (device.device_id, int(stream.handle), code.name, name)
            keeps = scratch.initial == "self_restoring" and not torch.cuda.is_current_stream_capturing()
            buffer = self._scratch.get(key) if keeps else None
            if buffer is None or buffer.numel() < scratch.size_bytes:
                make = torch.empty if scratch.initial == "uninitialised" else torch.zeros
                buffer = make(scratch.size_bytes, dtype=torch.uint8, device="cuda")
            if keeps:
                self._scratch[key] = buffer
            held.append((name, buffer))
        return {name: int(buffer.data_ptr()) for name, buffer in held}
