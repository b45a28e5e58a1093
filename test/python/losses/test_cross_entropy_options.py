# Part of Bastile, under the MIT License. See LICENSE.
# RUN: %package-test %s
"""Options of the losses by PyTorch's names: predicted classes, losses scaled by the
target's probability, z-losses, gradients of tokens' losses, and checked targets."""

import pytest
import torch
from bastile import functional as F

CLASSES = 40


def make(dtype=torch.float32, device="cpu", tokens=9, seed=0):
    torch.manual_seed(seed)
    logits = torch.randn(tokens, CLASSES, device=device).to(dtype)
    targets = torch.randint(0, CLASSES, (tokens,), device=device)
    targets[2] = -100
    return logits, targets


def reference(
    logits,
    targets,
    weight=None,
    reduction="mean",
    z_loss=0.0,
    token_scaling=False,
    label_smoothing=0.0,
    soft_cap=0.0,
):
    """The loss in float64, and its z-loss."""
    z = logits.double()
    if soft_cap:
        z = soft_cap * torch.tanh(z / soft_cap)
    weight = None if weight is None else weight.double()
    each = torch.nn.functional.cross_entropy(
        z, targets, weight, reduction="none", label_smoothing=label_smoothing
    )
    counts = targets != -100
    penalty = torch.where(counts, z_loss * z.logsumexp(-1).square(), 0.0)
    if token_scaling:
        chosen = z.softmax(-1).gather(1, targets.clamp(min=0)[:, None])[:, 0].detach()
        each, penalty = each * chosen, penalty * chosen
    if reduction == "none":
        return each + penalty, penalty
    each, penalty = each.sum(), penalty.sum()
    if reduction == "mean":
        share = counts if weight is None else weight[targets.clamp(min=0)] * counts
        each, penalty = each / share.sum(), penalty / counts.sum()
    return each + penalty, penalty


def split(logits, device):
    """Hidden states and a weight whose product the logits are, about."""
    weight = torch.randn(CLASSES, 16, device=device, dtype=torch.float64)
    hidden = torch.linalg.lstsq(weight, logits.double().T).solution.T
    return hidden.contiguous(), weight


OPTIONS = [
    {"z_loss": 0.1},
    {"token_scaling": True},
    {"token_scaling": True, "z_loss": 0.1, "label_smoothing": 0.2},
    {"z_loss": 0.1, "soft_cap": 3.0, "label_smoothing": 0.1},
]


@pytest.mark.long(every=11)
@pytest.mark.parametrize("options", OPTIONS, ids=lambda x: "-".join(x))
@pytest.mark.parametrize("is_weighted", [False, True])
@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
def test_losses_of_logits(reduction, is_weighted, options, device):
    logits, targets = make(device=device)
    weight = torch.rand(CLASSES, device=device) if is_weighted else None
    ours, theirs = logits.clone().requires_grad_(), logits.double().requires_grad_()
    loss = F.cross_entropy(ours, targets, weight, reduction=reduction, **options)
    expected, _ = reference(theirs, targets, weight, reduction, **options)
    torch.testing.assert_close(loss.double(), expected, rtol=1e-5, atol=1e-5)
    upstream = torch.randn_like(expected)
    loss.backward(upstream.float())
    expected.backward(upstream)
    torch.testing.assert_close(ours.grad.double(), theirs.grad, rtol=1e-4, atol=1e-6)


def test_weights_that_sum_to_nothing():
    """A mean divides by 1 then, of logits and of a layer alike; PyTorch's is NaN."""
    logits, targets = make()
    weight = torch.ones(CLASSES)
    weight[targets[targets >= 0]] = 0
    hidden, matrix = split(logits, "cpu")
    options = {"label_smoothing": 0.1, "z_loss": 0.1}
    found = []
    for is_layer in (False, True):
        x = hidden.clone().requires_grad_()
        if is_layer:
            loss = F.linear_cross_entropy(x, matrix, targets, weight=weight, **options)
        else:
            loss = F.cross_entropy(x @ matrix.T, targets, weight, **options)
        found.append((loss, *torch.autograd.grad(loss, x)))
    assert found[0][0] > 0 and found[0][0].isfinite()
    torch.testing.assert_close(*found, rtol=1e-4, atol=1e-6)


