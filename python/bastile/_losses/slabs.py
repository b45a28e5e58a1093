# Part of Bastile, under the MIT License. See LICENSE.
"""The loss in slabs of classes, each with the logits of all tokens."""

import torch
from bastile._losses import kernels, plan
from bastile._losses.gradients import SlabGradients
from bastile._losses.products import logits_of, memory_of_logits, wide_type
from bastile._losses.tokens import Statistics, Tokens, combine


class Slab:
    """Some tokens' logits [T, v] of the classes from ``first`` on."""

    def __init__(self, logits, targets, first, class_weights, options):
        self._logits = logits
        self._options = options
        self._weights = None
        if class_weights is not None:
            self._weights = class_weights[first : first + logits.shape[1]]
        column = targets.long() - first
        self._has_target = (column >= 0) & (column < logits.shape[1])
        self._column = torch.where(self._has_target, column, 0)[:, None]
        self._first = first

    def statistics(self):
        logits = self._logits
        made = kernels.statistics(logits, self._weights, self._options)
        rows = {name: values.flatten() for name, values in made.items()}
        target = logits.gather(1, self._column).flatten().to(wide_type(logits.dtype))
        return Statistics(
            rows["lse"],
            torch.where(self._has_target, target, 0),
            rows.get("largest"),
            rows.get("weighted"),
            self._predicted(rows),
        )

    def _predicted(self, rows):
        best = rows.get("best")
        if best is None:
            return None
        classes = self._logits.shape[1]
        return torch.where(best < classes, self._first + best.int(), -1)

    def gradient(self, tokens, scale):
        """The gradient of the losses times ``scale`` [T], in the logits' memory."""
        a, d = tokens.factors(scale)
        gradient = kernels.gradient(
            *(self._logits, tokens.lse, a, d, self._weights, self._options)
        )
        # The gradient of the target's logit has another term; one logit in a row has
        # it.
        own = tokens.gradient_of_target(scale).to(gradient.dtype)[:, None]
        is_here = (self._has_target & tokens.counts)[:, None]
        there = gradient.gather(1, self._column)
        return gradient.scatter_(1, self._column, torch.where(is_here, own, there))


def run(operands, penalties, scale, options, wanted):
    """As `forward.run`, slab by slab of the classes, with the logits computed
    twice where gradients are wanted: first for the losses, then for them. No
    accumulator of the weight's size is needed."""
    hidden, weight, targets, bias, class_weights = operands
    tokens, classes = len(hidden), len(weight)
    size = hidden.element_size()
    budget = plan.budget_of(*hidden.shape, classes, size, options.settings)
    parts = plan.slabs(tokens, classes, size, budget)
    memory = memory_of_logits(hidden, tokens, parts[0].stop)

    def slab(part):
        logits = memory[:, : part.stop - part.start]
        of_part = None if bias is None else bias[part]
        logits_of(hidden, weight[part], of_part, logits)
        return Slab(logits, targets, part.start, class_weights, options)

    statistics = combine([slab(part).statistics() for part in parts])
    of_tokens = Tokens(statistics, targets, class_weights, options, penalties)
    results = of_tokens.results(options)
    if scale is not None:
        results[0] = (results[0] * scale).sum()
    if not any(wanted):
        return results, []
    gradients = SlabGradients(hidden, weight, wanted, len(parts))
    for part in parts:
        gradients.add(part, slab(part).gradient(of_tokens, scale))
    return results, gradients.finish()
