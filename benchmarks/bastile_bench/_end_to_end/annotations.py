# Part of Bastile, under the MIT License. See LICENSE.
"""Marks of the parts of a model in a profile: setting them, and reading them back."""

import functools
import re
import sys

from bastile_bench._end_to_end import categories

_PREFIX = "bench::"
# The category of a part that has none of its own: what it runs goes by its name.
_BY_NAME = "by name"
_OPTIMIZER = re.compile(r"^Optimizer\.")
_BACKWARD = "autograd::engine::evaluate_function"
# What the profiler shows on the device for a marked part is no kernel.
_NOT_KERNELS = re.compile(rf"^({_PREFIX}|ProfilerStep|Optimizer\.)")
# Their numbers are of another series than those of operations, so that PyTorch may
# put the kernels of an operation under a call that has nothing to do with it.
_DRIVER_CALL = re.compile(r"^cu(da)?[A-Z]\w+$")


def annotate(model) -> None:
    """Marks the modules of a model of Transformers, its rotary embedding, its
    attention and its loss, for good. The model must not be compiled."""
    # Around everything else; what it runs itself, after its parts, is the loss.
    _mark_method(model, "forward", "loss")
    for module in model.modules():
        if module is model:
            continue
        category = categories.of_class(type(module).__name__) or _BY_NAME
        if category == "norm" and hasattr(type(module).forward, "bastile_original"):
            # Bastile computes norms together with sums and rotations where they are
            # called in the plain way. The names of its kernels say what they are for.
            continue
        _mark_method(module, "forward", category)
        if hasattr(module, "_apply_gate"):
            _mark_method(module, "_apply_gate", "activation")
    source = sys.modules[type(model).__module__]
    if hasattr(source, "apply_rotary_pos_emb"):
        _mark_method(source, "apply_rotary_pos_emb", "rope")
    _mark_attention()


def _mark_method(owner, name, category):
    setattr(owner, name, _marked(getattr(owner, name), category))


def _mark_attention():
    """Marks whatever layers get when they ask for their attention. The functions behind
    it stay as they are: Bastile knows by them what it may take the place of."""
    from transformers.modeling_utils import ALL_ATTENTION_FUNCTIONS

    ask = ALL_ATTENTION_FUNCTIONS.get_interface

    @functools.wraps(ask)
    def ask_and_mark(*operands, **named):
        return _marked(ask(*operands, **named), "attention")

    ALL_ATTENTION_FUNCTIONS.get_interface = ask_and_mark


def _marked(function, category):
    from torch.profiler import record_function

    @functools.wraps(function)
    def call(*arguments, **named):
        with record_function(_PREFIX + category):
            return function(*arguments, **named)

    return call


class Scopes:
    """Which part of the model ran an event of the profiler: in the forward by the
    mark around it, in the backward by that around the forward it belongs to."""

    def __init__(self, events):
        self._of_number = {}
        latest = {}
        for event in events:
            number = event.sequence_nr
            if number < 0 or _backward_of(event) is not None:
                continue
            # Several operations may have a number; the last to begin with it is
            # the one whose backward has it as well.
            start = event.time_range.start
            if start >= latest.get(number, start):
                latest[number] = start
                self._of_number[number] = _own_scope(event)

    def of(self, event) -> "str | None":
        """The category of the part that ran ``event``; None where none is known."""
        scope = _own_scope(event)
        if scope is None:
            backward = _backward_of(event)
            if backward is not None:
                scope = self._of_number.get(backward.sequence_nr)
        return None if scope == _BY_NAME else scope


def is_mark(name: str) -> bool:
    """Whether an event is no work, but a mark around some."""
    return bool(_NOT_KERNELS.search(name))


def is_driver_call(name: str) -> bool:
    """Whether an event is a call of CUDA's libraries, as ``cudaLaunchKernel``."""
    return bool(_DRIVER_CALL.search(name))


def _own_scope(event):
    while event is not None:
        if event.name.startswith(_PREFIX):
            return event.name.removeprefix(_PREFIX)
        if _OPTIMIZER.search(event.name):
            return "optimizer"
        event = event.cpu_parent
    return None


def _backward_of(event):
    """The event of the backward's node that ``event`` is or is within."""
    while event is not None:
        if event.name.startswith(_BACKWARD):
            return event
        event = event.cpu_parent
    return None
