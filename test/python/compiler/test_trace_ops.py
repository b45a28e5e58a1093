# Part of Bastile, under the MIT License. See LICENSE.
# RUN: %package-test %s
"""Python functions that call ops of the dialect."""

import inspect

import bastile
import numpy as np
import pytest
from bastile import functions as F
from bastile.functions import op
from tracing import bfloat16, check, compile_f64, differentiate, logistic, random


def rms_norm(x, weight, eps):
    return x / np.sqrt((x * x).mean(-1, keepdims=True) + eps) * weight


def test_composition_with_ops():
    check(
        lambda x, w, gate: op.rms_norm(x + 1, w, eps=1e-5) * F.silu(gate),
        lambda x, w, gate: rms_norm(x + 1, w, 1e-5) * gate * logistic(gate),
        random(3, 16),
        random(16, seed=1),
        random(3, 16, seed=2),
    )


def test_an_op_alone_is_the_op():
    x, weight = bfloat16(random(4, 16)), bfloat16(random(16, seed=1))
    traced = compile_f64(lambda x, w: op.rms_norm(x, w, eps=1e-5), x, weight)
    alone = bastile.compile(
        "rms_norm", {"input": (4, 16), "weight": (16,)}, dtype="bf16", eps=1e-5
    )
    np.testing.assert_array_equal(traced(x, weight), alone(x, weight))
    itself = bastile.compile(
        op.rms_norm, {"input": (4, 16), "weight": (16,)}, dtype="bf16"
    )
    assert itself.name == "rms_norm"


def test_ops_take_what_formulas_computed_beside_arguments():
    x, gate = bfloat16(random(4, 16)), bfloat16(random(4, 16, seed=1))
    result = compile_f64(lambda x, gate: op.swiglu(gate * 2, x), x, gate)(x, gate)
    assert result.dtype == x.dtype
    wide = 2 * gate.astype(float)
    expected = wide * logistic(wide) * x.astype(float)
    np.testing.assert_array_equal(result, bfloat16(expected))


def test_results_of_ops_have_types_of_their_own():
    logits, targets = random(4, 16), np.array([[1], [3], [0], [15]])
    function = lambda x, t: op.cross_entropy(x * 2, t)  # noqa: E731
    bf16 = bfloat16(logits)
    results = compile_f64(function, bf16, targets)(bf16, targets)
    types = [result.dtype for result in results]
    assert types == [np.float32, np.float32, np.int8, np.float32, np.int32]

    def reference(x):
        x = 2 * x
        lse = np.log(np.exp(x).sum(-1, keepdims=True))
        return (lse - np.take_along_axis(x, targets, 1)).mean(keepdims=True)[0]

    kernel = compile_f64(
        lambda x, t: op.cross_entropy(x * 2, t)[0] * 3, logits, targets, grad=True
    )
    result, kept = kernel.native(None).forward([logits, targets])
    np.testing.assert_allclose(result, 3 * reference(logits), rtol=1e-12)
    gradient, none = kernel.native(None).backward(kept, [np.ones(1)])
    assert none is None
    np.testing.assert_allclose(
        gradient,
        differentiate(reference, [logits], 0, 3),
        rtol=1e-6,
        atol=1e-8,
    )


def test_types_of_results_may_have_to_be_given():
    types = ["tensor<?x16xf8E4M3FN>", "tensor<?x1xf32>"]
    kernel = bastile.compile(
        lambda x: op.quantize(x * 2, results=types), (3, 16), dtype="f32"
    )
    x = random(3, 16, dtype=np.float32)
    pytest.importorskip("ml_dtypes")
    small, scale = kernel(x)
    assert small.dtype.itemsize == 1
    np.testing.assert_allclose(
        scale, np.abs(2 * x).max(-1, keepdims=True) / 448, rtol=1e-6
    )


def test_every_op_has_a_signature():
    from bastile._compiler.definitions import definitions

    for name, definition in definitions().items():
        parameters = inspect.signature(getattr(op, name)).parameters
        names = [o.name for o in definition.operands + definition.attributes]
        assert list(parameters) == names
