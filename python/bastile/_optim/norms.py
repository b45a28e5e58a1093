# Part of Bastile, under the MIT License. See LICENSE.
"""Norms of tensors, and their scaling in place."""

import math

import torch
from bastile._compiler.compile import compile
from bastile._losses.kernels import scale_in_place
from bastile._losses.products import wide_type
from bastile._optim.rows import Elements
from bastile.functions import max_of_rows, row_max, row_sum, sum_of_rows


@compile(grad=False)
def _squares(x):
    return sum_of_rows(row_sum(x * x)).to(_wide(x))


@compile(grad=False)
def _powers(x, power):
    return sum_of_rows(row_sum(abs(x) ** power)).to(_wide(x))


@compile(grad=False)
def _largest(x):
    return max_of_rows(row_max(abs(x))).to(_wide(x))


def _wide(x):
    return "f64" if x.dtype == "float64" else "f32"


@torch._disable_dynamo
def norm(tensors, order) -> torch.Tensor:
    """The norm of all elements of ``tensors``, of which there is at least one, as one
    number of float32 (float64 where a tensor is) on the device of the first.

    ``order`` is positive, or infinity.
    """
    device = tensors[0].device
    parts = []
    for x in tensors:
        for (rows,) in Elements(x).rows():
            if order == math.inf:
                part = _largest(rows)
            elif order == 2:
                part = _squares(rows)
            else:
                wide = wide_type(x.dtype)
                part = _powers(
                    rows, torch.full((1,), order, dtype=wide, device=x.device)
                )
            parts.append(part.to(device))
    if not parts:
        return torch.zeros((), dtype=wide_type(tensors[0].dtype), device=device)
    parts = torch.cat(parts)
    return parts.amax() if order == math.inf else parts.sum() ** (1 / order)


@torch._disable_dynamo
def scale(tensors, factor) -> None:
    """Multiplies ``tensors`` by a number on a device, where they lie. Where it is 1,
    kernels neither read nor write them."""
    factors = {}
    for x in tensors:
        if x.device not in factors:
            factors[x.device] = factor.reshape(1).to(x.device)
        elements = Elements(x)
        for (rows,) in elements.rows():
            scale_in_place(rows, factors[x.device].to(wide_type(x.dtype)))
        elements.copy_back(0)
    torch.autograd.graph.increment_version(tensors)
