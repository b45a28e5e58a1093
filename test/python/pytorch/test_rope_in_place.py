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


@pytest.fixture
def no_copies(monkeypatch):
    def fail(*_):
        raise AssertionError("a result was copied")

    monkeypatch.setattr(F, "put", fail)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("interleaved", [False, True])
@pytest.mark.parametrize("size, rotary", [(128, 128), (128, 96), (10, 6)])
def test_results_are_computed_in_place(
    size, rotary, interleaved, dtype, device, no_copies
):
    _, cos, sin = make(2, 6, 5, size, device=device, pairs=rotary // 2)
    how = {"interleaved": interleaved, "rotary": rotary}
    packed = torch.randn(2, 5, 9, size, device=device).to(dtype)
    parts = [x.transpose(1, 2) for x in packed.split([4, 2, 3], 2)]
    apart = [x.clone() for x in parts]
    expected = F.rope(*parts[:2], cos, sin, **how)
    for given in (parts, apart):
        rest = given[2].clone()
        results = F.rope(*given[:2], cos, sin, in_place=True, **how)
        for result, x, wanted in zip(results, given, expected):
            assert result is x and torch.equal(result, wanted)
        assert torch.equal(given[2], rest)


def test_gradients_of_slices(device, no_copies):
    x, cos, sin = make(2, 9, 5, 8, device=device)
    upstream = torch.randn_like(x)
    found = []
    for in_place in (True, False):
        leaf = x.clone().requires_grad_()
        packed = leaf * 1
        q, k, v = packed[:, :4], packed[:, 4:6], packed[:, 6:]
        q, k = F.rope(q, k, cos, sin, in_place=in_place)
        whole = packed if in_place else torch.cat([q, k, v], 1)
        (whole * upstream).sum().backward()
        found += [whole, leaf.grad]
    assert torch.equal(found[0], found[2])
    torch.testing.assert_close(found[1], found[3])


def test_what_pytorch_refuses_is_not_overwritten(device):
    x, cos, sin = make(2, 3, 5, 8, device=device)
    leaf = x.clone().requires_grad_()
    for parts in ((leaf[:1], None), (leaf, leaf[:1]), (leaf * 1).unbind(0)):
        before = [part.clone() for part in parts if part is not None]
        with pytest.raises(RuntimeError, match="a leaf Variable|multiple views"):
            F.rope(*parts, cos, sin, in_place=True)
        after = [part for part in parts if part is not None]
        assert all(map(torch.equal, before, after))


def test_where_results_are_copied(device):
    x, cos, sin = make(2, 3, 5, 16, device=device, pairs=8)
    apart = torch.randn(2, 3, 5, 32, device=device)[..., ::2]
    expected = F.rope(apart, None, cos, sin)
    assert torch.equal(F.rope(apart, None, cos, sin, in_place=True), expected)
    with torch.autocast(device, dtype=torch.bfloat16):
        result = F.rope(x.clone(), None, cos, sin, in_place=True)
    torch.testing.assert_close(result, F.rope(x, None, cos, sin), rtol=0.02, atol=0.02)
    angles = cos.clone().requires_grad_()
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        F.rope(x * 1, None, angles, sin, in_place=True).sum().backward()
