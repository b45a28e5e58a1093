# Part of Bastile, under the MIT License. See LICENSE.
# RUN: %pytest %s
"""tile.quantize and tile.dequantize, to the bit."""

import numpy as np
import pytest

import floats
import reference
from runner import function, run, run_backward, target, tensor

ROWS = 5
FORMATS = {"f8E4M3FN": "e4m3", "f8E5M2": "e5m2"}
# Row lengths and the numbers of scales of a row; None is one for all rows.
SHAPES = (
    *((length, 1) for length in (1, 7, 128, 2880, 4096, 4097, 4224, 65537)),
    *((length, length // 128) for length in (256, 4096, 4224, 66048)),
    (2880, 90),
    (384, 96),
    *((length, None) for length in (1, 33, 4096, 16384)),
)


def scale_type(groups):
    return tensor((1,) if groups is None else (None, groups), "f32")


def quantize(kind, small, length, groups, options="", attributes=""):
    """The op on %x."""
    row, result = tensor((None, length), kind), tensor((None, length), small)
    return (
        f"tile.quantize %x format({FORMATS[small]}) {options} {attributes}"
        f" : {row} -> {result}, {scale_type(groups)}"
    )


def run_quantize(kind, small, x, groups, options="", attributes="", *flags):
    length = x.shape[-1]
    outputs = [tensor((None, length), small), scale_type(groups)]
    source = (
        f"func.func @f(%x: {tensor((None, length), kind)}) ->"
        f" ({', '.join(outputs)}) {{\n"
        f"  %q, %s = {quantize(kind, small, length, groups, options, attributes)}\n"
        f"  return %q, %s : {', '.join(outputs)}\n}}\n"
    )
    return run(source, {"x": (kind, x)}, [small, "f32"], *flags)


def check(small, x, groups, result, scale, band=1, **how):
    """Whether `result` and `scale` are those of the float32 numbers `x`."""
    x = x.astype(np.float32)
    with np.errstate(invalid="ignore"):
        expected = reference.scales(x, floats.LARGEST[small], groups, band=band, **how)
        quotient = x / reference.repeat_scales(expected, x, band)
    assert np.array_equal(scale, expected, equal_nan=True)
    wanted = floats.encode(small, quotient)
    got, want = floats.decode(small, result), floats.decode(small, wanted)
    assert np.array_equal(got, want, equal_nan=True)
    # The sign of a zero, too.
    finite = np.isfinite(want)
    assert np.array_equal(result[finite], wanted[finite])


@pytest.mark.parametrize("small", floats.SMALL)
@pytest.mark.parametrize("power_of_two", (False, True))
@pytest.mark.parametrize("shape", SHAPES)
def test_quantize(shape, power_of_two, small):
    length, groups = shape
    x = floats.random("bf16", (ROWS, length), 1)
    options = "power_of_two" if power_of_two else ""
    result, scale = run_quantize("bf16", small, x, groups, options)
    check(small, x, groups, result, scale, power_of_two=power_of_two)
    # The largest number is the format's largest, or at least half of it.
    largest = np.abs(floats.decode(small, result)).max()
    assert floats.LARGEST[small] / (2 if power_of_two else 1) <= largest


# Row lengths, numbers of scales of a row, rows in a band, and rows: bands that
# end short, a single one, and bands of no power of two.
BANDS = (
    (128, 1, 128, 300),
    (256, 2, 128, 128),
    (4096, 32, 128, 129),
    (4224, 33, 128, 5),
    (2880, 90, 64, 200),
    (384, 1, 128, 257),
    (320, 10, 6, 20),
    (33, 1, 128, 131),
)


@pytest.mark.parametrize("small", floats.SMALL)
@pytest.mark.parametrize("power_of_two", (False, True))
@pytest.mark.parametrize("shape", BANDS)
def test_bands(shape, power_of_two, small):
    """Blocks of columns of several rows, and back."""
    length, groups, band, rows = shape
    x = floats.random("bf16", (rows, length), 1)
    x[: band // 2] = 0
    options = ("power_of_two " if power_of_two else "") + f"band({band})"
    result, scale = run_quantize("bf16", small, x, groups, options)
    check(small, x, groups, result, scale, band, power_of_two=power_of_two)

    codes, row = floats.decode(small, result), tensor((None, length), "bf16")
    types = [tensor((None, length), small), scale_type(groups)]
    source = function(
        [("x", types[0]), ("s", types[1])],
        [row],
        [f"tile.dequantize %x, %s band({band}) : {', '.join(types)} -> {row}"],
    )
    values = {"x": (small, codes), "s": ("f32", scale)}
    (got,) = run(source, values, ["bf16"])
    product = codes.astype(np.float32) * reference.repeat_scales(scale, x, band)
    expected = floats.round_to("bf16", product)
    assert np.array_equal(floats.decode("bf16", got), expected)


def test_no_bands():
    x = np.zeros((0, 256), np.float32)
    result, scale = run_quantize("bf16", "f8E4M3FN", x, 2, "band(128)")
    assert result.shape == (0, 256) and scale.shape == (0, 2)


BAND_SCHEDULES = (
    ("rows=4", "rows=2,columns=384,vector=8", "persistent=2")
    if target() == "host"
    else ("rows=32,threads=64", "threads=256,columns=256", "persistent=2")
)


@pytest.mark.parametrize("schedule", BAND_SCHEDULES)
def test_schedules_of_bands(schedule):
    x = floats.random("bf16", (200, 4224), 1)
    result, scale = run_quantize(
        "bf16", "f8E4M3FN", x, 33, "band(128)", "", f"--schedule={schedule}"
    )
    check("f8E4M3FN", x, 33, result, scale, band=128)


def test_rows_with_gaps_in_bands():
    x = floats.random("bf16", (200, 256), 1)
    result, scale = run_quantize("bf16", "f8E4M3FN", x, 2, "band(128)", "", "--gap=3")
    check("f8E4M3FN", x, 2, result, scale, band=128)


def test_gradient_of_scales_of_bands():
    """The sum of a block; of integers, exactly."""
    random = np.random.default_rng(1)
    x, dy = random.integers(-4, 5, (2, 300, 256)).astype(np.float64)
    scale = random.integers(1, 9, (3, 2)).astype(np.float64)
    types = [tensor((None, 256), "f8E4M3FN"), scale_type(2)]
    row = tensor((None, 256), "f32")
    source = function(
        [("x", types[0]), ("s", types[1])],
        [row],
        [f"tile.dequantize %x, %s band(128) : {', '.join(types)} -> {row}"],
    )
    (result,), gradients = run_backward(
        source,
        {"x": ("f8E4M3FN", x), "s": ("f32", scale)},
        {"grad_result0": ("f32", dy)},
        ["f32"],
        {"s": "f32"},
    )
    assert np.array_equal(result, x * reference.repeat_scales(scale, x, 128))
    blocks = (x * dy).reshape(300, 2, 128).sum(axis=-1)
    expected = np.add.reduceat(blocks, (0, 128, 256), axis=0)
    assert np.array_equal(gradients["s"], expected)


def test_special_values_in_bands():
    x = floats.random("f32", (300, 256), 1)
    x[:128, :128] = 0
    x[0, 200] = np.nan
    x[255, 100] = -np.inf
    result, scale = run_quantize("f32", "f8E4M3FN", x, 2, "band(128)")
    assert np.array_equal(np.isnan(scale), [[0, 1], [0, 0], [0, 0]])
    assert np.array_equal(np.isinf(scale), [[0, 0], [1, 0], [0, 0]])
    assert scale[0, 0] == 1 and not floats.decode("f8E4M3FN", result[:128, :128]).any()
    assert np.all(np.isnan(floats.decode("f8E4M3FN", result[128:256, :128])))
    check("f8E4M3FN", x[256:], 2, result[256:], scale[2:], band=128)


@pytest.mark.parametrize("kind", ("f16", "f32"))
def test_operands(kind):
    x = floats.random(kind, (ROWS, 4096), 1, scale=3)
    result, scale = run_quantize(kind, "f8E4M3FN", x, 32)
    check("f8E4M3FN", x, 32, result, scale)


@pytest.mark.parametrize("length", (130, 4096))
def test_float64(length):
    if target() != "host":
        pytest.skip("float64 is computed on the host only")
    row, result = tensor((None, length), "f64"), tensor((None, length), "f8E5M2")
    scale = tensor((None, 1), "f64")
    source = (
        f"func.func @f(%x: {row}) -> ({result}, {scale}) {{\n"
        f"  %q, %s = tile.quantize %x format(e5m2) power_of_two : {row} ->"
        f" {result}, {scale}\n"
        f"  return %q, %s : {result}, {scale}\n}}\n"
    )
    x = floats.random("f64", (ROWS, length), 1)
    got, scales = run(source, {"x": ("f64", x)}, ["f8E5M2", "f64"])
    amax = np.abs(x).max(axis=-1, keepdims=True)
    expected = 2 ** np.ceil(np.log2(amax / floats.LARGEST["f8E5M2"]))
    assert np.array_equal(scales, expected)
    assert np.array_equal(got, floats.encode("f8E5M2", x / expected))


# A tile of whole rows, of parts of them, and of a single group.
HOST = ("rows=2,columns=4224", "columns=384,vector=8", "columns=128,vector=4")
GPU = (
    "rows=4,threads=128,vector=4,columns=512",
    "threads=32,vector=8,columns=512",
    "cluster=2,threads=64,vector=8,columns=5120",
    "rows=8,threads=128,vector=8,columns=128",
)


@pytest.mark.parametrize("schedule", HOST if target() == "host" else GPU)
@pytest.mark.parametrize("groups", (1, 33, None))
def test_schedules(groups, schedule):
    if "cluster" in schedule and groups != 1:
        pytest.skip("no reduction needs whole rows")
    x = floats.random("bf16", (ROWS, 4224), 1)
    result, scale = run_quantize(
        "bf16", "f8E4M3FN", x, groups, "", "", f"--schedule={schedule}"
    )
    check("f8E4M3FN", x, groups, result, scale)


@pytest.mark.parametrize("groups", (1, 4))
@pytest.mark.parametrize("power_of_two", (False, True))
@pytest.mark.parametrize("small", floats.SMALL)
def test_special_values(small, power_of_two, groups):
    x = floats.random("f32", (8, 512), 1)
    x[0] = 0
    x[1, 200] = np.nan
    x[2, 300] = np.inf
    x[3, 5] = -np.inf
    x[4] = -0.0
    # Neither the scale nor its reciprocal may vanish below 2^-126.
    x[5] *= 2.0**-124
    x[6] *= 2.0**-140
    # The largest numbers, and a scale that is a power of two as it is.
    x[7, :256] = 3.0e38
    x[7, 256:] = floats.LARGEST[small] * 4
    x = floats.round_to("f32", x)
    options = "power_of_two" if power_of_two else ""
    result, scale = run_quantize("f32", small, x, groups, options)
    # All numbers that share an infinite scale become NaN, where a division would make
    # them zeros.
    spread = reference.repeat_scales(scale, x)
    assert np.all(np.isnan(floats.decode(small, result[~np.isfinite(spread)])))
    assert np.isinf(scale[2]).any() and np.isnan(scale[1]).any()
    keep = [0, 4, 5, 6, 7]
    check(
        small,
        x[keep],
        groups,
        result[keep],
        scale[keep],
        power_of_two=power_of_two,
    )
    assert np.all(scale[0] == 1) and np.all(floats.decode(small, result[0]) == 0)
    assert np.all(result[4] == 128)


def test_least_maximum():
    x = floats.random("bf16", (ROWS, 256), 1)
    x[2] = 0
    x[3] *= 2.0**-30
    result, scale = run_quantize("bf16", "f8E4M3FN", x, 2, "", "{min_amax = 1.0e-4}")
    check("f8E4M3FN", x, 2, result, scale, least=1e-4)
    assert np.all(scale[2:4] == np.float32(1e-4) / np.float32(448))


@pytest.mark.parametrize("groups", (1, 32, None))
@pytest.mark.parametrize("op", ("rms_norm", "add_rms_norm", "geglu", "swiglu"))
@pytest.mark.parametrize("band", (1, 4))
def test_fused_with_its_input(op, groups, band):
    """Quantization reads the rounded result of the op before it."""
    length = 4096
    if band > 1 and groups is None:
        pytest.skip("one scale for all rows")
    row, vector = tensor((None, length), "bf16"), tensor((length,), "bf16")
    calls = {
        "rms_norm": f"%y = tile.rms_norm %a, %w : {row}, {vector}",
        "add_rms_norm": f"%y, %z = tile.add_rms_norm %a, %b, %w : {row}, {vector}",
        "geglu": f"%y = tile.geglu %a, %b : {row}",
        "swiglu": f"%y = tile.swiglu %a, %b : {row}",
    }
    outputs = [tensor((None, length), "f8E4M3FN"), scale_type(groups), row]
    options = f"band({band})" if band > 1 else ""
    call = quantize("bf16", "f8E4M3FN", length, groups, options)
    call = call.replace("%x", "%y")
    source = (
        f"func.func @f(%a: {row}, %b: {row}, %w: {vector}) ->"
        f" ({', '.join(outputs)}) {{\n  {calls[op]}\n  %q, %s = {call}\n"
        f"  return %q, %s, %y : {', '.join(outputs)}\n}}\n"
    )
    values = {
        name: ("bf16", floats.random("bf16", shape, seed))
        for seed, (name, shape) in enumerate(
            {"a": (ROWS, length), "b": (ROWS, length), "w": (length,)}.items()
        )
    }
    result, scale, y = run(source, values, ["f8E4M3FN", "f32", "bf16"])
    check("f8E4M3FN", floats.decode("bf16", y), groups, result, scale, band)


@pytest.mark.parametrize("small", floats.SMALL)
@pytest.mark.parametrize("shape", SHAPES)
def test_dequantize(shape, small):
    length, groups = shape
    codes = np.random.default_rng(1).integers(0, 256, (ROWS, length))
    x = floats.decode(small, codes)
    scales = (1,) if groups is None else (ROWS, groups)
    scale = np.abs(floats.random("f32", scales, 2)).astype(np.float32)
    types = [tensor((None, length), small), scale_type(groups)]
    row = tensor((None, length), "bf16")
    source = function(
        [("x", types[0]), ("s", types[1])],
        [row],
        [f"tile.dequantize %x, %s : {', '.join(types)} -> {row}"],
    )
    values = {"x": (small, x), "s": ("f32", scale)}
    (result,) = run(source, values, ["bf16"])
    with np.errstate(invalid="ignore"):
        product = x.astype(np.float32) * reference.repeat_scales(scale, x)
    got = floats.decode("bf16", result)
    assert np.array_equal(got, floats.round_to("bf16", product), equal_nan=True)


@pytest.mark.parametrize("rows", (1, 128, 300))
def test_quantized_and_back(rows):
    """The rounding of training in 8 bits: one function has both ops."""
    length, band = 256, 128
    x = floats.random("bf16", (rows, length), 1)
    row, small = tensor((None, length), "bf16"), tensor((None, length), "f8E4M3FN")
    scales = scale_type(2)
    source = (
        f"func.func @f(%x: {row}) -> {row} {{\n"
        f"  %q, %s = tile.quantize %x band({band}) : {row} -> {small}, {scales}\n"
        f"  %y = tile.dequantize %q, %s band({band}) : {small}, {scales} -> {row}\n"
        f"  return %y : {row}\n}}\n"
    )
    (result,) = run(source, {"x": ("bf16", x)}, ["bf16"])
    x = x.astype(np.float32)
    scale = reference.scales(x, floats.LARGEST["f8E4M3FN"], 2, band=band)
    scale = reference.repeat_scales(scale, x, band)
    codes = floats.decode("f8E4M3FN", floats.encode("f8E4M3FN", x / scale))
    expected = floats.round_to("bf16", codes.astype(np.float32) * scale)
    assert np.array_equal(floats.decode("bf16", result), expected)


def test_rows_of_a_view():
    """Several leading dimensions, as where rows are cut into blocks of 128."""
    x = floats.random("bf16", (3, 32, 128), 1)
    row, result = tensor((None, 32, 128), "bf16"), tensor((None, 32, 128), "f8E4M3FN")
    scale = tensor((None, 32, 1), "f32")
    source = (
        f"func.func @f(%x: {row}) -> ({result}, {scale}) {{\n"
        f"  %q, %s = tile.quantize %x : {row} -> {result}, {scale}\n"
        f"  return %q, %s : {result}, {scale}\n}}\n"
    )
    got, scales = run(source, {"x": ("bf16", x)}, ["f8E4M3FN", "f32"])
    expected = reference.scales(x, 448)
    assert np.array_equal(scales, expected)
    quotient = x.astype(np.float32) / expected
    assert np.array_equal(got, floats.encode("f8E4M3FN", quotient))
