# Part of Bastile, under the MIT License. See LICENSE.
# RUN: %package-test %s
"""Functions whose results take the memory of operands."""

import numpy as np
import pytest

import bastile
from bastile.functions import op, row_sum, split, concatenate, sqrt


def momentum(p, g, m, *, beta=0.5):
    changed = beta * m + g
    return p - changed, changed


def make(shape, seed=0):
    random = np.random.default_rng(seed)
    return [random.normal(size=shape).astype(np.float32) for _ in range(3)]


@pytest.mark.parametrize("shape", ((3, 8), (2, 5, 33), (0, 8), (7, 1), (16,)))
def test_operands_are_overwritten_and_returned(shape):
    step = bastile.compile(momentum, in_place=("p", "m"))
    p, g, m = make(shape)
    expected_m = np.float32(0.5) * m + g
    expected_p = p - expected_m
    kept = g.copy()
    results = step(p, g, m)
    assert results[0] is p and results[1] is m
    np.testing.assert_allclose(m, expected_m, rtol=1e-6)
    np.testing.assert_allclose(p, expected_p, rtol=1e-5, atol=1e-6)
    np.testing.assert_array_equal(g, kept)


def test_as_a_decorator_for_one_result():
    @bastile.compile(in_place="x")
    def double(x):
        return x + x

    (x, *_) = make((4, 8))
    expected = 2 * x
    assert double(x) is x
    np.testing.assert_array_equal(x, expected)


def test_some_results_have_memory_of_their_own():
    def norms(x):
        norm = sqrt(row_sum(x * x))
        return norm, x / norm

    step = bastile.compile(norms, in_place=(None, "x"))
    x, *_ = make((4, 8))
    expected = np.sqrt((x * x).sum(-1, keepdims=True))
    unit = x / expected
    norm, same = step(x)
    assert same is x and norm is not x
    np.testing.assert_allclose(norm, expected, rtol=1e-6)
    np.testing.assert_allclose(x, unit, rtol=1e-6)


def test_results_are_rounded_to_the_operand_that_they_overwrite():
    """Not to the first operand, as other results are."""
    ml_dtypes = pytest.importorskip("ml_dtypes")
    step = bastile.compile(momentum, in_place=("p", "m"))
    p, g, m = make((3, 8))
    p, g = p.astype(ml_dtypes.bfloat16), g.astype(ml_dtypes.bfloat16)
    expected = np.float32(0.5) * m + g.astype(np.float32)
    step(p, g, m)
    np.testing.assert_allclose(m, expected, rtol=1e-6)
    assert p.dtype == ml_dtypes.bfloat16


def test_ahead_of_calls():
    step = bastile.compile(momentum, (8, 16), dtype="f32", in_place=("p", "m"), beta=0)
    assert "tile.in_place = 2" in step.mlir()
    p, g, m = make((3, 16))
    expected = g.copy()
    assert step(p, g, m)[1] is m
    np.testing.assert_array_equal(m, expected)


_MODULE = """
func.func @update(%x: tensor<?x8xf32>, %y: tensor<?x8xf32>)
    -> (tensor<?x8xf32>, tensor<?x8xf32> {tile.in_place = 0 : index}) {
  %0 = arith.mulf %x, %y : tensor<?x8xf32>
  %1 = arith.addf %x, %y : tensor<?x8xf32>
  return %0, %1 : tensor<?x8xf32>, tensor<?x8xf32>
}
"""


def test_mlir_says_so_itself():
    update = bastile.compile(_MODULE)
    x, y, _ = make((4, 8))
    product, total = x * y, x + y
    first, second = update(x, y)
    assert second is x
    np.testing.assert_array_equal(first, product)
    np.testing.assert_array_equal(x, total)
    with pytest.raises(ValueError, match="in the memory of operands, and no gradients"):
        bastile.compile(_MODULE, grad=True)


