# Part of Bastile, under the MIT License. See LICENSE.
# RUN: %package-test %s
"""What only a GPU has: streams, graphs, several devices."""

import bastile
import pytest
import torch
from bastile import functional, ops
from references import LENGTH, make_operands

pytestmark = pytest.mark.gpu


def test_runs_in_the_current_stream():
    x = torch.randn(4096, 4096, device="cuda")
    ops.silu(x)
    torch.cuda.synchronize()
    side = torch.cuda.Stream()
    with torch.cuda.stream(side):
        # The kernel has to wait for this, which is in the side stream alone.
        torch.cuda._sleep(100_000_000)
        y = x * 2
        result = ops.silu(y)
    side.synchronize()
    torch.testing.assert_close(result, torch.nn.functional.silu(x * 2))


def test_backward_runs_in_the_stream_of_its_forward():
    side = torch.cuda.Stream()
    x = torch.randn(512, LENGTH, device="cuda", requires_grad=True)
    with torch.cuda.stream(side):
        side.wait_stream(torch.cuda.default_stream())
        torch.cuda._sleep(50_000_000)
        loss = ops.silu(x).sum()
    loss.backward()
    torch.cuda.synchronize()
    expected = x.detach().clone().requires_grad_()
    torch.nn.functional.silu(expected).sum().backward()
    torch.testing.assert_close(x.grad, expected.grad)


def step(x, w, t):
    x = x.detach().requires_grad_()
    w = w.detach().requires_grad_()
    loss = functional.cross_entropy(ops.rms_norm(x, w), t)
    return loss, *torch.autograd.grad(loss, [x, w])


def test_graph_of_forward_and_backward():
    x, w, t = make_operands("rvt", device="cuda")
    t = t[:, 0]
    warm = torch.cuda.Stream()
    warm.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(warm):
        step(x, w, t)
    torch.cuda.current_stream().wait_stream(warm)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        results = step(x, w, t)
    for seed in (1, 2):
        for old, new in zip((x, w), make_operands("rv", device="cuda", seed=seed)):
            old.copy_(new)
        graph.replay()
        for a, b in zip(results, step(x, w, t)):
            torch.testing.assert_close(a, b)


def test_loss_does_not_wait_for_the_gpu():
    logits, targets = make_operands("rt", device="cuda")
    logits.requires_grad_()
    functional.cross_entropy(logits, targets[:, 0]).backward()
    torch.cuda.synchronize()
    torch.cuda.set_sync_debug_mode("error")
    try:
        functional.cross_entropy(logits, targets[:, 0]).backward()
    finally:
        torch.cuda.set_sync_debug_mode("default")


@pytest.mark.skipif(torch.cuda.device_count() < 2, reason="needs two GPUs")
def test_two_devices():
    results = []
    for device in ("cuda:0", "cuda:1"):
        x = torch.randn(8, LENGTH, device=device, requires_grad=True)
        y = ops.silu(x)
        y.sum().backward()
        assert str(y.device) == str(x.grad.device) == device
        results.append(torch.equal(ops.silu(x), y))
    assert all(results)
    with pytest.raises(ValueError, match="'up' is on"):
        ops.swiglu(torch.ones(2, 8, device="cuda:0"), torch.ones(2, 8, device="cuda:1"))


def test_array_interface_of_the_gpu():
    class Interface:
        def __init__(self, tensor):
            self.tensor = tensor
            self.__cuda_array_interface__ = tensor.__cuda_array_interface__

        def __dlpack_device__(self):
            return self.tensor.__dlpack_device__()

    x = torch.randn(4, LENGTH, device="cuda")
    y = torch.from_dlpack(ops.silu(Interface(x)))
    assert y.is_cuda
    torch.testing.assert_close(y, torch.nn.functional.silu(x))


def test_dlpack_of_the_gpu():
    class Dlpack:
        def __init__(self, tensor):
            self.tensor = tensor

        def __dlpack_device__(self):
            return self.tensor.__dlpack_device__()

        def __dlpack__(self, **arguments):
            return self.tensor.__dlpack__(**arguments)

    x = torch.randn(4, LENGTH, device="cuda", dtype=torch.bfloat16)
    y = ops.silu(Dlpack(x))
    assert isinstance(y, bastile._bastile.Array)
    torch.testing.assert_close(
        torch.from_dlpack(y), torch.nn.functional.silu(x), rtol=0.02, atol=0.02
    )


def test_kernels_for_unaligned_tensors_are_compiled_when_they_are_called(tmp_path):
    # What no cache can have.
    factor = 1 + hash(tmp_path) % 1000 / 1000
    kernel = bastile.compile(lambda x: x * factor, (64, 2048), dtype="f32")
    memory = torch.randn(65 * 2048, device="cuda")
    counts = [bastile.compilations()]
    for start in (0, 1, 1, 0, 2):
        x = memory[start : start + 64 * 2048].view(64, 2048)
        torch.testing.assert_close(kernel(x), x * factor)
        counts.append(bastile.compilations())
    assert [b - a for a, b in zip(counts, counts[1:])] == [1, 1, 0, 0, 0]


def test_float64_is_for_the_host():
    with pytest.raises(ValueError, match="float64 is computed on the host only"):
        ops.silu(torch.ones(2, LENGTH, device="cuda", dtype=torch.float64))
