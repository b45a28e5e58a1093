# Part of Bastile, under the MIT License. See LICENSE.
"""Kernels of formulas over logits, compiled once for the types that calls bring."""

import dataclasses
import functools
from collections.abc import Callable
from typing import Any

from bastile import _bastile
from bastile._compiler import compile, loading, schedules, tensor_types


def run(formula, operands, options, in_place=False, drop_value=False):
    """The results of a formula for ``operands``, tensors by name of which those that
    are None are left out.

    ``formula`` is a `Formula`; ``options``, which it is traced with, can be hashed.
    With ``in_place``, the gradient of the first result's sum with respect to the first
    operand comes behind the results, in that operand's memory, and with ``drop_value``
    without that first result.
    """
    operands = {name: x for name, x in operands.items() if x is not None}
    first = next(iter(operands.values()))
    types = types_of(operands)
    native = find(formula, types, options, _bastile.locate(first), in_place, drop_value)
    return native.run(list(operands.values()), in_place=in_place)


@dataclasses.dataclass(frozen=True)
class Formula:
    """What is traced: ``compute(operands, options, wide)`` of symbolic tensors by name,
    and of the type that formulas over them compute in."""

    #: What its kernels are called.
    name: str
    compute: Callable[..., Any]

    def __call__(self, operands, options, wide):
        return self.compute(operands, options, wide)


def types_of(operands):
    """Name, rank, row length and element type of each operand."""
    return tuple(
        (name, x.dim(), x.shape[-1], tensor_types.element_type(x.dtype))
        for name, x in operands.items()
    )


@functools.cache
def find(formula, types, options, device, in_place, drop_value):
    """The extension module's kernel for operands of `types_of`."""
    request = _request(formula, types, options, in_place, drop_value)
    return loading.load(request.on(loading.target_for(device))).kernel()


schedules.on_change(find.cache_clear)


@functools.cache
def _request(formula, types, options, in_place, drop_value):
    shapes = {
        name: (2, length) if rank == 2 else (length,) for name, rank, length, _ in types
    }
    dtypes = {name: element for name, *_, element in types}
    first = types[0][0]
    wide = "f64" if dtypes[first] == "f64" else "f32"

    def compute(operands):
        return formula(operands, options, wide)

    traced = _with_parameters(formula.name, compute, shapes)
    kernel = compile.compile(traced, shapes, dtype=dtypes)
    if not in_place:
        return kernel._request
    return dataclasses.replace(
        kernel._request,
        gradients=(first,),
        together=True,
        in_place=True,
        drop_value=drop_value,
    )


def _with_parameters(name, compute, names):
    """``compute`` of a dictionary as a function of parameters that are named."""
    parameters = ", ".join(names)
    pairs = ", ".join(f"{name!r}: {name}" for name in names)
    scope = {"compute": compute}
    exec(f"def {name}({parameters}):\n    return compute({{{pairs}}})\n", scope)
    return scope[name]
