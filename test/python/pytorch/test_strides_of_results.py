# Part of Bastile, under the MIT License. See LICENSE.
# RUN: %package-test %s
"""Results lie in memory as the tensors do that they are computed of, and PyTorch, which
traces programs without memory, is told the same strides."""

import itertools

import pytest
import torch
from bastile import _bastile, functional, ops
from bastile._torch import layouts
from torch._subclasses.fake_tensor import FakeTensorMode

pytestmark = pytest.mark.skipif(
    not _bastile.keeps_order(), reason="this PyTorch takes no strides from C++"
)


def heads_of(*shape, dtype=torch.float32):
    """Heads ahead of the sequence, as models make them: a view."""
    batch, heads, length, size = shape
    x = torch.randn(batch, length, heads, size, dtype=dtype)
    return x.transpose(1, 2).requires_grad_()


def lies_by_tokens(x):
    return x.transpose(1, 2).is_contiguous()


def test_attention():
    query, key, value = (heads_of(2, n, 9, 16) for n in (4, 2, 2))
    result, statistic = ops.attention(query, key, value, causal=True, return_lse=True)
    assert lies_by_tokens(result)
    assert statistic.is_contiguous()
    gradients = torch.autograd.grad(result.sum() + statistic.sum(), (query, key, value))
    assert all(map(lies_by_tokens, gradients))
    packed = [x.detach().contiguous().requires_grad_() for x in (query, key, value)]
    expected, numbers = ops.attention(*packed, causal=True, return_lse=True)
    assert expected.is_contiguous()
    torch.testing.assert_close(result, expected, rtol=0, atol=0)
    torch.testing.assert_close(statistic, numbers, rtol=0, atol=0)
    of_packed = torch.autograd.grad(expected.sum() + numbers.sum(), packed)
    for gradient, wanted in zip(gradients, of_packed, strict=True):
        torch.testing.assert_close(gradient, wanted, rtol=0, atol=0)


def test_values_of_another_size():
    query, key, value = (heads_of(2, 4, 9, n) for n in (16, 16, 24))
    assert lies_by_tokens(ops.attention(query, key, value))


def test_rows():
    x = heads_of(2, 4, 9, 16)
    weight = torch.randn(16)
    result = ops.rms_norm(x, weight)
    assert lies_by_tokens(result)
    expected = ops.rms_norm(x.contiguous(), weight)
    assert expected.is_contiguous()
    torch.testing.assert_close(result, expected, rtol=0, atol=0)


_SHAPE = (2, 3, 5, 4)


def _layouts():
    """Tensors of one shape that lie in many ways."""
    for order in itertools.permutations(range(3)):
        x = torch.randn([_SHAPE[d] for d in order] + [_SHAPE[3]])
        yield x.permute([order.index(d) for d in range(3)] + [3])
    yield torch.randn(2, 5, 3, 12).transpose(1, 2)[..., 4:8]
    yield torch.randn(1, 3, 5, 4).expand(_SHAPE)
    yield torch.randn(2, 3, 1, 4).expand(_SHAPE)
    yield torch.randn(4, 2, 5, 3).permute(1, 3, 2, 0)


@pytest.mark.parametrize("number", range(10))
def test_fake_tensors_have_the_strides_of_a_call(number):
    x = list(_layouts())[number]
    y = torch.randn(_SHAPE)
    for operands in ((x, y), (y, x), (x[:1], y[:1]), (x[:, :, :1], y[:, :, :1])):
        called = ops.swiglu(*operands)
        with FakeTensorMode() as mode:
            faked = ops.swiglu(*map(mode.from_tensor, operands))
        assert faked.stride() == called.stride()
        sizes = operands[0].shape
        assert tuple(layouts.choose_strides(sizes, operands)) == called.stride()


@pytest.mark.long(every=2)
@pytest.mark.parametrize("dynamic", [True, False])
def test_compiled_programs(dynamic):
    def block(x, weight):
        batch, length, _ = x.shape
        heads = x.view(batch, length, 4, 16).transpose(1, 2)
        query = ops.rms_norm(heads, weight)
        mixed = functional.scaled_dot_product_attention(query, heads, heads.sin())
        rows = mixed.transpose(1, 2).reshape(batch, length, -1)
        return ops.silu(mixed + 1).mT * rows.mean(), rows

    weight = torch.randn(16, requires_grad=True)
    compiled = torch.compile(block, fullgraph=True, dynamic=dynamic)
    for batch, length in ((2, 9), (3, 12), (1, 7)):
        x = torch.randn(batch, length, 64, requires_grad=True)
        results, expected = compiled(x, weight), block(x, weight)
        for result, wanted in zip(results, expected, strict=True):
            assert result.stride() == wanted.stride()
            torch.testing.assert_close(result, wanted)
        gradients, wanted = (
            torch.autograd.grad(sum(y.square().sum() for y in ys), (x, weight))
            for ys in (results, expected)
        )
        torch.testing.assert_close(gradients, wanted, rtol=1e-4, atol=1e-4)
