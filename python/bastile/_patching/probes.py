# Part of Bastile, under the MIT License. See LICENSE.
"""What the checks share that a class of Transformers computes what its entry says.

A check runs the original on a few numbers, on the CPU, beside the formula, and raises
``Mismatch`` with what differs. Nothing is compiled for it.
"""

import contextlib
import math

import torch
from torch.utils._python_dispatch import _disable_current_modes


class Mismatch(Exception):
    """A class or function is not what the table says; the message tells how."""


@contextlib.contextmanager
def apart():
    """Runs checks as if nothing was set around them: what a class computes depends
    neither on modes of the caller, such as fake tensors, nor on its autocast."""
    with _disable_current_modes(), torch.autocast("cpu", enabled=False):
        yield


def numbers(*shape, seed=0, dtype=torch.float32):
    generator = torch.Generator("cpu").manual_seed(seed)
    return torch.randn(*shape, generator=generator, dtype=dtype, device="cpu")


def run(kind, function, *operands):
    """The result of the original; an exception that it raises becomes a `Mismatch`."""
    try:
        return function(*operands)
    except Exception as error:
        raise Mismatch(f"it is no {kind}: {error}") from None


def difference(result, expected):
    """The mean error as a share of the mean size."""
    if result.shape != expected.shape:
        return float("inf")
    error = (result.float() - expected.float()).abs().mean()
    share = (error / expected.float().abs().mean()).item()
    # No bound is exceeded by what is no number.
    return share if math.isfinite(share) else float("inf")
