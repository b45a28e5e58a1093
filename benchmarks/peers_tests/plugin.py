# Part of Bastile, under the MIT License. See LICENSE.
"""What pytest loads in each process: it takes the process's part of the tests, tells
Liger's tests what a forward computes, and writes a line of JSON for each test."""

import dataclasses
import gc
import json
import os
import pathlib
import random
from typing import Any

import pytest

from peers_tests import memory, selection
from peers_tests.liger import patches


#: The status of a process that ended as its GPU had failed.
LOST_GPU = 70


@dataclasses.dataclass
class Job:
    """A process's part of a run. Paths are strings, as it travels as JSON."""

    suite: str
    checkout: str
    results: str
    #: Of ``parts`` processes the one with this number.
    part: int = 0
    parts: int = 1
    #: How many pieces of a GPU's memory there are, and where they are locked.
    pieces: int = 0
    locks: str = ""
    #: The folder of the tokens that models are trained on, where the checkout has none.
    texts: str = ""
    #: pytest's expression for names of tests; the others are not there.
    keyword: str = ""
    #: Which tests to run alone, by a file with an id a line; by default all.
    only: str = ""
    #: Tests to leave out, as an earlier run has their results: a file likewise.
    earlier: str = ""
    #: Tests of this part to leave out, which it has results of: a file likewise.
    done: str = ""


class Plugin:
    def __init__(self, job: Job) -> None:
        self._job = job
        self._lines = open(job.results, "a", encoding="utf-8")
        self._reports: dict[str, dict[str, Any]] = {}

    def _write(self, **line: Any) -> None:
        self._lines.write(json.dumps(line) + "\n")
        self._lines.flush()

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, config: Any, items: list[Any]) -> None:
        job = self._job
        suite = job.suite
        for module in {item.module for item in items}:
            patches.tell(module)
            if job.texts and hasattr(module, "DEFAULT_DATASET_PATH"):
                module.DEFAULT_DATASET_PATH = job.texts
        if job.part == 0 and not job.only:
            for item in items:
                reason = selection.why_not_counted(suite, item.nodeid)
                if reason:
                    self._write(test=item.nodeid, outcome="not counted", message=reason)
        counted = [
            item for item in items if not selection.why_not_counted(suite, item.nodeid)
        ]
        if job.only:
            only = _lines_of(job.only)
            counted = [item for item in counted if item.nodeid in only]
        earlier = _lines_of(job.earlier)
        counted = [item for item in counted if item.nodeid not in earlier]
        # All processes have the same order. A run that ends early has seen a sample.
        random.Random(0).shuffle(counted)
        counted = counted[job.part :: job.parts]
        for item in counted:
            self._write(test=item.nodeid, outcome="not run")
        done = _lines_of(job.done)
        items[:] = [item for item in counted if item.nodeid not in done]

    @pytest.hookimpl(hookwrapper=True)
    def pytest_runtest_protocol(self, item: Any, nextitem: Any) -> Any:
        arguments = item.callspec.params if hasattr(item, "callspec") else {}
        size = memory.needed(arguments)
        self._write(test=item.nodeid, outcome="running")
        with memory.share(pathlib.Path(self._job.locks), self._job.pieces, size):
            yield
            _free()

    def pytest_runtest_logreport(self, report: Any) -> None:
        found = self._reports.setdefault(
            report.nodeid, {"outcome": "passed", "seconds": 0.0, "message": ""}
        )
        found["seconds"] += report.duration
        if report.outcome != "passed" and found["outcome"] != "failed":
            found["outcome"] = report.outcome
            found["message"] = _message(report)
        if report.when == "teardown":
            self._write(test=report.nodeid, **self._reports.pop(report.nodeid))

    def pytest_collectreport(self, report: Any) -> None:
        if not report.failed or self._job.part or self._job.only:
            return
        reason = selection.why_not_counted(self._job.suite, report.nodeid)
        if reason:
            self._write(test=report.nodeid, outcome="not counted", message=reason)
        else:
            self._write(test=report.nodeid, outcome="failed", message=_message(report))


def _lines_of(path):
    return set(pathlib.Path(path).read_text().splitlines()) if path else set()


def _message(report):
    """The error's first line, or why a test was skipped."""
    if isinstance(report.longrepr, tuple):
        return str(report.longrepr[2])
    crash = getattr(report.longrepr, "reprcrash", None)
    text = crash.message if crash is not None else str(report.longrepr)
    lines = [line for line in text.splitlines() if line.strip()]
    return " ".join(lines[:4])[:500]


def _free():
    """Gives a GPU's memory back that other processes may need, and ends a process whose
    GPU refuses everything from now on: another one takes its place."""
    import torch

    if not torch.cuda.is_available():
        return
    try:
        torch.cuda.synchronize()
    except RuntimeError:
        os._exit(LOST_GPU)
    if torch.cuda.memory_reserved() > 1 << 30:
        gc.collect()
        torch.cuda.empty_cache()


def job_of_environment() -> Job:
    return Job(**json.loads(os.environ["BASTILE_PEERS_TESTS"]))
