# Part of Bastile, under the MIT License. See LICENSE.
"""``quack.cross_entropy``."""

import bastile
import torch
from bastile import functional
from bastile.functions import column_numbers, exp, where
from torch import Tensor


def cross_entropy(
    x: Tensor,
    target: Tensor,
    lse_partial: Tensor | None = None,
    weight: Tensor | None = None,
    ignore_index: int = -100,
    reduction: str = "mean",
    inplace_backward: bool = False,
) -> Tensor:
    # lse_partial is what QuACK's products left of the same logits; the loss is that
    # of the logits with or without it.
    del lse_partial
    return functional.cross_entropy(
        x,
        target,
        weight,
        ignore_index=ignore_index,
        reduction=reduction,
        in_place=inplace_backward,
    )


def cross_entropy_fwd(
    x: Tensor,
    target: Tensor,
    target_logit: Tensor | None = None,
    weight: Tensor | None = None,
    ignore_index: int = -100,
    return_lse: bool = False,
    return_dx: bool = False,
    inplace_backward: bool = False,
) -> Tensor | tuple[Tensor, ...]:
    if target_logit is not None:
        raise NotImplementedError("logits of targets apart from the others")
    return functional.cross_entropy(
        x,
        target,
        weight,
        ignore_index=ignore_index,
        reduction="none",
        return_lse=return_lse,
        return_gradient=return_dx,
        in_place=inplace_backward and return_dx,
    )


def cross_entropy_bwd(
    x: Tensor,
    target: Tensor,
    dloss: Tensor,
    lse: Tensor,
    weight: Tensor | None = None,
    ignore_index: int = -100,
    inplace_backward: bool = False,
) -> Tensor:
    if inplace_backward:
        raise NotImplementedError("a backward in the memory of logits")
    if weight is not None:
        dloss = dloss * weight[target.clamp(min=0)]
    scale = torch.where(target == ignore_index, 0.0, dloss.float())
    columns = (each.unsqueeze(-1) for each in (target.int(), lse, scale))
    return _gradient(x, *columns)


@bastile.compile(grad=False)
def _gradient(x, target, lse, scale):
    is_target = column_numbers(x) == target.to("f32")
    return (exp(x - lse) - where(is_target, 1.0, 0.0)) * scale


FUNCTIONS = cross_entropy, cross_entropy_fwd, cross_entropy_bwd
