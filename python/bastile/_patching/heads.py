# Part of Bastile, under the MIT License. See LICENSE.
"""The loss of hidden states through the last layer of a model, also where that layer
is sharded, partitioned or adapted."""

import warnings

import torch

from bastile import functional as F
from bastile import ops
from bastile._patching import modules, sharded
from bastile._torch.operands import is_distributed


def loss(head, hidden, targets, *, items, ignore_index, soft_cap, temperature):
    """The loss, and the share of the tokens that count which are predicted.

    ``hidden`` has the shape [..., size] and ``targets`` [...]; ``head`` is the
    module that makes logits. The sum of the losses is divided by ``items`` or, if
    that is None, by the number of tokens that count.
    """
    options = {
        "ignore_index": ignore_index,
        "soft_cap": soft_cap,
        "temperature": temperature,
    }
    found = _operands(head, hidden)
    if found is None:
        layer = head if sharded.is_unit(head) else _chosen(head)
        value, correct = _of_logits(layer(hidden), targets, items, options)
    else:
        hidden, weight, bias, gathered = found
        targets = targets.to(hidden.device)
        value, correct = ops.linear_cross_entropy(
            hidden,
            weight,
            targets,
            bias,
            num_items=items,
            returns=("loss", "correct"),
            **options,
        )
        for unit in gathered:
            unit.release(value)
    counts = targets != ignore_index
    accuracy = (correct.bool() & counts).sum() / counts.sum().clamp(min=1)
    return value, accuracy


def _of_logits(logits, targets, items, options):
    if is_distributed(logits):
        loss = of_distributed(logits, targets, items, **options)
        return loss, sharded.whole(logits.detach().argmax(-1)) == sharded.whole(targets)
    loss, correct = F.cross_entropy(
        logits.flatten(0, -2),
        targets.flatten().to(logits.device),
        reduction="mean" if items is None else "sum",
        return_correct=True,
        **options,
    )
    return divide(loss, items), correct.view(targets.shape)


def of_distributed(
    logits, targets, items, *, ignore_index, soft_cap=None, temperature=1.0
):
    """The loss of logits [..., classes] that are a DTensor, by PyTorch: under
    `torch.distributed.tensor.parallel.loss_parallel`, which looks for its function, no
    process needs those of all classes."""
    logits, targets = logits.float(), targets.to(logits.device)
    if soft_cap:
        logits = torch.tanh(logits / soft_cap) * soft_cap
    if temperature != 1:
        logits = logits / temperature
    value = torch.nn.functional.cross_entropy(
        logits.flatten(0, -2),
        targets.flatten(),
        ignore_index=ignore_index,
        reduction="mean" if items is None else "sum",
    )
    return divide(value, items)


def logits(model, head, hidden):
    """The logits of hidden states, for those whose loss was computed by `loss`. ``head``
    is the module of ``model`` that makes them."""
    if torch.is_grad_enabled() and sharded.is_apart(head):
        # The layer is not called, as the loss does not call it: FSDP's hooks would
        # reduce the weight's gradient before the loss has added its own.
        found = _operands(head, hidden)
        if found is not None:
            *operands, gathered = found
            result = torch.nn.functional.linear(*operands)
            for unit in gathered:
                unit.release(result)
            return result
    if not torch.compiler.is_compiling() and _is_freed(_chosen(head)):
        raise RuntimeError(
            "outputs.logits were read behind the forward of a model that FSDP shards, "
            "which has freed the weight of the last layer. Have the forward make them, "
            "model(..., skip_logits=False), or shard the model by FSDP2's fully_shard"
        )
    unit = sharded.find_owner(head, model)
    if unit is None:
        return head(hidden)
    # Behind the forward, the layer's parameters are sharded with those of the unit.
    gathered = sharded.Gathered(unit)
    result = head(hidden)
    gathered.release(result)
    return result


def _is_freed(layer):
    """Whether the first version of FSDP has taken the memory of a layer's weight, of
    which it leaves a shard, or a view of memory that is no longer there."""
    layer = getattr(layer, "base_layer", layer)
    weight = getattr(layer, "weight", None)
    # A layer that FSDP wraps by itself gathers its weight in its forward.
    is_wrapped = sharded.is_first_unit(layer)
    if is_wrapped or type(weight) not in (torch.Tensor, torch.nn.Parameter):
        return False
    is_shard = getattr(weight, "_fsdp_flattened", False) and weight.dim() != 2
    return is_shard or (weight.nbytes > 0 and not weight.untyped_storage().nbytes())


def is_of_deepspeed(head):
    """Whether DeepSpeed's ZeRO-3 manages the layer's parameters."""
    return any(hasattr(x, "ds_id") for x in head.parameters())


def divide(loss, items):
    """A sum of losses as the mean over ``items``; the loss itself without them."""
    if items is None:
        return loss
    if isinstance(items, torch.Tensor):
        items = items.to(loss.device)
    return loss / items


