# Part of Bastile, under the MIT License. See LICENSE.
"""Python functions over symbolic tensors, as modules of MLIR.

``trace`` calls the function once, with a ``Symbol`` for each tensor.
"""

import inspect
import operator

from bastile import _bastile
from bastile._compiler import symbols, tensor_types, traced_graph
from bastile._compiler.symbols import Symbol


def trace(function, shape, dtype, attributes, places=(), fixed=(), free=()):
    """The name of ``function``, a module with what it computes, and the sizes of
    operands that products have for their columns and that are still free.

    Parameters without a default are tensors, and so are those that ``shape`` or
    ``dtype`` names; all others are given their values in ``attributes``, or their
    defaults, and become constants, as everything does that the function finds in
    its closure. Of each result, ``places`` has the name of the tensor whose memory it
    takes, or None. Equal functions, shapes, types, attributes and places give equal
    texts. Leading sizes are free but those in ``fixed``, and the lengths of rows are fixed
    but those in ``free``, as in `tensor_types.row_types`; raises `traced_graph.FreeSizes`
    where more have to be fixed.
    """
    name = name_of(function)
    tensors, values = parameters(function, name, shape, dtype, attributes)
    shapes = read_shapes(name, tensors, shape)
    elements = read_elements(name, tensors, dtype)
    graph = _bastile.Graph(name)
    types = tensor_types.row_types(shapes, elements, fixed, free)
    given = {
        tensor: Symbol(graph, graph.argument(tensor, type, sizes))
        for tensor, type, sizes in zip(tensors, types, shapes)
    }
    with traced_graph.tracing_into(graph):
        results = _call(function, given, values)
        if not isinstance(results, (tuple, list)):
            results = (results,)
        check_places(name, tensors, places, len(results))
        source = _finish(graph, name, results, places, given)
        return name, source, traced_graph.free_columns()


def check_places(name, tensors, places, result_count=None):
    """Raises ``ValueError`` unless ``places`` names some of ``tensors``, each once, and
    no more than there are results."""
    for place in places:
        if place is None:
            continue
        if place not in tensors:
            raise ValueError(
                f"{name}: in_place names '{place}', which is no operand; the operands "
                f"are {', '.join(tensors)}"
            )
        if places.count(place) > 1:
            raise ValueError(
                f"{name}: in_place names '{place}' twice, but one result takes the "
                "memory of an operand"
            )
    if result_count is not None and len(places) > result_count:
        raise ValueError(
            f"{name}: in_place is for {len(places)} results, but there are "
            f"{result_count}"
        )


def _finish(graph, name, results, places, tensors):
    if not results:
        raise TypeError(f"{name} returns nothing")
    for index, result in enumerate(results):
        if not isinstance(result, Symbol):
            raise TypeError(
                f"{name} must return symbolic tensors, but result {index} is {result!r}"
            )
    results = list(results)
    numbers = [None] * len(results)
    for index, place in enumerate(places):
        if place is not None:
            results[index] = _fit(name, index, results[index], tensors[place])
            numbers[index] = list(tensors).index(place)
    return symbols.finish(graph, name, results, numbers)


def _fit(name, index, result, operand):
    """The result, of the type of the operand whose memory it takes."""
    if result.shape != operand.shape:
        raise ValueError(
            f"{name}: result {index}, {result!r}, takes the memory of an operand of "
            f"another shape, {operand!r}"
        )
    if result.dtype == operand.dtype and "float" not in operand.dtype:
        return result
    return result.to(operand.dtype)


def name_of(function) -> str:
    """What kernels of a function and messages call it."""
    while hasattr(function, "func"):  # functools.partial
        function = function.func
    name = getattr(function, "__name__", type(function).__name__)
    return "function" if name == "<lambda>" else name


def parameters(function, name, shape, dtype, attributes):
    """The names of the tensors in order, and the values of the rest."""
    named = {
        key for given in (shape, dtype) if isinstance(given, dict) for key in given
    }
    tensors, values = [], {}
    for parameter in inspect.signature(function).parameters.values():
        key = parameter.name
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            raise TypeError(
                f"{name} takes '{parameter}'; a function to be traced names each "
                "of its tensors"
            )
        if key in attributes:
            values[key] = attributes[key]
        elif key in named or (
            parameter.default is parameter.empty
            and parameter.kind is not parameter.KEYWORD_ONLY
        ):
            tensors.append(key)
        elif parameter.default is parameter.empty:
            raise TypeError(f"{name}: the value of '{key}' is missing")
        else:
            values[key] = parameter.default
    for key in (*named, *attributes):
        if key not in tensors and key not in values:
            raise TypeError(
                f"{name} has no parameter '{key}'; it has "
                + ", ".join([*tensors, *values])
            )
        if key in named and key in attributes:
            raise TypeError(
                f"{name}: '{key}' is given both a shape or dtype and a value"
            )
    if not tensors:
        raise TypeError(f"{name} takes no tensors")
    return tensors, values


def _call(function, tensors, values):
    """Calls with each argument as its parameter wants it."""
    given = {**tensors, **values}
    positional, keywords = [], {}
    for parameter in inspect.signature(function).parameters.values():
        if parameter.kind is parameter.KEYWORD_ONLY:
            keywords[parameter.name] = given[parameter.name]
        else:
            positional.append(given[parameter.name])
    try:
        return function(*positional, **keywords)
    except RecursionError:
        # Where symbols end it, as the lengths of rows can, a function may call itself.
        raise ValueError(
            f"{name_of(function)} calls itself, or functions that call each other, "
            "without an end"
        ) from None


def read_shapes(name, tensors, shape) -> list:
    """The sizes of each tensor, from those of the first or a dictionary."""
    by_name = shape if isinstance(shape, dict) else {tensors[0]: shape}
    first = by_name.get(tensors[0])
    if first is None:
        raise ValueError(f"{name}: the shape of '{tensors[0]}' is missing")
    shapes = []
    for tensor in tensors:
        sizes = _read_sizes(name, tensor, by_name.get(tensor, first))
        if not sizes or sizes[-1] < 1 or min(sizes) < 0:
            raise ValueError(
                f"{name}: the shape of '{tensor}' must end in the length of a row, "
                f"but is {sizes}"
            )
        shapes.append(sizes)
    return shapes


def _read_sizes(name, tensor, shape):
    """The sizes that ``shape`` gives. What is None there is any size but 1."""
    any_size = 2
    try:
        *leading, last = tuple(shape) or (0,)
        leading = [any_size if x is None else operator.index(x) for x in leading]
        return *leading, operator.index(last)
    except TypeError:
        raise TypeError(
            f"{name}: the shape of '{tensor}' must be its sizes, of which all but the "
            f"last may be None, but is {shape!r}"
        ) from None


def read_elements(name, tensors, dtype) -> list:
    """The element type of each tensor, from the first's or a dictionary."""
    by_name = dtype if isinstance(dtype, dict) else {tensors[0]: dtype}
    first = by_name.get(tensors[0])
    if first is None:
        raise ValueError(f"{name}: the dtype of '{tensors[0]}' is missing")
    return [tensor_types.element_type(by_name.get(tensor, first)) for tensor in tensors]
