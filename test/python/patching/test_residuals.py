# Part of Bastile, under the MIT License. See LICENSE.
# RUN: %package-test %s
"""Sums with the residual and the norms beside them as one call."""

import ast
import inspect
import sys
import types

import bastile
import pytest
import tiny_models
import torch
from bastile import ops, patching
from bastile._patching import code, kind, probes
from bastile._patching.kinds import residuals
from tiny_models import assert_alike, calls

#: By model type, how many nodes of PyTorch's graph stand for the norms and sums of a
#: layer: before a sum, behind it, or both.
NODES = {"llama": 1, "qwen3": 1, "gpt_oss": 1, "gemma3": 2, "glm4": 2, "olmo2": 2}


#: Options of `bastile.apply_to_model` for sums and norms alone, and of `apply`.
OF_ONE = {x: x == "add_rms_norm" for x in patching.OPS if not x.startswith("linear")}
ONLY = {x: x == "add_rms_norm" for x in patching.OPS}


@pytest.fixture(autouse=True)
def leave_nothing():
    yield
    bastile.reset()


@pytest.mark.parametrize("name", list(NODES))
def test_layers(name):
    model, inputs = tiny_models.make(name), tiny_models.batch()
    with torch.no_grad():
        for key, parameter in model.named_parameters():
            if "norm" in key:
                parameter.add_(0.3 * torch.randn_like(parameter))
    expected = tiny_models.run(model, inputs)
    with bastile.apply(name, **ONLY) as patched:
        assert patched.ops == [f"{name}.add_rms_norm"]
        results = tiny_models.run(model, inputs)
        assert calls(model, inputs) == 2 * NODES[name]
    assert_alike(results, expected)
    assert calls(model, inputs) == 0


@pytest.mark.parametrize("name", ["qwen3", "gemma3"])
def test_one_model_alone(name):
    model, other = tiny_models.make(name), tiny_models.make(name)
    inputs = tiny_models.batch()
    expected = tiny_models.run(model, inputs)
    with bastile.apply_to_model(model, **OF_ONE):
        assert_alike(tiny_models.run(model, inputs), expected)
        assert calls(model, inputs) == 2 * NODES[name]
        assert calls(other, inputs) == 0
    # Norms of this model have Bastile's forward as their own.
    with bastile.apply_to_model(model, **{**OF_ONE, "rms_norm": True}):
        assert_alike(tiny_models.run(model, inputs), expected)
        # One node for each norm, but for those that a sum takes along.
        assert calls(model, inputs) == {"qwen3": 9, "gemma3": 11}[name]
    assert not any("forward" in vars(module) for module in model.modules())


#: By model type, the kernels of a layer in a graph of `torch.compile`.
COMPILED = {
    "qwen3": ["add_rms_norm"],
    "gemma3": ["norm_add_norm_gemma", "norm_add_gemma"],
    "olmo2": ["norm_add_gemma", "norm_add_gemma"],
}


@pytest.mark.long(every=7)
@pytest.mark.parametrize("name", list(COMPILED))
def test_in_one_graph(name):
    model, inputs = tiny_models.make(name), tiny_models.batch()
    expected = tiny_models.run(model, inputs)
    with bastile.apply(name, **ONLY):
        results, kernels = tiny_models.run_compiled(model, inputs)
    assert_alike(results, expected)
    assert kernels == COMPILED[name] * 2


def test_a_graph_calls_norms_that_somebody_changed():
    model, inputs = tiny_models.make("qwen3"), tiny_models.batch()
    first, second = (x.post_attention_layernorm for x in model.model.layers)
    first.register_forward_hook(lambda module, given, made: 2 * made)
    with bastile.apply("qwen3", **ONLY):
        expected = tiny_models.run(model, inputs)
        results, kernels = tiny_models.run_compiled(model, inputs)
        assert_alike(results, expected)
        assert kernels == COMPILED["qwen3"]
        compiled = torch.compile(model.model, backend="eager")
        tokens = inputs["input_ids"]
        before = compiled(tokens).last_hidden_state
        # Between two calls of a graph.
        second.forward = types.MethodType(own_forward, second)
        after = compiled(tokens).last_hidden_state
        torch.testing.assert_close(after, model.model(tokens).last_hidden_state)
        assert not torch.allclose(before, after)


