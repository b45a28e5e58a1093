# Part of Bastile, under the MIT License. See LICENSE.
"""Checks of the operands of an op, whose messages name what the caller gave."""

from bastile._compiler import tensor_types


def check(definition, tensors):
    """Raises for operands that the op does not take.

    ``tensors`` has a (shape, element type, device) or ``None`` for each operand.
    ``TypeError`` is for kinds of objects and element types, ``ValueError`` for
    shapes and places; the message names the op, the operand and both sides.
    """
    named = list(zip(definition.operands, tensors))
    for operand, tensor in named:
        if tensor is None:
            if not operand.optional:
                raise TypeError(f"{definition.name}: missing '{operand.name}'")
            continue
        _check_type(definition, operand, tensor)
    _check_places(definition, named)
    first, reference = named[0]
    _check_row(definition, first, reference)
    # The operand that gives the result's rows their length.
    matrix = next((pair for pair in named if pair[0].kind == "matrix"), None)
    for operand, tensor in named[1:]:
        if tensor is None:
            continue
        if operand.kind == "matrix":
            _check_matrix(definition, operand, tensor, first, reference)
        elif operand.kind == "result_vector":
            _check_result_vector(definition, operand, tensor, *matrix)
        else:
            _check_shape(definition, operand, tensor, first, reference)
    _check_elements(definition, {o.name: tensor for o, tensor in named if tensor})
    _check_same(definition, {o.name: tensor for o, tensor in named if tensor})


def _check_type(definition, operand, tensor):
    if tensor[1] not in operand.elements:
        names = ", ".join(tensor_types.TORCH_NAMES[x] for x in operand.elements)
        raise TypeError(
            f"{definition.name}: '{operand.name}' has elements of type "
            f"{tensor_types.TORCH_NAMES[tensor[1]]}, but takes {names}"
        )


def _check_places(definition, named):
    present = [(o, t[2]) for o, t in named if t and t[2] is not None]
    for operand, place in present[1:]:
        if place != present[0][1]:
            raise ValueError(
                f"{definition.name}: operands lie in one place, but "
                f"'{present[0][0].name}' is on {present[0][1]} and "
                f"'{operand.name}' is on {place}"
            )


def _check_row(definition, operand, tensor):
    shape = tensor[0]
    if len(shape) < 2:
        raise ValueError(
            f"{definition.name}: '{operand.name}' has shape {_print(shape)}, but "
            "takes rows: a last dimension, and at least one before it"
        )
    if shape[-1] == 0:
        raise ValueError(
            f"{definition.name}: the rows of '{operand.name}' of shape "
            f"{_print(shape)} are empty"
        )


def _check_shape(definition, operand, tensor, first, reference):
    shape, rows = tensor[0], reference[0]
    if operand.kind == "row_vector":
        if len(shape) != 1 or shape[0] != rows[-1]:
            _mismatch(definition, operand, shape, first, rows, rows[-1:])
    elif operand.kind == "integer_statistic":
        if len(shape) != len(rows) or shape[-1] != 1 or _disagree(shape, rows):
            _mismatch(definition, operand, shape, first, rows, (*rows[:-1], 1))
    elif operand.kind == "row_tensor" and len(shape) != len(rows):
        raise ValueError(
            f"{definition.name}: '{operand.name}' of shape {_print(shape)} has "
            f"another rank than '{first.name}' of shape {_print(rows)}"
        )


def _check_matrix(definition, operand, tensor, first, reference):
    shape, rows = tensor[0], reference[0]
    if len(shape) != 2 or shape[1] != rows[-1]:
        expected = ("columns of the result", rows[-1])
        _mismatch(definition, operand, shape, first, rows, expected)
    if shape[0] == 0:
        raise ValueError(
            f"{definition.name}: '{operand.name}' has shape {_print(shape)}, but the "
            "result needs at least one column"
        )


def _check_result_vector(definition, operand, tensor, matrix, its):
    shape, rows = tensor[0], its[0]
    if len(shape) != 1 or shape[0] != rows[0]:
        _mismatch(definition, operand, shape, matrix, rows, rows[:1])


def _check_elements(definition, tensors):
    for group in definition.same_elements:
        first, *others = (name for name in group if name in tensors)
        for name in others:
            if tensors[name][1] != tensors[first][1]:
                _mismatch_of_elements(definition, name, first, tensors)


def _mismatch_of_elements(definition, name, other, tensors):
    raise TypeError(
        f"{definition.name}: '{name}' has elements of type "
        f"{tensor_types.TORCH_NAMES[tensors[name][1]]}, but '{other}' of type "
        f"{tensor_types.TORCH_NAMES[tensors[other][1]]}"
    )


def _check_same(definition, tensors):
    for group in definition.same_types:
        names = [name for name in group if name in tensors]
        for name in names[1:]:
            shape, wanted = tensors[name][0], tensors[names[0]][0]
            if len(shape) != len(wanted) or any(map(_differ, shape, wanted)):
                raise ValueError(
                    f"{definition.name}: '{name}' has shape {_print(shape)}, but "
                    f"'{names[0]}' has shape {_print(wanted)}"
                )
            if tensors[name][1] != tensors[names[0]][1]:
                _mismatch_of_elements(definition, name, names[0], tensors)


def _disagree(shape, rows):
    return any(map(_differ, shape[:-1], rows[:-1]))


def _differ(a, b):
    # A size that torch.compile traces is no integer, and may be any.
    return isinstance(a, int) and isinstance(b, int) and a != b


def _mismatch(definition, operand, shape, first, rows, expected):
    raise ValueError(
        f"{definition.name}: '{operand.name}' has shape {_print(shape)}, but for "
        f"'{first.name}' of shape {_print(rows)} it must be {_print(expected)}"
    )


def _print(shape):
    return f"[{', '.join(map(str, shape))}]"
