"""The formulas of the model ops in float64, independent of the compiler.

Where the textbook form loses digits in float64, an identity replaces it that
differs from the one that the compiler uses, except for erf, which has only one.
"""

import math

import numpy as np


def _map_rows(function, x):
    rows = x.reshape(-1, x.shape[-1]) if x.size else x.reshape(0, 1)
    result = np.empty_like(rows)
    for source, target in zip(rows, result):
        target[:] = list(map(function, source.tolist()))
    return result.reshape(x.shape)


def sigmoid(x):
    with np.errstate(over="ignore"):
        return 1 / (1 + np.exp(-x))


def geglu(gate, up, alpha=1.702, limit=7.0):
    """GPT-OSS's form; no limit is None."""
    if limit is not None:
        gate = np.minimum(gate, limit)
        up = np.clip(up, -limit, limit)
    return (up + 1) * gate * sigmoid(alpha * gate)


def geglu_tanh(gate, up):
    u = math.sqrt(2 / math.pi) * (gate + 0.044715 * gate**3)
    # 1 + tanh(u) = exp(u) / cosh(u)
    return 0.5 * gate * (np.exp(u) / np.cosh(u)) * up


def geglu_erf(gate, up):
    # 1 + erf(x) = erfc(-x)
    return 0.5 * gate * _map_rows(math.erfc, -gate / math.sqrt(2)) * up


def normalize(x, eps):
    return x / np.sqrt(np.mean(x * x, axis=-1, keepdims=True) + eps)


def scales(x, limit, groups=1, power_of_two=False, least=0.0):
    """The scales of float32 rows, in float32; one for all if `groups` is None."""
    x = np.abs(x.astype(np.float32))
    if groups is None:
        amax = x.max(initial=0).reshape(1)
    else:
        amax = x.reshape(*x.shape[:-1], groups, -1).max(axis=-1)
    amax = np.maximum(amax, np.float32(least))
    result = np.maximum(amax / np.float32(limit), np.float32(2.0**-126))
    if power_of_two:
        fraction, exponent = np.frexp(result.astype(np.float64))
        ceiling = np.ldexp(1.0, exponent - (fraction == 0.5))
        finite = np.isfinite(result)
        result = np.where(finite, ceiling, result).astype(np.float32)
    return np.where(amax == 0, np.float32(1), result)


def repeat_scales(scale, x):
    """As many as the elements of `x`."""
    if scale.ndim == 1:
        return scale
    return np.repeat(scale, x.shape[-1] // scale.shape[-1], axis=-1)


def rms_norm(x, weight=None, eps=1e-6, offset=0.0):
    result = normalize(x, eps)
    return result if weight is None else result * (offset + weight)
