# Part of Bastile, under the MIT License. See LICENSE.
# RUN: %package-test %s
"""Python functions that are traced: numbers, gradients, types, composition."""

import concurrent.futures
import functools
import math
import pathlib
import re

import bastile
import numpy as np
import pytest
import torch
from bastile import functions as F
from bastile._compiler import tracing
from bastile.functions import op, sigmoid, where
from tracing import bfloat16, check, compile_f64, logistic, random

erf = np.vectorize(math.erf)
erfc = np.vectorize(math.erfc)


def gelu_tanh(x):
    return x * logistic(2 * math.sqrt(2 / math.pi) * (x + 0.044715 * x**3))


def gated(gate, up):
    return (up + 1) * gate * sigmoid(1.702 * gate)


UNARY = {
    "abs": np.abs,
    "ceil": np.ceil,
    "cos": np.cos,
    "erf": erf,
    "erfc": erfc,
    "exp": np.exp,
    "exp2": np.exp2,
    "expm1": np.expm1,
    "floor": np.floor,
    "gelu": lambda x: 0.5 * x * erfc(-x / math.sqrt(2)),
    "log": np.log,
    "log1p": np.log1p,
    "log2": np.log2,
    "reciprocal": lambda x: 1 / x,
    "relu": lambda x: np.maximum(x, 0),
    "round": np.round,
    "rsqrt": lambda x: 1 / np.sqrt(x),
    "sigmoid": logistic,
    "silu": lambda x: x * logistic(x),
    "sin": np.sin,
    "softplus": lambda x: np.logaddexp(x, 0),
    "sqrt": np.sqrt,
    "square": np.square,
    "tanh": np.tanh,
}
POSITIVE = {"log", "log1p", "log2", "sqrt", "rsqrt"}


@pytest.mark.parametrize("name", UNARY)
def test_functions_of_one_tensor(name):
    x = 2 * random(3, 16)
    if name in POSITIVE:
        x = np.abs(x) + 0.1
    check(getattr(F, name), UNARY[name], x)


@pytest.mark.parametrize("name", UNARY)
def test_functions_in_float32(name):
    x = 3 * random(5, 40, dtype=np.float32)
    if name in POSITIVE:
        x = np.abs(x)
    kernel = bastile.compile(getattr(F, name), x.shape, dtype="f32")
    expected = UNARY[name](x.astype(np.float64))
    np.testing.assert_allclose(kernel(x), expected, rtol=1e-6, atol=2e-7)


def test_gelu_has_an_approximation():
    check(lambda x: F.gelu(x, approximate="tanh"), gelu_tanh, random(3, 16))


def test_all_functions_are_tested():
    special = {
        "clamp",
        "column_numbers",
        "concatenate",
        "maximum",
        "minimum",
        "op",
        "split",
    }
    special |= {"max_of_rows", "sum_of_rows", "repeat_interleave"}
    special |= {"row_max", "row_mean", "row_min", "row_sum"}
    special |= {"expand_as", "stop_gradient", "where"}
    special |= {"dot", "linear", "matmul"}  # test_products.py
    special |= {"iota", "random_bits", "uniform", "dropout"}  # test_random.py
    special |= {"gather"}  # test_gather.py
    special |= {"softmax"}  # test_streamed_factors.py
    assert set(F.__all__) == special | set(UNARY)


@pytest.mark.parametrize(
    "function",
    [
        lambda x, y: x + y * 2 - 3 / y,
        lambda x, y: -x * (1 - y) + (+y) / (x * x + 2),
        lambda x, y: abs(x - y),
        lambda x, y: x**2 + y**3 - x**4 * y**7,
        lambda x, y: (x * x + 1) ** 0.5 + (y * y + 1) ** -0.5 + (x * x + 1) ** -2,
        lambda x, y: (x * x + 0.1) ** y + 2**x + (y * y + 1) ** 1.7,
    ],
)
def test_operators(function):
    x, y = random(3, 16), random(3, 16, seed=1)
    check(function, function, x, y)


