# Part of Bastile, under the MIT License. See LICENSE.
"""Which tests are long (docs/testing.md): `make test` leaves them out, and
`make test-long`, which sets BASTILE_TEST_LONG, runs no others.

`pytest.mark.long` is a test that is; `pytest.mark.long(every=N)` is one of which every
Nth case is not. N should have no divisor in common with the numbers of parameters, so
that each of them is among the cases that remain.

PyTorch's generator starts each test with the same seed: a test that fails once fails
again, alone and among others."""

import collections
import os
import pathlib
import sys

import pytest


@pytest.fixture(autouse=True)
def seed_of_torch():
    if "torch" in sys.modules:
        sys.modules["torch"].manual_seed(0)


def pytest_configure(config):
    config.addinivalue_line("markers", "long(every=None): runs in `make test-long`")


def pytest_collection_modifyitems(config, items):
    numbers = collections.Counter()

    def is_long(item):
        marker = item.get_closest_marker("long")
        if marker is None:
            return False
        every = marker.kwargs.get("every")
        test = item.nodeid.partition("[")[0]
        numbers[test] += 1
        return every is None or (numbers[test] - 1) % every != 0

    asked = bool(os.environ.get("BASTILE_TEST_LONG"))
    kept, left = [], []
    for item in items:
        is_chosen = is_long(item) == asked
        # Files of that folder have no other tests.
        in_folder = pathlib.Path(item.path).parent.name == "long"
        (kept if is_chosen or in_folder else left).append(item)
    if left:
        config.hook.pytest_deselected(items=left)
        items[:] = kept