def test_rows_may_have_gaps():
    step = bastile.compile(momentum, in_place=("p", "m"))
    wide, g, m = make((4, 16))
    g, m = g[:, :8].copy(), m[:, :8].copy()
    rest = wide[:, 8:].copy()
    p = wide[:, :8]
    expected = p - (np.float32(0.5) * m + g)
    assert step(p, g, m)[0] is p
    np.testing.assert_allclose(wide[:, :8], expected, rtol=1e-5, atol=1e-6)
    np.testing.assert_array_equal(wide[:, 8:], rest)


@pytest.mark.parametrize(
    "places, message",
    (
        (("q",), "in_place names 'q', which is no operand; the operands are p, g, m"),
        (("p", "p"), "in_place names 'p' twice"),
    ),
)
def test_wrong_names(places, message):
    with pytest.raises(ValueError, match=message):
        bastile.compile(momentum, in_place=places)


def test_more_places_than_results():
    step = bastile.compile(momentum, in_place=("p", "m", "g"))
    with pytest.raises(ValueError, match="in_place is for 3 results, but there are 2"):
        step(*make((4, 8)))


def test_wrong_uses():
    with pytest.raises(TypeError, match="in_place is for a Python function"):
        bastile.compile("silu", in_place="input")
    with pytest.raises(TypeError, match="tile.in_place"):
        bastile.compile(_MODULE, in_place="x")
    with pytest.raises(ValueError, match="in_place and grad exclude each other"):
        bastile.compile(momentum, in_place="p", grad=True)


def test_results_of_another_shape():
    total = bastile.compile(lambda x: row_sum(x), in_place="x")
    with pytest.raises(ValueError, match="result 0, .* another shape"):
        total(make((4, 8))[0])


def refuse(function, *operands, match, places):
    before = [x.copy() for x in operands]
    with pytest.raises(ValueError, match=match):
        bastile.compile(function, in_place=places)(*operands)
    for x, y in zip(operands, before):
        np.testing.assert_array_equal(x, y)


def test_elements_that_others_still_read():
    x, y, _ = make((4, 8))
    refuse(
        lambda x, scale: (x * scale, scale * 2),
        *(x, y[:, :1].copy()),
        places=(None, "scale"),
        match="cannot take the memory of argument 1",
    )

    def separate(x):
        even, odd = split(x, 2, interleaved=True)
        return concatenate([even, odd])

    refuse(separate, x, places=("x",), match="cannot take the memory of argument 0")


def test_operands_in_one_place():
    x, y, _ = make((4, 8))
    message = "takes the memory of input 'p', and input 'm' lies there as well"
    refuse(momentum, x, y, x, places=("p",), match=message)
    refuse(momentum, x[1:], y[1:], x[:-1], places=("p",), match=message)
    # Nobody overwrites g, so it may be anywhere that is not overwritten.
    step = bastile.compile(momentum, in_place="p")
    expected = x - np.float32(1.5) * y
    step(x, y, y)
    np.testing.assert_allclose(x, expected, rtol=1e-5, atol=1e-6)


def test_operands_that_cannot_be_written_to():
    x, y, z = make((8, 8))
    x.flags.writeable = False
    refuse(momentum, x, y, z, places="p", match="overwrites 'p', which cannot be wr")
    rows = "rows have to be contiguous and share no memory"
    refuse(momentum, z.T, x, y, places="p", match=rows)
    repeated = np.lib.stride_tricks.as_strided(z, (8, 8), (0, 4))
    refuse(momentum, repeated, x, y, places="p", match=rows)
    # Neighbours of a sliding window share elements.
    window = np.lib.stride_tricks.as_strided(z, (8, 8), (16, 4))
    refuse(momentum, window, x, y, places="p", match=rows)


def test_inside_of_another_function():
    inner = bastile.compile(momentum, in_place=("p", "m"))

    def outer(p, g, m):
        return inner(op.silu(p), g, m)[0]

    p, g, m = make((4, 8))
    before = p.copy(), m.copy()
    silu = p / (1 + np.exp(-p))
    result = bastile.compile(outer)(p, g, m)
    np.testing.assert_allclose(result, silu - (0.5 * m + g), rtol=1e-5, atol=1e-6)
    np.testing.assert_array_equal((p, m), before)
