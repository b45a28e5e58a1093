# Part of Bastile, under the MIT License. See LICENSE.
"""Formulas as functions of PyTorch's tensors."""

import torch
import torch.nn.functional as F


def make(formula):
    """The formula as ``bastile.compile`` means it: computed in float32, or in float64 of
    float64, and rounded once."""
    function = formula.function(FUNCTIONS)

    def call(*tensors):
        dtype = tensors[0].dtype
        wide = torch.promote_types(dtype, torch.float32)
        results = function(*(x.to(wide) for x in tensors))
        if isinstance(results, tuple):
            return tuple(x.to(dtype) for x in results)
        return results.to(dtype)

    return call


#: By the names of ``bastile.functions``.
FUNCTIONS = {
    "abs": torch.abs,
    "cos": torch.cos,
    "erf": torch.erf,
    "exp": torch.exp,
    "gelu": F.gelu,
    "log1p": torch.log1p,
    "row_max": lambda x: x.amax(-1, keepdim=True),
    "row_mean": lambda x: x.mean(-1, keepdim=True),
    "row_sum": lambda x: x.sum(-1, keepdim=True),
    "rsqrt": torch.rsqrt,
    "sigmoid": torch.sigmoid,
    "silu": F.silu,
    "sin": torch.sin,
    "softplus": F.softplus,
    "sqrt": torch.sqrt,
    "stop_gradient": lambda x: x.detach(),
    "tanh": torch.tanh,
}
