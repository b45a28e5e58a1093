# Part of Bastile, under the MIT License. See LICENSE.
"""What is to be tuned: a request and the sizes of its tensors."""

import dataclasses
import importlib.resources
import json
import math

from bastile._compiler import loading, tensor_types
from bastile._compiler.compile import compile
from bastile._compiler.function import Function
from bastile._compiler.kernel import Kernel
from bastile._compiler.recipe import is_module


def _compile(op, shape, dtype, **options):
    """`bastile.compile` of what is tuned. MLIR says its shapes and types itself: those
    that are given are of the tensors that are timed."""
    if is_module(op):
        shape = dtype = None
    return compile(op, shape, dtype=dtype, **options)


@dataclasses.dataclass(frozen=True)
class Spec:
    """An op, and what ``bastile.compile`` is told of it, in words of JSON."""

    op: str
    shape: object
    dtype: object = "bf16"
    grad: object = False
    results: tuple = ()
    attributes: dict = dataclasses.field(default_factory=dict)
    #: Compute the gradients of the first result beside it, in the place of
    #: arguments.
    together: bool = False

    def kernel(self, target=None) -> Kernel:
        kernel = _compile(
            self.op,
            self.shape,
            dtype=self.dtype,
            grad=self.grad,
            target=target,
            results=self.results or None,
            **self.attributes,
        )
        if not self.together:
            return kernel
        request = dataclasses.replace(kernel._request, together=True, in_place=True)
        results = kernel.result_count + len(request.gradients)
        return Kernel(request, kernel.operands, results, target)

    def record(self) -> dict:
        """The fields that differ from their defaults."""
        found = {}
        for field in dataclasses.fields(self):
            value = getattr(self, field.name)
            if value or field.name in ("op", "shape"):
                found[field.name] = value
        if isinstance(self.dtype, dict):
            found["dtype"] = {
                name: tensor_types.element_type(dtype)
                for name, dtype in self.dtype.items()
            }
        else:
            found["dtype"] = tensor_types.element_type(self.dtype)
        return found


@dataclasses.dataclass(frozen=True)
class Job:
    name: str
    request: loading.Request
    sizes: tuple
    spec: Spec | None = None

    @property
    def rows(self) -> int:
        return math.prod(self.sizes[0][:-1])

    def describe(self) -> str:
        shape = "x".join(map(str, self.sizes[0]))
        what = {True: " with gradients", False: ""}[bool(self.request.gradients)]
        return f"{self.name} {shape}{what}"


def make_job(op, target, shape=None) -> Job:
    """The job for a kernel, or for a ``Spec``, on tensors of ``shape``: sizes of
    the first operand, or of all by name."""
    spec = None
    if isinstance(op, Spec):
        spec, shape, op = op, op.shape, op.kernel()
    request = op._request.on(target)
    if shape is None:
        raise TypeError(f"autotune: the shape of {op.operands[0]} is missing")
    sizes = operand_sizes(request.describe()["functions"][0]["inputs"], shape)
    return Job(op.name, request, sizes, spec)


def operand_sizes(inputs, shape) -> tuple:
    """The sizes of each operand of a function's metadata."""
    shapes = shape if isinstance(shape, dict) else {inputs[0]["name"]: shape}
    for name in shapes:
        if name not in [operand["name"] for operand in inputs]:
            raise ValueError(f"there is no operand '{name}'")
    first = shapes.get(inputs[0]["name"])
    if first is None:
        raise ValueError(f"the shape of '{inputs[0]['name']}' is missing")
    return tuple(
        _fill(operand, shapes.get(operand["name"], first)) for operand in inputs
    )


def _fill(operand, given):
    static = operand["shape"]
    if None in static and len(given) != len(static):
        raise ValueError(
            f"the shape of '{operand['name']}' does not follow from {tuple(given)}; "
            "give a dictionary of shapes by name"
        )
    return tuple(given[i] if size is None else size for i, size in enumerate(static))


def read_preset(name) -> list:
    """The specs of a list that comes with the package: of each group, every
    shape, with and without gradients as it says."""
    folder = importlib.resources.files("bastile").joinpath("_tuning", "presets")
    file = folder.joinpath(f"{name}.json")
    if not file.is_file():
        raise ValueError(f"there is no preset '{name}'")
    specs = []
    for group in json.loads(file.read_text()):
        shapes, grads = group.pop("shapes"), group.pop("grads", [False])
        specs += [
            Spec(shape=shape, grad=grad, **group) for shape in shapes for grad in grads
        ]
    return specs


def read_specs(items, shape, dtype, grad, attributes) -> list:
    """(kernel or spec, shape) of each item: a kernel, a spec, an op's name, or a
    tuple of an op or kernel, its shape and, maybe, a dictionary with the rest.
    What a tuple leaves out is taken from the other arguments."""
    found = []
    for item in items:
        parts = list(item) if isinstance(item, tuple) else [item]
        own = parts[1] if len(parts) > 1 else shape
        options = {"dtype": dtype, "grad": grad, **attributes}
        if len(parts) > 2:
            options.update(parts[2])
        op = parts[0]
        if isinstance(op, str) and not is_module(op):
            named = {key: options.pop(key) for key in ("dtype", "grad")}
            op = Spec(op, own, **named, attributes=options)
        elif not isinstance(op, (Spec, Kernel)):
            op = _compile(op, own, **options)
            if isinstance(op, Function):
                raise TypeError(f"the shape of {op.operands[0]} is missing")
        found.append((op, own))
    return found
