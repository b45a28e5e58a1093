"""Kernels as nodes of PyTorch's autograd graph."""

import torch

_NOT_TWICE = "the gradients of {} of bastile cannot be differentiated again"


class _Node(torch.autograd.Function):
    """A call of an operator; `forward` and `backward` are one call of the
    extension module each, since small tensors are bound by the host."""

    @staticmethod
    def forward(ctx, operator, attributes, *operands):
        kernel, result, kept = operator.forward(
            operands, attributes, ctx.needs_input_grad[2:]
        )
        _keep(ctx, kernel, result, kept, operands)
        return result

    @staticmethod
    def backward(ctx, *gradients):
        return None, None, *_backward(ctx, gradients)


class _KernelNode(torch.autograd.Function):
    """A call of a kernel that was compiled ahead."""

    @staticmethod
    def forward(ctx, kernel, *operands):
        result, kept = kernel.forward(operands)
        _keep(ctx, kernel, result, kept, operands)
        return result

    @staticmethod
    def backward(ctx, *gradients):
        return None, *_backward(ctx, gradients)


def _keep(ctx, kernel, result, kept, operands):
    ctx.kernel = kernel
    ctx.present = None
    for operand in operands:
        if operand is None:
            ctx.present = [x is not None for x in operands]
            break
    if kernel.is_together:
        kept = _keep_gradients(kernel, kept, operands)
    ctx.save_for_backward(*kept)
    if type(result) is tuple:
        # A total that came with its gradients is the one result that has any.
        first = 1 if kernel.is_together else 0
        ctx.mark_non_differentiable(
            *result[first:]
            if first
            else (x for x in result if not x.is_floating_point())
        )


def _keep_gradients(kernel, kept, operands):
    present = [x for x in operands if x is not None]
    for index in kernel.consumed_inputs:
        if present[index].is_contiguous():
            # Whoever else kept it for a backward is told by autograd.
            torch.autograd.graph.increment_version(present[index])
    return [x.detach() for x in kept]


def _backward(ctx, gradients):
    computed = gradients_of(ctx.kernel, ctx.saved_tensors, gradients)
    if ctx.present is not None:
        rest = iter(computed)
        computed = [next(rest) if here else None for here in ctx.present]
    return refuse_twice(ctx.kernel.name, computed)


def refuse_twice(name, gradients):
    """The gradients of a call, so that differentiating them raises."""
    if not torch.is_grad_enabled():
        return gradients
    # Somebody is going to differentiate the gradients, which nobody derived.
    present = [x for x in gradients if x is not None]
    refused = torch._C._functions.DelayedError(
        _NOT_TWICE.format(f"'{name}'"),
        len(present),
    )(*(x.detach().requires_grad_() for x in present))
    refused = iter(refused if isinstance(refused, tuple) else (refused,))
    return [None if x is None else next(refused) for x in gradients]


def gradients_of(kernel, kept, gradients):
    """The gradients of all inputs of a call; None where there is none."""
    if not kernel.is_together:
        return kernel.backward(kept, gradients)
    # They are there, for a factor of 1; nobody else has them unless the graph is
    # retained.
    is_last = not torch._C._autograd._get_current_graph_task_keep_graph()
    return kernel.backward(kept, gradients, in_place=is_last)


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


# Past the checks of Function.apply for functorch, whose calls do not come here.
apply = super(torch.autograd.Function, _Node).apply
call = super(torch.autograd.Function, _KernelNode).apply
