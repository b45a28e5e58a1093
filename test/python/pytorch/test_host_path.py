# Part of Bastile, under the MIT License. See LICENSE.
# RUN: %package-test %s
"""The short ways to a kernel: which calls take them, and that nobody can tell."""

import gc
import os
import subprocess
import sys
import weakref

import bastile
import numpy as np
import pytest
import torch
from bastile import functional, ops
from bastile._compiler import operators
from bastile._formulas import rope
from bastile._torch import inductor, run_operator
from references import make_operands
from torch._inductor.utils import run_and_get_code
from torch.utils._python_dispatch import TorchDispatchMode

DIRECT = "torch.ops.bastile.direct_run("
DISPATCHED = "torch.ops.bastile.run.default("


@pytest.fixture(autouse=True)
def fresh():
    torch._dynamo.reset()


class Watch(TorchDispatchMode):
    def __init__(self):
        super().__init__()
        self.calls = []

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        self.calls.append(str(function))
        return function(*args, **(kwargs or {}))


def norm(x, w):
    return ops.rms_norm(x, w)


def compile_to_code(function, *operands):
    """The result of a compiled call, and the program, not one that is kept."""
    import torch._inductor.config as config

    with config.patch(fx_graph_cache=False):
        compiled = torch.compile(function, fullgraph=True)
        result, (code,) = run_and_get_code(compiled, *operands)
    return result, code


def run_arguments(x, w):
    """What a compiled program would call the kernel of a norm with."""
    op = operators.OPERATORS["rms_norm"]
    values = tuple(attribute.default for attribute in op.definition.attributes)
    return *run_operator.describe(op.request(values, (x, w, None)), None), [x, w]


# Compiled programs


def test_compiled_code_calls_the_kernel_itself():
    x, w = make_operands("rv")
    result, code = compile_to_code(norm, x, w)
    assert torch.equal(result, norm(x, w))
    assert code.count(DIRECT) == 1 and DISPATCHED not in code
    # What the call returns is known.
    assert "'torch.ops.bastile.run.default')" not in code


def test_compiled_code_without_the_generators_functions(monkeypatch):
    from torch._inductor import lowering

    operator = torch.ops.bastile.run.default
    monkeypatch.delitem(lowering.lowerings, operator, raising=False)

    def fail(operator):
        raise AttributeError("another PyTorch")

    monkeypatch.setattr(inductor, "_make_lowering", fail)
    x, w = make_operands("rv")
    result, code = compile_to_code(norm, x, w)
    assert torch.equal(result, norm(x, w))
    assert code.count(DISPATCHED) == 1 and DIRECT not in code
    lowering.lowerings.pop(operator, None)


def test_guards_do_not_look_into_the_package():
    from torch._dynamo.guards import CheckFunctionManager

    seen = []
    original = CheckFunctionManager.__init__

    def spy(self, *arguments, **named):
        original(self, *arguments, **named)
        seen.append(str(self.guard_manager))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(CheckFunctionManager, "__init__", spy)
        torch.compile(norm, backend="aot_eager", fullgraph=True)(*make_operands("rv"))
    (guards,) = seen
    assert "rms_norm.__code__" in guards
    assert "__import_bastile" not in guards


def test_a_mode_sees_the_operator_that_a_compiled_program_calls():
    x, w = make_operands("rv")
    with Watch() as watch:
        torch.ops.bastile.direct_run(*run_arguments(x, w))
    assert watch.calls == ["bastile.run.default"]


def test_the_direct_call_follows_the_operator():
    x, w = make_operands("rv")
    arguments = run_arguments(x, w)
    direct, run = torch.ops.bastile.direct_run, torch.ops.bastile.run.default
    assert torch.equal(direct(*arguments)[0], run(*arguments)[0])
    (empty,) = direct(*arguments[:2], [x.to("meta"), w.to("meta")])
    assert empty.is_meta and empty.shape == x.shape
    with pytest.raises(RuntimeError):
        direct(*arguments[:2], [])
    with pytest.raises(ValueError, match="'weight' has shape"):
        direct(*arguments[:2], [x, w[:-1]])
    with pytest.raises(RuntimeError, match="missing value"):
        direct(arguments[0], arguments[1])


