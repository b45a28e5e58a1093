# Part of Bastile, under the MIT License. See LICENSE.
"""Losses of sequences that the model has sampled, by how good each was."""

from typing import NamedTuple

import torch
from bastile._losses.preferences import tokens
from torch import Tensor


class _Sample(NamedTuple):
    """What the loss of a token may be made of: tensors [B, T], or [B, 1] for what is of
    a sequence, and options."""

    log_probs: Tensor
    #: The ratio to the probability with which a token was sampled: its logarithm, and
    #: the ratio itself or that of the sequence.
    log_ratio: Tensor
    ratio: Tensor
    advantages: Tensor
    mask: Tensor
    low: float
    high: float
    delta: float | None = None
    sapo: tuple[float, float] = (1.0, 1.0)
    vespo: tuple[float, float, float, float] = (1.0, 1.0, 1.0, 1.0)
    sampler_ratio: Tensor | None = None

    @property
    def limited(self):
        return self.ratio if self.delta is None else self.ratio.clamp(max=self.delta)


def _clipped(sample):
    inside = sample.ratio.clamp(1 - sample.low, 1 + sample.high)
    advantages = sample.advantages
    return -torch.minimum(sample.limited * advantages, inside * advantages)


def _cispo(sample):
    weight = sample.ratio.clamp(max=sample.high).detach()
    return -weight * sample.advantages * sample.log_probs


def _sapo(sample):
    above, below = sample.sapo
    temperature = tokens.choose_number(
        sample.advantages > 0, above, below, sample.ratio
    )
    gate = torch.sigmoid(temperature * (sample.ratio - 1)) * 4 / temperature
    return -gate * sample.advantages


#: The bounds of logarithms of ratios in VESPO, those of its authors.
_LEAST, _MOST = -18.420680743952367, 20.0


@torch.no_grad()
def _gamma(sample):
    """VESPO's weight of each sequence: e^l w^k e^(-l w), where w is the ratio of the
    sequence's probability to that with which it was sampled."""
    log_w = tokens.sum_of(sample.log_ratio.clamp(-_MOST, _MOST), sample.mask)[:, None]
    if sample.sampler_ratio is not None:
        of_sampler = sample.sampler_ratio.log().clamp(_LEAST, _MOST)
        if of_sampler.shape == sample.mask.shape:
            of_sampler = tokens.sum_of(of_sampler, sample.mask)[:, None]
        log_w = log_w + of_sampler
    log_w = log_w.clamp(_LEAST, _MOST)
    k_above, l_above, k_below, l_below = sample.vespo
    is_good = sample.advantages >= 0
    k = tokens.choose_number(is_good, k_above, k_below, log_w)
    rate = tokens.choose_number(is_good, l_above, l_below, log_w).clamp(min=1e-4)
    weight = torch.exp(rate + k * log_w - rate * torch.exp(log_w))
    return weight.nan_to_num(0.0, 0.0, 0.0)


def _vespo(sample):
    return -_gamma(sample) * sample.advantages * sample.log_probs


def _mean_of_sequences(losses, mask, num_items, longest):
    return tokens.mean_of(losses, mask).mean()


def _mean_of_tokens(losses, mask, num_items, longest):
    return tokens.mean_of_all(losses, mask)


def _per_place(losses, mask, num_items, longest):
    return tokens.sum_of(losses, mask).sum() / (len(losses) * longest)


def _per_item(losses, mask, num_items, longest):
    if num_items is None:
        return tokens.mean_of_all(losses, mask)
    return tokens.sum_of(losses, mask).sum() / num_items


def _sum_of_sequences(losses, mask, num_items, longest):
    return tokens.sum_of(losses, mask).mean()


#: By TRL's name of a loss, what it is of a token, and how those of all are combined.
_GRPO = {
    "grpo": (_clipped, _mean_of_sequences),
    "bnpo": (_clipped, _mean_of_tokens),
    "dr_grpo": (_clipped, _per_place),
    "dapo": (_clipped, _per_item),
    "luspo": (_clipped, _sum_of_sequences),
    "cispo": (_cispo, _per_item),
    "sapo": (_sapo, _mean_of_sequences),
    "vespo": (_vespo, _per_item),
}


