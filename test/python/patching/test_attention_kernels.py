# Part of Bastile, under the MIT License. See LICENSE.
# RUN: %package-test %s
"""Attention of Transformers' models by Bastile's kernel: outputs, gradients and generation
beside the models' own."""

import types

import any_type
import bastile
import pytest
import tiny_models
import torch
import transformers
from bastile._attention.scores.captured import Captured
from bastile._patching import probes
from bastile._patching.attention import kernels, masks, packing
from transformers import masking_utils
from transformers.models.gpt_oss import modeling_gpt_oss
from transformers.models.llama import modeling_llama

#: Models, with what of their configuration makes their masks differ.
MODELS = {
    "gemma2": {"sliding_window": 4, "attn_logit_softcapping": 2.0},
    "gemma3": {
        "sliding_window": 4,
        "layer_types": ["sliding_attention", "full_attention"],
    },
    "gpt_oss": {"sliding_window": 4},
    "llama": {},
    "mistral": {"sliding_window": 4},
    "phi3": {},
    "qwen3": {},
}
#: Models whose own attention is written out.
EAGER = ["gemma2", "gpt_oss"]
GENERATION = {"max_new_tokens": 6, "do_sample": False, "eos_token_id": None}


@pytest.fixture(autouse=True)
def leave_nothing():
    bastile.reset()
    yield
    bastile.reset()
    assert not masks._stack() and not kernels.asked_classes


@pytest.fixture
def runs(monkeypatch):
    """Notes each run of the kernel."""
    noted, run = [], kernels.run

    def note(mask, *operands):
        noted.append(mask)
        return run(mask, *operands)

    monkeypatch.setattr(kernels, "run", note)
    return noted


def make_inputs(kind):
    inputs = tiny_models.batch()
    if kind == "padded":
        inputs["attention_mask"] = torch.ones_like(inputs["input_ids"])
        inputs["attention_mask"][0, -3:] = 0
    elif kind == "packed":
        positions = torch.cat([torch.arange(5), torch.arange(7)])
        inputs["position_ids"] = positions[None].expand(2, -1)
    return inputs


KINDS = ["plain", "padded", "packed"]


@pytest.mark.long(every=23)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", MODELS)
def test_by_its_name(name, kind, runs):
    bastile.register_attention()
    options = {**MODELS[name], "attn_implementation": "eager"}
    model, inputs = tiny_models.make(name, **options), make_inputs(kind)
    # PyTorch multiplies for experts in no type wider than float32.
    bound = 2e-5 if name == "gpt_oss" else 1e-6
    model = model if name == "gpt_oss" else model.double()
    expected = tiny_models.run(model, inputs, use_cache=False)
    model.set_attn_implementation("bastile")
    results = tiny_models.run(model, inputs, use_cache=False)
    tiny_models.assert_alike(results, expected, bound=bound)
    assert len(runs) == 2 and all(isinstance(x, kernels.Mask) for x in runs)


@pytest.mark.long(every=11)
@pytest.mark.parametrize("name", MODELS)
def test_generation(name, runs):
    bastile.register_attention()
    options = {**MODELS[name], "attn_implementation": "eager"}
    model = tiny_models.make(name, **options).eval()
    prompt = tiny_models.batch()["input_ids"][:, :7]
    padding = torch.ones_like(prompt)
    padding[0, :3] = 0
    cases = [{}, {"attention_mask": padding}, {"cache_implementation": "static"}]
    expected = [model.generate(prompt, **case, **GENERATION) for case in cases]
    assert not runs
    model.set_attn_implementation("bastile")
    for case, tokens in zip(cases, expected):
        assert torch.equal(model.generate(prompt, **case, **GENERATION), tokens)
    assert len(runs) == 2 * 6 * len(cases)


@pytest.mark.long(every=7)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", EAGER)
def test_in_the_place_of_attention_that_is_written_out(name, kind, runs):
    model, inputs = tiny_models.make(name, **MODELS[name]), make_inputs(kind)
    assert model.config._attn_implementation == "eager"
    expected = tiny_models.run(model, inputs, use_cache=False)
    assert not runs
    with bastile.apply(name):
        results = tiny_models.run(model, inputs, use_cache=False)
    tiny_models.assert_alike(results, expected)
    assert len(runs) == 2


def test_layers_that_ask_whether_a_mask_is_a_tensor_keep_their_attention(runs):
    # They append keys, and extend the mask if it is a tensor.
    name = "deepseek_v4"
    auto = transformers.AutoModelForCausalLM
    model = any_type.make(any_type.configuration(name), auto)
    assert model.config._attn_implementation == "eager"
    inputs = any_type.inputs(name, model)
    expected = tiny_models.run(model, inputs, use_cache=False)
    with bastile.apply(name):
        results = tiny_models.run(model, inputs, use_cache=False)
    tiny_models.assert_alike(results, expected)
    assert not runs
    bastile.register_attention()
    model.config._attn_implementation = "bastile"
    with pytest.raises(
        RuntimeError, match="12 queries and 12 keys.* 12 queries and 15"
    ):
        model(**inputs, use_cache=False)


