# Part of Bastile, under the MIT License. See LICENSE.
"""Calls of a loss as nodes of PyTorch's autograd graph."""

from typing import Any, NamedTuple

import torch
from bastile._losses import checks, totals
from bastile._torch import autograd


class Call(NamedTuple):
    """What a call says beside its tensors."""

    #: The loss, by which `totals.OPERATORS` has its operators.
    name: str
    #: The options, as operators take them.
    given: Any
    #: Whether the loss is that of each token.
    is_apart: bool
    #: How many results there are.
    count: int
    #: Which of hidden states, weight and bias have a gradient.
    wanted: list[bool]


class _Node(torch.autograd.Function):
    """A call of a loss. The gradients of a total are computed with it, and the backward
    scales them; those of each token's loss are computed in the backward, from logits
    that are computed again."""

    @staticmethod
    def forward(ctx, call, divisor, hidden, weight, targets, bias, *others):
        inputs = hidden, weight, targets, bias, *others
        operator, _ = totals.OPERATORS[call.name]
        wanted = [False] * 3 if call.is_apart else call.wanted
        outputs = operator(*inputs, divisor, *call.given, wanted)
        results, kept = outputs[: call.count], outputs[call.count :]
        ctx.call, ctx.dtype, ctx.inputs = call, hidden.dtype, len(inputs)
        if call.is_apart:
            kept = inputs
        links = () if call.is_apart else autograd.links_to((hidden, weight, bias))
        ctx.count = len(kept)
        ctx.save_for_backward(*kept, *links)
        ctx.mark_non_differentiable(*results[1:])
        return tuple(results)

    @staticmethod
    def backward(ctx, upstream, *_):
        call = ctx.call
        saved = ctx.saved_tensors
        kept = saved[: ctx.count]
        if call.is_apart:
            _, weight, *_ = kept
            checks.check_still_whole(call.name, weight)
            _, operator = totals.OPERATORS[call.name]
            found = operator(*kept, upstream, *call.given, call.wanted)
        else:
            found = _scaled(kept, upstream, sum(call.wanted), ctx.dtype)
        found = iter(found)
        spread = [next(found) if want else None for want in call.wanted]
        spread = autograd.refuse_twice(call.name, spread, (*saved, upstream))
        hidden, weight, bias = spread
        return None, None, hidden, weight, None, bias, *[None] * (ctx.inputs - 4)


def _scaled(kept, upstream, count, dtype):
    """The gradients that were computed with the total, times the upstream gradient."""
    if len(kept) > count:
        upstream, kept = upstream * kept[0], kept[1:]
    if torch.compiler.is_compiling():
        return [(x * upstream).to(dtype) for x in kept]
    is_last = autograd.is_last_backward()
    return [totals.scale_gradient(x.detach(), upstream, dtype, is_last) for x in kept]


def call(name, operands, divisor, options, given):
    """The results of the loss ``name`` for its operands, of which hidden states [T, H],
    weight, targets and bias come first, and what the sum of the losses is divided by, or
    None; traceable."""
    hidden, weight, _, bias, *_ = operands
    is_recorded = torch.is_grad_enabled()
    wanted = [
        is_recorded and x is not None and x.requires_grad
        for x in (hidden, weight, bias)
    ]
    count = 1 + len(options.others)
    call = Call(name, given, options.of_each_token, count, wanted)
    return _Node.apply(call, divisor, *operands)
