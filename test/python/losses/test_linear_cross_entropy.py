# Part of Bastile, under the MIT License. See LICENSE.
# RUN: %package-test %s
"""linear_cross_entropy: values and gradients of every option, in every way to
compute them."""

import bastile
import linear_losses
import pytest
import torch
import torch._dynamo.testing
import torch.nn.functional as F
from bastile import ops
from linear_losses import CLASSES, LENGTH, TOKENS, distance

ERRORS = {
    torch.float64: 1e-13,
    torch.float32: 1e-5,
    torch.bfloat16: 1e-2,
    torch.float16: 1e-3,
}
#: One chunk; several of unequal length; one token or class each.
BUDGETS = {"whole": None, "chunks": 8 * CLASSES * 10, "least": 1}
EVERYTHING = {
    "label_smoothing": 0.1,
    "z_loss": 0.01,
    "soft_cap": 5.0,
    "temperature": 2.0,
}


def call(problem, **options):
    return ops.linear_cross_entropy(
        problem.hidden,
        problem.weight,
        problem.targets,
        problem.bias,
        class_weights=problem.class_weights,
        **options,
    )


def compare(problem, how, **options):
    """The loss and its gradients under an upstream gradient that is not 1."""
    loss = call(problem, **options, **how)
    reference = problem.wide()
    expected, _ = linear_losses.loss_of(reference, **options)
    upstream = torch.linspace(0.5, 1.7, loss.numel(), dtype=torch.float64)
    upstream = upstream.reshape(loss.shape).to(loss.device)
    (loss * upstream).sum().backward()
    (expected * upstream).sum().backward()
    limit = ERRORS[problem.hidden.dtype]
    assert distance(loss, expected) < limit
    for one, other in zip(problem.leaves(), reference.leaves()):
        assert one.grad.dtype == one.dtype
        assert distance(one.grad, other.grad) < limit


@pytest.mark.long(every=11)
@pytest.mark.parametrize("recompute", [False, True])
@pytest.mark.parametrize("budget", BUDGETS)
@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
def test_types(dtype, reduction, budget, recompute, device):
    problem = linear_losses.make(dtype, device)
    how = {"budget": BUDGETS[budget], "recompute": recompute}
    compare(problem, how, reduction=reduction)


@pytest.mark.long(every=11)
@pytest.mark.parametrize("recompute", [False, True])
@pytest.mark.parametrize("budget", ["whole", "chunks"])
@pytest.mark.parametrize("reduction", ["mean", "none"])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize(
    "options", [{}, EVERYTHING, *({name: EVERYTHING[name]} for name in EVERYTHING)]
)
def test_options(options, weighted, reduction, budget, recompute):
    problem = linear_losses.make(class_weights=weighted)
    how = {"budget": BUDGETS[budget], "recompute": recompute}
    compare(problem, how, reduction=reduction, **options)


@pytest.mark.parametrize("recompute", [False, True])
@pytest.mark.parametrize("reduction", ["mean", "none"])
def test_skipping_ignored_tokens(reduction, recompute, device):
    problem = linear_losses.make(torch.float32, device)
    how = {"skip_ignored": True, "budget": 2000, "recompute": recompute}
    compare(problem, how, reduction=reduction)


@pytest.mark.parametrize("items", [11, 11.0, torch.tensor(11), torch.tensor([11.0])])
def test_a_divisor(items):
    problem, plain = linear_losses.make(), linear_losses.make()
    call(problem, num_items=items, budget=1000).backward()
    linear_losses.loss_of(plain, num_items=11)[0].backward()
    assert distance(problem.weight.grad, plain.weight.grad) < 1e-13


def test_ignore_index_and_narrow_targets(device):
    problem = linear_losses.make(torch.float32, device)
    problem.targets = problem.targets.clamp(min=0).int()
    problem.targets[:9] = 7
    result = call(problem, ignore_index=7)
    problem.targets = problem.targets.long()
    expected, _ = linear_losses.loss_of(problem.wide(), ignore_index=7)
    assert distance(result, expected) < 1e-6


