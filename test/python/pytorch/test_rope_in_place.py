# Part of Bastile, under the MIT License. See LICENSE.
# RUN: %package-test %s
"""Rotations of queries alone, and of tensors that keep the results."""

import pytest
import torch
from bastile import functional as F


def make(*shape, device, pairs=4):
    torch.manual_seed(0)
    angles = torch.rand(shape[-2], pairs, device=device) * 6
    return torch.randn(shape, device=device), angles.cos(), angles.sin()


def turn(x, cos, sin):
    part, rest = x[..., : 2 * cos.shape[-1]], x[..., 2 * cos.shape[-1] :]
    a, b = part.chunk(2, -1)
    return torch.cat([a * cos - b * sin, b * cos + a * sin, rest], -1)


@pytest.mark.parametrize("rotary", [8, 4])
@pytest.mark.parametrize(
    ("is_leaf", "compiled"), [(False, False), (True, False), (False, True)]
)
def test_queries_alone(is_leaf, compiled, rotary, device):
    x, cos, sin = make(2, 3, 5, 8, device=device, pairs=rotary // 2)
    expected = x.clone().requires_grad_()
    wanted = turn(expected, cos, sin)
    leaf = x.clone().requires_grad_()
    given = leaf if is_leaf else leaf * 1

    def call(x):
        return F.rope(x, None, cos, sin, rotary=rotary, in_place=True)

    if compiled:
        call = torch.compile(call, fullgraph=True, backend="aot_eager")
    result = call(given)
    assert result.data_ptr() == given.data_ptr()
    torch.testing.assert_close(result, wanted)
    assert torch.equal(given, result)
    upstream = torch.randn_like(wanted)
    result.backward(upstream)
    wanted.backward(upstream)
    torch.testing.assert_close(leaf.grad, expected.grad)


def test_queries_and_keys_of_one_tensor(device):
    x, cos, sin = make(2, 7, 5, 8, device=device)
    expected = x.clone()
    expected[:, :5] = turn(x[:, :5], cos, sin)
    q, k = F.rope(x[:, :3], x[:, 3:5], cos, sin, in_place=True)
    assert torch.equal(q, x[:, :3]) and torch.equal(k, x[:, 3:5])
    torch.testing.assert_close(x, expected)
    alone = F.rope(expected, None, cos, -sin)
    assert alone.data_ptr() != expected.data_ptr()


def test_what_needs_the_old_values_is_refused(device):
    x, cos, sin = make(2, 3, 5, 8, device=device)
    x.requires_grad_()
    inner = x * 2
    kept = inner.square().sum()
    F.rope(inner, None, cos, sin, in_place=True)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        kept.backward()
    with pytest.raises(RuntimeError, match="view of a leaf"):
        F.rope(x[:1], None, cos, sin, in_place=True)


def test_leaves_in_torch_compile():
    """They are overwritten outside of the graph, and not at all where there may be no
    outside."""
    x, cos, sin = make(2, 3, 5, 8, device="cpu")

    def call(x):
        return F.rope(x, None, cos, sin, in_place=True)

    leaf = x.clone().requires_grad_()
    with pytest.raises(RuntimeError, match="leaf"):
        torch.compile(call, fullgraph=True, backend="aot_eager")(leaf)
    assert torch.equal(leaf, x)
    result = torch.compile(call, backend="aot_eager")(leaf)
    assert result.data_ptr() == leaf.data_ptr()
    torch.testing.assert_close(result, turn(x, cos, sin))
