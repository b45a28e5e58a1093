# Part of Bastile, under the MIT License. See LICENSE.
"""``bastile.apply`` and what goes with it."""

import difflib
import re
import sys
from collections.abc import Sequence
from typing import Any

from bastile import _log
from bastile._patching import registry, table, trainers

_channel = _log.Channel("patching")

#: Every op that patches are of, by the names of `apply`'s parameters.
OPS = (
    "rms_norm",
    "rope",
    "swiglu",
    "geglu",
    "linear",
    "moe",
    "add_rms_norm",
    "norm_rope",
    "attention",
    "cross_entropy",
    "fused_linear_cross_entropy",
    *trainers.OPS,
)


def apply(
    model_type: str | None = None,
    *,
    rms_norm: bool = True,
    rope: bool = True,
    swiglu: bool = True,
    geglu: bool = True,
    moe: bool = True,
    add_rms_norm: bool = True,
    norm_rope: bool = True,
    attention: bool | str = True,
    cross_entropy: bool = False,
    fused_linear_cross_entropy: bool = True,
    linear_log_probs: bool = True,
    linear_jsd: bool = True,
    linear: bool = False,
    strict: bool = False,
) -> registry.Patched:
    """Has models of Transformers run on Bastile's kernels, those that are there and
    those that are made later.

    The classes of the model type are looked at: norms, rotations, gated MLPs, experts
    and the loss are found by what they are made of, each original is run on a few
    numbers beside the formula of Bastile's kernel, and what computes the same is
    patched. Everything else is left alone (`list_patches` says what, and why).

    Args:
        model_type: what ``config.model_type`` says, as in ``"qwen3"``; by default
            every type of which there are models, or will be: those whose modules have
            been imported, and others as their first model is made.
            ``"trl"`` is for TRL's trainers alone.
        rms_norm, rope, swiglu, geglu, moe: which ops are patched, in models that
            have them.
        add_rms_norm: sums with the residual, each in one kernel with the norms that
            stand beside it.
        norm_rope: norms of queries and keys in one kernel with their rotation.
        attention: masks that the host does not wait for, attention within a window by
            PyTorch's flash kernel, and Bastile's kernel where the model's own attention
            is Transformers' "eager" one; with ``"bastile"``, in the place of PyTorch's
            attention, too.
        cross_entropy: the loss on logits.
        fused_linear_cross_entropy: the loss of hidden states while training, which
            makes no logits unless ``skip_logits=False`` is given to a forward or the
            logits in its outputs are read.
        linear_log_probs: the head of TRL's trainers, for whatever model they train.
            TRL is patched when it is imported, if that is later.
        linear_jsd: the divergence of TRL's trainer of distillation.
        linear: gate and up projections together with their activation, as one product,
            in the MLPs that ``swiglu`` and ``geglu`` patch: where that is measured to be
            faster on the GPU, which depends on sizes alone, and nowhere else.
            ``list_patches(model)`` says where.
        strict: whether to raise ``PatchError``, and to patch nothing, where something
            that looks like one of these ops is left alone: whatever `list_patches`
            lists with a reason for them.

    What is patched already stays as it is. Returns a ``Patched``: what it patched
    is undone by its ``reset()`` or, as a context manager, on leaving.

    Raises:
        ValueError: for a model type that neither Transformers nor the table has, and for
            ``linear`` without ``swiglu`` and ``geglu``.
        TypeError: for something that is no model type.
        PatchError: where a model that `register_patch` has added computes something
            else than its entries say, and as ``strict`` says. Nothing is patched then.
    """
    wanted = _wanted(locals())
    _import_replacements()
    if model_type == trainers.NAME:
        trainers.check_installed()
        return trainers.patch(wanted, strict)
    asks = _asks_for_kernel(attention)
    if model_type is None:
        patched = _apply_everywhere(wanted, strict, asks)
    elif isinstance(model_type, str):
        found, left = _prepare(_find(model_type), wanted, strict)
        patched = _patch_classes(found, asks)
    else:
        raise TypeError(
            "apply takes a model type as in 'qwen3', but got a "
            f"{type(model_type).__qualname__}; for one model alone, there is "
            "apply_to_model"
        )
    try:
        patched.add(trainers.patch(wanted, strict))
    except BaseException:
        patched.reset()
        raise
    return patched


