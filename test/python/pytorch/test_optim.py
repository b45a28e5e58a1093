# Part of Bastile, under the MIT License. See LICENSE.
# RUN: %package-test %s
"""bastile.optim beside torch.optim and torch.nn.utils."""

import copy
import math
import pickle

import bastile
import pytest
import torch

SHAPES = ((), (1,), (7,), (64,), (2880,), (1027,), (3, 5), (48, 64), (2, 3, 33), (0, 4))


def make_parameters(dtype=torch.float32, seed=0, device="cpu"):
    generator = torch.Generator().manual_seed(seed)
    made = [torch.randn(x, generator=generator).to(device, dtype) for x in SHAPES]
    return [x.requires_grad_() for x in made]


def set_gradients(parameters, seed):
    generator = torch.Generator().manual_seed(seed)
    for p in parameters:
        p.grad = torch.randn(p.shape, generator=generator).to(p.device, p.dtype)


def run(optimizer, parameters, steps, start=0):
    for i in range(start, start + steps):
        set_gradients(parameters, i)
        optimizer.step()


def assert_alike(ours, theirs, **tolerance):
    for a, b in zip(ours, theirs):
        torch.testing.assert_close(a.detach(), b.detach(), **tolerance)


OPTIONS = (
    {},
    {"lr": 0.02, "betas": (0.5, 0.9), "eps": 1e-3, "weight_decay": 0.3},
    {"weight_decay": 0.0},
    {"amsgrad": True},
    {"maximize": True, "lr": 0.1},
    {"amsgrad": True, "maximize": True},
    {"lr": torch.tensor(0.01)},
    {"foreach": True},
)


@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_adamw_is_that_of_pytorch(options, device):
    ours, theirs = (make_parameters(device=device) for _ in range(2))
    run(bastile.optim.AdamW(ours, **options), ours, 5)
    run(torch.optim.AdamW(theirs, **options), theirs, 5)
    assert_alike(ours, theirs, rtol=2e-6, atol=2e-7)


def test_float64():
    ours, theirs = make_parameters(torch.float64), make_parameters(torch.float64)
    run(bastile.optim.AdamW(ours), ours, 4)
    run(torch.optim.AdamW(theirs), theirs, 4)
    # The numbers of a step are float64 as well.
    assert_alike(ours, theirs, rtol=1e-13, atol=1e-14)


@pytest.mark.parametrize("dtype", (torch.bfloat16, torch.float16))
def test_parameters_of_16_bits_are_rounded_once_a_step(dtype, device):
    ours = make_parameters(dtype, device=device)
    optimizer = bastile.optim.AdamW(ours, lr=0.05, weight_decay=0.1)
    wide = [p.detach().float().requires_grad_() for p in ours]
    theirs = torch.optim.AdamW(wide, lr=0.05, weight_decay=0.1)
    for i in range(4):
        set_gradients(ours, i)
        for p, q in zip(ours, wide):
            q.grad = p.grad.float()
        optimizer.step()
        theirs.step()
        for p, q in zip(ours, wide):
            # One unit in the last place is where the two round apart.
            one = torch.finfo(dtype).eps
            torch.testing.assert_close(
                p.detach().float(), q.detach(), rtol=one, atol=1e-6
            )
            q.data.copy_(p)
    for p, q in zip(ours, wide):
        state, other = optimizer.state[p], theirs.state[q]
        assert state["exp_avg"].dtype == torch.float32
        for name in ("exp_avg", "exp_avg_sq"):
            torch.testing.assert_close(state[name], other[name], rtol=1e-6, atol=1e-7)


def test_states_of_another_type():
    ours = make_parameters(torch.bfloat16)
    optimizer = bastile.optim.AdamW(ours, state_dtype=torch.bfloat16)
    run(optimizer, ours, 2)
    assert optimizer.state[ours[3]]["exp_avg_sq"].dtype == torch.bfloat16
    with pytest.raises(ValueError, match="no type of floats"):
        bastile.optim.AdamW(ours, state_dtype=torch.int32)


def test_groups_and_schedules():
    made = []
    for module in (bastile.optim, torch.optim):
        parameters = make_parameters()
        optimizer = module.AdamW(
            [
                {"params": parameters[:4], "weight_decay": 0.0},
                {"params": parameters[4:], "lr": 0.05, "betas": (0.8, 0.95)},
            ],
            lr=0.01,
        )
        schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, 0.1, total_steps=6)
        for i in range(5):
            run(optimizer, parameters, 1, start=i)
            schedule.step()
        made.append(parameters)
    assert_alike(*made, rtol=5e-6, atol=5e-7)


