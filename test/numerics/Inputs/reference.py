# Part of Bastile, under the MIT License. See LICENSE.
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


def scales(x, limit, groups=1, power_of_two=False, least=0.0, band=1):
    """The scales of float32 rows, or bands of rows, in float32; one for all if
    `groups` is None."""
    x = np.abs(x.astype(np.float32))
    if groups is None:
        amax = x.max(initial=0).reshape(1)
    else:
        amax = x.reshape(*x.shape[:-1], groups, -1).max(axis=-1)
        amax = np.maximum.reduceat(amax, range(0, len(x), band), axis=0)
    amax = np.maximum(amax, np.float32(least))
    result = np.maximum(amax / np.float32(limit), np.float32(2.0**-126))
    if power_of_two:
        fraction, exponent = np.frexp(result.astype(np.float64))
        ceiling = np.ldexp(1.0, exponent - (fraction == 0.5))
        finite = np.isfinite(result)
        result = np.where(finite, ceiling, result).astype(np.float32)
    return np.where(amax == 0, np.float32(1), result)


def repeat_scales(scale, x, band=1):
    """The scale of each element of `x`."""
    if scale.ndim == 1:
        return scale
    scale = np.repeat(scale, band, axis=0)[: len(x)]
    return np.repeat(scale, x.shape[-1] // scale.shape[-1], axis=-1)


def rms_norm(x, weight=None, bias=0.0, eps=1e-6, offset=0.0):
    result = normalize(x, eps)
    return (result if weight is None else result * (offset + weight)) + bias


def gelu_erf(x):
    return geglu_erf(x, 1.0)


def gelu_tanh(x):
    return geglu_tanh(x, 1.0)


def silu(x):
    return x * sigmoid(x)


def swiglu(gate, up, gate_scale=1.0, output_scale=1.0):
    return output_scale * silu(gate_scale * gate) * up


def reglu(gate, up):
    return np.maximum(gate, 0) * up


def relu_squared(x):
    return np.maximum(x, 0) * x


def add_bias(x, bias):
    return x + bias


def add_rms_norm(x, residual, weight, rounded, **arguments):
    """`rounded` rounds to the type of x, as the next residual is."""
    sum = rounded(x + residual)
    return rms_norm(sum, weight, **arguments), sum


def layer_norm(x, weight=1.0, bias=0.0, eps=1e-5):
    centered = x - np.mean(x, axis=-1, keepdims=True)
    return normalize(centered, eps) * weight + bias


def log_sum_exp(x):
    # The maximum is not subtracted, as nothing overflows in these tests.
    return np.log(np.sum(np.exp(x), axis=-1, keepdims=True))


def softmax(x):
    return np.exp(x - log_sum_exp(x))


def log_softmax(x):
    return x - log_sum_exp(x)


def split(x, interleaved=False):
    half = x.shape[-1] // 2
    if interleaved:
        return x[..., 0::2], x[..., 1::2]
    return x[..., :half], x[..., half:]


def split_gate(gate, interleaved=False):
    """A gate whose two inputs are the pieces of one tensor."""

    def apply(x, bias=None, rounded=None):
        biased = x if bias is None else rounded(x + bias)
        return gate(*split(biased, interleaved))

    return apply


def join(low, high, interleaved=False):
    if interleaved:
        pairs = np.stack([low, high], axis=-1)
        return pairs.reshape(*low.shape[:-1], -1)
    return np.concatenate([low, high], axis=-1)


def rope(x, cosine, sine, rotary=None, interleaved=False):
    rotary = rotary or x.shape[-1]
    a, b = split(x[..., :rotary], interleaved)
    if cosine.shape[-1] == rotary:
        (cos_a, cos_b), (sin_a, sin_b) = (
            split(angles, interleaved) for angles in (cosine, sine)
        )
    else:
        cos_a = cos_b = cosine
        sin_a = sin_b = sine
    rotated = join(a * cos_a - b * sin_a, b * cos_b + a * sin_b, interleaved)
    return np.concatenate([rotated, x[..., rotary:]], axis=-1)
