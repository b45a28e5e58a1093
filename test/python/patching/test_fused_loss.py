# Part of Bastile, under the MIT License. See LICENSE.
# RUN: %package-test %s
"""The loss without logits: what a forward takes and returns, and last layers that
are adapted, wrapped, hooked or sharded."""

import bastile
import pytest
import tiny_models
import torch
import torch.nn.utils.prune
import transformers
from bastile._patching import heads


@pytest.fixture(autouse=True)
def patched():
    with bastile.apply("llama") as patches:
        yield patches


@pytest.fixture
def model():
    return tiny_models.make("llama")


def loss_of_logits(model, inputs, **options):
    """What the model as it was makes of the same."""
    return tiny_models.run(model, inputs, skip_logits=False, **options)


def assert_same(results, expected):
    assert torch.allclose(results[0].loss, expected[0].loss)
    assert results[1].keys() == expected[1].keys()
    for name, gradient in results[1].items():
        assert torch.allclose(gradient, expected[1][name], atol=1e-6), name


def test_logits_are_there_in_evaluation(model):
    outputs = model.eval()(**tiny_models.batch())
    assert outputs.logits is not None
    assert outputs.loss is not None


def test_logits_are_there_without_labels(model):
    assert model(tiny_models.batch()["input_ids"]).logits.shape == (2, 12, 96)


def test_evaluation_without_logits_on_request(model):
    inputs = tiny_models.batch()
    outputs = model.eval()(**inputs, skip_logits=True)
    assert outputs.logits is None
    assert torch.allclose(outputs.loss, model(**inputs).loss)


def test_a_loss_of_the_users_own(model):
    model.loss_function = lambda logits, labels, **_: logits.mean()
    outputs = model(**tiny_models.batch())
    assert torch.equal(outputs.loss, outputs["logits"].mean())


def test_a_loss_of_a_class_of_the_users_own():
    class Mine(transformers.LlamaForCausalLM):
        def loss_function(self, logits, labels, **_):
            return logits.mean()

    model = Mine(tiny_models.configuration("llama")).train()
    outputs = model(**tiny_models.batch())
    assert torch.equal(outputs.loss, outputs["logits"].mean())


def test_a_loss_that_replaces_transformers(model, monkeypatch):
    mapping = transformers.loss.loss_utils.LOSS_MAPPING
    monkeypatch.setitem(mapping, "ForCausalLM", lambda logits, *_, **__: logits.mean())
    outputs = model(**tiny_models.batch())
    assert torch.equal(outputs.loss, outputs["logits"].mean())


@pytest.mark.parametrize("name", ["class", "type", "function"])
def test_a_loss_that_transformers_chooses(name, model, monkeypatch):
    """By the name of a class or by the type that a model has, and of what
    Transformers' own loss is made."""
    utils = transformers.loss.loss_utils
    own = lambda logits, *_, **__: logits.mean()  # noqa: E731
    if name == "class":
        monkeypatch.setitem(utils.LOSS_MAPPING, "LlamaForCausalLM", own)
        model = tiny_models.make("llama")
    elif name == "type":
        monkeypatch.setitem(utils.LOSS_MAPPING, "Mine", own)
        model.loss_type = "Mine"
    else:
        monkeypatch.setattr(utils, "fixed_cross_entropy", own)
    outputs = model(**tiny_models.batch())
    torch.testing.assert_close(outputs.loss, outputs["logits"].mean())


@pytest.mark.filterwarnings("ignore:the last layer has hooks")
def test_a_hook_of_all_modules(model):
    def double(module, _, x):
        return 2 * x if module is model.lm_head else None

    inputs = tiny_models.batch()
    hook = torch.nn.modules.module.register_module_forward_hook(double)
    try:
        assert_same(tiny_models.run(model, inputs), loss_of_logits(model, inputs))
    finally:
        hook.remove()


HOOKS = {
    "forward": lambda head: head.register_forward_hook(lambda _, __, x: x * 0.5),
    "before": lambda head: head.register_forward_pre_hook(lambda _, x: (x[0] * 2,)),
    "weight": lambda head: torch.nn.utils.prune.l1_unstructured(head, "weight", 0.3),
}


@pytest.mark.filterwarnings("ignore:the last layer has hooks")
@pytest.mark.parametrize("name", HOOKS)
def test_a_last_layer_with_hooks(name, model):
    HOOKS[name](model.lm_head)
    inputs = tiny_models.batch()
    assert_same(tiny_models.run(model, inputs), loss_of_logits(model, inputs))


