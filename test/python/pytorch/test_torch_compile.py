# Part of Bastile, under the MIT License. See LICENSE.
# RUN: %package-test %s
"""torch.compile and torch.export: one graph, the same numbers, nothing twice."""

import bastile
import pytest
import torch
from bastile import functional, nn, ops
from references import LENGTH, make_operands
from torch._dynamo.testing import CompileCounterWithBackend

# Without code generation: what is tested is what becomes of the calls.
BACKEND = "aot_eager"


@pytest.fixture(autouse=True)
def fresh():
    torch._dynamo.reset()


def norm_then_gate(x, w, g):
    return ops.swiglu(ops.rms_norm(x, w), g)


def both(x, r, w):
    return ops.add_rms_norm(x, r, w)


def loss(x, t):
    return functional.cross_entropy(ops.gelu(x), t[:, 0])


def every_result(x, t):
    loss, lse, correct, invalid, predicted = ops.cross_entropy(x, t)
    return loss + lse.sum() * 0.5


def turn(x, c, s):
    return functional.rope(x[None, None], x[None, None], c[None], s[None])[0]


FUNCTIONS = [
    (norm_then_gate, "rvr"),
    (both, "rrv"),
    (loss, "rt"),
    (every_result, "rt"),
    (turn, "raa"),
]


def gradients(function, operands):
    operands = [
        x.clone().requires_grad_() if x.is_floating_point() else x for x in operands
    ]
    results = function(*operands)
    results = results if isinstance(results, tuple) else (results,)
    sum(x.square().sum() for x in results).backward()
    return [*results, *(x.grad for x in operands if x.is_floating_point())]


@pytest.mark.long(every=3)
@pytest.mark.parametrize(("function", "kinds"), FUNCTIONS)
def test_full_graph(function, kinds, device):
    operands = make_operands(kinds, device=device)
    compiled = torch.compile(function, fullgraph=True, backend=BACKEND)
    for a, b in zip(gradients(compiled, operands), gradients(function, operands)):
        torch.testing.assert_close(a, b)
    with torch.no_grad():
        a, b = compiled(*operands), function(*operands)
    torch.testing.assert_close(a, b)


def test_inductor(device):
    def model(x, w, g, t):
        return functional.cross_entropy(norm_then_gate(x, w, g) + 1, t[:, 0])

    operands = make_operands("rvrt", device=device)
    compiled = torch.compile(model, fullgraph=True)
    for a, b in zip(gradients(compiled, operands), gradients(model, operands)):
        torch.testing.assert_close(a, b)


@pytest.mark.parametrize("dynamic", [True, None])
def test_new_numbers_of_rows(dynamic):
    counter = CompileCounterWithBackend(BACKEND)
    compiled = torch.compile(
        norm_then_gate, fullgraph=True, backend=counter, dynamic=dynamic
    )
    seen = []
    for rows in (7, 8, 31, 500):
        operands = make_operands("rvr", rows=rows)
        before = bastile.compilations()
        values = gradients(compiled, operands)
        seen.append((counter.frame_count, bastile.compilations() - before))
        expected = gradients(norm_then_gate, operands)
        torch.testing.assert_close(values, expected)
    # With dynamic=None, PyTorch itself compiles again once.
    assert [count for count, _ in seen][1:] == [2] * 3
    assert [made for _, made in seen][2:] == [0, 0]


def consuming_loss(x, w, t):
    logits = x @ w
    return functional.cross_entropy(logits, t[:, 0], in_place=True)


def test_gradient_in_place_of_logits(device):
    x, t = make_operands("rt", device=device)
    w = torch.randn(LENGTH, LENGTH, device=device)
    expected = gradients(consuming_loss, [x, w, t])
    for backend in (BACKEND, "inductor"):
        torch._dynamo.reset()
        compiled = torch.compile(consuming_loss, fullgraph=True, backend=backend)
        for a, b in zip(gradients(compiled, [x, w, t]), expected):
            torch.testing.assert_close(a, b)


def test_no_copy_of_logits_in_place():
    x, t = make_operands("rt")
    w = torch.randn(LENGTH, LENGTH)
    operands = [x.requires_grad_(), w.requires_grad_(), t]
    compiled = torch.compile(consuming_loss, fullgraph=True)
    _, codes = torch._inductor.utils.run_and_get_code(compiled, *operands)
    (code,) = [code for code in codes if "bastile.overwrite" in code]
    # One buffer of the logits' size: the product's.
    assert code.count(f"empty_strided_cpu((5, {LENGTH})") == 1


