# Part of Bastile, under the MIT License. See LICENSE.
# RUN: %package-test %s
"""Gate and up projections with their activation, as one product: `linear=True`."""

import copy
import inspect

import bastile
import pytest
import tiny_models
import torch
from bastile._formulas import activations as kernels
from bastile._patching.products import gated, gated_products, sizes
from torch.utils.checkpoint import checkpoint

#: Separate weights, GELU, one weight for both, and biases.
MODELS = {
    "gemma2": {},
    "llama": {},
    "llama with biases": {"mlp_bias": True},
    "phi3": {},
    "qwen3": {},
}


@pytest.fixture
def taken(monkeypatch):
    """Has products taken at any size, device and type, and counts them."""
    calls = []
    original = gated_products.project

    def project(*operands):
        calls.append(operands)
        return original(*operands)

    monkeypatch.setattr(gated_products, "_TYPES", (torch.float32, torch.bfloat16))
    monkeypatch.setattr(sizes, "least_rows_on", lambda *sizes: 1)
    monkeypatch.setattr(gated_products, "project", project)
    return calls


@pytest.fixture
def patched(taken):
    with bastile.apply("llama", linear=True):
        yield taken


def make(name, **changes):
    return tiny_models.make(name.split()[0], **MODELS[name], **changes)


def llama_mlp(dtype=torch.float32, **changes):
    return tiny_models.make("llama", **changes).model.layers[0].mlp.to(dtype)


def make_rows(dtype=torch.float32):
    torch.manual_seed(0)
    return torch.randn(2, 9, 64, dtype=dtype, requires_grad=True)


def plain(mlp, x):
    activation = torch.nn.functional.silu(mlp.gate_proj(x))
    return mlp.down_proj(activation * mlp.up_proj(x))


def differentiate(result, mlp, x):
    leaves = [y for y in (x, *mlp.parameters()) if y.requires_grad]
    return torch.autograd.grad(result.sin().sum(), leaves)


def assert_alike(mlp, x, found=None, bound=1e-5):
    expected = plain(mlp, x)
    found = mlp(x) if found is None else found
    torch.testing.assert_close(found, expected, atol=bound, rtol=bound)
    for mine, other in zip(
        differentiate(found, mlp, x), differentiate(expected, mlp, x), strict=True
    ):
        torch.testing.assert_close(mine, other, atol=bound, rtol=bound)


@pytest.mark.long(every=5)
@pytest.mark.parametrize("again", [False, True])
@pytest.mark.parametrize("name", MODELS)
def test_models(name, again, taken, monkeypatch):
    """With the last product's operand kept, and computed again."""
    monkeypatch.setattr(gated, "SMALLEST_BYTES", 0 if again else 1 << 60)
    model, inputs = make(name), tiny_models.batch()
    expected = tiny_models.run(model, inputs)
    with bastile.apply(name.split()[0], linear=True):
        tiny_models.assert_alike(tiny_models.run(model, inputs), expected)
        assert len(taken) == len(model.model.layers)
        with torch.no_grad():
            assert torch.allclose(model(**inputs).loss, expected[0].loss)
        assert len(taken) == 2 * len(model.model.layers)


@pytest.mark.long(every=7)
@pytest.mark.parametrize("name", ["gemma2", "llama", "phi3"])
def test_errors_of_bfloat16_are_those_of_the_model(name, taken):
    exact, inputs = make(name), tiny_models.batch()
    expected = tiny_models.run(exact, inputs)[1]

    def error(linear):
        with bastile.apply(name, linear=linear):
            gradients = tiny_models.run(make(name).bfloat16(), inputs)[1]
        return {
            key: (gradients[key].float() - x).norm() / x.norm()
            for key, x in expected.items()
            if "mlp" in key
        }

    one, apart = error(True), error(False)
    assert taken
    for key, share in one.items():
        assert share < 1.2 * apart[key] + 1e-3, key


