# Part of Bastile, under the MIT License. See LICENSE.
# RUN: %package-test %s
"""Products of matrices in Python functions: values, gradients, shapes, messages."""

import pathlib

import bastile
import pytest
import torch
from bastile import functions as F
from bastile.functions import op
from torch.nn.functional import rms_norm

TOLERANCES = {torch.float64: 1e-13, torch.float32: 1e-6, torch.bfloat16: 1e-2}


def make(dtype, *shapes):
    generator = torch.Generator().manual_seed(0)
    return [
        torch.randn(shape, generator=generator).to(dtype).requires_grad_()
        for shape in shapes
    ]


def check(function, expected, dtype, *shapes):
    """Compares with ``expected`` in float64, and all gradients with autograd's."""
    operands = make(dtype, *shapes)
    exact = [x.detach().double().requires_grad_() for x in operands]
    result, wanted = function(*operands), expected(*exact)
    assert result.shape == wanted.shape and result.dtype == dtype
    gradient = torch.randn_like(wanted).to(dtype)
    result.backward(gradient)
    wanted.backward(gradient.double())
    compare(result, wanted, dtype)
    for mine, other in zip(operands, exact):
        compare(mine.grad, other.grad, dtype)


def compare(result, expected, dtype):
    error = (result.double() - expected).norm() / expected.norm()
    assert error < TOLERANCES[dtype]


@pytest.mark.long(every=23)
@pytest.mark.parametrize("dtype", TOLERANCES)
@pytest.mark.parametrize(
    "function, shapes",
    [
        (lambda a, b: a @ b, [(5, 8), (8, 3)]),
        (lambda a, b: a @ b.mT, [(5, 8), (3, 8)]),
        (lambda a, b: (y := a @ b.mT).mT @ y, [(2, 5, 8), (3, 8)]),
        (lambda a, b: (y := a @ b.mT) @ y.mT, [(5, 8), (3, 8)]),
        (lambda a, b: (y := a * b) @ y.mT, [(2, 5, 8), (8,)]),
        (lambda a, b: (a.mT @ b) * 0.5 * a, [(5, 1), (5, 1)]),
        (lambda a, b: a.mT @ b, [(8, 5), (8, 3)]),
        (lambda a, b: a.mT @ b.mT, [(8, 5), (3, 8)]),
        # A batch of one factor, of both, and repeated matrices.
        (lambda a, b: a @ b.mT, [(2, 5, 8), (3, 8)]),
        (lambda a, b: a @ b, [(2, 4, 5, 8), (2, 4, 8, 3)]),
        (lambda a, b: a @ b, [(2, 4, 5, 8), (2, 1, 8, 3)]),
        (lambda a, b: a @ b, [(5, 8), (2, 8, 3)]),
        # Rows of one fixed number, beside free ones.
        (lambda a, b, c: a.mT @ b + c, [(8, 5), (8, 3), (5, 3)]),
        (lambda a, b, c: (a.mT @ b) * (c + 1), [(8, 5), (8, 3), (1, 3)]),
        # Operands in several parts.
        (lambda a: a @ a, [(6, 6)]),
        (lambda a: a @ a.mT, [(6, 9)]),
        (lambda a, b: a @ b + a, [(5, 8), (8, 8)]),
    ],
)
def test_against_torch(function, shapes, dtype):
    check(bastile.compile(function), function, dtype, *shapes)


@pytest.mark.long(every=7)
@pytest.mark.parametrize("dtype", TOLERANCES)
@pytest.mark.parametrize(
    "function, shapes",
    [
        (lambda a, b: (a @ b).mT, [(5, 8), (8, 3)]),
        (lambda a, b: (a.mT @ b.mT).mT, [(8, 5), (3, 8)]),
        (lambda a, b: (a @ b.mT).mT, [(2, 5, 8), (3, 8)]),
        (lambda a, b: (a @ b).mT, [(2, 5, 8), (2, 8, 3)]),
        (lambda a, b, c: (a @ b.mT).mT + c, [(5, 8), (3, 8), (3, 5)]),
        (lambda a, b: (a @ b).mT + a @ b, [(5, 8), (8, 5)]),
        # The transposed product is a factor, read where it lies.
        (lambda a, b, c: (a @ b).mT @ c, [(5, 8), (8, 3), (5, 7)]),
        (lambda a, b, c: c @ (a @ b).mT, [(5, 8), (8, 3), (7, 3)]),
        (lambda a, b, c: ((a @ b).mT @ c).mT, [(5, 8), (8, 3), (5, 7)]),
        (lambda a, b: (a @ b).mT @ (a @ b), [(5, 8), (8, 3)]),
    ],
)
def test_transposed_products(function, shapes, dtype):
    check(bastile.compile(function), function, dtype, *shapes)


