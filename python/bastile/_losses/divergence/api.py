# Part of Bastile, under the MIT License. See LICENSE.
"""Calls of a divergence: checks, and the forms that arguments may have."""

import functools

import torch
from bastile._losses import checks, node
from bastile._losses.divergence import operators
from bastile._losses.divergence.options import Operands, Options


def compute(call, operands, settings, returns, num_items=None):
    """What ``call``, a function of `bastile.ops`, returns for `Operands` and
    `Settings`."""
    if returns is None:
        raise TypeError(f"{call}: 'returns' must name results, but is None")
    checks.refuse_transformations(call)
    for name, tensor in operands._asdict().items():
        if tensor is not None or name in Operands._fields[:2]:
            checks.check_whole(call, name, tensor)
    _check_teacher(call, operands)
    names = (returns,) if isinstance(returns, str) else tuple(returns)
    options, given = _options(call, settings, names)
    operands = _cast(operands)
    _check(call, operands)
    hidden = operands.hidden
    divisor = checks.take_divisor(call, num_items, settings.reduction, hidden)
    results = node.call(operators.NAME, _flatten(operands), divisor, options, given)
    made = {
        name: x.reshape(hidden.shape[:-1]) if x.dim() else x
        for name, x in zip(("loss", *options.others), results)
    }
    if isinstance(returns, str):
        return made[returns]
    return tuple(made[name] for name in names)


def _options(call, settings, names):
    """The options, and as registered operators take them."""
    if torch.compiler.is_compiling():
        return _make(call, settings, names)
    return _known_options(call, settings, names)


def _make(call, settings, names):
    options = Options(call, settings, names)
    return options, options.given


_known_options = functools.lru_cache(maxsize=256)(_make)


def _check_teacher(call, operands):
    """Raises where it is not clear what the teacher's logits are."""
    *_, hidden, weight, bias, logits = operands
    linear = [x is not None for x in (hidden, weight)]
    if all(linear) if logits is None else not any((*linear, bias is not None)):
        return
    raise TypeError(
        f"{call}: takes 'teacher_hidden' and 'teacher_weight', or 'teacher_logits' "
        "instead of them"
    )


def _cast(operands):
    """As autocast asks for. The teacher has no gradient."""
    student = operands.hidden, operands.weight, operands.bias
    hidden, weight, bias = checks.cast(*student)
    linear = operands.teacher_hidden, operands.teacher_weight, operands.teacher_bias
    if linear[0] is not None:
        linear = checks.cast(*(x if x is None else x.detach() for x in linear))
    logits = operands.teacher_logits
    logits = logits if logits is None else logits.detach()
    return Operands(hidden, weight, operands.targets, bias, *linear, logits)


def _check(call, operands):
    hidden, weight, targets, bias, *teacher, logits = operands
    checks.check_linear(call, hidden, weight, bias)
    if targets is not None:
        checks.check_targets(call, targets, hidden)
    expected = list(hidden.shape[:-1]), len(weight)
    if logits is not None:
        checks.check_floats(call, "teacher_logits", logits)
        name, shape, classes = "teacher_logits", logits.shape[:-1], logits.shape[-1]
    else:
        checks.check_linear(call, *teacher, prefix="teacher_")
        name, shape, classes = "teacher_hidden", teacher[0].shape[:-1], len(teacher[1])
    if list(shape) != expected[0]:
        raise ValueError(
            f"{call}: '{name}' has leading sizes {list(shape)}, but those of 'hidden' "
            f"are {expected[0]}"
        )
    if classes != expected[1]:
        raise ValueError(
            f"{call}: the teacher has {classes} classes, but the student "
            f"{expected[1]}: a divergence is of two softmaxes over the same classes"
        )
    checks.check_place(call, operands._asdict())


def _flatten(operands):
    """The same operands with tokens in one dimension."""

    def rows(x):
        return x if x is None else x.reshape(-1, x.shape[-1])

    targets = operands.targets
    return operands._replace(
        hidden=rows(operands.hidden),
        targets=targets if targets is None else targets.reshape(-1),
        teacher_hidden=rows(operands.teacher_hidden),
        teacher_logits=rows(operands.teacher_logits),
    )
