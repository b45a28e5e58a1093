# Part of Bastile, under the MIT License. See LICENSE.
"""PyTorch's functions and methods that functions of scores may call, by name, as
functions of symbols and numbers."""

import operator

import torch
from bastile import functions
from bastile._compiler.symbols import Symbol


def _is_condition(x):
    return x.dtype == "bool" if isinstance(x, Symbol) else isinstance(x, bool)


def _number(x):
    """Conditions as 0 and 1, and anything else itself."""
    if not _is_condition(x):
        return x
    return x.to("int32") if isinstance(x, Symbol) else int(x)


def _of_numbers(function):
    return lambda *operands: function(*map(_number, operands))


def _unary(function):
    """A function of floats."""

    def call(x):
        x = _number(x)
        return function(x.to("float32") if x.dtype.startswith("int") else x)

    return call


def _both(x, y):
    for one, other in ((x, y), (y, x)):
        if isinstance(one, bool):
            return other if one else False
    return x & y


def _either(x, y):
    for one, other in ((x, y), (y, x)):
        if isinstance(one, bool):
            return True if one else other
    return x | y


def _not(x):
    return (not x) if isinstance(x, bool) else ~x


def _different(x, y):
    for one, other in ((x, y), (y, x)):
        if isinstance(one, bool):
            return _not(other) if one else other
    return x ^ y


def _equal(x, y):
    if _is_condition(x) and _is_condition(y):
        return _not(_different(x, y))
    return _number(x) == _number(y)


def _where(condition, x, y):
    if isinstance(condition, bool):
        return x if condition else y
    if _is_condition(x) and _is_condition(y):
        return _either(_both(condition, x), _both(_not(condition), y))
    return functions.where(condition, _number(x), _number(y))


def _divide(x, y, *, rounding_mode=None):
    if rounding_mode not in (None, "floor"):
        raise ValueError(f"rounding_mode={rounding_mode!r}")
    divide = operator.truediv if rounding_mode is None else operator.floordiv
    return divide(_number(x), _number(y))


def _to(x, dtype=None, *, device=None, copy=False, non_blocking=False):
    if not isinstance(dtype, torch.dtype):
        return x
    if dtype == torch.bool:
        return x if _is_condition(x) else x != 0
    return x.to(dtype) if isinstance(x, Symbol) else _number(x)


def _cast(dtype):
    return lambda x: _to(x, dtype)


def _filled(x, condition, value):
    return _where(condition, value, x)


def _constant(number):
    """A tensor of one number: nothing else has the shape ()."""

    def make(x, size=(), *, dtype=None, device=None):
        if tuple(size):
            raise ValueError(f"a shape {tuple(size)}")
        return bool(number) if dtype == torch.bool else number

    return make


def _clamp(x, min=None, max=None):
    return functions.clamp(x, _number(min), _number(max))


def _same(x, *_, **__):
    return x


def _int_abs(x):
    return abs(_number(x))


_UNARY = (
    "ceil cos erf erfc exp exp2 expm1 floor log log1p log2 reciprocal relu round rsqrt "
    "sigmoid silu sin softplus sqrt tanh"
).split()
_ARITHMETIC = {
    "add": operator.add,
    "eq": _equal,
    "floor_divide": operator.floordiv,
    "ge": operator.ge,
    "gt": operator.gt,
    "le": operator.le,
    "lt": operator.lt,
    "maximum": functions.maximum,
    "minimum": functions.minimum,
    "mul": operator.mul,
    "neg": operator.neg,
    "pow": operator.pow,
    "remainder": operator.mod,
    "square": functions.square,
    "sub": operator.sub,
}
_CHOICES = {
    "clamp": _clamp,
    "logical_and": _both,
    "logical_not": _not,
    "logical_or": _either,
    "logical_xor": _different,
    "masked_fill": _filled,
    "ne": lambda x, y: _not(_equal(x, y)),
    "where": _where,
}
_CASTS = {
    "bool": torch.bool,
    "bfloat16": torch.bfloat16,
    "double": torch.float64,
    "float": torch.float32,
    "half": torch.float16,
    "int": torch.int32,
    "long": torch.int64,
}
#: Other names of the same.
_ALIASES = {
    "absolute": "abs",
    "and": "logical_and",
    "bitwise_and": "logical_and",
    "bitwise_not": "logical_not",
    "bitwise_or": "logical_or",
    "bitwise_xor": "logical_xor",
    "clip": "clamp",
    "div": "divide",
    "floordiv": "floor_divide",
    "greater": "gt",
    "greater_equal": "ge",
    "invert": "logical_not",
    "less": "lt",
    "less_equal": "le",
    "max": "maximum",
    "min": "minimum",
    "mod": "remainder",
    "multiply": "mul",
    "negative": "neg",
    "not_equal": "ne",
    "or": "logical_or",
    "subtract": "sub",
    "true_divide": "divide",
    "truediv": "divide",
    "type": "to",
    "xor": "logical_xor",
}

CALLS = {name: _unary(getattr(functions, name)) for name in _UNARY}
CALLS |= {name: _of_numbers(function) for name, function in _ARITHMETIC.items()}
CALLS |= _CHOICES
CALLS |= {"abs": _int_abs, "divide": _divide}
#: What messages offer.
NAMES = tuple(sorted(CALLS))
CALLS |= {name: _cast(dtype) for name, dtype in _CASTS.items()}
CALLS |= {"new_ones": _constant(1), "new_zeros": _constant(0), "to": _to}
CALLS |= {"ones_like": _constant(1), "zeros_like": _constant(0), "pos": _same}
CALLS |= {"clone": _same, "contiguous": _same, "detach": functions.stop_gradient}
CALLS |= {alias: CALLS[name] for alias, name in _ALIASES.items()}
