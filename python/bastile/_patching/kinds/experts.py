# Part of Bastile, under the MIT License. See LICENSE.
"""Layers that hold the weights of all experts: `table.Experts`."""

import types

import torch

from bastile._patching import code, experts, kind, probes, table


def _find(module):
    for cls in code.layers(module):
        if not _looks_like_one(cls):
            continue
        reasons = []
        for name in (*_FORMULAS, "sorted"):
            patch = table.Experts(cls.__name__, name)
            try:
                _prove(patch, cls)
            except probes.Mismatch as problem:
                reasons.append(str(problem))
            else:
                yield patch
                break
        else:
            # What ran and gave other numbers says more than what did not run.
            reasons.sort(key=lambda reason: reason.startswith("it is no "))
            yield kind.LeftAlone(patch.ops, patch.target, reasons[0])


def _looks_like_one(cls):
    forward = code.own_forward(cls)
    if forward is None:
        return False
    named = cls.__name__.endswith("Experts") and "Shared" not in cls.__name__
    return named or hasattr(cls, "_apply_gate")


def _prove(patch, cls):
    for _ in _build(patch, types.SimpleNamespace(**{patch.cls: cls}), set()):
        pass


def _prove_packed_gate(original, patch, cls):
    gate, up = probes.numbers(3, 8, seed=6), probes.numbers(3, 8, seed=7)
    stub = types.SimpleNamespace(act_fn=torch.sigmoid)
    packed = torch.cat((gate, up), -1)
    result = probes.run("function of gate and up", original, stub, packed)
    if probes.difference(result, torch.sigmoid(gate) * up) > 1e-5:
        raise probes.Mismatch("it does not compute act(gate) * up")


def _prove_gpt_oss_gate(original, patch, cls):
    gate, up = 3 * probes.numbers(3, 8, seed=6), 3 * probes.numbers(3, 8, seed=7)
    stub = types.SimpleNamespace(alpha=1.5, limit=2.0)
    in_turn = torch.stack((gate, up), -1).flatten(-2)
    result = probes.run("function of gate and up", original, stub, in_turn)
    gate, up = gate.clamp(max=2.0), up.clamp(-2.0, 2.0)
    if probes.difference(result, (up + 1) * gate * torch.sigmoid(1.5 * gate)) > 1e-5:
        raise probes.Mismatch("it does not compute GPT-OSS's activation of gate and up")


def _prove_packed(original, patch, cls):
    """The loop over experts, of which there are two, and each token has both."""
    weights = {
        "gate_up_proj": probes.numbers(2, 6, 4, seed=6),
        "down_proj": probes.numbers(2, 4, 3, seed=7),
    }

    def expert(x, up, down):
        gate, up = (x @ up.T).chunk(2, -1)
        return (torch.sigmoid(gate) * up) @ down.T

    _check(original, cls, weights, expert, act_fn=torch.sigmoid)


def _prove_gpt_oss(original, patch, cls):
    """The same for GPT-OSS."""
    weights = {
        "gate_up_proj": probes.numbers(2, 4, 6, seed=6),
        "gate_up_proj_bias": probes.numbers(2, 6, seed=7),
        "down_proj": probes.numbers(2, 3, 4, seed=8),
        "down_proj_bias": probes.numbers(2, 4, seed=9),
    }

    def expert(x, up, first, down, last):
        gate_up = x @ up + first
        gate, up = gate_up[:, ::2].clamp(max=2.0), gate_up[:, 1::2].clamp(-2.0, 2.0)
        return ((up + 1) * gate * torch.sigmoid(1.5 * gate)) @ down + last

    _check(original, cls, weights, expert, alpha=1.5, limit=2.0)


def _prove_sorted(original, patch, cls):
    """Two experts of three tokens each."""
    first, last = probes.numbers(2, 4, 6, seed=6), probes.numbers(2, 3, 4, seed=7)
    stub = types.SimpleNamespace(
        gate_up_proj=first,
        down_proj=last,
        act_fn=torch.sigmoid,
        hidden_size=4,
        num_experts=2,
    )
    x = probes.numbers(6, 4, seed=10)
    result = probes.run("layer of gate_up_proj and down_proj", original, stub, x)
    gate, up = torch.bmm(x.view(2, 3, 4), first).chunk(2, -1)
    expected = torch.bmm(torch.sigmoid(gate) * up, last).view(6, 4)
    if probes.difference(result, expected) > 1e-5:
        raise probes.Mismatch("its numbers are those of no experts with a gate and up")


def _check(original, cls, weights, expert, **others):
    stub = types.SimpleNamespace(
        config=types.SimpleNamespace(_experts_implementation="eager"),
        hidden_size=4,
        num_experts=2,
        training=True,
        **weights,
        **others,
    )
    stub._apply_gate = lambda gate_up: _original_gate(cls)(stub, gate_up)
    x, shares = probes.numbers(3, 4, seed=10), probes.numbers(3, 2, seed=11)
    chosen = torch.tensor([[1, 0], [0, 1], [1, 0]], device="cpu")
    # Transformers 4 wants the shares of all experts, in their order.
    given = shares if hasattr(cls, "_apply_gate") else shares.gather(1, chosen)
    layer = f"layer of {', '.join(weights)}"
    result = probes.run(layer, original, stub, x, chosen, given)
    made = [expert(x, *(w[i] for w in weights.values())) for i in range(2)]
    by_choice = torch.stack(made, 1)[torch.arange(3, device="cpu")[:, None], chosen]
    expected = (shares[..., None] * by_choice).sum(1)
    # Transformers 4 returns another rank.
    if probes.difference(result.reshape(-1, 4), expected) > 1e-5:
        raise probes.Mismatch("its numbers are those of no experts with a gate and up")


def _original_gate(cls):
    # Bastile's own may be in place, which compiles.
    return kind.original_of(cls, "_apply_gate")


_FORMULAS = {
    "packed": (
        experts.packed_gate,
        _prove_packed_gate,
        experts.packed_forward,
        _prove_packed,
    ),
    "gpt_oss": (
        experts.gpt_oss_gate,
        _prove_gpt_oss_gate,
        experts.gpt_oss_forward,
        _prove_gpt_oss,
    ),
}


def _build(patch, module, ops):
    if patch.optional and not hasattr(module, patch.cls):
        return
    cls = kind.look_up(module, patch.cls)
    if patch.kind == "sorted":
        make = experts.sorted_forward
        yield kind.method(patch, cls, "forward", make, _prove_sorted)
        return
    if hasattr(cls, "_apply_gate"):
        make_gate, prove_gate, make_forward, prove_forward = _FORMULAS[patch.kind]
        yield kind.method(patch, cls, "_apply_gate", make_gate, prove_gate)
        yield kind.method(patch, cls, "forward", make_forward, prove_forward)
        return
    # Transformers 4 has the activation within the forward.
    if patch.kind != "gpt_oss":
        raise probes.Mismatch("it has no method '_apply_gate'")
    make = experts.gpt_oss_forward_4
    yield kind.method(patch, cls, "forward", make, _prove_gpt_oss)


KIND = kind.Kind(table.Experts, _find, _build)
