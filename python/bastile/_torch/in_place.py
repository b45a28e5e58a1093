# Part of Bastile, under the MIT License. See LICENSE.
"""Results in the memory of operands, as autograd sees them."""

import torch


class _Stored(torch.autograd.Function):
    """Memory that a value was copied to, with the value's way back."""

    @staticmethod
    def forward(ctx, memory, value):
        return memory.view_as(memory)

    @staticmethod
    def backward(ctx, upstream):
        return None, upstream


def put(place: torch.Tensor, value: torch.Tensor) -> torch.Tensor:
    """``value`` in the memory of ``place``, which it was computed of.

    The gradient of a leaf is that of what it was before. PyTorch refuses views of
    leaves, and whoever kept the old values for a backward gets PyTorch's error.

    Raises ``RuntimeError`` for a leaf under torch.compile, which puts nothing there.
    """
    if not (torch.is_grad_enabled() and place.is_leaf and place.requires_grad):
        return place.copy_(value)
    if torch.compiler.is_compiling():
        raise RuntimeError(
            "torch.compile cannot overwrite a leaf that requires gradients; "
            "'in_place' has to be False"
        )
    with torch.no_grad():
        place.copy_(value)
    return _Stored.apply(place.detach(), value)