def test_no_shape_compiles_again():
    parameters = make_parameters(seed=1)
    optimizer = bastile.optim.AdamW(parameters, lr=0.5, betas=(0.7, 0.8))
    run(optimizer, parameters, 1)
    more = [torch.randn(n, requires_grad=True) for n in (5, 1021, 3000, 192, 4096)]
    run(bastile.optim.AdamW(more), more, 1)
    before = bastile.compilations()
    others = [torch.randn(n, requires_grad=True) for n in (3, 77, 5001, 320, 65536)]
    run(bastile.optim.AdamW(others, lr=0.3, eps=1e-5), others, 2)
    assert bastile.compilations() == before


def test_parameters_that_lie_otherwise():
    def make():
        generator = torch.Generator().manual_seed(3)
        wide = torch.randn(6, 40, generator=generator)
        dense = torch.randn(33, 8, generator=generator).T
        images = torch.randn(2, 3, 4, 5, generator=generator)
        images = images.to(memory_format=torch.channels_last)
        return wide, [x.requires_grad_() for x in (wide[:, 4:36], dense, images)]

    wide, ours = make()
    rest = wide[:, 36:].clone()
    _, theirs = make()
    # The gradients lie in the usual order.
    run(bastile.optim.AdamW(ours), ours, 3)
    run(torch.optim.AdamW(theirs), theirs, 3)
    assert_alike(ours, theirs, rtol=2e-6, atol=2e-7)
    torch.testing.assert_close(wide[:, 36:], rest, rtol=0, atol=0)


def test_states_are_exchanged_with_pytorch():
    reference = make_parameters()
    run(torch.optim.AdamW(reference, amsgrad=True), reference, 6)

    first, last = make_parameters(), make_parameters()
    theirs = torch.optim.AdamW(first, amsgrad=True)
    run(theirs, first, 3)
    for p, q in zip(last, first):
        p.data.copy_(q.data)
    ours = bastile.optim.AdamW(last)
    ours.load_state_dict(theirs.state_dict())
    assert ours.state_dict().keys() == theirs.state_dict().keys()
    assert ours.state[last[2]].keys() == theirs.state[first[2]].keys()
    run(ours, last, 2, start=3)

    again = [p.detach().clone().requires_grad_() for p in last]
    theirs = torch.optim.AdamW(again)
    theirs.load_state_dict(ours.state_dict())
    run(theirs, again, 1, start=5)
    assert_alike(again, reference, rtol=2e-6, atol=2e-7)


def test_loaded_states_keep_their_digits():
    parameters = make_parameters(torch.bfloat16)
    optimizer = bastile.optim.AdamW(parameters)
    run(optimizer, parameters, 2)
    other = [p.detach().clone().requires_grad_() for p in parameters]
    loaded = bastile.optim.AdamW(other)
    loaded.load_state_dict(copy.deepcopy(optimizer.state_dict()))
    for p, q in zip(parameters, other):
        for name in ("exp_avg", "exp_avg_sq", "step"):
            a, b = optimizer.state[p][name], loaded.state[q][name]
            torch.testing.assert_close(a, b, rtol=0, atol=0)
    run(optimizer, parameters, 1, start=2)
    run(loaded, other, 1, start=2)
    assert_alike(parameters, other, rtol=0, atol=0)


def test_loaded_steps_go_on_whatever_the_default_type():
    """The count of steps is float32: one of bfloat16 stays at 256."""
    p = torch.nn.Parameter(torch.zeros(3))
    p.grad = torch.ones_like(p)
    torch.set_default_dtype(torch.bfloat16)
    try:
        optimizer = bastile.optim.AdamW([p])
        state = optimizer.state_dict()
        state["state"][0] = {
            "step": torch.tensor(300.0, dtype=torch.float32),
            "exp_avg": torch.zeros(3),
            "exp_avg_sq": torch.zeros(3),
        }
        optimizer.load_state_dict(state)
        optimizer.step()
    finally:
        torch.set_default_dtype(torch.float32)
    assert optimizer.state[p]["step"].dtype == torch.float32
    assert optimizer.state[p]["step"] == 301