@pytest.mark.parametrize("order", ["torch, bastile", "bastile, torch"])
def test_order_of_imports(order):
    code = f"""
import {order}
def f(x):
    loss, lse = bastile.ops.cross_entropy(
        bastile.ops.silu(x), torch.zeros(4, 1, dtype=torch.long),
        returns=("loss", "lse"))
    return loss + lse.sum()
x = torch.randn(4, 8)
compiled = torch.compile(f, backend="aot_eager", fullgraph=True)
print(torch.allclose(compiled(x), f(x)))
"""
    environment = {**os.environ, "PYTHONWARNINGS": "ignore"}
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env=environment
    )
    assert done.stdout == "True\n", done.stderr


# Nodes


def test_nodes_are_named_after_their_kernels():
    x, w = make_operands("rv")
    y = ops.rms_norm(x.requires_grad_(), w)
    z = ops.rms_norm(x[:2], w)
    assert y.grad_fn.name() == "rms_normBackward"
    # One class for all calls of a kernel.
    assert type(y.grad_fn) is type(z.grad_fn)


def test_gradients_beside_operands_that_are_missing():
    x, w = make_operands("rv")
    x, b = x.requires_grad_(), w.clone().requires_grad_()
    ops.layer_norm(x, None, b).sin().sum().backward()
    found = x.grad, b.grad
    y, c = x.detach().requires_grad_(), b.detach().requires_grad_()
    normed = torch.nn.functional.layer_norm(y, y.shape[-1:], None, c, 1e-5)
    normed.sin().sum().backward()
    for a, e in zip(found, (y.grad, c.grad)):
        torch.testing.assert_close(a, e)


def test_saved_tensors_pass_through_hooks():
    x, w = make_operands("rv")
    packed, unpacked = [], []
    hooks = torch.autograd.graph.saved_tensors_hooks(
        lambda x: packed.append(x) or x, lambda x: unpacked.append(x) or x
    )
    with hooks:
        y = ops.rms_norm(x.requires_grad_(), w)
    y.sum().backward()
    assert len(packed) == len(unpacked) > 0


def test_a_forgotten_kernel_still_has_its_backward():
    x, w = make_operands("rv")
    y = ops.rms_norm(x.requires_grad_(), w)
    operators.OPERATORS["rms_norm"].native.clear()
    gc.collect()
    y.sum().backward()
    assert x.grad.shape == x.shape


def test_a_graph_that_is_gone():
    x, w = make_operands("rv")
    y = ops.rms_norm(x.requires_grad_(), w).sum()
    y.backward()
    with pytest.raises(RuntimeError, match="second time"):
        y.backward()


# Kernels that were compiled ahead


@pytest.fixture
def kernel():
    shapes = {"input": (8, 64), "weight": (64,)}
    return bastile.compile("rms_norm", shapes, dtype="f32", grad=True)


@pytest.mark.parametrize(
    ("change", "kind", "message"),
    [
        (lambda x, w: (x,), TypeError, "'rms_norm' takes 2 tensors, but got 1"),
        (lambda x, w: (x, w, w), TypeError, "takes 2 tensors, but got 3"),
        (lambda x, w: (x, None), TypeError, "an object of type builtins.NoneType"),
        (lambda x, w: (None, w), TypeError, "an object of type builtins.NoneType"),
        (lambda x, w: (x, 3.0), TypeError, "an object of type builtins.float"),
        (lambda x, w: (x, w.double()), ValueError, "'weight' has type f64"),
        (lambda x, w: (x[:, :9], w), ValueError, r"'input' has shape \[8, 9\]"),
        (lambda x, w: (x.to("meta"), w), ValueError, "lie in one place, but some"),
        (lambda x, w: (x.to_sparse(), w), TypeError, "layout torch.sparse_coo"),
    ],
)
def test_mistakes_with_tensors_of_pytorch(kernel, change, kind, message):
    with pytest.raises(kind, match=message), torch.no_grad():
        kernel(*change(torch.randn(8, 64), torch.randn(64)))


def test_mistakes_with_gradients(kernel):
    x, w = torch.randn(8, 64, requires_grad=True), torch.randn(64)
    with pytest.raises(TypeError, match="takes 2 tensors, but got 3"):
        kernel(x, w, w)
    with pytest.raises(TypeError, match="operand 'weight' is of type ndarray"):
        kernel(x, w.numpy())
    with pytest.raises(TypeError, match="operand 2 is of type float"):
        kernel(x, w, 3.0)


