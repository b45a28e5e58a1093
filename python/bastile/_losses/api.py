# Part of Bastile, under the MIT License. See LICENSE.
"""Calls of the loss: checks, and the forms that arguments may have."""

import functools

import torch
from bastile._losses import checks, node, operators  # noqa: F401  registers it
from bastile._losses.options import Operands, Options
from bastile._torch.operands import reshape_result

_NAME = "linear_cross_entropy"


def compute(operands, settings, returns, num_items=None, skip_ignored=False, of=None):
    """What `bastile.ops.linear_cross_entropy` returns for `Operands`, `Settings` and the
    arguments of these names. The weight has the `checks.Slice` ``of`` the classes, by
    default all of them."""
    if returns is None:
        raise TypeError(f"{_NAME}: 'returns' must name results, but is None")
    checks.refuse_transformations(_NAME)
    names = (returns,) if isinstance(returns, str) else tuple(returns)
    for name, tensor in zip(Operands._fields, operands):
        if tensor is not None or name in Operands._fields[:3]:
            checks.check_whole(_NAME, name, tensor)
    if of is None:
        of = checks.Slice(None, 0, int(operands.weight.shape[0]))
    options, given = _options(settings, names, of)
    operands = _autocast(operands)
    _check(operands)
    _check_class_weights(operands.class_weights, options)
    checks.check_place(_NAME, operands._asdict())
    hidden, targets = operands.hidden, operands.targets
    divisor = checks.take_divisor(_NAME, num_items, settings.reduction, hidden)
    rows = hidden.reshape(-1, hidden.shape[-1])
    columns = targets.reshape(-1)
    index = None
    if skip_ignored:
        index = (columns != settings.ignore_index).nonzero().squeeze(1)
        rows, columns = rows.index_select(0, index), columns.index_select(0, index)
    flat = Operands(
        rows, operands.weight, columns, operands.bias, operands.class_weights
    )
    results = node.call(_NAME, flat, divisor, options, given)
    made = {
        name: _spread(values, index, targets.shape) if values.dim() else values
        for name, values in zip(("loss", *options.others), results)
    }
    if isinstance(returns, str):
        return made[returns]
    return tuple(made[name] for name in names)


def _options(settings, names, place):
    """The options, and as registered operators take them."""
    if torch.compiler.is_compiling():
        options = Options(settings, names, *place)
        return options, options.given
    return _known_options(settings, names, place)


@functools.lru_cache(maxsize=256)
def _known_options(settings, names, place):
    """As `_options`; kept, as calls repeat and a look-up is faster than the checks."""
    options = Options(settings, names, *place)
    return options, options.given


def _spread(values, index, shape):
    """Values of tokens in the targets' shape, 0 for those that were skipped."""
    if index is not None:
        whole = values.new_zeros(shape.numel())
        values = whole.index_copy(0, index, values)
    return reshape_result(values, shape)


def _autocast(operands):
    hidden, weight, targets, bias, class_weights = operands
    hidden, weight, bias = checks.cast(hidden, weight, bias)
    return Operands(hidden, weight, targets, bias, class_weights)


def _check(operands):
    hidden, weight, targets, bias, _ = operands
    checks.check_linear(_NAME, hidden, weight, bias)
    checks.check_targets(_NAME, targets, hidden)


def _check_class_weights(weights, options):
    if weights is None:
        return
    if list(weights.shape) != [options.classes]:
        raise ValueError(
            f"{_NAME}: 'class_weights' has shape {list(weights.shape)}, but for "
            f"{options.classes} classes it must be {[options.classes]}"
        )
    checks.check_floats(_NAME, "class_weights", weights)
    if weights.requires_grad:
        raise ValueError(f"{_NAME}: 'class_weights' has no gradient; detach it")
