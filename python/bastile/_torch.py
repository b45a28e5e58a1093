"""Ops under PyTorch: autograd, and registered operators for torch.compile.

A plain call never comes here: the extension module runs the kernel at once. With
gradients it goes through one `autograd.Function`. Under a transformation (fake
tensors, functorch, a dispatch mode, a subclass of `Tensor`, torch.compile) a call
becomes one of the operators registered below, which PyTorch knows how to trace.
"""

import dataclasses
import functools
import hashlib
import json
import sys

import torch
from bastile import (
    _adapter,
    _autograd,
    _bastile,
    _inductor,
    _loading,
    _operators,
    _transforms,
    _types,
    ops,
)
from bastile._definitions import definitions
from bastile._linear_loss import operators  # noqa: F401  registers its own
from bastile._recipe import Recipe

_LIBRARY = torch.library.Library("bastile", "DEF")
_TYPES = {"f64": "float", "i64": "int", "enum": "str", "unit": "bool"}


def install(classify):
    """Makes the extension module ask PyTorch about calls on its tensors."""
    _bastile.set_hooks(
        classify,
        records_gradients=torch.is_grad_enabled,
        watchers=[
            torch._C._are_functorch_transforms_active,
            torch._C._len_torch_dispatch_stack,
            _transforms.has_forward_level,
        ],
        casters=[torch._C._is_any_autocast_enabled],
        make_node=_autograd.make_node,
        keep_gradients=_autograd.keep_gradients,
        is_last_backward=_autograd.is_last_backward,
        refuse_twice=_autograd.refuse_twice,
        dispatch=_dispatch,
    )
    _bastile.follow_thread_count(torch.get_num_threads)
    # What is being traced must not change.
    if torch._guards.TracingContext.try_get() is None:
        connect()


@functools.cache
def connect():
    """Has ops ask PyTorch itself whether torch.compile is looking."""
    _operators.is_compiling = torch.compiler.is_compiling
    ops.connect(torch.compiler.is_compiling, REGISTERED)


def _dispatch(native, operands, attributes):
    # A kernel or a recipe comes in the place of attributes.
    is_kernel = type(native) is _bastile.FixedOperator
    is_recipe = type(attributes) is Recipe
    name = attributes.name if is_kernel or is_recipe else _name_of(native)
    _refuse_unusual(name, operands)
    _transforms.refuse(name, operands)
    if is_kernel and not torch._C._are_functorch_transforms_active():
        return call_kernel(attributes, operands)
    traced = attributes if is_recipe else _operators.TRACED.get(name)
    if torch._C._are_functorch_transforms_active():
        if is_kernel or is_recipe:
            attributes.require_gradients(_wanted(operands))
        outputs = _autograd.TransformedNode.apply(
            native, attributes, _wanted(operands), *operands
        )
        if is_kernel:
            count = attributes.result_count
        elif traced is None:
            count = _count_returned(name, attributes)
        else:
            count = _result_count(traced.request(operands, attributes, None))
        return outputs[0] if count == 1 else outputs[:count]
    if not _is_watched(operands):
        op = attributes.op if is_recipe else name
        return _call_promoted(op, native, operands, attributes)
    if traced is not None:
        return call_traced(traced, operands, attributes)
    return REGISTERED[name](*operands, *attributes)


def _refuse_unusual(name, operands):
    """Raises for tensors of PyTorch whose memory is not what sizes and strides say."""
    for x in operands:
        kind = None if x is None else _adapter.unusual_kind(x)
        if kind:
            raise TypeError(f"{name}: a kernel takes dense tensors, but got {kind}")


def _name_of(native):
    for known in (_operators.OPERATORS, _operators.TRACED):
        for name, operator in known.items():
            if operator.native is native:
                return name
    raise LookupError(f"{native!r} is no operator of bastile")


def _call_promoted(name, native, operands, attributes):
    """A call under autocast, which is all that keeps it from being a plain one;
    ``name`` is that of an op of the dialect, or something else."""
    if name in _SAME_TYPES:
        operands = _promote(name, operands)
    wanted = _wanted(operands)
    if wanted is None:
        return native.run(tuple(operands), attributes)
    return native.record(tuple(operands), attributes, wanted)


def _wanted(operands):
    """Which operands gradients are recorded for; None if for none."""
    if not torch.is_grad_enabled():
        return None
    wanted = [x is not None and x.requires_grad for x in operands]
    return wanted if True in wanted else None


def _promote(name, operands):
    """Under autocast, operands that have to be of one type are cast to the widest
    among them, as PyTorch does for its own ops of several tensors."""
    device = next(x.device.type for x in operands if x is not None)
    # Of other devices, "meta" among them, PyTorch cannot be asked.
    if device not in ("cpu", "cuda") or not torch.is_autocast_enabled(device):
        return operands
    operands = list(operands)
    for group in _SAME_TYPES[name]:
        present = [i for i in group if operands[i] is not None]
        if len(present) < 2:
            continue
        widest = operands[present[0]].dtype
        for i in present[1:]:
            widest = torch.promote_types(widest, operands[i].dtype)
        for i in present:
            operands[i] = operands[i].to(widest)
    return operands


