# Part of Bastile, under the MIT License. See LICENSE.
# RUN: %package-test %s
"""A GPU's code of attention, forward and backward, on the emulator, beside the host's
float64."""

import subprocess

import numpy as np
import pytest
import torch
from attention import make_heads
from bastile import ops
from bastile._compiler import operators
from bastile._formulas.attention import attention

ml_dtypes = pytest.importorskip("ml_dtypes")

QUERIES, KEYS, HEADS = 70, 100, 6
NAMES = "query", "key", "value"
CASES = {
    "positions": {
        "causal": True,
        "window": (40, None),
        "softcap": 4.0,
        "sinks": torch.linspace(-1, 2, HEADS),
        "return_lse": True,
    },
    "operands": {
        "key_mask": torch.arange(KEYS)[None] % 5 != 0,
        "documents": (torch.arange(QUERIES) // 20, torch.arange(KEYS) // 20),
        "bias": torch.linspace(-2, 2, KEYS).expand(QUERIES, KEYS),
        "dropout": 0.3,
        "seed": torch.tensor([3], dtype=torch.int32),
    },
    "documents": {
        "causal": True,
        "documents": (torch.arange(QUERIES) // 9 % 4, torch.arange(KEYS) // 13 % 5),
    },
}


def to_numpy(x):
    x = x.detach().contiguous()
    if x.dtype == torch.bfloat16:
        return x.view(torch.int16).numpy().view(ml_dtypes.bfloat16)
    return x.numpy()


def from_numpy(path):
    array = np.load(path)
    if array.dtype.kind == "V":
        array = array.view(ml_dtypes.bfloat16)
    return torch.from_numpy(array.astype(np.float64))


def request_of(call):
    """The request and the operands of a call of attention, which is not run."""
    found = []

    class Asked(Exception):
        pass

    def note(operands, attributes, gradients):
        request = type(attention).request(attention, operands, attributes, gradients)
        found.append((request, operands))
        raise Asked

    attention.native.clear()
    attention.request = note
    try:
        call()
    except Asked:
        return found[0]
    finally:
        del attention.request


def emulate(folder, function, given, outputs):
    """Runs a function of attention.mlir, and leaves its outputs in files."""
    run = subprocess.run(
        [
            *("tile-run", "attention.mlir", "--grad=query,key,value", "--repeat=0"),
            *("--emulate", "--target=sm_80", f"--function={function}"),
            *(f"--input={name}={name}.npy" for name in given),
            *(f"--output={name}={name}.npy" for name in outputs),
        ],
        cwd=folder,
        capture_output=True,
        text=True,
    )
    assert run.returncode == 0, run.stderr


@pytest.mark.long(every=3)
@pytest.mark.parametrize("name", CASES)
def test_forward_and_backward(name, tmp_path):
    named = CASES[name]
    heads = make_heads(QUERIES, KEYS, torch.bfloat16, batch=1, sizes=(64, 64))
    request, operands = request_of(lambda: ops.attention(*heads, **named))
    (tmp_path / "attention.mlir").write_text(request.source)
    present = {x: t for x, t in zip(attention.operands, operands) if t is not None}
    exact = [x.detach().double().requires_grad_() for x in heads]
    expected = ops.attention(*exact, **named)
    expected = expected if isinstance(expected, tuple) else (expected,)
    generator = torch.Generator().manual_seed(5)
    upstream = torch.randn(expected[0].shape, generator=generator).bfloat16()
    present["grad_result0"] = upstream.reshape(1, 2, 3, QUERIES, 64)
    present["grad_result1"] = torch.ones(1, 2, 3, QUERIES, 1)
    total = (expected[0] * upstream.double()).sum() + sum(x.sum() for x in expected[1:])
    wanted = (expected[0], *torch.autograd.grad(total, exact))
    for operand, x in present.items():
        np.save(tmp_path / f"{operand}.npy", to_numpy(x))

    for function in operators.metadata(request.on("sm_80")).values():
        inputs = [x["name"] for x in function["inputs"]]
        outputs = [x["name"] for x in function["outputs"]]
        emulate(tmp_path, function["name"], inputs, outputs)
    for output, want in zip(("result0", *map("grad_{}".format, NAMES)), wanted):
        found = from_numpy(tmp_path / f"{output}.npy").reshape(want.shape)
        assert (found - want).norm() < 5e-3 * want.norm(), output
