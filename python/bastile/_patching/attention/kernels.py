# Part of Bastile, under the MIT License. See LICENSE.
"""Attention of Transformers' models by Bastile's kernel.

What Transformers would make a tensor of, a mask, is a function of positions to the
kernel, which is a part of its code. So a `Mask` goes through the layers in the place of
the tensor, and attention that gets one is the kernel's. It makes the tensor after all
where somebody wants attention that the kernel does not have.
"""

import functools
import inspect
import types
import warnings
import weakref

import torch
from transformers import masking_utils
from transformers.modeling_utils import ALL_ATTENTION_FUNCTIONS

from bastile import _log
from bastile._attention import api, flex
from bastile._attention.scores.operators import Functions
from bastile._attention.scores.values import Refused
from bastile._patching import code, kind, probes
from bastile._patching.attention import packing

_channel = _log.Channel("patching")
#: The name of this attention in Transformers' registry.
NAME = "bastile"
#: The functions that stand for attention in modules of models.
_EAGER, _REGISTRY = "eager_attention_forward", "ALL_ATTENTION_FUNCTIONS"
#: What may be asked of attention that the kernel does not do.
_OTHERS = ("position_bias", "cache", "head_mask")
#: The largest share of the mean size by which an original differs from the formula.
_BOUND = 1e-5


class Mask:
    """What attention sees: a function of positions. Whoever computes with it, or asks for
    what tensors have, gets the model's own mask, which is made then."""

    def __init__(self, functions, offsets, lengths, make_own):
        self.functions, self.offsets = functions, offsets
        #: How many queries and keys it is of.
        self.lengths = lengths
        #: What the layers share of their calls.
        self.known = {}
        self._make_own = make_own
        self._own = None

    def own(self):
        """The model's own mask, a tensor."""
        if self._make_own is not None:
            self._own, self._make_own = self._make_own(), None
        return self._own

    def fits(self, query, key):
        """Whether it is of these queries and keys: layers that append keys extend a
        tensor, which this is not."""
        return self.lengths == (query.shape[2], key.shape[2])

    def contiguous(self):
        # Generation asks for this of masks that it makes ahead of compiled code.
        return self.own()

    def __getitem__(self, index):
        return self.own()[index]

    def __getattr__(self, name):
        if name.startswith("_"):
            raise AttributeError(name)
        return getattr(self.own(), name)

    @classmethod
    def __torch_function__(cls, function, types, operands=(), named=None):
        # Among the operands may be lists of masks.
        operands, named = torch.utils._pytree.tree_map_only(
            Mask, Mask.own, (operands, named or {})
        )
        return function(*operands, **named)


def make_mask(make_own, named):
    """The `Mask` for the arguments by name of a function of Transformers that makes masks;
    ``make_own`` makes the model's own, which is the result where no kernel can have the
    mask."""
    function = packing.by_places(named["mask_function"], named.get("local_size"))
    padding, length = named.get("attention_mask"), named["kv_length"]
    if isinstance(padding, Mask):
        # Generation makes masks ahead of a forward, which asks for them again, and
        # older releases pass on nothing but tensors.
        return padding
    offsets = {"query": named.get("q_offset", 0), "key": named.get("kv_offset", 0)}
    if any(isinstance(x, torch.Tensor) for x in offsets.values()):
        # A static cache, which code is compiled for.
        return make_own()
    if padding is not None:
        first = offsets["key"]
        padding = masking_utils.prepare_padding_mask(padding, length, first)
        padded = masking_utils.padding_mask_function(padding)
        function = masking_utils.and_masks(function, padded)
    offsets = {axis: x for axis, x in offsets.items() if x}
    functions = Functions("attention", None, function, offsets)
    try:
        functions.formula()
    except Refused as problem:
        _warn_once(f"a mask is a tensor, as no kernel can have it. {problem}")
        return make_own()
    return Mask(functions, offsets, (named["q_length"], length), make_own)


def run(mask, module, query, key, value, named):
    """Attention by the kernel, in the form in which Transformers' functions return it."""
    options = {
        "scale": named.get("scaling"),
        "softcap": named.get("softcap") or 0.0,
        "sinks": named.get("s_aux"),
        "dropout": named.get("dropout") or 0.0,
    }
    if isinstance(mask, Mask):
        options.update(offsets=mask.offsets, known=mask.known)
        result = flex.attend_by(mask.functions, query, key, value, **options)
    else:
        is_causal = named.get("is_causal")
        if is_causal is None:
            is_causal = getattr(module, "is_causal", True)
        is_condition = mask is not None and mask.dtype == torch.bool
        result = api.attend(
            query,
            key,
            value,
            # As PyTorch's attention has it.
            causal=mask is None and is_causal and query.shape[2] > 1,
            offset=0,
            mask=mask if is_condition else None,
            bias=None if is_condition else mask,
            **options,
        )
    return result.transpose(1, 2), None