def test_logits_of_some_positions(model):
    inputs = tiny_models.batch()
    inputs["labels"] = inputs["labels"][:, -4:]
    assert model(**inputs, logits_to_keep=4)["logits"].shape == (2, 4, 96)


def test_no_logits_and_no_labels(model):
    with pytest.raises(ValueError, match="'skip_logits' needs 'labels'"):
        model(tiny_models.batch()["input_ids"], skip_logits=True)


def test_items_of_all_batches(model):
    inputs = tiny_models.batch()
    for items in (31, torch.tensor(31)):
        assert_same(
            tiny_models.run(model, inputs, num_items_in_batch=items),
            loss_of_logits(model, inputs, num_items_in_batch=items),
        )


def test_a_loss_that_is_scaled_in_place(model):
    loss = model(**tiny_models.batch()).loss
    loss *= 2
    loss.backward()
    gradient = model.lm_head.weight.grad.clone()
    _, expected = tiny_models.run(model, tiny_models.batch())
    assert torch.allclose(gradient, 2 * expected["lm_head.weight"])


def test_labels_that_are_shifted(model):
    inputs = tiny_models.batch()
    labels = inputs.pop("labels")
    shifted = torch.nn.functional.pad(labels, (0, 1), value=-100)[:, 1:]
    expected = loss_of_logits(model, {**inputs, "labels": labels})
    for given in (shifted, shifted.flatten()):
        assert_same(tiny_models.run(model, inputs, shift_labels=given), expected)


def test_another_index_to_ignore(model):
    inputs = tiny_models.batch()
    inputs["labels"][inputs["labels"] == -100] = 7
    assert_same(
        tiny_models.run(model, inputs, ignore_index=7),
        loss_of_logits(model, inputs, ignore_index=7),
    )


def test_nothing_counts(model):
    inputs = tiny_models.batch()
    inputs["labels"][:] = -100
    outputs, gradients = tiny_models.run(model, inputs)
    assert outputs.loss == 0 and outputs.token_accuracy == 0
    assert not any(gradient.any() for gradient in gradients.values())


def test_outputs_as_a_tuple(model):
    """Of a tuple, the second element is the logits, which are there."""
    inputs = tiny_models.batch()
    expected = model(**inputs)
    asked = model(**inputs, return_dict=False)
    model.config.return_dict = False
    for outputs in (asked, model(**inputs)):
        assert isinstance(outputs, tuple)
        assert torch.allclose(outputs[0], expected.loss)
        assert outputs[1].requires_grad and outputs[1].shape == (2, 12, 96)
    assert all(
        getattr(x, "shape", None) != (2, 12, 96)
        for x in model(**inputs, skip_logits=True)
    )


def test_hidden_states_on_request(model):
    outputs = model(**tiny_models.batch(), output_hidden_states=True)
    assert len(outputs.hidden_states) == 3


def test_arguments_by_position(model):
    inputs = tiny_models.batch()
    mask = torch.ones_like(inputs["input_ids"])
    outputs = model(inputs["input_ids"], mask, None, None, None, inputs["labels"])
    assert torch.equal(outputs.loss, model(**inputs).loss)


def test_the_signature_is_the_original():
    import inspect

    import transformers

    forward = inspect.signature(transformers.LlamaForCausalLM.forward)
    assert "labels" in forward.parameters and "skip_logits" not in forward.parameters


def test_cross_entropy_of_logits(model, patched):
    inputs = tiny_models.batch()
    expected = loss_of_logits(model, inputs, num_items_in_batch=31)
    patched.reset()
    with bastile.apply("llama", cross_entropy=True, fused_linear_cross_entropy=False):
        outputs = tiny_models.run(model, inputs, num_items_in_batch=31)
    assert outputs[0].logits is not None
    assert_same(outputs, expected)


def test_autocast(model):
    inputs = tiny_models.batch()
    with torch.autocast("cpu", torch.bfloat16):
        results = tiny_models.run(model, inputs)
        expected = loss_of_logits(model, inputs)
    assert abs(results[0].loss - expected[0].loss) < 2e-2


def test_tied_weights():
    tied = tiny_models.make("llama", tie_word_embeddings=True)
    inputs = tiny_models.batch()
    results = tiny_models.run(tied, inputs)
    assert "lm_head.weight" not in results[1]
    assert_same(results, loss_of_logits(tied, inputs))


def test_a_bias(model):
    bias = torch.nn.Parameter(torch.randn(96))
    model.lm_head.bias = bias
    inputs = tiny_models.batch()
    results = tiny_models.run(model, inputs)
    assert "lm_head.bias" in results[1]
    assert_same(results, loss_of_logits(model, inputs))


