# Part of Bastile, under the MIT License. See LICENSE.
"""The activation of experts, in each way in which Transformers runs them.

Transformers 5 has a loop over the experts, which it calls eager, and functions that
run them all, chosen by ``config._experts_implementation``. The loop, that of
Transformers 4, and the function of grouped products are replaced (`grouped`,
`routing`); the others call the method ``_apply_gate``, so that replacing it is enough.
"""

import functools

import torch

from bastile._formulas.activations import (
    interleaved_geglu,
    interleaved_geglu_bias,
    interleaved_geglu_bias_weighted,
)
from bastile._patching import activations, grouped, routing


#: The methods that `packed_gate` has made.
_packed_gates = []


@functools.cache
def packed_gate(original, patch):
    """The method ``_apply_gate`` for rows that hold the gate and then up."""
    find = activations.finder(packed=True)

    @functools.wraps(original)
    def apply_gate(self, gate_up):
        activation = find(self.act_fn)
        if activation is None:
            return original(self, gate_up)
        return activation.call(gate_up)

    _packed_gates.append(apply_gate)
    return apply_gate


@functools.cache
def gpt_oss_gate(original, patch):
    """The method ``_apply_gate`` of GPT-OSS."""
    kernel = interleaved_geglu

    @functools.wraps(original)
    def apply_gate(self, gate_up):
        return kernel(gate_up, attributes=(self.alpha, self.limit))

    return apply_gate


@functools.cache
def packed_forward(original, patch):
    """A forward of experts whose loop over them calls the kernel."""
    find = activations.finder(packed=True)
    linear = torch.nn.functional.linear
    run_grouped = grouped.find()

    @functools.wraps(original)
    def forward(self, hidden_states, top_k_index, top_k_weights):
        if torch._C._are_functorch_transforms_active():
            # They know no backward of the routing.
            return original(self, hidden_states, top_k_index, top_k_weights)
        if run_grouped and run_grouped.is_of(self, has_bias=False):
            return run_grouped(
                self,
                functools.partial(_activate_packed, self),
                hidden_states,
                top_k_index,
                top_k_weights,
            )
        activation = find(self.act_fn)
        if activation is None or self.config._experts_implementation != "eager":
            return original(self, hidden_states, top_k_index, top_k_weights)
        # The backward makes one gradient for all experts; with an index in place of
        # `unbind` it would make one of the whole weight for each.
        first, last = self.gate_up_proj.unbind(), self.down_proj.unbind()

        def run(expert, rows):
            hidden = activation.call(linear(rows, first[expert]))
            return linear(hidden, last[expert])

        return _loop(run, self.num_experts, hidden_states, top_k_index, top_k_weights)

    return forward


@functools.cache
def sorted_forward(original, patch):
    """A forward of experts that are given their tokens in their order, as many each."""
    find = activations.finder(packed=True)

    @functools.wraps(original)
    def forward(self, hidden_states):
        activation = find(self.act_fn)
        if activation is None:
            return original(self, hidden_states)
        first, last = self.gate_up_proj, self.down_proj
        rows = hidden_states.view(first.shape[0], -1, self.hidden_size)
        hidden = activation.call(torch.bmm(rows, first))
        return torch.bmm(hidden, last).view(-1, self.hidden_size)

    return forward


@functools.cache
def gpt_oss_forward(original, patch):
    """A forward of GPT-OSS's experts, in which the kernel adds the bias as well."""
    from transformers.integrations.moe import ALL_EXPERTS_FUNCTIONS

    run_grouped = grouped.find()

    @functools.wraps(original)
    def forward(self, hidden_states, router_indices=None, routing_weights=None):
        if torch._C._are_functorch_transforms_active():
            # They know no backward of the routing.
            return original(self, hidden_states, router_indices, routing_weights)
        if run_grouped and run_grouped.is_of(self, has_bias=True):
            return run_grouped(
                self,
                functools.partial(_activate_gpt_oss, self),
                hidden_states,
                router_indices,
                routing_weights,
            )
        kind = self.config._experts_implementation
        if kind in ("grouped_mm", "batched_mm"):
            return ALL_EXPERTS_FUNCTIONS[kind](
                _BiasInGate(self), hidden_states, router_indices, routing_weights
            )
        if kind != "eager":
            return original(self, hidden_states, router_indices, routing_weights)
        return _loop(
            _gpt_oss_expert(self),
            self.num_experts,
            hidden_states,
            router_indices,
            routing_weights,
        )

    return forward


