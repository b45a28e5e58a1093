# Part of Bastile, under the MIT License. See LICENSE.
# RUN: %pytest %s
"""The model ops and their gradients against PyTorch's, in float64."""

import numpy as np
import pytest

import floats
from cases import CASES
from loss import Loss
from runner import run, run_backward

try:
    import torch
    from eager import FORMULAS, differentiate, rope
except ImportError:
    # Not pytest.importorskip: a file without tests is a failure.
    pytestmark = pytest.mark.skip(reason="PyTorch is missing")

# As parts of the largest gradient of a row.
TOLERANCE = 1e-11

SHAPES = ((1, 1), (3, 33), (5, 160))


def assert_close(got, expected, what):
    expected = expected.detach().numpy()
    scale = 1 + np.abs(expected).max(axis=-1, keepdims=True, initial=0)
    assert np.all(np.abs(got - expected) <= TOLERANCE * scale), what


@pytest.mark.parametrize("rows,length", SHAPES)
@pytest.mark.parametrize("name", CASES)
def test_autograd(name, rows, length):
    case = CASES[name]
    values = case.values(rows, length, "f64")
    cotangents = [
        floats.random("f64", (rows, length), seed) for seed in range(len(case.results))
    ]
    expected, gradients = differentiate(
        FORMULAS[name],
        {one: torch.from_numpy(array) for one, array in values.items()},
        [torch.from_numpy(dy) for dy in cotangents],
    )
    results, got = run_backward(
        case.source(length, "f64"),
        {one: ("f64", array) for one, array in values.items()},
        {f"grad_result{i}": ("f64", dy) for i, dy in enumerate(cotangents)},
        ["f64"] * len(cotangents),
        dict.fromkeys(values, "f64"),
    )
    for result, wanted in zip(results, expected):
        assert_close(result, wanted, "result")
    for one, gradient in got.items():
        assert_close(gradient, gradients[one], one)


@pytest.mark.parametrize("size", (2, 64))
def test_rope(size):
    row, angle = f"tensor<?x?x?x{size}xf64>", f"tensor<1x1x?x{size}xf64>"
    values = {
        "x": floats.random("f64", (2, 3, 5, size), 1),
        "cosine": floats.random("f64", (1, 1, 5, size), 2),
        "sine": floats.random("f64", (1, 1, 5, size), 3),
    }
    dy = floats.random("f64", (2, 3, 5, size), 4)
    tensors = {name: torch.from_numpy(array) for name, array in values.items()}
    (expected,), gradients = differentiate(rope, tensors, [torch.from_numpy(dy)])
    results, got = run_backward(
        f"func.func @f(%x: {row}, %cosine: {angle}, %sine: {angle}) -> {row} {{\n"
        f"  %0 = tile.rope %x, %cosine, %sine : {row}, {angle}\n"
        f"  return %0 : {row}\n}}\n",
        {name: ("f64", array) for name, array in values.items()},
        {"grad_result0": ("f64", dy)},
        ["f64"],
        {"x": "f64"},
    )
    assert_close(results[0], expected, "result")
    assert_close(got["x"], gradients["x"], "x")


@pytest.mark.parametrize("weighted", (False, True))
@pytest.mark.parametrize("smoothing", (0.0, 0.1))
@pytest.mark.parametrize("reduction", ("mean", "sum", "none"))
@pytest.mark.parametrize("rows,length", ((1, 2), (7, 33)))
def test_cross_entropy(rows, length, reduction, smoothing, weighted):
    loss = Loss(reduction=reduction, label_smoothing=smoothing)
    x = floats.random("f64", (rows, length), 1, 3)
    t = np.random.default_rng(1).integers(0, length, (rows, 1))
    t[3:5] = -100
    values = {"x": ("f64", x), "t": ("i64", t)}
    row, vector = f"tensor<?x{length}xf64>", f"tensor<{length}xf64>"
    inputs, types, words = f"%x: {row}, %t: tensor<?x1xi64>", "", ""
    weight = None
    if weighted:
        weights = np.abs(floats.random("f64", length, 5))
        weight = torch.from_numpy(weights)
        values["w"] = ("f64", weights)
        inputs += f", %w: {vector}"
        words, types = " weights(%w)", f", {vector}"
    result = "tensor<?x1xf64>" if reduction == "none" else "tensor<1xf64>"
    source = (
        f"func.func @f({inputs}) -> {result} {{\n"
        f"  %0:5 = tile.cross_entropy %x, %t{words} {loss.operands()} : {row}, "
        f"tensor<?x1xi64>{types}\n"
        f"  return %0#0 : {result}\n}}\n"
    )
    leaf = torch.from_numpy(x).requires_grad_()
    expected = torch.nn.functional.cross_entropy(
        leaf,
        torch.from_numpy(t[:, 0]),
        weight,
        reduction=reduction,
        label_smoothing=smoothing,
    )
    (gradient,) = torch.autograd.grad(expected.sum(), leaf)
    got_loss, got = run(
        source,
        values,
        {"result0": "f64", "grad_x": "f64"},
        "--value-and-grad=x",
    )
    assert_close(got_loss.ravel(), expected.reshape(-1), "loss")
    assert_close(got, gradient, "gradient")
