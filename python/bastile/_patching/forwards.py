# Part of Bastile, under the MIT License. See LICENSE.
"""Methods and functions that take the place of Transformers', kind by kind.

Each function here is given what it replaces, and returns the replacement, the same
one for the same. What can be decided is decided then: a call of a replacement is
little more than the call of the kernel.
"""

import functools
from collections.abc import Callable
from typing import NamedTuple

from bastile import ops
from bastile._compiler.traced_operators import TracedOperator
from bastile._formulas import activations as kernels
from bastile._formulas.rope import rope_half_angles, rope_halves, rope_neighbours
from bastile._patching import gated, probes


@functools.cache
def norm(original, patch):
    casting, offset, eps = patch.casting, patch.offset, patch.eps
    rms_norm = ops.rms_norm

    @functools.wraps(original)
    def forward(self, hidden_states):
        weight = getattr(self, "weight", None)
        # What a class of another kind does without a weight is not known.
        if weight is None and not hasattr(self, probes.WITH_WEIGHT):
            return original(self, hidden_states)
        return rms_norm(
            hidden_states,
            weight,
            casting=casting,
            eps=getattr(self, eps),
            offset=offset,
        )

    return forward


def _all_columns(angles):
    return angles.unsqueeze(2)


def _first_half(angles):
    return angles[..., : angles.shape[-1] // 2].unsqueeze(2)


_ROPES = {
    "halves": (rope_halves, _all_columns),
    "half_angles": (rope_half_angles, _all_columns),
    "neighbours": (rope_neighbours, _first_half),
}


@functools.cache
def rope(original, patch):
    kernel, prepare = _ROPES[patch.kind]

    @functools.wraps(original)
    def apply_rotary(q, k, cos, sin, *rest, **named):
        if rest or named:
            return original(q, k, cos, sin, *rest, **named)
        # Heads are transposed views of a projection's rows. Transposed back, results
        # and gradients lie as the projection wants them, and nothing is copied.
        q, k = kernel(q.transpose(1, 2), k.transpose(1, 2), prepare(cos), prepare(sin))
        return q.transpose(1, 2), k.transpose(1, 2)

    return apply_rotary


def _geglu(form):
    return lambda gate, up: ops.geglu(gate, up, form=form)


class Activation(NamedTuple):
    """The activation of an MLP: ``call`` computes the operand of the last product, and
    ``again`` computes it again in the backward (`gated`)."""

    call: Callable
    again: TracedOperator


# By Transformers' name, the activation of the gate and up, and of both in one row.
_ACTIVATIONS = {
    "silu": (
        Activation(ops.swiglu, kernels.swiglu_again),
        Activation(kernels.packed_swiglu, kernels.packed_swiglu_again),
    ),
    "gelu": (
        Activation(_geglu("erf"), kernels.geglu_erf_again),
        Activation(kernels.packed_geglu_erf, kernels.packed_geglu_erf_again),
    ),
    "gelu_pytorch_tanh": (
        Activation(_geglu("tanh"), kernels.geglu_tanh_again),
        Activation(kernels.packed_geglu_tanh, kernels.packed_geglu_tanh_again),
    ),
}


@functools.cache
def activations(packed):
    """By the class of an activation of Transformers, the kernels for ``gate, up``
    or, with ``packed``, for both in one row."""
    from transformers.activations import ACT2FN

    return {type(ACT2FN[name]): pair[packed] for name, pair in _ACTIVATIONS.items()}


@functools.cache
def mlp(original, patch):
    first = (patch.gate,) if patch.packed else (patch.gate, patch.up)
    fused = activations(patch.packed)

    @functools.wraps(original)
    def forward(self, x):
        activation = fused.get(type(getattr(self, patch.act)))
        if activation is None:
            return original(self, x)
        gate_up = [getattr(self, name)(x) for name in first]
        down = getattr(self, patch.down)
        if gated.can_recompute(down, gate_up):
            return gated.project(*activation, gate_up, down)
        return down(activation.call(*gate_up))

    return forward
