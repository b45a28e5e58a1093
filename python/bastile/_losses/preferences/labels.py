# Part of Bastile, under the MIT License. See LICENSE.
"""The loss of single sequences that are desirable or not."""

import torch
from bastile._losses.preferences import tokens
from torch import Tensor

#: The loss of a sequence by its margin, which is that of a desirable one, or the
#: opposite.
_KTO = {
    "kto": lambda ratio, sign, kl, beta: 1 - torch.sigmoid(beta * sign * (ratio - kl)),
    "apo_zero_unpaired": lambda ratio, sign, kl, beta: (
        1 - torch.sigmoid(beta * sign * ratio)
    ),
}


def kto_loss(
    log_probs: Tensor,
    ref_log_probs: Tensor,
    mask: Tensor,
    labels: Tensor,
    *,
    kl: Tensor | float = 0.0,
    beta: float = 0.1,
    loss_type: str = "kto",
    desirable_weight: float = 1.0,
    undesirable_weight: float = 1.0,
) -> tuple[Tensor, dict[str, Tensor]]:
    """The loss of Kahneman-Tversky Optimization.

    Args:
        log_probs: [B, T], of each token in the model.
        ref_log_probs: the same of the reference.
        mask: [B, T], which tokens count.
        labels: [B], which sequences are desirable.
        kl: an estimate of the model's divergence from the reference, one number of 0
            or more: of sequences that answer other prompts, the mean of what the
            log-probabilities' sums exceed the reference's by.
        beta: how much a difference to the reference weighs.
        loss_type: kto, or apo_zero_unpaired, which does without ``kl``.
        desirable_weight, undesirable_weight: what losses are multiplied by.

    Returns:
        The mean over the sequences, and what trainers log, without gradients: kl,
        rewards/chosen, rewards/rejected, rewards/margins, logps/chosen and
        logps/rejected, each a mean over the sequences of that label, and NaN where
        there are none.

    Raises:
        ValueError: for shapes that do not fit together and options that do not exist.
    """
    tokens.check_shapes("kto_loss", log_probs, ref_log_probs=ref_log_probs, mask=mask)
    if labels.shape != log_probs.shape[:1]:
        raise ValueError(
            f"kto_loss: 'labels' has shape {list(labels.shape)}, but for "
            f"{len(log_probs)} sequences it must be {[len(log_probs)]}"
        )
    formula = tokens.choose(_KTO, "kto_loss", loss_type)
    sums = tokens.sum_of(log_probs, mask)
    ratio = sums - tokens.sum_of(ref_log_probs, mask)
    is_desirable = labels != 0
    kl = torch.as_tensor(kl, dtype=ratio.dtype, device=ratio.device).detach()
    sign = tokens.choose_number(is_desirable, 1.0, -1.0, ratio)
    weights = tokens.choose_number(
        is_desirable, desirable_weight, undesirable_weight, ratio
    )
    losses = weights * formula(ratio, sign, kl, beta)
    made = {"rewards": beta * ratio.detach(), "logps": sums.detach()}
    metrics = {"kl": kl.mean()}
    for name, x in made.items():
        for label, of in (("chosen", is_desirable), ("rejected", ~is_desirable)):
            metrics[f"{name}/{label}"] = torch.where(of, x, 0).sum() / of.sum()
    metrics["rewards/margins"] = metrics["rewards/chosen"] - metrics["rewards/rejected"]
    return losses.mean(), metrics
