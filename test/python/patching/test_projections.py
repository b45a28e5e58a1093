# Part of Bastile, under the MIT License. See LICENSE.
# RUN: %package-test %s
"""Linear layers of one operand, as one node of the graph."""

import copy

import bastile
import pytest
import tiny_models
import torch
from bastile._patching.products import projections
from torch.utils.checkpoint import checkpoint

LENGTH, WIDTHS = 16, (24, 8, 8)


def make_layers(bias=False, dtype=torch.float64):
    torch.manual_seed(0)
    return torch.nn.ModuleList(
        torch.nn.Linear(LENGTH, width, bias=bias, dtype=dtype) for width in WIDTHS
    )


def make_rows(dtype=torch.float64):
    torch.manual_seed(1)
    return torch.randn(2, 5, LENGTH, dtype=dtype, requires_grad=True)


def is_joined(results):
    return len({x.grad_fn for x in results}) == 1


def differentiate(results, leaves):
    total = sum(((i + 1) * x.sin()).sum() for i, x in enumerate(results))
    return torch.autograd.grad(total, leaves, allow_unused=True)


@pytest.mark.parametrize("bias", [False, True])
def test_results_and_gradients(bias):
    layers, x = make_layers(bias), make_rows()
    leaves = [x, *layers.parameters()]
    results = projections.project(x, layers)
    assert is_joined(results)
    expected = [layer(x) for layer in layers]
    assert all(map(torch.equal, results, expected))
    for found, reference in zip(
        differentiate(results, leaves), differentiate(expected, leaves), strict=True
    ):
        torch.testing.assert_close(found, reference)


def test_shares_are_added_within_the_products():
    layers, x = make_layers(), make_rows()
    results = projections.project(x, layers)
    upstream = [torch.randn_like(y) for y in results]
    with torch.profiler.profile() as profile:
        torch.autograd.grad(results, x, upstream)
    names = [event.name for event in profile.events()]
    assert names.count("aten::addmm_") == len(WIDTHS) - 1
    assert not {"aten::add", "aten::add_"} & set(names)


def test_no_rows():
    layers = make_layers()
    x = make_rows().detach()[:, :0].requires_grad_()
    results = projections.project(x, layers)
    assert is_joined(results)
    of_x, *of_weights = differentiate(results, [x, *(y.weight for y in layers)])
    assert of_x.shape == x.shape and not any(y.any() for y in of_weights)


def freeze_a_weight(layers, x):
    layers[1].weight.requires_grad_(False)


def leave_out_a_bias(layers, x):
    layers[0].bias = None


@pytest.mark.parametrize("change", [freeze_a_weight, leave_out_a_bias])
def test_what_has_no_gradient_gets_none(change):
    layers, x = make_layers(bias=True), make_rows()
    change(layers, x)
    results = projections.project(x, layers)
    assert is_joined(results)
    leaves = [y for y in (x, *layers.parameters()) if y.requires_grad]
    expected = differentiate([layer(x) for layer in layers], leaves)
    for found, reference in zip(differentiate(results, leaves), expected):
        torch.testing.assert_close(found, reference)


@pytest.mark.parametrize("trained", [0, 1, 3])
def test_rows_are_kept_for_gradients_of_weights_alone(trained):
    layers, x = make_layers(), make_rows()
    for layer in layers[trained:]:
        layer.weight.requires_grad_(False)
    results = projections.project(x, layers)
    kept = results[0].grad_fn.saved_tensors
    assert any(y is not None and y.data_ptr() == x.data_ptr() for y in kept) == (
        trained > 0
    )
    found = differentiate(results, x)
    torch.testing.assert_close(found, differentiate([f(x) for f in layers], x))


def test_a_result_that_nobody_uses():
    layers, x = make_layers(), make_rows()
    first, *_ = projections.project(x, layers)
    found = torch.autograd.grad(first.sum(), [x, layers[0].weight])
    expected = torch.autograd.grad(layers[0](x).sum(), [x, layers[0].weight])
    for one, other in zip(found, expected):
        torch.testing.assert_close(one, other)


@pytest.mark.parametrize("reentrant", [False, True])
def test_under_a_checkpoint(reentrant):
    layers, x = make_layers(), make_rows()
    leaves = [x, *layers.parameters()]

    def run(x):
        return torch.cat(projections.project(x, layers), -1)

    checkpoint(run, x, use_reentrant=reentrant).sin().sum().backward()
    expected = torch.autograd.grad(run(x).sin().sum(), leaves)
    for leaf, reference in zip(leaves, expected):
        torch.testing.assert_close(leaf.grad, reference)


def hook(layers):
    layers[1].register_forward_hook(lambda *_: None)


def replace(layers):
    layers[1] = torch.nn.Sequential(layers[1])


def set_forward(layers):
    layers[1].forward = copy.deepcopy(layers[1]).forward


def convert(layers):
    layers[1].weight.data = layers[1].weight.data.float()


@pytest.mark.parametrize("change", [hook, replace, set_forward])
def test_other_layers_are_called(change):
    layers, x = make_layers(), make_rows()
    expected = [layer(x) for layer in layers]
    change(layers)
    results = projections.project(x, layers)
    assert not is_joined(results)
    assert all(map(torch.equal, results, expected))


def test_errors_are_those_of_the_layers():
    layers, x = make_layers(), make_rows()
    convert(layers)
    with pytest.raises(RuntimeError, match="same dtype"):
        projections.project(x, layers)


def test_others_who_see_calls():
    layers, x = make_layers(dtype=torch.float32), make_rows(torch.float32)
    with torch.autocast("cpu", torch.bfloat16):
        results = projections.project(x, layers)
        assert results[0].dtype == torch.bfloat16
    with torch.no_grad():
        assert not projections.project(x, layers)[0].requires_grad
    gradient = torch.func.grad(lambda x: projections.project(x, layers)[0].sum())(x)
    torch.testing.assert_close(gradient, torch.autograd.grad(layers[0](x).sum(), x)[0])

    @torch.compile(fullgraph=True, backend="aot_eager")
    def compiled(x):
        return torch.cat(projections.project(x, layers), -1)

    expected = torch.cat([layer(x) for layer in layers], -1)
    torch.testing.assert_close(compiled(x), expected)


def test_twice_is_refused():
    layers, x = make_layers(), make_rows()
    total = sum(y.sin().sum() for y in projections.project(x, layers))
    (gradient,) = torch.autograd.grad(total, x, create_graph=True)
    with pytest.raises(RuntimeError, match="the projections.* differentiated again"):
        gradient.sum().backward()


@pytest.mark.parametrize(("name", "expected"), [("llama", 1), ("phi3", 0)])
def test_models(name, expected):
    """Llama's MLP has a gate and up, Phi-3's one layer for both."""
    inputs = tiny_models.batch()
    with bastile.apply(name):
        model = tiny_models.make(name)
        loss = model(**inputs).loss
    nodes = tiny_models.count_nodes(loss, "_ProjectionsBackward")
    assert nodes == expected * len(model.model.layers)
