# Part of Bastile, under the MIT License. See LICENSE.
"""The losses of causal language models: `table.CausalLoss`."""

import inspect
import itertools

import transformers
from bastile._patching import code, kind, loss_probes, losses, probes, table

_SUFFIXES = ("ForCausalLM", "ForConditionalGeneration")


def _find(module):
    for cls in code.layers(module):
        if not _looks_like_one(cls):
            continue
        reason = None
        for fields in _guesses(cls, module):
            patch = table.CausalLoss(cls.__name__, **fields)
            try:
                loss_probes.causal_loss(kind.original_of(cls, "forward"), patch, cls)
            except probes.Mismatch as problem:
                reason = reason or str(problem)
            else:
                yield patch
                break
        else:
            yield kind.LeftAlone(patch.ops, patch.target, reason)


def _looks_like_one(cls):
    forward = code.own_forward(cls)
    return (
        forward is not None
        and cls.__name__.endswith(_SUFFIXES)
        and issubclass(cls, transformers.PreTrainedModel)
        and "labels" in inspect.signature(forward).parameters
    )


def _guesses(cls, module):
    config = code.default_configuration(cls.config_class)
    caps = [x for x in ("final_logit_softcapping",) if hasattr(config, x)]
    divisors = [x for x in ("logits_scaling",) if hasattr(config, x)]
    routers = [True] if hasattr(module, "load_balancing_loss_func") else []
    for cap, divisor, router in itertools.product(
        (None, *caps), (None, *divisors), (*routers, False)
    ):
        yield {"soft_cap": cap, "divisor": divisor, "router": router}


def _build(patch, module, ops):
    cls = kind.look_up(module, patch.cls)
    original = kind.original_of(cls, "forward")
    loss_probes.causal_loss(original, patch, cls)
    if "cross_entropy" in ops:
        yield kind.Setting(
            "cross_entropy", cls, "_loss_function", losses.cross_entropy, True
        )
    if "fused_linear_cross_entropy" in ops:
        forward = kind.made(losses.fused, original, patch)
        yield kind.Setting("fused_linear_cross_entropy", cls, "forward", forward)


KIND = kind.Kind(table.CausalLoss, _find, _build)
