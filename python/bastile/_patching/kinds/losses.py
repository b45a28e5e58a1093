# Part of Bastile, under the MIT License. See LICENSE.
"""The losses of causal language models: `table.CausalLoss`."""

import dataclasses
import functools
import inspect

import torch
import transformers

from bastile._patching import code, kind, loss_probes, losses, probes, table

_SUFFIXES = ("ForCausalLM", "ForConditionalGeneration", "LMHeadModel")
#: What models call the layer that makes logits.
_HEADS = ("lm_head", "embed_out", "output_projection")
#: Two values for what a configuration may say of logits, to see what becomes of them.
_FIRST, _SECOND = 4.0, 8.0


def _find(module):
    for cls in code.layers(module):
        if not _looks_like_one(cls):
            continue
        original = kind.original_of(cls, "forward")
        try:
            patch = _describe(original, cls)
            loss_probes.causal_loss(original, patch, cls)
        except probes.Mismatch as problem:
            entry = table.CausalLoss(cls.__name__)
            yield kind.LeftAlone(entry.ops, entry.target, str(problem))
        else:
            yield patch


def _looks_like_one(cls):
    forward = code.own_forward(cls)
    return (
        forward is not None
        and cls.__name__.endswith(_SUFFIXES)
        and issubclass(cls, transformers.PreTrainedModel)
        and "labels" in inspect.signature(forward).parameters
    )


@functools.cache
def _describe(original, cls):
    """The entry of a class, after what its forward does to numbers."""
    if losses.class_has_own_loss(cls):
        raise probes.Mismatch("its class has a loss of its own")
    used = code.names_in(original)
    prefix = getattr(cls, "base_model_prefix", "")
    decoder = prefix if prefix in used else "model"
    if "decoder" in used and decoder != "decoder":
        # Of those with an encoder, this one runs the other half.
        decoder += ".decoder"
    heads = [name for name in _HEADS if name in used]
    if not heads:
        raise probes.Mismatch(f"its forward has no {' or '.join(_HEADS)}")
    patch = table.CausalLoss(cls.__name__, decoder=decoder, head=heads[0])
    with loss_probes.as_while_training():
        return _with_router(original, cls, _with_scales(original, cls, patch))


def _with_scales(original, cls, patch):
    """The entry ``patch`` with what the configuration does to logits."""
    run = loss_probes.Run(original, patch, cls)
    operands = run.operands()
    probes.run(
        f"forward of a decoder '{patch.decoder}' and a last layer '{patch.head}'",
        run.call,
        operands,
    )
    fields = {}
    for name in sorted(run.names):
        value = run.get(name)
        if isinstance(value, bool) or not isinstance(value, (float, int, type(None))):
            continue
        effect = _effect(run, name, operands)
        if effect in fields:
            raise probes.Mismatch(
                f"its logits depend on both '{fields[effect]}' and '{name}'"
            )
        if effect is not None:
            fields[effect] = name
    return dataclasses.replace(patch, **fields)


def _effect(run, name, operands):
    """What a number of the configuration does to logits, as the field of an entry."""
    before, made = run.get(name), []
    try:
        run.set(name, before)
    except AttributeError:  # it follows from others
        return None
    try:
        for value in (_FIRST, _SECOND):
            run.set(name, value)
            made.append(run.call(operands).logits.detach())
    except Exception:  # it is no number that logits are multiplied by
        return None
    finally:
        run.set(name, before)
    first, second = made
    if probes.difference(first, second) < 1e-6:
        return None
    for effect, of_first, of_second in (
        ("factor", first / _FIRST, second / _SECOND),
        ("divisor", first * _FIRST, second * _SECOND),
        ("soft_cap", _uncapped(first, _FIRST), _uncapped(second, _SECOND)),
    ):
        if probes.difference(of_first, of_second) < 1e-4:
            return effect
    raise probes.Mismatch(f"its logits depend on '{name}' of the configuration")


def _uncapped(logits, cap):
    return cap * torch.atanh(logits / cap)


def _with_router(original, cls, patch):
    """The entry ``patch`` with what a router's loss is made of, if there is one."""
    module = inspect.unwrap(original).__globals__
    if "load_balancing_loss_func" not in module:
        return patch
    run = loss_probes.Run(original, patch, cls)
    named = "output_router_logits" in inspect.signature(original).parameters
    options = {"output_router_logits": True} if named else {}
    run.route_by_default(True)
    probes.run(
        "forward with the loss of a router",
        lambda: run.call(run.operands(), **options),
    )
    read = sorted(run.read) + sorted(f"config.{name}" for name in run.names)
    found = []
    for names in (loss_probes.EXPERTS, loss_probes.CHOSEN, loss_probes.SHARES):
        found += [x for x in read if x.rpartition(".")[2] in names][:1]
    if len(found) < len(table.ROUTER):
        # It is there for another class.
        return patch
    router = True if tuple(found) == table.ROUTER else tuple(found)
    return dataclasses.replace(patch, router=router)


def _build(patch, module, ops):
    cls = kind.look_up(module, patch.cls)
    original = kind.original_of(cls, "forward")
    form = loss_probes.causal_loss(original, patch, cls)
    if "cross_entropy" in ops:
        # It would come before what Transformers has by the name of the class.
        if losses.is_type_replaced(cls.__name__):
            raise probes.Mismatch("Transformers' loss of it has been replaced")
        yield kind.Setting(
            "cross_entropy", cls, "_loss_function", losses.cross_entropy, True
        )
    if "fused_linear_cross_entropy" in ops:
        make = functools.partial(losses.fused, form=form)
        forward = kind.made(make, original, patch)
        yield kind.Setting("fused_linear_cross_entropy", cls, "forward", forward)


KIND = kind.Kind(table.CausalLoss, _find, _build)
