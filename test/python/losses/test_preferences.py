# Part of Bastile, under the MIT License. See LICENSE.
# RUN: %package-test %s
"""Losses of preferences and rewards beside those that TRL's trainers compute, by their
own code on the same log-probabilities."""

import collections
import types

import pytest
import torch
from bastile import losses

trl = pytest.importorskip("trl")
torch.set_num_threads(1)

PAIRS, TOKENS = 3, 7


class Accelerator:
    """That of one process."""

    device, num_processes, sync_gradients = torch.device("cpu"), 1, True
    gather = gather_for_metrics = staticmethod(lambda x: x)
    reduce = staticmethod(lambda x, reduction: x)


class Trainer(types.SimpleNamespace):
    """What losses of TRL's trainers read of a trainer."""

    def __init__(self, **options):
        super().__init__(
            model=types.SimpleNamespace(training=True),
            accelerator=Accelerator,
            aux_loss_enabled=False,
            _metrics={"train": collections.defaultdict(list)},
            _total_train_tokens=0,
            _tp_size=1,
            **options,
        )

    def logged(self):
        logged = self._metrics["train"]
        return {name: values[-1] for name, values in logged.items()}


def numbers(*shape, seed, scale=1.0):
    generator = torch.Generator().manual_seed(seed)
    return scale * torch.randn(*shape, generator=generator)


@pytest.fixture
def sample():
    """Log-probabilities of sequences of several lengths, the first part of which is a
    prompt; what does not count is no number."""
    mask = torch.zeros(2 * PAIRS, TOKENS, dtype=torch.int64)
    for row, length in enumerate((5, 3, 1, 4, 5, 2)):
        mask[row, 1 : 1 + length] = 1
    model, reference = (-numbers(*mask.shape, seed=s).abs() for s in (1, 2))
    hide = torch.where(mask == 1, 0, torch.nan)
    return types.SimpleNamespace(
        mask=mask,
        log_probs=(model + hide).requires_grad_(),
        reference=reference + hide,
        model=(model * mask).requires_grad_(),
        zeroed=reference * mask,
    )


def compare(found, expected, sample, trainer=None):
    """The loss, its gradient and the metrics that both have."""
    loss, metrics = found
    assert torch.allclose(loss, expected, rtol=1e-5, atol=1e-6)
    (gradient,) = torch.autograd.grad(loss, sample.log_probs)
    (wanted,) = torch.autograd.grad(expected, sample.model)
    counted = sample.mask == 1
    assert torch.allclose(gradient[counted], wanted[counted], rtol=1e-4, atol=1e-6)
    assert not gradient[~counted].any()
    assert gradient[counted].any()
    assert not any(value.requires_grad for value in metrics.values())
    logged = trainer.logged() if trainer else {}
    return metrics, logged


def same(metrics, logged, *names):
    assert set(metrics) == set(names)
    for name in names:
        assert metrics[name].item() == pytest.approx(float(logged[name]), rel=1e-5), (
            name
        )


REWARDS = (
    "rewards/chosen",
    "rewards/rejected",
    "rewards/accuracies",
    "rewards/margins",
    "logps/chosen",
    "logps/rejected",
)


def trl_dpo(sample, loss_type, f_divergence="reverse_kl", smoothing=0.0, beta=0.3):
    trainer = Trainer(
        ld_alpha=None,
        precompute_ref_logps=True,
        beta=beta,
        loss_types=[loss_type],
        loss_weights=[1.0],
        label_smoothing=smoothing,
        f_divergence_type=f_divergence,
        f_alpha_divergence_coef=0.5,
        use_weighting=False,
        args=types.SimpleNamespace(discopop_tau=0.05),
    )
    mask = torch.nn.functional.pad(sample.mask, (1, 0))
    outputs = types.SimpleNamespace(
        log_probs=sample.model,
        entropy=sample.zeroed,
        mean_logits=sample.zeroed,
        is_top1=sample.mask == 1,
    )
    chosen, rejected = sample.zeroed.sum(-1).chunk(2)
    inputs = {
        "input_ids": mask,
        "attention_mask": mask,
        "completion_mask": mask,
        "ref_chosen_logps": chosen,
        "ref_rejected_logps": rejected,
    }
    made = trl.DPOTrainer._compute_loss(trainer, lambda **_: outputs, inputs, False)
    return made, trainer


