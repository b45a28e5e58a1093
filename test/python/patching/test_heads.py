# Part of Bastile, under the MIT License. See LICENSE.
# RUN: %package-test %s
"""Norms of queries and keys in one call with their rotation."""

import ast
import types

import bastile
import pytest
import tiny_models
import torch
from bastile import ops, patching
from bastile._patching import probes
from bastile._patching.fused import projecting
from bastile._patching.kinds import heads
from bastile._formulas.rope import rope_halves
from tiny_models import assert_alike, calls, count_nodes

OF_ONE = {x: x == "norm_rope" for x in patching.OPS if not x.startswith("linear")}
ONLY = {x: x == "norm_rope" for x in patching.OPS}
NAMES = ["qwen3", "gemma3", "qwen3_moe"]


@pytest.fixture(autouse=True)
def leave_nothing():
    yield
    bastile.reset()


def make(name):
    """A model in which norms have weights of their own."""
    model = tiny_models.make(name, **tiny_models.ALL_EXPERTS[name])
    with torch.no_grad():
        for key, parameter in model.named_parameters():
            if "norm" in key:
                parameter.add_(0.3 * torch.randn_like(parameter))
    return model


@pytest.mark.parametrize("name", NAMES)
def test_attention(name):
    model, inputs = make(name), tiny_models.batch()
    expected = tiny_models.run(model, inputs)
    with bastile.apply(name, **ONLY) as patched:
        assert patched.ops == [f"{name}.norm_rope"]
        assert_alike(tiny_models.run(model, inputs), expected)
        assert calls(model, inputs) == 2
    assert calls(model, inputs) == 0


@pytest.mark.parametrize("name", NAMES)
def test_one_model_alone(name, recwarn):
    model, other, inputs = make(name), make(name), tiny_models.batch()
    expected = tiny_models.run(model, inputs)
    options = {**OF_ONE, "rope": True, "rms_norm": True}
    with bastile.apply_to_model(model, **options) as patched:
        # The rotation is part of it.
        assert patched.ops == [f"{name}.norm_rope", f"{name}.rms_norm"]
        assert_alike(tiny_models.run(model, inputs), expected)
        norms = {"gemma3": 4}.get(name, 2)
        assert calls(model, inputs) == 2 * (norms + 1) + 1
        assert calls(other, inputs) == 0
        assert not bastile.apply_to_model(model, **options).ops
    assert not any("forward" in vars(module) for module in model.modules())
    assert not [x for x in recwarn if "somebody else" in str(x.message)]


def test_a_rotation_that_was_patched_before(recwarn):
    """It stays, and so do the norms."""
    model, inputs = make("qwen3"), tiny_models.batch()
    expected = tiny_models.run(model, inputs)
    bastile.apply_to_model(model, **{**OF_ONE, "rope": True, "norm_rope": False})
    assert not bastile.apply_to_model(model, **OF_ONE).ops
    assert_alike(tiny_models.run(model, inputs), expected)
    assert not [x for x in recwarn if "somebody else" in str(x.message)]


def test_norms_with_hooks_are_called():
    model, inputs = make("qwen3"), tiny_models.batch()
    shapes = []
    first = model.model.layers[0].self_attn
    first.k_norm.register_forward_hook(lambda *x: shapes.append(x[-1].shape))
    expected = tiny_models.run(model, inputs)
    with bastile.apply("qwen3", **ONLY):
        assert_alike(tiny_models.run(model, inputs), expected)
        assert calls(model, inputs) == 1
    assert shapes == 3 * [(2, 12, 2, 16)]


def test_another_weight_than_a_parameter():
    model, inputs = make("qwen3"), tiny_models.batch()
    for layer in model.model.layers:
        torch.nn.utils.parametrize.register_parametrization(
            layer.self_attn.q_norm, "weight", torch.nn.Identity()
        )
    expected = tiny_models.run(model, inputs)
    with bastile.apply("qwen3", **ONLY):
        assert_alike(tiny_models.run(model, inputs), expected)
        assert calls(model, inputs) == 0


@pytest.mark.parametrize("patch", [bastile.apply, bastile.apply_to_model])
def test_adapters(patch):
    peft = pytest.importorskip("peft")
    model, inputs = make("qwen3"), tiny_models.batch()
    config = peft.LoraConfig(r=4, target_modules=["q_proj"], init_lora_weights=False)
    wrapped = peft.get_peft_model(model, config)
    expected = tiny_models.run(wrapped, inputs)
    with patch("qwen3" if patch is bastile.apply else wrapped, **OF_ONE):
        assert_alike(tiny_models.run(wrapped, inputs), expected)
        assert calls(wrapped, inputs) == 2


