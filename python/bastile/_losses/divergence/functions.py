# Part of Bastile, under the MIT License. See LICENSE.
"""The functions of `bastile.ops` for distillation. PyTorch is imported when one is
called."""

from typing import TYPE_CHECKING, Any

from bastile._losses.divergence.options import DIRECTIONS, Operands, Settings
from bastile._torch.followers import follow

if TYPE_CHECKING:
    from torch import Tensor


@follow
def _register():
    """Registers the operators that programs of PyTorch may name."""
    from bastile._losses.divergence import flops  # noqa: F401


def linear_jsd(
    hidden: "Tensor",
    weight: "Tensor",
    teacher_hidden: "Tensor | None" = None,
    teacher_weight: "Tensor | None" = None,
    targets: "Tensor | None" = None,
    bias: "Tensor | None" = None,
    teacher_bias: "Tensor | None" = None,
    *,
    teacher_logits: "Tensor | None" = None,
    beta: float = 0.5,
    reduction: str = "mean",
    ignore_index: int = -100,
    scale: float = 1.0,
    soft_cap: float = 0.0,
    teacher_scale: float = 1.0,
    teacher_soft_cap: float = 0.0,
    temperature: float = 1.0,
    num_items: "float | Tensor | None" = None,
    budget: int | None = None,
    returns: str | tuple[str, ...] = "loss",
) -> Any:
    """The generalized Jensen-Shannon divergence of a student's next-token distribution
    and a teacher's, each the softmax of a linear layer, without all the logits at a
    time.

    For a token with the student's probabilities p and the teacher's q,

        m = (1 - beta) p + beta q
        loss = sum(beta q log(q / m) + (1 - beta) p log(p / m))

    and in the limits the forward divergence, ``sum(q log(q / p))``, for a ``beta`` of
    0, and the reverse one, ``sum(p log(p / q))``, for 1: as in Agarwal et al.,
    "On-Policy Distillation of Language Models" (arXiv 2306.13649).

    Each softmax is of ``soft_cap * tanh(scale * logits / soft_cap) / temperature``.
    Chunks of tokens, and gradients that are computed with the loss, are as in
    `linear_cross_entropy`. The student alone has gradients.

    Args:
        hidden: [..., H], the student's, of float16, bfloat16, float32 or float64.
        weight: [V, H] of the same type. Autocast converts all but ``teacher_logits``.
        teacher_hidden: [..., G], with the leading sizes of ``hidden``.
        teacher_weight: [V, G] of the same type.
        targets: [...] of int64 or int32: tokens whose target is ``ignore_index`` have
            the loss 0 and no gradient, and no other target matters. By default all
            tokens count.
        bias: [V], the student's, or None.
        teacher_bias: [V], or None.
        teacher_logits: [..., V] in the place of ``teacher_hidden`` and
            ``teacher_weight``.
        beta: the teacher's share in the mixture, from 0 to 1.
        reduction: "mean" over the tokens that count, "sum" or "none".
        scale, soft_cap: of the student's logits; a ``soft_cap`` of 0 is none.
        teacher_scale, teacher_soft_cap: of the teacher's.
        temperature: what both are divided by. The loss is not multiplied by its square.
        num_items: what to divide the sum of the losses by, for "mean".
        budget: bytes of both models' logits held at a time. By default as in
            `linear_cross_entropy`, and as much again for the teacher's.
        returns: ``"loss"``, or a tuple of names out of loss and entropy, which makes the
            result a tuple. The entropy is that of the student's softmax, of each token,
            without a gradient.

    Returns:
        The loss, float32 (float64 for float64): a number, or [...] for "none".

    Raises:
        TypeError: for a type of elements that does not fit, a DTensor, and where the
            teacher has neither or both of hidden states and logits.
        ValueError: for shapes or devices that do not fit together, an option's value,
            or a weight that ZeRO-3 has partitioned.
        RuntimeError: when its gradients are differentiated again.
    """
    from bastile._losses.divergence import api

    operands = Operands(
        *(hidden, weight, targets, bias),
        *(teacher_hidden, teacher_weight, teacher_bias, teacher_logits),
    )
    settings = Settings(
        beta,
        reduction,
        ignore_index,
        scale,
        soft_cap,
        teacher_scale,
        teacher_soft_cap,
        temperature,
        budget,
    )
    return api.compute("linear_jsd", operands, settings, returns, num_items)


def linear_kl(
    hidden: "Tensor",
    weight: "Tensor",
    teacher_hidden: "Tensor | None" = None,
    teacher_weight: "Tensor | None" = None,
    targets: "Tensor | None" = None,
    bias: "Tensor | None" = None,
    teacher_bias: "Tensor | None" = None,
    *,
    teacher_logits: "Tensor | None" = None,
    direction: str = "forward",
    reduction: str = "mean",
    ignore_index: int = -100,
    scale: float = 1.0,
    soft_cap: float = 0.0,
    teacher_scale: float = 1.0,
    teacher_soft_cap: float = 0.0,
    temperature: float = 1.0,
    num_items: "float | Tensor | None" = None,
    budget: int | None = None,
    returns: str | tuple[str, ...] = "loss",
) -> Any:
    """The Kullback-Leibler divergence of a student's next-token distribution p and a
    teacher's q, each the softmax of a linear layer, without all the logits at a time.

    Args:
        direction: "forward" for ``sum(q log(q / p))``, which asks the student for all
            that the teacher may say; "reverse" for ``sum(p log(p / q))``, which asks it
            for nothing that the teacher would not say.

    The rest is as in `linear_jsd`.
    """
    from bastile._losses.divergence import api

    if direction not in DIRECTIONS:
        raise ValueError(
            f"linear_kl: 'direction' must be one of {', '.join(DIRECTIONS)}, but is "
            f"{direction!r}"
        )
    operands = Operands(
        *(hidden, weight, targets, bias),
        *(teacher_hidden, teacher_weight, teacher_bias, teacher_logits),
    )
    settings = Settings(
        DIRECTIONS[direction],
        reduction,
        ignore_index,
        scale,
        soft_cap,
        teacher_scale,
        teacher_soft_cap,
        temperature,
        budget,
    )
    return api.compute("linear_kl", operands, settings, returns, num_items)
