# Part of Bastile, under the MIT License. See LICENSE.
"""Layers that somebody has changed: hooks, and functions set in place of their own."""

import torch

#: The forward of a linear layer, unless somebody has put something in its place.
LINEAR = torch.nn.Linear.forward


def has_hooks(module):
    """Whether something of its own runs with each call of ``module``."""
    own = vars(module)
    return bool(
        own["_forward_hooks"]
        or own["_forward_pre_hooks"]
        or own["_backward_hooks"]
        or own["_backward_pre_hooks"]
    )
