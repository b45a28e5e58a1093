# Part of Bastile, under the MIT License. See LICENSE.
# RUN: %package-test %s
"""linear_log_probs: values and gradients of every option, in every way to compute
them."""

import linear_losses
import pytest
import torch
import torch._dynamo.testing
from bastile import ops
from linear_losses import CLASSES, LENGTH, TOKENS, distance

ERRORS = {
    torch.float64: 1e-13,
    torch.float32: 1e-5,
    torch.bfloat16: 2e-2,
    torch.float16: 3e-3,
}
#: One piece; several of unequal length; one token or class each.
WAYS = {
    "whole": {},
    "chunks": {"budget": 8 * CLASSES * 10},
    "tokens": {"budget": 1},
    "slabs": {"budget": 8 * TOKENS * 12, "recompute": True},
    "classes": {"budget": 1, "recompute": True},
}
RESULTS = (
    "log_prob",
    "entropy",
    "lse",
    "mean",
    "mean_square",
    "log_sum_square_probs",
    "argmax",
    "correct",
)
DIFFERENTIABLE = RESULTS[:3]
EVERYTHING = {"scale": 0.5, "soft_cap": 5.0, "temperature": 2.0}


def call(problem, returns=RESULTS, **options):
    found = ops.linear_log_probs(
        problem.hidden,
        problem.weight,
        problem.targets,
        problem.bias,
        returns=returns,
        **options,
    )
    return found if isinstance(returns, str) else dict(zip(returns, found))


def weigh(results, names):
    """A number with another upstream gradient for each token and result."""
    total = 0
    for i, name in enumerate(names):
        upstream = torch.linspace(0.5 - i, 1.7, results[name].numel())
        total = total + (results[name] * upstream.to(results[name])).sum()
    return total


def compare(problem, names=DIFFERENTIABLE, how=None, **options):
    results = call(problem, **options, **(how or {}))
    reference = problem.wide()
    expected, z = linear_losses.distribution_of(reference, **options)
    limit = ERRORS[problem.hidden.dtype]
    for name in RESULTS[:6]:
        assert results[name].dtype == (
            torch.float64 if z.dtype == problem.hidden.dtype else torch.float32
        )
        assert distance(results[name], expected[name]) < limit, name
    assert torch.equal(results["correct"], results["argmax"] == problem.targets)
    if limit < 1e-4:
        assert torch.equal(results["argmax"], expected["argmax"])
    weigh(results, names).backward()
    weigh(expected, names).backward()
    for one, other in zip(problem.leaves(), reference.leaves()):
        assert one.grad.dtype == one.dtype
        assert distance(one.grad, other.grad) < limit


@pytest.mark.long(every=5)
@pytest.mark.parametrize("how", WAYS.values(), ids=WAYS)
@pytest.mark.parametrize("dtype", ERRORS)
def test_types(dtype, how, device):
    if device == "cuda" and dtype == torch.float64:
        pytest.skip("float64 is computed on the host only")
    compare(linear_losses.make(dtype, device), how=how)


@pytest.mark.long(every=5)
@pytest.mark.parametrize("how", WAYS.values(), ids=WAYS)
@pytest.mark.parametrize(
    "options", [EVERYTHING, *({name: EVERYTHING[name]} for name in EVERYTHING)]
)
@pytest.mark.parametrize("bias", [False, True])
def test_options(bias, options, how):
    compare(linear_losses.make(bias=bias), how=how, **options)


@pytest.mark.long(every=5)
@pytest.mark.parametrize("how", WAYS.values(), ids=WAYS)
@pytest.mark.parametrize(
    "names", [DIFFERENTIABLE[:1], DIFFERENTIABLE[1:2], DIFFERENTIABLE[2:]]
)
def test_gradients_of_one_result_alone(names, how):
    compare(linear_losses.make(), names, how)
    problem, reference = linear_losses.make(), linear_losses.make()
    weigh({names[0]: call(problem, names[0], **how)}, names).backward()
    weigh(linear_losses.distribution_of(reference)[0], names).backward()
    assert distance(problem.hidden.grad, reference.hidden.grad) < 1e-13


@pytest.mark.parametrize("name", RESULTS)
def test_one_result_alone(name):
    problem = linear_losses.make()
    assert distance(call(problem, name), call(problem)[name]) < 1e-14
    assert call(problem, name).requires_grad == (name in DIFFERENTIABLE)


def test_order_and_repetition_of_results():
    problem = linear_losses.make()
    log_prob, entropy = call(problem, ("log_prob", "entropy")).values()
    found = ops.linear_log_probs(
        *(problem.hidden, problem.weight, problem.targets, problem.bias),
        returns=("entropy", "log_prob", "entropy"),
    )
    for one, other in zip(found, (entropy, log_prob, entropy)):
        assert torch.equal(one, other)


