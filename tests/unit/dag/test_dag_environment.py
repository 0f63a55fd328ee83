"""A decision speaks of the card, driver and toolchain of its lock, and says where these are no longer what is here."""

import msgspec
import pytest
from trial_pieces import CPU, H200, lock

from kerneltrial.dag import environment, graph
from kerneltrial.devices import opening
from kerneltrial.devices.device import DeviceProblem
from kerneltrial.inputs.toolchain import toolchain
from kerneltrial.records.device import Device, changes
from kerneltrial.store import ledger

CARD = msgspec.structs.replace(
    H200, fingerprint={"driver": "580.159.04", "power_limit_mw": "700000", "mig": "absent: not supported"}
)


def locked_on(device: Device):
    return msgspec.structs.replace(lock(device, "t"), toolchain=toolchain())


def with_card(monkeypatch, **fingerprint: str) -> None:
    here = msgspec.structs.replace(CARD, fingerprint={**CARD.fingerprint, **fingerprint})
    monkeypatch.setattr(opening, "detect", lambda kind: here)


def test_the_same_card_driver_and_toolchain_keep_a_decision(monkeypatch):
    with_card(monkeypatch)
    found = environment.compared(locked_on(CARD))
    assert found.state == "same"
    assert "driver 580.159.04" in found.line


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("driver", "590.1", "driver is 590.1 here, 580.159.04 in the lock"),
        ("power_limit_mw", "350000", "power limit mw is 350000 here, 700000 in the lock"),
    ],
)
def test_another_driver_or_limit_ends_a_decision(monkeypatch, name, value, said):
    with_card(monkeypatch, **{name: value})
    found = environment.compared(locked_on(CARD))
    assert found.state == "expired"
    assert said in found.line
    assert "kerneltrial lock --new" in found.line


def test_another_compiler_ends_a_decision_on_cpu_too():
    here = locked_on(CPU)
    assert environment.compared(here).state == "same"
    older = msgspec.structs.replace(here, toolchain={**here.toolchain, "nvidia-cuda-nvrtc": "1.0"})
    found = environment.compared(older)
    assert found.state == "expired"
    assert "1.0 in the lock" in found.line


@pytest.mark.parametrize(("changed", "named", "more"), [(4, 4, ""), (7, 3, "4 more of the toolchain are others")])
def test_of_another_toolchain_a_few_are_named(changed: int, named: int, more: str) -> None:
    here = locked_on(CPU)
    older = dict.fromkeys(sorted(here.toolchain)[:changed], "0.0.1")
    assert len(older) == changed
    found = environment.compared(msgspec.structs.replace(here, toolchain={**here.toolchain, **older}))
    assert found.state == "expired"
    assert found.line.count("0.0.1 in the lock") == named
    assert more in found.line


def test_where_there_is_no_card_nothing_is_claimed(monkeypatch):
    def none(kind: str) -> Device:
        raise DeviceProblem("cuda: there is no NVIDIA driver on this machine")

    monkeypatch.setattr(opening, "detect", none)
    found = environment.compared(locked_on(CARD))
    assert found.state == "not_compared"
    assert "no NVIDIA driver" in found.line
    assert "expired" not in found.line


def test_what_could_not_be_read_is_no_change():
    here = msgspec.structs.replace(CARD, fingerprint={"driver": "absent: no permission", "mig": "0"})
    assert changes(CARD, here) == ()
    assert changes(CARD, msgspec.structs.replace(CARD, name="NVIDIA H100")) == (
        f"device is NVIDIA H100 here, {CARD.name} in the lock",
    )


def test_a_run_says_it_only_where_there_is_a_decision(monkeypatch, tmp_path, capsys):
    with_card(monkeypatch, driver="590.1")
    path = tmp_path / graph.ledger_path("t", "lock")
    path.parent.mkdir(parents=True)
    ledger.record(path, locked_on(CARD))
    environment.say_where_expired("t", tmp_path)
    assert capsys.readouterr().err == ""
    (tmp_path / graph.record_path("t", "decide")).write_text("{}")
    environment.say_where_expired("t", tmp_path)
    assert "driver is 590.1 here" in capsys.readouterr().err
    environment.say_where_expired("another", tmp_path)
    assert capsys.readouterr().err == ""
