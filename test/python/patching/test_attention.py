# Part of Bastile, under the MIT License. See LICENSE.
# RUN: %package-test %s
"""Masks that the host does not wait for, and attention within windows."""

import bastile
import pytest
import tiny_models
import torch
import transformers
from bastile import patching
from bastile._patching import probes, table
from bastile._patching.attention import kernels, masks, windows
from bastile._patching.kinds import masks as kind
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.utils._python_dispatch import TorchDispatchMode
from transformers import masking_utils
from transformers.modeling_utils import ALL_ATTENTION_FUNCTIONS

#: Whether this version of Transformers asks whether positions are those of several
#: sequences; Transformers 4 always makes a mask that says so.
ASKS = transformers.__version__ >= "5"
WINDOW = 4
#: Models with windows, as they are configured for them.
WINDOWED = {
    "gemma3": {"sliding_window": WINDOW, "layer_types": ["sliding_attention"] * 2},
    "mistral": {"sliding_window": WINDOW},
}


@pytest.fixture(autouse=True)
def leave_nothing():
    # They stay in place, and idle, behind the last patch of a test of another file.
    bastile.reset()
    before = _shared_functions()
    yield
    bastile.reset()
    assert _shared_functions() == before
    assert not masks._stack()


def _shared_functions():
    return (
        masking_utils.find_packed_sequence_indices,
        masking_utils.ALL_MASK_ATTENTION_FUNCTIONS["sdpa"],
        ALL_ATTENTION_FUNCTIONS["sdpa"],
    )


class Waits(TorchDispatchMode):
    """Counts the operations for which the host waits where tensors lie on a GPU."""

    count = 0

    def __torch_dispatch__(self, function, types, operands=(), named=None):
        self.count += "_local_scalar_dense" in str(function)
        return function(*operands, **(named or {}))


def waits(model, inputs):
    with Waits() as found:
        model(**inputs, use_cache=False).loss.backward()
    return found.count


def packed_positions(lengths):
    return torch.cat([torch.arange(x) for x in lengths])[None]


def padded(inputs):
    mask = torch.ones_like(inputs["input_ids"])
    mask[0, -3:] = 0
    return {**inputs, "attention_mask": mask}


def assert_alike(results, expected):
    (outputs, gradients), (original, original_gradients) = results, expected
    torch.testing.assert_close(outputs.loss, original.loss, rtol=1e-5, atol=0)
    scale = max(x.abs().max() for x in original_gradients.values())
    for name, gradient in gradients.items():
        difference = (gradient - original_gradients[name]).abs().max()
        assert difference < 2e-5 * scale, name


@pytest.mark.parametrize("name", ["qwen3", "gemma3", "llama", "olmo2"])
def test_a_step_waits_for_nothing(name):
    model, inputs = tiny_models.make(name), tiny_models.batch()
    assert (waits(model, inputs) > 0) == ASKS
    with bastile.apply(name) as patched:
        assert f"{name}.attention" in patched.ops
        assert waits(model, inputs) == 0
    assert (waits(model, inputs) > 0) == ASKS


@pytest.mark.parametrize("name", ["qwen3", "gemma3", "olmo2"])
def test_causal_attention_needs_no_mask(name, monkeypatch):
    model, given = tiny_models.make(name), []
    attend = torch.nn.functional.scaled_dot_product_attention

    def note(*operands, attn_mask=None, **named):
        given.append(attn_mask)
        return attend(*operands, attn_mask=attn_mask, **named)

    monkeypatch.setattr(torch.nn.functional, "scaled_dot_product_attention", note)
    with bastile.apply(name):
        model(**tiny_models.batch(), use_cache=False)
    assert given == [None, None]


def test_one_model_alone():
    model, other = tiny_models.make("qwen3"), tiny_models.make("qwen3")
    bastile.apply_to_model(model)
    assert waits(model, tiny_models.batch()) == 0
    assert (waits(other, tiny_models.batch()) > 0) == ASKS