def test_a_norm_with_a_hook_is_called():
    model, inputs = tiny_models.make("qwen3"), tiny_models.batch()
    seen = []
    norm = model.model.layers[0].post_attention_layernorm
    norm.register_forward_hook(lambda module, given, made: seen.append(made.shape))
    expected = tiny_models.run(model, inputs)
    with bastile.apply("qwen3", **ONLY):
        assert_alike(tiny_models.run(model, inputs), expected)
        assert len(seen) == 2
        assert calls(model, inputs) == 1


def test_a_hook_for_all_modules():
    model, inputs = tiny_models.make("qwen3"), tiny_models.batch()
    seen = []
    with bastile.apply("qwen3", **ONLY):
        handle = torch.nn.modules.module.register_module_forward_hook(
            lambda module, given, made: seen.append(module)
        )
        try:
            model(**inputs)
        finally:
            handle.remove()
    assert model.model.layers[1].post_attention_layernorm in seen


class Doubled(torch.nn.Module):
    """In the place of a norm."""

    def forward(self, x):
        return 2 * x


def own_forward(self, x):
    return 3 * x


def test_what_somebody_has_put_in_a_norm_s_place():
    model, inputs = tiny_models.make("gemma3"), tiny_models.batch()
    first, second = model.model.layers
    first.pre_feedforward_layernorm = Doubled()
    norm = second.post_attention_layernorm
    norm.forward = types.MethodType(own_forward, norm)
    expected = tiny_models.run(model, inputs)
    with bastile.apply("gemma3", **ONLY):
        assert_alike(tiny_models.run(model, inputs), expected)
        assert calls(model, inputs) == 0


def test_a_forward_that_was_replaced_later(monkeypatch):
    model, inputs = tiny_models.make("qwen3"), tiny_models.batch()
    cls = type(model.model.norm)
    with bastile.apply("qwen3", **ONLY):
        monkeypatch.setattr(cls, "forward", own_forward)
        result = tiny_models.run(model, inputs)
        assert calls(model, inputs) == 0
    assert_alike(result, tiny_models.run(model, inputs))


@pytest.mark.parametrize("use_reentrant", [False, True])
@pytest.mark.parametrize("patch", [bastile.apply, bastile.apply_to_model])
def test_gradient_checkpointing(patch, use_reentrant):
    """Each layer runs twice, whoever has replaced its forward."""
    model, inputs = tiny_models.make("gemma3"), tiny_models.batch()
    expected = tiny_models.run(model, inputs)
    model.gradient_checkpointing_enable({"use_reentrant": use_reentrant})
    seen = []
    for layer in model.model.layers:
        layer.mlp.register_forward_hook(lambda *_: seen.append(1))
    patched = patch("gemma3" if patch is bastile.apply else model, **OF_ONE)
    with patched:
        assert_alike(tiny_models.run(model, inputs), expected)
    assert len(seen) == 4


@pytest.mark.parametrize("has_checkpoints", [False, True])
def test_layers_that_are_sharded(has_checkpoints, mesh):
    from torch.distributed.fsdp import fully_shard

    model, inputs = tiny_models.make("llama"), tiny_models.batch()
    expected, gradients = tiny_models.run(model, inputs)
    bastile.apply("llama", **ONLY)
    for module in (*model.model.layers, model):
        fully_shard(module, mesh=mesh)
    if has_checkpoints:
        model.gradient_checkpointing_enable({"use_reentrant": False})
    results, found = tiny_models.run(model, inputs)
    found = {name: x.full_tensor() for name, x in found.items()}
    assert_alike((results, found), (expected, gradients))
    assert calls(model, inputs) == 2


def test_generation_and_hidden_states():
    model = tiny_models.make("glm4").eval()
    prompt = tiny_models.batch()["input_ids"][:, :5]
    options = {"max_new_tokens": 6, "do_sample": False, "eos_token_id": None}
    expected = model.generate(prompt, **options)
    hidden = model(prompt, output_hidden_states=True).hidden_states
    with bastile.apply("glm4", **ONLY):
        assert torch.equal(model.generate(prompt, **options), expected)
        found = model(prompt, output_hidden_states=True).hidden_states
    for a, b in zip(found, hidden, strict=True):
        torch.testing.assert_close(a, b, rtol=1e-4, atol=1e-5)