@pytest.mark.parametrize("recompute", [False, True])
@pytest.mark.parametrize("budget", BUDGETS.values())
def test_all_results(budget, recompute, device):
    problem = linear_losses.make(torch.float32, device)
    problem.targets[30] = CLASSES
    with torch.no_grad():
        invalid, correct, loss, lse = call(
            problem,
            returns=("invalid", "correct", "loss", "lse"),
            reduction="none",
            soft_cap=9.0,
            budget=budget,
            recompute=recompute,
        )
    problem.targets[30] = -100
    expected, z = linear_losses.loss_of(problem.wide(), "none", soft_cap=9.0)
    assert invalid == 1
    assert loss[30].isnan()
    loss[30] = 0
    torch.testing.assert_close(loss.double(), expected, rtol=1e-5, atol=1e-5)
    torch.testing.assert_close(lse.double(), z.logsumexp(-1), rtol=1e-5, atol=1e-5)
    assert correct.dtype == torch.int8
    assert torch.equal(correct.bool(), z.argmax(-1) == problem.targets)


@pytest.mark.parametrize("recompute", [False, True])
def test_a_token_without_a_class_has_no_gradient(recompute):
    problem = linear_losses.make(torch.float32)
    problem.targets[30] = CLASSES
    call(problem, recompute=recompute).backward()
    assert not problem.hidden.grad[30].any()
    assert problem.weight.grad.isfinite().all()


@pytest.mark.parametrize("recompute", [False, True])
def test_classes_that_cannot_occur(recompute):
    """As in a vocabulary that is padded, also where a slab has nothing else."""
    problem = linear_losses.make()
    problem.targets.clamp_(max=30)
    with torch.no_grad():
        problem.bias[31:] = -torch.inf
    how = {"budget": 8 * TOKENS * 10, "recompute": recompute}
    compare(problem, how, z_loss=0.01)


@pytest.mark.parametrize("recompute", [False, True])
def test_no_token_that_counts(recompute):
    problem = linear_losses.make(torch.float32)
    problem.targets.fill_(-100)
    loss = call(problem, recompute=recompute)
    loss.backward()
    assert loss == 0
    assert not any(x.grad.any() for x in problem.leaves())


@pytest.mark.parametrize("recompute", [False, True])
@pytest.mark.parametrize("reduction", ["mean", "none"])
def test_no_token_at_all(reduction, recompute):
    weight = torch.randn(CLASSES, LENGTH, requires_grad=True)
    hidden = torch.randn(0, LENGTH, requires_grad=True)
    targets = torch.empty(0, dtype=torch.long)
    loss = ops.linear_cross_entropy(
        hidden, weight, targets, reduction=reduction, recompute=recompute
    )
    loss.sum().backward()
    assert loss.sum() == 0
    assert hidden.grad.shape == (0, LENGTH)
    assert not weight.grad.any()


def test_leading_dimensions(device):
    problem = linear_losses.make(torch.float32, device)
    flat = call(problem, reduction="none")
    problem.hidden = problem.hidden.detach()[None, :, None].requires_grad_()
    problem.targets = problem.targets[None, :, None]
    shaped = call(problem, reduction="none")
    assert shaped.shape == (1, TOKENS, 1)
    assert torch.equal(shaped.flatten(), flat)
    shaped.sum().backward()
    assert problem.hidden.grad.shape == problem.hidden.shape


def test_hidden_states_that_are_not_contiguous():
    problem = linear_losses.make(torch.float32)
    straight = call(problem)
    problem.hidden = problem.hidden.detach().t().contiguous().t()
    problem.weight = problem.weight.detach().t().contiguous().t()
    torch.testing.assert_close(call(problem), straight)


