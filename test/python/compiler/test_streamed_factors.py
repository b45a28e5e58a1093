# Part of Bastile, under the MIT License. See LICENSE.
# RUN: %package-test %s
"""Products of what their kernels compute, such as softmax(q k^T) v, in Python functions:
values and gradients, and columns whose size only a call knows."""

import math
import pathlib
import re

import bastile
import pytest
import torch
from bastile import functions as F

TOLERANCES = {torch.float64: 1e-12, torch.float32: 2e-6, torch.bfloat16: 2e-2}
#: Queries and keys: fewer than a tile, and several tiles.
LENGTHS = [(5, 7), (70, 129)]


def scores(q, k):
    return q @ k.mT * (1 / math.sqrt(64))


def full(q, k, v):
    return F.softmax(scores(q, k)) @ v


def full_torch(q, k, v):
    return torch.softmax(scores(q, k), -1) @ v


def rounded(q, k, v):
    """As models write it, whose softmax is in float32: the product rounds as well."""
    return F.softmax(scores(q, k)).to(q.dtype) @ v


def rounded_torch(q, k, v):
    return torch.softmax(scores(q, k), -1).to(q.dtype) @ v


def causal(q, k, v):
    s = scores(q, k)
    return F.softmax(F.where(F.iota(s, -1) <= F.iota(s, -2), s, -math.inf)) @ v


def causal_torch(q, k, v):
    s = scores(q, k)
    seen = torch.ones_like(s, dtype=torch.bool).tril()
    return torch.softmax(s.masked_fill(~seen, -math.inf), -1) @ v


def capped(q, k, v):
    return F.softmax(20 * F.tanh(scores(q, k) / 20)) @ v


def capped_torch(q, k, v):
    return torch.softmax(20 * torch.tanh(scores(q, k) / 20), -1) @ v


def with_sink(q, k, v, sink):
    s = scores(q, k)
    largest = F.stop_gradient(F.maximum(F.row_max(s), sink))
    powers = F.exp(s - largest)
    return (powers / (F.row_sum(powers) + F.exp(sink - largest))) @ v


def with_sink_torch(q, k, v, sink):
    s = scores(q, k)
    s = torch.cat([s, sink.expand(*s.shape[:-1], 1)], -1)
    return torch.softmax(s, -1)[..., :-1] @ v


def windowed(q, k, v):
    """The first two queries see no key: their result and gradients are 0."""
    s = scores(q, k)
    query, key = F.iota(s, -2), F.iota(s, -1)
    seen = (key <= query) & (key > query - 4) & (query > 1)
    largest = F.stop_gradient(F.row_max(F.where(seen, s, -math.inf)))
    shift = F.where(largest > -1e30, largest, 0)
    powers = F.where(seen, F.exp(F.where(seen, s, 0) - shift), 0)
    total = F.row_sum(powers)
    return F.where(total > 0, (powers @ v) / F.where(total > 0, total, 1), 0)


def windowed_torch(q, k, v):
    s = scores(q, k)
    query = torch.arange(s.shape[-2])[:, None]
    key = torch.arange(s.shape[-1])[None]
    seen = (key <= query) & (key > query - 4) & (query > 1)
    return (torch.softmax(s.masked_fill(~seen, -1e300), -1) * seen) @ v


def with_log_sum(q, k, v):
    s = scores(q, k)
    largest = F.stop_gradient(F.row_max(s))
    powers = F.exp(s - largest)
    total = F.row_sum(powers)
    return (powers @ v) / total * (largest + F.log(total))


def with_log_sum_torch(q, k, v):
    s = scores(q, k)
    return torch.softmax(s, -1) @ v * torch.logsumexp(s, -1, keepdim=True)


def biased(q, k, v, bias):
    """The bias has a number for each score, and so has its gradient."""
    return F.softmax(scores(q, k) + bias) @ v


def biased_torch(q, k, v, bias):
    return torch.softmax(scores(q, k) + bias, -1) @ v


def mixed(q, k, v):
    """Two softmaxes in one left factor."""
    s = scores(q, k)
    return (F.softmax(s) - 0.3 * F.softmax(-s)) @ v


def mixed_torch(q, k, v):
    s = scores(q, k)
    return (torch.softmax(s, -1) - 0.3 * torch.softmax(-s, -1)) @ v


def sloped(q, k, v):
    s = scores(q, k)
    return F.softmax(s - 0.1 * (F.iota(s, -2) - F.iota(s, -1))) @ v


