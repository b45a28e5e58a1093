# Part of Bastile, under the MIT License. See LICENSE.
# RUN: %package-test %s
"""Linear layers by bastile's products, beside PyTorch's."""

import bastile
import numpy
import pytest
import torch
from bastile import functional, nn
from torch.nn.functional import linear

TOLERANCES = {
    torch.float64: 1e-13,
    torch.float32: 1e-6,
    torch.float16: 1e-3,
    torch.bfloat16: 6e-3,
}


def make(*shapes, dtype=torch.float32, device="cpu"):
    generator = torch.Generator().manual_seed(0)
    return [
        torch.randn(shape, generator=generator).to(device, dtype).requires_grad_()
        for shape in shapes
    ]


def compare(result, expected, dtype):
    assert result.shape == expected.shape and result.dtype == dtype
    error = (result.double() - expected).norm()
    assert error <= TOLERANCES[dtype] * expected.norm()


@pytest.mark.long(every=5)
@pytest.mark.parametrize("dtype", TOLERANCES)
@pytest.mark.parametrize("count", [2, 3])
@pytest.mark.parametrize(
    "shape", [(8,), (5, 8), (1, 8), (2, 5, 8), (2, 1, 5, 8), (0, 8), (2, 0, 8)]
)
def test_value_and_gradients(shape, count, dtype, device):
    if dtype == torch.float64 and device != "cpu":
        pytest.skip("the host alone computes in float64")
    operands = make(shape, (3, 8), (3,), dtype=dtype, device=device)[:count]
    exact = [x.detach().double().requires_grad_() for x in operands]
    result, expected = functional.linear(*operands), linear(*exact)
    compare(result, expected, dtype)
    upstream = torch.randn_like(expected).to(dtype)
    result.backward(upstream)
    expected.backward(upstream.double())
    for mine, other in zip(operands, exact):
        compare(mine.grad, other.grad, dtype)


def test_views(device):
    x, w, whole = make((6, 8), (8, 24), (48, 16), device=device)
    # Transposed, every second row, some columns, every second column, one row repeated.
    one = whole[:1, :8].expand(24, 8)
    views = w.mT, whole[::2, :8], whole[:24, 4:12], whole[:24, ::2], one
    for weight in views:
        torch.testing.assert_close(functional.linear(x, weight), linear(x, weight))
        for rows in (x.detach()[::2], w.mT[:6], x[:, None].expand(6, 2, 8)):
            result = functional.linear(rows, weight)
            torch.testing.assert_close(result, linear(rows, weight))


def test_each_number_of_columns_compiles_once():
    x, w = (t.detach() for t in make((5, 8), (3, 8)))
    functional.linear(x, w)
    functional.linear(x, w.repeat(2, 1))
    count = bastile.compilations()
    for rows, repeats in [(2, 1), (7, 1), (7, 2), (2, 2)]:
        x, weight = torch.randn(rows, 8), w.repeat(repeats, 1)
        torch.testing.assert_close(functional.linear(x, weight), linear(x, weight))
    assert bastile.compilations() == count


def test_bias_of_another_type():
    x, w, b = make((5, 8), (3, 8), (3,), dtype=torch.bfloat16)
    wide = b.detach().float() * 1.001
    result = functional.linear(x, w, wide)
    expected = linear(x.double(), w.double(), wide.double())
    assert torch.equal(result, expected.to(torch.bfloat16))


def test_under_torch_compile(device):
    compiled = torch.compile(functional.linear, fullgraph=True, backend="aot_eager")
    for rows, columns in [(6, 3), (6, 5), (9, 5)]:
        operands = make((rows, 8), (columns, 8), (columns,), device=device)
        result, expected = compiled(*operands), linear(*operands)
        torch.testing.assert_close(result, expected)
        torch.testing.assert_close(
            torch.autograd.grad(result.sin().sum(), operands),
            torch.autograd.grad(expected.sin().sum(), operands),
        )


def test_autocast():
    """Casts as PyTorch's linear layers do."""
    x, w, b = make((5, 8), (3, 8), (3,))
    with torch.autocast("cpu", torch.bfloat16):
        result, expected = functional.linear(x, w, b), linear(x, w, b)
    assert result.dtype == expected.dtype == torch.bfloat16
    torch.testing.assert_close(result, expected)
    for mine, other in zip(
        torch.autograd.grad(result.float().sum(), (x, w, b)),
        torch.autograd.grad(expected.float().sum(), (x, w, b)),
    ):
        assert mine.dtype == torch.float32
        torch.testing.assert_close(mine, other, rtol=1e-2, atol=1e-2)


