"""What fills memory before a call."""

from typing import Any

import numpy as np
import pytest

from kerneltrial.devices import poison
from kerneltrial.devices.device import Conditions
from kerneltrial.inputs.dtypes import item_bytes, numpy_dtype, widen
from kerneltrial.records.plan import DType

FLOATS: tuple[DType, ...] = ("float16", "bfloat16", "float32", "float64")
INTEGERS: tuple[DType, ...] = ("int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64")


def filled(dtype: DType, seed: int = 0, name: str = "x", count: int = 4000) -> Any:
    memory = np.empty(count * item_bytes(dtype), np.uint8)
    poison.poison_into(memory, Conditions(poison="plain", seed=seed), name, dtype)
    return widen(memory.view(numpy_dtype(dtype)), dtype)


@pytest.mark.parametrize("dtype", FLOATS)
def test_plain_floats_are_ordinary(dtype: DType) -> None:
    values = filled(dtype)
    size = np.abs(values)
    assert size.min() >= 1 / 16
    assert size.max() < 16
    assert 0.4 < np.mean(values < 0) < 0.6
    assert 0.4 < np.mean(size < 1) < 0.6
    if item_bytes(dtype) > 2:
        assert len(np.unique(values)) > 3990


@pytest.mark.parametrize("dtype", INTEGERS)
def test_plain_integers_are_ordinary(dtype: DType) -> None:
    values = filled(dtype)
    most = 127 if item_bytes(dtype) == 1 else 1023
    assert values.min() >= 0
    assert 0.9 * most < values.max() <= most
    assert len(np.unique(values)) > most // 2


def test_plain_contents_come_from_seed_and_name() -> None:
    one = filled("float32", 1)
    assert np.array_equal(one, filled("float32", 1))
    assert np.mean(one == filled("float32", 2)) < 0.01
    assert np.mean(one == filled("float32", 1, "y")) < 0.01


@pytest.mark.parametrize("count", [0, 1, 3, 5])
def test_any_number_of_bytes_is_filled(count: int) -> None:
    whole, part = np.zeros(8, np.uint8), np.zeros(count, np.uint8)
    for memory in (whole, part):
        poison.poison_into(memory, Conditions(poison="plain", seed=3), "x", "float32")
    assert np.array_equal(part[:4], whole[:count][:4])


def test_large_memory_repeats(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(poison, "REPEAT_BYTES", 64)
    values = filled("float32", count=40)
    assert np.array_equal(values[:16], values[16:32])
    assert np.array_equal(values[:8], values[32:])


def test_bytes_of_each_kind() -> None:
    assert poison.poison_byte(Conditions(poison="nan")) == 0xFF
    assert poison.poison_byte(Conditions(poison="huge")) == 0x7B
    plain = {poison.poison_byte(Conditions(poison="plain", seed=seed)) for seed in range(9)}
    assert len(plain) == 3
    for byte in plain:
        assert 0.1 < float(np.full(4, byte, np.uint8).view(np.float32)[0]) < 10
