# Part of Bastile, under the MIT License. See LICENSE.
# RUN: %package-test %s
"""Options of norms: heads with weights of their own, biases, every step rounded, and a
residual of another type; each beside PyTorch's own operations."""

import pytest
import torch
from bastile import functional as F


def normalize(x, weight=None, bias=None, eps=1e-6, offset=0.0):
    result = x * torch.rsqrt(x.square().mean(-1, keepdim=True) + eps)
    if weight is not None:
        result = result * (weight + offset)
    return result if bias is None else result + bias


def _size(x):
    return float(x.detach().abs().max())


def compare(ours, theirs, operands, dtype, device, tolerance):
    """Values, types and gradients of two functions, the second one's in float64."""
    leaves = [
        x.to(device, dtype if x.dim() > 2 else torch.float32).requires_grad_()
        for x in operands
    ]
    wide = [x.detach().double().requires_grad_() for x in leaves]
    result, expected = ours(*leaves), theirs(*wide)
    assert result.dtype == dtype
    upstream = torch.randn_like(expected).to(dtype)
    result.backward(upstream)
    expected.backward(upstream.double())
    pairs = [(result, expected), *((x.grad, y.grad) for x, y in zip(leaves, wide))]
    for value, wanted in pairs:
        assert value.shape == wanted.shape
        torch.testing.assert_close(
            value.double(), wanted, rtol=tolerance, atol=tolerance * _size(wanted)
        )


@pytest.mark.parametrize(
    ("dtype", "tolerance"), [(torch.float32, 1e-5), (torch.bfloat16, 2e-2)]
)
@pytest.mark.parametrize("has_bias", [False, True])
@pytest.mark.parametrize(("heads", "length"), [(4, 64), (3, 5), (1, 16)])
def test_each_head_has_its_weight(heads, length, has_bias, dtype, tolerance, device):
    torch.manual_seed(heads)
    shapes = [(2, 7, heads, length), (heads, length)]
    if has_bias:
        shapes.append((heads, length))
    operands = [torch.randn(shape) for shape in shapes]
    compare(
        lambda x, w, b=None: F.rms_norm(x, length, w, 1e-6, bias=b, offset=1.0),
        lambda x, w, b=None: normalize(x, w, b, offset=1.0),
        operands,
        dtype,
        device,
        tolerance,
    )


def test_heads_of_a_slice_and_of_several_dimensions(device):
    torch.manual_seed(0)
    x = torch.randn(3, 4, 2, 6, 5, device=device)
    weight = torch.randn(2, 6, 5, device=device)
    result = F.rms_norm(x, (6, 5), weight, 1e-6)
    flat = normalize(x.flatten(-2), weight.flatten(-2))
    torch.testing.assert_close(result, flat.view_as(x))
    part = x[:, :, :, :, :4]
    result = F.rms_norm(part, 4, weight[0, :, :4], 1e-6)
    torch.testing.assert_close(result, normalize(part, weight[0, :, :4]))


@pytest.mark.parametrize("has_weight", [False, True])
def test_bias(has_weight, device):
    torch.manual_seed(1)
    operands = [torch.randn(3, 4, 24), torch.randn(24), torch.randn(24)]

    def ours(x, w, b):
        return F.rms_norm(x, 24, w if has_weight else None, 1e-6, bias=b) + 0 * w.sum()

    def theirs(x, w, b):
        return normalize(x, w if has_weight else None, b) + 0 * w.sum()

    compare(ours, theirs, operands, torch.float32, device, 1e-5)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
def test_every_step_is_rounded(dtype, device):
    """As a model that casts nothing: PyTorch rounds each operation's result."""
    torch.manual_seed(2)
    x = torch.randn(64, 96, device=device).to(dtype)
    weight = torch.randn(96, device=device).to(dtype)
    rounded = normalize(x, weight, eps=1e-5, offset=1.0)
    result = F.rms_norm(x, 96, weight, 1e-5, casting="none", offset=1.0)
    assert result.dtype == dtype
    # The order of a mean's terms may turn its last bit.
    limit = 2 * torch.finfo(dtype).eps
    torch.testing.assert_close(result, rounded, rtol=limit, atol=limit)
    if dtype != torch.float32:
        same = (result == rounded).float().mean()
        once = F.rms_norm(x, 96, weight, 1e-5, offset=1.0)
        assert same > 0.9 > (once == rounded).float().mean()


