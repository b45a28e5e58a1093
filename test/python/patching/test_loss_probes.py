# Part of Bastile, under the MIT License. See LICENSE.
# RUN: %package-test %s
"""The forward of a causal language model is run before it is patched: what computes
other logits, losses or gradients than its entry says is refused."""

import importlib
import sys
import types

import any_type
import bastile
import pytest
import tiny_models
import torch
import transformers
from bastile import patching
from bastile._patching import loss_probes, table
from transformers import modeling_outputs


@pytest.fixture(autouse=True)
def probe_anew():
    loss_probes.causal_loss.cache_clear()


@pytest.mark.parametrize("name", ["cohere", "falcon_h1"])
def test_a_factor_that_the_model_keeps(name):
    """What a model took from its configuration when it was made counts, and not what
    has become of the configuration."""
    make = transformers.AutoModelForCausalLM
    model = any_type.make(any_type.configuration(name), make).train()
    if name == "cohere":
        model.logit_scale, model.config.logit_scale = 3.0, 5.0
    else:
        model.model.lm_head_multiplier, model.config.lm_head_multiplier = 3.0, 5.0
    inputs = tiny_models.batch()
    expected = model(**inputs)
    with bastile.apply(name):
        found = model(**inputs)
        assert "logits" not in vars(found)
        torch.testing.assert_close(found.loss, expected.loss)
        torch.testing.assert_close(found.logits, expected.logits)


@pytest.mark.skipif(
    transformers.__version__.startswith("4."), reason="Transformers 4's has a mistake"
)
def test_a_router_that_only_some_models_of_a_type_have():
    """Doge's configuration has none by itself, so that its loss is not in the table."""
    configuration = any_type.configuration(
        "doge",
        is_moe=True,
        num_experts=16,
        num_experts_per_tok=2,
        router_aux_loss_coef=0.5,
        output_router_logits=True,
    )
    make = transformers.AutoModelForCausalLM
    model, inputs = any_type.make(configuration, make).train(), tiny_models.batch()
    expected = model(**inputs)
    with bastile.apply("doge"):
        found = model(**inputs)
        with pytest.raises(ValueError, match="leave out the loss of the router"):
            model(**inputs, skip_logits=True)
    torch.testing.assert_close(found.loss, expected.loss)
    torch.testing.assert_close(found.aux_loss, expected.aux_loss)


def logits_of(model, hidden):
    return model.lm_head(hidden)


def loss_of(model, logits, labels, **options):
    return model.loss_function(logits, labels, model.config.vocab_size, **options)


def run_decoder(model, input_ids, attention_mask, **options):
    made = model.model(input_ids=input_ids, attention_mask=attention_mask, **options)
    return made.last_hidden_state


def forward_of(logits_of=logits_of, loss_of=loss_of, run_decoder=run_decoder):
    """The forward of a user's own class, in which one thing may be otherwise."""

    def forward(
        self,
        input_ids=None,
        attention_mask=None,
        labels=None,
        logits_to_keep=0,
        **options,
    ):
        hidden = run_decoder(self, input_ids, attention_mask, **options)
        logits, loss = logits_of(self, hidden), None
        if labels is not None:
            loss = loss_of(self, logits, labels, **options)
        return modeling_outputs.CausalLMOutputWithPast(loss=loss, logits=logits)

    return forward


def register(monkeypatch, forward, **entry):
    """A class of the user's own with ``forward``, of the model type 'own'."""
    monkeypatch.setattr(table, "MODELS", dict(table.MODELS))
    module = types.ModuleType("modeling_own")
    members = {"forward": forward} if callable(forward) else forward
    module.OwnForCausalLM = type(
        "OwnForCausalLM", (transformers.LlamaForCausalLM,), members
    )
    monkeypatch.setitem(sys.modules, "modeling_own", module)
    bastile.register_patch(
        "own", "modeling_own", patching.CausalLoss("OwnForCausalLM", **entry)
    )
    return module.OwnForCausalLM