def test_reduction_of_a_transposed_product():
    function = bastile.compile(lambda a, b: F.row_sum(F.exp((a @ b).mT)))

    def expected(a, b):
        return (a @ b).mT.exp().sum(-1, keepdim=True)

    check(function, expected, torch.float32, (5, 8), (8, 3))


def test_one_kernel_for_each_number_of_transposed_rows():
    function = bastile.compile(lambda x, w: (x @ w.mT).mT)
    for rows, columns in [(5, 3), (5, 3), (7, 3), (5, 3)]:
        x, w = (t.detach() for t in make(torch.float32, (rows, 8), (columns, 8)))
        torch.testing.assert_close(function(x, w), (x @ w.mT).mT)
    assert len(function._recipe.kernels) == 2


def test_given_shapes_of_a_transposed_product():
    kernel = bastile.compile(
        lambda x, w: (x @ w).mT, {"x": (5, 8), "w": (8, 3)}, dtype="f32"
    )
    x, w = (t.detach() for t in make(torch.float32, (5, 8), (8, 3)))
    torch.testing.assert_close(kernel(x, w), (x @ w).mT)
    with pytest.raises(ValueError, match=r"'x' has shape \[4, 8\], expected \[5, 8\]"):
        kernel(x[:4], w)


@pytest.mark.parametrize(
    "function",
    [
        lambda a, b: a.mT,
        lambda a, b: (a.mT, b),
        lambda a, b: a.mT + 1,
        lambda a, b: b * a.mT,
        lambda a, b: -a.mT,
        lambda a, b: F.exp(a.mT),
        lambda a, b: F.where(a.mT > 0, 1, 0),
        lambda a, b: F.row_sum(a.mT),
        lambda a, b: F.split(a.mT, 2),
        lambda a, b: F.concatenate([a.mT, b]),
        lambda a, b: op.softmax(a.mT),
        lambda a, b: a.mT.to("bf16"),
        lambda a, b: F.exp(a @ b).mT,
    ],
)
def test_transposed_tensors_that_are_no_factors(function):
    a, b = (t.detach() for t in make(torch.float32, (4, 8), (8, 4)))
    message = r"mT: only '@' takes the transposed <.*>.* transposed tensor an argument"
    with pytest.raises(TypeError, match=message):
        bastile.compile(function)(a, b)


def gated(x, g, u, d):
    gate = x @ g.mT
    return (gate / (1 + F.exp(-gate)) * (x @ u.mT)) @ d.mT + x


def gated_torch(x, g, u, d):
    return (torch.nn.functional.silu(x @ g.mT) * (x @ u.mT)) @ d.mT + x


@pytest.mark.long(every=3)
@pytest.mark.parametrize("dtype", TOLERANCES)
def test_gated_mlp(dtype):
    function = bastile.compile(gated)
    for rows, columns in [(5, 24), (7, 24), (7, 33)]:
        shapes = (2, rows, 16), (columns, 16), (columns, 16), (16, columns)
        check(function, gated_torch, dtype, *shapes)


@pytest.mark.long(every=3)
@pytest.mark.parametrize("dtype", TOLERANCES)
def test_packed_gates(dtype):
    """Pieces of a product, and rows put together that are multiplied."""

    def packed(x, w, v):
        gate, up = F.split(x @ w.mT, 2)
        both = F.concatenate([F.silu(gate) * up, gate])
        return both @ v.mT

    def expected(x, w, v):
        gate, up = (x @ w.mT).chunk(2, -1)
        both = torch.cat([torch.nn.functional.silu(gate) * up, gate], -1)
        return both @ v.mT

    check(bastile.compile(packed), expected, dtype, (5, 16), (48, 16), (8, 48))


@pytest.mark.long(every=7)
@pytest.mark.parametrize("interleaved", [False, True])
@pytest.mark.parametrize("is_transposed", [False, True])
@pytest.mark.parametrize("dtype", TOLERANCES)
def test_packed_weight(dtype, is_transposed, interleaved):
    """Pieces of a product, of halves of a weight or of every second row or column."""

    def apart(h):
        return (h[..., ::2], h[..., 1::2]) if interleaved else h.chunk(2, -1)

    def packed(x, w, b):
        h = x @ (w.mT if is_transposed else w) + b
        gate, up = F.split(h, 2, interleaved=interleaved)
        return F.silu(gate) * up

    def expected(x, w, b):
        gate, up = apart(x @ (w.mT if is_transposed else w) + b)
        return torch.nn.functional.silu(gate) * up

    function = bastile.compile(packed)
    for rows, columns in [(1, 2), (7, 48), (17, 66)]:
        weight = (columns, 16) if is_transposed else (16, columns)
        check(function, expected, dtype, (rows, 16), weight, (columns,))


