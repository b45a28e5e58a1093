# Part of Bastile, under the MIT License. See LICENSE.
"""Losses of tokens from statistics of their logits: a few numbers for each token, which
PyTorch computes on their device."""

import dataclasses

import torch
from bastile._losses.products import wide_type

#: By result, its type, where that is not the one of sums.
_TYPES = {"correct": torch.int8, "predicted": torch.int32}


def type_of_result(name, dtype):
    """The type of the result ``name`` of a loss of tokens, for logits of ``dtype``."""
    return _TYPES.get(name, wide_type(dtype))


def total_scale(targets, class_weights, divisor, settings, dtype):
    """The number that each token's loss is multiplied by in the total."""
    if settings.reduction != "mean":
        return torch.ones((), dtype=dtype, device=targets.device)
    if divisor is not None:
        return divisor.to(targets.device).reciprocal()
    counted = targets != settings.ignore_index
    if class_weights is None:
        # Where no token counts, all losses and gradients are 0 already.
        return counted.sum(dtype=dtype).clamp_(min=1).reciprocal_()
    return _sum_of_weights(targets, class_weights, counted, dtype).reciprocal()


def penalties_of(targets, class_weights, divisor, settings, dtype):
    """What the z-loss of each token [T] is multiplied by, so that a mean which divides
    the sum of the losses by that of the weights divides the z-losses by the number of
    tokens; None where it is the losses' own factor."""
    if (
        settings.reduction != "mean"
        or class_weights is None
        or divisor is not None
        or not settings.z_loss
    ):
        return None
    counts = (targets != settings.ignore_index).to(dtype)
    weights = _sum_of_weights(targets, class_weights, counts, dtype)
    return counts * (weights / counts.sum().clamp_(min=1))


def _sum_of_weights(targets, class_weights, counted, dtype):
    """What a mean divides by: the sum of the weights of the targets that count, or 1
    where that is 0, as in the op `cross_entropy`."""
    total = (_weights_of(targets, class_weights, dtype) * counted).sum()
    return torch.where(total == 0, torch.ones_like(total), total)


def _weights_of(targets, class_weights, dtype):
    return class_weights[targets.clamp(0, len(class_weights) - 1)].to(dtype)


@dataclasses.dataclass
class Statistics:
    """What a token's loss needs of its logits, of a slab of the classes or of all of
    them. Each is [T]."""

    #: The logarithm of the sum of the exponentials of z.
    lse: torch.Tensor
    #: The target's logit; 0 in a part that lacks it.
    of_target: torch.Tensor
    #: The largest logit, where it is asked for.
    largest: torch.Tensor | None
    #: The sum of w z, where labels are smoothed.
    weighted: torch.Tensor | None
    #: The first class of those with the largest logit, of int32, or -1 where there is a
    #: NaN; where it is asked for.
    predicted: torch.Tensor | None


def combine(parts):
    """The statistics of all classes from those of each part of them."""
    first = parts[0]
    if len(parts) == 1:
        return first
    return Statistics(
        torch.logsumexp(torch.stack([x.lse for x in parts]), 0),
        torch.stack([x.of_target for x in parts]).sum(0),
        None
        if first.largest is None
        else torch.stack([x.largest for x in parts]).amax(0),
        None
        if first.weighted is None
        else torch.stack([x.weighted for x in parts]).sum(0),
        None if first.predicted is None else _first_best(parts),
    )


def _first_best(parts):
    """The class that a part predicts whose largest logit no other's exceeds."""
    largest = torch.stack([x.largest for x in parts])
    predicted = torch.stack([x.predicted for x in parts])
    best = predicted.gather(0, largest.argmax(0)[None])[0]
    return torch.where((predicted < 0).any(0), -1, best)


class Tokens:
    """Losses of tokens, and the factors of the gradients of their logits.

    The formulas are those of `tile.cross_entropy` (docs/ops.md).
    """

    def __init__(self, statistics, targets, class_weights, options, penalties=None):
        self._settings = settings = options.settings
        self._statistics = statistics
        self.lse = statistics.lse
        dtype = self.lse.dtype
        classes = options.classes
        is_wanted = targets != settings.ignore_index
        is_outside = is_wanted & ((targets < 0) | (targets >= classes))
        self._is_outside = is_outside
        self.counts = is_wanted & ~is_outside
        self._smoothing = settings.label_smoothing / classes
        if class_weights is None:
            self._weight = torch.ones_like(self.lse)
            self._weights = classes
        else:
            self._weight = _weights_of(targets, class_weights, dtype)
            self._weights = class_weights.sum(dtype=dtype)
        #: What multiplies the square of each token's lse.
        self._penalty = settings.z_loss
        if penalties is not None:
            self._penalty = settings.z_loss * penalties

    def results(self, options):
        """The losses and the other results that are wanted."""
        made = {"loss": self._losses, "correct": self._correct}
        made["lse"] = lambda: self.lse
        made["predicted"] = self._predicted
        made["invalid"] = lambda: self._is_outside.sum(dtype=self.lse.dtype)
        return [made[name]() for name in ("loss", *options.others)]

    def _losses(self):
        settings, lse = self._settings, self.lse
        z, _ = self._capped()
        loss = (1 - settings.label_smoothing) * self._weight * (lse - z)
        if settings.label_smoothing:
            rest = self._weights * lse - self._statistics.weighted
            loss = loss + self._smoothing * rest
        if settings.z_loss:
            loss = loss + self._penalty * lse * lse
        loss = loss * self._scaling()
        loss = torch.where(self.counts, loss, 0)
        return torch.where(self._is_outside, torch.nan, loss)

    def _correct(self):
        found = self._statistics.of_target >= self._statistics.largest
        return (found & self.counts).to(torch.int8)

    def _predicted(self):
        is_ignored = ~(self.counts | self._is_outside)
        return torch.where(is_ignored, -1, self._statistics.predicted)

    def _scaling(self):
        """What each token's loss is multiplied by."""
        if not self._settings.token_scaling:
            return 1.0
        z, _ = self._capped()
        return torch.exp(z - self.lse)

    def _capped(self):
        """z of the target's logit, and its derivative."""
        settings, logit = self._settings, self._statistics.of_target
        if not settings.soft_cap:
            return logit / settings.temperature, 1 / settings.temperature
        turned = torch.tanh(logit / settings.soft_cap)
        z = settings.soft_cap * turned / settings.temperature
        return z, (1 - turned * turned) / settings.temperature

    def factors(self, scale):
        """``a`` and ``d``, so that the gradient of a logit, times ``scale``, is
        (a exp(z - lse) + d w) dz / dlogit for all classes but the target."""
        settings = self._settings
        a = (1 - settings.label_smoothing) * self._weight
        a = a + self._smoothing * self._weights
        a = a + 2 * self._penalty * self.lse
        scale = torch.where(self.counts, scale * self._scaling(), 0)
        return scale * a, -self._smoothing * scale

    def gradient_of_target(self, scale):
        """The gradient of the target's logit."""
        a, d = self.factors(scale)
        z, slope = self._capped()
        own = (1 - self._settings.label_smoothing) * self._weight
        own = own * torch.where(self.counts, scale * self._scaling(), 0)
        return (a * torch.exp(z - self.lse) - own + d * self._weight) * slope