@pytest.mark.long(every=11)
@pytest.mark.parametrize("recompute", [False, True])
@pytest.mark.parametrize("reduction", ["mean", "none"])
@pytest.mark.parametrize("frozen", [0, 1, 2, (0, 1), (0, 2), (1, 2)])
def test_only_the_gradients_that_are_wanted(frozen, reduction, recompute):
    problem, whole = linear_losses.make(), linear_losses.make()
    frozen = frozen if isinstance(frozen, tuple) else (frozen,)
    for i in frozen:
        problem.leaves()[i].requires_grad_(False)
    how = {"budget": 1000, "recompute": recompute, "reduction": reduction}
    call(problem, **how).sum().backward()
    call(whole, **how).sum().backward()
    for i, (one, other) in enumerate(zip(problem.leaves(), whole.leaves())):
        assert (one.grad is None) == (i in frozen)
        if one.grad is not None:
            assert torch.equal(one.grad, other.grad)


def test_a_loss_alone_needs_no_gradient_kernel():
    problem = linear_losses.make()
    before = call(problem).detach()
    with torch.no_grad():
        loss = call(problem)
    assert not loss.requires_grad
    assert torch.equal(loss, before)


def test_gradients_add_up_over_batches():
    """As where one optimizer's step is of several batches."""
    problem = linear_losses.make()
    reference = problem.wide()
    for seed in (1, 2, 3):
        other = linear_losses.make(seed=seed)
        reference.hidden = other.hidden.detach().requires_grad_()
        reference.targets = problem.targets = other.targets
        problem.hidden = other.hidden.detach().requires_grad_()
        (call(problem, num_items=99, budget=1000) * 8).backward()
        (linear_losses.loss_of(reference, num_items=99)[0] * 8).backward()
    assert distance(problem.weight.grad, reference.weight.grad) < 1e-13
    assert distance(problem.bias.grad, reference.bias.grad) < 1e-13


def test_the_weight_keeps_the_gradient_without_a_copy():
    problem = linear_losses.make(torch.bfloat16, bias=False)
    seen = []
    from bastile._losses import totals

    scale = totals.scale_gradient

    def watch(gradient, *rest):
        result = scale(gradient, *rest)
        seen.append((gradient.data_ptr(), result.data_ptr()))
        return result

    totals.scale_gradient = watch
    try:
        call(problem).backward()
    finally:
        totals.scale_gradient = scale
    assert all(before == after for before, after in seen)
    assert problem.weight.grad.data_ptr() == seen[1][1]


def test_a_graph_that_is_retained():
    problem = linear_losses.make()
    loss = call(problem)
    first = torch.autograd.grad(loss * 2, problem.leaves(), retain_graph=True)
    second = torch.autograd.grad(loss * 3, problem.leaves())
    for one, other in zip(first, second):
        torch.testing.assert_close(one * 1.5, other)
    with pytest.raises(RuntimeError, match="backward through the graph a second"):
        loss.backward()


@pytest.mark.parametrize("reduction", ["mean", "none"])
def test_gradcheck(reduction):
    problem = linear_losses.make(class_weights=True)

    def function(hidden, weight, bias):
        return ops.linear_cross_entropy(
            hidden,
            weight,
            problem.targets[:5],
            bias,
            class_weights=problem.class_weights,
            reduction=reduction,
            budget=1000,
            **EVERYTHING,
        )

    hidden, *rest = (x.detach() for x in problem.leaves())
    leaves = [x.clone().requires_grad_() for x in (hidden[:5], *rest)]
    assert torch.autograd.gradcheck(function, leaves, fast_mode=True)


@pytest.mark.parametrize("reduction", ["mean", "none"])
def test_second_derivatives_are_refused(reduction):
    problem = linear_losses.make()
    loss = call(problem, reduction=reduction).sum()
    (gradient,) = torch.autograd.grad(loss, problem.hidden, create_graph=True)
    with pytest.raises(RuntimeError, match="of bastile cannot be differentiated again"):
        gradient.sum().backward()
    # Also where autograd looks for a way to what it is asked for.
    loss = call(problem, reduction=reduction).sum() + problem.hidden.pow(3).sum()
    (gradient,) = torch.autograd.grad(loss, problem.hidden, create_graph=True)
    with pytest.raises(RuntimeError, match="of bastile cannot be differentiated again"):
        torch.autograd.grad(gradient.sum(), problem.hidden)


