# Part of Bastile, under the MIT License. See LICENSE.
"""Functions of symbolic tensors, for formulas that ``bastile.compile`` traces.

Each takes symbolic tensors and, where it has several operands, Python's numbers, and
returns a symbolic tensor. Nothing is computed: a kernel will compute it. Names and
meanings are PyTorch's where PyTorch has the function.

Operands may have any shapes that broadcast, as in NumPy. Formulas compute in float32,
or in float64 where an operand is float64, whatever types the tensors have, and are
rounded once, where the traced function returns (`Symbol.to` rounds before). What has a
meaning for integers computes with integers where all operands are (`Symbol` says how);
other functions take integers that `Symbol.to` converted.

Every function raises ``TypeError`` for operands of another kind and outside of a traced
function, and ``ValueError`` for shapes that do not fit.
"""

import inspect
import numbers
from collections.abc import Callable, Iterable
from typing import Any

from bastile._compiler import foreign, symbols
from bastile._compiler.definitions import definitions
from bastile._compiler.symbols import Symbol

__all__ = [
    "abs",
    "ceil",
    "clamp",
    "column_numbers",
    "concatenate",
    "cos",
    "dot",
    "dropout",
    "erf",
    "erfc",
    "exp",
    "exp2",
    "expand_as",
    "expm1",
    "floor",
    "gather",
    "gelu",
    "iota",
    "linear",
    "log",
    "log1p",
    "log2",
    "matmul",
    "max_of_rows",
    "maximum",
    "minimum",
    "op",
    "random_bits",
    "reciprocal",
    "relu",
    "repeat_interleave",
    "round",
    "row_max",
    "row_mean",
    "row_min",
    "row_sum",
    "rsqrt",
    "sigmoid",
    "silu",
    "sin",
    "softmax",
    "softplus",
    "split",
    "sqrt",
    "square",
    "stop_gradient",
    "sum_of_rows",
    "tanh",
    "uniform",
    "where",
]


def abs(x: Symbol) -> Symbol:
    """The absolute value, with the derivative 0 at 0."""
    return symbols.apply("abs", x)


def ceil(x: Symbol) -> Symbol:
    """The least integer that is not less; its derivative is 0."""
    return symbols.apply("ceil", x)


def cos(x: Symbol) -> Symbol:
    """The cosine of x, an angle in radians."""
    return symbols.apply("cos", x)


def erf(x: Symbol) -> Symbol:
    """The error function: the integral of 2 / sqrt(pi) exp(-t^2) from 0 to x."""
    return symbols.apply("erf", x)


def erfc(x: Symbol) -> Symbol:
    """1 - erf(x), also where that is tiny."""
    return symbols.apply("erfc", x)


def exp(x: Symbol) -> Symbol:
    """e to the power of x."""
    return symbols.apply("exp", x)


def exp2(x: Symbol) -> Symbol:
    """2 to the power of x."""
    return symbols.apply("exp2", x)


def expm1(x: Symbol) -> Symbol:
    """exp(x) - 1, also where that is tiny."""
    return symbols.apply("expm1", x)


def floor(x: Symbol) -> Symbol:
    """The greatest integer that is not greater; its derivative is 0."""
    return symbols.apply("floor", x)


def log(x: Symbol) -> Symbol:
    """The natural logarithm of x."""
    return symbols.apply("log", x)


def log1p(x: Symbol) -> Symbol:
    """log(1 + x), also where x is tiny."""
    return symbols.apply("log1p", x)


def log2(x: Symbol) -> Symbol:
    """The logarithm of x to the base 2."""
    return symbols.apply("log2", x)


def reciprocal(x: Symbol) -> Symbol:
    """1 / x."""
    return symbols.apply("divide", 1, x, name="reciprocal")


def round(x: Symbol) -> Symbol:
    """The nearest integer, the even one of two; its derivative is 0."""
    return symbols.apply("round", x)


def rsqrt(x: Symbol) -> Symbol:
    """1 / sqrt(x)."""
    return symbols.apply("rsqrt", x)


def sin(x: Symbol) -> Symbol:
    """The sine of x, an angle in radians."""
    return symbols.apply("sin", x)