@pytest.mark.long(every=11)
@pytest.mark.parametrize("options", OPTIONS, ids=lambda x: "-".join(x))
@pytest.mark.parametrize("is_weighted", [False, True])
@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
@pytest.mark.parametrize("cut", [{}, {"budget": 3 * 8 * CLASSES}, {"recompute": True}])
def test_losses_of_a_linear_layer(cut, reduction, is_weighted, options):
    logits, targets = make(torch.float64)
    if cut.get("recompute"):
        cut = {**cut, "budget": 9 * 8 * 16}
    hidden, matrix = split(logits, "cpu")
    weight = torch.rand(CLASSES, dtype=torch.float64) if is_weighted else None
    found = []
    for is_ours in (True, False):
        leaves = [x.clone().requires_grad_() for x in (hidden, matrix)]
        if is_ours:
            loss, predicted, z = F.linear_cross_entropy(
                *leaves,
                targets,
                weight=weight,
                reduction=reduction,
                return_predicted=True,
                return_z_loss=True,
                **options,
                **cut,
            )
        else:
            product = leaves[0] @ leaves[1].T
            loss, z = reference(product, targets, weight, reduction, **options)
            predicted = torch.where(targets == -100, -1, product.argmax(-1))
        torch.manual_seed(5)
        upstream = torch.randn_like(loss)
        gradients = torch.autograd.grad(loss, leaves, upstream)
        found.append((loss, z.detach(), *gradients, predicted))
    *ours, ours_predicted = found[0]
    *theirs, theirs_predicted = found[1]
    torch.testing.assert_close(ours, theirs, rtol=1e-9, atol=1e-9)
    assert torch.equal(ours_predicted, theirs_predicted)


def test_num_items_divide_both_terms():
    logits, targets = make(torch.float64)
    hidden, matrix = split(logits, "cpu")
    weight = torch.rand(CLASSES, dtype=torch.float64)
    total = F.linear_cross_entropy(
        hidden, matrix, targets, weight=weight, reduction="sum", z_loss=0.1
    )
    mean, z = F.linear_cross_entropy(
        hidden,
        matrix,
        targets,
        weight=weight,
        z_loss=0.1,
        num_items=20,
        return_z_loss=True,
    )
    torch.testing.assert_close(mean, total / 20)
    lse = (hidden @ matrix.T).logsumexp(-1)[targets != -100]
    torch.testing.assert_close(z, 0.1 * lse.square().sum() / 20)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_predicted_classes(dtype, device):
    logits, targets = make(dtype, device)
    logits[3] = 1.0
    logits[4, 7] = float("nan")
    logits[5] = -float("inf")
    loss, lse, correct, predicted = F.cross_entropy(
        logits,
        targets,
        reduction="none",
        return_lse=True,
        return_correct=True,
        return_predicted=True,
    )
    expected = logits.float().argmax(-1)
    expected[2] = expected[4] = -1
    assert predicted.dtype == torch.int64
    assert predicted[3] == 0
    # Of equal logits, one is predicted, and none is larger than the target's.
    kept = torch.ones(9, dtype=torch.bool, device=device)
    kept[[3, 5]] = False
    assert torch.equal(predicted[kept], expected[kept])
    assert torch.equal((predicted == targets)[kept], correct[kept])
    assert correct[3]
    assert loss[2] == 0


@pytest.mark.long(every=11)
@pytest.mark.parametrize("options", [{}, {"token_scaling": True, "soft_cap": 3.0}])
@pytest.mark.parametrize("in_place", [False, True])
@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
def test_z_loss_that_is_returned(reduction, in_place, options, device):
    values, targets = make(device=device)
    logits = values.clone().requires_grad_()
    loss, z = F.cross_entropy(
        logits * 1 if in_place else logits,
        targets,
        reduction=reduction,
        z_loss=0.1,
        return_z_loss=True,
        in_place=in_place,
        **options,
    )
    expected, penalty = reference(values, targets, None, reduction, 0.1, **options)
    torch.testing.assert_close(loss.double(), expected, rtol=1e-5, atol=1e-5)
    torch.testing.assert_close(z.double(), penalty, rtol=1e-5, atol=1e-5)
    assert not z.requires_grad
    assert loss.requires_grad


@pytest.mark.parametrize("is_cast", [False, True])
def test_scaled_z_loss_of_a_linear_layer_in_bfloat16(is_cast, device):
    """The logits are those of the layer: rounded, with their bias, under autocast too."""
    torch.manual_seed(0)
    hidden, weight = (
        torch.randn(9, 16, device=device),
        torch.randn(31, 16, device=device),
    )
    bias, targets = torch.randn(31, device=device), torch.arange(9, device=device)
    given = [x if is_cast else x.bfloat16() for x in (hidden, weight, bias)]
    with torch.autocast(device, torch.bfloat16, enabled=is_cast):
        *_, z = F.linear_cross_entropy(
            *(given[0], given[1], targets),
            linear_bias=given[2],
            z_loss=0.1,
            token_scaling=True,
            return_z_loss=True,
            reduction="none",
        )
    narrow = [x.bfloat16() for x in (hidden, weight, bias)]
    logits = torch.nn.functional.linear(*narrow)
    _, penalty = reference(logits, targets, None, "none", 0.1, True)
    torch.testing.assert_close(z.double(), penalty, rtol=1e-2, atol=1e-4)


