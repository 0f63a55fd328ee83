"""An application that lives on the product: a request is a chain of products, captured once and replayed.

It runs with the kernel that kerneltrial hands it, on a card by its own device pointers on its own stream:

    application: kernels/matmul_f32/application
    end_to_end: {words: [python3, app.py], measure: printed}

On the `cpu` device it makes a few small products from arrays instead; those times are an interpreter's and no evidence.
"""

import sys
import time
from statistics import median
from typing import Any

import numpy as np

from kerneltrial.loader import load

SQUARE, TALL = {"m": 256, "n": 256, "k": 256}, {"m": 384, "n": 256, "k": 320}
CHAIN = 1000  # a request: CHAIN steps of two square products and a tall one
REQUESTS = 9  # timed in one run, after one that is not; their median is printed
WEIGHTS = 8  # sets of weights that the products take in turn


def main() -> None:
    kernel = load()
    numbers = np.random.default_rng(1)
    took = on_card(kernel, numbers) if kernel.told.device.kind == "cuda" else on_host(kernel, numbers)
    print(f"kerneltrial_ms: {1000 * median(took):.5f}")


def matrix(numbers: np.random.Generator, rows: int, columns: int) -> np.ndarray[Any, Any]:
    return numbers.standard_normal((rows, columns), dtype=np.float32)


def rotation(numbers: np.random.Generator) -> np.ndarray[Any, Any]:
    """An orthogonal matrix: a chain of products with such neither grows nor fades."""
    return np.linalg.qr(matrix(numbers, 256, 256)).Q.astype(np.float32)


def on_host(kernel: Any, numbers: np.random.Generator) -> list[float]:
    """Seconds of two small products."""
    dims = {"m": 31, "n": 37, "k": 29}
    a, b = matrix(numbers, 31, 29), matrix(numbers, 29, 37)
    took = []
    for _ in range(2):
        started = time.perf_counter()
        kernel({"a": a, "b": b}, dims)
        took.append(time.perf_counter() - started)
    return took


def ask(result: tuple[Any, ...]) -> Any:
    """The value of a call of the driver; ends the application where it failed."""
    if int(result[0]):
        sys.exit(f"CUDA: {result[0].name}")
    return result[1] if len(result) == 2 else result[1:]


def on_card(kernel: Any, numbers: np.random.Generator) -> list[float]:
    """Seconds of each request: input to the card, the chain, the result back."""
    from cuda.bindings import driver as cuda

    ask(cuda.cuInit(0))
    ask(cuda.cuCtxSetCurrent(ask(cuda.cuDevicePrimaryCtxRetain(ask(cuda.cuDeviceGet(0))))))
    stream = ask(cuda.cuStreamCreate(cuda.CUstream_flags.CU_STREAM_NON_BLOCKING.value))

    def on_device(array: np.ndarray[Any, Any]) -> int:
        address = int(ask(cuda.cuMemAlloc(array.nbytes)))
        ask(cuda.cuMemcpyHtoD(address, array.ctypes.data, array.nbytes))
        return address

    signal, result = matrix(numbers, 256, 256), np.empty((256, 256), np.float32)
    state = [on_device(signal), on_device(np.zeros_like(signal))]
    weights = [on_device(rotation(numbers)) for _ in range(WEIGHTS)]
    tall, table = on_device(matrix(numbers, 384, 320)), [on_device(matrix(numbers, 320, 256)) for _ in range(WEIGHTS)]
    wide = on_device(np.zeros((384, 256), np.float32))

    def step(number: int) -> None:
        for source, target in ((0, 1), (1, 0)):
            addresses = {"a": state[source], "b": weights[(2 * number + source) % WEIGHTS], "c": state[target]}
            kernel.launch(addresses, SQUARE, stream)
        kernel.launch({"a": tall, "b": table[number % WEIGHTS], "c": wide}, TALL, stream)

    step(0)  # loads the kernel and makes its scratch, which a capture must not
    ask(cuda.cuStreamSynchronize(stream))
    ask(cuda.cuStreamBeginCapture(stream, cuda.CUstreamCaptureMode.CU_STREAM_CAPTURE_MODE_RELAXED))
    for number in range(CHAIN):
        step(number)
    graph = ask(cuda.cuGraphInstantiate(ask(cuda.cuStreamEndCapture(stream)), 0))
    ask(cuda.cuGraphUpload(graph, stream))
    took = []
    for _ in range(REQUESTS + 1):
        ask(cuda.cuStreamSynchronize(stream))
        started = time.perf_counter()
        ask(cuda.cuMemcpyHtoD(state[0], signal.ctypes.data, signal.nbytes))
        ask(cuda.cuGraphLaunch(graph, stream))
        ask(cuda.cuStreamSynchronize(stream))
        ask(cuda.cuMemcpyDtoH(result.ctypes.data, state[0], result.nbytes))
        took.append(time.perf_counter() - started)
    if not np.isfinite(result).all():
        sys.exit("the result holds what is no number")
    return took[1:]


if __name__ == "__main__":
    main()
