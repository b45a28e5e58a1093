# Part of Bastile, under the MIT License. See LICENSE.
"""Calls of the loss: checks, and the forms that arguments may have."""

import functools
import sys
from typing import NamedTuple

import torch
from bastile._losses import node
from bastile._losses.options import Operands, Options

_NAME = "linear_cross_entropy"
_FLOATS = (torch.float16, torch.bfloat16, torch.float32, torch.float64)


class Slice(NamedTuple):
    """Which of all classes the weight has: those from ``first`` on of ``classes``, which
    the processes of the group of this name share."""

    group: str | None
    first: int
    classes: int


def find_slice(weight, group, first_class, classes):
    """The `Slice` of this process, for arguments of
    `bastile.ops.vocab_parallel_linear_cross_entropy`."""
    import torch.distributed as dist

    if not dist.is_available() or not dist.is_initialized():
        raise RuntimeError(
            f"{_NAME}: there are no processes to share the classes; call "
            "torch.distributed.init_process_group first"
        )
    group = dist.group.WORLD if group is None else group
    rank, size = dist.get_rank(group), dist.get_world_size(group)
    if rank < 0:
        raise ValueError(f"{_NAME}: this process is not in 'group'")
    _check_whole("weight", weight)
    count = int(weight.shape[0])
    first = rank * count if first_class is None else first_class
    classes = size * count if classes is None else classes
    if not 0 <= first <= classes - count:
        raise ValueError(
            f"{_NAME}: 'weight' has {count} classes from 'first_class' {first} on, "
            f"but there are {classes} 'classes'"
        )
    return Slice(group.group_name, first, classes)


def compute(operands, settings, returns, num_items=None, skip_ignored=False, of=None):
    """What `bastile.ops.linear_cross_entropy` returns for `Operands`, `Settings` and the
    arguments of these names. The weight has the `Slice` ``of`` the classes, by default
    all of them."""
    if returns is None:
        raise TypeError(f"{_NAME}: 'returns' must name results, but is None")
    if torch._C._are_functorch_transforms_active():
        raise NotImplementedError(
            f"'{_NAME}' of bastile runs under no transformation of torch.func; use "
            "torch.autograd.grad or backward"
        )
    names = (returns,) if isinstance(returns, str) else tuple(returns)
    for name, tensor in zip(Operands._fields, operands):
        if tensor is not None or name in Operands._fields[:3]:
            _check_whole(name, tensor)
    if of is None:
        of = Slice(None, 0, int(operands.weight.shape[0]))
    options, given = _options(settings, names, of)
    operands = _autocast(operands)
    _check(operands)
    _check_class_weights(operands.class_weights, options)
    _check_place(operands)
    hidden, targets = operands.hidden, operands.targets
    divisor = _divisor(num_items, settings, hidden)
    rows = hidden.reshape(-1, hidden.shape[-1])
    columns = targets.reshape(-1)
    index = None
    if skip_ignored:
        index = (columns != settings.ignore_index).nonzero().squeeze(1)
        rows, columns = rows.index_select(0, index), columns.index_select(0, index)
    flat = Operands(
        rows, operands.weight, columns, operands.bias, operands.class_weights
    )
    results = node.call(flat, divisor, options, given)
    made = {
        name: _spread(values, index, targets.shape) if values.dim() else values
        for name, values in zip(("loss", *options.others), results)
    }
    if isinstance(returns, str):
        return made[returns]
    return tuple(made[name] for name in names)


def _options(settings, names, place):
    """The options, and as registered operators take them."""
    if torch.compiler.is_compiling():
        options = Options(settings, names, *place)
        return options, options.given
    return _known_options(settings, names, place)


@functools.lru_cache(maxsize=256)
def _known_options(settings, names, place):
    """As `_options`; kept, as calls repeat and a look-up is faster than the checks."""
    options = Options(settings, names, *place)
    return options, options.given


def _spread(values, index, shape):
    """Values of tokens in the targets' shape, 0 for those that were skipped."""
    if index is not None:
        whole = values.new_zeros(shape.numel())
        values = whole.index_copy(0, index, values)
    return values.reshape(shape)


def _autocast(operands):
    """As PyTorch's own linear layers, in the type that autocast asks for."""
    hidden, weight, targets, bias, class_weights = operands
    device = hidden.device.type
    if device not in ("cpu", "cuda") or not torch.is_autocast_enabled(device):
        return operands
    dtype = torch.get_autocast_dtype(device)
    hidden, weight, bias = (
        x.to(dtype) if x is not None and x.dtype != torch.float64 else x
        for x in (hidden, weight, bias)
    )
    return Operands(hidden, weight, targets, bias, class_weights)


