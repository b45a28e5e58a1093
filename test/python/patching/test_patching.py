# Part of Bastile, under the MIT License. See LICENSE.
# RUN: %package-test %s
"""Applying, undoing, listing and registering patches, and what is said when a
version of Transformers has something else."""

import importlib
import pathlib
import subprocess
import sys
import traceback
import types

import bastile
import pytest
import tiny_models
import torch
import transformers
from bastile import patching
from bastile._patching import model_types, registry, replacements, table

ROOT = pathlib.Path(__file__).resolve().parents[3]


def modeling(name):
    return importlib.import_module(f"transformers.models.{name}.modeling_{name}")


def state(name):
    """What patches may change in the module of a model."""
    module = modeling(name)
    classes = [x for x in vars(module).values() if isinstance(x, type)]
    own = {x: dict(vars(x)) for x in classes if x.__module__ == module.__name__}
    return dict(vars(module)), own


@pytest.fixture(autouse=True)
def leave_nothing():
    yield
    bastile.reset()
    assert bastile.get_patched_ops() == {}


def test_apply_changes_and_reset_restores():
    before = state("qwen3")
    bastile.apply("qwen3")
    assert state("qwen3") != before
    bastile.reset()
    assert state("qwen3") == before


def test_apply_twice_is_apply_once():
    before = state("llama")
    first = bastile.apply("llama")
    during = state("llama")
    second = bastile.apply("llama")
    assert state("llama") == during
    assert first.ops and not second.ops
    second.reset()
    assert state("llama") == during
    first.reset()
    assert state("llama") == before


def test_ops_add_up():
    others = {
        "add_rms_norm": False,
        "attention": False,
        "fused_linear_cross_entropy": False,
        "linear_log_probs": False,
        "linear_jsd": False,
        "norm_rope": False,
    }
    bastile.apply("llama", rope=False, swiglu=False, **others)
    assert bastile.get_patched_ops() == {"llama": ["rms_norm"]}
    with bastile.apply("llama", **others) as patched:
        assert patched.ops == ["llama.rope", "llama.swiglu"]
    assert bastile.get_patched_ops() == {"llama": ["rms_norm"]}


def test_reset_by_name():
    bastile.apply("qwen3")
    bastile.apply("llama")
    bastile.reset("qwen3.rope")
    assert "rope" not in bastile.get_patched_ops()["qwen3"]
    assert "rope" in bastile.get_patched_ops()["llama"]
    bastile.apply("gemma3", rope=False)
    bastile.reset(["rms_norm", "llama", "gemma3_text", "trl"])
    assert bastile.get_patched_ops() == {
        "qwen3": [
            "add_rms_norm",
            "attention",
            "fused_linear_cross_entropy",
            "norm_rope",
            "swiglu",
        ]
    }


def test_all_models():
    """Of some the modules have been imported, of others nothing is known yet."""
    modeling("qwen2")
    module = "transformers.models.starcoder2.modeling_starcoder2"
    assert module not in sys.modules
    before = transformers.PreTrainedModel.__init__
    with bastile.apply() as patched:
        assert "rope" in bastile.get_patched_ops()["qwen2"]
        assert "starcoder2" not in bastile.get_patched_ops()
        assert module not in sys.modules
        config = tiny_models.configuration("llama").to_dict()
        config = transformers.Starcoder2Config(
            **{**config, "model_type": "starcoder2", "hidden_act": "gelu"}
        )
        transformers.AutoModelForCausalLM.from_config(config)
        assert "rope" in bastile.get_patched_ops()["starcoder2"]
        assert "starcoder2.rope" in patched.ops
    assert not any(info.applied for info in bastile.list_patches())
    assert transformers.PreTrainedModel.__init__ is before


def test_the_end_of_patching_all_models():
    """Once by the object that `apply` returns, and once by `reset`."""
    before = transformers.PreTrainedModel.__init__
    first, second = bastile.apply(rope=False), bastile.apply(rms_norm=False)
    first.reset()
    assert transformers.PreTrainedModel.__init__ is not before
    second.reset()
    assert transformers.PreTrainedModel.__init__ is before
    bastile.apply()
    bastile.reset()
    assert transformers.PreTrainedModel.__init__ is before


