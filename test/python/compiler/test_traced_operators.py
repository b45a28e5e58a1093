# Part of Bastile, under the MIT License. See LICENSE.
# RUN: %package-test %s
"""Functions over symbolic tensors that are called like ops, under all that PyTorch
does with calls."""

import functools

import bastile
import pytest
import references
import torch
from bastile._compiler.traced_operators import TracedOperator
from bastile.functions import expand_as, linear, op, sigmoid, softmax, split, where
from torch._subclasses.fake_tensor import FakeTensorMode


@TracedOperator
def turn_two(q, k, cosine, sine):
    return op.rope(q, cosine, sine), op.rope(k, cosine, sine)


@TracedOperator
def gated(gate_up, bias, slope=1.0):
    gate, up = split(gate_up + bias, 2)
    return (gate * sigmoid(slope * gate) * up).to(gate_up.dtype)


def expected(gate_up, bias, slope=1.0):
    gate, up = (gate_up + bias).chunk(2, -1)
    return gate * torch.sigmoid(slope * gate) * up


def operands(rank=2, dtype=torch.float32, length=32):
    torch.manual_seed(rank)
    shape = (*range(2, rank + 1), length)
    return (
        torch.randn(shape, dtype=dtype, requires_grad=True),
        torch.randn(length, dtype=dtype, requires_grad=True),
    )


def assert_same(function, tensors, slope=1.0):
    results = function(*tensors), expected(*tensors, slope)
    assert torch.allclose(*results, atol=1e-5)
    found, wanted = (torch.autograd.grad(x.sin().sum(), tensors) for x in results)
    for a, b in zip(found, wanted):
        assert torch.allclose(a, b, atol=1e-5)


@pytest.mark.parametrize("rank", [2, 3, 4])
def test_any_rank(rank):
    assert_same(gated, operands(rank))


def test_attributes_are_constants():
    tensors = operands()
    for slope in (0.5, 2.0):
        assert_same(lambda *x: gated(*x, attributes=(slope,)), tensors, slope)


def test_only_the_gradients_that_are_wanted():
    x, bias = operands()
    (gradient,) = torch.autograd.grad(gated(x, bias.detach()).sum(), x)
    (reference,) = torch.autograd.grad(expected(x, bias).sum(), x)
    assert torch.allclose(gradient, reference, atol=1e-5)
    with torch.no_grad():
        assert not gated(x, bias).requires_grad


@pytest.mark.parametrize("shared", [1, 2])
def test_two_results(shared):
    torch.manual_seed(0)
    q, k = (torch.randn(2, heads, 3, 8, requires_grad=True) for heads in (4, 1))
    angles = torch.randn(shared, 1, 3, 4)
    results = turn_two(q, k, angles.cos(), angles.sin())
    wanted = [references.rotate(x, angles.cos(), angles.sin()) for x in (q, k)]
    for result, reference in zip(results, wanted):
        assert torch.allclose(result, reference, atol=1e-6)
    found, wanted = (
        torch.autograd.grad(sum(x.sin().sum() for x in tensors), (q, k))
        for tensors in (results, wanted)
    )
    for gradient, reference in zip(found, wanted):
        assert torch.allclose(gradient, reference, atol=1e-5)


@pytest.mark.parametrize("dynamic", [False, True])
def test_compiled(dynamic):
    torch._dynamo.reset()
    compiled = torch.compile(
        lambda x, bias: gated(x, bias),
        backend="aot_eager",
        fullgraph=True,
        dynamic=dynamic,
    )
    assert_same(compiled, operands())


def difference(x, weight, bias=None):
    return linear(x, weight, bias) - x.shape[-1]


def test_products_compile_once_for_each_number_of_columns():
    operator = TracedOperator(difference)
    weights = [torch.randn(size, 8) for size in (3, 5)]
    biases = [None, torch.randn(3)]

    def check(rows):
        for weight, bias in zip([*weights, weights[0]], [None, *biases]):
            x = torch.randn(rows, 8)
            expected = torch.nn.functional.linear(x, weight, bias) - 8
            torch.testing.assert_close(operator(x, weight, bias), expected)

    check(4)
    count = bastile.compilations()
    check(7)
    assert bastile.compilations() == count


