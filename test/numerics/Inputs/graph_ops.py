"""What the ops of random graphs compute, in NumPy, and how far off they may be."""

import math

import numpy as np

import reference

# What a rounding, or a function that is not exact, may be off by.
ERRORS = {"f64": 2.0**-52, "f32": 2.0**-21, "f16": 2.0**-10, "bf16": 2.0**-7}
LARGEST = 16
# The part of a row's largest element that errors may make.
LARGEST_ERROR = 0.05

_erf = np.frompyfunc(math.erf, 1, 1)


def max_rows(x, function):
    return function(x.reshape(-1, x.shape[-1]), axis=0)


UNARY = {
    "math.tanh": np.tanh,
    "math.erf": lambda x: _erf(x).astype(np.float64),
    "math.sin": np.sin,
    "math.cos": np.cos,
    "math.absf": np.abs,
    "math.exp": np.exp,
    "math.log": np.log,
    "math.sqrt": np.sqrt,
    "math.rsqrt": lambda x: 1 / np.sqrt(x),
    "arith.negf": np.negative,
}
BINARY = {
    "arith.addf": np.add,
    "arith.subf": np.subtract,
    "arith.mulf": np.multiply,
    "arith.divf": np.divide,
    "arith.maximumf": np.maximum,
    "arith.minimumf": np.minimum,
}
REDUCE = {"add": np.sum, "max": np.max, "min": np.min}
COMPARE = {
    "olt": np.less,
    "ogt": np.greater,
    "ole": np.less_equal,
    "oge": np.greater_equal,
    "slt": np.less,
    "sge": np.greater_equal,
    "eq": np.equal,
}


def _layer_norm(x, weight):
    centered = x - np.mean(x, axis=-1, keepdims=True)
    return reference.normalize(centered, 1e-5) * weight


def _softmax(x):
    shifted = np.exp(x - np.max(x, axis=-1, keepdims=True))
    return shifted / np.sum(shifted, axis=-1, keepdims=True)


def _log_softmax(x):
    shifted = x - np.max(x, axis=-1, keepdims=True)
    return shifted - np.log(np.sum(np.exp(shifted), axis=-1, keepdims=True))


def _rope(interleaved):
    def apply(x, cosine, sine):
        half = x.shape[-1] // 2
        if interleaved:
            a, b = x[..., 0::2], x[..., 1::2]
        else:
            a, b = x[..., :half], x[..., half:]
        pieces = a * cosine - b * sine, b * cosine + a * sine
        if interleaved:
            return np.stack(pieces, axis=-1).reshape(x.shape)
        return np.concatenate(pieces, axis=-1)

    return apply


# The formula and the text, as which the operands' names and types stand.
MODEL = {
    "rms_norm": (
        lambda x: reference.rms_norm(x, eps=1e-5),
        "tile.rms_norm {0} {{eps = 1.0e-5}} : {t0}",
    ),
    "rms_norm_weight": (
        lambda x, w: reference.rms_norm(x, w, eps=1e-5),
        "tile.rms_norm {0}, {1} casting(gemma) {{eps = 1.0e-5}} : {t0}, {t1}",
    ),
    "layer_norm": (
        _layer_norm,
        "tile.layer_norm {0}, {1} {{eps = 1.0e-5}} : {t0}, {t1}",
    ),
    "add_bias": (np.add, "tile.add_bias {0}, {1} : {t0}, {t1}"),
    "softmax": (_softmax, "tile.softmax {0} : {t0}"),
    "log_softmax": (_log_softmax, "tile.log_softmax {0} : {t0}"),
    "silu": (lambda x: x * reference.sigmoid(x), "tile.silu {0} : {t0}"),
    "gelu": (
        lambda x: reference.geglu_erf(x, np.ones_like(x)),
        "tile.gelu {0} : {t0}",
    ),
    "swiglu": (
        lambda x, y: x * reference.sigmoid(x) * y,
        "tile.swiglu {0}, {1} : {t0}",
    ),
    "geglu": (reference.geglu_tanh, "tile.geglu {0}, {1} form(tanh) : {t0}"),
    "rope": (_rope(False), "tile.rope {0}, {1}, {2} : {t0}, {t1}"),
    "rope_interleaved": (
        _rope(True),
        "tile.rope {0}, {1}, {2} interleaved : {t0}, {t1}",
    ),
}


def to_bf16(numbers):
    bits = numbers.astype(np.float32).view(np.uint32)
    return (bits & np.uint32(0xFFFF0000)).view(np.float32).astype(np.float64)