def grpo_loss(
    log_probs: Tensor,
    advantages: Tensor,
    mask: Tensor,
    *,
    old_log_probs: Tensor | None = None,
    ref_log_probs: Tensor | None = None,
    loss_type: str = "dapo",
    importance_sampling_level: str = "token",
    epsilon_low: float = 0.2,
    epsilon_high: float | None = None,
    delta: float | None = None,
    beta: float = 0.0,
    use_bias_correction_kl: bool = False,
    sampler_ratio: Tensor | None = None,
    token_weights: Tensor | None = None,
    num_items: Tensor | float | None = None,
    max_completion_length: int | None = None,
    entropy: Tensor | None = None,
    entropy_coef: float = 0.0,
    sapo_temperatures: tuple[float, float] = (1.0, 1.05),
    vespo_parameters: tuple[float, float, float, float] = (2.0, 3.0, 3.0, 2.0),
) -> tuple[Tensor, dict[str, Tensor]]:
    """The loss of Group Relative Policy Optimization and of what followed it.

    Args:
        log_probs: [B, T], of each token that was sampled, in the model.
        advantages: [B] or [B, T], how much better than expected it was.
        mask: [B, T], which tokens count.
        old_log_probs: those of the model that sampled; by default ``log_probs``, whose
            ratio is 1 and has a gradient all the same.
        ref_log_probs: those of a reference, for ``beta``.
        loss_type: grpo, bnpo, dr_grpo, dapo, luspo (clipped ratios, which differ in what
            the sum over tokens is divided by), cispo, sapo or vespo.
        importance_sampling_level: "token", or "sequence" for the mean of a sequence's
            ratios in logarithms.
        epsilon_low, epsilon_high: how far below and above 1 a ratio counts; the latter
            is by default the former. Of cispo, ``epsilon_high`` is the largest ratio.
        delta: the largest ratio at all, which matters where the advantage is negative
            (two-sided clipping).
        beta: the weight of the divergence from the reference.
        use_bias_correction_kl: whether that divergence is multiplied by the ratio.
        sampler_ratio: [B, T] or [B, 1], what a token's loss is multiplied by where
            another program sampled with other roundings.
        token_weights: [B, T] or [B, 1], what it is multiplied by for another reason, as
            0 for tokens of little entropy.
        num_items: what dapo, cispo and vespo divide the sum by: the number of tokens of
            all batches of a step; by default of this one.
        max_completion_length: what dr_grpo divides by, beside B.
        entropy: [B, T], of each token, with ``entropy_coef``: its mean over the tokens,
            times this, is subtracted.
        sapo_temperatures: for advantages above 0, and others.
        vespo_parameters: k and lambda for advantages of 0 and above, and for others.

    Returns:
        The loss, and what trainers log, without gradients: kl (with a reference), and
        of clipped ratios clip_ratio/low_mean, clip_ratio/high_mean and
        clip_ratio/region_mean, of cispo cispo_clip_ratio.

    Raises:
        ValueError: for shapes that do not fit together, options that do not exist or
            lack what they need.
    """
    name = "grpo_loss"
    tokens.check_shapes(
        name,
        log_probs,
        mask=mask,
        old_log_probs=old_log_probs,
        ref_log_probs=ref_log_probs,
        entropy=entropy,
    )
    of_token, combine = tokens.choose(_GRPO, name, loss_type)
    for wanted, needed, value in (
        (beta, "ref_log_probs", ref_log_probs),
        (entropy_coef, "entropy", entropy),
        (loss_type == "dr_grpo", "max_completion_length", max_completion_length),
        (loss_type == "cispo", "epsilon_high", epsilon_high),
    ):
        if wanted and value is None:
            raise ValueError(f"{name}: '{needed}' is missing")
    if isinstance(num_items, Tensor):
        if num_items.numel() != 1:
            raise ValueError(
                f"{name}: 'num_items' has shape {list(num_items.shape)}, but must be "
                "one number"
            )
        num_items = num_items.reshape(())
    if old_log_probs is None:
        old_log_probs = log_probs.detach()
    # What does not count may be anything, and would make NaN of what does.
    counts = mask != 0
    advantages = _of_tokens(name, "advantages", advantages, counts, by_sequence=True)
    if sampler_ratio is not None:
        sampler_ratio = _of_tokens(name, "sampler_ratio", sampler_ratio, counts)
    if token_weights is not None:
        token_weights = _of_tokens(name, "token_weights", token_weights, counts)
    log_ratio = torch.where(counts, log_probs - old_log_probs, 0)
    weighed = log_ratio
    if importance_sampling_level == "sequence":
        weighed = tokens.mean_of(log_ratio, mask)[:, None]
    elif importance_sampling_level != "token":
        raise ValueError(
            f"{name}: 'importance_sampling_level' must be token or sequence, but is "
            f"{importance_sampling_level!r}"
        )
    sample = _Sample(
        log_probs,
        log_ratio,
        torch.exp(weighed),
        advantages,
        mask,
        epsilon_low,
        epsilon_low if epsilon_high is None else epsilon_high,
        delta,
        sapo_temperatures,
        vespo_parameters,
        sampler_ratio,
    )
    losses = of_token(sample)
    if token_weights is not None:
        losses = losses * token_weights
    # VESPO's weights have the sampler's ratio in them.
    if sampler_ratio is not None and loss_type != "vespo":
        losses = losses * sampler_ratio
    metrics = {}
    if ref_log_probs is not None:
        excess = torch.where(mask != 0, ref_log_probs - log_probs, 0)
        divergence = torch.exp(excess) - excess - 1
        if use_bias_correction_kl:
            divergence = divergence * sample.ratio
        losses = losses + beta * divergence
        metrics["kl"] = tokens.mean_of_all(divergence.detach(), mask)
    losses = losses.expand_as(log_probs)
    loss = combine(losses, mask, num_items, max_completion_length)
    if entropy_coef:
        counted = counts.to(torch.promote_types(entropy.dtype, torch.float32))
        if token_weights is not None:
            counted = counted * token_weights
        bonus = tokens.sum_of(entropy * counted, mask).sum()
        loss = loss - entropy_coef * bonus / counted.sum().clamp(min=1.0)
    return loss, metrics | _clips(sample, of_token)