@pytest.mark.parametrize("dtype", [torch.float8_e4m3fn, torch.float8_e5m2])
def test_scaled_products_of_small_floats(dtype):
    """Scales of rows and columns stand behind the product, as factors."""

    def scaled(x, w, rows, columns):
        return (x @ w.mT) * rows * columns

    function = bastile.compile(scaled)
    for m, n, k in [(1, 7, 17), (17, 24, 40)]:
        x, w = (t.detach().to(dtype) for t in make(torch.float32, (m, k), (n, k)))
        scales = make(torch.float32, (m, 1), (n,))
        exact = [s.detach().double().requires_grad_() for s in scales]
        result, wanted = function(x, w, *scales), scaled(x.double(), w.double(), *exact)
        compare(result, wanted, torch.float32)
        gradient = torch.randn_like(result)
        result.backward(gradient)
        wanted.backward(gradient.double())
        for mine, other in zip(scales, exact):
            compare(mine.grad, other.grad, torch.float32)


@pytest.mark.parametrize("is_swapped", [False, True])
def test_small_floats_of_two_types(is_swapped):
    dtypes = [torch.float8_e5m2, torch.float8_e4m3fn]
    if is_swapped:
        dtypes.reverse()
    x, w = (
        t.detach().to(dtype)
        for t, dtype in zip(make(torch.float32, (9, 40), (24, 40)), dtypes)
    )
    result = bastile.compile(lambda x, w: x @ w.mT)(x, w)
    compare(result, x.double() @ w.double().mT, torch.float32)


def test_rounding_to_small_floats_behind_a_product():
    x, w = (t.detach() for t in make(torch.bfloat16, (9, 40), (24, 40)))
    scale = torch.tensor([3.0])
    function = bastile.compile(lambda x, w, s: (x @ w.mT / s).to("float8_e4m3fn"))
    expected = (x.double() @ w.double().mT / 3).float().to(torch.float8_e4m3fn)
    torch.testing.assert_close(function(x, w, scale).float(), expected.float())


def test_example_of_the_guide():
    root = pathlib.Path(__file__).resolve().parents[3]
    text = (root / "docs/adding-an-op.md").read_text()
    names = {}
    exec(text.split("```python\n")[1].split("```")[0], names)

    def expected(x, norm, packed, down):
        gate, up = (rms_norm(x, (16,), norm, 1e-6) @ packed.mT).chunk(2, -1)
        return (torch.nn.functional.silu(gate) * up) @ down.mT + x

    check(names["mlp"], expected, torch.float32, (5, 16), (16,), (48, 16), (16, 24))


def test_example_of_scales_in_the_guide():
    root = pathlib.Path(__file__).resolve().parents[3]
    text = (root / "docs/adding-an-op.md").read_text()
    names = {}
    exec(text.split("```python\n")[2].split("```")[0], names)
    x, w = (
        t.detach().to(torch.float8_e4m3fn)
        for t in make(torch.float32, (5, 16), (7, 16))
    )
    rows, columns = (t.detach() for t in make(torch.float32, (5, 1), (7,)))
    expected = (x.double() @ w.double().mT) * rows.double() * columns.double()
    compare(names["scaled"](x, w, rows, columns), expected, torch.bfloat16)


def test_op_of_a_fixed_number_of_rows_and_a_free_one():
    function = bastile.compile(lambda a, b, up: op.swiglu(a.mT @ b, up))

    def expected(a, b, up):
        return torch.nn.functional.silu(a.mT @ b) * up

    check(function, expected, torch.float32, (8, 5), (8, 3), (5, 3))


def test_norm_of_a_product():
    function = bastile.compile(lambda x, w, n: op.rms_norm(x @ w.mT, n, eps=1e-6))

    def expected(x, w, n):
        return torch.nn.functional.rms_norm(x @ w.mT, (24,), n, 1e-6)

    check(function, expected, torch.float32, (5, 16), (24, 16), (24,))


def test_linear_and_dot():
    x, w, b = make(torch.float32, (5, 8), (3, 8), (3,))
    expected = torch.nn.functional.linear(x, w, b)
    for function in (
        lambda x, w, b: F.linear(x, w, b),
        lambda x, w, b: F.linear(x, w) + b,
        lambda x, w, b: F.dot(x, w, (-1, -1)) + b,
        lambda x, w, b: F.matmul(x, w.mT) + b,
        lambda x, w, b: x @ w.mT.mT.mT + b,
        lambda x, w, b: F.dot(x, w.mT) + b,
        lambda x, w, b: F.dot(x, w.mT, (-1, -2)) + b,
        lambda x, w, b: F.linear(w, x).mT + b,
    ):
        torch.testing.assert_close(bastile.compile(function)(x, w, b), expected)