def test_an_exception_leaves_the_context_clean():
    before = state("llama")
    with pytest.raises(KeyError), bastile.apply("llama"):
        raise KeyError
    assert state("llama") == before


def test_instances_and_classes_are_apart():
    model = tiny_models.make("llama")
    bastile.apply_to_model(model)
    assert bastile.get_patched_ops() == {}
    assert "rope" in bastile.get_patched_ops(model)["llama"]
    bastile.reset()
    assert bastile.get_patched_ops(model) == {}
    assert not any("forward" in vars(module) for module in model.modules())


def test_weights_may_come_later():
    source, model = tiny_models.make("qwen3"), tiny_models.make("qwen3", seed=1)
    bastile.apply_to_model(model)
    model.load_state_dict(source.state_dict())
    inputs = tiny_models.batch()
    assert torch.allclose(model(**inputs).loss, source(**inputs).loss)


def test_where_a_model_is_made_does_not_matter(set_default_type):
    set_default_type(torch.float64)
    with torch.device("meta"):
        bastile.apply("gpt_oss")
        bastile.apply_to_model(tiny_models.make("gpt_oss"))


def test_many_models_share_what_replaces():
    models = [tiny_models.make("llama") for _ in range(2)]
    for model in models:
        bastile.apply_to_model(model)
    first, second = (model.model.layers[0].self_attn for model in models)
    assert first.forward.__func__ is second.forward.__func__


def test_a_patched_model_is_not_kept_alive():
    import gc
    import weakref

    model = tiny_models.make("llama")
    bastile.apply_to_model(model)
    reference = weakref.ref(model)
    del model
    gc.collect()
    assert reference() is None


def test_what_others_replaced_later_stays():
    module = modeling("llama")
    bastile.apply("llama")
    ours, other = module.LlamaMLP.forward, lambda self, x: x
    module.LlamaMLP.forward = other
    with pytest.warns(RuntimeWarning, match="LlamaMLP.forward was replaced again"):
        bastile.reset()
    assert module.LlamaMLP.forward is other
    module.LlamaMLP.forward = ours.bastile_original


def test_unknown_names():
    with pytest.raises(ValueError, match="'qwem3' in Transformers .*mean 'qwen3'"):
        bastile.apply("qwem3")
    with pytest.raises(ValueError, match="'norm' is neither a model type"):
        bastile.reset("norm")
    with pytest.raises(TypeError, match="apply takes a model type as in 'qwen3'"):
        bastile.apply(torch.nn.Linear(2, 2))
    with pytest.raises(TypeError, match="takes a model of Transformers"):
        bastile.apply_to_model(torch.nn.Linear(2, 2))


MISSPELLED = {
    "Qwen3": "qwen3",
    "gpt-oss": "gpt_oss",
    "gptoss": "gpt_oss",
    "lama": "llama",
    "mistrall": "mistral",
    "qwen3-mo": "qwen3_moe",
    # Other models, which might be.
    "qwen33": None,
    "llama_x": None,
}


@pytest.mark.parametrize("name", MISSPELLED)
def test_what_was_meant(name):
    with pytest.raises(ValueError) as raised:
        bastile.apply(name)
    meant = MISSPELLED[name]
    expected = f"there is no model type '{name}' in Transformers "
    expected += transformers.__version__
    expected += f"; did you mean '{meant}'? reg" if meant else ". register_patch adds"
    assert str(raised.value).startswith(expected)


MISMATCHES = [
    (
        table.Norm("LlamaRMSNorm", casting="gemma"),
        "LlamaRMSNorm.forward: the table says casting='gemma' and offset=0.0, but "
        "its numbers are those of casting='llama' and offset=0.0",
    ),
    (table.Norm("LlamaRMSNorm", eps="eps"), "no norm with 'weight' and 'eps'"),
    (table.Norm("LlamaNorm"), "LlamaNorm.forward: there is no such name"),
    (table.Rope("neighbours"), "does not turn pairs of the kind 'neighbours'"),
    (table.Mlp("LlamaMLP", up="w3"), "no layer of gate_proj, w3"),
    (table.CausalLoss("LlamaForCausalLM", router=True), "the loss of a router"),
    (
        table.CausalLoss("LlamaForCausalLM", divisor="logits_scaling"),
        "LlamaForCausalLM: its logits are not those of the last layer, divided by "
        "'logits_scaling', but 3 times these",
    ),
]


