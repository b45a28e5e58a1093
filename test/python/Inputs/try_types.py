# Part of Bastile, under the MIT License. See LICENSE.
"""Trying a model type: a small model of it as it is, and patched."""

import contextlib
import dataclasses
import functools
import json
import pathlib
import sys
import warnings

import any_type
import bastile
import torch
import transformers
import type_settings
from bastile._patching import kind, model_types
from bastile._patching.kinds import heads, residuals
from transformers.models.auto import modeling_auto


class Wrong(Exception):
    """A patched model that computes something else than it did before."""


class Random(Exception):
    """A model that computes something else each time."""


@dataclasses.dataclass
class Tried:
    """What became of a type: patches and what was left alone (`PatchInfo`), which of the
    patches ran, and models of pictures that could not be run by themselves, with
    reasons."""

    cls: str
    patches: list
    ran: set
    towers: dict


def types():
    """The names of all types, those of `AutoModelForCausalLM` and those of
    `AutoModelForImageTextToText` with other classes, which end in ":pictures" where
    the type has both."""
    causal = modeling_auto.MODEL_FOR_CAUSAL_LM_MAPPING_NAMES
    pictures = modeling_auto.MODEL_FOR_IMAGE_TEXT_TO_TEXT_MAPPING_NAMES
    names = list(causal)
    for name, cls in pictures.items():
        if name not in causal:
            names.append(name)
        elif causal[name] != cls:
            names.append(f"{name}:pictures")
    return sorted(names)


def make(name):
    model_type, _, _ = name.partition(":")
    is_causal = name in modeling_auto.MODEL_FOR_CAUSAL_LM_MAPPING_NAMES
    auto = (
        transformers.AutoModelForCausalLM
        if is_causal
        else transformers.AutoModelForImageTextToText
    )
    return any_type.make(any_type.configuration(name), auto)


@contextlib.contextmanager
def _noting_calls(calls):
    """Adds classes and methods, or functions, to ``calls`` as their patches run."""
    made = kind.made

    def noting(make, original, patch):
        replacement = made(make, original, patch)
        target = patch.target.partition(".")[0]

        @functools.wraps(replacement)
        def note(*operands, **named):
            calls.add((original.__module__, target, original.__name__))
            return replacement(*operands, **named)

        return made(lambda *_: note, original, patch)

    kind.made = noting
    _forget_norms()
    try:
        yield
    finally:
        kind.made = made
        _forget_norms()


def _forget_norms():
    """Has forwards that call norms together with something else be built anew: they know
    norms by the functions that are in force."""
    for each in (heads, residuals):
        each._replace.cache_clear()


def try_type(name):
    """Compares a type's small model with itself patched, and tells what was patched.
    Raises `Wrong` where they differ."""
    model_type = name.partition(":")[0]
    model = make(name)
    inputs = any_type.inputs(name, model)
    towers, why = _towers(model)
    runs = {name: (model, lambda: model(**inputs).loss), **towers}
    expected = {key: _run(*runs[key]) for key in runs}
    calls = set()
    with _noting_calls(calls), bastile.apply(model_type):
        found = {key: _run(*runs[key]) for key in runs}
        patches = bastile.list_patches(model_type)
    for key in runs:
        try:
            _compare(found[key], expected[key])
        except Wrong as problem:
            again = _run(*runs[key])
            if not torch.equal(again[0], expected[key][0]):
                raise Random(f"{name}: {key}") from None
            raise Wrong(f"{name}: {key}: {problem}") from None
    ran = {x for x in patches if x.applied and _has_run(x, calls)}
    return Tried(type(model).__name__, patches, ran, why)


def _has_run(info, calls):
    """Whether a patch is among the calls. A class may have its method of another
    module, and functions of several modules have the same name."""
    target, _, method = info.target.partition(".")
    if method == "_loss_function":
        return True
    return any(
        cls == target
        and (name == method or module.endswith(f".modeling_{info.model_type}"))
        for module, cls, name in calls
    )


def _run(module, forward):
    module.zero_grad()
    transformers.set_seed(0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        value = forward()
        value.backward()
    gradients = {
        name: x.grad.clone()
        for name, x in module.named_parameters()
        if x.grad is not None
    }
    return value.detach(), gradients


def _compare(found, expected, bound=1e-3):
    if not torch.isfinite(expected[0]):
        raise Wrong(f"the value as it was is {expected[0].item()}")
    if not torch.allclose(found[0], expected[0], rtol=2e-5, atol=1e-6):
        raise Wrong(f"{found[0].item():.7g} for {expected[0].item():.7g}")
    missing = expected[1].keys() ^ found[1].keys()
    missing = {x for x in missing if {**expected[1], **found[1]}[x].abs().max() > 0}
    if missing:
        raise Wrong(f"gradients are missing or new: {', '.join(missing)}")
    scale = max(x.abs().max() for x in expected[1].values())
    for key in expected[1].keys() & found[1].keys():
        own = expected[1][key]
        error = (found[1][key] - own).abs().max()
        if not error <= bound * own.abs().max() + 1e-6 * scale:
            raise Wrong(
                f"the gradient of {key} is off by {error:.3g} of "
                f"{own.abs().max():.3g}, of {scale:.3g} at most"
            )


def _towers(model):
    """Functions of the models of pictures in ``model`` that run them by themselves, and
    the reasons for which others cannot be run."""
    found, left = {}, {}
    for path, part in model.named_modules():
        if not isinstance(part, transformers.PreTrainedModel) or part is model:
            continue
        if any(path.startswith(f"{other}.") for other in (*found, *left)):
            continue
        made = any_type.pictures(part)
        if made is None:
            continue
        run = functools.partial(_sum, part, made)
        try:
            with torch.no_grad():
                run()
        except Exception as error:
            left[path] = f"{type(part).__name__}: {type(error).__name__}: {error}"
        else:
            found[path] = part, run
    return found, left


def _sum(part, inputs):
    """A number that depends on all of what ``part`` makes of pictures."""
    made = part(**inputs)
    made = made if isinstance(made, torch.Tensor) else made[0]
    generator = torch.Generator().manual_seed(1)
    return (made * torch.randn(made.shape, generator=generator)).square().mean()


def report(names):
    """What became of types, for JSON: what is wrong, what each module has, and which
    types its classes serve."""
    problems, modules, served, not_tried = [], {}, {}, {}
    for name in names:
        sources = model_types.find(name.partition(":")[0])
        served.setdefault(sources[0].name if sources else name, []).append(name)
        reason = type_settings.NOT_TRIED.get(name)
        try:
            tried = try_type(name)
        except Wrong as problem:
            problems.append(str(problem))
            continue
        except Exception as error:
            not_tried[name] = reason
            if reason is None:
                text = str(error).strip().partition("\n")[0]
                problems.append(
                    f"{name} cannot be tried any more: {type(error).__name__}: {text}"
                )
            continue
        if reason is not None:
            problems.append(f"{name} can be tried, but is listed with: {reason}")
        for info in tried.patches:
            if info.op == "cross_entropy":
                continue
            own = modules.setdefault(info.model_type, {})
            entry = own.setdefault(info.op, {}).setdefault(
                info.target, {"reason": info.reason, "ran": False}
            )
            entry["ran"] |= info in tried.ran
    return {
        "version": transformers.__version__,
        "problems": problems,
        "modules": modules,
        "served": served,
        "not_tried": not_tried,
    }


if __name__ == "__main__":
    transformers.logging.set_verbosity_error()
    found = report(sys.argv[2:] or types())
    pathlib.Path(sys.argv[1]).write_text(json.dumps(found))