@pytest.mark.parametrize("how", WAYS.values(), ids=WAYS)
def test_tokens_to_ignore_and_targets_that_are_no_class(how):
    problem = linear_losses.make(torch.float32)
    problem.targets[30], problem.targets[31] = CLASSES, -7
    results = call(problem, **how)
    weigh(results, DIFFERENTIABLE[:1]).nan_to_num().backward()
    assert results["log_prob"][30:32].isnan().all()
    assert not results["correct"][30:32].any()
    ignored = problem.targets == -100
    for x in results.values():
        assert not x[ignored].any()
    assert not problem.hidden.grad[ignored].any()
    assert not problem.hidden.grad[30:32].any()
    assert problem.weight.grad.isfinite().all()
    # The entropy of a token whose target is no class is that of any token.
    expected, _ = linear_losses.distribution_of(linear_losses.make())
    assert distance(results["entropy"], expected["entropy"]) < 1e-5


def test_ignore_index_and_narrow_targets(device):
    problem = linear_losses.make(torch.float32, device)
    problem.targets = problem.targets.clamp(min=0).int()
    problem.targets[:9] = 7
    results = call(problem, ignore_index=7)
    problem.targets = problem.targets.long()
    expected, _ = linear_losses.distribution_of(problem.wide(), ignore=7)
    assert distance(results["log_prob"], expected["log_prob"]) < 1e-6


@pytest.mark.parametrize("how", WAYS.values(), ids=WAYS)
def test_large_logits(how):
    """Differences of large numbers keep their precision."""
    problem = linear_losses.make(torch.float32)
    with torch.no_grad():
        problem.bias += 2.0**13
        # Numbers of few digits, whose products and sums float32 holds.
        for x in problem.leaves():
            x.copy_((x * 4).round() / 4)
    compare(problem, how=how)


@pytest.mark.parametrize("how", WAYS.values(), ids=WAYS)
def test_classes_that_cannot_occur(how):
    """As in a vocabulary that is padded."""
    problem = linear_losses.make()
    problem.targets.clamp_(max=30)
    with torch.no_grad():
        problem.bias[37:] = -torch.inf
        problem.bias[2] = -torch.inf
    problem.targets[problem.targets == 2] = 3
    results = call(problem, DIFFERENTIABLE, **how)
    reference = problem.wide()
    expected, _ = linear_losses.distribution_of(reference)
    weigh(results, DIFFERENTIABLE).backward()
    weigh(expected, DIFFERENTIABLE[:1]).backward()
    weigh({"": expected["lse"]}, [""])
    for name in DIFFERENTIABLE:
        assert distance(results[name], expected[name]) < 1e-13
    for x in problem.leaves():
        assert x.grad.isfinite().all()
    assert not problem.bias.grad[37:].any()


def test_equal_logits_have_their_first_class():
    weight = torch.ones(CLASSES, LENGTH)
    hidden = torch.ones(2, LENGTH)
    for how in WAYS.values():
        argmax, correct = ops.linear_log_probs(
            *(hidden, weight, torch.tensor([0, 1])),
            returns=("argmax", "correct"),
            **how,
        )
        assert argmax.tolist() == [0, 0]
        assert correct.tolist() == [True, False]


@pytest.mark.parametrize("recompute", [False, True])
def test_no_token_at_all(recompute):
    weight = torch.randn(CLASSES, LENGTH, requires_grad=True)
    hidden = torch.randn(2, 0, LENGTH, requires_grad=True)
    targets = torch.empty(2, 0, dtype=torch.long)
    results = ops.linear_log_probs(
        hidden, weight, targets, returns=RESULTS, recompute=recompute
    )
    assert all(x.shape == (2, 0) for x in results)
    sum(x.sum() for x in results[:3]).backward()
    assert hidden.grad.shape == hidden.shape
    assert not weight.grad.any()


def test_leading_dimensions_and_strides(device):
    problem = linear_losses.make(torch.float32, device)
    flat = call(problem, "log_prob")
    problem.hidden = problem.hidden.detach()[None, :, None].requires_grad_()
    problem.targets = problem.targets[None, :, None]
    shaped = call(problem, "log_prob")
    assert shaped.shape == (1, TOKENS, 1)
    assert torch.equal(shaped.flatten(), flat)
    shaped.sum().backward()
    assert problem.hidden.grad.shape == problem.hidden.shape
    problem.hidden = problem.hidden.detach().squeeze().t().contiguous().t()
    problem.weight = problem.weight.detach().t().contiguous().t()
    problem.targets = problem.targets.flatten().repeat_interleave(2)[::2]
    torch.testing.assert_close(call(problem, "log_prob"), flat)


