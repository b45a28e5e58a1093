# Part of Bastile, under the MIT License. See LICENSE.
"""Training by Hugging Face's ``Trainer`` on Bastile's kernels (docs/models.md).

    from bastile.trainer import BastileCallback

    Trainer(model=model, args=args, callbacks=[BastileCallback()], ...)

`import bastile` does not import this module, which needs Transformers.
"""

import time
from typing import Any

import torch
from bastile import patching

try:
    from transformers import (
        TrainerCallback,
        TrainerControl,
        TrainerState,
        TrainingArguments,
    )
except ImportError as _error:
    raise ImportError(
        "bastile.trainer has a callback for Hugging Face's Trainer, which cannot be "
        f"imported ({_error}): pip install 'bastile-mlir[transformers]' accelerate"
    ) from None

__all__ = ["BastileCallback"]


class BastileCallback(TrainerCallback):
    """Patches the model that a ``Trainer`` trains, and no other.

    Give it to the trainer as one of its ``callbacks``: then the model is patched as the
    trainer is made, before mixed precision is set up around its forward. What was
    patched is a line of the trainer's log, under ``bastile_patched``.

    Args:
        measure: whether lines of the log that have the loss also get
            ``tokens_per_second``, of all processes and without the time that
            evaluation and saving take, and on a GPU ``peak_memory_gb``, in 10^9 bytes
            since training began. Tokens are what the model is called with, padding
            included; of compiled models those that the trainer counts
            (``include_num_input_tokens_seen``).
        options: those of `bastile.apply_to_model`, as in ``rope=False``.

    Raises, as the trainer is made, what `bastile.apply_to_model` raises.
    """

    def __init__(self, *, measure: bool = False, **options: bool) -> None:
        self._measure = measure
        self._options = options
        self._model: Any = None
        self._speed = _Speed()
        #: What was patched; its ``reset()`` puts back what was there before.
        self.patched: patching.Patched | None = None

    def on_init_end(
        self,
        args: TrainingArguments,
        state: TrainerState,
        control: TrainerControl,
        **given: Any,
    ) -> None:
        self._patch(given.get("model"))

    def on_train_begin(
        self,
        args: TrainingArguments,
        state: TrainerState,
        control: TrainerControl,
        **given: Any,
    ) -> None:
        # A trainer that makes its models itself has another one now.
        self._patch(given.get("model"))
        names = self.patched.ops if self.patched is not None else []
        state.log_history.append({"bastile_patched": names, "step": state.global_step})
        if self._measure:
            counted = state.num_input_tokens_seen
            self._speed.begin(given["model"], args.world_size, counted)

    def on_step_end(
        self,
        args: TrainingArguments,
        state: TrainerState,
        control: TrainerControl,
        **given: Any,
    ) -> None:
        self._speed.note()

    def on_evaluate(
        self,
        args: TrainingArguments,
        state: TrainerState,
        control: TrainerControl,
        **given: Any,
    ) -> None:
        self._speed.skip()

    def on_save(
        self,
        args: TrainingArguments,
        state: TrainerState,
        control: TrainerControl,
        **given: Any,
    ) -> None:
        self._speed.skip()

    def on_log(
        self,
        args: TrainingArguments,
        state: TrainerState,
        control: TrainerControl,
        **given: Any,
    ) -> None:
        logs = given.get("logs")
        if not self._measure or not logs or "loss" not in logs:
            return
        counted = None
        if args.include_num_input_tokens_seen not in ("no", False):
            counted = state.num_input_tokens_seen
        found = self._speed.read(counted)
        # The trainer has made a copy for its history, and reporters that stand behind
        # this callback are given these.
        logs.update(found)
        state.log_history[-1].update(found)

    def on_train_end(
        self,
        args: TrainingArguments,
        state: TrainerState,
        control: TrainerControl,
        **given: Any,
    ) -> None:
        self._speed.end()

    def _patch(self, model):
        if model is None or model is self._model:
            return
        self._model = model
        self.patched = patching.apply_to_model(model, **self._options)


class _Speed:
    """Counts tokens, and the seconds that training takes."""

    def __init__(self):
        self._hook = None

    def begin(self, model, processes, counted):
        """Counts what ``model`` is called with, in each of so many ``processes``. The
        trainer's own count is at ``counted``, which a checkpoint may have set."""
        self.end()
        self._processes = processes
        self._tokens = 0
        self._counted = counted
        self._hook = model.register_forward_pre_hook(self._see, with_kwargs=True)
        if torch.cuda.is_available():
            torch.cuda.reset_peak_memory_stats()
        self._start = self._last = time.perf_counter()

    def end(self):
        if self._hook is not None:
            self._hook.remove()
        self._hook = None

    def _see(self, module, operands, named):
        # A compiled model would be compiled anew for each number of tokens.
        if torch.compiler.is_compiling() or not torch.is_grad_enabled():
            return
        if not module.training:
            return
        if named.get("input_ids") is not None:
            self._tokens += named["input_ids"].numel() * self._processes
        elif named.get("inputs_embeds") is not None:
            self._tokens += named["inputs_embeds"][..., 0].numel() * self._processes

    def note(self):
        """A step has ended."""
        self._last = time.perf_counter()

    def skip(self):
        """Whatever came after the last step is no training."""
        if self._hook is not None:
            now = time.perf_counter()
            self._start += now - self._last
            self._last = now

    def read(self, counted):
        """What the log is given for the time since it was last given something.
        ``counted`` is the trainer's own count of tokens, or None."""
        now = time.perf_counter()
        tokens, seconds = self._tokens, now - self._start
        if counted is not None:
            tokens = counted - self._counted
            self._counted = counted
        self._tokens = 0
        self._start = self._last = now
        found = {}
        if tokens:
            found["tokens_per_second"] = round(tokens / seconds, 1)
        if torch.cuda.is_available():
            found["peak_memory_gb"] = round(torch.cuda.max_memory_allocated() / 1e9, 3)
        return found
