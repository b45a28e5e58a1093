"""Ops under PyTorch: autograd, and registered operators for torch.compile.

A plain call never comes here: the extension module runs the kernel at once. With
gradients it goes through one `autograd.Function`. Under a transformation (fake
tensors, functorch, a dispatch mode, a subclass of `Tensor`, torch.compile) a call
becomes one of the operators registered below, which PyTorch knows how to trace.
"""

import functools

import torch
from bastile import _autograd, _bastile, _loading, _operators, _types
from bastile._definitions import definitions

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
            torch._C._is_any_autocast_enabled,
        ],
        differentiate=_autograd.apply,
        dispatch=_dispatch,
    )
    _bastile.follow_thread_count(torch.get_num_threads)


def _dispatch(native, operands, attributes):
    name = next(
        name for name, op in _operators.OPERATORS.items() if op.native is native
    )
    if torch._C._are_functorch_transforms_active():
        outputs = _autograd.TransformedNode.apply(
            native, attributes, _wanted(operands), *operands
        )
        return _results(name, attributes, outputs)
    return call_registered(name, _promote(operands), attributes)


def _wanted(operands):
    """Which operands gradients are recorded for; None if for none."""
    if not torch.is_grad_enabled():
        return None
    wanted = [x is not None and x.requires_grad for x in operands]
    return wanted if True in wanted else None


def _promote(operands):
    """Under autocast, row tensors of several types are cast to the widest, as
    PyTorch does for its own ops of several tensors."""
    device = next(x.device.type for x in operands if x is not None)
    if not torch.amp.is_autocast_available(device):
        return operands
    if not torch.is_autocast_enabled(device):
        return operands
    rows = [x for x in operands if x is not None and x.dim() > 1]
    kinds = {x.dtype for x in rows if x.is_floating_point()}
    if len(kinds) < 2:
        return operands
    widest = max(kinds, key=lambda kind: torch.finfo(kind).bits)
    return tuple(
        x.to(widest)
        if x is not None and x.dim() > 1 and x.is_floating_point()
        else x
        for x in operands
    )


def call_registered(name, operands, attributes):
    """Calls the registered operator of op ``name``; traceable."""
    operator = getattr(torch.ops.bastile, name).default
    outputs = operator(*operands, *attributes, _wanted(operands))
    return _results(name, attributes, outputs)


def _results(name, attributes, outputs):
    """The op's results, of all that a call computed."""
    count = _RESULTS[name]
    place = _RETURNS[name]
    if place is not None and attributes[place] is not None:
        count = len(attributes[place])
    return outputs[0] if count == 1 else tuple(outputs[:count])


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
    """Calls a `bastile.Kernel` on PyTorch's tensors."""
    if _is_watched(operands):
        outputs = torch.ops.bastile.forward(kernel.text, list(operands))
        count = kernel.result_count
        return outputs[0] if count == 1 else tuple(outputs[:count])
    native = kernel.native(_bastile.locate(operands[0]))
    if (
        kernel.has_gradients
        and torch.is_grad_enabled()
        and any(x.requires_grad for x in operands)
    ):
        return _autograd.call(native, *operands)
    return native.call(operands)


def _is_watched(operands):
    return (
        torch.compiler.is_compiling()
        or torch._C._are_functorch_transforms_active()
        or torch._C._len_torch_dispatch_stack()
        or any(_operators.classify(type(x)) == 2 for x in operands)
    )


def _place_of_returns(definition):
    """Where among the values of a call's attributes it names its results."""
    for i, option in enumerate(definition.options):
        if option.name == "returns":
            return len(definition.attributes) + i
    return None


_RESULTS = {name: len(op.results) for name, op in definitions().items()}
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
    parameters.append("bool[]? gradients")
    return f"{definition.name}({', '.join(parameters)}) -> Tensor[]"


class _Registered:
    """One op's implementations under PyTorch's dispatcher."""

    def __init__(self, operator):
        self.operator = operator
        self.count = len(operator.definition.operands)

    def parts(self, arguments):
        *arguments, gradients = arguments
        return (
            tuple(arguments[: self.count]),
            tuple(_hashable(x) for x in arguments[self.count :]),
            None if gradients is None else tuple(gradients),
        )

    def request(self, arguments):
        operands, attributes, gradients = self.parts(arguments)
        return self.operator.request(attributes, operands, gradients)

    def run(self, *arguments):
        operands, attributes, gradients = self.parts(arguments)
        kernel = self.operator.native.find(operands, attributes, gradients)
        return kernel.run([x for x in operands if x is not None])

    def fake(self, *arguments):
        operands, _, _ = self.parts(arguments)
        return _fake_forward(
            self.request(arguments), [x for x in operands if x is not None]
        )

    def setup_context(self, ctx, inputs, output):
        operands, _, gradients = self.parts(inputs)
        ctx.absent = [x is None for x in operands]
        ctx.others = len(inputs) - len(operands)
        if gradients is None:
            raise RuntimeError(
                f"bastile::{self.operator.name} was called without saying which "
                "gradients are wanted; call bastile.ops instead"
            )
        present = [x for x in operands if x is not None]
        _save(ctx, self.request(inputs), present, output)

    def backward(self, ctx, gradients):
        computed = iter(_call_backward(ctx, gradients))
        spread = [None if missing else next(computed) for missing in ctx.absent]
        return (*spread, *([None] * ctx.others))


