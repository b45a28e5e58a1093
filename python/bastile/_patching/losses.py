# Part of Bastile, under the MIT License. See LICENSE.
"""Losses of causal language models, in the place of those of Transformers."""

import functools
import inspect

import torch
import transformers
from bastile import functional as F
from bastile._patching import heads, outputs
from transformers.loss import loss_utils


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
    loss = F.cross_entropy(
        logits.reshape(-1, vocab_size),
        shift_labels.reshape(-1).to(logits.device),
        ignore_index=ignore_index,
        reduction="mean" if num_items_in_batch is None else "sum",
    )
    return heads.divide(loss, num_items_in_batch)


@functools.cache
def fused(original, patch):
    """A forward that, while training on labels, makes the loss of the hidden
    states, piece by piece, and no logits."""
    names = list(inspect.signature(original).parameters)[1:]
    module = inspect.unwrap(original).__globals__
    balance = module["load_balancing_loss_func"] if patch.router else None

    @functools.wraps(original)
    def forward(self, *args, skip_logits=None, **kwargs):
        given = {**dict(zip(names, args)), **kwargs}
        labels = given.get("labels")
        targets = given.get("shift_labels")
        has_labels = labels is not None or targets is not None
        is_asked = skip_logits is not None
        if not is_asked:
            skip_logits = self.training and has_labels and not _wants(self, given)
        if not skip_logits:
            return original(self, *args, **kwargs)
        if not has_labels:
            raise ValueError(
                f"{type(self).__name__}: 'skip_logits' needs 'labels', of which "
                "the loss is made instead"
            )
        if _has_own_loss(self):
            raise ValueError(
                f"{type(self).__name__}: 'skip_logits' would leave out the model's own "
                "loss function, which is one of logits"
            )
        return _forward(self, patch, balance, given, is_asked)

    return forward


def _wants(model, given):
    """Whether logits are wanted: some of them, or for a loss of the user's own."""
    kept = given.get("logits_to_keep", 0)
    keeps_all = isinstance(kept, int) and kept == 0
    return _has_own_loss(model) or not keeps_all


def _has_own_loss(model):
    if getattr(model, "_loss_function", cross_entropy) is not cross_entropy:
        return True
    return class_has_own_loss(type(model)) or _is_mapping_replaced()


def class_has_own_loss(cls):
    """Whether the models of a class have another loss than Transformers gives them."""
    return cls.loss_function is not transformers.PreTrainedModel.loss_function


def is_replaced(model):
    """Whether Transformers' own loss of causal language models is replaced."""
    return hasattr(model, "_loss_function") or _is_mapping_replaced()


def _is_mapping_replaced():
    return loss_utils.LOSS_MAPPING["ForCausalLM"] is not loss_utils.ForCausalLMLoss


def _forward(model, patch, balance, given, is_asked):
    """``is_asked`` says that the caller does without logits, and not this."""
    given.pop("logits_to_keep", None)
    labels = given.pop("labels", None)
    targets = given.pop("shift_labels", None)
    items = given.pop("num_items_in_batch", None)
    ignore_index = given.pop("ignore_index", -100)
    as_dictionary = given.pop("return_dict", None)
    if as_dictionary is None:
        as_dictionary = getattr(model.config, "return_dict", True)
    routes = False
    if balance is not None:
        routes = given.get("output_router_logits")
        if routes is None:
            routes = model.config.output_router_logits
        given["output_router_logits"] = routes

    made = model.model(**given, return_dict=True)
    hidden = made.last_hidden_state
    of_logits = _of_logits(model.config, patch)
    if targets is None:
        targets = shift(labels, ignore_index)
    elif targets.numel() == hidden[..., 0].numel():
        targets = targets.reshape(hidden.shape[:-1])
    loss, accuracy = heads.loss(
        model.lm_head,
        hidden,
        targets,
        items=items,
        ignore_index=ignore_index,
        **of_logits,
    )

    extra, entry = {}, None
    if balance is not None:
        extra["router_logits"] = made.router_logits
    if routes:
        extra["aux_loss"] = aux = balance(
            made.router_logits,
            model.num_experts,
            model.num_experts_per_tok,
            given.get("attention_mask"),
        )
        loss = loss + model.router_aux_loss_coef * aux.to(loss.device)
    if as_dictionary and model.training and not _sees_outputs(model):
        extra["logits_on_request"] = outputs.Logits(model, hidden, **of_logits)
        # DeepSpeed reads every entry by its name, and would make the logits.
        is_read = heads.is_of_deepspeed(model.lm_head)
        entry = "logits_on_request" if is_read else "logits"
    elif not as_dictionary and not is_asked:
        # A tuple's elements are there, and the one behind the loss is the logits.
        extra["logits"] = outputs.Logits(model, hidden, **of_logits)()
    kind = outputs.KINDS[balance is not None, entry]
    result = kind(
        loss=loss,
        past_key_values=made.past_key_values,
        hidden_states=made.hidden_states,
        attentions=made.attentions,
        token_accuracy=accuracy,
        **extra,
    )
    return result if as_dictionary else result.to_tuple()


def _sees_outputs(model):
    """Whether a compiler or `DataParallel` takes the outputs apart, which know
    tensors only."""
    return torch.compiler.is_compiling() or getattr(model, "_is_replica", False)


def _of_logits(config, patch):
    """What becomes of the logits before the loss."""
    cap = patch.soft_cap and getattr(config, patch.soft_cap)
    divisor = patch.divisor and getattr(config, patch.divisor)
    return {"soft_cap": cap or 0.0, "temperature": divisor or 1.0}
