"""What takes the place of a method or function of Transformers, kind by kind.

Each function here is given what it replaces, and returns the replacement, the same
one for the same. What can be decided is decided then: a call of a replacement is
little more than the call of the kernel.
"""

import functools

from bastile import _rope, ops
from bastile.patching import kernels


@functools.cache
def norm(original, patch):
    casting, offset, eps = patch.casting, patch.offset, patch.eps
    rms_norm = ops.rms_norm

    @functools.wraps(original)
    def forward(self, hidden_states):
        return rms_norm(
            hidden_states,
            self.weight,
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
    "halves": (_rope.rope_halves, _all_columns),
    "half_angles": (_rope.rope_half_angles, _all_columns),
    "neighbours": (_rope.rope_neighbours, _first_half),
}


@functools.cache
def rope(original, patch):
    kernel, prepare = _ROPES[patch.kind]

    @functools.wraps(original)
    def apply_rotary(q, k, cos, sin, *rest, **named):
        if rest or named:
            return original(q, k, cos, sin, *rest, **named)
        # Heads come transposed out of a projection's rows. Turned back, results
        # and gradients lie as the projection wants them, and nothing is copied.
        q, k = kernel(
            q.transpose(1, 2), k.transpose(1, 2), prepare(cos), prepare(sin)
        )
        return q.transpose(1, 2), k.transpose(1, 2)

    return apply_rotary


def _geglu(form):
    return lambda gate, up: ops.geglu(gate, up, form=form)


_ACTIVATIONS = {
    "silu": (ops.swiglu, kernels.packed_swiglu),
    "gelu": (_geglu("erf"), kernels.packed_geglu_erf),
    "gelu_pytorch_tanh": (_geglu("tanh"), kernels.packed_geglu_tanh),
}


@functools.cache
def activations(packed):
    """By the class of an activation of Transformers, the kernel for ``gate, up``
    or, with ``packed``, for both in one row."""
    from transformers.activations import ACT2FN

    return {
        type(ACT2FN[name]): pair[packed] for name, pair in _ACTIVATIONS.items()
    }


@functools.cache
def mlp(original, patch):
    gate, up, down, act = patch.gate, patch.up, patch.down, patch.act
    fused = activations(patch.packed)

    @functools.wraps(original)
    def forward(self, x):
        kernel = fused.get(type(getattr(self, act)))
        if kernel is None:
            return original(self, x)
        hidden = kernel(getattr(self, gate)(x), getattr(self, up)(x))
        return getattr(self, down)(hidden)

    @functools.wraps(original)
    def forward_packed(self, x):
        kernel = fused.get(type(getattr(self, act)))
        if kernel is None:
            return original(self, x)
        return getattr(self, down)(kernel(getattr(self, gate)(x)))

    return forward_packed if patch.packed else forward
