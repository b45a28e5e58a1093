# Part of Bastile, under the MIT License. See LICENSE.
"""Checks that a class of Transformers computes what its entry in the table says.

Each probe runs the original on a few numbers, on the CPU, beside the formula, and
raises ``Mismatch`` with what differs. Nothing is compiled for it.
"""

import inspect
import math
import types

import torch


class Mismatch(Exception):
    """A class or function is not what the table says; the message tells how."""


def numbers(*shape, seed=0, dtype=torch.float32):
    generator = torch.Generator("cpu").manual_seed(seed)
    return torch.randn(*shape, generator=generator, dtype=dtype, device="cpu")


def run(kind, function, *operands):
    """The result of the original; an exception that it raises becomes a `Mismatch`."""
    try:
        return function(*operands)
    except Exception as error:
        raise Mismatch(f"it is no {kind}: {error}") from None


#: The parameter of a norm's class, where it has one, that says whether there is a
#: weight, and the attribute that keeps it.
WITH_WEIGHT = "with_scale"

#: Of a norm: what its operands are multiplied by, and epsilon. Of small operands,
#: epsilon is most of what they are divided by.
_NORMS = ((1.0, 1e-3), (0.01, 1e-5), (0.01, 1e-3))


def norm(original, patch, cls):
    weight = numbers(64, seed=1).bfloat16()

    def make_and_run(x, eps, **options):
        module = cls(64, eps=eps, **options)
        if not options:
            module.weight.data = weight
        if getattr(module, patch.eps) != eps:
            raise ValueError(f"'{patch.eps}' is {getattr(module, patch.eps)}")
        return original(module, x)

    def formula(x, eps, casting, factor):
        wide = x.float()
        wide = wide * torch.rsqrt(wide.pow(2).mean(-1, keepdim=True) + eps)
        if casting == "llama":
            return factor * wide.bfloat16()
        return (factor.float() * wide).bfloat16()

    kind = f"norm with 'weight' and '{patch.eps}'"
    errors = {}
    for scale, eps in _NORMS:
        x = (scale * numbers(16, 64, seed=2)).bfloat16()
        result = run(kind, make_and_run, x, eps)
        for casting in ("llama", "gemma"):
            for offset in (0.0, 1.0):
                # Gemma's order adds the offset in float32.
                wide = weight.float() if casting == "gemma" else weight
                error = difference(result, formula(x, eps, casting, wide + offset))
                key = casting, offset
                errors[key] = max(error, errors.get(key, 0.0))
    best = min(errors, key=errors.get)
    if best != (patch.casting, patch.offset) or errors[best] > 1e-3:
        raise Mismatch(
            f"the table says casting={patch.casting!r} and offset={patch.offset}, "
            f"but its numbers are those of casting={best[0]!r} and offset={best[1]}"
            if errors[best] <= 1e-3
            else "its numbers are those of no RMS norm"
        )
    if WITH_WEIGHT in inspect.signature(cls).parameters:
        result = run(kind, lambda: make_and_run(x, eps, **{WITH_WEIGHT: False}))
        if difference(result, formula(x, eps, "gemma", torch.ones(()))) > 1e-3:
            raise Mismatch("without a weight, its numbers are those of no RMS norm")


def difference(result, expected):
    """The mean error as a share of the mean size."""
    if result.shape != expected.shape:
        return float("inf")
    error = (result.float() - expected.float()).abs().mean()
    share = (error / expected.float().abs().mean()).item()
    # No bound is exceeded by what is no number.
    return share if math.isfinite(share) else float("inf")


#: The sizes of heads and how many of their elements turn: all of them, half as in
#: GLM 4, and three quarters as in Phi 4 mini.
_TURNS = ((8, 8), (16, 8), (16, 12))


