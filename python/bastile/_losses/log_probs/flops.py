# Part of Bastile, under the MIT License. See LICENSE.
"""What `torch.utils.flop_counter` counts of log-probabilities: the products of
matrices."""

import torch
from bastile._losses.flops import count_products
from bastile._losses.log_probs import operators  # noqa: F401  registers what is counted
from torch.utils.flop_counter import register_flop_formula


@register_flop_formula(torch.ops.bastile.linear_log_probs)
def _count_forward(hidden, weight, *_, **__):
    return count_products(hidden, weight, 1)


@register_flop_formula(torch.ops.bastile.linear_log_probs_backward)
def _count_backward(hidden, weight, *rest, **_):
    """The logits again, and the gradients."""
    return count_products(hidden, weight, 1 + sum(rest[-1][:2]))
