# Part of Bastile, under the MIT License. See LICENSE.
"""The ops in PyTorch's own operations, and operands for them."""

import bastile
import torch
import torch.nn.functional as F

LENGTH = 24
#: The length of rows that are multiplied by a matrix.
COLUMNS = 7


def rotate(x, cosine, sine, interleaved=False):
    if interleaved:
        a, b = x[..., 0::2], x[..., 1::2]
        return torch.stack([a * cosine - b * sine, b * cosine + a * sine], -1).flatten(
            -2
        )
    a, b = x.chunk(2, -1)
    return torch.cat([a * cosine - b * sine, b * cosine + a * sine], -1)


def rms_norm(x, weight=None, eps=1e-6, offset=0.0, **_):
    normed = x * torch.rsqrt(x.square().mean(-1, keepdim=True) + eps)
    return normed if weight is None else normed * (weight + offset)


def gpt_oss_geglu(gate, up, alpha=1.702, limit=7.0):
    gate = gate.clamp(max=limit)
    return gate * torch.sigmoid(alpha * gate) * (up.clamp(-limit, limit) + 1)


def cross_entropy(
    logits,
    targets,
    weights=None,
    reduction="mean",
    z_loss=0.0,
    soft_cap=0.0,
    temperature=1.0,
    token_scaling=False,
    returns=None,
    **attributes,
):
    z = soft_cap * torch.tanh(logits / soft_cap) if soft_cap else logits
    z = z / temperature
    loss = F.cross_entropy(z, targets[:, 0], weights, reduction="none", **attributes)
    kept = targets[:, 0] != attributes.get("ignore_index", -100)
    lse = z.logsumexp(-1)
    loss = loss + torch.where(kept, z_loss * lse.square(), 0.0)
    if token_scaling:
        chosen = z.softmax(-1).gather(1, targets.clamp(min=0))[:, 0]
        loss = loss * chosen.detach()
    if reduction == "none":
        return loss[:, None]
    if reduction == "sum":
        return loss.sum()[None]
    share = kept.to(loss.dtype)
    if weights is not None:
        share = share * weights[targets[:, 0].clamp(min=0)]
    return (loss.sum() / share.sum())[None]


#: op: its reference, the operands' kinds, and the attributes to try it with.
CASES = [
    ("add_bias", lambda x, b: x + b, "rv", {}),
    (
        "add_rms_norm",
        lambda x, r, w, **k: (rms_norm(x + r, w, **k), x + r),
        "rrv",
        {},
    ),
    ("add_rms_norm", lambda x, r, w, **k: x + r, "rrv", {"returns": "sum"}),
    ("cross_entropy", cross_entropy, "rt", {"returns": "loss"}),
    (
        "cross_entropy",
        cross_entropy,
        "rt",
        {"returns": "loss", "reduction": "sum", "z_loss": 0.1, "soft_cap": 2.0},
    ),
    (
        "cross_entropy",
        cross_entropy,
        "rt",
        {"returns": "loss", "reduction": "none", "temperature": 0.7},
    ),
    (
        "cross_entropy",
        cross_entropy,
        "rt",
        {"returns": "loss", "label_smoothing": 0.2, "together": False},
    ),
    ("cross_entropy", cross_entropy, "rt", {"returns": "loss", "token_scaling": True}),
    ("geglu", gpt_oss_geglu, "rr", {}),
    ("geglu", lambda g, u, form: F.gelu(g) * u, "rr", {"form": "erf"}),
    (
        "geglu",
        lambda g, u, form: F.gelu(g, approximate="tanh") * u,
        "rr",
        {"form": "tanh"},
    ),
    ("gelu", F.gelu, "r", {}),
    ("gelu", lambda x, form: F.gelu(x, approximate=form), "r", {"form": "tanh"}),
    ("layer_norm", lambda x: F.layer_norm(x, (LENGTH,)), "r", {}),
    (
        "layer_norm",
        lambda x, w, b, eps: F.layer_norm(x, (LENGTH,), w, b, eps),
        "rvv",
        {"eps": 1e-3},
    ),
    ("linear", F.linear, "rm", {}),
    ("linear", F.linear, "rmb", {}),
    ("log_softmax", lambda x: F.log_softmax(x, -1), "r", {}),
    ("reglu", lambda g, u: F.relu(g) * u, "rr", {}),
    ("relu_squared", lambda x: F.relu(x).square(), "r", {}),
    ("rms_norm", rms_norm, "r", {}),
    ("rms_norm", rms_norm, "rv", {"eps": 1e-3, "offset": 1.0}),
    ("rms_norm", rms_norm, "rv", {"casting": "gemma"}),
    ("rope", rotate, "raa", {}),
    ("rope", rotate, "raa", {"interleaved": True}),
    ("silu", F.silu, "r", {}),
    ("softmax", lambda x: F.softmax(x, -1), "r", {}),
    ("swiglu", lambda g, u: F.silu(g) * u, "rr", {}),
    (
        "swiglu",
        lambda g, u, gate_scale, output_scale: (
            F.silu(gate_scale * g) * u * output_scale
        ),
        "rr",
        {"gate_scale": 0.5, "output_scale": 2.0},
    ),
]
IDS = [
    "-".join([name, *(f"{k}={v}" for k, v in attributes.items() if k != "returns")])
    for name, _, _, attributes in CASES
]


def make_operands(kinds, dtype=torch.float32, device="cpu", rows=5, seed=0):
    """r: rows, v: a vector of a row's length, a: angles, t: targets, m: a matrix, b: a
    vector beside it."""
    generator = torch.Generator().manual_seed(seed)
    shapes = {
        "r": (rows, LENGTH),
        "v": (LENGTH,),
        "a": (rows, LENGTH // 2),
        "m": (COLUMNS, LENGTH),
        "b": (COLUMNS,),
    }
    operands = []
    for kind in kinds:
        if kind == "t":
            targets = torch.randint(0, LENGTH, (rows, 1), generator=generator)
            if rows > 1:
                targets[1] = -100
            operands.append(targets.to(device))
            continue
        x = torch.randn(shapes[kind], generator=generator, dtype=torch.float64)
        # Away from the corners of piecewise formulas.
        x = torch.where(x.abs() < 0.05, 0.5, x)
        operands.append(x.to(device=device, dtype=dtype))
    return operands


def run(name, operands, attributes):
    return getattr(bastile.ops, name)(*operands, **attributes)


def of_reference(attributes):
    """Without what only says how a call is made."""
    return {k: v for k, v in attributes.items() if k not in ("returns", "together")}
