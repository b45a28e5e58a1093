# Part of Bastile, under the MIT License. See LICENSE.
# RUN: %package-test %s
"""Dropout with PyTorch's signature, and with all that PyTorch does around it."""

import pytest
import torch
from bastile import functional, nn
from torch.utils.checkpoint import checkpoint


def draw_nonzero(shape):
    """An element of the result that is 0 was dropped; torch.randn draws 0 once in 2^24
    numbers."""
    return torch.rand(shape) + 1


@pytest.mark.parametrize("shape", [(64, 500), (4, 16, 500), (500,), (1,)])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_shapes_and_types(shape, dtype):
    x = draw_nonzero(shape).to(dtype).requires_grad_()
    result = functional.dropout(x, 0.25)
    assert result.shape == x.shape and result.dtype == x.dtype
    isdropped = result == 0
    scaled = (x.float() / 0.75).to(dtype)
    torch.testing.assert_close(result, torch.where(isdropped, 0, scaled))
    if x.numel() > 1000:
        share = isdropped.float().mean().item()
        assert abs(share - 0.25) < 5 * (0.25 * 0.75 / x.numel()) ** 0.5
    (gradient,) = torch.autograd.grad(result.sum(), x)
    expected = torch.where(isdropped, 0.0, 1 / 0.75).to(dtype)
    torch.testing.assert_close(gradient, expected)


def test_the_generator_decides():
    x = torch.randn(8, 256)
    torch.manual_seed(1)
    one, other = functional.dropout(x), functional.dropout(x)
    assert not torch.equal(one, other)
    torch.manual_seed(1)
    assert torch.equal(functional.dropout(x), one)


def test_extremes():
    x = torch.randn(8, 256, requires_grad=True)
    assert functional.dropout(x, 0.5, training=False) is x
    assert functional.dropout(x, 0.0) is x
    result = functional.dropout(x, 1.0)
    assert not result.any()
    (gradient,) = torch.autograd.grad(result.sum(), x)
    assert not gradient.any()


def test_the_module():
    module = nn.Dropout(0.3)
    assert isinstance(module, torch.nn.Dropout) and repr(module) == (
        "Dropout(p=0.3, inplace=False)"
    )
    x = draw_nonzero((8, 256))
    assert 0 < (module(x) == 0).sum() < x.numel()
    assert module.eval()(x) is x


def test_checkpoints_draw_the_same_seed():
    x = draw_nonzero((8, 256)).requires_grad_()
    weights = torch.randn(8, 256)
    results = []

    def block(x):
        results.append(functional.dropout(x, 0.5))
        return results[-1] * weights

    checkpoint(block, x, use_reentrant=False).sum().backward()
    assert len(results) == 2 and torch.equal(*results)
    expected = torch.where(results[0] == 0, 0, 2 * weights)
    torch.testing.assert_close(x.grad, expected)


def test_torch_compile():
    torch._dynamo.reset()
    x = draw_nonzero((8, 256)).requires_grad_()
    compiled = torch.compile(
        lambda x: functional.dropout(x * 2, 0.5), fullgraph=True, backend="aot_eager"
    )
    result = compiled(x)
    isdropped = result == 0
    assert 0 < isdropped.sum() < x.numel()
    torch.testing.assert_close(result, torch.where(isdropped, 0, x * 4))
    (gradient,) = torch.autograd.grad(result.sum(), x)
    torch.testing.assert_close(gradient, torch.where(isdropped, 0.0, 4.0))
    assert not torch.equal(compiled(x), result)
