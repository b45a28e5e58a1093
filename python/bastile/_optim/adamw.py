# Part of Bastile, under the MIT License. See LICENSE.
"""The step of AdamW."""

import torch
from bastile._compiler.compile import compile
from bastile._optim.rows import Elements
from bastile.functions import maximum, sqrt, where


def _adamw(p, g, m, v, keep, rate, root, rest1, beta2, rest2, eps, maximize=False):
    """The parameter and the means of its gradient and of the gradient's square.

    ``keep`` is 1 - lr weight_decay, ``rate`` is lr / (1 - beta1^t) and ``root`` is
    sqrt(1 - beta2^t), in step t. ``rest1`` and ``rest2`` are 1 - beta1 and 1 - beta2,
    which are not computed here, as float32 would leave few digits of them.
    """
    m, v = _means(g, m, v, rest1, beta2, rest2, maximize)
    return keep * p - rate * m / (sqrt(v) / root + eps), m, v


def _amsgrad(
    p, g, m, v, top, keep, rate, root, rest1, beta2, rest2, eps, maximize=False
):
    """As `_adamw`, divided by the largest mean of squares so far."""
    m, v = _means(g, m, v, rest1, beta2, rest2, maximize)
    top = maximum(top, v)
    return keep * p - rate * m / (sqrt(top) / root + eps), m, v, top


def _means(g, m, v, rest1, beta2, rest2, maximize):
    if maximize:
        g = -g
    # Each mean is exact where it is the gradient alone, and the square of a gradient
    # may be infinite where its share is not, as in PyTorch's.
    m = where(rest1 < 0.5, m + rest1 * (g - m), g - (1 - rest1) * (g - m))
    return m, beta2 * v + rest2 * g * g


_STEPS = {
    (amsgrad, maximize): compile(
        _amsgrad if amsgrad else _adamw,
        in_place=places,
        maximize=maximize,
    )
    for amsgrad, places in ((False, ("p", "m", "v")), (True, ("p", "m", "v", "top")))
    for maximize in (False, True)
}


def numbers_of(step, lr, betas, eps, weight_decay, dtype, device):
    """What all elements of parameters in step number ``step`` share, as one-element
    tensors of ``dtype``."""
    beta1, beta2 = betas
    numbers = (
        1 - lr * weight_decay,
        lr / (1 - beta1**step),
        (1 - beta2**step) ** 0.5,
        *(1 - beta1, beta2, 1 - beta2, eps),
    )
    return torch.tensor(numbers, dtype=dtype).to(device, non_blocking=True).split(1)


def step(tensors, numbers, maximize):
    """Changes a parameter, the means of its gradient and of the gradient's square and,
    with AMSGrad, the largest of the latter.

    ``tensors`` are these in that order, with the gradient behind the parameter, all of
    one shape; ``numbers`` come from `numbers_of`.
    """
    elements = Elements(*tensors)
    kernel = _STEPS[len(tensors) == 5, maximize]
    for rows in elements.rows():
        kernel(*rows, *numbers)
    elements.copy_back(0, *range(2, len(tensors)))
