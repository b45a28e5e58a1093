# Part of Bastile, under the MIT License. See LICENSE.
"""Calls that torch.compile sees, which have to become operators of PyTorch.

Kernels, functions and ops ask `is_compiling` at each call, and hand it on to one of
the functions below where that holds. PyTorch's room connects itself here, as nothing of
this room imports it.
"""

import sys
from collections.abc import Callable
from typing import Any

#: Of an op's name and the values of its operands, attributes and options.
call_op: Callable[..., Any]
#: Of a `Kernel` and its operands.
call_kernel: Callable[..., Any]
#: Of a `TracedOperator` or a `Recipe`, its operands and its attributes.
call_traced: Callable[..., Any]
#: Of an op's name and its operands: raises for leaves of autograd, whose values an op
#: in place would overwrite.
forbid_leaves: Callable[..., Any]


def is_compiling() -> bool:
    """Whether torch.compile is looking; what it sees has to be PyTorch's operators."""
    torch = sys.modules.get("torch")
    return torch is not None and torch.compiler.is_compiling()


def connect(**functions: Callable[..., Any]) -> None:
    """Puts ``functions`` in the place of those of this module, by their names."""
    for name in functions:
        if name not in __annotations__ and name != "is_compiling":
            raise TypeError(f"'{name}' is no function of a call that is captured")
    globals().update(functions)