def adapted(model, **options):
    peft = pytest.importorskip("peft")
    torch.manual_seed(3)
    config = peft.LoraConfig(r=4, init_lora_weights=False, **options)
    return peft.get_peft_model(model, config)


def test_lora_of_the_last_layer(model):
    wrapped = adapted(
        model, target_modules=["q_proj", "lm_head"], lora_bias=True, bias="none"
    )
    inputs = tiny_models.batch()
    results = tiny_models.run(wrapped, inputs)
    assert sum("lm_head.lora" in name for name in results[1]) == 3
    assert_same(results, loss_of_logits(wrapped, inputs))
    with wrapped.disable_adapter():
        without = wrapped(**inputs).loss
        assert torch.allclose(without, wrapped(**inputs, skip_logits=False).loss)
    assert not torch.allclose(without, results[0].loss)


def test_lora_with_dropout(model):
    wrapped = adapted(model, target_modules=["lm_head"], lora_dropout=0.5)
    losses = []
    for options in ({}, {"skip_logits": False}):
        torch.manual_seed(0)
        losses.append(wrapped(**tiny_models.batch(), **options).loss)
    assert torch.allclose(*losses)


def test_dora_makes_its_own_logits(model):
    wrapped = adapted(model, target_modules=["lm_head"], use_dora=True)
    inputs = tiny_models.batch()
    heads._warned.clear()
    with pytest.warns(RuntimeWarning, match="computes the logits by itself"):
        results = tiny_models.run(wrapped, inputs)
    assert not tiny_models.has_logits(results[0])
    assert_same(results, loss_of_logits(wrapped, inputs))


def test_a_last_layer_that_is_saved_whole(model):
    wrapped = adapted(model, target_modules=["q_proj"], modules_to_save=["lm_head"])
    inputs = tiny_models.batch()
    results = tiny_models.run(wrapped, inputs)
    assert any("modules_to_save" in name for name in results[1])
    assert_same(results, loss_of_logits(wrapped, inputs))


def test_a_layer_of_another_kind(model):
    class Head(torch.nn.Linear):
        def forward(self, x):
            return 2 * super().forward(x)

    model.lm_head = Head(64, 96, bias=False)
    inputs = tiny_models.batch()
    heads._warned.clear()
    with pytest.warns(RuntimeWarning, match="Head, and computes"):
        results = tiny_models.run(model, inputs, num_items_in_batch=31)
    assert_same(results, loss_of_logits(model, inputs, num_items_in_batch=31))


def test_a_partitioned_weight(model):
    model.lm_head.weight.data = torch.empty(0)
    with pytest.raises(ValueError, match="ZeRO-3.*fused_linear_cross_entropy=False"):
        model(**tiny_models.batch())


def test_a_weight_of_several_processes(model, mesh):
    from torch.distributed.tensor import Replicate, Shard, distribute_tensor

    inputs, whole = tiny_models.batch(), model.lm_head.weight.detach()
    expected = model(**inputs).loss

    def place(placement):
        weight = distribute_tensor(whole, mesh, [placement])
        model.lm_head.weight = torch.nn.Parameter(weight)

    place(Replicate())
    assert torch.equal(model(**inputs).loss, expected)
    place(Shard(0))
    with pytest.raises(TypeError, match="DTensor.*fused_linear_cross_entropy=F"):
        model(**inputs)


def test_a_model_that_is_sharded_first(patched, model, mesh):
    from torch.distributed.fsdp import fully_shard

    expected, gradients = tiny_models.run(model, tiny_models.batch())
    patched.reset()
    for module in (*model.model.layers, model):
        fully_shard(module, mesh=mesh)
    with bastile.apply_to_model(model) as ours:
        assert "llama.fused_linear_cross_entropy" in ours.ops
        results, found = tiny_models.run(model, tiny_models.batch())
    assert torch.equal(results.loss, expected.loss)
    for name, gradient in gradients.items():
        # Layers of FSDP's classes add residuals apart from norms.
        difference = (found[name].full_tensor() - gradient).abs().max()
        assert difference < 1e-5 * gradient.abs().max(), name


def test_the_model_is_patched_beneath_peft(patched, model):
    patched.reset()
    wrapped = adapted(model, target_modules=["q_proj"])
    bastile.apply_to_model(wrapped)
    assert not tiny_models.has_logits(wrapped(**tiny_models.batch()))
    assert bastile.get_patched_ops(model)
    bastile.reset()
