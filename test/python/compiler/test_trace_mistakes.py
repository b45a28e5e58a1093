# Part of Bastile, under the MIT License. See LICENSE.
# RUN: %package-test %s
"""What cannot be traced, and what is said about it."""

import math

import bastile
import numpy as np
import pytest
import torch
from bastile import functions as F
from bastile.functions import op, where


def gated(gate, up):
    return (up + 1) * gate


def scaled(x, *, negate):
    return -x if negate else x


SHAPES = {"x": (8, 64), "y": (8, 63)}


def compile_xy(function):
    bastile.compile(function, SHAPES, dtype="f32")


@pytest.mark.parametrize(
    "function, exception, message",
    [
        (lambda x, y: x + y, ValueError, r"\+: shapes \(8, 64\) and \(8, 63\)"),
        (lambda x, y: where(x > 0, 1, y), ValueError, r"where: .*64.* and .*63"),
        (lambda x, y: x if x > 0 else y, TypeError, "use|where"),
        (lambda x, y: max(x, 0), TypeError, r"where\(condition, a, b\)"),
        (lambda x, y: 0 < x < 1, TypeError, "&"),
        (lambda x, y: sum(x), TypeError, "split"),
        (lambda x, y: x[0], TypeError, "split"),
        (lambda x, y: x / len(x), TypeError, r"x.shape\[-1\]"),
        (lambda x, y: math.exp(x), TypeError, "bastile.functions"),
        (lambda x, y: np.exp(x), TypeError, "use bastile.functions.exp"),
        (lambda x, y: np.where(x > 0, x, 0), TypeError, "bastile.functions.where"),
        (lambda x, y: np.asarray(x), TypeError, "cannot become an array"),
        (lambda x, y: np.ones(64) * x, TypeError, "must be arguments"),
        (lambda x, y: x * np.ones(64), TypeError, "make it an argument"),
        (lambda x, y: torch.exp(x), TypeError, "torch's 'exp'.*functions.exp"),
        (lambda x, y: torch.ones(64) * x, TypeError, "make it an argument"),
        (lambda x, y: x.exp(), AttributeError, r"bastile.functions.exp\(x\)"),
        (lambda x, y: x.sum(-1), AttributeError, "no attribute 'sum'"),
        (lambda x, y: x + "1", TypeError, "unsupported operand"),
        (lambda x, y: F.exp(None), TypeError, "exp: .* but got None"),
        (lambda x, y: F.row_sum(2), TypeError, "row_sum: takes a symbolic tensor"),
        (lambda x, y: F.row_sum(x, 5), ValueError, r"\(8, 64\) are not 5 groups"),
        (lambda x, y: F.split(y, 2), ValueError, r"\(8, 63\) cannot be split"),
        (
            lambda x, y: F.concatenate([x, y]),
            ValueError,
            r"one shape, but have \(8, 64\) and \(8, 63\)",
        ),
        (lambda x, y: (x > 0) + 1, ValueError, r"condition of the shape \(8, 64\)"),
        (lambda x, y: where(x, 1, 2), ValueError, r"a condition, but got \(8, 64\)"),
        (lambda x, y: x > 0, ValueError, "result is a condition .*select"),
        (lambda x, y: x.to("i1"), ValueError, "to: .*no type of numbers"),
        (lambda x, y: x.to("f12"), TypeError, "no kernel takes .*f12"),
        (lambda x, y: F.gelu(x, "fast"), ValueError, "must be 'none' or 'tanh'"),
        (lambda x, y: F.clamp(x), TypeError, "neither min nor max"),
        (lambda x, y: 1.0, TypeError, "result 0 is 1.0"),
        (lambda x, y: None, TypeError, "result 0 is None"),
        (lambda x, y: (), TypeError, "returns nothing"),
        (
            lambda x, y: op.swiglu(x, y),
            ValueError,
            r"swiglu\(gate: \(8, 64\) of float32, up: \(8, 63\) of float32\)",
        ),
        (lambda x, y: op.swiglu(x), TypeError, r"swiglu: missing .*'up'.*swiglu\("),
        (lambda x, y: bastile.ops.silu(x), TypeError, "bastile.functions.op"),
        (lambda x, y: op.swish(x), AttributeError, "no op 'swish'; it has"),
        (lambda x, y: op.rms_norm(x, epsilon=1), TypeError, "epsilon.*eps="),
        (lambda x, y: op.silu(1.0), TypeError, "silu: takes a symbolic tensor"),
        (lambda x, y: op.rms_norm(x, eps=-1.0), ValueError, "must not be negative"),
        (lambda x, y: op.quantize(x), ValueError, "have to be given"),
    ],
)
def test_mistakes_in_a_function(function, exception, message):
    with pytest.raises(exception, match=message) as error:
        compile_xy(function)
    # Where a line of the function is wrong, the traceback has it.
    if "result" not in message and "returns" not in message:
        assert any(
            entry.name == "<lambda>" and str(entry.path) == __file__
            for entry in error.traceback
        )