def apply_to_model(
    model: Any,
    *,
    rms_norm: bool = True,
    rope: bool = True,
    swiglu: bool = True,
    geglu: bool = True,
    moe: bool = True,
    add_rms_norm: bool = True,
    norm_rope: bool = True,
    attention: bool | str = True,
    cross_entropy: bool = False,
    fused_linear_cross_entropy: bool = True,
    linear: bool = False,
    strict: bool = False,
) -> registry.Patched:
    """As `apply`, for one model alone, before or after its weights are loaded.

    ``model`` is a model of Transformers or a wrapper of one: PEFT's, DDP, a compiled
    model. Its classes may also come from elsewhere, as those of remote code. Other
    models of its type are left as they are, and so is what somebody else has set on a
    module of this one, such as a trainer's own forward: a warning says which op that
    leaves out.
    """
    wanted = _wanted(locals())
    _import_replacements()
    asks = _asks_for_kernel(attention)
    base = _unwrapped(model)
    config = getattr(base, "config", None)
    if not hasattr(config, "model_type"):
        raise TypeError(
            "apply_to_model takes a model of Transformers, but got a "
            f"{type(base).__module__}.{type(base).__qualname__} without "
            "'config.model_type'"
        )
    from bastile._patching import model_types

    sources = model_types.of_classes(type(x) for x in base.modules())
    found, left = _prepare(sources, wanted, strict)
    patched = registry.patch_instance(base, found)
    if asks:
        from bastile._patching.attention import kernels

        patched.on_reset(kernels.ask_for(base))
    return patched


def _unwrapped(model):
    """The model of Transformers beneath PEFT's, PyTorch's and DeepSpeed's wrappers."""
    while True:
        if hasattr(model, "get_base_model"):
            model = model.get_base_model()
        elif "_orig_mod" in getattr(model, "_modules", ()):
            model = model._orig_mod
        elif not hasattr(model, "config") and hasattr(model, "module"):
            model = model.module
        else:
            return model


def reset(names: str | Sequence[str] | None = None) -> None:
    """Puts back what patches replaced.

    ``names``: a model type, an op, or both as in ``"qwen3.rope"``, or several of
    them; by default everything, in classes and in single models.
    """
    wanted = None
    if names is not None:
        listed = list(names) if isinstance(names, (list, tuple, set)) else [names]
        if not all(isinstance(name, str) for name in listed):
            raise TypeError(f"reset takes a name or several, but got {listed!r}")
        wanted = {_known_name(name) for name in listed}
    registry.undo(wanted)


def get_patched_ops(model: Any = None) -> dict[str, list[str]]:
    """By model type, the ops that are patched in all models of that type or, with
    ``model``, in that one alone, be it wrapped, a part of a model or a copy.

    What somebody has replaced after Bastile did, or lost by loading its module of
    Python again, is not patched.
    """
    if model is not None and not hasattr(model, "named_modules"):
        raise TypeError(
            f"get_patched_ops takes a model or nothing, but got {model!r}; without "
            "any, the result is by model type"
        )
    found = {}
    for applied in registry.in_place(model):
        found.setdefault(applied.model_type, set()).add(applied.op)
    return {name: sorted(found[name]) for name in sorted(found)}


def list_patches(model: Any = None) -> list[table.PatchInfo]:
    """What there is to patch in models of a type or, for ``"trl"``, in TRL, and what
    is left alone, as `PatchInfo`; by default in all whose modules have been imported.

    Something is listed with a ``reason`` for being left alone where its name or its
    code looks like one of the ops: a class of norms that computes no RMS norm, a
    function of cosines and sines with other operands.

    ``model`` is a model type or a model. What is listed of a model counts as applied
    where it is patched in this one or in all; and layers of it that were patched with
    ``linear=True`` and keep products of their own, whatever the number of rows, are
    listed with the reason.

    Raises:
        ValueError: for a model type that neither Transformers nor the table has.
        TypeError: for something that is neither a model type nor a model.
    """
    if model is None:
        if "transformers" not in sys.modules:
            return []
        from bastile._patching import model_types

        sources = model_types.loaded()
    elif isinstance(model, str):
        if model == trainers.NAME:
            return trainers.list_patches()
        _import_replacements()
        sources = _find(model)
    elif hasattr(model, "named_modules"):
        return _list_of_model(_unwrapped(model))
    else:
        raise TypeError(
            f"list_patches takes a model type, a model or nothing, but got {model!r}"
        )
    found, _ = _list_of(sources, registry.in_place())
    if model is None and trainers.is_imported():
        found += trainers.list_patches()
    return found


