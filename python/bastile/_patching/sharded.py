# Part of Bastile, under the MIT License. See LICENSE.
"""Layers whose parameters FSDP2 shards, for code that computes with their weights in
place of a call of the layer, which would gather these."""

import sys

from bastile._torch.operands import is_distributed


def is_unit(layer):
    """Whether FSDP2 shards ``layer`` by itself, or together with other modules."""
    distributed = sys.modules.get("torch.distributed.fsdp")
    return distributed is not None and isinstance(layer, distributed.FSDPModule)


def is_first_unit(layer):
    """Whether the first version of FSDP wraps ``layer`` by itself."""
    distributed = sys.modules.get("torch.distributed.fsdp")
    first = getattr(distributed, "FullyShardedDataParallel", ())
    return isinstance(layer, first)


def is_apart(layer):
    """Whether FSDP2 shards ``layer``, or what an adapter wraps, by itself."""
    return any(map(is_unit, layer.modules()))


def find_owner(layer, model):
    """The unit that shards parameters of ``layer``, a module of ``model``, where they are
    sharded now; None where they are not, or no unit of FSDP2 is known to have done it.
    It may be a module around the model, such as PEFT's, if modules of the model are
    units, too: these know of it."""
    parameters = [id(x) for x in layer.parameters() if is_sharded(x)]
    unit = next(filter(is_unit, model.modules()), None) if parameters else None
    if unit is None:
        return None
    # FSDP2 has no public way to ask for all units of a root.
    state = unit._get_fsdp_state()
    for other in getattr(getattr(state, "_state_ctx", None), "all_states", [state]):
        for group in _groups_of(other):
            if any(id(x.sharded_param) in parameters for x in group.fsdp_params):
                return next(filter(is_unit, other._modules), None)
    return model if is_unit(model) else None


def _groups_of(state):
    """The groups of parameters of a unit, of which older releases have one."""
    groups = getattr(state, "_fsdp_param_groups", None)
    if groups is None:
        groups = [getattr(state, "_fsdp_param_group", None)]
    return [group for group in groups if group is not None]


def whole(tensor):
    """A DTensor as a tensor; any other tensor itself."""
    return tensor.full_tensor() if is_distributed(tensor) else tensor


def is_sharded(weight):
    """Whether ``weight`` is a DTensor of which this process has a part."""
    return is_distributed(weight) and not all(
        placement.is_replicate() for placement in weight.placements
    )


class Gathered:
    """The unit ``unit`` of FSDP2 with its whole parameters, which a computation reads.

    As behind a call of the unit, the parameters are sharded again when the computation
    is over, unless they are to stay for the backward (``reshard_after_forward``), and
    its backward gathers them once more. FSDP2 reduces gradients and shards parameters
    at the end of each backward.
    """

    def __init__(self, unit):
        self._unit = unit
        unit.unshard()

    def release(self, result):
        """Ends the computation of ``result``, a tensor."""
        if result.requires_grad:
            if not self._is_resharded():
                return
            result.register_hook(self._gather_again)
        self.reshard()

    def reshard(self):
        """Ends it without a result."""
        self._unit.reshard()

    def _gather_again(self, _):
        self._unit.unshard()

    def _is_resharded(self):
        # FSDP2 has no public way to ask.
        groups = _groups_of(self._unit._get_fsdp_state())
        return any(getattr(x, "_reshard_after_forward", True) for x in groups)