def test_module_trains_as_pytorch_s():
    ours, theirs = nn.Linear(8, 3), torch.nn.Linear(8, 3)
    ours.load_state_dict(theirs.state_dict())
    optimizers = [torch.optim.SGD(m.parameters(), lr=0.1) for m in (ours, theirs)]
    x, target = torch.randn(5, 8), torch.randn(5, 3)
    for _ in range(3):
        for module, optimizer in zip((ours, theirs), optimizers):
            optimizer.zero_grad()
            (module(x) - target).square().sum().backward()
            optimizer.step()
    for mine, other in zip(ours.parameters(), theirs.parameters()):
        torch.testing.assert_close(mine, other)


def test_op_of_arrays():
    x, w, b = (t.detach().numpy() for t in make((5, 8), (3, 8), (3,)))
    result = bastile.ops.linear(x, w, b)
    assert isinstance(result, numpy.ndarray)
    numpy.testing.assert_allclose(result, x @ w.T + b, rtol=1e-5, atol=1e-6)


def test_op_in_a_function():
    """Its result is rounded to the type of the rows, where a product's is not."""
    rounded = bastile.compile(
        lambda x, w: bastile.functions.op.linear(x, w).to("float32")
    )
    for columns in (3, 5):
        x, w = make((5, 8), (columns, 8), dtype=torch.bfloat16)
        expected = linear(x.double(), w.double()).bfloat16()
        assert torch.equal(rounded(x, w), expected.float())
        rounded(x, w).sum().backward()
        torch.testing.assert_close(x.grad, w.sum(0).expand(5, 8), rtol=2e-2, atol=1e-2)


def test_rows_of_the_op_in_a_function():
    """Its rows are those of the input, and not of the weight beside it."""
    function = bastile.compile(
        lambda x, w, y: bastile.functions.op.linear(x, w) + y,
        {"x": (5, 8), "w": (3, 8), "y": (5, 3)},
        dtype="f32",
    )
    x, w, y = (t.detach() for t in make((6, 8), (3, 8), (6, 3)))
    torch.testing.assert_close(function(x, w, y), linear(x, w) + y)
    with pytest.raises(ValueError, match=r"shapes \(5, 3\) and \(4, 3\) do not fit"):
        bastile.compile(
            lambda x, w, y: bastile.functions.op.linear(x, w) + y,
            {"x": (5, 8), "w": (3, 8), "y": (4, 3)},
            dtype="f32",
        )


def test_op_by_its_name():
    function = bastile.compile("linear")
    for columns in (3, 5):
        x, w = make((5, 8), (columns, 8))
        torch.testing.assert_close(function(x, w, None), linear(x, w))
    kernel = bastile.compile("linear", {"input": (5, 8), "weight": (3, 8)}, dtype="f32")
    x, w = (t.detach() for t in make((7, 8), (3, 8)))
    torch.testing.assert_close(kernel(x, w), linear(x, w))
    with pytest.raises(ValueError, match=r"has shape \[4, 8\], expected \[3, 8\]"):
        kernel(x, torch.zeros(4, 8))


@pytest.mark.parametrize(
    ("shapes", "message"),
    [
        (
            [(5, 8), (3, 9)],
            r"'weight' has shape \[3, 9\], but for 'input' of shape \[5, 8\] it must be "
            r"\[columns of the result, 8\]",
        ),
        ([(5, 8), (8,)], r"'weight' has shape \[8\], but for 'input'"),
        ([(5, 8), (0, 8)], r"'weight' has shape \[0, 8\], but the result needs at lea"),
        (
            [(5, 8), (3, 8), (8,)],
            r"'bias' has shape \[8\], but for 'weight' of shape \[3, 8\] it must be \[3\]",
        ),
        ([(5, 0), (3, 0)], r"the rows of 'input' of shape \[5, 0\] are empty"),
    ],
)
def test_shapes_that_do_not_fit(shapes, message):
    with pytest.raises(ValueError, match="linear: " + message):
        functional.linear(*make(*shapes))


def test_types_that_do_not_fit():
    x, w = make((5, 8), (3, 8))
    message = (
        "linear: 'weight' has elements of type bfloat16, but 'input' of type float32"
    )
    with pytest.raises(TypeError, match=message):
        functional.linear(x, w.bfloat16())
    with pytest.raises(
        TypeError, match="'input' has elements of type int32, but takes"
    ):
        functional.linear(x.int(), w)


def test_one_row_is_no_case_of_its_own():
    """The weight's columns are no other number of rows, against which one row would
    repeat."""
    from bastile._compiler.operators import OPERATORS

    def source(*shape):
        x, w = make(shape, (3, 8))
        return OPERATORS["linear"].request((), (x, w, None)).source

    assert source(1, 8) == source(5, 8)
    product = bastile.compile(lambda x, w: x @ w.mT)
    both = bastile.compile(lambda x, w: (x @ w.mT, x * w))
    for count in (1, 3):
        x, w = make((count, 8), (3, 8))
        compare(product(x, w), x.double() @ w.double().mT, x.dtype)
        result, repeated = both(x, w)
        compare(result, x.double() @ w.double().mT, x.dtype)
        compare(repeated, x.double() * w.double(), x.dtype)
