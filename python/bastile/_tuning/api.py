# Part of Bastile, under the MIT License. See LICENSE.
"""Tuning and warming up, as users call them."""

import concurrent.futures
import contextlib
import dataclasses
import fcntl
import os
import sys
import time
import warnings
from collections.abc import Sequence
from typing import Any

from bastile import _bastile, _log
from bastile._compiler import loading
from bastile._tuning import jobs, keys, lookup, measure, store
from bastile._tuning.pool import Pool
from bastile._tuning.progress import Progress
from bastile._tuning.search import Outcome, Search

_channel = _log.Channel("tuning")

#: Seconds that the first call of a kernel may take under BASTILE_AUTOTUNE.
FIRST_CALL_BUDGET = 30.0


@dataclasses.dataclass(frozen=True)
class TuningResult:
    """The result of tuning one op on one shape."""

    name: str
    rows: int
    #: Sizes of each operand.
    sizes: tuple[tuple[int, ...], ...]
    #: The schedules that were found, as ``bastile.compile`` takes them; empty where the
    #: heuristic's are the best.
    schedule: str
    #: An ``Outcome`` for each kernel.
    kernels: tuple[Outcome, ...]
    job: jobs.Job

    @property
    def heuristic_seconds(self) -> float:
        """Seconds of a call on the GPU with the heuristic's schedules."""
        # A kernel is timed in its function, those before it tuned already.
        first = {}
        for kernel in self.kernels:
            first.setdefault(kernel.function, kernel.heuristic_seconds)
        return sum(first.values())

    @property
    def seconds(self) -> float:
        """Seconds of a call on the GPU with the schedules found."""
        last = {kernel.function: kernel.seconds for kernel in self.kernels}
        return sum(last.values())


def autotune(
    op: Any = None,
    shape: Any = None,
    *,
    dtype: Any = "bf16",
    grad: bool | str | Sequence[str] = False,
    budget: float = 60.0,
    device: int = 0,
    **attributes: Any,
) -> list[TuningResult]:
    """Times the schedules of kernels and has the fastest used from now on.

    Args:
        op: an op's name, a kernel, or whatever ``bastile.compile`` takes; a list
            of these or of tuples ``(op, shape)`` and ``(op, shape, options)``; by
            default the ops and shapes of common models.
        shape: sizes of the first operand, or of all by name. The rows that it
            has are those that count: one schedule serves any number.
        dtype, grad, attributes: as for ``bastile.compile``.
        budget: seconds for all of it.
        device: the GPU to measure on.

    Every measurement is kept as it comes: what a killed run has measured, the
    next one does not measure again. Results are kept in the cache folder
    (``BASTILE_CACHE_DIR``), by the model of the GPU, for later processes.

    Returns a list with a ``TuningResult`` for each op but those that the budget
    left no time for.
    """
    if op is None:
        specs = [(spec, None) for spec in jobs.read_preset("models")]
    else:
        items = op if isinstance(op, list) else [op]
        specs = jobs.read_specs(items, shape, dtype, grad, attributes)
    target = loading.gpu_target(device)
    made = [jobs.make_job(op, target, shape) for op, shape in specs]
    return run_jobs(made, device=device, budget=budget)


def run_jobs(
    made,
    *,
    device=0,
    budget=60.0,
    gpu=None,
    meter=measure.GpuMeter,
    clock=time.monotonic,
    only_new=False,
    report=lambda result: None,
) -> list:
    """Tunes each job, or those of which nobody knows a result yet; ``report`` is
    told of each result as it comes.

    Raises ``RuntimeError`` if a job fails, unless another one succeeds: then
    that is a warning.
    """
    for job in made:
        if lookup.is_pinned(job.request):
            raise ValueError(
                f"{job.name}: its schedule is pinned, so there is nothing to tune"
            )
    gpu = gpu or _bastile.describe_gpu(device)["name"]
    end = clock() + budget
    results, failure = [], None
    with Progress("tuning", 0, clock) as progress:
        for index, job in enumerate(made):
            remaining = end - clock()
            if remaining <= 0:
                break
            # Later jobs share the time that this one leaves of its part.
            deadline = clock() + remaining / (len(made) - index)
            with _exclusive(gpu, end, clock):
                lookup.forget()
                if only_new and lookup.find_entry(job.request, gpu):
                    continue
                try:
                    result = _run_job(
                        job,
                        gpu,
                        meter(job.request, job.sizes, device),
                        deadline,
                        clock,
                        progress,
                    )
                except RuntimeError as error:
                    failure = error
                    if len(made) > 1:
                        warnings.warn(f"{job.describe()} is not tuned: {error}")
                    continue
            if result:
                results.append(result)
                report(result)
    # No kernel has been loaded yet that a new result is for.
    lookup.forget() if only_new else lookup.changed()
    if failure and not results:
        raise failure
    return results