def test_libraries_mix_without_gradients(kernel):
    x, w = torch.randn(8, 64), torch.randn(64)
    assert torch.equal(kernel(x, w.numpy()), kernel(x, w))
    np.testing.assert_array_equal(kernel(x.numpy(), w), kernel(x, w).numpy())


def test_gradients_of_a_kernel(kernel):
    x, w = (torch.randn(s, requires_grad=True) for s in ((8, 64), (64,)))
    kernel(x, w).sin().sum().backward()
    found = x.grad, w.grad
    x.grad = w.grad = None
    ops.rms_norm(x, w).sin().sum().backward()
    for a, b in zip(found, (x.grad, w.grad)):
        torch.testing.assert_close(a, b)
    with torch.no_grad():
        assert not kernel(x, w).requires_grad


def test_a_kernel_without_gradients_records_nothing():
    kernel = bastile.compile("silu", (8, 64), dtype="f32")
    x = torch.randn(8, 64, requires_grad=True)
    with pytest.warns(RuntimeWarning, match="without gradients of input"):
        assert not kernel(x).requires_grad


def test_a_kernel_under_autocast_and_in_a_mode(kernel):
    x, w = torch.randn(8, 64, requires_grad=True), torch.randn(64)
    with torch.autocast("cpu", torch.bfloat16):
        result = kernel(x, w)
    assert result.dtype == torch.float32 and result.requires_grad
    with Watch() as watch:
        kernel(x, w)
    assert "bastile.run.default" in watch.calls


def test_a_kernel_is_not_kept(kernel):
    kernel(torch.randn(8, 64, requires_grad=True), torch.randn(64)).sum().backward()
    copy = bastile.compile("silu", (8, 64), dtype="f32")
    copy(torch.randn(8, 64))
    gone = weakref.ref(copy)
    del copy
    assert gone() is None


# Queries and keys


@pytest.mark.parametrize("interleaved", [False, True])
@pytest.mark.parametrize("target", ["host", "sm_90"])
def test_one_launch_for_queries_and_keys(target, interleaved):
    q, k = torch.randn(2, 4, 5, 8), torch.randn(2, 1, 5, 8)
    angles = torch.randn(1, 1, 5, 4)
    turn = rope.rope_neighbours if interleaved else rope.rope_half_angles
    request = turn.request((q, k, angles, angles), (), (True, True, False, False))
    functions = operators.metadata(request.on(target)).values()
    assert [len(function["launches"]) for function in functions] == [1, 1]


def test_rope_makes_one_call():
    q, k = (torch.randn(2, heads, 5, 8, requires_grad=True) for heads in (4, 1))
    angles = torch.randn(5, 4)
    turned = functional.rope(q, k, angles.cos()[None], angles.sin()[None])
    assert turned[0].grad_fn is turned[1].grad_fn
    apart = [
        ops.rope(x, angles.cos()[None, None], angles.sin()[None, None]) for x in (q, k)
    ]
    for a, b in zip(turned, apart):
        assert torch.equal(a, b)
    found, wanted = (
        torch.autograd.grad(sum(x.sin().sum() for x in pair), (q, k))
        for pair in (turned, apart)
    )
    for a, b in zip(found, wanted):
        torch.testing.assert_close(a, b)


def test_rope_of_two_types_makes_two_calls():
    q, k = torch.randn(2, 4, 5, 8), torch.randn(2, 1, 5, 8).bfloat16()
    angles = torch.randn(1, 5, 4)
    turned = functional.rope(q, k, angles.cos(), angles.sin())
    assert [x.dtype for x in turned] == [torch.float32, torch.bfloat16]


def test_mistakes_of_rope():
    q, k, angles = (torch.randn(2, 4, 5, n) for n in (8, 8, 4))
    with pytest.raises(TypeError, match="^rope: 'cosine' has elements of type int64"):
        functional.rope(q, k, angles.long(), angles.long())
    with pytest.raises(ValueError, match="rotary size of 8"):
        functional.rope(q, k[..., :2], angles, angles)
    apart = angles[:, :3]
    with pytest.raises(ValueError, match=r"'cosine' has shape \[2, 3, 5, 4\]"):
        functional.rope(q, k, apart, apart)
