# Part of Bastile, under the MIT License. See LICENSE.
# RUN: %package-test %s
"""linear_kl and linear_jsd: values and gradients of every option, in every way to
compute them."""

import dataclasses

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
    torch.bfloat16: 3e-2,
    torch.float16: 3e-3,
}
#: The teacher's hidden states are longer than the student's.
WIDE = LENGTH + 9
#: One chunk; several of unequal length; one token each.
BUDGETS = {"whole": None, "chunks": 16 * CLASSES * 10, "least": 1}
BETAS = [0, 0.1, 0.5, 0.9, 1]


@dataclasses.dataclass
class Teacher:
    hidden: torch.Tensor
    weight: torch.Tensor
    bias: torch.Tensor | None

    def logits(self):
        return F.linear(self.hidden, self.weight, self.bias)


def make_teacher(dtype=torch.float64, device="cpu", bias=True):
    generator = torch.Generator().manual_seed(7)

    def random(*sizes):
        x = torch.randn(sizes, generator=generator, dtype=torch.float64)
        return x.to(device, dtype)

    return Teacher(
        random(TOKENS, WIDE),
        (random(CLASSES, WIDE) * 0.3).to(dtype),
        random(CLASSES) if bias else None,
    )


def call(problem, teacher, beta, from_logits=False, targets=True, **options):
    given = {"hidden": problem.hidden, "weight": problem.weight, "bias": problem.bias}
    if targets:
        given["targets"] = problem.targets
    if from_logits:
        given["teacher_logits"] = teacher.logits()
    else:
        given["teacher_hidden"] = teacher.hidden
        given["teacher_weight"] = teacher.weight
        given["teacher_bias"] = teacher.bias
    if beta in (0, 1):
        direction = "reverse" if beta else "forward"
        return ops.linear_kl(**given, direction=direction, **options)
    return ops.linear_jsd(**given, beta=beta, **options)


def log_softmax(logits, scale, soft_cap, temperature):
    logits = logits * scale
    if soft_cap:
        logits = soft_cap * torch.tanh(logits / soft_cap)
    return (logits / temperature).log_softmax(-1)


def reference_of(problem, teacher, beta, reduction="mean", targets=True, **options):
    """The loss, and the student's log-probabilities."""
    temperature = options.get("temperature", 1.0)
    student, other = (
        log_softmax(
            logits,
            options.get(prefix + "scale", 1.0),
            options.get(prefix + "soft_cap", 0.0),
            temperature,
        )
        for prefix, logits in (
            ("", F.linear(problem.hidden, problem.weight, problem.bias)),
            ("teacher_", teacher.logits().double()),
        )
    )
    losses = linear_losses.divergence_of(student, other, beta)
    counts = torch.ones_like(problem.targets, dtype=torch.bool)
    if targets:
        counts = problem.targets != -100
    losses = torch.where(counts, losses, 0)
    if reduction == "none":
        return losses, student
    if reduction == "sum":
        return losses.sum(), student
    return losses.sum() / options.get("num_items", counts.sum()), student


def compare(problem, teacher, beta, how=None, **options):
    loss = call(problem, teacher, beta, **options, **(how or {}))
    wide = problem.wide()
    exact = Teacher(*(x if x is None else x.double() for x in vars(teacher).values()))
    expected, _ = reference_of(wide, exact, beta, **options)
    upstream = torch.linspace(0.5, 1.7, loss.numel(), dtype=torch.float64)
    upstream = upstream.reshape(loss.shape).to(loss.device)
    (loss * upstream).sum().backward()
    (expected * upstream).sum().backward()
    limit = ERRORS[problem.hidden.dtype]
    assert distance(loss, expected) < limit
    for one, other in zip(problem.leaves(), wide.leaves()):
        assert one.grad.dtype == one.dtype
        assert distance(one.grad, other.grad) < limit


@pytest.mark.long(every=79)
@pytest.mark.parametrize("budget", BUDGETS)
@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
@pytest.mark.parametrize("beta", [0, 0.3, 1])
@pytest.mark.parametrize("dtype", ERRORS)
def test_types(dtype, beta, reduction, budget, device):
    how = {"budget": BUDGETS[budget]}
    teacher = make_teacher(dtype, device)
    problem = linear_losses.make(dtype, device)
    compare(problem, teacher, beta, how, reduction=reduction)


