# Part of Bastile, under the MIT License. See LICENSE.
# RUN: %package-test %s
"""Every op of bastile.ops on PyTorch's tensors: values, gradients, options."""

import bastile
import pytest
import torch
from bastile._compiler.definitions import definitions
from references import CASES, IDS, LENGTH, make_operands, of_reference, run

TOLERANCES = {torch.float32: 2e-5, torch.bfloat16: 4e-2, torch.float64: 1e-10}


def as_tuple(x):
    return x if isinstance(x, tuple) else (x,)


def test_every_op_is_tested():
    # Casts to 8 bits have tests of their own.
    tested = {name for name, *_ in CASES} | {"quantize", "dequantize"}
    untested = sorted(set(definitions()) - tested)
    assert not untested, f"CASES in test/python/Inputs/references.py lacks {untested}"


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize(("name", "reference", "kinds", "attributes"), CASES, ids=IDS)
def test_value(name, reference, kinds, attributes, dtype, device):
    operands = make_operands(kinds, dtype, device)
    results = as_tuple(run(name, operands, attributes))
    wide = [x.double() if x.is_floating_point() else x for x in operands]
    expected = as_tuple(reference(*wide, **of_reference(attributes)))
    for result, value in zip(results, expected):
        assert result.device.type == device
        torch.testing.assert_close(
            result.double(),
            value,
            rtol=TOLERANCES[dtype],
            atol=TOLERANCES[dtype],
        )


