"""Whether a class of Transformers computes what its entry in the table says.

Each probe runs the original on a few numbers, on the CPU, beside the formula, and
raises ``Mismatch`` with what differs. Nothing is compiled for it.
"""

import inspect
import types

import torch


class Mismatch(Exception):
    """What of a class or function is not as the table has it."""


def _numbers(*shape, seed=0, dtype=torch.float32):
    generator = torch.Generator("cpu").manual_seed(seed)
    return torch.randn(*shape, generator=generator, dtype=dtype, device="cpu")


def norm(original, patch, cls):
    weight = _numbers(64, seed=1).bfloat16()
    x = _numbers(16, 64, seed=2).bfloat16()
    try:
        module = cls(64, eps=1e-3)
        module.weight.data = weight
        if getattr(module, patch.eps) != 1e-3:
            raise Mismatch(f"'{patch.eps}' is not what it adds to the mean square")
        result = original(module, x)
    except (TypeError, AttributeError) as error:
        raise Mismatch(f"it is no norm with 'weight' and '{patch.eps}': {error}")

    def formula(casting, offset):
        wide = x.float()
        wide = wide * torch.rsqrt(wide.pow(2).mean(-1, keepdim=True) + 1e-3)
        if casting == "llama":
            return (weight + offset) * wide.bfloat16()
        return ((weight.float() + offset) * wide).bfloat16()

    errors = {
        (casting, offset): _difference(result, formula(casting, offset))
        for casting in ("llama", "gemma")
        for offset in (0.0, 1.0)
    }
    best = min(errors, key=errors.get)
    if best != (patch.casting, patch.offset) or errors[best] > 1e-3:
        raise Mismatch(
            f"the table says casting={patch.casting!r} and offset={patch.offset}, "
            f"but its numbers are those of casting={best[0]!r} and offset={best[1]}"
            if errors[best] <= 1e-3
            else "its numbers are those of no RMS norm"
        )


def _difference(result, expected):
    """The mean error as a share of the mean size."""
    if result.shape != expected.shape:
        return float("inf")
    error = (result.float() - expected.float()).abs().mean()
    return (error / expected.float().abs().mean()).item()