def sloped_torch(q, k, v):
    s = scores(q, k)
    query = torch.arange(s.shape[-2])[:, None]
    key = torch.arange(s.shape[-1])[None]
    return torch.softmax(s - 0.1 * (query - key), -1) @ v


def squared(q, k, v):
    positive = F.relu(scores(q, k))
    return (positive * positive) @ v


def squared_torch(q, k, v):
    return torch.relu(scores(q, k)) ** 2 @ v


def normalized(q, k, v):
    """The scores are needed twice, so that they lie in memory."""
    s = scores(q, k)
    return (s * F.rsqrt(F.row_mean(s * s) + 1e-2)) @ v


def normalized_torch(q, k, v):
    s = scores(q, k)
    return (s * torch.rsqrt((s * s).mean(-1, keepdim=True) + 1e-2)) @ v


def two_softmaxes(q, k, v):
    s = scores(q, k)
    return (F.softmax(s) @ v) * (F.softmax(-s) @ v)


def two_softmaxes_torch(q, k, v):
    s = scores(q, k)
    return (torch.softmax(s, -1) @ v) * (torch.softmax(-s, -1) @ v)


def of_places(q, k, v):
    """Of the scores, nothing but their sizes is of use."""
    s = scores(q, k)
    return F.softmax(((F.iota(s, -1) - F.iota(s, -2)) * 0.25).to(s.dtype)) @ v


def of_places_torch(q, k, v):
    s = scores(q, k) * 0
    query, key = torch.arange(s.shape[-2])[:, None], torch.arange(s.shape[-1])
    return torch.softmax(s + (key - query) * 0.25, -1) @ v


FORMULAS = {
    function.__name__: (function, expected)
    for function, expected in [
        (full, full_torch),
        (rounded, rounded_torch),
        (causal, causal_torch),
        (capped, capped_torch),
        (with_sink, with_sink_torch),
        (windowed, windowed_torch),
        (with_log_sum, with_log_sum_torch),
        (biased, biased_torch),
        (mixed, mixed_torch),
        (sloped, sloped_torch),
        (squared, squared_torch),
        (normalized, normalized_torch),
        (two_softmaxes, two_softmaxes_torch),
        (of_places, of_places_torch),
    ]
}


def compare(mine, expected, dtype, scale=None):
    error = (mine.double() - expected).norm()
    assert error <= TOLERANCES[dtype] * max(expected.norm(), scale or 0)


def check(function, expected, dtype, shapes):
    generator = torch.Generator().manual_seed(0)
    operands = [torch.randn(s, generator=generator).to(dtype) for s in shapes]
    exact = [x.double().clone().requires_grad_() for x in operands]
    operands = [x.requires_grad_() for x in operands]
    result, wanted = function(*operands), expected(*exact)
    assert result.shape == wanted.shape and result.dtype == dtype
    gradient = torch.randn(wanted.shape, generator=generator).to(dtype)
    result.backward(gradient)
    wanted.backward(gradient.double())
    compare(result, wanted, dtype)
    for mine, other in zip(operands, exact):
        if mine.grad is None:
            assert not other.grad.any()
            continue
        # Gradients that cancel to 0 are as exact as what cancels.
        compare(mine.grad, other.grad, dtype, scale=0.1 * gradient.double().norm())


@pytest.mark.long(every=29)
@pytest.mark.parametrize("dtype", [torch.float64, torch.bfloat16])
@pytest.mark.parametrize("name", FORMULAS)
def test_values_and_gradients(name, dtype):
    function, expected = FORMULAS[name]
    compiled = bastile.compile(function)
    for queries, keys in LENGTHS:
        shapes = [(2, 3, queries, 64), (2, 3, keys, 64), (2, 3, keys, 64)]
        if name == "with_sink":
            shapes.append((1, 3, 1, 1))
        if name == "biased":
            shapes.append((1, 3, queries, keys))
        check(compiled, expected, dtype, shapes)


#: Formulas of which a backward needs something as large as the scores in memory.
IN_MEMORY = {"biased", "normalized", "mixed", "of_places"}


