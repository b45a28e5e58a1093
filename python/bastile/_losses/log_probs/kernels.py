# Part of Bastile, under the MIT License. See LICENSE.
"""Kernels of logits of some tokens, and of all or some of the classes."""

import functools
import math

from bastile._losses import compiled
from bastile._losses.kernels import shift, z_of
from bastile.functions import (
    column_numbers,
    exp,
    log,
    row_max,
    row_mean,
    row_min,
    row_sum,
    stop_gradient,
    where,
)

#: What is always computed of a token's logits, and by which result it is asked for.
_ALWAYS = ("top", "log_sum")
_ASKED = {
    "of_target": ("log_prob",),
    "entropy": ("entropy",),
    "mean": ("mean",),
    "mean_square": ("mean_square",),
    "log_sum_square_probs": ("log_sum_square_probs",),
    "argmax": ("argmax", "correct"),
}


def statistics(logits, columns, options):
    """By name, numbers [rows] of the softmax over these logits alone. ``columns``
    [rows, 1] are those of the targets, and outside of the row where it lacks them.

    ``top`` is the largest z, and what follows is of z - top, so that large logits cost
    no precision: ``log_sum`` the logarithm of the sum of its exponentials, ``of_target``
    the target's, or -inf in rows that lack it.
    """
    names = names_of(options)
    operands = {"logits": logits}
    if "of_target" in names:
        operands["targets"] = columns
    made = compiled.run(_statistics, operands, (_z_of(options), names))
    return {name: x.squeeze(1) for name, x in zip(names, made)}


def gradient(logits, columns, options, top, log_sum, a, d=None, own=None):
    """The gradient of the logits, in their memory: p (a + d log p) dz / dlogits, to which
    the target's logit adds ``own`` dz / dlogit. All of these are [rows], and those that
    are None are 0. p is the softmax over all classes."""
    operands = {
        "logits": logits,
        "top": top[:, None],
        "log_sum": log_sum[:, None],
        "a": a[:, None],
        "d": None if d is None else d[:, None],
    }
    if own is not None:
        operands |= {"targets": columns, "own": own[:, None]}
    return compiled.run(
        _weighted, operands, (_z_of(options),), in_place=True, drop_value=True
    )[0]


def names_of(options):
    """The names of the statistics that the results follow from."""
    return _names_of(options.wanted)


@functools.cache
def _names_of(wanted):
    asked = (x for x, by in _ASKED.items() if any(name in wanted for name in by))
    return (*_ALWAYS, *asked)


def _z_of(options):
    """What z is made with."""
    return options.scale, options.soft_cap, options.temperature


_formula = functools.partial(compiled.Formula, "linear_log_probs")

# The formulas that are traced. Each takes symbolic tensors by name.


@_formula
def _statistics(operands, options, wide):
    numbers, names = options
    z = _z(operands["logits"], numbers)
    top, shifted = shift(z)
    e = exp(shifted)
    total = row_sum(e)
    made = {"top": top, "log_sum": log(total)}
    if "of_target" in names:
        is_target = _is_target(operands, z, wide)
        made["of_target"] = row_max(where(is_target, shifted, -math.inf))
    if "entropy" in names:
        # What cannot occur, as its logit is -inf, adds nothing.
        terms = e * where(e > 0, shifted, 0.0)
        made["entropy"] = log(total) - row_sum(terms) / total
    if "mean" in names:
        made["mean"] = row_mean(z)
    if "mean_square" in names:
        made["mean_square"] = row_mean(z * z)
    if "log_sum_square_probs" in names:
        made["log_sum_square_probs"] = log(row_sum(e * e)) - 2 * log(total)
    if "argmax" in names:
        # The first of equal ones; the last column where all are NaN.
        last = float(z.shape[-1] - 1)
        made["argmax"] = row_min(where(z == top, column_numbers(z), last))
    return tuple(made[name].to(wide) for name in names)


@_formula
def _weighted(operands, options, wide):
    """The derivative of its sum is the gradient of the logits: the weights are those of
    z, and are constants."""
    z = _z(operands["logits"], *options)
    log_p = z - operands["top"] - operands["log_sum"]
    p = exp(log_p)
    weights = operands["a"]
    if "d" in operands:
        weights = weights + operands["d"] * where(p > 0, log_p, 0.0)
    weights = p * weights
    if "own" in operands:
        is_target = _is_target(operands, z, wide)
        weights = weights + where(is_target, operands["own"], 0.0)
    return (stop_gradient(weights) * z).to(wide)


def _z(logits, numbers):
    scale, soft_cap, temperature = numbers
    return z_of(logits if scale == 1 else logits * scale, soft_cap, temperature)


def _is_target(operands, z, wide):
    return column_numbers(z) == operands["targets"].to(wide)
