# Part of Bastile, under the MIT License. See LICENSE.
"""A training step as its users write it, and clocks around it."""

import gc
import resource
import time

from bastile_bench._end_to_end import models, providers


class Training:
    """A model, its optimizer and its batches. ``step(i)`` trains on batch ``i`` and
    returns the loss as a tensor, without waiting for the device. ``step(0)`` notes
    the ``gradient_norm``, a tensor as well."""

    def __init__(self, job: dict, steps: int, data_seed: int):
        model = models.find(job["model"])
        device = job["device"]
        self.device = device
        self.model = models.build(
            model,
            device=device,
            dtype=job["dtype"],
            layers=job["layers"],
            attention=job["attention"],
            seed=job["seed"],
        ).train()
        self.fingerprint = models.fingerprint(self.model)
        provider = providers.parse(job["provider"])[0]
        if provider.is_compiled:
            providers.compile_model(self.model, job["compile_backend"])
        self.optimizer = providers.make_optimizer(
            provider, self.model.parameters(), job["learning_rate"]
        )
        self._batches = models.draw_tokens(
            self.model.config.get_text_config().vocab_size,
            (steps, job["batch"], job["seq"]),
            data_seed,
        ).to(device)

    def step(self, index: int):
        tokens = self._batches[index]
        loss = self.model(input_ids=tokens, labels=tokens, use_cache=False).loss
        loss.backward()
        if index == 0:
            # AdamW hides a gradient that is wrong by a factor; this does not.
            self.gradient_norm = self._norm_of_gradients()
        self.optimizer.step()
        self.optimizer.zero_grad(set_to_none=True)
        return loss.detach()

    def _norm_of_gradients(self):
        import torch

        gradients = [p.grad for p in self.model.parameters() if p.grad is not None]
        return torch.nn.utils.get_total_norm(gradients)


class Clock:
    """Marks between steps: events of a GPU, so that the host is not held up, or the
    time of day on the CPU."""

    def __init__(self, device: str):
        self._is_gpu = device != "cpu"
        self._marks = []

    def mark(self) -> None:
        if not self._is_gpu:
            self._marks.append(time.perf_counter())
            return
        import torch

        event = torch.cuda.Event(enable_timing=True)
        event.record()
        self._marks.append(event)

    def intervals(self) -> list:
        """Seconds between one mark and the next; waits for the device."""
        if not self._is_gpu:
            return [b - a for a, b in zip(self._marks, self._marks[1:])]
        self._marks[-1].synchronize()
        return [a.elapsed_time(b) / 1e3 for a, b in zip(self._marks, self._marks[1:])]


def use(device: str) -> None:
    """Makes a GPU the one that this process launches on."""
    if device != "cpu":
        import torch

        torch.cuda.set_device(device)


def synchronize(device: str) -> None:
    if device != "cpu":
        import torch

        torch.cuda.synchronize(device)


def reset_peak(device: str) -> None:
    if device != "cpu":
        import torch

        torch.cuda.reset_peak_memory_stats(device)


def peak_bytes(device: str) -> int:
    """The most memory at one time: that of PyTorch's tensors on a GPU since
    `reset_peak`, that of the process on the CPU since its start."""
    if device == "cpu":
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    import torch

    return torch.cuda.max_memory_allocated(device)


def release(device: str) -> None:
    """Gives back what the caller dropped."""
    gc.collect()
    if device != "cpu":
        import torch

        torch.cuda.empty_cache()
