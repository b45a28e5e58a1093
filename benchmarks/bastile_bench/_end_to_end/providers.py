# Part of Bastile, under the MIT License. See LICENSE.
"""Who runs a model: Hugging Face alone, Liger, Bastile, each also compiled.

A provider is a name of parts joined by ``+``, as in ``bastile+compile``. Beside ``bastile``,
``linear`` is for `bastile.apply(..., linear=True)` and ``adamw`` for `bastile.optim.AdamW`.
It is prepared in a process of its own, before the model is built.
"""

import dataclasses

#: What a name is made of. The first is the baseline.
BASELINE = "hf"
_PATCHES = ("liger", "bastile")
_COMPILE = "compile"
_LINEAR = "linear"
_OPTIMIZER = "adamw"
#: What is measured where nothing is said, the cheapest first.
DEFAULT = "hf,liger,bastile,compile,bastile+compile"


class Unavailable(RuntimeError):
    """This provider cannot run here, which is no failure of it."""


@dataclasses.dataclass(frozen=True)
class Provider:
    name: str
    #: "liger" or "bastile"; None for the model as it is.
    patch: "str | None"
    is_compiled: bool
    #: Whether Bastile takes products together with their activations.
    has_products: bool = False
    #: Whether Bastile's optimizer takes the steps.
    has_optimizer: bool = False


def parse(text: str) -> list:
    """The providers of "hf,bastile+compile". Raises ``ValueError``."""
    found = [_parse_one(name.strip()) for name in text.split(",")]
    names = [provider.name for provider in found]
    for name in names:
        if names.count(name) > 1:
            raise ValueError(f"provider '{name}' is named twice")
    return found


def _parse_one(name):
    parts = name.split("+")
    if name == BASELINE:
        return Provider(name, None, False)
    options = (_LINEAR, _OPTIMIZER)
    known = (*_PATCHES, _COMPILE, *options)
    if any(part not in known for part in parts) or len(set(parts)) < len(parts):
        raise ValueError(
            f"there is no provider '{name}': it is {BASELINE}, {', '.join(known)}, or "
            "one of liger and bastile with +compile, and bastile with "
            f"{' and '.join(f'+{option}' for option in options)}"
        )
    patches = [part for part in parts if part in _PATCHES]
    if len(patches) > 1:
        raise ValueError(f"provider '{name}': only one library can patch a model")
    patch = patches[0] if patches else None
    for option in options:
        if option in parts and patch != "bastile":
            raise ValueError(f"provider '{name}': +{option} is an option of bastile")
    has_products, has_optimizer = (option in parts for option in options)
    return Provider(name, patch, _COMPILE in parts, has_products, has_optimizer)


def prepare(provider: Provider, model_type: str) -> None:
    """Patches Transformers for models of ``model_type`` that are built afterwards.

    Raises `Unavailable` where the library is missing or does not know the model.
    """
    if provider.patch == "liger":
        _patch_with_liger(model_type)
    elif provider.patch == "bastile":
        _patch_with_bastile(model_type, provider.has_products)


def _patch_with_liger(model_type):
    try:
        import liger_kernel.transformers as liger
    except ImportError as error:
        raise Unavailable(f"Liger cannot be imported: {error}") from None
    try:
        apply = getattr(liger, f"apply_liger_kernel_to_{model_type}")
    except AttributeError:
        raise Unavailable(f"Liger knows no models of type {model_type}") from None
    apply()


def _patch_with_bastile(model_type, linear):
    import bastile

    try:
        patches = bastile.list_patches(model_type)
    except ValueError as error:
        raise Unavailable(str(error)) from None
    # Such a row would be the baseline's under another name.
    if all(patch.reason for patch in patches):
        raise Unavailable(f"Bastile has no patches of model type '{model_type}'")
    bastile.apply(model_type, linear=linear)


def make_optimizer(provider: Provider, parameters, learning_rate: float):
    """AdamW: PyTorch's fused one, or Bastile's with its state in the parameters' type,
    as PyTorch has it."""
    if provider.has_optimizer:
        import bastile

        parameters = list(parameters)
        return bastile.optim.AdamW(
            parameters, lr=learning_rate, state_dtype=parameters[0].dtype
        )
    import torch

    return torch.optim.AdamW(parameters, lr=learning_rate, fused=True)


def compile_model(model, backend: str) -> None:
    """Lets ``torch.compile`` run the model's forward and backward, in place."""
    model.compile(backend=backend)