@pytest.mark.long(every=11)
@pytest.mark.parametrize("reduction", ["mean", "none"])
@pytest.mark.parametrize(
    "options",
    [
        {"temperature": 2.0},
        {"soft_cap": 5.0, "teacher_scale": 0.5},
        {"scale": 0.3, "teacher_soft_cap": 4.0},
        {"targets": False},
        {
            "scale": 0.3,
            "soft_cap": 5.0,
            "teacher_scale": 0.5,
            "teacher_soft_cap": 4.0,
            "temperature": 0.7,
        },
    ],
)
@pytest.mark.parametrize("beta", BETAS)
def test_options(beta, options, reduction):
    problem = linear_losses.make(bias=beta > 0.4)
    teacher = make_teacher(bias=beta < 0.6)
    how = {"budget": BUDGETS["chunks"]}
    compare(problem, teacher, beta, how, reduction=reduction, **options)


@pytest.mark.long(every=3)
@pytest.mark.parametrize("beta", BETAS)
@pytest.mark.parametrize("budget", BUDGETS.values())
def test_logits_of_a_teacher(budget, beta):
    problem, other = linear_losses.make(), linear_losses.make()
    teacher = make_teacher()
    one = call(problem, teacher, beta, from_logits=True, budget=budget)
    two = call(other, teacher, beta)
    one.backward()
    two.backward()
    torch.testing.assert_close(one, two)
    for x, y in zip(problem.leaves(), other.leaves()):
        assert distance(x.grad, y.grad) < 1e-13


@pytest.mark.long(every=3)
@pytest.mark.parametrize("from_logits", [False, True])
@pytest.mark.parametrize("beta", [0, 0.3, 1])
def test_a_teacher_of_another_type(beta, from_logits):
    problem = linear_losses.make(torch.float32)
    teacher = make_teacher(torch.bfloat16)
    exact = make_teacher()
    for name in vars(exact):
        setattr(exact, name, getattr(teacher, name).double())
    loss = call(problem, teacher, beta, from_logits)
    expected, _ = reference_of(problem.wide(), exact, beta)
    assert distance(loss, expected) < 2e-2


@pytest.mark.parametrize("items", [11, torch.tensor([11.0])])
def test_a_divisor(items):
    problem, plain = linear_losses.make(), linear_losses.make()
    teacher = make_teacher()
    call(problem, teacher, 0.5, num_items=items, budget=1000).backward()
    reference_of(plain, teacher, 0.5, num_items=11)[0].backward()
    assert distance(problem.weight.grad, plain.weight.grad) < 1e-13


@pytest.mark.long(every=3)
@pytest.mark.parametrize("budget", BUDGETS.values())
@pytest.mark.parametrize("reduction", ["mean", "none"])
def test_entropy_of_the_student(reduction, budget):
    problem, teacher = linear_losses.make(), make_teacher()
    names = ("entropy", "loss")
    entropy, loss = call(
        *(problem, teacher, 0.5),
        returns=names,
        reduction=reduction,
        budget=budget,
        temperature=2.0,
    )
    expected = linear_losses.distribution_of(problem, temperature=2.0)[0]["entropy"]
    assert distance(entropy, expected) < 1e-13
    assert not entropy.requires_grad
    assert loss.requires_grad


@pytest.mark.parametrize("beta", BETAS)
def test_a_student_that_is_its_teacher(beta):
    """The divergence is 0, and so is its gradient: no difference of large numbers."""
    problem = linear_losses.make(torch.float32)
    loss = ops.linear_jsd(
        *(problem.hidden, problem.weight, problem.hidden, problem.weight),
        beta=beta,
        reduction="sum",
    )
    loss.backward()
    assert 0 <= loss.abs() < 1e-6
    assert problem.weight.grad.abs().max() < 1e-5


