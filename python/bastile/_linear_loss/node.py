"""The loss as a node of PyTorch's autograd graph."""

import torch
from bastile import _autograd
from bastile._linear_loss import operators
from bastile._linear_loss.options import Options

_NAME = "linear_cross_entropy"


class _Node(torch.autograd.Function):
    """Gradients of a total are computed with it and scaled in the backward; those
    of each token's loss are computed in the backward, from new logits."""

    @staticmethod
    def forward(ctx, rest, wanted, hidden, weight, bias, targets, weights, divisor):
        reduction = rest[0]
        is_apart = reduction == "none"
        now = [False] * 3 if is_apart else wanted
        outputs = torch.ops.bastile.linear_cross_entropy.default(
            *(hidden, weight, targets, bias, weights, divisor), *rest[:-1], now, rest[-1]
        )
        count = 1 + len(Options(*rest[:-1]).others)
        results, kept = outputs[:count], outputs[count:]
        ctx.rest, ctx.wanted, ctx.dtype = rest, wanted, hidden.dtype
        if is_apart:
            kept = hidden, weight, bias, targets, weights
        ctx.save_for_backward(*kept)
        ctx.mark_non_differentiable(*results[1:])
        return tuple(results)

    @staticmethod
    def backward(ctx, upstream, *_):
        if ctx.rest[0] == "none":
            found = _gradients_of_tokens(ctx, upstream)
        else:
            found = _scaled_gradients(ctx, upstream)
        found = iter(found)
        spread = [next(found) if want else None for want in ctx.wanted]
        return None, None, *_autograd.refuse_twice(_NAME, spread), None, None, None


def _gradients_of_tokens(ctx, upstream):
    hidden, weight, bias, targets, class_weights = ctx.saved_tensors
    return torch.ops.bastile.linear_cross_entropy_backward.default(
        *(hidden, weight, targets, bias, class_weights, upstream),
        *ctx.rest[:-1],
        ctx.wanted,
        ctx.rest[-1],
    )


def _scaled_gradients(ctx, upstream):
    kept = ctx.saved_tensors
    if len(kept) > sum(ctx.wanted):
        upstream = upstream * kept[0]
        kept = kept[1:]
    if torch.compiler.is_compiling():
        return [(x * upstream).to(ctx.dtype) for x in kept]
    # Nobody else has them unless the graph is retained.
    is_last = not torch._C._autograd._get_current_graph_task_keep_graph()
    return [
        operators.scale_gradient(x.detach(), upstream, ctx.dtype, is_last)
        for x in kept
    ]


def call(hidden, weight, targets, bias, class_weights, divisor, options, budget):
    """The results for hidden states [T, H] and targets [T]; traceable."""
    wanted = [
        torch.is_grad_enabled() and x is not None and x.requires_grad
        for x in (hidden, weight, bias)
    ]
    rest = (*options.attributes_in_order, list(options.returns), budget)
    return _Node.apply(
        rest, wanted, hidden, weight, bias, targets, class_weights, divisor
    )
