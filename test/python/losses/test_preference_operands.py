# Part of Bastile, under the MIT License. See LICENSE.
# RUN: %package-test %s
"""What losses of preferences and rewards are given: shapes, types, and numbers of tokens
that do not count."""

import pytest
import torch
from bastile import losses

SEQUENCES, TOKENS = 4, 4


@pytest.fixture
def mask():
    mask = torch.ones(SEQUENCES, TOKENS)
    mask[1, 2:] = mask[3, :1] = 0
    return mask


def log_probs():
    made = -torch.rand(SEQUENCES, TOKENS, dtype=torch.float32)
    return made.requires_grad_()


@pytest.fixture
def bfloat16_by_default():
    torch.set_default_dtype(torch.bfloat16)
    yield
    torch.set_default_dtype(torch.float32)


def kto(x, mask):
    labels = torch.tensor([1, 0, 1, 0])
    return losses.kto_loss(x, x.detach() * 0.5, mask, labels, desirable_weight=1.337)[0]


def sapo(x, mask):
    advantages = torch.tensor([1.0, -1.0, 0.5, -0.25], dtype=torch.float32)
    return losses.grpo_loss(
        x, advantages, mask, loss_type="sapo", sapo_temperatures=(1.0, 1.0507)
    )[0]


def with_entropy(x, mask):
    advantages = torch.zeros(SEQUENCES, dtype=torch.float32)
    entropy = x.detach().abs()
    counted = torch.full_like(mask, 1.0, dtype=torch.int64)
    return losses.grpo_loss(x, advantages, counted, entropy=entropy, entropy_coef=0.3)[
        0
    ]


@pytest.mark.parametrize("loss", [kto, sapo, with_entropy])
def test_the_default_type_changes_nothing(loss, mask, bfloat16_by_default):
    x = log_probs()
    found = loss(x, mask)
    torch.set_default_dtype(torch.float32)
    assert found.dtype == torch.float32
    assert found.item() == loss(x, mask).item()


@pytest.mark.parametrize("name", ["sampler_ratio", "token_weights"])
def test_numbers_of_sequences_have_two_dimensions(name, mask):
    """As many sequences as tokens: a vector would be of either."""
    x, of_sequences = log_probs(), torch.tensor([1.0, 2.0, 3.0, 4.0])
    advantages = torch.ones(SEQUENCES)
    with pytest.raises(ValueError, match=rf"'{name}' has shape \[4\].* be \[4, 1\] or"):
        losses.grpo_loss(x, advantages, mask, **{name: of_sequences})
    columns = of_sequences[:, None]
    found, _ = losses.grpo_loss(x, advantages, mask, **{name: columns})
    expected, _ = losses.grpo_loss(
        x, advantages, mask, **{name: columns.expand(-1, TOKENS)}
    )
    assert torch.equal(found, expected)


def test_a_number_of_items_is_one_number(mask):
    x, advantages = log_probs(), torch.ones(SEQUENCES)
    with pytest.raises(ValueError, match=r"'num_items' has shape \[2\]"):
        losses.grpo_loss(x, advantages, mask, num_items=torch.tensor([3.0, 4.0]))
    loss, _ = losses.grpo_loss(x, advantages, mask, num_items=torch.tensor([3.0]))
    assert loss.shape == ()


def test_tokens_are_counted_exactly():
    """More of them than bfloat16 tells apart."""
    x = -torch.rand(1, 1001)
    entropy = torch.ones_like(x, dtype=torch.bfloat16)
    loss, _ = losses.grpo_loss(
        x, torch.zeros(1), torch.ones_like(x), entropy=entropy, entropy_coef=1.0
    )
    assert loss.item() == pytest.approx(-1, abs=1e-6)


@pytest.mark.parametrize("name", ["sampler_ratio", "token_weights"])
@pytest.mark.parametrize("level", ["token", "sequence"])
def test_sequences_of_one_token_that_may_not_count(name, level):
    x = torch.tensor([[-1.0], [-2.0]], requires_grad=True)
    loss, _ = losses.grpo_loss(
        x,
        torch.ones(2),
        torch.tensor([[1.0], [0.0]]),
        importance_sampling_level=level,
        **{name: torch.tensor([[0.5], [torch.nan]])},
    )
    (gradient,) = torch.autograd.grad(loss, x)
    assert gradient.isfinite().all() and loss.isfinite()


@pytest.mark.parametrize("name", ["advantages", "sampler_ratio", "token_weights"])
@pytest.mark.parametrize("level", ["token", "sequence"])
@pytest.mark.parametrize("loss_type", ["grpo", "cispo", "sapo", "vespo"])
def test_what_does_not_count_may_be_anything(name, level, loss_type, mask):
    x = log_probs()
    given = {"advantages": torch.ones(SEQUENCES, TOKENS), name: torch.rand_like(mask)}
    options = {
        "loss_type": loss_type,
        "importance_sampling_level": level,
        "epsilon_high": 2.0,
    }
    expected = losses.grpo_loss(x, mask=mask, **given, **options)[0]
    given[name] = torch.where(mask != 0, given[name], torch.nan)
    found = losses.grpo_loss(x, mask=mask, **given, **options)[0]
    assert torch.equal(found, expected)
    gradients = (torch.autograd.grad(loss, x)[0] for loss in (found, expected))
    assert torch.equal(*gradients)


def test_a_divergence_of_a_loss_without_a_margin():
    x = log_probs()
    with pytest.raises(ValueError, match="'apo_zero' has no margin"):
        losses.dpo_loss(
            x, x, torch.ones_like(x), loss_type="apo_zero", f_divergence="forward_kl"
        )


def test_the_largest_ratio_is_none_of_cispo(mask):
    """As in TRL, which logs the ratios themselves."""
    x = log_probs()
    _, metrics = losses.grpo_loss(
        x,
        torch.ones(SEQUENCES),
        mask,
        old_log_probs=x.detach() - 1.8,
        loss_type="cispo",
        epsilon_high=5.0,
        delta=1.5,
    )
    assert metrics["cispo_clip_ratio"] == 1
