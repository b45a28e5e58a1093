# Part of Bastile, under the MIT License. See LICENSE.
# RUN: %package-test %s
"""What is logged of patches."""

import logging

import bastile
import pytest
import tiny_models
import transformers.models.qwen2.modeling_qwen2


@pytest.fixture
def said(caplog):
    caplog.set_level(logging.DEBUG, "bastile.patching")
    yield lambda: [record.getMessage() for record in caplog.records]
    bastile.reset()


def test_each_class_that_is_patched_is_named(said):
    bastile.apply("qwen3", fused_linear_cross_entropy=False)
    assert "patched qwen3.rms_norm: Qwen3RMSNorm.forward" in said()
    assert "patched qwen3.swiglu: Qwen3MLP.forward" in said()
    count = len(said())
    bastile.apply("qwen3", fused_linear_cross_entropy=False)
    assert len(said()) == count
    bastile.reset("qwen3.swiglu")
    assert said()[count:] == ["put back Qwen3MLP.forward (qwen3.swiglu)"]


def test_modules_of_one_model_are_counted(said):
    model = tiny_models.make("qwen3")
    bastile.apply_to_model(model)
    # Two in each of two layers, those of queries and keys, and the last one.
    assert "patched qwen3.rms_norm: Qwen3RMSNorm.forward, in 9 modules" in said()


def test_what_is_left_alone_is_named_with_the_reason(said, monkeypatch):
    module = transformers.models.qwen2.modeling_qwen2
    monkeypatch.setattr(module.Qwen2RMSNorm, "forward", lambda self, x: 2 * x)
    bastile.apply("qwen2")
    assert (
        "left alone Qwen2RMSNorm.forward (rms_norm): its numbers are those of no RMS norm"
        in said()
    )
    assert "patched qwen2.swiglu: Qwen2MLP.forward" in said()
