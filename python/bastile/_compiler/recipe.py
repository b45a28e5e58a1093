# Part of Bastile, under the MIT License. See LICENSE.
"""Arguments of ``bastile.compile``, and the kernels that are made of them."""

import dataclasses
import os
from collections.abc import Sequence
from typing import Any

from bastile import _bastile
from bastile._compiler import (
    checks,
    loading,
    operators,
    traced_graph,
    tensor_types,
    tracing,
)
from bastile._compiler.definitions import definitions
from bastile._compiler.kernel import Kernel, require_gradients
from bastile._compiler.traced_operators import pattern


@dataclasses.dataclass(eq=False)
class Recipe:
    """The arguments of ``bastile.compile``. Where a shape, a type or gradients are
    None, a call takes those of its operands, and a kernel is made for each that differs
    in what code depends on.

    ``operands`` are the names of a call's operands, ``optional`` the names of those
    that may be None.
    """

    op: Any
    shape: Any
    dtype: Any
    grad: Any
    target: str | None
    schedule: str
    results: tuple[str, ...]
    attributes: dict[str, Any]
    #: Of each result of a Python function, the operand whose memory it takes, or None;
    #: fewer than there are results where the others take none.
    places: tuple[str | None, ...] = ()
    #: A name that no other recipe has, in any process: programs that PyTorch has traced
    #: call recipes by it, and may be kept on disk.
    key: str = dataclasses.field(default_factory=lambda: os.urandom(16).hex())
    kernels: dict[Any, Kernel] = dataclasses.field(default_factory=dict)
    #: Leading sizes that code depends on: pairs of an operand's number and a dimension.
    fixed: frozenset[tuple[int, int]] = frozenset()

    def __reduce__(self) -> tuple[Any, ...]:
        fields = [f.name for f in dataclasses.fields(self)]
        return Recipe, tuple(getattr(self, x) for x in fields[: fields.index("key")])

    def __post_init__(self) -> None:
        self.name: str = "source"
        self.operands: tuple[str, ...] = ()
        self.optional: tuple[str, ...] = ()
        if is_module(self.op):
            return
        if callable(self.op):
            self.name = tracing.name_of(self.op)
            said = self.shape, self.dtype, self.attributes
            self.operands = tuple(tracing.parameters(self.op, self.name, *said)[0])
        else:
            definition = _find(self.op)
            self.name, operands = self.op, definition.operands
            self.fixed |= definition.fixed
            self.operands = tuple(x.name for x in operands)
            self.optional = tuple(x.name for x in operands if x.optional)

    def check(self) -> None:
        """Raises for arguments that are wrong whatever operands a call has."""
        if not callable(self.op):
            definition = _find(self.op)
            definition.attribute_texts(definition.attribute_values(self.attributes))
            if self.shape is not None:
                definition.operand_shapes(self.shape, self.dtype or "f32")
            return
        tensors = self.operands
        tracing.check_places(self.name, tensors, self.places)
        if self.shape is not None:
            tracing.read_shapes(self.name, tensors, self.shape)
        if self.dtype is not None:
            tracing.read_elements(self.name, tensors, self.dtype)

    def build(self) -> Kernel:
        """The kernel, where nothing is left to a call.

        Raises ``CompileError`` for what the compiler rejects.
        """
        while True:
            try:
                kernel = self._build(self.shape, self.dtype, _gradients(self.grad))
                break
            except traced_graph.FreeSizes as sizes:
                self.fixed |= sizes.places
        # What only the passes find out is raised here rather than in a call.
        _bastile.describe_text(kernel._request.native())
        return kernel

    def kernel(self, operands: Sequence[Any], wanted: Any) -> Kernel:
        """The kernel of a call on ``operands``, some of which may be None;
        ``wanted`` says of which of them gradients are wanted, or is None."""
        described: list[Any] = [operators.describe(x) for x in operands]
        if not callable(self.op):
            checks.check(_find(self.op), described)
        shapes = [None if x is None else x[0] for x in described]
        elements = [None if x is None else x[1] for x in described]
        gradients = _gradients(self.grad)
        if self.grad is None:
            names = zip(self.operands, wanted or ())
            gradients = tuple(name for name, want in names if want)
        while True:
            types = tensor_types.row_types(shapes, elements, self.fixed)
            key = (*types, gradients)
            try:
                if key not in self.kernels:
                    made = self._specialize(described, gradients)
                    # Another thread may have made the same kernel meanwhile.
                    self.kernels.setdefault(key, made)
                return self.kernels[key]
            except traced_graph.FreeSizes as sizes:
                self.fixed |= sizes.places

    def _specialize(self, described, gradients):
        """The kernel for operands that ``operators.describe`` describes."""
        present = [
            (number, name, x)
            for number, (name, x) in enumerate(zip(self.operands, described))
            if x
        ]
        shape, dtype = self.shape, self.dtype
        if shape is None:
            shape = {
                name: pattern(x[0], {d for n, d in self.fixed if n == number})
                for number, name, x in present
            }
        if dtype is None:
            dtype = {name: x[1] for _, name, x in present}
        try:
            return self._build(shape, dtype, gradients)
        except ValueError as error:
            given = (f"'{name}' {list(x[0])}" for _, name, x in present)
            message = f"{self.name}: {error}; the shapes are {', '.join(given)}"
            raise type(error)(message) from None

    def request(
        self, operands: Sequence[Any], attributes: Any, wanted: Any
    ) -> loading.Request:
        """As `TracedOperator.request`; a recipe has its attributes itself."""
        return self.kernel(operands, wanted)._request

    def require_gradients(self, wanted: Any) -> None:
        """Raises ``TypeError`` where gradients are wanted that kernels lack."""
        if self.grad is not None:
            known = _gradients(self.grad)
            require_gradients(self.name, self.operands, known, wanted)

    def _build(self, shape, dtype, gradients):
        name, source, free_columns = self._source(shape, dtype)
        request = loading.Request(
            source,
            self.target or operators.DESCRIBED_TARGET,
            name=name,
            schedule=self.schedule,
            gradients=gradients,
        )
        if free_columns:
            # Some passes may need the size.
            try:
                _bastile.describe_text(request.native())
            except ValueError as error:
                raise traced_graph.FreeSizes(free_columns) from error
        functions = request.describe()["functions"]
        if any("in_place" in x for f in functions for x in f["outputs"]):
            request = dataclasses.replace(request, in_place=True)
            if gradients:
                raise ValueError(
                    f"{name} has results in the memory of operands, and no gradients: "
                    "a backward would find the results where it reads operands"
                )
        if len(functions) != 1:
            names = ", ".join(x["name"] for x in functions) or "none"
            raise ValueError(
                f"{name} has {len(functions)} functions, {names}; "
                "bastile.compile takes one"
            )
        return Kernel(
            request,
            [operand["name"] for operand in functions[0]["inputs"]],
            len(functions[0]["outputs"]),
            self.target,
        )

    def _source(self, shape, dtype):
        """The name of the function, a module with it, and free sizes of columns, as
        `tracing.trace` has them."""
        if callable(self.op):
            return tracing.trace(
                self.op, shape, dtype, self.attributes, self.places, self.fixed
            )
        if is_module(self.op):
            return *_read_module(self.op, self.attributes), frozenset()
        definition = _find(self.op)
        values = definition.attribute_values(self.attributes)
        shapes, elements = zip(*definition.operand_shapes(shape, dtype))
        types = tensor_types.row_types(shapes, elements, self.fixed)
        return self.op, definition.source(types, values, self.results), frozenset()


def is_module(op) -> bool:
    """Whether ``op`` is a module of MLIR: its text, or the path of a file."""
    return isinstance(op, os.PathLike) or (
        isinstance(op, str) and (op.endswith(".mlir") or "func.func" in op)
    )


def _read_module(op, attributes):
    if attributes:
        raise TypeError(
            f"a module says its attributes itself, but got {', '.join(attributes)}"
        )
    if isinstance(op, str) and "func.func" in op:
        return "source", op
    import pathlib

    path = pathlib.Path(op)
    return str(path), path.read_text()


def _gradients(grad):
    if grad is True:
        return ("all",)
    if not grad:
        return ()
    return (grad,) if isinstance(grad, str) else tuple(grad)


def _find(op):
    if op not in definitions():
        raise ValueError(
            f"the dialect has no op '{op}'; it has {', '.join(definitions())}"
        )
    return definitions()[op]
