# Part of Bastile, under the MIT License. See LICENSE.
"""Symbolic tensors, and the formulas that are made of them.

What a function does with a ``Symbol`` is written down op by op, in the graph of the
function that this thread traces (include/bastile/GraphBuilder.h).
"""

import numbers
from typing import TYPE_CHECKING, Any, NoReturn

from bastile import _bastile
from bastile._compiler import tensor_types, traced_graph
from bastile._compiler.foreign import (
    COUNTERPARTS,
    UFUNC_OPERATORS,
    advise,
    is_number,
    is_tensor,
)

_NO_NUMBER = (
    "a symbolic tensor is no number: functions of numbers, such as those of 'math', "
    "have counterparts in bastile.functions"
)


class Symbol:
    """A tensor of a function that is being traced: known by shape and type only.

    Formulas of symbols and numbers compute in float32 (float64 where an operand is
    float64) and round nothing; shapes broadcast as NumPy's do. A result of the
    function is rounded once, to the type of its first tensor.

    Where all operands are integers, ``+ - * // % & | ^ << >> ~``, comparisons, ``abs``
    and the functions that choose between values compute with integers, in the widest of
    their types, as in PyTorch: signed, and wrapping around. ``//`` rounds towards minus
    infinity, and ``%`` has the sign of the divisor; where the divisor is 0, both are 0.
    ``>>`` repeats the sign; a shift by more bits than there are, or by fewer than none,
    leaves 0 or -1. Beside floats, integers become floats, and ``/`` divides them as
    floats; other functions take them once they are converted.

    ``//`` and ``%`` of floats are PyTorch's ``floor_divide``, whose derivative is 0, and
    ``remainder``; on GPUs, where the quotient is below 2^24.
    """

    __slots__ = ("_factors", "_graph", "_id")

    def __init__(self, graph: _bastile.Graph, id: Any) -> None:
        self._graph = graph
        self._id = id
        #: Of a product of matrices, the arguments of `multiply`.
        self._factors: Any = None

    @property
    def shape(self) -> tuple[int | None, ...]:
        """The sizes, with ``None`` for those that are free in each call."""
        sizes, fixed, _ = self._graph.describe(self._id)
        return tuple(size if is_fixed else None for size, is_fixed in zip(sizes, fixed))

    @property
    def ndim(self) -> int:
        """The number of dimensions."""
        return len(self.shape)

    @property
    def dtype(self) -> str:
        """The element type by PyTorch's name, as in ``"bfloat16"``."""
        return tensor_types.TORCH_NAMES[self._graph.describe(self._id)[2]]

    def to(self, dtype: Any) -> "Symbol":
        """Rounds to ``dtype``. Formulas go on with the rounded numbers in their own
        precision; as a result of the function it has this type.

        Floats become integers by rounding towards zero; beyond the integers, the
        nearest one; NaN becomes 0. Integers lose high bits to become narrower.
        Conditions become 0 and 1.
        """
        element = tensor_types.element_type(dtype)
        return _make(
            self._graph,
            "to",
            lambda: self._graph.convert(self._id, element),
            [self],
        )

    astype = to

    @property
    def mT(self) -> "Symbol":  # noqa: N802 - PyTorch's name
        """The matrices, the last two dimensions, transposed: a factor of ``@``, which
        reads them as they are. The transposed matrices of a product are a product, and
        may be used anywhere; the number of its columns, the rows of the first factor,
        is part of the code then."""
        require_symbols("mT", [self])
        if self.ndim < 2:
            raise ValueError(f"mT: takes matrices, but got {self!r}")
        return Transposed(self)

    def __matmul__(self, other: Any) -> "Symbol":
        return multiply(self, other, (1, 0), "@")

    def __rmatmul__(self, other: Any) -> "Symbol":
        return multiply(other, self, (1, 0), "@")

    if TYPE_CHECKING:
        # Defined below, each from its spelling and its formula.
        def __add__(self, other: Any) -> "Symbol": ...
        def __radd__(self, other: Any) -> "Symbol": ...
        def __sub__(self, other: Any) -> "Symbol": ...
        def __rsub__(self, other: Any) -> "Symbol": ...
        def __mul__(self, other: Any) -> "Symbol": ...
        def __rmul__(self, other: Any) -> "Symbol": ...
        def __truediv__(self, other: Any) -> "Symbol": ...
        def __rtruediv__(self, other: Any) -> "Symbol": ...
        def __floordiv__(self, other: Any) -> "Symbol": ...
        def __rfloordiv__(self, other: Any) -> "Symbol": ...
        def __mod__(self, other: Any) -> "Symbol": ...
        def __rmod__(self, other: Any) -> "Symbol": ...
        def __lshift__(self, other: Any) -> "Symbol": ...
        def __rlshift__(self, other: Any) -> "Symbol": ...
        def __rshift__(self, other: Any) -> "Symbol": ...
        def __rrshift__(self, other: Any) -> "Symbol": ...
        def __and__(self, other: Any) -> "Symbol": ...
        def __rand__(self, other: Any) -> "Symbol": ...
        def __or__(self, other: Any) -> "Symbol": ...
        def __ror__(self, other: Any) -> "Symbol": ...
        def __xor__(self, other: Any) -> "Symbol": ...
        def __rxor__(self, other: Any) -> "Symbol": ...
        def __lt__(self, other: Any) -> "Symbol": ...
        def __le__(self, other: Any) -> "Symbol": ...
        def __gt__(self, other: Any) -> "Symbol": ...
        def __ge__(self, other: Any) -> "Symbol": ...
        def __eq__(self, other: Any) -> "Symbol": ...  # type: ignore[override]
        def __ne__(self, other: Any) -> "Symbol": ...  # type: ignore[override]

    def __neg__(self) -> "Symbol":
        return apply("negate", self, name="-")

    def __pos__(self) -> "Symbol":
        return self

    def __abs__(self) -> "Symbol":
        return apply("abs", self)

    def __pow__(self, exponent: Any) -> "Symbol":
        if not is_number(exponent):
            return _operate("**", "power", self, exponent)
        return _power(self, exponent)

    def __rpow__(self, base: Any) -> "Symbol":
        return _operate("**", "power", base, self)

    def __invert__(self) -> "Symbol":
        return apply("opposite", self, name="~")

    # Comparing symbols makes a condition, so a dictionary tells them apart by identity.
    def __hash__(self) -> int:
        return object.__hash__(self)

    def __repr__(self) -> str:
        sizes = ", ".join("?" if size is None else str(size) for size in self.shape)
        return f"<symbolic tensor ({sizes}) of {self.dtype}>"

    def __bool__(self) -> NoReturn:
        raise TypeError(
            "a symbolic tensor is neither true nor false while a function is "
            "traced: choose between values by where(condition, a, b), and between "
            "conditions by &, | and ~ instead of 'and', 'or' and 'not'"
        )

    def __iter__(self) -> NoReturn:
        raise TypeError(
            "a symbolic tensor cannot be iterated over; split(x, pieces) takes its "
            "rows apart"
        )

    def __len__(self) -> NoReturn:
        raise TypeError(
            "a symbolic tensor has no length: the number of its rows is free; "
            "x.shape[-1] is the length of a row"
        )

    def __getitem__(self, key: Any) -> NoReturn:
        raise TypeError(
            "a symbolic tensor has no elements to index; split(x, pieces) takes its "
            "rows apart"
        )

    def __float__(self) -> NoReturn:
        raise TypeError(_NO_NUMBER)

    def __int__(self) -> NoReturn:
        raise TypeError(_NO_NUMBER)

    def __index__(self) -> NoReturn:
        raise TypeError(_NO_NUMBER)

    def __complex__(self) -> NoReturn:
        raise TypeError(_NO_NUMBER)

    def __getattr__(self, name: str) -> NoReturn:
        advice = ""
        if name in COUNTERPARTS:
            advice = f"; there is bastile.functions.{name}(x)"
        elif name in ("T", "t", "transpose", "permute"):
            advice = "; there is x.mT, for products"
        raise AttributeError(
            f"a symbolic tensor has no attribute '{name}'{advice}",
            name=name,
            obj=self,
        )

    @property
    def data_ptr(self) -> NoReturn:
        # Kernels ask a tensor for its address before anything else.
        raise TypeError(
            "a symbolic tensor has no values: kernels and bastile.ops cannot be "
            "called on it; in a function that is traced, the ops are those of "
            "bastile.functions.op"
        )

    def __array__(self, *_: Any, **__: Any) -> NoReturn:
        raise TypeError(
            "a symbolic tensor cannot become an array: NumPy's functions have "
            "counterparts in bastile.functions"
        )

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **_: Any) -> Any:
        # NumPy calls this where one of its numbers is the left operand.
        operation = UFUNC_OPERATORS.get(ufunc.__name__)
        if operation and method == "__call__" and len(inputs) == 2:
            left, right = (
                value.item() if is_number(value) else value for value in inputs
            )
            if isinstance(left, Symbol) or is_number(left):
                return operation(left, right)
        raise TypeError(advise("numpy", ufunc.__name__))

    def __array_function__(self, function: Any, *_: Any) -> NoReturn:
        raise TypeError(advise("numpy", function.__name__))

    @classmethod
    def __torch_function__(cls, function: Any, *_: Any) -> NoReturn:
        raise TypeError(advise("torch", getattr(function, "__name__", "?")))


