# Part of Bastile, under the MIT License. See LICENSE.
"""Where the tests of the package run: every test with a `device` on the CPU and,
where there is one, on a GPU. `pytest -m gpu` runs those on a GPU alone."""

import os
import sys

import pytest

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "Inputs"))

try:
    import torch
except ImportError:
    torch = None

has_gpu = torch is not None and torch.cuda.is_available()


def pytest_configure(config):
    config.addinivalue_line("markers", "gpu: needs a GPU")


@pytest.fixture(
    params=["cpu", pytest.param("cuda", marks=pytest.mark.gpu)],
)
def device(request):
    return request.param


def pytest_collection_modifyitems(items):
    if has_gpu:
        return
    for item in items:
        if item.get_closest_marker("gpu"):
            item.add_marker(pytest.mark.skip(reason="needs a GPU"))
