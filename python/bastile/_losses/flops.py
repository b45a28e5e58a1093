# Part of Bastile, under the MIT License. See LICENSE.
"""What `torch.utils.flop_counter` counts of the linear loss: its matrix products."""

import torch
from bastile._losses import operators  # noqa: F401  registers what is counted
from bastile._losses.options import Options
from torch.utils.flop_counter import register_flop_formula


@register_flop_formula(torch.ops.bastile.linear_cross_entropy)
def _count_loss(hidden, weight, targets, bias, class_weights, divisor, *rest, **_):
    """Logits and the gradients that are computed with them, from the logits again
    where those are not kept. Of tokens to ignore nothing is known here."""
    words, *_, wanted = rest
    gradients = sum(wanted[:2])
    again = 1 if gradients and Options.read(words).settings.recompute else 0
    return count_products(hidden, weight, 1 + again + gradients)


@register_flop_formula(torch.ops.bastile.linear_cross_entropy_backward)
def _count_backward(hidden, weight, targets, bias, class_weights, upstream, *rest, **_):
    """The logits again, and the gradients."""
    words, *_, wanted = rest
    again = 1 if Options.read(words).settings.recompute else 0
    return count_products(hidden, weight, 1 + again + sum(wanted[:2]))


def count_products(hidden, weight, count):
    """Of ``count`` products of [T, H] with [V, H]."""
    tokens, length = hidden
    return 2 * tokens * length * weight[0] * count