def _chosen(head):
    """The layer itself: where PEFT wraps it, the copy that the wrapper would call."""
    copies = getattr(head, "modules_to_save", None)
    if copies is None:
        return head
    active = [name for name in head.active_adapters if name in copies]
    if head.disable_adapters or not active:
        return head.original_module
    return copies[active[0]]


def _operands(head, hidden):
    """Hidden states, weight and bias whose product are the logits, and the units of
    FSDP2 that have to be released behind it; None for a layer that only itself knows
    how to compute."""
    gathered = []
    layer = _chosen(head)
    if layer is not head and sharded.is_unit(head):
        gathered.append(sharded.Gathered(head))
    found = None
    try:
        found = _operands_of(layer, hidden, gathered)
    finally:
        if found is None:
            for unit in gathered:
                unit.reshard()
    return None if found is None else (*found, gathered)


def _operands_of(layer, hidden, gathered):
    """The operands of a layer itself; adds to ``gathered`` what they are parameters of."""
    if hasattr(layer, "lora_A") and hasattr(layer, "base_layer"):
        return _adapted(layer, hidden, gathered)
    if type(layer).forward is not modules.LINEAR or _is_hooked(layer):
        _warn_once(layer)
        return None
    weight = _weight(layer, gathered)
    # FSDP2 has parameters of a type of their own, and converts what units are given.
    dtype = weight.dtype if gathered else hidden.dtype
    return hidden.to(weight.device, dtype), weight, layer.bias


def _is_hooked(head):
    """Whether something computes in the layer's place, or beside it. What Accelerate
    does to layers that are not offloaded only moves tensors, and FSDP and DeepSpeed
    gather what `_weight` asks for."""
    if modules.has_global_hooks():
        return True
    if modules.has_hooks(head) and not _is_partitioned(head):
        return True
    if "forward" not in vars(head):
        return False
    return not hasattr(head, "_hf_hook") or head.weight.is_meta


def _is_partitioned(head):
    return sharded.is_unit(head) or hasattr(head.weight, "ds_id")


def _adapted(head, hidden, gathered):
    """The operands of a layer with LoRA as one layer of longer rows: the rows of the
    weight beside those of B, for hidden states beside their products with A."""
    if sharded.is_unit(head):
        gathered.append(sharded.Gathered(head))
    found = _operands_of(head.base_layer, hidden, gathered)
    if found is None or head.disable_adapters or head.merged:
        return found
    names = [name for name in head.active_adapters if name in head.lora_A]
    if any(type(head.lora_A[name]) is not torch.nn.Linear for name in names) or any(
        name in getattr(head, "lora_variant", ()) for name in names
    ):
        _warn_once(head)
        return None
    hidden, weight, bias = found
    rows, columns = [hidden], [weight]
    for name in names:
        a, b = head.lora_A[name], head.lora_B[name]
        inner = a(head.lora_dropout[name](hidden.to(a.weight.dtype)))
        rows.append((inner * head.scaling[name]).to(hidden.dtype))
        columns.append(b.weight.to(weight.dtype))
        if b.bias is not None:
            extra = b.bias * head.scaling[name]
            bias = extra if bias is None else bias + extra
    return torch.cat(rows, -1), torch.cat(columns, -1), bias


def _weight(head, gathered):
    """The weight of the layer, the whole one where it is sharded."""
    weight = head.weight
    if sharded.is_unit(head):
        # FSDP shards the layer by itself, so that nobody has gathered the weight yet.
        gathered.append(sharded.Gathered(head))
        weight = head.weight
    elif is_distributed(weight):
        weight = _local(weight)
    if weight.numel() == 0:
        raise ValueError(
            f"the weight of the last layer has shape {list(weight.shape)} here: it is "
            "partitioned, as DeepSpeed's ZeRO-3 does it, and was not gathered when it "
            "was asked for. Leave the fused loss out: "
            "bastile.apply(fused_linear_cross_entropy=False)"
        )
    return weight


def _local(weight):
    """A DTensor that every process has as a whole, as a tensor."""
    if not sharded.is_sharded(weight):
        return weight.to_local()
    raise TypeError(
        "the weight of the last layer is a DTensor with placements "
        f"{weight.placements}, of which the fused loss would need the whole. Shard "
        "the model by FSDP2's fully_shard, keep the last layer replicated, or leave "
        "the fused loss out: bastile.apply(fused_linear_cross_entropy=False)"
    )


_warned = set()


@torch.compiler.disable
def _warn_once(head):
    kind = type(head)
    if kind in _warned:
        return
    _warned.add(kind)
    reason = f"is a {kind.__module__}.{kind.__qualname__}"
    if kind.forward is modules.LINEAR:
        reason = "has hooks or another forward"
    warnings.warn(
        f"the last layer {reason}, and computes the logits by itself: the loss is made "
        "of all of them at once",
        RuntimeWarning,
        stacklevel=2,
    )
