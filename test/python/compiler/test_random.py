# Part of Bastile, under the MIT License. See LICENSE.
# RUN: %package-test %s
"""The numbers of elements, random bits, and what follows from them."""

import pathlib
import sys

import bastile
import numpy as np
import pytest
import torch
from bastile import functions as F
from bastile.functions import dropout, iota, random_bits, uniform, where
from tracing import compile_f64, random

sys.path.insert(0, str(pathlib.Path(__file__).parents[2] / "numerics" / "Inputs"))
from philox import philox  # noqa: E402

# Key, counter and result, from the known answers of Random123
# (tests/kat_vectors), the library of the article.
KNOWN_ANSWERS = [
    (0, (0, 0), (0xFF1DAE59, 0x6CD10DF2)),
    (0xFFFFFFFF, (0xFFFFFFFF, 0xFFFFFFFF), (0x2C3F628B, 0xAB4FD7AD)),
    (0x13198A2E, (0x243F6A88, 0x85A308D3), (0xDD7CE038, 0xF62A4C12)),
]


def signed(*words):
    return np.array([words], np.uint32).view(np.int32)


@pytest.mark.parametrize("key, counter, result", KNOWN_ANSWERS)
def test_known_answers(key, counter, result):
    assert tuple(map(int, philox(key, *counter))) == result
    seed, low, high = (signed(word) for word in (key, *counter))
    kernel = compile_f64(lambda s, a, b: random_bits(s, (a, b)), seed, low, high)
    assert np.array_equal(kernel(seed, low, high), signed(result[0]))
    # Numbers of Python are words as well, however they are spelled.
    for key in (key, int(seed[0, 0]), seed[0, 0]):
        kernel = compile_f64(lambda a: random_bits(key, (a, counter[1])), low)
        assert np.array_equal(kernel(low), signed(result[0]))
    kernel = compile_f64(lambda s: random_bits(s, counter), seed)
    assert np.array_equal(kernel(seed), signed(result[0]))


def test_counters_of_one_word():
    n = np.arange(-8, 8, dtype=np.int32).reshape(2, 8)
    expected, _ = philox(5, n.view(np.uint32), np.zeros((2, 8)))
    kernel = compile_f64(lambda n: random_bits(5, n), n)
    np.testing.assert_array_equal(kernel(n).view(np.uint32), expected)


def test_what_random_bits_take():
    for words in ((lambda x: random_bits(0, x)), (lambda x: random_bits(x, 0))):
        with pytest.raises(TypeError, match='must be int32.*to."int32".'):
            bastile.compile(words, (2, 4), dtype="i64")
    with pytest.raises(TypeError, match="neither seed nor counter"):
        bastile.compile(lambda x: x * random_bits(1, 2), (2, 4), dtype="f32")
    with pytest.raises(ValueError, match="p must be from 0 to 1, but is 1.5"):
        bastile.compile(lambda x: dropout(x, 1.5, 0), (2, 4), dtype="f32")


SHAPES = [(7, 12), (3, 5, 12), (2, 3, 4, 12), (5, 1, 12)]


@pytest.mark.parametrize("shape", SHAPES)
def test_numbers_along_each_dimension(shape):
    x = random(*shape, dtype=np.float32)
    for dim in range(len(shape)):
        numbers = np.indices(shape)[dim].astype(np.int32)
        if dim + 1 < len(shape):
            numbers = numbers[..., :1]
        for place in (dim, dim - len(shape)):
            kernel = bastile.compile(lambda x: (iota(x, place), x + iota(x, place)))
            found, total = kernel(x)
            np.testing.assert_array_equal(found, numbers)
            np.testing.assert_array_equal(total, x + numbers.astype(np.float32))


@pytest.mark.parametrize("shape", SHAPES)
def test_numbers_of_all_rows(shape):
    x = random(*shape, dtype=np.float32)
    rows = np.arange(x[..., 0].size, dtype=np.int32).reshape(*shape[:-1], 1)
    kernel = bastile.compile(lambda x: iota(x, tuple(range(x.ndim - 1))))
    np.testing.assert_array_equal(kernel(x), rows)


def test_numbers_where_dimensions_do_not_merge():
    x = torch.randn(4, 3, 5, 12)
    kernel = bastile.compile(lambda x: (iota(x, 1), iota(x, (0, 1)) + iota(x, 2)))
    for view in (x, x.transpose(1, 2), x.transpose(0, 1), x[:, :, ::2], x[:, :1]):
        sizes = view.shape[:-1]
        place = np.indices(sizes).astype(np.int32)[..., None]
        along, total = kernel(view)
        np.testing.assert_array_equal(along, place[1])
        np.testing.assert_array_equal(total, place[0] * sizes[1] + place[1] + place[2])


def test_a_causal_mask():
    scores = torch.randn(2, 3, 10, 16, dtype=torch.float32, requires_grad=True)

    @bastile.compile
    def masked(scores):
        seen = iota(scores, -1) <= iota(scores, -2) + 6
        scores = where(seen, scores, -float("inf"))
        weights = F.exp(scores - F.stop_gradient(F.row_max(scores)))
        return weights / F.row_sum(weights)

    mask = torch.ones(10, 16, dtype=torch.bool).tril(6)
    expected = scores.masked_fill(~mask, -float("inf")).softmax(-1)
    result = masked(scores)
    torch.testing.assert_close(result, expected)
    weights = torch.randn_like(result)
    found, wanted = (
        torch.autograd.grad(r, scores, weights) for r in (result, expected)
    )
    torch.testing.assert_close(found, wanted)


