# Part of Bastile, under the MIT License. See LICENSE.
# RUN: %package-test %s
"""What is patched where others replace methods, too: trainers, hooks, wrappers, and
modules of Python that are loaded again."""

import copy
import importlib
import types

import bastile
import pytest
import tiny_models
import torch

ALL = [
    "add_rms_norm",
    "attention",
    "fused_linear_cross_entropy",
    "rms_norm",
    "rope",
    "swiglu",
]
NO_LOSS = [op for op in ALL if op != "fused_linear_cross_entropy"]


def modeling(name):
    return importlib.import_module(f"transformers.models.{name}.modeling_{name}")


@pytest.fixture(autouse=True)
def leave_nothing():
    yield
    bastile.reset()
    assert bastile.get_patched_ops() == {}


@pytest.fixture
def model():
    return tiny_models.make("llama")


def own_forward(self, *operands, scale=1.0, **named):
    outputs = type(self).forward(self, *operands, **named)
    outputs.loss = scale * outputs.loss
    return outputs


def test_a_forward_of_the_instance_stays(model):
    inputs = tiny_models.batch()
    expected = model(**inputs).loss
    model.forward = types.MethodType(own_forward, model)
    with pytest.warns(
        RuntimeWarning,
        match="LlamaForCausalLM.forward by .*own_forward "
        r"\('fused_linear_cross_entropy'\). Call apply_to_model before",
    ):
        patched = bastile.apply_to_model(model)
    assert model.forward.__func__ is own_forward
    assert patched.ops == [f"llama.{op}" for op in NO_LOSS]
    assert bastile.get_patched_ops(model) == {"llama": NO_LOSS}
    assert torch.allclose(model(**inputs, scale=3.0).loss, 3 * expected)
    patched.reset()
    assert model.forward.__func__ is own_forward
    assert bastile.get_patched_ops(model) == {}


def test_no_warning_where_the_op_is_left_out(model, recwarn):
    model.forward = types.MethodType(own_forward, model)
    bastile.apply_to_model(model, fused_linear_cross_entropy=False)
    bastile.apply_to_model(model, fused_linear_cross_entropy=False)
    assert not recwarn.list


def test_the_forward_that_trl_sets(tmp_path):
    trl = pytest.importorskip("trl")
    datasets = pytest.importorskip("datasets")
    from test_patched_training import arguments, rows, word_tokenizer

    trainer = trl.SFTTrainer(
        model=tiny_models.make("qwen3"),
        args=arguments(trl.SFTConfig, tmp_path, bf16=False),
        train_dataset=datasets.Dataset.from_list(
            [{key: value.tolist() for key, value in row.items()} for row in rows()]
        ),
        processing_class=word_tokenizer(),
    )
    inputs = {**tiny_models.batch(), "fused_lm_head": True}
    expected = trainer.model(**inputs)
    with pytest.warns(RuntimeWarning, match="Qwen3ForCausalLM.forward by trl"):
        bastile.apply_to_model(trainer.model)
    outputs = trainer.model(**inputs)
    assert type(outputs) is type(expected)
    assert torch.allclose(outputs.loss, expected.loss)
    # The rotation is computed together with norms.
    ops = sorted({*NO_LOSS, "norm_rope"} - {"rope"})
    assert bastile.get_patched_ops(trainer.model) == {"qwen3": ops}


@pytest.mark.parametrize("is_hooked_first", [False, True])
def test_behind_the_hooks_of_accelerate(model, is_hooked_first):
    hooks = pytest.importorskip("accelerate.hooks")
    expected = tiny_models.run(model, tiny_models.batch())
    seen = []

    class Hook(hooks.ModelHook):
        def pre_forward(self, module, *operands, **named):
            seen.append(module)
            return operands, named

    def hook():
        for module in model.modules():
            hooks.add_hook_to_module(module, Hook())

    if is_hooked_first:
        hook()
    bastile.apply_to_model(model)
    assert not bastile.apply_to_model(model).ops
    if not is_hooked_first:
        hook()
    assert not bastile.apply_to_model(model).ops
    assert bastile.get_patched_ops(model) == {"llama": ALL}
    outputs, gradients = tiny_models.run(model, tiny_models.batch())
    assert not tiny_models.has_logits(outputs) and model in seen
    assert model.model.layers[0].mlp in seen
    assert torch.allclose(outputs.loss, expected[0].loss)
    for name, gradient in gradients.items():
        assert torch.allclose(gradient, expected[1][name], atol=2e-5), name
    if is_hooked_first:
        bastile.reset()
    hooks.remove_hook_from_module(model, recurse=True)
    assert bastile.get_patched_ops(model) == ({} if is_hooked_first else {"llama": ALL})
    bastile.reset()
    assert bastile.get_patched_ops(model) == {}
    again = tiny_models.run(model, tiny_models.batch())[0]
    assert torch.equal(again.logits, expected[0].logits)


