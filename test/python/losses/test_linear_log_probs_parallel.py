# Part of Bastile, under the MIT License. See LICENSE.
# RUN: %package-test %s
"""The vocabulary-parallel log-probabilities on three processes, beside one process'
results."""

import linear_losses
import pytest
import torch
import torch.distributed as dist
import torch.multiprocessing as multiprocessing
from bastile import ops
from linear_losses import CLASSES, LENGTH, distance

RANKS = 3
ERRORS = {torch.float64: 1e-13, torch.float32: 2e-6, torch.bfloat16: 1e-2}
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
CASES = [
    {},
    {"budget": 8 * CLASSES * 5, "scale": 0.5},
    {"recompute": True, "budget": 8 * 37 * 4, "soft_cap": 5.0, "temperature": 2.0},
]
#: The first class of each process; the second has processes in no order of classes.
CUTS = [(0, 13, 40), (30, 0, 4)]


def both(case, dtype, cut, rank):
    """A call in one process and one in this process' share, with gradients."""
    whole, part = (linear_losses.make(dtype) for _ in range(2))
    ends = [min((x for x in (*cut, CLASSES) if x > first)) for first in cut]
    here = slice(cut[rank], ends[rank])
    part.weight, part.bias = (
        x.detach()[here].clone().requires_grad_() for x in (part.weight, part.bias)
    )
    place = {"first_class": here.start, "classes": CLASSES}
    found = []
    for problem, call, options in (
        (whole, ops.linear_log_probs, {}),
        (part, ops.vocab_parallel_linear_log_probs, place),
    ):
        results = call(
            problem.hidden,
            problem.weight,
            problem.targets,
            problem.bias,
            returns=RESULTS,
            **options,
            **case,
        )
        upstream = torch.linspace(0.5, 1.7, len(results[0]))
        total = sum((x * upstream).sum() * (i - 0.7) for i, x in enumerate(results[:3]))
        total.backward()
        found.append([results, [x.grad for x in problem.leaves()]])
    found[0][1][1:] = [x[here] for x in found[0][1][1:]]
    return found


def compare(case, dtype, cut, rank):
    limit = ERRORS[dtype]
    (results, gradients), (own_results, own_gradients) = both(case, dtype, cut, rank)
    for name, one, other in zip(RESULTS, own_results, results):
        assert one.dtype == other.dtype
        close = torch.allclose(one.double(), other.double(), limit, limit)
        assert close, (name, dtype, case, cut, one, other)
    for one, other in zip(own_gradients, gradients):
        assert distance(one, other) < limit, (dtype, case, cut)


def compare_all(rank, folder):
    torch.set_num_threads(1)
    dist.init_process_group(
        "gloo", init_method=f"file://{folder}/meet", rank=rank, world_size=RANKS
    )
    for dtype in ERRORS:
        for case in CASES if dtype == torch.float64 else CASES[:1]:
            for cut in CUTS:
                compare(case, dtype, cut, rank)
    check_that_all_agree()
    check_classes_that_cannot_occur(rank)
    check_equal_logits(rank)
    dist.destroy_process_group()


def check_that_all_agree():
    """Slices that are equal need not be described."""
    problem = linear_losses.make(torch.float32)
    share = CLASSES // RANKS
    first = dist.get_rank() * share
    weight = problem.weight.detach()[first : first + share].requires_grad_()
    targets = problem.targets.clamp(max=share * RANKS - 1)
    log_prob = ops.vocab_parallel_linear_log_probs(problem.hidden, weight, targets)
    log_prob.sum().backward()
    for tensor in (log_prob.detach(), problem.hidden.grad):
        shared = [torch.empty_like(tensor) for _ in range(RANKS)]
        dist.all_gather(shared, tensor)
        assert all(torch.equal(shared[0], x) for x in shared)


def check_classes_that_cannot_occur(rank):
    """One process has nothing but padding."""
    problem = linear_losses.make(torch.float32)
    bias = torch.full((CLASSES,), -torch.inf if rank == 2 else 0.0)
    found = ops.vocab_parallel_linear_log_probs(
        *(problem.hidden, problem.weight, problem.targets, bias),
        returns=RESULTS,
    )
    expected = linear_losses.distribution_of(
        linear_losses.Problem(
            problem.hidden.double(),
            torch.cat([problem.weight.double()] * 2),
            problem.targets,
            None,
            None,
        )
    )[0]
    found = dict(zip(RESULTS, found))
    for name in ("log_prob", "entropy", "lse", "log_sum_square_probs"):
        assert distance(found[name], expected[name]) < 1e-5, name
    # Either of two equal classes: how the products round depends on the machine.
    assert torch.equal(found["argmax"] % CLASSES, expected["argmax"] % CLASSES)
    sum(found[x].sum() for x in RESULTS[:3]).backward()
    assert problem.hidden.grad.isfinite().all()


def check_equal_logits(rank):
    """The first class has the largest logit, wherever it lies."""
    argmax = ops.vocab_parallel_linear_log_probs(
        torch.ones(1, LENGTH),
        torch.ones(4, LENGTH),
        torch.zeros(1).long(),
        first_class=4 * (RANKS - 1 - rank),
        classes=4 * RANKS,
        returns="argmax",
    )
    assert argmax.tolist() == [0]


def test_three_processes(tmp_path):
    multiprocessing.spawn(compare_all, (str(tmp_path),), RANKS)


def test_one_process():
    with pytest.raises(RuntimeError, match="no processes to share the classes; call"):
        ops.vocab_parallel_linear_log_probs(
            torch.randn(3, LENGTH), torch.randn(9, LENGTH), torch.zeros(3).long()
        )
