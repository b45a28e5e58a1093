# Part of Bastile, under the MIT License. See LICENSE.
"""Tokens to their experts and back, as differentiable functions.

PyTorch's backward of an index sorts the indices and adds rows one by one, because any
row may have been taken any number of times. A row of an expert belongs to one choice of
one token, so that each gradient here is a gather, a sum over the choices of a token or
a product. Sums are made in float32, always in the same order, and rounded once.

T tokens choose K experts each; their T * K rows lie sorted by expert. Nothing here
makes the host wait for a GPU.
"""

import contextlib
import typing

import torch

from bastile._formulas import sums
from bastile._torch import autograd

_NAME = "the routing of experts"


class Plan(typing.NamedTuple):
    """The tokens and experts that rows belong to, for T tokens with K choices each."""

    #: [T * K], int32: the expert of each row, ascending.
    experts: torch.Tensor
    #: [T * K]: the choice that each row is of, counted through all tokens.
    order: torch.Tensor
    #: [T * K]: the token of each row.
    tokens: torch.Tensor
    #: [T, K]: the row of each choice.
    places: torch.Tensor
    #: [experts], int32: behind the last row of each expert.
    ends: torch.Tensor


def plan(indices, count):
    """The plan for ``indices``, [T, K], of ``count`` experts. Rows of an index that
    is no expert, ``count`` or more, come behind all others."""
    # In int32, the sort has half as many digits as in int64.
    experts, order = indices.flatten().to(torch.int32).sort(stable=True)
    each = torch.arange(order.numel(), device=order.device)
    places = torch.empty_like(order).scatter_(0, order, each)
    every = torch.arange(count, device=order.device, dtype=torch.int32)
    ends = torch.searchsorted(experts, every, right=True, out_int32=True)
    return Plan(
        experts, order, order // indices.shape[-1], places.view_as(indices), ends
    )


def spread(hidden, plan):
    """The rows [T * K, size] of tokens ``hidden``, [T, size]."""
    return _Spread.apply(hidden, plan.tokens, plan.places)


def combine(rows, weights, plan, dtype):
    """By token, the sum of its rows times their ``weights``, [T, K], in ``dtype``."""
    return _Combine.apply(rows, weights, plan.order, plan.tokens, plan.places, dtype)


def factors(weights, plan):
    """The weights [T, K] of choices, as a number for each row, [T * K, 1]."""
    return _Factors.apply(weights, plan.order, plan.places)


def gather(rows, plan, dtype):
    """By token, the sum of its rows, in ``dtype``: `combine`, of rows that have their
    weights already."""
    return _Gather.apply(rows, plan.tokens, plan.places, dtype)


def add_shares(combined, bias, weights, indices):
    """``combined`` [T, size], and by token the sum of its experts' rows of ``bias``
    [experts, size] times ``weights``: what rows with that bias would combine to."""
    every = torch.arange(bias.shape[0], device=bias.device)
    is_chosen = indices[..., None] == every
    shares = (weights[..., None] * is_chosen).sum(1).to(combined.dtype)
    # Autocast would round the sum, which is float32, to a smaller type.
    with _no_autocast(combined.device):
        return torch.addmm(combined, shares, bias.to(combined.dtype))


def with_bias(rows, bias, plan):
    """``rows`` [T * K, size], and for each the row of ``bias`` [experts, size] of its
    expert, for the caller to add. The gradient of the bias comes by way of ``rows``, so
    that none comes by way of the second result."""
    return _Biased.apply(rows, bias, plan.experts), bias.detach()[plan.experts]


class _Spread(torch.autograd.Function):
    @staticmethod
    def forward(ctx, hidden, tokens, places):
        ctx.save_for_backward(places)
        return hidden[tokens]

    @staticmethod
    def backward(ctx, upstream):
        (places,) = ctx.saved_tensors
        of_hidden = _sums(upstream, places, upstream.dtype)
        return autograd.refuse_twice(_NAME, (of_hidden, None, None), [upstream])


class _Combine(torch.autograd.Function):
    @staticmethod
    def forward(ctx, rows, weights, order, tokens, places, dtype):
        kept = rows if ctx.needs_input_grad[1] else None
        ctx.save_for_backward(kept, weights, order, tokens, places)
        ctx.dtype = rows.dtype
        return _weighted_sums(rows, places, weights).to(dtype)

    @staticmethod
    def backward(ctx, upstream):
        rows, weights, order, tokens, places = ctx.saved_tensors
        of_rows = of_weights = None
        if ctx.needs_input_grad[0]:
            factors = weights.flatten()[order, None]
            of_rows = upstream[tokens].mul_(factors).to(ctx.dtype)
        if ctx.needs_input_grad[1]:
            of_weights = _products(rows, places, upstream, weights.dtype)
        found = of_rows, of_weights, None, None, None, None
        return autograd.refuse_twice(_NAME, found, (rows, weights, upstream))


