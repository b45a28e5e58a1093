# Part of Bastile, under the MIT License. See LICENSE.
# RUN: %package-test %s
"""Functions in which products follow products: values and gradients against PyTorch's
in float64, at two sets of sizes, of which one has equal ones."""

import functools
import types

import bastile
import pytest
import torch
from bastile import functions as F

#: What `bastile.functions` calls otherwise.
PLAIN = types.SimpleNamespace(
    sigmoid=torch.sigmoid,
    silu=torch.nn.functional.silu,
    exp=torch.exp,
    log=torch.log,
    iota=lambda x, dim: torch.arange(x.shape[dim]).reshape([-1] + [1] * (-1 - dim)),
    row_sum=lambda x: x.sum(-1, keepdim=True),
    row_max=lambda x: x.amax(-1, keepdim=True),
)


def decayed(f, q, k, v, w):
    """Powers of positions alone, and a product behind them: both numbers of columns are
    those of a call."""
    scores = q @ k.mT
    distance = f.iota(scores, -1) - f.iota(scores, -2)
    return ((f.exp(abs(distance) * -0.1) + scores * 0.1) @ v) @ w.mT


def unnormalized(f, q, k, v, w):
    return ((q @ k.mT * 0.2) @ v) @ w.mT


def gram(f, x, w):
    h = f.silu(x @ w.mT) * 0.5
    return h @ h.mT


def scaled_twice(f, x, y, w, u):
    """One constant along the columns of two products of one size, of which one is a
    factor of the other."""
    h = (x @ w.mT) * 0.125
    return (h @ u.mT) * 0.125, (y @ h.mT) * 0.125


def gated_twice(f, q, k, gate, w):
    """Gates of one column ahead of a product and behind it."""
    o = ((q @ k.mT) * 0.2 * f.sigmoid(gate)) @ k
    return o * f.sigmoid(o @ w)


def of_own_scores(f, q, k, v):
    """A product with scores waits for another product with them."""
    s = (q @ k.mT) * 0.5
    return s @ v, s @ (s.mT @ q)


def largest(f, x, k, gate):
    """All rows have one column where there is one row."""
    y = ((x @ k.mT) * f.sigmoid(gate)) @ k
    s = (y @ y.mT) * 0.25
    return f.row_max(s) + f.log(f.row_sum(f.exp(s - f.row_max(s))))


CASES = [
    (decayed, [(2, 5, 6), (2, 7, 6), (2, 7, 4), (2, 4, 4)]),
    (decayed, [(2, 5, 6), (2, 4, 6), (2, 4, 4), (2, 4, 4)]),
    (unnormalized, [(2, 5, 6), (2, 7, 6), (2, 7, 4), (1, 9, 4)]),
    (unnormalized, [(5, 6), (5, 6), (5, 4), (5, 4)]),
    (gram, [(2, 5, 6), (2, 7, 6)]),
    (gram, [(2, 5, 6), (1, 5, 6)]),
    (scaled_twice, [(3, 64), (5, 64), (64, 64), (64, 64)]),
    (scaled_twice, [(3, 24), (3, 24), (24, 24), (24, 24)]),
    (gated_twice, [(2, 5, 16), (2, 7, 16), (2, 5, 1), (16, 1)]),
    (gated_twice, [(5, 16), (5, 16), (5, 1), (16, 1)]),
    (of_own_scores, [(2, 3, 6), (2, 5, 6), (2, 5, 8)]),
    (of_own_scores, [(3, 6), (5, 6), (5, 6)]),
    (largest, [(3, 17), (2, 17), (3, 1)]),
    (largest, [(1, 17), (2, 17), (1, 1)]),
]


@pytest.mark.long(every=5)
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("function, shapes", CASES)
def test_against_torch(function, shapes, dtype):
    generator = torch.Generator().manual_seed(0)
    exact = [
        (torch.randn(shape, generator=generator) * 0.5).to(dtype).double()
        for shape in shapes
    ]
    operands = [x.to(dtype) for x in exact]
    for x in exact + operands:
        x.requires_grad_()
    compiled = bastile.compile(functools.partial(function, F))
    results, wanted = compiled(*operands), function(PLAIN, *exact)
    if not isinstance(wanted, tuple):
        results, wanted = (results,), (wanted,)
    gradients = [torch.randn_like(x).to(dtype) for x in wanted]
    torch.autograd.backward(results, gradients)
    torch.autograd.backward(wanted, [x.double() for x in gradients])
    bound = 2e-6 if dtype == torch.float32 else 3e-2
    pairs = [
        *zip(results, wanted),
        *((x.grad, y.grad) for x, y in zip(operands, exact)),
    ]
    for mine, other in pairs:
        assert mine.shape == other.shape
        assert (mine.double() - other).norm() <= bound * other.norm()
