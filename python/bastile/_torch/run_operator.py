# Part of Bastile, under the MIT License. See LICENSE.
"""The operators `run` and `overwrite`, which programs that PyTorch traced consist of.

Both take a string that has the whole request and the name of one of its functions, so
that another process can load such a program, and a number that stands for the string.
"""

import functools
import hashlib
import json
import sys

import torch
from bastile import _bastile, _log
from bastile._compiler import loading, operators, tensor_types
from bastile._torch import inductor, layouts

_channel = _log.Channel("torch")

#: What every operator of this room is defined in.
LIBRARY = torch.library.Library("bastile", "DEF")


@functools.cache
def describe(request, function):
    """The number and the string that name a function of a request, for `run`."""
    text = json.dumps([request.on("").to_text(), function])
    digest = hashlib.blake2b(text.encode(), digest_size=8).digest()
    return int.from_bytes(digest, "little", signed=True), text


def run(request, function, inputs):
    """The outputs of a function of the request, by default of the first; traceable."""
    return torch.ops.bastile.run.default(*describe(request, function), list(inputs))


def run_in_place(request, inputs):
    """As `run` of the first function, with outputs in the memory of those inputs that
    the metadata names."""
    places = _consumed(request)
    function = operators.function_of(request)
    outputs = _fake_outputs(function, inputs, skip=places)
    torch.ops.bastile.overwrite.default(
        *describe(request, None),
        [inputs[i] for i in places.values()],
        [x for i, x in enumerate(outputs) if i not in places],
        [x for i, x in enumerate(inputs) if i not in places.values()],
    )
    for i, place in places.items():
        outputs[i] = inputs[place].detach()
    return outputs


def _consumed(request):
    """The places of outputs that take the memory of an input, each with the input's."""
    function = operators.function_of(request)
    return {
        i: output["may_alias"]
        for i, output in enumerate(function["outputs"])
        if "may_alias" in output
    }


def _overwrite(key, text, consumed, outputs, others):
    """Implements `overwrite`: a call whose results all go into tensors that its caller
    gives, since only such a call is traced by PyTorch without copies."""
    places = _consumed(loading.Request.from_text(json.loads(text)[0]))
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
        # An output that could not be computed in place is small, or the elements of
        # the input's rows lie apart.
        if computed is not target:
            target.copy_(computed)
    for tensor in consumed:
        torch.autograd.graph.increment_version(tensor)


@functools.cache
def _load_function(text, device):
    request, function = json.loads(text)
    request = loading.Request.from_text(request)
    target = loading.target_for(device)
    return loading.load(request.on(target)).kernel(function)


def _run_in_python(key, text, inputs):
    device = inputs[0].device
    index = device.index if device.type == "cuda" else None
    return _load_function(text, index).run(inputs)


def register_sharding():
    """Tells DTensor, where it is imported, of the operator `run`."""
    if "torch.distributed.tensor" in sys.modules:
        from bastile._torch import sharding

        sharding.register()


def _fake_run(key, text, inputs):
    register_sharding()
    # Whoever traces a call may be about to generate code for it.
    inductor.install(torch.ops.bastile.run.default)
    request, function = json.loads(text)
    request = loading.Request.from_text(request)
    functions = operators.metadata(request.on(operators.DESCRIBED_TARGET))
    function = function or next(iter(functions))
    return _fake_outputs(functions[function], inputs)


def _fake_outputs(function, inputs, skip=()):
    """New tensors like a function's outputs; None for those in ``skip``."""

    def make(spec):
        sizes = [_size(size, inputs) for size in spec["shape"]]
        return inputs[0].new_empty_strided(
            sizes,
            layouts.choose_strides(sizes, inputs),
            dtype=getattr(torch, tensor_types.TORCH_NAMES[spec["type"]]),
        )

    return [
        None if i in skip else make(spec) for i, spec in enumerate(function["outputs"])
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
    LIBRARY.define(
        "run(int key, str function, Tensor[] inputs) -> Tensor[]",
        tags=(torch.Tag.needs_exact_strides,),
    )
    if not _bastile.register_torch_kernels(_load_function):
        _channel.info(
            "traced programs call kernels through Python, which takes longer: PyTorch %s "
            "lacks the stable interface for operators in C++",
            torch.__version__,
        )
        for device in ("CPU", "CUDA"):
            LIBRARY.impl("run", _run_in_python, device)
    torch.library.register_fake("bastile::run", _fake_run, lib=LIBRARY)
    LIBRARY.define(
        "overwrite(int key, str function, Tensor(a!)[] consumed, "
        "Tensor(b!)[] outputs, Tensor[] others) -> ()"
    )
    for device in ("CPU", "CUDA"):
        LIBRARY.impl("overwrite", _overwrite, device)
    torch.library.register_fake(
        "bastile::overwrite", lambda *arguments: None, lib=LIBRARY
    )


_register()

# Generated code runs the kernel itself where PyTorch's dispatcher would do no more.
inductor.offer(
    _bastile.shortcut_torch_kernels(_load_function, torch.ops.bastile.run.default)
)