def test_unscaled_half_precision_does_not_underflow():
    """A mean over many tokens times a scale of the loss, as with a GradScaler."""
    problem = linear_losses.make(torch.float16, bias=False)
    reference = problem.wide()
    (call(problem, num_items=2**20) * 2.0**16).backward()
    (linear_losses.loss_of(reference, num_items=2**20)[0] * 2.0**16).backward()
    for one, other in zip(problem.leaves(), reference.leaves()):
        assert distance(one.grad, other.grad) < 1e-3


def test_a_sum_of_many_chunks_is_as_precise_as_one():
    """Rounding to bfloat16 after each of 300 chunks would lose the small ones."""
    torch.manual_seed(0)
    hidden = torch.rand(300, 16).bfloat16()
    weight = (torch.randn(40, 16) * 0.01).bfloat16().requires_grad_()
    targets = torch.randint(40, (300,))
    ops.linear_cross_entropy(
        hidden, weight, targets, reduction="sum", budget=1
    ).backward()
    wide = weight.detach().double().requires_grad_()
    F.cross_entropy(hidden.double() @ wide.t(), targets, reduction="sum").backward()
    plain = weight.detach().clone().requires_grad_()
    F.cross_entropy(hidden @ plain.t(), targets, reduction="sum").backward()
    assert distance(weight.grad, wide.grad) < 1.5 * distance(plain.grad, wide.grad)


# PyTorch's machinery.


@pytest.mark.long(every=3)
@pytest.mark.parametrize("recompute", [False, True])
@pytest.mark.parametrize("reduction", ["mean", "none"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float16])
def test_compiled_graphs(dtype, reduction, recompute):
    torch._dynamo.reset()
    problem, plain = linear_losses.make(dtype), linear_losses.make(dtype)

    def loss(hidden, weight, bias, targets):
        result = ops.linear_cross_entropy(
            hidden * 2,
            weight,
            targets,
            bias,
            reduction=reduction,
            budget=1000,
            recompute=recompute,
            returns=("loss", "lse"),
        )
        return result[0].sum() * 3

    compiled = torch.compile(loss, fullgraph=True, backend="aot_eager")
    compiled(*problem.leaves(), problem.targets).backward()
    loss(*plain.leaves(), plain.targets).backward()
    for one, other in zip(problem.leaves(), plain.leaves()):
        assert distance(one.grad, other.grad) < ERRORS[dtype]


def test_compiled_graphs_of_any_number_of_tokens():
    torch._dynamo.reset()
    counter = torch._dynamo.testing.CompileCounterWithBackend("aot_eager")

    def loss(hidden, weight, targets):
        return ops.linear_cross_entropy(hidden, weight, targets, z_loss=0.01)

    compiled = torch.compile(loss, fullgraph=True, backend=counter, dynamic=True)
    weight = torch.randn(CLASSES, LENGTH, requires_grad=True)
    graphs = []
    for tokens in (5, 7, 9):
        hidden = torch.randn(tokens, LENGTH)
        targets = torch.randint(CLASSES, (tokens,))
        result = compiled(hidden, weight, targets)
        graphs.append(counter.frame_count)
        (own,) = torch.autograd.grad(result, weight)
        (expected,) = torch.autograd.grad(loss(hidden, weight, targets), weight)
        torch.testing.assert_close(own, expected)
    assert graphs[0] == graphs[-1]


