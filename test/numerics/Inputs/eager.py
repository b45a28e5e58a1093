# Part of Bastile, under the MIT License. See LICENSE.
"""The ops of cases.py as models write them in PyTorch's eager mode."""

import torch
from torch.nn import functional as F


def _computed(x):
    """The type in which models compute norms."""
    return x if x.dtype == torch.float64 else x.float()


def gpt_oss(gate, up, alpha=1.702, limit=7.0):
    if limit is not None:
        gate = gate.clamp(max=limit)
        up = up.clamp(-limit, limit)
    return (up + 1) * (gate * torch.sigmoid(gate * alpha))


def gelu_tanh(x):
    return F.gelu(x, approximate="tanh")


def llama_norm(x, weight, eps=1e-6):
    """LlamaRMSNorm of Hugging Face's Transformers."""
    hidden = _computed(x)
    variance = hidden.pow(2).mean(-1, keepdim=True)
    hidden = hidden * torch.rsqrt(variance + eps)
    return weight * hidden.to(x.dtype)


def gemma_norm(x, weight, eps=1e-5):
    """GemmaRMSNorm of Hugging Face's Transformers."""
    hidden = _computed(x)
    hidden = hidden * torch.rsqrt(hidden.pow(2).mean(-1, keepdim=True) + eps)
    return (hidden * (1.0 + _computed(weight))).type_as(x)


def layer_norm(x, weight=None, bias=None, eps=1e-5):
    return F.layer_norm(x, x.shape[-1:], weight, bias, eps)


def add_norm(norm):
    def apply(x, residual, weight):
        total = x + residual
        return norm(total, weight), total

    return apply


def halves(gate):
    return lambda x, bias=0: gate(*(x + bias).chunk(2, dim=-1))


def interleaved(gate):
    def apply(x, bias=0):
        biased = x + bias
        return gate(biased[..., ::2], biased[..., 1::2])

    return apply


def rope(x, cosine, sine):
    """apply_rotary_pos_emb of Hugging Face's Transformers, for one tensor."""
    low, high = x.chunk(2, dim=-1)
    return x * cosine + torch.cat((-high, low), dim=-1) * sine


FORMULAS = {
    "geglu": gpt_oss,
    "geglu, narrow": lambda gate, up: gpt_oss(gate, up, 1.25, 1.5),
    "geglu, unlimited": lambda gate, up: gpt_oss(gate, up, limit=None),
    "geglu, tanh": lambda gate, up: gelu_tanh(gate) * up,
    "geglu, erf": lambda gate, up: F.gelu(gate) * up,
    "swiglu": lambda gate, up: F.silu(gate) * up,
    "swiglu, scaled": lambda gate, up: F.silu(gate * 0.75) * up * 1.375,
    "reglu": lambda gate, up: F.relu(gate) * up,
    "relu_squared": lambda x: F.relu(x).square(),
    "gelu": lambda x: F.gelu(x),
    "gelu, tanh": gelu_tanh,
    "silu": lambda x: F.silu(x),
    "add_bias": lambda x, bias: x + bias,
    "add_bias, f32 bias": lambda x, bias: (x + bias).to(x.dtype),
    "swiglu, halves": halves(lambda gate, up: F.silu(gate) * up),
    "geglu, interleaved": interleaved(gpt_oss),
    "geglu, interleaved, bias": interleaved(gpt_oss),
    "geglu, tanh, halves, bias": halves(lambda gate, up: gelu_tanh(gate) * up),
    "rms_norm": llama_norm,
    "rms_norm, gemma": gemma_norm,
    "rms_norm, bias": lambda x, weight, bias: (
        F.rms_norm(x, x.shape[-1:], weight, 1e-6) + bias
    ),
    "rms_norm, plain": lambda x: F.rms_norm(x, x.shape[-1:], None, 1e-3),
    "rms_norm, f32 weight": lambda x, weight: llama_norm(x, weight).to(x.dtype),
    "add_rms_norm": add_norm(llama_norm),
    "add_rms_norm, gemma": add_norm(gemma_norm),
    "layer_norm": layer_norm,
    "layer_norm, no bias": lambda x, weight: layer_norm(x, weight, eps=1e-3),
    "layer_norm, plain": layer_norm,
    "softmax": lambda x: F.softmax(x, dim=-1),
    "log_softmax": lambda x: F.log_softmax(x, dim=-1),
}


def differentiate(formula, inputs, cotangents):
    """The results of a formula and the gradients of its inputs, tensors given
    by name."""
    leaves = {name: x.detach().requires_grad_() for name, x in inputs.items()}
    results = formula(**leaves)
    results = results if isinstance(results, tuple) else (results,)
    gradients = torch.autograd.grad(results, list(leaves.values()), cotangents)
    return results, dict(zip(leaves, gradients))