def test_the_larger_and_the_smaller():
    x, y = random(3, 16), random(3, 16, seed=1)
    check(F.maximum, np.maximum, x, y)
    check(F.minimum, np.minimum, x, y)
    check(lambda x: F.clamp(x, -0.5, 0.7), lambda x: np.clip(x, -0.5, 0.7), x)
    check(lambda x: F.clamp(x, max=0.7), lambda x: np.minimum(x, 0.7), x)


@pytest.mark.parametrize(
    "condition",
    [
        lambda x, y: x < y,
        lambda x, y: x <= 0.5,
        lambda x, y: 0.5 > y,
        lambda x, y: x >= y,
        lambda x, y: (x < 0) & (y < 0) | ~(x < 1),
        lambda x, y: x == x,
        lambda x, y: x != x,
    ],
)
def test_conditions(condition):
    x, y = random(3, 16), random(3, 16, seed=1)
    check(
        lambda x, y: where(condition(x, y), x * y, y + 1),
        lambda x, y: np.where(condition(x, y), x * y, y + 1),
        x,
        y,
    )


def test_conditions_choose_between_numbers():
    x = random(3, 16, dtype=np.float32)
    x[0, 0] = math.nan
    kernel = compile_f64(lambda x: (where(x < 0, 1, -2.5), where(x != x, 1, 0)), x)
    signs, nans = kernel(x)
    np.testing.assert_array_equal(signs, np.where(x < 0, 1, -2.5))
    np.testing.assert_array_equal(nans, np.isnan(x))


def test_conditions_between_kernels():
    """What other kernels, or fewer rows, have to be compared for."""
    x, t = random(3, 2, 16), random(1, 2, 16, seed=1)
    kernel = compile_f64(lambda x: where(F.sum_of_rows(x) > 0, x, 0.0), x, grad=True)
    np.testing.assert_array_equal(kernel(x), np.where(x.sum((0, 1)) > 0, x, 0))
    kernel = compile_f64(lambda x, t: where(t < 0.5, x, 0.0), x, t, grad="x")
    np.testing.assert_array_equal(kernel(x, t), np.where(t < 0.5, x, 0))
    kernel = bastile.compile(
        lambda x, t: where(F.sum_of_rows(x) > 0, x, where(t < 0.5, x, 0.0)),
        {"x": (3, 2, 64), "t": (1, 2, 64)},
        dtype="bf16",
        target="sm_90",
    )
    assert ".visible .entry" in kernel.ptx


def test_reductions():
    x = random(3, 16)
    check(
        lambda x: x / F.row_sum(x * x) + F.row_mean(x),
        lambda x: x / (x * x).sum(-1, keepdims=True) + x.mean(-1, keepdims=True),
        x,
    )
    check(F.row_max, lambda x: x.max(-1, keepdims=True), x)
    check(F.row_min, lambda x: x.min(-1, keepdims=True), x)
    check(F.sum_of_rows, lambda x: x.sum(0), x)
    check(F.max_of_rows, lambda x: x.max(0), x)


def test_reductions_of_groups():
    def scale(x):
        return x / F.repeat_interleave(F.row_mean(abs(x), groups=4), 4)

    def reference(x):
        groups = np.abs(x).reshape(3, 4, 4)
        return (x.reshape(3, 4, 4) / groups.mean(-1, keepdims=True)).reshape(3, 16)

    check(scale, reference, random(3, 16))


def test_rows_and_columns_that_are_repeated():
    check(
        lambda x, rows, columns: (
            x * F.exp(F.expand_as(rows, x) + columns) * F.expand_as(rows, rows)
        ),
        lambda x, rows, columns: x * np.exp(rows + columns) * rows,
        random(2, 3, 16),
        random(2, 1, 16, seed=1),
        random(2, 3, 1, seed=2),
    )
    with pytest.raises(ValueError, match=r"expand_as: shape \(2, 3, 16\) cannot be"):
        check(
            lambda x, y: F.expand_as(x, y) + y,
            None,
            random(2, 3, 16),
            random(2, 1, 16, seed=1),
        )


