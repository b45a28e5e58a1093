# Part of Bastile, under the MIT License. See LICENSE.
# RUN: %package-test %s
"""A process that can have no more threads: everything runs in the caller's."""

import ctypes
import threading

import bastile
import numpy as np
import pytest
from bastile._tuning.pool import Pool


@pytest.fixture
def no_threads():
    """No thread can be made: its stack would be larger than any address space, of which
    the widest have 57 bits. (A limit on the number of threads means nothing to the
    superuser.)"""
    libc = ctypes.CDLL(None)
    before = ctypes.create_string_buffer(128)
    huge = ctypes.create_string_buffer(128)
    for attributes in (before, huge):
        assert libc.pthread_getattr_default_np(attributes) == 0
    libc.pthread_attr_setstacksize(huge, ctypes.c_size_t(1 << 60))
    assert libc.pthread_setattr_default_np(huge) == 0
    with pytest.raises(RuntimeError, match="can't start new thread"):
        threading.Thread(target=print).start()
    yield
    libc.pthread_setattr_default_np(before)


def test_a_kernel_of_the_host_runs_without_threads(no_threads):
    bastile.set_thread_count(4)
    try:
        x = np.random.default_rng(0).standard_normal((4096, 512), np.float32)
        np.testing.assert_allclose(
            bastile.ops.silu(x), x / (1 + np.exp(-x)), rtol=1e-5, atol=1e-6
        )
    finally:
        bastile.set_thread_count(0)


def test_several_kernels_are_compiled_without_threads(no_threads):
    kernel = bastile.compile(
        "layer_norm", (8, 1024), dtype="bf16", grad=True, target="sm_90"
    )
    assert kernel.ptx.count(".visible .entry") > 2


def test_kernels_are_warmed_up_without_threads(no_threads):
    names = ["silu", "gelu", "relu_squared"]
    assert bastile.warmup_all_kernels(names, [(8, 72)], dtype="f32") == 3


def test_a_pool_runs_each_function_once(no_threads):
    ran = []
    with Pool(3) as pool:
        futures = [pool.submit(ran.append, number) for number in range(5)]
    assert ran == [0, 1, 2, 3, 4]
    assert all(future.done() for future in futures)


def test_a_pool_hands_errors_on(no_threads):
    with Pool(3) as pool:
        future = pool.submit(int, "one")
    with pytest.raises(ValueError, match="one"):
        future.result()


def test_a_pool_goes_on_with_fewer_threads():
    with Pool(4) as pool:
        started = threading.Event()
        first = pool.submit(started.wait, 10)
        original = threading.Thread.start

        def fail(thread):
            raise RuntimeError("can't start new thread")

        threading.Thread.start = fail
        try:
            others = [pool.submit(pow, 2, number) for number in range(8)]
        finally:
            threading.Thread.start = original
        started.set()
        assert first.result(10)
        assert [future.result(10) for future in others] == [
            2**number for number in range(8)
        ]
