"""The model ops, as their definitions in the dialect describe them."""

import dataclasses
import functools
import importlib.resources
import json
import math

from bastile import _bastile, _types


@dataclasses.dataclass(frozen=True)
class Operand:
    name: str
    kind: str
    optional: bool
    summary: str


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
                raise ValueError(
                    f"'{self.name}' must be one of {', '.join(self.cases)}, "
                    f"but is {value!r}"
                )
            return f"{self.cases[value]} : i32"
        if self.type.startswith("f"):
            if not math.isfinite(value):
                self._reject(value, "a finite number")
            return f"{float(value):.17e} : {self.type}"
        if isinstance(value, bool) or int(value) != value:
            self._reject(value, "an integer")
        return f"{int(value)} : {self.type}"

    def _reject(self, value, expected):
        raise ValueError(f"'{self.name}' must be {expected}, but is {value!r}")


@dataclasses.dataclass(frozen=True)
class Definition:
    """A model op: its operands, its attributes with their defaults, its text."""

    name: str
    summary: str
    description: str
    operands: tuple
    attributes: tuple
    results: tuple

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
        if first is None:
            raise ValueError(f"the shape of '{names[0]}' is missing")
        first_type = dtypes.get(names[0]) if dtypes else dtype
        if first_type is None:
            raise ValueError(f"the dtype of '{names[0]}' is missing")
        first_type = _types.element_type(first_type)
        result = []
        for operand in self.operands:
            name = operand.name
            if operand.optional and name not in shapes and name not in dtypes:
                result.append((None, None))
                continue
            size = shapes.get(name) or self._follow(operand, first)
            kind = (
                _types.element_type(dtypes[name])
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

    def source(self, types, attributes, results=()) -> str:
        """A module with one function that applies the op.

        ``types`` has a type or ``None`` for each operand, ``attributes`` a value
        for each attribute, in the order of the definition; ``results`` types of
        the results, where those do not follow.
        """
        texts = self.attribute_texts(attributes)
        names = [operand.name for operand in self.operands]
        try:
            return _bastile.build_op_text(
                self.name, list(zip(names, types)), texts, list(results)
            )
        except _bastile.CompileError as error:
            described = ", ".join(
                f"{name}: {type}" for name, type in zip(names, types) if type
            )
            raise type(error)(f"{self.name}({described}): {error}") from None

    def attribute_texts(self, attributes):
        """Names and texts of the attributes that the op is given, for a value of
        each attribute, in the order of the definition."""
        return [
            (attribute.name, text)
            for attribute, value in zip(self.attributes, attributes)
            # Some may only be given together with a value of another.
            if value != attribute.default
            and (text := attribute.text(value)) is not None
        ]

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


def _follow_type(operand, first_type):
    if operand.kind == "integer_statistic":
        return "i64"
    if operand.kind in ("compute_rows", "compute_tensor"):
        return "f64" if first_type == "f64" else "f32"
    return first_type


@functools.cache
def definitions() -> dict:
    """All model ops by name."""
    file = importlib.resources.files("bastile").joinpath("ops.json")
    document = json.loads(file.read_text())
    return {
        name: Definition(
            name,
            op["summary"],
            op["description"],
            tuple(Operand(**operand) for operand in op["operands"]),
            tuple(Attribute(**attribute) for attribute in op["attributes"]),
            tuple(op["results"]),
        )
        for name, op in document.items()
    }
