"""What a forward returns that makes no logits."""

import dataclasses
from collections.abc import Callable

import torch
from transformers import modeling_outputs


@dataclasses.dataclass
class CausalLMOutput(modeling_outputs.CausalLMOutputWithPast):
    """With the share of tokens whose logit is the largest, of those that count."""

    token_accuracy: torch.Tensor | None = None


@dataclasses.dataclass
class MoeCausalLMOutput(modeling_outputs.MoeCausalLMOutputWithPast):
    """With the share of tokens whose logit is the largest, of those that count."""

    token_accuracy: torch.Tensor | None = None


class _OnRequest:
    """The attribute ``logits`` is made when it is asked for, without gradients, as
    trainers do that measure something of them.

    What makes them is an entry like any other, so that it is there in the copies
    that Accelerate makes of outputs. A compiler of graphs cannot make such a thing.
    """

    def __getattribute__(self, name):
        value = super().__getattribute__(name)
        if name != "logits" or value is not None:
            return value
        make = self.get("logits_on_request")
        return None if make is None else make()


@dataclasses.dataclass
class CausalLMOutputOnRequest(_OnRequest, CausalLMOutput):
    logits_on_request: Callable | None = None


@dataclasses.dataclass
class MoeCausalLMOutputOnRequest(_OnRequest, MoeCausalLMOutput):
    logits_on_request: Callable | None = None


for _kind in (CausalLMOutputOnRequest, MoeCausalLMOutputOnRequest):
    # Whoever goes through the fields, as FSDP does behind each forward, asks for
    # tensors that are there, and not for logits.
    del _kind.__dataclass_fields__["logits"]

#: By whether there is a router, and whether logits are made on request.
KINDS = {
    (False, False): CausalLMOutput,
    (False, True): CausalLMOutputOnRequest,
    (True, False): MoeCausalLMOutput,
    (True, True): MoeCausalLMOutputOnRequest,
}


class Logits:
    """The logits of hidden states, made when it is called, and kept."""

    def __init__(self, model, hidden, soft_cap, temperature):
        self._model, self._hidden = model, hidden.detach()
        self._soft_cap, self._temperature = soft_cap, temperature
        self._made = None

    def __call__(self):
        if self._made is None:
            with torch.no_grad():
                logits = self._model.lm_head(self._hidden)
                if self._soft_cap:
                    logits = torch.tanh(logits / self._soft_cap) * self._soft_cap
                self._made = logits / self._temperature
        return self._made