@pytest.mark.parametrize("patch, message", MISMATCHES)
def test_a_class_that_differs(patch, message, monkeypatch):
    before = state("llama")
    entry = table.Model(
        "transformers.models.llama.modeling_llama", (table.Mlp("LlamaMLP"), patch)
    )
    monkeypatch.setitem(table.MODELS, "llama", entry)
    with pytest.raises(bastile.patching.PatchError, match=message):
        bastile.apply("llama")
    assert state("llama") == before


@pytest.mark.parametrize(
    "forward",
    [
        # Epsilon counts where operands are small; NaN is within no bound.
        lambda self, x: self.weight * (x / x.float().norm(dim=-1, keepdim=True) * 8),
        lambda self, x: self.weight * x * float("nan"),
        lambda self, x: (
            self.weight
            * (x.float() / (x.float().pow(2).mean(-1, keepdim=True).sqrt() + 1e-3)).to(
                x
            )
        ),
    ],
)
def test_norms_that_differ(forward, monkeypatch):
    monkeypatch.setattr(modeling("llama").LlamaRMSNorm, "forward", forward)
    with pytest.raises(patching.PatchError, match="LlamaRMSNorm.forward: its numbers"):
        bastile.apply("llama", strict=True)
    with bastile.apply("llama") as patched:
        assert "llama.rms_norm" not in patched.ops and "llama.rope" in patched.ops


def test_a_rotation_that_differs_where_a_part_of_a_head_turns(monkeypatch):
    module = modeling("phi3")
    original = module.apply_rotary_pos_emb

    def rotate(q, k, cos, sin, unsqueeze_dim=1):
        if cos.shape[-1] == q.shape[-1]:
            return original(q, k, cos, sin)
        count = cos.shape[-1]
        turned = original(q[..., -count:], k[..., -count:], cos, sin)
        parts = zip((q, k), turned)
        return [torch.cat((x[..., :-count], part), -1) for x, part in parts]

    monkeypatch.setattr(module, "apply_rotary_pos_emb", rotate)
    with pytest.raises(patching.PatchError, match="where 12 of 24 elements turn"):
        bastile.apply("phi3", strict=True)


@pytest.mark.parametrize("with_scale", [False, True])
def test_norms_without_a_weight(with_scale, monkeypatch):
    """As in Gemma 4, whose class says so, or in one of which nobody knows."""
    module, calls = types.ModuleType("modeling_own"), []

    class Norm(torch.nn.Module):
        def __init__(self, size, eps=1e-6, with_scale=True):
            super().__init__()
            self.eps, self.with_scale = eps, with_scale
            if with_scale:
                self.weight = torch.nn.Parameter(torch.ones(size))

        def forward(self, x):
            calls.append(self)
            wide = torch.nn.functional.rms_norm(x.float(), x.shape[-1:], eps=self.eps)
            return (wide * self.weight.float() if self.with_scale else wide).to(x)

    class Unknown(Norm):
        def __init__(self, size, eps=1e-6):
            super().__init__(size, eps)

        def forward(self, x):
            calls.append(self)
            wide = torch.nn.functional.rms_norm(x.float(), x.shape[-1:], eps=self.eps)
            weight = getattr(self, "weight", torch.full((), 3.0))
            return (wide * weight.float()).to(x)

    cls = module.Norm = Norm if with_scale else Unknown
    monkeypatch.setitem(sys.modules, "modeling_own", module)
    monkeypatch.setattr(table, "MODELS", dict(table.MODELS))
    entry = patching.Norm("Norm", casting="gemma", eps="eps")
    bastile.register_patch("own", "modeling_own", entry)
    norm = cls(16, **({"with_scale": False} if with_scale else {}))
    if not with_scale:
        del norm.weight, norm.with_scale
    x = torch.randn(3, 16)
    expected = norm(x)
    with bastile.apply("own"):
        calls.clear()
        torch.testing.assert_close(norm(x), expected)
    assert bool(calls) == (not with_scale)