@pytest.mark.parametrize(("name", "reference", "kinds", "attributes"), CASES, ids=IDS)
def test_gradients(name, reference, kinds, attributes, device):
    def differentiate(function, operands, attributes):
        operands = [
            x.clone().requires_grad_() if x.is_floating_point() else x for x in operands
        ]
        results = as_tuple(function(operands, attributes))
        seeds = make_operands("r" * len(results), torch.float64, device, seed=7)
        total = sum(
            (x.double() * seed[: x.shape[0], : x.shape[-1]].reshape(x.shape)).sum()
            for x, seed in zip(results, seeds)
        )
        total.backward()
        return [x.grad for x in operands if x.is_floating_point()]

    # The host alone computes in float64.
    dtype = torch.float64 if device == "cpu" else torch.float32
    operands = make_operands(kinds, dtype, device)
    computed = differentiate(
        lambda x, options: run(name, x, options), operands, attributes
    )
    expected = differentiate(
        lambda x, options: reference(*x, **options),
        operands,
        of_reference(attributes),
    )
    for gradient, value in zip(computed, expected):
        if value is None or gradient is None:
            # No result depends on the operand.
            assert value is gradient
            continue
        tolerance = 1e-9 if device == "cpu" else 1e-4
        torch.testing.assert_close(gradient, value, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize(("name", "reference", "kinds", "attributes"), CASES, ids=IDS)
def test_gradcheck(name, reference, kinds, attributes):
    if "token_scaling" in attributes:
        pytest.skip("what scales the losses is a constant to derivatives")
    operands = make_operands(kinds, torch.float64, rows=2)
    operands = [x.requires_grad_() if x.is_floating_point() else x for x in operands]
    assert torch.autograd.gradcheck(
        lambda *x: run(name, x, attributes), operands, fast_mode=True
    )


def test_gradients_only_where_wanted(device):
    x, weight = make_operands("rv", device=device)
    weight.requires_grad_()
    y = bastile.ops.rms_norm(x, weight)
    y.sum().backward()
    assert x.grad is None
    assert weight.grad.shape == weight.shape
    with torch.no_grad():
        assert not bastile.ops.rms_norm(x, weight).requires_grad


def test_weight_of_another_type_than_the_rows(device):
    x = make_operands("r", torch.bfloat16, device)[0].requires_grad_()
    weight = make_operands("v", torch.float32, device, seed=1)[0].requires_grad_()
    y = bastile.ops.rms_norm(x, weight)
    y.sum().backward()
    assert y.dtype == x.grad.dtype == torch.bfloat16
    assert weight.grad.dtype == torch.float32


def test_views_and_more_dimensions(device):
    x = torch.randn(4, 3, 2, LENGTH, device=device)
    expected = torch.nn.functional.silu(x)
    torch.testing.assert_close(bastile.ops.silu(x), expected)
    moved = x.permute(2, 0, 1, 3)
    torch.testing.assert_close(bastile.ops.silu(moved), expected.permute(2, 0, 1, 3))
    columns = x.transpose(0, 3)
    torch.testing.assert_close(bastile.ops.silu(columns), expected.transpose(0, 3))
    same = x[:1].expand(4, 3, 2, LENGTH)
    torch.testing.assert_close(bastile.ops.silu(same), expected[:1].expand(4, 3, 2, -1))


def test_no_rows(device):
    x = torch.empty(0, LENGTH, device=device, requires_grad=True)
    weight = torch.ones(LENGTH, device=device, requires_grad=True)
    y = bastile.ops.rms_norm(x, weight)
    y.sum().backward()
    assert y.shape == x.grad.shape == (0, LENGTH)
    assert torch.equal(weight.grad, torch.zeros(LENGTH, device=device))


def test_angles_are_shared_by_heads(device):
    x = torch.randn(2, 3, 4, LENGTH, device=device)
    angles = torch.randn(1, 3, 1, LENGTH // 2, device=device)
    result = bastile.ops.rope(x, angles.cos(), angles.sin())
    whole = angles.expand(2, 3, 4, LENGTH // 2).contiguous()
    assert torch.equal(result, bastile.ops.rope(x, whole.cos(), whole.sin()))


def test_targets_without_their_last_dimension(device):
    logits, targets = make_operands("rt", device=device)
    whole = bastile.ops.cross_entropy(logits, targets)
    flat = bastile.ops.cross_entropy(logits, targets[:, 0])
    for a, b in zip(whole, flat):
        assert torch.equal(a, b)


def test_results_that_are_returned():
    logits, targets = make_operands("rt")
    results = bastile.ops.cross_entropy(logits, targets)
    loss, lse, correct, invalid, predicted = results
    torch.testing.assert_close(lse[:, 0], logits.logsumexp(-1))
    kept = targets[:, 0] >= 0
    hit = logits.argmax(-1) == targets[:, 0]
    assert torch.equal(correct[kept, 0].bool(), hit[kept])
    assert invalid.item() == 0
    expected = torch.where(kept, logits.argmax(-1), -1)
    assert torch.equal(predicted[:, 0], expected.int())
    alone = bastile.ops.cross_entropy(logits, targets, returns=["correct"])
    assert torch.equal(alone, correct)
    two = bastile.ops.cross_entropy(logits, targets, returns=("lse", "loss"))
    assert torch.equal(two[0], lse) and torch.equal(two[1], loss)


def test_gradient_of_every_result():
    logits, targets = make_operands("rt")
    logits.requires_grad_()
    loss, lse, *_ = bastile.ops.cross_entropy(logits, targets)
    (loss.sum() + 2 * lse.sum()).backward()
    expected = logits.detach().clone().requires_grad_()
    total = torch.nn.functional.cross_entropy(expected, targets[:, 0])
    (total + 2 * expected.logsumexp(-1).sum()).backward()
    torch.testing.assert_close(logits.grad, expected.grad)


def test_together_with_the_loss_others_have_no_gradient():
    logits, targets = make_operands("rt")
    logits.requires_grad_()
    loss, lse = bastile.ops.cross_entropy(
        logits, targets, returns=("loss", "lse"), together=True
    )
    assert loss.requires_grad and not lse.requires_grad
    with pytest.raises(ValueError, match="'together' is for a first result"):
        bastile.ops.cross_entropy(
            logits, targets, returns="loss", reduction="none", together=True
        )


def test_loss_and_gradient_in_one_pass():
    logits, targets = make_operands("rt")
    logits.requires_grad_()
    loss = bastile.ops.cross_entropy(logits, targets, returns="loss")
    # What is kept is the gradient itself, and the backward hands it on; and nothing
    # of the logits but a way to them.
    kept, link = loss.grad_fn.saved_tensors
    assert link.untyped_storage().nbytes() == 0
    (gradient,) = torch.autograd.grad(loss, logits, torch.ones_like(loss))
    assert gradient.data_ptr() == kept.data_ptr()


def test_gradient_twice_with_retain_graph(device):
    logits, targets = make_operands("rt", device=device)
    logits.requires_grad_()
    loss = bastile.ops.cross_entropy(logits, targets, returns="loss")
    first = torch.autograd.grad(3 * loss, logits, retain_graph=True)[0].clone()
    second = torch.autograd.grad(3 * loss, logits)[0]
    assert torch.equal(first, second)


class TestInPlace:
    def test_gradient_takes_the_logits_memory(self, device):
        leaf, targets = make_operands("rt", device=device)
        expected = leaf.clone().requires_grad_()
        (2 * torch.nn.functional.cross_entropy(expected, targets[:, 0])).backward()
        leaf.requires_grad_()
        logits = leaf + 0
        loss = bastile.ops.cross_entropy(logits, targets, returns="loss", in_place=True)
        assert loss.grad_fn.saved_tensors[0].data_ptr() == logits.data_ptr()
        (2 * loss).backward()
        torch.testing.assert_close(leaf.grad, expected.grad)

    def test_a_leaf_is_not_overwritten(self):
        logits, targets = make_operands("rt")
        logits.requires_grad_()
        with pytest.raises(RuntimeError, match="overwrite a leaf"):
            bastile.ops.cross_entropy(logits, targets, in_place=True, returns="loss")

    @pytest.mark.parametrize("autocast", [False, True])
    def test_others_that_need_the_logits_are_told(self, autocast):
        leaf, targets = make_operands("rt")
        logits = leaf.requires_grad_() + 0
        square = logits * logits
        with torch.autocast("cpu", enabled=autocast):
            loss = bastile.ops.cross_entropy(
                logits, targets, returns="loss", in_place=True
            )
        with pytest.raises(RuntimeError, match="modified by an inplace operation"):
            (loss.sum() + square.sum()).backward()

    def test_rows_that_lie_apart_are_overwritten(self, device):
        leaf, targets = make_operands("rt", device=device)
        expected = leaf.clone().requires_grad_()
        torch.nn.functional.cross_entropy(expected, targets[:, 0]).backward()
        whole = torch.nn.functional.pad(leaf.requires_grad_(), (0, 3))
        square = whole * whole
        logits = whole[:, : leaf.shape[1]]
        loss = bastile.ops.cross_entropy(logits, targets, returns="loss", in_place=True)
        assert loss.grad_fn.saved_tensors[0].data_ptr() == logits.data_ptr()
        loss.backward(retain_graph=True)
        torch.testing.assert_close(leaf.grad, expected.grad)
        torch.testing.assert_close(logits, expected.grad)
        assert not whole[:, leaf.shape[1] :].any()
        with pytest.raises(RuntimeError, match="modified by an inplace operation"):
            square.sum().backward()

    def test_logits_whose_elements_lie_apart_are_left_alone(self):
        leaf, targets = make_operands("rt")
        logits = leaf.requires_grad_().t().contiguous().t()
        before = logits.detach().clone()
        loss = bastile.ops.cross_entropy(logits, targets, returns="loss", in_place=True)
        loss.backward()
        assert torch.equal(logits, before)
        expected = leaf.detach().clone().requires_grad_()
        torch.nn.functional.cross_entropy(expected, targets[:, 0]).backward()
        torch.testing.assert_close(leaf.grad, expected.grad)


@pytest.mark.parametrize("format", ["e4m3", "e5m2"])
def test_quantize_and_back(format, device):
    x = torch.randn(6, 32, device=device)
    small, scale = bastile.functional.quantize(x, format, group=8)
    assert small.element_size() == 1 and scale.shape == (6, 4)
    back = bastile.functional.dequantize(small, scale, torch.float32)
    bound = {"e4m3": 2**-4, "e5m2": 2**-3}[format]
    blocks = x.reshape(6, 4, 8)
    error = (back - x).reshape(6, 4, 8).abs().amax(-1)
    assert (error <= bound * blocks.abs().amax(-1)).all()


def test_a_kernel_that_was_compiled_ahead_differentiates(device):
    kernel = bastile.compile("layer_norm", (None, LENGTH), dtype="f32", grad=True)
    x = torch.randn(4, LENGTH, device=device, requires_grad=True)
    kernel(x).sum().backward()
    expected = x.detach().clone().requires_grad_()
    torch.nn.functional.layer_norm(expected, (LENGTH,)).sum().backward()
    torch.testing.assert_close(x.grad, expected.grad, rtol=1e-4, atol=1e-5)


def test_documentation_says_what_there_is():
    text = bastile.ops.cross_entropy.__doc__
    for name in ("logits", "ignore_index", "reduction", "together", "in_place"):
        assert name in text