def _of_tokens(name, operand, x, counts, by_sequence=False):
    """A tensor of sequences, [B] where ``by_sequence`` says so and [B, 1] elsewhere, or
    of tokens, as one that tokens [B, T] can be multiplied by. What does not count is 0,
    as it may be anything."""
    of_sequences = counts.shape[:1] if by_sequence else (len(counts), 1)
    if x.shape == counts.shape:
        return torch.where(counts, x, 0)
    if x.shape == of_sequences:
        return torch.where(counts.any(-1, keepdim=True), x.reshape(-1, 1), 0)
    raise ValueError(
        f"{name}: '{operand}' has shape {list(x.shape)}, but for 'log_probs' of "
        f"shape {list(counts.shape)} it must be {list(of_sequences)} or that shape"
    )


def _clips(sample, of_token):
    """The shares of tokens, or of sequences, whose ratios were clipped."""
    advantages = sample.advantages
    if of_token is _cispo:
        is_high = (sample.ratio.detach() > sample.high) & (advantages > 0)
        return {"cispo_clip_ratio": _share(is_high, sample.mask)}
    if of_token is not _clipped:
        return {}
    ratio = sample.limited.detach()
    is_low = (ratio < 1 - sample.low) & (advantages < 0)
    is_high = (ratio > 1 + sample.high) & (advantages > 0)
    return {
        "clip_ratio/low_mean": _share(is_low, sample.mask),
        "clip_ratio/high_mean": _share(is_high, sample.mask),
        "clip_ratio/region_mean": _share(is_low | is_high, sample.mask),
    }


def _share(condition, mask):
    if condition.shape[-1] == 1:
        return condition.float().mean()
    return tokens.mean_of_all(condition.float(), mask)


def rloo_loss(
    log_probs: Tensor,
    advantages: Tensor,
    mask: Tensor,
    *,
    old_log_probs: Tensor | None = None,
    epsilon_low: float = 0.2,
    epsilon_high: float | None = None,
) -> tuple[Tensor, dict[str, Tensor]]:
    """The loss of REINFORCE Leave-One-Out, with clipped ratios of whole sequences.

    Args:
        log_probs, mask, old_log_probs, epsilon_low, epsilon_high: as in `grpo_loss`; a
            sequence's ratio is that of the products of its tokens' probabilities.
        advantages: [B], what a reward exceeds the mean of the others' by.

    Returns:
        The mean over the sequences, and what trainers log: clip_ratio/low_mean,
        clip_ratio/high_mean and clip_ratio/region_mean.
    """
    name = "rloo_loss"
    tokens.check_shapes(name, log_probs, mask=mask, old_log_probs=old_log_probs)
    if advantages.shape != log_probs.shape[:1]:
        raise ValueError(
            f"{name}: 'advantages' has shape {list(advantages.shape)}, but for "
            f"{len(log_probs)} sequences it must be {[len(log_probs)]}"
        )
    if old_log_probs is None:
        old_log_probs = log_probs.detach()
    log_ratio = log_probs - old_log_probs
    ratio = torch.exp(tokens.sum_of(log_ratio, mask))
    sample = _Sample(
        log_probs,
        log_ratio,
        ratio[:, None],
        advantages[:, None],
        mask,
        epsilon_low,
        epsilon_low if epsilon_high is None else epsilon_high,
    )
    return _clipped(sample).mean(), _clips(sample, _clipped)
