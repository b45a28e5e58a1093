# Part of Bastile, under the MIT License. See LICENSE.
# RUN: %package-test %s
"""python -m bastile_bench gated-products, as far as a machine without a GPU runs it."""

import argparse
import json

import pytest
import torch
from bastile_bench.__main__ import main
from bastile_bench._commands import gated_products as command


def test_sizes_are_checked():
    parser = argparse.ArgumentParser(exit_on_error=False)
    command.add_arguments(parser)
    assert parser.parse_args(["--sizes", "8x16x24"]).sizes == [(8, 16, 24)]
    with pytest.raises(argparse.ArgumentError, match="'8x16' is not rows"):
        parser.parse_args(["--sizes", "8x16"])


def test_measures_and_prints_lines_of_the_table(capsys, tmp_path):
    arguments = ["gated-products", "--device", "cpu", "--sizes", "12x16x8"]
    assert main([*arguments, "--rounds", "2", "--out", str(tmp_path)]) == 0
    rows = json.loads((tmp_path / "gated-products.json").read_text())["rows"]
    assert len(rows) == 6 and all(x["shape"] == [12, 16, 8] for x in rows)
    assert "\nFigure(12, 16, 8, " in capsys.readouterr().out


def test_calls_compute_the_same():
    calls = command._calls("cpu", (12, 16, 8), torch.float32)
    kept, *_ = calls["kept"]()
    torch.testing.assert_close(kept, calls["apart"]())
    assert torch.equal(kept, calls["alone"]())


def test_steps_have_the_same_gradients(monkeypatch):
    calls = command._calls("cpu", (12, 16, 8), torch.float32)
    found, original = [], torch.autograd.grad

    def grad(*operands):
        found.append(original(*operands))

    monkeypatch.setattr(torch.autograd, "grad", grad)
    for name in ("step, apart", "step, one", "step, derived"):
        calls[name]()
    for other in found[1:]:
        torch.testing.assert_close(other, found[0])
