# Part of Bastile, under the MIT License. See LICENSE.
# RUN: %package-test %s
"""Functions that overwrite PyTorch's tensors."""

import pytest
import torch

import bastile


def momentum(p, g, m):
    changed = 0.5 * m + g
    return p - changed, changed


step = bastile.compile(momentum, in_place=("p", "m"))


def make(*shape):
    torch.manual_seed(0)
    return [torch.randn(shape) for _ in range(3)]


def test_parameters_are_overwritten_without_gradients():
    p, g, m = make(4, 8)
    p.requires_grad_()
    before = p.detach().clone()
    with pytest.raises(RuntimeError, match="momentum: overwrites .*torch.no_grad"):
        step(p, g, m)
    torch.testing.assert_close(p, before, rtol=0, atol=0)
    expected = before - (0.5 * m + g)
    with torch.no_grad():
        assert step(p, g, m)[0] is p
    torch.testing.assert_close(p.detach(), expected)


def test_autograd_notices():
    p, g, m = make(4, 8)
    weight = torch.ones(8, requires_grad=True)
    product = weight * p
    step(p, g, m)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        product.sum().backward()


def test_in_inference_mode():
    with torch.inference_mode():
        p, g, m = make(4, 8)
        expected = p - (0.5 * m + g)
        step(p, g, m)
        torch.testing.assert_close(p, expected)


def test_ahead_of_calls():
    kernel = bastile.compile(momentum, (4, 8), dtype="f32", in_place=("p", "m"))
    p, g, m = make(4, 8)
    expected = p - (0.5 * m + g)
    version = p._version
    assert kernel(p, g, m)[0] is p
    torch.testing.assert_close(p, expected)
    assert p._version > version
    with pytest.raises(TypeError, match="missing g, m"):
        kernel(p)


@pytest.mark.parametrize("is_ahead", (False, True))
def test_torch_compile(is_ahead):
    function = step
    if is_ahead:
        function = bastile.compile(momentum, (4, 8), dtype="f32", in_place=("p", "m"))

    @torch.compile(fullgraph=True)
    def run(p, g, m):
        q, n = function(p, g * 2, m)
        return q + n

    for seed in range(2):
        p, g, m = make(4 + seed, 8)
        p2, m2 = p.clone(), m.clone()
        with torch.no_grad():
            result = run(p2, g, m2)
        changed = 0.5 * m + 2 * g
        torch.testing.assert_close(m2, changed)
        torch.testing.assert_close(p2, p - changed)
        torch.testing.assert_close(result, p)


def test_torch_compile_refuses_what_autograd_records():
    p, g, m = make(4, 8)
    p.requires_grad_()
    with pytest.raises(Exception, match="torch.no_grad"):
        torch.compile(lambda *x: step(*x)[0] * 2, fullgraph=True)(p, g, m)


def test_torch_func_is_refused():
    p, g, m = make(4, 8)
    for function in (
        step,
        bastile.compile(momentum, (4, 8), dtype="f32", in_place="p"),
    ):
        with pytest.raises(NotImplementedError, match="torch.func's transformations"):
            torch.func.grad(lambda g: function(p, g, m)[0].sum())(g)


def test_fake_tensors():
    from torch._subclasses.fake_tensor import FakeTensorMode

    with FakeTensorMode():
        p, g, m = make(4, 8)
        result, _ = step(p, g, m)
    assert result.shape == (4, 8) and result.dtype == torch.float32


def test_bfloat16_with_gaps_between_rows():
    wide, g, m = make(4, 16)
    p = wide.bfloat16()[:, 8:]
    expected = (p.float() - (0.5 * m[:, :8] + g[:, :8])).bfloat16()
    changed = m[:, :8].clone()
    step(p, g[:, :8].bfloat16().float(), changed)
    torch.testing.assert_close(p, expected, rtol=1e-2, atol=1e-2)


def test_distributed_tensors_are_refused():
    import torch.distributed as dist
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.tensor import distribute_tensor, Replicate

    store = dist.HashStore()
    dist.init_process_group("gloo", store=store, rank=0, world_size=1)
    try:
        mesh = init_device_mesh("cpu", (1,))
        p, g, m = (distribute_tensor(x, mesh, [Replicate()]) for x in make(4, 8))
        with pytest.raises(TypeError, match="to_local"):
            step(p, g, m)
    finally:
        dist.destroy_process_group()
