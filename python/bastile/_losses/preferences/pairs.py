# Part of Bastile, under the MIT License. See LICENSE.
"""Losses of pairs of sequences, of which one was chosen and the other rejected."""

import math
from typing import NamedTuple

import torch
from bastile._losses.preferences import tokens
from torch import Tensor
from torch.nn.functional import logsigmoid, relu


class _Pairs(NamedTuple):
    """What a loss of pairs may be made of, by pair [pairs]."""

    #: Logarithms of the ratios of the model's probabilities to the reference's.
    chosen: Tensor
    rejected: Tensor
    #: What the chosen one's log-probability exceeds the rejected one's by.
    margin_of_model: Tensor
    margin_of_reference: Tensor
    #: The scores that follow from the ratios by an f-divergence.
    chosen_score: Tensor
    rejected_score: Tensor
    #: Numbers of tokens that count.
    chosen_count: Tensor
    rejected_count: Tensor
    #: The mean log-probability of the tokens of all chosen sequences.
    chosen_mean: Tensor
    beta: float
    smoothing: float
    tau: float

    @property
    def margin(self):
        return self.beta * (self.chosen_score - self.rejected_score)

    @property
    def mean_margin(self):
        return (
            self.chosen_score / self.chosen_count
            - self.rejected_score / self.rejected_count
        )


def _smoothed(margin, smoothing):
    """The loss of a margin whose sign is wrong with the probability ``smoothing``."""
    loss = -logsigmoid(margin)
    if not smoothing:
        return loss
    return loss * (1 - smoothing) - logsigmoid(-margin) * smoothing


def _exo(pairs):
    margin, wrong = pairs.margin, pairs.smoothing
    if not wrong:
        raise ValueError("dpo_loss: 'exo_pair' needs a 'label_smoothing' above 0")
    right = torch.sigmoid(margin) * (logsigmoid(margin) - math.log1p(-wrong))
    return right + torch.sigmoid(-margin) * (logsigmoid(-margin) - math.log(wrong))


def _nca(pairs):
    chosen, rejected = pairs.beta * pairs.chosen, pairs.beta * pairs.rejected
    both = logsigmoid(-chosen) + logsigmoid(-rejected)
    return -logsigmoid(chosen) - 0.5 * both


def _robust(pairs):
    margin, wrong = pairs.margin, pairs.smoothing
    loss = (1 - wrong) * -logsigmoid(margin) + wrong * logsigmoid(-margin)
    return loss / (1 - 2 * wrong)


def _sppo(pairs):
    half = 0.5 / pairs.beta
    return (pairs.chosen - half) ** 2 + (pairs.rejected + half) ** 2


def _sorted(upper, lower, pairs):
    margin = upper.sort().values - lower.sort().values
    return _smoothed(pairs.beta * margin, pairs.smoothing)


def _discopop(pairs):
    margin = pairs.margin
    share = torch.sigmoid(margin / pairs.tau)
    return -logsigmoid(margin) * (1 - share) + torch.exp(-margin) * share


#: The losses of pairs by the names that TRL has for them.
_DPO = {
    "sigmoid": lambda x: _smoothed(x.margin, x.smoothing),
    "hinge": lambda x: relu(1 - x.margin),
    "ipo": lambda x: (x.mean_margin - 1 / (2 * x.beta)) ** 2,
    "exo_pair": _exo,
    "nca_pair": _nca,
    "robust": _robust,
    "bco_pair": lambda x: (
        -logsigmoid(x.beta * x.chosen) - logsigmoid(-x.beta * x.rejected)
    ),
    "sppo_hard": _sppo,
    "aot": lambda x: _sorted(x.margin_of_model, x.margin_of_reference, x),
    "aot_unpaired": lambda x: _sorted(x.chosen, x.rejected, x),
    "apo_zero": lambda x: (
        1 - torch.sigmoid(x.beta * x.chosen) + torch.sigmoid(x.beta * x.rejected)
    ),
    "apo_down": lambda x: (
        1
        + torch.sigmoid(x.beta * x.chosen)
        - torch.sigmoid(x.beta * (x.chosen - x.rejected))
    ),
    "discopop": _discopop,
    "sft": lambda x: -x.chosen_mean.expand_as(x.chosen),
    "sigmoid_norm": lambda x: -logsigmoid(x.beta * x.mean_margin),
}
_WITH_SMOOTHING = "sigmoid", "exo_pair", "robust", "aot", "aot_unpaired"
_WITH_DIVERGENCE = (
    "sigmoid",
    "sigmoid_norm",
    "hinge",
    "ipo",
    "exo_pair",
    "robust",
    "discopop",
)


def _alpha_score(ratio, alpha):
    if abs(alpha - 1) < 1e-6:
        return ratio
    # More would be infinite in float32.
    return (torch.exp(((alpha - 1) * ratio).clamp(max=80.0)) - 1) / (alpha - 1)


