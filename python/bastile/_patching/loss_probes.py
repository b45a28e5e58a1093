# Part of Bastile, under the MIT License. See LICENSE.
"""Checks that the forward of a causal language model computes the logits and the loss
that its entry in the table says.

The class's own forward runs with a stub for the decoder, whose hidden states are a few
numbers, and a last layer of a few classes: logits, loss and gradients are compared with
the formula. No weights are made and nothing is compiled.
"""

import functools
import inspect
import warnings

import torch
import transformers
from bastile._patching import losses, probes
from transformers import modeling_outputs
from transformers.loss import loss_utils

_BATCH, _TOKENS, _SIZE, _CLASSES = 2, 5, 8, 12
#: What the model says of its router, beside the formula of the router's loss.
_ROUTER = {"num_experts": 4, "num_experts_per_tok": 2, "router_aux_loss_coef": 0.5}
_CAP, _DIVISOR = 2.0, 3.0
#: Parameters of a forward that Bastile's takes care of, or that choose outputs.
_KNOWN = {
    "labels",
    "shift_labels",
    "num_items_in_batch",
    "ignore_index",
    "logits_to_keep",
    "output_router_logits",
    "return_dict",
    "past_key_values",
    "inputs_embeds",
    "use_cache",
    "cache_position",
    "output_attentions",
    "output_hidden_states",
}


@functools.cache
def causal_loss(original, patch, cls):
    """Raises ``probes.Mismatch`` where ``original``, the forward of ``cls``, is not
    what ``patch`` says."""
    parameters = inspect.signature(original).parameters
    for name in ("labels", "logits_to_keep"):
        if name not in parameters:
            raise probes.Mismatch(f"its forward has no parameter '{name}'")
    if not issubclass(cls, transformers.PreTrainedModel):
        raise probes.Mismatch("it is no PreTrainedModel")
    if losses.class_has_own_loss(cls):
        # A loss of its own is given logits, and is left as it is.
        return
    with (
        torch.inference_mode(False),
        torch.enable_grad(),
        torch.autocast("cpu", enabled=False),
        warnings.catch_warnings(),
    ):
        warnings.simplefilter("ignore")
        _compare(original, patch, cls, list(parameters)[1:])


def _compare(original, patch, cls, names):
    run = _Run(original, patch, cls)
    handed_on = run.operands(names)
    run.check(handed_on)
    run.check(handed_on, num_items_in_batch=7)
    if "output_router_logits" in names or patch.router:
        run.check(handed_on, output_router_logits=True)
    if patch.router:
        unread = sorted(set(_ROUTER) - run.model.read)
        if unread:
            raise probes.Mismatch(
                f"its forward does not use {', '.join(map(repr, unread))} of the "
                "model for the router's loss"
            )
    # The loss must not change with a number of the configuration that is not in the
    # table.
    run.change_numbers()
    run.check(handed_on)
    # A weight with more rows than classes is refused by the forward, or its rows beyond
    # are cut off.
    run.pad_last_layer()
    try:
        made = run.call(handed_on)
    except Exception:
        return
    run.compare(made, handed_on, {})


class _Decoder:
    """In the place of the decoder: gives hidden states and notes its operands."""

    def __init__(self, hidden, router_logits):
        self._outputs = modeling_outputs.MoeModelOutputWithPast(
            last_hidden_state=hidden, router_logits=(router_logits,)
        )
        self.operands, self.named = (), {}

    def __call__(self, *operands, **named):
        self.operands, self.named = operands, named
        return self._outputs


class _Noting:
    """A configuration, and the names that were looked up."""

    def __init__(self, config):
        self._config, self._read = config, set()

    def __getattr__(self, name):
        self._read.add(name)
        return getattr(self._config, name)


class _WithoutInit:
    """A model whose own ``__init__`` has not run: what that would take from the
    configuration is looked up there."""

    def __getattr__(self, name):
        try:
            return super().__getattr__(name)
        except AttributeError:
            if name in _ROUTER:
                self.read.add(name)
                return _ROUTER[name]
            if name.startswith("_") or not hasattr(self.config, name):
                raise
            return getattr(self.config, name)


