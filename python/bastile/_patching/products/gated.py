# Part of Bastile, under the MIT License. See LICENSE.
"""The last product of a gated MLP, with an operand that the backward computes again.

PyTorch keeps three tensors of an MLP for the backward: the gate, up, and the result of
the activation, which the last product needs for its weight's gradient. Here the
backward's kernel, which reads the gate and up anyway, writes the result again: a third
less is kept, for one more tensor written.
"""

import torch

from bastile._patching import modules
from bastile._torch import autograd

#: The least bytes of an operand that are worth it. Below, memory is no concern, and the
#: host's time for a node in Python is.
SMALLEST_BYTES = 16 << 20


def can_recompute(down, gate_up):
    """Whether `project` stands for ``down(activation(*gate_up))``: for a linear
    layer that is called and differentiated in the plain way, where it pays."""
    first = gate_up[0]
    # Of one projection, the rows hold both.
    return (
        is_worth_it(first.numel() * len(gate_up) // 2, first.dtype)
        and modules.is_recorded_plainly(gate_up)
        and takes(down, first.dtype)
    )


def is_worth_it(count, dtype):
    """Whether the operand has as many bytes as it takes."""
    return count * dtype.itemsize >= SMALLEST_BYTES


def takes(down, dtype):
    """Whether the last layer is a linear one whose node may compute its operand of
    ``dtype`` again."""
    return (
        modules.are_plain_linear((down,), dtype)
        and down.weight.requires_grad
        and not _is_checkpointed()
    )


def _is_checkpointed():
    """Whether a checkpoint's backward runs, or hooks take what autograd keeps. All
    three tensors at once would then take more memory than one after the other."""
    return (
        torch._C._autograd._top_saved_tensors_default_hooks(False) is not None
        or torch._C._current_graph_task_id() != -1
    )


def project(activation, again, gate_up, down):
    """``down(activation(*gate_up))``. ``again`` makes of ``*gate_up`` and an upstream
    gradient the activation's result and the gradients of ``gate_up``."""
    return _apply(activation, again, down.weight, down.bias, *gate_up)


class _Projection(torch.autograd.Function):
    @staticmethod
    def forward(ctx, activation, again, weight, bias, *gate_up):
        ctx.again = again
        ctx.save_for_backward(weight, *gate_up)
        return torch.nn.functional.linear(activation(*gate_up), weight, bias)

    @staticmethod
    def backward(ctx, upstream):
        weight, *gate_up = ctx.saved_tensors
        found = autograd.compute_once(
            "the MLP",
            (weight, *gate_up, upstream),
            lambda: _gradients(ctx, upstream, weight, gate_up),
        )
        return None, None, *found


def _gradients(ctx, upstream, weight, gate_up):
    """Those of the weight, the bias, the gate and up; None where none is needed."""
    _, _, wants_weight, wants_bias, *_ = ctx.needs_input_grad
    rows = upstream.flatten(0, -2)
    of_hidden = torch.mm(rows, weight).view(*upstream.shape[:-1], weight.shape[1])
    hidden, *found = ctx.again(*gate_up, of_hidden)
    of_weight = torch.mm(rows.t(), hidden.flatten(0, -2)) if wants_weight else None
    of_bias = rows.sum(0) if wants_bias else None
    return of_weight, of_bias, *found


_apply = autograd.plain_apply(_Projection)