def _hashable(value):
    return tuple(value) if isinstance(value, list) else value


def _save(ctx, request, operands, outputs):
    """Keeps what the backward of a call reads."""
    function, backward = _description(request)
    if request.together:
        # The gradients themselves, which follow the results.
        ctx.computed = [
            f"grad_{spec['name']}" in _names(function) for spec in function["inputs"]
        ]
        ctx.save_for_backward(*outputs[len(outputs) - sum(ctx.computed) :])
        return
    ctx.computed = None
    ctx.request = request.to_text()
    ctx.save_for_backward(
        *(
            operands[source["input"]]
            if "input" in source
            else outputs[source["output"]]
            for source in backward["inputs"]
            if "grad" not in source
        )
    )


def _call_backward(ctx, gradients):
    """A gradient or None for each operand of the call."""
    if ctx.computed is not None:
        computed = (_autograd.scale(x, gradients[0]) for x in ctx.saved_tensors)
        return [next(computed) if has else None for has in ctx.computed]
    function, backward = _description(_loading.Request.from_text(ctx.request))
    computed = iter(
        torch.ops.bastile.backward(
            ctx.request, list(ctx.saved_tensors), list(gradients)
        )
    )
    return [
        next(computed) if spec["name"] in backward["gradients"] else None
        for spec in function["inputs"]
    ]


def _names(function):
    return [output["name"] for output in function["outputs"]]


def _description(request):
    """The metadata of the request's function, and what it says of its backward."""
    function = _operators.function_of(request)
    return function, function.get("backward")


def _load(request, tensors):
    device = next(x.device for x in tensors)
    index = device.index if device.type == "cuda" else None
    return _loading.load(request.on(_loading.target_for(index))).kernel()


def _run_forward(text, operands):
    return _load(_loading.Request.from_text(text), operands).run(operands)


def _fake_forward(request, operands):
    function, _ = _description(request)
    return _fake_outputs(function, operands)


def _run_backward(text, kept, gradients):
    kernel = _load(_loading.Request.from_text(text), gradients)
    return [x for x in kernel.backward(kept, gradients) if x is not None]


def _fake_backward(text, kept, gradients):
    request = _loading.Request.from_text(text)
    function, backward = _description(request)
    results = []
    if "function" in backward:
        kept = iter(kept)
        inputs = [
            gradients[source["grad"]] if "grad" in source else next(kept)
            for source in backward["inputs"]
        ]
        functions = _operators.metadata(
            request.on(_operators.DESCRIBED_TARGET)
        )
        results = _fake_outputs(functions[backward["function"]], inputs)
    return [
        results[source["result"]]
        if "result" in source
        else torch.empty_like(gradients[source["grad"]])
        for spec in function["inputs"]
        if (source := backward["gradients"].get(spec["name"]))
    ]


def _fake_outputs(function, inputs):
    return [
        inputs[0].new_empty(
            [_size(size, inputs) for size in spec["shape"]],
            dtype=getattr(torch, _types.TORCH_NAMES[spec["type"]]),
        )
        for spec in function["outputs"]
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


def _register(name, schema, run, fake, setup_context=None, backward=None):
    _LIBRARY.define(schema)
    for device in ("CPU", "CUDA"):
        _LIBRARY.impl(name, run, device)
    qualified = f"bastile::{name}"
    torch.library.register_fake(qualified, fake, lib=_LIBRARY)
    if backward:
        torch.library.register_autograd(
            qualified, backward, setup_context=setup_context, lib=_LIBRARY
        )


def _register_all():
    for name, definition in definitions().items():
        op = _Registered(_operators.OPERATORS[name])
        schema = _schema(definition)
        _register(name, schema, op.run, op.fake, op.setup_context, op.backward)

    def setup_context(ctx, inputs, output):
        text, operands = inputs
        _save(ctx, _loading.Request.from_text(text), operands, output)

    _register(
        "forward",
        "forward(str request, Tensor[] operands) -> Tensor[]",
        _run_forward,
        lambda text, operands: _fake_forward(
            _loading.Request.from_text(text), operands
        ),
        setup_context,
        lambda ctx, gradients: (None, _call_backward(ctx, gradients)),
    )
    _register(
        "backward",
        "backward(str request, Tensor[] kept, Tensor[] gradients) -> Tensor[]",
        _run_backward,
        _fake_backward,
    )


_register_all()