@pytest.mark.parametrize("betas", [(0.0, 0.99), (0.3, 0.9), (0.9, 0.999)])
def test_gradients_of_any_size(betas):
    """A mean that keeps little of the one before has none of its rounding errors, and
    the share of a square is finite where the square is not."""
    results = []
    for optimizer_class in (torch.optim.AdamW, bastile.optim.AdamW):
        p = torch.nn.Parameter(torch.zeros(4))
        optimizer = optimizer_class([p], lr=0.1, betas=betas)
        for gradient in ([1e6, 1e3, 1.0, 1e20], [0.01, 0.01, 1.0, 1.0]):
            p.grad = torch.tensor(gradient)
            optimizer.step()
        results.append((p.detach(), *optimizer.state[p].values()))
    for found, expected in zip(*results):
        torch.testing.assert_close(found, expected, rtol=1e-5, atol=1e-12)


def test_pickles_and_copies():
    parameters = make_parameters()
    optimizer = bastile.optim.AdamW(parameters, state_dtype=torch.float64)
    run(optimizer, parameters, 1)
    again = pickle.loads(pickle.dumps(optimizer))
    assert again._state_dtype == torch.float64
    assert again.state_dict()["state"].keys() == optimizer.state_dict()["state"].keys()


def test_closures_and_missing_gradients():
    p, q = (torch.ones(4, requires_grad=True) for _ in range(2))
    optimizer = bastile.optim.AdamW([p, q], lr=0.1)

    def closure():
        optimizer.zero_grad()
        loss = (p * p).sum()
        loss.backward()
        return loss

    assert optimizer.step(closure).item() == 4
    assert p[0].item() < 1 and q[0].item() == 1 and q not in optimizer.state
    assert isinstance(optimizer, torch.optim.AdamW)


def test_autograd_notices_a_step():
    p = torch.ones(4, requires_grad=True)
    loss = (p * p).sum()
    p.grad = torch.ones(4)
    bastile.optim.AdamW([p]).step()
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        loss.backward()


@pytest.mark.parametrize("option", ("capturable", "differentiable", "fused"))
def test_options_without_a_kernel(option):
    with pytest.raises(ValueError, match=f"AdamW: '{option}' is not supported"):
        bastile.optim.AdamW(make_parameters(), **{option: True})
    optimizer = bastile.optim.AdamW(make_parameters())
    group = {"params": [torch.ones(2, requires_grad=True)], option: True}
    with pytest.raises(ValueError, match=f"AdamW: '{option}' is not supported"):
        optimizer.add_param_group(group)
    assert len(optimizer.param_groups) == 1


def test_sparse_and_complex_gradients_are_refused():
    p = torch.ones(4, 2, requires_grad=True)
    p.grad = torch.zeros(4, 2).to_sparse()
    with pytest.raises(RuntimeError, match="no sparse gradients"):
        bastile.optim.AdamW([p]).step()
    q = torch.ones(4, dtype=torch.complex64, requires_grad=True)
    q.grad = torch.ones_like(q)
    with pytest.raises(RuntimeError, match="no complex parameters"):
        bastile.optim.AdamW([q]).step()
    # Nor has another group changed then.
    one = torch.ones(3, requires_grad=True)
    one.grad = torch.ones_like(one)
    optimizer = bastile.optim.AdamW([{"params": [one]}, {"params": [p]}])
    with pytest.raises(RuntimeError, match="no sparse gradients"):
        optimizer.step()
    assert torch.equal(one, torch.ones(3)) and not optimizer.state
    for each in (p, q):
        with pytest.raises(TypeError, match="no sparse and no complex gradients"):
            bastile.clip_grad_norm_([each], 1.0)


def make_gradients(dtype=torch.float32, device="cpu"):
    parameters = make_parameters(dtype, device=device)
    set_gradients(parameters, 0)
    return parameters


@pytest.mark.parametrize("norm_type", (2, 2.0, 1, 3.5, math.inf, "inf"))
@pytest.mark.parametrize("max_norm", (0.5, 1e4))
def test_clipping_is_that_of_pytorch(max_norm, norm_type, device):
    ours, theirs = (make_gradients(device=device) for _ in range(2))
    norm = bastile.clip_grad_norm_(ours, max_norm, norm_type)
    # Without tensors without elements, of which there is no largest.
    expected = torch.nn.utils.clip_grad_norm_(
        [p for p in theirs if p.numel()], max_norm, norm_type
    )
    torch.testing.assert_close(norm, expected, rtol=1e-5, atol=0)
    assert_alike([p.grad for p in ours], [p.grad for p in theirs], rtol=1e-5, atol=1e-8)