@pytest.mark.long(every=7)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", ["gemma3", "llama"])
def test_in_the_place_of_pytorchs_attention(name, kind, runs):
    model, inputs = tiny_models.make(name, **MODELS[name]), make_inputs(kind)
    assert model.config._attn_implementation == "sdpa"
    with bastile.apply(name):
        expected = tiny_models.run(model, inputs, use_cache=False)
    assert not runs
    with bastile.apply(name, attention="bastile"):
        results = tiny_models.run(model, inputs, use_cache=False)
    assert len(runs) == 2
    tiny_models.assert_alike(results, expected)
    with bastile.apply(name):
        tiny_models.run(model, inputs, use_cache=False)
    assert len(runs) == 2


def test_models_that_are_made_later(runs):
    with bastile.apply(attention="bastile"):
        model = tiny_models.make("qwen2")
        model(**tiny_models.batch())
    assert len(runs) == 2
    model(**tiny_models.batch())
    assert len(runs) == 2


def test_one_model_alone(runs):
    model, other = tiny_models.make("llama"), tiny_models.make("llama")
    patched = bastile.apply_to_model(model, attention="bastile")
    for each in (model, other):
        each(**tiny_models.batch())
    assert len(runs) == 2
    patched.reset()
    bastile.apply_to_model(model)
    model(**tiny_models.batch())
    assert len(runs) == 2


def test_another_word_is_refused():
    with pytest.raises(ValueError, match="attention must be True, False or 'bastile'"):
        bastile.apply("llama", attention="sdpa")


@pytest.mark.long(every=2)
@pytest.mark.parametrize("name", EAGER)
def test_weights_of_attention_are_the_models_own(name, runs):
    model = tiny_models.make(name, **MODELS[name])
    with bastile.apply(name):
        outputs = model(**tiny_models.batch(), output_attentions=True)
    assert [x.shape for x in outputs.attentions] == [(2, 4, 12, 12)] * 2
    assert not runs


@pytest.mark.long(every=3)
@pytest.mark.parametrize("use_reentrant", [False, True])
def test_checkpoints(use_reentrant, runs):
    model, inputs = tiny_models.make("gpt_oss"), tiny_models.batch()
    expected = tiny_models.run(model, inputs, use_cache=False)
    options = {"use_reentrant": use_reentrant}
    model.gradient_checkpointing_enable(options)
    with bastile.apply("gpt_oss"):
        results = tiny_models.run(model, inputs, use_cache=False)
    tiny_models.assert_alike(results, expected)
    assert len(runs) == 4


@pytest.mark.long
def test_dropout_in_training():
    options = {"attention_dropout": 0.5, "attn_implementation": "bastile"}
    bastile.register_attention()
    model, inputs = tiny_models.make("llama", **options), tiny_models.batch()
    losses = [model(**inputs).loss for _ in range(2)]
    assert losses[0] != losses[1]
    model.eval()
    losses = [model(**inputs).loss for _ in range(2)]
    assert losses[0] == losses[1]


def test_compiled_in_one_graph():
    bastile.register_attention()
    model = tiny_models.make("llama", attn_implementation="bastile")
    inputs = tiny_models.batch()
    expected = tiny_models.run(model, inputs, use_cache=False)
    results, calls = tiny_models.run_compiled(model, {**inputs, "use_cache": False})
    tiny_models.assert_alike(results, expected)
    assert calls.count("attention") == 2


@pytest.mark.long
def test_masks_that_are_tensors():
    bastile.register_attention()
    model = tiny_models.make("llama", attn_implementation="bastile")
    inputs = tiny_models.batch()
    expected = model(**inputs).logits
    seen = torch.ones(1, 1, 12, 12, dtype=torch.bool).tril()
    added = torch.where(seen, 0.0, torch.finfo().min)
    for mask in (seen, added):
        logits = model(**inputs, attention_mask=mask).logits
        torch.testing.assert_close(logits, expected, rtol=1e-4, atol=1e-5)


def test_a_mask_that_no_kernel_can_have():
    def strange(b, h, q, kv):
        return (q * kv).cumsum(0) >= 0

    named = {
        "batch_size": 1,
        "q_length": 5,
        "kv_length": 5,
        "mask_function": masking_utils.and_masks(
            masking_utils.causal_mask_function, strange
        ),
    }
    kernels._warn_once.cache_clear()
    with pytest.warns(RuntimeWarning, match="'and_mask' does: .*'cumsum'") as warned:
        found = [kernels.mask(**named) for _ in range(2)]
    assert len(warned) == 1
    assert found[0].dtype == torch.bool and found[0].shape == (1, 1, 5, 5)


