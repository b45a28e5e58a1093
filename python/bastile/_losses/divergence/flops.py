# Part of Bastile, under the MIT License. See LICENSE.
"""What `torch.utils.flop_counter` counts of divergences: the products of matrices."""

import torch
from bastile._losses.divergence import operators  # noqa: F401  registers what is counted
from bastile._losses.flops import count_products
from torch.utils.flop_counter import register_flop_formula


@register_flop_formula(
    [torch.ops.bastile.linear_divergence, torch.ops.bastile.linear_divergence_backward]
)
def _count(hidden, weight, *rest, **_):
    """The student's logits with the gradients that are computed of them, and the
    teacher's."""
    _, _, teacher_hidden, teacher_weight, *_ = rest
    wanted = rest[-1]
    count = count_products(hidden, weight, 1 + sum(wanted[:2]))
    if teacher_hidden is not None:
        count += count_products(teacher_hidden, teacher_weight, 1)
    return count
