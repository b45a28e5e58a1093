# Part of Bastile, under the MIT License. See LICENSE.
# RUN: %package-test %s
"""The loss through a last layer that is sharded, and logits that are read later."""

import bastile
import pytest
import tiny_models
import torch
from bastile._patching import heads
from torch.distributed.fsdp import (
    FullyShardedDataParallel,
    MixedPrecisionPolicy,
    fully_shard,
)
from torch.distributed.tensor import DTensor, Shard
from torch.distributed.tensor.parallel import (
    ColwiseParallel,
    loss_parallel,
    parallelize_module,
)


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


def run_without_the_loss(model):
    """The outputs with the model's own loss, and the gradients."""
    with bastile.apply("llama", fused_linear_cross_entropy=False):
        return tiny_models.run(model, tiny_models.batch())


def expect_alike(outputs, model, plain):
    """Compares outputs of ``model`` with those of ``plain``, which nothing shards, and
    the gradient of embeddings behind a backward."""
    outputs.loss.backward()
    expected, gradients = run_without_the_loss(plain)
    torch.testing.assert_close(outputs.loss.detach(), expected.loss.detach())
    wanted = next(x for name, x in gradients.items() if "embed_tokens" in name)
    found = model.model.embed_tokens.weight.grad.full_tensor()
    assert (found - wanted).norm() < 1e-5 * wanted.norm()
    return expected


@pytest.mark.parametrize("is_flat", [False, True])
def test_the_first_version_of_fsdp(is_flat, mesh):
    model = tiny_models.make("llama")
    unit = FullyShardedDataParallel(
        model, use_orig_params=not is_flat, device_id=torch.device("cpu")
    )
    outputs = unit(**tiny_models.batch())
    outputs.loss.backward()
    expected, gradients = run_without_the_loss(tiny_models.make("llama"))
    torch.testing.assert_close(outputs.loss, expected.loss)
    norms = [x.grad.norm() for x in unit.parameters() if x.grad is not None]
    wanted = [x.norm() for x in gradients.values()]
    found, wanted = (torch.stack(x).norm() for x in (norms, wanted))
    torch.testing.assert_close(found, wanted)
    torch.testing.assert_close(outputs.logits, expected.logits)


def test_memory_that_the_first_version_has_freed():
    model = tiny_models.make("llama")
    outputs = model(**tiny_models.batch())
    model.lm_head.weight.untyped_storage().resize_(0)
    with pytest.raises(RuntimeError, match=r"model\(\.\.\., skip_logits=False\)"):
        _ = outputs.logits


def test_a_layer_that_the_first_version_wraps_by_itself(mesh):
    model = tiny_models.make("llama")
    model.lm_head = FullyShardedDataParallel(
        model.lm_head, device_id=torch.device("cpu"), use_orig_params=True
    )
    with pytest.warns(RuntimeWarning, match="computes the logits by itself"):
        outputs = model(**tiny_models.batch())
    model.lm_head.weight.untyped_storage().resize_(0)
    assert not heads._is_freed(model.lm_head)
    assert outputs.loss.isfinite()


class Around(torch.nn.Module):
    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, **inputs):
        return self.model(**inputs)


@pytest.mark.parametrize("is_resharded", [False, True])
def test_a_unit_around_the_model(is_resharded, mesh):
    model = tiny_models.make("llama")
    around = Around(model)
    for layer in model.model.layers:
        fully_shard(layer, mesh=mesh)
    fully_shard(around, mesh=mesh, reshard_after_forward=is_resharded)
    outputs = around(**tiny_models.batch())
    with torch.no_grad():
        before = outputs.logits
    expected = expect_alike(outputs, model, tiny_models.make("llama"))
    torch.testing.assert_close(before, expected.logits.detach())


@pytest.mark.parametrize(
    "options",
    [
        dict(target_modules=["q_proj", "lm_head"]),
        dict(target_modules=["q_proj"], modules_to_save=["lm_head"]),
    ],
)
def test_adapted_layers_that_are_units(options, mesh):
    peft = pytest.importorskip("peft")

    def make():
        torch.manual_seed(1)
        config = peft.LoraConfig(r=4, init_lora_weights=False, **options)
        model = peft.get_peft_model(tiny_models.make("llama"), config)
        inner = model.base_model.model
        inner.model.embed_tokens.weight.requires_grad_()
        return model, inner

    model, inner = make()
    for unit in (*inner.model.layers, inner.lm_head, model):
        fully_shard(unit, mesh=mesh)
    outputs = model(**tiny_models.batch())
    expected = expect_alike(outputs, inner, make()[0])
    with torch.no_grad():
        torch.testing.assert_close(outputs.logits, expected.logits.detach())


@pytest.mark.parametrize("is_fused", [False, True])
def test_classes_of_several_processes(is_fused, mesh):
    model = tiny_models.make("llama")
    classes = ColwiseParallel(output_layouts=Shard(-1), use_local_output=False)
    parallelize_module(model, mesh, {"lm_head": classes})
    options = dict(fused_linear_cross_entropy=is_fused, cross_entropy=True)
    with bastile.apply("llama", **options), loss_parallel():
        loss = model(**tiny_models.batch()).loss
        loss.backward()
    expected, gradients = tiny_models.run(
        tiny_models.make("llama"), tiny_models.batch()
    )
    torch.testing.assert_close(loss.full_tensor().detach(), expected.loss.detach())
    found = model.lm_head.weight.grad.full_tensor()
    torch.testing.assert_close(found, gradients["lm_head.weight"])
