# Part of Bastile, under the MIT License. See LICENSE.
"""Losses of causal language models, in the place of those of Transformers."""

import functools
import inspect
from typing import NamedTuple

import torch
import transformers
from transformers.loss import loss_utils

from bastile import functional as F
from bastile._patching import heads, outputs, table
from bastile._torch.operands import is_distributed

#: What Transformers' own loss calls, whatever somebody puts in its place later.
_FIXED = loss_utils.fixed_cross_entropy


def shift(labels, ignore_index):
    """The targets of each position: the label of the next, and none at the end."""
    padded = torch.nn.functional.pad(labels, (0, 1), value=ignore_index)
    return padded[..., 1:]


def cross_entropy(
    logits,
    labels,
    vocab_size,
    num_items_in_batch=None,
    ignore_index=-100,
    shift_labels=None,
    **_,
):
    """The loss that Transformers calls ``ForCausalLM``, without float32 logits."""
    if shift_labels is None:
        shift_labels = shift(labels, ignore_index)
    if is_distributed(logits):
        items = num_items_in_batch
        return heads.of_distributed(
            logits, shift_labels, items, ignore_index=ignore_index
        )
    loss = F.cross_entropy(
        logits.reshape(-1, vocab_size),
        shift_labels.reshape(-1).to(logits.device),
        ignore_index=ignore_index,
        reduction="mean" if num_items_in_batch is None else "sum",
    )
    return heads.divide(loss, num_items_in_batch)


class Form(NamedTuple):
    """What the forward of a model does besides the loss, as far as it was seen."""

    #: The class of its outputs.
    outputs: type | None = None
    #: The decoder's outputs that are among its own, by the names of both.
    fields: tuple[tuple[str, str], ...] = ()
    #: What it hands on to the decoder of that which the loss takes.
    handed_on: tuple[str, ...] = ()
    #: What it gives the decoder of its configuration, unless it is given another value.
    defaults: tuple[str, ...] = ()
    #: Its parameters that nothing reads.
    unused: tuple[str, ...] = ()
    #: Whether it converts hidden states to the type of the last layer.
    casts: bool = False
    #: Where models have what they took from their configuration, by its name there.
    stored: tuple[tuple[str, str], ...] = ()


@functools.cache
def fused(original, patch, form):
    """A forward that, while training on labels, makes the loss of the hidden
    states, piece by piece, and no logits."""
    names = list(inspect.signature(original).parameters)[1:]
    module = inspect.unwrap(original).__globals__
    balance = module["load_balancing_loss_func"] if patch.router else None
    is_router_unknown = balance is None and "load_balancing_loss_func" in module
    details = _Details(patch, form, balance)

    @functools.wraps(original)
    def forward(self, *args, skip_logits=None, **kwargs):
        given = {**dict(zip(names, args)), **kwargs}
        labels = given.get("labels")
        targets = given.get("shift_labels")
        has_labels = labels is not None or targets is not None
        is_asked = skip_logits is not None
        if not is_asked:
            skip_logits = self.training and has_labels and _keeps_all(given)
        if not skip_logits:
            return original(self, *args, **kwargs)
        if not has_labels:
            raise ValueError(
                f"{type(self).__name__}: 'skip_logits' needs 'labels', of which "
                "the loss is made instead"
            )
        left_out = None
        if _has_own_loss(self):
            left_out = "the model's own loss function, which is one of logits"
        elif is_router_unknown and _routes(self, given):
            left_out = (
                "the loss of the router, which only the model's own forward makes"
            )
        if left_out is None:
            return _forward(self, details, given, is_asked)
        if not is_asked:
            return original(self, *args, **kwargs)
        raise ValueError(
            f"{type(self).__name__}: 'skip_logits' would leave out {left_out}"
        )

    return forward


def _keeps_all(given):
    """Whether nobody asks for the logits of some positions."""
    kept = given.get("logits_to_keep", 0)
    return isinstance(kept, int) and kept == 0


def _routes(model, given):
    """Whether the loss of a router is asked for."""
    asked = given.get("output_router_logits")
    if asked is None:
        text = model.config.get_text_config()
        asked = getattr(text, "output_router_logits", False)
    return asked


def _has_own_loss(model):
    if getattr(model, "_loss_function", cross_entropy) is not cross_entropy:
        return True
    return class_has_own_loss(type(model)) or _has_other_type(model)


def class_has_own_loss(cls):
    """Whether the models of a class have another loss than Transformers gives them."""
    return cls.loss_function is not transformers.PreTrainedModel.loss_function


def is_replaced(model):
    """Whether Transformers' own loss of causal language models is replaced."""
    return hasattr(model, "_loss_function") or _has_other_type(model)