def cannot(named):
    """The argument of a call of attention that the kernel does not have; None if it
    has all."""
    return next((name for name in _OTHERS if named.get(name) is not None), None)


def takes_call(mask, query, key, operands, named):
    """Whether attention with ``mask`` is the kernel's, in a model that is configured for
    another implementation."""
    is_whole = not operands and cannot(named) is None
    return is_whole and mask.fits(query, key)


@functools.cache
def _warn_once(message):
    warnings.warn(f"attention: {message}", RuntimeWarning, stacklevel=3)


# The implementation of this name, for models that are configured for it.


def attention(module, query, key, value, attention_mask=None, *operands, **named):
    """Attention by the name ``attn_implementation="bastile"``."""
    reason = cannot(named)
    if isinstance(attention_mask, Mask) and not attention_mask.fits(query, key):
        lengths = "{} queries and {} keys"
        mask_of = lengths.format(*attention_mask.lengths)
        attention_of = lengths.format(query.shape[2], key.shape[2])
        raise RuntimeError(
            f"{type(module).__name__}: the mask is of {mask_of}, and attention of "
            f"{attention_of}: a layer that changes them between needs "
            "attn_implementation='eager'"
        )
    if reason is None and not operands:
        return run(attention_mask, module, query, key, value, named)
    _warn_once(f"Bastile's kernel has no '{reason}', and PyTorch's computes it")
    if isinstance(attention_mask, Mask):
        attention_mask = attention_mask.own()
    own = ALL_ATTENTION_FUNCTIONS["sdpa"]
    return own(module, query, key, value, attention_mask, *operands, **named)


def mask(*operands, **named):
    """The mask of models that are configured for `attention`."""
    # Whatever attention is left out is said by the mask.
    named["allow_is_causal_skip"] = False

    def own():
        return masking_utils.sdpa_mask(*operands, **named)

    # torch.compile cannot look at functions that are made while it traces.
    if operands or torch.compiler.is_compiling():
        return own()
    return make_mask(own, named)


def is_supported():
    """Whether this version of Transformers makes masks of functions of positions."""
    parameters = inspect.signature(masking_utils.sdpa_mask).parameters
    return "q_length" in parameters and hasattr(
        ALL_ATTENTION_FUNCTIONS, "get_interface"
    )


def register():
    """Has Transformers know this attention by its name. Raises ``RuntimeError`` where it
    is not supported."""
    if not is_supported():
        raise RuntimeError(
            "attn_implementation='bastile' needs Transformers 5, whose masks are "
            "functions of positions"
        )
    ALL_ATTENTION_FUNCTIONS.register(NAME, attention)
    masking_utils.ALL_MASK_ATTENTION_FUNCTIONS.register(NAME, mask)


# Models that are configured for another implementation, and are patched.

#: Classes of decoders, and decoders, whose attention is to be the kernel's wherever that
#: computes the same.
asked_classes = []
_asked = weakref.WeakSet()


def ask(classes):
    """Has models of these classes take the kernel in the place of PyTorch's attention,
    too. Returns a function that undoes it."""
    added = list(classes)
    asked_classes.extend(added)

    def undo():
        for cls in added:
            if cls in asked_classes:
                asked_classes.remove(cls)

    return undo


def ask_for(model):
    """As `ask`, for one model and those in it."""
    added = list(model.modules())
    _asked.update(added)
    return lambda: _asked.difference_update(added)


def forget():
    asked_classes.clear()
    _asked.clear()


def takes(model, named):
    """The name of the implementation of ``model``, a decoder, in whose place the kernel
    computes attention in a forward with these arguments; None for none."""
    config = model.config
    implementation = config._attn_implementation
    if not is_supported():
        return None
    if implementation != "eager":
        is_asked = model in _asked or isinstance(model, tuple(asked_classes))
        if implementation != "sdpa" or not is_asked:
            return None
    wants_weights = named.get("output_attentions")
    if wants_weights is None:
        wants_weights = getattr(config, "output_attentions", False)
    if wants_weights or not _is_known(model, implementation):
        return None
    return implementation


#: By model and implementation, whether its layers' attention is known.
_known = weakref.WeakKeyDictionary()