#: By f-divergence, f'(exp(ratio)), up to a constant that a margin loses.
_DIVERGENCES = {
    "reverse_kl": lambda ratio, alpha: ratio,
    "forward_kl": lambda ratio, alpha: 1 - torch.exp(-ratio),
    "js_divergence": lambda ratio, alpha: math.log(2) + logsigmoid(ratio),
    "alpha_divergence": _alpha_score,
}


def dpo_loss(
    log_probs: Tensor,
    ref_log_probs: Tensor,
    mask: Tensor,
    *,
    beta: float = 0.1,
    loss_type: str = "sigmoid",
    label_smoothing: float = 0.0,
    f_divergence: str = "reverse_kl",
    alpha: float = 0.5,
    tau: float = 0.05,
) -> tuple[Tensor, dict[str, Tensor]]:
    """The loss of Direct Preference Optimization and of what followed it.

    Args:
        log_probs: [2 P, T], of each token in the model: of P chosen sequences, and
            then of the P rejected ones.
        ref_log_probs: the same of the reference.
        mask: [2 P, T], which tokens count.
        beta: how much a difference to the reference weighs.
        loss_type: sigmoid, hinge, ipo, exo_pair, nca_pair, robust, bco_pair,
            sppo_hard, aot, aot_unpaired, apo_zero, apo_down, discopop, sft or
            sigmoid_norm, which are TRL's.
        label_smoothing: the probability that a pair is the wrong way round, for
            sigmoid (conservative DPO), exo_pair, robust, aot and aot_unpaired.
        f_divergence: reverse_kl, forward_kl, js_divergence or alpha_divergence, the
            last with ``alpha``: what a margin is made of, for sigmoid, sigmoid_norm,
            hinge, ipo, exo_pair, robust and discopop.
        tau: of discopop.

    Returns:
        The mean over the pairs, and what trainers log, without gradients:
        rewards/chosen, rewards/rejected, rewards/accuracies, rewards/margins,
        logps/chosen and logps/rejected.

    Raises:
        ValueError: for shapes that do not fit together and options that do not exist.
    """
    _check("dpo_loss", log_probs, mask, ref_log_probs=ref_log_probs)
    formula = tokens.choose(_DPO, "dpo_loss", loss_type)
    if label_smoothing and loss_type not in _WITH_SMOOTHING:
        raise ValueError(
            f"dpo_loss: 'label_smoothing' is {label_smoothing}, but {loss_type!r} has "
            f"none; {', '.join(_WITH_SMOOTHING)} have"
        )
    if not 0 <= label_smoothing < 0.5:
        raise ValueError(
            "dpo_loss: 'label_smoothing' must be at least 0 and less than 0.5, but is "
            f"{label_smoothing}"
        )
    if f_divergence not in _DIVERGENCES:
        raise ValueError(
            f"dpo_loss: 'f_divergence' must be one of {', '.join(_DIVERGENCES)}, but "
            f"is {f_divergence!r}"
        )
    if f_divergence != "reverse_kl" and loss_type not in _WITH_DIVERGENCE:
        raise ValueError(
            f"dpo_loss: 'f_divergence' is {f_divergence!r}, but {loss_type!r} has no "
            f"margin; {', '.join(_WITH_DIVERGENCE)} have"
        )
    sums, references = (tokens.sum_of(x, mask) for x in (log_probs, ref_log_probs))
    chosen, rejected = (sums - references).chunk(2)
    score = _DIVERGENCES[f_divergence]
    half = len(chosen)
    pairs = _Pairs(
        chosen,
        rejected,
        *(x[:half] - x[half:] for x in (sums, references)),
        score(chosen, alpha),
        score(rejected, alpha),
        *tokens.count_of(mask).chunk(2),
        tokens.mean_of_all(log_probs[:half], mask[:half]),
        beta,
        label_smoothing,
        tau,
    )
    losses = formula(pairs)
    return losses.mean(), _metrics(beta * chosen, beta * rejected, sums)


def _reward(log_probs, alpha):
    """The log-probability or, in AlphaPO, (1 - p^-alpha) / alpha, which it is the limit
    of."""
    if not alpha:
        return log_probs
    return -torch.expm1(-alpha * log_probs) / alpha


#: By type, the loss of a margin of rewards that beta does not multiply yet, for beta,
#: gamma and the smoothing of labels.
_CPO = {
    "sigmoid": lambda x, beta, gamma, wrong: _smoothed(beta * x, wrong),
    "simpo": lambda x, beta, gamma, wrong: _smoothed(beta * x - gamma, wrong),
    "hinge": lambda x, beta, gamma, wrong: relu(1 - beta * x),
    "ipo": lambda x, beta, gamma, wrong: (x - 1 / (2 * beta)) ** 2,
}
#: Those that take the mean of a sequence's log-probabilities instead of the sum.
_OF_MEANS = "simpo", "ipo"