@functools.cache
def gpt_oss_forward_4(original, patch):
    """As `gpt_oss_forward`, for Transformers 4: while training, and on the CPU.

    In Transformers 4, the routing weights are those of all experts, and 0 for experts
    that were not chosen.
    """

    @functools.wraps(original)
    def forward(self, hidden_states, router_indices=None, routing_weights=None):
        if not (self.training or hidden_states.device.type == "cpu"):
            return original(self, hidden_states, router_indices, routing_weights)
        return _loop(
            _gpt_oss_expert(self),
            self.num_experts,
            hidden_states.reshape(-1, hidden_states.shape[-1]),
            router_indices,
            routing_weights.gather(1, router_indices),
        ).view(hidden_states.shape)

    return forward


def _gpt_oss_expert(experts):
    """A function that computes the rows of one expert, for `_loop`."""
    first, last = experts.gate_up_proj.unbind(), experts.down_proj.unbind()
    first_bias = experts.gate_up_proj_bias.unbind()
    last_bias = experts.down_proj_bias.unbind()
    attributes = experts.alpha, experts.limit

    def run(expert, rows):
        hidden = interleaved_geglu_bias(
            rows @ first[expert], first_bias[expert], attributes=attributes
        )
        return torch.addmm(last_bias[expert], hidden, last[expert])

    return run


def _activate_packed(experts, gate_up, plan, factors):
    activation = activations.finder(packed=True)(experts.act_fn)
    own = getattr(experts._apply_gate, "__func__", None)
    # Where somebody has replaced the method since, theirs is called.
    if activation is not None and any(own is gate for gate in _packed_gates):
        return activation.weighted(gate_up, factors)
    return (experts._apply_gate(gate_up) * factors).to(gate_up.dtype)


def _activate_gpt_oss(experts, gate_up, plan, factors):
    gate_up, bias = routing.with_bias(gate_up, experts.gate_up_proj_bias, plan)
    return interleaved_geglu_bias_weighted(
        gate_up, bias, factors, attributes=(experts.alpha, experts.limit)
    )


def _loop(run, count, hidden, indices, weights):
    """The weighted sum of what ``run(expert, rows)`` makes of each expert's rows.

    ``hidden`` has the shape [tokens, size]; ``indices`` and ``weights`` are
    [tokens, chosen]. An index of ``count`` is no expert of this process.
    """
    plan = routing.plan(indices, count)
    # The one time that the host waits for the GPU.
    ends = plan.ends.tolist()
    sizes = [end - start for start, end in zip([0, *ends], ends)]
    *pieces, others = routing.spread(hidden, plan).split(
        [*sizes, plan.order.numel() - ends[-1]]
    )
    made = [run(expert, rows) for expert, rows in enumerate(pieces) if sizes[expert]]
    if others.shape[0] or not made:
        made.append(torch.zeros_like(others))
    return routing.combine(torch.cat(made), weights, plan, hidden.dtype)


class _BiasInGate:
    """GPT-OSS's experts, as Transformers' functions see them, without the first bias.

    These functions look up the bias of each row and add it. Here the look-up only keeps
    the rows of the bias, and the kernel of the activation adds them.
    """

    def __init__(self, experts):
        self._experts = experts
        self._rows = None

    def __getattr__(self, name):
        return getattr(self._experts, name)

    @property
    def gate_up_proj_bias(self):
        return self

    def __getitem__(self, indices):
        self._rows = self._experts.gate_up_proj_bias[indices]

    def _apply_gate(self, gate_up):
        experts = self._experts
        return interleaved_geglu_bias(
            gate_up, self._rows, attributes=(experts.alpha, experts.limit)
        )