@pytest.mark.long(every=3)
@pytest.mark.parametrize("beta", BETAS)
def test_far_apart(beta):
    """Probabilities that float32 has no numbers for."""
    problem, teacher = linear_losses.make(torch.float32), make_teacher(torch.float32)
    with torch.no_grad():
        # Numbers of few digits, whose products and sums float32 holds.
        for x in (*problem.leaves(), *vars(teacher).values()):
            x.copy_((x * 4).round() / 4)
    scales = {"scale": 64.0, "teacher_scale": 64.0}
    call(problem, teacher, beta, **scales).backward()
    reference = problem.wide()
    expected, _ = reference_of(reference, teacher, beta, **scales)
    expected.backward()
    # Logarithms of ratios are hundreds here, of which float32 leaves this much.
    for one, other in zip(problem.leaves(), reference.leaves()):
        torch.testing.assert_close(one.grad.double(), other.grad, rtol=1e-5, atol=1e-4)


@pytest.mark.long(every=3)
@pytest.mark.parametrize("beta", BETAS)
def test_classes_that_cannot_occur(beta):
    """As in a vocabulary that is padded, of the student and of its teacher."""
    problem, teacher = linear_losses.make(), make_teacher()
    with torch.no_grad():
        problem.bias[37:] = -torch.inf
        teacher.bias[37:] = -torch.inf
    loss, entropy = call(problem, teacher, beta, returns=("loss", "entropy"))
    loss.backward()
    plain = linear_losses.make()
    plain.weight, plain.bias = (
        x.detach()[:37].requires_grad_() for x in (plain.weight, plain.bias)
    )
    teacher.weight, teacher.bias = teacher.weight[:37], teacher.bias[:37]
    expected, log_p = reference_of(plain, teacher, beta)
    expected.backward()
    assert distance(loss, expected) < 1e-13
    assert distance(problem.hidden.grad, plain.hidden.grad) < 1e-13
    assert distance(problem.weight.grad[:37], plain.weight.grad) < 1e-13
    assert not problem.weight.grad[37:].any()
    counts = problem.targets != -100
    expected = torch.where(counts, -(log_p.exp() * log_p).sum(-1), 0)
    assert distance(entropy, expected) < 1e-13


@pytest.mark.parametrize("reduction", ["mean", "none"])
def test_no_token_that_counts(reduction):
    problem = linear_losses.make(torch.float32)
    problem.targets.fill_(-100)
    loss = call(problem, make_teacher(torch.float32), 0.5, reduction=reduction)
    loss.sum().backward()
    assert not loss.any()
    assert not any(x.grad.any() for x in problem.leaves())


@pytest.mark.parametrize("reduction", ["mean", "none"])
@pytest.mark.parametrize("targets", [None, torch.empty(0, dtype=torch.long)])
def test_no_token_at_all(targets, reduction):
    weight = torch.randn(CLASSES, LENGTH, requires_grad=True)
    hidden = torch.randn(0, LENGTH, requires_grad=True)
    loss = ops.linear_jsd(
        *(hidden, weight, torch.randn(0, WIDE), torch.randn(CLASSES, WIDE), targets),
        reduction=reduction,
    )
    loss.sum().backward()
    assert loss.sum() == 0
    assert hidden.grad.shape == (0, LENGTH)
    assert not weight.grad.any()


def test_leading_dimensions():
    problem, teacher = linear_losses.make(torch.float32), make_teacher(torch.float32)
    flat = call(problem, teacher, 0.5, reduction="none")
    problem.hidden = problem.hidden.detach()[None, :, None].requires_grad_()
    problem.targets = problem.targets[None, :, None]
    teacher.hidden = teacher.hidden[None, :, None]
    for from_logits in (False, True):
        shaped = call(problem, teacher, 0.5, from_logits, reduction="none")
        assert shaped.shape == (1, TOKENS, 1)
        torch.testing.assert_close(shaped.flatten(), flat)
    shaped.sum().backward()
    assert problem.hidden.grad.shape == problem.hidden.shape