def test_what_cannot_be_numbered():
    for dims in (3, (0, 2), (1, 2), (), -4, (1, 0)):
        with pytest.raises(
            ValueError, match=r"iota: elements of the shape \(2, 3, 4\)"
        ):
            bastile.compile(lambda x: x + iota(x, dims), (2, 3, 4), dtype="f32")
    with pytest.raises(ValueError, match=r"takes rows, but the shape is \(4,\)"):
        bastile.compile(lambda x: x + iota(x, 0), (4,), dtype="f32")


def make_seed(number):
    return np.array([number], np.int32)


def test_uniform_numbers():
    x = np.zeros((64, 1000), np.float32)
    kernel = bastile.compile(lambda x, s: x + uniform(s, (iota(x, 0), iota(x, 1))))
    numbers = kernel(x, make_seed(3)).astype(np.float64)
    rows, columns = np.indices(x.shape)
    expected = (philox(3, rows, columns)[0] >> 8) * 2.0**-24
    np.testing.assert_array_equal(numbers, expected)
    assert 0 <= numbers.min() < 1e-3 and 1 - 1e-3 < numbers.max() < 1
    # Five standard deviations of a mean and of a variance of so many numbers.
    count = numbers.size
    assert abs(numbers.mean() - 0.5) < 5 * (1 / 12 / count) ** 0.5
    assert abs(numbers.var() - 1 / 12) < 5 * (1 / 180 / count) ** 0.5
    for other in (
        np.roll(numbers, 1, 0),
        np.roll(numbers, 1, 1),
        kernel(x, make_seed(4)),
    ):
        assert abs(np.corrcoef(numbers.ravel(), other.ravel())[0, 1]) < 5 / count**0.5


@pytest.mark.long(every=3)
@pytest.mark.parametrize("p", [0, 0.1, 0.5, 1])
@pytest.mark.parametrize("shape", [(200, 510), (4, 50, 510)])
def test_dropout(p, shape):
    # No element is 0, so that a 0 of the result is an element dropped.
    x = (torch.rand(shape) + 1).requires_grad_()
    seed = torch.tensor([17], dtype=torch.int32)
    drop = bastile.compile(lambda x, seed: dropout(x, p, seed))
    result = drop(x, seed)
    isdropped = result == 0
    share, count = isdropped.float().mean().item(), x.numel()
    assert abs(share - p) <= 5 * (p * (1 - p) / count) ** 0.5
    scale = 0 if p == 1 else 1 / (1 - p)
    torch.testing.assert_close(result, torch.where(isdropped, 0, x * scale))
    (gradient,) = torch.autograd.grad(result.sum(), x)
    torch.testing.assert_close(gradient, torch.where(isdropped, 0.0, scale))
    # The same seed drops the same elements, however the rows lie, another drops
    # others.
    assert torch.equal(drop(x.reshape(-1, 510), seed).view(shape), result)
    if 0 < p < 1:
        agree = ((drop(x, seed + 1) == 0) == isdropped).float().mean().item()
        expected = p * p + (1 - p) * (1 - p)
        assert abs(agree - expected) <= 5 * (0.25 / count) ** 0.5


def test_the_backward_of_dropout_reads_the_seed_alone():
    kernel = bastile.compile(
        lambda x, seed: dropout(x, 0.1, seed),
        {"x": (4, 512), "seed": (1,)},
        dtype={"x": "bf16", "seed": "i32"},
        grad="x",
    )
    function = kernel.metadata["functions"][0]
    assert function["backward"]["inputs"] == [{"grad": 0}, {"input": 1}]
    assert len(function["outputs"]) == 1 and not function["temporaries"]


def test_dropout_in_a_formula():
    """What follows a norm and precedes a residual, in one kernel each way."""
    x, residual = (torch.randn(6, 33, 64, requires_grad=True) for _ in range(2))
    seed = torch.tensor([5], dtype=torch.int32)

    @bastile.compile
    def block(x, residual, seed):
        norm = x * F.rsqrt(F.row_mean(x * x) + 1e-6)
        return dropout(F.silu(norm), 0.3, seed) + residual

    isdropped = (
        bastile.compile(lambda x, seed: dropout(x * 0 + 1, 0.3, seed))(x.detach(), seed)
        == 0
    )
    norm = x * (x.square().mean(-1, keepdim=True) + 1e-6).rsqrt()
    kept = torch.nn.functional.silu(norm) / 0.7
    expected = torch.where(isdropped, 0, kept) + residual
    result = block(x, residual, seed)
    torch.testing.assert_close(result, expected)
    weights = torch.randn_like(result)
    found, wanted = (
        torch.autograd.grad(r, (x, residual), weights) for r in (result, expected)
    )
    for one, other in zip(found, wanted):
        torch.testing.assert_close(one, other)
