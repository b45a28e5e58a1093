# Part of Bastile, under the MIT License. See LICENSE.
"""What is asked of the tensors of every function of this room. ``call`` is the name of
the function, which messages begin with."""

from typing import NamedTuple

import torch
from bastile._torch.operands import is_distributed

_FLOATS = (torch.float16, torch.bfloat16, torch.float32, torch.float64)
#: Functions with a form for weights of which each process has some of the classes.
_PARALLEL = ("linear_cross_entropy", "linear_log_probs")


class Slice(NamedTuple):
    """Which of all classes the weight has: those from ``first`` on of ``classes``, which
    the processes of the group of this name share."""

    group: str | None
    first: int
    classes: int


def find_slice(call, weight, group, first_class, classes):
    """The `Slice` of this process, for arguments of the vocabulary-parallel forms."""
    import torch.distributed as dist

    if not dist.is_available() or not dist.is_initialized():
        raise RuntimeError(
            f"{call}: there are no processes to share the classes; call "
            "torch.distributed.init_process_group first"
        )
    group = dist.group.WORLD if group is None else group
    rank, size = dist.get_rank(group), dist.get_world_size(group)
    if rank < 0:
        raise ValueError(f"{call}: this process is not in 'group'")
    check_whole(call, "weight", weight)
    count = int(weight.shape[0])
    first = rank * count if first_class is None else first_class
    classes = size * count if classes is None else classes
    if not 0 <= first <= classes - count:
        raise ValueError(
            f"{call}: 'weight' has {count} classes from 'first_class' {first} on, "
            f"but there are {classes} 'classes'"
        )
    return Slice(group.group_name, first, classes)


def refuse_transformations(call):
    """Raises where a transformation of torch.func is at work."""
    if torch._C._are_functorch_transforms_active():
        raise NotImplementedError(
            f"'{call}' of bastile runs under no transformation of torch.func; use "
            "torch.autograd.grad or backward"
        )


def cast(*tensors):
    """As PyTorch's own linear layers, in the type that autocast asks for; some may be
    None."""
    device = tensors[0].device.type
    if device not in ("cpu", "cuda") or not torch.is_autocast_enabled(device):
        return tensors
    dtype = torch.get_autocast_dtype(device)
    return tuple(
        x.to(dtype) if x is not None and x.dtype != torch.float64 else x
        for x in tensors
    )


def take_divisor(call, num_items, reduction, hidden):
    """What the sum of the losses is divided by, as a tensor beside the hidden states, or
    None for the number of tokens."""
    if num_items is None:
        return None
    if reduction != "mean":
        raise ValueError(
            f"{call}: 'num_items' takes the place of the number of tokens in a "
            f"mean, but 'reduction' is {reduction!r}"
        )
    wide = torch.float64 if hidden.dtype == torch.float64 else torch.float32
    if isinstance(num_items, (str, list, tuple)):
        raise TypeError(f"{call}: 'num_items' must be a number, but is {num_items!r}")
    if not isinstance(num_items, torch.Tensor):
        return torch.full((), num_items, dtype=wide, device=hidden.device)
    if num_items.numel() != 1:
        raise ValueError(
            f"{call}: 'num_items' must be one number, but has shape "
            f"{list(num_items.shape)}"
        )
    return num_items.detach().reshape(()).to(hidden.device, wide)


def check_linear(call, hidden, weight, bias, prefix=""):
    """Raises what is wrong with the operands of a linear layer, whose names have the
    ``prefix``."""
    check_floats(call, f"{prefix}hidden", hidden)
    for name, tensor in (("weight", weight), ("bias", bias)):
        if tensor is not None and tensor.dtype != hidden.dtype:
            raise TypeError(
                f"{call}: '{prefix}{name}' has elements of type {tensor.dtype}, but "
                f"'{prefix}hidden' of type {hidden.dtype}"
            )
    if weight.dim() != 2 or not weight.numel():
        raise ValueError(
            f"{call}: '{prefix}weight' has shape {list(weight.shape)}, but it must be "
            "[classes, length of a hidden state], neither of them 0"
        )
    if hidden.dim() == 0 or hidden.shape[-1] != weight.shape[1]:
        raise ValueError(
            f"{call}: '{prefix}hidden' has shape {list(hidden.shape)}, but for "
            f"'{prefix}weight' of shape {list(weight.shape)} its last dimension must "
            f"be {weight.shape[1]}"
        )
    if bias is not None and bias.shape != weight.shape[:1]:
        raise ValueError(
            f"{call}: '{prefix}bias' has shape {list(bias.shape)}, but for "
            f"'{prefix}weight' of shape {list(weight.shape)} it must be "
            f"{[weight.shape[0]]}"
        )


def check_floats(call, name, tensor):
    if tensor.dtype not in _FLOATS:
        raise TypeError(
            f"{call}: '{name}' has elements of type {tensor.dtype}, but takes "
            "float16, bfloat16, float32 or float64"
        )


def check_targets(call, targets, hidden, prefix=""):
    if targets.dtype not in (torch.int64, torch.int32):
        raise TypeError(
            f"{call}: 'targets' has elements of type {targets.dtype}, but takes "
            "indices of classes, int64 or int32"
        )
    if targets.shape != hidden.shape[:-1]:
        raise ValueError(
            f"{call}: 'targets' has shape {list(targets.shape)}, but for "
            f"'{prefix}hidden' of shape {list(hidden.shape)} it must be "
            f"{list(hidden.shape[:-1])}"
        )


def check_place(call, tensors):
    """Raises where tensors, which are given by name, lie in different places."""
    (first, here), *others = tensors.items()
    for name, tensor in others:
        if tensor is not None and tensor.device != here.device:
            raise ValueError(
                f"{call}: operands lie in one place, but '{first}' is on "
                f"{here.device} and '{name}' is on {tensor.device}"
            )


def check_whole(call, name, tensor):
    """Refuses what is no tensor, and tensors of which another process holds the
    rest."""
    if not isinstance(tensor, torch.Tensor):
        raise TypeError(
            f"{call}: '{name}' must be a PyTorch tensor, but is a "
            f"{type(tensor).__name__}"
        )
    if is_distributed(tensor):
        advice = "give the whole tensor (`full_tensor()`)"
        if call in _PARALLEL:
            advice += (
                f", or a slice of the classes on each rank to vocab_parallel_{call}"
            )
        raise TypeError(f"{call}: '{name}' is a DTensor; {advice}")
    if _is_partitioned(tensor):
        raise ValueError(
            f"{call}: '{name}' is partitioned by ZeRO-3; gather it first "
            "(`deepspeed.zero.GatheredParameters`)"
        )


def check_still_whole(call, weight):
    """Refuses a weight, in a backward that computes the logits again, that was whole in
    the forward."""
    if _is_partitioned(weight):
        raise ValueError(
            f"{call}: 'weight' was partitioned again by ZeRO-3, but the backward "
            "computes the logits of it once more; gather it around the backward, too "
            "(`deepspeed.zero.GatheredParameters`)"
        )


def _is_partitioned(tensor):
    return tensor.numel() == 0 and hasattr(tensor, "ds_shape")
