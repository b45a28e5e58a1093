# Part of Bastile, under the MIT License. See LICENSE.
# RUN: %pytest %s
"""Cross-entropy and its gradient against formulas derived by hand."""

import numpy as np
import pytest

import floats
from bounds import assert_within
from loss import Loss
from runner import run, run_backward, tensor

SETTINGS = {
    "mean": {},
    "sum": {"reduction": "sum"},
    "none": {"reduction": "none"},
    "ignore 3": {"ignore_index": 3},
    "smoothing": {"label_smoothing": 0.1},
    "z_loss": {"z_loss": 1e-2},
    "soft_cap": {"soft_cap": 2.0},
    "token_scaling": {"token_scaling": True, "z_loss": 1e-2},
    "temperature": {"temperature": 0.7},
    "everything": {
        "reduction": "sum",
        "label_smoothing": 0.2,
        "z_loss": 1e-3,
        "soft_cap": 5.0,
        "temperature": 1.5,
    },
}
RESULTS = ("loss", "lse", "correct", "invalid", "predicted")


def source(loss, shape, kind, target_type, results, weights=False):
    computed = "f64" if kind == "f64" else "f32"
    row = tensor((None, shape), kind)
    each = tensor((None, 1), computed)
    types = {
        "loss": each if loss.reduction == "none" else tensor((1,), computed),
        "lse": each,
        "correct": tensor((None, 1), "i8"),
        "invalid": tensor((1,), computed),
        "predicted": tensor((None, 1), "i32"),
    }
    targets = tensor((None, 1), target_type)
    weight = tensor((shape,), computed)
    inputs = f"%x: {row}, %t: {targets}"
    operands, operand_types = "%x, %t", f"{row}, {targets}"
    if weights:
        inputs += f", %w: {weight}"
        operands += " weights(%w)"
        operand_types += f", {weight}"
    outputs = ", ".join(types[name] for name in results)
    names = ", ".join("%" + name for name in results)
    return (
        f"func.func @f({inputs}) -> ({outputs}) {{\n"
        f"  %loss, %lse, %correct, %invalid, %predicted = tile.cross_entropy {operands} "
        f"{loss.operands()} : {operand_types}\n"
        f"  return {names} : {outputs}\n}}\n"
    )


def make(rows, length, kind, target_type="i64", ignored=-100, scale=2):
    """Logits, and targets of which every fourth is ignored."""
    x = floats.random(kind, (rows, length), length, scale)
    t = np.random.default_rng(length).integers(0, length, (rows, 1))
    t[3::4] = ignored
    return x, t.astype({"i32": np.int32, "i64": np.int64}[target_type])


def inputs(kind, x, t, weights=None):
    values = {"x": (kind, x), "t": (f"i{8 * t.itemsize}", t)}
    if weights is not None:
        values["w"] = ("f64" if kind == "f64" else "f32", weights)
    return values


def weights_of(length, kind):
    kind = "f64" if kind == "f64" else "f32"
    return np.abs(floats.random(kind, length, 5))


def check(loss, got, kind, x, t, weights=None):
    """Every result."""
    computed = "f64" if kind == "f64" else "f32"
    expected = dict(zip(RESULTS, loss.forward(x, t, weights)))
    top = 1 + np.abs(expected["lse"]).max(initial=0) + np.abs(x).max(initial=0)
    for name in ("loss", "lse"):
        size = np.full_like(expected[name], top**2)
        if name == "loss" and loss.reduction == "sum":
            size = size * len(x)
        assert_within(computed, got[name], expected[name], size, name)
    assert np.array_equal(got["correct"], expected["correct"])
    assert np.array_equal(got["invalid"], expected["invalid"])


def run_all(loss, kind, x, t, target_type="i64", weights=None, *arguments):
    computed = "f64" if kind == "f64" else "f32"
    text = source(loss, x.shape[-1], kind, target_type, RESULTS, weights is not None)
    kinds = (computed, computed, "i8", computed)
    got = run(text, inputs(kind, x, t, weights), kinds, *arguments)
    return dict(zip(RESULTS, got))


@pytest.mark.long(every=3)
@pytest.mark.parametrize("weighted", (False, True))
@pytest.mark.parametrize("name", SETTINGS)
def test_float64(name, weighted):
    """The loss and its gradient at once, without roundings on the way."""
    loss = Loss(**SETTINGS[name])
    length = 33
    x, t = make(5, length, "f64", ignored=loss.ignore_index)
    weights = weights_of(length, "f64") if weighted else None
    check(loss, run_all(loss, "f64", x, t, "i64", weights), "f64", x, t, weights)
    (got,) = run(
        source(loss, length, "f64", "i64", ["loss"], weighted),
        inputs("f64", x, t, weights),
        {"grad_x": "f64"},
        "--value-and-grad=x",
    )
    assert_within("f64", got, *loss.backward(1.0, x, t, weights), "gradient")


SMALL = [
    (name, *shape)
    for name in ("mean", "none", "everything")
    for shape in (
        ("f32", "i32", 2, 127),
        ("bf16", "i64", 33, 127),
        ("f16", "i32", 33, 3),
    )
]
# No rows, and the vocabularies of GPT-2 and Llama 3.
OTHER = [
    ("mean", "f32", "i64", 33, 0),
    ("none", "bf16", "i64", 33, 1),
    ("mean", "bf16", "i64", 50257, 3),
    ("none", "f32", "i32", 128256, 3),
    ("everything", "bf16", "i64", 128256, 3),
]


