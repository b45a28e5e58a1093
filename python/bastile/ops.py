# Part of Bastile, under the MIT License. See LICENSE.
"""The model ops as functions of tensors.

Every op of the dialect is here under its name, with its operands and attributes
as they are defined there; ``help(bastile.ops.rms_norm)`` shows the formula. An op
runs on PyTorch's tensors, with autograd, and on NumPy's and any other library's.

`linear_cross_entropy` and its vocabulary-parallel form, which PyTorch's products are
part of, run on PyTorch's tensors alone.

Shapes are those of the dialect, except that an operand with one integer a row,
as targets are, may lack its last dimension of size 1.
"""

from bastile._compiler.op_functions import FUNCTIONS
from bastile._losses.functions import (
    linear_cross_entropy,
    vocab_parallel_linear_cross_entropy,
)

globals().update(FUNCTIONS)

__all__ = [
    *FUNCTIONS,
    "linear_cross_entropy",
    "vocab_parallel_linear_cross_entropy",
]