def rope(original, patch, cls=None):
    for size, turned in _TURNS:
        half = turned // 2
        columns = half if patch.kind == "half_angles" else turned
        q, k = numbers(2, 3, 5, size, seed=3), numbers(2, 1, 5, size, seed=4)
        angles = numbers(1, 5, half, seed=5).repeat(1, 1, columns // half)
        cos, sin = angles.cos(), angles.sin()
        try:
            results = run("function of q, k, cos and sin", original, q, k, cos, sin)
        except Mismatch:
            if turned < size:
                # Of these models all elements turn, and it says so.
                continue
            raise
        expected = [_rotate(x, cos, sin, patch.kind, half) for x in (q, k)]
        if any(difference(a, b) > 1e-5 for a, b in zip(results, expected)):
            raise Mismatch(
                f"it does not turn pairs of the kind {patch.kind!r}"
                + (f" where {turned} of {size} elements turn" if size > turned else "")
            )


def _rotate(x, cos, sin, kind, half):
    cos, sin = cos[:, None, :, :half], sin[:, None, :, :half]
    x, others = x[..., : 2 * half], x[..., 2 * half :]
    if kind == "neighbours":
        a, b = x[..., 0::2], x[..., 1::2]
        turned = torch.stack((a * cos - b * sin, b * cos + a * sin), -1).flatten(-2)
    else:
        a, b = x.chunk(2, -1)
        turned = torch.cat((a * cos - b * sin, b * cos + a * sin), -1)
    return torch.cat((turned, others), -1)


def mlp(original, patch, cls):
    gate, up = numbers(3, 8, seed=6), numbers(3, 8, seed=7)
    packed = torch.cat((gate, up), -1)
    parts = {
        patch.gate: lambda x: packed if patch.packed else gate,
        patch.up: lambda x: up,
        patch.down: lambda x: 3 * x,
        patch.act: torch.sigmoid,
    }
    if patch.packed:
        del parts[patch.up]
    stub = types.SimpleNamespace(**parts, config=types.SimpleNamespace())
    result = run(f"layer of {', '.join(parts)}", original, stub, gate)
    if difference(result, 3 * torch.sigmoid(gate) * up) > 1e-5:
        raise Mismatch("it does not compute down(act(gate(x)) * up(x))")


def packed_gate(original, patch, cls):
    gate, up = numbers(3, 8, seed=6), numbers(3, 8, seed=7)
    stub = types.SimpleNamespace(act_fn=torch.sigmoid)
    packed = torch.cat((gate, up), -1)
    result = run("function of gate and up", original, stub, packed)
    if difference(result, torch.sigmoid(gate) * up) > 1e-5:
        raise Mismatch("it does not compute act(gate) * up")


def gpt_oss_gate(original, patch, cls):
    gate, up = 3 * numbers(3, 8, seed=6), 3 * numbers(3, 8, seed=7)
    stub = types.SimpleNamespace(alpha=1.5, limit=2.0)
    in_turn = torch.stack((gate, up), -1).flatten(-2)
    result = run("function of gate and up", original, stub, in_turn)
    gate, up = gate.clamp(max=2.0), up.clamp(-2.0, 2.0)
    if difference(result, (up + 1) * gate * torch.sigmoid(1.5 * gate)) > 1e-5:
        raise Mismatch("it does not compute GPT-OSS's activation of gate and up")


def packed_experts(original, patch, cls):
    """The loop over experts, of which there is one."""
    weights = {
        "gate_up_proj": numbers(1, 6, 4, seed=6),
        "down_proj": numbers(1, 4, 3, seed=7),
    }
    x, share, result = _run_experts(original, cls, weights, act_fn=torch.sigmoid)
    up, down = (tensor[0] for tensor in weights.values())
    gate, up = (x @ up.T).chunk(2, -1)
    _check_experts(result, share * ((torch.sigmoid(gate) * up) @ down.T))


def gpt_oss_experts(original, patch, cls):
    """The same for GPT-OSS."""
    weights = {
        "gate_up_proj": numbers(1, 4, 6, seed=6),
        "gate_up_proj_bias": numbers(1, 6, seed=7),
        "down_proj": numbers(1, 3, 4, seed=8),
        "down_proj_bias": numbers(1, 4, seed=9),
    }
    x, share, result = _run_experts(original, cls, weights, alpha=1.5, limit=2.0)
    up, first, down, last = (tensor[0] for tensor in weights.values())
    gate_up = x @ up + first
    gate, up = gate_up[:, ::2].clamp(max=2.0), gate_up[:, 1::2].clamp(-2.0, 2.0)
    hidden = (up + 1) * gate * torch.sigmoid(1.5 * gate)
    _check_experts(result, share * (hidden @ down + last))


def _run_experts(original, cls, weights, **others):
    stub = types.SimpleNamespace(
        config=types.SimpleNamespace(_experts_implementation="eager"),
        hidden_size=4,
        num_experts=1,
        training=True,
        **weights,
        **others,
    )
    stub._apply_gate = lambda gate_up: _original_gate(cls)(stub, gate_up)
    x, share = numbers(3, 4, seed=10), numbers(3, 1, seed=11)
    chosen = torch.zeros(3, 1, dtype=torch.int64)
    kind = f"layer of {', '.join(weights)}"
    return x, share, run(kind, original, stub, x, chosen, share)


def _original_gate(cls):
    # Bastile's own may be in place, which compiles.
    return getattr(cls._apply_gate, "bastile_original", cls._apply_gate)


def _check_experts(result, expected):
    # Transformers 4 returns another rank.
    if difference(result.reshape(-1, 4), expected) > 1e-5:
        raise Mismatch("it does not compute the experts that the table says")