def test_autocast():
    """Sums of a bfloat16 result and a float32 residual are added apart."""
    model, inputs = tiny_models.make("qwen3"), tiny_models.batch()
    with torch.autocast("cpu", torch.bfloat16):
        expected = tiny_models.run(model, inputs)
        with bastile.apply("qwen3", **ONLY):
            assert_alike(tiny_models.run(model, inputs), expected, 1e-2)


def helpers(casting, offset, eps="eps"):
    """What forwards call, for norms of the class below."""
    forwards = (ANorm.forward,)
    known = residuals.norms.Norms()
    known[ANorm] = residuals.norms.Norm(casting, offset, eps, forwards)
    return types.SimpleNamespace(**residuals._helpers(known))


class ANorm(torch.nn.Module):
    def __init__(self, size, eps=1e-5, seed=0):
        super().__init__()
        self.weight = torch.nn.Parameter(probes.numbers(size, seed=seed))
        self.eps = eps

    def forward(self, x):
        raise AssertionError("it is not called")


@pytest.mark.parametrize("casting", ["llama", "gemma"])
@pytest.mark.parametrize("offset", [0.0, 1.0])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_kernels_round_as_apart(casting, offset, dtype):
    """Results are those of a kernel for each norm and of PyTorch's sum: in bfloat16 bit
    by bit, in float32 but for products and sums that one instruction makes."""
    size = 96
    before, after = (ANorm(size, 10.0**-x, x).to(dtype) for x in (3, 4))
    x, residual = (probes.numbers(5, size, seed=s).to(dtype) for s in (5, 6))
    found = helpers(casting, offset)

    def norm(module, x):
        options = {"casting": casting, "eps": module.eps, "offset": offset}
        return ops.rms_norm(x, module.weight, **options)

    with torch.no_grad():
        sums = residual + norm(before, x)
        expected = {
            found.bastile_norm_add(before, x, residual): sums,
            found.bastile_norm_add_norm(before, after, x, residual): (
                norm(after, sums),
                sums,
            ),
            found.bastile_add_norm(after, x, residual): (
                norm(after, residual + x),
                residual + x,
            ),
        }
    error = 0 if dtype == torch.bfloat16 else 1e-6
    for results, wanted in expected.items():
        torch.testing.assert_close(results, wanted, rtol=error, atol=error)


def differentiate(function, operands):
    leaves = [x.clone().requires_grad_() for x in operands]
    results = function(*leaves)
    results = results if isinstance(results, tuple) else (results,)
    total = sum(
        (probes.numbers(*x.shape, seed=9 + i) * x).sum() for i, x in enumerate(results)
    )
    return torch.autograd.grad(total, leaves)


@pytest.mark.parametrize("casting", ["llama", "gemma"])
def test_gradients_are_those_of_the_parts(casting):
    before, after = ANorm(32, 1e-3, 1), ANorm(32, 1e-4, 2)
    x, residual = probes.numbers(4, 32, seed=5), probes.numbers(4, 32, seed=6)
    found = helpers(casting, 1.0)

    def norm(x, weight, eps):
        return x * torch.rsqrt(x.square().mean(-1, keepdim=True) + eps) * (1 + weight)

    def expect(x, residual, first, second):
        sums = residual + norm(x, first, 1e-3)
        return norm(sums, second, 1e-4), sums

    def compute(x, residual, first, second):
        a, b = types.SimpleNamespace(), types.SimpleNamespace()
        a.weight, a.eps, b.weight, b.eps = first, 1e-3, second, 1e-4
        known = residuals.norms.Norms()
        known[types.SimpleNamespace] = residuals.norms.Norm(casting, 1.0, "eps", ())
        helper = residuals._helpers(known)["bastile_norm_add_norm"]
        return helper(a, b, x, residual)

    assert found is not None
    operands = x, residual, before.weight.detach(), after.weight.detach()
    for a, b in zip(differentiate(compute, operands), differentiate(expect, operands)):
        torch.testing.assert_close(a, b, rtol=1e-4, atol=1e-4)