def swallowing(self, input_ids=None, alpha=1.0, labels=None, logits_to_keep=0):
    made = self.model(input_ids=input_ids)
    logits = self.lm_head(made.last_hidden_state)
    loss = alpha * loss_of(self, logits, labels)
    return modeling_outputs.CausalLMOutputWithPast(loss=loss, logits=logits)


def routed(
    self,
    input_ids=None,
    labels=None,
    logits_to_keep=0,
    output_router_logits=None,
    **options,
):
    logits = self.lm_head(self.model(input_ids=input_ids).last_hidden_state)
    loss = loss_of(self, logits, labels, **options)
    if output_router_logits:
        loss = loss + 0.1
    return modeling_outputs.CausalLMOutputWithPast(loss=loss, logits=logits)


def without_labels(self, input_ids=None, logits_to_keep=0):
    raise NotImplementedError


def cut(model, hidden):
    return model.lm_head(hidden)[..., : model.config.vocab_size]


def add_rope_theta(model, hidden):
    return model.lm_head(hidden) + model.config.initializer_range - 0.02


def other_decoder(model, input_ids, attention_mask, **options):
    return model.model.decoder(input_ids, attention_mask).last_hidden_state


def without_mask(model, input_ids, attention_mask, **options):
    return model.model(input_ids=input_ids, **options).last_hidden_state


def with_scale(model, input_ids, attention_mask, **options):
    return run_decoder(model, input_ids, attention_mask, scale=2.0)


DIFFERENCES = {
    "multiplied": (
        forward_of(lambda model, x: model.lm_head(x) * model.config.logits_scaling),
        {"divisor": "logits_scaling"},
        "OwnForCausalLM: its logits are not those of the last layer, divided by "
        "'logits_scaling', but 9 times these",
    ),
    "scale": (
        forward_of(lambda model, x: 0.0625 * model.lm_head(x)),
        {},
        "its logits are not those of the last layer, but 0.0625 times these",
    ),
    "hidden": (
        forward_of(lambda model, x: model.lm_head(x / 8)),
        {},
        "but 0.125 times these",
    ),
    "bias": (
        forward_of(lambda model, x: model.lm_head(x) + 1),
        {},
        "its logits are not those of the last layer$",
    ),
    "cut": (forward_of(cut), {}, r"but of shape \[2, 5, 12\] for \[2, 5, 16\]"),
    "number": (forward_of(add_rope_theta), {}, "its logits are not those of the last"),
    "capped": (
        forward_of(),
        {"soft_cap": "final_logit_softcapping"},
        "capped by 'final_logit_softcapping'",
    ),
    "decoder": (
        forward_of(run_decoder=other_decoder),
        {},
        "it is no forward of a decoder 'model' and a last layer 'lm_head': .*decoder",
    ),
    "mask": (forward_of(run_decoder=without_mask), {}, "takes 'attention_mask' and do"),
    "more": (forward_of(run_decoder=with_scale), {}, "gives its decoder 'scale'"),
    "parameter": (swallowing, {}, "its forward takes 'alpha' and does not hand it on"),
    "loss": (
        forward_of(loss_of=lambda *args, **options: 2 * loss_of(*args, **options)),
        {},
        "its loss is [0-9.]*, but that of the table is ",
    ),
    "items": (
        forward_of(loss_of=lambda *operands, **_: loss_of(*operands)),
        {},
        "its loss with num_items_in_batch=7 is",
    ),
    "gradient": (
        forward_of(lambda model, x: model.lm_head(x.detach())),
        {},
        "its loss has other gradients than the table's",
    ),
    "router": (routed, {}, "its loss with output_router_logits=True is"),
    "labels": (without_labels, {}, "its forward has no parameter 'labels'"),
}


@pytest.mark.parametrize("name", DIFFERENCES)
def test_a_class_that_differs(name, monkeypatch):
    forward, entry, message = DIFFERENCES[name]
    cls = register(monkeypatch, forward, **entry)
    with pytest.raises(patching.PatchError, match=message.rstrip("$")) as raised:
        bastile.apply("own")
    if message.endswith("$"):
        assert "last layer\n" in str(raised.value)
    assert cls.forward is forward and bastile.get_patched_ops() == {}
    bastile.apply("own", fused_linear_cross_entropy=False).reset()


