# Part of Bastile, under the MIT License. See LICENSE.
# RUN: %package-test %s
"""Errors of products and of their gradients, against float64, beside PyTorch's.

On a GPU, PyTorch's products are cuBLAS's. Sizes are drawn there from {1, 7, 17, 128,
2880, 4097}, on a CPU from smaller ones; BASTILE_TEST_PRODUCTS is how many products of
each type are drawn (12), BASTILE_TEST_SEED what from.
"""

import os
import random

import bastile
import pytest
import torch

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
SIZES = (1, 7, 17, 128, 2880, 4097) if DEVICE == "cuda" else (1, 7, 17, 128, 300)
BATCHES = (None, None, 0, 1, 3)
COUNT = int(os.environ.get("BASTILE_TEST_PRODUCTS", "12"))
SEED = int(os.environ.get("BASTILE_TEST_SEED", "0"))
#: Errors that one rounding of a sum more or less may make.
NOISE = {torch.float64: 2**-50, torch.float32: 2**-21}
FORMS = {
    "nt": lambda a, b: a @ b.mT,
    "nn": lambda a, b: a @ b,
    "tn": lambda a, b: a.mT @ b,
    "tt": lambda a, b: a.mT @ b.mT,
}


class Case:
    def __init__(self, dtype, seed):
        self.chance = random.Random(f"{SEED} {dtype} {seed}")
        self.dtype = dtype
        self.form = self.chance.choice(sorted(FORMS))
        self.m, self.n, self.k = (self.chance.choice(SIZES) for _ in range(3))
        batch = self.chance.choice(BATCHES)
        left = [] if batch is None else [batch]
        # A weight that all matrices of the batch share, or one for each.
        right = left if self.chance.random() < 0.5 else []
        rows = [self.m, self.k] if self.form[0] == "n" else [self.k, self.m]
        columns = [self.k, self.n] if self.form[1] == "n" else [self.n, self.k]
        generator = torch.Generator(DEVICE).manual_seed(seed)
        self.a = self.make(left + rows, generator)
        self.b = self.make(right + columns, generator)
        self.dy = self.make([*left, self.m, self.n], generator)

    def make(self, shape, generator):
        """A tensor with gaps between its rows, or that begins between two multiples
        of 16 bytes, or neither."""
        gap, offset = self.chance.choice([(0, 0), (0, 0), (8, 0), (3, 0), (0, 1)])
        whole = torch.randn(
            (*shape[:-1], shape[-1] + gap + offset), generator=generator, device=DEVICE
        )
        return whole.to(self.dtype)[..., offset : offset + shape[-1]]

    def __str__(self):
        operands = [
            f"{list(x.shape)} of strides {list(x.stride())}" for x in (self.a, self.b)
        ]
        return f"{self.form} of {' and '.join(operands)}"

    def run(self, function, dtype):
        """The product and both gradients."""
        a, b = (x.to(dtype).detach().requires_grad_() for x in (self.a, self.b))
        y = function(a, b)
        y.backward(self.dy.to(dtype))
        return y.detach(), a.grad, b.grad

    def magnitudes(self):
        """What the errors of the three results are measured by: the same of absolute
        values, where nothing cancels."""
        signed = self.a, self.b, self.dy
        self.a, self.b, self.dy = (x.abs() for x in signed)
        found = self.run(FORMS[self.form], torch.float64)
        self.a, self.b, self.dy = signed
        return found


def errors(result, exact, magnitude):
    """The error in the norm, and the largest of a row."""
    difference = (result.double() - exact).reshape(-1, exact.shape[-1])
    rows = magnitude.reshape(-1, exact.shape[-1]).norm(dim=-1)
    largest = (difference.norm(dim=-1) / rows).max()
    return (difference.norm() / rows.norm()).item(), largest.item()


@pytest.mark.long(every=17)
@pytest.mark.parametrize("seed", range(COUNT))
@pytest.mark.parametrize(
    "dtype", [torch.float32, torch.bfloat16, torch.float16, torch.float64], ids=str
)
def test_no_worse_than_torch(dtype, seed):
    if dtype == torch.float64 and DEVICE == "cuda":
        pytest.skip("float64 is computed on the host only")
    case = Case(dtype, seed)
    ours = case.run(bastile.compile(FORMS[case.form]), dtype)
    theirs = case.run(FORMS[case.form], dtype)
    if ours[0].numel() == 0:
        assert ours[0].shape == theirs[0].shape
        assert not any(gradient.any() for gradient in ours[1:])
        return
    # Of float64, that is what PyTorch computes as well: its errors count as none.
    exact = case.run(FORMS[case.form], torch.float64)
    names = "product", "gradient of a", "gradient of b"
    for name, *three in zip(names, ours, theirs, exact, case.magnitudes()):
        mine, other, expected, magnitude = three
        assert mine.dtype == other.dtype and mine.shape == other.shape
        noise = NOISE.get(dtype, NOISE[torch.float32])
        for kind, own, peer in zip(
            ("norm", "worst row"),
            errors(mine, expected, magnitude),
            errors(other, expected, magnitude),
        ):
            assert own <= 1.5 * peer + noise, f"{name} of {case}: {kind}"
