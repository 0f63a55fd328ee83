"""The recorder of tables (`tests/bench/space_on_gpu.py`) on a card that is not there, and the tables' own rules."""

import sys
from pathlib import Path

import pytest
from cuda import bindings as cuda_bindings

TESTS = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(TESTS / "bench"), str(TESTS / "unit" / "devices")]

import space_on_gpu
from fake_card import FakeCard
from space_tables import Row, Table, read_table, write_table

from kerneltrial.build.resources import Resources
from kerneltrial.records.device import Device


class ByModule(FakeCard):
    """Kernels of the same name in other modules take other times: as many microseconds as the module says."""

    def cuModuleGetFunction(self, module: bytes, name: bytes):  # noqa: N802
        if not module[:1].isdigit():
            return super().cuModuleGetFunction(module, name)  # the device's own
        function = f"{name.decode()} of {module.decode()}"
        self.durations[function] = float(module)
        return super().cuModuleGetFunction(module, function.encode())


@pytest.fixture
def family(monkeypatch) -> space_on_gpu.Shipped:
    """The starter of all families: small arrays, and a card without a GPU."""
    monkeypatch.setattr(cuda_bindings, "driver", ByModule({}))
    pretended_card = Device(kind="cuda", name="pretended", arch="sm_90a", fingerprint={})
    monkeypatch.setattr(space_on_gpu.probe, "probe", lambda: pretended_card)
    return space_on_gpu.Shipped("softmax_f32")


def pretended(entrants, options, processes):
    for number, entrant in enumerate(entrants):
        entrant.cubin = str(10.0 + number % 7).encode()
        entrant.report = Resources(32 + number, 0, 128)
        yield entrant


def test_every_configuration_gets_its_own_time_and_the_best_come_twice(family, monkeypatch):
    monkeypatch.setattr(space_on_gpu, "compiled", pretended)
    monkeypatch.setattr(space_on_gpu.Bench, "fault", lambda self, entrant: "")
    monkeypatch.setattr(space_on_gpu, "built", lambda entrant, reply: setattr(entrant, "cubin", b"20.0") or entrant)
    context = cuda_bindings.driver.context()
    table = space_on_gpu.record(family, context, limit=20, again=3, processes=1)
    assert len(table.rows) >= 20
    assert table.parameters == tuple(family.space.file.parameters)
    for number, row in enumerate(table.rows):
        truth = 10.0 + number % 7
        assert row.registers == 32 + number
        assert len(row.us) == len(table.cases) == 2
        assert row.us == pytest.approx([truth, truth], abs=0.6)  # a graph's gaps, no more
    seeds = [tuple(seed.parameters.values()) for seed in family.space.file.seeds]
    again = [row for row in table.rows if row.again_us]
    assert 3 <= len(again) <= 3 + len(seeds)
    assert {row.parameters for row in again} >= set(seeds)


def test_a_configuration_that_writes_no_answer_is_wrong(family, monkeypatch):
    monkeypatch.setattr(space_on_gpu, "compiled", pretended)
    monkeypatch.setattr(space_on_gpu, "built", lambda entrant, reply: setattr(entrant, "cubin", b"20.0") or entrant)
    context = cuda_bindings.driver.context()
    table = space_on_gpu.record(family, context, limit=2, again=1, processes=1)
    assert all(row.wrong.startswith("ragged: ") and not row.us for row in table.rows)
    assert table.latencies() == {}


def test_compiles_run_in_processes_and_report_what_the_entries_use(family):
    entrants = space_on_gpu.entrants_of(family, 1)[:1]
    broken = space_on_gpu.Entrant({"A": 1}, b"no kernel", entrants[0].plan)
    found = list(space_on_gpu.compiled([*entrants, broken], space_on_gpu.options_for(family, "sm_90a"), 1))
    assert found[0].cubin.startswith(b"\x7fELF")
    assert found[0].report.registers > 8
    assert found[1].wrong.startswith("does not compile")


def test_a_table_is_read_as_it_was_written(tmp_path):
    rows = (
        Row((1, 2), 32, 0, 128, (10.0, 40.0), (9.9, 39.6)),
        Row((1, 4), 40, 8, 128, (12.0, 40.0)),
        Row((2, 2), 0, 0, 0, wrong="does not compile"),
    )
    table = Table("p", "d", "card", ({"n": 1}, {"n": 2}), ("A", "B"), rows, {})
    path = tmp_path / "t.json.gz"
    write_table(path, table)
    first = path.read_bytes()
    write_table(path, table)
    assert path.read_bytes() == first
    assert read_table(path) == table
    assert table.latencies() == {(1, 2): pytest.approx(20.0, rel=1e-6), (1, 4): pytest.approx(21.908902, rel=1e-6)}
    path.write_bytes(b"nothing")
    with pytest.raises(ValueError, match="no table"):
        read_table(path)
