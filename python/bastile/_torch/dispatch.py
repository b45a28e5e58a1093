# Part of Bastile, under the MIT License. See LICENSE.
"""The way of calls on PyTorch's tensors that the extension module does not run itself.

A plain call never comes here: the extension module runs the kernel at once. With
gradients it goes through one `autograd.Function`. Under a transformation (fake
tensors, functorch, a dispatch mode, a subclass of `Tensor`, torch.compile,
torch.jit.trace) a call becomes one of the registered operators (`library`), which
PyTorch knows how to trace.
"""

import functools

import torch
from bastile import _bastile
from bastile._compiler import capture, op_functions, operators
from bastile._compiler.definitions import definitions
from bastile._compiler.recipe import Recipe
from bastile._torch import autograd, transforms
from bastile._torch.library import REGISTERED, RETURNS
from bastile._torch.operands import (
    SAME_TYPES,
    find_wanted,
    forbid_leaves,
    overwrite,
    promote,
    refuse_unusual,
)
from bastile._torch.recorded import result_count
from bastile._torch.run_operator import register_sharding


def classify(kind):
    """How tensors of type ``kind`` are called on: 0 for those of other libraries, 1 for
    PyTorch's own, 2 for its subclasses."""
    if not issubclass(kind, torch.Tensor):
        return 0
    _install()
    plain = kind is torch.Tensor or kind is torch.nn.Parameter
    if not plain:
        register_sharding()
    return 1 if plain else 2


def _install():
    """Has the extension module ask PyTorch about calls on its tensors."""
    _bastile.set_hooks(
        classify,
        records_gradients=torch.is_grad_enabled,
        watchers=[
            torch._C._are_functorch_transforms_active,
            torch._C._len_torch_dispatch_stack,
            transforms.has_forward_level,
            torch._C._get_tracing_state,
        ],
        casters=[torch._C._is_any_autocast_enabled],
        make_node=autograd.make_node,
        keep_gradients=autograd.keep_gradients,
        is_last_backward=autograd.is_last_backward,
        refuse_twice=autograd.refuse_twice,
        dispatch=_dispatch,
    )
    _bastile.follow_thread_count(torch.get_num_threads)
    # A program that is being traced depends on what `connect` would change.
    if torch._guards.TracingContext.try_get() is None:
        connect()


@functools.cache
def connect():
    """Has calls ask PyTorch itself whether torch.compile is looking, and go to this
    room at once where it is."""
    capture.connect(
        op=call_op,
        kernel=call_kernel,
        traced=call_traced,
        leaves=forbid_leaves,
        overwriting=overwrite,
        compiling=torch.compiler.is_compiling,
    )
    op_functions.connect(torch.compiler.is_compiling, REGISTERED)


def call_op(name, arguments):
    """Calls the registered operator of op ``name``; traceable."""
    return REGISTERED[name](*arguments)


def _dispatch(native, operands, attributes):
    """The result of a call that the extension module hands over, or a tuple of them.

    ``attributes`` is a `Kernel` or a `Recipe` for a call of one of these.
    """
    is_kernel = type(native) is _bastile.FixedOperator
    is_recipe = type(attributes) is Recipe
    name = attributes.name if is_kernel or is_recipe else _name_of(native)
    refuse_unusual(name, operands)
    transforms.refuse(name, operands)
    if is_kernel and not torch._C._are_functorch_transforms_active():
        return call_kernel(attributes, operands)
    traced = attributes if is_recipe else operators.TRACED.get(name)
    if torch._C._are_functorch_transforms_active():
        if (is_kernel and attributes.overwrites) or (
            is_recipe and any(attributes.places)
        ):
            raise NotImplementedError(
                f"{name}: overwrites operands, which torch.func's transformations need; "
                "call it outside of them"
            )
        if is_kernel or is_recipe:
            attributes.require_gradients(find_wanted(operands))
        outputs = autograd.TransformedNode.apply(
            native, attributes, find_wanted(operands), *operands
        )
        if is_kernel:
            count = attributes.result_count
        elif traced is None:
            count = _count_returned(name, attributes)
        else:
            count = result_count(traced.request(operands, attributes, None))
        return outputs[0] if count == 1 else outputs[:count]
    if not _is_watched(operands):
        op = attributes.op if is_recipe else name
        return _call_promoted(op, native, operands, attributes)
    if traced is not None:
        return call_traced(traced, operands, attributes)
    return REGISTERED[name](*operands, *attributes)


def _name_of(native):
    for known in (operators.OPERATORS, operators.TRACED):
        for name, operator in known.items():
            if operator.native is native:
                return name
    raise LookupError(f"{native!r} is no operator of bastile")


def _call_promoted(name, native, operands, attributes):
    """A call that would be a plain one but for autocast. ``name`` is that of an op of
    the dialect, or anything else for what casts nothing."""
    if name in SAME_TYPES:
        operands = promote(name, operands)
    wanted = find_wanted(operands)
    if wanted is None:
        return native.run(tuple(operands), attributes)
    return native.record(tuple(operands), attributes, wanted)


def call_traced(operator, operands, attributes):
    """Calls a `TracedOperator`, or the op or function of a `Recipe`; traceable."""
    if type(operator) is Recipe and not torch.compiler.is_dynamo_compiling():
        # An exported program is run by other processes, which do not have this recipe.
        kernel = operator.kernel(operands, find_wanted(operands))
        return call_kernel(kernel, [x for x in operands if x is not None])
    if torch._C._get_tracing_state() is not None:
        raise NotImplementedError(
            f"{operator.name}: torch.jit.trace cannot record operands that may be None; "
            "use torch.export or torch.compile, or trace what is not patched"
        )
    # This imports sympy, which takes half a second: plain calls do without.
    from torch.fx.experimental.symbolic_shapes import guard_scalar

    # Numbers are a part of the code, also where a graph of any shapes has symbols for them.
    numbers = [guard_scalar(x) for x in attributes]
    results = torch.ops.bastile.traced.default(operator.key, numbers, list(operands))
    return results[0] if len(results) == 1 else tuple(results)


def _count_returned(name, attributes):
    """How many results a call with these attributes asks for."""
    place = RETURNS[name]
    if place is None or attributes[place] is None:
        return len(definitions()[name].results)
    return len(attributes[place])


def call_kernel(kernel, operands):
    """Calls a `Kernel` where a plain call is not enough; traceable."""
    if len({x.is_meta for x in operands}) > 1:
        raise ValueError(
            f"{kernel.name}: operands lie in one place, but some have no memory, and "
            "lie on 'meta'"
        )
    if _is_watched(operands):
        results = torch.ops.bastile.call.default(kernel.text, list(operands))
        return results[0] if kernel.result_count == 1 else tuple(results)
    if kernel.has_gradients and find_wanted(operands):
        return kernel.fixed.record(operands, kernel, None)
    return kernel.fixed.run(operands, kernel)


def _is_watched(operands):
    """Whether somebody has to see the call as one of a registered operator."""
    return (
        torch.compiler.is_compiling()
        or torch._C._are_functorch_transforms_active()
        or torch._C._len_torch_dispatch_stack()
        or torch._C._get_tracing_state() is not None
        or any(
            x.device.type == "meta" or classify(type(x)) == 2
            for x in operands
            if x is not None
        )
    )
