# Part of Bastile, under the MIT License. See LICENSE.
"""Cross-entropy in float64 and its gradient, derived by hand."""

import numpy as np


class Loss:
    """One setting of the op, on logits of float64 and targets of integers."""

    def __init__(
        self,
        ignore_index=-100,
        label_smoothing=0.0,
        z_loss=0.0,
        soft_cap=0.0,
        temperature=1.0,
        reduction="mean",
        token_scaling=False,
    ):
        self.ignore_index = ignore_index
        self.label_smoothing = label_smoothing
        self.z_loss = z_loss
        self.soft_cap = soft_cap
        self.temperature = temperature
        self.reduction = reduction
        self.token_scaling = token_scaling

    def operands(self):
        """The attributes of the op."""
        names = ("label_smoothing", "z_loss", "soft_cap", "temperature")
        numbers = [f"{name} = {getattr(self, name):e}" for name in names]
        numbers.append(f"ignore_index = {self.ignore_index}")
        if self.token_scaling:
            numbers.append("token_scaling")
        return f"reduction({self.reduction}) {{{', '.join(numbers)}}}"

    def _prepare(self, logits, targets, weights):
        z, slope = logits, np.ones_like(logits)
        if self.soft_cap:
            t = np.tanh(logits / self.soft_cap)
            z, slope = self.soft_cap * t, 1 - t * t
        z, slope = z / self.temperature, slope / self.temperature
        top = z.max(axis=-1, keepdims=True)
        lse = top + np.log(np.exp(z - top).sum(axis=-1, keepdims=True))
        length = logits.shape[-1]
        ignored = targets == self.ignore_index
        valid = (targets >= 0) & (targets < length) & ~ignored
        is_target = (np.arange(length) == targets) & valid
        if weights is None:
            weights, weight = np.ones(length), np.ones_like(lse)
        else:
            # An invalid target has no weight.
            weight = (is_target * weights).sum(axis=-1, keepdims=True)
        return z, slope, lse, ignored, valid, is_target, weights, weight

    def forward(self, logits, targets, weights=None):
        """The loss, lse, which targets are correct, how many are invalid, and the
        predicted classes."""
        z, _, lse, ignored, valid, is_target, weights, weight = self._prepare(
            logits, targets, weights
        )
        target = np.where(is_target, z, 0).sum(axis=-1, keepdims=True)
        loss = (1 - self.label_smoothing) * weight * (lse - target)
        if self.label_smoothing:
            part = self.label_smoothing / logits.shape[-1]
            loss = loss + part * (weights * (lse - z)).sum(axis=-1, keepdims=True)
        penalty = self._of_mean(ignored, weight) * self.z_loss * lse**2
        loss = (loss + penalty) * self._scaling(target - lse)
        loss = np.where(ignored, 0, np.where(valid, loss, np.nan))
        predicted = logits.argmax(axis=-1, keepdims=True)
        predicted = np.where(ignored, -1, predicted)
        correct = (valid & (target >= z.max(axis=-1, keepdims=True))) * 1
        invalid = (~valid & ~ignored).sum().reshape(1)
        if self.reduction != "none":
            loss = loss.sum().reshape(1)
        if self.reduction == "mean":
            loss = loss / self._count(ignored, weight)
        return loss, lse, correct, invalid, predicted

    def _scaling(self, log_probability):
        return np.exp(log_probability) if self.token_scaling else 1.0

    def _of_mean(self, ignored, weight):
        """What a mean over tokens is, beside one over their weights."""
        if self.reduction != "mean":
            return 1.0
        return self._count(ignored, weight) / max((~ignored).sum(), 1)

    def _count(self, ignored, weight):
        return np.where(ignored, 0, weight).sum() or 1.0

    def backward(self, dloss, logits, targets, weights=None, dlse=None):
        """The gradient of the logits, and the size of its terms."""
        z, slope, lse, ignored, valid, is_target, weights, weight = self._prepare(
            logits, targets, weights
        )
        p = np.exp(z - lse)
        s = self.label_smoothing
        part = s / logits.shape[-1]
        ends = (1 - s) * weight * is_target + part * weights
        penalty = self._of_mean(ignored, weight) * self.z_loss
        pull = (1 - s) * weight + part * weights.sum() + 2 * penalty * lse
        scale = np.broadcast_to(np.asarray(dloss, float), lse.shape)
        if self.reduction == "mean":
            scale = scale / self._count(ignored, weight)
        target = np.where(is_target, z, 0).sum(axis=-1, keepdims=True)
        scale = np.where(valid, scale * self._scaling(target - lse), 0)
        gradient = scale * (p * pull - ends)
        size = np.abs(scale) * (p * np.abs(pull) + np.abs(ends))
        if dlse is not None:
            gradient = gradient + dlse * p
            size = size + np.abs(dlse) * p
        return gradient * slope, size / self.temperature