def test_attention_may_be_left_out():
    model = tiny_models.make("qwen3")
    with bastile.apply("qwen3", attention=False) as patched:
        assert "qwen3.attention" not in patched.ops
        assert (waits(model, tiny_models.batch()) > 0) == ASKS


@pytest.mark.parametrize("name", ["qwen3", *WINDOWED])
def test_packed_sequences_stay_apart(name):
    model = tiny_models.make(name, **WINDOWED.get(name, {}))
    inputs = tiny_models.batch(shape=(1, 12))
    whole = tiny_models.run(model, inputs, use_cache=False)
    inputs["position_ids"] = packed_positions([5, 7])
    expected = tiny_models.run(model, inputs, use_cache=False)
    assert (whole[0].loss - expected[0].loss).abs() > 1e-3
    with bastile.apply(name):
        assert_alike(tiny_models.run(model, inputs, use_cache=False), expected)


@pytest.mark.parametrize("name", ["qwen3", *WINDOWED])
def test_padding_is_masked(name):
    model = tiny_models.make(name, **WINDOWED.get(name, {}))
    inputs = padded(tiny_models.batch())
    expected = tiny_models.run(model, inputs)
    with bastile.apply(name):
        assert_alike(tiny_models.run(model, inputs), expected)


def reference(query, key, value, window, scale):
    """As `windows.run`, of each score by itself."""
    groups = query.shape[2] // key.shape[2]
    key, value = (x.repeat_interleave(groups, 2) for x in (key, value))
    scores = torch.einsum("bqhd,bkhd->bhqk", query, key) * scale
    places = torch.arange(query.shape[1])
    distance = places[:, None] - places
    scores = scores.masked_fill((distance < 0) | (distance >= window), -torch.inf)
    return torch.einsum("bhqk,bkhd->bqhd", scores.softmax(-1), value)


@pytest.fixture
def as_on_a_gpu(monkeypatch):
    """Has attention within windows run without masks here, too. Counts its calls."""
    calls = []

    def run(*operands):
        calls.append(operands)
        return reference(*operands)

    monkeypatch.setattr(windows, "_can_run", lambda *operands: True)
    monkeypatch.setattr(windows, "run", run)
    return calls


@pytest.mark.parametrize("name", list(WINDOWED))
@pytest.mark.parametrize("with_checkpoints", [False, True])
def test_windows(name, with_checkpoints, as_on_a_gpu):
    model, inputs = tiny_models.make(name, **WINDOWED[name]), tiny_models.batch()
    if with_checkpoints:
        model.gradient_checkpointing_enable({"use_reentrant": False})
    expected = tiny_models.run(model, inputs, use_cache=False)
    with bastile.apply(name):
        results = tiny_models.run(model, inputs, use_cache=False)
    assert len(as_on_a_gpu) == (4 if with_checkpoints else 2)
    assert_alike(results, expected)


@pytest.mark.parametrize("name", list(WINDOWED))
def test_other_masks_are_no_windows(name, as_on_a_gpu):
    model, inputs = tiny_models.make(name, **WINDOWED[name]), tiny_models.batch()
    others = [
        padded(inputs),
        {**inputs, "position_ids": packed_positions([5, 7]).expand(2, -1)},
    ]
    for each in others:
        expected = tiny_models.run(model, each, use_cache=False)
        with bastile.apply(name):
            assert_alike(tiny_models.run(model, each, use_cache=False), expected)
    assert not as_on_a_gpu


def marked_mask(length=6, window=3):
    places = torch.arange(length)
    mask = (places <= places[:, None]) & (places > places[:, None] - window)
    mask = mask[None, None]
    windows.mark(mask, window)
    return mask


def attend(mask, heads, **named):
    """What replaces Transformers' function, and the mask that this gets."""
    given = []

    def original(module, query, key, value, attention_mask=None, **named):
        given.append(attention_mask)
        return torch.nn.functional.scaled_dot_product_attention(
            query, key, value, attention_mask, is_causal=attention_mask is None
        ).transpose(1, 2), None

    module = torch.nn.Module()
    made, _ = windows.attention(original)(module, *heads, mask, **named)
    return made, given


