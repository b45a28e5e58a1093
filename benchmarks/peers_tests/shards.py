# Part of Bastile, under the MIT License. See LICENSE.
"""Runs a suite in several processes, within a time, and collects what they wrote."""

import dataclasses
import json
import os
import pathlib
import signal
import subprocess
import sys
import time
from typing import Any

from peers_tests import memory
from peers_tests.plugin import Job

#: How often a part whose process died is begun again, behind the test that it died of.
_RESTARTS = 20


@dataclasses.dataclass
class Run:
    suite: str
    checkout: pathlib.Path
    folder: pathlib.Path
    processes: int
    seconds: float
    keyword: str = ""
    texts: str = ""
    #: Tests that an earlier run has results of.
    earlier: frozenset[str] = frozenset()


def run(what: Run, only: set[str] | None = None) -> dict[str, dict[str, Any]]:
    """What became of each test, by its id: ``outcome`` ("passed", "failed", "skipped",
    "not counted", "not run", or "running" where the time was over), ``seconds`` and
    ``message``. ``only`` are ids of tests, by default all that count."""
    what.folder.mkdir(parents=True, exist_ok=True)
    kind = "again" if only else "part"
    base = Job(
        what.suite,
        str(what.checkout),
        "",
        parts=what.processes,
        pieces=_pieces(what.processes),
        locks=str(what.folder),
        keyword=what.keyword,
        texts=what.texts,
    )
    if only:
        base.only = _write(what.folder / "only", only)
    elif what.earlier:
        base.earlier = _write(what.folder / "earlier", what.earlier)
    parts = []
    for number in range(what.processes):
        results = what.folder / f"{kind}-{number}.jsonl"
        results.unlink(missing_ok=True)
        job = dataclasses.replace(base, part=number, results=str(results))
        parts.append(_Part(job, results))
    end = time.monotonic() + what.seconds
    try:
        while any([part.is_going() for part in parts]) and time.monotonic() < end:
            time.sleep(0.2)
    finally:
        for part in parts:
            part.stop()
    found: dict[str, dict[str, Any]] = {}
    for part in parts:
        found |= part.read()
    return found


def _python_path():
    """Where processes that start elsewhere find this package, and what this one does."""
    here = str(pathlib.Path(__file__).parents[1])
    given = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    return os.pathsep.join([here, *(os.path.abspath(x) for x in given if x)])


def _write(path, tests):
    path.write_text("\n".join(sorted(tests)))
    return str(path)


def _pieces(processes):
    """Pieces of the GPU's memory beside what each process takes by being there."""
    import torch

    if not torch.cuda.is_available():
        return 0
    _, total = torch.cuda.mem_get_info()
    return max(int(total * 0.85 - processes * 2**31) // memory.PIECE, 1)


class _Part:
    """A process that runs one part of the tests, and another one if that dies."""

    def __init__(self, job: Job, results: pathlib.Path) -> None:
        self._job = job
        self._results = results
        self._restarts = 0
        self._start()

    def _start(self):
        job = dataclasses.asdict(self._job)
        self._log = open(self._results.with_suffix(".log"), "a")
        settings = {
            "OMP_NUM_THREADS": "1",
            "TORCHINDUCTOR_COMPILE_THREADS": "1",
            # Tests that ask for deterministic products need it ahead of the first.
            "CUBLAS_WORKSPACE_CONFIG": ":4096:8",
            "BASTILE_PEERS_TESTS": json.dumps(job),
            "PYTHONPATH": _python_path(),
        }
        self._process = subprocess.Popen(
            [sys.executable, "-m", "peers_tests.worker"],
            cwd=self._job.checkout,
            env={**os.environ, **settings},
            stdout=self._log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )

    def is_going(self):
        status = self._process.poll()
        if status is None:
            return True
        # pytest's own answers are from 0 to 5; a signal is negative.
        if 0 <= status <= 5 or self._restarts == _RESTARTS:
            return False
        self._restarts += 1
        self._give_up_on_running(status)
        self._start()
        return True

    def _give_up_on_running(self, status):
        """Counts the test that the process died of as failed, and leaves out what has
        results."""
        found = self.read()
        died = {"outcome": "failed", "message": f"the process ended with {status}"}
        with self._results.open("a", encoding="utf-8") as lines:
            for test, result in found.items():
                if result["outcome"] == "running":
                    lines.write(json.dumps({"test": test, **died}) + "\n")
        done = {test for test, x in self.read().items() if x["outcome"] != "not run"}
        path = _write(self._results.with_suffix(".done"), done)
        self._job = dataclasses.replace(self._job, done=path)

    def stop(self):
        if self._process.poll() is None:
            os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()
        self._log.close()

    def read(self):
        """The last that was written of each test, but nothing that comes behind a
        result."""
        found: dict[str, dict[str, Any]] = {}
        if self._results.exists():
            for line in self._results.read_text(encoding="utf-8").splitlines():
                result = json.loads(line)
                test = result.pop("test")
                if result["outcome"] == "not run" and test in found:
                    continue
                found[test] = result
        return found
