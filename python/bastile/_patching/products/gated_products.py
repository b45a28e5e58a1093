# Part of Bastile, under the MIT License. See LICENSE.
"""The gate and up projections of an MLP with their activation, as one product.

Products write the gate and up to memory for the activation to read them. One kernel
computes the activation of what it has summed, where that is measured to be faster
(`sizes`); while gradients are recorded, it writes the gate and up as well. The
backward is the one that there is without it: the kernel of the activation's gradients,
and PyTorch's products of these.
"""

import torch

from bastile._compiler import capture
from bastile._patching import modules
from bastile._patching.products import gated, projections, sizes
from bastile._torch import autograd

#: The method that a class or a module of MLPs has where this is asked for.
NAME = "bastile_gated_product"
_TYPES = (torch.bfloat16, torch.float16)


def method(layers):
    """The method `NAME` of an MLP whose layers of these names make the gate and up."""

    def bastile_gated_product(self, x, first, down, activation):
        """``down(activation.call(*[layer(x) for layer in first]))``; None where that is
        to be computed in the way of before."""
        if _takes(x, first):
            return project(x, first, down, activation)
        return None

    bastile_gated_product.layers = layers
    return bastile_gated_product


def find(module):
    """The method of an MLP for which this is asked, or None."""
    # A module takes the host much longer to say that it lacks an attribute.
    if NAME in vars(module) or hasattr(type(module), NAME):
        return getattr(module, NAME)
    return None


def _takes(x, layers):
    dtype, size = _dtype_of_products(x), x.shape[-1]
    weight = getattr(layers[0], "weight", None)
    return (
        dtype in _TYPES
        and isinstance(weight, torch.Tensor)
        and weight.shape[1:] == (size,)
        and sizes.is_faster(x.device, x.numel() // size, _columns(layers), size)
        and type(x) is torch.Tensor
        and x.dim() > 1
        and not torch._C._are_functorch_transforms_active()
        and modules.are_plain_linear(layers, weight.dtype if _is_cast(x) else dtype)
    )


def _columns(layers):
    """How many the gate has, of which a single layer makes half of its own."""
    return layers[0].weight.shape[0] * len(layers) // 2


def _is_cast(x):
    kind = x.device.type
    return kind in ("cpu", "cuda") and torch.is_autocast_enabled(kind)


def _dtype_of_products(x):
    """The type that linear layers of ``x`` compute in."""
    return torch.get_autocast_dtype(x.device.type) if _is_cast(x) else x.dtype


def project(x, layers, down, activation):
    """``down(activation.call(*[layer(x) for layer in layers]))`` of plain linear layers,
    as one product."""
    weights = [layer.weight for layer in layers]
    biases = [layer.bias for layer in layers]
    dtype, shape = _dtype_of_products(x), x.shape[:-1]
    rows, *parameters = (
        None if y is None else y.to(dtype)
        for y in (x.flatten(0, -2), *weights, *biases)
    )
    if not torch.is_grad_enabled() or not any(
        y is not None and y.requires_grad for y in (rows, *parameters)
    ):
        hidden = activation.products.alone(rows, *parameters)
        return down(hidden.view(*shape, hidden.shape[-1]))
    # torch.compile takes no tuple of them.
    operators = activation.products.kept, activation.gradients, activation.again
    if capture.is_compiling():
        hidden = _Product.apply(*operators, None, None, rows, *parameters)
        return down(hidden.view(*shape, hidden.shape[-1]))
    if (
        gated.is_worth_it(rows.shape[0] * _columns(layers), dtype)
        and not _is_cast(x)
        and gated.takes(down, dtype)
    ):
        result = _apply(*operators, down.weight, down.bias, rows, *parameters)
        return result.view(*shape, result.shape[-1])
    hidden = _apply(*operators, None, None, rows, *parameters)
    return down(hidden.view(*shape, hidden.shape[-1]))


class _Product(torch.autograd.Function):
    """The product, and with a weight ``last`` the MLP's last layer, whose operand the
    backward then computes again (`gated`)."""

    @staticmethod
    def forward(ctx, kept, gradients, again, last, last_bias, rows, *parameters):
        count = len(parameters) // 2
        hidden, *gate_up = kept(rows, *parameters)
        ctx.gradients, ctx.again = gradients, again
        wants_weights = any(ctx.needs_input_grad[6 : 6 + count])
        ctx.save_for_backward(
            rows if wants_weights else None, last, *parameters[:count], *gate_up
        )
        if last is None:
            return hidden
        return torch.nn.functional.linear(hidden, last, last_bias)

    @staticmethod
    def backward(ctx, upstream):
        sources = ctx.saved_tensors
        found = autograd.compute_once(
            "the MLP",
            (*sources, upstream),
            lambda: _gradients(ctx, sources, upstream),
        )
        return None, None, None, *found


def _gradients(ctx, sources, upstream):
    """Those of the last layer, of the rows and of the first layers' parameters; None
    where none is needed."""
    rows, last, *rest = sources
    weights, gate_up = rest[: len(rest) // 2], rest[len(rest) // 2 :]
    _, _, _, wants_last, wants_last_bias, *needs = ctx.needs_input_grad
    of_last = of_bias = None
    if last is None:
        found = ctx.gradients(*gate_up, upstream)
        found = found if isinstance(found, (list, tuple)) else (found,)
    else:
        hidden, *found = ctx.again(*gate_up, torch.mm(upstream, last))
        of_last = torch.mm(upstream.t(), hidden) if wants_last else None
        of_bias = upstream.sum(0) if wants_last_bias else None
    return of_last, of_bias, *projections.gradients(needs, (rows, *weights), found)


_apply = autograd.plain_apply(_Product)


def reasons(model):
    """For each module of ``model`` whose products are to be one, its path, and the reason
    why they are not, whatever the number of rows; None where there is no such reason."""
    for path, module in model.named_modules():
        found = find(module)
        if found is not None:
            yield (
                path,
                module,
                _reason([getattr(module, x) for x in found.layers], found),
            )


def _reason(layers, found):
    for name, layer in zip(found.layers, layers):
        why = modules.why_not_plain(layer)
        if why is not None:
            return f"{name} {why}"
    weight, columns = layers[0].weight, _columns(layers)
    depth = weight.shape[1]
    if sizes.least_rows_on(weight.device, columns, depth) is None:
        return (
            f"one kernel is not measured to be faster on {weight.device} for {columns} "
            f"columns of {depth} elements"
        )
    return None
