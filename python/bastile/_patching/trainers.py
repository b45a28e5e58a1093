# Part of Bastile, under the MIT License. See LICENSE.
"""The functions of which TRL's trainers make their losses, and what takes their place.

TRL's trainers (SFT, DPO, KTO, GRPO, RLOO) give a model a head of their own. It runs the
decoder and hands hidden states and the last layer's weight to one function. That of
distillation gets those of both models. The functions are `apply` of classes of
`torch.autograd.Function`; replaced in the class, they are replaced for every trainer,
whoever has imported the class before.
"""

import dataclasses
import functools
import importlib.util
import sys
import warnings

from bastile import _log
from bastile._patching import arrivals, registry, table

_channel = _log.Channel("patching")

#: What stands for a model type in the names of these patches.
NAME = "trl"


@dataclasses.dataclass(frozen=True)
class Hook:
    """``cls`` of ``module``, whose `apply` is replaced as soon as Python has imported
    ``ready``, without which it cannot run."""

    op: str
    module: str
    cls: str
    ready: str

    @property
    def target(self) -> str:
        return f"{self.cls}.apply"


HOOKS = (
    Hook(
        "linear_log_probs",
        module="trl.kernels.chunked_logprob",
        cls="ChunkedLogProbFunction",
        ready="trl.trainer.utils",
    ),
    Hook(
        "linear_jsd",
        module="trl.kernels.chunked_divergence",
        cls="ChunkedDivergenceFunction",
        ready="trl.kernels.chunked_divergence",
    ),
)
#: The ops that these patches are of, by the names of `apply`'s parameters.
OPS = tuple(hook.op for hook in HOOKS)


class Awaited(registry.Patch):
    """The patch of a hook, which is made when TRL is imported, or was."""

    def __init__(self, hook):
        self.model_type, self.op, self.target = NAME, hook.op, hook.target
        self._hook, self._applied = hook, None
        self._arrival = arrivals.Arrival(hook.ready, self._make)

    def _make(self, _):
        from bastile._patching import replacements

        hook = self._hook
        found, reason = _prepare(hook)
        if found is None:
            warnings.warn(_describe(hook, reason), RuntimeWarning, stacklevel=2)
            return
        cls, value = found
        replacement = replacements.Replacement(
            NAME, hook.op, cls, "apply", value, True, hook.module
        )
        self._applied = registry.Applied(replacement, cls, "apply", staticmethod(value))
        _channel.info("patched %s.%s: %s", NAME, hook.op, hook.target)

    @property
    def is_made(self):
        return self._applied is not None

    def is_in_force(self):
        return self.is_made and self._applied.is_in_force()

    def is_standing(self):
        return self._arrival.is_awaited or self.is_in_force()

    def undo(self):
        self._arrival.cancel()
        if self.is_made:
            self._applied.undo()


def _prepare(hook):
    """The class of a hook and what is to be its `apply`, or None and the reason why this
    version of TRL is left alone."""
    from bastile._patching import probes, replacements, trainer_losses

    try:
        with replacements.on_the_cpu():
            return trainer_losses.replace(hook), None
    except probes.Mismatch as problem:
        return None, str(problem)


def _describe(hook, reason):
    return (
        f"{hook.module}: {hook.target} stays as it is in this version of TRL: {reason}. "
        f"Leave the op out ({hook.op}=False)"
    )


def check_installed():
    """Raises ImportError where there is no TRL."""
    if not is_imported() and importlib.util.find_spec(NAME) is None:
        raise ImportError(
            "bastile.apply('trl') patches the trainers of TRL, which is not installed: "
            "pip install trl"
        )


def is_imported():
    """Whether a program has imported TRL."""
    return NAME in sys.modules


def patch(ops, strict):
    """Patches TRL for the ops in ``ops``, now or when it is imported. Where ``strict``,
    what is there already and is left alone is a ``PatchError``."""
    wanted = [hook for hook in HOOKS if hook.op in ops]
    if strict:
        problems = [
            f"\n  {_describe(hook, info.reason)}"
            for hook, info in zip(HOOKS, list_patches())
            if hook in wanted and info.reason
        ]
        if problems:
            raise table.PatchError("nothing was patched:" + "".join(problems))
    return registry.add(
        ((NAME, hook.op), functools.partial(Awaited, hook)) for hook in wanted
    )


def list_patches():
    """A `table.PatchInfo` of each hook; of one whose module was imported, with the
    reason why it is left alone, if it is."""
    in_force = {x.op for x in registry.in_place() if x.model_type == NAME}
    found = []
    for hook in HOOKS:
        is_applied, reason = hook.op in in_force, None
        if hook.ready in sys.modules and not is_applied:
            _, reason = _prepare(hook)
        found.append(table.PatchInfo(NAME, hook.op, hook.target, is_applied, reason))
    return found
