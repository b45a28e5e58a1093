# Part of Bastile, under the MIT License. See LICENSE.
"""Calls that torch.compile sees, which have to become operators of PyTorch.

Kernels, functions and ops ask `is_compiling` at each call, and hand it on to one of
the functions below where that holds. PyTorch's room connects itself here, as nothing of
this room imports it.
"""

import sys
from collections.abc import Callable
from typing import Any

#: Calls an op, given its name and the values of operands, attributes and options.
call_op: Callable[..., Any]
#: Calls a `Kernel`, given it and its operands.
call_kernel: Callable[..., Any]
#: Calls a `TracedOperator` or a `Recipe`, given it, its operands and its attributes.
call_traced: Callable[..., Any]
#: Prepares PyTorch for a call that overwrites operands, given the function's name and
#: those operands.
overwrite: Callable[..., Any]
#: Raises for operands that are leaves of autograd, whose values an op in place would
#: overwrite; given the op's name and the operands.
forbid_leaves: Callable[..., Any]


def is_compiling() -> bool:
    """Whether torch.compile is looking; what it sees has to be PyTorch's operators."""
    torch = sys.modules.get("torch")
    return torch is not None and torch.compiler.is_compiling()


def connect(
    *,
    op: Callable[..., Any],
    kernel: Callable[..., Any],
    traced: Callable[..., Any],
    leaves: Callable[..., Any],
    overwriting: Callable[..., Any],
    compiling: Callable[[], bool] | None = None,
) -> None:
    """Sets the functions above. With ``compiling``, kernels and functions ask that in the
    place of `is_compiling`."""
    global call_op, call_kernel, call_traced, forbid_leaves, overwrite, is_compiling
    call_op, call_kernel, call_traced, forbid_leaves = op, kernel, traced, leaves
    overwrite = overwriting
    if compiling is not None:
        is_compiling = compiling
