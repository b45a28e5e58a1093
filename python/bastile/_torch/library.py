# Part of Bastile, under the MIT License. See LICENSE.
"""Operators registered with PyTorch: one for each op, `call` and `traced`.

`call` is for a `Kernel`, `traced` for a `TracedOperator` or a `Recipe`. PyTorch takes
all of them apart into calls of `run` and `overwrite` (`run_operator`), which alone run
kernels.
"""

import dataclasses

import torch
from bastile._compiler import loading, operators
from bastile._compiler.definitions import definitions
from bastile._torch.operands import find_wanted, promote
from bastile._torch.recorded import record
from bastile._torch.run_operator import LIBRARY


_TYPES = {"f64": "float", "i64": "int", "enum": "str", "unit": "bool"}


def _place_of_returns(definition):
    """The place of the option ``returns`` among the values that follow a call's
    operands; None for an op without it."""
    for i, option in enumerate(definition.options):
        if option.name == "returns":
            return len(definition.attributes) + i
    return None


#: By op, the place of the option ``returns``.
RETURNS = {name: _place_of_returns(op) for name, op in definitions().items()}


def _schema(definition):
    parameters = [
        f"Tensor{'?' if operand.optional else ''} {operand.name}"
        for operand in definition.operands
    ]
    parameters += [
        f"{_TYPES[attribute.type]}{'?' if attribute.optional else ''} {attribute.name}"
        for attribute in definition.attributes
    ]
    parameters += [f"{o.schema} {o.name}" for o in definition.options]
    results = "Tensor[]" if RETURNS[definition.name] is not None else "Tensor"
    return f"{definition.name}({', '.join(parameters)}) -> {results}"


def _call_op(name, count):
    """The implementation of the operator of op ``name``, which has ``count``
    operands."""
    operator = operators.OPERATORS[name]

    def call(*arguments):
        operands = promote(name, arguments[:count])
        attributes = tuple(map(_hashable, arguments[count:]))
        request = operator.request(attributes, operands, find_wanted(operands))
        results = record(request, [x for x in operands if x is not None])
        return results[0] if RETURNS[name] is None else list(results)

    return call


def _hashable(value):
    return tuple(value) if isinstance(value, list) else value


def _call_kernel(text, operands):
    """The implementation of the operator `call`."""
    request = loading.Request.from_text(text)
    if not find_wanted(operands):
        request = dataclasses.replace(request, gradients=())
    return list(record(request, operands))


def _call_traced(name, attributes, operands):
    """The implementation of the operator `traced`."""
    operator = operators.find_traced(name)
    request = operator.request(operands, tuple(attributes), find_wanted(operands))
    return list(record(request, [x for x in operands if x is not None]))


def _find_registered(name):
    """A function that calls the registered operator of op ``name``; traceable."""
    operator = getattr(torch.ops.bastile, name).default
    if RETURNS[name] is None:
        return operator

    def call(*arguments):
        # Where it can be asked for some of its results, an operator returns a list.
        results = operator(*arguments)
        return results[0] if len(results) == 1 else tuple(results)

    return call


def _register():
    LIBRARY.define("call(str request, Tensor[] operands) -> Tensor[]")
    LIBRARY.impl("call", _call_kernel, "CompositeImplicitAutograd")
    LIBRARY.define(
        "traced(str name, float[] attributes, Tensor?[] operands) -> Tensor[]"
    )
    LIBRARY.impl("traced", _call_traced, "CompositeImplicitAutograd")
    for name, definition in definitions().items():
        LIBRARY.define(_schema(definition))
        call = _call_op(name, len(definition.operands))
        LIBRARY.impl(name, call, "CompositeImplicitAutograd")


_register()

#: By op, a function that calls its registered operator.
REGISTERED = {name: _find_registered(name) for name in definitions()}
