# Part of Bastile, under the MIT License. See LICENSE.
# RUN: %package-test %s
"""The arithmetic of integers in functions that are traced."""

import bastile
import numpy as np
import pytest
import torch
from bastile import functions as F
from bastile.functions import where
from tracing import compile_f64, random

LIMITS = {
    dtype: np.iinfo(dtype) for dtype in (np.dtype("i1"), np.dtype("i4"), np.dtype("i8"))
}

ARITHMETIC = {
    "+": lambda x, y: x + y,
    "-": lambda x, y: x - y,
    "*": lambda x, y: x * y,
    "&": lambda x, y: x & y,
    "|": lambda x, y: x | y,
    "^": lambda x, y: x ^ y,
}
COMPARISONS = {
    "<": lambda x, y: x < y,
    "<=": lambda x, y: x <= y,
    ">": lambda x, y: x > y,
    ">=": lambda x, y: x >= y,
    "==": lambda x, y: x == y,
    "!=": lambda x, y: x != y,
}


def operands(dtype):
    """Each of some numbers beside each other one, those at the ends included."""
    limits = LIMITS[np.dtype(dtype)]
    few = [limits.min, limits.min + 1, -7, -3, -2, -1, 0, 1, 2, 3, 7, limits.max]
    x, y = np.meshgrid(np.array(few, dtype), np.array(few, dtype))
    return np.ascontiguousarray(x), np.ascontiguousarray(y)


def check(function, reference, *arrays):
    result = compile_f64(function, *arrays)(*arrays)
    expected = np.asarray(reference(*arrays))
    assert result.dtype == expected.dtype
    np.testing.assert_array_equal(result, expected)


@pytest.mark.parametrize("dtype", ["int8", "int32", "int64"])
@pytest.mark.parametrize("operator", ARITHMETIC)
def test_arithmetic_wraps_around(operator, dtype):
    function = ARITHMETIC[operator]
    with np.errstate(over="ignore"):
        check(function, function, *operands(dtype))


@pytest.mark.parametrize("dtype", ["int8", "int32", "int64"])
def test_unary_operators(dtype):
    x, _ = operands(dtype)
    with np.errstate(over="ignore"):
        for function in (lambda x: -x, lambda x: ~x, abs):
            check(function, function, x)