class Transposed(Symbol):
    """The transposed matrices of ``symbol``. As a factor of a product they are read
    where they lie. As any other operand, those of a product are the product of its
    transposed factors, and others are refused: no kernel moves what is there."""

    __slots__ = ("_value", "symbol")

    def __init__(self, symbol: Symbol) -> None:
        self._graph = symbol._graph
        self._value: Symbol | None = None
        self.symbol: Symbol = symbol

    @property
    def _id(self) -> Any:
        if self._value is None:
            if self.symbol._factors is None:
                raise TypeError(
                    f"mT: only '@' takes the transposed {self.symbol!r}, as kernels "
                    "move no elements; make the transposed tensor an argument, or "
                    "transpose a product ahead of the formulas behind it, as in "
                    "exp((a @ b).mT)"
                )
            a, b, contract = self.symbol._factors
            self._value = multiply(b, a, contract[::-1], "mT")
        return self._value._id

    @property
    def shape(self) -> tuple[int | None, ...]:
        *batch, rows, columns = self.symbol.shape
        return (*batch, columns, rows)

    @property
    def dtype(self) -> str:
        return self.symbol.dtype

    @property
    def mT(self) -> Symbol:  # noqa: N802
        """The matrices as they were."""
        return self.symbol


# The spelling of each operator of two operands, and the formula for it.
_OPERATORS = {
    "add": ("+", "add"),
    "sub": ("-", "subtract"),
    "mul": ("*", "multiply"),
    "truediv": ("/", "divide"),
    "floordiv": ("//", "floorDivide"),
    "mod": ("%", "remainder"),
    "lshift": ("<<", "shiftLeft"),
    "rshift": (">>", "shiftRight"),
    "and": ("&", "both"),
    "or": ("|", "either"),
    "xor": ("^", "different"),
}
_COMPARISONS = {
    "lt": ("<", "less"),
    "le": ("<=", "lessEqual"),
    "gt": (">", "greater"),
    "ge": (">=", "greaterEqual"),
    "eq": ("==", "equal"),
    "ne": ("!=", "notEqual"),
}


