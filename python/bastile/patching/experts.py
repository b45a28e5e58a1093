"""Experts: their activation in each way in which Transformers runs them.

Transformers 5 has a loop over the experts, which it calls eager, and functions that
run them all, chosen by ``config._experts_implementation``. Those call the method
``_apply_gate``, so that replacing it is enough; the loop and Transformers 4 have the
activation within, and get a loop that calls the kernel instead.
"""

import functools

import torch
from bastile.patching import forwards, kernels


@functools.cache
def packed_gate(original, patch):
    """The method ``_apply_gate`` for rows that hold the gate and then up."""
    activations = forwards.activations(packed=True)

    @functools.wraps(original)
    def apply_gate(self, gate_up):
        kernel = activations.get(type(self.act_fn))
        return original(self, gate_up) if kernel is None else kernel(gate_up)

    return apply_gate


@functools.cache
def gpt_oss_gate(original, patch):
    """The method ``_apply_gate`` of GPT-OSS."""
    kernel = kernels.interleaved_geglu

    @functools.wraps(original)
    def apply_gate(self, gate_up):
        return kernel(gate_up, attributes=(self.alpha, self.limit))

    return apply_gate


@functools.cache
def packed_forward(original, patch):
    """A forward whose loop calls the kernel."""
    activations = forwards.activations(packed=True)
    linear = torch.nn.functional.linear

    @functools.wraps(original)
    def forward(self, hidden_states, top_k_index, top_k_weights):
        kernel = activations.get(type(self.act_fn))
        if kernel is None or self.config._experts_implementation != "eager":
            return original(self, hidden_states, top_k_index, top_k_weights)

        def run(expert, rows):
            gate_up = linear(rows, self.gate_up_proj[expert])
            return linear(kernel(gate_up), self.down_proj[expert])

        return _loop(run, self.num_experts, hidden_states, top_k_index, top_k_weights)

    return forward


@functools.cache
def gpt_oss_forward(original, patch):
    """A forward in which the kernel adds the bias as well."""
    from transformers.integrations.moe import ALL_EXPERTS_FUNCTIONS

    @functools.wraps(original)
    def forward(self, hidden_states, router_indices=None, routing_weights=None):
        kind = self.config._experts_implementation
        if kind in ("grouped_mm", "batched_mm"):
            return ALL_EXPERTS_FUNCTIONS[kind](
                _BiasInGate(self), hidden_states, router_indices, routing_weights
            )
        if kind != "eager":
            return original(self, hidden_states, router_indices, routing_weights)
        return _loop(
            functools.partial(_run_gpt_oss, self),
            self.num_experts,
            hidden_states,
            router_indices,
            routing_weights,
        )

    return forward


@functools.cache
def gpt_oss_forward_4(original, patch):
    """As `gpt_oss_forward`, for Transformers 4: while training, and on the CPU.

    There, the weights are those of all experts, 0 for the ones not chosen.
    """

    @functools.wraps(original)
    def forward(self, hidden_states, router_indices=None, routing_weights=None):
        if not (self.training or hidden_states.device.type == "cpu"):
            return original(self, hidden_states, router_indices, routing_weights)
        return _loop(
            functools.partial(_run_gpt_oss, self),
            self.num_experts,
            hidden_states.reshape(-1, hidden_states.shape[-1]),
            router_indices,
            routing_weights.gather(1, router_indices),
        ).view(hidden_states.shape)

    return forward


def _run_gpt_oss(experts, expert, rows):
    gate_up = rows @ experts.gate_up_proj[expert]
    hidden = kernels.interleaved_geglu_bias(
        gate_up,
        experts.gate_up_proj_bias[expert],
        attributes=(experts.alpha, experts.limit),
    )
    return hidden @ experts.down_proj[expert] + experts.down_proj_bias[expert]


def _loop(run, count, hidden, indices, weights):
    """The weighted sum of what ``run(expert, rows)`` makes of each expert's rows.

    ``hidden`` has the shape [tokens, size]; ``indices`` and ``weights`` are
    [tokens, chosen]. An index of ``count`` is no expert of this process.
    """
    with torch.no_grad():
        chosen = indices.flatten()
        order = chosen.argsort(stable=True)
        tokens = order // indices.shape[-1]
        sizes = chosen.new_zeros(count + 1)
        sizes.scatter_add_(0, chosen, torch.ones_like(chosen))
        # The one time that the host waits for the GPU.
        sizes = sizes.tolist()
    rows = hidden[tokens].split(sizes)
    made = [
        run(expert, rows[expert]) for expert in range(count) if sizes[expert]
    ]
    kept = sum(sizes[:count])
    if not kept:
        return torch.zeros_like(hidden)
    factors = weights.flatten()[order[:kept], None]
    weighted = (torch.cat(made) * factors).to(hidden.dtype)
    return torch.zeros_like(hidden).index_add_(0, tokens[:kept], weighted)


class _BiasInGate:
    """GPT-OSS's experts as Transformers' functions see them, without the first
    bias. They look that up for each row and add it; here the rows are kept, and
    the kernel of the activation adds them."""

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
        return kernels.interleaved_geglu_bias(
            gate_up, self._rows, attributes=(experts.alpha, experts.limit)
        )
