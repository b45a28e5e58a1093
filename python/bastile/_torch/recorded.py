# Part of Bastile, under the MIT License. See LICENSE.
"""Calls that PyTorch traces, as nodes whose backwards it traces as well."""

import torch
from bastile._compiler import operators
from bastile._torch import autograd, transforms
from bastile._torch.operands import is_distributed, refuse_recorded
from bastile._torch.run_operator import run, run_in_place


def record(request, operands):
    """The results of a call that PyTorch traces. Where the request has gradients, the
    call is recorded with them, unless they are its results."""
    if request.drop_value:
        return tuple(run(request, None, operands))
    if request.gradients:
        if not torch._C._are_functorch_transforms_active():
            return _Recorded.apply(request, *operands)
        with transforms.enter():
            return _Transformed.apply(request, *operands)[: result_count(request)]
    if request.in_place:
        return _overwrite(request, operands)
    return tuple(run(request, None, operands)[: result_count(request)])


def _overwrite(request, operands):
    """The results of a call that PyTorch traces, some of which take the memory of
    operands."""
    if any(map(is_distributed, operands)):
        raise TypeError(
            f"{request.name}: overwrites operands, and takes no DTensor; call it on "
            "their to_local()"
        )
    outputs = request.describe()["functions"][0]["outputs"]
    overwritten = [operands[x["in_place"]] for x in outputs if "in_place" in x]
    refuse_recorded(request.name, overwritten)
    return tuple(run_in_place(request, operands)[: result_count(request)])


class _Recorded(torch.autograd.Function):
    """A call that PyTorch traces, whose forward and backward both become calls of the
    operator `run`."""

    @staticmethod
    def forward(ctx, request, *operands):
        outputs = _compute(request, operands)
        fixed = _keep(ctx, request, operands, outputs)
        ctx.mark_non_differentiable(*fixed)
        return tuple(outputs[: result_count(request)])

    @staticmethod
    def backward(ctx, *gradients):
        request, kept = ctx.request, ctx.saved_tensors
        function, _ = _description(request)
        find = _scaled_gradients if request.together else _derived_gradients
        found = find(request, kept, function, gradients)
        computed = [found.get(spec["name"]) for spec in function["inputs"]]
        sources = (*kept, *gradients)
        return None, *autograd.refuse_twice(request.name, computed, sources)


class _Transformed(torch.autograd.Function):
    """The same under `torch.func`, which asks for a forward that returns all that the
    backward needs."""

    @staticmethod
    def forward(request, *operands):
        return tuple(_compute(request, operands))

    @staticmethod
    def setup_context(ctx, inputs, output):
        request, *operands = inputs
        fixed = _keep(ctx, request, operands, output)
        ctx.mark_non_differentiable(*fixed, *output[result_count(request) :])

    @staticmethod
    def backward(ctx, *gradients):
        return _Recorded.backward(ctx, *gradients[: result_count(ctx.request)])

    @staticmethod
    def vmap(info, in_dims, request, *operands):
        raise transforms.batched(request.name)


def _compute(request, operands):
    if request.in_place and not any(map(is_distributed, operands)):
        return run_in_place(request, operands)
    return run(request, None, operands)


def _keep(ctx, request, operands, outputs):
    """Saves what the backward needs, and returns the results without gradients."""
    ctx.request = request
    count = result_count(request)
    results = outputs[:count]
    if request.together:
        ctx.save_for_backward(*outputs[count:])
        return results[1:]
    _, backward = _description(request)
    ctx.save_for_backward(
        *(
            operands[source["input"]]
            if "input" in source
            else outputs[source["output"]]
            for source in backward["inputs"]
            if "grad" not in source
        )
    )
    return [x for x in results if not x.is_floating_point()]


def _scaled_gradients(request, kept, function, gradients):
    """By operand, the gradients that were computed with the results, times the upstream
    gradient."""
    names = [
        spec["name"]
        for spec in function["inputs"]
        if f"grad_{spec['name']}" in _gradient_names(function)
    ]
    # A factor of rank 0 does not change the type of the product. A compiler of graphs
    # can compute a product in place, or fuse it with what comes next.
    factor = gradients[0].reshape(())
    return {name: x * factor for name, x in zip(names, kept)}


def _derived_gradients(request, kept, function, gradients):
    """By operand, the gradients that the backward function of the request computes."""
    backward = function["backward"]
    computed = []
    if "function" in backward:
        kept = iter(kept)
        inputs = [
            gradients[source["grad"]] if "grad" in source else next(kept)
            for source in backward["inputs"]
        ]
        computed = run(request, backward["function"], inputs)
    return {
        name: computed[source["result"]]
        if "result" in source
        else gradients[source["grad"]]
        for name, source in backward["gradients"].items()
    }


def _description(request):
    """The metadata of the request's function, and what it says of its backward."""
    function = operators.function_of(request)
    return function, function.get("backward")


def result_count(request):
    """How many outputs of the first function are results; the others are kept for the
    backward."""
    function, _ = _description(request)
    names = [x["name"] for x in function["outputs"]]
    rest = _gradient_names(function) if request.together else ()
    return sum(not (name.startswith("saved") or name in rest) for name in names)


def _gradient_names(function):
    """The names of the outputs of a function that are gradients of its inputs."""
    names = {f"grad_{spec['name']}" for spec in function["inputs"]}
    return names.intersection(x["name"] for x in function["outputs"])
