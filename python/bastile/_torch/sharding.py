# Part of Bastile, under the MIT License. See LICENSE.
"""Placements of DTensors that are operands and results of kernels.

DTensor asks which placements an operator takes and gives. They follow from the function
that a call of `bastile::run` names, by what the compiler says of it: rows may lie in
several processes, an operand that all rows share is in each of them, and a combination
of all rows, such as the gradient of a weight, is a partial sum. A row itself is never
split among processes.
"""

import functools
import json

import torch
from bastile import _bastile
from bastile._compiler import loading, operators
from torch.distributed.tensor import Partial, Replicate, Shard
from torch.distributed.tensor._dtensor_spec import DTensorSpec
from torch.distributed.tensor._op_schema import OpSpec, OpStrategy, RuntimeSchemaInfo

#: How the results of processes are combined, by the compiler's word for it.
_REDUCTIONS = {"add": "sum", "max": "max", "min": "min"}


@functools.cache
def _sharing(text):
    """The inputs and outputs of the function that ``text`` names, and how the
    processes' shares of each output combine; None in place of that where rows cannot be
    split."""
    request, function = json.loads(text)
    request = loading.Request.from_text(request).on(operators.DESCRIBED_TARGET)
    functions = operators.metadata(request)
    name = function or next(iter(functions))
    described = json.loads(_bastile.describe_sharing(request.native()))
    return functions[name]["inputs"], functions[name]["outputs"], described[name]


def _is_parted(buffer, dimension):
    """Whether an input or output has rows along a leading dimension: it has this
    dimension, and not one row there that repeats."""
    sizes = buffer["shape"]
    return dimension < len(sizes) - 1 and sizes[dimension] != 1


def _dimension(inputs, specs, mesh_dimension):
    """The leading dimension by which the first sharded operand is sharded along a
    dimension of the mesh; None where none is."""
    for buffer, spec in zip(inputs, specs):
        placement = spec.placements[mesh_dimension]
        if type(placement) is Shard and _is_parted(buffer, placement.dim):
            return placement.dim
    return None


def _place_input(buffer, dimension):
    if dimension is not None and _is_parted(buffer, dimension):
        return Shard(dimension)
    return Replicate()


def _place_output(buffer, sharing, dimension):
    if dimension is None or sharing == "same":
        return Replicate()
    if _is_parted(buffer, dimension):
        return Shard(dimension)
    if sharing == "rows":
        # The output has one row here for all processes, as its operands repeat theirs.
        return Replicate()
    return Partial(_REDUCTIONS[sharing])


def _strategy(schema):
    """The placements of a call: rows stay where they lie, and operands that all rows
    share are replicated."""
    _, text, operands = schema.args_schema
    specs = [child.strategies[0].output_spec for child in operands.children]
    inputs, outputs, sharing = _sharing(text)
    mesh = specs[0].mesh
    dimensions = [
        None if sharing is None else _dimension(inputs, specs, i)
        for i in range(mesh.ndim)
    ]
    taken = [
        DTensorSpec(
            mesh,
            tuple(_place_input(buffer, d) for d in dimensions),
            tensor_meta=spec.tensor_meta,
        )
        for buffer, spec in zip(inputs, specs)
    ]
    given = [
        DTensorSpec(mesh, tuple(_place_output(buffer, how, d) for d in dimensions))
        for buffer, how in zip(outputs, sharing or ["same"] * len(outputs))
    ]
    costs = [[0.0] for _ in taken]
    return OpStrategy([OpSpec(tuple(given), tuple(taken), redistribute_cost=costs)])


@functools.cache
def register():
    """Tells DTensor of the operator that every compiled function is called by."""
    propagator = torch.distributed.tensor.DTensor._op_dispatcher.sharding_propagator
    propagator.register_op_strategy(
        torch.ops.bastile.run.default,
        _strategy,
        # The function's text decides, and operands are a list.
        RuntimeSchemaInfo(0, needs_pytree=True),
    )
