# Part of Bastile, under the MIT License. See LICENSE.
# RUN: %package-test %s
"""Gradients of traced functions at zeros, infinities and ties, against PyTorch's."""

import bastile
import pytest
import torch
from bastile import functions as F

INFINITY, NAN = float("inf"), float("nan")
POINTS = [0.0, -0.0, 1.0, -2.0, 3.0, INFINITY, -INFINITY, NAN]
PAIRS = torch.cartesian_prod(*[torch.tensor(POINTS)] * 2)


def gradients(function, tensors):
    leaves = [tensor.clone().requires_grad_() for tensor in tensors]
    return torch.autograd.grad(function(*leaves).sum(), leaves)


def assert_as_torch(function, expected, tensors):
    kernel = bastile.compile(
        function, tensors[0].shape, dtype=torch.float32, grad=True, target="host"
    )
    torch.testing.assert_close(kernel(*tensors), expected(*tensors), equal_nan=True)
    torch.testing.assert_close(
        gradients(kernel, tensors),
        gradients(expected, tensors),
        equal_nan=True,
    )


@pytest.mark.parametrize("exponent", (0, 1, 2, 3, 4, 7, 8, -1, -2, -3, -8, 0.5, -0.5))
def test_powers_of_numbers(exponent):
    # Roots of numbers below zero have gradients of either sign in PyTorch.
    points = [x for x in POINTS if exponent == int(exponent) or x > 0] + [0.0]
    x = torch.tensor([points])
    # Added, so that there is a gradient where the power has none.
    assert_as_torch(lambda x: x**exponent + x, lambda x: x**exponent + x, [x])


def test_powers_of_tensors():
    x, y = PAIRS.t()[:, None]
    assert_as_torch(lambda x, y: x**y, lambda x, y: x**y, [x, y])


@pytest.mark.parametrize("base", (0, 1, 2, -2))
def test_powers_with_numbers_below(base):
    x = torch.tensor([POINTS])
    assert_as_torch(lambda x: base**x, lambda x: base**x, [x])


@pytest.mark.parametrize("name", ("maximum", "minimum"))
def test_extrema(name):
    x, y = PAIRS.t()[:, None]
    assert_as_torch(getattr(F, name), getattr(torch, name), [x, y])


@pytest.mark.parametrize("one", ("x", "y"))
@pytest.mark.parametrize("name", ("maximum", "minimum"))
def test_ties_if_one_gradient_is_asked_for(name, one):
    function = getattr(F, name)
    kernel = bastile.compile(
        lambda x, y: function(x, y),
        (1, 4),
        dtype=torch.float32,
        grad=one,
        target="host",
    )
    x, y = (torch.tensor([[1.0, 2.0, 3.0, 3.0]]) for _ in range(2))
    leaf = {"x": x, "y": y}[one].requires_grad_()
    kernel(x, y).sum().backward()
    assert torch.equal(leaf.grad, torch.full((1, 4), 0.5))


@pytest.mark.parametrize("limit", ("min", "max"))
def test_clamp(limit):
    x, y = PAIRS.t()[:, None]
    assert_as_torch(
        lambda x, y: F.clamp(x, **{limit: y}) + y,
        lambda x, y: torch.clamp(x, **{limit: y}) + y,
        [x, y],
    )
    assert_as_torch(
        lambda x: F.clamp(x, **{limit: 1}),
        lambda x: torch.clamp(x, **{limit: 1}),
        [x],
    )


@pytest.mark.parametrize("name", ("amax", "amin"))
def test_ties_in_rows(name):
    function = {"amax": F.row_max, "amin": F.row_min}[name]
    x = torch.tensor([[1.0, 2, 2, 1], [3, 3, 3, 3], [1, NAN, 2, 2]])
    assert_as_torch(
        lambda x: function(x) + x,
        lambda x: getattr(x, name)(-1, keepdim=True) + x,
        [x],
    )


def test_integers_compared_with_themselves():
    """What is true or false everywhere has the shape that the comparison had."""
    i, x = torch.arange(10, dtype=torch.int32).reshape(2, 5, 1), torch.ones(1, 1, 1)
    less = bastile.compile(lambda i, x: F.where(i < i, 0, x))
    assert torch.equal(less(i, x), torch.ones(2, 5, 1))
    both = bastile.compile(lambda i, x: (F.where(i == i, 2.5, x), i ^ i))
    equal, difference = both(i, x)
    assert torch.equal(equal, torch.full((2, 5, 1), 2.5))
    assert torch.equal(difference, torch.zeros_like(i))
