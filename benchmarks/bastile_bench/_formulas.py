# Part of Bastile, under the MIT License. See LICENSE.
"""The ops as formulas of PyTorch: what eager PyTorch and torch.compile run, and, in
float64, what every result is compared with.

All take and return tensors by position, in the order of the op's inputs.
"""

import torch
import torch.nn.functional as F

#: Largest numbers of the 8-bit format e4m3, and columns that share a scale.
LARGEST_E4M3 = 448.0
BLOCK = 128


def rms_norm(x, weight):
    return F.rms_norm(x, weight.shape, weight, 1e-6)


def add_rms_norm(x, residual, weight):
    total = x + residual
    return rms_norm(total, weight), total


def layer_norm(x, weight, bias):
    return F.layer_norm(x, weight.shape, weight, bias, 1e-5)


def geglu(gate, up):
    """The activation of GPT-OSS."""
    gate = gate.clamp(max=7.0)
    up = up.clamp(-7.0, 7.0)
    return (up + 1) * gate * torch.sigmoid(1.702 * gate)


def geglu_interleaved(gate_up):
    return geglu(gate_up[..., ::2], gate_up[..., 1::2])


def geglu_tanh(gate, up):
    return F.gelu(gate, approximate="tanh") * up


def geglu_erf(gate, up):
    return F.gelu(gate) * up


def swiglu(gate, up):
    return F.silu(gate) * up


def reglu(gate, up):
    return F.relu(gate) * up


def gelu(x):
    return F.gelu(x)


def silu(x):
    return F.silu(x)


def relu_squared(x):
    return F.relu(x).square()


def softmax(x):
    return F.softmax(x, -1)


def log_softmax(x):
    return F.log_softmax(x, -1)


def rope(q, k, cosine, sine):
    """Heads of shape (batch, positions, heads, length); the angles have a number for
    each element, as Hugging Face's models compute them."""

    def turn(heads):
        first, second = heads.chunk(2, -1)
        return heads * cosine + torch.cat((-second, first), -1) * sine

    return turn(q), turn(k)


def cross_entropy(logits, targets):
    return F.cross_entropy(logits, targets)


cross_entropy_loss = cross_entropy


def quantize_rows(x):
    scale = x.abs().amax(-1, keepdim=True).float() / LARGEST_E4M3
    return (x.float() / scale).to(torch.float8_e4m3fn), scale


def quantize_blocks(x):
    blocks = x.unflatten(-1, (-1, BLOCK))
    scale = blocks.abs().amax(-1, keepdim=True).float() / LARGEST_E4M3
    small = (blocks.float() / scale).to(torch.float8_e4m3fn)
    return small.flatten(-2), scale.squeeze(-1)


def dequantize(small, scale):
    """The float64 numbers that 8-bit floats and their scales stand for."""
    groups = scale.shape[-1]
    wide = small.double().unflatten(-1, (groups, -1)) * scale.double().unsqueeze(-1)
    return wide.flatten(-2)
