# Part of Bastile, under the MIT License. See LICENSE.
# RUN: %package-test %s
"""linear_cross_entropy: how much it holds at a time, and what it refuses."""

import linear_losses
import pytest
import torch
import torch.nn.functional as F
from bastile import ops
from bastile._losses import forward, plan, products, slabs
from bastile._losses.options import Operands, Options, Settings
from bastile._losses.tokens import total_scale
from linear_losses import CLASSES, LENGTH, TOKENS, distance
from torch.utils._python_dispatch import TorchDispatchMode

#: Tokens, length, classes; and what a call may need beside its operands, in GiB.
SHAPES = {
    (4096, 4096, 128256): 4.0,
    (8192, 2560, 151936): 3.1,
    (8192, 2880, 201088): 4.4,
    (32768, 1024, 151936): 1.3,
}


class Watch(TorchDispatchMode):
    """The names of PyTorch's operators that are called, and the largest bytes of
    a tensor that ``is_logits`` says is one of logits."""

    def __init__(self, is_logits):
        super().__init__()
        self.names = set()
        self.largest = 0
        self._is_logits = is_logits

    def __torch_dispatch__(self, operator, types, args=(), kwargs=None):
        result = operator(*args, **(kwargs or {}))
        self.names.add(operator.name())
        for x in result if isinstance(result, (tuple, list)) else (result,):
            if (
                isinstance(x, torch.Tensor)
                and LENGTH not in x.shape
                and self._is_logits(x)
            ):
                self.largest = max(self.largest, x.untyped_storage().nbytes())
        return result


def watch(run, budget, is_logits):
    problem = linear_losses.make(torch.bfloat16)
    settings = Settings(budget=budget)
    options = Options(settings, ("loss", "correct"), classes=CLASSES)
    operands = Operands(problem.hidden, problem.weight, problem.targets, problem.bias)
    scale = total_scale(problem.targets, None, None, settings, torch.float32).expand(
        TOKENS
    )
    with torch.no_grad(), Watch(is_logits) as found:
        run(operands, None, scale, options, [True] * 3)
    return found


@pytest.mark.parametrize("budget", [2 * CLASSES, 4000, 2 * TOKENS * CLASSES])
def test_never_more_logits_than_the_budget(budget):
    found = watch(
        forward.run, budget, lambda x: x.dim() == 2 and x.dtype == torch.bfloat16
    )
    assert 0 < found.largest <= budget


@pytest.mark.parametrize("budget", [2 * TOKENS, 1000, 2 * TOKENS * CLASSES])
def test_never_a_larger_slab_than_the_budget(budget):
    found = watch(
        slabs.run,
        budget,
        lambda x: x.dim() == 2 and x.dtype == torch.bfloat16,
    )
    assert 0 < found.largest <= budget


@pytest.mark.parametrize("run", [forward.run, slabs.run])
def test_nothing_waits_for_the_device(run):
    names = watch(run, 1000, lambda x: False).names
    for name in ("_local_scalar_dense", "item", "nonzero", "masked_select", "equal"):
        assert not any(name in found.split("::")[-1].split(".")[:1] for found in names)


@pytest.mark.parametrize(("shape", "limit"), SHAPES.items())
def test_the_default_budget(shape, limit):
    tokens, length, classes = shape
    budget = plan.budget_of(*shape, 2, Settings())
    rows = max(x.stop - x.start for x in plan.pieces(tokens, 2 * classes, budget))
    logits, states, weight = (
        2 * rows * classes,
        2 * tokens * length,
        2 * classes * length,
    )
    if rows == tokens:
        need = logits + states + weight
    else:
        need = max(logits, weight) + states + 2 * weight
    assert need <= limit * 2**30
    # Only what would need an accumulator is cut up.
    assert (rows == tokens) == (tokens <= 4 * length)


