# Part of Bastile, under the MIT License. See LICENSE.
"""The functions of `bastile.ops` for log-probabilities. PyTorch is imported when one is
called."""

from typing import TYPE_CHECKING, Any

from bastile._torch.followers import follow

if TYPE_CHECKING:
    from torch import Tensor


@follow
def _register():
    """Registers the operators that programs of PyTorch may name."""
    from bastile._losses.log_probs import flops  # noqa: F401


def linear_log_probs(
    hidden: "Tensor",
    weight: "Tensor",
    targets: "Tensor",
    bias: "Tensor | None" = None,
    *,
    scale: float = 1.0,
    soft_cap: float = 0.0,
    temperature: float = 1.0,
    ignore_index: int = -100,
    returns: str | tuple[str, ...] = "log_prob",
    budget: int | None = None,
    recompute: bool = False,
) -> Any:
    """The log-probability of each token's target under a linear layer's softmax, and
    what else there is to say of that softmax, without all the logits at a time.

    For the logits ``l = hidden @ weight.T + bias``, the softmax is of

        z = soft_cap * tanh(scale * l / soft_cap) / temperature

    or of ``scale * l / temperature`` without a soft cap. Chunks of tokens are as in
    `linear_cross_entropy`. The backward computes the logits again, a chunk at a time,
    as each token has an upstream gradient of its own. Nothing waits for a GPU.

    Args:
        hidden: [..., H] of float16, bfloat16, float32 or float64.
        weight: [V, H] of the same type. Autocast converts both.
        targets: [...] of int64 or int32.
        bias: [V], or None.
        scale: what logits are multiplied by first, as ``logit_scale`` of Cohere.
        soft_cap: 0, the default, for none.
        temperature: what z is divided by.
        ignore_index: the target of tokens to ignore. All their results are 0, and they
            have no gradient.
        returns: the name of a result, or a tuple of names, which makes the result a
            tuple. Those that have gradients:

            - ``log_prob``: of the target; NaN, without a gradient, where the target
              is no class
            - ``entropy``: of the softmax, in nats
            - ``lse``: the logarithm of the sum of exp(z)

            and those that have none:

            - ``mean``, ``mean_square``: of z and of its square, over the classes
            - ``log_sum_square_probs``: the logarithm of the sum of the squares of all
              probabilities
            - ``argmax``: the class of the largest logit, the first of equal ones, int64
            - ``correct``: whether ``argmax`` is the target, bool
        budget: bytes of logits held at a time, by default as in
            `linear_cross_entropy`.
        recompute: whether the logits are cut by classes instead of by tokens, so that
            the weight's gradient needs no accumulator: the least memory. The logits are
            computed as often as without.

    Returns:
        [...] in the shape of ``targets``; float32 (float64 for float64) where nothing
        else is said.

    Raises:
        TypeError: for a type of elements that does not fit, and for a DTensor.
        ValueError: for shapes or devices that do not fit together, an option's value,
            or a weight that ZeRO-3 has partitioned.
        RuntimeError: when its gradients are differentiated again.
    """
    from bastile._losses.log_probs import api

    settings = {
        "scale": scale,
        "soft_cap": soft_cap,
        "temperature": temperature,
        "ignore_index": ignore_index,
        "budget": budget,
        "recompute": recompute,
    }
    return api.compute((hidden, weight, targets, bias), settings, returns)


def vocab_parallel_linear_log_probs(
    hidden: "Tensor",
    weight: "Tensor",
    targets: "Tensor",
    bias: "Tensor | None" = None,
    *,
    group: Any = None,
    first_class: int | None = None,
    classes: int | None = None,
    scale: float = 1.0,
    soft_cap: float = 0.0,
    temperature: float = 1.0,
    ignore_index: int = -100,
    returns: str | tuple[str, ...] = "log_prob",
    budget: int | None = None,
    recompute: bool = False,
) -> Any:
    """`linear_log_probs` where each process of a group has some of the classes.

    Every process calls it with the same hidden states, targets and options, and with
    its slice of the weight; every process gets the same results, the gradient of its
    slice, and the same gradient of the hidden states, summed over the processes in
    float32 (in float64 for float64). The processes exchange a few numbers for each
    token, once in the forward.

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
        budget: bytes of logits that a process holds at a time.

    The rest is as in `linear_log_probs`. Every process has to run the backward, with the
    same upstream gradients.
    """
    from bastile._losses import checks
    from bastile._losses.log_probs import api

    settings = {
        "scale": scale,
        "soft_cap": soft_cap,
        "temperature": temperature,
        "ignore_index": ignore_index,
        "budget": budget,
        "recompute": recompute,
    }
    of = checks.find_slice("linear_log_probs", weight, group, first_class, classes)
    return api.compute((hidden, weight, targets, bias), settings, returns, of)
