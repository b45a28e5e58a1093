# Part of Bastile, under the MIT License. See LICENSE.
"""The loss in chunks of tokens; the gradient of each chunk's logits takes their
memory."""

import torch
from bastile._losses import kernels, plan
from bastile._losses.gradients import ChunkGradients
from bastile._losses.products import logits_of, wide_type


def run(operands, scale, options, wanted):
    """The results for `Operands` of hidden states [T, H] and targets [T], and the
    gradients of the sum of the losses times ``scale`` [T] that are ``wanted`` of hidden
    states, weight and bias.

    With ``scale`` None, the loss is that of each token.
    """
    hidden, weight, targets, bias, class_weights = operands
    tokens, classes = len(hidden), len(weight)
    size = hidden.element_size()
    budget = plan.budget_of(*hidden.shape, classes, size, options.settings)
    parts = plan.pieces(tokens, classes * size, budget)
    gradients = None
    if any(wanted):
        gradients = ChunkGradients(hidden, weight, wanted, len(parts))
    if scale is not None:
        scale = scale[:, None].contiguous()

    def take(part, memory):
        rows = memory[: part.stop - part.start]
        logits = logits_of(hidden[part], weight, bias, rows)
        given = logits, targets[part, None], class_weights
        if scale is None:
            return kernels.losses(*given, options)
        if gradients is None:
            return kernels.total(*given, scale[part], options)
        *made, logits = kernels.total_and_gradient(*given, scale[part], options)
        gradients.add(part, logits)
        return made

    memory = hidden.new_empty(parts[0].stop if parts else 0, classes)
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
    wide = wide_type(hidden.dtype)
    tokens = hidden.shape[0]
    shapes = {
        "loss": ((tokens,) if is_apart else (), wide),
        "lse": ((tokens,), wide),
        "correct": ((tokens,), torch.int8),
        "invalid": ((), wide),
    }
    return [
        hidden.new_zeros(shapes[name][0], dtype=shapes[name][1])
        for name in ("loss", *options.others)
    ]
