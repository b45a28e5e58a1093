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


def _truth(x):
    """Whether a number is not 0; conditions themselves."""
    if _is_condition(x):
        return x
    return x != 0 if isinstance(x, Symbol) else bool(x)


def _of_numbers(function):
    return lambda *operands: function(*map(_number, operands))


def _of_truths(function):
    return lambda *operands: function(*map(_truth, operands))


def _of_each(of_conditions, of_numbers):
    """A function of two operands that makes a condition where both are conditions."""

    def call(x, y):
        if _is_condition(x) and _is_condition(y):
            return of_conditions(x, y)
        return of_numbers(_number(x), _number(y))

    return call


def _swapped(function):
    return lambda x, y: function(y, x)


def _unary(function):
    """A function of floats."""

    def call(x, *, inplace=False):
        if inplace:
            raise ValueError("inplace=True")
        x = _number(x)
        return function(x.to("float32") if x.dtype.startswith("int") else x)

    return call


def wrap(x, dtype):
    """An int32 symbol as the number of ``dtype``, narrower integers, that has its lower
    bits."""
    bits = torch.iinfo(dtype).bits
    if not dtype.is_signed:
        return x & (2**bits - 1)
    return (x << 32 - bits) >> 32 - bits


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


def _pow(x, y):
    is_float = isinstance(x, float) or (isinstance(x, Symbol) and "float" in x.dtype)
    if is_float and isinstance(y, Symbol) and y.dtype.startswith("int"):
        y = y.to("float32")
    return x**y


def _to(x, dtype=None, *, device=None, copy=False, non_blocking=False):
    if isinstance(dtype, Symbol):
        dtype = getattr(torch, dtype.dtype)
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
        return _full_like(x, number, dtype=dtype)

    return make


def _full_like(x, number, *, dtype=None, device=None):
    if dtype is None and isinstance(x, Symbol):
        dtype = getattr(torch, x.dtype)
    if dtype is None or isinstance(number, Symbol):
        return number
    if dtype == torch.bool:
        return bool(number)
    return float(number) if dtype.is_floating_point else int(number)


def _clamp(x, min=None, max=None):
    return functions.clamp(x, _number(min), _number(max))


def _sign(x):
    x = _number(x)
    return (x > 0).to(x.dtype) - (x < 0).to(x.dtype)


def _gelu(x, *, approximate="none"):
    return functions.gelu(_number(x), approximate=approximate)


def _log_sigmoid(x):
    return -functions.softplus(-_number(x))


def _same(x, *_, **__):
    return x


def _int_abs(x):
    return abs(_number(x))


_UNARY = (
    "ceil cos erf erfc exp exp2 expm1 floor log log1p log2 reciprocal relu round rsqrt "
    "sigmoid silu sin softplus sqrt tanh"
).split()
_ARITHMETIC = {
    "eq": _equal,
    "floor_divide": operator.floordiv,
    "ge": operator.ge,
    "gt": operator.gt,
    "le": operator.le,
    "lt": operator.lt,
    "lshift": operator.lshift,
    "neg": operator.neg,
    "pow": _pow,
    "remainder": operator.mod,
    "rshift": operator.rshift,
    "square": functions.square,
    "sub": operator.sub,
}
#: Of two conditions, these make a condition.
_OF_EACH = {
    "add": _of_each(_either, operator.add),
    "bitwise_and": _of_each(_both, operator.and_),
    "bitwise_or": _of_each(_either, operator.or_),
    "bitwise_xor": _of_each(_different, operator.xor),
    "maximum": _of_each(_either, functions.maximum),
    "minimum": _of_each(_both, functions.minimum),
    "mul": _of_each(_both, operator.mul),
}
_CHOICES = {
    "bitwise_not": _not,
    "clamp": _clamp,
    "logical_and": _of_truths(_both),
    "logical_not": _of_truths(_not),
    "logical_or": _of_truths(_either),
    "logical_xor": _of_truths(_different),
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
    "and": "bitwise_and",
    "bitwise_left_shift": "lshift",
    "bitwise_right_shift": "rshift",
    "clip": "clamp",
    "div": "divide",
    "floordiv": "floor_divide",
    "greater": "gt",
    "greater_equal": "ge",
    "invert": "bitwise_not",
    "less": "lt",
    "less_equal": "le",
    "max": "maximum",
    "min": "minimum",
    "mod": "remainder",
    "multiply": "mul",
    "negative": "neg",
    "not_equal": "ne",
    "or": "bitwise_or",
    "subtract": "sub",
    "true_divide": "divide",
    "truediv": "divide",
    "type": "to",
    "type_as": "to",
    "xor": "bitwise_xor",
}

CALLS = {name: _unary(getattr(functions, name)) for name in _UNARY}
CALLS |= {name: _of_numbers(function) for name, function in _ARITHMETIC.items()}
CALLS |= _OF_EACH | _CHOICES
CALLS |= {"abs": _int_abs, "divide": _divide, "full_like": _full_like}
CALLS |= {"gelu": _gelu, "log_sigmoid": _log_sigmoid, "sign": _sign}
#: What gives a number another type; results of all else have the type of operands.
CASTS = *_CASTS, "to", "type", "type_as"
#: What messages offer.
NAMES = tuple(sorted(CALLS))
CALLS |= {name: _cast(dtype) for name, dtype in _CASTS.items()}
CALLS |= {"new_ones": _constant(1), "new_zeros": _constant(0), "to": _to}
CALLS |= {"ones_like": _constant(1), "zeros_like": _constant(0), "pos": _same}
CALLS |= {"clone": _same, "contiguous": _same, "detach": functions.stop_gradient}
CALLS |= {alias: CALLS[name] for alias, name in _ALIASES.items()}
#: Operators of a number of Python and a captured tensor.
_SWAPPED = "div floordiv lshift mod pow rshift sub truediv".split()
CALLS |= {f"r{name}": _swapped(CALLS[name]) for name in _SWAPPED}


def compute(name, operands, named):
    """What PyTorch computes where a function of scores calls ``name``, by its name or as
    an operator."""
    if name.startswith("__"):
        return getattr(torch.Tensor, name)(*operands, **named)
    if name[0] == "r" and name[1:] in _SWAPPED:
        return compute(name[1:], reversed(operands), named)
    for place in (operator, torch, torch.Tensor, torch.nn.functional):
        function = getattr(place, name, None)
        # Some names are those of types as well, such as torch.float.
        if callable(function):
            return function(*operands, **named)
    # `and` and `or` are words of Python.
    return getattr(operator, f"{name}_")(*operands)