def test_what_the_kernel_does_not_have():
    heads = [probes.numbers(1, 2, 5, 8, seed=x) for x in range(3)]
    bias = probes.numbers(1, 2, 5, 5, seed=4)
    kernels._warn_once.cache_clear()
    module = types.SimpleNamespace(is_causal=True)
    with pytest.warns(RuntimeWarning, match="has no 'position_bias'"):
        result, _ = kernels.attention(module, *heads, None, position_bias=bias)
    seen = torch.ones(5, 5, dtype=torch.bool).tril()
    mask = bias.masked_fill(~seen, -torch.inf)
    expected = torch.nn.functional.scaled_dot_product_attention(*heads, mask)
    torch.testing.assert_close(result, expected.transpose(1, 2))


def test_who_computes_with_a_mask_gets_the_models_own():
    named = {"q_length": 5, "kv_length": 5, "batch_size": 1}
    function = masking_utils.causal_mask_function
    own = masking_utils.eager_mask(**named, mask_function=function)
    made = kernels.make_mask(lambda: own, {**named, "mask_function": function})
    scores = probes.numbers(1, 2, 5, 5)
    assert torch.equal(scores + made, scores + own)
    assert torch.equal(torch.add(scores, other=made), scores + own)
    assert made.shape == own.shape and torch.equal(made[..., :3], own[..., :3])


def packed(function):
    positions = torch.cat([torch.arange(3), torch.arange(4)])[None]
    documents = torch.tensor([[0, 0, 0, 1, 1, 1, 1]])
    return masking_utils.packed_sequence_compatibility_function(
        function, positions, documents
    )


def test_masks_that_a_model_joins():
    """T5Gemma 2's decoder attends to its own tokens and to those of the encoder at
    once, and joins both masks."""
    make = transformers.AutoModelForSeq2SeqLM
    model = any_type.make(any_type.configuration("t5gemma2"), make)
    model.set_attn_implementation("eager")
    tokens = tiny_models.batch()["input_ids"]
    inputs = {"input_ids": tokens, "decoder_input_ids": tokens, "labels": tokens}
    expected = model.eval()(**inputs).loss
    with bastile.apply("t5gemma2"):
        torch.testing.assert_close(model(**inputs).loss, expected)


def test_masks_of_releases_that_compare_places(monkeypatch):
    """Transformers 5.17 has no masks of places in documents."""
    monkeypatch.delattr(
        masking_utils, "packed_sequence_compatibility_function", raising=False
    )
    function = masking_utils.causal_mask_function
    assert packing.by_places(function, None) is function


def test_masks_that_were_made_before():
    named = {"mask_function": masking_utils.causal_mask_function, "kv_length": 5}
    made = kernels.make_mask(None, {**named, "q_length": 5})
    again = kernels.make_mask(None, {**named, "q_length": 5, "attention_mask": made})
    assert again is made


def dense(function):
    return masking_utils.sdpa_mask(
        1, 7, 7, mask_function=function, allow_is_causal_skip=False
    )


@pytest.mark.parametrize(
    "function, window",
    [
        (masking_utils.causal_mask_function, None),
        (masking_utils.sliding_window_causal_mask_function(2), 2),
        (masking_utils.bidirectional_mask_function, None),
    ],
)
def test_packed_documents_are_compared_by_places(function, window):
    original = packed(function)
    found = packing.by_places(original, window)
    assert found is not original
    assert torch.equal(dense(found), dense(original))
    # The positions are no operand.
    captured = Captured()
    captured.key_of(found)
    assert len(captured.tensors) == 1


@pytest.mark.parametrize(
    "function, window",
    [
        (masking_utils.chunked_causal_mask_function(3, torch.zeros(1, dtype=int)), 3),
        (masking_utils.sliding_window_causal_mask_function(2), 3),
        (lambda b, h, q, kv: kv < 2, None),
    ],
)
def test_what_depends_on_positions_in_documents_stays(function, window):
    original = packed(function)
    assert packing.by_places(original, window) is original
    assert packing.by_places(function, window) is function


def test_originals_are_proven():
    llama = modeling_llama.eager_attention_forward
    kernels.prove(llama)
    kernels.prove(modeling_gpt_oss.eager_attention_forward)
    assert kernels.features(llama) == set()
    assert kernels.features(modeling_gpt_oss.eager_attention_forward) == {"sinks"}

    def scaled_twice(module, query, key, value, attention_mask, scaling, **named):
        return llama(
            module, query, key, value, attention_mask, scaling=2 * scaling, dropout=0.0
        )

    with pytest.raises(probes.Mismatch, match="differs from the formula"):
        kernels.prove(scaled_twice)