def _list_of(sources, in_force):
    """What there is to patch in ``sources``, and the replacements among that."""
    from bastile._patching import replacements

    in_force = {(x.model_type, x.op, x.target) for x in in_force}
    listed, all_found = {}, []
    for source in sources:
        found, left = replacements.of_source(source, set(OPS))
        all_found += found
        for each in found:
            key = source.name, each.op, each.target
            listed[key] = table.PatchInfo(*key, key in in_force)
        for each in left:
            for op in each.ops:
                key = source.name, op, each.target
                listed[key] = table.PatchInfo(*key, False, each.reason)
    return list(listed.values()), all_found


def _list_of_model(model):
    _import_replacements()
    from bastile._patching import model_types
    from bastile._patching.products import gated_products

    sources = model_types.of_classes(type(x) for x in model.modules())
    in_force = [*registry.in_place(), *registry.in_place(model)]
    infos, found = _list_of(sources, in_force)
    left, taken = {}, set()
    for path, module, reason in gated_products.reasons(model):
        keys = {
            (x.model_type, x.op, x.target)
            for x in found
            if x.name == gated_products.NAME and isinstance(module, x.owner)
        }
        if reason is None:
            taken |= keys
        for key in keys:
            left.setdefault((key, reason), []).append(path)
    alone = {key for key, reason in left if reason is not None} - taken
    infos = [x for x in infos if (x.model_type, x.op, x.target) not in alone]
    for (key, reason), paths in left.items():
        if reason is not None:
            more = f" and {len(paths) - 1} more" if len(paths) > 1 else ""
            text = f"in {paths[0]}{more}: {reason}"
            infos.append(table.PatchInfo(*key, False, text))
    return infos


def register_patch(
    model_type: str, module: str, *patches: table.Patch, aliases: Sequence[str] = ()
) -> None:
    """Adds a model to the table, or replaces its entry.

    Args:
        model_type: what its ``config.model_type`` says.
        module: the name of the module that has its classes.
        patches: what they compute: ``bastile.patching.Norm``, ``Rope``, ``Mlp``,
            ``Heads``, ``Experts``, ``Residual``, ``Masks`` and ``CausalLoss``.
        aliases: further model types that the classes serve.
    """
    if model_type in get_patched_ops():
        raise ValueError(
            f"'{model_type}' is patched: bastile.reset('{model_type}') comes first"
        )
    for patch in patches:
        if not isinstance(patch, table.KINDS):
            raise TypeError(
                f"a patch is one of {', '.join(kind.__name__ for kind in table.KINDS)}"
                f" of bastile.patching, but got {patch!r}"
            )
    table.MODELS[model_type] = table.Model(module, tuple(patches), tuple(aliases))


def register_attention() -> None:
    """Registers Bastile's attention with Transformers, for models that are configured for
    it by ``attn_implementation="bastile"``. `apply` and `apply_to_model` do so as well.

    Raises ``RuntimeError`` for Transformers 4.
    """
    _import_replacements()
    from bastile._patching.attention import kernels

    kernels.register()


def _wanted(arguments):
    wanted = {op for op in OPS if arguments.get(op)}
    if "linear" in wanted and wanted.isdisjoint(("swiglu", "geglu")):
        raise ValueError(
            "linear=True takes products together with their activation, and needs swiglu "
            "or geglu"
        )
    return wanted


def _import_replacements():
    try:
        import transformers  # noqa: F401
    except ImportError as error:
        raise ImportError(
            "bastile.apply patches Hugging Face Transformers, which cannot be "
            f"imported ({error}): pip install 'bastile-mlir[transformers]'"
        ) from None
    from bastile._patching import replacements

    return replacements


