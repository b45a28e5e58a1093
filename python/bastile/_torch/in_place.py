# Part of Bastile, under the MIT License. See LICENSE.
"""Results in the memory of operands, as autograd sees them."""

import torch


class _Overwrite(torch.autograd.Function):
    """A leaf in whose memory a value was put that has its own way back to the leaf."""

    @staticmethod
    def forward(ctx, leaf, value):
        leaf.copy_(value)
        return leaf.view_as(leaf)

    @staticmethod
    def backward(ctx, upstream):
        return None, upstream


def put(place: torch.Tensor, value: torch.Tensor) -> torch.Tensor:
    """``value`` in the memory of ``place``, which it was computed of.

    The gradient of a leaf is that of what it was before. PyTorch refuses views of
    leaves, and whoever kept the old values for a backward gets PyTorch's error.
    """
    if torch.is_grad_enabled() and place.is_leaf and place.requires_grad:
        return _Overwrite.apply(place, value)
    return place.copy_(value)