class _Factors(torch.autograd.Function):
    @staticmethod
    def forward(ctx, weights, order, places):
        ctx.save_for_backward(places)
        return weights.flatten()[order, None]

    @staticmethod
    def backward(ctx, upstream):
        (places,) = ctx.saved_tensors
        of_weights = upstream.flatten()[places]
        return autograd.refuse_twice(_NAME, (of_weights, None, None), [upstream])


class _Gather(torch.autograd.Function):
    @staticmethod
    def forward(ctx, rows, tokens, places, dtype):
        ctx.save_for_backward(tokens)
        ctx.dtype = rows.dtype
        return _sums(rows, places, dtype)

    @staticmethod
    def backward(ctx, upstream):
        (tokens,) = ctx.saved_tensors
        of_rows = upstream[tokens].to(ctx.dtype)
        return autograd.refuse_twice(_NAME, (of_rows, None, None, None), [upstream])


class _Biased(torch.autograd.Function):
    @staticmethod
    def forward(ctx, rows, bias, experts):
        ctx.save_for_backward(experts)
        ctx.count, ctx.dtype = bias.shape[0], bias.dtype
        return rows.view_as(rows)

    @staticmethod
    def backward(ctx, upstream):
        of_rows = of_bias = None
        if ctx.needs_input_grad[0]:
            of_rows = upstream
        if ctx.needs_input_grad[1]:
            (experts,) = ctx.saved_tensors
            every = torch.arange(ctx.count, device=experts.device)
            belongs = (every[:, None] == experts).to(upstream.dtype)
            of_bias = (belongs @ upstream).to(ctx.dtype)
        return autograd.refuse_twice(_NAME, (of_rows, of_bias, None), [upstream])


def _sums(rows, places, dtype):
    """[T, size], in ``dtype``: the sum of the rows at ``places``, [T, K]."""
    # PyTorch's kernel that does both, `embedding_bag`, takes longer than the two.
    taken = _take(rows, places)
    # Kernels on GPUs compute no float64.
    is_plain = dtype != rows.dtype or dtype == torch.float64 or not rows.numel()
    if is_plain or torch.compiler.is_compiling():
        return taken.sum(1, dtype=_wide(rows)).to(dtype)
    return sums.of(places.shape[1])(*taken.unbind(1))


def _weighted_sums(rows, places, weights):
    """[T, size]: the sum of the rows at ``places``, [T, K], times ``weights``."""
    taken = _take(rows, places)
    if _is_plain(rows, weights):
        return (taken * weights.to(_wide(rows))[..., None]).sum(1)
    return _multiply(weights[:, None], taken)[:, 0]


def _products(rows, places, others, dtype):
    """[T, K], in ``dtype``: the dot products of the rows at ``places`` with the row of
    ``others``, [T, size], of their token."""
    taken = _take(rows, places)
    if rows.dtype != dtype or _is_plain(rows, others):
        return (taken * others.to(_wide(rows))[:, None]).sum(-1).to(dtype)
    return _multiply(taken, others[..., None])[..., 0]


def _no_autocast(device):
    """Turns autocast off. Devices without autocast, such as "meta", cannot be asked."""
    if not torch.amp.is_autocast_available(device.type):
        return contextlib.nullcontext()
    return torch.autocast(device.type, enabled=False)


def _multiply(a, b):
    # A product of matrices adds in float32, and writes no products to memory.
    with _no_autocast(a.device):
        return torch.bmm(a, b)


def _take(rows, places):
    """[T, K, size]: the rows at ``places``."""
    # PyTorch copies whole rows only for one index of one dimension.
    return rows[places.flatten()].view(*places.shape, rows.shape[-1])


def _is_plain(rows, factors):
    """Whether to multiply and then add up, in place of a product of matrices: a
    compiler of graphs makes one kernel of the two steps, and a product of matrices
    needs operands of one type, and may round float32 operands."""
    return (
        torch.compiler.is_compiling()
        or rows.dtype != factors.dtype
        or rows.dtype not in (torch.bfloat16, torch.float16)
    )


def _wide(rows):
    return torch.promote_types(rows.dtype, torch.float32)