def sqrt(x: Symbol) -> Symbol:
    """The square root of x."""
    return symbols.apply("sqrt", x)


def square(x: Symbol) -> Symbol:
    """x * x."""
    return symbols.apply("multiply", x, x, name="square")


def tanh(x: Symbol) -> Symbol:
    """The hyperbolic tangent of x."""
    return symbols.apply("tanh", x)


def dot(a: Symbol, b: Symbol, contract: tuple[int, int] = (-1, -2)) -> Symbol:
    """The products of the matrices of ``a`` and ``b``, their last two dimensions.

    ``contract`` has the dimension of each operand over which products are summed, -1
    or -2. The rows of the result are the other dimension of ``a``, its columns the
    other one of ``b``, whose size is part of the code; other dimensions broadcast. Sums
    are in float32 (float64 of float64).

    Factors are multiplied in the type that they have: tensors in theirs, and what a
    formula computed is rounded to the other factor's type first, or to that of the
    function's first tensor. Two types of 16 bits or more are widened.
    """
    dimensions = []
    for dimension in contract:
        if dimension not in (-1, -2):
            raise ValueError(
                f"dot: contracts dimension {dimension!r}; matrices have -1 and -2"
            )
        dimensions.append(dimension + 2)
    if len(dimensions) != 2:
        raise ValueError(
            f"dot: contracts {len(dimensions)} dimensions, not one of each operand"
        )
    return symbols.multiply(a, b, tuple(dimensions), "dot")


def linear(x: Symbol, weight: Symbol, bias: Symbol | None = None) -> Symbol:
    """x weight^T + bias, as PyTorch's function of this name: ``weight`` has a row for
    each column of the result."""
    product = symbols.multiply(x, weight, (1, 1), "linear")
    return product if bias is None else product + bias


def matmul(a: Symbol, b: Symbol) -> Symbol:
    """``a @ b``, as `dot` describes it; ``b.mT`` is the transposed ``b``."""
    return a @ b


def gelu(x: Symbol, approximate: str = "none") -> Symbol:
    """x times the normal distribution of x, or with ``approximate="tanh"`` the
    usual approximation of it."""
    formulas = {"none": "geluErf", "tanh": "geluTanh"}
    if approximate not in formulas:
        raise ValueError(
            f"gelu: approximate must be 'none' or 'tanh', but is {approximate!r}"
        )
    return symbols.apply(formulas[approximate], x, name="gelu")


def relu(x: Symbol) -> Symbol:
    """The positive part, with the derivative 0 at 0; NaN stays."""
    return symbols.apply("relu", x)


def sigmoid(x: Symbol) -> Symbol:
    """1 / (1 + exp(-x)), accurate in both tails."""
    return symbols.apply("sigmoid", x)


def silu(x: Symbol) -> Symbol:
    """x * sigmoid(x)."""
    return symbols.apply("silu", x)


def softplus(x: Symbol) -> Symbol:
    """log(1 + exp(x)), accurate in both tails."""
    return symbols.apply("softplus", x)


def stop_gradient(x: Symbol) -> Symbol:
    """x, as a constant to derivatives."""
    return symbols.apply("stopGradient", x, name="stop_gradient")


def maximum(x: Symbol | float, y: Symbol | float) -> Symbol:
    """The larger one; NaN if either is.

    Where both are equal, two tensors share the gradient; beside a number, the
    tensor gets all of it.
    """
    return symbols.apply("max", x, y, name="maximum")


def minimum(x: Symbol | float, y: Symbol | float) -> Symbol:
    """The smaller one; NaN if either is. For the gradient, see ``maximum``."""
    return symbols.apply("min", x, y, name="minimum")


def clamp(
    x: Symbol, min: Symbol | float | None = None, max: Symbol | float | None = None
) -> Symbol:
    """x, but not below ``min`` nor above ``max``; NaN if any is.

    Each is a number or a tensor. Where x is equal to a limit, x gets the whole
    gradient.
    """
    if min is None and max is None:
        raise TypeError("clamp: neither min nor max is given")
    if min is not None:
        x = _limit("max", x, min, lambda x, limit: x >= limit)
    if max is not None:
        x = _limit("min", x, max, lambda x, limit: x <= limit)
    return x


