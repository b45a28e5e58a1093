# Part of Bastile, under the MIT License. See LICENSE.
"""Experts by grouped products, as Transformers 5 runs them: the function between the
products is replaced, with a routing that has backwards of its own."""

import functools
import inspect
import types

import torch

from bastile._patching import probes, routing

_NAME = "grouped_mm"


@functools.cache
def find():
    """The function that takes the place of Transformers' own; None where this version
    of Transformers has another one than is known here, which then stays in place."""
    from transformers.integrations import moe

    original = getattr(moe, f"{_NAME}_experts_forward", None)
    # Transformers' product, which takes PyTorch's where that can be used.
    product = getattr(moe, "_grouped_mm", None)
    if original is None or product is None:
        return None
    if tuple(inspect.signature(product).parameters) != ("input", "weight", "offs"):
        return None
    found = Grouped(moe.ALL_EXPERTS_FUNCTIONS, original, product)
    return found if all(found.agrees(has_bias) for has_bias in (False, True)) else None


class Grouped:
    """The weighted sum over experts by two products of all of them."""

    def __init__(self, functions, original, product):
        self._functions, self._original = functions, original
        self._product = product

    def is_of(self, experts, has_bias):
        """Whether Transformers would run the layer ``experts`` by the function that
        this replaces, and whether this does all that the layer needs."""
        return (
            experts.config._experts_implementation == _NAME
            and self._functions[_NAME] is self._original
            and getattr(experts, "has_bias", None) == has_bias
            and getattr(experts, "has_gate", True)
            and not getattr(experts, "has_post_expert_norm", False)
            and not _is_parallel(experts)
        )

    def __call__(self, experts, activate, hidden, indices, weights):
        """By token [T, size], in the type of ``hidden``, for ``indices`` and
        ``weights`` [T, K]. The first bias is for ``activate(gate_up, plan, factors)`` to
        add. It also multiplies each row by its factor, as the last product is linear:
        there a weight costs no pass over rows, nor does its gradient."""
        plan = routing.plan(indices, experts.num_experts)
        first, last = experts.gate_up_proj, experts.down_proj
        if not experts.is_transposed:
            first, last = first.transpose(-2, -1), last.transpose(-2, -1)
        gate_up = self._product(routing.spread(hidden, plan), first, offs=plan.ends)
        activated = activate(gate_up, plan, routing.factors(weights, plan))
        made = self._product(activated, last, offs=plan.ends)
        combined = routing.gather(made, plan, hidden.dtype)
        if not experts.has_bias:
            return combined
        return routing.add_shares(combined, experts.down_proj_bias, weights, indices)

    @torch.no_grad()
    def agrees(self, has_bias):
        """Whether the function that this replaces computes the same for a few
        numbers, and asks for nothing else of its layer."""
        experts = _a_layer(has_bias)

        def activate(gate_up, plan, factors):
            bias = experts.gate_up_proj_bias[plan.experts] if has_bias else 0
            return experts._apply_gate(gate_up + bias) * factors

        hidden, weights = probes.numbers(3, 8, seed=5), probes.numbers(3, 2, seed=6)
        indices = torch.tensor([[1, 3], [3, 0], [0, 1]], device="cpu")
        try:
            expected = self._original(experts, hidden, indices, weights)
            result = self(experts, activate, hidden, indices, weights)
        except Exception:  # whatever it needs, it is another function
            return False
        return not experts.missing and probes.difference(result, expected) < 1e-5


class _Layer(types.SimpleNamespace):
    """A layer of experts that notes the names it is asked for and does not have."""

    def __getattr__(self, name):
        self.missing.append(name)
        raise AttributeError(name)


def _a_layer(has_bias):
    first, last = probes.numbers(4, 8, 16, seed=1), probes.numbers(4, 8, 8, seed=2)
    biases = {
        "gate_up_proj_bias": probes.numbers(4, 16, seed=3),
        "down_proj_bias": probes.numbers(4, 8, seed=4),
    }
    return _Layer(
        missing=[],
        num_experts=4,
        has_bias=has_bias,
        has_gate=True,
        has_post_expert_norm=False,
        is_transposed=has_bias,
        is_concatenated=not has_bias,
        _is_expert_parallel=False,
        gate_up_proj=first if has_bias else first.transpose(-2, -1),
        down_proj=last if has_bias else last.transpose(-2, -1),
        _apply_gate=lambda gate_up: gate_up[:, :8].tanh() * gate_up[:, 8:],
        **(biases if has_bias else {}),
    )


def _is_parallel(experts):
    """Whether other processes have some of the experts."""
    known = getattr(experts, "_is_expert_parallel", None)
    if known is not None:
        return known
    # Versions that do not say so have the number of their own alone.
    names = "num_local_experts", "num_experts", "n_routed_experts"
    counts = [getattr(experts.config, name, None) for name in names]
    return experts.num_experts not in counts
