# Part of Bastile, under the MIT License. See LICENSE.
"""Measurements in processes of their own.

Patches, caches and memory of one measurement do not reach the next, and one that
fails or hangs costs only its own row.
"""

import contextlib
import dataclasses
import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import threading
import time

# Where compilers, the driver's assembler among them, keep what they made; a job
# starts with none of it.
_CACHES = (
    "BASTILE_CACHE_DIR",
    "TORCHINDUCTOR_CACHE_DIR",
    "TRITON_CACHE_DIR",
    "CUDA_CACHE_PATH",
)

MEASURED, LEFT_OUT, FAILED = "measured", "left out", "failed"


@dataclasses.dataclass(frozen=True)
class Outcome:
    """What became of a job: ``values`` where ``status`` is `MEASURED`, otherwise a
    ``message`` in one line and, where there is more to say, ``details``."""

    status: str
    values: dict
    message: str = ""
    details: str = ""


class Budget:
    """The seconds that a command may take, and each job of it."""

    def __init__(self, total: "float | None", job: float):
        self._end = None if total is None else time.monotonic() + total
        self._job = job

    def for_job(self) -> float:
        """Seconds for the next job; 0 or less where none are left."""
        if self._end is None:
            return self._job
        return min(self._job, self._end - time.monotonic())


def run(job: dict, budget: Budget, keep_caches: bool = False) -> Outcome:
    """Runs a job, ``{"task": "train", ...}``, in a new process.

    ``job`` is JSON, as is what its task returns. Where not ``keep_caches``, the
    process finds no compiled code on disk.
    """
    seconds = budget.for_job()
    if seconds <= 0:
        return Outcome(LEFT_OUT, {}, "the command's time (--budget-seconds) is used up")
    with tempfile.TemporaryDirectory(
        # A compiler's process may leave a file behind in its last moment.
        prefix="bastile-bench-",
        ignore_cleanup_errors=True,
    ) as folder:
        folder = pathlib.Path(folder)
        environment = dict(os.environ)
        if not keep_caches:
            for name in _CACHES:
                environment[name] = str(folder / name.lower())
        (folder / "job.json").write_text(json.dumps(job))
        return _run_in(folder, environment, seconds)


def _run_in(folder, environment, seconds):
    output = folder / "output"
    with open(output, "wb") as file, _termination_raised():
        process = subprocess.Popen(
            [sys.executable, "-m", "bastile_bench._end_to_end.worker", str(folder)],
            stdin=subprocess.DEVNULL,
            stdout=file,
            stderr=subprocess.STDOUT,
            env=environment,
            # Compilers start processes of their own, which end with the group.
            start_new_session=True,
        )
        try:
            process.wait(seconds)
        except subprocess.TimeoutExpired:
            stage = _last(folder).get("stage", "starting")
            return Outcome(FAILED, {}, f"not done after {seconds:.0f} s; last: {stage}")
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
    found = _last(folder)
    if "status" in found:
        return Outcome(**found)
    end = output.read_text(errors="replace").strip()[-4000:]
    return Outcome(
        FAILED,
        {},
        f"the process ended with status {process.returncode}; "
        f"last: {found.get('stage', 'starting')}",
        end,
    )


@contextlib.contextmanager
def _termination_raised():
    """Has SIGTERM raise, so that the job, which is in a session of its own, ends
    with this process."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGTERM, lambda number, _: sys.exit(128 + number))
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _last(folder):
    """The last line that the worker wrote."""
    try:
        lines = (folder / "said").read_text().splitlines()
    except FileNotFoundError:
        return {}
    return json.loads(lines[-1]) if lines else {}
