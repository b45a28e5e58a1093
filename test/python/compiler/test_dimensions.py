# Part of Bastile, under the MIT License. See LICENSE.
# RUN: %package-test %s
"""Dimensions of one size are told apart: by what is computed, not by lengths."""

import bastile
import pytest
import torch
from bastile import functions as F

SIZE = 24


def check(function, expected, *operands):
    """Compares with ``expected`` in float64, and all gradients with autograd's."""
    operands = [x.detach().requires_grad_() for x in operands]
    exact = [x.detach().double().requires_grad_() for x in operands]
    result, wanted = function(*operands), expected(*exact)
    assert result.shape == wanted.shape
    gradient = torch.randn_like(wanted)
    result.backward(gradient.float())
    wanted.backward(gradient)
    for mine, other in [
        (result, wanted),
        *((x.grad, y.grad) for x, y in zip(operands, exact)),
    ]:
        torch.testing.assert_close(mine.double(), other, rtol=1e-4, atol=1e-4)


@pytest.mark.long(every=5)
@pytest.mark.parametrize(
    "function",
    [
        lambda x, w: x @ w,
        lambda x, w: x @ w.mT,
        lambda x, w: x.mT @ w,
        lambda x, w: x @ w + x,
        lambda x, w: x @ w.mT + w,
        lambda x, w: (x @ w).mT @ x,
    ],
)
def test_square_matrices(function):
    x, w = torch.randn(SIZE, SIZE), torch.randn(SIZE, SIZE)
    check(bastile.compile(function), function, x, w)


def test_groups_as_many_as_rows():
    """A product makes one of the rows of x and of the groups of its columns."""

    def formula(maximum):
        return lambda x: maximum(x) @ x

    def of_groups(x):
        return x.reshape(8, 8, 8).sum(-1)

    x = torch.randn(8, 64)
    function = bastile.compile(formula(lambda x: F.row_sum(x, groups=8)))
    check(function, formula(of_groups), x)


def attention(softmax):
    return lambda q, k, v: softmax(q @ k.mT) @ v


def test_sizes_that_agree_in_one_call():
    function = bastile.compile(attention(F.softmax))
    expected = attention(lambda s: torch.softmax(s, -1))
    for queries, keys in [(SIZE, SIZE), (SIZE, 70), (64, 64), (5, SIZE)]:
        operands = [torch.randn(2, n, 64) for n in (queries, keys, keys)]
        check(function, expected, *operands)
        with torch.no_grad():
            function(*operands)
    # With gradients, and without.
    assert len(function.kernels) == 2


def test_computed_columns_of_any_number():
    """Nothing but a call knows how many columns the computed rows have."""
    function = bastile.compile(lambda a, b: F.row_sum(F.exp(a @ b.mT)) * (a @ b.mT))

    def expected(a, b):
        scores = a @ b.mT
        return scores.exp().sum(-1, keepdim=True) * scores

    for rows, columns in [(5, 5), (5, 130), (33, 3)]:
        a, b = torch.randn(2, rows, 8) / 4, torch.randn(2, columns, 8) / 4
        check(function, expected, a, b)
    assert len(function.kernels) == 1


@pytest.mark.parametrize("rows, columns", [(SIZE, SIZE), (SIZE, 40)])
def test_a_transposed_weight_as_a_view(rows, columns):
    """A view has the same elements, of which others are neighbours."""
    x, w = torch.randn(7, rows), torch.randn(columns, rows)
    for function in (lambda x, w: x @ w, lambda x, w: (x @ w).mT):
        check(bastile.compile(function), function, x, w.T)
        torch.testing.assert_close(
            bastile.compile(function)(x, w.T), function(x, w.T), rtol=1e-4, atol=1e-4
        )


@pytest.mark.parametrize("size", [1, 5])
def test_fixed_beside_free_sizes(size):
    """A product fixes the rows of its right factor, here also to 1; those of y are
    free."""

    def formula(x, y):
        return (x @ x.mT) * y

    check(
        bastile.compile(formula), formula, torch.randn(size, SIZE), torch.randn(size, 1)
    )


def test_groups_of_a_piece():
    """A piece of a row, repeated, has as many columns as the row."""

    def repeat(x):
        return x.chunk(4, -1)[3].repeat_interleave(4, -1)

    function = bastile.compile(lambda x: F.repeat_interleave(F.split(x, 4)[3], 4))
    check(function, repeat, torch.randn(5, SIZE))


@pytest.mark.parametrize("groups", [16, 33, 257])
def test_reduced_groups(groups):
    """The sum of a row of groups, of which a condition leaves some, has one element
    for each group: what a program has beyond the row is none of them."""

    def function(x, y, c):
        return F.row_sum(F.where(y >= c, 0, F.row_sum(x, groups)))

    def expected(x, y, c):
        pairs = x.reshape(*x.shape[:-1], groups, 2).sum(-1)
        return torch.where(y >= c, 0, pairs).sum(-1, keepdim=True)

    x, y = torch.randn(7, 2 * groups), torch.randn(7, groups)
    function = bastile.compile(function)
    torch.testing.assert_close(function(x, y, y[:, :1]), expected(x, y, y[:, :1]))


def test_groups_beside_a_product():
    """The gradient of x has groups of its columns, and the rows of a product."""

    def formula(maxima):
        return lambda x, y: (x @ y.mT) * maxima(x)

    def expected(x):
        return x.reshape(*x.shape[:-1], 2, -1).amax(-1).sum(-1, keepdim=True)

    x, y = torch.randn(3, 5, SIZE), torch.randn(3, 5, SIZE)
    function = bastile.compile(formula(lambda x: F.row_sum(F.row_max(x, 2))))
    check(function, formula(expected), x, y)
