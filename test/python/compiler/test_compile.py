# Part of Bastile, under the MIT License. See LICENSE.
# RUN: %package-test %s
"""bastile.compile on NumPy arrays: shapes, types, forms of an op, mistakes."""

import json
import pathlib
import pickle
import warnings

import bastile
import numpy as np
import pytest
from bastile import _bastile

EXAMPLES = pathlib.Path(__file__).resolve().parents[3] / "examples"


def random(*shape, dtype=np.float32, seed=0):
    return np.random.default_rng(seed).standard_normal(shape).astype(dtype)


def rms_norm(x, weight, eps=1e-6):
    x = x.astype(np.float64)
    return x / np.sqrt((x * x).mean(-1, keepdims=True) + eps) * weight


@pytest.fixture
def norm():
    return bastile.compile(
        "rms_norm", {"input": (8, 64), "weight": (64,)}, dtype="f32", eps=1e-5
    )


def test_follows_the_formula(norm):
    x, weight = random(8, 64), random(64, seed=1)
    np.testing.assert_allclose(norm(x, weight), rms_norm(x, weight, 1e-5), rtol=1e-5)


def test_a_new_number_of_rows_compiles_nothing(norm):
    weight = random(64)
    norm(random(8, 64), weight)
    before = bastile.compilations()
    for rows in (1, 9, 1000, 0):
        x = random(rows, 64)
        assert norm(x, weight).shape == (rows, 64)
    assert bastile.compilations() == before


def test_takes_strides(norm):
    wide = random(8, 128)
    x, weight = wide[::2, 3:67], random(64, seed=1)
    np.testing.assert_allclose(norm(x, weight), rms_norm(x, weight, 1e-5), rtol=1e-5)


def test_takes_operands_by_name(norm):
    x, weight = random(8, 64), random(64, seed=1)
    np.testing.assert_array_equal(norm(x, weight=weight), norm(x, weight))


def test_bfloat16():
    ml_dtypes = pytest.importorskip("ml_dtypes")
    swiglu = bastile.compile("swiglu", (4, 32), dtype="bfloat16")
    gate = random(4, 32).astype(ml_dtypes.bfloat16)
    result = swiglu(gate, gate)
    assert result.dtype == gate.dtype
    wide = gate.astype(np.float64)
    expected = wide * wide / (1 + np.exp(-wide))
    np.testing.assert_allclose(result.astype(np.float64), expected, rtol=2**-8)


def test_several_results():
    shapes = {"input": (8, 64), "residual": (8, 64), "weight": (64,)}
    kernel = bastile.compile("add_rms_norm", shapes, dtype="f32")
    x, weight = random(8, 64), random(64, seed=1)
    result, total = kernel(x, x, weight)
    np.testing.assert_array_equal(total, 2 * x)
    np.testing.assert_allclose(result, rms_norm(2 * x, weight), rtol=1e-5)


def test_a_module_from_a_file_or_as_text():
    path = EXAMPLES / "rms_norm.mlir"
    for op in (path, str(path), path.read_text()):
        kernel = bastile.compile(op, target="host")
        assert kernel.operands == ("x", "weight")


def test_says_what_it_is(norm):
    assert repr(norm) == "<bastile.Kernel rms_norm(input: ?x64xf32, weight: 64xf32)>"
    with_gradients = bastile.compile(
        "swiglu",
        (2, 8, 64),
        dtype="bf16",
        grad="gate",
        schedule="threads = 32",
        target="sm_90",
    )
    assert repr(with_gradients) == (
        "<bastile.Kernel swiglu(gate: ?x?x64xbf16, up: ?x?x64xbf16) with gradients "
        "of gate, schedule threads = 32 for sm_90>"
    )
    assert "threads = 32" in str(with_gradients.schedule)
    backward = with_gradients.metadata["functions"][0]["backward"]
    assert list(backward["gradients"]) == ["gate"]


def test_shows_every_level(norm):
    assert "tile.rms_norm" in norm.mlir()
    assert "math.rsqrt" in norm.mlir("decomposed")
    assert ".visible .entry" in norm.ptx
    assert "bytes" in norm.explain(rows=100)
    with pytest.raises(ValueError, match="unknown level 'fuse', expected one of"):
        norm.mlir("fuse")


def test_survives_pickling(norm):
    copy = pickle.loads(pickle.dumps(norm))
    x, weight = random(8, 64), random(64, seed=1)
    np.testing.assert_array_equal(copy(x, weight), norm(x, weight))