def test_export(tmp_path):
    module = bastile.nn.LinearCrossEntropy(LENGTH, CLASSES, z_loss=0.01)
    problem = linear_losses.make(torch.float32)
    rows = torch.export.Dim("rows", min=1, max=4096)
    program = torch.export.export(
        module,
        (problem.hidden.detach(), problem.targets),
        dynamic_shapes={"hidden": {0: rows}, "targets": {0: rows}},
    )
    torch.export.save(program, tmp_path / "loss.pt2")
    loaded = torch.export.load(tmp_path / "loss.pt2").module()
    for count in (TOKENS, 9):
        hidden, targets = problem.hidden.detach()[:count], problem.targets[:count]
        torch.testing.assert_close(loaded(hidden, targets), module(hidden, targets))


def test_transformations_are_refused():
    problem = linear_losses.make()
    with pytest.raises(RuntimeError, match="under no transformation of torch.func"):
        torch.func.grad(
            lambda x: ops.linear_cross_entropy(x, problem.weight, problem.targets)
        )(problem.hidden)


def test_operators_are_registered_well():
    problem = linear_losses.make(torch.float32)
    from bastile._losses.options import RESULTS, Options

    options = Options(returns=RESULTS, classes=CLASSES)
    torch.library.opcheck(
        torch.ops.bastile.linear_cross_entropy.default,
        (
            *(x.detach() for x in (problem.hidden, problem.weight, problem.targets)),
            problem.bias.detach(),
            *(None, None, *options.given, [True, False, True]),
        ),
        test_utils=("test_schema", "test_faketensor"),
    )


def test_meta_tensors():
    problem = linear_losses.make(torch.bfloat16, "meta")
    loss, lse = call(problem, returns=("loss", "lse"))
    loss.backward()
    assert (loss.shape, lse.shape) == ((), (TOKENS,))
    assert loss.dtype == torch.float32
    assert problem.weight.grad.shape == problem.weight.shape


def test_autocast(device):
    problem = linear_losses.make(torch.float32, device)
    narrow = linear_losses.make(torch.bfloat16, device)
    with torch.autocast(device, torch.bfloat16):
        loss = call(problem)
    loss.backward()
    expected = call(narrow)
    expected.backward()
    assert torch.equal(loss, expected)
    assert problem.weight.grad.dtype == torch.float32
    assert torch.equal(problem.weight.grad, narrow.weight.grad.float())


@pytest.mark.parametrize("reentrant", [False, True])
def test_checkpoints(reentrant):
    from torch.utils.checkpoint import checkpoint

    problem, plain = linear_losses.make(), linear_losses.make()
    loss = checkpoint(
        lambda *x: call(problem), *problem.leaves(), use_reentrant=reentrant
    )
    loss.backward()
    call(plain).backward()
    for one, other in zip(problem.leaves(), plain.leaves()):
        assert torch.equal(one.grad, other.grad)


def test_functional():
    problem = linear_losses.make(torch.float32)
    loss, lse, correct = bastile.functional.linear_cross_entropy(
        problem.hidden,
        problem.weight,
        problem.targets,
        linear_bias=problem.bias,
        return_lse=True,
        return_correct=True,
    )
    assert torch.equal(loss, call(problem))
    assert lse.shape == problem.targets.shape
    assert correct.dtype == torch.bool


def test_module():
    head = torch.nn.Linear(LENGTH, CLASSES, bias=False)
    module = bastile.nn.LinearCrossEntropy(LENGTH, CLASSES, soft_cap=30.0)
    module.load_state_dict(head.state_dict())
    problem = linear_losses.make(torch.float32)
    with torch.no_grad():
        loss = module(problem.hidden, problem.targets, reduction="sum")
        expected = ops.linear_cross_entropy(
            problem.hidden, head.weight, problem.targets, soft_cap=30.0, reduction="sum"
        )
    assert torch.equal(loss, expected)
    assert "soft_cap=30.0" in repr(module)
    with pytest.raises(TypeError, match="no option 'softcap'; there are reduction"):
        bastile.nn.LinearCrossEntropy(LENGTH, CLASSES, softcap=30.0)
