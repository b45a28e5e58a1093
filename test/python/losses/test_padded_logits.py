# Part of Bastile, under the MIT License. See LICENSE.
# RUN: %package-test %s
"""Vocabularies whose rows of logits end between two multiples of 16 bytes."""

import linear_losses
import pytest
import torch
from bastile import ops
from bastile._losses import kernels, plan, products, slabs
from bastile._losses.options import Operands, Options, Settings
from bastile._losses.products import memory_of_logits
from bastile._losses.tokens import total_scale
from linear_losses import LENGTH, TOKENS, distance

CLASSES = 131
DTYPES = (torch.bfloat16, torch.float16, torch.float32, torch.float64)
ERRORS = {torch.bfloat16: 2e-2, torch.float64: 1e-13}
WAYS = {
    "whole": {},
    "chunks": {"budget": 8 * 136 * 10},
    "slabs": {"budget": 8 * TOKENS * 40, "recompute": True},
    "one slab": {"recompute": True},
}


@pytest.fixture(autouse=True, params=[False, True], ids=["one product", "parts"])
def in_parts(request, monkeypatch):
    """Products with and without a part of their own for the last few classes, which
    GPUs have for many classes."""
    monkeypatch.setattr(products, "_gains_by_parts", lambda *_: request.param)
    return request.param