def _define_operators():
    def define(method, spelling, formula, swap):
        def operate(self, other):
            operands = (other, self) if swap else (self, other)
            return _operate(spelling, formula, *operands)

        operate.__name__ = method
        operate.__qualname__ = f"Symbol.{method}"
        setattr(Symbol, method, operate)

    for name, (spelling, formula) in {**_OPERATORS, **_COMPARISONS}.items():
        define(f"__{name}__", spelling, formula, False)
        if name in _OPERATORS:
            define(f"__r{name}__", spelling, formula, True)


def _operate(spelling, formula, left, right):
    for value in (left, right):
        if not isinstance(value, Symbol) and not is_number(value):
            if is_tensor(value):
                return apply(formula, left, right, name=spelling)
            return NotImplemented
    divides = formula in ("floorDivide", "remainder")
    if divides and is_number(right) and right == 0 and left.dtype.startswith("int"):
        raise ZeroDivisionError(f"{spelling}: the divisor is 0")
    return apply(formula, left, right, name=spelling)


# Powers up to here are products.
_LARGEST_PRODUCT = 8


def _power(base, exponent):
    exponent = float(exponent)
    if not exponent.is_integer() or exponent < 1:
        _require_floats(base)
    if exponent == 0.5:
        return apply("sqrt", base, name="**")
    if exponent == -0.5:
        return apply("rsqrt", base, name="**")
    if exponent.is_integer() and 1 <= exponent <= _LARGEST_PRODUCT:
        return _repeat_product(base, int(exponent))
    if exponent == -1:
        return 1 / base
    # A reciprocal of products would have the derivative NaN at 0 and at infinity.
    return apply("power", base, exponent, name="**")


