# Part of Bastile, under the MIT License. See LICENSE.
"""The model ops, as their definitions in the dialect describe them."""

import dataclasses
import functools
import json
import math
import numbers
import os

from bastile import _bastile
from bastile._compiler import tensor_types


@dataclasses.dataclass(frozen=True)
class Operand:
    name: str
    kind: str
    #: MLIR's spelling of the element types that it may have.
    elements: tuple[str, ...]
    optional: bool
    summary: str

    def __post_init__(self):
        # JSON has no tuples.
        object.__setattr__(self, "elements", tuple(self.elements))


@dataclasses.dataclass(frozen=True)
class Attribute:
    name: str
    type: str
    default: object
    optional: bool
    cases: dict | None = None
    summary: str = ""

    def text(self, value) -> str | None:
        """``value`` as MLIR's generic form spells it; ``None`` for no attribute."""
        if self.type == "unit":
            return "unit" if value else None
        if value is None and self.optional:
            return None
        if self.type == "enum":
            if value not in self.cases:
                self._reject(ValueError, value, f"one of {', '.join(self.cases)}")
            return f"{self.cases[value]} : i32"
        if isinstance(value, bool) or not isinstance(value, numbers.Real):
            self._reject(TypeError, value, "a number")
        if self.type.startswith("f"):
            if not math.isfinite(value):
                self._reject(ValueError, value, "a finite number")
            return f"{float(value):.17e} : {self.type}"
        if int(value) != value:
            self._reject(ValueError, value, "an integer")
        return f"{int(value)} : {self.type}"

    def _reject(self, kind, value, expected):
        raise kind(f"'{self.name}' must be {expected}, but is {value!r}")


@dataclasses.dataclass(frozen=True)
class Option:
    """A keyword of a call that is no attribute of the op, such as which results it
    wants."""

    name: str
    default: object
    schema: str
    document: str


_RETURNS = Option(
    "returns",
    None,
    "str[]?",
    "names of the results to return, by default all; the others cost nothing",
)
_RESULTS = Option(
    "results",
    None,
    "str[]?",
    "types of the results as MLIR spells them, which here do not follow from "
    "the operands",
)
_TOGETHER = Option(
    "together",
    None,
    "bool?",
    "whether a total's gradient is computed in the same pass as the total, so "
    "that other results have none; by default where no other result of floats "
    "is returned",
)
_IN_PLACE = Option(
    "in_place",
    False,
    "bool",
    "whether a gradient that is computed so may take the operand's memory",
)


