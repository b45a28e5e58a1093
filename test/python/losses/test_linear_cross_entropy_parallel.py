# Part of Bastile, under the MIT License. See LICENSE.
# RUN: %package-test %s
"""The vocabulary-parallel form on two processes, beside one process' results."""

import linear_losses
import pytest
import torch
import torch.distributed as dist
import torch.multiprocessing as multiprocessing
from bastile import ops
from linear_losses import CLASSES, LENGTH, distance

RANKS = 2
ERRORS = {torch.float64: 1e-13, torch.float32: 2e-6, torch.bfloat16: 1e-2}
CASES = [
    {},
    {"reduction": "sum", "budget": 8 * CLASSES * 5},
    {"reduction": "none", "budget": 8 * CLASSES * 5, "label_smoothing": 0.1},
    {"class_weights": True, "label_smoothing": 0.1, "soft_cap": 5.0},
    {"z_loss": 0.01, "temperature": 2.0, "skip_ignored": True, "num_items": 9},
]
RESULTS = ("loss", "lse", "correct", "invalid")


def both(case, dtype, cut, rank):
    """A call in one process and one in this process' share, with gradients."""
    case = dict(case)
    whole, part = (
        linear_losses.make(dtype, class_weights=case.get("class_weights", False))
        for _ in range(2)
    )
    case.pop("class_weights", None)
    here = slice(0, cut) if rank == 0 else slice(cut, CLASSES)
    part.weight, part.bias = (
        x.detach()[here].clone().requires_grad_() for x in (part.weight, part.bias)
    )
    place = {"first_class": here.start, "classes": CLASSES}
    found = []
    for problem, call, options in (
        (whole, ops.linear_cross_entropy, {}),
        (part, ops.vocab_parallel_linear_cross_entropy, place),
    ):
        results = call(
            problem.hidden,
            problem.weight,
            problem.targets,
            problem.bias,
            class_weights=problem.class_weights,
            returns=RESULTS,
            **options,
            **case,
        )
        upstream = torch.linspace(0.5, 1.7, results[0].numel())
        (results[0] * upstream.reshape(results[0].shape)).sum().backward()
        gradients = [x.grad for x in problem.leaves()]
        found.append([results, gradients])
    found[0][1][1:] = [x[here] for x in found[0][1][1:]]
    return found


def compare(case, dtype, cut, rank):
    limit = ERRORS[dtype]
    (results, gradients), (own_results, own_gradients) = both(case, dtype, cut, rank)
    for one, other in zip(own_results, results):
        close = torch.allclose(one.double(), other.double(), limit, limit)
        assert close, (dtype, case, cut, one, other)
    for one, other in zip(own_gradients, gradients):
        assert distance(one, other) < limit, (dtype, case, cut)


def compare_all(rank, folder):
    torch.set_num_threads(1)
    dist.init_process_group(
        "gloo", init_method=f"file://{folder}/meet", rank=rank, world_size=RANKS
    )
    for dtype in ERRORS:
        for case in CASES if dtype == torch.float64 else CASES[:1]:
            for cut in (CLASSES // 2, 13):
                compare(case, dtype, cut, rank)
    check_that_all_agree()
    check_mistakes(rank)
    dist.destroy_process_group()


def check_that_all_agree():
    """Slices that are equal need not be described."""
    problem = linear_losses.make(torch.float32)
    share = CLASSES // RANKS
    first = dist.get_rank() * share
    weight = problem.weight.detach()[first : first + share].requires_grad_()
    loss = ops.vocab_parallel_linear_cross_entropy(
        problem.hidden, weight, problem.targets
    )
    loss.backward()
    for tensor in (loss.detach(), problem.hidden.grad):
        shared = [torch.empty_like(tensor) for _ in range(RANKS)]
        dist.all_gather(shared, tensor)
        assert torch.equal(*shared)


def check_mistakes(rank):
    problem = linear_losses.make(torch.float32)
    with pytest.raises(ValueError, match="has 50 classes from 'first_class' 7 on, but"):
        ops.vocab_parallel_linear_cross_entropy(
            problem.hidden, problem.weight, problem.targets, first_class=7, classes=56
        )
    alone = dist.new_group([0])
    if rank == 1:
        with pytest.raises(ValueError, match="this process is not in 'group'"):
            ops.vocab_parallel_linear_cross_entropy(
                problem.hidden, problem.weight, problem.targets, group=alone
            )


def test_two_processes(tmp_path):
    multiprocessing.spawn(compare_all, (str(tmp_path),), RANKS)


def test_one_process():
    with pytest.raises(RuntimeError, match="no processes to share the classes; call"):
        ops.vocab_parallel_linear_cross_entropy(
            torch.randn(3, LENGTH), torch.randn(9, LENGTH), torch.zeros(3).long()
        )
