# Part of Bastile, under the MIT License. See LICENSE.
"""Liger's kernels that are ops of Bastile's."""

import torch
from bastile import functional
from torch import Tensor


def rms_norm(
    x: Tensor,
    weight: Tensor | None,
    eps: float,
    offset: float = 0.0,
    casting_mode: str = "llama",
    in_place: bool = True,
    row_mode: bool | None = None,
) -> Tensor:
    return functional.rms_norm(
        x, x.shape[-1:], weight, eps, offset=offset, casting=casting_mode
    )


def fused_add_rms_norm(
    x: Tensor,
    residual: Tensor,
    weight: Tensor,
    eps: float,
    offset: float = 0.0,
    casting_mode: str = "llama",
    in_place: bool = False,
) -> tuple[Tensor, Tensor]:
    return functional.add_rms_norm(
        x, residual, weight, eps, offset=offset, casting=casting_mode
    )


def layer_norm(x: Tensor, weight: Tensor, bias: Tensor, eps: float) -> Tensor:
    return functional.layer_norm(x, x.shape[-1:], weight, bias, eps)


def rope(
    q: Tensor,
    k: Tensor,
    cos: Tensor,
    sin: Tensor,
    position_ids: Tensor | None = None,
    unsqueeze_dim: int = 1,
) -> tuple[Tensor, Tensor]:
    return functional.rope(q, k, cos, sin, unsqueeze_dim=unsqueeze_dim)


def qwen2vl_mrope(
    q: Tensor,
    k: Tensor,
    cos: Tensor,
    sin: Tensor,
    mrope_section: list[int],
    unsqueeze_dim: int = 1,
) -> tuple[Tensor, Tensor]:
    def choose(tables):
        """The columns of each section from the table whose turn it is."""
        pieces = tables.split(list(mrope_section) * 2, dim=-1)
        return torch.cat([piece[i % 3] for i, piece in enumerate(pieces)], dim=-1)

    return functional.rope(q, k, choose(cos), choose(sin), unsqueeze_dim=unsqueeze_dim)


def llama4_rope(
    q: Tensor, k: Tensor, freqs_cis: Tensor, block_size: int | None = None
) -> tuple[Tensor, Tensor]:
    angles = freqs_cis if freqs_cis.dim() == 3 else freqs_cis.unsqueeze(0)
    angles = angles[:, : q.shape[1]]
    return functional.rope(
        *(q, k, angles.real, angles.imag), interleaved=True, unsqueeze_dim=2
    )


def geglu(gate: Tensor, up: Tensor) -> Tensor:
    return functional.geglu(gate, up, approximate="tanh")


def swiglu(
    gate: Tensor, up: Tensor, gate_multiplier: float = 1.0, down_multiplier: float = 1.0
) -> Tensor:
    return functional.swiglu(
        gate, up, gate_scale=gate_multiplier, output_scale=down_multiplier
    )


def swiglu_of_both(gate_up: Tensor, in_place: bool = False) -> Tensor:
    return functional.swiglu(*gate_up.chunk(2, dim=-1))


def fused_moe(
    x: Tensor,
    gate_up_proj: Tensor,
    down_proj: Tensor,
    top_k_index: Tensor,
    top_k_weights: Tensor,
) -> Tensor:
    """The products are PyTorch's, of each expert's tokens, as in models that
    `bastile.apply` has patched."""
    experts = top_k_index.flatten().long()
    order = experts.argsort(stable=True)
    tokens = order // top_k_index.shape[1]
    counts = experts.bincount(minlength=gate_up_proj.shape[0]).tolist()

    def multiply(rows, weights):
        pieces = zip(rows.split(counts), weights)
        return torch.cat([piece @ weight.mT for piece, weight in pieces])

    gate_up = multiply(x[tokens], gate_up_proj)
    down = multiply(functional.swiglu(*gate_up.chunk(2, dim=-1)), down_proj)
    scaled = down * top_k_weights.flatten()[order].unsqueeze(-1)
    return torch.zeros_like(x).index_add(0, tokens, scaled.to(x.dtype))


FUNCTIONS = {
    "LigerFusedAddRMSNormFunction": fused_add_rms_norm,
    "LigerFusedGateUpSiLUMulFunction": swiglu_of_both,
    "LigerFusedMoEFunction": fused_moe,
    "LigerGELUMulFunction": geglu,
    "LigerLayerNormFunction": layer_norm,
    "LigerLlama4RopeFunction": llama4_rope,
    "LigerQwen2VLMRopeFunction": qwen2vl_mrope,
    "LigerRMSNormFunction": rms_norm,
    "LigerReLUSquaredFunction": functional.relu_squared,
    "LigerRopeFunction": rope,
    "LigerSiLUMulFunction": swiglu,
    "LigerSoftmaxFunction": functional.softmax,
}
