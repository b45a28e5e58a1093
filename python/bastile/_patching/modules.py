# Part of Bastile, under the MIT License. See LICENSE.
"""Layers that somebody has changed: hooks, and functions set in place of their own."""

import torch

#: The forward of a linear layer, unless somebody has put something in its place.
LINEAR = torch.nn.Linear.forward

_HOOKS = (
    "_forward_hooks",
    "_forward_pre_hooks",
    "_backward_hooks",
    "_backward_pre_hooks",
)


def has_hooks(module):
    """Whether something of its own runs with each call of ``module``."""
    return any(getattr(module, name) for name in _HOOKS)
