# Part of Bastile, under the MIT License. See LICENSE.
"""The model ops as functions of tensors.

Every op of the dialect is here under its name, with its operands and attributes
as they are defined there; ``help(bastile.ops.rms_norm)`` shows the formula. An op
runs on PyTorch's tensors, with autograd, and on NumPy's and any other library's.

Attention, and the losses of a linear layer's outputs and their vocabulary-parallel
forms, which PyTorch's products are part of, run on PyTorch's tensors alone.

Shapes are those of the dialect, except that an operand with one integer a row,
as targets are, may lack its last dimension of size 1.
"""

from bastile._attention.functions import attention
from bastile._compiler.op_functions import FUNCTIONS
from bastile._losses.divergence.functions import linear_jsd, linear_kl
from bastile._losses.functions import (
    linear_cross_entropy,
    vocab_parallel_linear_cross_entropy,
)
from bastile._losses.log_probs.functions import (
    linear_log_probs,
    vocab_parallel_linear_log_probs,
)

globals().update(FUNCTIONS)

__all__ = [
    *FUNCTIONS,
    "attention",
    "linear_cross_entropy",
    "linear_jsd",
    "linear_kl",
    "linear_log_probs",
    "vocab_parallel_linear_cross_entropy",
    "vocab_parallel_linear_log_probs",
]