def test_a_class_that_is_as_its_entry_says(monkeypatch):
    cls = register(monkeypatch, forward_of())
    model = cls(tiny_models.configuration("llama")).train()
    expected = tiny_models.run(model, tiny_models.batch())
    with bastile.apply("own"):
        outputs, gradients = tiny_models.run(model, tiny_models.batch())
    assert not tiny_models.has_logits(outputs)
    assert torch.allclose(outputs.loss, expected[0].loss)
    for name, gradient in gradients.items():
        assert torch.allclose(gradient, expected[1][name], atol=1e-6), name


def test_a_class_with_a_loss_of_its_own(monkeypatch):
    """It is called with logits, as ever."""

    def loss_function(self, logits, labels, vocab_size, **_):
        return logits.mean()

    members = {"forward": forward_of(), "loss_function": loss_function}
    cls = register(monkeypatch, members)
    model = cls(tiny_models.configuration("llama")).train()
    with bastile.apply("own"):
        outputs = model(**tiny_models.batch())
        assert torch.equal(outputs.loss, outputs["logits"].mean())
        with pytest.raises(ValueError, match="'skip_logits' would leave out the model"):
            model(**tiny_models.batch(), skip_logits=True)


@pytest.mark.parametrize("name", ["cohere", "bart", "opt"])
def test_models_of_other_kinds(name, monkeypatch):
    module = f"transformers.models.{name}.modeling_{name}"
    cls = {"cohere": "Cohere", "bart": "Bart", "opt": "OPT"}[name] + "ForCausalLM"
    monkeypatch.setattr(table, "MODELS", dict(table.MODELS))
    bastile.register_patch(name, module, patching.CausalLoss(cls))
    with pytest.raises(patching.PatchError, match=f"{cls}: "):
        bastile.apply(name)
    assert not hasattr(
        getattr(importlib.import_module(module), cls).forward, "bastile_original"
    )


def test_a_loss_that_is_replaced_everywhere(monkeypatch):
    """What runs is the user's loss, and nothing of it when it is taken away."""
    mapping = transformers.loss.loss_utils.LOSS_MAPPING
    with monkeypatch.context() as context:
        context.setitem(mapping, "ForCausalLM", lambda logits, *_, **__: logits.mean())
        patched = bastile.apply("llama")
    with patched:
        model = tiny_models.make("llama")
        assert not tiny_models.has_logits(model(**tiny_models.batch()))


def test_a_loss_that_is_replaced_by_the_name_of_a_class(monkeypatch):
    """What replaces the loss of logits by a kernel would come before it."""
    mapping = transformers.loss.loss_utils.LOSS_MAPPING
    own = lambda logits, *_, **__: logits.mean()  # noqa: E731
    monkeypatch.setitem(mapping, "LlamaForCausalLM", own)
    options = {"cross_entropy": True, "fused_linear_cross_entropy": False}
    with bastile.apply("llama", **options) as patched:
        assert "llama.cross_entropy" not in patched.ops
        outputs = tiny_models.make("llama")(**tiny_models.batch())
        torch.testing.assert_close(outputs.loss, outputs.logits.mean())


def test_both_losses_one_after_the_other():
    """The probe of the second does not run Bastile's kernel of the first."""
    before = bastile.compilations()
    with bastile.apply("llama", cross_entropy=True, fused_linear_cross_entropy=False):
        with bastile.apply("llama") as patched:
            assert "llama.fused_linear_cross_entropy" in patched.ops
    assert bastile.compilations() == before


def test_probing_leaves_nothing_behind(recwarn, capfd):
    before, dtype = torch.get_rng_state(), torch.get_default_dtype()
    for context in (
        torch.inference_mode(),
        torch.no_grad(),
        torch.autocast("cpu", torch.bfloat16),
        torch.device("meta"),
    ):
        loss_probes.causal_loss.cache_clear()
        with context:
            bastile.apply("mixtral").reset()
    assert torch.equal(torch.get_rng_state(), before)
    assert torch.get_default_dtype() is dtype
    assert not recwarn.list and capfd.readouterr() == ("", "")