def _is_known(model, implementation):
    found = _known.setdefault(model, {})
    if implementation not in found:
        classes = {type(x) for x in model.modules()}
        functions = set(map(_eager_of, classes)) - {None}
        found[implementation] = (
            bool(functions)
            and not any(map(_asks_for_tensors, classes))
            and (implementation != "eager" or all(map(is_proven, functions)))
        )
    return found[implementation]


def _forward_of(cls):
    """The forward that a class came with; None where that is PyTorch's."""
    if code.own_forward(cls) is None:
        return None
    return inspect.unwrap(kind.original_of(cls, "forward"))


@functools.cache
def _asks_for_tensors(cls):
    """Whether a forward asks if something is a tensor, and so may do something else with a
    `Mask` than with the tensor that it stands for."""
    forward = _forward_of(cls)
    return forward is not None and {"isinstance", "Tensor"} <= code.names_in(forward)


@functools.cache
def _eager_of(cls):
    """The function that computes attention for a class of layers that asks Transformers'
    registry; None for other classes."""
    forward = _forward_of(cls)
    if forward is None or not {_REGISTRY, "get_interface"} <= code.names_in(forward):
        return None
    scope = forward.__globals__
    if scope.get(_REGISTRY) is not ALL_ATTENTION_FUNCTIONS:
        return None
    return scope.get(_EAGER)


@functools.cache
@probes.apart()
def is_proven(function):
    """Whether a module's own attention computes what the kernel does."""
    try:
        prove(function)
    except probes.Mismatch as problem:
        _channel.info("%s.%s stays: %s", function.__module__, _EAGER, problem)
        return False
    wrapped[function] = _wrap(function)
    return True


#: By modules' own attention that is proven, what runs in its place.
wrapped = {}


def prove(function):
    """Raises `probes.Mismatch` where a module's own attention is not the formula."""
    heads, keys, length, size = 4, 2, 5, 8
    query = probes.numbers(2, heads, length, size, seed=1)
    key, value = (probes.numbers(2, keys, length, size, seed=x) for x in (2, 3))
    sinks = probes.numbers(heads, seed=4)
    places = torch.arange(length, device="cpu")
    hidden = (places > places[:, None]).float()[None, None]
    mask = hidden * torch.finfo(torch.float32).min
    scale, cap = 0.3, 0.7
    module = types.SimpleNamespace(
        num_key_value_groups=heads // keys,
        training=False,
        sinks=sinks,
        head_dim=size,
        scaling=scale,
        is_causal=True,
    )
    uses = features(function)
    named = {"dropout": 0.0, "scaling": scale, "sliding_window": None, "s_aux": sinks}
    if "softcap" in uses:
        named["softcap"] = cap

    def call():
        return function(module, query, key, value, mask, **named)[0]

    result = probes.run("function of attention", call)
    scores = query @ key.repeat_interleave(heads // keys, 1).mT * scale
    if "softcap" in uses:
        scores = cap * torch.tanh(scores / cap)
    scores = scores + mask
    column = sinks.reshape(1, heads, 1, 1).expand(2, -1, length, -1)
    if "sinks" in uses:
        scores = torch.cat([scores, column], -1)
    weights = torch.softmax(scores, -1)[..., :length]
    expected = weights @ value.repeat_interleave(heads // keys, 1)
    share = probes.difference(result, expected.transpose(1, 2))
    if share > _BOUND:
        raise probes.Mismatch(f"its result differs from the formula by {share:.2g}")


def features(function):
    """Which of "softcap" and "sinks" a module's own attention has."""
    found = {"softcap"} & set(inspect.signature(function).parameters)
    if {"sinks", "s_aux"} & (
        code.names_in(function) | set(inspect.signature(function).parameters)
    ):
        found.add("sinks")
    return found


def _wrap(own):
    """A module's own attention, or the kernel where it gets a `Mask`."""
    uses = features(own)

    @functools.wraps(own)
    def attend(module, query, key, value, attention_mask, *operands, **named):
        if not isinstance(attention_mask, Mask):
            return own(module, query, key, value, attention_mask, *operands, **named)
        if not takes_call(attention_mask, query, key, operands, named):
            mask = attention_mask.own()
            return own(module, query, key, value, mask, *operands, **named)
        if "softcap" not in uses:
            named.pop("softcap", None)
        sinks = named.pop("s_aux", None)
        if "sinks" in uses:
            named["s_aux"] = getattr(module, "sinks", sinks)
        return run(attention_mask, module, query, key, value, named)

    return attend