def test_numbers_of_columns():
    x = random(3, 16)
    numbers = np.arange(16.0) + np.zeros((3, 1))
    check(lambda x: x * F.column_numbers(x), lambda x: x * numbers, x)

    def first(x):
        return F.row_min(F.where(x == F.row_max(x), F.column_numbers(x), 16.0))

    check(first, lambda x: x.argmax(-1)[:, None], x)
    with pytest.raises(ValueError, match="column_numbers: takes rows, but the shape"):
        compile_f64(F.column_numbers, random(16))


def test_derivatives_at_corners_and_in_tails():
    x = np.array([[-100.0, -0.0, 0.0, 100.0]])
    ones = np.ones((1, 4))

    def gradient(function):
        kernel = compile_f64(function, x, grad=True).native(None)
        _, kept = kernel.forward([x])
        return kernel.backward(kept, [ones])[0]

    half, tail = 0.5, np.exp(-100)
    for function, expected in [
        (F.abs, [-1, 0, 0, 1]),
        (F.relu, [0, 0, 0, 1]),
        (F.softplus, [tail, half, half, 1]),
        (F.sigmoid, [tail, half / 2, half / 2, tail]),
        (lambda x: F.maximum(x, 0), [0, 1, 1, 1]),
        (lambda x: F.maximum(x, F.stop_gradient(x)), [half] * 4),
        (lambda x: F.clamp(x, F.stop_gradient(x)), [1, 1, 1, 1]),
        (lambda x: F.clamp(x, 0, 100), [0, 1, 1, 1]),
        (lambda x: x**2, [-200, 0, 0, 200]),
    ]:
        np.testing.assert_allclose(gradient(function), [expected], rtol=1e-12)
    kernel = compile_f64(lambda x: (F.softplus(x), sigmoid(x)), x)
    softplus, logistic_of_x = kernel(x)
    np.testing.assert_allclose(softplus, [[tail, math.log(2), math.log(2), 100]])
    np.testing.assert_allclose(logistic_of_x, [[tail, half, half, 1]])


def test_stop_gradient():
    kernel = compile_f64(lambda x: x * F.stop_gradient(x), random(3, 16), grad=True)
    x, ones = random(3, 16), np.ones((3, 16))
    _, kept = kernel.native(None).forward([x])
    np.testing.assert_array_equal(kernel.native(None).backward(kept, [ones])[0], x)


@pytest.mark.parametrize("interleaved", [False, True])
def test_pieces_of_rows(interleaved):
    def swap(x):
        low, high = F.split(x, 2, interleaved)
        return F.concatenate([high * 2, low], interleaved)

    def reference(x):
        if interleaved:
            return np.stack([2 * x[:, 1::2], x[:, ::2]], -1).reshape(x.shape)
        return np.concatenate([2 * x[:, 8:], x[:, :8]], -1)

    check(swap, reference, random(3, 16))


def test_row_vectors_and_statistics_repeat():
    x, scale, weight = random(3, 16), random(3, 1, seed=1), random(16, seed=2)
    function = lambda x, scale, weight: x * weight + scale * weight  # noqa: E731
    check(function, function, x, scale, weight)
    check(lambda s, w: s * w, lambda s, w: s * w, scale, weight)
    one = random(1, seed=3)
    check(lambda x, one: x * one, lambda x, one: x * one, x, one)


def test_leading_sizes_of_one_repeat():
    x, angle = random(2, 3, 4, 16), random(1, 3, 1, 16, seed=1)
    kernel = compile_f64(lambda x, angle: angle * x + 1, x, angle, grad="x")
    np.testing.assert_allclose(kernel(x, angle), angle * x + 1, rtol=1e-13)
    x = random(5, 3, 2, 16)
    np.testing.assert_allclose(kernel(x, angle), angle * x + 1, rtol=1e-13)


def test_integers_that_are_converted():
    x, count = random(3, 16), np.array([[1], [2], [-3]])
    kernel = compile_f64(lambda x, n: x / n.to("f64"), x, count, grad="x")
    np.testing.assert_allclose(kernel(x, count), x / count, rtol=1e-15)
    kernel = compile_f64(lambda x, n: x / n, x, count, grad="x")
    np.testing.assert_allclose(kernel(x, count), x / count, rtol=1e-15)
    with pytest.raises(ValueError, match=r"\(3, 1\) of i64, which has to be conv"):
        compile_f64(lambda x, n: x * F.exp(n), x, count)