def test_experts_that_differ(monkeypatch):
    module = modeling("gpt_oss")
    original = module.GptOssExperts.forward

    def forward(self, hidden_states, router_indices=None, routing_weights=None):
        return 2 * original(self, hidden_states, router_indices, routing_weights)

    monkeypatch.setattr(module.GptOssExperts, "forward", forward)
    # Of Transformers 4, whose experts have no method for the gate, that is said.
    reason = "GptOssExperts: (its numbers|it has no method)"
    with pytest.raises(patching.PatchError, match=reason):
        bastile.apply("gpt_oss", strict=True)
    bastile.apply("gpt_oss", moe=False, strict=True)


def test_a_model_that_is_not_there(monkeypatch):
    monkeypatch.setattr(table, "MODELS", dict(table.MODELS))
    bastile.register_patch("own", "transformers.models.own.modeling_own")
    with pytest.raises(patching.PatchError, match="modeling_own: there is no such mod"):
        bastile.apply("own")
    bastile.apply()


def test_every_difference_is_named(monkeypatch):
    module = modeling("qwen2")
    monkeypatch.setattr(module.Qwen2RMSNorm, "forward", lambda self, x: x)
    monkeypatch.setattr(module, "apply_rotary_pos_emb", lambda q, k, cos, sin: (q, k))
    with pytest.raises(bastile.patching.PatchError) as raised:
        bastile.apply("qwen2", strict=True)
    (message,) = traceback.format_exception_only(raised.value)
    assert message.startswith("bastile.patching.PatchError: Transformers ")
    assert "Qwen2RMSNorm.forward: its numbers are those of no RMS norm" in message
    assert "apply_rotary_pos_emb: it turns pairs of none of the kinds" in message
    assert "nothing was patched" in message
    reasons = {info.op: info.reason for info in bastile.list_patches("qwen2")}
    assert reasons["rms_norm"] == "its numbers are those of no RMS norm"
    assert reasons["swiglu"] is None


def test_a_failure_while_patching_leaves_nothing(monkeypatch):
    class Frozen(type):
        def __setattr__(cls, name, value):
            raise AttributeError("frozen")

    class Owner(metaclass=Frozen):
        pass

    before = state("llama")
    (source,) = model_types.find("llama")
    found, _ = replacements.of_source(source, {"rms_norm"})
    bad = replacements.Replacement("llama", "rope", Owner, "forward", print)
    with pytest.raises(AttributeError, match="frozen"):
        registry.patch_classes([*found, bad])
    assert state("llama") == before


def test_registering_a_model(monkeypatch):
    monkeypatch.setattr(table, "MODELS", dict(table.MODELS))
    llama = modeling("llama")
    own = types.ModuleType("modeling_own")
    own.Norm = type("Norm", (llama.LlamaRMSNorm,), {})
    monkeypatch.setitem(sys.modules, "modeling_own", own)
    bastile.register_patch("own", "modeling_own", patching.Norm("Norm"))
    with bastile.apply("own"):
        assert "forward" in vars(own.Norm)
        with pytest.raises(ValueError, match="'own' is patched"):
            bastile.register_patch("own", "modeling_own")
    assert "forward" not in vars(own.Norm)
    with pytest.raises(
        TypeError, match="a patch is one of Norm, GatedNorm, Heads, Rope"
    ):
        bastile.register_patch("own", "modeling_own", "Norm")


def test_transformers_is_not_imported_early():
    code = "import sys, bastile; bastile.list_patches(); bastile.reset()\n"
    code += "assert 'transformers' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_without_transformers():
    code = "import sys; sys.modules['transformers'] = None\n"
    code += "import bastile; bastile.apply()"
    result = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True
    )
    assert "pip install 'bastile-mlir[transformers]'" in result.stderr


@pytest.mark.parametrize(
    "call, exception, message",
    [
        (lambda: bastile.get_patched_ops("llama"), TypeError, "takes a model or noth"),
        (lambda: bastile.reset(3), TypeError, "takes a name or several, but got"),
        (lambda: bastile.reset(["llama", 3]), TypeError, "takes a name or several"),
        (lambda: patching.Rope("weird"), ValueError, "'kind' must be one of halves"),
        (lambda: patching.Norm("N", casting="x"), ValueError, "'casting' must be one"),
        (lambda: patching.Experts("E", kind="x"), ValueError, "'kind' must be one of"),
    ],
)
def test_mistakes(call, exception, message):
    with pytest.raises(exception, match=message):
        call()
