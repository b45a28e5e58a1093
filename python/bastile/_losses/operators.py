# Part of Bastile, under the MIT License. See LICENSE.
"""The operators that are registered with PyTorch, so that a compiler of graphs sees one
call for a forward and one for a backward."""

import functools

from bastile._losses import forward, slabs, totals
from bastile._losses.options import Operands, Options
from bastile._losses.products import wide_type
from bastile._losses.tokens import penalties_of, total_scale


def _run(options):
    """The function that computes the loss as the options ask for."""
    if options.group is not None:
        from bastile._losses import parallel

        return parallel.run
    return slabs.run if options.settings.recompute else forward.run


def _bind(hidden, weight, targets, bias, class_weights, divisor, options):
    """How the loss of these operands is computed, for `totals`."""
    penalties = penalties_of(
        targets, class_weights, divisor, options.settings, wide_type(hidden.dtype)
    )
    operands = Operands(hidden, weight, targets, bias, class_weights)
    run = _run(options)
    return lambda scale, wanted: run(operands, penalties, scale, options, wanted)


def _forward(hidden, weight, targets, bias, class_weights, divisor, *rest):
    *given, wanted = rest
    options = Options.read(*given)
    run = _bind(hidden, weight, targets, bias, class_weights, divisor, options)
    factor = functools.partial(
        total_scale, targets, class_weights, divisor, options.settings
    )
    return totals.compute(run, hidden, factor, options, wanted)


def _fake_forward(hidden, weight, targets, bias, class_weights, divisor, *rest):
    words, *_, wanted = rest
    return totals.imitate(hidden, weight, Options.read(words), wanted)


def _backward(hidden, weight, targets, bias, class_weights, upstream, *rest):
    *given, wanted = rest
    options = Options.read(*given)
    run = _bind(hidden, weight, targets, bias, class_weights, None, options)
    return totals.differentiate(run, hidden, upstream, wanted)


def _fake_backward(hidden, weight, *rest):
    return totals.imitate_gradients(hidden, weight, rest[-1], hidden.dtype)


totals.register_loss(
    "linear_cross_entropy",
    "Tensor targets, Tensor? bias, Tensor? class_weights, ",
    (_forward, _fake_forward),
    (_backward, _fake_backward),
)
