# Part of Bastile, under the MIT License. See LICENSE.
# RUN: %package-test %s
"""Processes and threads: fork, spawn, DataLoader's workers, calls at once."""

import multiprocessing
import os
import pickle
import subprocess
import sys
import threading

import bastile
import numpy as np
import pytest
import torch
from bastile import ops

LENGTH = 32


def reference(x):
    return x / (1 + np.exp(-x))


def run_in_child(queue, seed):
    x = np.random.default_rng(seed).standard_normal((8, LENGTH)).astype(np.float32)
    # One that the parent compiled, and one that is new.
    queue.put(
        bool(
            np.allclose(ops.silu(x), reference(x), atol=1e-5)
            and np.allclose(
                ops.swiglu(x, x, gate_scale=1 + seed / 8), gated(x, seed), atol=1e-4
            )
        )
    )


def gated(x, seed):
    return reference((1 + seed / 8) * x) * x


@pytest.mark.long(every=3)
@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_children(method):
    ops.silu(np.ones((2, LENGTH), np.float32))
    context = multiprocessing.get_context(method)
    queue = context.Queue()
    children = [
        context.Process(target=run_in_child, args=(queue, seed)) for seed in range(2)
    ]
    for child in children:
        child.start()
    results = [queue.get(timeout=120) for _ in children]
    for child in children:
        child.join(timeout=120)
        assert child.exitcode == 0
    assert results == [True, True]


def test_import_leaves_the_compilers_of_pytorch_alone():
    # Their import takes seconds, many times what ours takes.
    script = """
import sys, torch
before = set(sys.modules)
import bastile
print(*{name.split(".")[1] for name in set(sys.modules) - before
        if name.startswith("torch._")} & {"_dynamo", "_inductor", "_functorch"})
"""
    result = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert result.stdout.split() == []


def test_fork_while_other_threads_compile():
    stop = threading.Event()

    def compile_on():
        scale = 1.0
        while not stop.is_set():
            scale += 0.125
            ops.swiglu(x, x, gate_scale=scale)

    x = np.ones((2, LENGTH), np.float32)
    threads = [threading.Thread(target=compile_on) for _ in range(2)]
    for thread in threads:
        thread.start()
    statuses = []
    try:
        for i in range(3):
            pid = os.fork()
            if pid == 0:
                # A child that waits for a lock for ever is ended by the alarm.
                import signal

                signal.alarm(60)
                try:
                    y = ops.swiglu(x, x, output_scale=2.0 + i)
                    os._exit(0 if y.shape == x.shape else 1)
                finally:
                    os._exit(2)
            statuses.append(os.waitpid(pid, 0)[1])
    finally:
        stop.set()
        for thread in threads:
            thread.join()
    assert statuses == [0, 0, 0]


class Rows(torch.utils.data.Dataset):
    """A data set whose elements come out of a kernel, and a norm in it."""

    def __init__(self):
        self.norm = bastile.nn.RMSNorm(LENGTH)

    def __len__(self):
        return 8

    def __getitem__(self, index):
        with torch.no_grad():
            return self.norm(torch.full((1, LENGTH), 1.0 + index))[0]


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_workers_of_a_loader(method):
    rows = Rows()
    rows[0]
    loader = torch.utils.data.DataLoader(
        rows, batch_size=4, num_workers=2, multiprocessing_context=method
    )
    for batch in loader:
        torch.testing.assert_close(batch, torch.ones(4, LENGTH))


def test_threads_that_call_the_same_op_at_once():
    x = torch.randn(64, LENGTH, requires_grad=True)
    expected = torch.nn.functional.silu(x)
    (gradient,) = torch.autograd.grad(expected.sum(), x)
    before = bastile.compilations()
    start = threading.Barrier(8)
    failures = []

    def call(attribute):
        start.wait()
        for _ in range(20):
            y = ops.swiglu(x, torch.ones_like(x), output_scale=attribute)
            (g,) = torch.autograd.grad(y.sum(), x)
            if not torch.allclose(y, attribute * expected, atol=1e-5):
                failures.append("value")
            if not torch.allclose(g, attribute * gradient, atol=1e-5):
                failures.append("gradient")

    threads = [threading.Thread(target=call, args=(3.25,)) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures
    assert bastile.compilations() - before <= 1


def test_kernels_are_pickled():
    kernel = bastile.compile("silu", (None, LENGTH), dtype="f32")
    x = np.ones((2, LENGTH), np.float32)
    other = pickle.loads(pickle.dumps(kernel))
    np.testing.assert_array_equal(other(x), kernel(x))


def test_number_of_threads():
    torch.zeros(1, requires_grad=True)
    ops.silu(torch.ones(2, LENGTH))
    before = torch.get_num_threads()
    try:
        torch.set_num_threads(3)
        assert bastile.get_thread_count() == 3
        bastile.set_thread_count(2)
        assert bastile.get_thread_count() == 2
    finally:
        bastile.set_thread_count(0)
        torch.set_num_threads(before)
    assert bastile.get_thread_count() == before


def test_result_does_not_depend_on_the_threads_of_rows():
    x = torch.randn(4096, LENGTH)
    expected = ops.softmax(x)
    try:
        for threads in (1, 2, 5):
            bastile.set_thread_count(threads)
            assert torch.equal(ops.softmax(x), expected)
    finally:
        bastile.set_thread_count(0)


def test_threads_without_pytorch_are_the_processors_of_the_process():
    code = (
        "import bastile, os\n"
        "cpu = sorted(os.sched_getaffinity(0))[:1]\n"
        "assert bastile.get_thread_count() == len(os.sched_getaffinity(0))\n"
        "os.sched_setaffinity(0, cpu)\n"
        "assert bastile.get_thread_count() == 1\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
