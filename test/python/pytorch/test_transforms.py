# Part of Bastile, under the MIT License. See LICENSE.
# RUN: %package-test %s
"""What PyTorch does with functions: torch.func, fake tensors, traces, modes."""

import bastile
import pytest
import torch
import torch.nn.functional as F
from bastile import functional, ops
from references import LENGTH, make_operands
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.autograd import forward_ad
from torch.fx.experimental.proxy_tensor import make_fx
from torch.utils._python_dispatch import TorchDispatchMode


def ours(x, w):
    return ops.rms_norm(x, w, eps=1e-5).square().sum()


def theirs(x, w):
    return F.rms_norm(x, (LENGTH,), w, 1e-5).square().sum()


def test_grad():
    x, w = make_operands("rv", torch.float64)
    for a, b in zip(
        torch.func.grad(ours, (0, 1))(x, w), torch.func.grad(theirs, (0, 1))(x, w)
    ):
        torch.testing.assert_close(a, b)


def test_grad_of_a_loss():
    x, t = make_operands("rt")
    gradient = torch.func.grad(lambda x: functional.cross_entropy(x, t[:, 0]))(x)
    expected = torch.func.grad(lambda x: F.cross_entropy(x, t[:, 0]))(x)
    torch.testing.assert_close(gradient, expected)


def test_vjp():
    x, w = make_operands("rv", torch.float64)
    results = [
        torch.func.vjp(function, x, w)
        for function in (
            lambda x, w: ops.rms_norm(x, w, eps=1e-5),
            lambda x, w: F.rms_norm(x, (LENGTH,), w, 1e-5),
        )
    ]
    seed = torch.randn_like(x)
    torch.testing.assert_close(results[0][0], results[1][0])
    torch.testing.assert_close(results[0][1](seed), results[1][1](seed))


def test_functional_call():
    module = bastile.nn.RMSNorm(LENGTH)
    x, w = make_operands("rv")
    gradient = torch.func.grad(
        lambda p: torch.func.functional_call(module, p, (x,)).sum()
    )({"weight": w})
    assert gradient["weight"].shape == w.shape


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
def test_compiled_transforms(backend):
    """`torch.func.grad` and `vjp` within what torch.compile compiles: of an op, of a loss
    whose gradients come with it, and of a compiled function."""
    x, w = torch.randn(4, LENGTH), torch.randn(LENGTH)
    targets = torch.tensor([1, 0, 2, 1])
    squared = bastile.compile(lambda a, b: a * a * b)

    def gradients(x):
        def compute(x):
            y = functional.rms_norm(x, (LENGTH,), w)
            return functional.cross_entropy(y, targets) + squared(y, x).sum()

        return torch.func.grad(compute)(x), torch.func.vjp(ops.silu, x)[1](x)[0]

    compiled = torch.compile(gradients, backend=backend)(x)
    for found, expected in zip(compiled, gradients(x)):
        torch.testing.assert_close(found, expected)


def test_vmap_is_refused():
    x = torch.randn(3, 4, LENGTH)
    with pytest.raises(RuntimeError, match="vmap"):
        torch.func.vmap(ops.silu)(x)


def test_vmap_of_what_is_no_batch():
    x = torch.randn(4, LENGTH, requires_grad=True)
    shifts = torch.randn(3)
    found = torch.func.vmap(lambda y: ops.silu(x).sum() + y)(shifts)
    torch.testing.assert_close(found, F.silu(x).sum() + shifts)


def test_batched_gradients_are_refused():
    x = torch.randn(4, LENGTH, requires_grad=True)
    refusal = pytest.raises(TypeError, match="one of a batch, as of 'is_grads_batched")
    with refusal:
        torch.autograd.grad(
            ops.silu(x), x, torch.ones(2, *x.shape), is_grads_batched=True
        )
    with refusal:
        torch.autograd.functional.jacobian(ops.silu, x, vectorize=True)


def test_forward_mode_is_refused():
    x = torch.randn(4, LENGTH)
    with pytest.raises((RuntimeError, NotImplementedError), match="jvp|forward"):
        torch.func.jvp(ops.silu, (x,), (x,))


