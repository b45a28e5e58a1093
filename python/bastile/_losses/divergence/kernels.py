# Part of Bastile, under the MIT License. See LICENSE.
"""Kernels of a student's and a teacher's logits of some tokens."""

import functools

from bastile._losses import compiled
from bastile._losses.divergence.options import Options
from bastile._losses.kernels import shift, z_of
from bastile.functions import clamp, exp, log, row_sum, sum_of_rows, where

#: Beyond this, one of two probabilities is nothing beside the other.
_FAR = 80.0


def losses(logits, teacher, targets, options):
    """The results for each token [rows, 1], the loss first. ``targets`` [rows, 1] may be
    None."""
    return _run(
        _losses, {"logits": logits, "teacher": teacher, "targets": targets}, options
    )


def total(logits, teacher, targets, scale, options, is_differentiated):
    """The sum of the losses times ``scale`` [rows, 1], and the other results; behind
    them, where it is asked for, the gradient of that sum with respect to the student's
    logits, in their memory."""
    operands = {
        "logits": logits,
        "teacher": teacher,
        "targets": targets,
        "scale": scale,
    }
    return _run(_total, operands, options, is_differentiated)


def _run(formula, operands, options, in_place=False):
    return compiled.run(formula, operands, _kind_of(options), in_place)


@functools.lru_cache(maxsize=256)
def _kind_of(options):
    """The options without those that no kernel depends on."""
    settings = options.settings._replace(reduction="none", budget=None)
    return Options("linear_jsd", settings, options.returns)


_formula = functools.partial(compiled.Formula, "linear_divergence")

# The formulas that are traced. Each takes symbolic tensors by name.


@_formula
def _losses(operands, options, wide):
    settings = options.settings
    log_p, log_q = (
        _log_softmax(operands[name], *numbers, settings.temperature)
        for name, *numbers in (
            ("logits", settings.scale, settings.soft_cap),
            ("teacher", settings.teacher_scale, settings.teacher_soft_cap),
        )
    )
    made = [row_sum(_divergence(log_p, log_q, settings.beta))]
    if "entropy" in options.others:
        made.append(-row_sum(_times(exp(log_p), log_p)))
    if "targets" in operands:
        is_wanted = operands["targets"].to(wide) != float(settings.ignore_index)
        made = [where(is_wanted, x, 0.0) for x in made]
    return tuple(x.to(wide) for x in made)


@_formula
def _total(operands, options, wide):
    scale = operands.pop("scale")
    loss, *others = _losses(operands, options, wide)
    return (sum_of_rows(loss * scale).to(wide), *others)


def _log_softmax(logits, scale, soft_cap, temperature):
    z = z_of(logits if scale == 1 else logits * scale, soft_cap, temperature)
    _, shifted = shift(z)
    return shifted - log(row_sum(exp(shifted)))


def _divergence(log_p, log_q, beta):
    """The divergence's term of each class, for the student's p and the teacher's q, with
    the mixture m = (1 - beta) p + beta q:

        beta q log(q / m) + (1 - beta) p log(p / m)

    or q log(q / p) for a beta of 0, and p log(p / q) for 1.
    """
    p, q = exp(log_p), exp(log_q)
    if beta == 0:
        return _times(q, log_q - log_p)
    if beta == 1:
        return _times(p, log_p - log_q)
    # Of ratios, so that softmaxes that are close to each other have a small divergence
    # and not the difference of two logarithms. What has no share in either has none.
    ratio = where(p + q > 0, log_q - log_p, 0.0)
    ratio = clamp(ratio, -_FAR, _FAR)
    return -(
        beta * q * log(beta + (1 - beta) * exp(-ratio))
        + (1 - beta) * p * log((1 - beta) + beta * exp(ratio))
    )


def _times(share, logarithm):
    """The product, which is 0 for a class without a share."""
    return share * where(share > 0, logarithm, 0.0)
