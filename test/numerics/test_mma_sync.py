# Part of Bastile, under the MIT License. See LICENSE.
# RUN: %pytest %s
"""The variants of the programs in examples/tensor-cores whose products take
registers, against float64: what GPUs without wgmma run."""

import pytest

import test_tensor_cores
from runner import target
from test_tensor_cores import (  # noqa: F401 (the same tests, of other variants)
    test_flash,
    test_flash_of_equal_scores,
    test_flash_of_rows_that_lie_apart,
    test_flash_without_queries,
    test_gated_product,
    test_product,
    test_product_of_rows_that_lie_apart,
    test_product_without_elements,
)


@pytest.fixture(autouse=True)
def without_wgmma(monkeypatch):
    where = ("--emulate",) if target() == "host" else ()
    monkeypatch.setattr(test_tensor_cores, "WHERE", (*where, "--target=sm_80"))
