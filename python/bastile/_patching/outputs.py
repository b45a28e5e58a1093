"""What a forward returns that makes no logits."""

import collections
import contextlib
import dataclasses

import torch
from bastile._patching import heads
from transformers import modeling_outputs


@dataclasses.dataclass
class CausalLMOutput(modeling_outputs.CausalLMOutputWithPast):
    """With the share of tokens whose logit is the largest, of those that count."""

    token_accuracy: torch.Tensor | None = None


@dataclasses.dataclass
class MoeCausalLMOutput(modeling_outputs.MoeCausalLMOutputWithPast):
    """With the share of tokens whose logit is the largest, of those that count."""

    token_accuracy: torch.Tensor | None = None


class Logits:
    """The logits of hidden states, made when it is called, and kept.

    While gradients are recorded the logits are part of the graph, so that a loss of
    them trains what the loss of the hidden states trains. Outputs hold this in place
    of logits that nobody has read.
    """

    def __init__(self, model, hidden, soft_cap, temperature):
        self._model, self._hidden = model, hidden
        self._soft_cap, self._temperature = soft_cap, temperature
        self._autocast = _autocast_of(hidden.device.type)
        self._made, self._is_recorded = None, False

    def __call__(self):
        is_recorded = torch.is_grad_enabled()
        # What was made for a metric has no graph.
        if self._made is None or (is_recorded and not self._is_recorded):
            with self._autocast():
                self._made = self._make()
            self._is_recorded = is_recorded
        return self._made

    def _make(self):
        logits = heads.logits(self._model.lm_head, self._hidden)
        if self._soft_cap:
            logits = torch.tanh(logits / self._soft_cap) * self._soft_cap
        return logits / self._temperature if self._temperature != 1 else logits

    def __repr__(self):
        sizes = ", ".join(map(str, self._hidden.shape[:-1]))
        return f"<logits of [{sizes}] tokens, made when outputs.logits is read>"


def _autocast_of(device):
    """What puts back the autocast of now: logits may be read outside of it."""
    if device not in ("cpu", "cuda"):
        return contextlib.nullcontext
    enabled = torch.is_autocast_enabled(device)
    dtype = torch.get_autocast_dtype(device)
    return lambda: torch.autocast(device, dtype=dtype, enabled=enabled)


_Dictionary = collections.OrderedDict


class _OnRequest:
    """Outputs whose ``logits`` are made when they are read: as an attribute, by name,
    by position, as part of a tuple or of another dictionary.

    Whoever goes through outputs without reading one in particular (``items`` and
    ``values``, the fields, PyTorch's trees, ``repr``) sees `Logits` in their place,
    which is no tensor: FSDP, DDP and Accelerate do so behind each forward.
    """

    def __post_init__(self):
        super().__post_init__()
        if "logits_on_request" in self:
            _Dictionary.__delitem__(self, "logits_on_request")
        # As in the outputs of Transformers, since positions count.
        for name in self._order:
            if name in self:
                self.move_to_end(name)

    def __getitem__(self, key):
        if isinstance(key, str):
            return _made(_Dictionary.__getitem__(self, key))
        if isinstance(key, slice):
            return tuple(self[name] for name in list(self)[key])
        return self[list(self)[key]]

    def get(self, key, default=None):
        return self[key] if key in self else default

    def __copy__(self):
        return type(self)(**dict(self.items()))

    copy = __copy__

    def __reduce__(self):
        # Elsewhere, there is nothing that logits could be made of.
        return self._plain(**self).__reduce__()

    def __repr__(self):
        entries = ", ".join(f"{name}={value!r}" for name, value in self.items())
        return f"{type(self).__qualname__}({entries})"


def _made(value):
    return value() if isinstance(value, Logits) else value


def _entry(outputs):
    """The logits or what makes them."""
    return _Dictionary.get(outputs, "logits")


def _set_logits(outputs, value):
    if value is not None:
        _Dictionary.__setitem__(outputs, "logits", value)
    elif "logits" in outputs:
        _Dictionary.__delitem__(outputs, "logits")


def _set_entry(outputs, value):
    if "logits" not in outputs:
        _set_logits(outputs, value)


def _on_request(kind):
    """The subclass of the outputs ``kind`` whose logits may be made later."""
    # The field takes the place of 'logits' for whoever goes through the fields.
    own = dataclasses.make_dataclass(
        f"{kind.__name__}OnRequest",
        [("logits_on_request", Logits | torch.Tensor | None, None)],
        bases=(_OnRequest, kind),
        namespace={
            "__module__": __name__,
            "_plain": kind,
            "_order": tuple(field.name for field in dataclasses.fields(kind)),
        },
        repr=False,
        eq=False,
    )
    del own.__dataclass_fields__["logits"]
    own.logits = property(lambda outputs: _made(_entry(outputs)), _set_logits)
    own.logits_on_request = property(_entry, _set_entry)
    return own


CausalLMOutputOnRequest = _on_request(CausalLMOutput)
MoeCausalLMOutputOnRequest = _on_request(MoeCausalLMOutput)

#: By whether there is a router, and whether logits are made on request.
KINDS = {
    (False, False): CausalLMOutput,
    (False, True): CausalLMOutputOnRequest,
    (True, False): MoeCausalLMOutput,
    (True, True): MoeCausalLMOutputOnRequest,
}