def test_modules_compile(device):
    model = torch.nn.Sequential(
        nn.RMSNorm(LENGTH),
        torch.nn.Linear(LENGTH, LENGTH),
        nn.GELU(),
        nn.LayerNorm(LENGTH),
    ).to(device)
    criterion = nn.CrossEntropyLoss(label_smoothing=0.1)
    x, t = make_operands("rt", device=device)

    def step(x, t):
        return criterion(model(x), t[:, 0])

    step(x, t).backward()
    expected = [p.grad.clone() for p in model.parameters()]
    model.zero_grad()
    torch.compile(step, fullgraph=True, backend=BACKEND)(x, t).backward()
    for p, gradient in zip(model.parameters(), expected):
        torch.testing.assert_close(p.grad, gradient)


def test_kernel_in_a_compiled_function(device):
    kernel = bastile.compile("layer_norm", (None, LENGTH), dtype="f32", grad=True)

    def function(x):
        return kernel(x * 2) + 1

    (x,) = make_operands("r", device=device)
    compiled = torch.compile(function, fullgraph=True, backend=BACKEND)
    for a, b in zip(gradients(compiled, [x]), gradients(function, [x])):
        torch.testing.assert_close(a, b)


def test_autocast_in_a_compiled_function(device):
    gate, up = make_operands("rr", device=device)
    linear = torch.nn.Linear(LENGTH, LENGTH).to(device)

    def function(gate, up):
        with torch.autocast(device, dtype=torch.bfloat16):
            return ops.swiglu(linear(gate), up)

    compiled = torch.compile(function, fullgraph=True, backend=BACKEND)
    result = compiled(gate, up)
    assert result.dtype == function(gate, up).dtype == torch.float32
    torch.testing.assert_close(result, function(gate, up))


def test_checkpointing_in_a_compiled_function():
    from torch.utils.checkpoint import checkpoint

    def function(x, w, g):
        return checkpoint(norm_then_gate, x, w, g, use_reentrant=False)

    operands = make_operands("rvr")
    compiled = torch.compile(function, fullgraph=True, backend=BACKEND)
    for a, b in zip(gradients(compiled, operands), gradients(norm_then_gate, operands)):
        torch.testing.assert_close(a, b)


@pytest.mark.parametrize("name", ["rms_norm", "cross_entropy"])
@torch._dynamo.config.patch(compiled_autograd=True)
def test_compiled_autograd(name):
    targets, weight = torch.tensor([3, 0, 7]), torch.rand(24, requires_grad=True)

    def loss(x):
        if name == "cross_entropy":
            return functional.cross_entropy(x * weight, targets)
        return ops.rms_norm(x, weight).square().sum()

    x = torch.randn(3, 24, requires_grad=True)
    expected = torch.autograd.grad(loss(x), (x, weight))
    torch.compile(lambda y: y.backward(), backend="eager")(loss(x))
    torch.testing.assert_close((x.grad, weight.grad), expected)


def test_mistakes_are_told_while_tracing():
    compiled = torch.compile(ops.swiglu, fullgraph=True, backend=BACKEND)
    with pytest.raises(Exception, match=r"'up' has shape \[5, 8\]"):
        compiled(torch.ones(5, 24), torch.ones(5, 8))


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = nn.RMSNorm(LENGTH)
        self.linear = torch.nn.Linear(LENGTH, 2 * LENGTH)
        self.activation = nn.SwiGLU()

    def forward(self, x):
        return self.activation(*self.linear(self.norm(x)).chunk(2, -1))


def test_export(tmp_path):
    model = Model()
    x = torch.randn(4, LENGTH)
    rows = torch.export.Dim("rows", min=1, max=4096)
    program = torch.export.export(model, (x,), dynamic_shapes={"x": {0: rows}})
    targets = [str(node.target) for node in program.graph.nodes]
    assert "bastile.rms_norm.default" in targets
    assert "bastile.swiglu.default" in targets
    path = tmp_path / "model.pt2"
    torch.export.save(program, path)
    loaded = torch.export.load(path).module()
    for count in (4, 9):
        x = torch.randn(count, LENGTH)
        torch.testing.assert_close(loaded(x), model(x))


def test_operators_are_registered_as_pytorch_asks():
    tests = ("test_schema", "test_faketensor", "test_aot_dispatch_dynamic")
    x, w = (x.requires_grad_() for x in make_operands("rv"))
    torch.library.opcheck(
        torch.ops.bastile.rms_norm.default,
        (x, w, None, "llama", 1e-6, 0.0, 1),
        test_utils=tests,
    )
    logits, targets = make_operands("rt")
    attributes = ("mean", -100, 0.0, 0.0, 0.0, 1.0, False, ["loss"], None, False)
    torch.library.opcheck(
        torch.ops.bastile.cross_entropy.default,
        (logits.requires_grad_(), targets, None, *attributes),
        test_utils=tests,
    )
