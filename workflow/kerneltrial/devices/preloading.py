"""What a nursery should hold before it forks runners. A module of its own, as it must cost nothing to import."""

from kerneltrial.records.device import DeviceKind


def preload(kind: DeviceKind, vendors: bool = False) -> tuple[str, ...]:
    """Names for `sandbox.nursery.Nursery`; with `vendors` also the bindings of the libraries that are timed beside.

    No driver of a GPU is started there: that does not outlive a fork.
    """
    if kind == "cuda":
        more = ("kerneltrial.devices.serving:prepare_vendors",) if vendors else ()
        return ("kerneltrial.devices.serving:prepare_cuda", *more)
    return ("kerneltrial.devices.serving:prepare_cpu",)
