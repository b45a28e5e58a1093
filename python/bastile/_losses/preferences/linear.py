# Part of Bastile, under the MIT License. See LICENSE.
"""Losses of log-probabilities, of hidden states and the last layer's weight."""

import torch
from bastile._losses.log_probs import functions
from bastile._losses.preferences import tokens

#: The options that are those of `bastile.ops.linear_log_probs`.
_HEAD = "scale", "soft_cap", "temperature", "ignore_index", "budget", "recompute"


def compute(formula, operands, mask, reference=None, takes_entropy=False, **options):
    """``formula`` of the log-probabilities that `bastile.ops.linear_log_probs` makes of
    ``operands``: hidden states, weight, targets and bias. ``reference`` is a tensor of
    log-probabilities, or the operands that make it, without targets."""
    head = {name: options.pop(name) for name in _HEAD if name in options}
    hidden, weight, targets, bias = operands
    log_probs, entropy = functions.linear_log_probs(
        hidden, weight, targets, bias, returns=("log_prob", "entropy"), **head
    )
    if mask is None:
        mask = targets != head.get("ignore_index", -100)
    if reference is not None and not isinstance(reference, torch.Tensor):
        reference = _log_probs_of(reference, targets, head)
    if reference is not None:
        options["ref_log_probs"] = reference
    if takes_entropy:
        options["entropy"] = entropy
    loss, metrics = formula(log_probs, mask=mask, **options)
    metrics["entropy"] = tokens.mean_of_all(entropy.detach(), mask)
    return loss, metrics


@torch.no_grad()
def _log_probs_of(operands, targets, head):
    hidden, weight, *bias = operands
    return functions.linear_log_probs(hidden, weight, targets, *bias, **head)