def _divisor(num_items, settings, hidden):
    if num_items is None:
        return None
    if settings.reduction != "mean":
        raise ValueError(
            f"{_NAME}: 'num_items' takes the place of the number of tokens in a "
            f"mean, but 'reduction' is {settings.reduction!r}"
        )
    wide = torch.float64 if hidden.dtype == torch.float64 else torch.float32
    if isinstance(num_items, (str, list, tuple)):
        raise TypeError(f"{_NAME}: 'num_items' must be a number, but is {num_items!r}")
    if not isinstance(num_items, torch.Tensor):
        return torch.full((), num_items, dtype=wide, device=hidden.device)
    if num_items.numel() != 1:
        raise ValueError(
            f"{_NAME}: 'num_items' must be one number, but has shape "
            f"{list(num_items.shape)}"
        )
    return num_items.detach().reshape(()).to(hidden.device, wide)


def _check(operands):
    hidden, weight, targets, bias, _ = operands
    if hidden.dtype not in _FLOATS:
        raise TypeError(
            f"{_NAME}: 'hidden' has elements of type {hidden.dtype}, but takes "
            "float16, bfloat16, float32 or float64"
        )
    for name, tensor in (("weight", weight), ("bias", bias)):
        if tensor is not None and tensor.dtype != hidden.dtype:
            raise TypeError(
                f"{_NAME}: '{name}' has elements of type {tensor.dtype}, but "
                f"'hidden' of type {hidden.dtype}"
            )
    if weight.dim() != 2 or not weight.numel():
        raise ValueError(
            f"{_NAME}: 'weight' has shape {list(weight.shape)}, but it must be "
            "[classes, length of a hidden state], neither of them 0"
        )
    if hidden.dim() == 0 or hidden.shape[-1] != weight.shape[1]:
        raise ValueError(
            f"{_NAME}: 'hidden' has shape {list(hidden.shape)}, but for 'weight' of "
            f"shape {list(weight.shape)} its last dimension must be "
            f"{weight.shape[1]}"
        )
    if targets.dtype not in (torch.int64, torch.int32):
        raise TypeError(
            f"{_NAME}: 'targets' has elements of type {targets.dtype}, but takes "
            "indices of classes, int64 or int32"
        )
    if targets.shape != hidden.shape[:-1]:
        raise ValueError(
            f"{_NAME}: 'targets' has shape {list(targets.shape)}, but for 'hidden' "
            f"of shape {list(hidden.shape)} it must be {list(hidden.shape[:-1])}"
        )
    if bias is not None and bias.shape != weight.shape[:1]:
        raise ValueError(
            f"{_NAME}: 'bias' has shape {list(bias.shape)}, but for 'weight' of "
            f"shape {list(weight.shape)} it must be {[weight.shape[0]]}"
        )


def _check_class_weights(weights, options):
    if weights is None:
        return
    if list(weights.shape) != [options.classes]:
        raise ValueError(
            f"{_NAME}: 'class_weights' has shape {list(weights.shape)}, but for "
            f"{options.classes} classes it must be {[options.classes]}"
        )
    if weights.dtype not in _FLOATS:
        raise TypeError(
            f"{_NAME}: 'class_weights' has elements of type {weights.dtype}, but "
            "takes float16, bfloat16, float32 or float64"
        )
    if weights.requires_grad:
        raise ValueError(f"{_NAME}: 'class_weights' has no gradient; detach it")


def _check_place(operands):
    hidden = operands.hidden
    for name, tensor in zip(Operands._fields[1:], operands[1:]):
        if tensor is not None and tensor.device != hidden.device:
            raise ValueError(
                f"{_NAME}: operands lie in one place, but 'hidden' is on "
                f"{hidden.device} and '{name}' is on {tensor.device}"
            )


def _check_whole(name, tensor):
    """Refuses tensors of which another process holds the rest."""
    if not isinstance(tensor, torch.Tensor):
        raise TypeError(
            f"{_NAME}: '{name}' must be a PyTorch tensor, but is a "
            f"{type(tensor).__name__}"
        )
    distributed = sys.modules.get("torch.distributed.tensor")
    if distributed is not None and isinstance(tensor, distributed.DTensor):
        raise TypeError(
            f"{_NAME}: '{name}' is a DTensor; give the whole tensor "
            "(`full_tensor()`), or a slice of the classes on each rank to "
            "vocab_parallel_linear_cross_entropy"
        )
    if tensor.numel() == 0 and hasattr(tensor, "ds_shape"):
        raise ValueError(
            f"{_NAME}: '{name}' is partitioned by ZeRO-3; gather it first "
            "(`deepspeed.zero.GatheredParameters`)"
        )
