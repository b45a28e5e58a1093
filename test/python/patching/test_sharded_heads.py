# Part of Bastile, under the MIT License. See LICENSE.
# RUN: %package-test %s
"""The loss through a last layer that FSDP2 shards by itself."""

import bastile
import pytest
import tiny_models
import torch
from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard
from torch.distributed.tensor import DTensor


@pytest.fixture(autouse=True)
def patched():
    with bastile.apply("llama"):
        yield


def make_sharded(mesh, **options):
    model = tiny_models.make("llama")
    for module in (*model.model.layers, model.model.norm, model.lm_head, model):
        fully_shard(module, mesh=mesh, **options)
    return model


def is_sharded(model):
    return isinstance(model.lm_head.weight, DTensor)


@pytest.mark.parametrize("is_recorded", [False, True])
def test_without_a_backward_the_weight_does_not_stay(is_recorded, mesh):
    model = make_sharded(mesh, reshard_after_forward=True)
    with torch.set_grad_enabled(is_recorded):
        outputs = model(**tiny_models.batch())
        assert is_sharded(model)
        assert outputs.logits.shape == (2, 12, 96)
        assert is_sharded(model)


def test_the_weight_stays_for_the_backward_where_it_is_to(mesh):
    model = make_sharded(mesh, reshard_after_forward=False)
    outputs = model(**tiny_models.batch())
    assert not is_sharded(model)
    outputs.loss.backward()
    assert is_sharded(model)


def test_steps_behind_a_forward_without_a_backward(mesh):
    losses = []
    for extra in (False, True):
        model = make_sharded(mesh, reshard_after_forward=True)
        optimizer = torch.optim.SGD(model.parameters(), lr=1.0)
        for number in range(2):
            loss = model(**tiny_models.batch(number)).loss
            loss.backward()
            if extra:
                model(**tiny_models.batch(7))
            optimizer.step()
            optimizer.zero_grad()
        losses.append(loss.item())
    assert losses[0] == losses[1]


@pytest.mark.parametrize("output", [None, torch.float32, torch.bfloat16])
def test_types_of_units(output, mesh):
    policy = MixedPrecisionPolicy(
        param_dtype=torch.bfloat16, reduce_dtype=torch.float32, output_dtype=output
    )
    model = make_sharded(mesh, mp_policy=policy)
    loss = model(**tiny_models.batch()).loss
    loss.backward()
    with bastile.apply("llama", fused_linear_cross_entropy=False):
        other = make_sharded(mesh, mp_policy=policy)
        expected = other(**tiny_models.batch()).loss
        expected.backward()
    torch.testing.assert_close(loss.float(), expected.float(), atol=0, rtol=1e-2)
    found, wanted = (x.lm_head.weight.grad.full_tensor() for x in (model, other))
    assert (found - wanted).norm() < 2e-2 * wanted.norm()