def _find_registered(name):
    """What calls the registered operator of op ``name``; traceable."""
    operator = getattr(torch.ops.bastile, name).default
    if _RETURNS[name] is None:
        return operator

    def call(*arguments):
        # Where it can be asked for some of its results, an operator returns a list.
        results = operator(*arguments)
        return results[0] if len(results) == 1 else tuple(results)

    return call


def call_traced(operator, operands, attributes):
    """Calls an op that is traced from a Python function, or what a `Recipe` is of;
    traceable itself."""
    if type(operator) is Recipe and not torch.compiler.is_dynamo_compiling():
        # A program that is exported has to say all of it.
        kernel = operator.kernel(operands, _wanted(operands))
        return call_kernel(kernel, [x for x in operands if x is not None])
    results = torch.ops.bastile.traced.default(
        operator.key, attributes, list(operands)
    )
    return results[0] if len(results) == 1 else tuple(results)


def _count_returned(name, attributes):
    """How many results a call with these attributes asks for."""
    place = _RETURNS[name]
    if place is None or attributes[place] is None:
        return _RESULTS[name]
    return len(attributes[place])


def forbid_leaves(name, operands):
    """Raises for operands that gradients are collected in, as PyTorch does for
    operations in place."""
    if torch.is_grad_enabled():
        for operand in operands:
            if (
                isinstance(operand, torch.Tensor)
                and operand.requires_grad
                and operand.is_leaf
                and operand.dim() > 1
            ):
                raise RuntimeError(
                    f"{name}: 'in_place' would overwrite a leaf that requires "
                    "gradients"
                )


def call_kernel(kernel, operands):
    """Calls a `bastile.Kernel` where a plain call is not enough; traceable."""
    if len({x.is_meta for x in operands}) > 1:
        raise ValueError(
            f"{kernel.name}: operands lie in one place, but some have no memory, and "
            "lie on 'meta'"
        )
    if _is_watched(operands):
        results = torch.ops.bastile.call.default(kernel.text, list(operands))
        return results[0] if kernel.result_count == 1 else tuple(results)
    if kernel.has_gradients and _wanted(operands):
        return kernel.fixed.record(operands, kernel, None)
    return kernel.fixed.run(operands, kernel)


def _is_watched(operands):
    return (
        torch.compiler.is_compiling()
        or torch._C._are_functorch_transforms_active()
        or torch._C._len_torch_dispatch_stack()
        or any(
            x.device.type == "meta" or _operators.classify(type(x)) == 2
            for x in operands
            if x is not None
        )
    )


def _place_of_returns(definition):
    """Where among the values of a call's attributes it names its results."""
    for i, option in enumerate(definition.options):
        if option.name == "returns":
            return len(definition.attributes) + i
    return None


_RESULTS = {name: len(op.results) for name, op in definitions().items()}
#: By op, which operands have to be of the same type.
_SAME_TYPES = {
    name: [
        [i for i, operand in enumerate(op.operands) if operand.name in group]
        for group in op.same_types
    ]
    for name, op in definitions().items()
}
_RETURNS = {name: _place_of_returns(op) for name, op in definitions().items()}


def _schema(definition):
    parameters = [
        f"Tensor{'?' if operand.optional else ''} {operand.name}"
        for operand in definition.operands
    ]
    parameters += [
        f"{_TYPES[attribute.type]}{'?' if attribute.optional else ''} "
        f"{attribute.name}"
        for attribute in definition.attributes
    ]
    parameters += [f"{o.schema} {o.name}" for o in definition.options]
    results = "Tensor[]" if _RETURNS[definition.name] is not None else "Tensor"
    return f"{definition.name}({', '.join(parameters)}) -> {results}"


class _Traced(torch.autograd.Function):
    """A call that PyTorch traces, forward and backward: both are calls of the
    operator `run` in what it records."""

    @staticmethod
    def forward(ctx, request, *operands):
        function, backward = _description(request)
        outputs = (
            _run_in_place(request, operands)
            if request.in_place and not _is_distributed(operands)
            else _run(request, None, operands)
        )
        ctx.request = request
        count = _result_count(request)
        results = outputs[:count]
        if request.together:
            ctx.save_for_backward(*outputs[count:])
            ctx.mark_non_differentiable(*results[1:])
            return tuple(results)
        ctx.save_for_backward(
            *(
                operands[source["input"]]
                if "input" in source
                else outputs[source["output"]]
                for source in backward["inputs"]
                if "grad" not in source
            )
        )
        ctx.mark_non_differentiable(
            *(x for x in results if not x.is_floating_point())
        )
        return tuple(results)

    @staticmethod
    def backward(ctx, *gradients):
        request, kept = ctx.request, ctx.saved_tensors
        function, _ = _description(request)
        find = _scaled_gradients if request.together else _derived_gradients
        found = find(request, kept, function, gradients)
        computed = [found.get(spec["name"]) for spec in function["inputs"]]
        sources = (*kept, *gradients)
        return None, *_autograd.refuse_twice(request.name, computed, sources)


