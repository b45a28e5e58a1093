# Part of Bastile, under the MIT License. See LICENSE.
"""Liger's kernels that Bastile has no op of: formulas for ``bastile.compile``."""

import functools

import bastile
from bastile import functional
from bastile.functions import (
    exp,
    maximum,
    op,
    row_mean,
    row_sum,
    rsqrt,
    split,
    tanh,
)
from torch import Tensor


def dyt(x: Tensor, alpha: Tensor, gamma: Tensor, beta: Tensor | None) -> Tensor:
    if beta is None:
        return _dyt(x, alpha, gamma)
    return _dyt_beta(x, alpha, gamma, beta)


@bastile.compile(grad=True)
def _dyt(x, alpha, gamma):
    return gamma * tanh(alpha * x)


@bastile.compile(grad=True)
def _dyt_beta(x, alpha, gamma, beta):
    return gamma * tanh(alpha * x) + beta


def poly_norm(
    x: Tensor, weight: Tensor, bias: Tensor, eps: float = 1e-6, in_place: bool = True
) -> Tensor:
    return _poly_norm(eps)(x, *weight.split(1), bias.reshape(1))


@functools.cache
def _poly_norm(eps):
    def norm(x):
        return x * rsqrt(row_mean(x * x) + eps)

    def poly_norm(x, w0, w1, w2, bias):
        return w0 * norm(x * x * x) + w1 * norm(x * x) + w2 * norm(x) + bias

    return bastile.compile(poly_norm, grad=True)


def group_norm(
    x: Tensor,
    weight: Tensor,
    bias: Tensor,
    num_channels: int,
    num_groups: int,
    eps: float,
) -> Tensor:
    groups = x.reshape(x.shape[0], num_groups, -1)
    normed = functional.layer_norm(groups, groups.shape[-1:], eps=eps)
    channels = normed.reshape(x.shape[0], num_channels, -1)
    shape = 1, num_channels, 1
    result = _scale_and_shift(channels, weight.reshape(shape), bias.reshape(shape))
    return result.reshape(x.shape)


@bastile.compile(grad=True)
def _scale_and_shift(x, weight, bias):
    return x * weight + bias


def modulated_rms_norm(
    x: Tensor,
    weight: Tensor | None,
    scale: Tensor,
    shift: Tensor | None,
    eps: float,
    offset: float = 0.0,
    casting_mode: str = "llama",
    in_place: bool = True,
) -> Tensor:
    """``scale`` and ``shift`` are those of every row, [H], of a batch's, [B, H], or of
    each."""
    shape = x.shape
    if scale.dim() == 2 and scale.shape != shape:
        x = x.reshape(scale.shape[0], -1, shape[-1])
        scale = scale.unsqueeze(1)
        shift = None if shift is None else shift.unsqueeze(1)
    given = {"x": x, "scale": scale, "weight": weight, "shift": shift}
    names = tuple(name for name, tensor in given.items() if tensor is not None)
    kernel = _modulated_rms_norm(names, casting_mode, eps, offset)
    return kernel(*(given[name] for name in names)).reshape(shape)


@functools.cache
def _modulated_rms_norm(names, casting, eps, offset):
    def modulate(x, scale, weight, shift):
        norm = op.rms_norm(x, weight, casting=casting, eps=eps, offset=offset)
        return norm * (1 + scale) + (0.0 if shift is None else shift)

    functions = {
        ("x", "scale"): lambda x, scale: modulate(x, scale, None, None),
        ("x", "scale", "weight"): lambda x, scale, weight: modulate(
            x, scale, weight, None
        ),
        ("x", "scale", "shift"): lambda x, scale, shift: modulate(
            x, scale, None, shift
        ),
        ("x", "scale", "weight", "shift"): modulate,
    }
    return bastile.compile(functions[names], grad=True)


def attn_res(values: Tensor, query: Tensor, norm: Tensor, eps: float) -> Tensor:
    """The sum over N blocks [N, ..., D], weighted by the softmax of their scores."""
    blocks = values.shape[0]
    rows = values.movedim(0, -2)
    rows = rows.reshape(*rows.shape[:-2], -1)
    return _attn_res(blocks, eps)(rows, query, norm)


@functools.cache
def _attn_res(blocks, eps):
    def attn_res(rows, query, norm):
        values = split(rows, blocks)
        scores = [
            row_sum(value * rsqrt(row_mean(value * value) + eps) * norm * query)
            for value in values
        ]
        top = functools.reduce(maximum, scores)
        weights = [exp(score - top) for score in scores]
        weighted = (weight * value for weight, value in zip(weights, values))
        return (sum(weighted) / sum(weights)).to(rows.dtype)

    return bastile.compile(attn_res, grad=True)


FUNCTIONS = {
    "LigerAttnResFunction": attn_res,
    "LigerDyTFunction": dyt,
    "LigerGroupNormFunction": group_norm,
    "LigerModulatedRMSNormFunction": modulated_rms_norm,
    "LigerPolyNormFunction": poly_norm,
}
