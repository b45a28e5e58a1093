# Part of Bastile, under the MIT License. See LICENSE.
# RUN: %package-test %s
"""The gradients that random graphs are compared with, against PyTorch's."""

import pathlib
import sys

import numpy as np
import pytest
import torch

sys.path.insert(0, str(pathlib.Path(__file__).parents[2] / "numerics" / "Inputs"))
import bounded  # noqa: E402
import graph_ops  # noqa: E402
import tape  # noqa: E402

# Equal numbers, zeros, and numbers of either sign.
FIRST = np.array([[0.0, -1.5, 2.0, 0.25], [-0.5, 3.0, 0.0, 2.0]])
SECOND = np.array([[0.0, 1.5, 2.0, -0.25], [-0.5, 2.0, 1.0, 0.5]])
POSITIVE = np.abs(FIRST) + 0.25


# The function, PyTorch's, and what they are called on.
CASES = {
    "tanh": (tape.tanh, torch.tanh, [FIRST]),
    "erf": (tape.erf, torch.erf, [FIRST]),
    "one_plus_erf": (tape.one_plus_erf, lambda x: 1 + torch.erf(x), [FIRST]),
    "sin": (tape.sin, torch.sin, [FIRST]),
    "cos": (tape.cos, torch.cos, [FIRST]),
    "exp": (tape.exp, torch.exp, [FIRST]),
    "log": (tape.log, torch.log, [POSITIVE]),
    "sqrt": (tape.sqrt, torch.sqrt, [POSITIVE]),
    "rsqrt": (tape.rsqrt, torch.rsqrt, [POSITIVE]),
    "absolute": (tape.absolute, torch.abs, [FIRST]),
    "scaled": (lambda x, y: x * y - y, lambda x, y: x * y - y, [FIRST, SECOND]),
    "quotient": (lambda x, y: x / y, torch.div, [FIRST, POSITIVE]),
    "square": (lambda x: x * x, torch.square, [FIRST]),
    "power": (tape.power, torch.pow, [np.abs(FIRST), np.abs(SECOND) + 1]),
    "power of 0": (
        lambda x: tape.power(x, 0.0),
        lambda x: torch.pow(x, 0.0),
        [np.abs(FIRST)],
    ),
    "maximum": (tape.largest, torch.maximum, [FIRST, SECOND]),
    "minimum": (
        lambda x, y: tape.largest(x, y, -1),
        torch.minimum,
        [FIRST, SECOND],
    ),
    "maximum of rows": (
        lambda x: tape.extreme(x, (-1,), 1),
        lambda x: torch.amax(x, -1, keepdim=True),
        [FIRST],
    ),
    "minimum over rows": (
        lambda x: tape.extreme(x, (0,), -1),
        lambda x: torch.amin(x, 0, keepdim=True),
        [FIRST],
    ),
    "sum of groups": (
        lambda x: graph_ops.reduce_groups("add", x, 2),
        lambda x: x.reshape(2, 2, 2).sum(-1),
        [FIRST],
    ),
    "sum over rows": (
        lambda x: graph_ops.reduce_rows("add", x),
        lambda x: x.sum(0),
        [FIRST],
    ),
    "repeated groups": (
        lambda x: graph_ops.repeat(x, (2, 12)),
        lambda x: x.repeat_interleave(3, -1),
        [FIRST],
    ),
    "repeated vector": (
        lambda x: graph_ops.repeat(x, (3, 4)),
        lambda x: x.expand(3, 4),
        [FIRST[0]],
    ),
    "repeated rows": (
        lambda x: graph_ops.repeat(x, (2, 4)),
        lambda x: x.expand(2, 4),
        [FIRST[:1]],
    ),
    "softmax": (
        graph_ops.MODEL["softmax"][0],
        lambda x: torch.softmax(x, -1),
        [FIRST],
    ),
    "log_softmax": (
        graph_ops.MODEL["log_softmax"][0],
        lambda x: torch.log_softmax(x, -1),
        [FIRST],
    ),
    "layer_norm": (
        graph_ops.MODEL["layer_norm"][0],
        lambda x, w: torch.nn.functional.layer_norm(x, (4,), w, eps=1e-5),
        [FIRST, SECOND[0]],
    ),
    "gelu": (graph_ops.MODEL["gelu"][0], torch.nn.functional.gelu, [FIRST]),
    "geglu": (
        graph_ops.MODEL["geglu"][0],
        lambda x, y: torch.nn.functional.gelu(x, approximate="tanh") * y,
        [FIRST, SECOND],
    ),
    "swiglu": (
        graph_ops.MODEL["swiglu"][0],
        lambda x, y: torch.nn.functional.silu(x) * y,
        [FIRST, SECOND],
    ),
    "interleaved pieces": (
        lambda x: tape.join([tape.piece(x, 1, 2, 2), tape.piece(x, 0, 2, 2)], False),
        lambda x: torch.cat([x[..., 1::2], x[..., 0::2]], -1),
        [FIRST],
    ),
    "contiguous pieces": (
        lambda x: tape.join([tape.piece(x, 2, 1, 2), tape.piece(x, 0, 1, 2)], True),
        lambda x: torch.stack([x[..., 2:], x[..., :2]], -1).reshape(x.shape),
        [FIRST],
    ),
    "select": (
        lambda x, y: tape.select(
            bounded.compare(np.less, x.number, y.number), x, y * 2.0
        ),
        lambda x, y: torch.where(x < y, x, y * 2),
        [FIRST, SECOND],
    ),
    "product": (
        lambda x, y: tape.product(x, y, (1, 1), (2, 2), "f32"),
        lambda x, y: x @ y.T,
        [FIRST, SECOND],
    ),
    "product of transposed matrices": (
        lambda x, y: tape.product(x, y, (0, 1), (4, 4), "f32"),
        lambda x, y: x.T @ y.T,
        [FIRST, SECOND.T],
    ),
    "product of batches": (
        lambda x, y: tape.product(x, y, (1, 0), (2, 3, 2, 2), "f32"),
        lambda x, y: x @ y,
        [np.stack([FIRST, SECOND])[:, None], np.stack([SECOND.T] * 3)],
    ),
    "product that adds up its batch": (
        lambda x, y: tape.product(x, y, (0, 0), (4, 4), "f32"),
        lambda x, y: (x.mT @ y).sum(0),
        [np.stack([FIRST, SECOND]), SECOND],
    ),
    "stopped": (
        lambda x: x * tape.stop_gradient(x),
        lambda x: x * x.detach(),
        [FIRST],
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_like_autograd(name):
    function, torch_function, arrays = CASES[name]
    variables = [tape.Variable(bounded.Bounded(array)) for array in arrays]
    tensors = [torch.tensor(array, requires_grad=True) for array in arrays]
    result, expected = function(*variables), torch_function(*tensors)
    np.testing.assert_allclose(
        result.value, expected.detach().numpy(), rtol=1e-13, atol=1e-15
    )
    seed = np.random.default_rng(1).standard_normal(result.shape)
    gradients = tape.gradients([result], [seed], variables)
    expected.backward(torch.tensor(seed))
    for gradient, tensor in zip(gradients, tensors):
        np.testing.assert_allclose(
            gradient.value, tensor.grad.numpy(), rtol=1e-12, atol=1e-14
        )


@pytest.mark.parametrize("name", CASES)
def test_bounds(name):
    """In float32, results and gradients are within the bounds."""
    function, torch_function, arrays = CASES[name]
    bounded.compute_in("f32")
    variables = [tape.Variable(bounded.Bounded(array)) for array in arrays]
    tensors = [
        torch.tensor(array, dtype=torch.float32, requires_grad=True) for array in arrays
    ]
    result, got = function(*variables), torch_function(*tensors)
    seed = np.round(np.random.default_rng(1).standard_normal(result.shape) * 8)
    gradients = tape.gradients([result], [seed], variables)
    got.backward(torch.tensor(seed, dtype=torch.float32))

    def check(got, expected):
        error = np.abs(got.detach().numpy().astype(float) - expected.value)
        assert (error <= expected.error + 2.0**-24 * np.abs(expected.value)).all()
        # A bound that holds for everything says nothing.
        scale = np.abs(expected.value).max() + np.abs(seed).max()
        assert (expected.error <= 1e-5 * scale).all()

    check(got, result.number)
    for gradient, tensor in zip(gradients, tensors):
        check(tensor.grad, gradient)