def _scaled_gradients(request, kept, function, gradients):
    """By operand, those that came with the results."""
    names = [
        spec["name"]
        for spec in function["inputs"]
        if f"grad_{spec['name']}" in _gradient_names(function)
    ]
    # Of rank 0, it does not take part in the choice of the type. A product is what
    # a compiler of graphs can do in place, or with what comes next.
    factor = gradients[0].reshape(())
    return {name: x * factor for name, x in zip(names, kept)}


def _derived_gradients(request, kept, function, gradients):
    """By operand, those that the request's backward computes."""
    backward = function["backward"]
    computed = []
    if "function" in backward:
        kept = iter(kept)
        inputs = [
            gradients[source["grad"]] if "grad" in source else next(kept)
            for source in backward["inputs"]
        ]
        computed = _run(request, backward["function"], inputs)
    return {
        name: computed[source["result"]]
        if "result" in source
        else gradients[source["grad"]]
        for name, source in backward["gradients"].items()
    }


def _trace(request, operands):
    """The results of a call, recorded with its gradients where they are wanted."""
    if request.gradients:
        return _Traced.apply(request, *operands)
    return tuple(_run(request, None, operands)[: _result_count(request)])


def _is_distributed(operands):
    """Whether operands are DTensors, whose memory is their processes'."""
    distributed = sys.modules.get("torch.distributed.tensor")
    return distributed is not None and any(
        isinstance(x, distributed.DTensor) for x in operands
    )


def _gradient_names(function):
    """What the gradients among a function's outputs would be called."""
    names = {f"grad_{spec['name']}" for spec in function["inputs"]}
    return names.intersection(x["name"] for x in function["outputs"])


def _result_count(request):
    """How many outputs are results: the rest is for the backward."""
    function, _ = _description(request)
    names = [x["name"] for x in function["outputs"]]
    rest = _gradient_names(function) if request.together else ()
    return sum(not (name.startswith("saved") or name in rest) for name in names)


def _call_op(name, count):
    """The implementation of an op's operator, for tracing."""
    operator = _operators.OPERATORS[name]

    def call(*arguments):
        operands = _promote(name, arguments[:count])
        attributes = tuple(map(_hashable, arguments[count:]))
        request = operator.request(attributes, operands, _wanted(operands))
        results = _trace(request, [x for x in operands if x is not None])
        return results[0] if _RETURNS[name] is None else list(results)

    return call


def _hashable(value):
    return tuple(value) if isinstance(value, list) else value


def _call_kernel(text, operands):
    request = _loading.Request.from_text(text)
    if not _wanted(operands):
        request = dataclasses.replace(request, gradients=())
    return list(_trace(request, operands))


def _call_traced(name, attributes, operands):
    """The implementation of the operator `traced`, for tracing."""
    operator = _operators.find_traced(name)
    request = operator.request(operands, tuple(attributes), _wanted(operands))
    return list(_trace(request, [x for x in operands if x is not None]))


def _description(request):
    """The metadata of the request's function, and what it says of its backward."""
    function = _operators.function_of(request)
    return function, function.get("backward")


# The operator that compiled programs call. Its string says everything, so that
# another process can load such a program; its number stands for the string.


@functools.cache
def _describe(request, function):
    text = json.dumps([request.on("").to_text(), function])
    digest = hashlib.blake2b(text.encode(), digest_size=8).digest()
    return int.from_bytes(digest, "little", signed=True), text


def _run(request, function, inputs):
    """The outputs of a function of the request; by default the first."""
    return torch.ops.bastile.run.default(
        *_describe(request, function), list(inputs)
    )


def _consumed(request):
    """By output, the inputs whose memory outputs take."""
    function, _ = _description(request)
    return {
        i: output["may_alias"]
        for i, output in enumerate(function["outputs"])
        if "may_alias" in output
    }


def _run_in_place(request, inputs):
    """As `_run`, with outputs in place of inputs."""
    places = _consumed(request)
    function, _ = _description(request)
    outputs = _fake_outputs(function, inputs, skip=places)
    torch.ops.bastile.overwrite.default(
        *_describe(request, None),
        [inputs[i] for i in places.values()],
        [x for i, x in enumerate(outputs) if i not in places],
        [x for i, x in enumerate(inputs) if i not in places.values()],
    )
    for i, place in places.items():
        outputs[i] = inputs[place].detach()
    return outputs


