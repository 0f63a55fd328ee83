"""What `auto` means on this machine, with and without a driver."""

import platform
import subprocess
import sys
from pathlib import Path

import pytest

from kerneltrial.devices import opening
from kerneltrial.devices.cuda import probe
from kerneltrial.devices.device import DeviceProblem
from kerneltrial.records.device import Device

CARD = Device(kind="cuda", arch="sm_90a", name="a card", fingerprint={})


@pytest.fixture
def driver(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    sign = tmp_path / "nvidiactl"
    sign.touch()
    monkeypatch.setattr(opening, "_DRIVER_SIGNS", (str(sign),))
    monkeypatch.setattr(opening, "_NEEDED", ("json",))


@pytest.fixture
def no_driver(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(opening, "_DRIVER_SIGNS", ("/nonexistent/nvidiactl",))


@pytest.mark.usefixtures("no_driver")
def test_without_a_driver_auto_is_cpu() -> None:
    device = opening.detect()
    assert (device.kind, device.arch, device.name) == ("cpu", "sm_80", platform.machine())
    assert set(device.fingerprint) == {"llvmlite", "numpy", "host_cpu"}
    assert device == opening.detect("cpu")


@pytest.mark.usefixtures("no_driver")
def test_asking_for_cuda_without_a_driver_says_what_to_do() -> None:
    with pytest.raises(DeviceProblem, match="no NVIDIA driver on this machine; set `device: cpu`"):
        opening.detect("cuda")


@pytest.mark.usefixtures("driver")
def test_with_a_usable_card_auto_is_that_card(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(probe, "probe", lambda: CARD)
    assert opening.detect() == CARD
    assert opening.detect("cpu").kind == "cpu"
    assert "gpu" not in opening.detect("cpu").fingerprint


@pytest.mark.usefixtures("driver")
def test_a_driver_that_cannot_be_used_is_told_in_the_fingerprint(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail() -> Device:
        raise DeviceProblem("cuda: the driver is older than the toolkit")

    monkeypatch.setattr(probe, "probe", fail)
    device = opening.detect()
    assert device.kind == "cpu"
    assert device.fingerprint["gpu"] == "cuda: the driver is older than the toolkit"
    with pytest.raises(DeviceProblem, match=r"^cuda: the driver is older"):
        opening.detect("cuda")


@pytest.mark.usefixtures("driver")
def test_a_missing_package_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(opening, "_NEEDED", ("json", "no_such_package.core"))
    with pytest.raises(
        DeviceProblem, match=r"no_such_package.core cannot be imported: pip install -e '\.\[gpu\]' in the clone"
    ):
        opening.detect("cuda")


def test_detection_imports_nothing_large() -> None:
    code = (
        "import sys; from kerneltrial.devices import opening; opening._DRIVER_SIGNS = (); opening.detect();"
        "print([name for name in ('llvmlite', 'numba', 'torch', 'cuda.core', 'cuda.bindings') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
