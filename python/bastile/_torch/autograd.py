"""Kernels as nodes of PyTorch's autograd graph."""

import torch
from bastile import _bastile

_NOT_TWICE = "the gradients of {} of bastile cannot be differentiated again"


def make_node(name, forward, backward):
    """The call of a kernel as a node: a class of its own holds what a call needs,
    and forward and backward are functions of the extension module, since small
    tensors are bound by the host."""
    functions = {
        "forward": staticmethod(forward),
        "backward": staticmethod(backward),
    }
    kind = type(torch.autograd.Function)(name, (torch.autograd.Function,), functions)
    # Past PyTorch's method that looks for the backward of the class.
    kind._backward_cls.apply = _bastile.as_method(backward)
    # Past the checks for functorch, whose calls do not come here.
    return super(torch.autograd.Function, kind).apply


def keep_gradients(kernel, kept, inputs):
    """What a node keeps of gradients that came with the results."""
    for index in kernel.consumed_inputs:
        if inputs[index].is_contiguous():
            # Whoever else kept it for a backward is told by autograd.
            torch.autograd.graph.increment_version(inputs[index])
    return (*(x.detach() for x in kept), *links_to(inputs))


def links_to(tensors):
    """For a node that keeps none of its operands, what leads to them all the same,
    without their memory: `refuse_twice` has to."""
    if torch.compiler.is_compiling():
        return ()
    with torch.enable_grad():
        return tuple(
            x[:0].clone() for x in tensors if x is not None and x.requires_grad
        )


def is_last_backward():
    """Whether the graph that is run backward now is not retained, so that nobody
    else will have what its nodes kept."""
    return not torch._C._autograd._get_current_graph_task_keep_graph()


def refuse_twice(name, gradients, sources):
    """The gradients of a call, so that differentiating them raises.

    ``sources`` are what they were computed of. Autograd passes over what does not
    lead to a tensor that it is asked for.
    """
    if not torch.is_grad_enabled():
        return gradients
    # Somebody is going to differentiate the gradients, which nobody derived.
    present = [x for x in gradients if x is not None]
    sources = [x for x in sources if x is not None and x.requires_grad]
    sources.append(torch.empty(0, requires_grad=True))
    refused = iter(_Refusal.apply(f"'{name}'", len(present), *present, *sources))
    return tuple(None if x is None else next(refused) for x in gradients)


class _Refusal(torch.autograd.Function):
    @staticmethod
    def forward(ctx, name, count, *tensors):
        ctx.name = name
        return tuple(x.detach() for x in tensors[:count])

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
        ctx.mark_non_differentiable(
            *(x for x in output if not x.is_floating_point())
        )

    @staticmethod
    def backward(ctx, *gradients):
        computed = iter(
            _TransformedBackward.apply(
                *ctx.call, ctx.absent, *ctx.saved_tensors, *gradients
            )
        )
        spread = [next(computed) if want else None for want in ctx.call[2]]
        return (None, None, None, *spread)


class _TransformedBackward(torch.autograd.Function):
    """The backward of such a call, which `torch.func` records as well."""

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