def _overwrite(key, text, consumed, outputs, others):
    """Implements `overwrite`: a call whose results all go into tensors that are
    there, which is what PyTorch can trace without copies."""
    places = _consumed(_loading.Request.from_text(json.loads(text)[0]))
    inputs = list(others)
    for place, tensor in sorted(
        zip(places.values(), consumed), key=lambda pair: pair[0]
    ):
        inputs.insert(place, tensor)
    device = inputs[0].device
    kernel = _load_function(text, device.index if device.type == "cuda" else None)
    rest = iter(outputs)
    for i, computed in enumerate(kernel.run(inputs, in_place=True)):
        target = inputs[places[i]] if i in places else next(rest)
        # What was not computed in place is small, or its rows lie apart.
        if computed is not target:
            target.copy_(computed)
    for tensor in consumed:
        torch.autograd.graph.increment_version(tensor)


@functools.cache
def _load_function(text, device):
    request, function = json.loads(text)
    request = _loading.Request.from_text(request)
    target = _loading.target_for(device)
    return _loading.load(request.on(target)).kernel(function)


def _run_in_python(key, text, inputs):
    device = inputs[0].device
    index = device.index if device.type == "cuda" else None
    return _load_function(text, index).run(inputs)


def register_sharding():
    """Has DTensor, where it is imported, part calls among processes."""
    if "torch.distributed.tensor" in sys.modules:
        from bastile import _sharding

        _sharding.register()


def _fake_run(key, text, inputs):
    register_sharding()
    # Who traces is perhaps about to generate code.
    _inductor.install(torch.ops.bastile.run.default)
    request, function = json.loads(text)
    request = _loading.Request.from_text(request)
    functions = _operators.metadata(request.on(_operators.DESCRIBED_TARGET))
    function = function or next(iter(functions))
    return _fake_outputs(functions[function], inputs)


def _fake_outputs(function, inputs, skip=()):
    """New tensors like a function's outputs; None for those in ``skip``."""
    return [
        None
        if i in skip
        else inputs[0].new_empty(
            [_size(size, inputs) for size in spec["shape"]],
            dtype=getattr(torch, _types.TORCH_NAMES[spec["type"]]),
        )
        for i, spec in enumerate(function["outputs"])
    ]


def _size(expression, inputs):
    """A size of an output, from the (perhaps symbolic) sizes of the inputs."""
    if isinstance(expression, int):
        return expression
    if "input" in expression:
        return inputs[expression["input"]].shape[expression["dimension"]]
    ((operator, parts),) = expression.items()
    values = [_size(part, inputs) for part in parts]
    if operator == "ceildiv":
        return -(-values[0] // values[1])
    return functools.reduce(_COMBINE[operator], values)


_COMBINE = {
    "add": lambda a, b: a + b,
    "mul": lambda a, b: a * b,
    "min": torch.sym_min,
    "max": torch.sym_max,
}


def _register():
    _LIBRARY.define(
        "run(int key, str function, Tensor[] inputs) -> Tensor[]",
        tags=(torch.Tag.needs_exact_strides,),
    )
    if not _bastile.register_torch_kernels(_load_function):
        for device in ("CPU", "CUDA"):
            _LIBRARY.impl("run", _run_in_python, device)
    torch.library.register_fake("bastile::run", _fake_run, lib=_LIBRARY)
    _LIBRARY.define(
        "overwrite(int key, str function, Tensor(a!)[] consumed, "
        "Tensor(b!)[] outputs, Tensor[] others) -> ()"
    )
    for device in ("CPU", "CUDA"):
        _LIBRARY.impl("overwrite", _overwrite, device)
    torch.library.register_fake(
        "bastile::overwrite", lambda *arguments: None, lib=_LIBRARY
    )
    _LIBRARY.define("call(str request, Tensor[] operands) -> Tensor[]")
    _LIBRARY.impl("call", _call_kernel, "CompositeImplicitAutograd")
    _LIBRARY.define(
        "traced(str name, float[] attributes, Tensor?[] operands) -> Tensor[]"
    )
    _LIBRARY.impl("traced", _call_traced, "CompositeImplicitAutograd")
    for name, definition in definitions().items():
        _LIBRARY.define(_schema(definition))
        call = _call_op(name, len(definition.operands))
        _LIBRARY.impl(name, call, "CompositeImplicitAutograd")


_register()

# Where the dispatcher would do no more than run the kernel, it is not asked.
_inductor.offer(
    _bastile.shortcut_torch_kernels(_load_function, torch.ops.bastile.run.default)
)

from bastile import _flops  # noqa: E402, F401  of the operators that are there now

#: By op, what calls its registered operator.
REGISTERED = {name: _find_registered(name) for name in definitions()}