@pytest.mark.long(every=5)
@pytest.mark.parametrize(
    "loss_type, smoothing",
    [
        ("sigmoid", 0.0),
        ("hinge", 0.0),
        ("ipo", 0.0),
        ("exo_pair", 0.1),
        ("nca_pair", 0.0),
        ("robust", 0.2),
        ("bco_pair", 0.0),
        ("sppo_hard", 0.0),
        ("aot", 0.1),
        ("aot_unpaired", 0.1),
        ("apo_zero", 0.0),
        ("apo_down", 0.0),
        ("discopop", 0.0),
        ("sft", 0.0),
        ("sigmoid_norm", 0.0),
    ],
)
def test_dpo(sample, loss_type, smoothing):
    expected, trainer = trl_dpo(sample, loss_type, smoothing=smoothing)
    found = losses.dpo_loss(
        sample.log_probs,
        sample.reference,
        sample.mask,
        beta=0.3,
        loss_type=loss_type,
        label_smoothing=smoothing,
    )
    same(*compare(found, expected, sample, trainer), *REWARDS)


@pytest.mark.parametrize(
    "divergence", ["reverse_kl", "forward_kl", "js_divergence", "alpha_divergence"]
)
def test_dpo_of_a_divergence(sample, divergence):
    expected, trainer = trl_dpo(sample, "sigmoid", divergence)
    found = losses.dpo_loss(
        sample.log_probs,
        sample.reference,
        sample.mask,
        beta=0.3,
        f_divergence=divergence,
    )
    compare(found, expected, sample)


def test_conservative_dpo(sample):
    """The mean of the loss of a pair and of the pair the other way round."""
    given = sample.log_probs, sample.reference
    smoothed, _ = losses.dpo_loss(*given, sample.mask, label_smoothing=0.1)
    right, _ = losses.dpo_loss(*given, sample.mask)
    swapped = (x.roll(PAIRS, 0) for x in (*given, sample.mask))
    wrong, _ = losses.dpo_loss(*swapped)
    assert torch.allclose(smoothed, 0.9 * right + 0.1 * wrong)


def test_kto(sample):
    from trl import KTOTrainer

    labels = torch.tensor([True, False, True, True, False, False])
    kl_reference = numbers(6, seed=3)
    kl_model = kl_reference + numbers(6, seed=7).abs()
    outputs = types.SimpleNamespace(
        log_probs=sample.model, entropy=sample.zeroed, mean_logits=sample.zeroed
    )
    mask = torch.nn.functional.pad(sample.mask, (1, 0))
    inputs = {
        "input_ids": mask,
        "attention_mask": mask,
        "completion_mask": mask,
        "label": labels,
        "ref_logps": sample.zeroed.sum(-1),
        "ref_KL_logps": kl_reference,
    }
    for loss_type in ("kto", "apo_zero_unpaired"):
        trainer = Trainer(
            calculate_KL=loss_type == "kto",
            _compute_kl_logps=lambda model, batch: kl_model,
            precompute_ref_logps=True,
            loss_type=loss_type,
            beta=0.3,
            desirable_weight=1.5,
            undesirable_weight=0.5,
        )
        expected = KTOTrainer._compute_loss(trainer, lambda **_: outputs, inputs, False)
        kl = (kl_model - kl_reference).mean().clamp(min=0)
        assert kl > 0
        found = losses.kto_loss(
            sample.log_probs,
            sample.reference,
            sample.mask,
            labels,
            kl=kl if loss_type == "kto" else 0.0,
            beta=0.3,
            loss_type=loss_type,
            desirable_weight=1.5,
            undesirable_weight=0.5,
        )
        names = set(REWARDS) - {"rewards/accuracies"} | {"kl"}
        same(*compare(found, expected, sample, trainer), *names)


