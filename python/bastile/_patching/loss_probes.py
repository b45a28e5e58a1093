# Part of Bastile, under the MIT License. See LICENSE.
"""Checks that the forward of a causal language model computes the logits and the loss
that its entry in the table says.

The class's own forward runs with a stub for the decoder, whose hidden states are a few
numbers, and a last layer of a few classes: logits, loss and gradients are compared with
the formula. No weights are made and nothing is compiled.
"""

import contextlib
import dataclasses
import functools
import inspect
import operator
import types
import warnings

import torch
import transformers
from transformers.loss import loss_utils

from bastile._patching import code, losses, probes, table

_BATCH, _TOKENS, _SIZE, _CLASSES = 2, 5, 8, 12
#: What models and configurations say of a router, by the names they have for it.
EXPERTS = ("num_experts", "num_local_experts", "n_routed_experts", "moe_num_experts")
CHOSEN = ("num_experts_per_tok", "num_experts_per_token", "moe_topk", "moe_k")
SHARES = ("router_aux_loss_coef", "aux_loss_alpha")
_ROUTER = {
    **dict.fromkeys(EXPERTS, 4),
    **dict.fromkeys(CHOSEN, 2),
    **dict.fromkeys(SHARES, 0.5),
}
_CAP, _DIVISOR, _FACTOR = 2.0, 3.0, 0.75
#: What Bastile's forward takes for the loss.
_OF_LOSS = ("labels", "shift_labels", "num_items_in_batch", "ignore_index")
#: Parameters of a forward that Bastile's takes care of, or that choose outputs.
_KNOWN = {
    *_OF_LOSS,
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
    """The `losses.Form` of ``original``, the forward of ``cls``. Raises
    ``probes.Mismatch`` where it is not what ``patch`` says."""
    parameters = inspect.signature(original).parameters
    if "labels" not in parameters:
        raise probes.Mismatch("its forward has no parameter 'labels'")
    if not issubclass(cls, transformers.PreTrainedModel):
        raise probes.Mismatch("it is no PreTrainedModel")
    if losses.class_has_own_loss(cls):
        # A loss of its own is given logits, and is left as it is.
        return losses.Form()
    with as_while_training():
        return _compare(original, patch, cls, parameters)


@contextlib.contextmanager
def as_while_training():
    """A context in which gradients are recorded, whatever the caller's is."""
    with (
        torch.inference_mode(False),
        torch.enable_grad(),
        probes.apart(),
        warnings.catch_warnings(),
    ):
        warnings.simplefilter("ignore")
        yield


def _compare(original, patch, cls, parameters):
    run = Run(original, patch, cls)
    handed_on = run.operands()
    outputs = run.check(handed_on)
    # What is not given comes from the configuration.
    run.check({name: handed_on[name] for name in handed_on if name in _TOKENS_AND_MASK})
    takes_any = any(x.kind is x.VAR_KEYWORD for x in parameters.values())
    if takes_any or "num_items_in_batch" in parameters:
        run.check(handed_on, num_items_in_batch=7)
    if "output_router_logits" in parameters or patch.router:
        outputs = run.check(handed_on, output_router_logits=True)
    if patch.router:
        read = run.read | {f"config.{name}" for name in run.names}
        unread = sorted(set(run.router) - read)
        if unread:
            raise probes.Mismatch(
                f"its forward does not use {', '.join(map(repr, unread))} of the "
                "model for the router's loss"
            )
        run.route_by_default(True)
        run.check(handed_on, output_router_logits=None)
        run.route_by_default(False)
    form = run.form(outputs)._replace(casts=run.casts(handed_on))
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
        return form
    run.compare(made, handed_on, {})
    return form


class _Output:
    """One of the decoder's outputs, of which only the name is known."""

    def __init__(self, name):
        self.name = name


class _Outputs:
    """What a decoder gives: hidden states, the router's logits, and whatever it is
    asked for."""

    def __init__(self, hidden, router_logits):
        self.last_hidden_state, self.router_logits = hidden, (router_logits,)

    def __getitem__(self, place):
        if place != 0:
            raise IndexError(place)
        return self.last_hidden_state

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        made = _Output(name)
        setattr(self, name, made)
        return made


class _Decoder:
    """In the place of the decoder: gives hidden states and notes its operands."""

    def __init__(self, hidden, router_logits, take):
        self._outputs = _Outputs(hidden, router_logits)
        self._take = take
        self.operands, self.named = (), {}

    def __call__(self, *operands, **named):
        self.operands, self.named = operands, named
        return self._outputs

    def __getattr__(self, name):
        # What it has taken from its configuration.
        if name.startswith("_"):
            raise AttributeError(name)
        return self._take(name)


class _Noting:
    """A configuration, and the names that were looked up, with dots in parts of it."""

    def __init__(self, config, read, prefix=""):
        self._config, self._read, self._prefix = config, read, prefix

    def __getattr__(self, name):
        value = getattr(self._config, name)
        if isinstance(value, transformers.PretrainedConfig):
            return _Noting(value, self._read, f"{self._prefix}{name}.")
        self._read.add(self._prefix + name)
        return value

    def take(self, name, stored, place):
        """A number that a model took from here when it was made, and has at ``place``
        since, which is noted in ``stored``."""
        value = getattr(self, name)
        stored[self._prefix + name] = place
        return value

    def get_text_config(self, *operands, **named):
        text = self._config.get_text_config(*operands, **named)
        for name, part in vars(self._config).items():
            if part is text:
                return getattr(self, name)
        return self


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
            if name.startswith("_"):
                raise
            for config in (self.config, self.config.get_text_config()):
                if hasattr(config, name):
                    return config.take(name, self.stored, name)
            raise


#: Outputs that are not the decoder's.
_MADE = ("loss", "logits", "aux_loss")
#: What a model is given at least.
_TOKENS_AND_MASK = ("input_ids", "attention_mask")


class Run:
    """A forward of ``cls`` on a stub, beside the formula of ``patch``."""

    def __init__(self, original, patch, cls):
        self._original, self._patch = original, patch
        self._parameters = inspect.signature(original).parameters
        #: The names that were looked up in the configuration and, of the router, in
        #: the model.
        self.names, self.read = set(), set()
        #: Where the model has what it took from its configuration.
        self.stored = {}
        self.router = ()
        if patch.router:
            self.router = table.ROUTER if patch.router is True else patch.router
        self._defaults, self._handed_on = set(), set()
        #: Parameters of the forward that it makes nothing of.
        self.unused = code.unused_parameters(original) - _KNOWN
        # The smaller, the more exactly a cap of the logits can be told.
        hidden = 0.5 * probes.numbers(_BATCH, _TOKENS, _SIZE, seed=1)
        self.hidden = hidden.requires_grad_()
        self._router_logits = probes.numbers(_BATCH * _TOKENS, 4, seed=2)
        self._labels = torch.arange(_BATCH * _TOKENS).view(_BATCH, _TOKENS)
        self._labels[:, 1] = -100
        self.model = probes.run("causal language model", self._make, cls)

    def _make(self, cls):
        self.config = config = cls.config_class()
        for part in (config, *_parts(config)):
            if hasattr(part, "vocab_size"):
                part.vocab_size = _CLASSES
            for name in _ROUTER.keys() & vars(part).keys():
                setattr(part, name, _ROUTER[name])
        patch = self._patch
        for name, value in (
            (patch.soft_cap, _CAP),
            (patch.divisor, _DIVISOR),
            (patch.factor, _FACTOR),
        ):
            if name:
                self.set(name, value)
        model = type(cls.__name__, (_WithoutInit, cls), {})
        model = model.__new__(model)
        transformers.PreTrainedModel.__init__(model, config)
        vars(model)["config"] = noting = _Noting(config, self.names)
        vars(model).update(read=self.read, stored=self.stored)
        self.decoder = _Decoder(
            self.hidden,
            self._router_logits,
            lambda name: noting.take(name, self.stored, f"{patch.decoder}.{name}"),
        )
        outer, _, inner = patch.decoder.partition(".")
        within = types.SimpleNamespace(**{inner: self.decoder})
        vars(model)[outer] = within if inner else self.decoder
        head = torch.nn.Linear(
            _SIZE, _CLASSES, bias=False, device="meta", dtype=torch.float32
        )
        head.weight = torch.nn.Parameter(probes.numbers(_CLASSES, _SIZE, seed=3))
        setattr(model, patch.head, head)
        self._head = head
        if losses.is_replaced(model):
            # By the user, or by Bastile, whose kernels would be compiled.
            model.loss_function = loss_utils.ForCausalLMLoss
        return model.train()

    def set(self, name, value):
        """Sets what the configuration has under a name, which may have dots."""
        path, _, last = name.rpartition(".")
        part = operator.attrgetter(path)(self.config) if path else self.config
        setattr(part, last, value)

    def get(self, name):
        """What the configuration has under a name; None for nothing."""
        try:
            return operator.attrgetter(name)(self.config)
        except AttributeError:
            return None

    def operands(self):
        """What the forward is to hand on to its decoder, by name."""
        mask = torch.ones(_BATCH, _TOKENS, dtype=torch.int64)
        # Labels count where the mask is 0, too.
        mask[1, :3] = 0
        made = {
            "input_ids": torch.ones(_BATCH, _TOKENS, dtype=torch.int64),
            "attention_mask": mask,
            "position_ids": torch.arange(_TOKENS)[None],
        }
        taken = list(self._parameters.values())[1:]
        for each in taken:
            if each.name in (*made, *_KNOWN) or each.name in self.unused:
                continue
            # The annotation may be text.
            words = str(each.annotation)
            is_name = "str" in words and "Tensor" not in words
            made[each.name] = "default" if is_name else probes.numbers(1, seed=4)
        several = inspect.Parameter.VAR_KEYWORD, inspect.Parameter.VAR_POSITIONAL
        names = {each.name for each in taken if each.kind not in several}
        return {name: value for name, value in made.items() if name in names}

    def call(self, handed_on, **options):
        return self._original(self.model, **handed_on, labels=self._labels, **options)

    def form(self, outputs):
        """What the forward does besides the loss, in what was run so far; ``outputs``
        are one call's."""
        given = probes.run("forward with outputs by name", dataclasses.fields, outputs)
        made, fields = self.decoder._outputs, []
        for field in given:
            value = getattr(outputs, field.name)
            if isinstance(value, _Output):
                fields.append((field.name, value.name))
            elif value is made.router_logits:
                fields.append((field.name, "router_logits"))
            elif value is made.last_hidden_state:
                fields.append((field.name, "last_hidden_state"))
            elif value is not None and field.name not in _MADE:
                raise probes.Mismatch(
                    f"its outputs have '{field.name}', which is none of its decoder's"
                )
        return losses.Form(
            type(outputs),
            tuple(fields),
            tuple(sorted(self._handed_on)),
            tuple(sorted(self._defaults)),
            tuple(sorted(self.unused)),
            stored=tuple(sorted(self.stored.items())),
        )

    def route_by_default(self, wanted):
        """Has the configuration ask for the router's loss, or not."""
        text = self.config.get_text_config()
        if hasattr(text, "output_router_logits"):
            text.output_router_logits = wanted

    def check(self, handed_on, **options):
        patch = self._patch
        made = probes.run(
            f"forward of a decoder '{patch.decoder}' and a last layer '{patch.head}'",
            lambda: self.call(handed_on, **options),
        )
        self._check_decoder({**handed_on, **options})
        self.compare(made, handed_on, options)
        return made

    def compare(self, made, handed_on, options):
        """Compares logits and loss with those of the formula and, without options,
        the gradients of the loss."""
        weight = self._head.weight
        logits, words = self._logits(self.hidden @ weight.T)
        probes.run("forward with a loss and logits", lambda: (made.loss, made.logits))
        if probes.difference(made.logits, logits) > 1e-5:
            raise probes.Mismatch(
                f"its logits are not {words}{_factor(made.logits, logits)}"
            )
        expected = self._loss(logits, **options)
        said = "".join(f" with {name}={value}" for name, value in options.items())
        if self._patch.router and "output_router_logits" in options:
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
        if patch.factor:
            logits = logits * _FACTOR
            words += f", multiplied by '{patch.factor}'"
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
        operands = (self._router_logits,), 4, 2, handed_on.get("attention_mask")
        balance = module["load_balancing_loss_func"]
        return probes.run("forward with the loss of a router", balance, *operands)

    def _check_decoder(self, handed_on):
        """That the decoder was given what the forward was, and no more."""
        decoder = self.decoder
        for name in handed_on.keys() - _KNOWN:
            value = handed_on[name]
            # Only of the first it is known which of the decoder's it is.
            is_first = name == "input_ids" and value is (*decoder.operands, None)[0]
            if decoder.named.get(name) is not value and not is_first:
                raise probes.Mismatch(
                    f"its forward takes '{name}' and does not hand it on to its "
                    "decoder as it is, which Bastile's would do"
                )
        for name, value in decoder.named.items():
            if name in _OF_LOSS and name in self._parameters and value is not None:
                self._handed_on.add(name)
            if name in (*handed_on, *_KNOWN) or value is None:
                continue
            if self._takes(name) and value is self.get(name):
                self._defaults.add(name)
                continue
            raise probes.Mismatch(
                f"its forward gives its decoder '{name}', which Bastile's would not do"
            )

    def _takes(self, name):
        """Whether a call of the forward may give it ``name``."""
        kinds = {x.kind for x in self._parameters.values()}
        return name in self._parameters or inspect.Parameter.VAR_KEYWORD in kinds

    def change_numbers(self):
        """Other values for what the forward reads of the configuration and the
        table does not have."""
        patch = self._patch
        own = {name.removeprefix("config.") for name in self.router}
        for name in self.names - {patch.soft_cap, patch.divisor, patch.factor} - own:
            value = self.get(name)
            # What has no setter follows from others.
            with contextlib.suppress(AttributeError):
                if isinstance(value, float):
                    self.set(name, 1.5 * value + 0.5)
                elif value is None and "logit" in name:
                    self.set(name, 1.5)

    def casts(self, handed_on):
        """Whether hidden states of another type than the last layer's are converted."""
        weight = self._head.weight
        self._head.weight = torch.nn.Parameter(weight.detach().bfloat16())
        try:
            self.call(handed_on)
        except RuntimeError:
            return False
        finally:
            self._head.weight = weight
        return True

    def pad_last_layer(self):
        more = probes.numbers(4, _SIZE, seed=5)
        weight = torch.cat((self._head.weight.detach(), more))
        self._head.weight = torch.nn.Parameter(weight)


def _parts(config):
    """The configurations of which one is made."""
    for part in vars(config).values():
        if isinstance(part, transformers.PretrainedConfig):
            yield part
            yield from _parts(part)


def _factor(found, expected):
    """What all logits are multiplied by, in words, if that is all."""
    if found.shape != expected.shape:
        return f", but of shape {list(found.shape)} for {list(expected.shape)}"
    factor = ((found * expected).sum() / expected.square().sum()).item()
    if probes.difference(found, factor * expected) > 1e-5:
        return ""
    return f", but {factor:.6g} times these"
