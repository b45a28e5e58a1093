# Part of Bastile, under the MIT License. See LICENSE.
"""The gradients of the model ops in float64, derived by hand.

Each function takes the gradient of the result and the op's operands, and
returns for each operand a pair: its gradient, and the sum of the absolute
values of the gradient's terms. Where terms cancel, an error is fairly measured
against this sum.
"""

import math

import numpy as np

import reference
from reference import sigmoid


def _row_sum(x):
    return np.sum(x, axis=-1, keepdims=True)


def _row_mean(x):
    return np.mean(x, axis=-1, keepdims=True)


def over_rows(term):
    """The gradient of a row vector, from one term for each of its uses."""
    axes = tuple(range(term.ndim - 1))
    return np.sum(term, axis=axes), np.sum(np.abs(term), axis=axes)


# Activations: the value, the derivative and the size of the derivative's terms.


def _relu(x):
    return np.maximum(x, 0), (x > 0) * 1.0, 1.0


def _scaled_silu(x, alpha=1.0):
    s = sigmoid(alpha * x)
    rest = alpha * x * s * sigmoid(-alpha * x)
    return x * s, s + rest, s + np.abs(rest)


def _gelu_erf(x):
    value = reference.gelu_erf(x)
    normal = 0.5 * reference._map_rows(math.erfc, -x / math.sqrt(2))
    density = np.exp(-x * x / 2) / math.sqrt(2 * math.pi)
    return value, normal + x * density, normal + np.abs(x * density)


def _gelu_tanh(x):
    scale = math.sqrt(2 / math.pi)
    u = 2 * scale * (x + 0.044715 * x**3)
    slope = 2 * scale * (1 + 3 * 0.044715 * x * x)
    s = sigmoid(u)
    rest = x * s * sigmoid(-u) * slope
    return x * s, s + rest, s + np.abs(rest)


def _gate(activation):
    def backward(dy, gate, up):
        value, derivative, size = activation(gate)
        return {
            "gate": (dy * up * derivative, np.abs(dy * up) * size),
            "up": (dy * value, np.abs(dy * value)),
        }

    return backward


def _activate(activation):
    def backward(dy, x):
        _, derivative, size = activation(x)
        return {"x": (dy * derivative, np.abs(dy) * size)}

    return backward


reglu = _gate(_relu)
geglu_erf = _gate(_gelu_erf)
geglu_tanh = _gate(_gelu_tanh)
gelu_erf = _activate(_gelu_erf)
gelu_tanh = _activate(_gelu_tanh)
silu = _activate(_scaled_silu)


def relu_squared(dy, x):
    result = 2 * dy * np.maximum(x, 0)
    return {"x": (result, np.abs(result))}


def swiglu(dy, gate, up, gate_scale=1.0, output_scale=1.0):
    result = _gate(_scaled_silu)(output_scale * dy, gate_scale * gate, up)
    gradient, size = result["gate"]
    result["gate"] = gate_scale * gradient, abs(gate_scale) * size
    return result


def geglu(dy, gate, up, alpha=1.702, limit=7.0):
    limit = math.inf if limit is None else limit
    value, derivative, size = _scaled_silu(np.minimum(gate, limit), alpha)
    # At the limit itself, the derivative is that within the limits, as in PyTorch.
    factor = dy * (np.clip(up, -limit, limit) + 1)
    inside, up_inside = gate <= limit, np.abs(up) <= limit
    up_size = np.abs(dy) * (np.minimum(np.abs(up), limit) + 1)
    return {
        "gate": (factor * derivative * inside, up_size * size),
        "up": (dy * value * up_inside, np.abs(dy * value)),
    }


def add_bias(dy, x, bias):
    return {"x": (dy, np.abs(dy)), "bias": over_rows(dy)}


def _normalize(dy, x, eps):
    """The gradient of x / sqrt(mean(x^2) + eps), and this value itself."""
    rstd = 1 / np.sqrt(_row_mean(x * x) + eps)
    normalized = x * rstd
    terms = dy * normalized
    gradient = rstd * (dy - normalized * _row_mean(terms))
    size = np.abs(dy) + np.abs(normalized) * _row_mean(np.abs(terms))
    return gradient, rstd * size, normalized