def test_wrapped_models(model):
    peft = pytest.importorskip("peft")
    config = peft.LoraConfig(r=4, target_modules=["q_proj"])
    wrapped = peft.get_peft_model(model, config)
    outer = torch.nn.Sequential()
    outer.module = wrapped
    compiled = torch.compile(wrapped)
    for other in (outer, wrapped, compiled, model):
        with bastile.apply_to_model(other):
            for asked in (outer, wrapped, compiled, model):
                assert bastile.get_patched_ops(asked) == {"llama": ALL}
            layer = model.model.layers[0].mlp
            assert bastile.get_patched_ops(layer) == {"llama": ["swiglu"]}
        assert bastile.get_patched_ops(wrapped) == {}


def test_copies_of_a_patched_model(model):
    bastile.apply_to_model(model, cross_entropy=True)
    copied = copy.deepcopy(model)
    everything = {"llama": sorted(["cross_entropy", *ALL])}
    assert bastile.get_patched_ops(copied) == everything
    assert not bastile.apply_to_model(copied).ops
    bastile.reset()
    assert bastile.get_patched_ops(model) == {}
    assert bastile.get_patched_ops(copied) == everything


def test_two_types_share_a_loss(model):
    other = tiny_models.make("mistral")
    options = {op: False for op in NO_LOSS}
    for each in (model, other):
        bastile.apply_to_model(each, cross_entropy=True, **options)
    losses = ["cross_entropy", "fused_linear_cross_entropy"]
    assert bastile.get_patched_ops(model) == {"llama": losses}
    assert bastile.get_patched_ops(other) == {"mistral": losses}


def test_what_others_replaced_later_is_not_in_force():
    module = modeling("llama")
    bastile.apply("llama")
    ours = module.LlamaMLP.forward
    module.LlamaMLP.forward = ours.bastile_original
    assert "swiglu" not in bastile.get_patched_ops()["llama"]
    assert not any(
        info.applied for info in bastile.list_patches("llama") if info.op == "swiglu"
    )
    assert bastile.apply("llama").ops == ["llama.swiglu"]
    assert module.LlamaMLP.forward is ours


def test_a_wrapper_of_what_bastile_set_is_not_undone():
    """Whoever wraps a function copies its attributes."""
    import functools

    module, calls = modeling("llama"), []
    bastile.apply("llama")
    ours = module.LlamaMLP.forward

    @functools.wraps(ours)
    def wrapper(self, x):
        calls.append(x)
        return ours(self, x)

    module.LlamaMLP.forward = wrapper
    with bastile.apply("llama"):
        model = tiny_models.make("llama")
        model(**tiny_models.batch())
    assert module.LlamaMLP.forward is wrapper
    assert "swiglu" not in bastile.get_patched_ops()["llama"]
    module.LlamaMLP.forward = ours
    assert "swiglu" in bastile.get_patched_ops()["llama"]
    bastile.reset()
    assert not hasattr(module.LlamaMLP.forward, "bastile_original")


def test_a_module_that_is_loaded_again():
    module = modeling("olmo2")
    old, everything = module.Olmo2RMSNorm, dict(vars(module))
    bastile.apply("olmo2")
    importlib.reload(module)
    try:
        assert "olmo2" not in bastile.get_patched_ops()
        patched = bastile.apply("olmo2")
        assert patched.ops == [f"olmo2.{op}" for op in ALL]
        assert bastile.get_patched_ops()["olmo2"] == ALL
        model = module.Olmo2ForCausalLM(tiny_models.configuration("olmo2")).train()
        assert not tiny_models.has_logits(model(**tiny_models.batch()))
        assert hasattr(module.apply_rotary_pos_emb, "bastile_original")
    finally:
        bastile.reset()
    assert not hasattr(module.apply_rotary_pos_emb, "bastile_original")
    for cls in (old, module.Olmo2RMSNorm):
        assert not hasattr(cls.forward, "bastile_original")
    # Transformers has handed out the classes from before.
    vars(module).update(everything)
