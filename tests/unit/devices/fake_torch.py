"""As much of torch as its child uses, on numpy and a clock whose truth is known: a call takes `call_us`."""

import contextlib
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import numpy as np


class Tensor:
    def __init__(self, array: Any) -> None:
        self.array = np.asarray(array)

    def numpy(self) -> Any:
        return self.array

    def view(self, dtype: Any) -> "Tensor":
        return self

    def cuda(self) -> "Tensor":
        return self

    detach = contiguous = cpu = cuda


class FakeTorch:
    """`compiled_us` is what a call takes after `compile`; `wrong` is added to every result."""

    __version__ = "2.99 fake"
    bfloat16, int16 = "bfloat16", "int16"

    def __init__(self, call_us: float = 8.0, compiled_us: float = 4.0, wrong: float = 0.0) -> None:
        self.call_us, self.compiled_us, self.wrong = call_us, compiled_us, wrong
        self.now_us = 0.0
        self.captured: list[float] | None = None
        matmul, cudnn = SimpleNamespace(allow_tf32=None), SimpleNamespace(allow_tf32=None)
        self.backends = SimpleNamespace(cuda=SimpleNamespace(matmul=matmul), cudnn=cudnn)
        self.cuda = SimpleNamespace(
            Stream=lambda: 7,
            stream=lambda stream: contextlib.nullcontext(),
            synchronize=lambda: None,
            CUDAGraph=lambda: _Graph(self),
            graph=self._graph,
            Event=lambda enable_timing: _Event(self),
        )

    def from_numpy(self, array: Any) -> Tensor:
        return Tensor(array)

    def matmul(self, a: Tensor, b: Tensor) -> Tensor:
        self._takes(self.call_us)
        return Tensor((a.array @ b.array + self.wrong).astype(a.array.dtype))

    def compile(self, function: Callable[..., Any]) -> Callable[..., Any]:
        def compiled(**given: Any) -> Any:
            slow, self.call_us = self.call_us, self.compiled_us
            try:
                return function(**given)
            finally:
                self.call_us = slow

        return compiled

    def _takes(self, us: float) -> None:
        if self.captured is not None:
            self.captured.append(us)

    @contextlib.contextmanager
    def _graph(self, graph: "_Graph", stream: int) -> Iterator[None]:
        self.captured = graph.calls
        yield
        self.captured = None


class _Graph:
    def __init__(self, torch: FakeTorch) -> None:
        self._torch = torch
        self.calls: list[float] = []

    def replay(self) -> None:
        self._torch.now_us += sum(self.calls)


class _Event:
    def __init__(self, torch: FakeTorch) -> None:
        self._torch = torch

    def record(self) -> None:
        self.us = self._torch.now_us

    def synchronize(self) -> None:
        """Nothing runs behind one's back here."""

    def elapsed_time(self, later: "_Event") -> float:
        return (later.us - self.us) / 1000
