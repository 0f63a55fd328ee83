"""A baseline that is given as PTX: its trial qualifies on `cpu`; machine code is refused there in one line."""

import json

import pytest

from kerneltrial.build.nvrtc import compile_source

pytestmark = pytest.mark.e2e


def test_a_baseline_as_ptx_qualifies_and_as_machine_code_does_not(fresh):
    folder = fresh.folder / "kernels/scale_add"
    made = compile_source((folder / "baseline.cu").read_bytes(), ("--gpu-architecture=sm_80",))
    (folder / "baseline.cu").unlink()
    (folder / "baseline.ptx").write_bytes(made.ptx)
    fresh.config(baseline="kernels/scale_add/baseline.ptx")
    for stage in ("lock", "qualify"):
        done = fresh.kerneltrial(stage)
        assert done.returncode == 0, done.stderr
    lock = json.loads((fresh.results / "lock.json").read_bytes())["body"]
    assert "kernels/scale_add/baseline.ptx" in lock["files"]
    qualification = json.loads((fresh.results / "qualification.json").read_bytes())["body"]
    assert qualification["baseline"]["compiler"] == "none: PTX as it was given"
    assert qualification["performance"]["kind"] == "counts"

    (folder / "baseline.cubin").write_bytes(made.cubin)
    fresh.config(trial="tiny2", baseline="kernels/scale_add/baseline.cubin")
    done = fresh.kerneltrial("lock")
    assert done.returncode == 3
    assert "baseline.cubin is machine code, which only a card runs; give its PTX" in done.stderr
    assert len(done.stderr.splitlines()) == 1
