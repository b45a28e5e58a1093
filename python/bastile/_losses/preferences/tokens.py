# Part of Bastile, under the MIT License. See LICENSE.
"""Sums and means of numbers of tokens [..., T] over those that count."""

import torch


def sum_of(x, mask):
    """The sum of each sequence's numbers. What does not count is not read, and may be
    NaN."""
    return torch.where(mask != 0, x, 0).sum(-1)


def count_of(mask):
    """The number of each sequence's tokens that count, and 1 where none does."""
    return (mask != 0).sum(-1).clamp(min=1)


def mean_of(x, mask):
    """The mean of each sequence's numbers, 0 where no token counts."""
    return sum_of(x, mask) / count_of(mask)


def mean_of_all(x, mask):
    """The mean over the tokens of all sequences that count."""
    return sum_of(x, mask).sum() / (mask != 0).sum().clamp(min=1)


def choose_number(condition, first, second, like):
    """One number where a condition holds and another elsewhere, in the type of
    ``like``: of plain numbers, `torch.where` makes the default type."""
    return torch.where(condition, like.new_full((), first), like.new_full((), second))


def choose(table, kind, name):
    """The entry of a table of loss types, or an error that names them."""
    if name not in table:
        raise ValueError(
            f"{kind}: 'loss_type' must be one of {', '.join(table)}, but is {name!r}"
        )
    return table[name]


def check_shapes(kind, log_probs, **others):
    """Raises ValueError where tensors are not of the shape of ``log_probs``."""
    if log_probs.dim() != 2:
        raise ValueError(
            f"{kind}: 'log_probs' has shape {list(log_probs.shape)}, but it must be "
            "[sequences, tokens]"
        )
    for name, tensor in others.items():
        if tensor is not None and tensor.shape != log_probs.shape:
            raise ValueError(
                f"{kind}: '{name}' has shape {list(tensor.shape)}, but 'log_probs' "
                f"has shape {list(log_probs.shape)}"
            )
