# Part of Bastile, under the MIT License. See LICENSE.
"""The activations of gated layers that there are kernels for."""

import functools
from collections.abc import Callable
from typing import NamedTuple

from bastile import ops
from bastile._compiler.traced_operators import TracedOperator
from bastile._formulas import activations as kernels
from bastile._patching import modules


class Activation(NamedTuple):
    """The activation of an MLP: ``call`` computes the operand of the last product,
    ``again`` computes it again in the backward (`gated`), ``gradients`` computes those of
    the gate and up alone, and ``products`` are those of a first layer with it
    (`gated_products`). ``weighted``, of both in one row, also takes a weight for each
    row."""

    call: Callable
    again: TracedOperator
    gradients: TracedOperator
    products: kernels.Products
    weighted: TracedOperator | None = None


def _geglu(form):
    return lambda gate, up: ops.geglu(gate, up, form=form)


# By Transformers' name, the activation of the gate and up, and of both in one row.
_ACTIVATIONS = {
    "silu": (
        Activation(
            ops.swiglu,
            kernels.swiglu_again,
            kernels.swiglu_gradients,
            kernels.swiglu_products,
        ),
        Activation(
            kernels.packed_swiglu,
            kernels.packed_swiglu_again,
            kernels.packed_swiglu_gradients,
            kernels.packed_swiglu_products,
            kernels.packed_swiglu_weighted,
        ),
    ),
    "gelu": (
        Activation(
            _geglu("erf"),
            kernels.geglu_erf_again,
            kernels.geglu_erf_gradients,
            kernels.geglu_erf_products,
        ),
        Activation(
            kernels.packed_geglu_erf,
            kernels.packed_geglu_erf_again,
            kernels.packed_geglu_erf_gradients,
            kernels.packed_geglu_erf_products,
            kernels.packed_geglu_erf_weighted,
        ),
    ),
    "gelu_pytorch_tanh": (
        Activation(
            _geglu("tanh"),
            kernels.geglu_tanh_again,
            kernels.geglu_tanh_gradients,
            kernels.geglu_tanh_products,
        ),
        Activation(
            kernels.packed_geglu_tanh,
            kernels.packed_geglu_tanh_again,
            kernels.packed_geglu_tanh_gradients,
            kernels.packed_geglu_tanh_products,
            kernels.packed_geglu_tanh_weighted,
        ),
    ),
}


def of(name):
    """That of the gate and up by Transformers' name."""
    return _ACTIVATIONS[name][False]


@functools.cache
def finder(packed):
    """A function of an activation's module that returns the kernels for it, those for
    ``gate, up`` or, with ``packed``, for both in one row; None for another activation,
    and where somebody watches the module's calls or has replaced its forward."""
    from transformers.activations import ACT2FN

    known = {type(ACT2FN[name]): pair[packed] for name, pair in _ACTIVATIONS.items()}

    def find(layer):
        if modules.has_global_hooks() or modules.is_changed(layer):
            return None
        return known.get(type(layer))

    return find


def by_name(packed):
    """By Transformers' name of the activation, the kernels as `finder` has them."""
    return {name: pair[packed] for name, pair in _ACTIVATIONS.items()}