def test_types_of_factors():
    """Computed factors are rounded to the other factor's type, wide ones are kept."""
    x, w = make(torch.bfloat16, (40, 64), (32, 64))
    doubled = bastile.compile(lambda x, w: (F.exp(x) @ w.mT).to("float32"))(x, w)
    rounded = x.double().exp().bfloat16().double() @ w.double().mT
    assert (doubled - rounded).norm() / rounded.norm() < 1e-6
    mixed = bastile.compile(lambda x, w: x @ w.mT, dtype={"x": "f32", "w": "bf16"})
    wide = x.float() * 1.001
    exact = wide.double() @ w.double().mT
    assert (mixed(wide, w) - exact).norm() / exact.norm() < 1e-6


def test_one_kernel_for_all_numbers_of_rows():
    function = bastile.compile(lambda x, w: x @ w.mT)
    for rows, columns in [(5, 3), (6, 3), (700, 3), (5, 4), (6, 4)]:
        x, w = make(torch.float32, (rows, 8), (columns, 8))
        torch.testing.assert_close(function(x, w), x @ w.mT)
    # One for each number of columns, without and with gradients.
    assert len(function._recipe.kernels) == 2


def test_given_shapes():
    kernel = bastile.compile(
        lambda x, w: x @ w.mT, shape={"x": (5, 8), "w": (3, 8)}, dtype="f32"
    )
    x, w = (t.detach() for t in make(torch.float32, (7, 8), (3, 8)))
    torch.testing.assert_close(kernel(x, w), x @ w.mT)
    with pytest.raises(ValueError, match=r"'w' has shape \[4, 8\], expected \[3, 8\]"):
        kernel(x, torch.zeros(4, 8))


@pytest.mark.parametrize("length, columns", [(8, 3), (64, 64), (7, 5)])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_no_rows(length, columns, dtype, device):
    # PyTorch's tensors without elements lie nowhere.
    product = bastile.compile(lambda a, b: a @ b.mT)
    options = {"dtype": dtype, "device": device, "requires_grad": True}
    a, b = torch.ones(0, length, **options), torch.ones(columns, length, **options)
    result = product(a, b)
    assert result.shape == (0, columns)
    of_a, of_b = torch.autograd.grad(result, (a, b), torch.ones_like(result))
    assert of_a.shape == a.shape and not of_b.any()


def test_strides():
    function = bastile.compile(lambda x, w: x @ w)
    x, w = (t.detach() for t in make(torch.float32, (9, 20), (8, 6)))
    for a in (x[:, 3:11], x[::2, :8], x.mT[:8].mT, x.mT[4:12, :].mT):
        torch.testing.assert_close(function(a, w), a @ w)


def test_under_torch_compile():
    function = bastile.compile(lambda x, w: F.silu(x @ w.mT))
    compiled = torch.compile(function, fullgraph=True, backend="aot_eager")
    for columns in (3, 5):
        x, w = make(torch.float32, (6, 8), (columns, 8))
        result = compiled(x, w)
        expected = torch.nn.functional.silu(x @ w.mT)
        torch.testing.assert_close(result, expected)
        gradients = torch.autograd.grad(result.sum(), (x, w))
        torch.testing.assert_close(
            gradients, torch.autograd.grad(expected.sum(), (x, w))
        )


@pytest.mark.parametrize(
    "function, error, message",
    [
        (lambda a, b: a @ b.mT, ValueError, r"@: shapes \(.*, 8\) and .* do not fit"),
        (lambda a, b: a.mT @ a + b, ValueError, r"shapes \(8, 8\) and \(3, 5\) do not"),
        (lambda a, b: a @ 2, TypeError, "takes a symbolic tensor, but got 2"),
        (lambda a, b: F.dot(a, b, (0, 1)), ValueError, "contracts dimension 0"),
        (lambda a, b: F.dot(a, b, (-1,)), ValueError, "1 dimensions, not one of each"),
        (lambda a, b: a.T @ b, AttributeError, "there is x.mT, for products"),
        (lambda a, b: (a > 0) @ b.mT, ValueError, "got a condition"),
        (
            lambda a, b: a.to("float8_e4m3fn") @ a.to("bf16").mT,
            ValueError,
            "cannot multiply .* of f8E4M3FN by .* of bf16; convert one of them",
        ),
    ],
)
def test_messages(function, error, message):
    a, b = (t.detach() for t in make(torch.float32, (4, 8), (3, 5)))
    with pytest.raises(error, match=message):
        bastile.compile(function)(a, b)


def test_sizes_that_differ_in_a_call():
    function = bastile.compile(lambda a, b: a @ b)
    a, b = (t.detach() for t in make(torch.float32, (4, 8), (8, 5)))
    torch.testing.assert_close(function(a, b), a @ b)
    with pytest.raises(ValueError, match="has size 3 in dimension 0, which is 'k'"):
        function(a, b[:3])
