# Part of Bastile, under the MIT License. See LICENSE.
# RUN: %package-test %s
"""What a process imports for its first call: users wait for it."""

import subprocess
import sys

import pytest

_CODE = """
import sys, torch
ahead = set(sys.modules)
import bastile
{}
imported = set(sys.modules) - ahead
assert not imported & {{"sympy", "torch._dynamo", "torch._inductor", "transformers"}}
"""


@pytest.mark.parametrize(
    "call",
    [
        "x = torch.randn(2, 8, requires_grad=True)\n"
        "bastile.ops.rms_norm(x, torch.ones(8)).sum().backward()",
        "x = torch.randn(1, 2, 4, 8, requires_grad=True)\n"
        "bastile.functional.scaled_dot_product_attention(x, x, x).sum().backward()",
        "x = torch.randn(1, 2, 4, 8)\n"
        "bastile.functional.flex_attention(x, x, x, lambda s, b, h, q, k: s + q)",
        "bastile.compile(lambda x: x + 1)(torch.ones(2, 8))",
        "bastile.nn.RMSNorm(8)(torch.randn(2, 8)).sum().backward()",
    ],
)
def test_imports(call):
    """Neither compilers of PyTorch nor what these need, a second and more."""
    subprocess.run([sys.executable, "-c", _CODE.format(call)], check=True)
