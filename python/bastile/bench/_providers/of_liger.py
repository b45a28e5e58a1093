"""Liger's autograd functions, as its modules call them."""

#: Its losses wait for the number of targets that count.
NOT_IN_GRAPHS = ("cross_entropy", "cross_entropy_loss")


def load() -> dict:
    try:
        from liger_kernel import ops
    except ImportError as error:
        raise ImportError(f"pip install liger-kernel ({error})") from error

    def rope(q, k, cosine, sine):
        # It takes the heads before the positions, and copies what is not a view.
        turned = ops.LigerRopeFunction.apply(
            q.transpose(1, 2), k.transpose(1, 2), cosine[:, :, 0], sine[:, :, 0]
        )
        return tuple(heads.transpose(1, 2) for heads in turned)

    def cross_entropy(logits, targets):
        return ops.LigerCrossEntropyFunction.apply(logits, targets, None)[0]

    return {
        "rms_norm": lambda x, weight: ops.LigerRMSNormFunction.apply(x, weight, 1e-6),
        "add_rms_norm": lambda x, residual, weight: (
            ops.LigerFusedAddRMSNormFunction.apply(x, residual, weight, 1e-6)
        ),
        "layer_norm": lambda x, weight, bias: ops.LigerLayerNormFunction.apply(
            x, weight, bias, 1e-5
        ),
        "geglu_tanh": ops.LigerGELUMulFunction.apply,
        "swiglu": ops.LigerSiLUMulFunction.apply,
        "relu_squared": ops.LigerReLUSquaredFunction.apply,
        "softmax": ops.LigerSoftmaxFunction.apply,
        "rope": rope,
        "cross_entropy": cross_entropy,
        "cross_entropy_loss": cross_entropy,
    }