def test_small_floats_are_extended():
    small = pytest.importorskip("ml_dtypes").float8_e4m3fn
    x, scale = random(3, 16).astype(small), random(3, 1, dtype=np.float32)
    result = compile_f64(lambda x, scale: x * scale, x, scale)(x, scale)
    np.testing.assert_array_equal(result, x.astype(np.float32) * scale)


def test_pieces_may_have_several_types():
    x, y = random(3, 16, dtype=np.float32), random(3, 16, dtype=np.float16)
    kernel = compile_f64(lambda x, y: F.concatenate([y, x * 2]), x, y)
    np.testing.assert_array_equal(kernel(x, y), np.concatenate([y, x * 2], -1))


def test_functions_of_numbers_alone():
    x = random(3, 16)
    check(
        lambda x: x * sigmoid(0.3) + F.maximum(1, 2),
        lambda x: x * logistic(0.3) + 2,
        x,
    )


def test_numpys_numbers():
    x = random(3, 16)
    two = np.float32(2)
    check(lambda x: two * x - np.float64(3) / x, lambda x: 2 * x - 3 / x, x)
    check(lambda x: np.float32(2) ** x, lambda x: 2**x, x)


def test_what_a_function_finds_in_its_closure_is_constant():
    slope = 0.5
    kernel = compile_f64(lambda x: where(x > 0, x, slope * x), random(3, 16))
    slope = 2.0
    x = random(3, 16)
    np.testing.assert_array_equal(kernel(x), np.where(x > 0, x, 0.5 * x))


def scaled(x, weight=None, *, power=2, negate):
    result = x**power if weight is None else x**power * weight
    return -result if negate else result


def test_parameters_with_defaults_are_values():
    x, weight = random(3, 16, dtype=np.float32), random(16, dtype=np.float32)
    kernel = bastile.compile(scaled, (3, 16), dtype="f32", negate=True)
    assert kernel.operands == ("x",) and kernel.name == "scaled"
    np.testing.assert_array_equal(kernel(x), -(x**2))
    kernel = bastile.compile(
        scaled, {"x": (3, 16), "weight": (16,)}, dtype="f32", power=1, negate=False
    )
    assert kernel.operands == ("x", "weight")
    np.testing.assert_array_equal(kernel(x, weight), x * weight)
    kernel = bastile.compile(
        functools.partial(scaled, negate=True), (3, 16), dtype="f32"
    )
    assert kernel.name == "scaled"


def test_several_results():
    x, y = random(3, 16), random(3, 16, seed=1)
    kernel = compile_f64(lambda x, y: [x + y, x * y, x], x, y, grad=True)
    for result, expected in zip(kernel(x, y), (x + y, x * y, x)):
        np.testing.assert_array_equal(result, expected)
    _, kept = kernel.native(None).forward([x, y])
    weights = [random(3, 16, seed=seed) for seed in (2, 3, 4)]
    for gradient, expected in zip(
        kernel.native(None).backward(kept, weights),
        (weights[0] + weights[1] * y + weights[2], weights[0] + weights[1] * x),
    ):
        np.testing.assert_allclose(gradient, expected, rtol=1e-12)


def test_gradients_in_pytorch():
    kernel = bastile.compile(gated, (8, 64), dtype=torch.float32, grad=True)
    gate, up = (torch.randn(5, 64, requires_grad=True) for _ in range(2))
    kernel(gate, up).square().sum().backward()
    computed = gate.grad, up.grad
    expected = (up + 1) * gate * torch.sigmoid(1.702 * gate)
    expected = torch.autograd.grad(expected.square().sum(), (gate, up))
    torch.testing.assert_close(computed, expected, rtol=1e-4, atol=1e-5)


