# Part of Bastile, under the MIT License. See LICENSE.
"""What processes tell each other which share the classes."""

import torch
import torch.distributed as dist
from torch.distributed.distributed_c10d import _resolve_process_group


def gather(own, group):
    """The tensors ``own`` of all processes of the group of this name, stacked."""
    group = _resolve_process_group(group)
    own = own.contiguous()
    found = [torch.empty_like(own) for _ in range(dist.get_world_size(group))]
    dist.all_gather(found, own, group=group)
    return torch.stack(found)


def add_up(tensor, group):
    """Adds up the tensors of all processes, in place."""
    dist.all_reduce(tensor, group=_resolve_process_group(group))
