# Part of Bastile, under the MIT License. See LICENSE.
"""One process of a run: ``python -m peers_tests.worker``, which `shards` starts.

The modules are put in the peer's place where this one is imported, and not where it is
run, so that processes that a test spawns have them as well.
"""

import pathlib
import sys

import pytest

from peers_tests import liger, quack, selection
from peers_tests.plugin import Plugin, job_of_environment

_JOB = job_of_environment()
_CHECKOUT = pathlib.Path(_JOB.checkout)
(quack if _JOB.suite == "quack" else liger).install(_CHECKOUT)

#: pytest's settings that are the peer's own would load its plugins.
_SETTINGS = [
    "-q",
    "--no-header",
    "--tb=short",
    "--continue-on-collection-errors",
    *("-p", "no:cacheprovider"),
    *("-o", "addopts=", "-o", "log_cli=false", "-o", "pythonpath=."),
    *("-W", "ignore::pytest.PytestConfigWarning"),
    *("-W", "ignore::pytest.PytestUnknownMarkWarning"),
]


def main() -> int:
    sys.path.insert(0, str(_CHECKOUT))
    settings = [*_SETTINGS, f"--rootdir={_CHECKOUT}"]
    if _JOB.suite == "quack":
        # QuACK's own hooks compile its kernels ahead.
        settings.append("--noconftest")
    if _JOB.keyword:
        settings += ["-k", _JOB.keyword]
    files = [str(_CHECKOUT / name) for name in selection.FILES[_JOB.suite]]
    return int(pytest.main([*settings, *files], plugins=[Plugin(_JOB)]))


if __name__ == "__main__":
    sys.exit(main())
