# Part of Bastile, under the MIT License. See LICENSE.
"""Ops that compile themselves for the tensors that they are called on."""

import dataclasses
import functools
import json
import weakref

from bastile import _bastile
from bastile._compiler import adapter, checks, loading, schedules, tensor_types
from bastile._compiler.definitions import definitions


class Operator:
    """A model op of the dialect, called on tensors of any library.

    The code for a call depends on the attributes and on each operand's type,
    rank and row length, and whether rows repeat. It is made once.
    """

    def __init__(self, definition):
        self.definition = definition
        self.native = _bastile.Operator(
            self._specialize,
            definition.name,
            [operand.name for operand in definition.operands],
        )
        #: Calls it on a tuple of operands and one of attributes.
        self.call = self.native.caller()
        OPERATORS[definition.name] = self

    @property
    def name(self):
        return self.definition.name

    def request(self, attributes, operands, gradients=None) -> loading.Request:
        """What to compile for ``operands``; its target is not set.

        ``attributes`` are values of the op's attributes and then of the options;
        ``gradients`` says for each operand whether its gradient is wanted.
        """
        definition = self.definition
        tensors = [describe(x) for x in operands]
        checks.check(definition, tensors)
        values, options = definition.split(attributes)
        source = definition.source(
            tensor_types.row_types(
                [None if x is None else x[0] for x in tensors],
                [None if x is None else x[1] for x in tensors],
                definition.fixed,
            ),
            values,
            options["results"] or (),
            definition.returned(options["returns"]),
        )
        request = loading.Request(source, "", name=self.name)
        wanted = tuple(
            operand.name
            for operand, want in zip(definition.operands, gradients or ())
            if want
        )
        if not wanted:
            return request
        together = definition.is_criterion and self._is_together(request, options)
        return dataclasses.replace(
            request,
            gradients=wanted,
            together=together,
            in_place=together and options["in_place"],
        )

    def _is_together(self, request, options):
        """Whether gradients are computed with the value, as a total allows."""
        if options["together"] is False:
            return False
        first, *others = request.describe()["functions"][0]["outputs"]
        if first["shape"] != [1]:
            if options["together"]:
                raise ValueError(
                    f"{self.name}: 'together' is for a first result that is one "
                    f"number for all rows, but '{first['name']}' is not"
                )
            return False
        if options["together"]:
            return True
        return all("f" not in output["type"] for output in others)

    def _specialize(self, attributes, operands, gradients):
        request = self.request(attributes, operands, gradients)
        device = next(_bastile.locate(x) for x in operands if x is not None)
        request = request.on(loading.target_for(device))
        schedules.tune_first_call(request, operands, device)
        return loading.load(request).kernel()


def describe(tensor):
    """The shape, the element type as MLIR spells it, and the place of a tensor, by a
    name that two tensors in one place share; None for None."""
    if tensor is None:
        return None
    if not hasattr(tensor, "data_ptr"):
        # Each library has its own name for a place; this is PyTorch's.
        _, element, shape, _, device, _ = adapter.describe(tensor)
        return shape, element, "cpu" if device is None else f"cuda:{device}"
    # A tensor of PyTorch may have symbols for sizes, and no memory.
    return (
        tuple(tensor.shape),
        tensor_types.element_type(tensor.dtype),
        str(tensor.device),
    )


#: Every op by name; filled as `op_functions` makes them.
OPERATORS: dict = {}

#: Every op that is traced from a Python function, by name.
TRACED: dict = {}

#: By its key, what each `bastile.Function` is compiled of, while it lives.
FUNCTIONS: weakref.WeakValueDictionary = weakref.WeakValueDictionary()


def find_traced(key):
    """What is registered as ``key`` in `TRACED` or `FUNCTIONS`.

    Raises ``LookupError`` for a key that nothing is registered as.
    """
    found = TRACED.get(key) or FUNCTIONS.get(key)
    if found is None:
        raise LookupError(
            f"bastile: a traced program calls a function '{key}' that is not there "
            "any more, or was compiled in another process"
        )
    return found


@schedules.on_change
def _forget_code():
    """Has ops ask for code again, which may have another schedule now."""
    for operator in (*OPERATORS.values(), *TRACED.values()):
        operator.native.clear()


#: The target of which metadata is asked where no code is needed: shapes, and what is
#: saved for a backward, do not depend on it, and the host takes every type.
DESCRIBED_TARGET = "host"


@functools.cache
def metadata(request: loading.Request) -> dict:
    """The metadata of a request's functions by name, without generating code."""
    document = json.loads(_bastile.describe_text(request.native()))
    return {function["name"]: function for function in document["functions"]}


def function_of(request: loading.Request) -> dict:
    """The metadata of the function that a call runs."""
    functions = metadata(request.on(DESCRIBED_TARGET))
    return next(iter(functions.values()))


def make(name) -> Operator:
    """The operator of the dialect's op ``name``."""
    return Operator(definitions()[name])
