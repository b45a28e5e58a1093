# Part of Bastile, under the MIT License. See LICENSE.
# RUN: %package-test %s
"""Every patched model in the configurations of published ones, beside the same model as
it was, in logits, losses and gradients."""

import bastile
import published_models
import pytest
import tiny_models
import torch


def test_every_type_has_published_configurations():
    types = {x[0] for x in published_models.CONFIGURATIONS.values()}
    assert types == set(tiny_models.NAMES)


@pytest.mark.long(every=17)
@pytest.mark.parametrize("name", published_models.CONFIGURATIONS)
def test_model(name):
    model_type, changes = published_models.configuration(name)
    model, inputs = tiny_models.make(model_type, **changes), tiny_models.batch()
    expected, gradients = tiny_models.run(model, inputs)
    size = model.config.head_dim if hasattr(model.config, "head_dim") else None
    assert size in (None, changes["head_dim"])
    with bastile.apply(model_type):
        outputs, found = tiny_models.run(model, inputs)
        assert not tiny_models.has_logits(outputs)
        logits = outputs.logits
    assert torch.allclose(outputs.loss, expected.loss, rtol=2e-5)
    scale = expected.logits.abs().max()
    assert (logits - expected.logits).abs().max() < 2e-5 * scale
    assert found.keys() == gradients.keys()
    scale = max(x.abs().max() for x in gradients.values())
    for key, gradient in found.items():
        assert (gradient - gradients[key]).abs().max() < 2e-5 * scale, key


def test_three_quarters_of_a_head_turn():
    """As in Phi-4-mini, whose head has 128 elements."""
    _, changes = published_models.configuration("Phi-4-mini")
    model = tiny_models.make("phi3", **changes)
    angles = model.model.rotary_emb(torch.zeros(1, 3, 8), torch.arange(3)[None])
    assert [x.shape for x in angles] == [(1, 3, 96)] * 2
