# Part of Bastile, under the MIT License. See LICENSE.
# RUN: %package-test %s
"""python -m bastile_bench tensor-cores, as far as a machine without a GPU runs it."""

import argparse

import bastile
import pytest
import torch
from bastile_bench.__main__ import main
from bastile_bench._commands import tensor_cores as command


def test_sizes_are_checked():
    parser = argparse.ArgumentParser(exit_on_error=False)
    command.add_arguments(parser)
    options = parser.parse_args(["--products", "8x16x24", "--attentions"])
    assert options.products == [(8, 16, 24)]
    assert options.attentions == []
    with pytest.raises(argparse.ArgumentError, match="'8x16' is not 3 sizes"):
        parser.parse_args(["--products", "8x16"])


@pytest.mark.parametrize(
    ("name", "first"),
    [
        ("product", "product"),
        ("gated_product", "gated_product"),
        ("split_product", "split_product"),
        ("flash_64", "flash"),
        ("flash_128", "flash"),
    ],
)
def test_programs_have_variants_without_wgmma(name, first, monkeypatch):
    compiled = []
    monkeypatch.setattr(bastile, "compile", compiled.append)
    command.compiled.cache_clear()
    command.compiled(name)
    command.compiled(name, f"{first}_wgmma")
    command.compiled.cache_clear()
    whole, rest = compiled
    assert f"tile.launch [@{first}_wgmma, @{first}_mma]" in whole
    assert f"tile.launch [@{first}_mma]" in rest


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")
def test_says_that_there_is_no_gpu(capsys, tmp_path):
    assert main(["tensor-cores", "--out", str(tmp_path)]) == 1
    assert "PyTorch finds no GPU" in capsys.readouterr().err
