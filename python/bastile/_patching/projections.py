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
        ctx.save_for_backward(x, *weights)
        return tuple(map(torch.nn.functional.linear, (x,) * count, weights, biases))

    @staticmethod
    def backward(ctx, *upstream):
        sources = ctx.saved_tensors
        return autograd.compute_once(
            "the projections",
            (*sources, *upstream),
            lambda: _gradients(ctx.needs_input_grad, sources, upstream),
        )


def _gradients(needs, sources, upstream):
    """Those of ``x``, of the weights and of the biases; None where none is needed."""
    x, *weights = sources
    wants_x, *wanted = needs
    columns = x.flatten(0, -2)
    of_x, of_weights, of_biases = None, [], []
    for i, (gradient, weight) in enumerate(zip(upstream, weights)):
        rows = gradient.flatten(0, -2)
        if wants_x and of_x is None:
            of_x = torch.mm(rows, weight)
        elif wants_x:
            of_x.addmm_(rows, weight)
        of_weights.append(torch.mm(rows.t(), columns) if wanted[i] else None)
        of_biases.append(rows.sum(0) if wanted[i + len(weights)] else None)
    of_x = None if of_x is None else of_x.view(x.shape)
    return of_x, *of_weights, *of_biases


_apply = autograd.plain_apply(_Projections)
