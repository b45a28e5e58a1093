# Part of Bastile, under the MIT License. See LICENSE.
"""The losses that trainers of preferences and rewards make of log-probabilities.

Each loss is there twice. `dpo_loss`, `cpo_loss`, `simpo_loss`, `orpo_loss`, `kto_loss`,
`grpo_loss` and `rloo_loss` take the log-probabilities of tokens, whoever has computed
them. The same with ``linear_`` in front take hidden states and the last layer's weight
instead, and never hold all logits:

    hidden: [B, T, H] of float16, bfloat16 or float32, at the places whose next tokens
        are the targets.
    weight: [V, H] of the last layer.
    targets: [B, T], the next tokens; ``ignore_index`` where there is none that counts.
    bias: [V], or None.
    reference: of losses that have one, its log-probabilities [B, T], or a tuple of its
        hidden states, weight and, if there is one, bias, of the same targets.
    mask: [B, T], which tokens count; by default those that are not to be ignored.
    options: those of the loss without ``linear_``, and ``scale``, ``soft_cap``,
        ``temperature``, ``ignore_index``, ``budget`` and ``recompute`` of
        `bastile.ops.linear_log_probs`.

Each returns the loss and a dictionary of what trainers log, numbers without gradients
that nobody has waited for; of hidden states, ``entropy`` is among them, the mean of the
tokens that count.
"""

from typing import Any

from bastile._losses.preferences import linear
from bastile._losses.preferences.labels import kto_loss
from bastile._losses.preferences.pairs import cpo_loss, dpo_loss, orpo_loss, simpo_loss
from bastile._losses.preferences.policy import grpo_loss, rloo_loss
from torch import Tensor

__all__ = [
    "cpo_loss",
    "dpo_loss",
    "grpo_loss",
    "kto_loss",
    "linear_cpo_loss",
    "linear_dpo_loss",
    "linear_grpo_loss",
    "linear_kto_loss",
    "linear_orpo_loss",
    "linear_rloo_loss",
    "linear_simpo_loss",
    "orpo_loss",
    "rloo_loss",
    "simpo_loss",
]

_Result = tuple[Tensor, dict[str, Tensor]]


def linear_dpo_loss(
    hidden: Tensor,
    weight: Tensor,
    targets: Tensor,
    bias: Tensor | None = None,
    *,
    reference: Tensor | tuple[Tensor, ...],
    mask: Tensor | None = None,
    **options: Any,
) -> _Result:
    """`dpo_loss` of hidden states, of chosen sequences and then of rejected ones."""
    operands = hidden, weight, targets, bias
    return linear.compute(dpo_loss, operands, mask, reference, **options)


def linear_cpo_loss(
    hidden: Tensor,
    weight: Tensor,
    targets: Tensor,
    bias: Tensor | None = None,
    *,
    mask: Tensor | None = None,
    **options: Any,
) -> _Result:
    """`cpo_loss` of hidden states, of chosen sequences and then of rejected ones."""
    return linear.compute(cpo_loss, (hidden, weight, targets, bias), mask, **options)


def linear_simpo_loss(
    hidden: Tensor,
    weight: Tensor,
    targets: Tensor,
    bias: Tensor | None = None,
    *,
    mask: Tensor | None = None,
    **options: Any,
) -> _Result:
    """`simpo_loss` of hidden states, of chosen sequences and then of rejected ones."""
    return linear.compute(simpo_loss, (hidden, weight, targets, bias), mask, **options)


def linear_orpo_loss(
    hidden: Tensor,
    weight: Tensor,
    targets: Tensor,
    bias: Tensor | None = None,
    *,
    mask: Tensor | None = None,
    **options: Any,
) -> _Result:
    """`orpo_loss` of hidden states, of chosen sequences and then of rejected ones. Where
    the negative log-probability is of prompts as well (``nll_mask``), ``targets`` has
    them, and ``mask`` says which belong to answers."""
    return linear.compute(orpo_loss, (hidden, weight, targets, bias), mask, **options)


def linear_kto_loss(
    hidden: Tensor,
    weight: Tensor,
    targets: Tensor,
    labels: Tensor,
    bias: Tensor | None = None,
    *,
    reference: Tensor | tuple[Tensor, ...],
    mask: Tensor | None = None,
    **options: Any,
) -> _Result:
    """`kto_loss` of hidden states."""
    operands = hidden, weight, targets, bias
    return linear.compute(kto_loss, operands, mask, reference, labels=labels, **options)


def linear_grpo_loss(
    hidden: Tensor,
    weight: Tensor,
    targets: Tensor,
    advantages: Tensor,
    bias: Tensor | None = None,
    *,
    reference: Tensor | tuple[Tensor, ...] | None = None,
    mask: Tensor | None = None,
    **options: Any,
) -> _Result:
    """`grpo_loss` of hidden states, whose entropy it takes for ``entropy_coef``."""
    operands = hidden, weight, targets, bias
    return linear.compute(
        grpo_loss,
        operands,
        mask,
        reference,
        takes_entropy=True,
        advantages=advantages,
        **options,
    )


def linear_rloo_loss(
    hidden: Tensor,
    weight: Tensor,
    targets: Tensor,
    advantages: Tensor,
    bias: Tensor | None = None,
    *,
    mask: Tensor | None = None,
    **options: Any,
) -> _Result:
    """`rloo_loss` of hidden states."""
    operands = hidden, weight, targets, bias
    return linear.compute(rloo_loss, operands, mask, advantages=advantages, **options)
