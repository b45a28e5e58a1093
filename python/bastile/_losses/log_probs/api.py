# Part of Bastile, under the MIT License. See LICENSE.
"""Calls of `linear_log_probs`: checks, and the forms that arguments may have."""

import functools

import torch
from bastile._losses import checks
from bastile._losses.log_probs import operators
from bastile._losses.log_probs.options import CALL, Options
from bastile._losses.log_probs.run import Operands


def compute(operands, settings, returns, of=None):
    """What `bastile.ops.linear_log_probs` returns for `Operands` of any leading
    dimensions, the options by name and what is asked for. The weight has the
    `checks.Slice` ``of`` the classes, by default all of them."""
    operands = Operands(*operands)
    if returns is None:
        raise TypeError(f"{CALL}: 'returns' must name results, but is None")
    checks.refuse_transformations(CALL)
    for name, tensor in zip(Operands._fields, operands):
        if tensor is not None or name != "bias":
            checks.check_whole(CALL, name, tensor)
    if of is None:
        of = checks.Slice(None, 0, int(operands.weight.shape[0]))
    names = (returns,) if isinstance(returns, str) else tuple(returns)
    options, given = _options(tuple(settings.items()), names, of)
    hidden, weight, targets, bias = operands
    hidden, weight, bias = checks.cast(hidden, weight, bias)
    checks.check_linear(CALL, hidden, weight, bias)
    checks.check_targets(CALL, targets, hidden)
    checks.check_place(CALL, operands._asdict())
    flat = Operands(
        hidden.reshape(-1, hidden.shape[-1]), weight, targets.reshape(-1), bias
    )
    results = operators.call(flat, options, given)
    made = {name: x.reshape(targets.shape) for name, x in zip(options.wanted, results)}
    if isinstance(returns, str):
        return made[returns]
    return tuple(made[name] for name in names)


def _options(settings, names, place):
    """The options, and as registered operators take them."""
    if torch.compiler.is_compiling():
        return _make(settings, names, place)
    return _known_options(settings, names, place)


def _make(settings, names, place):
    group, first, classes = place
    options = Options(
        **dict(settings), returns=names, group=group, first_class=first, classes=classes
    )
    return options, options.given


_known_options = functools.lru_cache(maxsize=256)(_make)