class Layer(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.first = ANorm(16)
        self.second = ANorm(16)
        self.mlp = torch.nn.Linear(16, 16)


def rewritten(*lines):
    """The statements that stand for ``lines`` of a forward of `Layer`, as text."""
    body = ast.parse("\n".join(lines)).body
    tree = ast.FunctionDef(name="forward", body=body)
    attributes = residuals.norms.names_of(Layer, [ANorm])
    assert attributes == {"first", "second"}
    for statements, sums in residuals._sums_in(tree, attributes):
        for each in reversed(sums):
            residuals._prove(each, probes_norm())
            statements[each.first : each.end] = [each.replacement()]
    return [ast.unparse(x) for x in ast.fix_missing_locations(tree).body]


def probes_norm():
    class Scaled(ANorm):
        def forward(self, x):
            return self.weight * x

    return Scaled


def test_statements():
    assert rewritten(
        "r = x", "x = self.mlp(x)", "x = r + x", "r = x", "x = self.first(x)"
    ) == ["r = x", "x = self.mlp(x)", "x, r = bastile_add_norm(self.first, x, r)"]
    assert rewritten("x = self.first(x)", "x = x + r", "return x") == [
        "x = bastile_norm_add(self.first, x, r)",
        "return x",
    ]
    assert rewritten(
        "x = self.first(x)", "x = r + x", "r = x", "x = self.second(x)"
    ) == ["x, r = bastile_norm_add_norm(self.first, self.second, x, r)"]
    assert rewritten("x = r + x", "y = self.first(x)", "x = x + y") == [
        "y, x = bastile_add_norm(self.first, x, r)",
        "x = x + y",
    ]
    # Of a norm between two sums.
    assert rewritten("x = r + x", "y = x", "x = self.first(x)", "x = r + x") == [
        "x, y = bastile_add_norm(self.first, x, r)",
        "x = r + x",
    ]


@pytest.mark.parametrize(
    "lines",
    [
        ["x = r + x", "r = x", "x = self.mlp(x)"],
        ["x = r + 2 * x", "r = x", "x = self.first(x)"],
        ["x = r - x", "r = x", "x = self.first(x)"],
        ["x = r + x", "print(x)", "r = x", "x = self.first(x)"],
        ["x = r + x", "r = x", "x = self.first(r)"],
        ["x = r + x", "r = x", "y = self.first(x)"],
        ["x = r + x", "x = self.first(x)"],
        ["y = self.first(x)", "x = r + x"],
        ["x = self.first(x, 1)", "x = r + x"],
        ["x = x + x", "r = x", "x = self.first(x)"],
        ["x += r", "r = x", "x = self.first(x)"],
    ],
)
def test_statements_that_stay(lines):
    assert rewritten(*lines) == lines


def test_the_check_of_statements(monkeypatch):
    """It finds out where something else stands for them."""
    wrong = ast.parse("r, x = bastile_add_norm(self.first, x, r)").body[0]
    monkeypatch.setattr(residuals._Sum, "replacement", lambda self: wrong)
    with pytest.raises(probes.Mismatch, match="another value"):
        rewritten("x = r + x", "r = x", "x = self.first(x)")


def test_tracebacks_name_the_line():
    model = tiny_models.make("qwen3")
    cls = type(model.model.layers[0])
    original = inspect.unwrap(kind.original_of(cls, "forward"))
    module = sys.modules[cls.__module__]
    fused, names = residuals._rewrite(original, cls, residuals.of_module(module))
    assert names == ("post_attention_layernorm",)
    made = inspect.unwrap(fused).__code__
    assert made.co_filename == original.__code__.co_filename
    assert made.co_firstlineno == original.__code__.co_firstlineno
    assert code.tree_of(fused).name == "forward"
    assert inspect.signature(fused) == inspect.signature(original)


def test_a_registered_layer_without_such_a_sum():
    source = "transformers.models.llama.modeling_llama"
    bastile.register_patch("mine", source, patching.Residual("LlamaMLP"))
    try:
        with pytest.raises(patching.PatchError, match="it adds no residual"):
            bastile.apply("mine")
    finally:
        del residuals.table.MODELS["mine"]
