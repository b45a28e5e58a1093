# Part of Bastile, under the MIT License. See LICENSE.
"""The ops of random graphs, computed on variables of `tape`."""

import numpy as np

import tape

UNARY = {
    "math.tanh": tape.tanh,
    "math.erf": tape.erf,
    "math.sin": tape.sin,
    "math.cos": tape.cos,
    "math.absf": tape.absolute,
    "math.exp": tape.exp,
    "math.log": tape.log,
    "math.sqrt": tape.sqrt,
    "math.rsqrt": tape.rsqrt,
    "arith.negf": lambda x: -x,
    "tile.stop_gradient": tape.stop_gradient,
}
BINARY = {
    "arith.addf": lambda x, y: x + y,
    "arith.subf": lambda x, y: x - y,
    "arith.mulf": lambda x, y: x * y,
    "arith.divf": lambda x, y: x / y,
    "arith.maximumf": tape.largest,
    "arith.minimumf": lambda x, y: tape.largest(x, y, -1),
    "math.powf": tape.power,
}
COMPARE = {
    "olt": np.less,
    "ogt": np.greater,
    "ole": np.less_equal,
    "oge": np.greater_equal,
    "oeq": np.equal,
    "une": np.not_equal,
    "slt": np.less,
    "sge": np.greater_equal,
    "eq": np.equal,
}


def reduce(kind, x, axes):
    if kind == "add":
        return tape.total(x, axes)
    return tape.extreme(x, axes, 1 if kind == "max" else -1)


def reduce_groups(kind, x, groups):
    *rows, length = x.shape
    parts = tape.reshape(x, (*rows, groups, length // groups))
    return tape.reshape(reduce(kind, parts, (-1,)), (*x.shape[:-1], groups))


def reduce_rows(kind, x):
    rows = reduce(kind, x, tuple(range(len(x.shape) - 1)))
    return tape.reshape(rows, x.shape[-1:])


def repeat(x, shape):
    """Repeats a variable or a condition as tile.broadcast does."""
    length = x.shape[-1]
    if length in (1, shape[-1]):
        return _spread(x, shape)
    # Each element of a group statistic is repeated over its columns.
    reshape = tape.reshape if isinstance(x, tape.Variable) else _reshape
    x = reshape(x, (*x.shape, 1))
    x = _spread(x, (*shape[:-1], length, shape[-1] // length))
    return reshape(x, shape)


def _reshape(condition, shape):
    return condition.map(lambda array: array.reshape(shape))


def _spread(x, shape):
    if isinstance(x, tape.Variable):
        return tape.broadcast(x, shape)
    return x.map(lambda array: np.broadcast_to(array, shape))


def _normalize(x):
    return x * tape.rsqrt(tape.mean(x * x) + 1e-5)


def _layer_norm(x, weight):
    return _normalize(x - tape.mean(x)) * weight


def _powers(x):
    """Powers of e less the maximum, which the derivative takes for a constant."""
    shifted = x - tape.stop_gradient(tape.extreme(x, (-1,), 1))
    powers = tape.exp(shifted)
    return shifted, powers, tape.total(powers, (-1,))


def _softmax(x):
    _, powers, total = _powers(x)
    return powers / total


def _log_softmax(x):
    shifted, _, total = _powers(x)
    return shifted - tape.log(total)


def _silu(x):
    return x / (tape.exp(-x) + 1.0)


def _gelu(x):
    return x * tape.one_plus_erf(x * 0.7071067811865476) * 0.5


def _gelu_tanh(x):
    inner = (x + x * x * x * 0.044715) * 0.7978845608028654
    return x * (tape.tanh(inner) + 1.0) * 0.5


def _rope(interleaved):
    def apply(x, cosine, sine):
        half = x.shape[-1] // 2
        if interleaved:
            a, b = tape.piece(x, 0, 2, half), tape.piece(x, 1, 2, half)
        else:
            a, b = tape.piece(x, 0, 1, half), tape.piece(x, half, 1, half)
        return tape.join([a * cosine - b * sine, b * cosine + a * sine], interleaved)

    return apply


# The formula and the text, as which the operands' names and types stand.
MODEL = {
    "rms_norm": (_normalize, "tile.rms_norm {0} {{eps = 1.0e-5}} : {t0}"),
    "rms_norm_weight": (
        lambda x, weight: _normalize(x) * weight,
        "tile.rms_norm {0}, {1} casting(gemma) {{eps = 1.0e-5}} : {t0}, {t1}",
    ),
    "layer_norm": (
        _layer_norm,
        "tile.layer_norm {0}, {1} {{eps = 1.0e-5}} : {t0}, {t1}",
    ),
    "add_bias": (
        lambda x, bias: x + bias,
        "tile.add_bias {0}, {1} : {t0}, {t1}",
    ),
    "softmax": (_softmax, "tile.softmax {0} : {t0}"),
    "log_softmax": (_log_softmax, "tile.log_softmax {0} : {t0}"),
    "silu": (_silu, "tile.silu {0} : {t0}"),
    "gelu": (_gelu, "tile.gelu {0} : {t0}"),
    "swiglu": (lambda x, y: _silu(x) * y, "tile.swiglu {0}, {1} : {t0}"),
    "geglu": (
        lambda x, y: _gelu_tanh(x) * y,
        "tile.geglu {0}, {1} form(tanh) : {t0}",
    ),
    "rope": (_rope(False), "tile.rope {0}, {1}, {2} : {t0}, {t1}"),
    "rope_interleaved": (
        _rope(True),
        "tile.rope {0}, {1}, {2} interleaved : {t0}, {t1}",
    ),
}
