"""A small application: it smooths a signal by out = alpha * x + y again and again, with the kernel that it is given.

Try it by `end_to_end.words: [python3, app.py]` and `end_to_end.measure: printed` in the config.
"""

import time

import numpy as np

from kerneltrial.loader import load

SAMPLES, STEPS = 4096, 4


def main() -> None:
    kernel = load()
    signal = np.sin(np.linspace(0.0, 20.0, SAMPLES)).astype(np.float32)
    state = np.zeros(SAMPLES, dtype=np.float32)
    started = time.perf_counter()
    for _ in range(STEPS):
        state = kernel({"x": state, "y": signal}, {"n": SAMPLES})["out"]
    print(f"kerneltrial_ms: {1000 * (time.perf_counter() - started):.4f}")
    print(f"sum: {float(state.sum()):.3f}")


if __name__ == "__main__":
    main()