@pytest.mark.parametrize("name", ["qwen3", "gemma3"])
def test_generation_and_checkpoints(name):
    model, inputs = make(name), tiny_models.batch()
    prompt = inputs["input_ids"][:, :5]
    options = {"max_new_tokens": 6, "do_sample": False, "eos_token_id": None}
    tokens = model.eval().generate(prompt, **options)
    expected = tiny_models.run(model.train(), inputs)
    with bastile.apply(name, **ONLY):
        assert torch.equal(model.eval().generate(prompt, **options), tokens)
        model.train().gradient_checkpointing_enable({"use_reentrant": False})
        assert_alike(tiny_models.run(model, inputs), expected)


def test_eager_attention_and_its_weights():
    model, inputs = make("qwen3"), tiny_models.batch()
    model.set_attn_implementation("eager")
    expected = model(**inputs, output_attentions=True)
    with bastile.apply("qwen3", **ONLY):
        found = model(**inputs, output_attentions=True)
    for a, b in zip(found.attentions, expected.attentions, strict=True):
        torch.testing.assert_close(a, b, rtol=1e-4, atol=1e-5)


@pytest.mark.long(every=3)
@pytest.mark.parametrize("name", ["qwen3", "gemma3"])
def test_in_one_graph(name):
    model, inputs = make(name), tiny_models.batch()
    expected = tiny_models.run(model, inputs)
    with bastile.apply(name, **ONLY):
        results, kernels = tiny_models.run_compiled(model, inputs)
    assert_alike(results, expected)
    casting = {"qwen3": "llama", "gemma3": "gemma"}[name]
    assert kernels == [f"norm_rope_{casting}"] * len(model.model.layers)


def a_norm(size, eps, seed, dtype):
    weight = torch.nn.Parameter(probes.numbers(size, seed=seed).to(dtype))
    return types.SimpleNamespace(weight=weight, eps=eps)


def helper(casting, offset):
    of_class = heads.norms.Norm(casting, offset, "eps", ())
    return heads._helper({types.SimpleNamespace: of_class})


@pytest.mark.parametrize("casting", ["llama", "gemma"])
@pytest.mark.parametrize("turned", [16, 8])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("are_rows", [False, True])
def test_the_kernel_rounds_as_apart(casting, turned, dtype, are_rows):
    q, k = (probes.numbers(2, n, 5, 16, seed=n).to(dtype) for n in (4, 2))
    norms = [a_norm(16, 10.0**-x, x, dtype) for x in (3, 4)]
    angles = probes.numbers(2, 5, turned, seed=7)
    cos, sin = angles.cos().to(dtype), angles.sin().to(dtype)
    with torch.no_grad():
        given = (x.transpose(1, 2) if are_rows else x for x in (q, k))
        results = helper(casting, 1.0)(*norms, None, *given, cos, sin, are_rows)
        options = {"casting": casting, "offset": 1.0}
        normed = [
            ops.rms_norm(x, norm.weight, eps=norm.eps, **options).transpose(1, 2)
            for x, norm in zip((q, k), norms)
        ]
        expected = rope_halves(*normed, cos.unsqueeze(2), sin.unsqueeze(2))
    error = 0 if dtype == torch.bfloat16 else 1e-6
    for result, wanted in zip(results, expected):
        wanted = wanted.transpose(1, 2)
        torch.testing.assert_close(result, wanted, rtol=error, atol=error)


def test_operands_of_another_form():
    """They are normed and turned apart."""
    norms = [lambda x: 2 * x, lambda x: 3 * x]

    def rotate(q, k, cos, sin):
        return q + cos, k + sin

    q = k = torch.ones(2, 3)
    cos = sin = torch.zeros(3)
    results = helper("llama", 0.0)(*norms, rotate, q, k, cos, sin, False)
    assert torch.equal(results[0], 2 * q) and torch.equal(results[1], 3 * k)
    q = k = torch.randn(1, 2, 3, 5)
    results = helper("llama", 0.0)(*norms, rotate, q, k, cos[0], sin[0], True)
    assert torch.equal(results[0], 2 * q.transpose(1, 2))


