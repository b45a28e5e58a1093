# Part of Bastile, under the MIT License. See LICENSE.
# RUN: %package-test %s
"""What bastile.compile is not told, calls say: types, row lengths, gradients."""

import gc
import pathlib
import pickle
import subprocess
import sys
import warnings
import weakref

import bastile
import numpy as np
import pytest
import torch
from bastile import _bastile
from bastile.functions import row_mean, rsqrt, sigmoid


@bastile.compile
def gated(gate, up, slope=1.702):
    """The quick GELU of gate, times up."""
    return gate * sigmoid(slope * gate) * up


@bastile.compile(grad="x")
def scaled(x, weight):
    return x * weight


def reference(gate, up):
    g = gate if gate.dtype == torch.float64 else gate.float()
    return (g * torch.sigmoid(1.702 * g) * up).to(gate.dtype)


def rows(*shape, dtype=torch.float32, requires_grad=False):
    generator = torch.Generator().manual_seed(len(shape))
    made = torch.randn(shape, generator=generator).to(dtype)
    return made.requires_grad_(requires_grad)


def assert_same(function, wanted, tensors):
    results = []
    for f in (function, wanted):
        y = f(*tensors)
        results.append((y, *torch.autograd.grad(y.sum(), tensors)))
    for a, b in zip(*results):
        torch.testing.assert_close(a, b)


def test_a_call_lowers_its_function_once(monkeypatch):
    """To generate code: what the operands are called, the module says."""

    def fail(request):
        raise AssertionError("lowered for metadata alone")

    monkeypatch.setattr(_bastile, "describe_text", fail)
    x = rows(4, 64)
    for function in (bastile.compile(lambda x: x * 3), bastile.compile("silu")):
        assert function(x).shape == x.shape
        assert repr(function.kernels[0]).startswith("<bastile.Kernel")


@pytest.mark.parametrize(
    "dtype", [torch.float32, torch.float64, torch.bfloat16, torch.float16]
)
def test_takes_the_types_of_the_call(dtype):
    tensors = [rows(4, 64, dtype=dtype, requires_grad=True) for _ in range(2)]
    result = gated(*tensors)
    assert result.dtype == dtype
    assert_same(gated, reference, tensors)


def test_keeps_a_kernel_for_each_type_and_length():
    function = bastile.compile(lambda x, y: x * y + 1)
    calls = [rows(3, 64), rows(3, 32), rows(3, 64).half(), rows(2, 3, 64)]
    for x in calls:
        with torch.no_grad():
            torch.testing.assert_close(function(x, x), x * x + 1)
    assert len(function.kernels) == 4
    before = bastile.compilations()
    for x in calls:
        with torch.no_grad():
            function(x[:1], x[:1])
    assert bastile.compilations() == before and len(function.kernels) == 4


def test_the_first_example_of_the_documentation():
    page = pathlib.Path(__file__).resolve().parents[3] / "docs" / "python.md"
    text = page.read_text().split("## An op in one line")[1]
    code = text.split("```python\n")[1].split("```")[0]
    exec(code, {"gate": rows(4, 2880), "up": rows(4, 2880)})


def test_gradients_are_those_that_a_call_wants():
    function = bastile.compile(lambda x, y: x * y)
    x, y = rows(3, 16), rows(3, 16, requires_grad=True)
    function(x, y).sum().backward()
    assert x.grad is None
    torch.testing.assert_close(y.grad, x)
    with torch.no_grad():
        assert not function(x, y).requires_grad
    assert [k.has_gradients for k in function.kernels] == [True, False]


def test_grad_says_of_which_operands():
    x, weight = rows(3, 16, requires_grad=True), rows(16, requires_grad=True)
    with pytest.warns(RuntimeWarning, match="scaled was compiled without gradients of"):
        scaled(x, weight).sum().backward()
    assert weight.grad is None
    torch.testing.assert_close(x.grad, weight.detach().expand(3, 16))
    alone = bastile.compile(lambda x: x * 2, grad=False)
    with pytest.warns(RuntimeWarning, match="without gradients of x"):
        assert not alone(x).requires_grad
    with pytest.raises(TypeError, match="without gradients of x"):
        torch.func.grad(lambda x: alone(x).sum())(x)


def test_what_is_said_holds():
    function = bastile.compile(lambda x: x + 1, (8, 64))
    assert function(rows(2, 64)).shape == (2, 64)
    with pytest.raises(ValueError, match=r"has shape \[2, 32\], expected \[\?, 64\]"):
        function(rows(2, 32))
    function = bastile.compile(lambda x: x + 1, dtype="bf16")
    assert function(rows(2, 32).bfloat16()).shape == (2, 32)
    with pytest.raises(ValueError, match="has type f32, expected bf16"):
        function(rows(2, 32))


def test_an_op_by_its_name():
    norm = bastile.compile("rms_norm", eps=1e-5)
    x, weight = rows(4, 64), rows(64)
    expected = torch.nn.functional.rms_norm(x, (64,), eps=1e-5)
    torch.testing.assert_close(norm(x), expected)
    torch.testing.assert_close(norm(x, weight=weight), expected * weight)
    with pytest.raises(ValueError, match=r"'weight' has shape \[63\]"):
        norm(x, weight[:63])
    with pytest.raises(TypeError, match="no attribute 'epsilon'"):
        bastile.compile("rms_norm", epsilon=1e-5)


def test_numpy():
    x = np.ones((2, 8), np.float32)
    np.testing.assert_allclose(gated(x, up=x), x / (1 + np.exp(-1.702)), rtol=1e-6)