@functools.partial(TracedOperator, differentiated=("x", "bias"))
def gradients(x, bias):
    return x * x * bias


def test_gradients_alone_compiled():
    torch._dynamo.reset()
    x, bias = (y.detach() for y in operands())
    compiled = torch.compile(gradients, backend="aot_eager", fullgraph=True)
    torch.testing.assert_close(compiled(x, bias), gradients(x, bias))
    torch.testing.assert_close(compiled(x, bias)[0], 2 * x * bias)


def test_torch_func():
    tensors = operands()
    found = torch.func.grad(lambda *x: gated(*x).sin().sum(), (0, 1))(*tensors)
    wanted = torch.func.grad(lambda *x: expected(*x).sin().sum(), (0, 1))(*tensors)
    for a, b in zip(found, wanted):
        assert torch.allclose(a, b, atol=1e-5)


def test_autocast():
    x, bias = operands(dtype=torch.bfloat16)
    with torch.autocast("cpu", torch.bfloat16):
        result = gated(x, bias)
    result.float().sum().backward()
    assert result.dtype == x.grad.dtype == torch.bfloat16


def test_meta_and_fake_tensors():
    x, bias = operands()
    assert gated(x.to("meta"), bias.to("meta")).shape == (2, 16)
    with FakeTensorMode(allow_non_fake_inputs=True) as mode:
        assert gated(mode.from_tensor(x), mode.from_tensor(bias)).shape == (2, 16)


def test_shapes_that_disagree():
    x, _ = operands()
    with pytest.raises(ValueError, match=r"gated: .*; the shapes are .* 'bias' \[30\]"):
        gated(x, torch.randn(30))


@functools.partial(TracedOperator, any_length=("weights", "seen"))
def weighted(q, k, v, weights=None, seen=None, scale=1.0):
    scores = q @ k.mT * scale
    if weights is not None:
        scores = scores + weights
    if seen is not None:
        scores = where(expand_as(seen, scores) != 0, scores, -1e30)
    return softmax(scores) @ v


@pytest.mark.long(every=3)
@pytest.mark.parametrize("present", [(), ("weights",), ("weights", "seen")])
def test_operands_that_calls_leave_out(present):
    for keys in (7, 12):
        q, k, v = (torch.randn(2, n, 8, requires_grad=True) for n in (5, keys, keys))
        weights = torch.randn(2, 5, keys, requires_grad=True)
        seen = (torch.rand(1, 1, keys) < 0.8).to(torch.int8)
        scores = 0.5 * q @ k.mT
        if "weights" in present:
            scores = scores + weights
        if "seen" in present:
            scores = scores.masked_fill(seen == 0, -1e30)
        given = [weights if "weights" in present else None]
        given.append(seen if "seen" in present else None)
        result = weighted(q, k, v, *given, attributes=(0.5,))
        expected = torch.softmax(scores, -1) @ v
        torch.testing.assert_close(result, expected)
        wanted = [q, k, v, *given[: len(present[:1])]]
        found, other = (
            torch.autograd.grad(x.sin().sum(), wanted) for x in (result, expected)
        )
        torch.testing.assert_close(found, other, rtol=1e-4, atol=1e-5)


def test_rows_of_any_length_are_one_kernel():
    def run(keys):
        q, k, v = (torch.randn(2, n, 8) for n in (5, keys, keys))
        return weighted(q, k, v, torch.randn(2, 5, keys))

    assert run(1).shape == (2, 5, 8)
    run(3)
    count = bastile.compilations()
    run(40)
    compiled = torch.compile(weighted, fullgraph=True, dynamic=True)
    for keys in (6, 9):
        q, k, v = (torch.randn(2, n, 8) for n in (5, keys, keys))
        weights = torch.randn(2, 5, keys)
        expected = torch.softmax(q @ k.mT + weights, -1) @ v
        torch.testing.assert_close(compiled(q, k, v, weights), expected)
    assert bastile.compilations() == count