def look(*lines):
    tree = ast.parse("\n".join(lines))
    return heads._look(tree, {"a", "b"}, {"rotate"})


TURN = "q, k = rotate(q, k, cos, sin)"


def test_statements():
    found = look("q = self.a(q)", "k = self.b(y).transpose(1, 2)", "v = y", TURN)
    assert [ast.unparse(x) for x in found.replacement()] == [
        "q = q",
        "k = y.transpose(1, 2)",
        "v = y",
        "q, k = bastile_norm_rope(self.a, self.b, rotate, q, k, cos, sin, False)",
    ]
    found = look("q = self.a(q).transpose(1, 2)", "k = self.b(y).transpose(1, 2)", TURN)
    assert [ast.unparse(x) for x in found.replacement()] == [
        "q = q",
        "k = y",
        "q, k = bastile_norm_rope(self.a, self.b, rotate, q, k, cos, sin, True)",
    ]


def joined(*lines):
    return [ast.unparse(x) for x in projecting.join(ast.parse("\n".join(lines)).body)]


def test_projections_of_one_operand():
    names = "bastile_project_q_proj", "bastile_project_k_proj"
    assert joined(
        "s = x.shape", "q = self.q_proj(x).view(s)", "k = f(self.k_proj(x))", "x = q"
    ) == [
        "s = x.shape",
        f"{', '.join(names)} = bastile_project(x, [self.q_proj, self.k_proj])",
        f"q = {names[0]}.view(s)",
        f"k = f({names[1]})",
        "x = q",
    ]


@pytest.mark.parametrize(
    "lines",
    [
        ["q = self.q_proj(x)", "k = self.k_proj(y)"],
        ["q = self.q_proj(x)", "x = self.k_proj(x)", "v = self.v_proj(x)"],
        ["q = self.q_proj(x)", "x.mul_(2)", "k = self.k_proj(x)"],
        ["q = self.q_proj(x)", "y = x.mul_(2)", "k = self.k_proj(x)"],
        ["q = self.q_proj(x)", "x += 1", "k = self.k_proj(x)"],
        ["q = self.q_proj(x)", "k = self.k_proj(x) if self.k_proj else q"],
        ["q = self.q_proj(x)", "if self.k_proj:\n    k = self.k_proj(x)"],
        ["q = self.q_proj(x, 1)", "k = self.k_proj(x)"],
        ["q = self.q_norm(x)", "k = self.k_norm(x)"],
        ["q = q_proj(x)", "k = k_proj(x)"],
    ],
)
def test_projections_that_stay(lines):
    assert joined(*lines) == lines


def test_the_node_of_projections():
    """Queries, keys and values are one node, and so are gate and up."""
    model, inputs = make("qwen3"), tiny_models.batch()
    with bastile.apply("qwen3"):
        loss = model(**inputs).loss
    assert count_nodes(loss, "_ProjectionsBackward") == 2 * len(model.model.layers)


@pytest.mark.parametrize(
    "lines",
    [
        # The norm of all heads together, which are taken apart then.
        ["q = self.a(q)", "q = q.view(shape)", "k = self.b(k)", TURN],
        ["q = self.a(q).view(1, 2)", "k = self.b(k)", TURN],
        ["q = self.a(q)", "k = self.b(k)", "print(q)", TURN],
        ["q = self.a(q)", "k = self.b(q)", TURN],
        ["q = self.a(q)", "k = self.c(k)", TURN],
        ["q = self.a(q)", TURN],
        ["q = self.a(q)", "k = self.b(k)", "k, q = rotate(q, k, cos, sin)"],
        ["q = self.a(q)", "k = self.b(k)", "q, k = rotate(q, k, cos, sin, 2)"],
        ["q = self.a(q)", "k = self.b(k)", "q, k = turn(q, k, cos, sin)"],
        ["q = self.a(q)", "k = self.b(k)", f"if v: {TURN}"],
    ],
)
def test_statements_that_stay(lines):
    assert look(*lines) is None


def test_a_registered_layer_without_norms():
    source = "transformers.models.llama.modeling_llama"
    bastile.register_patch("mine", source, patching.Heads("LlamaAttention"))
    try:
        with pytest.raises(patching.PatchError, match="it does not turn what two"):
            bastile.apply("mine")
    finally:
        del heads.table.MODELS["mine"]