class _Run:
    """A forward of ``cls`` on a stub, beside the formula of ``patch``."""

    def __init__(self, original, patch, cls):
        self._original, self._patch = original, patch
        self.hidden = probes.numbers(_BATCH, _TOKENS, _SIZE, seed=1).requires_grad_()
        self._router_logits = probes.numbers(_BATCH * _TOKENS, 4, seed=2)
        self._labels = torch.arange(_BATCH * _TOKENS).view(_BATCH, _TOKENS)
        self._labels[:, 1] = -100
        self.model = probes.run("causal language model", self._make, cls)

    def _make(self, cls):
        config = cls.config_class()
        config.vocab_size = _CLASSES
        for name, value in (
            (self._patch.soft_cap, _CAP),
            (self._patch.divisor, _DIVISOR),
        ):
            if name:
                setattr(config, name, value)
        model = type(cls.__name__, (_WithoutInit, cls), {})
        model = model.__new__(model)
        transformers.PreTrainedModel.__init__(model, config)
        vars(model)["config"] = _Noting(config)
        vars(model)["read"] = set()
        vars(model)["model"] = _Decoder(self.hidden, self._router_logits)
        model.lm_head = torch.nn.Linear(
            _SIZE, _CLASSES, bias=False, device="meta", dtype=torch.float32
        )
        model.lm_head.weight = torch.nn.Parameter(
            probes.numbers(_CLASSES, _SIZE, seed=3)
        )
        if losses.is_replaced(model):
            # By the user, or by Bastile, whose kernels would be compiled.
            model.loss_function = loss_utils.ForCausalLMLoss
        return model.train()

    def operands(self, names):
        """What the forward is to hand on to its decoder, by name."""
        made = {
            "input_ids": torch.ones(_BATCH, _TOKENS, dtype=torch.int64),
            "attention_mask": torch.ones(_BATCH, _TOKENS, dtype=torch.int64),
            "position_ids": torch.arange(_TOKENS)[None],
        }
        own = [name for name in names if name not in (*made, *_KNOWN)]
        made.update((name, probes.numbers(1, seed=4)) for name in own)
        parameters = inspect.signature(self._original).parameters
        kinds = inspect.Parameter.VAR_KEYWORD, inspect.Parameter.VAR_POSITIONAL
        return {
            name: value
            for name, value in made.items()
            if name in parameters and parameters[name].kind not in kinds
        }

    def call(self, handed_on, **options):
        return self._original(self.model, **handed_on, labels=self._labels, **options)

    def check(self, handed_on, **options):
        made = probes.run(
            "forward of a decoder 'model' and a last layer 'lm_head'",
            lambda: self.call(handed_on, **options),
        )
        self._check_decoder({**handed_on, **options})
        self.compare(made, handed_on, options)

    def compare(self, made, handed_on, options):
        """Compares logits and loss with those of the formula and, without options,
        the gradients of the loss."""
        weight = self.model.lm_head.weight
        logits, words = self._logits(self.hidden @ weight.T)
        probes.run("forward with a loss and logits", lambda: (made.loss, made.logits))
        if probes.difference(made.logits, logits) > 1e-5:
            raise probes.Mismatch(
                f"its logits are not {words}{_factor(made.logits, logits)}"
            )
        expected = self._loss(logits, **options)
        said = "".join(f" with {name}={value}" for name, value in options.items())
        if self._patch.router and options.get("output_router_logits"):
            added = _ROUTER["router_aux_loss_coef"] * self._balance(handed_on)
            expected = expected + added
            said += ", to which the table adds the loss of a router,"
        if not torch.allclose(made.loss, expected, rtol=1e-5):
            raise probes.Mismatch(
                f"its loss{said} is {made.loss.item():.6g}, but that of the table is "
                f"{expected.item():.6g}"
            )
        if options:
            return
        operands = self.hidden, weight
        found, wanted = (
            torch.autograd.grad(x, operands, allow_unused=True)
            for x in (made.loss, expected)
        )
        if any(
            a is None or probes.difference(a, b) > 1e-5 for a, b in zip(found, wanted)
        ):
            raise probes.Mismatch("its loss has other gradients than the table's")

    def _logits(self, logits):
        patch, words = self._patch, "those of the last layer"
        if patch.soft_cap:
            logits = _CAP * torch.tanh(logits / _CAP)
            words += f", capped by '{patch.soft_cap}'"
        if patch.divisor:
            logits = logits / _DIVISOR
            words += f", divided by '{patch.divisor}'"
        return logits, words

    def _loss(self, logits, num_items_in_batch=None, **_):
        total = torch.nn.functional.cross_entropy(
            logits[:, :-1].flatten(0, 1), self._labels[:, 1:].flatten(), reduction="sum"
        )
        return total / (num_items_in_batch or (self._labels[:, 1:] >= 0).sum())

    def _balance(self, handed_on):
        module = inspect.unwrap(self._original).__globals__
        if "load_balancing_loss_func" not in module:
            raise probes.Mismatch(
                "its module has no 'load_balancing_loss_func', the loss of a router"
            )
        return module["load_balancing_loss_func"](
            (self._router_logits,),
            _ROUTER["num_experts"],
            _ROUTER["num_experts_per_tok"],
            handed_on.get("attention_mask"),
        )

    def _check_decoder(self, handed_on):
        """That the decoder was given what the forward was, and no more."""
        decoder = self.model.model
        for name in handed_on.keys() - _KNOWN:
            value = handed_on[name]
            by_place = any(value is x for x in decoder.operands)
            if decoder.named.get(name) is not value and not by_place:
                raise probes.Mismatch(
                    f"its forward takes '{name}' and does not hand it on to its "
                    "decoder as it is, which Bastile's would do"
                )
        for name, value in decoder.named.items():
            if name not in (*handed_on, *_KNOWN) and value is not None:
                raise probes.Mismatch(
                    f"its forward gives its decoder '{name}', which Bastile's would "
                    "not do"
                )

    def change_numbers(self):
        """Other values for what the forward reads of the configuration and the
        table does not have."""
        config = self.model.config
        for name in config._read - {self._patch.soft_cap, self._patch.divisor}:
            value = getattr(config._config, name, None)
            if isinstance(value, float):
                setattr(config._config, name, 1.5 * value + 0.5)
            elif value is None and "logit" in name:
                setattr(config._config, name, 1.5)

    def pad_last_layer(self):
        more = probes.numbers(4, _SIZE, seed=5)
        weight = torch.cat((self.model.lm_head.weight.detach(), more))
        self.model.lm_head.weight = torch.nn.Parameter(weight)


def _factor(found, expected):
    """What all logits are multiplied by, in words, if that is all."""
    if found.shape != expected.shape:
        return f", but of shape {list(found.shape)} for {list(expected.shape)}"
    factor = ((found * expected).sum() / expected.square().sum()).item()
    if probes.difference(found, factor * expected) > 1e-5:
        return ""
    return f", but {factor:.6g} times these"
