# Part of Bastile, under the MIT License. See LICENSE.
"""What several tests of patches need."""

import gc

import pytest
import torch
import torch.distributed as dist


@pytest.fixture
def set_default_type():
    """Sets PyTorch's default type for a test."""
    before = torch.get_default_dtype()
    yield torch.set_default_dtype
    torch.set_default_dtype(before)


@pytest.fixture
def mesh():
    """One process, as torch.distributed has them."""
    dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    yield dist.device_mesh.init_device_mesh("cpu", (1,))
    gc.collect()
    dist.destroy_process_group()