def test_parameters_with_a_default_are_constants():
    twice = bastile.compile(lambda x, factor=1.0: x * factor, factor=2.0)
    torch.testing.assert_close(twice(rows(2, 8)), 2 * rows(2, 8))


def test_a_decorated_function_keeps_its_name_and_text():
    assert gated.__name__ == "gated" and "quick GELU" in gated.__doc__
    assert repr(gated).startswith("<bastile.Function gated(gate, up) with ")


def test_is_a_part_of_another_function():
    @bastile.compile
    def normed(x, gate):
        return gated(gate, x * rsqrt(row_mean(x * x)))

    def expected(x, gate):
        return reference(gate, x * torch.rsqrt((x * x).mean(-1, keepdim=True)))

    assert_same(normed, expected, [rows(3, 64, requires_grad=True) for _ in range(2)])


@pytest.mark.parametrize(
    "call, exception, message",
    [
        (lambda x: gated(x), TypeError, "gated: missing up"),
        (lambda x: gated(x, x, x), TypeError, "takes 2 tensors, but got 3"),
        (lambda x: gated(x, x, gate=x), TypeError, "there is no operand|given twice"),
        (lambda x: gated(x, x, slope=2), TypeError, r"bastile.compile takes.*slope="),
        (lambda x: gated(x, 2.0), TypeError, "gated: operand 'up' is of type float"),
        (lambda x: gated(x, x[:, :3]), ValueError, r"gated: .*'up' \[4, 3\]"),
        (lambda x: gated(x, x[:3]), ValueError, r"\[4, 64\].*\[3, 64\]"),
        (lambda x: gated(x, x.to(torch.complex64)), TypeError, "complex64"),
        (lambda x: bastile.compile(lambda *x: x[0]), TypeError, r"takes '\*x'"),
        (lambda x: bastile.compile("rms_nrom"), ValueError, "no op 'rms_nrom'"),
        (lambda x: bastile.compile(dtype="int3")(lambda x: x), TypeError, "int3"),
        (lambda x: bastile.autotune(gated), TypeError, "shape of gate is missing"),
        (
            lambda x: gated(x, torch.tensor(2.0)),
            ValueError,
            "1 has no dimensions: give",
        ),
        (
            lambda x: gated(x > 0, x),
            TypeError,
            r"0 has conditions .* x.to\(torch.int8\)",
        ),
    ],
)
def test_mistakes(call, exception, message, monkeypatch):
    monkeypatch.setattr(bastile._compiler.loading, "gpu_target", lambda device: "sm_90")
    with pytest.raises(exception, match=message):
        call(rows(4, 64))


def test_says_what_a_call_runs():
    x = rows(4, 64)
    kernel = gated.kernel(x, up=x)
    assert kernel in gated.kernels and "tile.kernel" in kernel.mlir("fused")
    torch.testing.assert_close(kernel(x, x), gated(x, x))


def test_torch_compile_in_one_graph():
    torch._dynamo.reset()
    norm = bastile.compile("rms_norm", eps=1e-5)

    def model(x, weight):
        return gated(norm(x, weight), norm(x))

    def expected(x, weight):
        y = torch.nn.functional.rms_norm(x, (64,), eps=1e-5)
        return reference(y * weight, y)

    compiled = torch.compile(model, fullgraph=True, backend="aot_eager")
    for count in (2, 3, 7):
        x = rows(count, 64, requires_grad=True)
        assert_same(compiled, expected, [x, rows(64, requires_grad=True)])


def test_torch_func():
    x, up = rows(4, 64), rows(4, 64)
    found = torch.func.grad(lambda x: gated(x, up).sum())(x)
    wanted = torch.func.grad(lambda x: reference(x, up).sum())(x)
    torch.testing.assert_close(found, wanted)


def test_autocast_leaves_a_function_its_types():
    x = rows(4, 64)
    with torch.autocast("cpu", torch.bfloat16):
        assert gated(x, x.bfloat16()).dtype == torch.float32


class Gate(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.up = torch.nn.Parameter(torch.ones(64))

    def forward(self, x):
        return gated(x, self.up)


def test_an_exported_program_runs_in_another_process(tmp_path):
    x, path = rows(4, 64), tmp_path / "gate.pt2"
    torch.export.save(torch.export.export(Gate(), (x,)), path)
    torch.save((x, Gate()(x)), tmp_path / "sample.pt")
    script = f"""
import torch, bastile
x, y = torch.load({str(tmp_path / "sample.pt")!r})
torch.testing.assert_close(torch.export.load({str(path)!r}).module()(x), y)
"""
    subprocess.run([sys.executable, "-c", script], check=True)


def test_pickling():
    assert pickle.loads(pickle.dumps(gated)) is gated
    norm = pickle.loads(pickle.dumps(bastile.compile("rms_norm", eps=1e-5)))
    assert norm(rows(2, 8)).shape == (2, 8)


def test_holds_nothing_for_ever():
    function = bastile.compile(lambda x: x + 1)
    function(rows(2, 8))
    alive = [weakref.ref(x) for x in (function, function._recipe)]
    del function
    gc.collect()
    assert [x() for x in alive] == [None, None]


def test_takes_schedules_that_were_found_since():
    from bastile._tuning import lookup

    function = bastile.compile(lambda x: x - 1)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        function(rows(2, 8))
        lookup.changed()
        torch.testing.assert_close(function(rows(2, 8)), rows(2, 8) - 1)
