# Part of Bastile, under the MIT License. See LICENSE.
"""What symbolic tensors meet of other libraries: functions, numbers, tensors with values."""

import numbers
import operator

#: Names that `bastile.functions` has, which messages name in the place of others'.
COUNTERPARTS: set[str] = set()


def is_number(value) -> bool:
    return isinstance(value, numbers.Real)


def is_tensor(value) -> bool:
    return hasattr(value, "__array__") or hasattr(value, "__dlpack__")


def advise(library, name) -> str:
    """What to say of a function of a library that is called on a symbol."""
    advice = (
        f"use bastile.functions.{name}"
        if name in COUNTERPARTS
        else "bastile.functions has what can be"
    )
    return (
        f"{library}'s '{name}' cannot be applied to symbolic tensors, nor they to "
        f"tensors with values, which must be arguments of the function; {advice}"
    )


#: The operators that NumPy's functions of its numbers and a symbol stand for.
UFUNC_OPERATORS = {
    "add": operator.add,
    "subtract": operator.sub,
    "multiply": operator.mul,
    "divide": operator.truediv,
    "floor_divide": operator.floordiv,
    "remainder": operator.mod,
    "left_shift": operator.lshift,
    "right_shift": operator.rshift,
    "bitwise_and": operator.and_,
    "bitwise_or": operator.or_,
    "bitwise_xor": operator.xor,
    "true_divide": operator.truediv,
    "power": operator.pow,
    "less": operator.lt,
    "less_equal": operator.le,
    "greater": operator.gt,
    "greater_equal": operator.ge,
    "equal": operator.eq,
    "not_equal": operator.ne,
}
