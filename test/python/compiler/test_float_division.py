# Part of Bastile, under the MIT License. See LICENSE.
# RUN: %package-test %s
"""``//`` and ``%`` of floats in Python functions, beside PyTorch's."""

import bastile
import pytest
import torch
from bastile.functions import exp

divide = bastile.compile(lambda x, y: x // y)
remainder = bastile.compile(lambda x, y: x % y)
#: Pairs of these meet each sign, divisors of 0, and numbers beyond all others.
POINTS = [0.0, -0.0, 0.25, -0.25, 1.0, -1.0, 2.5, -2.5, 7.0, -7.0, 1e-30, 3e4]
BEYOND = [torch.inf, -torch.inf, torch.nan]


def pairs(dtype, points=POINTS):
    x, y = torch.meshgrid(*[torch.tensor(points, dtype=dtype)] * 2, indexing="ij")
    return x.contiguous(), y.contiguous()


def randoms(dtype):
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(64, 40, generator=generator, dtype=torch.float64) * 50
    y = torch.randn(64, 40, generator=generator, dtype=torch.float64)
    return x.to(dtype).requires_grad_(), y.to(dtype).requires_grad_()


def check(mine, theirs):
    assert mine.dtype == theirs.dtype
    torch.testing.assert_close(mine, theirs, rtol=0, atol=0, equal_nan=True)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_values_at_corners(dtype):
    x, y = pairs(dtype, POINTS + BEYOND)
    check(remainder(x, y), x % y)
    check(divide(x, y), x // y)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_values(dtype):
    x, y = randoms(dtype)
    check(remainder(x, y), x % y)
    check(divide(x, y), x // y)


def test_values_of_bfloat16():
    """Computed in float32 and rounded once, which PyTorch does as well."""
    x, y = randoms(torch.bfloat16)
    check(remainder(x, y), (x.float() % y.float()).bfloat16())
    check(divide(x, y), (x.float() // y.float()).bfloat16())


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_gradients_of_remainders(dtype):
    x, y = randoms(dtype)
    upstream = torch.randn(64, 40, dtype=dtype)
    mine = torch.autograd.grad(remainder(x, y), (x, y), upstream)
    theirs = torch.autograd.grad(x % y, (x, y), upstream)
    torch.testing.assert_close(mine, theirs)


def test_quotients_have_no_gradient():
    """They are steps, and constants to derivatives as those of floor are."""
    function = bastile.compile(lambda x, y: x // y + x * y)
    x, y = randoms(torch.float64)
    gradients = torch.autograd.grad(function(x, y).sum(), (x, y))
    torch.testing.assert_close(gradients, (y, x))


def test_numbers():
    x, _ = (t.detach() for t in randoms(torch.float32))
    for number in (1, 3, 0.5, -2.5):
        check(bastile.compile(lambda x: x % number)(x), x % number)
        check(bastile.compile(lambda x: x // number)(x), x // number)
        check(bastile.compile(lambda x: number % x)(x), number % x)
        check(bastile.compile(lambda x: number // x)(x), number // x)
    check(bastile.compile(lambda x: x % 0)(x), x % 0)


def test_integers_beside_floats():
    """They become floats, as in PyTorch."""
    n = torch.arange(-8, 8, dtype=torch.int32).reshape(2, 8)
    x = torch.full((2, 8), 2.5)
    check(remainder(n, x), n % x)
    check(divide(n, x), n // x)
    check(bastile.compile(lambda n: (n % 2.5).to("float32"))(n), n % 2.5)
    check(bastile.compile(lambda n: (n // 2.5).to("float32"))(n), n // 2.5)


def test_among_formulas():
    """A phase, the derivative of which goes through what is left."""
    function = bastile.compile(lambda x, y: exp(x % y))
    x, y = randoms(torch.float64)
    gradients = torch.autograd.grad(function(x, y).sum(), (x, y))
    expected = torch.autograd.grad((x % y).exp().sum(), (x, y))
    torch.testing.assert_close(gradients, expected)