@pytest.mark.long(every=11)
@pytest.mark.parametrize("reduction", ["mean", "none"])
@pytest.mark.parametrize("frozen", [0, 1, 2, (0, 1), (0, 2), (1, 2)])
def test_only_the_gradients_that_are_wanted(frozen, reduction):
    problem, whole = linear_losses.make(), linear_losses.make()
    frozen = frozen if isinstance(frozen, tuple) else (frozen,)
    for i in frozen:
        problem.leaves()[i].requires_grad_(False)
    how = {"budget": 1000, "reduction": reduction}
    teacher = make_teacher()
    for x in vars(teacher).values():
        x.requires_grad_()
    for x in (problem, whole):
        call(x, teacher, 0.5, **how).sum().backward()
    for i, (one, other) in enumerate(zip(problem.leaves(), whole.leaves())):
        assert (one.grad is None) == (i in frozen)
        if one.grad is not None:
            assert torch.equal(one.grad, other.grad)
    assert all(x.grad is None for x in vars(teacher).values())


@pytest.mark.long(every=3)
@pytest.mark.parametrize("reduction", ["mean", "none"])
@pytest.mark.parametrize("beta", [0, 0.3, 1])
def test_gradcheck(beta, reduction):
    problem, teacher = linear_losses.make(), make_teacher()

    def function(hidden, weight, bias):
        return ops.linear_jsd(
            *(hidden, weight, teacher.hidden[:5], teacher.weight),
            *(problem.targets[:5], bias, teacher.bias),
            beta=beta,
            reduction=reduction,
            soft_cap=5.0,
            temperature=2.0,
            budget=1000,
        )

    hidden, *rest = (x.detach() for x in problem.leaves())
    leaves = [x.clone().requires_grad_() for x in (hidden[:5], *rest)]
    assert torch.autograd.gradcheck(function, leaves, fast_mode=True)


@pytest.mark.parametrize("reduction", ["mean", "none"])
def test_second_derivatives_are_refused(reduction):
    problem = linear_losses.make()
    loss = call(problem, make_teacher(), 0.5, reduction=reduction).sum()
    (gradient,) = torch.autograd.grad(loss, problem.hidden, create_graph=True)
    with pytest.raises(RuntimeError, match="of bastile cannot be differentiated again"):
        gradient.sum().backward()


@pytest.mark.long(every=3)
@pytest.mark.parametrize("reduction", ["mean", "none"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float16])
@pytest.mark.parametrize("from_logits", [False, True])
def test_compiled_graphs(from_logits, dtype, reduction):
    torch._dynamo.reset()
    problem, plain = linear_losses.make(dtype), linear_losses.make(dtype)
    teacher = make_teacher(dtype)

    def loss(hidden, weight, bias, targets, teacher_hidden, teacher_weight):
        own = linear_losses.Problem(hidden * 2, weight, targets, bias, None)
        other = Teacher(teacher_hidden, teacher_weight, None)
        result, entropy = call(
            *(own, other, 0.5, from_logits),
            reduction=reduction,
            budget=1000,
            returns=("loss", "entropy"),
        )
        return result.sum() * 3 + entropy.sum()

    compiled = torch.compile(loss, fullgraph=True, backend="aot_eager")
    for function, x in ((compiled, problem), (loss, plain)):
        function(*x.leaves(), x.targets, teacher.hidden, teacher.weight).backward()
    for one, other in zip(problem.leaves(), plain.leaves()):
        assert distance(one.grad, other.grad) < ERRORS[dtype]


def test_compiled_graphs_of_any_number_of_tokens():
    torch._dynamo.reset()
    counter = torch._dynamo.testing.CompileCounterWithBackend("aot_eager")
    teacher = make_teacher(torch.float32)

    def loss(hidden, weight, teacher_hidden):
        return ops.linear_jsd(hidden, weight, teacher_hidden, teacher.weight, beta=0.3)

    compiled = torch.compile(loss, fullgraph=True, backend=counter, dynamic=True)
    weight = torch.randn(CLASSES, LENGTH, requires_grad=True)
    graphs = []
    for tokens in (5, 7, 9):
        hidden, other = torch.randn(tokens, LENGTH), torch.randn(tokens, WIDE)
        result = compiled(hidden, weight, other)
        graphs.append(counter.frame_count)
        (own,) = torch.autograd.grad(result, weight)
        (expected,) = torch.autograd.grad(loss(hidden, weight, other), weight)
        torch.testing.assert_close(own, expected)
    assert graphs[0] == graphs[-1]


