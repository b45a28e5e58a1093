# Part of Bastile, under the MIT License. See LICENSE.
# RUN: %pytest %s
"""Differences of a product and what is chosen from such products are of rounded products:
contracted, they would keep a rounding error in place of 0."""

import numpy as np
import pytest

import floats
from runner import function, run, run_backward, target, tensor

LENGTH = 33
EMULATED = ((), ("--emulate",)) if target() == "host" else ((),)
ROW, STATISTIC = tensor((None, LENGTH), "f32"), tensor((None, 1), "f32")
WEIGHT = tensor((LENGTH,), "f32")


def spread(of, row):
    return f"tile.broadcast %{of} like %x : {row}, {ROW} -> {ROW}"


def draw(seed, *shape):
    return np.random.default_rng(seed).uniform(0.5, 1.5, shape).astype(np.float32)


#: What is chosen from the products %1, in ops that end in the other operand.
CHOICES = {
    "max": ([f"tile.reduce max %1 : {ROW} -> {STATISTIC}", spread("2", STATISTIC)], 1),
    "min": ([f"tile.reduce min %1 : {ROW} -> {STATISTIC}", spread("2", STATISTIC)], -1),
    "itself": ([f"arith.mulf %x, %0 : {ROW}"], 1),
    "size": ([f"math.absf %1 : {ROW}"], 1),
}


@pytest.mark.parametrize("options", EMULATED)
@pytest.mark.parametrize("name", CHOICES)
def test_sign(name, options):
    ops, sign = CHOICES[name]
    other = 1 + len(ops)
    order = (other, 1) if sign > 0 else (1, other)
    source = function(
        [("x", ROW), ("w", WEIGHT)],
        [ROW],
        [
            spread("w", WEIGHT),
            f"arith.mulf %x, %0 : {ROW}",
            *ops,
            f"arith.subf %{order[0]}, %{order[1]} : {ROW}",
        ],
    )
    x, w = draw(1, 64, LENGTH), draw(2, LENGTH)
    (got,) = run(source, {"x": ("f32", x), "w": ("f32", w)}, ["f32"], *options)
    product = x * w
    chosen = {
        "max": product.max(-1, keepdims=True),
        "min": product.min(-1, keepdims=True),
    }.get(name, product)
    assert np.array_equal(got, sign * (chosen - product))


@pytest.mark.parametrize("options", EMULATED)
@pytest.mark.parametrize("kind", ("f32", "bf16"))
def test_rows_without_an_element(kind, options):
    """A row of which a mask leaves nothing is uniform, and so are its gradients, though
    a temperature multiplies it."""
    row = tensor((None, LENGTH), kind)
    wide = [] if kind == "f32" else [f"arith.extf %x : {row} to {ROW}"]
    first = len(wide)
    x = "0" if wide else "x"
    body = [
        *wide,
        f"tile.broadcast %t like %{x} : {STATISTIC}, {ROW} -> {ROW}",
        f"arith.mulf %{x}, %{first} : {ROW}",
        f"tile.softmax %{first + 1} : {ROW}",
        *([f"arith.truncf %{first + 2} : {ROW} to {row}"] if wide else []),
    ]
    source = function([("x", row), ("t", STATISTIC)], [row], body)
    x = np.random.default_rng(3).normal(size=(3, LENGTH)).astype(np.float32)
    x[1] = -1e30
    x = floats.round_to(kind, x)
    t, g = np.full((3, 1), 0.3, np.float32), draw(4, 3, LENGTH)
    results, gradients = run_backward(
        source,
        {"x": (kind, x), "t": ("f32", t)},
        {"grad_result0": (kind, g)},
        [kind],
        {"x": kind},
        *options,
    )
    y = floats.decode(kind, results[0])
    assert np.allclose(y[1], 1 / LENGTH, rtol=1e-2 if wide else 1e-6)
    assert np.isfinite(floats.decode(kind, gradients["x"])).all()
