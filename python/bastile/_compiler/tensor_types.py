# Part of Bastile, under the MIT License. See LICENSE.
"""Element types and types of tensors, by the names of Python's libraries and MLIR's."""

# MLIR's spelling of each element type that kernels know, by every name that a
# user may give it: MLIR's own, PyTorch's and NumPy's.
_SPELLINGS = {
    "f64": ("float64", "double"),
    "f32": ("float32", "float"),
    "f16": ("float16", "half"),
    "bf16": ("bfloat16",),
    "f8E4M3FN": ("float8_e4m3fn", "e4m3"),
    "f8E5M2": ("float8_e5m2", "e5m2"),
    "i64": ("int64", "long"),
    "i32": ("int32", "int"),
    "i8": ("int8",),
    "i1": ("bool",),
}
_BY_NAME = {
    name: spelling
    for spelling, names in _SPELLINGS.items()
    for name in (spelling, *names)
}
#: PyTorch's name of each element type.
TORCH_NAMES = {spelling: names[0] for spelling, names in _SPELLINGS.items()}


def element_type(dtype) -> str:
    """MLIR's spelling of ``dtype``: a name, or a dtype of PyTorch or NumPy.

    Raises ``TypeError`` for a type that no kernel takes.
    """
    name = dtype if isinstance(dtype, str) else getattr(dtype, "name", None)
    if name is None:
        name = dtype.__name__ if isinstance(dtype, type) else str(dtype)
    name = name.rpartition(".")[2]
    if name not in _BY_NAME:
        raise TypeError(
            f"no kernel takes elements of type {dtype!r}; there are "
            + ", ".join(names[0] for names in _SPELLINGS.values())
        )
    return _BY_NAME[name]


def tensor_type(sizes, element: str) -> str:
    """The type of a tensor; a size of ``None`` is known only at launch."""
    dimensions = ["?" if size is None else str(size) for size in sizes]
    return f"tensor<{'x'.join([*dimensions, element])}>"


def row_type(buffer) -> str:
    """The type of an input or output of the metadata, short, as in ``?x2880xbf16``."""
    sizes = [size if isinstance(size, int) else "?" for size in buffer["shape"]]
    return "x".join(map(str, [*sizes, buffer["type"]]))


def row_types(shapes, elements, fixed=(), free=()):
    """Types of operands whose leading sizes are free, but those in ``fixed``: pairs of
    the operand's number and the dimension.

    ``shapes`` are full shapes, ``elements`` the element types, either ``None``
    for an operand that is absent. The last size is part of the type, but of the
    operands whose numbers are in ``free``, unless it is 1. A leading size of 1 is part
    of it where another operand of the same rank has another size: the operand repeats
    its rows there. That of a weight, which is fixed, is none of these sizes: a product
    with one row is compiled for any number of rows. A formula whose rows do repeat
    against a fixed size has this size fixed as well (`traced_graph.FreeSizes`). Beside a
    fixed 1, a size of 1 is part of the type, too: a free one would not fit the other.

    Raises ``ValueError`` for a shape without dimensions, and ``TypeError`` for conditions.
    """
    types = []
    for number, (shape, element) in enumerate(zip(shapes, elements)):
        if shape is None:
            types.append(None)
            continue
        if not shape:
            raise ValueError(
                f"operand {number} has no dimensions: give a tensor of one number as "
                "rows of one, x.reshape(1, 1), or a number of Python"
            )
        if element == "i1":
            raise TypeError(
                f"operand {number} has conditions (bool), which kernels do not read: give "
                "integers, x.to(torch.int8), and compare them, x != 0"
            )
        # Code depends on the length of a row, so a length that torch.compile traces as
        # a symbol becomes a number here.
        *leading, length = shape
        sizes = [
            int(size)
            if (number, i) in fixed
            else 1
            if size == 1 and _is_one(shapes, len(shape), i, fixed)
            else None
            for i, size in enumerate(leading)
        ]
        is_free = number in free and length != 1
        sizes.append(None if is_free else int(length))
        types.append(tensor_type(sizes, element))
    return types


def _is_one(shapes, rank, dimension, fixed):
    """Whether a size of 1 in a dimension of operands of that rank is part of their
    types."""
    return any(
        other is not None
        and len(other) == rank
        and bool(other[dimension] == 1) == ((number, dimension) in fixed)
        for number, other in enumerate(shapes)
    )
