# Part of Bastile, under the MIT License. See LICENSE.
"""The measurement of ``grpo``, in its own process."""

import dataclasses
import math

from bastile_bench._end_to_end import models, providers
from bastile_bench._end_to_end.training import (
    Clock,
    peak_bytes,
    reset_peak,
    synchronize,
    use,
)


@dataclasses.dataclass(frozen=True)
class Runner:
    """Who computes what: whose layers the model has (a provider of models), what else
    `bastile.apply` patches, and whether Liger's function makes the loss."""

    layers: str
    patched: "str | None" = None
    is_ligers: bool = False


BASELINE = "trl"
RUNNERS = {
    BASELINE: Runner("hf"),
    "liger": Runner("liger", is_ligers=True),
    "bastile-head": Runner("hf", patched="trl"),
    "bastile": Runner("bastile"),
}


def measure(job: dict, say) -> dict:
    """Updates a policy for some steps of warm-up and some timed ones.

    Times are in seconds, memory is in bytes. ``losses`` holds those of all steps, and
    ``gradient_norm`` is that of all gradients in the first.
    """
    import torch  # noqa: F401  before what registers with it

    runner, device = RUNNERS[job["provider"]], job["device"]
    use(device)
    say("preparing the provider")
    _prepare(runner, models.find(job["model"]).model_type)
    say("building the model")
    update = _Update(job, runner)
    warmup, timed = job["warmup"], job["steps"]
    say("steps of warm-up")
    losses = [update.step(index) for index in range(warmup)]
    synchronize(device)
    reset_peak(device)
    say("timed steps")
    clock = Clock(device)
    clock.mark()
    for index in range(warmup, warmup + timed):
        losses.append(update.step(index))
        clock.mark()
    return {
        "step_seconds": clock.intervals(),
        "peak_bytes": peak_bytes(device),
        "losses": [loss.item() for loss in losses],
        "gradient_norm": update.gradient_norm.item(),
        "fingerprint": update.fingerprint,
    }


def _prepare(runner, model_type):
    if not runner.is_ligers:
        try:
            import trl.trainer.utils  # noqa: F401
        except ImportError as error:
            raise providers.Unavailable(f"TRL cannot be imported: {error}") from None
    providers.prepare(providers.parse(runner.layers)[0], model_type)
    if runner.patched is not None:
        import bastile

        bastile.apply(runner.patched)


class _Update:
    """A policy, its optimizer and what was sampled."""

    def __init__(self, job, runner):
        import torch

        self._job, device = job, job["device"]
        model = models.build(
            models.find(job["model"]),
            device=device,
            dtype=job["dtype"],
            layers=job["layers"],
            attention=job["attention"],
            seed=job["seed"],
        ).train()
        self.fingerprint = models.fingerprint(model)
        self._model = model
        self._optimizer = torch.optim.AdamW(
            model.parameters(), lr=job["learning_rate"], fused=True
        )
        steps, batch = job["warmup"] + job["steps"], job["batch"]
        length = job["prompt"] + job["completion"]
        vocabulary = model.config.vocab_size
        shape = steps, batch, length
        self._tokens = models.draw_tokens(vocabulary, shape, job["seed"]).to(device)
        generator = torch.Generator().manual_seed(job["seed"])
        advantages = torch.randn(steps, batch, generator=generator)
        self._advantages = advantages.to(device)
        # As if all tokens had been equally likely when they were sampled: ratios lie
        # on both sides of 1, and some are clipped.
        self._old = torch.full(
            (batch, job["completion"]), -math.log(vocabulary), device=device
        )
        self._loss = self._by_liger() if runner.is_ligers else self._by_trl()

    def step(self, index):
        loss = self._loss(self._tokens[index], self._advantages[index])
        loss.backward()
        if index == 0:
            self.gradient_norm = _norm_of_gradients(self._model)
        self._optimizer.step()
        self._optimizer.zero_grad(set_to_none=True)
        return loss.detach()

    def _by_trl(self):
        """The head that TRL's trainers give a model, and the loss of what it makes."""
        from bastile import losses
        from trl.trainer.utils import add_fused_lm_head

        # As GRPO asks for it: the entropy is logged.
        add_fused_lm_head(self._model, outputs=("log_probs", "entropy"))
        prompt, completion = self._job["prompt"], self._job["completion"]

        def loss(tokens, advantages):
            labels = tokens.clone()
            labels[:, :prompt] = -100
            made = self._model(input_ids=tokens, labels=labels, fused_lm_head=True)
            log_probs = made.log_probs[:, -completion:]
            mask = made.label_mask[:, -completion:]
            value, _ = losses.grpo_loss(
                log_probs, advantages, mask, old_log_probs=self._old
            )
            return value

        return loss

    def _by_liger(self):
        """Liger's loss of hidden states, beside its layers."""
        import torch
        from liger_kernel.chunked_loss import LigerFusedLinearGRPOLoss

        function = LigerFusedLinearGRPOLoss(
            beta=0.0, use_ref_model=False, loss_type="dapo"
        )
        prompt, completion = self._job["prompt"], self._job["completion"]
        mask = torch.ones_like(self._old)

        def loss(tokens, advantages):
            made = self._model.model(input_ids=tokens, use_cache=False)
            hidden = made.last_hidden_state[:, prompt - 1 : -1]
            value, _ = function(
                hidden,
                self._model.lm_head.weight,
                tokens[:, -completion:],
                mask,
                advantages,
                old_per_token_logps=self._old,
            )
            return value

        return loss


def _norm_of_gradients(model):
    import torch

    gradients = [p.grad for p in model.parameters() if p.grad is not None]
    return torch.nn.utils.get_total_norm(gradients)
