# Part of Bastile, under the MIT License. See LICENSE.
"""QuACK's functions, where they have gradients as far as the op has.

It has no kernels of activations or 8-bit floats alone: they belong to its matrix
products.
"""

import torch


def load() -> dict:
    try:
        from quack.cross_entropy import cross_entropy
        from quack.rmsnorm import _rmsnorm_fwd, layernorm_bwd, rmsnorm
        from quack.rotary import apply_rotary_emb
        from quack.softmax import softmax
    except ImportError as error:
        raise ImportError(f"pip install -U quack-kernels ({error})") from error

    def rope(q, k, cosine, sine):
        half = cosine.shape[-1] // 2
        angles = cosine[0, :, 0, :half], sine[0, :, 0, :half]
        return apply_rotary_emb(q, *angles), apply_rotary_emb(k, *angles)

    return {
        "rms_norm": lambda x, weight: rmsnorm(x, weight, eps=1e-6),
        "add_rms_norm": lambda x, residual, weight: rmsnorm(
            x, weight, residual=residual, eps=1e-6, prenorm=True
        ),
        "layer_norm": _layer_norm(_rmsnorm_fwd, layernorm_bwd),
        "softmax": softmax,
        "rope": rope,
        "cross_entropy": lambda logits, targets: cross_entropy(
            logits, targets, inplace_backward=True
        ),
        "cross_entropy_loss": cross_entropy,
    }


def _layer_norm(forward_kernel, backward_kernels):
    """Its kernels with gradients, as its `rmsnorm` has them. Its `layernorm_fwd`
    takes weights of float32 only, the kernel behind it takes all."""

    class LayerNorm(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, weight, bias):
            out = torch.empty_like(x)
            scale, mean = (
                torch.empty(x.shape[:1], dtype=torch.float32, device=x.device)
                for _ in range(2)
            )
            forward_kernel(
                x, weight, out, bias, scale, mean, eps=1e-5, is_layernorm=True
            )
            ctx.save_for_backward(x, weight, scale, mean)
            return out

        @staticmethod
        def backward(ctx, upstream):
            x, weight, scale, mean = ctx.saved_tensors
            return backward_kernels(x, weight, upstream, scale, mean)

    return LayerNorm.apply
