# Part of Bastile, under the MIT License. See LICENSE.
# RUN: %package-test %s
"""Tensors and transformations that no kernel takes, and what is said of them."""

import warnings

import bastile
import numpy as np
import pytest
import torch
from bastile import ops
from torch.utils.flop_counter import FlopCounterMode

SHAPES = {"input": (4, 8), "weight": (8,)}
CALLABLES = {
    "op": ops.rms_norm,
    "kernel": bastile.compile("rms_norm", SHAPES, dtype="f32", grad=True),
    "function": bastile.compile("rms_norm"),
}


def made(kind, x):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if kind == "jagged":
            return torch.nested.nested_tensor([x, x], layout=torch.jagged)
        if kind == "nested":
            return torch.nested.nested_tensor([x, x])
        if kind == "quantized":
            return torch.quantize_per_tensor(x, 0.1, 0, torch.qint8)
        return x.to_sparse() if kind == "sparse_coo" else x.to_sparse_csr()


@pytest.mark.parametrize("call", CALLABLES.values(), ids=CALLABLES)
@pytest.mark.parametrize(
    "kind", ["sparse_coo", "sparse_csr", "nested", "jagged", "quantized"]
)
def test_tensors_that_are_not_dense(call, kind):
    word = "nested" if kind == "jagged" else kind
    with pytest.raises(TypeError, match=f"takes dense tensors, but got .*{word}"):
        call(made(kind, torch.ones(4, 8)), torch.ones(8))


@pytest.mark.parametrize("call", CALLABLES.values(), ids=CALLABLES)
def test_transformations(call):
    x, w = torch.randn(3, 4, 8), torch.ones(8)
    norm = torch.nn.functional.rms_norm

    def ours(a):
        return call(a, w)

    with pytest.raises(
        NotImplementedError, match="'rms_norm' of bastile .*whole batch"
    ):
        torch.func.vmap(ours)(x)
    for forward in (
        lambda: torch.func.jvp(ours, (x[0],), (x[0],)),
        lambda: torch.func.jacfwd(ours)(x[0]),
    ):
        with pytest.raises(NotImplementedError, match="'rms_norm' of bastile.*vjp"):
            forward()
    with pytest.raises(NotImplementedError, match="of bastile .*functional.jacobian"):
        torch.func.jacrev(ours)(x[0])
    found = torch.func.grad(lambda a: ours(a).sum())(x[0])
    wanted = torch.func.grad(lambda a: norm(a, (8,), w, 1e-6).sum())(x[0])
    torch.testing.assert_close(found, wanted)


def test_a_loss_under_transformations():
    hidden, weight = torch.randn(4, 8), torch.randn(16, 8)
    targets = torch.arange(4)
    with pytest.raises(NotImplementedError, match="'linear_cross_entropy' of bastile"):
        torch.func.grad(lambda x: ops.linear_cross_entropy(x, weight, targets))(hidden)


class Tracer:
    """As JAX's: a type of arrays, without a place."""

    shape = (4, 8)
    dtype = np.dtype("float32")

    def __dlpack__(self):
        raise NotImplementedError


Tracer.__module__ = "jax._src.interpreters.partial_eval"


@pytest.mark.parametrize("call", [ops.silu, bastile.compile("silu")])
def test_arrays_that_are_traced(call):
    message = "kernel of Bastile takes tensors with values, .*Tracer.*jax.jit.*outside"
    with pytest.raises(TypeError, match=message):
        call(Tracer())


class Foreign:
    """An array of a library with words of its own for a place."""

    device = "cpu:0"

    def __init__(self, array):
        self.array = array
        self.shape, self.dtype = array.shape, array.dtype

    def __dlpack__(self, **arguments):
        return self.array.__dlpack__(**arguments)

    def __dlpack_device__(self):
        return self.array.__dlpack_device__()


def test_one_place_by_the_names_of_two_libraries():
    x = np.ones((4, 8), np.float32)
    np.testing.assert_array_equal(ops.swiglu(x, Foreign(x)), ops.swiglu(x, x))


def flops(compute):
    with FlopCounterMode(display=False) as counter:
        compute().backward()
    return counter.get_total_flops(), counter.get_flop_counts()["Global"]


@pytest.mark.parametrize(
    "options, products",
    [
        ({}, 3),
        ({"budget": 800}, 3),
        ({"recompute": True, "budget": 800}, 4),
        ({"reduction": "none"}, 4),
    ],
)
def test_flops_are_those_of_the_products(options, products):
    x = torch.randn(16, 8, requires_grad=True)
    weight = torch.randn(32, 8, requires_grad=True)
    targets = torch.arange(16)
    found, _ = flops(
        lambda: ops.linear_cross_entropy(x, weight, targets, **options).sum()
    )
    assert found == products * 2 * 16 * 8 * 32


def test_ops_of_rows_have_no_flops():
    x = torch.randn(16, 8, requires_grad=True)
    found, counts = flops(lambda: ops.rms_norm(x).sum())
    assert found == 0 and torch.ops.bastile.run in counts
