# Part of Bastile, under the MIT License. See LICENSE.
"""Kernels as nodes of PyTorch's autograd graph."""

import torch
from bastile import _bastile
from bastile._torch import transforms

_NOT_TWICE = "the gradients of {} of bastile cannot be differentiated again"


def make_node(name, forward, backward):
    """A function that calls a kernel and records the call as a node of this name.

    Each kernel has a class of nodes of its own. ``forward`` and ``backward`` are
    functions of the extension module, since calls on small tensors are bound by the
    host.
    """

    @torch._disable_dynamo
    def call_backward(ctx, *gradients):
        # PyTorch's compiled autograd looks a function of Python up in the class.
        return backward(ctx, *gradients)

    functions = {
        "forward": staticmethod(forward),
        "backward": staticmethod(call_backward),
    }
    kind = type(torch.autograd.Function)(name, (torch.autograd.Function,), functions)
    # Autograd calls the function itself, not PyTorch's method that looks it up in the
    # class.
    kind._backward_cls.apply = _bastile.as_method(backward)
    return plain_apply(kind)


def plain_apply(kind):
    """``kind.apply`` of a subclass of `torch.autograd.Function`, for calls that are not
    under functorch: PyTorch's looks for that, which takes the host some microseconds."""
    return super(torch.autograd.Function, kind).apply


def keep_gradients(kernel, kept, inputs):
    """The tensors that a node keeps where gradients were computed with the results:
    these gradients, and what leads to the inputs."""
    for index in kernel.consumed_inputs:
        if any(x is inputs[index] for x in kept):
            # A gradient was computed in place of this input. Autograd then refuses the
            # backward of any other node that has kept it.
            torch.autograd.graph.increment_version(inputs[index])
    return (*(x.detach() for x in kept), *links_to(inputs))


def links_to(tensors):
    """Empty tensors that lead to ``tensors`` in autograd's graph, for a node that keeps
    none of its operands: `refuse_twice` needs the way to them, not their memory."""
    if torch.compiler.is_compiling():
        return ()
    with torch.enable_grad():
        return tuple(
            x[:0].clone() for x in tensors if x is not None and x.requires_grad
        )


def is_last_backward():
    """Whether autograd runs a backward now that does not retain its graph, so that what
    a node has kept is used for the last time."""
    return not torch._C._autograd._get_current_graph_task_keep_graph()


def refuse_twice(name, gradients, sources):
    """The same gradients, which raise ``RuntimeError`` where they are differentiated.

    ``sources`` are the tensors that the gradients were computed of. A refusal has to be
    on the way to one of them, as autograd passes over nodes that lead to no tensor that
    it is asked for.
    """
    if not torch.is_grad_enabled():
        return gradients
    # With ``create_graph``, gradients of the gradients are going to be asked for, which
    # the compiler does not derive.
    present = [x for x in gradients if x is not None]
    sources = [x for x in sources if x is not None and x.requires_grad]
    sources.append(torch.empty(0, requires_grad=True))
    refused = iter(_Refusal.apply(f"'{name}'", len(present), *present, *sources))
    return tuple(None if x is None else next(refused) for x in gradients)


def compute_once(name, sources, compute):
    """``compute()``, the gradients of a node's backward, without recording it, and
    refused as by `refuse_twice` where they are differentiated.

    Autograd mostly runs backwards without recording them, and asking for that again
    costs the host time.
    """
    if not torch.is_grad_enabled():
        return compute()
    with torch.no_grad():
        found = compute()
    return refuse_twice(name, found, sources)


class _Refusal(torch.autograd.Function):
    @staticmethod
    def forward(name, count, *tensors):
        return tuple(x.detach() for x in tensors[:count])

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.name = inputs[0]

    @staticmethod
    def backward(ctx, *gradients):
        raise RuntimeError(_NOT_TWICE.format(ctx.name))


class TransformedNode(torch.autograd.Function):
    """A call of an operator under `torch.func`, which asks for a forward that
    returns all that the backward needs."""

    @staticmethod
    def forward(operator, attributes, wanted, *operands):
        kernel = operator.find(operands, attributes, wanted)
        return tuple(kernel.run([x for x in operands if x is not None]))

    @staticmethod
    def setup_context(ctx, inputs, output):
        operator, attributes, wanted, *operands = inputs
        ctx.call = operator, attributes, wanted
        ctx.absent = [x is None for x in operands]
        ctx.save_for_backward(*(x for x in operands if x is not None), *output)
        ctx.mark_non_differentiable(*(x for x in output if not x.is_floating_point()))

    @staticmethod
    def backward(ctx, *gradients):
        computed = iter(
            _TransformedBackward.apply(
                *ctx.call, ctx.absent, *ctx.saved_tensors, *gradients
            )
        )
        spread = [next(computed) if want else None for want in ctx.call[2]]
        return (None, None, None, *spread)

    @staticmethod
    def vmap(info, in_dims, operator, *arguments):
        raise transforms.batched(operator.name)


class _TransformedBackward(torch.autograd.Function):
    """The backward of a `TransformedNode`, which `torch.func` records as well."""

    @staticmethod
    def forward(operator, attributes, wanted, absent, *tensors):
        count = len(absent) - sum(absent)
        outputs = (len(tensors) - count) // 2
        present, saved = tensors[:count], tensors[count : count + outputs]
        rest = iter(present)
        operands = tuple(None if missing else next(rest) for missing in absent)
        kernel = operator.find(operands, attributes, wanted)
        computed = kernel.backward(
            kernel.keep(present, saved), tensors[count + outputs :]
        )
        return tuple(x for x in computed if x is not None)

    @staticmethod
    def setup_context(ctx, inputs, output):
        pass

    @staticmethod
    def backward(ctx, *gradients):
        raise RuntimeError(_NOT_TWICE.format("an op"))

    @staticmethod
    def vmap(info, in_dims, *arguments):
        raise NotImplementedError(
            "the gradients of ops of bastile have no rule for torch.func.vmap, which "
            "jacrev calls; use torch.autograd.functional.jacobian"
        )
