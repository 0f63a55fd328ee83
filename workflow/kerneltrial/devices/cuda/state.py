"""The card's state by NVML: what is fixed for a measurement, and what was seen while it ran. Reads only."""

from collections.abc import Callable
from typing import Any

ABSENT = "absent"
# NVML's clocks event reasons by bit (nvml.h, "nvmlClocksEventReasons").
_REASONS = {
    0x1: "gpu_idle",
    0x2: "applications_clocks_setting",
    0x4: "sw_power_cap",
    0x8: "hw_slowdown",
    0x10: "sync_boost",
    0x20: "sw_thermal_slowdown",
    0x40: "hw_thermal_slowdown",
    0x80: "hw_power_brake_slowdown",
    0x100: "display_clock_setting",
}
# A round is set aside for these only. The power cap is normal for a matmul at full load.
SLOWDOWNS = 0x8 | 0x20 | 0x40 | 0x80


class Nvml:
    """A handle to one card; `absent` says why there is none, or is empty."""

    def __init__(self, bus_id: str) -> None:
        self._nvml: Any = None
        self._card: Any = None
        self.absent = ""
        try:
            import pynvml

            pynvml.nvmlInit()
            self._card = pynvml.nvmlDeviceGetHandleByPciBusId(bus_id.encode())
            self._nvml = pynvml
        except ImportError:
            self.absent = f"{ABSENT}: nvidia-ml-py is not installed"
        except Exception as error:  # pynvml's errors share no narrower public class over its versions
            self.absent = f"{ABSENT}: {error}"

    def read(self, function: str, *arguments: Any, show: Callable[[Any], str] = str) -> str:
        """One reading as text; `absent: <why>` where the card or the driver does not give it."""
        if self.absent:
            return self.absent
        try:
            return show(getattr(self._nvml, function)(self._card, *arguments))
        except Exception as error:  # not supported, no permission, gone: each is said, none is hidden
            return f"{ABSENT}: {error}"

    def reasons(self) -> int:
        """Bits of the clocks event reasons at this moment; 0 where they cannot be read."""
        names = ("nvmlDeviceGetCurrentClocksEventReasons", "nvmlDeviceGetCurrentClocksThrottleReasons")
        for name in names:
            text = self.read(name)
            if text.isdigit():
                return int(text)
        return 0

    def processes(self) -> frozenset[str]:
        """Who has a compute context on the card now, by NVML's process numbers; nobody where that cannot be read."""
        found = self.read(
            "nvmlDeviceGetComputeRunningProcesses", show=lambda all_: " ".join(str(one.pid) for one in all_)
        )
        return frozenset() if found.startswith(ABSENT) else frozenset(found.split())

    def lost(self) -> bool:
        """Whether the driver says that the card is gone (it fell off the bus)."""
        return "lost" in self.read("nvmlDeviceGetUUID").lower()

    def slowed(self) -> bool:
        """Whether the hardware or the heat slows the card now."""
        return bool(self.reasons() & SLOWDOWNS)


def reason_names(bits: int) -> str:
    """Names of clocks event reasons, `none` where there is none."""
    names = [name for bit, name in _REASONS.items() if bits & bit]
    unknown = bits & ~sum(_REASONS)
    return ",".join(names + ([f"unknown_{unknown:#x}"] if unknown else [])) or "none"


def fixed(bus_id: str) -> dict[str, str]:
    """What does not move while a trial runs: driver, limits of clocks and power, ECC, MIG."""
    nvml = Nvml(bus_id)
    if nvml.absent:
        return {"nvml": nvml.absent}
    return {
        "nvml": "read",
        "driver": _driver(nvml),
        "sm_clock_limit_mhz": nvml.read("nvmlDeviceGetMaxClockInfo", 1),
        "memory_clock_limit_mhz": nvml.read("nvmlDeviceGetMaxClockInfo", 2),
        "power_limit_mw": nvml.read("nvmlDeviceGetEnforcedPowerLimit"),
        "ecc": nvml.read("nvmlDeviceGetEccMode", show=lambda mode: str(mode[0])),
        "mig": nvml.read("nvmlDeviceGetMigMode", show=lambda mode: str(mode[0])),
        "compute_mode": nvml.read("nvmlDeviceGetComputeMode"),
    }


def now(nvml: Nvml) -> dict[str, str]:
    """What moves: clocks, temperature, power, reasons for the clocks, who else computes here."""
    if nvml.absent:
        return {"nvml": nvml.absent}
    return {
        "sm_clock_mhz": nvml.read("nvmlDeviceGetClockInfo", 1),
        "memory_clock_mhz": nvml.read("nvmlDeviceGetClockInfo", 2),
        "temperature_c": nvml.read("nvmlDeviceGetTemperature", 0),
        "power_mw": nvml.read("nvmlDeviceGetPowerUsage"),
        "clocks_event_reasons": reason_names(nvml.reasons()),
        "compute_processes": nvml.read("nvmlDeviceGetComputeRunningProcesses", show=lambda found: str(len(found))),
        "ecc_uncorrected": nvml.read("nvmlDeviceGetTotalEccErrors", 1, 0),
        "uuid": nvml.read("nvmlDeviceGetUUID"),
    }


def _driver(nvml: Nvml) -> str:
    try:
        import pynvml

        return str(pynvml.nvmlSystemGetDriverVersion())
    except Exception as error:  # as in `Nvml.read`
        return f"{ABSENT}: {error}"