@pytest.mark.long(every=5)
@pytest.mark.parametrize("frozen", [0, 1, 2, (0, 1), (0, 2), (1, 2)])
@pytest.mark.parametrize("how", WAYS.values(), ids=WAYS)
def test_only_the_gradients_that_are_wanted(how, frozen):
    problem, whole = linear_losses.make(), linear_losses.make()
    frozen = frozen if isinstance(frozen, tuple) else (frozen,)
    for i in frozen:
        problem.leaves()[i].requires_grad_(False)
    for x in (problem, whole):
        weigh(call(x, DIFFERENTIABLE, **how), DIFFERENTIABLE).backward()
    for i, (one, other) in enumerate(zip(problem.leaves(), whole.leaves())):
        assert (one.grad is None) == (i in frozen)
        if one.grad is not None:
            assert torch.equal(one.grad, other.grad)


def test_results_are_the_same_each_time(device):
    def run():
        problem = linear_losses.make(torch.float32, device)
        results = call(problem, budget=1000)
        weigh(results, DIFFERENTIABLE).backward()
        return [*results.values(), *(x.grad for x in problem.leaves())]

    assert all(torch.equal(*pair) for pair in zip(run(), run()))


@pytest.mark.parametrize("how", WAYS.values(), ids=WAYS)
def test_gradcheck(how):
    problem = linear_losses.make()

    def function(hidden, weight, bias):
        return ops.linear_log_probs(
            hidden,
            weight,
            problem.targets[:5],
            bias,
            returns=DIFFERENTIABLE,
            **EVERYTHING,
            **how,
        )

    hidden, *rest = (x.detach() for x in problem.leaves())
    leaves = [x.clone().requires_grad_() for x in (hidden[:5], *rest)]
    assert torch.autograd.gradcheck(function, leaves, fast_mode=True)


def test_second_derivatives_are_refused():
    problem = linear_losses.make()
    result = call(problem, "entropy").sum()
    (gradient,) = torch.autograd.grad(result, problem.hidden, create_graph=True)
    with pytest.raises(RuntimeError, match="of bastile cannot be differentiated again"):
        gradient.sum().backward()


# PyTorch's machinery.


@pytest.mark.long(every=3)
@pytest.mark.parametrize("how", [WAYS["chunks"], WAYS["slabs"]])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float16])
def test_compiled_graphs(dtype, how):
    torch._dynamo.reset()
    problem, plain = linear_losses.make(dtype), linear_losses.make(dtype)

    def loss(hidden, weight, bias, targets):
        log_prob, entropy, correct = ops.linear_log_probs(
            *(hidden * 2, weight, targets, bias),
            returns=("log_prob", "entropy", "correct"),
            **how,
        )
        return log_prob.sum() * 3 + entropy.square().sum() * correct.sum()

    compiled = torch.compile(loss, fullgraph=True, backend="aot_eager")
    compiled(*problem.leaves(), problem.targets).backward()
    loss(*plain.leaves(), plain.targets).backward()
    for one, other in zip(problem.leaves(), plain.leaves()):
        assert distance(one.grad, other.grad) < ERRORS[dtype]


def test_compiled_graphs_of_any_number_of_tokens():
    torch._dynamo.reset()
    counter = torch._dynamo.testing.CompileCounterWithBackend("aot_eager")

    def loss(hidden, weight, targets):
        return ops.linear_log_probs(hidden, weight, targets, temperature=0.7).sum()

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


def test_operators_are_registered_well():
    from bastile._losses.log_probs.options import Options

    problem = linear_losses.make(torch.float32)
    tensors = [
        x.detach()
        for x in (problem.hidden, problem.weight, problem.targets, problem.bias)
    ]
    given = Options(returns=RESULTS, classes=CLASSES).given
    tests = {"test_utils": ("test_schema", "test_faketensor")}
    operator = torch.ops.bastile.linear_log_probs.default
    torch.library.opcheck(operator, (*tensors, *given), **tests)
    outputs = operator(*tensors, *given)
    log_prob, entropy, lse, *_, top, log_sum = outputs
    torch.library.opcheck(
        torch.ops.bastile.linear_log_probs_backward.default,
        (
            *(*tensors, top, log_sum, entropy, log_prob, None, lse),
            *(*given, [True, False, True]),
        ),
        **tests,
    )


def test_meta_tensors():
    problem = linear_losses.make(torch.bfloat16, "meta")
    results = call(problem)
    weigh(results, DIFFERENTIABLE).backward()
    assert all(x.shape == (TOKENS,) for x in results.values())
    assert problem.weight.grad.shape == problem.weight.shape


