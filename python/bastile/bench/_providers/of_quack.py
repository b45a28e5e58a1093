"""QuACK's functions, where they have gradients as far as the op has."""


def load() -> dict:
    try:
        from quack.cross_entropy import cross_entropy
        from quack.rmsnorm import rmsnorm
        from quack.softmax import softmax
    except ImportError as error:
        raise ImportError(f"pip install quack-kernels ({error})") from error

    def rope(q, k, cosine, sine):
        from quack.rotary import apply_rotary_emb

        half = cosine.shape[-1] // 2
        angles = cosine[0, :, 0, :half], sine[0, :, 0, :half]
        return apply_rotary_emb(q, *angles), apply_rotary_emb(k, *angles)

    return {
        "rms_norm": lambda x, weight: rmsnorm(x, weight, eps=1e-6),
        "add_rms_norm": lambda x, residual, weight: rmsnorm(
            x, weight, residual=residual, eps=1e-6, prenorm=True
        ),
        "softmax": softmax,
        "rope": rope,
        "cross_entropy": lambda logits, targets: cross_entropy(
            logits, targets, inplace_backward=True
        ),
        "cross_entropy_loss": cross_entropy,
    }