def _run_job(job, gpu, meter, deadline, clock, progress):
    """The result of a job, which the log keeps; ``None`` if time was up before there
    was one."""
    log = store.open_log(gpu)
    sizes = [list(size) for size in job.sizes]
    search = Search(
        meter,
        log,
        {"gpu": gpu, "key": keys.key(job.request), "sizes": sizes},
        deadline,
        clock,
        step=lambda kernel: progress.step(f"tuning {kernel}"),
        expect=progress.add,
    )
    kernels = tuple(search.run())
    schedule = "; ".join(kernel.pins for kernel in kernels if kernel.pins)
    result = TuningResult(job.name, job.rows, job.sizes, schedule, kernels, job)
    if not any(kernel.has_choice for kernel in kernels):
        _channel.info("%s is not tuned: there was no time for it", job.describe())
        return None
    log.append({"kind": "best", **entry(result, gpu)})
    _channel.info(
        "tuned %s: %.1f us in place of %.1f us, schedule %s",
        job.describe(),
        result.seconds * 1e6,
        result.heuristic_seconds * 1e6,
        schedule or "as the compiler chooses it",
    )
    return result


def entry(result, gpu) -> dict:
    """The line of a table for a result."""
    made = {
        "gpu": gpu,
        "key": keys.key(result.job.request),
        "name": result.name,
        "rows": result.rows,
        "sizes": [list(size) for size in result.sizes],
        "schedule": result.schedule,
        "heuristic_us": round(result.heuristic_seconds * 1e6, 2),
        "us": round(result.seconds * 1e6, 2),
        "bastile": _bastile.__version__,
    }
    if result.job.spec:
        made["spec"] = result.job.spec.record()
    return made


@contextlib.contextmanager
def _exclusive(gpu, end, clock):
    """Keeps other processes from tuning meanwhile: they would disturb the measurements,
    and find the results afterwards."""
    log = store.open_log(gpu)
    if log.path is None:
        yield
        return
    file = log.open(os.O_RDWR | os.O_CREAT, ".lock")
    try:
        while not _try_lock(file):
            if clock() >= end:
                raise TimeoutError("another process is tuning all the while")
            time.sleep(0.05)
        yield
    finally:
        os.close(file)


def _try_lock(file):
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError as error:
        # Not every file system can lock; then nobody waits.
        _channel.info("other processes may tune at the same time: %s", error)
        return True
    return True


def tune_first_call(request, tensors, device) -> None:
    """Tunes what is about to be loaded for a call on ``tensors``, which lie on
    GPU ``device``, if nobody has done so."""
    sizes = tuple(tuple(tensor.shape) for tensor in tensors)
    # Without rows, every schedule is as fast as any other.
    if any(0 in size for size in sizes):
        return
    if lookup.is_pinned(request) or _is_capturing():
        return
    gpu = _bastile.describe_gpu(device)["name"]
    if lookup.find_entry(request, gpu):
        return
    try:
        run_jobs(
            [jobs.Job(request.name, request, sizes)],
            device=device,
            gpu=gpu,
            # Another rank of the same job may be at it.
            only_new=True,
            budget=FIRST_CALL_BUDGET,
        )
    except (OSError, RuntimeError) as error:
        warnings.warn(f"{request.name} is not tuned: {error}", stacklevel=4)


def _is_capturing():
    torch = sys.modules.get("torch")
    return (
        torch is not None
        and torch.cuda.is_available()
        and torch.cuda.is_current_stream_capturing()
    )


def clear_autotune_cache() -> None:
    """Forgets what was tuned on this machine; what came with the package stays."""
    store.clear()
    lookup.changed()


def warmup_all_kernels(
    ops: Sequence[Any] | None = None,
    shapes: Sequence[Any] | None = None,
    *,
    dtype: Any = "bf16",
    grad: bool | str | Sequence[str] = False,
    device: int | None = None,
    workers: int = 4,
) -> int:
    """Compiles and loads kernels ahead of their first call, and tunes nothing.

    Args:
        ops: kernels, names of ops, or tuples as for ``autotune``; by default
            every kernel that is tuned for this model of GPU.
        shapes: shapes for the ops that are given by name.
        dtype, grad: as for ``bastile.compile``.
        device: the GPU to load them into; by default the first one, or the CPU
            where there is none.

    Returns how many kernels are ready.
    """
    if device is None and _bastile.gpu_count():
        device = 0
    target = loading.target_for(device)
    kernels = [
        op.kernel(target) if isinstance(op, jobs.Spec) else op
        for op in _to_warm(ops, shapes, dtype, grad, device, target)
    ]
    with Progress("warming up", len(kernels)) as progress:
        with Pool(workers) as pool:
            waiting = [pool.submit(kernel.warm_up, device) for kernel in kernels]
            for future in concurrent.futures.as_completed(waiting):
                future.result()
                progress.step()
    return len(kernels)


def _to_warm(ops, shapes, dtype, grad, device, target):
    if ops is not None:
        return [
            op
            for shape in (shapes or [None])
            for op, _ in jobs.read_specs(ops, shape, dtype, grad, {})
        ]
    if device is None:
        return []
    gpu = _bastile.describe_gpu(device)["name"]
    kernels = {}
    for table in (store.shipped_table(gpu), store.user_table(gpu)):
        for line in table.entries():
            if "spec" not in line:
                continue
            try:
                kernels[line["key"]] = jobs.Spec(**line["spec"]).kernel(target)
            except (TypeError, ValueError, AttributeError) as error:
                # A log may be of another version, whose ops had other operands.
                _channel.info("%s is not warmed up: %s", line["name"], error)
    return list(kernels.values())