def test_pieces():
    def sizes(*arguments):
        return [x.stop - x.start for x in plan.pieces(*arguments)]

    assert sizes(1000, 2, 2000) == [1000]
    assert sizes(1000, 2, 1999) == [512, 488]
    assert sizes(1000, 2, 2 * 300) == [256, 256, 256, 232]
    assert sizes(10, 2, 2 * 4) == [4, 4, 2]
    assert sizes(3, 2, 1) == [1, 1, 1]
    assert sizes(0, 2, 1) == []
    for budget in range(1, 3000, 7):
        found = sizes(1000, 2, budget)
        assert sum(found) == 1000
        assert max(found) <= max(budget // 2, 1)


def test_sums_of_a_pytorch_that_cannot_add_in_float32():
    a, b = torch.randn(20, 7).bfloat16(), torch.randn(7, 5).bfloat16()
    found = products.add_by_rows(a, b, torch.ones(20, 5), count=8)
    torch.testing.assert_close(found, products.add_product(a, b, torch.ones(20, 5)))


# What is refused, with the words that say what to do.


def refuse(kind, text, **changes):
    given = {
        "hidden": torch.randn(4, LENGTH),
        "weight": torch.randn(CLASSES, LENGTH),
        "targets": torch.zeros(4, dtype=torch.long),
        **changes,
    }
    with pytest.raises(kind, match=text):
        ops.linear_cross_entropy(**given)


@pytest.mark.parametrize(
    ("kind", "text", "changes"),
    [
        (
            TypeError,
            "'weight' has elements of type torch.bfloat16, but 'hidden' of",
            {"weight": torch.randn(CLASSES, LENGTH).bfloat16()},
        ),
        (
            TypeError,
            "'hidden' has elements of type torch.int64",
            {"hidden": torch.ones(4, LENGTH).long()},
        ),
        (
            TypeError,
            "'hidden' must be a PyTorch tensor, but is a list",
            {"hidden": [[1.0]]},
        ),
        (ValueError, "last dimension must be 24", {"hidden": torch.randn(4, 3)}),
        (
            ValueError,
            r"'weight' has shape \[24\], but it must be",
            {"weight": torch.randn(LENGTH)},
        ),
        (
            ValueError,
            r"'targets' has shape \[5\].*must be \[4\]",
            {"targets": torch.zeros(5, dtype=torch.long)},
        ),
        (
            TypeError,
            "'targets' has elements of type torch.float32",
            {"targets": torch.zeros(4)},
        ),
        (
            ValueError,
            r"'bias' has shape \[3\].*must be \[50\]",
            {"bias": torch.zeros(3)},
        ),
        (
            ValueError,
            r"'class_weights' has shape \[3\].*must be \[50\]",
            {"class_weights": torch.zeros(3)},
        ),
        (
            ValueError,
            "'class_weights' has no gradient",
            {"class_weights": torch.ones(CLASSES, requires_grad=True)},
        ),
        (
            ValueError,
            "'reduction' must be one of none, mean, sum, but is 'avg'",
            {"reduction": "avg"},
        ),
        (ValueError, "'budget' must be at least 1 byte, but is 0", {"budget": 0}),
        (
            ValueError,
            "'z_loss' must be a finite number, but is inf",
            {"z_loss": float("inf")},
        ),
        (ValueError, "'temperature' must not be 0", {"temperature": 0}),
        (TypeError, "'soft_cap' must be a number, but is None", {"soft_cap": None}),
        (TypeError, "'ignore_index' must be an integer", {"ignore_index": None}),
        (TypeError, "'ignore_index' must be an integer", {"ignore_index": 1.5}),
        (TypeError, "'returns' must name results, but is None", {"returns": None}),
        (TypeError, "'num_items' must be a number", {"num_items": [3]}),
        (TypeError, "'bias' must be a PyTorch tensor, but is a l", {"bias": [0.0]}),
        (
            TypeError,
            "'class_weights' must be a PyTorch tensor, but is a list",
            {"class_weights": [1.0]},
        ),
        (
            ValueError,
            "'label_smoothing' must be from 0 to 1, but is 2",
            {"label_smoothing": 2},
        ),
        (
            TypeError,
            "'budget' must be a whole number of bytes, but is '1 GB'",
            {"budget": "1 GB"},
        ),
        (
            ValueError,
            "'returns' must name results out of loss, lse",
            {"returns": "logits"},
        ),
        (
            ValueError,
            "'num_items' takes the place .* but 'reduction' is 'sum'",
            {"num_items": 3, "reduction": "sum"},
        ),
        (
            ValueError,
            r"'num_items' must be one number, but has shape \[2\]",
            {"num_items": torch.ones(2)},
        ),
        (
            ValueError,
            "'hidden' is on cpu and 'weight' is on meta",
            {"weight": torch.randn(CLASSES, LENGTH, device="meta")},
        ),
    ],
)
def test_mistakes(kind, text, changes):
    refuse(kind, text, **changes)


def test_a_partitioned_weight():
    weight = torch.nn.Parameter(torch.empty(0))
    weight.ds_shape = (CLASSES, LENGTH)
    refuse(ValueError, "'weight' is partitioned by ZeRO-3; gather it", weight=weight)


def test_a_distributed_weight(tmp_path):
    import torch.distributed as dist
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.tensor import Shard, distribute_tensor

    dist.init_process_group(
        "gloo", init_method=f"file://{tmp_path}/meet", rank=0, world_size=1
    )
    try:
        weight = distribute_tensor(
            torch.randn(CLASSES, LENGTH), init_device_mesh("cpu", (1,)), [Shard(0)]
        )
        refuse(TypeError, "'weight' is a DTensor; give the whole tensor", weight=weight)
    finally:
        dist.destroy_process_group()


# What only a GPU can tell.


def problem_on_gpu(tokens, length, classes):
    torch.manual_seed(0)
    hidden = torch.randn(tokens, length, device="cuda").bfloat16()
    weight = (torch.randn(classes, length, device="cuda") * length**-0.5).bfloat16()
    targets = torch.randint(classes, (tokens,), device="cuda")
    return hidden.requires_grad_(), weight.requires_grad_(), targets


def step(hidden, weight, targets, **options):
    loss = ops.linear_cross_entropy(hidden, weight, targets, **options)
    return loss, *torch.autograd.grad(loss, (hidden, weight))


WAYS = [{}, {"budget": 1 << 20}, {"recompute": True, "budget": 1 << 20}]


@pytest.mark.gpu
@pytest.mark.parametrize(
    "how", [*WAYS, {"reduction": "none"}, {"num_items": torch.tensor(7)}]
)
def test_nothing_synchronizes(how):
    tensors = problem_on_gpu(600, 256, 3000)
    items = how.get("num_items")
    how = how if items is None else {"num_items": items.cuda()}

    def run():
        loss = ops.linear_cross_entropy(*tensors, **how).sum()
        return torch.autograd.grad(loss, tensors[:2])

    run()
    torch.cuda.synchronize()
    torch.cuda.set_sync_debug_mode("error")
    try:
        run()
    finally:
        torch.cuda.set_sync_debug_mode("default")


@pytest.mark.gpu
@pytest.mark.parametrize("how", WAYS)
def test_graph(how):
    tensors = problem_on_gpu(600, 256, 3000)
    warm = torch.cuda.Stream()
    warm.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(warm):
        step(*tensors, **how)
    torch.cuda.current_stream().wait_stream(warm)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        results = step(*tensors, **how)
    with torch.no_grad():
        tensors[0].copy_(torch.randn_like(tensors[0]))
        tensors[2].copy_(tensors[2].flip(0))
    graph.replay()
    for one, other in zip(results, step(*tensors, **how)):
        assert distance(one, other) < 1e-3


@pytest.mark.gpu
@pytest.mark.parametrize("shape", [(2048, 1024, 40000), (9000, 1024, 40000)])
@pytest.mark.parametrize("recompute", [False, True])
def test_the_peak_is_what_the_formula_says(shape, recompute):
    tokens, length, classes = shape
    tensors = problem_on_gpu(*shape)
    step(*tensors, recompute=recompute)
    torch.cuda.synchronize()
    before = torch.cuda.memory_allocated()
    torch.cuda.reset_peak_memory_stats()
    step(*tensors, recompute=recompute)
    torch.cuda.synchronize()
    peak = torch.cuda.max_memory_allocated() - before
    budget = plan.budget_of(*shape, 2, Settings(recompute=recompute))
    states, weight = 2 * tokens * length, 2 * classes * length
    if recompute:
        need = budget + weight + 3 * states
    elif tokens <= 4 * length:
        need = budget + weight + states
    else:
        need = max(budget, weight) + states + 2 * weight
    # A few numbers a token, and what allocations are rounded up to.
    assert peak <= need + 200 * tokens + (8 << 20)


@pytest.mark.gpu
@pytest.mark.parametrize("how", WAYS)
def test_errors_beside_unfused_bfloat16(how):
    hidden, weight, targets = problem_on_gpu(1000, 512, 9000)
    found = step(hidden, weight, targets, **how)[1:]
    plain = torch.autograd.grad(
        F.cross_entropy(F.linear(hidden, weight), targets), (hidden, weight)
    )
    wide = [x.detach().double().requires_grad_() for x in (hidden, weight)]
    expected = torch.autograd.grad(F.cross_entropy(F.linear(*wide), targets), wide)
    for one, other, reference in zip(found, plain, expected):
        assert distance(one, reference) < 1.5 * distance(other, reference)


@pytest.mark.gpu
def test_more_logits_than_32_bits_count():
    tensors = problem_on_gpu(17000, 64, 131072)
    assert tensors[2].numel() * 131072 > 2**31
    whole = step(*tensors, budget=1 << 40)
    for one, other in zip(whole, step(*tensors, budget=1 << 28)):
        assert distance(one, other) < 1e-2
