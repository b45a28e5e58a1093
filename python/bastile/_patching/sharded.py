# Part of Bastile, under the MIT License. See LICENSE.
"""Layers whose parameters FSDP2 shards, for code that computes with their weights in
place of a call of the layer, which would gather these."""

import sys


def is_unit(layer):
    """Whether FSDP2 shards ``layer`` by itself, or together with other modules."""
    distributed = sys.modules.get("torch.distributed.fsdp")
    return distributed is not None and isinstance(layer, distributed.FSDPModule)


def is_apart(layer):
    """Whether FSDP2 shards ``layer``, or what an adapter wraps, by itself."""
    return any(map(is_unit, layer.modules()))


def is_sharded(weight):
    """Whether ``weight`` is a DTensor of which this process has a part."""
    distributed = sys.modules.get("torch.distributed.tensor")
    if distributed is None or not isinstance(weight, distributed.DTensor):
        return False
    return not all(placement.is_replicate() for placement in weight.placements)


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
        self._unit.reshard()

    def _gather_again(self, _):
        self._unit.unshard()

    def _is_resharded(self):
        # FSDP2 has no public way to ask.
        state = getattr(self._unit, "_get_fsdp_state", lambda: None)()
        group = getattr(state, "_fsdp_param_group", None)
        return getattr(group, "_reshard_after_forward", True)