def pair_trainer(sample, reduce, nll, **options):
    """A trainer of CPO or ORPO, whose model gives the sample."""
    means = (sample.model * sample.mask).sum(-1)
    if reduce == "mean":
        means = means / sample.mask.sum(-1)
    forward = (*means.chunk(2), sample.zeroed, sample.zeroed, nll)
    return Trainer(concatenated_forward=lambda *_: forward, **options)


@pytest.mark.parametrize("loss_type", ["sigmoid", "hinge", "ipo", "simpo"])
@pytest.mark.parametrize("alpha", [0.0, 0.3])
def test_cpo(sample, loss_type, alpha):
    from trl.experimental.cpo import CPOTrainer

    nll = -(sample.model[:PAIRS].sum() / sample.mask[:PAIRS].sum())
    trainer = pair_trainer(
        sample,
        "mean" if loss_type in ("ipo", "simpo") else "sum",
        nll,
        alpha=alpha,
        beta=0.3,
        simpo_gamma=0.4,
        loss_type=loss_type,
        label_smoothing=0.1 if loss_type in ("sigmoid", "simpo") else 0.0,
        cpo_alpha=0.7,
    )
    trainer.cpo_loss = types.MethodType(CPOTrainer.cpo_loss, trainer)
    expected, logged = CPOTrainer.get_batch_loss_metrics(trainer, None, None)
    found = losses.cpo_loss(
        sample.log_probs,
        sample.mask,
        beta=0.3,
        loss_type=loss_type,
        label_smoothing=trainer.label_smoothing,
        gamma=0.4,
        alpha=alpha,
        nll_weight=0.7,
    )
    metrics, _ = compare(found, expected, sample)
    same(metrics, logged, *REWARDS, "nll_loss")


def test_simpo_is_cpo_without_likelihood(sample):
    options = {"beta": 2.0, "gamma": 1.2, "label_smoothing": 0.1}
    found, _ = losses.simpo_loss(sample.log_probs, sample.mask, **options)
    options |= {"loss_type": "simpo", "nll_weight": 0.0}
    expected, _ = losses.cpo_loss(sample.log_probs, sample.mask, **options)
    assert found == expected


def test_orpo(sample):
    from trl.experimental.orpo import ORPOTrainer

    prompts = torch.ones_like(sample.mask)
    sample.log_probs = sample.model.detach().clone().requires_grad_()
    for nll_mask in (None, prompts):
        counted = sample.mask if nll_mask is None else nll_mask
        nll = -(sample.model * counted)[:PAIRS].sum() / counted[:PAIRS].sum()
        trainer = pair_trainer(sample, "mean", nll, beta=0.3)
        trainer.odds_ratio_loss = types.MethodType(ORPOTrainer.odds_ratio_loss, trainer)
        expected, logged = ORPOTrainer.get_batch_loss_metrics(trainer, None, None)
        found = losses.orpo_loss(
            sample.log_probs, sample.mask, beta=0.3, nll_mask=nll_mask
        )
        names = "nll_loss", "log_odds_ratio", "log_odds_chosen"
        loss, metrics = found
        same(metrics, logged, *REWARDS, *names)
        assert torch.allclose(loss, expected, rtol=1e-5)
        (gradient,) = torch.autograd.grad(loss, sample.log_probs)
        (wanted,) = torch.autograd.grad(expected, sample.model)
        assert torch.allclose(gradient, wanted, rtol=1e-4, atol=1e-6)


def test_orpo_of_probabilities_near_1_and_0():
    """Neither the loss nor its gradient is lost where 1 - p rounds to 0 or 1."""
    log_probs = torch.tensor([[-1e-6], [-40.0]], requires_grad=True)
    loss, _ = losses.orpo_loss(log_probs, torch.ones(2, 1))
    (gradient,) = torch.autograd.grad(loss, log_probs)
    assert torch.isfinite(loss) and torch.isfinite(gradient).all()


