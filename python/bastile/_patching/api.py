# Part of Bastile, under the MIT License. See LICENSE.
"""``bastile.apply`` and what goes with it."""

import dataclasses
import difflib
import re
import sys
from collections.abc import Sequence
from typing import Any

from bastile._patching import registry, table

#: Every op that patches are of, by the names of `apply`'s parameters.
OPS = (
    "rms_norm",
    "rope",
    "swiglu",
    "geglu",
    "moe",
    "cross_entropy",
    "fused_linear_cross_entropy",
)


def apply(
    model_type: str | None = None,
    *,
    rms_norm: bool = True,
    rope: bool = True,
    swiglu: bool = True,
    geglu: bool = True,
    moe: bool = True,
    cross_entropy: bool = False,
    fused_linear_cross_entropy: bool = True,
) -> registry.Patched:
    """Has models of Transformers run on Bastile's kernels, those that are there and
    those that are made later.

    Args:
        model_type: what ``config.model_type`` says, as in ``"qwen3"``; by default
            every model in the table that this version of Transformers has.
        rms_norm, rope, swiglu, geglu, moe: which ops are patched, in models that
            have them.
        cross_entropy: the loss on logits.
        fused_linear_cross_entropy: the loss of hidden states while training, which
            makes no logits unless ``skip_logits=False`` is given to a forward or the
            logits in its outputs are read.

    What is patched already stays as it is. Returns a ``Patched`: what it patched
    is undone by its ``reset()`` or, as a context manager, on leaving.

    Raises:
        ValueError: for a model type that is not in the table.
        TypeError: for something that is no model type.
        PatchError: where this version of Transformers computes something else than
            the table says. Nothing is patched then.
    """
    wanted = _wanted(locals())
    replacements = _import_replacements()
    if model_type is None:
        models = {
            name: model
            for name, model in table.MODELS.items()
            if replacements.is_there(model)
        }
    elif isinstance(model_type, str):
        models = dict([_find(model_type)])
    else:
        raise TypeError(
            "apply takes a model type as in 'qwen3', but got a "
            f"{type(model_type).__qualname__}; for one model alone, there is "
            "apply_to_model"
        )
    return registry.patch_classes(_check(models, wanted))


def apply_to_model(
    model: Any,
    *,
    rms_norm: bool = True,
    rope: bool = True,
    swiglu: bool = True,
    geglu: bool = True,
    moe: bool = True,
    cross_entropy: bool = False,
    fused_linear_cross_entropy: bool = True,
) -> registry.Patched:
    """As `apply`, for one model alone, before or after its weights are loaded.

    ``model`` is a model of Transformers or a wrapper of one: PEFT's, DDP, a compiled
    model. Other models of its type are left as they are, and so is what somebody else
    has set on a module of this one, such as a trainer's own forward: a warning says
    which op that leaves out.
    """
    wanted = _wanted(locals())
    _import_replacements()
    base = _unwrapped(model)
    config = getattr(base, "config", None)
    if not hasattr(config, "model_type"):
        raise TypeError(
            "apply_to_model takes a model of Transformers, but got a "
            f"{type(base).__module__}.{type(base).__qualname__} without "
            "'config.model_type'"
        )
    name, entry = _find(config.model_type)
    return registry.patch_instance(base, _check({name: entry}, wanted))


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


@dataclasses.dataclass(frozen=True)
class PatchInfo:
    """A patch that there is: of which model, op and class, and whether it is
    applied to all models of the type."""

    model_type: str
    op: str
    target: str
    applied: bool


def list_patches(model_type: str | None = None) -> list[PatchInfo]:
    """Every patch in the table, or those of one model type, as `PatchInfo`."""
    models = table.MODELS
    if model_type is not None:
        models = dict([_find(model_type)])
    patched = get_patched_ops()
    return [
        PatchInfo(name, op, patch.target, op in patched.get(name, ()))
        for name, model in models.items()
        for patch in model.patches
        for op in patch.ops
    ]


def register_patch(
    model_type: str, module: str, *patches: table.Patch, aliases: Sequence[str] = ()
) -> None:
    """Adds a model to the table, or replaces its entry.

    Args:
        model_type: what its ``config.model_type`` says.
        module: the name of the module that has its classes.
        patches: what they compute: ``bastile.patching.Norm``, ``Rope``, ``Mlp``,
            ``Experts`` and ``CausalLoss``.
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


def _wanted(arguments):
    return {op for op in OPS if arguments[op]}


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
    """The entry's name and the entry of a model type."""
    for name, model in table.MODELS.items():
        if model_type == name or model_type in model.aliases:
            return name, model
    meant = _misspelled(str(model_type))
    raise ValueError(
        f"Bastile has no patches for models of type '{model_type}'"
        + (f"; did you mean '{meant}'?" if meant else ".")
        + f" There are {', '.join(sorted(table.MODELS))}, and register_patch adds "
        "others"
    )


def _misspelled(model_type):
    """The model type that was meant, if it is one that was typed wrong: other numbers
    and further words make other models, and so do types that Transformers knows."""
    auto = sys.modules.get("transformers.models.auto.configuration_auto")
    if auto is not None and model_type in auto.CONFIG_MAPPING:
        return None
    typed = re.sub(r"\W", "_", model_type.lower())
    for name in table.MODELS:
        if name.replace("_", "") == typed.replace("_", ""):
            return name
    alike = [
        name
        for name in table.MODELS
        if re.findall(r"\d+", name) == re.findall(r"\d+", typed)
        and name.count("_") == typed.count("_")
    ]
    return next(iter(difflib.get_close_matches(typed, alike, 1, 0.8)), None)


def _known_name(name):
    """A name for `reset`, with the model type that the table has."""
    model_type, dot, op = name.partition(".")
    if name in OPS:
        return name
    for own, model in table.MODELS.items():
        if model_type in (own, *model.aliases) and (not dot or op in OPS):
            return own + dot + op
    raise ValueError(
        f"'{name}' is neither a model type ({', '.join(sorted(table.MODELS))}), nor "
        f"an op ({', '.join(OPS)}), nor both as in 'qwen3.rope'"
    )


def _check(models, wanted):
    """The replacements for all ``models``, or an error that says what of them this
    version of Transformers has otherwise."""
    import transformers
    from bastile._patching import replacements

    found, problems = [], []
    for name, model in models.items():
        for_model, not_matching = replacements.of_model(name, model, wanted)
        found += for_model
        problems += not_matching
    if problems:
        lines = "".join(f"\n  {problem}" for problem in problems)
        raise table.PatchError(
            f"Transformers {transformers.__version__} is not what Bastile's table of "
            f"models says, and nothing was patched:{lines}\n"
            "Leave the op out (as in rope=False) or the model"
        )
    return found
