# Part of Bastile, under the MIT License. See LICENSE.
"""The operators that are registered with PyTorch: how a divergence is computed, in
chunks of tokens."""

from bastile._losses import plan, totals
from bastile._losses.divergence import kernels
from bastile._losses.divergence.options import Operands, Options
from bastile._losses.forward import run_chunks
from bastile._losses.products import logits_of, memory_of_logits
from bastile._losses.tokens import total_scale

NAME = "linear_divergence"
_COUNT = len(Operands._fields)


def run(operands, scale, options, wanted):
    """As `forward.run`, for `Operands` of [T, ...]."""
    hidden, weight, targets, bias, *teacher = operands
    tokens, classes, size = len(hidden), len(weight), hidden.element_size()
    *linear, given = teacher
    teacher_hidden, teacher_weight, teacher_bias = linear
    budget = plan.budget_of(*hidden.shape, classes, size, options.settings)
    own = both = plan.row_length(classes, size) * size
    if given is None:
        other = teacher_hidden.element_size()
        both = own + plan.row_length(classes, other) * other
    if options.settings.budget is None:
        # What shapes suggest is of the student's logits alone.
        budget = budget * both // own
    parts = plan.pieces(tokens, both, budget)
    memory = None
    if given is None:
        most = parts[0].stop if parts else 0
        memory = memory_of_logits(teacher_hidden, most, classes)

    def compute(logits, part, scale, is_differentiated):
        if given is not None:
            of_teacher = given[part]
        else:
            rows = memory[: part.stop - part.start]
            of_teacher = logits_of(
                teacher_hidden[part], teacher_weight, teacher_bias, rows
            )
        columns = None if targets is None else targets[part, None]
        if scale is None:
            return kernels.losses(logits, of_teacher, columns, options)
        return kernels.total(
            logits, of_teacher, columns, scale, options, is_differentiated
        )

    student = hidden, weight, bias
    return run_chunks(student, parts, compute, scale, options, wanted)


def _take_apart(tensors):
    """The operands; the divisor, or the upstream gradient; options; and which gradients
    are wanted."""
    operands, (other, *given, wanted) = tensors[:_COUNT], tensors[_COUNT:]
    return Operands(*operands), other, Options.read(*given), wanted


def _forward(*tensors):
    operands, divisor, options, wanted = _take_apart(tensors)

    def factor(dtype):
        hidden, targets = operands.hidden, operands.targets
        if targets is None:
            counts = options.settings.ignore_index + 1
            targets = hidden.new_full((len(hidden),), counts, dtype=int)
        return total_scale(targets, None, divisor, options.settings, dtype)

    return totals.compute(
        lambda scale, wanted: run(operands, scale, options, wanted),
        *(operands.hidden, factor, options, wanted),
    )


def _fake_forward(hidden, weight, *rest):
    words, *_, wanted = rest[_COUNT - 1 :]
    return totals.imitate(hidden, weight, Options.read(words), wanted)


def _backward(*tensors):
    operands, upstream, options, wanted = _take_apart(tensors)
    return totals.differentiate(
        lambda scale, wanted: run(operands, scale, options, wanted),
        *(operands.hidden, upstream, wanted),
    )


def _fake_backward(hidden, weight, *rest):
    return totals.imitate_gradients(hidden, weight, rest[-1], hidden.dtype)


totals.register_loss(
    NAME,
    "Tensor? targets, Tensor? bias, Tensor? teacher_hidden, Tensor? teacher_weight, "
    "Tensor? teacher_bias, Tensor? teacher_logits, ",
    (_forward, _fake_forward),
    (_backward, _fake_backward),
)
