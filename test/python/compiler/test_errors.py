# Part of Bastile, under the MIT License. See LICENSE.
# RUN: %package-test %s
"""Mistakes: what kind of exception they raise and what its message names."""

import dataclasses

import bastile
import numpy as np
import pytest
import torch
from bastile._compiler import checks
from bastile._compiler.definitions import definitions

ops = bastile.ops
x = torch.randn(4, 24)
weight = torch.ones(24)
targets = torch.zeros(4, 1, dtype=torch.long)
meta = torch.empty(4, 24, device="meta")

SHAPES = [
    (lambda: ops.rms_norm(x, torch.ones(30)), "rms_norm", "weight", "[30]", "[4, 24]"),
    (lambda: ops.swiglu(x, x[:, :8]), "swiglu", "up", "[4, 8]", "[4, 24]"),
    (lambda: ops.swiglu(x, x[:3]), "swiglu", "up", "[3, 24]", "[4, 24]"),
    (
        lambda: ops.cross_entropy(x, targets[:3]),
        "cross_entropy",
        "targets",
        "[3, 1]",
        "[4, 24]",
    ),
    (lambda: ops.silu(x[0]), "silu", "input", "[24]", "at least one before"),
    (lambda: ops.silu(x[:, :0]), "silu", "input", "[4, 0]", "empty"),
    (lambda: ops.add_bias(x, x), "add_bias", "bias", "[4, 24]", "[24]"),
    (
        lambda: ops.rope(x[None], x[:, :12], x[:, :12]),
        "rope",
        "cosine",
        "[4, 12]",
        "[1, 4, 24]",
    ),
    (
        lambda: bastile.functional.layer_norm(x, (23,)),
        "layer_norm",
        "input",
        "[4, 24]",
        "[23]",
    ),
    (
        lambda: bastile.functional.cross_entropy(x, targets),
        "cross_entropy",
        "target",
        "[4, 1]",
        "[4, 24]",
    ),
]


@pytest.mark.parametrize("case", SHAPES)
def test_shape(case):
    call, *words = case
    with pytest.raises(ValueError) as raised:
        call()
    for word in words:
        assert word in str(raised.value)


def test_shape_after_a_call_that_fits():
    # Only the number of rows differs from a call that was compiled.
    ops.swiglu(x, x)
    with pytest.raises(ValueError, match=r"'up' has shape \[3, 24\]"):
        ops.swiglu(x, x[:3])


TYPES = [
    (lambda: ops.rms_norm(x.long()), "rms_norm", "input", "int64", "float32"),
    (lambda: ops.rms_norm(x, weight.int()), "rms_norm", "weight", "int32", "bfloat16"),
    (lambda: ops.swiglu(x, x.bfloat16()), "swiglu", "up", "bfloat16", "float32"),
    (
        lambda: ops.cross_entropy(x, targets.float()),
        "cross_entropy",
        "targets",
        "float32",
        "int64",
    ),
    (lambda: ops.silu(x.to(torch.complex64)), "silu", "input", "complex64"),
    (
        lambda: bastile.functional.cross_entropy(x, x[:, 0]),
        "cross_entropy",
        "target",
        "float32",
        "indices",
    ),
]


@pytest.mark.parametrize("case", TYPES)
def test_type_of_elements(case):
    call, *words = case
    with pytest.raises(TypeError) as raised:
        call()
    for word in words:
        assert word in str(raised.value)


def test_types_of_elements_do_not_come_from_the_documentation():
    definition = definitions()["rms_norm"]
    operands = [dataclasses.replace(x, summary="rows") for x in definition.operands]
    plain = dataclasses.replace(definition, operands=tuple(operands))
    with pytest.raises(
        TypeError, match="but takes float16, bfloat16, float32, float64$"
    ):
        checks.check(plain, [((4, 24), "i64", "cpu"), None])


OBJECTS = [
    (lambda: ops.swiglu(x, 3), "up", "int"),
    (lambda: ops.swiglu(x, x.numpy()), "up", "ndarray"),
    (lambda: ops.swiglu(x.numpy(), x), "gate", "ndarray"),
    (lambda: ops.swiglu(x.numpy(), [1.0]), "up", "list"),
    (lambda: ops.swiglu(x, None), "up", "missing"),
    (lambda: ops.silu(x.to_sparse()), "input", "sparse"),
    (lambda: ops.silu(), "input"),
]


