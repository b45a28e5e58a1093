# Part of Bastile, under the MIT License. See LICENSE.
"""Calls of the loss as nodes of PyTorch's autograd graph."""

import torch
from bastile._losses import operators
from bastile._torch import autograd

_NAME = "linear_cross_entropy"


class _Node(torch.autograd.Function):
    """A call of the loss. The gradients of a total are computed with it, and the
    backward scales them; those of each token's loss are computed in the backward, from
    logits that are computed again."""

    @staticmethod
    def forward(ctx, call, hidden, weight, bias, targets, weights, divisor):
        given, is_apart, count, wanted = call
        outputs = torch.ops.bastile.linear_cross_entropy.default(
            *(hidden, weight, targets, bias, weights, divisor, *given),
            [False] * 3 if is_apart else wanted,
        )
        results, kept = outputs[:count], outputs[count:]
        ctx.call, ctx.dtype = call, hidden.dtype
        if is_apart:
            kept = hidden, weight, targets, bias, weights
        links = () if is_apart else autograd.links_to((hidden, weight, bias))
        ctx.count = len(kept)
        ctx.save_for_backward(*kept, *links)
        ctx.mark_non_differentiable(*results[1:])
        return tuple(results)

    @staticmethod
    def backward(ctx, upstream, *_):
        given, is_apart, _, wanted = ctx.call
        saved = ctx.saved_tensors
        kept = saved[: ctx.count]
        if is_apart:
            found = torch.ops.bastile.linear_cross_entropy_backward.default(
                *kept, upstream, *given, wanted
            )
        else:
            found = _scaled(kept, upstream, sum(wanted), ctx.dtype)
        found = iter(found)
        spread = [next(found) if want else None for want in wanted]
        spread = autograd.refuse_twice(_NAME, spread, (*saved, upstream))
        return None, *spread, None, None, None


def _scaled(kept, upstream, count, dtype):
    """The gradients that were computed with the total, times the upstream gradient."""
    if len(kept) > count:
        upstream, kept = upstream * kept[0], kept[1:]
    if torch.compiler.is_compiling():
        return [(x * upstream).to(dtype) for x in kept]
    is_last = autograd.is_last_backward()
    return [
        operators.scale_gradient(x.detach(), upstream, dtype, is_last) for x in kept
    ]


def call(operands, divisor, options, given):
    """The results for `Operands` of hidden states [T, H] and targets [T], and what the
    sum of the losses is divided by, or None; traceable."""
    hidden, weight, targets, bias, class_weights = operands
    is_recorded = torch.is_grad_enabled()
    wanted = [
        is_recorded and x is not None and x.requires_grad
        for x in (hidden, weight, bias)
    ]
    call = given, options.of_each_token, 1 + len(options.others), wanted
    return _Node.apply(call, hidden, weight, bias, targets, class_weights, divisor)