def _limit(formula, x, limit, is_inside):
    if not isinstance(limit, symbols.Symbol):
        return symbols.apply(formula, x, limit, name="clamp")
    # The extremum of two tensors would share the gradient out; what is neither
    # inside nor outside is NaN.
    beyond = where(is_inside(limit, x), limit, stop_gradient(x + limit))
    return where(is_inside(x, limit), x, beyond)


def where(condition: Symbol, x: Symbol | float, y: Symbol | float) -> Symbol:
    """x where the condition holds, and y elsewhere.

    The condition is a comparison, or comparisons combined by ``&``, ``|`` and
    ``~``.
    """
    return symbols.apply("select", condition, x, y, name="where")


def row_sum(x: Symbol, groups: int = 1) -> Symbol:
    """The sum of each row, or of each of ``groups`` groups of neighbouring
    columns: the last size becomes 1, or ``groups``."""
    return symbols.reduce("rowSum", x, groups, "row_sum")


def row_mean(x: Symbol, groups: int = 1) -> Symbol:
    """The mean of each row, as ``row_sum``."""
    return symbols.reduce("rowMean", x, groups, "row_mean")


def row_max(x: Symbol, groups: int = 1) -> Symbol:
    """The maximum of each row, as ``row_sum``; equal ones share the gradient."""
    return symbols.reduce("rowMax", x, groups, "row_max")


def row_min(x: Symbol, groups: int = 1) -> Symbol:
    """The minimum of each row, as ``row_max``."""
    return symbols.reduce("rowMin", x, groups, "row_min")


def softmax(x: Symbol) -> Symbol:
    """exp(x) of each row over their sum, where no exponential overflows: that of the
    largest element is 1 before the division. A row of nothing but minus infinity has no
    softmax, and is NaN.

    Multiplied by a matrix, as in ``softmax(q @ k.mT) @ v``, it never lies in memory:
    one kernel multiplies powers relative to the largest element so far.
    """
    powers = exp(x - stop_gradient(row_max(x)))
    return powers / row_sum(powers)


def sum_of_rows(x: Symbol) -> Symbol:
    """The sum of all rows, column by column: a row vector [N] of x [..., N]."""
    return symbols.reduce("sumOfRows", x, 1, "sum_of_rows")


def max_of_rows(x: Symbol) -> Symbol:
    """The maximum of all rows, column by column: a row vector [N] of x [..., N]."""
    return symbols.reduce("maxOfRows", x, 1, "max_of_rows")


def column_numbers(x: Symbol) -> Symbol:
    """The number of each element's column, from 0, in the shape of x: float32, exact up
    to 2^24 columns, or float64 where x is. Compared with a column of numbers, it finds
    one element of each row; its derivative is 0."""
    return symbols.number_columns(x, "column_numbers")


def iota(x: Symbol, dim: int | tuple[int, ...]) -> Symbol:
    """The number of each element of x along dimension ``dim``, from 0: int32.

    Along the last dimension, it has the shape of x. Along another one, all elements of
    a row have the same number, so there is one column of them, [..., 1], which
    broadcasts. A causal mask of scores [..., queries, keys] is
    ``iota(scores, -1) <= iota(scores, -2)``.

    ``dim`` may be a tuple of leading dimensions that follow each other, which are
    counted together, the last of them fastest: ``tuple(range(x.ndim - 1))`` numbers all
    rows. Numbers from 2^31 on wrap around.
    """
    return symbols.iota(x, dim, "iota")


def expand_as(x: Symbol, like: Symbol) -> Symbol:
    """x repeated to the shape of ``like``, where its own sizes are 1. What is combined
    with a larger tensor is repeated by itself; two tensors that go along different
    dimensions, such as the documents of queries [..., queries, 1] and of keys
    [..., 1, keys], need one of them repeated."""
    return symbols.expand_as(x, like, "expand_as")