@dataclasses.dataclass(frozen=True)
class Definition:
    """A model op: its operands, its attributes with their defaults, its text."""

    name: str
    summary: str
    description: str
    operands: tuple
    attributes: tuple
    results: tuple
    #: Groups of operands and results whose types are the same.
    same_types: tuple
    #: Groups of operands whose element types are the same.
    same_elements: tuple
    #: Whether the types of the results follow from those of the operands.
    infers_types: bool
    #: Whether its first result may be one number for all rows.
    is_criterion: bool

    @functools.cached_property
    def fixed(self):
        """The leading sizes that code depends on: pairs of an operand's number and a
        dimension."""
        return frozenset(
            (number, 0)
            for number, operand in enumerate(self.operands)
            if operand.kind == "matrix"
        )

    @functools.cached_property
    def options(self):
        """What a call may say in addition to the attributes."""
        options = []
        if len(self.results) > 1:
            options.append(_RETURNS)
        if not self.infers_types:
            options.append(_RESULTS)
        if self.is_criterion:
            options += [_TOGETHER, _IN_PLACE]
        return tuple(options)

    def split(self, attributes):
        """The values of the attributes and a dictionary of the options' values."""
        count = len(self.attributes)
        options = dict(_NO_OPTIONS)
        for option, value in zip(self.options, attributes[count:]):
            options[option.name] = value
        return attributes[:count], options

    def returned(self, names):
        """The places of the results to return; all for ``None``."""
        if names is None:
            return tuple(range(len(self.results)))
        for name in names:
            if name not in self.results:
                raise ValueError(
                    f"{self.name}: there is no result '{name}'; there are "
                    + ", ".join(self.results)
                )
        if not names:
            raise ValueError(f"{self.name}: 'returns' names no result")
        return tuple(self.results.index(name) for name in names)

    def operand_shapes(self, shape, dtype):
        """The shape and element type of each operand, from the first one's.

        ``shape`` is that of the first operand or a dictionary of shapes by name;
        ``dtype`` likewise. Operands that the op can do without are there only if
        one of the dictionaries names them.
        """
        shapes = shape if isinstance(shape, dict) else {}
        dtypes = dtype if isinstance(dtype, dict) else {}
        names = [operand.name for operand in self.operands]
        for name in {**shapes, **dtypes}:
            if name not in names:
                raise ValueError(
                    f"'{self.name}' has no operand '{name}'; its operands are "
                    + ", ".join(names)
                )
        first = shapes.get(names[0]) if shapes else shape
        for name, sizes in (shapes or {names[0]: first}).items():
            _check_sizes(self.name, name, sizes)
        if first is None:
            raise ValueError(f"the shape of '{names[0]}' is missing")
        first_type = dtypes.get(names[0]) if dtypes else dtype
        if first_type is None:
            raise ValueError(f"the dtype of '{names[0]}' is missing")
        first_type = tensor_types.element_type(first_type)
        result = []
        for operand in self.operands:
            name = operand.name
            if operand.optional and name not in shapes and name not in dtypes:
                result.append((None, None))
                continue
            size = shapes.get(name) or self._follow(operand, first)
            kind = (
                tensor_types.element_type(dtypes[name])
                if name in dtypes
                else _follow_type(operand, first_type)
            )
            result.append((tuple(size), kind))
        return result

    def _follow(self, operand, first):
        if operand.kind in ("row_tensor", "small_rows"):
            return first
        if operand.kind == "row_vector":
            return first[-1:]
        if operand.kind == "integer_statistic":
            return (*first[:-1], 1)
        raise ValueError(
            f"the shape of '{operand.name}' does not follow from that of "
            f"'{self.operands[0].name}'; give a dictionary of shapes by name"
        )

    def source(self, types, attributes, results=(), returned=()) -> str:
        """A module with one function that applies the op.

        ``types`` has a type or ``None`` for each operand, ``attributes`` a value
        for each attribute, in the order of the definition; ``results`` types of
        the results, where those do not follow. ``returned`` are the places of
        the results that the function returns, all if there are none.
        """
        texts = self.attribute_texts(attributes)
        names = [operand.name for operand in self.operands]
        try:
            return _bastile.build_op_text(
                self.name,
                list(zip(names, types)),
                texts,
                list(results),
                list(returned),
            )
        except _bastile.CompileError as error:
            described = ", ".join(
                f"{name}: {type}" for name, type in zip(names, types) if type
            )
            raise type(error)(f"{self.name}({described}): {error}") from None

    def attribute_texts(self, attributes):
        """Names and texts of the attributes that the op is given, for a value of
        each attribute, in the order of the definition."""
        try:
            return [
                (attribute.name, text)
                for attribute, value in zip(self.attributes, attributes)
                # Some attributes are valid only beside others, so defaults are left
                # out.
                if (text := attribute.text(value)) is not None
                and value != attribute.default
            ]
        except (TypeError, ValueError) as error:
            raise type(error)(f"{self.name}: {error}") from None

    def attribute_values(self, values):
        """The value of each attribute, from a dictionary; defaults for the rest."""
        names = [attribute.name for attribute in self.attributes]
        for name in values:
            if name not in names:
                raise TypeError(
                    f"'{self.name}' has no attribute '{name}'"
                    + (f"; it has {', '.join(names)}" if names else "")
                )
        return tuple(
            values.get(attribute.name, attribute.default)
            for attribute in self.attributes
        )


_NO_OPTIONS = {
    option.name: option.default for option in (_RETURNS, _RESULTS, _TOGETHER, _IN_PLACE)
}


def _check_sizes(op, operand, sizes):
    if sizes is None:
        return
    if isinstance(sizes, (str, int, float)) or not hasattr(sizes, "__iter__"):
        raise TypeError(
            f"{op}: the shape of '{operand}' must be a sequence of sizes, but is "
            f"{sizes!r}"
        )
    # A leading size may be None, for one that is not known.
    *leading, last = tuple(sizes) or (None,)
    if not all(map(_is_size, [last, *(x for x in leading if x is not None)])):
        raise ValueError(
            f"{op}: the shape of '{operand}' must have at least one size, and sizes "
            f"that are integers from 0 on, but is {list(sizes)}"
        )


def _is_size(size):
    return hasattr(size, "__index__") and not isinstance(size, bool) and size >= 0


def _follow_type(operand, first_type):
    if operand.kind == "integer_statistic":
        return "i64"
    if operand.kind in ("compute_rows", "compute_tensor"):
        return "f64" if first_type == "f64" else "f32"
    return first_type


@functools.cache
def definitions() -> dict:
    """All model ops by name."""
    # Beside the extension module. (`importlib.resources` takes longer to import than
    # all of this.)
    with open(os.path.join(os.path.dirname(_bastile.__file__), "ops.json")) as file:
        document = json.load(file)
    return {
        name: Definition(
            name,
            op["summary"],
            op["description"],
            tuple(Operand(**operand) for operand in op["operands"]),
            tuple(Attribute(**attribute) for attribute in op["attributes"]),
            tuple(op["results"]),
            tuple(tuple(group) for group in op["same_types"]),
            tuple(tuple(group) for group in op["same_elements"]),
            op["infers_types"],
            op["is_criterion"],
        )
        for name, op in document.items()
    }
