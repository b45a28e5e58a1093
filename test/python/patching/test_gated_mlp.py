# Part of Bastile, under the MIT License. See LICENSE.
# RUN: %package-test %s
"""The operand of an MLP's last product, computed again in the backward."""

import bastile
import pytest
import tiny_models
import torch
from bastile._patching.products import gated
from torch.utils.checkpoint import checkpoint

WIDTHS = 64, 96


@pytest.fixture(autouse=True)
def patched(monkeypatch):
    monkeypatch.setattr(gated, "SMALLEST_BYTES", 0)
    with bastile.apply("llama"):
        yield


def llama_mlp(bias=False, dtype=torch.float32):
    model = tiny_models.make("llama", mlp_bias=bias)
    return model.model.layers[0].mlp.to(dtype)


def make_rows(dtype=torch.float32):
    torch.manual_seed(0)
    return torch.randn(2, 9, WIDTHS[0], dtype=dtype, requires_grad=True)


def run(function, mlp, x):
    """The result, the gradients, and the elements that were kept beside those of
    parameters and arguments."""
    result = function(x)
    kept = {y.data_ptr(): y.numel() for y in saved_by(result.grad_fn)}
    known = {y.data_ptr() for y in (x, *mlp.parameters())}
    gradients = torch.autograd.grad(result.sin().sum(), [x, *mlp.parameters()])
    return result, gradients, sum(n for key, n in kept.items() if key not in known)


def saved_by(node):
    """The tensors that a graph keeps."""
    names = [name for name in dir(node) if name.startswith("_saved_")]
    for value in (
        *getattr(node, "saved_tensors", ()),
        *(getattr(node, n) for n in names),
    ):
        if isinstance(value, torch.Tensor):
            yield value
    for following, _ in node.next_functions:
        if following is not None:
            yield from saved_by(following)


def plain(mlp, x):
    activation = torch.nn.functional.silu(mlp.gate_proj(x))
    return mlp.down_proj(activation * mlp.up_proj(x))


@pytest.mark.parametrize("bias", [False, True])
def test_gradients_and_what_is_kept(bias):
    mlp, x = llama_mlp(bias), make_rows()
    result, gradients, kept = run(mlp, mlp, x)
    expected, references, _ = run(lambda x: plain(mlp, x), mlp, x)
    assert torch.allclose(result, expected, atol=1e-5)
    for found, reference in zip(gradients, references, strict=True):
        assert torch.allclose(found, reference, atol=1e-5)
    assert kept == 2 * x[..., 0].numel() * WIDTHS[1]


def test_the_same_bits_as_without(monkeypatch):
    mlp, x = llama_mlp(dtype=torch.bfloat16), make_rows(torch.bfloat16)
    result, gradients, kept = run(mlp, mlp, x)
    monkeypatch.setattr(gated, "SMALLEST_BYTES", 1 << 60)
    expected, references, more = run(mlp, mlp, x)
    assert kept * 3 == more * 2
    assert torch.equal(result, expected)
    assert all(map(torch.equal, gradients, references))


@pytest.mark.long(every=3)
@pytest.mark.parametrize("name", ["gemma2", "glm4", "llama", "phi3", "qwen3"])
def test_models(name):
    model, inputs = tiny_models.make(name), tiny_models.batch()
    expected, references = tiny_models.run(model, inputs)
    nodes = []
    original = gated.project

    def count(*arguments):
        nodes.append(arguments)
        return original(*arguments)

    with pytest.MonkeyPatch.context() as patch, bastile.apply(name):
        patch.setattr(gated, "project", count)
        outputs, gradients = tiny_models.run(model, inputs)
    assert len(nodes) == len(model.model.layers)
    assert torch.allclose(outputs.loss, expected.loss)
    for key, gradient in gradients.items():
        assert torch.allclose(gradient, references[key], atol=2e-5), key


@pytest.mark.parametrize("reentrant", [False, True])
def test_under_a_checkpoint_nothing_is_computed_twice_again(reentrant, monkeypatch):
    """There, only one layer's activations are kept, and having all that the kernel
    takes and makes at once is what memory is needed for."""
    mlp, x = llama_mlp(), make_rows()
    expected = run(mlp, mlp, x)[1]
    monkeypatch.setattr(gated, "project", None)
    checkpoint(mlp, x, use_reentrant=reentrant).sin().sum().backward()
    found = [x.grad, *(parameter.grad for parameter in mlp.parameters())]
    assert all(map(torch.equal, found, expected))