def gather(x: Symbol, index: Symbol) -> Symbol:
    """The elements of each row of x [..., N] whose columns ``index`` [..., K] names:
    [..., K], as ``torch.gather`` along the last dimension.

    The index is of integers, and has the leading sizes of x, or 1 where it is the same
    for all rows. An index that is no column of x, a negative one too, gives 0 and passes
    on no gradient. Of equal indices each does.

    A row is gone through once for each of the K, which is part of the code and at
    most 32. Where other formulas read the whole row, this takes one comparison for each
    vector of it.
    """
    symbols.require_symbols("gather", [x, index])
    for what, symbol, kind in (("x", x, "float"), ("index", index, "int")):
        if kind not in symbol.dtype:
            raise TypeError(f"gather: {what} must be of {kind}s, but is {symbol!r}")
    count = index.shape[-1]
    if x.ndim < 2 or index.ndim != x.ndim or count > _MOST_GATHERED:
        raise ValueError(
            "gather: takes rows and, in the same number of dimensions, up to "
            f"{_MOST_GATHERED} columns of indices, but got {x!r} and {index!r}"
        )
    return concatenate([_gather_column(x, each) for each in split(index, count)])


# Code grows faster than the number of indices.
_MOST_GATHERED = 32


def _gather_column(x, index):
    # The low half of a number of 64 bits may be that of a column.
    is_column = (index >= 0) & (index < x.shape[-1])
    column = where(is_column, index.to("int32"), -1)
    return row_sum(where(iota(x, -1) == column, x, 0))


# Philox-2x32-10 of Salmon et al.: the multiplier, and what is added to the key between
# two rounds.
_PHILOX_MULTIPLIER = 0xD256D193
_PHILOX_STEP = 0x9E3779B9
_PHILOX_ROUNDS = 10


def random_bits(
    seed: Symbol | int, counter: Symbol | tuple[Symbol | int, Symbol | int]
) -> Symbol:
    """32 random bits for each element of ``counter``: int32, of any sign.

    They follow from the seed and the counter alone, so that a backward finds the same
    bits again, and they are the same on every machine. Both are int32 and may have any
    values; ``counter`` may be a pair, which counts to 2^64. Seeds or counters that
    differ in a single bit give bits that have nothing to do with each other.

    The generator is Philox-2x32-10, which passes all tests of TestU01's BigCrush
    (Salmon, Moraes, Dror, Shaw: Parallel Random Numbers: As Easy as 1, 2, 3, SC 2011).
    An element takes one word of what a generator makes, and Philox-4x32-10, which
    PyTorch uses, takes twice the multiplications to make it.
    """
    step = _wrap(_PHILOX_STEP)
    low, high = counter if isinstance(counter, tuple) else (counter, 0)
    key = _word("seed", seed)
    low, high = _word("counter", low), _word("counter", high)
    for _ in range(_PHILOX_ROUNDS):
        product_low, product_high = _multiply_words(low, _PHILOX_MULTIPLIER)
        low, high = product_high ^ key ^ high, product_low
        key = _wrap(key + step) if isinstance(key, int) else key + step
    if isinstance(low, int):
        raise TypeError("random_bits: neither seed nor counter is a symbolic tensor")
    return low


def _word(what, value):
    if isinstance(value, numbers.Integral):
        return _wrap(int(value))
    if not isinstance(value, Symbol) or value.dtype != "int32":
        raise TypeError(
            f"random_bits: {what} must be int32, or a number, but is {value!r}; "
            '.to("int32") converts'
        )
    return value


def _wrap(number):
    """The int32 that has the low 32 bits of ``number``."""
    return (number + 2**31) % 2**32 - 2**31


def _multiply_words(word, factor):
    """The low and the high half of the product of two unsigned words, as int32."""
    mask = 2**32 - 1
    if isinstance(word, int):
        product = (word & mask) * factor
        return _wrap(product), _wrap(product >> 32)
    product = (word.to("int64") & mask) * factor
    return product.to("int32"), (product >> 32).to("int32")


def uniform(
    seed: Symbol | int, counter: Symbol | tuple[Symbol | int, Symbol | int]
) -> Symbol:
    """Random numbers from 0 to below 1, all multiples of 2^-24 alike: float32, of the
    high bits of ``random_bits(seed, counter)``."""
    bits = random_bits(seed, counter)
    return ((bits >> 8) & (2**24 - 1)).to("float32") * 2.0**-24