@pytest.mark.parametrize("dtype", (torch.bfloat16, torch.float64))
def test_clipping_in_other_types(dtype):
    ours = make_gradients(dtype)
    before = [p.grad.double().clone() for p in ours]
    expected = torch.cat([x.flatten() for x in before]).norm()
    norm = bastile.clip_grad_norm_(ours, 2.0)
    wide = torch.float64 if dtype == torch.float64 else torch.float32
    assert norm.dtype == wide and norm.dim() == 0
    torch.testing.assert_close(norm.double(), expected, rtol=1e-6, atol=0)
    one = torch.finfo(dtype).eps
    for p, x in zip(ours, before):
        torch.testing.assert_close(
            p.grad.double(), x * 2 / (expected + 1e-6), rtol=max(one, 1e-12), atol=1e-9
        )


def test_clipping_of_one_tensor_and_of_none():
    p = torch.ones(3, requires_grad=True)
    assert bastile.clip_grad_norm_(p, 1.0).item() == 0
    p.grad = torch.full((3,), 2.0)
    q = torch.ones(5, requires_grad=True)
    norm = bastile.clip_grad_norm_(iter([p, q]), 1.0)
    assert norm.item() == pytest.approx(12**0.5)
    assert p.grad.norm().item() == pytest.approx(1.0, rel=1e-5) and q.grad is None


def test_clipping_of_gradients_that_lie_otherwise():
    p = torch.ones(8, 33, requires_grad=True)
    p.grad = torch.randn(33, 8).T
    lying = p.grad
    expected = p.grad.norm()
    assert bastile.clip_grad_norm_(p, 0.1).item() == pytest.approx(expected.item())
    assert p.grad is lying and lying.norm().item() == pytest.approx(0.1, rel=1e-4)


def test_norms_whatever_the_default_type():
    p = torch.nn.Parameter(torch.zeros(64, dtype=torch.float64))
    p.grad = torch.rand(64, dtype=torch.float64)
    expected = torch.nn.utils.get_total_norm([p.grad], 1.3)
    torch.testing.assert_close(
        bastile.clip_grad_norm_([p], 1e9, norm_type=1.3), expected, rtol=1e-14, atol=0
    )


def test_norms_that_are_not_finite():
    p = torch.ones(40, requires_grad=True)
    for number, check in ((math.inf, math.isinf), (math.nan, math.isnan)):
        p.grad = torch.ones(40)
        p.grad[3] = number
        with pytest.raises(RuntimeError, match="the norm of order 2.0"):
            bastile.clip_grad_norm_(p, 1.0, error_if_nonfinite=True)
        assert p.grad[0].item() == 1
        for order in (2.0, math.inf):
            other = torch.ones(40, requires_grad=True)
            other.grad = p.grad.clone()
            assert check(bastile.clip_grad_norm_(other, 1.0, order).item())
    with pytest.raises(ValueError, match="'norm_type' must be positive"):
        bastile.clip_grad_norm_(p, 1.0, 0)


def test_under_torch_compile():
    ours, theirs = make_parameters(), make_parameters()
    optimizer = bastile.optim.AdamW(ours, lr=0.1)
    step = torch.compile(optimizer.step, backend="aot_eager")
    clip = torch.compile(bastile.clip_grad_norm_, backend="aot_eager")
    other = torch.optim.AdamW(theirs, lr=0.1)
    for i in range(3):
        set_gradients(ours, i)
        set_gradients(theirs, i)
        clip(ours, 1.0)
        torch.nn.utils.clip_grad_norm_(theirs, 1.0)
        step()
        other.step()
    assert_alike(ours, theirs, rtol=2e-5, atol=2e-6)


def test_distributed_parameters():
    import torch.distributed as dist
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.tensor import Shard, distribute_tensor

    store = dist.HashStore()
    dist.init_process_group("gloo", store=store, rank=0, world_size=1)
    try:
        mesh = init_device_mesh("cpu", (1,))
        plain = torch.randn(6, 40, requires_grad=True)
        p = distribute_tensor(plain.detach().clone(), mesh, [Shard(0)])
        p.requires_grad_()
        gradient = torch.randn(6, 40)
        plain.grad, p.grad = gradient, distribute_tensor(gradient, mesh, [Shard(0)])
        optimizer = bastile.optim.AdamW([p])
        optimizer.step()
        torch.optim.AdamW([plain]).step()
        torch.testing.assert_close(
            p.detach().full_tensor(), plain.detach(), rtol=2e-6, atol=2e-7
        )
        assert type(optimizer.state[p]["exp_avg"]) is type(p.detach())
        with pytest.raises(TypeError, match="takes no DTensor"):
            bastile.clip_grad_norm_([p], 1.0)
    finally:
        dist.destroy_process_group()
