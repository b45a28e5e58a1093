"""What torch.compile's code generator writes for a call of a kernel.

It would write a call of the registered operator by its name, and a check of each
result's sizes and strides. The operator's own function is called instead, and what
is known of the results is not checked again: a chain of small kernels is bound by
the host, and this is a fifth of such a call.

Only what PyTorch's generator has for operators that it does not know is used here,
and where it lacks any of that, it does as it would.
"""

import sys

import torch

#: Where that function is. Programs that PyTorch keeps on disk have the name.
_NAME = "direct_run"


def offer(function):
    """Makes ``function`` what is called for the operator `run`."""
    setattr(torch.ops.bastile, _NAME, function)


def install(operator):
    """Has the generator, if it is there, write calls of ``operator`` so; once."""
    lowering = sys.modules.get("torch._inductor.lowering")
    if lowering is None or operator in lowering.lowerings:
        return
    try:
        # The layouts that inputs must have are said by the operator's tag.
        lowering.make_fallback(operator, warn=False)
        register = lowering.register_lowering(operator, type_promotion_kind=None)
        register(_make_lowering(operator))
    except (AttributeError, TypeError):
        lowering.lowerings.pop(operator, None)


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
