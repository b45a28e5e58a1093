# Part of Bastile, under the MIT License. See LICENSE.
# RUN: %package-test %s
"""Elements of rows by their indices in Python functions, beside torch.gather."""

import re

import bastile
import pytest
import torch
from bastile import functions as F

gather = bastile.compile(lambda x, index: F.gather(x, index))


def make(shape, count, dtype=torch.float32, integers=torch.int64):
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(shape, generator=generator).to(dtype).requires_grad_()
    index = torch.randint(0, shape[-1], (*shape[:-1], count), generator=generator)
    return x, index.to(integers)


@pytest.mark.long(every=7)
@pytest.mark.parametrize("integers", [torch.int32, torch.int64])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float64])
@pytest.mark.parametrize("count", [1, 2, 5])
@pytest.mark.parametrize("shape", [(7, 40), (2, 3, 33), (1, 4), (5, 1), (0, 8)])
def test_value_and_gradient(shape, count, dtype, integers):
    """One index may come several times, as those of short rows do."""
    x, index = make(shape, count, dtype, integers)
    result, expected = gather(x, index), torch.gather(x, -1, index.long())
    assert torch.equal(result, expected) and result.dtype == dtype
    upstream = torch.randn(expected.shape).to(dtype)
    (mine,) = torch.autograd.grad(result, x, upstream)
    (other,) = torch.autograd.grad(expected, x, upstream)
    # PyTorch rounds each of several gradients of one element.
    tolerance = 2e-2 if dtype == torch.bfloat16 else 1e-6
    torch.testing.assert_close(mine, other, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("integers", [torch.int32, torch.int64])
def test_index_that_is_no_column(integers):
    x, _ = make((6, 8), 1)
    values = [-1, 8, 2**31 - 1, -(2**31), 3, -8]
    if integers == torch.int64:
        # The low halves are those of columns.
        values[1:3] = [2**32, -(2**32) + 3]
    result = gather(x, torch.tensor(values, dtype=integers)[:, None])
    expected = torch.zeros(6, 1)
    expected[4] = x[4, 3]
    assert torch.equal(result, expected)
    result.sum().backward()
    assert x.grad.nonzero().tolist() == [[4, 3]]


def test_only_the_element_counts():
    """What stands beside it may be infinite or NaN, and so may it be."""
    x = torch.tensor([[torch.nan, 1.0, -torch.inf], [2.0, -torch.inf, torch.nan]])
    assert gather(x, torch.tensor([[1], [1]])).tolist() == [[1.0], [-torch.inf]]
    x.requires_grad_()
    gather(x, torch.tensor([[1], [0]])).sum().backward()
    assert x.grad.tolist() == [[0, 1, 0], [1, 0, 0]]


def test_one_index_for_all_rows():
    x, _ = make((2, 3, 8), 1)
    index = torch.tensor([[[5], [2], [5]]])
    expected = torch.gather(x, -1, index.expand(2, 3, 1))
    assert torch.equal(gather(x, index), expected)


def test_among_formulas():
    """The logarithm of a probability, as losses want it."""
    chosen = bastile.compile(
        lambda x, index: F.gather(x, index) - F.log(F.row_sum(F.exp(x)))
    )
    x, index = make((5, 100), 1)
    result, expected = chosen(x, index), x.log_softmax(-1).gather(-1, index)
    torch.testing.assert_close(result, expected)
    (mine,) = torch.autograd.grad(result.sum(), x)
    torch.testing.assert_close(mine, torch.autograd.grad(expected.sum(), x)[0])


def test_computed_index():
    last = bastile.compile(lambda x, length: F.gather(x, length - 1))
    x, _ = make((3, 8), 1)
    length = torch.tensor([[1], [8], [0]], dtype=torch.int32)
    assert last(x, length).tolist() == [[x[0, 0]], [x[1, 7]], [0]]


@pytest.mark.parametrize("integers", ["i32", "i64"])
def test_a_vector_takes_one_comparison(integers):
    """Elements are compared one by one only where the index is among them."""
    kernel = bastile.compile(
        lambda x, index: F.gather(x, index),
        {"x": (8, 4096), "index": (8, 1)},
        dtype={"x": "f32", "index": integers},
        target="sm_90",
        schedule="threads=128,vector=4,columns=4096",
    )
    vectors = 4096 // 128 // 4 * kernel.ptx.count(".entry")
    assert len(re.findall(r"setp\.gt\.u32\s+%p\d+, %r\d+, 3;", kernel.ptx)) == vectors


@pytest.mark.parametrize(
    ("shapes", "dtypes", "error", "message"),
    [
        ([(4, 8), (4, 1)], ["f32", "f32"], TypeError, "index must be of ints, but is"),
        ([(4, 8), (4, 1)], ["i32", "i32"], TypeError, "x must be of floats, but is"),
        ([(4, 8), (4, 33)], ["f32", "i32"], ValueError, "up to 32 columns of indices"),
        ([(4, 8), (1,)], ["f32", "i32"], ValueError, "the same number of dimensions"),
        ([(4, 8), (3, 1)], ["f32", "i32"], ValueError, r"\(4, 8\) and \(3, 1\)"),
    ],
)
def test_messages(shapes, dtypes, error, message):
    names = "x", "index"
    with pytest.raises(error, match=message):
        bastile.compile(
            lambda x, index: F.gather(x, index),
            dict(zip(names, shapes)),
            dtype=dict(zip(names, dtypes)),
        )


def test_tensors_with_values():
    with pytest.raises(TypeError, match="got a tensor with values"):
        bastile.compile(lambda x: F.gather(x, torch.tensor([[1]])))(torch.zeros(2, 4))
