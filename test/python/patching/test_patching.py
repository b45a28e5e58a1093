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
from bastile import patching
from bastile._patching import registry, replacements, table


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
    bastile.apply("llama", rope=False, swiglu=False, fused_linear_cross_entropy=False)
    assert bastile.get_patched_ops() == {"llama": ["rms_norm"]}
    with bastile.apply("llama", fused_linear_cross_entropy=False) as patched:
        assert patched.ops == ["llama.rope", "llama.swiglu"]
    assert bastile.get_patched_ops() == {"llama": ["rms_norm"]}


def test_reset_by_name():
    bastile.apply("qwen3")
    bastile.apply("llama")
    bastile.reset("qwen3.rope")
    assert "rope" not in bastile.get_patched_ops()["qwen3"]
    assert "rope" in bastile.get_patched_ops()["llama"]
    bastile.apply("gemma3", rope=False)
    bastile.reset(["rms_norm", "llama", "gemma3_text"])
    assert bastile.get_patched_ops() == {
        "qwen3": ["fused_linear_cross_entropy", "swiglu"]
    }


def test_all_models():
    with bastile.apply():
        assert set(bastile.get_patched_ops()) == set(table.MODELS)
        assert all(info.applied for info in bastile.list_patches("qwen2")[:3])
    assert not any(info.applied for info in bastile.list_patches())


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


def test_where_a_model_is_made_does_not_matter():
    default = torch.get_default_dtype()
    torch.set_default_dtype(torch.float64)
    try:
        with torch.device("meta"):
            bastile.apply("gpt_oss")
            bastile.apply_to_model(tiny_models.make("gpt_oss"))
    finally:
        torch.set_default_dtype(default)


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
    with pytest.raises(ValueError, match="type 'qwem3'; did you mean 'qwen3'"):
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
    # Other models, which Transformers knows or might.
    "qwen3_vl": None,
    "qwen3_next": None,
    "qwen33": None,
    "gemma": None,
    "gemma3n": None,
    "gemma4": None,
    "llama4": None,
    "llama_x": None,
    "ministral": None,
    "olmo3": None,
    "phi": None,
    "phi4": None,
    "bert": None,
}


@pytest.mark.parametrize("name", MISSPELLED)
def test_what_was_meant(name):
    with pytest.raises(ValueError) as raised:
        bastile.apply(name)
    meant = MISSPELLED[name]
    hint = f"; did you mean '{meant}'? There are" if meant else ". There are gemma2,"
    expected = f"Bastile has no patches for models of type '{name}'{hint}"
    assert str(raised.value).startswith(expected)
    assert "qwen3_moe, and register_patch adds others" in str(raised.value)


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
        bastile.apply("llama")


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
    with pytest.raises(patching.PatchError, match="where 8 of 16 elements turn"):
        bastile.apply("phi3")


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
    with pytest.raises(patching.PatchError, match="GptOssExperts: it does not compute"):
        bastile.apply("gpt_oss")
    bastile.apply("gpt_oss", moe=False)


def test_a_model_that_is_not_there(monkeypatch):
    monkeypatch.setattr(table, "MODELS", dict(table.MODELS))
    bastile.register_patch("own", "transformers.models.own.modeling_own")
    with pytest.raises(patching.PatchError, match="modeling_own: there is no such mod"):
        bastile.apply("own")
    bastile.apply()


def test_every_difference_is_named(monkeypatch):
    module = modeling("qwen2")
    monkeypatch.setattr(module.Qwen2MLP, "forward", lambda self, x: x)
    monkeypatch.delattr(module, "apply_rotary_pos_emb")
    with pytest.raises(bastile.patching.PatchError) as raised:
        bastile.apply()
    (message,) = traceback.format_exception_only(raised.value)
    assert message.startswith("bastile.patching.PatchError: Transformers ")
    assert "Qwen2MLP.forward: it does not compute" in message
    assert "apply_rotary_pos_emb: there is no such name" in message
    assert "nothing was patched" in message


def test_a_failure_while_patching_leaves_nothing(monkeypatch):
    class Frozen(type):
        def __setattr__(cls, name, value):
            raise AttributeError("frozen")

    class Owner(metaclass=Frozen):
        pass

    before = state("llama")
    found, _ = replacements.of_model("llama", table.MODELS["llama"], {"rms_norm"})
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
    with pytest.raises(TypeError, match="a patch is one of Norm, Rope"):
        bastile.register_patch("own", "modeling_own", "Norm")


def test_the_documented_models_are_those_of_the_table():
    lines = (ROOT / "docs" / "models.md").read_text().splitlines()
    rows = [line.split("|") for line in lines if line.startswith("| `")]
    documented = {row[1].strip(" `"): row for row in rows if len(row) == 8}
    assert set(documented) == set(table.MODELS)
    for name, row in documented.items():
        ops = {info.op for info in bastile.list_patches(name)}
        assert bool(row[4].strip()) == bool(ops & {"swiglu", "geglu"}), name
        assert bool(row[5].strip()) == ("moe" in ops), name


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
