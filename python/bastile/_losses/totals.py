# Part of Bastile, under the MIT License. See LICENSE.
"""What operators of losses return: losses of tokens, or their total with its
gradients.

``run(scale, wanted)`` is how a loss is computed: the results for tokens whose losses
count ``scale`` [T] in the total, or of each token where that is None, and the gradients
that are ``wanted`` of hidden states, weight and bias.
"""

import torch
from bastile._losses import forward, kernels
from bastile._losses.products import kept_type, wide_type

LIBRARY = torch.library.Library("bastile", "FRAGMENT")
#: By name, the operators of a forward and of its backward.
OPERATORS = {}


def compute(run, hidden, factor, options, wanted):
    """The results, and behind them the gradients that are wanted. Between the two comes
    a factor that the backward has to multiply into the gradients, where these are kept
    in a wider type than they are returned in.

    ``factor(dtype)`` is what the sum of the losses is multiplied by.
    """
    if options.of_each_token:
        return run(None, wanted)[0]
    factor = factor(wide_type(hidden.dtype))
    is_later = kept_type(hidden.dtype) != hidden.dtype
    of_token = torch.ones_like(factor) if is_later else factor
    scale = of_token.expand(len(hidden))
    results, gradients = run(scale, wanted)
    if not is_later:
        return [*results, *gradients]
    results[0] = results[0] * factor
    return [*results, *([factor] if gradients else []), *gradients]


def imitate(hidden, weight, options, wanted):
    """Tensors as `compute` returns them."""
    results = forward.empty_results(hidden, options, options.of_each_token)
    kept = kept_type(hidden.dtype)
    if any(wanted) and kept != hidden.dtype:
        results.append(hidden.new_empty((), dtype=kept))
    return [*results, *imitate_gradients(hidden, weight, wanted, kept)]


def differentiate(run, hidden, upstream, wanted):
    """The gradients that are wanted, from that of each token's loss."""
    _, gradients = run(upstream.to(wide_type(hidden.dtype)), wanted)
    return [x.to(hidden.dtype) for x in gradients]


def imitate_gradients(hidden, weight, wanted, dtype):
    """Tensors as `differentiate` returns them."""
    shapes = hidden.shape, weight.shape, weight.shape[:1]
    return [
        hidden.new_empty(shape, dtype=dtype)
        for shape, want in zip(shapes, wanted)
        if want
    ]


def scale_gradient(gradient, factor, dtype, in_place):
    """``gradient`` times a number on its device, rounded to ``dtype``."""
    if in_place and gradient.dtype == dtype and _has_memory(gradient):
        rows = gradient if gradient.dim() == 2 else gradient[None]
        return kernels.scale_in_place(rows, factor.reshape(1)).view_as(gradient)
    return (gradient * factor).to(dtype)


def _has_memory(tensor):
    """Whether a kernel can read and write the elements of ``tensor``."""
    return (
        type(tensor) is torch.Tensor
        and tensor.device.type in ("cpu", "cuda")
        and tensor.numel() > 0
        and not torch._C._len_torch_dispatch_stack()
    )


def register(name, schema, implementation, fake):
    """Defines the operator ``name`` of PyTorch."""
    LIBRARY.define(name + schema)
    for device in ("CPU", "CUDA"):
        # Where autograd records a backward, it must not record what that computes.
        LIBRARY.impl(name, torch.no_grad()(implementation), device)
    torch.library.register_fake(f"bastile::{name}", fake, lib=LIBRARY)


def register_loss(name, tensors, forward, backward):
    """Defines the operators of a loss, ``name`` and its backward.

    ``tensors`` is the part of the schema after hidden states and weight;
    behind it come the divisor or the upstream gradient, the options and which gradients
    are wanted. Each of the two is an implementation with its fake.
    """
    schema = (
        f"(Tensor hidden, Tensor weight, {tensors}{{}}, str words, SymInt[] counts, "
        "float[] numbers, bool[] wanted) -> Tensor[]"
    )
    register(name, schema.format("Tensor? divisor"), *forward)
    register(f"{name}_backward", schema.format("Tensor upstream"), *backward)
    OPERATORS[name] = tuple(
        getattr(torch.ops.bastile, x).default for x in (name, f"{name}_backward")
    )
