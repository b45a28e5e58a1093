# Part of Bastile, under the MIT License. See LICENSE.
"""Calls of kernels in the code that torch.compile generates.

PyTorch's generator would write a call of the registered operator by its name, and a
check of each result's sizes and strides. Here it writes a call of the operator's own
function instead, and no checks, as sizes and strides are known: a chain of small
kernels is bound by the host.

The generator's own way for operators that it does not know is used. Where a version of
PyTorch lacks a part of it, the generator does as it would without Bastile.
"""

import sys

import torch
from bastile import _log

_channel = _log.Channel("torch")

#: The name of the operator's own function in ``torch.ops.bastile``. Programs that
#: PyTorch keeps on disk have it, so it must not change.
_NAME = "direct_run"


def offer(function):
    """Has generated code call ``function`` in place of the operator `run`."""
    setattr(torch.ops.bastile, _NAME, function)


def install(operator):
    """Has PyTorch's generator, if it is imported, write such calls for ``operator``."""
    lowering = sys.modules.get("torch._inductor.lowering")
    if lowering is None or operator in lowering.lowerings:
        return
    try:
        # The operator's tag says which layouts inputs must have.
        lowering.make_fallback(operator, warn=False)
        register = lowering.register_lowering(operator, type_promotion_kind=None)
        register(_make_lowering(operator))
    except (AttributeError, TypeError) as error:
        lowering.lowerings.pop(operator, None)
        _channel.info(
            "what torch.compile generates calls kernels by their registered operator, "
            "which takes longer: PyTorch %s has another generator (%s)",
            torch.__version__,
            error,
        )


def _make_lowering(operator):
    from torch._inductor import ir
    from torch._inductor.virtualized import V
    from torch.utils import _pytree

    def lower(*arguments):
        outputs = ir.FallbackKernel.create(operator, *arguments)
        graph = V.graph
        if not graph.cpp_wrapper and not getattr(graph, "fx_wrapper", False):
            for output in outputs:
                output.inputs[0].python_kernel_name = f"torch.ops.bastile.{_NAME}"
                output.skip_size_stride_alignment_checks = True
        return _pytree.tree_map(ir.TensorBox.create, outputs)

    return lower