@pytest.mark.long(every=3)
@pytest.mark.parametrize("name,kind,target_type,length,rows", SMALL + OTHER)
def test_backward(name, kind, target_type, length, rows):
    """The gradient later, of the loss and of lse."""
    loss = Loss(**SETTINGS[name])
    x, t = make(rows, length, kind, target_type)
    each = (rows, 1) if name == "none" else (1,)
    dloss, dlse = floats.random("f32", each, 1), floats.random("f32", (rows, 1), 2)
    (got_loss, lse), gradients = run_backward(
        source(loss, length, kind, target_type, ["loss", "lse"]),
        inputs(kind, x, t),
        {"grad_result0": ("f32", dloss), "grad_result1": ("f32", dlse)},
        ["f32", "f32"],
        {"x": kind},
    )
    expected = loss.forward(x, t)
    for got, want in zip((got_loss, lse), expected):
        size = 10 + 2 * np.abs(want)
        assert_within("f32", got, want, size, "result")
    assert_within(
        kind, gradients["x"], *loss.backward(dloss, x, t, dlse=dlse), "gradient"
    )


@pytest.mark.parametrize("kind,length", [("f32", 33), ("bf16", 128256)])
def test_in_place(kind, length):
    """The gradient takes the memory of the logits."""
    loss = Loss()
    x, t = make(7, length, kind)
    got_loss, got = run(
        source(loss, length, kind, "i64", ["loss"]),
        inputs(kind, x, t),
        {"result0": "f32", "grad_x": kind},
        "--value-and-grad=x",
        "--in-place",
    )
    want = loss.forward(x, t)[0]
    assert_within("f32", got_loss, want, 10 + np.abs(want), "loss")
    assert_within(kind, got, *loss.backward(1.0, x, t), "gradient")


@pytest.mark.long(every=3)
@pytest.mark.parametrize("weighted", (False, True))
@pytest.mark.parametrize("reduction", ("mean", "sum", "none"))
def test_all_ignored(reduction, weighted):
    loss = Loss(reduction=reduction)
    x, t = make(3, 33, "bf16")
    t[:] = -100
    weights = weights_of(33, "bf16") if weighted else None
    got_loss, got = run(
        source(loss, 33, "bf16", "i64", ["loss"], weighted),
        inputs("bf16", x, t, weights),
        {"result0": "f32", "grad_x": "bf16"},
        "--value-and-grad=x",
    )
    assert not got_loss.any()
    assert not floats.decode("bf16", got).any()


@pytest.mark.long(every=3)
@pytest.mark.parametrize("target_type", ("i32", "i64"))
@pytest.mark.parametrize("reduction", ("mean", "sum", "none"))
def test_invalid_targets(reduction, target_type):
    """Invalid targets make the loss NaN and have no gradient; others do not change."""
    loss = Loss(reduction=reduction)
    x, t = make(6, 33, "f32", target_type)
    t[0], t[1], t[4] = 33, -1, 2**31 - 1
    if target_type == "i64":
        # Without its upper half, this target would be valid.
        t[4] = 2**32 + 5
    got = run_all(loss, "f32", x, t, target_type)
    expected = dict(zip(RESULTS, loss.forward(x, t)))
    assert np.array_equal(got["invalid"], [3])
    assert np.array_equal(got["correct"], expected["correct"])
    assert np.array_equal(np.isnan(got["loss"]), np.isnan(expected["loss"]))
    assert np.allclose(got["loss"], expected["loss"], 1e-5, equal_nan=True)
    (gradient,) = run(
        source(loss, 33, "f32", target_type, ["loss"]),
        inputs("f32", x, t),
        {"grad_x": "f32"},
        "--value-and-grad=x",
    )
    assert not gradient[[0, 1, 4]].any()
    assert_within("f32", gradient, *loss.backward(1.0, x, t), "gradient")


@pytest.mark.parametrize("kind", ("f32", "bf16"))
def test_impossible_tokens(kind):
    """A logit of -inf has no part in the loss, and a gradient of zero; as that of
    the target, it makes the loss infinite."""
    x, t = make(6, 33, kind)
    loss = Loss(reduction="none")
    x[:, 7:20] = -np.inf
    t[:] = 3
    t[4] = 8
    with np.errstate(invalid="ignore"):
        expected, lse = loss.forward(x, t)[:2]
    got_loss, got_lse, got = run(
        source(loss, 33, kind, "i64", ["loss", "lse"]),
        inputs(kind, x, t),
        {"result0": "f32", "result1": "f32", "grad_x": kind},
        "--value-and-grad=x",
    )
    assert np.isposinf(got_loss[4])
    assert np.allclose(got_loss, expected, 1e-5)
    assert np.allclose(got_lse, lse, 1e-5)
    gradient = floats.decode(kind, got)
    masked = np.delete(gradient[:, 7:20], 4, axis=0)
    assert not masked.any()
    rest = [0, 1, 2, 3, 5]
    want, size = loss.backward(1.0, x[rest], t[rest])
    assert_within(kind, got[rest], want, size, "gradient")


def test_not_a_number():
    """A NaN or +inf among the logits makes its token's loss NaN, no other's."""
    x, t = make(6, 33, "f32")
    t[:] = 3
    x[1, 5], x[4, 5], x[5, :] = np.nan, np.inf, -np.inf
    loss = Loss(reduction="none")
    got_loss, got = run(
        source(loss, 33, "f32", "i64", ["loss"]),
        inputs("f32", x, t),
        {"result0": "f32", "grad_x": "f32"},
        "--value-and-grad=x",
    )
    assert np.array_equal(
        np.isnan(got_loss[:, 0]), [False, True, False, False, True, True]
    )
    assert np.isnan(got[[1, 5]]).all()
    assert np.isnan(got[4, 5])
    assert np.isfinite(got[[0, 2, 3]]).all()