@pytest.mark.parametrize("dtype", ["int8", "int32", "int64"])
def test_division_rounds_towards_minus_infinity(dtype):
    x, y = operands(dtype)
    # NumPy's divisions by 0 give 0, and the least integer divided by -1 is itself.
    with np.errstate(all="ignore"):
        check(lambda x, y: x // y, lambda x, y: x // y, x, y)
        check(lambda x, y: x % y, lambda x, y: x % y, x, y)
    # PyTorch refuses divisions by 0.
    kept = np.where(y == 0, 1, y).astype(dtype)
    kept[(x == LIMITS[np.dtype(dtype)].min) & (y == -1)] = 1
    pair = torch.from_numpy(x), torch.from_numpy(kept)
    check(lambda x, y: x // y, lambda *_: (pair[0] // pair[1]).numpy(), x, kept)
    check(lambda x, y: x % y, lambda *_: (pair[0] % pair[1]).numpy(), x, kept)


@pytest.mark.parametrize("divisor", [1, 2, 3, 8, 64, -1, -2, -3, -8])
def test_division_by_a_number(divisor):
    x, _ = operands("int32")
    with np.errstate(all="ignore"):
        check(lambda x: x // divisor, lambda x: x // np.int32(divisor), x)
        check(lambda x: x % divisor, lambda x: x % np.int32(divisor), x)
        check(lambda x: divisor // x, lambda x: np.int32(divisor) // x, x)
        check(lambda x: divisor % x, lambda x: np.int32(divisor) % x, x)


@pytest.mark.parametrize("dtype", ["int8", "int32", "int64"])
def test_shifts_by_any_number(dtype):
    width = np.iinfo(dtype).bits
    counts = [-width, -1, 0, 1, width - 1, width, width + 1, 127]
    x, y = np.meshgrid(operands(dtype)[0][0], np.array(counts, dtype))

    def shift(x, count, isleft):
        if not 0 <= count < width:
            return 0 if isleft or x >= 0 else -1
        return x << count if isleft else x >> count

    def reference(isleft):
        pairs = zip(x.ravel().tolist(), y.ravel().tolist())
        bits = [shift(*pair, isleft) % 2**width for pair in pairs]
        return np.array(bits, f"uint{width}").view(dtype).reshape(x.shape)

    check(lambda x, y: x << y, lambda *_: reference(True), x, y)
    check(lambda x, y: x >> y, lambda *_: reference(False), x, y)
    pair = torch.from_numpy(x), torch.from_numpy(y)
    check(lambda x, y: x << y, lambda *_: (pair[0] << pair[1]).numpy(), x, y)
    check(lambda x, y: x >> y, lambda *_: (pair[0] >> pair[1]).numpy(), x, y)
    check(lambda x: (x << 3) >> 2, lambda x: (x << 3) >> 2, x)
    check(lambda x: x << width, lambda x: x * 0, x)


@pytest.mark.parametrize("operator", COMPARISONS)
def test_comparisons(operator):
    function = COMPARISONS[operator]
    x, y = operands("int32")
    check(
        lambda x, y: where(function(x, y), x, y),
        lambda x, y: np.where(function(x, y), x, y),
        x,
        y,
    )
    check(
        lambda x, y: function(x, y).to("int32"),
        lambda x, y: function(x, y).astype(np.int32),
        x,
        y,
    )


def test_comparisons_are_exact():
    x = np.array([[2**24, 2**24 + 1, 2**31 - 1]], np.int32)
    check(lambda x: (x == 2**24).to("i8"), lambda x: (x == 2**24).astype("i1"), x)


def test_conditions_differ():
    x, y = operands("int32")
    check(
        lambda x, y: ((x > 0) ^ (y > 0)).to("i32"),
        lambda x, y: ((x > 0) ^ (y > 0)).astype("i4"),
        x,
        y,
    )


def test_choices():
    x, y = operands("int32")
    check(F.maximum, np.maximum, x, y)
    check(F.minimum, np.minimum, x, y)
    check(lambda x: F.clamp(x, -2, 3), lambda x: np.clip(x, -2, 3), x)
    check(lambda x, y: F.clamp(x, min=y), np.maximum, x, y)
    check(lambda x: where(x > 0, x, 5), lambda x: np.where(x > 0, x, 5), x)
    check(lambda x: x**3, lambda x: x**3, x % 100)


def test_types_widen():
    small, large = operands("int8")[0], operands("int64")[0]
    middle = operands("int32")[0]
    check(lambda x, y: x + y, lambda x, y: x + y, small, middle)
    with np.errstate(over="ignore"):
        check(lambda x, y: x * y, lambda x, y: x * y, middle, large)


def test_shapes_broadcast():
    x, _ = operands("int32")
    row, column, one = x[0], x[:, :1].copy(), np.array([7], np.int64)
    function = lambda x, row, column, one: (x ^ row) + column * one  # noqa: E731
    with np.errstate(over="ignore"):
        check(function, function, x, row, column, one)
    x, few = np.arange(48, dtype="i4").reshape(2, 3, 8), np.ones((1, 3, 8), "i1")
    check(lambda x, y: x + y, lambda x, y: x + y, x, few)
    check(lambda x, y: x * y, lambda x, y: x * y, random(2, 3, 8), few)


def test_beside_floats():
    n = np.array([[-3, 0, 1, 2**24 + 1]], np.int32)
    x = random(1, 4, dtype=np.float32)
    check(lambda n, x: n * x, lambda n, x: n.astype("f4") * x, n, x)
    check(lambda n: n * 0.5, lambda n: n.astype("f4") * np.float32(0.5), n)
    check(lambda n: n / 3, lambda n: n.astype("f4") / np.float32(3), n)
    half = np.float32(0.5)
    check(
        lambda n: where(n > 0, n, 0.5),
        lambda n: np.where(n > 0, n.astype("f4"), half),
        n,
    )
    wide = random(1, 4)
    check(lambda n, x: n + x, lambda n, x: n + x, n, wide)


def test_conversions():
    x = np.array([[-np.inf, -3e9, -2.5, -0.5, 0.5, 2.5, 3e9, np.inf, np.nan]], "f4")
    least, most = -(2**31), 2**31 - 1
    found = compile_f64(lambda x: x.to("int32"), x)(x)
    assert found.tolist() == [[least, least, -2, 0, 0, 2, most, most, 0]]
    found = compile_f64(lambda x: x.to("int8"), x)(x)
    assert found.tolist() == [[-128, -128, -2, 0, 0, 2, 127, 127, 0]]
    found = compile_f64(lambda x: x.to("int64"), x)(x)
    wide = [-(2**63), -3000000000, -2, 0, 0, 2, 3000000000, 2**63 - 1, 0]
    assert found.tolist() == [wide]
    n, _ = operands("int64")
    check(lambda n: n.to("int32"), lambda n: n.astype("i4"), n)
    check(lambda n: n.to("int32").to("int64"), lambda n: n.astype("i4") + 0 * n, n)
    check(lambda n: (n > 0).to("f64"), lambda n: (n > 0).astype("f8"), n)


def test_a_hash_in_a_gradient():
    """Bits that are found again decide the same in the backward."""

    def mask(x, n):
        bits = (n * -1640531527) ^ (n >> 15)
        return where(bits % 3 == 0, x * x, 0)

    x = random(5, 16)
    n = np.arange(80, dtype=np.int32).reshape(5, 16)
    kernel = compile_f64(mask, x, n, grad="x")
    result, kept = kernel.native(None).forward([x, n])
    gradient, *_ = kernel.native(None).backward(kept, [np.ones_like(x)])
    chosen = result != 0
    assert 10 < chosen.sum() < 50
    np.testing.assert_allclose(gradient, np.where(chosen, 2 * x, 0), rtol=1e-15)


@pytest.mark.parametrize(
    "function, message",
    [
        (lambda n, x: n >> 2.5, ">>: takes integers, but got a number"),
        (lambda n, x: n << x, r"<<: takes integers, but got \(2, 4\) of f32"),
        (lambda n, x: n & x, r"&: takes a condition, but got \(2, 4\) of i32"),
        (lambda n, x: (x > 0) & n, r"&: takes a condition, but got \(2, 4\) of i32"),
        (lambda n, x: n + 2**31, "integers of 32 bits hold, but got 2147483648"),
        (lambda n, x: n**-1, "positive integers as exponents of integers"),
        (lambda n, x: n**0.5, "positive integers as exponents of integers"),
        (lambda n, x: F.exp(n), "exp: takes floats, .*of i32, which has to be conv"),
        (lambda n, x: F.row_sum(n), "takes floats, .* which has to be converted"),
        (lambda n, x: (x > 0) + n, "takes numbers, but got a condition"),
        (lambda n, x: x.to("bool"), "which is no type of numbers"),
    ],
)
def test_what_integers_cannot_do(function, message):
    with pytest.raises(ValueError, match=message):
        bastile.compile(
            function, {"n": (2, 4), "x": (2, 4)}, dtype={"n": "i32", "x": "f32"}
        )


@pytest.mark.parametrize("function", [lambda n: n // 0, lambda n: n % 0])
def test_division_by_the_number_zero(function):
    with pytest.raises(ZeroDivisionError, match="the divisor is 0"):
        bastile.compile(function, (2, 4), dtype="i32")
