# Part of Bastile, under the MIT License. See LICENSE.
"""Outputs of a forward that makes no logits, unless somebody reads them."""

import collections
import contextlib
import dataclasses
import functools

import torch

from bastile._patching import heads


class Logits:
    """The logits of hidden states, made when it is called by the layer of the model
    that has the name ``head``, and kept.

    While gradients are recorded the logits are part of the graph, so that a loss of
    them trains what the loss of the hidden states trains. Outputs hold this in place
    of logits that nobody has read.
    """

    def __init__(self, model, head, hidden, soft_cap, temperature):
        self._model, self._head, self._hidden = model, head, hidden
        self._soft_cap, self._temperature = soft_cap, temperature
        self._autocast = _autocast_of(hidden.device.type)
        # Logits of a forward without gradients have none either, wherever they are read.
        self._is_recording = torch.is_grad_enabled()
        self._made, self._is_recorded = None, False

    def __call__(self):
        is_recorded = self._is_recording and torch.is_grad_enabled()
        # Logits that were made without gradients, for a metric, have no graph.
        if self._made is None or (is_recorded and not self._is_recorded):
            with self._autocast(), torch.set_grad_enabled(is_recorded):
                self._made = self._make()
            self._is_recorded = is_recorded
        return self._made

    def _make(self):
        head = getattr(self._model, self._head)
        logits = heads.logits(self._model, head, self._hidden)
        if self._soft_cap:
            logits = torch.tanh(logits / self._soft_cap) * self._soft_cap
        return logits / self._temperature if self._temperature != 1 else logits

    def __repr__(self):
        sizes = ", ".join(map(str, self._hidden.shape[:-1]))
        return f"<logits of [{sizes}] tokens, made when outputs.logits is read>"


def _autocast_of(device):
    """A context that restores the autocast that is in force now, as logits may be read
    outside of it."""
    if device not in ("cpu", "cuda"):
        return contextlib.nullcontext
    enabled = torch.is_autocast_enabled(device)
    dtype = torch.get_autocast_dtype(device)
    return lambda: torch.autocast(device, dtype=dtype, enabled=enabled)


_Dictionary = collections.OrderedDict

#: The entries that may hold logits or what makes them, of which there is one at most.
_NAMES = ("logits", "logits_on_request")


class _OnRequest:
    """Outputs whose ``logits`` are made when they are read: as an attribute, by name,
    by position, as part of a tuple or, where the entry is 'logits', of another
    dictionary.

    Code that goes through all outputs without reading one in particular (``items`` and
    ``values``, the fields, PyTorch's trees, ``repr``) sees `Logits` in their place,
    which is no tensor: FSDP, DDP and Accelerate do so behind each forward. DeepSpeed
    reads every entry by its name instead. For it the entry is 'logits_on_request', and
    is `Logits` even when it is read by that name.
    """

    def __post_init__(self):
        super().__post_init__()
        # The order is that of Transformers' outputs, which are read by position as
        # well.
        for name in self._order:
            if _Dictionary.__contains__(self, name):
                self.move_to_end(name)

    def __contains__(self, key):
        if key == "logits":
            return _entry(self) is not None
        return _Dictionary.__contains__(self, key)

    def __getitem__(self, key):
        if isinstance(key, str):
            is_logits = key == "logits" and key in self
            return self.logits if is_logits else _Dictionary.__getitem__(self, key)
        if isinstance(key, slice):
            return tuple(map(_made, list(self.values())[key]))
        return _made(list(self.values())[key])

    def to_tuple(self):
        return tuple(map(_made, super().to_tuple()))

    def get(self, key, default=None):
        return self[key] if key in self else default

    def __copy__(self):
        return type(self)(**dict(self.items()))

    copy = __copy__

    def __reduce__(self):
        # In another process there is no model that logits could be made by.
        made = {name: self[name] for name in self if name not in _NAMES}
        return _remake, (self._original, {**made, "logits": self.logits})

    def __repr__(self):
        entries = ", ".join(f"{name}={value!r}" for name, value in self.items())
        return f"{type(self).__qualname__}({entries})"


def _made(value):
    return value() if isinstance(value, Logits) else value


def _entry(outputs):
    """The logits, or the `Logits` that make them; None for neither."""
    found = (_Dictionary.get(outputs, name) for name in _NAMES)
    return next((value for value in found if value is not None), None)


def _set_logits(outputs, value):
    used = outputs._entry_on_request if isinstance(value, Logits) else "logits"
    for name in _NAMES:
        if _Dictionary.__contains__(outputs, name) and (value is None or name != used):
            _Dictionary.__delitem__(outputs, name)
    if value is not None:
        _Dictionary.__setitem__(outputs, used, value)


def _set_entry(outputs, value):
    # Logits that are there already were set by somebody else, and stay.
    own = _Dictionary.get(outputs, "logits")
    _set_logits(outputs, value if own is None else own)


class _WithAccuracy:
    """Outputs of Transformers, and the share of the tokens that count whose target has
    the largest logit. A tuple of them has as many elements as one of Transformers'."""

    def to_tuple(self):
        return tuple(x for name, x in self.items() if name != "token_accuracy")

    def __reduce__(self):
        return _remake, (self._original, dict(self.items()))


def _remake(original, values):
    """What is pickled: classes that are made here have no name that finds them."""
    return kind(original, None)(**values)


@functools.cache
def kind(original, entry):
    """The class of outputs that has what ``original`` of Transformers has, and
    ``token_accuracy``. Its logits may be made later, of what the entry of this name
    holds; not where ``entry`` is None."""
    if entry is not None:
        return _on_request(kind(original, None), entry)
    return dataclasses.make_dataclass(
        f"{original.__name__}AndAccuracy",
        [("token_accuracy", torch.Tensor | None, None)],
        bases=(_WithAccuracy, original),
        namespace={"__module__": __name__, "_original": original},
        repr=False,
        eq=False,
    )


def _on_request(kind, entry):
    """The subclass of the outputs ``kind`` whose logits may be made later, of what
    the entry of this name holds."""
    names = [field.name for field in dataclasses.fields(kind)]
    names.insert(names.index("logits") + 1, "logits_on_request")
    suffix = "OnRequest" if entry == "logits" else "OnExplicitRequest"
    # Code that goes through the fields sees this one in the place of 'logits'.
    own = dataclasses.make_dataclass(
        kind.__name__ + suffix,
        [("logits_on_request", Logits | torch.Tensor | None, None)],
        bases=(_OnRequest, kind),
        namespace={
            "__module__": __name__,
            "_order": tuple(names),
            "_entry_on_request": entry,
        },
        repr=False,
        eq=False,
    )
    del own.__dataclass_fields__["logits"]
    own.logits = property(lambda outputs: _made(_entry(outputs)), _set_logits)
    own.logits_on_request = property(_entry, _set_entry)
    return own