def test_operators_are_registered_well():
    from bastile._losses.divergence.options import Options, Settings

    problem, teacher = linear_losses.make(torch.float32), make_teacher(torch.float32)
    tensors = [
        x.detach()
        for x in (problem.hidden, problem.weight, problem.targets, problem.bias)
    ]
    tensors += [teacher.hidden, teacher.weight, None, None]
    given = Options("linear_jsd", Settings(), ("loss", "entropy")).given
    tests = {"test_utils": ("test_schema", "test_faketensor")}
    operator = torch.ops.bastile.linear_divergence
    wanted = [True, False, True]
    torch.library.opcheck(operator.default, (*tensors, None, *given, wanted), **tests)
    torch.library.opcheck(
        torch.ops.bastile.linear_divergence_backward.default,
        (*tensors, torch.ones(TOKENS), *given, wanted),
        **tests,
    )


def test_counting_operations():
    from torch.utils.flop_counter import FlopCounterMode

    problem, teacher = linear_losses.make(torch.float32), make_teacher(torch.float32)
    own = 2 * TOKENS * CLASSES
    for reduction, products in (("none", 1), ("mean", 3)):
        with FlopCounterMode(display=False) as counter:
            call(problem, teacher, 0, reduction=reduction)
        assert counter.get_total_flops() == own * (products * LENGTH + WIDE)
    logits = teacher.logits()
    with FlopCounterMode(display=False) as counter:
        loss = ops.linear_kl(
            *(problem.hidden, problem.weight),
            teacher_logits=logits,
            reduction="none",
        )
        loss.sum().backward()
    assert counter.get_total_flops() == own * 4 * LENGTH


def test_autocast(device):
    problem = linear_losses.make(torch.float32, device)
    narrow = linear_losses.make(torch.bfloat16, device)
    teacher = make_teacher(torch.float32, device)
    with torch.autocast(device, torch.bfloat16):
        loss = call(problem, teacher, 0.5)
    loss.backward()
    for name, x in vars(teacher).items():
        setattr(teacher, name, x.bfloat16())
    expected = call(narrow, teacher, 0.5)
    expected.backward()
    assert torch.equal(loss, expected)
    assert problem.weight.grad.dtype == torch.float32
    assert torch.equal(problem.weight.grad, narrow.weight.grad.float())


@pytest.mark.parametrize("reentrant", [False, True])
def test_checkpoints(reentrant):
    from torch.utils.checkpoint import checkpoint

    problem, plain, teacher = (
        linear_losses.make(),
        linear_losses.make(),
        make_teacher(),
    )
    for reduction in ("mean", "none"):
        loss = checkpoint(
            lambda *_: call(problem, teacher, 0.5, reduction=reduction),
            *problem.leaves(),
            use_reentrant=reentrant,
        )
        loss.sum().backward()
        call(plain, teacher, 0.5, reduction=reduction).sum().backward()
    for one, other in zip(problem.leaves(), plain.leaves()):
        assert torch.equal(one.grad, other.grad)