def grpo_options(loss_type, **options):
    """Of a trainer of GRPO, by TRL's names."""
    given = {
        "top_entropy_quantile": 1.0,
        "off_policy_mask_threshold": None,
        "importance_sampling_level": "token",
        "beta": 0.0,
        "loss_type": loss_type,
        "epsilon_low": 0.1,
        "epsilon_high": 0.2,
        "use_vllm": False,
        "vllm_importance_sampling_correction": True,
        "current_gradient_accumulation_steps": 1,
        "max_completion_length": TOKENS,
        "_entropy_bonus_enabled": False,
        "use_adaptive_entropy": False,
        "get_gamma_weights": trl.GRPOTrainer.get_gamma_weights,
    }
    arguments = {
        "use_bias_correction_kl": False,
        "delta": None,
        "steps_per_generation": 1,
        "sapo_temperature_pos": 1.0,
        "sapo_temperature_neg": 1.05,
        "vespo_k_pos": 2.0,
        "vespo_lambda_pos": 3.0,
        "vespo_k_neg": 3.0,
        "vespo_lambda_neg": 2.0,
    }
    arguments |= {name: options.pop(name) for name in (*options,) if name in arguments}
    return given | options | {"args": types.SimpleNamespace(**arguments)}


CLIPS = ("clip_ratio/low_mean", "clip_ratio/high_mean", "clip_ratio/region_mean")


@pytest.mark.parametrize("level", ["token", "sequence"])
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"beta": 0.2},
        {"beta": 0.2, "use_bias_correction_kl": True, "delta": 1.1},
        {"use_vllm": True},
        {"entropy_coef": 0.3, "_entropy_bonus_enabled": True},
    ],
    ids=lambda options: "-".join(options) or "plain",
)
@pytest.mark.parametrize(
    "loss_type",
    ["grpo", "bnpo", "dr_grpo", "dapo", "luspo", "cispo", "sapo", "vespo"],
)
def test_grpo(sample, loss_type, options, level):
    given = dict(options)
    if loss_type == "cispo":
        given["epsilon_high"] = 1.05
    trainer = Trainer(
        **grpo_options(loss_type, importance_sampling_level=level, **given)
    )
    entropy = numbers(*sample.mask.shape, seed=5).abs()
    forward = sample.model, entropy, None
    trainer._get_per_token_logps_and_entropies = lambda *_, **__: forward
    advantages = numbers(2 * PAIRS, seed=4)
    old = sample.model.detach() + numbers(*sample.mask.shape, seed=6, scale=0.2)
    of_sampler = 1 + numbers(*sample.mask.shape, seed=7, scale=0.1)
    of_sampler = torch.where(sample.mask == 1, of_sampler, 1)
    items = torch.tensor(29)
    inputs = {
        "prompt_ids": sample.mask[:, :1],
        "prompt_mask": sample.mask[:, :1],
        "completion_ids": sample.mask,
        "completion_mask": sample.mask,
        "advantages": advantages,
        "old_per_token_logps": old,
        "ref_per_token_logps": sample.zeroed,
        "num_items_in_batch": items,
        "importance_sampling_ratio": of_sampler if trainer.use_vllm else None,
    }
    expected = trl.GRPOTrainer._compute_loss(trainer, None, inputs)
    found = losses.grpo_loss(
        sample.log_probs,
        advantages,
        sample.mask,
        old_log_probs=old,
        ref_log_probs=sample.reference if trainer.beta else None,
        loss_type=loss_type,
        importance_sampling_level=level,
        epsilon_low=trainer.epsilon_low,
        epsilon_high=trainer.epsilon_high,
        delta=trainer.args.delta,
        beta=trainer.beta,
        use_bias_correction_kl=trainer.args.use_bias_correction_kl,
        sampler_ratio=of_sampler if trainer.use_vllm else None,
        num_items=items,
        max_completion_length=TOKENS,
        entropy=entropy,
        entropy_coef=getattr(trainer, "entropy_coef", 0.0),
    )
    names = [] if loss_type in ("sapo", "vespo", "cispo") else list(CLIPS)
    names += ["cispo_clip_ratio"] if loss_type == "cispo" else []
    names += ["kl"] if trainer.beta else []
    metrics, logged = compare(found, expected, sample, trainer)
    same(metrics, logged, *names)


