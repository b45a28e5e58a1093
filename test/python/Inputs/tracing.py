# Part of Bastile, under the MIT License. See LICENSE.
"""What tests of traced functions share: inputs, compiling, float64 references."""

import inspect

import bastile
import numpy as np
import pytest


def logistic(x):
    return 1 / (1 + np.exp(-x))


def bfloat16(array):
    return array.astype(pytest.importorskip("ml_dtypes").bfloat16)


def random(*shape, seed=0, dtype=np.float64):
    return np.random.default_rng(seed).standard_normal(shape).astype(dtype)


def compile_f64(function, *arrays, **options):
    names = list(inspect.signature(function).parameters)
    shapes = {name: array.shape for name, array in zip(names, arrays)}
    dtypes = {name: array.dtype for name, array in zip(names, arrays)}
    return bastile.compile(function, shapes, dtype=dtypes, target="host", **options)


def differentiate(function, arrays, index, weights, step=1e-6):
    """The gradient of sum(weights * function) by central differences."""
    gradient = np.empty_like(arrays[index])
    for place in np.ndindex(*gradient.shape):
        sides = []
        for sign in (1, -1):
            moved = [array.copy() for array in arrays]
            moved[index][place] += sign * step
            sides.append(function(*moved))
        gradient[place] = (weights * (sides[0] - sides[1])).sum() / (2 * step)
    return gradient


def check(function, reference, *arrays):
    """Compares values and gradients in float64 with those of ``reference``."""
    kernel = compile_f64(function, *arrays, grad=True)
    expected = reference(*arrays)
    result, kept = kernel.native(None).forward(arrays)
    assert result.shape == expected.shape
    np.testing.assert_allclose(result, expected, rtol=1e-12, atol=1e-14)
    weights = random(*expected.shape, seed=99)
    gradients = kernel.native(None).backward(kept, [weights])
    for index, gradient in enumerate(gradients):
        np.testing.assert_allclose(
            gradient if gradient is not None else np.zeros_like(arrays[index]),
            differentiate(reference, arrays, index, weights),
            rtol=2e-7,
            atol=1e-8,
        )