def rope(original, patch, cls=None):
    columns = 4 if patch.kind == "half_angles" else 8
    q, k = _numbers(2, 3, 5, 8, seed=3), _numbers(2, 1, 5, 8, seed=4)
    angles = _numbers(1, 5, 4, seed=5).repeat(1, 1, columns // 4)
    cos, sin = angles.cos(), angles.sin()
    try:
        results = original(q, k, cos, sin)
    except (TypeError, AttributeError, RuntimeError) as error:
        raise Mismatch(f"it is no function of q, k, cos and sin: {error}")
    expected = [_rotate(x, cos, sin, patch.kind) for x in (q, k)]
    if any(_difference(a, b) > 1e-5 for a, b in zip(results, expected)):
        raise Mismatch(f"it does not turn pairs of the kind {patch.kind!r}")


def _rotate(x, cos, sin, kind):
    cos, sin = cos[:, None, :, :4], sin[:, None, :, :4]
    if kind == "neighbours":
        a, b = x[..., 0::2], x[..., 1::2]
        return torch.stack((a * cos - b * sin, b * cos + a * sin), -1).flatten(-2)
    a, b = x.chunk(2, -1)
    return torch.cat((a * cos - b * sin, b * cos + a * sin), -1)


def mlp(original, patch, cls):
    gate, up = _numbers(3, 8, seed=6), _numbers(3, 8, seed=7)
    packed = torch.cat((gate, up), -1)
    parts = {
        patch.gate: lambda x: packed if patch.packed else gate,
        patch.up: lambda x: up,
        patch.down: lambda x: 3 * x,
        patch.act: torch.sigmoid,
        "config": types.SimpleNamespace(pretraining_tp=1),
    }
    try:
        result = original(types.SimpleNamespace(**parts), gate)
    except (TypeError, AttributeError) as error:
        raise Mismatch(f"it has other parts than {', '.join(parts)}: {error}")
    if _difference(result, 3 * torch.sigmoid(gate) * up) > 1e-5:
        raise Mismatch("it does not compute down(act(gate(x)) * up(x))")


def packed_gate(original, patch, cls):
    gate, up = _numbers(3, 8, seed=6), _numbers(3, 8, seed=7)
    stub = types.SimpleNamespace(act_fn=torch.sigmoid)
    result = _run_gate(original, stub, torch.cat((gate, up), -1))
    if _difference(result, torch.sigmoid(gate) * up) > 1e-5:
        raise Mismatch("it does not compute act(gate) * up")


def gpt_oss_gate(original, patch, cls):
    gate, up = 3 * _numbers(3, 8, seed=6), 3 * _numbers(3, 8, seed=7)
    stub = types.SimpleNamespace(alpha=1.5, limit=2.0)
    result = _run_gate(original, stub, torch.stack((gate, up), -1).flatten(-2))
    gate, up = gate.clamp(max=2.0), up.clamp(-2.0, 2.0)
    if _difference(result, (up + 1) * gate * torch.sigmoid(1.5 * gate)) > 1e-5:
        raise Mismatch("it does not compute GPT-OSS's activation of gate and up")


def gpt_oss_experts(original, patch, cls):
    """The experts of Transformers 4 as a whole, one of them chosen."""
    numbers = {
        "gate_up_proj": _numbers(1, 4, 6, seed=6),
        "gate_up_proj_bias": _numbers(1, 6, seed=7),
        "down_proj": _numbers(1, 3, 4, seed=8),
        "down_proj_bias": _numbers(1, 4, seed=9),
    }
    stub = types.SimpleNamespace(
        hidden_size=4, num_experts=1, training=True, alpha=1.5, limit=2.0, **numbers
    )
    x, weights = _numbers(1, 3, 4, seed=10), _numbers(3, 1, seed=11)
    try:
        result = original(stub, x, torch.zeros(3, 1, dtype=torch.int64), weights)
    except (TypeError, AttributeError, RuntimeError) as error:
        raise Mismatch(f"it does not run on {', '.join(numbers)}: {error}")
    up, first, down, last = (tensor[0] for tensor in numbers.values())
    gate_up = x @ up + first
    gate, up = gate_up[..., ::2].clamp(max=2.0), gate_up[..., 1::2].clamp(-2.0, 2.0)
    expected = ((up + 1) * gate * torch.sigmoid(1.5 * gate)) @ down + last
    if _difference(result, expected * weights) > 1e-5:
        raise Mismatch("it does not compute GPT-OSS's experts")


def _run_gate(original, stub, gate_up):
    try:
        return original(stub, gate_up)
    except (TypeError, AttributeError) as error:
        raise Mismatch(f"it is no function of gate and up: {error}")


#: What a forward may do to logits, by the names in the configuration.
_LOGIT_NAMES = {"final_logit_softcapping", "logits_scaling", "logit_scale"}


def causal_loss(original, patch, cls):
    """By names, as a model is too much to run."""
    forward = inspect.unwrap(original)
    parameters = inspect.signature(forward).parameters
    for name in ("labels", "logits_to_keep"):
        if name not in parameters:
            raise Mismatch(f"its forward has no parameter '{name}'")
    names = set(forward.__code__.co_names)
    for name in ("model", "lm_head", "loss_function", "last_hidden_state"):
        if name not in names:
            raise Mismatch(f"its forward uses no '{name}'")
    found = names & _LOGIT_NAMES
    expected = {name for name in (patch.soft_cap, patch.divisor) if name}
    if found != expected:
        raise Mismatch(
            f"the table has its logits changed by {sorted(expected) or 'nothing'}, "
            f"but its forward uses {sorted(found) or 'nothing'}"
        )
    if ("load_balancing_loss_func" in names) != patch.router:
        raise Mismatch(
            "the table says that it "
            + ("adds" if patch.router else "has no")
            + " loss of a router, which its forward does not bear out"
        )