@pytest.mark.parametrize(
    "function, arguments, exception, message",
    [
        (gated, {"shape": {"up": (8, 64)}}, ValueError, "shape of 'gate' is missing"),
        (
            gated,
            {"dtype": {"up": "f32"}},
            ValueError,
            "dtype of 'gate' is missing",
        ),
        (
            gated,
            {"shape": {"gate": (8, 64), "uq": (8, 64)}},
            TypeError,
            "gated has no parameter 'uq'; it has gate, up",
        ),
        (gated, {"shape": (8, 64), "eps": 1}, TypeError, "no parameter 'eps'"),
        (gated, {"shape": ()}, ValueError, "must end in the length of a row"),
        (lambda *x: x[0], {"shape": (8, 64)}, TypeError, r"takes '\*x'"),
        (gated, {"shape": (8, 64), "results": ["f32"]}, TypeError, "results"),
        (lambda: 1, {"shape": (8, 64)}, TypeError, "takes no tensors"),
        (scaled, {"shape": (8, 64)}, TypeError, "value of 'negate' is missing"),
    ],
)
def test_mistakes_around_a_function(function, arguments, exception, message):
    with pytest.raises(exception, match=message):
        bastile.compile(function, **arguments)


def test_sizes_that_differ_in_rows_do_not_fit():
    with pytest.raises(ValueError, match=r"shapes \(8, 64\) and \(4, 64\)"):
        bastile.compile(lambda x, y: x + y, {"x": (8, 64), "y": (4, 64)}, dtype="f32")
    with pytest.raises(ValueError, match="must be given one of 1"):
        bastile.compile(
            lambda x, y: x + y, {"x": (2, 8, 64), "y": (8, 64)}, dtype="f32"
        )


def test_operands_that_would_both_be_repeated():
    shapes = {"x": (2, 1, 64), "y": (1, 8, 64)}
    with pytest.raises(ValueError, match=r"result, \(2, 8, 64\); repeat .* expand_as"):
        bastile.compile(lambda x, y: x + y, shapes, dtype="f32")


def test_functions_that_call_themselves():
    @bastile.compile
    def total(x):
        if x.shape[-1] == 1:
            return x
        left, right = F.split(x, 2)
        return total(left) + total(right)

    x = torch.arange(24.0).reshape(3, 8)
    assert torch.equal(total(x), x.sum(-1, keepdim=True))

    @bastile.compile
    def endless(x):
        return endless(x) + 1

    with pytest.raises(ValueError, match="endless calls itself, .* without an end"):
        endless(x)


def test_symbols_end_with_their_function():
    kept = []

    def function(x):
        kept.append(x)
        return kept[0] + x

    bastile.compile(function, (8, 64), dtype="bf16")
    with pytest.raises(ValueError, match="belongs to another function"):
        bastile.compile(function, (8, 64), dtype="bf16")
    with pytest.raises(TypeError, match="while bastile.compile traces"):
        kept[0] + 1
    with pytest.raises(TypeError, match="while bastile.compile traces"):
        F.exp(1)