def test_grpo_clips_something(sample):
    """The ratios of `test_grpo` go beyond the bounds on either side."""
    old = sample.model.detach() + numbers(*sample.mask.shape, seed=6, scale=0.2)
    _, metrics = losses.grpo_loss(
        sample.log_probs,
        numbers(2 * PAIRS, seed=4),
        sample.mask,
        old_log_probs=old,
        epsilon_low=0.1,
    )
    assert metrics["clip_ratio/low_mean"] > 0 and metrics["clip_ratio/high_mean"] > 0


def test_grpo_by_itself(sample):
    """Without old log-probabilities the gradient is that of the advantages, and weights
    of 0 leave tokens out."""
    advantages = numbers(*sample.mask.shape, seed=4)
    weights = (numbers(*sample.mask.shape, seed=8) > 0).float()
    loss, metrics = losses.grpo_loss(
        sample.log_probs, advantages, sample.mask, token_weights=weights
    )
    (gradient,) = torch.autograd.grad(loss, sample.log_probs)
    expected = -advantages * sample.mask * weights / sample.mask.sum()
    assert torch.allclose(gradient, expected)
    assert not metrics["clip_ratio/region_mean"]


def test_rloo(sample):
    advantages = numbers(2 * PAIRS, seed=4)
    old = sample.model.detach() + numbers(*sample.mask.shape, seed=6, scale=0.2)
    trainer = Trainer(epsilon_low=0.1, epsilon_high=0.2)
    forward = sample.model, sample.zeroed, None
    trainer._get_per_token_logps_and_entropies = lambda *_, **__: forward
    inputs = {
        "prompt_ids": sample.mask[:, :1],
        "prompt_mask": sample.mask[:, :1],
        "completion_ids": sample.mask,
        "completion_mask": sample.mask,
        "advantages": advantages,
        "old_logps": (old * sample.mask).sum(1),
    }
    expected = trl.RLOOTrainer._compute_loss(trainer, None, inputs)
    found = losses.rloo_loss(
        sample.log_probs,
        advantages,
        sample.mask,
        old_log_probs=old,
        epsilon_low=0.1,
        epsilon_high=0.2,
    )
    same(*compare(found, expected, sample, trainer), *CLIPS)


HEAD = {"scale": 0.5, "soft_cap": 3.0, "temperature": 0.7}


def eager(hidden, weight, targets, bias):
    logits = 3.0 * torch.tanh(torch.nn.functional.linear(hidden, weight, bias) / 6.0)
    rows = (logits / 0.7).log_softmax(-1)
    at = rows.gather(-1, targets.clamp(min=0)[..., None]).squeeze(-1)
    return at, -(rows.exp() * rows).sum(-1)


LINEAR = [
    (losses.linear_dpo_loss, losses.dpo_loss, True, {"loss_type": "ipo"}),
    (losses.linear_cpo_loss, losses.cpo_loss, False, {}),
    (losses.linear_simpo_loss, losses.simpo_loss, False, {}),
    (losses.linear_orpo_loss, losses.orpo_loss, False, {}),
    (losses.linear_kto_loss, losses.kto_loss, True, {"labels": torch.arange(6) % 2}),
    (
        losses.linear_grpo_loss,
        losses.grpo_loss,
        True,
        {"advantages": torch.arange(6.0) - 3, "beta": 0.1, "entropy_coef": 0.2},
    ),
    (
        losses.linear_rloo_loss,
        losses.rloo_loss,
        False,
        {"advantages": torch.arange(6.0) - 3},
    ),
]