def test_gradients_of_leading_sizes_of_one():
    kernel = bastile.compile(
        lambda x, angle: F.sin(angle) * x,
        {"x": (2, 3, 4, 16), "angle": (1, 3, 1, 16)},
        dtype="f32",
        grad=True,
    )
    x = torch.randn(5, 7, 4, 16, requires_grad=True)
    angle = torch.randn(1, 7, 1, 16, requires_grad=True)
    upstream = torch.randn_like(x)
    kernel(x, angle).backward(upstream)
    computed = x.grad, angle.grad
    expected = torch.autograd.grad(angle.sin() * x, (x, angle), upstream)
    torch.testing.assert_close(computed, expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("rows", (0, 3))
def test_gradients_without_rows(rows):
    def function(x, w):
        return x * w, w * 2

    kernel = bastile.compile(
        function, {"x": (8, 64), "w": (64,)}, dtype="f32", grad=True
    )
    x = torch.randn(rows, 64, requires_grad=True)
    w = torch.randn(64, requires_grad=True)
    scaled, doubled = kernel(x, w)
    (scaled.sum() + doubled.sum()).backward()
    torch.testing.assert_close(w.grad, x.detach().sum(0) + 2)


# ---------------------------------------------------------------------------
# Types
# ---------------------------------------------------------------------------


def test_a_result_is_rounded_once_to_the_type_of_the_first_tensor():
    x, weight = bfloat16(random(3, 16)), random(16, seed=1, dtype=np.float32)
    function = lambda x, weight: (x + 1) * weight * sigmoid(1.7 * x)  # noqa: E731
    result = compile_f64(function, x, weight)(x, weight)
    assert result.dtype == x.dtype
    wide = x.astype(np.float64)
    expected = (wide + 1) * weight * logistic(1.7 * wide)
    np.testing.assert_array_equal(result, bfloat16(expected))


def test_rounding_in_the_middle_and_at_the_end():
    x = random(3, 16, dtype=np.float32)
    kernel = compile_f64(
        lambda x: ((x * 3).to("bf16") * 5, (x * 3).astype(np.float16), x), x
    )
    middle, end, same = kernel(x)
    rounded = bfloat16(x * np.float32(3)).astype(np.float32)
    np.testing.assert_array_equal(middle, rounded * 5)
    np.testing.assert_array_equal(end, (x * np.float32(3)).astype(np.float16))
    np.testing.assert_array_equal(same, x)


def test_rounding_in_float64_goes_on_in_float64():
    x = random(3, 16)
    kernel = compile_f64(lambda x: x.to("f32") / 3, x)
    np.testing.assert_array_equal(kernel(x), x.astype(np.float32) / np.float64(3))
    # Where it is taken apart and put together, too.
    kernel = compile_f64(lambda x: F.split(x.to("f32"), 2)[1] / 3, x)
    halves = x.astype(np.float32)[:, 8:] / np.float64(3)
    np.testing.assert_array_equal(kernel(x), halves)
    kernel = compile_f64(lambda x: F.concatenate([x.to("f32"), x]) / 3, x)
    both = np.concatenate([x.astype(np.float32), x], axis=1) / np.float64(3)
    np.testing.assert_array_equal(kernel(x), both)
    kernel = compile_f64(lambda x: F.concatenate([x.to("f32")] * 2), x)
    assert kernel(x).dtype == np.float32
    kernel = compile_f64(lambda x: x.to("f64") / 3, x.astype(np.float32))
    np.testing.assert_array_equal(
        kernel(x.astype(np.float32)),
        (x.astype(np.float32) / np.float64(3)).astype(np.float32),
    )


def test_symbols_know_shape_and_type():
    def function(x, weight):
        assert x.shape == (None, 16) and x.ndim == 2 and x.dtype == "bfloat16"
        assert weight.shape == (16,) and weight.dtype == "float32"
        assert (x * weight).dtype == "float32"
        assert F.row_sum(x).shape == (None, 1)
        assert repr(x) == "<symbolic tensor (?, 16) of bfloat16>"
        return x / x.shape[-1]

    bastile.compile(
        function,
        {"x": (3, 16), "weight": (16,)},
        dtype={"x": "bf16", "weight": "f32"},
    )


# ---------------------------------------------------------------------------
# Texts
# ---------------------------------------------------------------------------


def test_texts_are_equal_where_all_else_is():
    first = tracing.trace(gated, (8, 64), "bf16", {})
    assert first == tracing.trace(gated, (8, 64), "bf16", {})
    assert first == tracing.trace(gated, (9, 64), "bf16", {})
    assert first != tracing.trace(gated, (8, 64), "f32", {})
    assert first[0] == "gated"
    assert tracing.trace(lambda x: x + 1, (8, 64), "f32", {})[0] == "function"


def test_what_is_unused_leaves_no_trace():
    def function(x):
        F.exp(x) + 1
        return x * 2

    assert "math.exp" not in tracing.trace(function, (8, 64), "f32", {})[1]


@pytest.mark.parametrize("dtype", ["bf16", "f32"])
def test_gpus_have_every_function(dtype):
    def everything(x):
        positive = abs(x) + 1
        return sum(
            getattr(F, name)(positive if name in POSITIVE else x) for name in UNARY
        )

    kernel = bastile.compile(
        everything, (8, 64), dtype=dtype, grad=True, target="sm_90"
    )
    assert ".visible .entry" in kernel.ptx


def test_a_function_is_one_launch():
    def launches(kernel):
        return [len(f["launches"]) for f in kernel.metadata["functions"]]

    function = lambda gate, up: F.silu(gate) * up  # noqa: E731
    traced = bastile.compile(function, (8, 64), dtype="bf16", grad=True)
    assert launches(traced) == [1, 1]
    shapes = {"q": (2, 8, 4, 64), "cos": (1, 8, 1, 32), "sin": (1, 8, 1, 32)}
    rotated = bastile.compile(
        lambda q, cos, sin: op.rope(q * 2, cos, sin), shapes, dtype="bf16"
    )
    assert launches(rotated) == [1]
    shapes["cos"] = (1, 8, 1, 64)
    repeated = bastile.compile(lambda q, cos, sin: q * cos, shapes, dtype="bf16")
    assert launches(repeated) == [1]


def test_the_documentation_is_right():
    text = (pathlib.Path(__file__).resolve().parents[3] / "docs/python.md").read_text()
    section = text.split("\n## An op in one line\n")[1].split("\n## ")[0]
    blocks = re.findall(r"```python\n(.*?)```", section, re.DOTALL)
    gate, up = bfloat16(random(3, 2880)), bfloat16(random(3, 2880, seed=1))
    before, gradient, mean, square = (random(3, 8, seed=i) for i in range(4))
    names = {
        **{"gate": gate, "up": up, "parameter": before.copy(), "gradient": gradient},
        **{"mean": mean.copy(), "square": abs(square)},
        "rate": np.array([0.5], np.float32),
        "seed": np.array([7], np.int32),
    }
    for block in blocks:
        exec(block, names)
    wide, other = gate.astype(float), up.astype(float)
    expected = (other + 1) * wide * logistic(1.702 * wide)
    np.testing.assert_allclose(names["result"].astype(float), expected, rtol=2**-8)
    np.testing.assert_allclose(names["mean"], 0.9 * mean + 0.1 * gradient, rtol=1e-5)
    change = 0.5 * names["mean"] / (np.sqrt(names["square"]) + 1e-8)
    np.testing.assert_allclose(
        names["parameter"], before - change, rtol=1e-4, atol=1e-5
    )
    assert names["norm"].operands == ("x", "weight")
    assert names["gated_norm"].operands == ("x", "gate", "weight")


def test_tracing_is_for_each_thread():
    def function(x):
        inner = bastile.compile(gated, (8, 64), dtype="bf16")
        assert inner.operands == ("gate", "up")
        return x + 1

    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        texts = pool.map(
            lambda _: tracing.trace(function, (8, 64), "f32", {}), range(8)
        )
    assert len(set(texts)) == 1


def test_gradients_are_derived():
    kernel = bastile.compile(gated, (8192, 2880), dtype="bf16", grad=True)
    backward = kernel.metadata["functions"][0]["backward"]
    assert list(backward["gradients"]) == ["gate", "up"]
    assert ".visible .entry" in kernel.ptx