@pytest.mark.long(every=5)
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("in_place", [False, True])
@pytest.mark.parametrize("is_weighted", [False, True])
@pytest.mark.parametrize("compiled", [False, True])
def test_gradients_of_tokens(compiled, is_weighted, in_place, dtype, device):
    logits, targets = make(dtype, device)
    weight = torch.rand(CLASSES, device=device) if is_weighted else None
    wide = logits.double().requires_grad_()
    expected, _ = reference(wide, targets, weight, "none", z_loss=0.1)
    expected.sum().backward()

    def call(x):
        return F.cross_entropy(
            x,
            targets,
            weight,
            reduction="none",
            z_loss=0.1,
            return_lse=True,
            return_gradient=True,
            in_place=in_place,
        )

    if compiled:
        call = torch.compile(call, fullgraph=True, backend="aot_eager")
    given = logits.clone()
    loss, lse, gradient = call(given)
    assert (gradient is given) == in_place
    assert torch.equal(given, gradient if in_place else logits)
    assert gradient.dtype == dtype
    assert not loss.requires_grad
    limit = 1e-5 if dtype == torch.float32 else 1e-2
    torch.testing.assert_close(loss.double(), expected, rtol=1e-5, atol=1e-5)
    torch.testing.assert_close(lse.double(), wide.logsumexp(-1), rtol=1e-5, atol=1e-5)
    torch.testing.assert_close(gradient.double(), wide.grad, rtol=limit, atol=1e-6)


def test_gradients_of_tokens_for_numbers_that_vary():
    """To a compiler of graphs, an option that has had two values is a symbol."""
    logits, targets = make()

    @torch.compile(fullgraph=True, backend="aot_eager", dynamic=True)
    def call(x, ignored):
        return F.cross_entropy(
            x, targets, ignore_index=ignored, reduction="none", return_gradient=True
        )

    for ignored in (-100, 3, 7):
        loss, gradient = call(logits, ignored)
        expected = torch.nn.functional.cross_entropy(
            logits, targets.clamp(min=0), ignore_index=ignored, reduction="none"
        )
        kept = targets != -100
        torch.testing.assert_close(loss[kept], expected[kept])
        assert gradient.shape == logits.shape


@pytest.mark.parametrize("shape", [(CLASSES,), (4, CLASSES, 3)])
@pytest.mark.parametrize("in_place", [False, True])
def test_gradients_of_tokens_in_other_shapes(in_place, shape, device):
    logits = torch.randn(shape, device=device)
    targets = torch.randint(0, CLASSES, (4, 3) if len(shape) > 1 else (), device=device)
    leaf = logits.clone().requires_grad_()
    torch.nn.functional.cross_entropy(leaf, targets, reduction="sum").backward()
    loss, gradient = F.cross_entropy(
        logits, targets, reduction="none", return_gradient=True, in_place=in_place
    )
    assert loss.shape == targets.shape
    assert gradient.shape == logits.shape
    torch.testing.assert_close(gradient, leaf.grad)
    if in_place:
        assert gradient.data_ptr() == logits.data_ptr()
        assert torch.equal(gradient, logits)


def test_losses_in_torch_compile():
    logits, targets = make()

    def f(x):
        return F.cross_entropy(
            x, targets, token_scaling=True, return_lse=True, return_predicted=True
        )

    leaf = logits.clone().requires_grad_()
    compiled = torch.compile(f, fullgraph=True, backend="aot_eager")
    for ours, theirs in zip(compiled(leaf), f(leaf)):
        torch.testing.assert_close(ours, theirs)


@pytest.mark.parametrize("wrong", [CLASSES, -3, -100])
def test_targets_are_checked(wrong):
    logits, targets = make()
    targets[4:6] = wrong
    hidden, matrix = split(logits, "cpu")

    def loss_of_logits():
        return F.cross_entropy(logits, targets, check_targets=True)

    def loss_of_hidden():
        return F.linear_cross_entropy(hidden, matrix, targets, check_targets=True)

    for call in (loss_of_logits, loss_of_hidden):
        if wrong == -100:
            assert call().isfinite()
            continue
        with pytest.raises(ValueError, match=f"2 elements .* first is {wrong}"):
            call()


@pytest.mark.parametrize(
    ("options", "kind", "message"),
    [
        ({"return_gradient": True}, ValueError, "'return_gradient' is for the losses"),
        (
            {"return_gradient": True, "in_place": True, "reduction": "none"},
            RuntimeError,
            "overwrite a leaf",
        ),
    ],
)
def test_what_is_refused(options, kind, message):
    logits, targets = make()
    with pytest.raises(kind, match=message):
        F.cross_entropy(logits.requires_grad_(), targets, **options)


@pytest.mark.parametrize("reduction", ["none", "sum", "mean"])
def test_losses_may_be_detached_in_place(reduction):
    """As pipelines do that compute the gradients of weights apart."""
    logits = torch.randn(6, 7, requires_grad=True)
    target = torch.randint(7, (6,))
    losses = F.cross_entropy(logits, target, reduction=reduction, return_z_loss=True)
    for result in losses:
        assert not result._is_view()
        result.detach_()