def rms_norm(dy, x, weight=None, bias=None, eps=1e-6, offset=0.0):
    inner = dy if weight is None else dy * (offset + weight)
    gradient, size, normalized = _normalize(inner, x, eps)
    result = {"x": (gradient, size)}
    if weight is not None:
        result["weight"] = over_rows(dy * normalized)
    if bias is not None:
        result["bias"] = over_rows(dy)
    return result


def add_rms_norm(dy, dsum, x, residual, weight, rounded, **given):
    result = rms_norm(dy, rounded(x + residual), weight, **given)
    gradient, size = result["x"]
    result["x"] = gradient + dsum, size + np.abs(dsum)
    result["residual"] = result["x"]
    return result


def layer_norm(dy, x, weight=None, bias=None, eps=1e-5):
    inner = dy if weight is None else dy * weight
    mean = _row_mean(x)
    gradient, size, normalized = _normalize(inner, x - mean, eps)
    rstd = 1 / np.sqrt(_row_mean((x - mean) ** 2) + eps)
    # The digits that x - mean has lost.
    lost = (np.abs(x) + np.abs(mean)) * rstd
    size = size + rstd * (
        _row_mean(np.abs(inner))
        + lost * _row_mean(np.abs(inner * normalized))
        + np.abs(normalized) * _row_mean(np.abs(inner) * lost)
    )
    result = {"x": (gradient - _row_mean(gradient), size)}
    if weight is not None:
        result["weight"] = (
            over_rows(dy * normalized)[0],
            over_rows(np.abs(dy) * lost)[1],
        )
    if bias is not None:
        result["bias"] = over_rows(dy)
    return result


def softmax(dy, x):
    y = reference.softmax(x)
    return {
        "x": (
            y * (dy - _row_sum(dy * y)),
            y * (np.abs(dy) + _row_sum(np.abs(dy) * y)),
        )
    }


def log_softmax(dy, x):
    y = reference.softmax(x)
    return {
        "x": (
            dy - y * _row_sum(dy),
            np.abs(dy) + y * _row_sum(np.abs(dy)),
        )
    }


def split_gate(gate_backward, interleaved=False):
    """The gradient of a gate whose two inputs are the pieces of one tensor."""

    def backward(dy, x, bias=None, rounded=None):
        biased = x if bias is None else rounded(x + bias)
        pieces = gate_backward(dy, *reference.split(biased, interleaved))
        gradient, size = (
            reference.join(gate, up, interleaved)
            for gate, up in zip(pieces["gate"], pieces["up"])
        )
        result = {"x": (gradient, size)}
        if bias is not None:
            result["bias"] = over_rows(gradient)[0], over_rows(size)[1]
        return result

    return backward


def rope(dy, cosine, sine, rotary=None, interleaved=False):
    """The gradient of the input: a rotation back."""
    rotary = rotary or dy.shape[-1]
    if cosine.shape[-1] == rotary:
        cosine_parts = reference.split(cosine, interleaved)
        sine_parts = reference.split(sine, interleaved)
    else:
        cosine_parts, sine_parts = (cosine,) * 2, (sine,) * 2
    a, b = reference.split(dy[..., :rotary], interleaved)
    rest = dy[..., rotary:]

    def combine(a, b, cos_a, cos_b, sin_a, sin_b, rest):
        rotated = reference.join(
            a * cos_a + b * sin_b, b * cos_b - a * sin_a, interleaved
        )
        return np.concatenate([rotated, rest], axis=-1)

    parts = (a, b, *cosine_parts, *sine_parts, rest)
    gradient = combine(*parts)
    magnitudes = [np.abs(part) for part in parts]
    # The difference becomes a sum.
    magnitudes[4] = -magnitudes[4]
    return gradient, combine(*magnitudes)
