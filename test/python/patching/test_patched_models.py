# Part of Bastile, under the MIT License. See LICENSE.
# RUN: %package-test %s
"""Every patched model beside the same model as it was, in logits, losses and
gradients."""

import bastile
import pytest
import tiny_models
import torch


def prepare(name, device):
    """A model and the largest error as a share of the largest value: in float32 on
    the CPU, in bfloat16 on a GPU."""
    if device == "cpu":
        return tiny_models.make(name), 2e-5
    model = tiny_models.make(name, **tiny_models.ALL_EXPERTS[name])
    return model.to(device, torch.bfloat16), 5e-2


def error(result, expected):
    scale = expected.float().abs().max().clamp(min=1e-6)
    return ((result.float() - expected.float()).abs().max() / scale).item()


def assert_like(results, expected, bound):
    outputs, gradients = results
    original, original_gradients = expected
    assert error(outputs.loss, original.loss) < bound
    assert gradients.keys() == original_gradients.keys()
    scale = max(x.abs().max() for x in original_gradients.values())
    for name, gradient in gradients.items():
        difference = (gradient.float() - original_gradients[name].float()).abs()
        assert difference.max() < bound * scale, name


@pytest.mark.long(every=17)
@pytest.mark.parametrize("name", tiny_models.NAMES)
def test_model(name, device):
    model, bound = prepare(name, device)
    inputs = tiny_models.on(device, tiny_models.batch())
    expected = tiny_models.run(model, inputs)
    with bastile.apply(name) as patched:
        assert f"{name}.fused_linear_cross_entropy" in patched.ops
        with_logits = tiny_models.run(model, inputs, skip_logits=False)
        without = tiny_models.run(model, inputs)
    assert error(with_logits[0].logits, expected[0].logits) < bound
    assert not tiny_models.has_logits(without[0])
    assert_like(with_logits, expected, bound)
    assert_like(without, expected, bound)
    labels = inputs["labels"][:, 1:]
    hits = expected[0].logits[:, :-1].argmax(-1) == labels
    accuracy = hits.sum() / (labels != -100).sum()
    if device == "cpu":
        assert without[0].token_accuracy == accuracy


@pytest.mark.parametrize("name", tiny_models.NAMES)
def test_one_model_alone(name):
    model, other = tiny_models.make(name), tiny_models.make(name)
    inputs = tiny_models.batch()
    expected = tiny_models.run(model, inputs)
    with bastile.apply_to_model(model):
        assert_like(tiny_models.run(model, inputs), expected, 2e-5)
        untouched, _ = tiny_models.run(other, inputs)
        assert torch.equal(untouched.logits, expected[0].logits)
    again, _ = tiny_models.run(model, inputs)
    assert torch.equal(again.logits, expected[0].logits)


@pytest.mark.parametrize("name", ["gemma3", "gpt_oss", "phi3"])
def test_generation(name):
    model = tiny_models.make(name).eval()
    prompt = tiny_models.batch()["input_ids"][:, :5]
    options = {"max_new_tokens": 8, "do_sample": False, "eos_token_id": None}
    expected = model.generate(prompt, **options)
    with bastile.apply(name):
        assert torch.equal(model.generate(prompt, **options), expected)


def experts_implementations(model):
    """The ways in which this version of Transformers runs experts."""
    if not hasattr(model.config, "_experts_implementation"):
        return [None]
    return ["eager", "grouped_mm", "batched_mm"]


@pytest.mark.parametrize("name", ["gpt_oss", "mixtral", "qwen3_moe"])
def test_every_way_of_experts(name, device):
    model, bound = prepare(name, device)
    # The bias is 0 in a new model.
    with torch.no_grad():
        for key, parameter in model.named_parameters():
            if key.endswith("bias"):
                parameter.normal_()
    inputs = tiny_models.on(device, tiny_models.batch())
    for kind in experts_implementations(model):
        if kind is not None:
            model.config._experts_implementation = kind
        expected = tiny_models.run(model, inputs, output_router_logits=True)
        with bastile.apply(name, rms_norm=False, rope=False):
            results = tiny_models.run(model, inputs, output_router_logits=True)
        assert_like(results, expected, bound)
        assert error(results[0].aux_loss, expected[0].aux_loss) < bound


def test_training_follows(device):
    """50 steps from the same weights."""
    names = ["qwen3", "gpt_oss"] if device == "cpu" else tiny_models.NAMES
    for name in names:
        expected = tiny_models.losses_of_training(prepare(name, device)[0], 50)
        with bastile.apply(name):
            losses = tiny_models.losses_of_training(prepare(name, device)[0], 50)
        bound = 1e-3 if device == "cpu" else 8e-2
        assert losses[-1] < 0.8 * losses[0], name
        for loss, original in zip(losses, expected):
            assert abs(loss - original) < bound * original, name
