# Part of Bastile, under the MIT License. See LICENSE.
"""The functions of `bastile.ops` that are no ops of the dialect, as PyTorch multiplies
matrices in them. PyTorch is imported when one is called."""

from typing import TYPE_CHECKING, Any

from bastile._losses.options import Operands, Settings
from bastile._torch.followers import follow

if TYPE_CHECKING:
    from torch import Tensor


@follow
def _register():
    """Registers the operators that programs of PyTorch may name."""
    from bastile._losses import flops  # noqa: F401


def linear_cross_entropy(
    hidden: "Tensor",
    weight: "Tensor",
    targets: "Tensor",
    bias: "Tensor | None" = None,
    *,
    class_weights: "Tensor | None" = None,
    reduction: str = "mean",
    ignore_index: int = -100,
    label_smoothing: float = 0.0,
    z_loss: float = 0.0,
    soft_cap: float = 0.0,
    temperature: float = 1.0,
    token_scaling: bool = False,
    num_items: "float | Tensor | None" = None,
    skip_ignored: bool = False,
    budget: int | None = None,
    recompute: bool = False,
    returns: str | tuple[str, ...] = "loss",
) -> Any:
    """The cross-entropy of ``hidden @ weight.T + bias``, a chunk of tokens at a time.

    PyTorch multiplies the matrices; the compiler's kernel makes of each chunk of
    logits the losses and, in the same memory, the gradient. The gradients of
    hidden states, weight and bias are computed with the loss where they are
    wanted, and the backward multiplies them by the upstream gradient. With
    ``reduction="none"`` the backward computes the logits again instead.

    Nothing synchronizes with the GPU, except for ``skip_ignored``. Shapes being
    equal, a call can be captured in a CUDA graph.

    Args:
        hidden: [..., H] of float16, bfloat16, float32 or float64.
        weight: [V, H] of the same type. Autocast converts both.
        targets: [...] of int64 or int32.
        bias: [V], or None.
        class_weights: [V], or None; they have no gradient.
        reduction, ignore_index, label_smoothing, z_loss, soft_cap, temperature,
            token_scaling: as in ``bastile.ops.cross_entropy``.
        num_items: what to divide the sum of the losses by, for "mean": a number
            or a tensor of one, such as the tokens of all accumulated batches. A
            tensor on another device is copied first.
        skip_ignored: whether tokens to ignore are left out of the products, which
            waits for the GPU. Their results beside the loss are 0.
        budget: bytes of logits held at a time. By default the bytes of all logits
            if those are at most 4 times the weight's, otherwise 2 times the
            weight's, and at least 64 MiB; with ``recompute``, those of 8192
            classes.
        recompute: whether the logits are computed twice, slab by slab of the
            classes, so that the weight's gradient needs no accumulator: the least
            memory, for a fourth product of matrices.
        returns: ``"loss"``, or a tuple of names out of loss, lse, correct, invalid
            and predicted, which makes the result a tuple. lse, correct and predicted
            are those of each token, in the shape of ``targets``; only the loss has a
            gradient.

    Memory beside the operands', for T tokens of element size e, in chunks of C:

        C V e  +  T H e  +  V H e           with one chunk, C = T
        max(C V e, V H e)  +  T H e  +  4 V H    with several
        T v e  +  V H e  +  T H (4 + e)     with ``recompute``, in slabs of v

    of which the gradients are part, where they are wanted. The sum over several
    chunks or slabs is float32; float16 gradients are, until the backward has
    scaled them.

    Returns:
        The loss, float32 (float64 for float64): a number, or [...] for "none".

    Raises:
        TypeError: for a type of elements that does not fit, and for a DTensor.
        ValueError: for shapes or devices that do not fit together, an option's
            value, or a weight that ZeRO-3 has partitioned.
        RuntimeError: when its gradients are differentiated again.
    """
    from bastile._losses import api

    settings = Settings(
        reduction,
        ignore_index,
        label_smoothing,
        z_loss,
        soft_cap,
        temperature,
        budget,
        recompute,
        token_scaling,
    )
    operands = Operands(hidden, weight, targets, bias, class_weights)
    return api.compute(operands, settings, returns, num_items, skip_ignored)


def vocab_parallel_linear_cross_entropy(
    hidden: "Tensor",
    weight: "Tensor",
    targets: "Tensor",
    bias: "Tensor | None" = None,
    *,
    group: Any = None,
    first_class: int | None = None,
    classes: int | None = None,
    class_weights: "Tensor | None" = None,
    reduction: str = "mean",
    ignore_index: int = -100,
    label_smoothing: float = 0.0,
    z_loss: float = 0.0,
    soft_cap: float = 0.0,
    temperature: float = 1.0,
    token_scaling: bool = False,
    num_items: "float | Tensor | None" = None,
    skip_ignored: bool = False,
    budget: int | None = None,
    returns: str | tuple[str, ...] = "loss",
) -> Any:
    """`linear_cross_entropy` where each process of a group has some of the classes.

    Every process calls it with the same hidden states, targets and options, and
    with its slice of the weight; every process gets the same loss, the gradient
    of its slice, and the same gradient of the hidden states, summed over the
    processes in float32 (in float64 for float64). For each chunk of tokens, two
    small reductions put together what the slices say of each token.

    Args:
        hidden: [..., H], the same in every process.
        weight: [v, H], this process' classes.
        targets: [...], of all classes, the same in every process.
        bias: [v], or None.
        group: the ``torch.distributed`` group, by default of all processes.
        first_class: the class of the first row of ``weight``, by default the rank
            times v, as where all slices are equal.
        classes: V, the number of all classes, by default the number of processes
            times v.
        class_weights: [V], of all classes, or None.
        budget: bytes of logits that a process holds at a time, where slices are
            equal; otherwise, chunks are those of equal slices.

    The rest is as in `linear_cross_entropy`.
    """
    from bastile._losses import api, checks

    settings = Settings(
        reduction,
        ignore_index,
        label_smoothing,
        z_loss,
        soft_cap,
        temperature,
        budget,
        token_scaling=token_scaling,
    )
    operands = Operands(hidden, weight, targets, bias, class_weights)
    of = checks.find_slice("linear_cross_entropy", weight, group, first_class, classes)
    return api.compute(operands, settings, returns, num_items, skip_ignored, of)