@pytest.mark.parametrize("linear, formula, has_reference, options", LINEAR)
def test_of_hidden_states(linear, formula, has_reference, options, sample):
    size, classes = 8, 20
    shape = *sample.mask.shape, size
    hidden = numbers(*shape, seed=1).requires_grad_()
    weight = numbers(classes, size, seed=2).requires_grad_()
    bias = numbers(classes, seed=3).requires_grad_()
    reference = numbers(*shape, seed=4), numbers(classes, size, seed=5)
    targets = torch.arange(sample.mask.numel()).view(sample.mask.shape) % classes
    targets = torch.where(sample.mask == 1, targets, -100)

    log_probs, entropy = eager(hidden, weight, targets, bias)
    given = dict(options)
    if has_reference:
        given["ref_log_probs"], _ = eager(*reference, targets, None)
    if formula is losses.grpo_loss:
        given["entropy"] = entropy
    expected, logged = formula(log_probs, mask=sample.mask, **given)
    wanted = torch.autograd.grad(expected, (hidden, weight, bias), retain_graph=True)

    references = (reference, given.get("ref_log_probs")) if has_reference else (None,)
    for by in references:
        given = dict(options) if by is None else {"reference": by, **options}
        loss, metrics = linear(hidden, weight, targets, bias=bias, **given, **HEAD)
        assert torch.allclose(loss, expected, rtol=1e-4)
        found = torch.autograd.grad(loss, (hidden, weight, bias))
        for a, b in zip(found, wanted):
            assert torch.allclose(a, b, rtol=1e-3, atol=1e-5)
        mean = entropy[sample.mask == 1].mean()
        assert metrics.pop("entropy").item() == pytest.approx(mean.item(), rel=1e-4)
        for name, value in logged.items():
            assert metrics[name].item() == pytest.approx(value.item(), rel=1e-4), name
        assert metrics.keys() == logged.keys()


def test_nothing_that_counts(sample):
    """A batch without answers has a loss of 0 of what is a mean over tokens, and no
    gradient is NaN."""
    nothing = torch.zeros_like(sample.mask)
    for made in (
        losses.dpo_loss(sample.log_probs, sample.reference, nothing),
        losses.cpo_loss(sample.log_probs, nothing),
        losses.grpo_loss(sample.log_probs, torch.ones(2 * PAIRS), nothing),
    ):
        (gradient,) = torch.autograd.grad(made[0], sample.log_probs)
        assert torch.isfinite(made[0]) and not gradient.any()


@pytest.mark.parametrize(
    "call, message",
    [
        (lambda x: losses.dpo_loss(x, x, x, loss_type="dpo"), "loss_type.*one of sigm"),
        (lambda x: losses.dpo_loss(x, x[:2], x), r"'ref_log_probs' has shape \[2, 7\]"),
        (lambda x: losses.dpo_loss(x[:3], x[:3], x[:3]), "has 3 sequences"),
        (lambda x: losses.dpo_loss(x[0], x[0], x[0]), r"\[sequences, tokens\]"),
        (
            lambda x: losses.dpo_loss(x, x, x, loss_type="hinge", label_smoothing=0.1),
            "'hinge' has none",
        ),
        (lambda x: losses.dpo_loss(x, x, x, label_smoothing=0.5), "less than 0.5"),
        (lambda x: losses.dpo_loss(x, x, x, loss_type="exo_pair"), "above 0"),
        (lambda x: losses.dpo_loss(x, x, x, f_divergence="kl"), "one of reverse_kl"),
        (lambda x: losses.cpo_loss(x, x, loss_type="ipo", label_smoothing=0.1), "none"),
        (lambda x: losses.kto_loss(x, x, x, x[:2, 0]), r"'labels' has shape \[2\]"),
        (lambda x: losses.grpo_loss(x, x[0], x), r"'advantages' has shape \[7\]"),
        (lambda x: losses.grpo_loss(x, x, x, beta=0.1), "'ref_log_probs' is missing"),
        (lambda x: losses.grpo_loss(x, x, x, entropy_coef=0.1), "'entropy' is missing"),
        (
            lambda x: losses.grpo_loss(x, x, x, loss_type="dr_grpo"),
            "'max_completion_length' is missing",
        ),
        (
            lambda x: losses.grpo_loss(x, x, x, loss_type="cispo"),
            "'epsilon_high' is missing",
        ),
        (
            lambda x: losses.grpo_loss(x, x, x, importance_sampling_level="batch"),
            "token or sequence",
        ),
        (lambda x: losses.rloo_loss(x, x, x), r"'advantages' has shape \[6, 7\]"),
    ],
)
def test_what_is_refused(call, message, sample):
    with pytest.raises(ValueError, match=message):
        call(sample.zeroed)