def _find(model_type):
    """The sources of a model type (`model_types`)."""
    from bastile._patching import model_types

    found = model_types.find(model_type)
    if found:
        return found
    meant = _misspelled(model_type, model_types.known())
    raise ValueError(
        f"there is no model type '{model_type}' in Transformers {_version()}"
        + (f"; did you mean '{meant}'?" if meant else ".")
        + " register_patch adds models from elsewhere, and apply_to_model patches one "
        "model, wherever its classes are"
    )


def _misspelled(model_type, known):
    """The model type that was meant, if it is one that was typed wrong: other numbers
    and further words make other models."""
    typed = re.sub(r"\W", "_", model_type.lower())
    for name in known:
        if re.sub(r"\W|_", "", name) == typed.replace("_", ""):
            return name
    alike = [
        name
        for name in known
        if re.findall(r"\d+", name) == re.findall(r"\d+", typed)
        and name.count("_") == typed.count("_")
    ]
    return next(iter(difflib.get_close_matches(typed, alike, 1, 0.8)), None)


def _known_name(name):
    """A name for `reset`, with the name that patches of the model type go by."""
    model_type, dot, op = name.partition(".")
    if name in OPS or (model_type == trainers.NAME and (not dot or op in OPS)):
        return name
    if model_type in {x.model_type for x in registry.made()}:
        own = model_type
    else:
        own = _name_of(model_type)
    if own and (not dot or op in OPS):
        return own + dot + op
    raise ValueError(
        f"'{name}' is neither a model type, nor an op ({', '.join(OPS)}), nor both as "
        "in 'qwen3.rope'"
    )


def _name_of(model_type):
    from bastile._patching import model_types

    found = model_types.find(model_type)
    return found[0].name if found else None


def _prepare(sources, wanted, strict):
    """The replacements in ``sources`` and what is left alone, or an error that says
    what computes something else than it should."""
    from bastile._patching import probes

    with probes.apart():
        return _prepare_apart(sources, wanted, strict)


def _prepare_apart(sources, wanted, strict):
    """As `_prepare`, where nothing that a caller has set is in force."""
    from bastile._patching import replacements

    found, left, problems = [], [], []
    for source in sources:
        in_source, alone = replacements.of_source(source, wanted)
        found += in_source
        left += alone
        if strict or source.name in table.MODELS:
            problems += [f"{source.module}: {x.target}: {x.reason}" for x in alone]
    if problems:
        lines = "".join(f"\n  {problem}" for problem in problems)
        raise table.PatchError(
            f"Transformers {_version()} has something else than patches are of, and "
            f"nothing was patched:{lines}\n"
            "Leave the op out (as in rope=False) or the model"
        )
    for each in left:
        ops = ", ".join(each.ops)
        _channel.info("left alone %s (%s): %s", each.target, ops, each.reason)
    return found, left


def _version():
    import transformers

    return transformers.__version__


def _asks_for_kernel(attention):
    """Whether the argument of this name asks for Bastile's kernel in the place of
    PyTorch's attention. Registers that kernel with Transformers."""
    if isinstance(attention, str) and attention != "bastile":
        raise ValueError(
            f"attention must be True, False or 'bastile', but is {attention!r}"
        )
    from bastile._patching.attention import kernels

    if kernels.is_supported():
        kernels.register()
    return attention == "bastile"


def _patch_classes(found, asks):
    patched = registry.patch_classes(found)
    if asks:
        from bastile._patching.attention import kernels

        owners = [x.owner for x in found if x.op == "attention"]
        patched.on_reset(kernels.ask(owners))
    return patched


def _apply_everywhere(wanted, strict, asks):
    """Patches models whose modules have been imported, and others as they are made."""
    from bastile._patching import everywhere, model_types

    found, left = _prepare(model_types.loaded(), wanted, strict)
    patched = _patch_classes(found, asks)

    def patch(source):
        more, _ = _prepare([source], wanted, strict)
        patched.add(_patch_classes(more, asks))

    patched.on_reset(everywhere.watch(patch))
    return patched