def cpo_loss(
    log_probs: Tensor,
    mask: Tensor,
    *,
    beta: float = 0.1,
    loss_type: str = "sigmoid",
    label_smoothing: float = 0.0,
    gamma: float = 0.5,
    alpha: float = 0.0,
    nll_weight: float = 1.0,
) -> tuple[Tensor, dict[str, Tensor]]:
    """The loss of Contrastive Preference Optimization, which has no reference.

    Args:
        log_probs, mask, beta: as in `dpo_loss`.
        loss_type: sigmoid, hinge, ipo or simpo; the last two are of mean
            log-probabilities.
        label_smoothing: the probability that a pair is the wrong way round, for
            sigmoid and simpo.
        gamma: the margin of rewards that simpo aims at.
        alpha: that of AlphaPO, whose rewards are (1 - p^-alpha) / alpha.
        nll_weight: what the chosen sequences' mean negative log-probability of a
            token, which is added, is multiplied by.

    Returns:
        The loss, and what trainers log: that of `dpo_loss`, and nll_loss.
    """
    _check("cpo_loss", log_probs, mask)
    if label_smoothing and loss_type in ("hinge", "ipo"):
        raise ValueError(
            f"cpo_loss: 'label_smoothing' is {label_smoothing}, but {loss_type!r} has "
            "none; sigmoid and simpo have"
        )
    formula = tokens.choose(_CPO, "cpo_loss", loss_type)
    reduce = tokens.mean_of if loss_type in _OF_MEANS else tokens.sum_of
    sums = reduce(log_probs, mask)
    chosen, rejected = _reward(sums, alpha).chunk(2)
    losses = formula(chosen - rejected, beta, gamma, label_smoothing)
    half = len(chosen)
    nll = -tokens.mean_of_all(log_probs[:half], mask[:half])
    metrics = _metrics(beta * chosen, beta * rejected, sums)
    metrics["nll_loss"] = nll.detach()
    return losses.mean() + nll_weight * nll, metrics


def simpo_loss(
    log_probs: Tensor,
    mask: Tensor,
    *,
    beta: float = 0.1,
    gamma: float = 0.5,
    label_smoothing: float = 0.0,
    alpha: float = 0.0,
) -> tuple[Tensor, dict[str, Tensor]]:
    """The loss of Simple Preference Optimization: `cpo_loss` of the type simpo, without
    the negative log-probability."""
    return cpo_loss(
        log_probs,
        mask,
        beta=beta,
        loss_type="simpo",
        label_smoothing=label_smoothing,
        gamma=gamma,
        alpha=alpha,
        nll_weight=0.0,
    )


def orpo_loss(
    log_probs: Tensor,
    mask: Tensor,
    *,
    beta: float = 0.1,
    nll_mask: Tensor | None = None,
) -> tuple[Tensor, dict[str, Tensor]]:
    """The loss of Odds Ratio Preference Optimization, which has no reference.

    Args:
        log_probs, mask: as in `dpo_loss`.
        beta: how much the ratio of odds weighs, beside the chosen sequences' mean
            negative log-probability of a token.
        nll_mask: [2 P, T], which tokens that mean is of; by default those of ``mask``.
            TRL takes prompts as well.

    Returns:
        The loss, and what trainers log: that of `dpo_loss`, nll_loss, log_odds_ratio
        and log_odds_chosen.
    """
    _check("orpo_loss", log_probs, mask, nll_mask=nll_mask)
    means = tokens.mean_of(log_probs, mask)
    odds = means - _log_of_rest(means)
    chosen, rejected = odds.chunk(2)
    log_odds = chosen - rejected
    ratio = logsigmoid(log_odds)
    half = len(chosen)
    of = (mask if nll_mask is None else nll_mask)[:half]
    nll = -tokens.mean_of_all(log_probs[:half], of)
    metrics = _metrics(*(beta * means).chunk(2), means)
    metrics |= {
        "nll_loss": nll.detach(),
        "log_odds_ratio": ratio.detach().mean(),
        "log_odds_chosen": log_odds.detach().mean(),
    }
    return nll - beta * ratio.mean(), metrics


def _log_of_rest(log_p):
    """log(1 - p), by the form that loses no digits."""
    is_small = log_p < -math.log(2)
    # Each form is given what the other would make NaN of, in its gradient too.
    small = torch.where(is_small, log_p, -1.0)
    large = torch.where(is_small, -0.1, log_p)
    return torch.where(
        is_small, torch.log1p(-torch.exp(small)), torch.log(-torch.expm1(large))
    )


def _metrics(chosen, rejected, log_probs):
    chosen, rejected = chosen.detach(), rejected.detach()
    log_probs = log_probs.detach().chunk(2)
    return {
        "rewards/chosen": chosen.mean(),
        "rewards/rejected": rejected.mean(),
        "rewards/accuracies": (chosen > rejected).to(chosen.dtype).mean(),
        "rewards/margins": (chosen - rejected).mean(),
        "logps/chosen": log_probs[0].mean(),
        "logps/rejected": log_probs[1].mean(),
    }


def _check(kind, log_probs, mask, **others):
    tokens.check_shapes(kind, log_probs, mask=mask, **others)
    if len(log_probs) % 2:
        raise ValueError(
            f"{kind}: 'log_probs' has {len(log_probs)} sequences, but there must be as "
            "many rejected ones as chosen ones"
        )