@pytest.mark.parametrize("of", ["kept", "alone"])
@pytest.mark.parametrize("activation", ["swiglu", "geglu_tanh", "geglu_erf"])
@pytest.mark.parametrize("count", [1, 2])
@pytest.mark.parametrize("bias", [False, True])
def test_one_kernel_on_hopper(of, activation, count, bias):
    name = f"{'packed_' if count == 1 else ''}{activation}_products"
    function = getattr(getattr(kernels, name), of)._function
    names = list(inspect.signature(function).parameters)[: 1 + count * (1 + bias)]
    weights = [(512 // count, 64)] * count + [(512 // count,)] * count
    shapes = dict(zip(names, [(300, 64), *weights]))
    kernel = bastile.compile(function, shapes, dtype="bf16", target="sm_90a")
    (schedule,) = kernel.schedule.values()
    # Of warps that copy and warps that multiply.
    assert "roles = 2" in schedule


def test_the_same_bits_with_gradients_and_without():
    """So that evaluation and checkpoints compute what training does, and the backward
    what the forward did."""
    x, gate, up = (torch.randn(9, 64).bfloat16() for _ in range(3))
    kept, *gate_up = kernels.swiglu_products.kept(x, gate, up, None, None)
    assert torch.equal(kept, kernels.swiglu_products.alone(x, gate, up, None, None))
    assert torch.equal(kept, bastile.ops.swiglu(*gate_up))
    assert torch.equal(gate_up[0], torch.nn.functional.linear(x, gate))


@pytest.mark.parametrize("trains", [False, True])
@pytest.mark.parametrize("again", [False, True])
def test_what_is_kept(again, trains, patched, monkeypatch):
    """Beside parameters: the gate and up, and rows for gradients of weights alone."""
    monkeypatch.setattr(gated, "SMALLEST_BYTES", 0 if again else 1 << 60)
    mlp, x = llama_mlp(), make_rows()
    for layer in (mlp.gate_proj, mlp.up_proj):
        layer.weight.requires_grad_(trains)
    (node,) = tiny_models.find_nodes(mlp(x), "_ProductBackward")
    kept = [y for y in node.saved_tensors if y is not None]
    sizes = sorted(tuple(y.shape) for y in kept if not is_parameter(y, mlp))
    assert sizes == [(18, 64)] * trains + [(18, 96)] * 2


def is_parameter(x, mlp):
    return any(x.data_ptr() == y.data_ptr() for y in mlp.parameters())


def freeze(*names):
    def change(mlp):
        for name in names:
            mlp.get_parameter(name).requires_grad_(False)

    return change


@pytest.mark.parametrize("again", [False, True])
@pytest.mark.parametrize(
    "change",
    [
        freeze("gate_proj.weight"),
        freeze("up_proj.weight", "down_proj.weight"),
        freeze("gate_proj.weight", "up_proj.weight"),
        freeze("gate_proj.weight", "up_proj.weight", "down_proj.weight"),
        lambda mlp: setattr(mlp.up_proj, "bias", None),
    ],
)
def test_what_has_no_gradient_gets_none(change, again, patched, monkeypatch):
    monkeypatch.setattr(gated, "SMALLEST_BYTES", 0 if again else 1 << 60)
    mlp, x = llama_mlp(mlp_bias=True), make_rows()
    change(mlp)
    assert_alike(mlp, x)
    if any(y.requires_grad for y in mlp.parameters()):
        assert_alike(mlp, x.detach())
    assert patched


@pytest.mark.parametrize("reentrant", [False, True])
def test_under_a_checkpoint(reentrant, patched):
    mlp, x = llama_mlp(), make_rows()
    expected = differentiate(plain(mlp, x), mlp, x)
    checkpoint(mlp, x, use_reentrant=reentrant).sin().sum().backward()
    found = [x.grad, *(parameter.grad for parameter in mlp.parameters())]
    for mine, other in zip(found, expected):
        torch.testing.assert_close(mine, other, atol=1e-5, rtol=1e-5)
    assert len(patched) == 2


def test_autocast(patched):
    mlp, x = llama_mlp(mlp_bias=True), make_rows()
    exact = plain(mlp, x)
    with torch.autocast("cpu", torch.bfloat16):
        found, other = mlp(x), plain(mlp, x)
        # A model's rows may have another type than its weights there.
        assert torch.equal(mlp(x.bfloat16()), found)
    assert len(patched) == 2 and found.dtype == torch.bfloat16
    references = [exact, *differentiate(exact, mlp, x)]
    mine = [found, *differentiate(found.float(), mlp, x)]
    others = [other, *differentiate(other.float(), mlp, x)]
    for one, reference, another in zip(mine, references, others):
        error, allowed = ((y - reference).norm() for y in (one, another))
        assert error < 1.3 * allowed
    assert all(y.dtype == torch.float32 for y in mine[1:])


def test_an_upstream_gradient_that_is_repeated(patched):
    mlp, x = llama_mlp(), make_rows()
    mlp.down_proj = torch.nn.Identity()
    found = torch.autograd.grad(mlp(x).sum(), x)
    torch.testing.assert_close(found, torch.autograd.grad(plain(mlp, x).sum(), x))


def test_twice_is_refused(patched):
    mlp, x = llama_mlp(), make_rows()
    (gradient,) = torch.autograd.grad(mlp(x).sum(), x, create_graph=True)
    with pytest.raises(RuntimeError, match="the MLP.* cannot be differentiated again"):
        gradient.sum().backward()


def hook(mlp):
    mlp.up_proj.register_forward_hook(lambda *_: None)


def replace(mlp):
    mlp.gate_proj = torch.nn.Sequential(mlp.gate_proj)


def set_forward(mlp):
    mlp.gate_proj.forward = copy.deepcopy(mlp.gate_proj).forward


@pytest.mark.parametrize("change", [hook, replace, set_forward])
def test_other_layers_are_called(change, patched):
    mlp, x = llama_mlp(), make_rows()
    change(mlp)
    torch.testing.assert_close(mlp(x), plain(mlp, x), atol=1e-5, rtol=1e-5)
    assert not patched


def test_others_who_see_calls(patched):
    mlp, x = llama_mlp(), make_rows()
    gradient = torch.func.grad(lambda x: mlp(x).sin().sum())(x)
    torch.testing.assert_close(gradient, differentiate(plain(mlp, x), mlp, x)[0])
    assert mlp.to("meta")(x.to("meta")).is_meta


@pytest.mark.long(every=3)
@pytest.mark.parametrize("name", ["llama with biases", "phi3"])
def test_under_torch_compile(name, taken):
    model, inputs = make(name), tiny_models.batch()
    expected = tiny_models.run(model, inputs)
    with bastile.apply(name.split()[0], linear=True):
        results, called = tiny_models.run_compiled(model, inputs)
    tiny_models.assert_alike(results, expected)
    of = "packed_swiglu_products_kept" if name == "phi3" else "swiglu_products_kept"
    assert called.count(of) == len(model.model.layers)


def reasons(model):
    infos = [x for x in bastile.list_patches(model) if x.op == "linear"]
    return [(x.applied, x.reason) for x in infos]


def test_adapters(taken):
    peft = pytest.importorskip("peft")
    model, inputs = make("llama"), tiny_models.batch()
    config = peft.LoraConfig(r=4, target_modules=["up_proj"], layers_to_transform=[1])
    model = peft.get_peft_model(model, config)
    expected = tiny_models.run(model, inputs)
    with bastile.apply_to_model(model, linear=True):
        tiny_models.assert_alike(tiny_models.run(model, inputs), expected)
        assert len(taken) == 1
        (plain, _), (applied, reason) = reasons(model)
        assert plain and not applied
        assert reason.startswith("in model.layers.1.mlp: up_proj is a peft.")


def test_reasons(monkeypatch):
    model = make("phi3")
    assert reasons(model) == [(False, None)]
    with bastile.apply_to_model(model, linear=True):
        ((applied, reason),) = reasons(model)
        assert not applied and reason == (
            "in model.layers.0.mlp and 1 more: one kernel is not measured to be faster "
            "on cpu for 96 columns of 64 elements"
        )
        for layer in model.model.layers:
            layer.mlp.gate_up_proj.register_forward_hook(lambda *_: None)
        assert reasons(model)[0][1].endswith("gate_up_proj has hooks")
        del layer.mlp.gate_up_proj._forward_hooks
    with pytest.raises(TypeError, match="a model type, a model or nothing"):
        bastile.list_patches(3)


def test_asking(taken):
    model, inputs = make("llama"), tiny_models.batch()

    def count():
        taken.clear()
        model(**inputs)
        return len(taken)

    with bastile.apply("llama"):
        assert count() == 0
        # What is patched stays, and products are added.
        with bastile.apply("llama", linear=True) as added:
            assert added.ops == ["llama.linear"] and count() == 2
            assert "linear" in bastile.get_patched_ops()["llama"]
            bastile.reset("llama.linear")
            assert count() == 0
    with bastile.apply_to_model(model, linear=True):
        other = make("llama")
        assert count() == 2 and "linear" in bastile.get_patched_ops(model)["llama"]
        other(**inputs)
        assert len(taken) == 2
        assert not hasattr(other.model.layers[0].mlp, gated_products.NAME)
    assert count() == 0 and not hasattr(model.model.layers[0].mlp, gated_products.NAME)
    with bastile.apply("llama", swiglu=False, linear=True) as patched:
        assert "llama.linear" not in patched.ops
    with pytest.raises(ValueError, match="needs swiglu or geglu"):
        bastile.apply("llama", swiglu=False, geglu=False, linear=True)


def test_the_measured_sizes(monkeypatch):
    figure, hopper = sizes.Figure, (9, 0)
    figures = (
        figure(8192, 3072, 1024, 172, 150, 248),
        figure(2048, 3072, 1024, 50, 45, 60),
        # Slower with few rows, although fewer ones were faster.
        figure(1024, 3072, 1024, 40, 30, 35),
        figure(512, 3072, 1024, 10, 10, 35),
        # And slower in a backward's forward alone.
        figure(8192, 3072, 8192, 990, 900, 980),
    )
    monkeypatch.setattr(sizes, "FIGURES", {hopper: figures})
    sizes.least_rows.cache_clear()

    def least(columns, depth, capability=hopper):
        return sizes.least_rows(capability, columns, depth)

    assert least(3072, 1024) == least(1536, 512) == least(20000, 2048) == 2048
    assert least(3072, 4096) is None and least(3072, 8192) is None
    assert least(1528, 1024) is None and least(3072, 504) is None
    assert least(3076, 1024) is None and least(3072, 1028) is None
    assert least(3072, 1024, (10, 0)) is None
    monkeypatch.setattr(sizes, "capability", lambda device: hopper)
    device = torch.device("cpu")
    assert sizes.is_faster(device, 2048, 3072, 1024)
    assert not sizes.is_faster(device, 2047, 3072, 1024)
    sizes.least_rows.cache_clear()


def test_types_and_devices(monkeypatch):
    """Float32 has no tensor cores, and the host none at all."""
    layers = [torch.nn.Linear(1024, 3072, device="meta", dtype=torch.bfloat16)] * 2
    x = torch.empty(8192, 1024, device="meta", dtype=torch.bfloat16)
    assert not gated_products._takes(x, layers)
    monkeypatch.setattr(sizes, "capability", lambda device: (9, 0))
    least = sizes.least_rows((9, 0), 3072, 1024)
    assert gated_products._takes(x, layers) and gated_products._takes(x[:least], layers)
    assert not gated_products._takes(x[: least - 1], layers)
    assert not gated_products._takes(x.float(), layers)
    assert not gated_products._takes(x.float(), [layer.float() for layer in layers])