@pytest.mark.long(every=7)
@pytest.mark.parametrize("name", FORMULAS)
def test_what_kernels_leave(name):
    """No kernel leaves anything for each query and key, forward or backward."""
    shapes = [(2, 3, 70, 64), (2, 3, 129, 64), (2, 3, 129, 64)]
    shapes += [(1, 3, 1, 1)] if name == "with_sink" else []
    shapes += [(1, 3, 70, 129)] if name == "biased" else []
    compiled = bastile.compile(FORMULAS[name][0])
    operands = [torch.randn(s, dtype=torch.bfloat16) for s in shapes]
    compiled(*[x.requires_grad_() for x in operands])
    (kernel,) = compiled.kernels
    found = re.findall(r"tile.kernel @.* -> (.*) \{\n", kernel.mlir("fused"))
    assert len(found) >= 3
    left = re.findall(r"tensor<[x?\d]*x(?:\?|129)x[a-z]+\d+>", " ".join(found))
    assert bool(left) == (name in IN_MEMORY)
    if name == "biased":
        assert left == ["tensor<?x?x?x129xf32>", "tensor<1x?x?x129xbf16>"]


@pytest.mark.long(every=3)
@pytest.mark.parametrize("lengths", [(140, 129), (9, 7)])
def test_queries_beyond_the_keys(lengths):
    """What the mask shows behind the last key is no key."""
    queries, keys = lengths
    shapes = [(1, 2, queries, 64), (1, 2, keys, 64), (1, 2, keys, 64)]
    check(bastile.compile(windowed), windowed_beyond, torch.float64, shapes)


def windowed_beyond(q, k, v):
    """The queries that see no key have 0."""
    s = scores(q, k)
    query = torch.arange(s.shape[-2])[:, None]
    key = torch.arange(s.shape[-1])[None]
    seen = (key <= query) & (key > query - 4) & (query > 1)
    powers = torch.where(seen, torch.exp(torch.where(seen, s, 0)), 0)
    total = powers.sum(-1, keepdim=True)
    return powers @ v / torch.where(total > 0, total, 1)


@pytest.mark.long
def test_rows_that_begin_late():
    """As long as a row has seen no key, its powers are relative to 0, and later to a
    maximum far below."""

    def formula(q, k, v):
        s = scores(q, k) - 300
        query, key = F.iota(s, -2), F.iota(s, -1)
        seen = (key <= query) & (key > query - 4) & (query > 1)
        largest = F.row_max(F.where(seen, s, -math.inf))
        shift = F.where(largest > -1e30, largest, 0)
        powers = F.where(seen, F.exp(F.where(seen, s, 0) - shift), 0)
        total = F.row_sum(powers)
        return F.where(total > 0, (powers @ v) / F.where(total > 0, total, 1), 0)

    operands = [torch.randn(1, 2, 200, 64) for _ in range(3)]
    result = bastile.compile(formula)(*operands)
    expected = windowed_torch(*(x.double() for x in operands))
    torch.testing.assert_close(result.double(), expected, rtol=1e-3, atol=1e-4)


@pytest.mark.long
def test_gradient_of_a_slope():
    """The loop over keys that adds up the gradient of queries adds up that of a number
    for each head as well."""

    def formula(q, k, v, slope):
        s = scores(q, k)
        return F.softmax(s - slope * (F.iota(s, -2) - F.iota(s, -1))) @ v

    def expected(q, k, v, slope):
        query = torch.arange(q.shape[-2])[:, None]
        key = torch.arange(k.shape[-2])[None]
        return torch.softmax(scores(q, k) - slope * (query - key), -1) @ v

    compiled = bastile.compile(formula)
    shapes = [(2, 3, 70, 64), (2, 3, 129, 64), (2, 3, 129, 64), (1, 3, 1, 1)]
    check(compiled, expected, torch.float64, shapes)
    fused = compiled.kernels[0].mlir("fused")
    assert not re.findall(r"tile.kernel @.* -> .*x\?xf64>[,)]? \{\n", fused)


def test_heads_that_share_keys():
    """Gradients of keys and values are added up over the heads of a group."""
    shapes = [(2, 3, 4, 70, 64), (2, 3, 1, 129, 64), (2, 3, 1, 129, 64)]
    check(bastile.compile(causal), causal_torch, torch.float64, shapes)