@pytest.mark.parametrize("dtype", DTYPES)
def test_products_of_odd_rows_are_cut(dtype, in_parts, monkeypatch):
    counts = []

    def multiply(a, b, out):
        counts.append((a.shape[1], *out.shape))
        return torch.matmul(a, b, out=out)

    monkeypatch.setattr(torch, "mm", multiply)
    hidden = torch.randn(7, 16, dtype=dtype)
    weight = torch.randn(CLASSES, 16, dtype=dtype)
    logits = memory_of_logits(hidden, 7, CLASSES)
    products.logits_of(hidden, weight, None, logits)
    assert torch.equal(logits.argmax(-1), (hidden @ weight.t()).argmax(-1))
    odd = CLASSES % (16 // hidden.element_size())
    parts = [odd, CLASSES - odd] if in_parts and odd else [CLASSES]
    assert counts == [(16, 7, part) for part in parts]
    # Gradients: the classes are summed over, and then are rows of the result.
    counts.clear()
    found = products.multiply(logits, weight, torch.empty_like(hidden))
    expected = logits.double() @ weight.double()
    assert distance(found, expected) < {2: 1e-2, 4: 1e-5, 8: 1e-13}[hidden.itemsize]
    products.multiply(logits.t(), hidden, torch.empty_like(weight))
    assert counts == [(parts[0], 7, 16), *((7, part, 16) for part in parts)]


@pytest.mark.parametrize("dtype", DTYPES)
def test_rows_begin_at_multiples_of_16_bytes(dtype):
    like = torch.empty(1, dtype=dtype)
    logits = memory_of_logits(like, 5, CLASSES)
    assert logits.shape == (5, CLASSES)
    assert logits.dtype == dtype
    pitch = logits.stride(0) * logits.element_size()
    assert pitch % 16 == 0
    assert pitch - CLASSES * logits.element_size() < 16
    assert memory_of_logits(like, 5, 128).is_contiguous()
    # Short rows have none.
    assert memory_of_logits(like, 5, 50).is_contiguous()


def make(dtype, **options):
    return linear_losses.make(dtype, classes=CLASSES, **options)


@pytest.mark.long(every=5)
@pytest.mark.parametrize("how", WAYS.values(), ids=WAYS)
@pytest.mark.parametrize("dtype", ERRORS)
def test_cross_entropy(how, dtype):
    problem = make(dtype, class_weights=True)
    options = {"label_smoothing": 0.1, "z_loss": 1e-3}
    loss, correct = ops.linear_cross_entropy(
        *(problem.hidden, problem.weight, problem.targets, problem.bias),
        class_weights=problem.class_weights,
        returns=("loss", "correct"),
        **options,
        **how,
    )
    reference = problem.wide()
    expected, z = linear_losses.loss_of(reference, **options)
    assert distance(loss, expected) < ERRORS[dtype]
    if dtype == torch.float64:
        assert torch.equal(correct.bool(), z.argmax(-1) == problem.targets)
    compare_gradients(loss, problem, expected, reference)


@pytest.mark.long(every=5)
@pytest.mark.parametrize("how", WAYS.values(), ids=WAYS)
@pytest.mark.parametrize("dtype", ERRORS)
def test_log_probs(how, dtype):
    problem = make(dtype)
    found = ops.linear_log_probs(
        *(problem.hidden, problem.weight, problem.targets, problem.bias),
        returns="log_prob",
        **how,
    )
    reference = problem.wide()
    expected = linear_losses.distribution_of(reference)[0]["log_prob"]
    assert distance(found, expected) < ERRORS[dtype]
    compare_gradients(found.sum(), problem, expected.sum(), reference)


@pytest.mark.long(every=5)
@pytest.mark.parametrize("budget", [None, 16 * 136 * 10])
@pytest.mark.parametrize("dtype", ERRORS)
def test_divergence(budget, dtype):
    problem, teacher = make(dtype), make(dtype, seed=1)
    loss = ops.linear_jsd(
        *(problem.hidden, problem.weight, teacher.hidden, teacher.weight),
        *(problem.targets, problem.bias, teacher.bias),
        budget=budget,
    )
    reference, of_teacher = problem.wide(), teacher.wide()
    logs = [
        torch.nn.functional.linear(x.hidden, x.weight, x.bias).log_softmax(-1)
        for x in (reference, of_teacher)
    ]
    counted = problem.targets != -100
    expected = linear_losses.divergence_of(*logs, 0.5)[counted].mean()
    assert distance(loss, expected) < ERRORS[dtype]
    compare_gradients(loss, problem, expected, reference)


def compare_gradients(loss, problem, expected, reference):
    loss.backward()
    expected.backward()
    for one, other in zip(problem.leaves(), reference.leaves()):
        assert distance(one.grad, other.grad) < ERRORS[one.dtype]


@pytest.mark.parametrize("dtype", DTYPES)
def test_the_gradient_takes_the_memory_of_the_logits(dtype):
    problem = make(dtype)
    logits = memory_of_logits(problem.hidden, TOKENS, CLASSES)
    padding = logits._base[:, CLASSES:].fill_(7)
    torch.mm(problem.hidden.detach(), problem.weight.detach().t(), out=logits)
    wide = torch.float64 if dtype == torch.float64 else torch.float32
    scale = torch.ones(TOKENS, 1, dtype=wide)
    options = Options(Settings(), ("loss",), classes=CLASSES)
    given = problem.targets[:, None], None, scale, None, options
    loss, gradient = kernels.total_and_gradient(logits.clone(), *given)
    in_place = kernels.total_and_gradient(logits, *given)
    assert in_place[1] is logits
    assert torch.equal(loss, in_place[0])
    assert torch.equal(gradient, logits)
    assert (padding == 7).all()


def test_budgets_count_the_padding():
    def sizes(pieces):
        return [x.stop - x.start for x in pieces]

    # Rows of 136 elements of two bytes.
    assert sizes(plan.chunks(8, CLASSES, 2, 8 * 136 * 2)) == [8]
    assert sizes(plan.chunks(8, CLASSES, 2, 8 * 136 * 2 - 1)) == [7, 1]
    assert sizes(plan.slabs(8, CLASSES, 2, 8 * 136 * 2)) == [CLASSES]
    assert sizes(plan.slabs(8, CLASSES, 2, 8 * 136 * 2 - 1)) == [128, 3]
    # Without a budget, all logits are held while they take little.
    budget = plan.budget_of(TOKENS, LENGTH, CLASSES, 2, Settings())
    assert budget == TOKENS * 136 * 2


@pytest.mark.parametrize("columns", [8, 128, 130, 131, 136])
def test_no_slab_is_larger_than_its_budget(columns, monkeypatch):
    problem = make(torch.bfloat16)
    budget = columns * TOKENS * 2
    made = []

    def allocate(*arguments):
        made.append(memory_of_logits(*arguments))
        return made[-1]

    monkeypatch.setattr(slabs, "memory_of_logits", allocate)
    settings = Settings(budget=budget, recompute=True)
    options = Options(settings, ("loss",), classes=CLASSES)
    operands = Operands(problem.hidden, problem.weight, problem.targets, problem.bias)
    scale = total_scale(problem.targets, None, None, settings, torch.float32)
    with torch.no_grad():
        slabs.run(operands, None, scale.expand(TOKENS), options, [True] * 3)
    assert [x.untyped_storage().nbytes() <= budget for x in made] == [True]