@pytest.mark.parametrize(
    ("kind", "text", "changes"),
    [
        (TypeError, "takes 'teacher_hidden' and 'teac", {"teacher_weight": None}),
        (TypeError, "takes 'teacher_hidden' and 'teac", {"teacher_hidden": None}),
        (
            TypeError,
            "takes 'teacher_hidden' and 'teacher_weight', or 'teacher_logits' instead",
            {"teacher_logits": torch.randn(4, CLASSES)},
        ),
        (
            TypeError,
            "takes 'teacher_hidden' and 'teacher_weight', or 'teacher_logits' instead",
            {
                "teacher_hidden": None,
                "teacher_weight": None,
                "teacher_bias": torch.randn(CLASSES),
                "teacher_logits": torch.randn(4, CLASSES),
            },
        ),
        (
            ValueError,
            "the teacher has 3 classes, but the student 50",
            {"teacher_weight": torch.randn(3, WIDE)},
        ),
        (
            ValueError,
            r"'teacher_hidden' has leading sizes \[5\], but those of 'hidden' are \[4",
            {"teacher_hidden": torch.randn(5, WIDE)},
        ),
        (
            ValueError,
            r"'teacher_hidden' has shape \[4, 3\], but for 'teacher_weight' of shape",
            {"teacher_hidden": torch.randn(4, 3)},
        ),
        (
            TypeError,
            "'teacher_weight' has elements of type torch.bfloat16, but 'teacher_hidd",
            {"teacher_weight": torch.randn(CLASSES, WIDE).bfloat16()},
        ),
        (
            ValueError,
            "'hidden' is on cpu and 'teacher_hidden' is on meta",
            {
                "teacher_hidden": torch.randn(4, WIDE, device="meta"),
                "teacher_weight": torch.randn(CLASSES, WIDE, device="meta"),
            },
        ),
        (ValueError, "'beta' must be from 0 to 1, but is 2", {"beta": 2}),
        (ValueError, "'temperature' must be positive, but is 0", {"temperature": 0}),
        (ValueError, "'teacher_scale' must be positive, but i", {"teacher_scale": -1}),
        (ValueError, "'reduction' must be one of none", {"reduction": "batchmean"}),
        (ValueError, "'returns' must name results out of loss,", {"returns": "lse"}),
        (
            ValueError,
            "linear_jsd: 'num_items' takes the place .* but 'reduction' is 'sum'",
            {"num_items": 3, "reduction": "sum"},
        ),
    ],
)
def test_mistakes(kind, text, changes):
    given = {
        "hidden": torch.randn(4, LENGTH),
        "weight": torch.randn(CLASSES, LENGTH),
        "teacher_hidden": torch.randn(4, WIDE),
        "teacher_weight": torch.randn(CLASSES, WIDE),
        **changes,
    }
    with pytest.raises(kind, match=text):
        ops.linear_jsd(**given)


def test_a_direction_that_there_is_not():
    with pytest.raises(ValueError, match="'direction' must be one of forward, reverse"):
        ops.linear_kl(
            *(torch.randn(4, LENGTH), torch.randn(CLASSES, LENGTH)),
            teacher_logits=torch.randn(4, CLASSES),
            direction="both",
        )


def test_never_more_logits_than_the_budget():
    """Of both models together."""
    from bastile._losses.divergence import operators
    from bastile._losses.divergence.options import Operands, Options, Settings

    problem, teacher = linear_losses.make(torch.bfloat16), make_teacher(torch.bfloat16)
    seen = []
    run_chunks = operators.run_chunks

    def watch(linear, parts, *rest):
        seen.extend(x.stop - x.start for x in parts)
        return run_chunks(linear, parts, *rest)

    operators.run_chunks = watch
    try:
        for budget in (1, 4000, 10**9):
            seen.clear()
            options = Options(settings=Settings(budget=budget))
            operands = Operands(
                *(problem.hidden, problem.weight, None, problem.bias),
                *(teacher.hidden, teacher.weight, None, None),
            )
            with torch.no_grad():
                scale = torch.ones(TOKENS)
                operators.run(operands, scale, options, [True, True, True])
            assert sum(seen) == TOKENS
            assert max(seen) == 1 or max(seen) * CLASSES * 4 <= budget
    finally:
        operators.run_chunks = run_chunks


@pytest.mark.gpu
@pytest.mark.parametrize("how", [{}, {"budget": 1 << 20}, {"reduction": "none"}])
@pytest.mark.parametrize("beta", [0, 0.5])
def test_nothing_synchronizes(beta, how):
    torch.manual_seed(0)
    hidden = torch.randn(600, 256, device="cuda").bfloat16().requires_grad_()
    weight = (torch.randn(3000, 256, device="cuda") / 16).bfloat16().requires_grad_()
    teacher = torch.randn(600, 384, device="cuda").bfloat16()
    teacher_weight = (torch.randn(3000, 384, device="cuda") / 20).bfloat16()

    def run():
        loss = ops.linear_jsd(hidden, weight, teacher, teacher_weight, beta=beta, **how)
        return torch.autograd.grad(loss.sum(), (hidden, weight))

    run()
    torch.cuda.synchronize()
    torch.cuda.set_sync_debug_mode("error")
    try:
        run()
    finally:
        torch.cuda.set_sync_debug_mode("default")