def _require_floats(base):
    if base.dtype.startswith("int"):
        raise ValueError(
            f"**: takes positive integers as exponents of integers; convert {base!r} "
            "to floats"
        )


def _repeat_product(base, exponent):
    if exponent == 1:
        return base * 1
    half = _repeat_product(base, exponent // 2) if exponent > 3 else base
    square = half * half
    return square * base if exponent % 2 else square


_define_operators()


def _graph_of(name, operands):
    """The graph being built, which all symbols among ``operands`` are of."""
    graph = traced_graph.current()
    if graph is None:
        raise TypeError(
            f"{name}: functions of symbolic tensors can only be called while "
            "bastile.compile traces a function"
        )
    for operand in operands:
        if isinstance(operand, Symbol) and operand._graph is not graph:
            raise ValueError(
                f"{name}: {operand!r} belongs to another function, traced before"
            )
    return graph


def _make(graph, name, build, operands) -> Any:
    """The symbol, or the list of symbols, of what ``build`` adds to the graph for
    ``operands``."""
    _graph_of(name, operands)
    try:
        made = build()
    except ValueError as error:
        raise ValueError(f"{name}: {error}") from None
    if isinstance(made, list):
        return [Symbol(graph, id) for id in made]
    return Symbol(graph, made)


def _number_of(graph, name, operand):
    if isinstance(operand, Symbol):
        return operand._id
    if isinstance(operand, numbers.Integral) and -(2**63) <= operand < 2**63:
        return graph.integer(int(operand))
    if is_number(operand):
        return graph.number(float(operand))
    if is_tensor(operand):
        raise TypeError(
            f"{name}: got a tensor with values, of type "
            f"{type(operand).__module__}.{type(operand).__qualname__}; make it an "
            "argument of the function"
        )
    raise TypeError(f"{name}: takes symbolic tensors and numbers, but got {operand!r}")


def apply(formula, *operands, name=None):
    """The symbol for a formula of symbols and numbers.

    ``name`` is what messages call it; by default the formula's own.
    """
    name = name or formula
    graph = _graph_of(name, operands)
    ids = [_number_of(graph, name, operand) for operand in operands]
    _fix_sizes(graph, ids)
    return _make(graph, name, lambda: graph.apply(formula, ids), operands)


def require_symbols(name, operands):
    """Checks that these are symbols, and returns the graph that they are of."""
    graph = _graph_of(name, operands)
    for operand in operands:
        if not isinstance(operand, Symbol):
            _number_of(graph, name, operand)
            raise TypeError(f"{name}: takes a symbolic tensor, but got {operand!r}")
    return graph


def reduce(formula, operand, groups, name):
    graph = require_symbols(name, [operand])
    return _make(
        graph,
        name,
        lambda: graph.reduce(formula, operand._id, groups),
        [operand],
    )


def number_columns(like, name):
    graph = require_symbols(name, [like])
    return _make(graph, name, lambda: graph.number_columns(like._id), [like])


def iota(like, dimensions, name):
    graph = require_symbols(name, [like])
    rank = like.ndim
    if isinstance(dimensions, int):
        dimensions = (dimensions,)
    places = [place + rank if place < 0 else place for place in dimensions]
    return _make(graph, name, lambda: graph.iota(like._id, places), [like])


def expand_as(operand, like, name):
    graph = require_symbols(name, [operand, like])
    ids = operand._id, like._id
    _fix_sizes(graph, ids)
    return _make(graph, name, lambda: graph.expand_as(*ids), [operand, like])


def repeat_columns(operand, count, name):
    graph = require_symbols(name, [operand])
    return _make(
        graph, name, lambda: graph.repeat_columns(operand._id, count), [operand]
    )


def _fix_columns(graph, factor, contract):
    """Raises `FreeSizes` where the columns of a product with this right factor, summed
    over dimension ``contract`` of its matrices, have a free size."""
    _require_fixed(graph.find_free_columns(factor._id, contract))


def _fix_sizes(graph, ids):
    """Raises `FreeSizes` where some operands of a formula have a free leading size, and
    others a fixed one."""
    _require_fixed(graph.find_free_sizes(ids))


def _require_fixed(places):
    if places:
        raise traced_graph.FreeSizes(places)


def multiply(a, b, contract, name):
    """The product of matrices; ``contract`` has the dimension, 0 or 1, of each
    operand's matrices that it sums over."""
    graph = require_symbols(name, [a, b])
    factors, places = [], []
    for factor, place in zip((a, b), contract):
        is_transposed = isinstance(factor, Transposed)
        factors.append(factor.symbol if is_transposed else factor)
        places.append(1 - place if is_transposed else place)
    ids = [factor._id for factor in factors]
    if factors[1].ndim == 2:
        _fix_columns(graph, factors[1], places[1])
    else:
        # Matrices of a batch are no weights: their sizes change from call to call.
        free = graph.find_free_columns(ids[1], places[1])
        traced_graph.add_free_columns(free)
    made = _make(graph, name, lambda: graph.multiply(*ids, *places), factors)
    made._factors = (*factors, tuple(places))
    return made


def split(operand, pieces, interleaved, name):
    graph = require_symbols(name, [operand])
    return _make(
        graph,
        name,
        lambda: graph.split(operand._id, pieces, interleaved),
        [operand],
    )


def join(pieces, interleaved, name):
    graph = require_symbols(name, pieces)
    ids = [piece._id for piece in pieces]
    _fix_sizes(graph, ids)
    return _make(graph, name, lambda: graph.join(ids, interleaved), pieces)


def finish(graph, name, results, places=()) -> str:
    """The module whose function returns these symbols. ``places`` has the number of the
    argument whose memory a result takes, or None."""
    _graph_of(name, results)
    try:
        return graph.finish([result._id for result in results], list(places))
    except ValueError as error:
        raise ValueError(f"{name}: {error}") from None


def apply_op(definition, operands, attributes, results):
    """The symbols of a dialect op's results; ``operands`` may be ``None``."""
    present = [operand for operand in operands if operand is not None]
    graph = require_symbols(definition.name, present)
    for number, place in definition.fixed:
        symbol = operands[number]
        if symbol is not None and symbol.ndim == 2:
            _fix_columns(graph, symbol, 1 - place)
    for group in definition.same_types:
        pairs = zip(definition.operands, operands)
        alike = [x for o, x in pairs if x is not None and o.name in group]
        _fix_sizes(graph, [x._id for x in alike])
    texts = definition.attribute_texts(attributes)
    ids = [None if operand is None else operand._id for operand in operands]
    described = ", ".join(
        f"{declared.name}: {_describe(operand)}"
        for declared, operand in zip(definition.operands, operands)
        if operand is not None
    )
    return _make(
        graph,
        f"{definition.name}({described})",
        lambda: graph.apply_op(definition.name, ids, texts, list(results)),
        present,
    )


def _describe(symbol):
    sizes, _, element = symbol._graph.describe(symbol._id)
    return f"{tuple(sizes)} of {tensor_types.TORCH_NAMES[element]}"
