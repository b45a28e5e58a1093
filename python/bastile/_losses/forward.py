# Part of Bastile, under the MIT License. See LICENSE.
"""The loss in chunks of tokens; the gradient of each chunk's logits takes their
memory."""

import torch
from bastile._losses import kernels, plan
from bastile._losses.gradients import ChunkGradients
from bastile._losses.products import logits_of, memory_of_logits
from bastile._losses.tokens import type_of_result


def run(operands, penalties, scale, options, wanted):
    """The results for `Operands` of hidden states [T, H] and targets [T], and the
    gradients of the sum of the losses times ``scale`` [T] that are ``wanted`` of hidden
    states, weight and bias.

    With ``scale`` None, the loss is that of each token. ``penalties`` [T], where they
    are given, multiply the z-loss of each token beside ``scale``.
    """
    hidden, weight, targets, bias, class_weights = operands
    tokens, classes, size = len(hidden), len(weight), hidden.element_size()
    budget = plan.budget_of(*hidden.shape, classes, size, options.settings)
    parts = plan.chunks(tokens, classes, size, budget)

    def compute(logits, part, scale, is_differentiated):
        given = logits, targets[part, None], class_weights
        if scale is None:
            return kernels.losses(*given, options)
        of_part = None if penalties is None else penalties[part, None]
        if not is_differentiated:
            return kernels.total(*given, scale, of_part, options)
        return kernels.total_and_gradient(*given, scale, of_part, options)

    linear = hidden, weight, bias
    return run_chunks(linear, parts, compute, scale, options, wanted)


def run_chunks(linear, parts, compute, scale, options, wanted):
    """As `run`, for hidden states, weight and bias, in slices of the tokens.

    ``compute(logits, part, scale, is_differentiated)`` gives the results of a part, the
    loss first: of each token, or with ``scale`` [rows, 1] their sum; and behind the
    results, where it is asked for, the gradient of that sum in the logits' memory.
    """
    hidden, weight, bias = linear
    gradients = None
    if any(wanted):
        gradients = ChunkGradients(hidden, weight, wanted, len(parts))
    if scale is not None:
        scale = scale[:, None].contiguous()

    def take(part, memory):
        rows = memory[: part.stop - part.start]
        logits = logits_of(hidden[part], weight, bias, rows)
        of_part = None if scale is None else scale[part]
        made = compute(logits, part, of_part, gradients is not None)
        if gradients is None:
            return made
        *made, logits = made
        gradients.add(part, logits)
        return made

    most = parts[0].stop if parts else 0
    memory = memory_of_logits(hidden, most, len(weight))
    found = [take(part, memory) for part in parts]
    # Rounding the weight's gradient takes memory, which is less than the logits leave.
    del memory
    results = combine_chunks(found, hidden, options, scale is None)
    return results, gradients.finish() if gradients else []


def combine_chunks(found, hidden, options, is_apart):
    """The results of all tokens from those of each chunk."""
    if not found:
        return empty_results(hidden, options, is_apart)
    combined = []
    for name, parts in zip(("loss", *options.others), zip(*found)):
        is_total = name == "invalid" or (name == "loss" and not is_apart)
        if len(parts) == 1:
            # A view would keep trainers from scaling the loss in place, as autograd
            # forbids that.
            combined.append(parts[0].squeeze_(-1))
            continue
        values = torch.cat([part.flatten() for part in parts])
        combined.append(values.sum() if is_total else values)
    return combined


def empty_results(hidden, options, is_apart):
    """Zeros of the shapes and types of the results."""
    tokens = (hidden.shape[0],)
    shapes = {"loss": tokens if is_apart else (), "invalid": ()}
    return [
        hidden.new_zeros(
            shapes.get(name, tokens), dtype=type_of_result(name, hidden.dtype)
        )
        for name in ("loss", *options.others)
    ]