@pytest.mark.parametrize(
    "call, exception, message",
    [
        (lambda k, x, w: k(x), TypeError, "takes 2 tensors, but got 1"),
        (lambda k, x, w: k(), TypeError, "takes input, weight"),
        (lambda k, x, w: k(x, wieght=w), TypeError, "no operand 'wieght'"),
        (lambda k, x, w: k(x, input=w), TypeError, "'input' is given twice"),
        (
            lambda k, x, w: k(x, w.astype(np.float64)),
            ValueError,
            "'weight' has type f64, expected f32",
        ),
        (
            lambda k, x, w: k(x[:, :63], w),
            ValueError,
            r"'input' has shape \[8, 63\], expected \[\?, 64\]",
        ),
        (lambda k, x, w: k(x, 3.0), TypeError, "got an object of type builtins.float"),
    ],
)
def test_mistakes_in_a_call(norm, call, exception, message):
    with pytest.raises(exception, match=message):
        call(norm, random(8, 64), random(64))


@pytest.mark.parametrize(
    "arguments, message",
    [
        (("rms_nrom", (8, 64)), "no op 'rms_nrom'; it has .*rms_norm"),
        (("swiglu", (8, 64), "complex64"), "no kernel takes .*complex64"),
        (("swiglu", {"gate": (8, 64), "up": (8, 63)}), "swiglu.*8|64.*63"),
        (("rms_norm", {"input": (8, 64), "w": (64,)}), "no operand 'w'"),
        (("dequantize", (8, 64), "e4m3"), "'scale' does not follow"),
    ],
)
def test_mistakes_in_compiling(arguments, message):
    op, shape, *dtype = arguments
    with pytest.raises((ValueError, TypeError), match=message):
        bastile.compile(op, shape, dtype=dtype[0] if dtype else "f32")


def test_rejects_attributes_that_are_not_the_ops():
    with pytest.raises(TypeError, match="no attribute 'epsilon'; it has .*eps"):
        bastile.compile("rms_norm", (8, 64), epsilon=1e-5)
    with pytest.raises(ValueError, match="'form' must be one of .*tanh"):
        bastile.compile("geglu", (8, 64), form="sigmoid")
    with pytest.raises(ValueError, match="eps must not be negative"):
        bastile.compile("rms_norm", (8, 64), dtype="bf16", eps=-1.0)


def test_points_into_a_source_that_is_wrong():
    source = "func.func @f(%x: tensor<?x4xf32>) -> tensor<?x4xf32> { return %y }"
    with pytest.raises(bastile.CompileError, match="source:1:.*\n.*return %y"):
        bastile.compile(source)


def test_a_kernel_for_a_gpu_needs_tensors_there():
    kernel = bastile.compile("silu", (8, 64), dtype="f32", target="sm_90")
    with pytest.raises(ValueError, match="compiled for 'sm_90', but its tensors"):
        kernel(random(8, 64))


IDENTITY = """func.func @{}(%x: tensor<?x8xf32>) -> tensor<?x8xf32> {{
  return %x : tensor<?x8xf32>
}}
"""


@pytest.mark.parametrize("given", [{"shape": (4, 8)}, {"dtype": "f32"}])
def test_a_module_says_its_shapes_and_types_itself(given):
    with pytest.raises(TypeError, match="leave out shape and dtype"):
        bastile.compile(IDENTITY.format("one"), **given)


def test_a_module_of_two_functions_is_refused():
    source = IDENTITY.format("one") + IDENTITY.format("other")
    with pytest.raises(ValueError, match="has 2 functions, one, other"):
        bastile.compile(source)
    with pytest.raises(ValueError, match="has 0 functions, none"):
        bastile.compile("module { } // without a func.func")


def test_what_the_passes_refuse_is_raised_ahead_of_a_call():
    with pytest.raises(bastile.CompileError, match="has an argument called 'y'"):
        bastile.compile(IDENTITY.format("one"), grad="y")


def test_a_module_says_what_its_functions_take():
    source = """func.func @f(%x: tensor<?x1x8xbf16>, %i: tensor<8xi64> {tile.name = "index"})
        -> (tensor<?x1x8xbf16>, tensor<8xi64>) {
      return %x, %i : tensor<?x1x8xbf16>, tensor<8xi64>
    }"""
    described = json.loads(_bastile.describe_source(source))
    rows, index = {"type": "bf16", "shape": [None, 1, 8]}, {"type": "i64", "shape": [8]}
    assert described["functions"] == [
        {
            "name": "f",
            "inputs": [{"name": "x", **rows}, {"name": "index", **index}],
            "outputs": [{"name": "result0", **rows}, {"name": "result1", **index}],
        }
    ]
    assert not described["is_scheduled"]
    with pytest.raises(bastile.CompileError, match="here:1:"):
        _bastile.describe_source("func.func @f(", "here")


def test_lost_gradients_are_told_once():
    torch = pytest.importorskip("torch")
    x = torch.ones(4, 8, requires_grad=True)
    kernel = bastile.compile(lambda x, y: x * y, (4, 8), dtype="f32", grad="x")
    with pytest.warns(RuntimeWarning, match="without gradients of y, which"):
        kernel(x, x)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        kernel(x, x)
        kernel = bastile.compile(lambda x, y: x * y, (4, 8), dtype="f32")
        with torch.no_grad():
            kernel(x, x)