def dropout(x: Symbol, p: float, seed: Symbol | int) -> Symbol:
    """0 with probability ``p`` for each element of x, and x / (1 - p) elsewhere.

    Which elements are 0 follows from the seed and from the number of the row, counted
    over all leading dimensions, and of the column: the gradient's are the same ones, and
    nothing is stored for it. ``seed`` is an int32 tensor of one number, so that each
    call can have another. Infinities and NaN become 0 like other numbers.
    """
    if not 0 <= p <= 1:
        raise ValueError(f"dropout: p must be from 0 to 1, but is {p!r}")
    rows = iota(x, tuple(range(x.ndim - 1)))
    is_kept = uniform(seed, (rows, iota(x, -1))) >= p
    return where(is_kept, x * (1 / (1 - p) if p < 1 else 0), 0)


def repeat_interleave(x: Symbol, repeats: int) -> Symbol:
    """Each column ``repeats`` times: [..., N * repeats] of x [..., N]. It gives each
    column of a group what a reduction of groups made of it."""
    return symbols.repeat_columns(x, repeats, "repeat_interleave")


def split(x: Symbol, pieces: int, interleaved: bool = False) -> list[Symbol]:
    """A list of ``pieces`` tensors [..., N / pieces] that together are x [..., N].

    A piece has neighbouring columns or, with ``interleaved``, every ``pieces``-th one.
    Raises ``ValueError`` where ``pieces`` does not divide N.
    """
    return symbols.split(x, pieces, interleaved, "split")


def concatenate(pieces: Iterable[Symbol], interleaved: bool = False) -> Symbol:
    """Rows put together of the rows of pieces of one shape; undoes ``split``, with the
    same ``interleaved``."""
    return symbols.join(list(pieces), interleaved, "concatenate")


class _Ops:
    """Every op of the dialect by its name (docs/ops.md), as in
    ``op.rms_norm(x, weight, eps=1e-5)``.

    Operands come in the order of the definition or by name, those that the op can
    do without may be left out; attributes come by name. An op takes operands in
    their own types and rounds its results to the types that it has for them. What a
    formula computed is float32, and extends the operands beside it where the op
    wants one type. ``results`` gives the types of the results, as MLIR spells them,
    to an op where they do not follow.
    """

    def __getattr__(self, name: str) -> Callable[..., Any]:
        definition = definitions().get(name)
        if definition is None:
            raise AttributeError(
                f"the dialect has no op '{name}'; it has {', '.join(definitions())}"
            )
        function = _make_op(definition)
        setattr(self, name, function)
        return function

    def __dir__(self) -> list[str]:
        return list(definitions())


def _make_op(definition):
    signature = _signature(definition)

    def apply(*arguments, results=(), **named):
        try:
            given = signature.bind(*arguments, **named).arguments
        except TypeError as error:
            raise TypeError(
                f"{definition.name}: {error}; it is {definition.name}{signature}"
            ) from None
        operands = [given.pop(o.name, None) for o in definition.operands]
        made = symbols.apply_op(
            definition, operands, definition.attribute_values(given), results
        )
        return made[0] if len(made) == 1 else tuple(made)

    apply.__name__ = definition.name
    apply.__qualname__ = f"op.{definition.name}"
    apply.__doc__ = f"{definition.summary}\n\n{definition.description}"
    apply.__signature__ = signature
    return apply


def _signature(definition):
    def parameter(name, kind, default):
        return inspect.Parameter(name, kind, default=default)

    empty = inspect.Parameter.empty
    operands = [
        parameter(
            operand.name,
            inspect.Parameter.POSITIONAL_OR_KEYWORD,
            None if operand.optional else empty,
        )
        for operand in definition.operands
    ]
    attributes = [
        parameter(
            attribute.name,
            inspect.Parameter.KEYWORD_ONLY,
            empty
            if attribute.default is None and not attribute.optional
            else attribute.default,
        )
        for attribute in definition.attributes
    ]
    return inspect.Signature([*operands, *attributes])


op: _Ops = _Ops()

foreign.COUNTERPARTS.update(__all__)