def test_no_rows():
    mlp, x = llama_mlp(), torch.zeros(2, 0, WIDTHS[0], requires_grad=True)
    result, (of_x, *others), _ = run(mlp, mlp, x)
    assert result.shape == of_x.shape == x.shape
    assert not any(y.any() for y in others)


def test_a_vector():
    mlp, x = llama_mlp(), make_rows()[0, 0]
    torch.testing.assert_close(mlp(x), plain(mlp, x))


def test_hooks_on_the_activation_run():
    mlp, x = llama_mlp(), make_rows()
    with mlp.act_fn.register_forward_hook(lambda *_: torch.ones(2, 9, WIDTHS[1])):
        torch.testing.assert_close(mlp(x), mlp.down_proj(mlp.up_proj(x)))
    torch.testing.assert_close(mlp(x), plain(mlp, x))


def test_another_forward_of_the_activation():
    mlp, x = llama_mlp(), make_rows()
    mlp.act_fn.forward = torch.relu
    expected = mlp.down_proj(torch.relu(mlp.gate_proj(x)) * mlp.up_proj(x))
    torch.testing.assert_close(mlp(x), expected)


def hook(mlp):
    mlp.down_proj.register_forward_hook(lambda *_: None)


def replace(mlp):
    mlp.down_proj = torch.nn.Sequential(mlp.down_proj)


def freeze(mlp):
    mlp.down_proj.weight.requires_grad_(False)


def test_a_linear_layer_that_somebody_replaced(monkeypatch):
    mlp, x = llama_mlp(), make_rows()
    expected = plain(mlp, x)
    original = torch.nn.Linear.forward
    with monkeypatch.context() as patch:
        patch.setattr(torch.nn.Linear, "forward", lambda *x: 0 * original(*x))
        assert not mlp(x).any() and expected.any()


def test_without_memory():
    mlp = llama_mlp().to("meta")
    assert mlp(make_rows().to("meta")).is_meta


@pytest.mark.parametrize("change", [hook, replace, freeze])
def test_other_layers_are_called(change, monkeypatch):
    mlp, x = llama_mlp(), make_rows()
    change(mlp)
    monkeypatch.setattr(gated, "project", None)
    assert torch.allclose(mlp(x), plain(mlp, x), atol=1e-5)


def test_autocast_and_functorch_are_pytorchs(monkeypatch):
    mlp, x = llama_mlp(), make_rows()
    monkeypatch.setattr(gated, "project", None)
    with torch.autocast("cpu", torch.bfloat16):
        assert mlp(x).dtype == torch.bfloat16
    gradient = torch.func.grad(lambda x: mlp(x).sin().sum())(x)
    _, (reference, *_), _ = run(lambda x: plain(mlp, x), mlp, x)
    assert torch.allclose(gradient, reference, atol=1e-5)
    with torch.no_grad():
        assert not mlp(x).requires_grad


def test_twice_is_refused():
    mlp, x = llama_mlp(), make_rows()
    # A node of the gate and up would refuse it as well.
    mlp.up_proj.register_forward_hook(lambda *_: None)
    (gradient,) = torch.autograd.grad(mlp(x).sum(), x, create_graph=True)
    with pytest.raises(RuntimeError, match="the MLP.* cannot be differentiated again"):
        gradient.sum().backward()
    (gradient,) = torch.autograd.grad(mlp(x).sum(), x, create_graph=True)
    with pytest.raises(RuntimeError, match="the MLP.* cannot be differentiated again"):
        torch.autograd.grad(gradient.sum() + x.sum(), x)


@pytest.mark.parametrize("name", ["llama", "phi3"])
def test_the_least_bytes_are_those_of_the_operand(name, monkeypatch):
    """However many projections make the gate and up."""
    model, inputs = tiny_models.make(name), tiny_models.batch(shape=(2, 12))
    size = 2 * 12 * WIDTHS[1] * 4
    with bastile.apply(name):
        for least, expected in ((size, 2), (size + 1, 0)):
            monkeypatch.setattr(gated, "SMALLEST_BYTES", least)
            loss = model(**inputs).loss
            assert tiny_models.count_nodes(loss, "_ProjectionBackward") == expected


def test_small_calls_keep_the_host_short(monkeypatch):
    monkeypatch.undo()
    mlp, x = llama_mlp(), make_rows()
    assert type(mlp(x).grad_fn).__name__ != "_ProjectionBackward"
