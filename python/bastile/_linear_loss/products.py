"""Matrix products with results in the type that sums are kept in."""

import torch


def logits_of(hidden, weight, bias, out):
    """``hidden @ weight.T + bias`` in ``out``."""
    if bias is None:
        return torch.mm(hidden, weight.t(), out=out)
    return torch.addmm(bias, hidden, weight.t(), out=out)


def multiply(a, b, out):
    """``out = a @ b``, rounded once, to the type of ``out``."""
    if out.dtype == a.dtype:
        return torch.mm(a, b, out=out)
    if out.is_cuda:
        return torch.mm(a, b, out_dtype=out.dtype, out=out)
    # PyTorch has such a product on GPUs only.
    return torch.mm(a.to(out.dtype), b.to(out.dtype), out=out)


def add_product(a, b, out):
    """``out += a @ b``, with sums in the type of ``out``."""
    if out.dtype == a.dtype:
        return torch.addmm(out, a, b, out=out)
    if out.is_cuda:
        return torch.addmm(out, a, b, out_dtype=out.dtype, out=out)
    return torch.addmm(out, a.to(out.dtype), b.to(out.dtype), out=out)


def wide_type(dtype):
    """The type that sums of elements of ``dtype`` are kept in."""
    return torch.float64 if dtype == torch.float64 else torch.float32
