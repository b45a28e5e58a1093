# Part of Bastile, under the MIT License. See LICENSE.
"""Linear layers of one operand, as one node of the graph.

The gradient of the operand is a sum over the layers. PyTorch computes each layer's
share, and adds them up in kernels of their own. Here each product after the first adds
to the one before.
"""

import torch

from bastile._patching import modules
from bastile._torch import autograd


def project(x, layers):
    """``[layer(x) for layer in layers]``."""
    if (
        len(layers) > 1
        and modules.is_recorded_plainly((x,))
        and modules.are_plain_linear(layers, x.dtype)
    ):
        weights = [layer.weight for layer in layers]
        return _apply(x, *weights, *[layer.bias for layer in layers])
    return [layer(x) for layer in layers]


class _Projections(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, *weights_and_biases):
        count = len(weights_and_biases) // 2
        weights, biases = weights_and_biases[:count], weights_and_biases[count:]
        # What no weight's gradient needs is not kept.
        wants_weights = any(ctx.needs_input_grad[1 : 1 + count])
        ctx.save_for_backward(x if wants_weights else None, *weights)
        return tuple(map(torch.nn.functional.linear, (x,) * count, weights, biases))

    @staticmethod
    def backward(ctx, *upstream):
        sources = ctx.saved_tensors
        return autograd.compute_once(
            "the projections",
            (*sources, *upstream),
            lambda: gradients(ctx.needs_input_grad, sources, upstream),
        )


def gradients(needs, sources, upstream):
    """Those of ``x``, of the weights and of the biases, of which ``needs`` says whether
    they are needed; None where they are not. ``sources`` are ``x`` and the weights,
    ``upstream`` the gradients of the layers' results."""
    x, *weights = sources
    wants_x, *wanted = needs
    columns = None if x is None else x.flatten(0, -2)
    of_x, of_weights, of_biases = None, [], []
    for i, (gradient, weight) in enumerate(zip(upstream, weights)):
        rows = gradient.flatten(0, -2)
        if wants_x and of_x is None:
            of_x = torch.mm(rows, weight)
        elif wants_x:
            of_x.addmm_(rows, weight)
        of_weights.append(torch.mm(rows.t(), columns) if wanted[i] else None)
        of_biases.append(rows.sum(0) if wanted[i + len(weights)] else None)
    if of_x is not None:
        of_x = of_x.view(*upstream[0].shape[:-1], of_x.shape[-1])
    return of_x, *of_weights, *of_biases


_apply = autograd.plain_apply(_Projections)