@pytest.mark.parametrize(
    ("kind", "residual_kind", "asked"),
    [
        (torch.bfloat16, torch.float32, None),
        (torch.float16, torch.float32, None),
        (torch.float32, torch.bfloat16, None),
        (torch.bfloat16, torch.bfloat16, torch.float32),
    ],
)
@pytest.mark.parametrize("shape", [(6, 32), (2, 3, 4, 8)])
def test_residual_of_another_type(kind, residual_kind, asked, shape, device):
    torch.manual_seed(3)
    per_head = len(shape) > 2
    x = torch.randn(shape, device=device).to(kind).requires_grad_()
    residual = torch.randn(shape, device=device).to(residual_kind).requires_grad_()
    weight, bias = torch.randn(2, *shape[-2 if per_head else -1 :], device=device)
    result, total = F.add_rms_norm(
        x, residual, weight, 1e-6, bias=bias, residual_dtype=asked
    )
    assert result.dtype == kind
    assert total.dtype == (asked or residual_kind)
    wide = x.detach().double().requires_grad_()
    wide_residual = residual.detach().double().requires_grad_()
    expected = wide + wide_residual
    assert torch.equal(total, expected.to(total.dtype))
    normed = normalize(expected, weight.double(), bias.double())
    # The norm is that of the sum in its type.
    limit = 4 * max(torch.finfo(kind).eps, torch.finfo(total.dtype).eps)
    torch.testing.assert_close(result.double(), normed, rtol=limit, atol=limit)
    upstream = torch.randn_like(result), torch.randn_like(total)
    torch.autograd.backward((result, total), upstream)
    torch.autograd.backward((normed, expected), [u.double() for u in upstream])
    for leaf, other in ((x, wide), (residual, wide_residual)):
        assert leaf.grad.dtype == leaf.dtype
        torch.testing.assert_close(
            leaf.grad.double(), other.grad, rtol=2 * limit, atol=2 * limit
        )


def test_heads_in_torch_compile():
    torch.manual_seed(4)
    x = torch.randn(2, 3, 4, 8, requires_grad=True)
    weight = torch.randn(4, 8, requires_grad=True)

    def f(x, w):
        return F.rms_norm(x, 8, w, 1e-6)

    compiled = torch.compile(f, fullgraph=True, backend="aot_eager")
    made = torch.autograd.grad(compiled(x, weight).sin().sum(), (x, weight))
    wanted = torch.autograd.grad(f(x, weight).sin().sum(), (x, weight))
    torch.testing.assert_close(made, wanted)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda x: F.rms_norm(x, 8, torch.ones(3, 8)),
            r"'weight' has shape \[3, 8\], but 'normalized_shape' is \[4, 8\]",
        ),
        (
            lambda x: F.rms_norm(x, 8, torch.ones(4, 8), bias=torch.ones(8)),
            r"'bias' has shape \[8\], but 'normalized_shape' is \[4, 8\]",
        ),
        (
            lambda x: F.rms_norm(x[0, 0, 0], 8, torch.ones(4, 8)),
            r"'weight' has shape \[4, 8\], but 'normalized_shape' is \[8\]",
        ),
        (
            lambda x: F.rms_norm(x[..., :4], 8, torch.ones(4, 8)),
            r"'input' has shape \[2, 3, 4, 4\], but the last dimensions must be",
        ),
        (
            lambda x: F.add_rms_norm(x, x[:1], torch.ones(4, 8)),
            r"'residual' has shape \[1, 3, 4, 8\]",
        ),
        (
            lambda x: F.add_rms_norm(x, x[:1], torch.ones(8)),
            r"residual.*\[1, 3, 4, 8\]",
        ),
    ],
)
def test_shapes_that_do_not_fit(call, message):
    with pytest.raises(ValueError, match=message):
        call(torch.ones(2, 3, 4, 8))


def test_groups_that_do_not_fit():
    with pytest.raises(ValueError, match="are not 5 groups of several columns"):
        import bastile

        bastile.ops.rms_norm(torch.ones(2, 8), groups=5)
