# Part of Bastile, under the MIT License. See LICENSE.
"""Attention written out in PyTorch, to compare with."""

import math

import torch

LOWEST = torch.finfo(torch.float32).min


def make_heads(
    queries, keys, dtype=torch.float64, batch=2, heads=6, key_heads=2, sizes=(16, 16)
):
    """Queries, keys and values, which require gradients."""
    size, of_values = sizes
    shapes = [
        (batch, heads, queries, size),
        (batch, key_heads, keys, size),
        (batch, key_heads, keys, of_values),
    ]
    generator = torch.Generator().manual_seed(0)
    return [
        torch.randn(shape, dtype=torch.float64, generator=generator)
        .to(dtype)
        .requires_grad_()
        for shape in shapes
    ]


def attend(
    query,
    key,
    value,
    *,
    seen=None,
    bias=None,
    scale=None,
    softcap=0.0,
    sinks=None,
    kept=None,
):
    """The result and the log-sum-exp. ``seen`` and ``bias`` broadcast to [B, H, Q, K];
    ``kept`` is what dropout multiplies weights by."""
    repeats = query.shape[1] // key.shape[1]
    key, value = (x.repeat_interleave(repeats, 1) for x in (key, value))
    scores = query @ key.mT * (query.shape[-1] ** -0.5 if scale is None else scale)
    if softcap:
        scores = softcap * torch.tanh(scores / softcap)
    if bias is not None:
        scores = scores + bias
    if seen is not None:
        scores = scores.masked_fill(~seen, -math.inf)
    if sinks is not None:
        column = sinks.reshape(1, -1, 1, 1).expand(*scores.shape[:-1], 1)
        scores = torch.cat([scores, column], -1)
    isempty = (scores == -math.inf).all(-1, keepdim=True)
    scores = scores.masked_fill(isempty, 0)
    weights = torch.softmax(scores, -1).masked_fill(isempty, 0)
    lse = torch.logsumexp(scores, -1).masked_fill(isempty.squeeze(-1), LOWEST)
    if sinks is not None:
        weights = weights[..., :-1]
    if kept is not None:
        weights = weights * kept
    return weights @ value, lse


def places(queries, keys, offset=None):
    """The positions of queries [Q, 1] and keys [K]."""
    offset = keys - queries if offset is None else offset
    return torch.arange(queries)[:, None] + offset, torch.arange(keys)
