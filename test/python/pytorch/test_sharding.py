# Part of Bastile, under the MIT License. See LICENSE.
# RUN: %package-test %s
"""Calls on DTensors in two processes, beside those on whole tensors in one."""

import bastile
import pytest
import torch
import torch.distributed as dist
import torch.multiprocessing as multiprocessing
from bastile import functional as F
from bastile import nn, ops
from bastile.functions import cos, iota, max_of_rows, sum_of_rows
from references import CASES, make_operands
from torch.distributed.tensor import (
    DTensor,
    Partial,
    Replicate,
    Shard,
    distribute_tensor,
    init_device_mesh,
)
from torch.distributed.tensor.parallel import SequenceParallel, parallelize_module

RANKS = 2


def compute(function, operands):
    """The results, and the gradients of a sum of all that have some."""
    results = function(*operands)
    results = results if isinstance(results, tuple) else (results,)
    floats = [x for x in results if x.requires_grad]
    wanted = [x for x in operands if x.requires_grad]
    total = sum((x * x).sum() for x in floats)
    if not floats:
        return results, ()
    # Some results do not depend on all operands.
    found = torch.autograd.grad(total, wanted, allow_unused=True)
    return results, [x for x in found if x is not None]


def compare(function, operands, mesh, placements):
    """``placements`` are those of operands of several dimensions."""
    whole = [x.clone().requires_grad_(x.is_floating_point()) for x in operands]
    parted = []
    for x in operands:
        place = placements if x.dim() > 1 else [Replicate()] * mesh.ndim
        part = distribute_tensor(x, mesh, place)
        parted.append(part.requires_grad_(x.is_floating_point()))
    found, expected = compute(function, parted), compute(function, whole)
    for ours, theirs in zip(found, expected):
        for a, b in zip(ours, theirs):
            assert isinstance(a, DTensor)
            torch.testing.assert_close(a.full_tensor(), b)
    return found


def check_ops(mesh):
    for name, _, kinds, attributes in CASES:
        if any(kind not in "rvtmb" for kind in kinds):
            continue
        operands = make_operands(kinds, rows=7)
        compare(
            lambda *x, n=name, a=attributes: getattr(ops, n)(*x, **a),
            operands,
            mesh,
            [Shard(0)],
        )


def check_placements(mesh):
    x, w = torch.randn(4, 6, 16), torch.randn(16)
    for place in (Shard(0), Shard(1)):
        (y,), (grad, weight) = compare(ops.rms_norm, (x, w), mesh, [place])
        assert y.placements == grad.placements == (place,)
        assert weight.placements == (Partial(),)
    # A row lies in one process.
    (y,), _ = compare(ops.rms_norm, (x, w), mesh, [Shard(2)])
    assert y.placements == (Replicate(),)
    with pytest.raises(RuntimeError, match="mixed torch.Tensor and DTensor"):
        ops.rms_norm(distribute_tensor(x, mesh, [Shard(0)]), w)


def check_combinations_of_rows(mesh):
    x = torch.randn(6, 16)
    with pytest.raises(TypeError, match="dropout: 'input' is a DTensor; give the"):
        F.dropout(distribute_tensor(x, mesh, [Shard(0)]))
    total = bastile.compile(lambda x: sum_of_rows(x))
    (y,), _ = compare(total, (x,), mesh, [Shard(0)])
    assert y.placements == (Partial(),)
    largest = bastile.compile(lambda x: max_of_rows(x), grad=False)
    y = largest(distribute_tensor(x, mesh, [Shard(0)]))
    assert y.placements == (Partial("max"),)
    torch.testing.assert_close(y.full_tensor(), x.amax(0))
    # What is no sum of what processes have, each computes of all rows.
    for function in (
        bastile.compile(lambda x: cos(sum_of_rows(x))),
        bastile.compile(lambda x: x * sum_of_rows(x)),
        lambda x: ops.cross_entropy(x, targets(x), returns="loss"),
        bastile.compile(lambda x: x * iota(x, 0)),
        # Each row of the product is of all rows.
        bastile.compile(lambda x: x @ x.mT),
    ):
        (y,), _ = compare(function, (x,), mesh, [Shard(0)])
        assert y.placements == (Replicate(),)


def targets(like):
    made = torch.arange(6)[:, None] % 16
    if isinstance(like, DTensor):
        return distribute_tensor(made, like.device_mesh, [Shard(0)])
    return made


def check_repeated_rows(mesh):
    q, k = torch.randn(2, 4, 6, 8), torch.randn(2, 2, 6, 8)
    angles = torch.randn(1, 1, 6, 4)
    for place in (Shard(0), Shard(1), Shard(2)):
        parts = [
            distribute_tensor(
                x, mesh, [place if x.shape[place.dim] > 1 else Replicate()]
            )
            for x in (q, k, angles.cos(), angles.sin())
        ]
        found = F.rope(*parts)
        for a, b in zip(found, F.rope(q, k, angles.cos(), angles.sin())):
            assert a.placements == (place,)
            torch.testing.assert_close(a.full_tensor(), b)


def check_sequence_parallel(mesh):
    torch.manual_seed(1)
    norm = nn.RMSNorm(16)
    torch.nn.init.normal_(norm.weight)
    x = torch.randn(2, 6, 16)
    expected = norm(x)
    expected.sum().backward()
    gradient, norm.weight.grad = norm.weight.grad, None
    model = torch.nn.Sequential(norm)
    parallelize_module(model, mesh, {"0": SequenceParallel()})
    y = model(x.chunk(RANKS, 1)[dist.get_rank()])
    y.sum().backward()
    assert y.placements == (Shard(1),)
    torch.testing.assert_close(y.full_tensor(), expected)
    torch.testing.assert_close(model[0].weight.grad.full_tensor(), gradient)


def check_in_place_and_compiled(mesh):
    x = torch.randn(6, 16)

    def loss(x, t):
        return F.cross_entropy(x * 2, t, reduction="sum", in_place=True)

    parted = distribute_tensor(x, mesh, [Shard(0)]).requires_grad_()
    whole = x.clone().requires_grad_()
    t = torch.arange(6)
    loss(parted, distribute_tensor(t, mesh, [Shard(0)])).backward()
    loss(whole, t).backward()
    torch.testing.assert_close(parted.grad.full_tensor(), whole.grad)
    compiled = torch.compile(ops.rms_norm, backend="aot_eager")
    (y,), _ = compare(compiled, (x, torch.randn(16)), mesh, [Shard(0)])
    assert y.placements == (Shard(0),)


CHECKS = [
    check_ops,
    check_placements,
    check_combinations_of_rows,
    check_repeated_rows,
    check_sequence_parallel,
    check_in_place_and_compiled,
]


def run(rank, folder):
    torch.set_num_threads(1)
    torch.manual_seed(0)
    dist.init_process_group(
        "gloo", init_method=f"file://{folder}/store", rank=rank, world_size=RANKS
    )
    try:
        mesh = init_device_mesh("cpu", (RANKS,))
        for check in CHECKS:
            check(mesh)
    finally:
        dist.destroy_process_group()


def test_two_processes(tmp_path):
    multiprocessing.spawn(run, (str(tmp_path),), nprocs=RANKS)