@pytest.mark.parametrize("case", OBJECTS)
def test_kind_of_object(case):
    call, *words = case
    with pytest.raises(TypeError) as raised:
        call()
    for word in words:
        assert word in str(raised.value)


PLACES = [
    (lambda: ops.rms_norm(x, meta[0]), "'input' is on cpu", "'weight' is on meta"),
    (lambda: ops.rms_norm(meta, weight), "'input' is on meta", "'weight' is on cpu"),
    (
        lambda: ops.swiglu(x.requires_grad_(False), meta),
        "'gate' is on cpu",
        "'up' is on meta",
    ),
]


@pytest.mark.parametrize("case", PLACES)
def test_places(case):
    call, *words = case
    with pytest.raises(ValueError) as raised:
        call()
    for word in words:
        assert word in str(raised.value)


@pytest.mark.gpu
def test_mixed_devices():
    for operands in ((x.cuda(), weight), (x, weight.cuda())):
        for gradients in (False, True):
            with pytest.raises(ValueError, match="'weight' is on"):
                ops.rms_norm(operands[0].requires_grad_(gradients), operands[1])


@pytest.mark.gpu
def test_kernel_for_another_device():
    kernel = bastile.compile("silu", (None, 24), dtype="f32", target="host")
    with pytest.raises(ValueError, match="compiled for 'host'.*GPU 0"):
        kernel(x.cuda())


ATTRIBUTES = [
    (lambda: ops.rms_norm(x, eps="small"), TypeError, "'eps' must be a number"),
    (lambda: ops.rms_norm(x, eps=None), TypeError, "'eps' must be a number"),
    (lambda: ops.rms_norm(x, eps=float("nan")), ValueError, "a finite number"),
    (lambda: ops.rms_norm(x, casting="half"), ValueError, "one of llama, gemma"),
    (lambda: ops.rms_norm(x, epsilon=1), TypeError, "'epsilon'"),
    (
        lambda: ops.cross_entropy(x, targets, ignore_index=0.5),
        ValueError,
        "'ignore_index' must be an integer",
    ),
    (
        lambda: ops.cross_entropy(x, targets, label_smoothing=2),
        ValueError,
        "label_smoothing must be from 0 to 1",
    ),
    (
        lambda: ops.cross_entropy(x, targets, returns="losses"),
        ValueError,
        "no result 'losses'; there are loss, lse",
    ),
    (lambda: ops.cross_entropy(x, targets, returns=()), ValueError, "names no result"),
    (lambda: ops.quantize(x), ValueError, "types of its results"),
]


@pytest.mark.parametrize(("call", "kind", "message"), ATTRIBUTES)
def test_attribute(call, kind, message):
    with pytest.raises(kind, match=message):
        call()


def test_gradients_mistaken():
    y = ops.silu(x.clone().requires_grad_())
    with pytest.raises(RuntimeError, match="shape"):
        y.backward(torch.ones(3, 24))
    loss = ops.cross_entropy(x.clone().requires_grad_(), targets, returns="loss")
    loss.backward()
    with pytest.raises(RuntimeError, match="second time"):
        loss.backward()


def test_numpy_arrays_are_told_the_same():
    with pytest.raises(ValueError, match=r"'weight' has shape \[30\]"):
        ops.rms_norm(np.ones((4, 24), np.float32), np.ones(30, np.float32))
    with pytest.raises(TypeError, match="uint16"):
        ops.silu(np.ones((4, 24), np.uint16))


@pytest.mark.parametrize("shape", [8, (8, None), (8, "x")])
def test_shapes_that_are_none(shape):
    with pytest.raises(TypeError, match="the shape of 'x' must be its sizes"):
        bastile.compile(lambda x: x * 2, shape, dtype="f32")


def test_sizes_that_are_not_given():
    kernel = bastile.compile(lambda x: x * 2, (None, 8), dtype="f32")
    x = torch.randn(5, 8)
    assert torch.equal(kernel(x), x * 2)


def test_signs_that_are_left_to_readers():
    """The imaginary parts of a conjugate."""
    parts = torch.randn(4, 3, dtype=torch.complex64).conj().imag
    kernel = bastile.compile(lambda x: x * 2)
    assert torch.equal(kernel(parts), parts * 2)
    with pytest.raises(TypeError, match="negative bit"):
        kernel(parts[:, :1])
    column = parts[:, :1].resolve_neg()
    assert torch.equal(kernel(column), column * 2)