def some_heads(length=6):
    return [probes.numbers(1, 2, length, 8, seed=x) for x in range(3)]


def test_a_mask_that_was_written_to_is_no_window(as_on_a_gpu):
    mask = marked_mask()
    attend(mask, some_heads(), scaling=0.3)
    assert len(as_on_a_gpu) == 1
    mask[..., 0] = True
    _, given = attend(mask, some_heads(), scaling=0.3)
    assert given[0] is mask and len(as_on_a_gpu) == 1


@pytest.mark.parametrize(
    "named",
    [
        {"softcap": 5.0},
        {"position_bias": torch.zeros(1)},
        {"output_attentions": True},
        {"is_causal": False},
    ],
)
def test_attention_that_does_more(named, as_on_a_gpu):
    mask = marked_mask()
    _, given = attend(mask, some_heads(), **named)
    assert given[0] is mask and not as_on_a_gpu


def test_a_window_of_all_tokens_is_no_mask():
    mask, heads = marked_mask(window=6), some_heads()
    made, given = attend(mask, heads)
    assert given == [None]
    expected = torch.nn.functional.scaled_dot_product_attention(*heads, mask)
    torch.testing.assert_close(made, expected.transpose(1, 2))


def test_this_version_has_windows_as_they_are_understood():
    assert masks._is_understood()


def test_the_check_of_the_kernel():
    """It finds a window that is larger by one, and a scale that is left out."""
    on = torch.device("cpu"), torch.float32, 16
    assert windows.error_of(*on, reference) < 1e-5
    for wrong in (
        lambda q, k, v, window, scale: reference(q, k, v, window + 1, scale),
        lambda q, k, v, window, scale: reference(q, k, v, window, 0.25),
    ):
        assert windows.error_of(*on, wrong) > windows._BOUND


@pytest.mark.gpu
@pytest.mark.parametrize("size", [64, 128, 256])
def test_the_kernel(size):
    on = torch.device("cuda"), torch.bfloat16, size
    assert windows.error_of(*on) < windows._BOUND


@pytest.mark.gpu
@pytest.mark.parametrize("name", list(WINDOWED))
def test_windows_on_a_gpu(name, monkeypatch):
    calls, run = [], windows.run
    monkeypatch.setattr(windows, "run", lambda *x: calls.append(1) or run(*x))
    model = tiny_models.make(name, **WINDOWED[name]).to("cuda", torch.bfloat16)
    inputs = tiny_models.on("cuda", tiny_models.batch())
    expected, gradients = tiny_models.run(model, inputs, use_cache=False)
    inputs["attention_mask"] = torch.ones_like(inputs["input_ids"])
    with bastile.apply(name):
        outputs, found = tiny_models.run(model, inputs, use_cache=False)
    assert len(calls) == 2
    torch.testing.assert_close(outputs.loss, expected.loss, rtol=1e-2, atol=0)
    scale = max(x.abs().max() for x in gradients.values())
    for key, gradient in found.items():
        assert (gradient - gradients[key]).abs().max() < 5e-2 * scale, key


class OfTokens(torch.nn.Module):
    """Positions depend on what the tokens are."""

    def forward(self, input_ids=None, position_ids=None):
        if position_ids is None:
            position_ids = (input_ids != 0).cumsum(-1)
        return masking_utils.create_causal_mask(position_ids=position_ids)


class Doubled(torch.nn.Module):
    def forward(self, inputs_embeds, position_ids=None):
        if position_ids is None:
            position_ids = torch.arange(inputs_embeds.shape[1])[None]
        return masking_utils.create_causal_mask(position_ids=2 * position_ids)


class Spread(torch.nn.Module):
    def forward(self, inputs_embeds, position_ids=None):
        if position_ids is None:
            position_ids = 2 * torch.arange(inputs_embeds.shape[1])[None]
        return masking_utils.create_causal_mask(position_ids=position_ids)