def test_rows_that_see_nothing():
    """The first three queries see no key: their softmax is NaN, and so are the gradients
    of all values, which it multiplies."""

    def formula(q, k, v):
        s = scores(q, k)
        seen = F.iota(s, -1) <= F.iota(s, -2) - 3
        return F.softmax(F.where(seen, s, -math.inf)) @ v

    def expected(q, k, v):
        s = scores(q, k)
        seen = torch.ones_like(s, dtype=torch.bool).tril(-3)
        return torch.softmax(s.masked_fill(~seen, -math.inf), -1) @ v

    results = []
    for function in (bastile.compile(formula), expected):
        torch.manual_seed(0)
        operands = [torch.randn(1, 1, n, 64).requires_grad_() for n in (140, 137, 137)]
        result = function(*operands)
        result.backward(torch.randn(result.shape))
        results.append([result, *(x.grad for x in operands)])
    for mine, other in zip(*results):
        torch.testing.assert_close(mine, other, equal_nan=True, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("lengths", [(1, 9), (9, 1)])
def test_a_single_query_or_key(lengths):
    queries, keys = lengths
    shapes = [(2, 3, queries, 64), (2, 3, keys, 64), (2, 3, keys, 64)]
    check(bastile.compile(full), full_torch, torch.float32, shapes)


@pytest.mark.long(every=11)
@pytest.mark.parametrize(
    "sizes", [(64, 64, 1), (80, 24, 3), (16, 128, 1), (128, 256, 1)]
)
def test_sizes_of_heads(sizes):
    """Other sizes of queries and of values, and keys that several heads share."""
    size, of_values, keys_heads = sizes
    shapes = [(2, 3, 20, size), (2, keys_heads, 37, size)]
    shapes.append((2, keys_heads, 37, of_values))
    check(bastile.compile(full), full_torch, torch.bfloat16, shapes)


def test_one_kernel_for_all_lengths():
    function = bastile.compile(full)
    for queries, keys in LENGTHS:
        operands = [torch.randn(1, 2, n, 64) for n in (queries, keys, keys)]
        function(*operands)
    assert len(function.kernels) == 1


@pytest.mark.long(every=3)
@pytest.mark.parametrize("fill", [-math.inf, math.inf, math.nan])
def test_rows_of_special_values(fill):
    """Powers of infinities and NaN are as the formula has them."""
    q, k, v = (torch.randn(1, 1, n, 64) for n in (6, 70, 70))
    bias = torch.zeros(1, 1, 6, 1)
    bias[..., 2, :] = fill

    def formula(q, k, v, bias):
        return F.softmax(q @ k.mT + bias) @ v

    result = bastile.compile(formula)(q, k, v, bias)
    expected = torch.softmax(q @ k.mT + bias, -1) @ v
    torch.testing.assert_close(result, expected, equal_nan=True, rtol=1e-5, atol=1e-5)


def test_no_keys():
    """The sum over no keys is 0, as that of torch."""
    q, k, v = (torch.randn(1, 1, n, 64) for n in (6, 0, 0))
    result = bastile.compile(squared)(q, k, v)
    assert result.shape == (1, 1, 6, 64) and (result == 0).all()


@pytest.mark.long
def test_dropout_drops_the_same_powers_again():
    def formula(q, k, v):
        return F.dropout(F.softmax(scores(q, k)), 0.4, 5) @ v

    def powers(q, k):
        return F.dropout(F.softmax(scores(q, k)), 0.4, 5)

    def expected(q, k, v):
        with torch.no_grad():
            kept = bastile.compile(powers)(q, k) != 0
        return torch.softmax(scores(q, k), -1) * kept / 0.6 @ v

    shapes = [(2, 3, 40, 64), (2, 3, 33, 64), (2, 3, 33, 64)]
    check(bastile.compile(formula), expected, torch.float64, shapes)


def test_columns_that_formulas_need_to_know():
    """Where something needs the size of a product's columns, it is part of the code."""
    function = bastile.compile(lambda a, b: F.row_sum(a @ b.mT, groups=2))
    for columns in (6, 8):
        a, b = torch.randn(2, 5, 16), torch.randn(2, columns, 16)
        expected = (a @ b.mT).unflatten(-1, (2, -1)).sum(-1)
        torch.testing.assert_close(function(a, b), expected)
    with pytest.raises(ValueError, match="not 2 groups"):
        function(torch.randn(2, 5, 16), torch.randn(2, 7, 16))


def test_example_of_the_guide():
    root = pathlib.Path(__file__).resolve().parents[3]
    text = (root / "docs/adding-an-op.md").read_text()
    names = {}
    exec(text.split("```python\n")[3].split("```")[0], names)
    shapes = [(2, 3, 40, 64)] * 3
    check(names["attention"], causal_torch, torch.float32, shapes)