@pytest.mark.parametrize("name", ["rms_norm", "swiglu", "cross_entropy"])
def test_double_backward_is_refused(name):
    operands = make_operands(
        {"rms_norm": "rv", "swiglu": "rr", "cross_entropy": "rt"}[name]
    )
    operands = [x.requires_grad_() if x.is_floating_point() else x for x in operands]
    attributes = {"returns": "loss"} if name == "cross_entropy" else {}
    y = getattr(ops, name)(*operands, **attributes)
    (gradient,) = torch.autograd.grad(y.sum(), operands[0], create_graph=True)
    with pytest.raises(RuntimeError, match=f"'{name}' of bastile cannot be differ"):
        gradient.sum().backward()


def through_inputs(x, w):
    """A gradient of which a part is known, asked for by name."""
    loss = ops.rms_norm(x, w).sum() + x.pow(3).sum()
    (gradient,) = torch.autograd.grad(loss, x, create_graph=True)
    return torch.autograd.grad(gradient.sum(), x)


def penalty(x, w):
    """A gradient's norm, differentiated by another operand."""
    (gradient,) = torch.autograd.grad(ops.rms_norm(x, w).sum(), x, create_graph=True)
    return torch.autograd.grad(gradient.pow(2).sum(), w)


def hessian(x, w):
    return torch.autograd.functional.hessian(lambda x: ops.rms_norm(x, w).sum(), x)


@pytest.mark.parametrize("reduction", ["mean", "none"])
def test_double_backward_of_a_loss_of_named_inputs_is_refused(reduction):
    x = torch.randn(4, LENGTH, requires_grad=True)
    targets = torch.zeros(4, dtype=torch.long)
    loss = functional.cross_entropy(x * 2, targets, reduction=reduction).sum()
    (gradient,) = torch.autograd.grad(loss + x.pow(3).sum(), x, create_graph=True)
    with pytest.raises(RuntimeError, match="'cross_entropy' of bastile cannot be dif"):
        torch.autograd.grad(gradient.sum(), x)


@pytest.mark.parametrize("derive", [through_inputs, penalty, hessian])
def test_double_backward_of_named_inputs_is_refused(derive):
    operands = [x.requires_grad_() for x in make_operands("rv")]
    with pytest.raises(RuntimeError, match="'rms_norm' of bastile cannot be differ"):
        derive(*operands)


def test_double_backward_is_refused_under_transforms():
    x, w = make_operands("rv")
    with pytest.raises(RuntimeError, match="cannot be differentiated again"):
        torch.func.grad(lambda x: torch.func.grad(ours)(x, w).sum())(x)


@pytest.mark.parametrize("make", [lambda: ops.silu, lambda: compiled_silu()])
def test_forward_mode_is_refused(make):
    function, x = make(), torch.ones(2, LENGTH)
    with forward_ad.dual_level():
        # What has no tangent is no affair of it.
        assert torch.equal(function(x), torch.nn.functional.silu(x))
        with pytest.raises(NotImplementedError, match="'silu' of bastile has no deriv"):
            function(forward_ad.make_dual(x, x))


def compiled_silu():
    return bastile.compile("silu", (2, LENGTH), dtype="f32")


def test_a_kernel_on_meta():
    kernel = bastile.compile("silu", (2, LENGTH), dtype="f32", grad=True)
    x = torch.empty(4, LENGTH, device="meta", requires_grad=True)
    y = kernel(x)
    y.sum().backward()
    assert y.is_meta and x.grad.is_meta and y.shape == x.grad.shape == x.shape


