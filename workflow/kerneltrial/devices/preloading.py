"""What a nursery should hold before it forks runners. A module of its own, as it must cost nothing to import."""

from kerneltrial.records.device import DeviceKind


def preload(kind: DeviceKind) -> tuple[str, ...]:
    """Names for `sandbox.nursery.Nursery`. No driver of a GPU is started there: that does not outlive a fork."""
    if kind == "cuda":
        return ("kerneltrial.devices.serving:prepare_cuda",)
    return ("kerneltrial.devices.serving:prepare_cpu",)
