# Part of Bastile, under the MIT License. See LICENSE.
"""Kernels of the loss, for logits of some tokens and of all or some of the classes."""

import functools
import math

from bastile import _bastile
from bastile._losses import compiled
from bastile._losses.options import RESULTS, Options, Settings
from bastile.functions import (
    column_numbers,
    exp,
    log,
    op,
    row_max,
    row_min,
    row_sum,
    square,
    stop_gradient,
    sum_of_rows,
    tanh,
    where,
)


def losses(logits, targets, class_weights, options):
    """The results of `tile.cross_entropy` for each token, the loss first."""
    operands = {"logits": logits, "targets": targets, "weights": class_weights}
    return _run(_losses, operands, options)


def total(logits, targets, class_weights, scale, penalties, options):
    """The sum of the losses times ``scale`` [rows, 1], and the other results. Where
    there are ``penalties`` [rows, 1], they multiply the z-loss of each token, and are 0
    for tokens that do not count."""
    operands = {"logits": logits, "targets": targets, "weights": class_weights}
    operands |= {"scale": scale, "penalties": penalties}
    return _run(_total, operands, options)


def total_and_gradient(logits, targets, class_weights, scale, penalties, options):
    """As `total`, and behind the other results the gradient of that sum with respect to
    the logits, in their memory."""
    operands = {"logits": logits, "targets": targets, "weights": class_weights}
    operands |= {"scale": scale, "penalties": penalties}
    return _run(_total, operands, options, in_place=True)


def statistics(logits, class_weights, options):
    """By name, numbers [rows, 1] of logits of some classes: ``lse``; ``largest``,
    where ``correct`` or ``predicted`` is wanted; ``best``, the first column that has
    the largest logit, or as many as there are columns where a NaN is, for
    ``predicted``; and ``weighted``, the sum of w z, where labels are smoothed."""
    operands = {"logits": logits}
    names = ["lse"]
    if options.compares_logits:
        names.append("largest")
    if "predicted" in options.returns:
        names.append("best")
    if options.settings.label_smoothing:
        operands["weights"] = class_weights
        names.append("weighted")
    return dict(zip(names, _run(_statistics, operands, options)))


def gradient(logits, lse, a, d, class_weights, options):
    """(a exp(z - lse) + d w) dz / dlogits, in the logits' memory; ``lse``, ``a``
    and ``d`` are [rows]."""
    operands = {"logits": logits, "lse": lse[:, None], "a": a[:, None]}
    if options.settings.label_smoothing:
        operands |= {"d": d[:, None], "weights": class_weights}
    return _run(_weighted, operands, options, in_place=True, drop_value=True)[0]


def scale_in_place(gradient, factor):
    """``gradient`` [rows, length] times ``factor``, one number on its device, in its
    memory. Where the number is 1, the kernel neither reads nor writes the gradient."""
    types = compiled.types_of({"x": gradient})
    device = _bastile.locate(gradient)
    native = compiled.find(_sum, types, None, device, True, False)
    return native.backward([gradient], [factor], in_place=True)[0]


def _run(formula, operands, options, in_place=False, drop_value=False):
    kind = formula_options(options)
    return compiled.run(formula, operands, kind, in_place, drop_value)


@functools.lru_cache(maxsize=256)
def formula_options(options):
    """The options without those that no kernel depends on."""
    return Options(Settings(**options.settings.attributes), options.returns)


_formula = functools.partial(compiled.Formula, "linear_cross_entropy")

# The formulas that are traced. Each takes symbolic tensors by name.


@_formula
def _losses(operands, options, wide):
    attributes = options.settings.attributes
    results = op.cross_entropy(**operands, reduction="none", **attributes)
    made = dict(zip(RESULTS, results))
    return tuple(made[name] for name in ("loss", *options.others))


@_formula
def each(operands, options, wide):
    """The sum of the losses, which is there to be differentiated, and the results of
    each token."""
    results = _losses(operands, options, wide)
    return (sum_of_rows(results[0]).to(wide), *results)


@_formula
def _total(operands, options, wide):
    scale = operands.pop("scale")
    penalties = operands.pop("penalties", None)
    if penalties is None:
        loss, *others = _losses(operands, options, wide)
        return (sum_of_rows(loss * scale).to(wide), *others)
    attributes = {**options.settings.attributes, "z_loss": 0.0}
    results = op.cross_entropy(**operands, reduction="none", **attributes)
    made = dict(zip(RESULTS, results))
    loss = made["loss"]
    penalty = options.settings.z_loss * penalties * square(made["lse"])
    if options.settings.token_scaling:
        plain = op.cross_entropy(
            **{x: operands[x] for x in ("logits", "targets")},
            reduction="none",
            **{**attributes, "token_scaling": False, "label_smoothing": 0.0},
        )[0]
        penalty = penalty * stop_gradient(exp(-plain))
    # The lse of a token that does not count may be infinite.
    loss = loss + where(penalties == 0, 0.0, penalty)
    others = (made[name] for name in options.others)
    return (sum_of_rows(loss * scale).to(wide), *others)


@_formula
def _statistics(operands, options, wide):
    logits, weights = operands["logits"], operands.get("weights")
    settings = options.settings
    z = z_of(logits, settings.soft_cap, settings.temperature)
    top, shifted = shift(z)
    made = [(log(row_sum(exp(shifted))) + top).to(wide)]
    if options.compares_logits:
        largest = row_max(logits)
        made.append(largest.to(wide))
    if "predicted" in options.returns:
        columns = where(logits == largest, column_numbers(logits), logits.shape[-1])
        made.append(row_min(columns).to(wide))
    if settings.label_smoothing:
        made.append(row_sum(z if weights is None else z * weights).to(wide))
    return tuple(made)


@_formula
def _weighted(operands, options, wide):
    """The derivative of its sum is the gradient of a slab's logits."""
    settings = options.settings
    z = z_of(operands["logits"], settings.soft_cap, settings.temperature)
    terms = operands["a"] * exp(z - operands["lse"])
    if settings.label_smoothing:
        weights = operands.get("weights")
        terms = terms + operands["d"] * (z if weights is None else z * weights)
    return terms.to(wide)


def z_of(logits, soft_cap, temperature):
    """What the softmax is of."""
    z = soft_cap * tanh(logits / soft_cap) if soft_cap else logits
    return z if temperature == 1 else z / temperature


def shift(z):
    """The largest z of each row, and what z is beside it."""
    top = row_max(z)
    # Where no class can occur, as in a slab of padding, all are -inf.
    return top, z - stop_gradient(where(top > -math.inf, top, 0.0))


@_formula
def _sum(operands, options, wide):
    """The sum of all elements. Computed together with its gradient of ones, it has a
    backward that multiplies whatever is passed for these ones."""
    return sum_of_rows(row_sum(operands["x"])).to(wide)
