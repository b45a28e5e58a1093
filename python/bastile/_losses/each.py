# Part of Bastile, under the MIT License. See LICENSE.
"""Losses of tokens and the gradients of their logits, of one pass over the logits.

These are operators of PyTorch without a backward: one makes a new tensor of the
gradient, the other puts it in the logits' place.
"""

import torch
from bastile import _bastile
from bastile._losses import compiled, kernels, totals
from bastile._losses.options import Options
from bastile._losses.tokens import type_of_result

_OPERANDS = (
    "Tensor targets, Tensor? class_weights, str words, SymInt[] counts, float[] numbers"
)


def compute(logits, targets, class_weights, options, in_place):
    """The results that ``options`` name for each row of ``logits`` [T, V], and behind
    them the gradient of the sum of the losses with respect to the logits, in their
    memory if ``in_place``; traceable."""
    inputs = targets, class_weights, *options.given
    if not in_place:
        return torch.ops.bastile.token_losses.default(logits, *inputs)
    results = _imitate(logits, *inputs)
    torch.ops.bastile.token_losses_.default(logits, results, *inputs)
    return [*results, logits]


def _run(logits, targets, class_weights, given, in_place):
    options = kernels.formula_options(Options.read(*given))
    operands = {"logits": logits, "targets": targets[:, None], "weights": class_weights}
    operands = {name: x for name, x in operands.items() if x is not None}
    types, device = compiled.types_of(operands), _bastile.locate(logits)
    native = compiled.find(kernels.each, types, options, device, True, True)
    *results, gradient = native.run(list(operands.values()), in_place=in_place)
    return [x.squeeze(-1) for x in results], gradient


def _allocate(logits, targets, class_weights, *given):
    results, gradient = _run(logits, targets, class_weights, given, False)
    return [*results, gradient]


def _overwrite(logits, results, targets, class_weights, *given):
    # PyTorch traces an operator that overwrites an operand only if it returns nothing.
    found, gradient = _run(logits, targets, class_weights, given, True)
    for result, value in zip(results, found):
        result.copy_(value)
    if gradient is not logits:
        # Rows whose elements lie apart are not written in place.
        logits.copy_(gradient)
    else:
        torch.autograd.graph.increment_version(logits)


def _imitate(logits, targets, class_weights, words, *_):
    # Numbers may be symbols here, and say nothing of the results.
    return [
        logits.new_empty(logits.shape[0], dtype=type_of_result(name, logits.dtype))
        for name in ("loss", *Options.read(words).others)
    ]


def _imitate_allocation(logits, *rest):
    return [*_imitate(logits, *rest), torch.empty_like(logits)]


totals.register(
    "token_losses",
    f"(Tensor logits, {_OPERANDS}) -> Tensor[]",
    _allocate,
    _imitate_allocation,
)
totals.register(
    "token_losses_",
    f"(Tensor(a!) logits, Tensor(b!)[] results, {_OPERANDS}) -> ()",
    _overwrite,
    lambda *_: None,
)
