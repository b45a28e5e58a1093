"""The loss as a node of PyTorch's autograd graph."""

import torch
from bastile import _autograd
from bastile._linear_loss import operators

_NAME = "linear_cross_entropy"


class _Node(torch.autograd.Function):
    """Gradients of a total are computed with it and scaled in the backward; those
    of each token's loss are computed in the backward, from new logits."""

    @staticmethod
    def forward(ctx, call, hidden, weight, bias, targets, weights, divisor):
        text, is_apart, count, wanted = call
        outputs = torch.ops.bastile.linear_cross_entropy.default(
            *(hidden, weight, targets, bias, weights, divisor, text),
            [False] * 3 if is_apart else wanted,
        )
        results, kept = outputs[:count], outputs[count:]
        ctx.call, ctx.dtype = call, hidden.dtype
        if is_apart:
            kept = hidden, weight, targets, bias, weights
        ctx.save_for_backward(*kept)
        ctx.mark_non_differentiable(*results[1:])
        return tuple(results)

    @staticmethod
    def backward(ctx, upstream, *_):
        text, is_apart, _, wanted = ctx.call
        if is_apart:
            found = torch.ops.bastile.linear_cross_entropy_backward.default(
                *ctx.saved_tensors, upstream, text, wanted
            )
        else:
            found = _scaled(ctx, upstream, sum(wanted))
        found = iter(found)
        spread = [next(found) if want else None for want in wanted]
        return None, *_autograd.refuse_twice(_NAME, spread), None, None, None


def _scaled(ctx, upstream, count):
    """The gradients that came with the total, times that of the total."""
    kept = ctx.saved_tensors
    if len(kept) > count:
        upstream, kept = upstream * kept[0], kept[1:]
    if torch.compiler.is_compiling():
        return [(x * upstream).to(ctx.dtype) for x in kept]
    # Nobody else has them unless the graph is retained.
    is_last = not torch._C._autograd._get_current_graph_task_keep_graph()
    return [
        operators.scale_gradient(x.detach(), upstream, ctx.dtype, is_last)
        for x in kept
    ]


def call(hidden, weight, targets, bias, class_weights, divisor, options):
    """The results for hidden states [T, H] and targets [T]; traceable."""
    wanted = [
        torch.is_grad_enabled() and x is not None and x.requires_grad
        for x in (hidden, weight, bias)
    ]
    results = 1 + len(options.others)
    call = options.text, options.of_each_token, results, wanted
    return _Node.apply(call, hidden, weight, bias, targets, class_weights, divisor)