def _has_other_type(model):
    return is_type_replaced(getattr(model, "loss_type", None))


def is_type_replaced(name):
    """Whether the loss that Transformers gives models of the loss type ``name`` is
    another one than its own of causal language models."""
    if loss_utils.fixed_cross_entropy is not _FIXED:
        return True
    mapping, own = loss_utils.LOSS_MAPPING, loss_utils.ForCausalLMLoss
    default = mapping.get("ForCausalLM", own)
    return mapping.get(name, default) is not own


def _reader(path):
    """Reads the attribute at a dotted path. `torch.compile` does not follow
    ``operator.attrgetter``."""
    names = path.split(".")

    def read(owner):
        for name in names:
            owner = getattr(owner, name)
        return owner

    return read


class _Details:
    """What of an entry and of a `Form` a forward needs, as functions of the model."""

    def __init__(self, patch, form, balance):
        self.decoder = _reader(patch.decoder)
        self.head, self.form = patch.head, form
        # Made ahead of the calls: `torch.compile` does not follow how a class is made.
        entries = (None, "logits", "logits_on_request") if form.outputs else ()
        self.outputs = {entry: outputs.kind(form.outputs, entry) for entry in entries}
        self.balance = balance
        names = table.ROUTER if patch.router is True else patch.router or ()
        self._router = [_reader(name) for name in names]
        stored = dict(form.stored)
        self._cap, self._divisor, self._factor = (
            name and _reader(stored.get(name, f"config.{name}"))
            for name in (patch.soft_cap, patch.divisor, patch.factor)
        )

    def of_router(self, model):
        """What the entry names of the router, in that order."""
        return [read(model) for read in self._router]

    def of_logits(self, model):
        """What becomes of the logits before the loss."""
        cap = self._cap and self._cap(model)
        divisor = self._divisor and self._divisor(model)
        factor = self._factor and self._factor(model)
        temperature = (divisor or 1.0) / (1.0 if factor is None else factor)
        return {"soft_cap": cap or 0.0, "temperature": temperature}


def _forward(model, details, given, is_asked):
    """``is_asked`` says that the caller does without logits, and not this."""
    form, balance = details.form, details.balance
    given.pop("logits_to_keep", None)
    kept = {name: given[name] for name in form.handed_on if name in given}
    labels = given.pop("labels", None)
    targets = given.pop("shift_labels", None)
    items = given.pop("num_items_in_batch", None)
    ignore_index = given.pop("ignore_index", -100)
    as_dictionary = given.pop("return_dict", None)
    if as_dictionary is None:
        as_dictionary = getattr(model.config, "return_dict", True)
    routes = False
    if balance is not None:
        given["output_router_logits"] = routes = _routes(model, given)
    for name in form.unused:
        given.pop(name, None)
    for name in form.defaults:
        if given.get(name) is None:
            given[name] = getattr(model.config, name)

    made = details.decoder(model)(**given, **kept, return_dict=True)
    hidden = made.last_hidden_state
    if form.casts:
        # Mamba's may be float32 whatever the weights are.
        hidden = hidden.to(getattr(model, details.head).weight.dtype)
    of_logits = details.of_logits(model)
    if targets is None:
        targets = shift(labels, ignore_index)
    elif targets.numel() == hidden[..., 0].numel():
        targets = targets.reshape(hidden.shape[:-1])
    loss, accuracy = heads.loss(
        getattr(model, details.head),
        hidden,
        targets,
        items=items,
        ignore_index=ignore_index,
        **of_logits,
    )

    extra = {own: getattr(made, name, None) for own, name in form.fields}
    entry = None
    if routes:
        experts, chosen, share = details.of_router(model)
        extra["aux_loss"] = aux = balance(
            made.router_logits, experts, chosen, given.get("attention_mask")
        )
        loss = loss + share * aux.to(loss.device)
    if as_dictionary and model.training and not _sees_outputs(model):
        extra["logits_on_request"] = outputs.Logits(
            model, details.head, hidden, **of_logits
        )
        # DeepSpeed reads every entry by its name, and would make the logits.
        is_read = heads.is_of_deepspeed(getattr(model, details.head))
        entry = "logits_on_request" if is_read else "logits"
    elif not as_dictionary and not is_asked:
        # A tuple's elements are there, and the one behind the loss is the logits.
        extra["logits"] = outputs.Logits(model, details.head, hidden, **of_logits)()
    result = details.outputs[entry](loss=loss, token_accuracy=accuracy, **extra)
    return result if as_dictionary else result.to_tuple()


def _sees_outputs(model):
    """Whether a compiler or `DataParallel` takes the outputs apart, which know
    tensors only."""
    return torch.compiler.is_compiling() or getattr(model, "_is_replica", False)