def test_meta():
    x = torch.empty(4, LENGTH, device="meta", dtype=torch.bfloat16)
    w = torch.empty(LENGTH, device="meta", requires_grad=True)
    y = ops.rms_norm(x, w)
    assert y.is_meta and y.shape == x.shape and y.dtype == x.dtype
    y.sum().backward()
    assert w.grad.is_meta and w.grad.shape == w.shape
    with torch.no_grad():
        assert ops.rms_norm(x, w).is_meta
    t = torch.zeros(4, dtype=torch.long, device="meta")
    loss = functional.cross_entropy(x.float().requires_grad_(), t)
    assert loss.is_meta and loss.shape == ()
    with torch.device("meta"):
        block = bastile.nn.LayerNorm(8)
    assert block.weight.is_meta


def test_fake_tensors():
    before = bastile.compilations()
    with FakeTensorMode():
        x = torch.empty(4, LENGTH, requires_grad=True)
        w = torch.empty(LENGTH, requires_grad=True)
        y = ops.rms_norm(x, w)
        y.sum().backward()
        assert y.shape == x.grad.shape == x.shape
        assert w.grad.shape == w.shape
        with pytest.raises(ValueError, match="weight"):
            ops.rms_norm(x, x)
    assert bastile.compilations() == before


@pytest.mark.parametrize("mode", ["real", "fake", "symbolic"])
def test_make_fx(mode):
    x, w = make_operands("rv")

    def function(x, w):
        x.requires_grad_()
        return torch.autograd.grad(ops.rms_norm(x, w).sum(), x)[0]

    graph = make_fx(function, tracing_mode=mode)(x.clone(), w)
    targets = [str(node.target) for node in graph.graph.nodes]
    assert targets.count("bastile.run.default") == 2
    torch.testing.assert_close(graph(x.clone(), w), function(x.clone(), w))


def test_dispatch_modes_see_calls():
    seen = []

    class Mode(TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            seen.append(str(func))
            return func(*args, **(kwargs or {}))

    with Mode():
        ops.silu(torch.randn(4, LENGTH))
    assert "bastile.run.default" in seen


def test_subclasses_of_tensor():
    class Tagged(torch.Tensor):
        pass

    x = torch.randn(4, LENGTH)
    tagged = x.clone().as_subclass(Tagged)
    torch.testing.assert_close(torch.Tensor(ops.silu(tagged)), ops.silu(x))
    parameter = torch.nn.Parameter(torch.ones(LENGTH))
    ops.rms_norm(x, parameter).sum().backward()
    assert parameter.grad is not None


def test_inference_mode():
    x, w = make_operands("rv")
    w.requires_grad_()
    with torch.inference_mode():
        y = ops.rms_norm(x, w)
    assert not y.requires_grad
    torch.testing.assert_close(y, ops.rms_norm(x, w).detach())


def test_hooks_of_tensors():
    x, w = make_operands("rv")
    seen = []
    x.requires_grad_().register_hook(lambda g: seen.append(g.shape) or g * 2)
    ops.rms_norm(x, w).sum().backward()
    twice = x.grad.clone()
    y = x.detach().clone().requires_grad_()
    ops.rms_norm(y, w).sum().backward()
    assert seen == [x.shape]
    torch.testing.assert_close(twice, 2 * y.grad)


@pytest.mark.parametrize("wants_gradients", [False, True])
def test_traces_have_calls(wants_gradients):
    """A trace for TorchScript has the op, not what it returned while traced."""
    x, weight = torch.randn(3, LENGTH), torch.ones(LENGTH)
    x.requires_grad_(wants_gradients)
    traced = torch.jit.trace(lambda x: ops.rms_norm(x, weight), (x,))
    other = torch.randn(5, LENGTH)
    assert torch.equal(traced(other), ops.rms_norm(other, weight))


def test_traces_of_other_calls_are_refused():
    formula = bastile.compile(lambda x: x * 2)
    traced = torch.jit.trace(formula, (torch.randn(3, LENGTH),), check_trace=False)
    x = torch.randn(3, LENGTH)
    assert torch.equal(traced(x), formula(x))
    query, angles = torch.randn(1, 2, 3, 8), torch.randn(1, 3, 8)
    with pytest.raises(NotImplementedError, match="torch.jit.trace cannot record"):
        torch.jit.trace(lambda x: functional.rope(x, x, angles, angles)[0], (query,))
