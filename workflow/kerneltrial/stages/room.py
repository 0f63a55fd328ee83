"""How much memory there is for one case of more than 2**31 elements."""

from pathlib import Path

from kerneltrial.judge.beyond import Room
from kerneltrial.stages.ground import Ground


def room_of(g: Ground) -> Room | None:
    """Room on this machine and on the trial's card; None where the protocol does not ask, or there is no card."""
    if g.lock.device.kind != "cuda" or g.lock.protocol.beyond_int32 == "none":
        return None
    return Room(host_bytes=available_bytes(), device_bytes=int(g.lock.device.fingerprint.get("memory_bytes", 0)))


def available_bytes(meminfo: Path = Path("/proc/meminfo")) -> int:
    """Memory that processes can have without swapping, as Linux tells it; 0 where it does not."""
    try:
        lines = meminfo.read_text(encoding="ascii").splitlines()
    except OSError:
        return 0
    found = (line.split()[1] for line in lines if line.startswith("MemAvailable:"))
    return int(next(found, "0")) * 1024