def test_counting_operations():
    from torch.utils.flop_counter import FlopCounterMode

    problem = linear_losses.make(torch.float32)
    with FlopCounterMode(display=False) as counter:
        call(problem, "log_prob").sum().backward()
    assert counter.get_total_flops() == 4 * 2 * TOKENS * LENGTH * CLASSES


def test_autocast(device):
    problem = linear_losses.make(torch.float32, device)
    narrow = linear_losses.make(torch.bfloat16, device)
    with torch.autocast(device, torch.bfloat16):
        result = call(problem, "log_prob")
    result.sum().backward()
    expected = call(narrow, "log_prob")
    expected.sum().backward()
    assert torch.equal(result, expected)
    assert problem.weight.grad.dtype == torch.float32
    assert torch.equal(problem.weight.grad, narrow.weight.grad.float())


@pytest.mark.parametrize("reentrant", [False, True])
def test_checkpoints(reentrant):
    from torch.utils.checkpoint import checkpoint

    problem, plain = linear_losses.make(), linear_losses.make()
    result = checkpoint(
        lambda *_: call(problem, "entropy"), *problem.leaves(), use_reentrant=reentrant
    )
    result.sum().backward()
    call(plain, "entropy").sum().backward()
    for one, other in zip(problem.leaves(), plain.leaves()):
        assert torch.equal(one.grad, other.grad)


def test_transformations_are_refused():
    problem = linear_losses.make()
    with pytest.raises(RuntimeError, match="under no transformation of torch.func"):
        torch.func.grad(
            lambda x: ops.linear_log_probs(x, problem.weight, problem.targets).sum()
        )(problem.hidden)


@pytest.mark.parametrize(
    ("kind", "text", "changes"),
    [
        (ValueError, "'temperature' must be positive, but is 0", {"temperature": 0}),
        (ValueError, "'scale' must be positive, but is -1", {"scale": -1}),
        (ValueError, "'soft_cap' must be positive, or 0 for n", {"soft_cap": -1.0}),
        (ValueError, "'scale' must be a finite number", {"scale": float("inf")}),
        (TypeError, "'soft_cap' must be a number, but is None", {"soft_cap": None}),
        (TypeError, "'ignore_index' must be an integer", {"ignore_index": 1.5}),
        (ValueError, "'budget' must be at least 1 byte", {"budget": 0}),
        (ValueError, "'returns' must name results out of log_pr", {"returns": "loss"}),
        (ValueError, "'returns' must name results out of log_pr", {"returns": ()}),
        (TypeError, "'returns' must name results, but is None", {"returns": None}),
        (TypeError, "linear_log_probs: 'targets' has elements", {"targets": None}),
        (ValueError, "last dimension must be 24", {"hidden": torch.randn(4, 3)}),
        (
            ValueError,
            r"'bias' has shape \[3\].*must be \[50\]",
            {"bias": torch.zeros(3)},
        ),
    ],
)
def test_mistakes(kind, text, changes):
    given = {
        "hidden": torch.randn(4, LENGTH),
        "weight": torch.randn(CLASSES, LENGTH),
        "targets": torch.zeros(4, dtype=torch.long),
        **changes,
    }
    if given["targets"] is None:
        given["targets"] = torch.zeros(4)
    with pytest.raises(kind, match=text):
        ops.linear_log_probs(**given)


@pytest.mark.parametrize(
    "function",
    [
        ops.linear_log_probs,
        lambda *x: ops.linear_cross_entropy(*x, reduction="none"),
    ],
)
def test_a_weight_that_is_partitioned_behind_the_forward(function):
    weight = torch.nn.Parameter(torch.randn(CLASSES, LENGTH))
    weight.ds_shape = weight.shape
    result = function(torch.randn(4, LENGTH), weight, torch.zeros(4).long())
    weight.data = torch.empty(0)
    with pytest.raises(ValueError, match="gather it around the backward, too"):
        result.sum().backward()


@pytest.mark.gpu
@pytest.mark.parametrize("how", [{}, {"budget": 1 << 20}, {"recompute": True}])
def test_nothing_synchronizes(how):
    torch.manual_seed(0)
    hidden = torch.randn(600, 256, device="cuda").bfloat16().requires_grad_()
    weight = (torch.randn(3000, 256, device="cuda") / 16).bfloat16().requires_grad_()
    targets = torch.randint(3000, (600,), device="cuda")

    def run():
        results = ops.linear_log_probs(hidden, weight, targets, returns=RESULTS, **how)
        total = sum(x.sum() for x in results[:3])
        return torch.autograd.grad(total, (hidden, weight))

    run()
    torch.cuda.synchronize()
    torch.cuda.set_sync_debug_mode("error")
    try:
        run()
    finally:
        torch.cuda.set_sync_debug_mode("default")