class Changed(torch.nn.Module):
    def forward(self, inputs_embeds, position_ids=None):
        if position_ids is None:
            position_ids = torch.arange(inputs_embeds.shape[1])[None]
        position_ids = position_ids // 2
        return masking_utils.create_causal_mask(position_ids=position_ids)


class Counted(torch.nn.Module):
    def forward(self, inputs_embeds, position_ids=None, first=None):
        if first is None:
            first = 3
        if position_ids is None:
            position_ids = first + torch.arange(inputs_embeds.shape[1])[None]
        return masking_utils.create_causal_mask(position_ids=position_ids)


@pytest.mark.parametrize("cls", [OfTokens, Doubled, Spread, Changed])
def test_positions_that_are_not_known(cls):
    with pytest.raises(probes.Mismatch):
        kind._look(cls.forward)


def test_what_positions_are_made_of():
    assert kind._look(Counted.forward) == ("position_ids", "first")


def test_models_within_a_decoder():
    """Their masks are not the decoder's."""
    model, inner = (tiny_models.make("llama").model for _ in range(2))
    assert kind._is_alone(inner)
    model.layers[0].inner = inner
    assert not kind._is_alone(model)


def test_entries_of_other_positions_are_refused():
    source = "transformers.models.llama.modeling_llama"
    bastile.register_patch("mine", source, patching.Masks("LlamaModel", ("labels",)))
    try:
        with pytest.raises(patching.PatchError, match="makes those of"):
            bastile.apply("mine")
    finally:
        del table.MODELS["mine"]


def test_an_exception_leaves_the_forward():
    model = tiny_models.make("llama")
    with bastile.apply("llama"), pytest.raises(ValueError):
        model.model(input_ids=None, inputs_embeds=None)
    assert not masks._stack()


def test_generation_with_windows():
    model = tiny_models.make("gemma3", **WINDOWED["gemma3"]).eval()
    prompt = tiny_models.batch()["input_ids"][:, :7]
    options = {"max_new_tokens": 6, "do_sample": False, "eos_token_id": None}
    expected = model.generate(prompt, **options)
    with bastile.apply("gemma3"):
        assert torch.equal(model.generate(prompt, **options), expected)


def _forget_proofs(monkeypatch):
    monkeypatch.setattr(kernels, "wrapped", {})
    kernels.is_proven.cache_clear()


@pytest.mark.skipif(not ASKS, reason="Transformers 4's own model fails")
def test_proofs_do_not_depend_on_the_default_type(monkeypatch, set_default_type):
    _forget_proofs(monkeypatch)
    inputs = tiny_models.batch()
    expected = tiny_models.make("gpt_oss")(**inputs).loss
    bastile.apply("gpt_oss")
    model = tiny_models.make("gpt_oss")
    set_default_type(torch.float64)
    loss = model(**inputs).loss
    torch.testing.assert_close(loss, expected, check_dtype=False)
    assert kernels.wrapped


@pytest.mark.skipif(not ASKS, reason="Transformers 4's own model fails")
def test_proofs_do_not_depend_on_modes(monkeypatch, set_default_type):
    _forget_proofs(monkeypatch)
    bastile.apply("gpt_oss")
    # Fake experts multiply in bfloat16 alone.
    set_default_type(torch.bfloat16)
    with FakeTensorMode():
        model = tiny_models.make("gpt_oss")
        model(**tiny_models.batch()).loss.backward()
    assert kernels.wrapped


def test_apply_does_not_depend_on_modes():
    with FakeTensorMode():
        bastile.apply("gemma2")
    applied = len(patching.list_patches("gemma2"))
    bastile.reset()
    bastile.apply("gemma2")
    assert applied == len(patching.list_patches("gemma2")) > 0


@pytest.mark.skipif(not ASKS, reason="Transformers 4's own model fails")
@pytest.mark.parametrize("name", ["gpt_oss", "llama"])
def test_models_on_meta(name):
    bastile.apply(name)
    model = tiny_models.make(name).bfloat16().to("meta")
    tokens = torch.zeros(2, 12, dtype=torch.long, device="meta")
    model(input_ids=tokens, labels=tokens).loss.backward()
