# Part of Bastile, under the MIT License. See LICENSE.
# RUN: %package-test %s
"""What waits for a module of Python is called once, behind its code."""

import importlib
import importlib.metadata
import sys

import pytest
from bastile._patching.arrivals import Arrival


@pytest.fixture
def name(tmp_path, monkeypatch):
    (tmp_path / "later_module.py").write_text("value = 3\n")
    monkeypatch.syspath_prepend(tmp_path)
    before = list(sys.meta_path)
    yield "later_module"
    sys.modules.pop("later_module", None)
    assert sys.meta_path == before


def test_a_module_that_is_there(name):
    module = importlib.import_module(name)
    seen = []
    assert not Arrival(name, seen.append).is_awaited
    assert seen == [module]


def test_a_module_that_comes(name):
    seen = []
    arrivals = [Arrival(name, lambda x: seen.append(x.value)) for _ in range(2)]
    assert all(x.is_awaited for x in arrivals)
    module = importlib.import_module(name)
    assert seen == [3, 3]
    assert not any(x.is_awaited for x in arrivals)
    assert "exec_module" not in vars(module.__loader__)
    importlib.reload(module)
    assert seen == [3, 3]


def test_a_module_that_is_waited_for_no_longer(name):
    seen = []
    arrival = Arrival(name, seen.append)
    arrival.cancel()
    arrival.cancel()
    importlib.import_module(name)
    assert not seen


def test_a_module_that_is_not_there(name):
    arrival = Arrival("no_such_module", print)
    assert importlib.util.find_spec("no_such_module") is None
    with pytest.raises(ModuleNotFoundError):
        importlib.import_module("no_such_module")
    assert arrival.is_awaited
    list(importlib.metadata.distributions())
    arrival.cancel()


def test_a_module_that_fails(name, tmp_path):
    """The next import finds it, and is followed."""
    source = tmp_path / "later_module.py"
    source.write_text("raise KeyError\n")
    seen = []
    Arrival(name, seen.append)
    with pytest.raises(KeyError):
        importlib.import_module(name)
    assert not seen
    source.write_text("value = 'longer'\n")
    importlib.invalidate_caches()
    assert seen == [importlib.import_module(name)]
