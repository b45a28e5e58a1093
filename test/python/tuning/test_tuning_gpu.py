# Part of Bastile, under the MIT License. See LICENSE.
# RUN: %package-test %s
"""The tuner on a GPU, with PyTorch; skipped where one of them is missing."""

import os
import pathlib
import subprocess
import sys
import time

import bastile
import pytest
from bastile import _bastile
from bastile._tuning import lookup, store

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.skipif(
    not _bastile.gpu_count() or not torch.cuda.is_available(),
    reason="needs a GPU",
)


@pytest.fixture
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("BASTILE_CACHE_DIR", str(tmp_path))
    monkeypatch.delenv("BASTILE_AUTOTUNE", raising=False)
    lookup.changed()
    yield tmp_path
    lookup.changed()


def reference(x, eps=1e-6):
    x = x.double()
    return x * (x.square().mean(-1, keepdim=True) + eps).rsqrt()


def check(kernel, rows=1000):
    x = torch.randn(rows, 2880, device="cuda", dtype=torch.bfloat16)
    torch.testing.assert_close(kernel(x).double(), reference(x), rtol=2**-7, atol=1e-6)


def test_finds_schedules_that_are_right_and_no_slower(cache):
    shapes = {"input": (4096, 2880), "weight": (2880,)}
    start = time.monotonic()
    (result,) = bastile.autotune("rms_norm", shapes, grad=True, budget=30)
    # What was being measured when time was up is brought to its end.
    assert time.monotonic() - start < 35
    assert [kernel.function for kernel in result.kernels[:2]] == [
        "rms_norm",
        "rms_norm_backward",
    ]
    for kernel in result.kernels:
        assert kernel.seconds <= kernel.heuristic_seconds
        assert kernel.measured > 5
    # 4096 rows in and out take at least 14 us at 3.35 TB/s; no cache helped.
    assert 10e-6 < result.kernels[0].seconds < 200e-6
    log = store.open_log(_bastile.describe_gpu(0)["name"])
    # A candidate that spills is dropped without having been run, which is no error.
    dropped = [r for r in log.records() if "error" in r and "spilled_bytes" not in r]
    assert not dropped


def test_a_tuned_kernel_computes_the_same(cache):
    kernel = bastile.compile("rms_norm", (8, 2880), dtype="bf16")
    check(kernel)
    bastile.autotune("rms_norm", (8192, 2880), budget=20)
    check(kernel)


def test_a_first_call_tunes_where_it_is_asked_to(cache, monkeypatch):
    monkeypatch.setenv("BASTILE_AUTOTUNE", "1")
    kernel = bastile.compile("rms_norm", (8, 2880), dtype="bf16")
    check(kernel)
    before = bastile.compilations()
    check(kernel, rows=77)
    assert bastile.compilations() == before
    assert list((cache / "tuning").glob("*.jsonl"))


def test_warming_up_compiles_ahead(cache):
    kernel = bastile.compile("rms_norm", (8, 2880), dtype="bf16")
    assert bastile.warmup_all_kernels([kernel]) == 1
    before = bastile.compilations()
    check(kernel)
    assert bastile.compilations() == before


def test_a_killed_run_is_taken_up_again(cache):
    script = "import bastile; bastile.autotune('rms_norm', (8192, 2880), budget=60)"
    environment = {
        **os.environ,
        "PYTHONPATH": str(pathlib.Path(bastile.__file__).parents[1]),
    }
    process = subprocess.Popen([sys.executable, "-c", script], env=environment)
    log = store.open_log(_bastile.describe_gpu(0)["name"])
    while process.poll() is None and len(log.records()) < 5:
        time.sleep(0.005)
    process.kill()
    process.wait()
    kept = len(log.records())
    assert kept >= 5
    (result,) = bastile.autotune("rms_norm", (8192, 2880), budget=60)
    records = [r for r in log.records() if r["kind"] == "time"]
    codes = [record["code"] for record in records]
    assert len(set(codes)) == len(codes)
    assert result.kernels[0].measured >= kept
