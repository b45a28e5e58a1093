"""The loss of hidden states through the last layer of a model, whatever has become
of that layer: sharded, partitioned or adapted."""

import torch
from bastile import functional as F


def loss(head, hidden, targets, *, ignore_index, reduction, soft_cap, temperature):
    """The loss and the share of tokens that are predicted.

    ``hidden`` has the shape [..., size] and ``targets`` [...].
    """
    rows = hidden.reshape(-1, hidden.shape[-1])
    targets = targets.reshape(-1).to(rows.device)
    logits = torch.nn.functional.linear(rows, head.weight, head.bias)
    value, correct = F.cross_entropy(
        logits,
        targets,
        ignore_index=ignore_index,
        reduction=reduction,
        soft_cap=soft_cap,
        temperature=temperature,
        return_correct=True,
        in_place=True,
    )
    counts = targets != ignore_index
    accuracy = (correct & counts).sum() / counts.sum().clamp(min=1)
    return value, accuracy
